//! Addresses of the peer that a directory gives. The answer of a directory is not signed, so the address may be false.
//! Requests that wait for an answer of the peer, and HEARTBEATs, are sent to such an address. Data are not. An
//! unauthenticated chunk from such an address does not end an open association, except in SHUTDOWN-ACK-SENT. When the
//! address has answered a HEARTBEAT, it counts as an address of the peer.

use crate::association::Association;
use crate::event::{Ended, State};
use crate::message::{Chunk, kind};
use crate::unicast::unicast;
use wire::{Instant, Ipv4Addr, Reason};

impl Association {
    /// Tries to reach the peer at `peer`, an address that a directory has given. The request that waits for an answer
    /// is sent to `peer` at once: INIT, COOKIE ECHO, or the outstanding ASCONF. COOKIE ECHO is sent there only if
    /// COOKIE ACK must be authenticated. Otherwise each host that reads COOKIE ECHO could answer it.
    ///
    /// Until the peer is heard, at most `max_addresses` addresses of a directory are tried. Only the last of them is
    /// kept, in addition to the addresses that the peer has named. Returns whether a request that went to another
    /// address now goes to `peer`.
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

    /// Returns whether a request that may go to an address of a directory waits for an answer, and goes to another
    /// address than `peer`.
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

    /// Returns whether only the peer can make COOKIE ACK, because this end accepts it only if the pair key
    /// authenticates it.
    pub(crate) fn proves_itself(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.we_want(kind::COOKIE_ACK))
    }

    /// Checks whether a chunk from `src` has an effect, and returns the reason if it has none. Each chunk has an
    /// effect, unless only a directory has named `src` and no authenticated packet came from `src`. In this case:
    /// - HEARTBEAT, HEARTBEAT ACK, ASCONF, ASCONF-ACK and COOKIE ECHO have an effect.
    /// - Before the association is open, all other chunks except ABORT have an effect.
    /// - In SHUTDOWN-ACK-SENT, ABORT and SHUTDOWN COMPLETE also have an effect: all data have arrived, and a peer that
    ///   has ended already answers with ABORT.
    /// - Other chunks have no effect, except that an ABORT removes `src`. Any host answers a packet out of the blue
    ///   with ABORT (RFC 9260, section 8.4), so it shows only that the peer is not at `src`.
    ///
    /// If the cookie came from an address that only a directory has named, an ABORT in COOKIE-ECHOED from any address
    /// begins the opening again.
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
            // AUTH before ASCONF and ASCONF-ACK was verified before this call, and the endpoint has verified the
            // cookie.
            Chunk::Heartbeat(_)
            | Chunk::HeartbeatAck(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::CookieEcho(_) => Ok(()),
            _ if self.is_open() => Err(Reason("sctp_source_unproved")),
            _ => Ok(()),
        }
    }

    /// Removes `address`, because the peer is not there. The request that waits for an answer goes to another address
    /// at once.
    fn is_not_at(&mut self, now: Instant, address: Ipv4Addr) {
        self.opening.at = self.opening.at.filter(|(at, _)| *at != address);
        self.remove_path(address);
        self.hasten_opening();
        self.asconf_out.ask_elsewhere(now, address, self.paths.for_data());
    }

    /// Handles an ICMP report that the host at `address` has no SCTP. The association ends, with three exceptions. An
    /// address that only a directory has named is removed. In COOKIE-WAIT, an address of INIT is removed if others are
    /// left. In COOKIE-ECHOED, the opening begins again if the cookie came from an address that only a directory has
    /// named.
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
