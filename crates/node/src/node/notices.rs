//! Notices: a role learns that a route of its own is used, and by which packets, without getting each packet
//! ([`table::Route::notice`]).

use crate::Expiry;
use std::collections::BTreeMap;
use table::{Notice, RoleId};
use wire::{Duration, Instant, Ipv4Addr};

/// The maximum number of pairs of source and destination of which a role is notified in one interval, if the role does not say
/// another one ([`crate::Role::most_notices`]). Further pairs are not reported. Packets with forged sources can cause this.
/// Notices only make paths shorter, so that does no other harm.
pub(crate) const USUAL: usize = 1024;

/// The packets of which roles were notified, until the interval of the notice ends.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// The notified role, the interval, the source and the destination. The deadline is the end of the present interval.
    last: Expiry<(RoleId, Duration, Ipv4Addr, Ipv4Addr)>,
    /// The number of pairs of each role.
    pairs: BTreeMap<RoleId, usize>,
}

impl Notices {
    /// Returns whether the owner of a route must be notified of a packet with these addresses now, and counts it as
    /// notified. The result is false if it was notified in this interval, and if it was notified of `most` pairs.
    pub(crate) fn is_due(
        &mut self,
        now: Instant,
        notice: Notice,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        most: usize,
    ) -> bool {
        while let Some((owner, ..)) = self.last.pop(now) {
            if let Some(pairs) = self.pairs.get_mut(&owner) {
                *pairs -= 1;
            }
        }
        let key = (notice.owner, notice.interval, src, dst);
        // This is so for nearly all packets.
        if self.last.has(key) {
            return false;
        }
        let pairs = self.pairs.entry(notice.owner).or_default();
        let is_due = *pairs < most;
        if is_due {
            *pairs += 1;
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
        let mut at =
            |ms, notice, src, dst| notices.is_due(Instant::from_millis(ms), notice, (src, dst), USUAL);
        assert!(at(0, notice, SRC, DST));
        assert!(!at(0, notice, SRC, DST) && !at(999, notice, SRC, DST), "the interval has not ended");
        assert!(at(500, notice, DST, SRC) && at(500, other, SRC, DST), "another pair, another owner");
        assert!(at(1500, notice, SRC, DST) && !at(1999, notice, SRC, DST) && at(2000, notice, SRC, DST));
    }

    #[test]
    fn the_number_of_pairs_of_each_role_is_bounded() {
        let notice = Notice { owner: RoleId(0), interval: Duration::from_secs(1) };
        let mut notices = Notices::default();
        let mut at = |ms, owner: u8, src: usize| {
            let pair = (Ipv4Addr::from_bits(src as u32), DST);
            notices.is_due(Instant::from_millis(ms), Notice { owner: RoleId(owner), ..notice }, pair, USUAL)
        };
        assert!((0..USUAL).all(|src| at(0, 0, src)));
        assert!(!at(999, 0, USUAL), "there is no room");
        assert!(at(999, 1, USUAL), "another role");
        assert!(at(1000, 0, USUAL), "the intervals have ended");
        assert!(
            (1..USUAL).all(|src| at(1001, 0, src)) && !at(1001, 0, 0),
            "there is no more room than before"
        );
    }
}
