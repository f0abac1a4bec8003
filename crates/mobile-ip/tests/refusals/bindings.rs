//! Tests of the configuration of correspondents, and of forged and numerous messages of route optimization.

use super::{AGENT, HOME, KEY, Secret, VISITED, WALL, home_agent, refused, table};
use mobile_ip::Correspondent;
use mobile_ip::config::CorrespondentConfig;
use mobile_ip::message::{Algorithm, Association, Binding, Numbers, PORT, Update, datagram};
use node::{
    Act, Action, Boot, Disposition, Hop, Input, Lifetime, Link, Node, Outbox, Port, Rng, Role, Route,
    RouteKey, Value, decide,
};
use wire::ipv4::Header;
use wire::{
    Duration, EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, Prefix, SocketAddrV4, udp,
};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
const CORRESPONDENT: &str = r#"
    address = "10.2.0.2"
    home_agents = [{ address = "10.1.0.2", spi = 256, key = "000102030405060708090a0b0c0d0e0f" }]
"#;
const UP: Iface = Iface(1);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

fn correspondent(changes: &str) -> Result<Correspondent, String> {
    let config: CorrespondentConfig =
        table(CORRESPONDENT, changes).try_into().map_err(|error| format!("{error}"))?;
    Correspondent::new(config, Rng::new(1)).map_err(|error| error.to_string())
}

#[test]
fn a_correspondent_that_cannot_work_is_refused() {
    assert!(correspondent("").is_ok());
    refused(correspondent("address = '224.0.0.1'"), "`address`", "not a unicast host address");
    refused(correspondent("entries = 0"), "`entries`", "from 1 to 1000000");
    refused(correspondent("replay_window = '3s'"), "`replay_window`", "greater than 3s");
    refused(correspondent("request_before = '0s'"), "`request_before`", "greater than zero");
    refused(correspondent("tunnel_mtu = 500"), "`tunnel_mtu`", "at least 548");
    refused(correspondent("encapsulations = ['ip-in-ip']"), "`encapsulations`", "always available");
    refused(correspondent("numbers = { update = 1 }"), "`numbers`", "`update` is 1");
    let config: CorrespondentConfig = table(CORRESPONDENT, "").try_into().unwrap();
    let of_host = |own: [u8; 4]| {
        Correspondent::new(
            CorrespondentConfig { own: vec![Ipv4Addr::from_octets(own)], ..config.clone() },
            Rng::new(1),
        )
        .map_err(|error| error.to_string())
    };
    assert!(of_host([10, 2, 0, 2]).is_ok());
    refused(of_host([10, 2, 0, 3]), "`address`", "no address 10.2.0.2; it has: 10.2.0.3");
    let agents = |agents: &str| correspondent(&format!("home_agents = [{agents}]"));
    let agent = |address: &str, spi: u32| format!("{{ address = '{address}', spi = {spi}, key = '{KEY}' }}");
    refused(agents(&agent("10.1.0.2", 255)), "`home_agents`", "SPI 255 is reserved");
    refused(agents(&agent("10.2.0.2", 256)), "`home_agents`", "the address of this host");
    refused(agents(&format!("{0}, {0}", agent("10.1.0.2", 256))), "`home_agents`", "two associations");
    let of = |address: &str| {
        home_agent(&format!("correspondents = [{{ address = '{address}', spi = 400, key = '{KEY}' }}]"))
    };
    assert!(of("10.2.0.2").is_ok());
    refused(of("10.1.0.2"), "`correspondents`", "the address of the home agent");
    refused(of("0.0.0.0"), "`correspondents`", "not a unicast host address");
}

/// A node with the role of a correspondent, its outbox, and its time.
struct Host {
    node: Node,
    out: Outbox,
}

