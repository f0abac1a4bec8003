//! The use of another route while the chosen route does not carry packets: from another address of ours, or to
//! another address of the peer. No message reports a broken route. There are three signs of one:
//!
//! - The peer repeats data twice, to one of our addresses, while our acknowledgments leave from another address: the
//!   acknowledgments are lost (RFC 9260, section 6.4).
//! - Two time-outs in a row occur. Then a HEARTBEAT leaves from each other address of ours, and one goes to each other
//!   active address of the peer. If an answer comes, the route of that HEARTBEAT works in both directions.
//! - The peer is silent at one address, and is heard from another address: the peer can be reached at this other
//!   address.

use crate::association::Association;
use crate::local_addresses::AddressUse;
use crate::path::{Path, PathState, SILENT};
use crate::tsn::Tsn;
use wire::{Instant, Ipv4Addr};

/// A HEARTBEAT on another route that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Probe {
    local: Ipv4Addr,
    peer: Ipv4Addr,
    nonce: u64,
}

/// Data that the peer repeats although they were acknowledged.
#[derive(Clone, Copy, Debug)]
struct Repeated {
    /// How often the data were repeated. Packets within half of RTO.Min count as one repetition.
    times: u32,
    /// When a repetition was last counted.
    at: Instant,
    /// The cumulative TSN at the time of the first repetition.
    upto: Tsn,
    /// The last address of ours that a repetition came to while packets to the peer left from another one.
    local: Option<Ipv4Addr>,
}

/// State about routes other than the chosen one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detour {
    /// The latest probe of each route, until it is answered.
    probes: Vec<Probe>,
    /// `probe_chosen_source` sends no probe before this time.
    next: Instant,
    /// No sign of a broken route changes the route before this time.
    pause: Instant,
    /// When the peer last sent new data.
    news: Instant,
    repeated: Option<Repeated>,
    /// The next SACK goes to another address of the peer than the source of the data.
    elsewhere: bool,
}

impl Detour {
    /// Forgets repetitions, because another route is used now.
    pub(crate) const fn begin_again(&mut self) {
        (self.repeated, self.elsewhere) = (None, false);
    }
}

impl Association {
    /// Returns our address that packets leave from instead of the usual source, because packets from the usual source
    /// did not reach the peer. `None` if there is no such address, if the detour was cleared, or if its address may not
    /// send.
    pub fn detour(&self) -> Option<Ipv4Addr> {
        self.locals.detour.filter(|address| self.locals.sends(*address))
    }

    /// Records a packet with DATA that came to `local`. `repeated`: the lowest TSN of its duplicates, if no chunk is
    /// new. Duplicates within half of RTO.Min after the latest new data are ignored, as the network made these copies.
    /// The peer itself would repeat such data only after RTO.Min, because no SACK reports the data missing.
    pub(crate) fn data_came(&mut self, now: Instant, local: Ipv4Addr, repeated: Option<Tsn>) {
        match repeated {
            None => (self.detour.news, self.detour.elsewhere) = (now, false),
            Some(first) if now >= self.detour.news + self.config.rto_min / 2 => {
                self.data_came_again(now, local, first);
            }
            Some(_) => {}
        }
    }

    /// Handles a repetition of data from the TSN `first`, whose acknowledgment did not reach the peer. From the second
    /// repetition on, packets leave from the address that the repetitions came to, if they left from another one and
    /// the time `Detour::pause` has passed.
    fn data_came_again(&mut self, now: Instant, local: Ipv4Addr, first: Tsn) {
        let is_other =
            self.locals.sends(local) && self.sources().iter().any(|(_, source)| *source != Some(local));
        let other = Some(local).filter(|_| is_other);
        let first_time = Repeated { times: 1, at: now, upto: self.inbound.cumulative(), local: None };
        let before = self.detour.repeated.filter(|before| first <= before.upto);
        let mut repeated = before.unwrap_or(first_time);
        if now >= repeated.at + self.config.rto_min / 2 {
            (repeated.times, repeated.at) = (repeated.times.saturating_add(1), now);
        }
        repeated.local = other.or(repeated.local);
        self.detour.repeated = Some(repeated);
        self.detour.elsewhere = repeated.times.is_multiple_of(2);
        if repeated.times >= SILENT
            && now >= self.detour.pause
            && let Some(local) = repeated.local
        {
            self.send_from(now, local);
        }
    }

    /// Returns the destination of a SACK of data from `peer`. It is `peer` itself, and after every second repetition
    /// another active address, if there is one: the SACK may have been lost on the path to `peer` (RFC 9260, section
    /// 6.4).
    pub(crate) fn acknowledges_at(&self, peer: Ipv4Addr) -> Ipv4Addr {
        self.detour.elsewhere.then(|| self.paths.best_besides(peer)).flatten().unwrap_or(peer)
    }

