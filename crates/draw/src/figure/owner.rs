//! The causes of an outage, and their colours.

/// The cause of a part of an outage. The colours are Okabe and Ito's, which are distinct for every kind of colour
/// vision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// There was no link.
    Link,
    /// The host had not detected the move.
    Detection,
    /// The host had no address.
    Address,
    /// Registration, or an update, was under way.
    Registration,
    /// The path was not switched.
    PathSwitch,
    /// The path was ready, and the source had not sent data.
    Traffic,
    /// The path was ready, and the transport had not recovered.
    Recovery,
    /// The first new data was under way.
    FirstByte,
    /// No event accounts for it.
    Unexplained,
}

impl Owner {
    /// All owners, in the order in which they follow each other in an outage.
    pub const ALL: [Self; 9] = [
        Self::Link,
        Self::Detection,
        Self::Address,
        Self::Registration,
        Self::PathSwitch,
        Self::Traffic,
        Self::Recovery,
        Self::FirstByte,
        Self::Unexplained,
    ];

    /// Returns the name in legends and CSV files.
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
            Self::Unexplained => "unexplained",
        }
    }

    pub(super) const fn colour(self) -> &'static str {
        match self {
            Self::Link => "#e69f00",
            Self::Detection => "#56b4e9",
            Self::Address => "#009e73",
            Self::Registration => "#f0e442",
            Self::PathSwitch => "#0072b2",
            Self::FirstByte => "#d55e00",
            Self::Recovery => "#cc79a7",
            Self::Traffic => "#bbbbbb",
            Self::Unexplained => "#444444",
        }
    }

    /// The colour of a text on [`Self::colour`].
    pub(super) const fn ink(self) -> &'static str {
        if matches!(self, Self::PathSwitch | Self::Unexplained) { "#ffffff" } else { "#111111" }
    }
}