impl Host {
    fn new(changes: &str) -> Self {
        let role: Box<dyn Role> = Box::new(correspondent(changes).unwrap());
        let mut host = Self { node: Node::new(vec![role], vec![OWN]), out: Outbox::default() };
        host.node.handle(Instant::ZERO, Input::Start(&Boot::new(WALL)), &mut host.out);
        host.node.add_address(Instant::ZERO, UP, "10.2.0.2/24".parse().unwrap());
        let up = Link::Up { cell: None, mac: MAC, mtu: 1500, name: "up" };
        host.node.handle(Instant::ZERO, Input::Link(UP, up), &mut host.out);
        // Without a route, no answer would leave.
        let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::ANY };
        let action = Action::Forward(Hop::mac(UP, Mac([2; 6])));
        host.node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
        host
    }

    /// Receives a message of the home agent. Returns the acts of the node.
    fn receive(&mut self, now: Instant, payload: &[u8]) -> Vec<Act> {
        let [from, to] = [AGENT, OWN].map(|address| SocketAddrV4::new(address, PORT));
        let link = Frame { kind: EtherType::IPV4, src: Mac([2; 6]), dst: MAC };
        let packet = Packet { link, id: PacketId(1), bytes: datagram(from, to, 64, payload) };
        self.node.receive(now, UP, packet, &mut self.out);
        std::iter::from_fn(|| self.out.next_act().map(|(_, act)| act)).collect()
    }

    /// Returns where a packet of this host for a mobile node goes: the exit of the tunnel, or `None` without a tunnel.
    fn exit(&self, now: Instant, home: Ipv4Addr) -> Option<Ipv4Addr> {
        let bytes = udp::packet(SocketAddrV4::new(OWN, 9), SocketAddrV4::new(home, 9), &[0; 100]);
        let (header, _) = Header::parse(&bytes).unwrap();
        let port = Port { iface: Iface::HOST, from: None };
        match decide(&self.node, now, port, &node::Datagram::new(&header, bytes.len())).disposition {
            Disposition::Encap(encap) => Some(encap.dst),
            _ => None,
        }
    }

    /// Returns the number of refused messages.
    fn refusals(&self) -> u64 {
        let Value::Map(refused) = self.status("refused") else { panic!("no map") };
        let number =
            |count: &Value| if let Value::Int(count) = count { *count as u64 } else { panic!("{count:?}") };
        refused.iter().map(|(_, count)| number(count)).sum()
    }

    fn status(&self, name: &str) -> Value {
        self.node.status().get("binding_cache").and_then(|own| own.get(name)).unwrap().clone()
    }
}

fn update(now: Instant, home: Ipv4Addr, care_of: Ipv4Addr) -> Update {
    let numbers = Numbers::default();
    let mut update = Update {
        acknowledge: true,
        minimal: false,
        gre: false,
        lifetime: 300,
        home,
        care_of,
        identification: Some(WALL.plus(now.since(Instant::ZERO)).to_ntp()),
        authentication: None,
    };
    let key = Secret::new((0..16).collect::<Vec<u8>>());
    let association = Association { spi: 256, algorithm: Algorithm::HmacSha256, key };
    update.sign(numbers.route_authentication, &association, &numbers);
    update
}

fn bytes(update: Update) -> Vec<u8> {
    Binding::Update(update).emit(&Numbers::default())
}

/// Returns whether acts change a route or answer. A refused message does neither. A message of another type goes to the
/// host's own stack.
fn is_believed(acts: &[Act]) -> bool {
    is_answered(acts) || acts.iter().any(|act| matches!(act, Act::Route(..)))
}

/// Returns whether the message that caused these acts is refused.
fn is_refused(acts: &[Act]) -> bool {
    acts.iter().any(|act| matches!(act, Act::Drop(_, _, why) if *why != node::reason::CONSUMED))
}

/// Returns whether acts have an answer.
fn is_answered(acts: &[Act]) -> bool {
    acts.iter().any(|act| matches!(act, Act::Transmit(iface, _) if *iface != Iface::HOST))
}

#[expect(clippy::disallowed_methods, reason = "the tests of this file measure time")]
fn time_of(work: impl FnOnce()) -> Duration {
    let begin = std::time::Instant::now();
    work();
    begin.elapsed()
}

