//! Addresses of the peer that a directory gives. Its answer is not signed, so it may be false. Packets that wait for
//! an answer of the peer are sent there too, and nothing else. Chunks from there that are not authenticated open,
//! change and end nothing.

use crate::association::Association;
use crate::event::{Ended, State};
use crate::handshake::unicast;
use crate::message::{Chunk, kind};
use wire::{Instant, Ipv4Addr, Reason};

impl Association {
    /// Tries `peer`, which a directory has given. What waits for an answer goes there at once: INIT, COOKIE ECHO, or
    /// a change of our addresses, as both ends may have lost all addresses that the other knows. COOKIE ECHO goes
    /// there only if COOKIE ACK is authenticated: otherwise each host that reads COOKIE ECHO could answer it. Until
    /// the peer is heard, at most `max_addresses` are tried. Only the last of them is kept, in addition to the
    /// addresses that the peer has named. Returns whether anything goes there that did not before.
    pub fn try_at(&mut self, now: Instant, peer: Ipv4Addr) -> bool {
        let opens_second = self.second_tries_at(now, peer);
        self.next_change();
        let is_new = self.paths.get(peer).is_none();
        let too_many = is_new && self.tried >= self.config.max_addresses;
        if !unicast(peer) || too_many || !self.waits_elsewhere(peer) {
            return opens_second;
        }
        if let Some(old) = self.paths.hearsay().filter(|old| *old != peer) {
            self.remove_path(old);
            self.asconf_in.has_left(old); // late packets from there: the peer may have been there before
        }
        self.add_path(now, peer, true);
        self.tried += usize::from(is_new);
        if self.is_open() {
            self.asconf_out.ask_at(now, peer);
            self.settle(now);
        } else {
            self.opening.at = Some((peer, self.opening.tries));
            self.hasten_opening();
        }
        true
    }

    /// Returns whether a packet that may go to an address of a directory waits for an answer, and went to other
    /// addresses than `peer`.
    fn waits_elsewhere(&self, peer: Ipv4Addr) -> bool {
        let opens_elsewhere =
            self.opening_destination() != peer && self.opening.at.is_none_or(|(at, _)| at != peer);
        match self.state {
            State::Closed => false,
            State::CookieWait => opens_elsewhere,
            State::CookieEchoed => opens_elsewhere && self.proves_itself(),
            _ => self.asconf_out.waits_elsewhere(peer),
        }
    }

    /// Returns whether only the peer can make COOKIE ACK: it must be authenticated by a key that was not sent.
    pub(crate) fn proves_itself(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.we_want(kind::COOKIE_ACK))
    }

    /// Checks whether a chunk counts if only a directory has named its source. Authenticated chunks, all that follow
    /// them, and chunks that prove the peer count. While the association opens, the answers to INIT and COOKIE ECHO
    /// count. An ABORT does not count: any host sends one in answer to a packet out of the blue (RFC 9260, section
    /// 8.4), which only shows that the peer is not there. In SHUTDOWN-ACK-SENT it counts, as all data have arrived,
    /// and a peer that has ended already answers so.
    pub(crate) fn counts_from(&mut self, now: Instant, src: Ipv4Addr, chunk: &Chunk) -> Result<(), Reason> {
        const UNPROVED: Reason = Reason("sctp_abort_unproved");
        let (aborts, is_done) = (matches!(chunk, Chunk::Abort { .. }), self.state == State::ShutdownAckSent);
        if aborts && self.state == State::CookieEchoed && self.opening.doubtful {
            self.give_up_cookie(now); // the host that made the cookie is not proved either
            return Err(UNPROVED);
        }
        if self.paths.get(src).is_none_or(|path| !path.hearsay || path.signed) {
            return Ok(());
        }
        match chunk {
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } if is_done => Ok(()),
            Chunk::Abort { .. } => {
                self.is_not_at(now, src);
                Err(UNPROVED)
            }
            // Authenticated chunks were verified before, and a cookie by the endpoint.
            Chunk::Heartbeat(_)
            | Chunk::HeartbeatAck(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::CookieEcho(_) => Ok(()),
            _ if self.is_open() => Err(Reason("sctp_source_unproved")),
            _ => Ok(()),
        }
    }

    /// Removes an address of a directory at which the peer is not. What waits for an answer goes to another address
    /// at once.
    fn is_not_at(&mut self, now: Instant, address: Ipv4Addr) {
        self.opening.at = self.opening.at.filter(|(at, _)| *at != address);
        self.remove_path(address);
        self.hasten_opening();
        self.asconf_out.ask_elsewhere(now, address, self.paths.for_data());
    }

    /// Handles a host's report that it has no SCTP. This ends the association, unless only a directory has named the
    /// address, or other addresses are left to try.
    pub(crate) fn unreachable_at(&mut self, now: Instant, address: Ipv4Addr) {
        let others = self.opening.peers.iter().any(|peer| *peer != address);
        if self.paths.get(address).is_some_and(|path| path.hearsay) {
            self.is_not_at(now, address);
        } else if self.state == State::CookieWait && others {
            self.opening.peers.retain(|peer| *peer != address);
            self.paths.primary = self.opening.peers.first().copied().unwrap_or(address);
            self.data_path = self.paths.primary;
            self.is_not_at(now, address);
        } else if self.state == State::CookieEchoed && self.opening.doubtful {
            self.give_up_cookie(now);
        } else {
            self.end(Ended::Unreachable);
        }
    }
}
