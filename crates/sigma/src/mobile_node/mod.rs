//! The mobile node. If possible, it prepares the next network while the current one still carries data. Then it moves
//! the data to the new network, and only then leaves the old one.
//!
//! ```text
//!   1  a new cell is strong enough     an idle radio tunes to it, and gets an address with a separate route
//!   2  the new address is usable       each peer is asked to add it: ADD
//!   3  the new cell is better          each peer is asked to send to the new address: SET PRIMARY;
//!                                      this host sends from the new address
//!   4  SET PRIMARY is acknowledged     the location manager is updated; data do not wait for this
//!   5  the old cell is lost            each peer is asked to delete the old address: DELETE
//! ```
//!
//! If the old link is lost before the new address was added, one message from the new address contains ADD, SET PRIMARY
//! and DELETE. If the old cell becomes better again before it is lost, only steps 3 and 4 are made, in the other
//! direction. Step 5 is made after `park` even if the old cell is not lost.
//!
//! A peer may refuse a change. Then the association with this peer keeps its addresses, and the peer is asked again
//! later.

mod address_changes;
mod moved_peers;

use crate::config::{MobileNodeConfig, Network};
use crate::mark::{MOBILE_NODE, SigmaEvent};
use crate::message::Name;
use crate::registrar::Registrar;
use crate::resolver::Resolver;
use crate::signal_monitor::SignalMonitor;
use crate::transport::{SCTP, Transport, end};
use node::config::{ConfigError, Interfaces};
use node::{
    Action, Announcer, Class, FailedAct, Hop, Input, Lifetime, Link, Listen, NextHop, Outbox, Proto, Rng,
    Role, Route, RouteKey, StreamEvent, TimerName, Timers, Value,
};
use sctp::{AssociationId, Change};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Cell, Duration, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Prefix, Reason};

/// The reason to drop a late packet to an address that the mobile node has given up.
pub const OLD_ADDRESS: Reason = Reason("old_address");

/// How long late packets to a given-up address are dropped with [`OLD_ADDRESS`]: two time-outs of 1 s (RFC 5061,
/// section 5.3).
const LATE: Duration = Duration::from_secs(2);
/// When an address that has moved to another radio is announced, counted from the move: `ANNOUNCE_NUM` times, every
/// `ANNOUNCE_INTERVAL` (RFC 5227, section 1.1).
const ANNOUNCEMENTS: [Duration; 2] = [Duration::ZERO, Duration::from_secs(2)];
/// The number of the first stream of the registrar. The streams of programs have other numbers.
const REGISTRAR: u32 = 0;
/// The number of the first stream of the resolver, after the 64 streams of the registrar.
const RESOLVER: u32 = 64;

#[derive(Clone, Copy, Debug)]
enum Timer {
    /// The address of a new network becomes available.
    Acquire,
    /// Addresses other than the primary one have been kept for `park`.
    Park,
    /// Peers are asked again for changes that their associations lack.
    Ask,
}

impl TimerName for Timer {
    const ALL: &'static [Self] = &[Self::Acquire, Self::Park, Self::Ask];
    fn index(self) -> usize {
        self as usize
    }
}

/// The state of a radio, and the index of its network in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Idle,
    /// The radio is tuning to the cell of this network.
    Tuning(usize),
    /// The radio is in the cell of this network with this link address, and has no IP address.
    Acquiring(usize, Mac),
    /// The radio has the address of this network.
    Ready(usize),
    /// The address of this network is being deleted from the associations.
    Leaving(usize),
}

impl Standing {
    const fn network(self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::Tuning(at) | Self::Acquiring(at, _) | Self::Ready(at) | Self::Leaving(at) => Some(at),
        }
    }
}

