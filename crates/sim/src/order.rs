//! What is ordered from outside: hosts that crash and restart, links that are cut.
//!
//! A host that crashed processes nothing and keeps nothing: packets that it held are dropped, and frames to it are lost. Its
//! records stay as they were when they became durable. A restart puts a new node and a new stack in its place, which find
//! those records. The host's interfaces stay as they are: its neighbors see no link go down.
//!
//! A host that is stopped keeps everything. What comes to it waits in front of it until it continues.

use crate::host::{Host, HostSpec};
use crate::queue::Event;
use crate::world::World;
use link::{Becomes, Change, Follows, Place};
use node::{Boot, Input, Link};
use std::collections::BTreeMap;
use trace::{HostId, What, Witness};
use wire::{Cell, Iface, Instant, Packet, PacketId};

/// Why packets end with a host.
pub mod reason {
    use wire::Reason;

    /// The host crashed while it held the packet.
    pub const CRASHED: Reason = Reason("host_crashed");
    /// The host had crashed when the frame came.
    pub const HOST_DOWN: Reason = Reason("host_down");
}

/// What happens to a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostEvent {
    /// Its node dies.
    Crash,
    /// A new node on the same configuration, and on what was stored.
    Restart,
    /// It processes nothing, and keeps everything.
    Stop,
    /// It processes again, first what has waited.
    Continue,
    /// Its wall clock is set forward or back by so many nanoseconds. Time-outs stay as they are.
    Clock(i64),
    /// Each record that it stores from now on fails.
    DiskFull,
    /// It can store again.
    DiskFree,
}

/// What is ordered.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// Of a host.
    Host(HostId, HostEvent),
    /// Of a link, or of several at once. The record of it is kept of this host.
    Link(HostId, Vec<Place>, Change),
}

impl Order {
    /// The host of which the record is kept.
    pub const fn host(&self) -> HostId {
        match self {
            Self::Host(host, _) | Self::Link(host, ..) => *host,
        }
    }
}

/// Orders, and what is needed to carry them out.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// With how each is recorded.
    all: Vec<(Order, trace::Event)>,
    /// Hosts as they restart, each for the order of this number.
    spares: BTreeMap<u32, HostSpec>,
    /// Hosts that do not run. In most runs all do.
    idle: BTreeMap<HostId, Idle>,
}

/// A host that does not run.
#[derive(Debug)]
enum Idle {
    Crashed,
    Stopped(Vec<Waiting>),
}

impl Orders {
    /// Whether a host runs.
    pub(crate) fn runs(&self, host: HostId) -> bool {
        self.idle.is_empty() || !self.idle.contains_key(&host)
    }

    /// Whether a host has crashed, and not restarted.
    pub(crate) fn crashed(&self, host: HostId) -> bool {
        matches!(self.idle.get(&host), Some(Idle::Crashed))
    }
}

/// What waits for a host that is stopped.
#[derive(Debug)]
pub(crate) enum Waiting {
    Frame(HostId, Iface, Iface, Packet),
    Event(Event),
    Down(Iface, &'static str),
    Up(Iface, Option<Cell>),
    Heard(Iface, Vec<(Cell, i16)>),
    Wall,
}

impl<W: Witness> World<W> {
    /// Has this happen at `at`; `recorded` is how it is recorded. A restart needs the host as it comes back, with a chance of its own:
    /// it must not draw again what its former life has drawn.
    pub fn order(&mut self, at: Instant, order: Order, recorded: trace::Event, spare: Option<HostSpec>) {
        let number = self.orders.all.len() as u32;
        if let Some(spec) = spare {
            self.stores.keep(order.host());
            self.orders.spares.insert(number, spec);
        }
        self.orders.all.push((order, recorded));
        self.schedule(at, Event::Ordered(number));
    }

    pub(crate) fn ordered(&mut self, number: u32) {
        let Some((order, recorded)) = self.orders.all.get(number as usize).cloned() else { return };
        self.record(order.host(), What::Ordered(recorded));
        match order {
            Order::Host(host, event) => self.befall(host, event, number),
            Order::Link(_, places, change) => {
                for place in places {
                    self.change_link(place, change);
                }
            }
        }
    }

    fn befall(&mut self, host: HostId, event: HostEvent, number: u32) {
        match event {
            HostEvent::Crash => self.crash(host),
            HostEvent::Restart => {
                if let Some(spec) = self.orders.spares.remove(&number) {
                    self.restart(host, spec);
                }
            }
            HostEvent::Stop => drop(self.orders.idle.insert(host, Idle::Stopped(Vec::new()))),
            HostEvent::Continue => self.resume_host(host),
            HostEvent::Clock(by) => {
                let wall = &mut self.host_mut(host).wall;
                wall.0 = wall.0.saturating_add(by);
                if self.admit(host, Waiting::Wall).is_some() {
                    self.clock_is_set(host);
                }
            }
            HostEvent::DiskFull => self.stores.fill(host, true),
            HostEvent::DiskFree => self.stores.fill(host, false),
        }
    }

    fn clock_is_set(&mut self, host: HostId) {
        let wall = self.host(host).wall;
        self.give(host, Input::Wall(wall));
    }

