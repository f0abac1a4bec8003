//! The program in the kernel does what its description says, on random rules and frames, byte for byte: it forwards what
//! [`data_path::covers`] describes, and passes everything else untouched. The kernel runs it with one frame at a time
//! (`BPF_PROG_TEST_RUN`), and no frame leaves.
//!
//! Each [`mutants::MUTANTS`] is a mistake in the program. The comparison must find each.

#![cfg(test)]

mod choices;
mod kernel;
mod mutants;

use choices::{Change, Choices, IFACES, OWN, mac};
use data_path::DataPath;
use data_path::covers::{Beside, Forwarded, forwarded};
use kernel::{LOOPBACK, PASS, REDIRECT, test_run};
use node::{
    Boot, Found, IngressPolicy, Input, Lifetime, Link, MirrorAct, Node, Outbox, Port, Role, RoleId, RouteKey,
    Rules, Value,
};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex};
use table::{Class, EntryId};
use wire::ipv4::{self, Header};
use wire::{Duration, EtherType, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Rng, WallTime, ethernet};

const STEPS: usize = 1500;
const FRAMES: usize = 24;
const SEEDS: u64 = 6;
/// The program may be this late, and then still sees the same lifetimes as the test.
const LATE: Duration = Duration::from_millis(40);
/// The slots are enough for all routes that the test can set.
const ROOM: usize = 4096 * 2048;

/// A role that makes the changes that it is given.
#[derive(Debug)]
struct Puppet(Arc<Mutex<VecDeque<Change>>>);

impl Role for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Input::Packet(rx, packet) = input {
            return out.discard(rx.iface, packet, node::reason::CONSUMED);
        }
        for change in self.0.lock().unwrap().drain(..) {
            match change {
                Change::Route(key, route) => out.route(key, route),
                Change::Policy(port, policy) => out.ingress_policy(port, policy),
                Change::Link(..) | Change::Time(_) => {}
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

/// How often each case came up.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    passed: usize,
    forwarded: usize,
    kept: usize,
    used: usize,
}

/// A node, and the data path beside it.
struct ComparedNode {
    node: Node,
    out: Outbox,
    changes: Arc<Mutex<VecDeque<Change>>>,
    path: DataPath,
    /// The routes in the mirror, by number: their keys, and the spans of those that report when they are idle.
    routes: BTreeMap<u32, (RouteKey, Lifetime)>,
    is_up: BTreeMap<Iface, bool>,
    now: Instant,
    choices: Choices,
    counts: Counts,
}

impl Rules for ComparedNode {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        Rules::ingress_policy(&self.node, port)
    }
    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        Rules::route(&self.node, now, class, src, dst)
    }
    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        Rules::reverse_path(&self.node, now, class, host)
    }
    fn is_own(&self, address: Ipv4Addr) -> bool {
        Rules::is_own(&self.node, address)
    }
    fn mtu(&self, iface: Iface) -> u16 {
        Rules::mtu(&self.node, iface)
    }
}

impl Beside for ComparedNode {
    fn mac(&self, iface: Iface) -> Option<Mac> {
        self.is_up.get(&iface).copied().unwrap_or(false).then(|| mac(iface))
    }
    fn is_idle(&self, entry: EntryId) -> bool {
        let (key, lifetime) = self.routes[&entry.0];
        let used = self.path.last_use(&key).unwrap();
        matches!(lifetime, Lifetime::ReportIdle(span) if used + span <= self.now)
    }
    fn has_ring(&self, _: EntryId) -> bool {
        true
    }
}

impl ComparedNode {
    fn new(seed: u64, path: DataPath) -> Self {
        let changes = Arc::<Mutex<VecDeque<Change>>>::default();
        let node = Node::new(vec![Box::new(Puppet(Arc::clone(&changes)))], OWN.to_vec());
        let mut world = Self {
            node,
            out: Outbox::default(),
            changes,
            path,
            routes: BTreeMap::new(),
            is_up: BTreeMap::new(),
            now: Instant::from_millis(10_000),
            choices: Choices(Rng::new(seed)),
            counts: Counts::default(),
        };
        world.node.begin_mirror();
        world.handle(Input::Start(&Boot::default()));
        for iface in (1..=IFACES).map(Iface) {
            world.change(Change::Link(iface, Some(1500)));
        }
        world
    }

    fn handle(&mut self, input: Input<'_>) {
        self.node.handle(self.now, input, &mut self.out);
        self.mirror();
    }

