//! The world: hosts, links, and the queue of events.

mod order;

use crate::host::{Host, HostSpec};
use crate::queue::{FutureEvent, Queue};
use crate::store::{StoreFault, Stores};
use link::{Arrived, Fabric, Flight, Landing, Offer, PortId, SAMPLING, Ticket, Tune, Tuning};
use node::stream::{OwnedStreamEvent, refusal};
use node::{Act, Boot, Command, CommandId, Input, Link, Outbox, RoleId, StreamOp};
use order::{Orders, Waiting};
use stack::{Output, Stack};
use std::collections::BTreeMap;
use trace::{Fingerprint, Fingerprinter, HostId, Record, What, Witness};
use wire::ipv4;
use wire::{Cell, Duration, Iface, Instant, Mac, Packet, PacketId, Reason};

pub use order::{HostEvent, Order, reason};

/// What a run returns: its records, its fingerprint, and the reason if it ended early.
#[derive(Debug)]
pub struct Run<W = Vec<Record>> {
    /// The records in order, or the witness that received them.
    pub records: W,
    /// The fingerprint of the run.
    pub fingerprint: Fingerprint,
    /// The number of events that the queue of the run returned.
    pub events: u64,
    /// The largest number of effects and acts that waited to be executed at one time.
    pub largest_outbox: usize,
    /// The host whose endless work ended the run; `None` if there was no such host.
    pub stopped: Option<Stopped>,
    /// When the run ended because the witness was full; `None` if it was not.
    pub full: Option<Instant>,
}

/// A reason why a run ended early: a host kept causing work for itself at one instant of virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// The instant of the run, in virtual time, that did not end, because the host caused more and more work at it.
    pub at: Instant,
    /// The host that kept causing work for itself.
    pub host: HostId,
    /// The role that did not come to rest; `node` if it was the node itself.
    pub role: &'static str,
}

/// The largest number of consecutive time-outs of one host at one instant, and of rounds of stream events in one step.
/// A host that exceeds it is in an endless loop.
const STEPS_AT_ONCE: u32 = 100_000;

/// A simulated network in virtual time: its hosts, its links, and the queue of future events.
#[derive(Debug)]
pub struct World<W = Vec<Record>> {
    pub(crate) now: Instant,
    pub(crate) queue: Queue,
    pub(crate) hosts: Vec<Host>,
    /// The host and interface of each port, by the number of the port.
    ports: Vec<Option<(HostId, Iface)>>,
    pub(crate) fabric: Fabric,
    /// Frames that wait for a channel of the fabric, each with its sender's port.
    waiting: BTreeMap<Ticket, (PortId, Packet)>,
    /// The time of the next scheduled `Grant` event; [`Instant::NEVER`] if there is none.
    grant_due: Instant,
    witness: W,
    fingerprint: Fingerprinter,
    /// The node's output of this step that is not executed yet.
    out: Outbox,
    /// The stack's output of this step. Stream events for roles stay here until the acts before them are executed.
    output: Output,
    /// An allocation that is reused for stream events.
    stream_events: Vec<OwnedStreamEvent>,
    pub(crate) stores: Stores,
    pub(crate) orders: Orders,
    last_packet: u64,
    last_command: u32,
    events: u64,
    /// The host and the instant of the last time-out, and the number of consecutive time-outs before it at that host
    /// and instant.
    timeouts: (HostId, Instant, u32),
    stopped: Option<Stopped>,
}

impl World {
    /// Returns a world at time zero that records its whole run in memory.
    pub fn new(fabric: Fabric, hosts: impl IntoIterator<Item = HostSpec>) -> Self {
        Self::watched(fabric, hosts, Vec::new())
    }
}

