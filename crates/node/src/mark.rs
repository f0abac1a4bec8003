//! Marks: events that are recorded for measurements. Roles record marks. The simulator's stack and the daemon record
//! marks about TCP connections. No role is notified of a mark.

use crate::Value;
use std::fmt;
use wire::PacketId;

/// An event that is recorded for measurements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// The name of the role that recorded the event; [`TCP`] in marks about the state of a TCP connection.
    pub role: &'static str,
    /// The name of the event, for example `handoff`.
    pub name: &'static str,
    /// The begin or end of a stage of a handoff, if the event is one.
    pub span: Option<Span>,
    /// The packet that the event is about, if any.
    pub packet: Option<PacketId>,
    /// Further values, by name.
    pub fields: Vec<(&'static str, Value)>,
}

impl Mark {
    /// Returns a mark without span, packet or fields.
    pub const fn new(role: &'static str, name: &'static str) -> Self {
        Self { role, name, span: None, packet: None, fields: Vec::new() }
    }

    /// Returns the same mark at the begin or end of a stage.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Returns the same mark with one more field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }
}

/// The name of the mark at the begin of a handoff, whichever role decides it. The mark has the fields `kind`, `from`
/// and `to`.
pub const HANDOFF: &str = "handoff";

/// The name of the mark of a scheduled handoff that was not begun. The mark has the fields `to` and `why`.
pub const HANDOFF_REFUSED: &str = "handoff_refused";
/// The name of the mark of a handoff that was abandoned for another one. The mark has the fields `to` and `why`.
pub const HANDOFF_ABORTED: &str = "handoff_aborted";
/// The name of the mark of a handoff in which the radio did not reach the new cell. The mark has the fields `to` and
/// `why`.
pub const HANDOFF_FAILED: &str = "handoff_failed";

/// The role name in marks about the state of a TCP connection, on both backends: for example `cwnd` in `bytes` or
/// `srtt` in `ns`. Each mark has the ends of the connection in `local` and `peer`.
pub const TCP: &str = "tcp";

/// The role name in marks of the node itself.
pub const NODE: &str = "node";
/// The name of the mark with the number of entries that the roles of a node hold (`count`), if the node records it.
pub const ENTRIES: &str = "entries";

/// The begin or end of a stage of a handoff. Begin and end are separate events, so that a missing one is noticed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Span {
    /// The stage begins at the instant of the mark.
    Begins(Stage),
    /// The stage ends at the instant of the mark.
    Ends(Stage),
}

/// The owner of a part of an outage (docs/glossary.md). The order of the variants has no meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// The radio is changing cells, or the link carries no packets.
    Link,
    /// The host has not detected yet that it moved.
    Detection,
    /// The host is acquiring an address.
    Address,
    /// The host signals its new location to the network.
    Registration,
    /// The path is being switched, until the first packet is sent by the new path.
    PathSwitch,
    /// The first packet by the new path is under way.
    FirstByte,
    /// The path is ready, and the sender's transport waits for a timer, or retransmits.
    Recovery,
    /// The path is ready, but the source has not sent anything yet.
    Traffic,
}

impl Stage {
    /// Returns the name of the stage in reports.
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
