//! Restart of an association by a peer that has lost its state (RFC 9260, section 5.2.4, A).

use crate::association::asconf_out::AsconfOut;
use crate::association::detour::Detour;
use crate::association::handshake;
use crate::association::{Association, introduction};
use crate::cookie::Cookie;
use crate::event::{AssociationEvent, State};
use crate::message::{Cause, Chunk, Code};
use std::sync::Arc;
use wire::{Instant, Ipv4Addr};

impl Association {
    /// Restarts the association with the verification tags and initial TSNs of `cookie`. Returns whether the chunks
    /// after COOKIE ECHO are to be processed. In SHUTDOWN-ACK-SENT the association does not restart, and the result
    /// is `false`.
    pub(crate) fn restart(&mut self, now: Instant, src: Ipv4Addr, dst: Ipv4Addr, cookie: &Cookie) -> bool {
        if self.state == State::ShutdownAckSent {
            let causes = vec![Cause::new(Code::COOKIE_IN_SHUTDOWN, [])];
            self.reply(src, dst, vec![Chunk::ShutdownAck, Chunk::Error(causes)]);
            return false;
        }
        let (was_open, intact) = (self.is_open(), self.is_intact(cookie));
        let finishes = intact && self.state != State::Established;
        self.local_tag = cookie.tag;
        self.ties = (self.rng.tag(), self.rng.tag());
        self.init = introduction(&self.config, cookie.tag, cookie.tsn, cookie.random, &cookie.locals);
        self.abandon_changes();
        let listed = if cookie.locals.is_empty() { &[dst] } else { cookie.locals.as_slice() };
        self.locals.begin_again(listed);
        self.asconf_out = AsconfOut::new(cookie.tsn);
        if intact {
            self.outbound.renumber(cookie.tsn);
        } else {
            self.outbound.restart(cookie.tsn, cookie.init.a_rwnd);
        }
        self.forget_paths(cookie);
        self.adopt(now, &cookie.init, cookie.remote);
        (self.shutdown_due, self.guard, self.arriving) = (false, None, None);
        (self.opening, self.detour) = (handshake::Opening::default(), Detour::default());
        if was_open {
            self.events.push_back(AssociationEvent::Restarted { intact });
        }
        self.open_again(now, cookie.remote, intact);
        if finishes {
            self.state = State::ShutdownPending;
            self.settle(now);
        }
        self.reply(src, dst, vec![Chunk::CookieAck]);
        true
    }

    /// Returns whether the restart loses nothing, because all written data can be sent again. No DATA may have come
    /// from the peer, and the peer must have acknowledged none. The peer must accept as many streams as before, and
    /// must not have sent SHUTDOWN. An example is a peer that opens again because COOKIE ACK was lost. RFC 9260,
    /// section 5.2.4, A: "DATA chunks MAY be retained".
    fn is_intact(&self, cookie: &Cookie) -> bool {
        let sends = matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownSent);
        let streams = cookie.init.inbound.min(self.config.streams);
        sends && self.inbound.is_fresh() && self.outbound.is_fresh() && streams >= self.outbound.streams
    }

    /// Removes the addresses that the peer no longer lists, and the measurements of all routes. Resets the congestion
    /// state, the RTO, the data in flight and T3 of the remaining paths.
    fn forget_paths(&mut self, cookie: &Cookie) {
        let listed: Vec<Ipv4Addr> = cookie.init.addresses().chain([cookie.remote]).collect();
        let known: Vec<Ipv4Addr> = self.paths.iter().map(|path| path.address).collect();
        for address in known.into_iter().filter(|address| !listed.contains(address)) {
            self.paths.remove(address);
        }
        self.routes.forget();
        let config = Arc::clone(&self.config);
        for path in self.paths.iter_mut() {
            path.reset_congestion(&config);
            (path.flight, path.t3, path.latest_acked, path.superseded) = (0, None, 0, false);
        }
    }
}
