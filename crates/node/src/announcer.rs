//! Gratuitous ARP: notifies neighbors of the new link address of an IP address (RFC 5227, section 2.3; RFC 5944,
//! section 4.6). ARP has no confirmation, so an announcement is repeated.

use crate::{Expiry, Outbox};
use std::collections::BTreeMap;
use wire::arp::Message;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet};

/// Announces IP addresses for a role by gratuitous ARP, each address on one link.
#[derive(Debug)]
pub struct Announcer {
    times: Vec<Duration>,
    under_way: BTreeMap<Ipv4Addr, Announcement>,
    expiry: Expiry<Ipv4Addr>,
}

#[derive(Debug)]
struct Announcement {
    iface: Iface,
    mac: Mac,
    begun: Instant,
    sent: usize,
}

impl Announcer {
    /// Returns an announcer. `times` are the delays from the change of an address to each of its announcements, in
    /// ascending order.
    pub fn new(times: Vec<Duration>) -> Self {
        Self { times, under_way: BTreeMap::new(), expiry: Expiry::default() }
    }

    /// Begins to announce on `iface` that `address` has the link address `mac`. Cancels the remaining earlier
    /// announcements of `address`.
    pub fn announce(
        &mut self,
        now: Instant,
        (iface, address): (Iface, Ipv4Addr),
        mac: Mac,
        out: &mut Outbox,
    ) {
        self.under_way.insert(address, Announcement { iface, mac, begun: now, sent: 0 });
        self.send_due(now, address, out);
    }

    /// Cancels the remaining announcements of `address`.
    pub fn stop(&mut self, address: Ipv4Addr) {
        self.under_way.remove(&address);
        self.expiry.stop(address);
    }

    /// Cancels the remaining announcements of all addresses except these.
    pub fn keep_only(&mut self, addresses: &[Ipv4Addr]) {
        let others = self.under_way.keys().filter(|address| !addresses.contains(address)).copied();
        others.collect::<Vec<_>>().into_iter().for_each(|address| self.stop(address));
    }

    /// Returns when [`Self::timeout`] is due, or `None` if no announcement remains.
    pub fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Sends the announcements that are due.
    pub fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(address) = self.expiry.pop(now) {
            self.send_due(now, address, out);
        }
    }

    /// Sends an announcement of `address` if one is due, and sets the time of the next one.
    fn send_due(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(announcement) = self.under_way.get_mut(&address) else { return };
        let due = self.times.iter().skip(announcement.sent).take_while(|at| announcement.begun + **at <= now);
        let due = due.count();
        announcement.sent += due;
        if due > 0 {
            // The announcement is an ARP Request with the new link address as sender. RFC 826 requires that a receiver
            // updates an existing entry from any ARP message. RFC 5944 allows a Request or a Reply.
            let message = Message::gratuitous(announcement.mac, address);
            out.send(announcement.iface, Packet::arp(Mac::BROADCAST, &message));
        }
        match self.times.get(announcement.sent) {
            Some(at) => self.expiry.set(address, announcement.begun + *at),
            None => self.stop(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIR: Iface = Iface(1);
    const MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);

    /// Returns the number of announcements that `step` sends.
    fn announced(step: impl FnOnce(&mut Outbox)) -> usize {
        let mut out = Outbox::default();
        step(&mut out);
        out.drain_effects().count()
    }

    #[test]
    fn an_announcement_is_repeated_until_the_address_is_left() {
        let [stays, left] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let mut announcer = Announcer::new(vec![Duration::ZERO, Duration::from_secs(2)]);
        for address in [stays, left] {
            assert_eq!(announced(|out| announcer.announce(Instant::ZERO, (AIR, address), MAC, out)), 1);
        }
        assert_eq!(announcer.due(), Some(Instant::from_millis(2000)));
        announcer.keep_only(&[stays]);
        assert_eq!(announced(|out| announcer.timeout(Instant::from_millis(1999), out)), 0);
        assert_eq!(announced(|out| announcer.timeout(Instant::from_millis(2000), out)), 1);
        assert_eq!(announcer.due(), None);
    }
}
