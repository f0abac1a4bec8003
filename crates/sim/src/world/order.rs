//! Events of the scenario: hosts that crash, restart, stop and continue, clocks, disks, and links that change.
//!
//! A crashed host processes nothing and loses its state: packets that it held are dropped, and frames to it are lost.
//! Only its durable records and its wall clock are kept. A restart replaces the host's node and stack by new ones, and
//! the new node reads the records. The host's interfaces do not change, so the host's neighbors see no link go down.
//!
//! A stopped host keeps its state. Its inputs wait until it continues.

use super::World;
use crate::host::{Host, HostSpec};
use crate::queue::FutureEvent;
use link::{Change, ChangedLink, Consequence, InterfaceState};
use node::{Boot, Input, Link};
use std::collections::BTreeMap;
use trace::{HostId, What, Witness};
use wire::{Cell, Iface, Instant, Packet, PacketId};

/// Reasons for the loss of packets at a crashed host.
pub mod reason {
    use wire::Reason;

    /// The host crashed while it held the packet.
    pub const CRASHED: Reason = Reason("host_crashed");
    /// The host had crashed when the frame arrived, or crashed before it processed the frame.
    pub const HOST_DOWN: Reason = Reason("host_down");
}

/// An event of the scenario that changes one host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostEvent {
    /// The host's node and stack end, and their state is lost.
    Crash,
    /// A new node starts on the host, with the same configuration and the durable records.
    Restart,
    /// The host processes nothing, but keeps its state.
    Stop,
    /// The host processes its inputs again. The inputs that waited come first.
    Continue,
    /// The host's wall clock is set forward by this number of nanoseconds, or back if the number is negative. Timers do
    /// not change.
    Clock(i64),
    /// From now on, each request of a role to store a durable record fails.
    DiskFull,
    /// After `DiskFull`: the host can store durable records again.
    DiskFree,
}

/// An event of the scenario, with the host or the links that it changes.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// An event of one host.
    Host(HostId, HostEvent),
    /// The same change of one or more links. The event is recorded at this host.
    Link(HostId, Vec<ChangedLink>, Change),
}

impl Order {
    /// Returns the host at which the event is recorded.
    pub const fn host(&self) -> HostId {
        match self {
            Self::Host(host, _) | Self::Link(host, ..) => *host,
        }
    }
}

/// The events of the scenario, and the state of the hosts that do not run.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Each event, and the form in which it is recorded.
    all: Vec<(Order, trace::Event)>,
    /// The hosts that replace crashed hosts, by the number of the restart in `all`.
    spares: BTreeMap<u32, HostSpec>,
    /// The hosts that do not run. In most runs there are none.
    idle: BTreeMap<HostId, Idle>,
}

/// Why a host does not run. `Stopped` has the inputs that wait until the host continues.
#[derive(Debug)]
enum Idle {
    Crashed,
    Stopped(Vec<Waiting>),
}

impl Orders {
    /// Returns whether there is an event `number`.
    pub(crate) const fn has(&self, number: u32) -> bool {
        (number as usize) < self.all.len()
    }

    /// Returns whether a host runs: it is neither crashed nor stopped.
    pub(crate) fn runs(&self, host: HostId) -> bool {
        self.idle.is_empty() || !self.idle.contains_key(&host)
    }

    /// Returns whether a host has crashed and not restarted.
    pub(crate) fn crashed(&self, host: HostId) -> bool {
        matches!(self.idle.get(&host), Some(Idle::Crashed))
    }
}

/// An input that waits for a stopped host.
#[derive(Debug)]
pub(crate) enum Waiting {
    Frame(HostId, Iface, Iface, Packet),
    Event(FutureEvent),
    Down(Iface, &'static str),
    Up(Iface, Option<Cell>),
    Heard(Iface, Vec<(Cell, i16)>),
    Wall,
}

impl<W: Witness> World<W> {
    /// Schedules an event of the scenario at `at`; `recorded` is its form in the records. A restart needs `spare`, the
    /// host that replaces the crashed one; with `None`, the restart has no effect. The random seeds of both hosts must
    /// differ, so that the new host does not draw the same numbers again.
    pub fn order(&mut self, at: Instant, order: Order, recorded: trace::Event, spare: Option<HostSpec>) {
        let number = self.orders.all.len() as u32;
        if let Some(spec) = spare {
            self.stores.keep(order.host());
            self.orders.spares.insert(number, spec);
        }
        self.orders.all.push((order, recorded));
        self.schedule(at, FutureEvent::Ordered(number));
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
        let wall = self.host(host).wall_at_zero(self.now);
        self.give(host, Input::Wall(wall));
    }

