//! A node with a data path beside it decides like a node alone.
//!
//! Random steps go to two nodes with the same roles. The first node is alone: it receives every packet. The second node
//! has a mirror, and packets go to its twin ([`twin::Twin`]). The twin has maps of bytes, which change only by the
//! mirror's acts and the uses of routes. After each step, both nodes and the twin must decide alike on many packets.
//! The roles of both nodes must have been notified of the same ends of lifetimes.
//!
//! Each [`Defect`] is a mistake of a driver or a data path. The comparison must find each of these mistakes.

#![cfg(test)]

mod steps;
mod twin;

use node::{
    Action, Boot, FailedAct, Fault, Input, Link, MirrorAct, NextHop, Node, Outbox, Role, RoleId, Route,
    RouteKey, Value,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use steps::{Arrival, Choices, IFACES, ROLES, Request, Step};
use table::{Disposition, Verdict, decide, decide_opened};
use twin::Twin;
use wire::ipv4::Header;
use wire::{
    EtherType, Frame, Iface, Instant, InterfaceAddress, Ipv4Addr, Mac, Packet, PacketId, Rng, WallTime,
};

const STEPS: usize = 3000;
const SEEDS: u64 = 8;
/// The number of random packets on which both nodes and the twin must decide alike, after each step.
const PACKETS: usize = 12;

/// A mistake of the driver or of the data path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Defect {
    /// The driver does not remove a route from the data path when its lifetime ends.
    Expiry,
    /// The driver does not set the routes to the links of interfaces.
    Connected,
    /// The driver does not set the routes of the operator.
    Operator,
    /// The driver does not remove a route that a role removed.
    Removal,
    /// The driver does not remove a policy that a role removed.
    Policy,
    /// The driver does not pass on the addresses of the host.
    Address,
    /// The driver does not pass on the MTUs of the interfaces.
    Mtu,
    /// The data path does not record uses.
    Use,
    /// The driver does not ask for uses before a time-out.
    Ask,
    /// The driver does not report the first use of an idle route.
    Report,
    /// The data path does not give the node the packets of which roles must be notified.
    Notice,
}

const DEFECTS: [Defect; 11] = [
    Defect::Expiry,
    Defect::Connected,
    Defect::Operator,
    Defect::Removal,
    Defect::Policy,
    Defect::Address,
    Defect::Mtu,
    Defect::Use,
    Defect::Ask,
    Defect::Report,
    Defect::Notice,
];

/// A role that makes requests when it is called, and notes which lifetimes ended.
#[derive(Debug, Default)]
struct Puppet {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: VecDeque<Request>,
    ended: Vec<(RouteKey, Instant)>,
    /// The time, source and destination of each packet of which the role was notified.
    noticed: Vec<(Instant, Ipv4Addr, Ipv4Addr)>,
}