    /// Makes packets to all addresses of the peer leave from `local`. Has no effect if packets may not leave from
    /// `local`, or if none leaves from another address now. Data in flight that left from another address are sent
    /// again.
    fn send_from(&mut self, now: Instant, local: Ipv4Addr) {
        let before = self.sources();
        let left: Vec<Ipv4Addr> =
            before.iter().filter_map(|(_, source)| *source).filter(|source| *source != local).collect();
        if left.is_empty() || !self.locals.sends(local) {
            return;
        }
        self.locals.detour = Some(local).filter(|local| self.locals.preferred != Some(*local));
        let backed_off: Vec<(Ipv4Addr, u32)> =
            self.paths.iter().map(|path| (path.address, path.rto.backing().1)).collect();
        self.rerouted(&before);
        // The back-off belongs to the peer's address (RFC 9260, section 6.3.3, E2), so a change of the route does not
        // end it. An answered HEARTBEAT does not end it either, as it does not prove that the route carries full
        // packets. The acknowledgment of data ends it.
        for (peer, doublings) in backed_off {
            if let Some(path) = self.paths.get_mut(peer) {
                path.rto.back_off_to(doublings);
                path.woken = Some(now);
            }
        }
        // Repetitions by the peer must not make this end repeat its own data more often than time-outs would.
        let data_path = self.paths.get(self.paths.for_data());
        let pause = now + data_path.map_or(self.config.rto_initial, |path| path.rto.backing().0);
        (self.detour.pause, self.detour.next) = (pause, pause);
        self.outbound.lose_from(&mut self.paths, &left);
        self.asconf_out.hasten(now);
        self.shutdown_due |= self.waits_for_shutdown();
    }

    /// Probes other routes after the second time-out in a row of `peer`, and after each further one: from our other
    /// addresses to `peer`, and to the other active addresses of the peer. Any of these routes may be the only one
    /// that works (RFC 9260, section 6.4.1). A probe that is not answered is not counted as a failure, as the peer
    /// may have left the address long ago.
    pub(crate) fn probe_other_routes(&mut self, peer: Ipv4Addr) {
        let Some(path) = self.paths.get(peer).filter(|path| path.confirmed && path.errors >= SILENT) else {
            return;
        };
        let source = self.locals.source(&[path.source]);
        let is_other = |local: &Ipv4Addr| source != Some(*local) && self.locals.sends(*local);
        let others: Vec<Ipv4Addr> = self.locals.with(AddressUse::All).filter(is_other).collect();
        for local in others {
            self.probe_from(local, peer);
        }
        let is_other = |path: &&Path| path.address != peer && path.usable();
        let others = self.paths.iter().filter(is_other);
        let others = others.filter_map(|path| Some((self.locals.source(&[path.source])?, path.address)));
        for (local, other) in others.collect::<Vec<_>>() {
            self.probe_from(local, other);
        }
    }

    /// Sends a probe from the preferred address, if the peer sends to it while our packets leave from another
    /// address: the preferred route may work again.
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
        if !self.probes() {
            return;
        }
        let nonce = self.rng.u64();
        let (paths, locals) = (&self.paths, &self.locals);
        self.detour.probes.retain(|probe| {
            let is_known = paths.get(probe.peer).is_some() && locals.get(probe.local).is_some();
            is_known && (probe.local, probe.peer) != (local, peer)
        });
        self.detour.probes.push(Probe { local, peer, nonce });
        let heartbeat = self.heartbeat_from(local, peer, nonce);
        self.outbox.push_back(heartbeat);
    }

    /// Handles a HEARTBEAT ACK that came to `local`. Returns whether it answers a probe of another route, from
    /// `local` to `peer`. Each probe counts only once, so a replayed answer has no effect.
    pub(crate) fn route_answered(
        &mut self,
        now: Instant,
        local: Ipv4Addr,
        peer: Ipv4Addr,
        nonce: u64,
    ) -> bool {
        let is_it = |probe: &Probe| (probe.local, probe.peer, probe.nonce) == (local, peer, nonce);
        let Some(at) = self.detour.probes.iter().position(is_it) else { return false };
        self.detour.probes.swap_remove(at);
        let is_chosen = self.locals.preferred == Some(local);
        let Some(path) = self.paths.get_mut(peer).filter(|path| path.confirmed) else { return true };
        let fails = path.errors >= SILENT;
        if path.alive() {
            self.path_event(peer, PathState::Active);
        }
        self.probe_was_answered();
        self.heard_from(now, peer);
        if (fails || is_chosen) && now >= self.detour.pause {
            self.send_from(now, local);
        }
        true
    }

    /// Records that a packet came from `peer`. Data that wait for a time-out at a silent address of the peer are sent
    /// again to an address where the peer is heard. The silent address is then probed, as no data go there.
    pub(crate) fn heard_from(&mut self, now: Instant, peer: Ipv4Addr) {
        let Some(path) = self.paths.get_mut(peer) else { return };
        path.heard = now;
        if !path.usable() {
            return;
        }
        let is_silent = |path: &&Path| path.address != peer && path.asleep(now) && path.errors >= SILENT;
        let silent: Vec<Ipv4Addr> = self.paths.iter().filter(is_silent).map(|path| path.address).collect();
        for address in silent {
            self.outbound.lose(&mut self.paths, address, true);
            self.paths.get_mut(address).into_iter().for_each(|path| path.heartbeat = now);
        }
    }
}
