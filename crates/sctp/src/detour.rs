//! Another route while the chosen one does not carry packets: from another of our addresses, or to another of the
//! peer's. No message reports a broken route. There are three signs:
//!
//! - Data are repeated to one of our addresses: the acknowledgments, which leave from another, are lost (RFC 9260,
//!   section 6.4).
//! - Two time-outs in a row. Then a HEARTBEAT leaves from each other address of ours. A route on which its answer comes
//!   works in both directions.
//! - The peer is heard from another address than the silent one: it can be reached there.

use crate::association::Association;
use crate::locals::Use;
use crate::path::{Path, PathState};
use wire::{Instant, Ipv4Addr};

/// Time-outs in a row after which another route is probed. A single one may be a lost packet.
pub(crate) const SILENT: u32 = 2;

/// What an association knows of routes other than the chosen one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detour {
    /// The nonce of HEARTBEATs that leave from other addresses; `None` before the first.
    nonce: Option<u64>,
    /// The chosen address is not probed again before this.
    next: Instant,
    /// When new data came last.
    news: Instant,
    /// Packets with duplicates only that came since, not counting copies that the network made.
    repetitions: u32,
}

impl Association {
    /// Returns the address of ours that packets leave from instead of the chosen one, or `None`. From the chosen one
    /// nothing reaches the peer.
    pub fn detour(&self) -> Option<Ipv4Addr> {
        self.locals.detour.filter(|address| self.locals.sends(*address))
    }

    /// Takes note of a packet with DATA that came to `local`. Duplicates within half of RTO.Min of the latest new data
    /// are ignored: a peer repeats data that no SACK reports missing only after RTO.Min, so they are copies that the
    /// network made.
    pub(crate) fn data_came(&mut self, now: Instant, local: Ipv4Addr, are_new: bool) {
        if are_new {
            (self.detour.news, self.detour.repetitions) = (now, 0);
        } else if now >= self.detour.news + self.config.rto_min / 2 {
            self.detour.repetitions = self.detour.repetitions.saturating_add(1);
            self.send_from(now, local);
        }
    }

    /// Returns the peer's address for a SACK of data from `peer`: `peer` itself. After every second packet of
    /// duplicates it is another one, as the SACK may have been lost on the path to `peer` (RFC 9260, section 6.4).
    pub(crate) fn acknowledges_at(&self, peer: Ipv4Addr) -> Ipv4Addr {
        let repetitions = self.detour.repetitions;
        let elsewhere = repetitions > 0 && repetitions.is_multiple_of(2);
        elsewhere.then(|| self.paths.best_besides(peer)).flatten().unwrap_or(peer)
    }

    /// Sends from `local` from now on, if it may send. Retransmits what left from other addresses and was not
    /// acknowledged.
    fn send_from(&mut self, now: Instant, local: Ipv4Addr) {
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

    /// Called after each time-out of `peer`. From the second in a row, probes `peer` from our other addresses.
    pub(crate) fn probe_other_sources(&mut self, peer: Ipv4Addr) {
        let Some(path) = self.paths.get(peer).filter(|path| path.confirmed && path.errors >= SILENT) else {
            return;
        };
        let source = self.locals.source(&[path.source]);
        let is_other = |local: &Ipv4Addr| source != Some(*local) && self.locals.sends(*local);
        let others: Vec<Ipv4Addr> = self.locals.with(Use::All).filter(is_other).collect();
        for local in others {
            self.probe_from(local, peer);
        }
    }

    /// Probes from the chosen address, if the peer sends to it while our packets leave from another: the route may work
    /// again.
    pub(crate) fn probe_chosen_source(&mut self, now: Instant, local: Ipv4Addr, peer: Ipv4Addr) {
        let is_chosen = self.locals.preferred == Some(local) && self.locals.sends(local);
        if self.detour().is_none() || !is_chosen || now < self.detour.next {
            return;
        }
        let Some(path) = self.paths.get(peer).filter(|path| path.confirmed) else { return };
        self.detour.next = now + path.rto.current();
        self.probe_from(local, peer);
    }

    fn probe_from(&mut self, local: Ipv4Addr, peer: Ipv4Addr) {
        if self.probes() {
            let nonce = self.detour.nonce.unwrap_or_else(|| self.chance.u64());
            self.detour.nonce = Some(nonce);
            let heartbeat = self.heartbeat_from(local, peer, nonce);
            self.outbox.push_back(heartbeat);
        }
    }

    /// Handles a HEARTBEAT ACK that came to `local`. Returns whether it answers a probe of another route.
    pub(crate) fn route_answered(
        &mut self,
        now: Instant,
        local: Ipv4Addr,
        peer: Ipv4Addr,
        nonce: u64,
    ) -> bool {
        if self.detour.nonce != Some(nonce) {
            return false;
        }
        let is_chosen = self.locals.preferred == Some(local);
        let Some(path) = self.paths.get_mut(peer).filter(|path| path.confirmed) else { return true };
        let fails = path.errors > 0;
        if path.alive() {
            self.path_event(peer, PathState::Active);
        }
        self.heard();
        if fails || is_chosen {
            self.send_from(now, local);
        }
        true
    }

    /// Notes that a packet came from `peer`. Data that wait for a silent address of the peer are retransmitted to one
    /// where it is heard.
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