impl<W: Witness> World<W> {
    /// Returns a world whose run reports to a witness. Hosts are taken one by one, so that a million of them are not in
    /// memory twice.
    pub fn watched(fabric: Fabric, hosts: impl IntoIterator<Item = HostSpec>, witness: W) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            queue: Queue::default(),
            hosts: Vec::new(),
            ports: Vec::new(),
            fabric,
            waiting: BTreeMap::new(),
            grant_due: Instant::NEVER,
            witness,
            fingerprint: Fingerprinter::default(),
            out: Outbox::default(),
            output: Output::default(),
            stream_events: Vec::new(),
            stores: Stores::default(),
            orders: Orders::default(),
            last_packet: 0,
            last_command: 0,
            events: 0,
            timeouts: (HostId(0), Instant::ZERO, 0),
            stopped: None,
        };
        let hosts = hosts.into_iter();
        world.hosts.reserve_exact(hosts.size_hint().0);
        for (id, spec) in (0..).map(HostId).zip(hosts) {
            for (iface, interface) in (1..).map(Iface).zip(&spec.interfaces) {
                world.plug(interface.port, id, iface);
            }
            world.hosts.push(Host::new(spec));
        }
        world.hosts.shrink_to_fit();
        world.ports.shrink_to_fit();
        world.fabric.shrink_to_fit();
        world
    }

    fn plug(&mut self, port: PortId, host: HostId, iface: Iface) {
        let index = port.0 as usize;
        if index >= self.ports.len() {
            self.ports.resize(index + 1, None);
        }
        if let Some(place) = self.ports.get_mut(index) {
            *place = Some((host, iface));
        }
    }

    pub(crate) fn owner(&self, port: PortId) -> Option<(HostId, Iface)> {
        self.ports.get(port.0 as usize).copied().flatten()
    }

    /// Schedules an operator's command for a host at `at`.
    pub fn command(&mut self, at: Instant, host: HostId, command: Command) {
        self.schedule(at, FutureEvent::Command(host, command));
    }

    /// Injects a fault into the disk of `host`. The requests of its roles to store a record then fail: all of them, or
    /// those that `fault` selects.
    pub fn fail_stores(&mut self, host: HostId, fault: StoreFault) {
        self.stores.fail(host, fault);
    }

    /// Sets the duration of each sync of a host's disk. Without this call, a sync takes no time.
    pub fn slow_stores(&mut self, host: HostId, latency: Duration) {
        self.stores.slow_down(host, latency);
    }

    /// Runs until `end`, or until the run must end early. Then records the packets that are still held.
    pub fn run(mut self, end: Instant) -> Run<W> {
        self.start();
        self.witness.settled();
        while self.stopped.is_none()
            && !self.witness.is_full()
            && let Some((at, event)) = self.queue.next(end)
        {
            assert!(at >= self.now, "the next event is in the past");
            self.now = at;
            self.events += 1;
            self.fingerprint.add(&(at, &event));
            self.happen(event);
            self.witness.settled();
        }
        let full = self.witness.is_full().then_some(self.now);
        self.now = full.or(self.stopped.map(|stopped| stopped.at)).unwrap_or(end);
        self.take_stock();
        Run {
            records: self.witness,
            fingerprint: self.fingerprint.fingerprint(),
            events: self.events,
            largest_outbox: self.out.peak(),
            stopped: self.stopped,
            full,
        }
    }

    /// Starts every node, brings up the interfaces that need no tuning, and schedules the first samples of signals.
    fn start(&mut self) {
        let hosts = (0..self.hosts.len() as u32).map(HostId);
        for id in hosts.clone() {
            let boot = Boot::new(self.host(id).wall_at_zero(self.now));
            self.give(id, Input::Start(&boot));
        }
        for id in hosts {
            self.bring_up(id);
        }
        for id in (0..self.hosts.len() as u32).map(HostId) {
            self.schedule_drift(id);
        }
        let sampled: Vec<(PortId, Instant)> = self.fabric.sampled().collect();
        for (port, first) in sampled {
            self.schedule(first, FutureEvent::Sample(port));
        }
    }

    /// Brings up a host's interfaces that need no tuning, except those at a link that is cut.
    pub(crate) fn bring_up(&mut self, id: HostId) {
        for iface in (1..=self.host(id).interfaces.len() as u16).map(Iface) {
            let interface = self.host(id).interface(iface).filter(|interface| !interface.tunes);
            if interface.is_some_and(|interface| !self.fabric.is_cut(interface.port)) {
                self.up(id, iface, None);
            }
        }
    }

    /// Handles an event. All acts of earlier events must have been executed, and their packets passed on. Otherwise
    /// they would be executed for the wrong host.
    pub(crate) fn happen(&mut self, event: FutureEvent) {
        let is_done = self.out.first_act().is_none() && self.output.is_empty();
        assert!(is_done || self.stopped.is_some(), "an earlier event has results that were not executed");
        match event {
            FutureEvent::Due(host) => self.due(host),
            FutureEvent::Land(flight, packet) => self.land(&flight, packet),
            FutureEvent::Tuned(tuning) => self.tuned(&tuning),
            FutureEvent::Ordered(number) => self.ordered(number),
            FutureEvent::Command(host, _) | FutureEvent::Synced(host) if !self.orders.runs(host) => {
                let _ = self.admit(host, Waiting::Event(event));
            }
            FutureEvent::Command(host, command) => {
                self.last_command += 1;
                self.give(host, Input::Command(CommandId(self.last_command), &command));
            }
            FutureEvent::Synced(host) if self.stores.ends(self.now, host) => {
                self.synced(host);
                self.settle(host);
            }
            FutureEvent::Synced(_) => {}
            FutureEvent::Sample(port) => self.sample(port),
            FutureEvent::Grant => self.grant(),
            FutureEvent::Drift(host) => self.drift(host),
        }
    }

    /// Handles an alarm. Ignores an alarm that was replaced by an alarm for an earlier time.
    fn due(&mut self, host: HostId) {
        if self.host(host).due != self.now || !self.orders.runs(host) {
            return;
        }
        self.host_mut(host).due = Instant::NEVER;
        let (last, at, count) = self.timeouts;
        let again = if (last, at) == (host, self.now) { count + 1 } else { 0 };
        self.timeouts = (host, self.now, again);
        if again > STEPS_AT_ONCE {
            let role = self.host(host).node.overdue(self.now);
            return self.stop(host, role);
        }
        self.give(host, Input::Timeout);
        if self.host(host).stack.deadline().is_some_and(|due| due <= self.now) {
            self.with_stack(host, Stack::timeout);
            self.settle(host);
        }
    }

    fn land(&mut self, flight: &Flight, packet: Packet) {
        assert_eq!(flight.lands, self.now, "a frame landed at another time than its last bit: {flight:?}");
        if let Some(port) = flight.far_end().filter(|_| self.fabric.is_whole(flight)) {
            return self.arrive(port, flight, packet);
        }
        match self.fabric.land(flight, packet.link.dst) {
            Landing::Lost(reason) => self.lost(flight.from, packet.id, reason),
            Landing::At(mut ports) => {
                let last = ports.pop();
                for port in ports {
                    self.arrive(port, flight, packet.clone());
                }
                if let Some(last) = last {
                    self.arrive(last, flight, packet);
                }
            }
        }
    }

    fn arrive(&mut self, port: PortId, flight: &Flight, packet: Packet) {
        let Some((host, iface)) = self.owner(port) else { return };
        if !self.orders.runs(host) {
            let Some((sender, from)) = self.owner(flight.from) else { return };
            for _ in 0..flight.copies {
                let _ = self.admit(host, Waiting::Frame(sender, from, iface, packet.clone()));
            }
            return;
        }
        for _ in 1..flight.copies {
            self.receive(host, iface, packet.clone());
        }
        self.receive(host, iface, packet);
    }

    pub(crate) fn receive(&mut self, host: HostId, iface: Iface, packet: Packet) {
        self.witness.received(self.now, host, iface, &packet);
        self.step(host, |host, now, out| host.node.receive(now, iface, packet, out));
    }

    fn tuned(&mut self, tuning: &Tuning) {
        let Some((host, iface)) = self.owner(tuning.port) else { return };
        match self.fabric.arrive(tuning) {
            Arrived::Here => {}
            Arrived::Elsewhere => return,
            Arrived::OutOfRange => return self.down(host, iface, Link::OUT_OF_RANGE),
            Arrived::NoCarrier => return self.down(host, iface, Link::NO_CARRIER),
        }
        self.up(host, iface, Some(tuning.cell));
    }

    /// Reports to a host which cells one of its radios hears, and whether the radio has lost the cell to which it is
    /// tuned, or has moved to another cell of its channel.
    fn sample(&mut self, port: PortId) {
        let Some((host, iface)) = self.owner(port) else { return };
        let sample = self.fabric.sample(self.now, port);
        self.set_grant();
        self.hear(host, iface, sample.heard);
        if sample.is_lost {
            self.down(host, iface, Link::OUT_OF_RANGE);
        }
        if let Some(cell) = sample.moved_to {
            self.up(host, iface, Some(cell));
        }
        self.schedule(self.now + SAMPLING, FutureEvent::Sample(port));
    }

    pub(crate) fn hear(&mut self, host: HostId, iface: Iface, heard: Vec<(Cell, i16)>) {
        if heard.is_empty() {
            return;
        }
        let Some(Waiting::Heard(iface, heard)) = self.admit(host, Waiting::Heard(iface, heard)) else {
            return;
        };
        for (cell, strength) in heard {
            self.give(host, Input::Link(iface, Link::Heard(cell, strength)));
        }
    }

    pub(crate) fn down(&mut self, host: HostId, iface: Iface, why: &'static str) {
        if self.admit(host, Waiting::Down(iface, why)).is_some() {
            self.record(host, What::Down(iface, why.into()));
            self.give(host, Input::Link(iface, Link::Down(why)));
        }
    }

    /// Brings up an interface; `cell` is the cell of a radio that tunes.
    pub(crate) fn up(&mut self, host: HostId, iface: Iface, cell: Option<Cell>) {
        if self.admit(host, Waiting::Up(iface, cell)).is_none() {
            return;
        }
        let Some(interface) = self.host(host).interface(iface).cloned() else { return };
        let (mac, mtu, name) = (interface.mac, interface.mtu, interface.name.as_ref());
        self.record(host, What::Up(iface, cell));
        self.give(host, Input::Link(iface, Link::Up { cell, mac, mtu, name }));
    }

    pub(crate) fn give(&mut self, host: HostId, input: Input<'_>) {
        self.fingerprint.add(&(host, &input));
        self.step(host, |host, now, out| host.node.handle(now, input, out));
    }

    /// Executes one step of a node, and all acts that follow from it at the same instant.
    fn step(&mut self, host: HostId, input: impl FnOnce(&mut Host, Instant, &mut Outbox)) {
        input(&mut self.hosts[host.index()], self.now, &mut self.out);
        self.settle(host);
    }

    /// Executes acts and delivers stream events until there are none or the run is stopped. Sets the host's alarm.
    pub(crate) fn settle(&mut self, host: HostId) {
        self.carry_out(host);
        let mut rounds = 0;
        while !self.output.events.is_empty() {
            rounds += 1;
            if rounds > STEPS_AT_ONCE {
                self.stop(host, None);
            }
            self.stop_runaway(host);
            if self.stopped.is_some() {
                return self.output.events.clear();
            }
            let mut all = std::mem::replace(&mut self.output.events, std::mem::take(&mut self.stream_events));
            for event in all.drain(..) {
                self.deliver(host, &event);
                if let OwnedStreamEvent::Data(_, _, bytes) = event {
                    self.output.buffers.give(bytes);
                }
            }
            self.stream_events = all;
        }
        self.stop_runaway(host);
        self.set_alarm(host);
    }

    /// Ends the run if a role of this host did not come to rest.
    fn stop_runaway(&mut self, host: HostId) {
        if let Some(role) = self.out.take_runaway() {
            self.stop(host, Some(role));
        }
    }

    #[cold]
    fn stop(&mut self, host: HostId, role: Option<RoleId>) {
        let role = self.host(host).node.role_name(role.unwrap_or(RoleId::NODE));
        self.stopped.get_or_insert(Stopped { at: self.now, host, role });
    }

    /// Delivers a stream event to the role that uses the stream, and executes the acts of the role.
    fn deliver(&mut self, host: HostId, event: &OwnedStreamEvent) {
        if let Some(delivered) = What::delivered(event, &self.host(host).node) {
            self.record(host, delivered);
        }
        self.fingerprint.add(&(host, event));
        let (id, event) = event.event();
        self.hosts[host.index()].node.handle(self.now, Input::Stream(id, event), &mut self.out);
        self.carry_out(host);
    }

    /// Executes all acts, and makes records durable: immediately, or after the disk's latency.
    fn carry_out(&mut self, host: HostId) {
        self.carry_out_acts(host);
        while let Some(latency) = self.stores.begin(self.now, host) {
            if latency > Duration::ZERO {
                return self.schedule(self.now + latency, FutureEvent::Synced(host));
            }
            self.synced(host);
            self.carry_out_acts(host);
        }
    }

    /// Executes all acts. An act is large and copies are slow. So each act is added to the fingerprint in place, and
    /// then moved once.
    fn carry_out_acts(&mut self, host: HostId) {
        while let Some((role, act)) = self.out.first_act() {
            fold(&mut self.fingerprint, host, role, act);
            if let Some((_, act)) = self.out.next_act() {
                self.perform(host, act);
            }
        }
    }

    #[inline(never)] // an act is large, and not copied
    fn perform(&mut self, host: HostId, act: Act) {
        match act {
            Act::Transmit(iface, packet) => self.transmit(host, iface, packet),
            Act::Drop(iface, packet, reason) => {
                self.record(host, What::Dropped(iface, packet.id, reason.0.into()));
            }
            Act::Tune(iface, cell) => self.tune(host, iface, cell),
            Act::SendInCell(iface, cell, packet) => self.visit(host, iface, cell, packet),
            Act::Stream(id, op) if !self.may_bind(host, &op) => {
                self.output.events.push(OwnedStreamEvent::Closed(id, Some(refusal::NOT_OURS.to_owned())));
            }
            Act::Stream(id, op) => {
                if let Some(asked) = What::asked(id, &op, &self.host(host).node) {
                    self.record(host, asked);
                }
                self.with_stack(host, |stack, now, output| stack.operate(now, id, op, output));
            }
            Act::Mark(mark) => self.record(host, What::Marked(mark)),
            Act::Answer(_, answer) => self.record(host, What::Answered(answer)),
            Act::Store(key, value) => self.stores.ask(host, key, value),
            Act::Delivered(event) => self.record(host, What::App(event)),
            // In the simulator only the node has a table, answers ARP and has addresses. There are no outside programs
            // that could ask for streams.
            Act::Route(..)
            | Act::IngressPolicy(..)
            | Act::Neighbor(..)
            | Act::Address(..)
            | Act::Served(_) => {}
        }
    }

    /// Returns whether an operation may use its local address: the operation names no address or is `foreign`, or the
    /// address is unspecified or an address of the host.
    fn may_bind(&self, host: HostId, op: &StreamOp) -> bool {
        let (StreamOp::Open { local: Some(local), foreign: false, .. }
        | StreamOp::Listen { local, foreign: false, .. }) = op
        else {
            return true;
        };
        local.ip().is_unspecified() || self.host(host).node.has_address(*local.ip())
    }

    /// Calls the host's stack, records its losses and marks, and passes its packets to the node. Stream events for
    /// roles stay in `output`.
    fn with_stack(&mut self, host: HostId, work: impl FnOnce(&mut Stack, Instant, &mut Output)) {
        work(&mut self.hosts[host.index()].stack, self.now, &mut self.output);
        if !self.output.lost.is_empty() || !self.output.marks.is_empty() {
            self.note_down(host);
        }
        if !self.output.packets.is_empty() {
            let mut packets = std::mem::take(&mut self.output.packets);
            for bytes in packets.drain(..) {
                self.originate(host, bytes);
            }
            self.output.packets = packets; // reuses the allocation
        }
    }

    /// Records the packets that ended in the stack, and its marks.
    fn note_down(&mut self, host: HostId) {
        for (packet, reason) in self.output.lost.drain(..) {
            self.witness.happened(self.now, host, What::Lost(Iface::HOST, packet, reason.0.into()));
        }
        for mark in self.output.marks.drain(..) {
            self.witness.happened(self.now, host, What::Marked(mark));
        }
    }

    /// Ends a sync. The node releases effects that waited for durable records, and withdraws effects that waited for
    /// failed records.
    pub(crate) fn synced(&mut self, host: HostId) {
        let (durable, failed) = self.stores.end(host);
        self.fingerprint.add(&(host, durable, failed));
        self.hosts[host.index()].node.resume(self.now, durable, &mut self.out);
        if let Some(why) = failed {
            self.carry_out_acts(host);
            self.stores.give_up(host);
            self.hosts[host.index()].node.withdraw(self.now, why, &mut self.out);
        }
    }

    /// Passes a datagram of the host's own stack to its node.
    fn originate(&mut self, host: HostId, bytes: Vec<u8>) {
        let mut packet = Packet::new(Mac::ZERO, bytes);
        self.identify(&mut packet);
        // TCP segments are not recorded as sent by the application, which writes bytes.
        if ipv4::protocol(&packet.bytes) == Some(ipv4::UDP) {
            self.record(host, What::AppSent(packet.id));
        }
        self.witness.received(self.now, host, Iface::HOST, &packet);
        self.hosts[host.index()].node.receive(self.now, Iface::HOST, packet, &mut self.out);
    }

    fn transmit(&mut self, host: HostId, iface: Iface, mut packet: Packet) {
        self.identify(&mut packet);
        self.witness.sent(self.now, host, iface, &packet);
        if iface == Iface::HOST {
            return self.with_stack(host, |stack, now, output| {
                stack.receive(now, packet.id, &packet.bytes, output);
                output.buffers.give(packet.bytes);
            });
        }
        let Some(port) = self.host(host).interface(iface).map(|interface| interface.port) else {
            return self.record(host, What::Lost(iface, packet.id, link::reason::NO_CARRIER.0.into()));
        };
        match self.fabric.offer_to(self.now, port, packet.link.dst, packet.bytes.len()) {
            Ok(Offer::Flies(flight)) => self.fly(flight, packet),
            Ok(Offer::Waits(ticket)) => self.wait(ticket, port, packet),
            Err(reason) => self.lost(port, packet.id, reason),
        }
    }

    fn fly(&mut self, mut flight: Flight, packet: Packet) {
        if flight.copies > 1 {
            self.witness.doubled(packet.id, flight.copies - 1);
            let (first, later) = self.fabric.split(flight);
            flight = first;
            if let Some(later) = later {
                self.schedule(later.lands, FutureEvent::Land(later, packet.clone()));
            }
        }
        self.schedule(flight.lands, FutureEvent::Land(flight, packet));
    }

    fn wait(&mut self, ticket: Ticket, port: PortId, packet: Packet) {
        self.waiting.insert(ticket, (port, packet));
        self.set_grant();
    }

    /// Executes the decisions on channels that are free now, and schedules the tuning of radios that have left a cell.
    fn grant(&mut self) {
        if self.grant_due != self.now {
            return; // stale: an earlier grant replaced it
        }
        self.grant_due = Instant::NEVER;
        for decision in self.fabric.decide(self.now) {
            let waited = self.waiting.remove(&decision.ticket);
            assert!(waited.is_some(), "no frame waits with this ticket: {decision:?}");
            let Some((port, packet)) = waited else { continue };
            match decision.fate {
                Ok(flight) => self.fly(flight, packet),
                Err(reason) => self.lost(port, packet.id, reason),
            }
        }
        for tuning in self.fabric.left() {
            self.schedule(tuning.ready, FutureEvent::Tuned(tuning));
            if let Some((host, iface)) = self.owner(tuning.port).filter(|_| tuning.unplugs) {
                self.down(host, iface, Link::UNPLUGGED);
            }
        }
        self.set_grant();
    }

    pub(crate) fn set_grant(&mut self) {
        if let Some(at) = self.fabric.next_decision().map(|at| at.max(self.now))
            && at < self.grant_due
        {
            self.grant_due = at;
            self.schedule(at, FutureEvent::Grant);
        }
    }

    fn tune(&mut self, host: HostId, iface: Iface, cell: Cell) {
        self.record(host, What::Tuned(iface, cell));
        let port = self.host(host).interface(iface).map(|interface| interface.port);
        let tuning = port.and_then(|port| self.fabric.tune(self.now, port, cell));
        self.set_grant(); // frames that waited at the radio may be lost or sent first
        match tuning {
            Some(Tune::Leaves(tuning)) => {
                self.schedule(tuning.ready, FutureEvent::Tuned(tuning));
                if tuning.unplugs {
                    self.answer_tune(host, iface, Link::UNPLUGGED);
                }
            }
            Some(Tune::Drains) => {}
            None => self.answer_tune(host, iface, Link::UNSUPPORTED),
        }
    }

    /// Reports to the node that it tuned a radio to no cell, or unplugged a cable. The node gets the report when the
    /// step with its request has ended, as from a daemon.
    fn answer_tune(&mut self, host: HostId, iface: Iface, why: &'static str) {
        self.record(host, What::Down(iface, why.into()));
        let others = std::mem::take(&mut self.out); // acts after the request are executed after the answer
        let answer = Input::Link(iface, Link::Down(why));
        self.fingerprint.add(&(host, &answer));
        self.hosts[host.index()].node.handle(self.now, answer, &mut self.out);
        self.carry_out_acts(host);
        self.stop_runaway(host);
        self.out = others;
    }

    fn visit(&mut self, host: HostId, iface: Iface, cell: Cell, mut packet: Packet) {
        self.identify(&mut packet);
        let Some(interface) = self.host(host).interface(iface).cloned() else { return };
        packet.link.src = interface.mac;
        self.record(host, What::Visited(iface, cell));
        self.witness.sent(self.now, host, iface, &packet);
        match self.fabric.visit(self.now, interface.port, cell, packet.bytes.len()) {
            Ok(Offer::Flies(flight)) => self.fly(flight, packet),
            Ok(Offer::Waits(ticket)) => self.wait(ticket, interface.port, packet),
            Err(reason) => self.lost(interface.port, packet.id, reason),
        }
    }

    fn lost(&mut self, port: PortId, packet: PacketId, reason: Reason) {
        if let Some((host, iface)) = self.owner(port) {
            self.record(host, What::Lost(iface, packet, reason.0.into()));
        }
    }

    fn identify(&mut self, packet: &mut Packet) {
        if packet.id == PacketId::NEW {
            self.last_packet += 1;
            packet.id = PacketId(self.last_packet);
        }
    }

    fn take_stock(&mut self) {
        let mut held: Vec<(HostId, Option<Iface>, PacketId)> = Vec::new();
        for (id, host) in (0..).map(HostId).zip(&self.hosts).filter(|(id, _)| !self.orders.crashed(*id)) {
            host.node.holds(&mut |packet| held.push((id, None, packet)));
            host.stack.holds(&mut |packet| held.push((id, Some(Iface::HOST), packet)));
        }
        for event in self.queue.waiting() {
            if let FutureEvent::Land(flight, packet) = event
                && let Some((host, iface)) = self.owner(flight.from)
            {
                held.extend((0..flight.copies).map(|_| (host, Some(iface), packet.id)));
            }
        }
        held.extend(self.waiting_frames());
        for (port, packet) in self.waiting.values() {
            held.extend(self.owner(*port).map(|(host, iface)| (host, Some(iface), packet.id)));
        }
        for (host, iface, packet) in held {
            self.record(host, What::Held(iface, packet));
        }
    }

    pub(crate) fn set_alarm(&mut self, id: HostId) {
        let now = self.now;
        let host = self.host_mut(id);
        let Some(deadline) = host.deadline().map(|deadline| deadline.max(now)) else { return };
        // An alarm before the deadline has no effect. An alarm after the deadline would be an error.
        if deadline < host.due {
            host.due = deadline;
            self.schedule(deadline, FutureEvent::Due(id));
        }
    }

    /// Schedules an event.
    ///
    /// # Panics
    ///
    /// The event is earlier than now, or its host, port or order does not exist.
    pub(crate) fn schedule(&mut self, at: Instant, event: FutureEvent) {
        assert!(at >= self.now, "an event is in the past: {at}, and now it is {}", self.now);
        assert!(self.has_place(&event), "an event is for no known host, port or order: {event:?}");
        self.queue.schedule(at, event);
    }

    /// Returns whether the host, the port or the order of an event exists.
    fn has_place(&self, event: &FutureEvent) -> bool {
        match event {
            FutureEvent::Due(host)
            | FutureEvent::Command(host, _)
            | FutureEvent::Synced(host)
            | FutureEvent::Drift(host) => host.index() < self.hosts.len(),
            FutureEvent::Land(Flight { from: port, .. }, _)
            | FutureEvent::Tuned(Tuning { port, .. })
            | FutureEvent::Sample(port) => self.owner(*port).is_some(),
            FutureEvent::Grant => true,
            FutureEvent::Ordered(number) => self.orders.has(*number),
        }
    }

    pub(crate) fn record(&mut self, host: HostId, what: What) {
        self.witness.happened(self.now, host, what);
    }

    pub(crate) fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.index()]
    }

    pub(crate) fn host_mut(&mut self, id: HostId) -> &mut Host {
        &mut self.hosts[id.index()]
    }
}

/// The 64-bit word of a packet to the host's own stack in a fingerprint. The words of any other act begin with the
/// number of the kind of act. No kind has this number.
const TO_OWN_STACK: u64 = u64::MAX;

/// Adds an act to the fingerprint, with the bytes of its packet. Of a packet to the host's own stack, only the id and
/// the length are added.
fn fold(fingerprint: &mut Fingerprinter, host: HostId, role: RoleId, act: &Act) {
    if let Act::Transmit(Iface::HOST, packet) = act {
        fingerprint.add(&(host, role, TO_OWN_STACK, (packet.id, packet.bytes.len())));
    } else {
        fingerprint.add(&(host, role, act));
    }
}

#[cfg(test)]
mod tests;