    fn mirror(&mut self) {
        while self.out.next_act().is_some() {}
        while let Some(act) = self.node.next_mirror_act() {
            if let MirrorAct::Route(key, Some((found, _))) = act {
                self.routes.insert(found.entry.0, (key, found.route.lifetime));
            }
            self.path.apply(self.now, &act);
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Time(span) => self.now += span,
            Change::Link(iface, mtu) => {
                let link = match mtu {
                    Some(mtu) => Link::Up { cell: None, mac: mac(iface), mtu, name: "any" },
                    None => Link::Down("cut"),
                };
                self.handle(Input::Link(iface, link));
                self.is_up.insert(iface, mtu.is_some());
                self.path.link(iface, mtu.map(|_| mac(iface)));
            }
            Change::Route(..) | Change::Policy(..) => {
                self.changes.lock().unwrap().push_back(change);
                self.handle(Input::Wall(WallTime(0)));
            }
        }
        // A node may be late with its time-outs: then routes that have expired are still there. Without a clock of all uses, the
        // program passes the packets of soft state that has expired.
        let is_soft = |(key, lifetime): &(RouteKey, Lifetime)| match lifetime {
            Lifetime::SoftState(span) => self.path.last_use(key).is_some_and(|used| used + *span <= self.now),
            _ => false,
        };
        if !self.routes.values().any(is_soft) && self.choices.is_late() {
            return;
        }
        while self.node.deadline().is_some_and(|due| due <= self.now) {
            let path = &self.path;
            self.node.ask_uses(self.now, &mut |key| path.last_use(key));
            self.handle(Input::Timeout);
        }
    }

    /// Executes random steps. Returns the counts, or the first difference as an error.
    fn run(mut self) -> Result<Counts, String> {
        for number in 0..STEPS {
            let change = self.choices.change(self.now);
            self.change(change);
            for _ in 0..FRAMES {
                let iface = self.choices.iface();
                let frame = self.choices.frame(iface);
                self.compare(iface, &frame)
                    .map_err(|error| format!("step {number}, after {change:?}: {error}"))?;
            }
        }
        assert_eq!(self.path.idle_because(), None);
        Ok(self.counts)
    }

    /// Runs the program with a frame, and compares it with its description. If the test itself was late, it does so again.
    fn compare(&mut self, iface: Iface, frame: &[u8]) -> Result<(), String> {
        for other in (1..=IFACES).map(Iface) {
            self.path.place(other, 1000 + u32::from(other.0));
        }
        self.path.place(iface, LOOPBACK);
        loop {
            let expected = forwarded(self, self.now, iface, frame);
            let clock = os::Clock::start();
            self.path.begin(clock.t0 - self.now.0);
            let (verdict, after) = test_run(&self.path, frame).map_err(|error| error.to_string())?;
            let was_late = clock.now() >= Instant::ZERO + LATE;
            let kept = self.path.fetch(self.now);
            if was_late {
                continue;
            }
            return self.judge((iface, frame), expected, verdict, &after, &kept).map_err(|error| {
                format!(
                    "{error}; frame {frame:02x?} on {iface:?} at {}; {}",
                    self.now,
                    self.explain(iface, frame)
                )
            });
        }
    }

    /// Returns the routes of a frame, and their last uses in the kernel.
    fn explain(&self, iface: Iface, frame: &[u8]) -> String {
        let Some((outer, inner)) = frame.get(14..).and_then(|bytes| wire::ipip::decapsulate(bytes).ok())
        else {
            return "it is no tunnel".to_owned();
        };
        let port = Port { iface, from: ethernet::parse(frame).ok().map(|(link, _)| link.src) };
        let policy = Rules::ingress_policy(self, port).1;
        let find = |class, (src, dst)| {
            let found = Rules::route(self, self.now, class, src, dst);
            let used = found.and_then(|found| self.path.last_use(&self.routes[&found.entry.0].0));
            (found, found.map(|found| self.routes[&found.entry.0].0), used)
        };
        let open = find(policy.class, (outer.src, outer.dst));
        let class = match open.0.map(|found| found.route.action) {
            Some(node::Action::Open(class, _)) => class,
            _ => Class::HOST,
        };
        let inner = wire::ipv4::addresses(inner).map(|addresses| find(class, addresses));
        format!("{policy:?}\nouter {open:?}\ninner {inner:?}")
    }

