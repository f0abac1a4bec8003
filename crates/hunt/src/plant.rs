//! Planted mistakes, which test the judges. Each mistake changes the facts as a faulty role would. A judge must find
//! it.

use crate::judge::Judge;

/// A mistake that is planted in the facts of a run, to test whether a judge finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// Datagrams are delivered to the wrong host.
    Misled,
    /// Packets loop: each time that a packet is sent on a link counts as 20 times.
    Loop,
    /// Packets that a previous foreign agent forwards loop: each time that one is sent on a link counts as 20 times.
    Circle,
    /// Previous foreign agents forward packets to addresses that the mobile node has not requested.
    Diverted,
    /// Foreign agents send kept packets to addresses that the mobile node has not requested.
    Leaked,
    /// Foreign agents send kept packets although the visit has ended.
    KeptOn,
    /// A router keeps serving a connection that it has handed over.
    Owners,
    /// Bytes are not delivered to the application.
    Lost,
    /// Bytes are delivered twice.
    Doubled,
    /// The server is never notified that its connection has ended.
    Hang,
    /// No datagram arrives after the first 5 s of the run.
    Unserved,
    /// A mobile node stays on its preferred second interface when the cell of this interface is out of reach.
    Stuck,
    /// Each read of an application is 10 minutes late.
    Stall,
    /// SCTP data are sent to addresses that are not confirmed.
    Unconfirmed,
    /// Home agents tunnel to other care-of addresses than those that they bound.
    Unbound,
    /// Correspondents believe an older Binding Update.
    Stale,
    /// Home agents accept each request twice.
    Replayed,
    /// Foreign agents send the packets of their visitors outside of reverse tunnels.
    Bypassed,
    /// Foreign agents relay requests with challenges that they did not advertise.
    Unchallenged,
    /// Agents use another kind of tunnels than the mobile node asked for.
    Kinds,
    /// Foreign agents do not sign the requests that they relay.
    Unsigned,
    /// Packets disappear without a record.
    Vanished,
    /// Ten thousand more packets are held when the run ends.
    Hoard,
    /// The analysis of a run reports each outage one second longer than the application waited.
    Overstated,
}

impl Plant {
    /// All planted mistakes.
    pub const ALL: [Self; 24] = [
        Self::Misled,
        Self::Loop,
        Self::Circle,
        Self::Diverted,
        Self::Leaked,
        Self::KeptOn,
        Self::Owners,
        Self::Lost,
        Self::Doubled,
        Self::Hang,
        Self::Unserved,
        Self::Stuck,
        Self::Stall,
        Self::Unconfirmed,
        Self::Unbound,
        Self::Stale,
        Self::Replayed,
        Self::Bypassed,
        Self::Unchallenged,
        Self::Kinds,
        Self::Unsigned,
        Self::Vanished,
        Self::Hoard,
        Self::Overstated,
    ];

    /// Returns the judge that must find the mistake.
    pub const fn judge(self) -> Judge {
        match self {
            Self::Misled => Judge::Misled,
            Self::Loop | Self::Circle => Judge::Loop,
            Self::Owners => Judge::Owners,
            Self::Lost | Self::Doubled | Self::Hang => Judge::Stream,
            Self::Unserved => Judge::Served,
            Self::Stuck => Judge::Interface,
            Self::Stall => Judge::Stall,
            Self::Unconfirmed => Judge::Unconfirmed,
            Self::Unbound | Self::Diverted => Judge::Unbound,
            Self::Leaked | Self::KeptOn => Judge::Kept,
            Self::Stale => Judge::Stale,
            Self::Replayed => Judge::Replayed,
            Self::Bypassed => Judge::Bypassed,
            Self::Unchallenged => Judge::Unchallenged,
            Self::Kinds => Judge::Kinds,
            Self::Unsigned => Judge::Unsigned,
            Self::Vanished | Self::Overstated => Judge::Laws,
            Self::Hoard => Judge::Bounded,
        }
    }
}
