//! The open record for measuring: a role says what it did, and never hears of it again.

use crate::Value;
use std::fmt;
use wire::PacketId;

/// Something worth measuring. Its name is a constant of the protocol that makes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// Who made it.
    pub role: &'static str,
    /// What happened.
    pub name: &'static str,
    /// The stage of a handoff that this begins or ends.
    pub span: Option<Span>,
    /// The packet it is about.
    pub packet: Option<PacketId>,
    /// What else there is to know.
    pub fields: Vec<(&'static str, Value)>,
}

impl Mark {
    /// A mark without span, packet or fields.
    pub const fn new(role: &'static str, name: &'static str) -> Self {
        Self { role, name, span: None, packet: None, fields: Vec::new() }
    }

    /// The same, at an edge of a stage.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same, with one more field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }
}

/// The mark with which a handoff begins, whoever decides it; fields `kind`, `from`, `to`.
pub const HANDOFF: &str = "handoff";

/// A handoff of the timetable was not begun; fields `to`, `why`.
pub const HANDOFF_REFUSED: &str = "handoff_refused";
/// A handoff was given up for another one; fields `to`, `why`.
pub const HANDOFF_ABORTED: &str = "handoff_aborted";
/// The radio did not come into the new cell; fields `to`, `why`.
pub const HANDOFF_FAILED: &str = "handoff_failed";

/// The role of marks about the state of a TCP connection, by either backend: `cwnd` in `bytes`, `srtt` in `ns` and others,
/// each with the ends of the connection in `local` and `peer`.
pub const TCP: &str = "tcp";

/// An edge of a stage. Each stage begins and ends at an event of its own, so that a missing one shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Span {
    /// The stage begins here.
    Begins(Stage),
    /// The stage ends here.
    Ends(Stage),
}

/// Who owns a part of an outage, in the order in which a handoff goes through them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// The radio is on its way between cells.
    Link,
    /// The host has not noticed yet that it moved.
    Detection,
    /// It waits for an address.
    Address,
    /// It tells the network where it is.
    Registration,
    /// The network sends the next packet by the new path.
    PathSwitch,
    /// That packet travels.
    FirstByte,
    /// The sender's transport waits to send again, or resends what the receiver holds.
    Recovery,
    /// The path is there; the source has not sent anything yet.
    Traffic,
}

impl Stage {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Detection => "detection",
            Self::Address => "address",
            Self::Registration => "registration",
            Self::PathSwitch => "path switch",
            Self::FirstByte => "first byte",
            Self::Recovery => "recovery",
            Self::Traffic => "traffic",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
