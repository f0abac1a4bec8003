//! Changes inside a connection as events, for example for graphs of the window over time.

use crate::{Info, State};
use wire::Duration;

/// A value of a connection that has changed, with the new value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// The state of the connection (RFC 9293, section 3.3.2).
    State(State),
    /// The congestion window, in bytes.
    Cwnd(u32),
    /// The slow start threshold, in bytes.
    Ssthresh(u32),
    /// Whether fast recovery is under way: true when it begins, false when it ends.
    Recovering(bool),
    /// The smoothed round-trip time.
    Srtt(Duration),
    /// The retransmission time-out, backed off.
    Rto(Duration),
    /// The number of segments sent again so far, as in [`Info::retransmissions`].
    Retransmissions(u64),
}

impl Change {
    /// Returns the name under which the value is recorded.
    pub const fn name(self) -> &'static str {
        match self {
            Self::State(_) => "state",
            Self::Cwnd(_) => "cwnd",
            Self::Ssthresh(_) => "ssthresh",
            Self::Recovering(_) => "recovering",
            Self::Srtt(_) => "srtt",
            Self::Rto(_) => "rto",
            Self::Retransmissions(_) => "retransmissions",
        }
    }
}

/// The last snapshot of a connection, to find what has changed. If a caller calls [`Watch::changes`] after each event,
/// it misses only values that the same event replaced.
#[derive(Clone, Debug, Default)]
pub struct Watch(Option<Info>);

impl Watch {
    /// Returns what has changed since the last call, in the order of [`Change`]; the first call returns all values that
    /// are known. A round-trip time that becomes unknown is not returned.
    pub fn changes(&mut self, now: Info) -> impl Iterator<Item = Change> + use<> {
        let before = self.0.replace(now);
        let changed = |of: fn(&Info) -> Option<Change>| {
            let new = of(&now)?;
            (before.as_ref().and_then(of) != Some(new)).then_some(new)
        };
        let all = [
            changed(|info| Some(Change::State(info.state))),
            changed(|info| Some(Change::Cwnd(info.cwnd))),
            changed(|info| Some(Change::Ssthresh(info.ssthresh))),
            changed(|info| Some(Change::Recovering(info.recovering))),
            changed(|info| info.srtt.map(Change::Srtt)),
            changed(|info| Some(Change::Rto(info.rto))),
            changed(|info| Some(Change::Retransmissions(info.retransmissions))),
        ];
        all.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Connection, Profile, Seq};
    use wire::{Instant, Ipv4Addr, SocketAddrV4};

    #[test]
    fn what_changes_is_told_once() {
        let end = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
        let mut tcp = Connection::connect(end, end, Seq(0), &Profile::rfc6298_reno());
        let mut watch = Watch::default();
        let first: Vec<_> = watch.changes(tcp.info()).map(Change::name).collect();
        assert_eq!(first, ["state", "cwnd", "ssthresh", "recovering", "rto", "retransmissions"]);
        assert!(tcp.poll(Instant::ZERO).is_some());
        assert_eq!(watch.changes(tcp.info()).count(), 0);
        tcp.timeout(Instant::from_millis(1000));
        assert_eq!(watch.changes(tcp.info()).collect::<Vec<_>>(), [Change::Rto(Duration::from_secs(2))]);
    }
}