/// The role of a mobile node (TR-OU-TNRL-04-105, section II): moves the associations of its host between networks.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    radios: Vec<(Iface, Standing)>,
    transport: Transport,
    monitor: SignalMonitor,
    registrar: Option<Registrar>,
    resolver: Option<Resolver>,
    timers: Timers<Timer, 3>,
    /// The index of the network whose address is primary; `None` if there is no network.
    current: Option<usize>,
    /// The network that was lost before another was ready, by index, and the interface that still has the address of
    /// this network.
    broken: Option<(Iface, usize)>,
    /// The radio that last had each address.
    last_at: BTreeMap<Ipv4Addr, Iface>,
    /// Announces addresses that have moved to another radio.
    announcer: Announcer,
    /// The last address that the operating system refused to add, until an address is assigned again.
    refused: Option<Ipv4Addr>,
    /// Changes that peers were asked for and have not answered.
    asked: BTreeSet<(AssociationId, Change)>,
    /// Changes that at least one peer has accepted, while other peers have not answered yet.
    accepted: BTreeSet<Change>,
    /// Associations that lack a change, and whether they lack the primary address.
    lacking: BTreeMap<AssociationId, bool>,
    /// How many times peers were asked again since the last time that no association lacked a change.
    again: u32,
    /// Associations for which a change could not be requested in their state at that time, for example because a
    /// deletion of the same address waited for an answer.
    waiting: BTreeSet<AssociationId>,
    /// The names of the peers that are mobile nodes, by association.
    met: BTreeMap<AssociationId, Name>,
    /// The associations whose peers are being looked for at the location manager.
    sought: BTreeSet<AssociationId>,
    /// The address at which the first data are awaited, for the measurement of the path switch.
    switching: Option<Ipv4Addr>,
}

const LISTENS: [Listen; 2] =
    [Listen::Local(Proto::Ip(sctp::PROTOCOL)), Listen::IcmpAbout(Proto::Ip(sctp::PROTOCOL))];
const DEFAULT_ROUTE: RouteKey = RouteKey::all(Class::HOST);

impl MobileNode {
    /// Creates a mobile node with this configuration, on a host with these interfaces. Fails if a radio is not one of
    /// the interfaces, or if [`MobileNodeConfig::check`] does.
    pub fn new(config: MobileNodeConfig, interfaces: Interfaces<'_>, rng: &Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let radio = |name: &String| Ok((interfaces.number("radios", name)?, Standing::Idle));
        let location_manager = config.location_manager.clone();
        Ok(Self {
            radios: config.radios.iter().map(radio).collect::<Result<_, ConfigError>>()?,
            transport: Transport::new(&config.sctp, rng.fork("sctp")),
            monitor: SignalMonitor::new(config.signal.clone()),
            resolver: location_manager
                .as_ref()
                .map(|manager| Resolver::new(manager.address, RESOLVER, rng.fork("resolver"))),
            registrar: location_manager
                .map(|manager| Registrar::new(manager, MOBILE_NODE, REGISTRAR, rng.fork("registrar"))),
            timers: Timers::default(),
            current: None,
            broken: None,
            last_at: BTreeMap::new(),
            announcer: Announcer::new(ANNOUNCEMENTS.to_vec()),
            refused: None,
            asked: BTreeSet::new(),
            accepted: BTreeSet::new(),
            lacking: BTreeMap::new(),
            again: 0,
            waiting: BTreeSet::new(),
            met: BTreeMap::new(),
            sought: BTreeSet::new(),
            switching: None,
            config,
        })
    }

    fn network(&self, at: usize) -> Option<&Network> {
        self.config.networks.get(at)
    }

    fn name_of(&self, at: Option<usize>) -> String {
        at.and_then(|at| self.network(at)).map_or_else(|| "nowhere".to_owned(), |it| it.name.clone())
    }

    fn address_of(&self, at: usize) -> Option<Ipv4Addr> {
        self.network(at).map(|network| network.address.address)
    }

    /// Returns a list with the address from which new associations open; empty if this host has no address.
    fn own(&self) -> Vec<Ipv4Addr> {
        self.current.and_then(|at| self.address_of(at)).into_iter().collect()
    }