    fn judge(
        &mut self,
        (iface, frame): (Iface, &[u8]),
        expected: Option<Forwarded>,
        verdict: u32,
        after: &[u8],
        kept: &[node::KeptPacket],
    ) -> Result<(), String> {
        let Some(expected) = expected else {
            self.counts.passed += 1;
            if (verdict, after) != (PASS, frame) || !kept.is_empty() {
                return Err(format!(
                    "must be passed untouched: verdict {verdict}, {after:02x?}, kept {kept:?}"
                ));
            }
            self.pass(frame);
            return Ok(());
        };
        self.counts.forwarded += 1;
        if verdict != REDIRECT || after != expected.frame {
            return Err(format!("must be {expected:02x?}: verdict {verdict}, {after:02x?}"));
        }
        for entry in &expected.used {
            self.counts.used += 1;
            let used = self.path.last_use(&self.routes[&entry.0].0);
            if used.is_none_or(|used| used < self.now) {
                return Err(format!("its use is not recorded: {used:?}"));
            }
        }
        let Some((owner, tunnel)) = expected.kept else {
            return if kept.is_empty() { Ok(()) } else { Err(format!("must not be kept: {kept:?}")) };
        };
        self.counts.kept += 1;
        let is_right = |kept: &node::KeptPacket| {
            let is_in_time = kept.at >= self.now && kept.at < self.now + LATE;
            let is_same = kept.packet.bytes == expected.frame[14..];
            (kept.owner, kept.tunnel, kept.iface) == (owner, tunnel, iface) && is_in_time && is_same
        };
        if matches!(kept, [one] if is_right(one)) {
            Ok(())
        } else {
            Err(format!("must be kept, and is {kept:?}"))
        }
    }

    /// Gives the node a frame that was passed.
    fn pass(&mut self, frame: &[u8]) {
        let Ok((link, bytes)) = ethernet::parse(frame) else { return };
        if link.kind == EtherType::IPV4 {
            let packet = Packet { link, id: PacketId(1), bytes: bytes.to_vec() };
            let iface = (1..=IFACES).map(Iface).find(|iface| mac(*iface) == link.dst).unwrap_or(Iface(1));
            self.node.receive(self.now, iface, packet, &mut self.out);
            self.mirror();
        }
    }
}

/// Returns whether a test that needs `what` can run. In continuous integration (`CI`) a missing feature is a failure.
#[expect(clippy::disallowed_methods, reason = "the variable is that of the test's environment")]
fn need(what: &str, have: bool) -> bool {
    assert!(have || std::env::var("CI").is_err(), "CI must be able to test: {what}");
    if !have {
        let _ = writeln!(std::io::stderr(), "SKIPPED, because this machine lacks: {what}");
    }
    have
}

/// Returns the program with `room` bytes for kept packets, or `None` if this machine or this build has none.
fn load(room: usize) -> Option<DataPath> {
    let loaded = DataPath::load(room);
    let why = loaded.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if need(&format!("a data path in the kernel {why}"), loaded.is_ok()) { loaded.ok() } else { None }
}

#[test]
fn the_program_does_what_its_description_says() {
    for seed in 0..SEEDS {
        let Some(path) = load(ROOM) else { return };
        let counts =
            ComparedNode::new(seed, path).run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        println!("seed {seed}: {counts:?}");
        let Counts { passed, forwarded, kept, used } = counts;
        let least = [
            ("passed", passed, 2000),
            ("forwarded", forwarded, 500),
            ("kept", kept, 100),
            ("used", used, 50),
        ];
        for (what, count, least) in least {
            assert!(count >= least, "seed {seed}: {what}: {count}, too few to prove anything");
        }
    }
}

#[test]
fn the_comparison_finds_each_mistake_in_the_program() {
    if load(ROOM).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (what, right, wrong) in mutants::MUTANTS {
        assert_eq!(kernel::SOURCE.matches(right).count(), 1, "{what}: {right}");
        let object = kernel::compile(folder.path(), &kernel::SOURCE.replace(right, wrong));
        let found = (0..SEEDS).find_map(|seed| {
            let path = DataPath::load_object(&object, ROOM).unwrap();
            ComparedNode::new(seed, path).run().err()
        });
        println!("{what}: {:.100}", found.as_deref().unwrap_or("not found"));
        assert!(found.is_some(), "{what}: not found");
    }
}

/// A packet behind a message to a role waits until the message was handled: it may change the packet's route.
#[test]
fn packets_do_not_overtake_a_message() {
    let Some(path) = load(ROOM) else { return };
    check_messages(path);
    let folder = tempfile::tempdir().unwrap();
    for (what, right, wrong) in mutants::OVERTAKING {
        assert_eq!(kernel::SOURCE.matches(right).count(), 1, "{what}: {right}");
        let object = kernel::compile(folder.path(), &kernel::SOURCE.replace(right, wrong));
        let path = DataPath::load_object(&object, ROOM).unwrap();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_messages(path)));
        assert!(found.is_err(), "{what}: not found");
    }
}