#[test]
fn a_large_cache_is_notified_of_as_many_pairs() {
    assert_eq!(correspondent("entries = 5000").unwrap().most_notices(), 5000);
    assert_eq!(correspondent("entries = 5").unwrap().most_notices(), 1024);
}

/// No change of a bit of an Update is believed, also not that of a reserved bit.
#[test]
fn no_bit_of_an_update_can_be_changed() {
    let mut host = Host::new("");
    let at = Instant::from_millis(1000);
    assert!(is_believed(&host.receive(at, &bytes(update(at, HOME, VISITED)))));
    let later = Instant::from_millis(2000);
    let genuine = bytes(update(later, HOME, Ipv4Addr::new(10, 4, 0, 1)));
    for at in 0..genuine.len() * 8 {
        let mut changed = genuine.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let acts = host.receive(later, &changed);
        assert!(!is_believed(&acts), "bit {at}: {acts:?}");
        assert_eq!(host.exit(later, HOME), Some(VISITED), "bit {at}");
    }
    for length in 0..genuine.len() {
        assert!(!is_believed(&host.receive(later, &genuine[..length])), "{length} bytes");
    }
    assert!(is_believed(&host.receive(later, &genuine)));
    assert_eq!(host.exit(later, HOME), Some(Ipv4Addr::new(10, 4, 0, 1)));
}

/// What the network has delayed changes nothing, whatever happened to the entry in the meantime.
#[test]
fn an_older_update_never_changes_a_newer_entry() {
    let [first, second, third] = [1000, 2000, 3000].map(Instant::from_millis);
    let now = Instant::from_millis(4000);
    let other = Ipv4Addr::new(10, 4, 0, 1);
    let moved = || bytes(update(second, HOME, other));
    for (name, last, exit) in [
        ("moved", bytes(update(third, HOME, VISITED)), Some(VISITED)),
        ("deleted", bytes(update(third, HOME, HOME)), None),
    ] {
        let mut host = Host::new("");
        host.receive(now, &bytes(update(first, HOME, VISITED)));
        host.receive(now, &last);
        for old in [bytes(update(first, HOME, VISITED)), moved(), bytes(update(second, HOME, HOME))] {
            host.receive(now, &old);
            assert_eq!(host.exit(now, HOME), exit, "{name}");
        }
    }
    // The entry made room for another one, so nothing is known of its mobile node any more.
    let mut host = Host::new("entries = 1");
    host.receive(now, &bytes(update(third, HOME, VISITED)));
    let neighbor = Ipv4Addr::new(10, 1, 0, 8);
    let next = Instant::from_millis(3500);
    host.receive(now, &bytes(update(next, neighbor, VISITED)));
    assert_eq!((host.exit(now, HOME), host.exit(now, neighbor)), (None, Some(VISITED)));
    host.receive(now, &moved());
    assert_eq!((host.exit(now, HOME), host.exit(now, neighbor)), (None, Some(VISITED)));
}

/// Each of 10,000 Updates is answered or refused, and data are not affected. The test prints the times, which depend on the
/// machine.
#[test]
fn a_storm_of_updates_is_answered_or_refused() {
    let mut host = Host::new("");
    let now = Instant::from_millis(1000);
    host.receive(now, &bytes(update(now, HOME, VISITED)));
    let mut forged = update(Instant::from_millis(1500), HOME, Ipv4Addr::new(10, 66, 0, 1));
    forged.lifetime = 301;
    let forged = bytes(forged);
    let others: Vec<Vec<u8>> = (0..10_000u32)
        .map(|number| {
            let home = Ipv4Addr::from_bits(HOME.to_bits() + 1 + number % 2000);
            bytes(update(Instant::from_millis(1000 + u64::from(number) / 10), home, VISITED))
        })
        .collect();
    let refused = time_of(|| {
        for _ in 0..10_000 {
            assert!(!is_believed(&host.receive(now, &forged)));
        }
    });
    assert_eq!((host.exit(now, HOME), host.refusals()), (Some(VISITED), 10_000));
    let later = Instant::from_millis(2000);
    let (mut answered, mut ignored) = (0, 0);
    let taken = time_of(|| {
        for message in &others {
            let acts = host.receive(later, message);
            answered += u64::from(is_answered(&acts));
            ignored += u64::from(!is_answered(&acts) && !is_refused(&acts));
        }
    });
    println!(
        "10000 forged Updates: {refused:?}; 10000 authentic Updates: {taken:?}, of which {answered} are answered"
    );
    assert!(refused < Duration::from_secs(20) && taken < Duration::from_secs(20), "{refused:?}, {taken:?}");
    assert_eq!(ignored, 0, "each is answered or refused");
    assert!(answered >= 2000, "{answered}");
    assert_eq!(host.status("entries"), Value::from(1024u64), "the cache is full");
    // The last 1024 mobile nodes have an entry, and their packets go by it.
    let last = Ipv4Addr::from_bits(HOME.to_bits() + 2000);
    assert_eq!(host.exit(later, last), Some(VISITED));
}

