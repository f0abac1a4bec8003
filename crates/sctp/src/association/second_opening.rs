//! A second opening, in parallel with a COOKIE ECHO that is not answered. The peer may have moved, so that only an INIT
//! finds the peer, or a false host may have made the cookie. But the peer may have the association already, and only
//! the peer's answers are lost. So COOKIE ECHO is still sent, and the first answer to INIT or COOKIE ECHO decides. If
//! this answer is INIT ACK, the second opening replaces the first: two COOKIE ECHOs could make two associations.

use crate::association::Association;
use crate::event::{Ended, State};
use crate::message::Packet;
use wire::{Instant, Ipv4Addr, Reason};

impl Association {
    /// Returns whether INIT is to be sent in addition to COOKIE ECHO: after more than half of Max.Init.Retransmits
    /// time-outs. INIT is not sent if only the peer can answer COOKIE ECHO, and the cookie came from an address that
    /// the user gave. In this case COOKIE ECHO itself may go to an address of a directory.
    fn looks_elsewhere(&self) -> bool {
        let half = self.opening.tries > self.config.max_init_retransmits / 2;
        half && self.state == State::CookieEchoed && (self.opening.doubtful || !self.proves_itself())
    }

    /// Begins the second opening if `looks_elsewhere`, unless one exists. The second opening inherits the count of
    /// retransmissions.
    pub(crate) fn open_beside(&mut self, now: Instant) {
        if !self.looks_elsewhere() || self.second.is_some() {
            return;
        }
        let second = self.opens_from().and_then(|here| self.another_opening(now, here));
        self.second = second.map(Box::new);
        self.second.iter_mut().for_each(|second| second.opening.tries = self.opening.tries);
        self.moved = true;
    }

    /// Sends the second opening's INIT to `peer`, which a directory gave, if a second opening is due or exists. Returns
    /// whether INIT now goes to `peer` instead of another address.
    pub(crate) fn second_tries_at(&mut self, now: Instant, peer: Ipv4Addr) -> bool {
        self.open_beside(now);
        let is_new = self.second.as_mut().is_some_and(|second| second.try_at(now, peer));
        self.moved |= is_new;
        is_new
    }

    /// Returns whether packets with the verification tag `tag` are for this association or its second opening.
    pub(crate) fn has_tag(&self, tag: u32) -> bool {
        self.local_tag == tag || self.second.as_ref().is_some_and(|second| second.local_tag == tag)
    }

    /// Returns the peer's addresses, and those that the second opening tries.
    pub(crate) fn all_addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let of_second = self.second.iter().flat_map(|second| second.paths.iter());
        self.paths.iter().chain(of_second).map(|path| path.address)
    }

    /// Handles a packet that has the tag of the second opening. Returns `None` for any other packet.
    pub(crate) fn second_hears(
        &mut self,
        now: Instant,
        addresses: (Ipv4Addr, Ipv4Addr),
        packet: &Packet,
        bytes: &[u8],
    ) -> Option<Result<(), Reason>> {
        let is_its = |second: &mut Box<Self>| second.local_tag == packet.tag;
        let mut second = self.second.take_if(is_its)?;
        let verdict = second.receive(now, addresses, packet, bytes, &[]);
        self.put_back(second);
        Some(verdict)
    }

    /// Handles a protocol unreachable error about a packet of the second opening. Returns whether `tag` is that of
    /// the second opening.
    pub(crate) fn second_unreachable_at(&mut self, now: Instant, tag: u32, address: Ipv4Addr) -> bool {
        let Some(mut second) = self.second.take_if(|second| second.local_tag == tag) else { return false };
        second.unreachable_at(now, address);
        self.put_back(second);
        true
    }

    /// Handles the timers of the second opening that are due.
    pub(crate) fn second_timeout(&mut self, now: Instant) {
        if let Some(mut second) = self.second.take_if(|second| second.deadline().is_some_and(|at| at <= now))
        {
            second.on_timeout(now);
            self.put_back(second);
        }
    }

    /// Decides by the state of `second`, the second opening. If `second` still waits for INIT ACK, it is kept. If
    /// `second` got INIT ACK, it replaces this association. If `second` has ended, it is dropped, and the first opening
    /// continues: a peer that has the association refuses an INIT from an unknown address (RFC 9260, section 5.2.2).
    fn put_back(&mut self, second: Box<Self>) {
        self.moved = true;
        match second.state {
            State::CookieWait => self.second = Some(second),
            State::Closed => self.outbox.extend(second.outbox),
            _ => self.become_it(*second),
        }
    }

    /// Replaces this opening with the second one, or with a new one, because the cookie failed. If neither is possible,
    /// the association ends. The host that made the cookie has no SCTP or refuses the cookie, and did not prove to be
    /// the peer.
    pub(crate) fn give_up_cookie(&mut self, now: Instant) {
        let tries = self.opening.tries;
        let second = self.second.take().map(|second| *second);
        let here = self.opens_from();
        let anew = second.or_else(|| here.and_then(|here| self.another_opening(now, here)));
        match anew {
            Some(mut anew) => {
                anew.opening.tries = tries;
                self.become_it(anew);
            }
            None => self.end(Ended::Unreachable),
        }
    }

    /// Replaces this opening with `other`. Events and packets that wait in this opening are kept.
    pub(crate) fn become_it(&mut self, mut other: Self) {
        let events = std::mem::take(&mut self.events);
        self.outbox.append(&mut other.outbox);
        let outbox = std::mem::take(&mut self.outbox);
        *self = Self { events, outbox, moved: true, ..other };
    }
}