    fn cell_of(&self, at: Option<usize>) -> Option<Cell> {
        at.and_then(|at| self.network(at)).map(|network| Cell(network.cell))
    }

    fn set(&mut self, radio: usize, standing: Standing) {
        if let Some((_, old)) = self.radios.get_mut(radio) {
            *old = standing;
        }
        let here: Vec<Ipv4Addr> = self.ready().filter_map(|at| self.address_of(at)).collect();
        self.transport.accept_at(&here);
        self.announcer.keep_only(&here);
    }

    // --- step 1: the link, and an address --------------------------------------------------------------------------

    fn link(&mut self, now: Instant, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        let Some(radio) = self.radios.iter().position(|(own, _)| *own == iface) else { return };
        let Some((_, standing)) = self.radios.get(radio).copied() else { return };
        match (link, standing) {
            // All radios are at the same position, so the samples of the first one suffice.
            (Link::Heard(cell, strength), _) if radio == 0 => {
                self.monitor.hear(now, cell, strength);
                self.review(now, out);
            }
            (Link::Up { cell, mac, .. }, Standing::Tuning(at)) if cell == self.cell_of(Some(at)) => {
                self.set(radio, Standing::Acquiring(at, mac));
                out.mark(SigmaEvent::AddressBegun { network: self.name_of(Some(at)) }.into());
                self.timers.set(Timer::Acquire, now + self.config.address_delay);
            }
            (Link::Down(Link::UNSUPPORTED), Standing::Tuning(_)) => self.set(radio, Standing::Idle),
            // The link did not change, or the radio has unplugged a cable as requested.
            (Link::Down(Link::UNSUPPORTED), _) | (Link::Down(Link::UNPLUGGED), Standing::Tuning(_)) => {}
            (Link::Down(_), standing) => self.link_lost(now, radio, standing, out),
            _ => {}
        }
    }

    /// Tunes an idle radio to the cell of a network, if there is an idle radio.
    fn prepare(&mut self, out: &mut Outbox, at: usize) {
        let idle = |(_, standing): &(Iface, Standing)| *standing == Standing::Idle;
        let (Some(cell), Some(radio)) = (self.cell_of(Some(at)), self.radios.iter().position(idle)) else {
            return;
        };
        let Some((iface, _)) = self.radios.get(radio).copied() else { return };
        // A return to the network whose link was lost is not a handoff.
        if let Some((_, lost)) = self.broken.filter(|(_, lost)| *lost != at) {
            self.mark_handoff("break", Some(lost), at, false, out);
        }
        self.set(radio, Standing::Tuning(at));
        out.tune(iface, cell);
    }

    /// Assigns an address to each radio that waits for one, with a route for packets from this address.
    fn acquire(&mut self, now: Instant, out: &mut Outbox) {
        let acquiring = |(_, standing): &(Iface, Standing)| matches!(standing, Standing::Acquiring(..));
        while let Some(radio) = self.radios.iter().position(acquiring) {
            let Some((iface, Standing::Acquiring(at, mac))) = self.radios.get(radio).copied() else { return };
            let Some(Network { address, router, .. }) = self.network(at).cloned() else { return };
            self.set(radio, Standing::Ready(at));
            out.route(late(address.address), None);
            self.assign(iface, at, address, out);
            out.route(by_source(address.address), by(iface, router));
            // The router may still have the link address of the radio that had this address before.
            if self.last_at.insert(address.address, iface).is_some_and(|before| before != iface) {
                self.announcer.announce(now, (iface, address.address), mac, out);
            }
            out.mark(SigmaEvent::AddressReady { address: address.address }.into());
            match (self.current, self.broken.take()) {
                (Some(_), _) => self.ask_all(now, &[Change::Add(address.address)], out),
                (None, None) => self.settle_in(now, at, out),
                (None, Some(lost)) => self.repair(now, lost, at, out),
            }
        }
    }