    fn crash(&mut self, host: HostId) {
        let mut held: Vec<PacketId> = Vec::new();
        self.host(host).node.holds(&mut |packet| held.push(packet));
        for packet in held {
            self.record(host, What::Dropped(Iface::HOST, packet, reason::CRASHED.0.into()));
        }
        let mut held: Vec<PacketId> = Vec::new();
        self.host(host).stack.holds(&mut |packet| held.push(packet));
        for packet in held {
            self.record(host, What::Lost(Iface::HOST, packet, reason::CRASHED.0.into()));
        }
        self.stores.crash(host);
        self.host_mut(host).due = Instant::NEVER;
        if let Some(Idle::Stopped(waiting)) = self.orders.idle.insert(host, Idle::Crashed) {
            for waits in waiting {
                self.lost_at_a_dead_host(waits);
            }
        }
    }

    /// What waited for a host that crashes while it is stopped.
    fn lost_at_a_dead_host(&mut self, waits: Waiting) {
        if let Waiting::Frame(sender, iface, _, packet) = waits {
            self.record(sender, What::Lost(iface, packet.id, reason::HOST_DOWN.0.into()));
        }
    }

    fn restart(&mut self, host: HostId, spec: HostSpec) {
        let wall = self.host(host).wall;
        let mtus: Vec<u16> = self.host(host).interfaces.iter().map(|interface| interface.mtu).collect();
        let Host { node, interfaces, stack, due, .. } = Host::new(spec);
        let mut fresh = Host { node, interfaces, stack: stack.restarted(), wall, due };
        for (interface, mtu) in fresh.interfaces.iter_mut().zip(mtus) {
            interface.mtu = mtu; // a link stays as narrow as it is
        }
        *self.host_mut(host) = fresh;
        self.orders.idle.remove(&host);
        let boot = Boot { stored: self.stores.stored(host), clean: false, ..Boot::new(wall) };
        self.give(host, Input::Start(&boot));
        self.bring_up(host);
    }

    fn resume_host(&mut self, host: HostId) {
        let Some(Idle::Stopped(waiting)) = self.orders.idle.remove(&host) else { return };
        for waits in waiting {
            match waits {
                Waiting::Frame(_, _, iface, packet) => self.receive(host, iface, packet),
                // A sync that ended meanwhile.
                Waiting::Event(Event::Synced(_)) => {
                    self.synced(host);
                    self.settle(host);
                }
                Waiting::Event(event) => self.happen(event),
                Waiting::Down(iface, why) => self.down(host, iface, why),
                Waiting::Up(iface, cell) => self.up(host, iface, cell),
                Waiting::Heard(iface, heard) => self.hear(host, iface, heard),
                Waiting::Wall => self.clock_is_set(host),
            }
        }
        self.host_mut(host).due = Instant::NEVER;
        self.set_alarm(host);
    }

    fn change_link(&mut self, place: Place, change: Change) {
        let follows = self.fabric.change(self.now, place, change);
        self.set_grant();
        for what in follows {
            let (port, becomes) = match what {
                Follows::At(port, becomes) => (port, becomes),
                Follows::Returns(tuning) => {
                    self.schedule(tuning.ready, Event::Tuned(tuning));
                    continue;
                }
            };
            let Some((host, iface)) = self.owner(port) else { continue };
            match becomes {
                Becomes::Down => self.down(host, iface, Link::NO_CARRIER),
                Becomes::OutOfRange => self.down(host, iface, Link::OUT_OF_RANGE),
                Becomes::Up => self.up(host, iface, None),
                Becomes::Mtu(mtu) => self.set_mtu(host, iface, mtu),
            }
        }
    }

    /// The host knows what its interface takes: at once of one that needs no tuning, of a radio that moves when it comes up next.
    fn set_mtu(&mut self, host: HostId, iface: Iface, mtu: u16) {
        let number = usize::from(iface.0).checked_sub(1);
        let interface = number.and_then(|at| self.host_mut(host).interfaces.get_mut(at));
        let Some(interface) = interface else { return };
        interface.mtu = mtu;
        let (port, tunes) = (interface.port, interface.tunes);
        if !tunes && !self.fabric.is_cut(port) {
            self.up(host, iface, None);
        }
    }

    /// Keeps what comes to a stopped host; gives it back if it is to be taken now. What comes to a crashed one is gone.
    pub(crate) fn admit(&mut self, host: HostId, waits: Waiting) -> Option<Waiting> {
        match self.orders.idle.get_mut(&host) {
            None => Some(waits),
            Some(Idle::Stopped(waiting)) => {
                waiting.push(waits);
                None
            }
            Some(Idle::Crashed) => {
                self.lost_at_a_dead_host(waits);
                None
            }
        }
    }

    /// Frames that wait for stopped hosts, each with its sender.
    pub(crate) fn waiting_frames(&self) -> impl Iterator<Item = (HostId, Option<Iface>, PacketId)> {
        let waiting = self.orders.idle.values().flat_map(|idle| match idle {
            Idle::Stopped(waiting) => waiting.as_slice(),
            Idle::Crashed => &[],
        });
        waiting.filter_map(|waits| match waits {
            Waiting::Frame(sender, iface, _, packet) => Some((*sender, Some(*iface), packet.id)),
            _ => None,
        })
    }
}
