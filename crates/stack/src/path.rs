//! Path MTUs that are smaller than the MTU of the host's link (RFC 1191).

use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, icmp};

/// How long a reduced path MTU is used (RFC 1191, section 6.3).
const AGE: Duration = Duration::from_mins(10);
/// The largest number of known paths. If another path becomes known, the path that expires first is removed.
const MOST: usize = 256;
/// The smallest path MTU, in bytes (Linux: `ip_rt_min_pmtu`). With a forged or wrong message about a smaller MTU, a
/// connection would become extremely slow.
const LEAST: u16 = 552;

#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: BTreeMap<Ipv4Addr, (u16, Instant)>,
}

impl Paths {
    /// Returns the largest datagram to `to` in bytes, or `None` if it is not known to be smaller than on the host's
    /// link.
    pub(crate) fn mtu(&self, to: Ipv4Addr) -> Option<u16> {
        self.known.get(&to).map(|(mtu, _)| *mtu)
    }

    /// Handles the report that a router dropped a datagram of `len` bytes to `to`. `mtu` is the MTU of the router's
    /// next link, or zero if the router does not report it. Returns the new path MTU, or `None` if it did not change.
    pub(crate) fn lower(&mut self, now: Instant, to: Ipv4Addr, mtu: u16, len: u16) -> Option<u16> {
        let guess = || icmp::plateau(len).unwrap_or(LEAST);
        let mtu = if mtu == 0 { guess() } else { mtu }.max(LEAST);
        if mtu >= len || self.mtu(to).is_some_and(|known| known <= mtu) {
            return None; // the datagram would have fitted, or this is known
        }
        if self.known.len() >= MOST && !self.known.contains_key(&to) {
            let first = self.known.iter().min_by_key(|(_, (_, until))| *until).map(|(to, _)| *to);
            first.and_then(|first| self.known.remove(&first));
        }
        self.known.insert(to, (mtu, now + AGE));
        Some(mtu)
    }

    /// Returns the time at which the next path expires, or `None` if no path is known.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.known.values().map(|(_, until)| *until).min()
    }

    /// Removes a path that has expired, and returns its destination. The path may have a larger MTU again.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let to = self.known.iter().find(|(_, (_, until))| *until <= now).map(|(to, _)| *to)?;
        self.known.remove(&to);
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn only_news_is_news() {
        let mut paths = Paths::default();
        assert_eq!(paths.lower(NOW, TO, 1480, 1500), Some(1480));
        assert_eq!(paths.lower(NOW, TO, 1480, 1500), None);
        assert_eq!(paths.lower(NOW, TO, 1490, 1500), None, "more is no news");
        assert_eq!(paths.lower(NOW, TO, 1480, 600), None, "it would have fitted");
        assert_eq!(paths.lower(NOW, TO, 68, 1480), Some(552));
        assert_eq!(paths.mtu(TO), Some(552));
    }

    #[test]
    fn routers_that_do_not_say_are_guessed() {
        let mut paths = Paths::default();
        assert_eq!(paths.lower(NOW, TO, 0, 1500), Some(1492));
        assert_eq!(paths.lower(NOW, TO, 0, 1492), Some(1006));
        assert_eq!(paths.lower(NOW, TO, 0, 1006), Some(552));
    }

    #[test]
    fn they_age_and_are_few() {
        let mut paths = Paths::default();
        for host in 0..300u32 {
            paths.lower(NOW, Ipv4Addr::from_bits(host), 1480, 1500);
        }
        assert_eq!(paths.known.len(), MOST);
        assert_eq!(paths.deadline(), Some(NOW + AGE));
        assert_eq!(paths.expired(NOW), None);
        assert!(
            std::iter::from_fn(|| paths.expired(NOW + AGE)).count() == MOST && paths.deadline().is_none()
        );
    }
}