    /// Assigns an address to an interface. After the loss of a link, the host still has the address of this link, and
    /// the operating system refuses to add the same address again. So nothing is done if the interface has the address.
    /// If another interface has the address, the address is first removed from that interface.
    fn assign(&mut self, iface: Iface, at: usize, address: InterfaceAddress, out: &mut Outbox) {
        let is_here = self.refused.take() != Some(address.address);
        let kept = self.broken.filter(|(_, lost)| *lost == at && is_here).map(|(iface, _)| iface);
        if kept == Some(iface) {
            return;
        }
        if let Some(before) = kept {
            out.remove_address(before, address);
        }
        out.add_address(iface, address);
    }

    /// Makes the network with index `at` the current one, and registers its address with the location manager.
    fn settle_in(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        self.turn_to(at, out);
        self.register(now, out);
    }

    fn turn_to(&mut self, at: usize, out: &mut Outbox) {
        self.current = Some(at);
        let radio = self.radios.iter().find(|(_, standing)| *standing == Standing::Ready(at));
        if let (Some((iface, _)), Some(network)) = (radio, self.network(at)) {
            out.route(DEFAULT_ROUTE, by(*iface, network.router));
        }
    }

    // --- steps 2 and 5: see `address_changes` for requests to peers and their answers ------------------------------

    /// Marks the first data that arrive on the new path.
    fn arriving(&mut self, address: Ipv4Addr, out: &mut Outbox) {
        if self.switching == Some(address) {
            self.switching = None;
            out.mark(SigmaEvent::FirstData { address }.into());
        }
    }

    /// Asks all peers to delete the address of a network that a radio leaves.
    fn leave(&mut self, now: Instant, radio: usize, at: usize, out: &mut Outbox) {
        let Some(address) = self.address_of(at) else { return };
        self.set(radio, Standing::Leaving(at));
        self.ask_all(now, &[Change::Delete(address)], out);
        if let Some(here) = self.current.and_then(|at| self.address_of(at)) {
            self.transport.open_from(now, address, here);
        }
        self.retire(now, out);
    }

    /// Gives up the addresses that are being deleted, if no answer to their deletion is outstanding.
    fn retire(&mut self, now: Instant, out: &mut Outbox) {
        let waits = |address| self.waits_for(Change::Delete(address));
        let done = self.leaving().filter(|(_, _, address)| !waits(address.address)).collect();
        self.give_up(now, done, out);
    }

    /// Returns the radios whose addresses are being deleted from the associations, with their interfaces and addresses.
    fn leaving(&self) -> impl Iterator<Item = (usize, Iface, InterfaceAddress)> {
        self.radios.iter().enumerate().filter_map(|(radio, (iface, standing))| match standing {
            Standing::Leaving(at) => Some((radio, *iface, self.network(*at)?.address)),
            _ => None,
        })
    }

    /// Removes addresses and their routes. For the time [`LATE`], packets to these addresses are dropped with
    /// [`OLD_ADDRESS`].
    fn give_up(&mut self, now: Instant, addresses: Vec<(usize, Iface, InterfaceAddress)>, out: &mut Outbox) {
        for (radio, iface, address) in addresses {
            out.route(by_source(address.address), None);
            out.remove_address(iface, address);
            let lifetime = Lifetime::Until(now + LATE);
            out.route(late(address.address), Route::new(Action::Drop(OLD_ADDRESS), lifetime));
            out.mark(SigmaEvent::AddressGone { address: address.address }.into());
            self.set(radio, Standing::Idle);
        }
    }

    // --- step 3: the handoff ---------------------------------------------------------------------------------------

