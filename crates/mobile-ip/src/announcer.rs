//! Gratuitous ARP: notifies neighbors of an address's new link address (RFC 5944, section 4.6). ARP has no
//! confirmation, so the announcement is repeated.

use node::{Expiry, Outbox};
use std::collections::BTreeMap;
use wire::arp::Message;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet};

/// Announces addresses on one link.
#[derive(Debug)]
pub(crate) struct Announcer {
    iface: Iface,
    /// When to send, counted from the change.
    times: Vec<Duration>,
    under_way: BTreeMap<Ipv4Addr, Announcement>,
    expiry: Expiry<Ipv4Addr>,
}

#[derive(Debug)]
struct Announcement {
    mac: Mac,
    begun: Instant,
    sent: usize,
}

impl Announcer {
    pub(crate) fn new(iface: Iface, times: Vec<Duration>) -> Self {
        Self { iface, times, under_way: BTreeMap::new(), expiry: Expiry::default() }
    }

    /// Announces that `address` is at `mac` from now on.
    pub(crate) fn announce(&mut self, now: Instant, address: Ipv4Addr, mac: Mac, out: &mut Outbox) {
        self.under_way.insert(address, Announcement { mac, begun: now, sent: 0 });
        self.go_on(now, address, out);
    }

    /// Cancels the remaining announcements of `address`, which is no longer ours to announce.
    pub(crate) fn stop(&mut self, address: Ipv4Addr) {
        self.under_way.remove(&address);
        self.expiry.stop(address);
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    pub(crate) fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(address) = self.expiry.pop(now) {
            self.go_on(now, address, out);
        }
    }

    /// Sends the announcement if it is due, and sets the time of the next.
    fn go_on(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(announcement) = self.under_way.get_mut(&address) else { return };
        let due = self.times.iter().skip(announcement.sent).take_while(|at| announcement.begun + **at <= now);
        let due = due.count();
        announcement.sent += due;
        if due > 0 {
            // An ARP Request with the new link address as sender: every ARP implementation updates its cache from it
            // (RFC 826). RFC 5944 allows a Request or a Reply.
            let message = Message::gratuitous(announcement.mac, address);
            out.send(self.iface, Packet::arp(Mac::BROADCAST, &message));
        }
        match self.times.get(announcement.sent) {
            Some(at) => self.expiry.set(address, announcement.begun + *at),
            None => self.stop(address),
        }
    }
}
