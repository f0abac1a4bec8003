//! Notices: a role learns that a route of its own is used, and by which packets, without getting each packet
//! ([`table::Route::notice`]).

use crate::Expiry;
use table::{Notice, RoleId};
use wire::{Duration, Instant, Ipv4Addr};

/// The maximum number of pairs of source and destination that a node remembers. If a node has reported this number of
/// pairs, and none of their intervals has ended, further pairs are not reported. Packets with forged sources can cause
/// this. Notices only make paths shorter, so that does no other harm.
const CAPACITY: usize = 1024;

/// The packets of which roles were notified, until the interval of the notice ends.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// The notified role, the interval, the source and the destination. The deadline is the end of the present interval.
    last: Expiry<(RoleId, Duration, Ipv4Addr, Ipv4Addr)>,
}

impl Notices {
    /// Returns whether the owner of a route must be notified of a packet with these addresses now, and counts it as
    /// notified. The result is false if it was notified in this interval, and if there is no room.
    pub(crate) fn is_due(&mut self, now: Instant, notice: Notice, src: Ipv4Addr, dst: Ipv4Addr) -> bool {
        while self.last.pop(now).is_some() {}
        let key = (notice.owner, notice.interval, src, dst);
        let is_due = !self.last.has(key) && self.last.len() < CAPACITY;
        if is_due {
            self.last.set(key, notice.end(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const DST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);

    #[test]
    fn each_pair_is_reported_once_in_an_interval() {
        let notice = Notice { owner: RoleId(0), interval: Duration::from_secs(1) };
        let other = Notice { owner: RoleId(1), ..notice };
        let mut notices = Notices::default();
        let mut at = |ms, notice, src, dst| notices.is_due(Instant::from_millis(ms), notice, src, dst);
        assert!(at(0, notice, SRC, DST));
        assert!(!at(0, notice, SRC, DST) && !at(999, notice, SRC, DST), "the interval has not ended");
        assert!(at(500, notice, DST, SRC) && at(500, other, SRC, DST), "another pair, another owner");
        assert!(at(1500, notice, SRC, DST) && !at(1999, notice, SRC, DST) && at(2000, notice, SRC, DST));
    }

    #[test]
    fn the_number_of_pairs_is_bounded() {
        let notice = Notice { owner: RoleId(0), interval: Duration::from_secs(1) };
        let mut notices = Notices::default();
        let mut at = |ms, src: usize| {
            notices.is_due(Instant::from_millis(ms), notice, Ipv4Addr::from_bits(src as u32), DST)
        };
        assert!((0..CAPACITY).all(|src| at(0, src)));
        assert!(!at(999, CAPACITY), "there is no room");
        assert!(at(1000, CAPACITY), "the intervals have ended");
    }
}