    /// Schedules the next step of a clock that drifts.
    pub(crate) fn schedule_drift(&mut self, host: HostId) {
        let error = self.host(host).clock_error.as_ref();
        let next = error.map_or(Instant::NEVER, |error| error.next_step(self.now));
        if next < Instant::NEVER {
            self.schedule(next, FutureEvent::Drift(host));
        }
    }

    pub(crate) fn drift(&mut self, host: HostId) {
        self.schedule_drift(host);
        // A stopped host reads its clock once when it continues.
        if let Some(Idle::Stopped(waiting)) = self.orders.idle.get(&host)
            && waiting.iter().any(|waits| matches!(waits, Waiting::Wall))
        {
            return;
        }
        if self.admit(host, Waiting::Wall).is_some() {
            self.clock_is_set(host);
        }
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

    /// Records the loss of a frame for a crashed host. Other inputs of a crashed host have no record.
    fn lost_at_a_dead_host(&mut self, waits: Waiting) {
        if let Waiting::Frame(sender, iface, _, packet) = waits {
            self.record(sender, What::Lost(iface, packet.id, reason::HOST_DOWN.0.into()));
        }
    }

    fn restart(&mut self, host: HostId, spec: HostSpec) {
        let wall = self.host(host).wall;
        let mtus: Vec<u16> = self.host(host).interfaces.iter().map(|interface| interface.mtu).collect();
        let Host { node, interfaces, stack, clock_error, due, .. } = Host::new(spec);
        let mut fresh = Host { node, interfaces, stack: stack.restarted(), wall, clock_error, due };
        for (interface, mtu) in fresh.interfaces.iter_mut().zip(mtus) {
            interface.mtu = mtu; // a restart does not change the MTU of a link
        }
        let seen = fresh.wall_at_zero(self.now);
        *self.host_mut(host) = fresh;
        self.orders.idle.remove(&host);
        let boot = Boot { stored: self.stores.stored(host), clean: false, ..Boot::new(seen) };
        self.give(host, Input::Start(&boot));
        self.bring_up(host);
    }

    fn resume_host(&mut self, host: HostId) {
        let Some(Idle::Stopped(waiting)) = self.orders.idle.remove(&host) else { return };
        for waits in waiting {
            match waits {
                Waiting::Frame(_, _, iface, packet) => self.receive(host, iface, packet),
                // The sync ended while the host was stopped.
                Waiting::Event(FutureEvent::Synced(_)) => {
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

    fn change_link(&mut self, place: ChangedLink, change: Change) {
        let follows = self.fabric.change(self.now, place, change);
        self.set_grant();
        for what in follows {
            let (port, becomes) = match what {
                Consequence::At(port, becomes) => (port, becomes),
                Consequence::Returns(tuning) => {
                    self.schedule(tuning.ready, FutureEvent::Tuned(tuning));
                    continue;
                }
            };
            let Some((host, iface)) = self.owner(port) else { continue };
            match becomes {
                InterfaceState::Down => self.down(host, iface, Link::NO_CARRIER),
                InterfaceState::OutOfRange => self.down(host, iface, Link::OUT_OF_RANGE),
                InterfaceState::In(cell) => self.up(host, iface, Some(cell)),
                InterfaceState::Up => self.up(host, iface, None),
                InterfaceState::Mtu(mtu) => self.set_mtu(host, iface, mtu),
            }
        }
    }

    /// Sets the MTU of an interface. The host is notified immediately, unless the interface is a radio that tunes, or
    /// its link is cut. Then the host is notified when the interface next comes up.
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

    /// Returns the input if the host runs. An input of a stopped host is stored until the host continues. An input of a
    /// crashed host is lost.
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

    /// Returns the frames that wait for stopped hosts, each with its sender and the sender's interface.
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
