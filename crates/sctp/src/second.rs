//! A second opening beside COOKIE ECHO that is not answered. The peer may have moved and may be found with INIT only, or the cookie
//! may be a liar's. But the peer may have the association as well, and only its answers may be lost: so COOKIE ECHO goes on, and what
//! is answered first counts. INIT ACK replaces the first opening, as two COOKIE ECHOs could make two associations.

use crate::association::Association;
use crate::event::{Ended, State};
use crate::message::Packet;
use wire::{Instant, Ipv4Addr, Reason};

impl Association {
    /// Whether COOKIE ECHO was not answered for so long that the peer is looked for with INIT too. Where only the peer can answer it,
    /// COOKIE ECHO itself goes where a directory says.
    fn looks_elsewhere(&self) -> bool {
        let half = self.opening.tries > self.config.max_init_retransmits / 2;
        half && self.state == State::CookieEchoed && (self.opening.doubtful || !self.proves_itself())
    }

    /// COOKIE ECHO was not answered: begins the second opening, when it is time. The time-outs count on.
    pub(crate) fn open_beside(&mut self, now: Instant) {
        if !self.looks_elsewhere() || self.second.is_some() {
            return;
        }
        let second = self.opens_from().and_then(|here| self.another_opening(now, here));
        self.second = second.map(Box::new);
        self.second.iter_mut().for_each(|second| second.opening.tries = self.opening.tries);
        self.moved = true;
    }

    /// A directory says that the peer is at `peer`. Returns whether that is new to the second opening.
    pub(crate) fn second_tries_at(&mut self, now: Instant, peer: Ipv4Addr) -> bool {
        self.open_beside(now);
        let is_new = self.second.as_mut().is_some_and(|second| second.try_at(now, peer));
        self.moved |= is_new;
        is_new
    }

    /// Whether packets with this tag are for this association, or for its second opening.
    pub(crate) fn has_tag(&self, tag: u32) -> bool {
        self.local_tag == tag || self.second.as_ref().is_some_and(|second| second.local_tag == tag)
    }

    /// The peer's addresses, and those that the second opening tries.
    pub(crate) fn all_addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let of_second = self.second.iter().flat_map(|second| second.paths.iter());
        self.paths.iter().chain(of_second).map(|path| path.address)
    }

    /// What comes for the second opening, if it is for that.
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

    /// A host says that it has no SCTP, about a packet with the tag of the second opening. Returns whether there is such a one.
    pub(crate) fn second_unreachable_at(&mut self, now: Instant, tag: u32, address: Ipv4Addr) -> bool {
        let Some(mut second) = self.second.take_if(|second| second.local_tag == tag) else { return false };
        second.unreachable_at(now, address);
        self.put_back(second);
        true
    }

    /// Time has come to `now`.
    pub(crate) fn second_timeout(&mut self, now: Instant) {
        if let Some(mut second) = self.second.take_if(|second| second.deadline().is_some_and(|at| at <= now))
        {
            second.on_timeout(now);
            self.put_back(second);
        }
    }

    /// What became of the second opening: it waits, counts from now on, or is over. That it is over ends nothing else: a peer that has
    /// the association refuses an INIT from an address that it does not know (section 5.2.2).
    fn put_back(&mut self, second: Box<Self>) {
        self.moved = true;
        match second.state {
            State::CookieWait => self.second = Some(second),
            State::Closed => self.outbox.extend(second.outbox),
            _ => self.become_it(*second),
        }
    }

    /// The cookie is not answered: its maker has no SCTP, or refuses it, and is no proved peer.
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

    /// Another opening takes the place of this one; what this one has to say and to send stays.
    pub(crate) fn become_it(&mut self, mut other: Self) {
        let events = std::mem::take(&mut self.events);
        self.outbox.append(&mut other.outbox);
        let outbox = std::mem::take(&mut self.outbox);
        *self = Self { events, outbox, moved: true, ..other };
    }
}
