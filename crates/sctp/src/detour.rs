//! Another way than the one that was chosen, while that one does not carry packets: from another of our addresses, or to another of the
//! peer's. Nobody says that a way is broken, but three things tell it. Data that are repeated to an address say that their
//! acknowledgments are lost, which left from another (RFC 9260, section 6.4). After two time-outs in a row a HEARTBEAT leaves from each
//! other address of ours, and where its answer comes the way works in both directions. And a peer that is heard from another address than
//! the one that is silent can be reached there.

use crate::association::Association;
use crate::locals::Use;
use crate::path::{Path, PathState};
use wire::{Instant, Ipv4Addr};

/// Time-outs in a row after which another way is looked for: one may be a lost packet.
pub(crate) const SILENT: u32 = 2;

/// What is known of the ways of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detour {
    /// What HEARTBEATs from other addresses carry, once there was one.
    nonce: Option<u64>,
    /// Before this, no more HEARTBEATs from the chosen address.
    next: Instant,
    /// When data came last that were new, and how many packets with nothing but repetitions came long after that.
    news: Instant,
    repetitions: u32,
}

impl Association {
    /// Our address that packets leave from instead of the one that was chosen, as from there they do not reach the peer.
    pub fn detour(&self) -> Option<Ipv4Addr> {
        self.locals.detour.filter(|address| self.locals.sends(*address))
    }

    /// Data came to `local`, new ones or repetitions. No peer repeats within RTO.Min what it was not told to be missing, so what
    /// comes sooner is a copy that the network has made.
    pub(crate) fn data_came(&mut self, now: Instant, local: Ipv4Addr, are_new: bool) {
        if are_new {
            (self.detour.news, self.detour.repetitions) = (now, 0);
        } else if now >= self.detour.news + self.config.rto_min / 2 {
            self.detour.repetitions = self.detour.repetitions.saturating_add(1);
            self.turn_to(now, local);
        }
    }

    /// Where data from `peer` are acknowledged: there, but of repetitions each second one elsewhere, as their acknowledgment may not
    /// arrive there (RFC 9260, section 6.4).
    pub(crate) fn acknowledges_at(&self, peer: Ipv4Addr) -> Ipv4Addr {
        let repetitions = self.detour.repetitions;
        let elsewhere = repetitions > 0 && repetitions.is_multiple_of(2);
        elsewhere.then(|| self.paths.best_besides(peer)).flatten().unwrap_or(peer)
    }

    /// Packets leave from `local` from now on, if they may. What left from elsewhere, and was not answered, leaves again.
    fn turn_to(&mut self, now: Instant, local: Ipv4Addr) {
        let before = self.sources();
        let left: Vec<Ipv4Addr> =
            before.iter().filter_map(|(_, source)| *source).filter(|source| *source != local).collect();
        if left.is_empty() || !self.locals.sends(local) {
            return;
        }
        self.locals.detour = Some(local).filter(|local| self.locals.preferred != Some(*local));
        self.rerouted(&before);
        self.outbound.lose_from(&mut self.paths, &left);
        self.ours.hasten(now);
        self.shutdown_due |= self.waits_for_shutdown();
    }

    /// Nothing came back from `peer` within a time-out. If that is not the first, HEARTBEATs from our other addresses tell whether it
    /// hears us from there.
    pub(crate) fn look_around(&mut self, peer: Ipv4Addr) {
        let Some(path) = self.paths.get(peer).filter(|path| path.confirmed && path.errors >= SILENT) else {
            return;
        };
        let source = self.locals.source(&[path.source]);
        let is_other = |local: &Ipv4Addr| source != Some(*local) && self.locals.sends(*local);
        let others: Vec<Ipv4Addr> = self.locals.with(Use::All).filter(is_other).collect();
        for local in others {
            self.try_from(local, peer);
        }
    }

    /// The peer is heard at the address that was chosen, while packets leave from another: perhaps it hears us from there again.
    pub(crate) fn look_home(&mut self, now: Instant, local: Ipv4Addr, peer: Ipv4Addr) {
        let is_home = self.locals.preferred == Some(local) && self.locals.sends(local);
        if self.detour().is_none() || !is_home || now < self.detour.next {
            return;
        }
        let Some(path) = self.paths.get(peer).filter(|path| path.confirmed) else { return };
        self.detour.next = now + path.rto.current();
        self.try_from(local, peer);
    }

    fn try_from(&mut self, local: Ipv4Addr, peer: Ipv4Addr) {
        if self.probes() {
            let nonce = self.detour.nonce.unwrap_or_else(|| self.chance.u64());
            self.detour.nonce = Some(nonce);
            let heartbeat = self.heartbeat_from(local, peer, nonce);
            self.outbox.push_back(heartbeat);
        }
    }

    /// HEARTBEAT ACK came to `local`. Returns whether it answers one that tried another way.
    pub(crate) fn way_found(&mut self, now: Instant, local: Ipv4Addr, peer: Ipv4Addr, nonce: u64) -> bool {
        if self.detour.nonce != Some(nonce) {
            return false;
        }
        let is_home = self.locals.preferred == Some(local);
        let Some(path) = self.paths.get_mut(peer).filter(|path| path.confirmed) else { return true };
        let fails = path.errors > 0;
        if path.alive() {
            self.path_event(peer, PathState::Active);
        }
        self.heard();
        if fails || is_home {
            self.turn_to(now, local);
        }
        true
    }

    /// The peer is heard from `peer`. Data that wait for an address of its that is silent leave for where it is heard.
    pub(crate) fn heard_from(&mut self, now: Instant, peer: Ipv4Addr) {
        let Some(path) = self.paths.get_mut(peer) else { return };
        path.heard = now;
        if !path.usable() {
            return;
        }
        let is_silent = |path: &&Path| path.address != peer && path.asleep() && path.errors >= SILENT;
        let silent: Vec<Ipv4Addr> = self.paths.iter().filter(is_silent).map(|path| path.address).collect();
        for address in silent {
            self.outbound.lose(&mut self.paths, address, true);
        }
    }
}
