//! The causes of an outage, and their colours.

/// The cause of a part of an outage. Seven of the colours are Okabe and Ito's, which were chosen for all kinds of
/// colour vision. The other two are greys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// The radio was tuned, associated or scanned, or a link was down, or lost or refused packets.
    Link,
    /// The host had the new link, but did not know the new network yet.
    Detection,
    /// The host acquired an address of the new network.
    Address,
    /// Signalling was under way to the node that can switch the path.
    Registration,
    /// The path was being switched, or connections were handed over.
    PathSwitch,
    /// The path was ready, but the source had nothing to send yet.
    Traffic,
    /// The path was ready, and the transport retransmitted, or waited for a timer.
    Recovery,
    /// The first new data were on their way.
    FirstByte,
    /// No record explains this part.
    Unexplained,
}

impl Owner {
    /// All owners, in the order of legends: the order of the steps of a handoff, and `Unexplained` last.
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

    /// Returns the name of this owner in legends and CSV files.
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

    /// Returns the colour of text on a background of [`Self::colour`].
    pub(super) const fn ink(self) -> &'static str {
        if matches!(self, Self::PathSwitch | Self::Unexplained) { "#ffffff" } else { "#111111" }
    }
}
