//! An event of a scenario, which happens to a run from outside.

use crate::Trail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The host's node ends. Its state is lost, except durable records.
    Crash,
    /// A new node with the same configuration and store begins, after a crash.
    Restart,
    /// The host processes nothing, and keeps everything.
    Stop,
    /// The host processes again, after a stop.
    Continue,
    /// The link carries nothing.
    Cut,
    /// The link carries again, after a cut.
    Restore,
    /// The link loses frames at random from now on.
    Loss,
    /// The link has another MTU from now on.
    Mtu,
    /// The host's wall clock is set. Its timers do not change.
    Clock,
    /// Each record that the host stores fails.
    DiskFull,
    /// The host can store again.
    DiskFree,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Crash,
        Self::Restart,
        Self::Stop,
        Self::Continue,
        Self::Cut,
        Self::Restore,
        Self::Loss,
        Self::Mtu,
        Self::Clock,
        Self::DiskFull,
        Self::DiskFree,
    ];

    /// Returns its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Continue => "continue",
            Self::Cut => "cut",
            Self::Restore => "restore",
            Self::Loss => "loss",
            Self::Mtu => "mtu",
            Self::Clock => "clock",
            Self::DiskFull => "disk-full",
            Self::DiskFree => "disk-free",
        }
    }

    /// Returns the kind of this name, or `None`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it happens to a link.
    pub const fn is_of_link(self) -> bool {
        matches!(self, Self::Cut | Self::Restore | Self::Loss | Self::Mtu)
    }

    /// Returns the kind that ends the state which this one begins, or `None` if it begins none.
    pub const fn end(self) -> Option<Self> {
        match self {
            Self::Crash => Some(Self::Restart),
            Self::Stop => Some(Self::Continue),
            Self::Cut => Some(Self::Restore),
            Self::DiskFull => Some(Self::DiskFree),
            Self::Loss => Some(Self::Loss),
            Self::Mtu => Some(Self::Mtu),
            Self::Restart | Self::Continue | Self::Restore | Self::Clock | Self::DiskFree => None,
        }
    }
}

/// A recorded event. Its text is, for example, `crash of home`, `cut of wire left`, `loss of 10 % on cell 2`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The target in words: `home`, `wire left`, `cell 2`, `cell 2 for mobile`.
    pub target: Trail,
    /// The value that `loss`, `mtu` or `clock` sets: `10 %`, `1280` or `+5s`.
    pub value: Option<Trail>,
}

impl Event {
    /// Returns an event without a value.
    pub fn new(kind: EventKind, target: impl Into<Trail>) -> Self {
        Self { kind, target: target.into(), value: None }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, value) = (&self.target, self.value.as_deref().unwrap_or_default());
        match self.kind {
            EventKind::Loss => write!(f, "loss of {value} on {target}"),
            EventKind::Mtu => write!(f, "MTU {value} on {target}"),
            EventKind::Clock => write!(f, "clock step {value} of {target}"),
            EventKind::DiskFull => write!(f, "disk full at {target}"),
            EventKind::DiskFree => write!(f, "disk free at {target}"),
            kind => write!(f, "{} of {target}", kind.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_name() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::of_name(kind.name()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.name()));
        }
        assert_eq!(EventKind::of_name("earthquake"), None);
    }
}