    /// Evaluates the signal strengths. Prepares a network, hands off to a network, or leaves a network, if the
    /// thresholds require it.
    fn review(&mut self, now: Instant, out: &mut Outbox) {
        self.monitor.judge(now, self.cell_of(self.current));
        let used: Vec<Option<Cell>> =
            self.radios.iter().map(|(_, standing)| self.cell_of(standing.network())).collect();
        let known: BTreeSet<u16> = self.config.networks.iter().map(|network| network.cell).collect();
        let wanted = |cell: Cell| known.contains(&cell.0) && !used.contains(&Some(cell));
        if let Some(cell) = self.monitor.candidate(now, wanted) {
            let at = self.config.networks.iter().position(|network| network.cell == cell.0);
            if let Some(at) = at {
                self.prepare(out, at);
            }
        }
        let lost = self.cell_of(self.current).is_some_and(|cell| self.monitor.is_lost(now, cell));
        let better = self.others().find(|at| {
            let go = self.cell_of(Some(*at)).is_some_and(|cell| lost || self.monitor.may_go(now, cell));
            go && self.address_of(*at).is_some_and(|address| self.may_be_used(address))
        });
        if let Some(at) = better {
            return self.hand_off(now, at, out);
        }
        // A network with a lost cell is kept while an association sends through it, because packets from the preferred
        // address do not reach the peer.
        let carries =
            |at: usize| self.address_of(at).is_some_and(|address| self.transport.is_detour(address));
        let is_lost = |at: usize| self.cell_of(Some(at)).is_some_and(|cell| self.monitor.is_lost(now, cell));
        let over = self.others().find(|at| is_lost(*at) && !carries(*at));
        if let Some(at) = over {
            self.leave_network(now, at, out);
        }
    }

    /// Returns the networks other than the current one in which this host has an address.
    fn others(&self) -> impl Iterator<Item = usize> {
        let ready = self.radios.iter().filter_map(|(_, standing)| match standing {
            Standing::Ready(at) => Some(*at),
            _ => None,
        });
        ready.filter(|at| self.current.is_some_and(|current| current != *at))
    }

    /// Leaves the networks that are not used any more. If an association depends on the address of a network, this
    /// network is checked again after `park`.
    fn parked(&mut self, now: Instant, out: &mut Outbox) {
        let others: Vec<usize> = self.others().collect();
        for at in others {
            if self.address_of(at).is_some_and(|address| self.is_needed(address)) {
                self.timers.set(Timer::Park, now + self.config.park);
            } else {
                self.leave_network(now, at, out);
            }
        }
    }

    fn leave_network(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        if let Some(radio) = self.radios.iter().position(|(_, standing)| *standing == Standing::Ready(at)) {
            self.leave(now, radio, at, out);
        }
    }

    fn mark_handoff(
        &self,
        kind: &'static str,
        from: Option<usize>,
        to: usize,
        switches: bool,
        out: &mut Outbox,
    ) {
        let (from, to) = (self.name_of(from), self.name_of(Some(to)));
        out.mark(SigmaEvent::Handoff { kind, from, to, switches }.into());
    }

    /// Begins a handoff to the network with index `at`, while the current network is still usable.
    fn hand_off(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        let Some(address) = self.address_of(at) else { return };
        self.mark_handoff("overlap", self.current, at, true, out);
        self.switch_to(now, at, &[Change::SetPrimary(address)], out);
        self.timers.set(Timer::Park, now + self.config.park);
    }

    fn switch_to(&mut self, now: Instant, at: usize, changes: &[Change], out: &mut Outbox) {
        let Some(address) = self.address_of(at) else { return };
        self.monitor.moved(now);
        self.turn_to(at, out);
        self.switching = Some(address);
        self.ask_all(now, changes, out);
        let here: Vec<Ipv4Addr> = self.ready().filter_map(|at| self.address_of(at)).collect();
        for id in self.transport.open() {
            if let Some(association) = self.transport.open_mut(id) {
                // `move_to` fails if the peer does not support address changes. Then the association is not changed.
                let _ = association.move_to(now, address, &here);
            }
        }
        if !self.waits_for(Change::SetPrimary(address)) {
            self.register(now, out);
        }
    }