impl Role for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        let mut shared = self.shared.lock().unwrap();
        match input {
            Input::Idle(key, used) => {
                shared.ended.push((key, used));
                match key.dst.address().octets()[3] {
                    1 => out.route(key, None),
                    2 => out.route(key, Route::new(Action::Host, node::Lifetime::Permanent)),
                    _ => {}
                }
            }
            Input::Notice(rx) => shared.noticed.push((now, rx.header.src, rx.header.dst)),
            Input::Packet(rx, packet) => out.discard(rx.iface, packet, node::reason::CONSUMED),
            _ => {
                for request in shared.requests.drain(..) {
                    match request {
                        Request::Route(key, route) => out.route(key, route),
                        Request::Policy(port, policy) => out.ingress_policy(port, policy),
                        Request::Address(iface, address, true) => out.add_address(iface, address),
                        Request::Address(iface, address, false) => out.remove_address(iface, address),
                    }
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn status(&self) -> Value {
        Value::None
    }
}

/// A node, its roles, and its outbox.
struct Side {
    node: Node,
    roles: Vec<Arc<Mutex<Shared>>>,
    out: Outbox,
}

impl Side {
    fn new() -> Self {
        let roles: Vec<Arc<Mutex<Shared>>> = (0..ROLES).map(|_| Arc::default()).collect();
        let puppet =
            |shared: &Arc<Mutex<Shared>>| -> Box<dyn Role> { Box::new(Puppet { shared: shared.clone() }) };
        let node = Node::new(roles.iter().map(puppet).collect(), vec![Ipv4Addr::new(10, 0, 2, 4)]);
        let mut side = Self { node, roles, out: Outbox::default() };
        side.handle(Instant::ZERO, Input::Start(&Boot::default()));
        for iface in 1..=IFACES {
            side.link(Instant::ZERO, Iface(iface), Some(1500));
        }
        side
    }

    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.node.handle(now, input, &mut self.out);
        while self.out.next_act().is_some() {}
    }

    fn link(&mut self, now: Instant, iface: Iface, mtu: Option<u16>) {
        let link = match mtu {
            Some(mtu) => Link::Up { cell: None, mac: mac(iface), mtu, name: "any" },
            None => Link::Down("cut"),
        };
        self.handle(now, Input::Link(iface, link));
    }

    fn receive(&mut self, now: Instant, Arrival { port, packet }: Arrival) {
        let header = Header {
            ttl: packet.ttl,
            dont_fragment: packet.dont_fragment,
            ..Header::new(packet.protocol, packet.src, packet.dst)
        };
        let bytes = header.emit(&vec![0; packet.len - 20]);
        let src = port.from.unwrap_or(Mac::ZERO);
        let link = Frame { kind: EtherType::IPV4, src, dst: mac(port.iface) };
        self.node.receive(now, port.iface, Packet { link, id: PacketId(1), bytes }, &mut self.out);
        while self.out.next_act().is_some() {}
    }

    fn step(&mut self, now: Instant, step: &Step) {
        match *step {
            Step::Role(role, request) => {
                self.roles[role].lock().unwrap().requests.push_back(request);
                self.handle(now, Input::Wall(WallTime(0)));
            }
            Step::Operator(key, route) => self.node.set_route(now, key, route),
            Step::Added(iface, address) => self.node.add_address(now, iface, address),
            Step::Refused(iface, address) => self.refuse(now, iface, address),
            Step::Link(iface, mtu) => self.link(now, iface, mtu),
            Step::Time(_) | Step::Reload => {}
        }
    }

    fn refuse(&mut self, now: Instant, iface: Iface, address: InterfaceAddress) {
        let act = FailedAct::Address(iface, address, true);
        self.handle(now, Input::Failed(&Fault { role: RoleId(0), act, why: "no".into() }));
    }

    /// Returns the ends of lifetimes of which the roles were notified since the last call.
    fn ended(&self) -> Vec<(usize, RouteKey, Instant)> {
        let of = |(role, shared): (usize, &Arc<Mutex<Shared>>)| {
            let ended = std::mem::take(&mut shared.lock().unwrap().ended);
            ended.into_iter().map(move |(key, used)| (role, key, used)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.roles.iter().enumerate().flat_map(of).collect();
        all.sort();
        all
    }

    /// Returns the packets of which the roles were notified since the last call.
    fn noticed(&self) -> Vec<Vec<(Instant, Ipv4Addr, Ipv4Addr)>> {
        self.roles.iter().map(|shared| std::mem::take(&mut shared.lock().unwrap().noticed)).collect()
    }
}

fn mac(iface: Iface) -> Mac {
    Mac([2, 0, 0, 0, 9, iface.0 as u8])
}

/// The number of events of each kind in a run. The test requires a minimum of each kind.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    acts: usize,
    expired: usize,
    idle: usize,
    connected: usize,
    refreshed: usize,
    watched: usize,
    reports: usize,
    noticed: usize,
    given: usize,
    forwarded: usize,
    cut: usize,
    reloads: usize,
}

/// Two nodes, and the twin of the second.
struct Pair {
    alone: Side,
    beside: Side,
    twin: Twin,
    reads_clock: bool,
    now: Instant,
    choices: Choices,
    defect: Option<Defect>,
    counts: Counts,
}

impl Pair {
    fn new(seed: u64, reads_clock: bool, defect: Option<Defect>) -> Self {
        let mut pair = Self {
            alone: Side::new(),
            beside: Side::new(),
            twin: Twin::new(reads_clock),
            reads_clock,
            now: Instant::ZERO,
            choices: Choices(Rng::new(seed)),
            defect,
            counts: Counts::default(),
        };
        pair.beside.node.begin_mirror();
        pair
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// Executes random steps. Returns the counts, or the first difference as an error.
    fn run(mut self) -> Result<Counts, String> {
        self.mirror()?;
        for number in 0..STEPS {
            let step = self.choices.step(self.now);
            self.step(&step).map_err(|error| format!("step {number}, {step:?} at {}: {error}", self.now))?;
        }
        Ok(self.counts)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Time(span) => self.now += *span,
            Step::Reload => {
                self.counts.reloads += 1;
                self.ask_by(Instant::NEVER);
                self.twin = Twin::new(self.reads_clock);
                self.beside.node.begin_mirror();
            }
            _ => {}
        }
        self.alone.step(self.now, step);
        self.beside.step(self.now, step);
        self.mirror()?;
        self.time_out()?;
        self.compare()
    }

    /// Gives both nodes the time-outs that are due. A twin that reads the clock ends routes itself. With such a twin,
    /// the function does nothing in about one of three calls, as if the driver handled the time-outs later.
    fn time_out(&mut self) -> Result<(), String> {
        if self.reads_clock && self.choices.below(3) == 0 {
            return Ok(());
        }
        let is_due = |side: &Side, now| side.node.deadline().is_some_and(|due| due <= now);
        while is_due(&self.alone, self.now) || is_due(&self.beside, self.now) {
            self.ask();
            self.alone.handle(self.now, Input::Timeout);
            self.beside.handle(self.now, Input::Timeout);
            self.mirror()?;
        }
        let (alone, beside) = (self.alone.ended(), self.beside.ended());
        self.counts.idle += alone.len();
        if alone == beside { Ok(()) } else { Err(format!("ended: {alone:?} alone, {beside:?} beside")) }
    }

    /// Asks the twin for uses, as a driver does before a time-out.
    fn ask(&mut self) {
        self.ask_by(self.now);
    }

    fn ask_by(&mut self, by: Instant) {
        if !self.has(Defect::Ask) {
            let twin = &self.twin;
            self.beside.node.ask_uses(by, &mut |key| twin.last_use(key));
        }
    }

    /// Passes the acts of the mirror to the twin, except those that the driver's defect loses.
    fn mirror(&mut self) -> Result<(), String> {
        while let Some(act) = self.beside.node.next_mirror_act() {
            self.counts.acts += 1;
            if !self.loses(&act) {
                self.twin.apply(act)?;
            }
        }
        Ok(())
    }

    /// Counts an act by its kind. Returns whether the driver loses the act because of the defect under test.
    fn loses(&mut self, act: &MirrorAct) -> bool {
        let defect = match act {
            MirrorAct::Route(_, Some((found, _))) if found.owner == RoleId::NODE => {
                match found.route.action {
                    Action::Forward(hop) if hop.to == NextHop::OnLink => {
                        self.counts.connected += 1;
                        Defect::Connected
                    }
                    _ => Defect::Operator,
                }
            }
            MirrorAct::Route(key, None) => {
                let entry = self.twin.entry(key);
                if entry.is_some_and(|(found, used)| found.route.lifetime.has_expired(used, self.now)) {
                    self.counts.expired += 1;
                    Defect::Expiry
                } else {
                    Defect::Removal
                }
            }
            MirrorAct::IngressPolicy(_, None) => Defect::Policy,
            MirrorAct::Address(..) => Defect::Address,
            MirrorAct::Mtu(..) => Defect::Mtu,
            MirrorAct::Route(..) | MirrorAct::IngressPolicy(..) => return false,
        };
        self.has(defect)
    }

    /// Compares the decisions about random packets. Each packet then arrives at the first node and at the twin.
    fn compare(&mut self) -> Result<(), String> {
        for _ in 0..PACKETS {
            self.ask();
            let arrival = self.choices.arrival();
            let Arrival { port, packet } = arrival;
            let verdict = decide(&self.twin, self.now, port, &packet);
            let of = |node: &Node| decide(node, self.now, port, &packet);
            agree(&verdict, &of(&self.alone.node), &of(&self.beside.node))
                .map_err(|e| format!("{arrival:?}: {e}"))?;
            let class = self.choices.class();
            let opened = decide_opened(&self.twin, self.now, port, class, &packet);
            let of = |node: &Node| decide_opened(node, self.now, port, class, &packet);
            agree(&opened, &of(&self.alone.node), &of(&self.beside.node))
                .map_err(|error| format!("opened in {class:?}, {arrival:?}: {error}"))?;
            self.arrive(arrival, &verdict);
        }
        let (alone, beside) = (self.alone.noticed(), self.beside.noticed());
        self.counts.noticed += alone.iter().map(Vec::len).sum::<usize>();
        if alone == beside { Ok(()) } else { Err(format!("noticed: {alone:?} alone, {beside:?} beside")) }
    }

    /// Gives a packet to the first node, and to the twin. The twin forwards packets to link addresses, and drops
    /// packets. The second node receives all other packets, because it has the neighbor cache, the tunnels and the
    /// roles, and cuts packets.
    fn arrive(&mut self, arrival: Arrival, verdict: &Verdict) {
        self.counts.refreshed += usize::from(verdict.used[0].is_some());
        self.counts.watched += usize::from(verdict.used[1].is_some());
        if !self.has(Defect::Use) {
            for key in self.twin.record(self.now, verdict) {
                self.counts.reports += 1;
                if !self.has(Defect::Report) {
                    self.beside.node.used(key, self.now);
                }
            }
        }
        self.alone.receive(self.now, arrival);
        let is_for_node = match verdict.disposition {
            Disposition::Out(hop) => !matches!(hop.to, NextHop::Mac(_)),
            Disposition::Drop(_) => false,
            _ => true,
        };
        self.counts.cut += usize::from(verdict.cut.is_some());
        let is_noticed =
            self.twin.is_noticed(self.now, verdict, &arrival.packet) && !self.has(Defect::Notice);
        if is_noticed || is_for_node || verdict.icmp.is_some() || verdict.cut.is_some() {
            self.counts.given += 1;
            self.beside.receive(self.now, arrival);
        } else {
            self.counts.forwarded += 1;
        }
    }
}

/// Compares the verdict of the twin with those of both nodes. The twin has the numbers of entries of the second node.
/// The numbers of entries of the first node may differ, because lifetimes that end at one instant may end in another
/// order.
fn agree(twin: &Verdict, alone: &Verdict, beside: &Verdict) -> Result<(), String> {
    let mut expected = *alone;
    for (own, other) in expected.used.iter_mut().zip(twin.used) {
        *own = own.and(other).or(*own);
    }
    if *twin == expected && twin == beside {
        return Ok(());
    }
    Err(format!("the twin decides {twin:?}, its node {beside:?}, the node alone {alone:?}"))
}

fn run(seed: u64, defect: Option<Defect>) -> Result<Counts, String> {
    Pair::new(seed, seed.is_multiple_of(2), defect).run()
}

#[test]
fn a_twin_that_follows_the_acts_decides_like_a_node_alone() {
    for seed in 0..SEEDS {
        let counts = run(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        println!("seed {seed}: {counts:?}");
        let Counts {
            acts,
            expired,
            idle,
            connected,
            refreshed,
            watched,
            reports,
            noticed,
            given,
            forwarded,
            cut,
            reloads,
        } = counts;
        for (what, count, least) in [
            ("acts", acts, 500),
            ("expired", expired, 50),
            ("idle", idle, 50),
            ("connected", connected, 10),
            ("refreshed", refreshed, 100),
            ("watched", watched, 100),
            ("reports", reports, 1),
            ("noticed", noticed, 100),
            ("given", given, 500),
            ("forwarded", forwarded, 500),
            ("cut", cut, 100),
            ("reloads", reloads, 1),
        ] {
            assert!(count >= least, "seed {seed}: {what}: {count}, too few to prove anything");
        }
    }
}

#[test]
fn the_comparison_finds_each_defect() {
    for defect in DEFECTS {
        let found = (0..SEEDS).find_map(|seed| run(seed, Some(defect)).err());
        println!("{defect:?}: {found:?}");
        assert!(found.is_some(), "{defect:?} is not found");
    }
}
