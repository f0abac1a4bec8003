//! The events of a scenario: faults of hosts and links, and the ends of these faults.

use crate::Trail;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an event does to a host or a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The host's node and stack end. Their state is lost, except for the durable records.
    Crash,
    /// After a crash: the host starts with a new node and a new stack, the same configuration and its durable records.
    Restart,
    /// The host processes nothing, but keeps its state.
    Stop,
    /// After a stop: the host processes its inputs again.
    Continue,
    /// The link carries no frames.
    Cut,
    /// After a cut: the link carries frames again.
    Restore,
    /// From now on, the link loses frames at random with another probability.
    Loss,
    /// The link has another MTU from now on.
    Mtu,
    /// The host's wall clock is set. The host's timers do not change.
    Clock,
    /// From now on, the host cannot store durable records.
    DiskFull,
    /// After `DiskFull`: the host can store durable records again.
    DiskFree,
}

impl EventKind {
    /// All kinds, in the order of their definition.
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

    /// Returns the name of this kind in scenarios and records, for example `disk-full`.
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

    /// Returns the kind that has this name, or `None` if there is none.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether the event happens to a link. All other events happen to a host.
    pub const fn is_of_link(self) -> bool {
        matches!(self, Self::Cut | Self::Restore | Self::Loss | Self::Mtu)
    }

    /// Returns the kind of the event that ends what this kind begins. For `Loss` and `Mtu` it is the same kind, with
    /// another value. `None` if this kind begins nothing, for example `Restart`.
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

/// An event of the scenario as it is recorded. Its text is, for example, `crash of home`, `cut of wire left`, `loss of
/// 10 % on cell 2`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What the event does.
    pub kind: EventKind,
    /// The host or the link, as text: `home`, `wire left`, `cell 2`, `cell 2 for mobile`.
    pub target: Trail,
    /// The value that `loss`, `mtu` or `clock` sets: `10 %`, `1280` (bytes) or `+5s`. `None` for other kinds.
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