    /// Handles the loss of a radio's link.
    fn link_lost(&mut self, now: Instant, radio: usize, standing: Standing, out: &mut Outbox) {
        let Standing::Ready(at) = standing else {
            if !matches!(standing, Standing::Leaving(_)) {
                self.set(radio, Standing::Idle);
            }
            return;
        };
        if let Some(cell) = self.cell_of(Some(at)) {
            self.monitor.forget(cell);
        }
        if self.current != Some(at) {
            return self.leave(now, radio, at, out);
        }
        let other = self.others().next();
        match (other, self.address_of(at)) {
            (Some(other), Some(gone)) => {
                let Some(new) = self.address_of(other) else { return };
                self.mark_handoff("lost", Some(at), other, true, out);
                self.set(radio, Standing::Leaving(at));
                self.switch_to(now, other, &[Change::SetPrimary(new), Change::Delete(gone)], out);
                self.transport.open_from(now, gone, new);
                self.lost_sight(now, out);
                self.retire(now, out);
            }
            _ => {
                // The associations keep the lost address until there is another one: they need at least one address.
                self.current = None;
                self.broken = self.radios.get(radio).map(|(iface, _)| (*iface, at));
                self.set(radio, Standing::Idle);
                // Answers to the deletion of other addresses cannot arrive any more. So these addresses are given up
                // now: the next network of this host may be the network of one of these addresses.
                let leaving = self.leaving().collect();
                self.give_up(now, leaving, out);
                let coming = self.radios.iter().find_map(|(_, other)| other.network());
                if let Some(to) = coming {
                    self.mark_handoff("break", Some(at), to, true, out);
                }
                self.review(now, out);
            }
        }
    }

    /// Handles the failure of the operating system to add or remove an address. If the address was not added, this host
    /// does the same as after the loss of the radio's link. The address is deleted from associations, and the network
    /// is tried again when its cell is heard.
    fn address_failed(
        &mut self,
        now: Instant,
        (iface, address): (Iface, InterfaceAddress),
        is_added: bool,
        why: &str,
        out: &mut Outbox,
    ) {
        out.mark(SigmaEvent::AddressFailed { address: address.address, why: why.to_owned() }.into());
        let is_there = |(other, standing): &(Iface, Standing)| {
            *other == iface
                && matches!(standing, Standing::Ready(at) if self.address_of(*at) == Some(address.address))
        };
        let Some(radio) = self.radios.iter().position(is_there).filter(|_| is_added) else { return };
        out.route(by_source(address.address), None);
        self.refused = Some(address.address);
        if let Some((_, standing)) = self.radios.get(radio).copied() {
            self.link_lost(now, radio, standing, out);
        }
    }

    /// Moves the associations to the first address after all addresses were lost, with all changes in one message. If
    /// the lost network has returned, no change is needed.
    fn repair(&mut self, now: Instant, (iface, lost): (Iface, usize), at: usize, out: &mut Outbox) {
        let (Some(old), Some(new)) = (self.address_of(lost), self.address_of(at)) else { return };
        if lost == at {
            self.turn_to(at, out);
            self.transport.link_returned(now);
            return self.lost_sight(now, out);
        }
        out.route(by_source(old), None);
        if let Some(network) = self.network(lost) {
            out.remove_address(iface, network.address);
        }
        let all = [Change::Add(new), Change::SetPrimary(new), Change::Delete(old)];
        self.switch_to(now, at, &all, out);
        self.transport.open_from(now, old, new);
        self.lost_sight(now, out);
    }

    /// Updates the location manager at once and looks for peers, because the current network was lost before another
    /// was primary. Packets to the old address do not reach this host. Peers that move may have lost their addresses at
    /// the same time.
    fn lost_sight(&mut self, now: Instant, out: &mut Outbox) {
        self.register(now, out);
        self.seek_all(now, out);
    }

    // --- step 4: the location manager ------------------------------------------------------------------------------