/// The port of a role.
const PORT: u16 = 434;

fn check_messages(path: DataPath) {
    let mut world = ComparedNode::new(1, path);
    let hop = node::Hop::mac(Iface(2), Mac([7; 6]));
    let to = |class, dst, action| {
        let route = node::Route::new(action, Lifetime::Permanent);
        Change::Route(RouteKey { class, ..RouteKey::to(Class::HOST, dst) }, Some(route))
    };
    let (visitor, far) = (Ipv4Addr::new(10, 1, 0, 7), Ipv4Addr::new(10, 7, 0, 1));
    world.change(to(None, OWN[0], node::Action::Open(Class(200), node::TunnelKinds::ALL)));
    world.change(to(Some(Class(200)), visitor, node::Action::Forward(hop)));
    world.path.place(Iface(1), LOOPBACK);
    world.path.place(Iface(2), 1002);
    world.path.hear(PORT);
    world.path.begin(os::Clock::start().t0);
    let link = wire::Frame { kind: EtherType::IPV4, src: choices::NEIGHBOR, dst: mac(Iface(1)) };
    let data = Header::new(ipv4::UDP, far, visitor).emit(&[1; 30]);
    let data = ethernet::emit(&link, &wire::ipip::encapsulate(&data, far, OWN[0], 1).unwrap());
    let udp = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes(), [0; 2], [0; 2]].concat();
    let datagram = |dst, ports: (u16, u16)| Header::new(ipv4::UDP, far, dst).emit(&udp(ports.0, ports.1));
    let message = |dst| ethernet::emit(&link, &datagram(dst, (5000, PORT)));
    let verdict = |world: &ComparedNode, frame: &[u8]| test_run(&world.path, frame).unwrap().0;
    // The number of messages, 2 ms after it is seen first.
    let messages = |world: &mut ComparedNode| {
        world.path.messages(world.now);
        world.now += Duration::from_millis(2);
        world.path.messages(world.now)
    };
    assert_eq!(verdict(&world, &data), REDIRECT);
    let own_program = ethernet::emit(&link, &datagram(OWN[1], (PORT, 5000)));
    let no_udp = ethernet::emit(&link, &Header::new(ipv4::TCP, far, OWN[1]).emit(&udp(5000, PORT)));
    for (what, frame) in [
        ("it is not for this host", message(visitor)),
        ("no role has the port", own_program),
        ("it is not UDP", no_udp),
    ] {
        assert_eq!((verdict(&world, &frame), messages(&mut world)), (PASS, None), "{what}");
    }
    assert_eq!((verdict(&world, &message(OWN[1])), messages(&mut world)), (PASS, Some(1)));
    assert_eq!(verdict(&world, &data), PASS);
    let seen = messages(&mut world).unwrap();
    assert_eq!(verdict(&world, &message(OWN[0])), PASS);
    world.path.handled(seen);
    assert_eq!(verdict(&world, &data), PASS, "another message has arrived meanwhile");
    assert_eq!(world.path.messages(world.now), None, "it may not be at the socket yet");
    let seen = messages(&mut world).unwrap();
    world.path.handled(seen);
    assert_eq!((verdict(&world, &data), messages(&mut world)), (REDIRECT, None));
    // The port of these cannot be read.
    let fragment = |flags: u16| {
        let mut bytes = datagram(OWN[0], (5000, 5000));
        bytes[6..8].copy_from_slice(&flags.to_be_bytes());
        bytes
    };
    let mut with_options = datagram(OWN[0], (5000, 5000));
    with_options[0] = 0x46;
    let cut = Header::new(ipv4::UDP, far, OWN[0]).emit(&[1, 178]);
    // A message to a group, in a frame to all.
    let to_all = wire::Frame { dst: Mac::BROADCAST, ..link };
    let group = datagram(Ipv4Addr::new(224, 0, 0, 11), (5000, 5000));
    for (what, link, bytes) in [
        ("a first fragment", link, fragment(0x2000)),
        ("a later fragment", link, fragment(1)),
        ("with options", link, with_options),
        ("cut", link, cut),
        ("to a group", to_all, group),
    ] {
        assert_eq!(verdict(&world, &ethernet::emit(&link, &bytes)), PASS, "{what}");
        let seen = messages(&mut world);
        assert!(seen.is_some(), "{what}");
        world.path.handled(seen.unwrap());
    }
}