/// Prints the time of 10,000 Updates, and whether it is under a second.
#[test]
#[ignore = "a measurement: `make binding-cache`"]
fn ten_thousand_updates_in_a_second() {
    let mut host = Host::new("entries = 10000");
    let now = Instant::from_millis(1000);
    let home = |number: u32| Ipv4Addr::from_bits(HOME.to_bits() + 1 + number);
    let all: Vec<Vec<u8>> = (0..10_000).map(|number| bytes(update(now, home(number), VISITED))).collect();
    let mut answered = 0;
    let taken = time_of(|| {
        answered = all.iter().filter(|message| is_answered(&host.receive(now, message))).count();
    });
    assert_eq!(answered, 10_000);
    let verdict = if taken < Duration::from_secs(1) { "holds" } else { "does not hold" };
    println!("10000 Updates of different mobile nodes, each answered: {taken:?}: {verdict}");
}

/// Returns the times of look-ups with one entry and with 100 000: of one mobile node, and of all.
fn look_ups(looks: u32) -> Vec<(u32, u32, Duration)> {
    let now = Instant::from_millis(1000);
    let mut times = Vec::new();
    for entries in [1, 100_000u32] {
        let mut host = Host::new("entries = 100000");
        let home = |number: u32| Ipv4Addr::from_bits(0x0a40_0001 + number);
        for number in 0..entries {
            host.receive(now, &bytes(update(now, home(number), VISITED)));
        }
        assert_eq!(host.status("entries"), Value::from(u64::from(entries)));
        for to in [1, entries] {
            let mut found = 0;
            let time = time_of(|| {
                found = (0..looks).filter(|number| host.exit(now, home(number % to)).is_some()).count();
            });
            times.push((entries, to, time / looks));
            assert_eq!(found, looks as usize);
        }
    }
    times
}

/// A look-up costs the same with many entries. The test prints the times, which depend on the machine.
#[test]
fn a_packet_finds_its_entry_among_many() {
    let times = look_ups(200_000);
    println!("entries, addressed mobile nodes, time of a look-up: {times:?}");
    let (one, many) = (times[0].2, times[2].2);
    // A search through all entries would take some 10000 times as long; a busy machine does not matter.
    assert!(many < one * 100, "{times:?}");
}

/// Prints how much longer a look-up takes among 100 000 entries than with one: the medians of 9 measurements.
#[test]
#[ignore = "a measurement: `make binding-cache`"]
fn a_look_up_among_many_entries_compared_with_one() {
    let all: Vec<_> = (0..9).map(|_| look_ups(1_000_000)).collect();
    let median = |at: usize| {
        let mut times: Vec<Duration> = all.iter().map(|times| times[at].2).collect();
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e9
    };
    for (what, at) in [("packets to one of them", 2), ("packets to all of them in turn", 3)] {
        let (one, many) = (median(0), median(at));
        let verdict = if many <= one * 1.1 { "holds" } else { "does not hold" };
        println!(
            "1 entry: {one:.0} ns; 100000 entries, {what}: {many:.0} ns, ratio {:.2}, allowed 1.10: {verdict}",
            many / one
        );
    }
}