    fn register(&mut self, now: Instant, out: &mut Outbox) {
        let address = self.current.and_then(|at| self.address_of(at));
        if let (Some(registrar), Some(address)) = (&mut self.registrar, address) {
            registrar.register_once(now, address, out);
        }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Acquire => self.acquire(now, out),
                Timer::Park => self.parked(now, out),
                Timer::Ask => self.ask_again(now),
            }
        }
        self.announcer.timeout(now, out);
        self.transport.timeout(now);
        if let Some(registrar) = &mut self.registrar {
            registrar.timeout(now, out);
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.timeout(now, out);
        }
    }

    fn stream(&mut self, now: Instant, id: node::StreamId, event: &StreamEvent<'_>, out: &mut Outbox) {
        if let Some(registrar) = self.registrar.as_mut().filter(|registrar| registrar.has(id)) {
            let knows = registrar.stream(now, id, event, out);
            if knows {
                self.seek_again(now, out);
            }
        }
        if let Some(resolver) = self.resolver.as_mut().filter(|resolver| resolver.has(id))
            && let Some((name, address)) = resolver.stream(id, event, out)
        {
            self.found(now, &name, address, out);
        }
    }
}

/// Returns the key of the route for packets from an address.
const fn by_source(address: Ipv4Addr) -> RouteKey {
    RouteKey { class: None, src: Prefix::host(address), dst: Prefix::ANY }
}

/// Returns the key of the route for late packets to a former address.
const fn late(address: Ipv4Addr) -> RouteKey {
    RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(address) }
}

const fn by(iface: Iface, router: Ipv4Addr) -> Route {
    Route::new(Action::Forward(Hop { iface, to: NextHop::Via(router) }), Lifetime::Permanent)
}

impl Role for MobileNode {
    fn name(&self) -> &'static str {
        MOBILE_NODE
    }

    fn listens(&self) -> &[Listen] {
        &LISTENS
    }

    fn serves(&self) -> &[node::Transport] {
        &[SCTP]
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(boot) => {
                if let Some(registrar) = &mut self.registrar {
                    registrar.set_clock(boot.wall);
                }
            }
            Input::Wall(zero) => {
                if let Some(registrar) = &mut self.registrar {
                    registrar.set_clock(zero);
                }
            }
            // A time-out before the role's deadline has no effect.
            Input::Timeout if self.deadline().is_none_or(|due| now < due) => return,
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => {
                let verdict = self.transport.packet(now, rx, &packet);
                end(rx, packet, verdict, out);
            }
            Input::Link(iface, link) => self.link(now, iface, link, out),
            Input::Serve(id, op) => {
                let own = self.own();
                self.transport.serve(now, id, op, &own, out);
            }
            Input::Stream(id, event) => self.stream(now, id, &event, out),
            Input::Failed(fault) => {
                if let FailedAct::Address(iface, address, is_added) = fault.act {
                    self.address_failed(now, (iface, address), is_added, &fault.why, out);
                }
            }
            // The role does not react to the end of a route. It has no commands, and it stores nothing.
            Input::Idle(..)
            | Input::Notice(_)
            | Input::Command(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
        let own = self.own();
        self.transport.open_waiting(now, &own, out);
        self.news(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let registrar = self.registrar.as_ref().and_then(Registrar::deadline);
        let resolver = self.resolver.as_ref().and_then(Resolver::deadline);
        let due = [self.timers.next(), self.transport.deadline(), self.announcer.due(), registrar, resolver];
        due.into_iter().flatten().min()
    }

    fn status(&self) -> Value {
        let radios = self.radios.iter().map(|(_, standing)| Value::from(self.name_of(standing.network())));
        Value::map([
            ("at", Value::from(self.name_of(self.current))),
            ("radios", Value::List(radios.collect())),
            ("associations", self.transport.status()),
        ])
    }

    fn entries(&self) -> usize {
        self.transport.further_addresses()
    }
}
