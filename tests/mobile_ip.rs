//! A simulated run of Mobile IP: a mobile node leaves its home network and returns while a correspondent sends to it.
//! Roles, tables, ARP, tunnels and cells are those of the product.
//!
//! ```text
//! correspondent ── home agent and router ))) cell 1: home network
//!                    └── foreign agent ))) cell 2: visited network
//! ```

use link::{CellSpec, Faults, PortId, RadioSpec, WireSpec};
use node::Stage;
use recorder::run::Outcome;
use roles::HostConfig;
use scenario::{HostPlan, Plan, PortPlan, Scenario};
use sim::StoreFault;
use std::fmt::Write;
use trace::{HostId, Record, What};
use wire::ipv4::{self, Header};
use wire::{Cell, Duration, EtherType, Instant, Mac, Packet, arp};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";

const CORRESPONDENT: &str = r#"
    name = "correspondent"
    addresses = ["10.2.0.2"]
    interface = [{ name = "ha", mac = "02:00:00:00:00:11", address = "10.2.0.2/24" }]
    route = [{ to = "0.0.0.0/0", interface = "ha", via = "10.2.0.1" }]
    role = [{ kind = "apps/constant-rate", to = "10.1.0.7:9000", rate = 50, size = 100, start = "2s", stop = "9s" }]
"#;
const HOME_AGENT: &str = r#"
    name = "home-agent"
    addresses = ["10.1.0.2"]
    interface = [
        { name = "cn", mac = "02:00:00:00:00:21", address = "10.2.0.1/24" },
        { name = "fa", mac = "02:00:00:00:00:22", address = "10.9.0.1/24" },
        { name = "air", mac = "02:00:00:00:00:23", address = "10.1.0.2/16" },
    ]
    route = [{ to = "10.3.0.0/24", interface = "fa", via = "10.9.0.2" }]
    role = [{ kind = "mobile-ip/home-agent", address = "10.1.0.2/16", interface = "air", mobile_nodes = [
        { address = "10.1.0.7", spi = 256, key = "KEY" },
    ] }]
"#;
const FOREIGN_AGENT: &str = r#"
    name = "foreign-agent"
    addresses = ["10.3.0.1"]
    interface = [
        { name = "ha", mac = "02:00:00:00:00:31", address = "10.9.0.2/24" },
        { name = "air", mac = "02:00:00:00:00:32", address = "10.3.0.1/24" },
    ]
    route = [{ to = "0.0.0.0/0", interface = "ha", via = "10.9.0.1" }]
    role = [{ kind = "mobile-ip/foreign-agent", address = "10.3.0.1/24", interface = "air" }]
"#;
const MOBILE_NODE: &str = r#"
    name = "mobile-node"
    addresses = ["10.1.0.7"]
    interface = [{ name = "air", mac = "02:00:00:00:00:41", address = "10.1.0.7/16", tunes = true }]
    role = [
        { kind = "mobile-ip/mobile-node", address = "10.1.0.7/16", interface = "air", link_trigger = TRIGGER, movement = "ecs",
          home_agent = { address = "10.1.0.2", spi = 256, key = "KEY" } },
        { kind = "apps/roam", interface = "air", places = [{ name = "home", cell = 1 }, { name = "foreign", cell = 2 }],
          moves = [{ at = "4s", to = "foreign" }, { at = "7s", to = "home" }] },
        { kind = "apps/sink", at = "10.1.0.7:9000" },
    ]
"#;

/// Hosts, and for each of their interfaces the cell of its radio: `None` for a wire, 0 for a radio that tunes.
const HOSTS: [(&str, &[Option<u16>]); 4] = [
    (CORRESPONDENT, &[None]),
    (HOME_AGENT, &[None, None, Some(1)]),
    (FOREIGN_AGENT, &[None, Some(2)]),
    (MOBILE_NODE, &[Some(0)]),
];

fn plan(trigger: bool, seed: u64) -> Plan {
    let mut hosts = Vec::new();
    let mut next = 0;
    for (text, cells) in HOSTS {
        let text = text.replace("KEY", KEY).replace("TRIGGER", &trigger.to_string());
        let config: HostConfig = toml::from_str(&text).unwrap();
        let macs = config.macs().unwrap();
        let ports = config.interfaces.iter().zip(cells).zip(macs).map(|((interface, cell), mac)| {
            next += 1;
            let radio = cell.map(|cell| RadioSpec {
                mac,
                cell: (cell > 0).then_some(Cell(cell)),
                retune: Duration::from_millis(if cell > 0 { 0 } else { 5 }),
                attach: Duration::from_millis(5),
                excursion: Duration::ZERO,
                listening: link::Listening::default(),
                queue: None,
            });
            PortPlan { port: PortId(next), name: interface.name.clone(), mac, radio, course: None }
        });
        let ports = ports.collect();
        hosts.push(HostPlan { config, text, ports, programs: Vec::new() });
    }
    let wire = |ends: [u32; 2], delay| {
        let delay = [Duration::from_millis(delay); 2];
        let faults = Faults::default();
        (ends.map(PortId), WireSpec { rate: 100_000_000, delay, queue: 100, mtu: 1500, faults })
    };
    let cell = |number| CellSpec {
        cell: Cell(number),
        rate: 2_000_000,
        per_frame: Duration::ZERO,
        delay: Duration::ZERO,
        queue: 100,
        mtu: 1500,
        faults: Faults::default(),
        air: link::Air::default(),
        duplex: link::Duplex::Half,
        is_segment: false,
    };
    Plan {
        name: "mobile-ip".to_owned(),
        about: String::new(),
        text: String::new(),
        settings: Vec::new(),
        repetition: scenario::Repetition::only(seed),
        document: String::new(),
        duration: Duration::from_secs(10),
        seed,
        hosts,
        wires: vec![wire([1, 2], 5), wire([3, 5], 20)],
        cells: vec![cell(1), cell(2)],
        events: Vec::new(),
        tree: None,
        only_linux: None,
    }
}

fn marks<'a>(records: &'a [Record], name: &'a str) -> impl Iterator<Item = Instant> + 'a {
    records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.name == name => Some(record.at),
        _ => None,
    })
}

fn run(trigger: bool, seed: u64) -> Outcome {
    recorder::run::simulate(plan(trigger, seed)).unwrap()
}

#[test]
fn a_session_outlives_two_moves_and_every_loss_has_a_reason() {
    let outcome = run(true, 7);
    assert_eq!(outcome.doubts, []);
    assert!(outcome.ledger.balances());
    let [away, home] = &outcome.handoffs[..] else { panic!("{:?}", outcome.handoffs) };
    for handoff in [away, home] {
        assert!((1..10).contains(&handoff.lost()) && handoff.duplicates() == 0, "{handoff:?}");
        let outage = handoff.outage().unwrap();
        assert!(outage.is_explained(), "{outage:?}");
        let owners: Vec<_> = outage.owners.iter().filter_map(|owner| owner.stage).collect();
        // The home agent switches the path in the instant in which it changes the binding.
        let all = [Stage::Link, Stage::Detection, Stage::Registration, Stage::Traffic, Stage::FirstByte];
        assert_eq!(owners, all, "{outage:?}");
        // With a solicitation, detection takes a round trip of the cell. Registration takes a round trip to the home
        // agent, and another one if the first packet waits for ARP.
        assert!(outage.span() < Duration::from_millis(200), "{outage:?}");
    }
    assert_eq!(marks(&outcome.records, "registered").count(), 3, "at home, away, at home");
    assert_eq!(marks(&outcome.records, "visitor_arrived").count(), 1);
}

#[test]
fn without_hints_of_the_link_an_advertisement_has_to_come() {
    for seed in 0..8 {
        let outcome = run(false, seed);
        assert_eq!(outcome.doubts, [], "seed {seed}");
        let away = &outcome.handoffs[0];
        let outage = away.outage().unwrap();
        let detection = outage.owners.iter().find(|owner| owner.stage == Some(Stage::Detection)).unwrap();
        // With eager cell switching, the time of detection is uniformly distributed over the interval of advertisements
        // (1 s).
        assert!(detection.span() <= Duration::from_millis(1001), "seed {seed}: {detection:?}");
        assert!(outage.is_explained(), "seed {seed}: {outage:?}");
    }
}

// --- a home agent that cannot store
// ------------------------------------------------------------------------------------

const AT_HOME_AGENT: HostId = HostId(1);

fn run_with(fault: StoreFault) -> Outcome {
    let plan = plan(true, 7);
    let mut world = plan.world().unwrap();
    world.fail_stores(AT_HOME_AGENT, fault);
    let run = world.run(plan.end());
    let outcome = Outcome::new(plan, recorder::run::Backend::Sim, run.records, Some(run.fingerprint));
    assert!(outcome.ledger.balances(), "{:?}", outcome.ledger.doubts());
    outcome
}

/// Returns the packets that the home agent's node sent.
fn sent_by_home_agent(outcome: &Outcome) -> impl Iterator<Item = &Packet> {
    outcome.records.iter().filter_map(|record| match &record.what {
        What::Sent(_, packet) if record.host == AT_HOME_AGENT => Some(packet),
        _ => None,
    })
}

fn is_tunnelled(packet: &Packet) -> bool {
    Header::parse(&packet.bytes).is_ok_and(|(header, _)| header.protocol == ipv4::IPIP)
}

/// Returns whether the packet is an ARP request or reply that claims the mobile node's address for the home agent.
fn is_proxy(packet: &Packet) -> bool {
    let said = (packet.link.kind == EtherType::ARP).then(|| arp::Message::parse(&packet.bytes));
    let home_agent = Mac([2, 0, 0, 0, 0, 0x23]);
    matches!(said, Some(Ok(said)) if said.sender.octets() == [10, 1, 0, 7] && said.sender_mac == home_agent)
}

fn denials(outcome: &Outcome) -> Vec<String> {
    let codes = outcome.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) if mark.name == "denied" => mark.fields.first(),
        _ => None,
    });
    codes.map(|(_, code)| code.as_text().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_home_agent_that_cannot_store_denies_and_half_accepts_nothing() {
    let stored = run(true, 7);
    assert!(sent_by_home_agent(&stored).any(is_tunnelled), "with a disk it does");
    assert!(sent_by_home_agent(&stored).any(is_proxy), "with a disk it does");

    let outcome = run_with(StoreFault::Always);
    let codes = denials(&outcome);
    assert!(codes.len() > 3, "at home, away, and home again: {codes:?}");
    assert!(codes.iter().all(|code| code.starts_with("130")), "{codes:?}");
    assert_eq!(marks(&outcome.records, "not_stored").count(), codes.len());
    for name in ["registered", "binding_changed", "path_switched"] {
        assert_eq!(marks(&outcome.records, name).count(), 0, "{name}");
    }
    assert!(!sent_by_home_agent(&outcome).any(is_tunnelled), "no route");
    assert!(!sent_by_home_agent(&outcome).any(is_proxy), "no ARP");
}

#[test]
fn what_could_not_be_stored_once_is_asked_again_and_holds() {
    // The first record is of the mobile node at home, the second of its first registration away.
    let outcome = run_with(StoreFault::Nth(2));
    assert_eq!(denials(&outcome).len(), 1, "{:?}", denials(&outcome));
    assert_eq!(marks(&outcome.records, "registered").count(), 3, "at home, away, at home");
    let denied = marks(&outcome.records, "denied").next().unwrap();
    let registered = marks(&outcome.records, "registered").nth(1).unwrap();
    assert!(registered > denied);
    let early = outcome.records.iter().filter(|record| record.at < denied && record.host == AT_HOME_AGENT);
    for record in early {
        assert!(!matches!(&record.what, What::Sent(_, packet) if is_tunnelled(packet) || is_proxy(packet)));
    }
}

/// Two mobile nodes of one home network. Both leave it together, and neither hears that the other has left.
const TWO_AWAY: &str = r#"
    about = "Two mobile nodes"
    duration = "14s"
    [radio]
    retune = "5ms"
    [wire.left]
    ends = ["home", "foreign"]
    rate = "100Mb/s"
    delay = "1ms"
    net = "10.0.1.0/24"
    [cell.1]
    station = "home"
    rate = "2Mb/s"
    net = "10.1.0.0/24"
    [cell.2]
    station = "foreign"
    rate = "2Mb/s"
    net = "10.2.0.0/24"
    [mobile-ip]
    key = "000102030405060708090a0b0c0d0e0f"
    [host.home]
    role = [{ kind = "mobile-ip/home-agent" }]
    [host.foreign]
    role = [{ kind = "mobile-ip/foreign-agent" }]
    [host.alice]
    address = "10.1.0.7"
    role = [
        { kind = "mobile-ip/mobile-node" },
        { kind = "apps/roam", start = "home", moves = [{ at = "3s", to = "foreign" }, { at = "8s", to = "home" }] },
        { kind = "apps/constant-rate", to = "bob:9001", rate = 50, size = 172, start = "500ms", stop = "13s" },
    ]
    [host.bob]
    address = "10.1.0.8"
    role = [
        { kind = "mobile-ip/mobile-node" },
        { kind = "apps/roam", start = "home", moves = [{ at = "3s", to = "foreign" }] },
        { kind = "apps/sink", at = "bob:9001" },
    ]
"#;

/// When a host returns home, the link addresses of its neighbors there are outdated: a neighbor may have left as well.
#[test]
fn a_node_that_comes_home_does_not_send_to_neighbors_that_it_knew_before() {
    let plan = Scenario::plan("two-away", TWO_AWAY, &[], 1).unwrap();
    let bob = HostId(plan.hosts.iter().position(|host| host.config.name == "bob").unwrap() as u32);
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, []);
    let from = Instant::from_millis(8_500);
    let arrived = outcome.records.iter().filter(|record| record.host == bob && record.at >= from);
    let arrived = arrived.filter(|record| matches!(record.what, What::AppReceived(_)));
    let arrived = arrived.count();
    assert!((220..=230).contains(&arrived), "{arrived} of 225 datagrams reached the node that is away");
}

/// Returns the run of [`TWO_AWAY`] with further keys of the home agent, the foreign agent, the mobile nodes and the table
/// `[mobile-ip]`. The ledger must balance, and no doubt may be left.
fn two_away_with(home: &str, foreign: &str, mobile: &str, shared: &str) -> Outcome {
    let with = |kind: &str, keys: &str| match keys {
        "" => format!("\"mobile-ip/{kind}\""),
        keys => format!("\"mobile-ip/{kind}\", {keys}"),
    };
    let text = TWO_AWAY
        .replace("\"mobile-ip/home-agent\"", &with("home-agent", home))
        .replace("\"mobile-ip/foreign-agent\"", &with("foreign-agent", foreign))
        .replace("\"mobile-ip/mobile-node\"", &with("mobile-node", mobile))
        .replace("[mobile-ip]", &format!("[mobile-ip]\n{shared}"));
    let outcome = recorder::run::simulate(Scenario::plan("two-away", &text, &[], 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, []);
    assert!(outcome.ledger.balances());
    outcome
}

/// Returns how many packets entered a tunnel from the first address to the second one.
fn tunnelled(outcome: &Outcome, from: [u8; 4], to: [u8; 4]) -> usize {
    let ends = |packet: &Packet| match Header::parse(&packet.bytes) {
        Ok((header, _)) => is_tunnelled(packet) && header.src.octets() == from && header.dst.octets() == to,
        Err(_) => false,
    };
    let sent = outcome.records.iter().filter(|record| record.host == HostId(1));
    sent.filter(|record| matches!(&record.what, What::Sent(_, packet) if ends(packet))).count()
}

/// From 3 s to 8 s, both mobile nodes are away, and one sends 50 datagrams per second to the other. With a reverse tunnel,
/// the datagrams go to the home agent and come back.
#[test]
fn what_a_visitor_sends_goes_through_its_reverse_tunnel_in_both_styles() {
    let (foreign, home) = ([10, 2, 0, 1], [10, 1, 0, 1]);
    let without = two_away_with("", "", "", "").ledger.delivered;
    for style in ["direct", "encapsulating"] {
        let offered = "reverse_tunnel = 'offered'";
        let outcome = two_away_with(offered, offered, &format!("reverse_tunnel = '{style}'"), "");
        let there = tunnelled(&outcome, foreign, home);
        assert!((225..=252).contains(&there), "{style}: {there} of 250 datagrams in the reverse tunnel");
        let lost = without.abs_diff(outcome.ledger.delivered);
        assert!(lost < 40, "{style}: {lost} packets more or less are delivered");
    }
}

/// With nonces, the first request of each node is denied, and the next one is accepted, also with a weak algorithm.
#[test]
fn nonces_and_keyed_md5_register_as_timestamps_do() {
    for algorithm in ["hmac-sha256", "keyed-md5", "keyed-md5-without-spi"] {
        let shared = format!("replay = 'nonces'\nalgorithm = '{algorithm}'");
        let outcome = two_away_with("", "", "", &shared);
        let codes = denials(&outcome);
        assert!(
            codes.iter().all(|code| code.starts_with("133")) && codes.len() == 2,
            "{algorithm}: {codes:?}"
        );
        // At home, away, and one of them at home again.
        assert_eq!(marks(&outcome.records, "registered").count(), 5, "{algorithm}");
    }
}

/// Runs `count` mobile nodes that leave home at one instant, and one that has left before. `cell` is configuration of
/// the visited cell, `agent` is that of the foreign agent, `faults` are events.
fn crowd(count: usize, duration: &str, cell: &str, agent: &str, faults: &str) -> Outcome {
    let mut text = format!(
        r#"
        about = "Many mobile nodes that move at once"
        duration = "{duration}"
        [radio]
        retune = "5ms"
        [wire.left]
        ends = ["router", "home"]
        rate = "100Mb/s"
        delay = "5ms"
        net = "10.0.1.0/24"
        [wire.right]
        ends = ["router", "foreign"]
        rate = "100Mb/s"
        delay = "5ms"
        net = "10.0.2.0/24"
        [cell.1]
        station = "home"
        rate = "2Mb/s"
        net = "10.1.0.0/24"
        [cell.2]
        station = "foreign"
        rate = "2Mb/s"
        net = "10.2.0.0/24"
        {cell}
        [mobile-ip]
        key = "{KEY}"
        [host.router]
        [host.home]
        role = [{{ kind = "mobile-ip/home-agent" }}]
        [host.foreign]
        role = [{{ kind = "mobile-ip/foreign-agent"{agent} }}]
        {faults}
        "#
    );
    for number in 0..=count {
        let at = if number == 0 { "1s" } else { "3s" };
        let _ = write!(
            text,
            "[host.m{number}]\naddress = \"10.1.0.{}\"\nrole = [{{ kind = \"mobile-ip/mobile-node\" }}, \
             {{ kind = \"apps/roam\", start = \"home\", moves = [{{ at = \"{at}\", to = \"foreign\" }}] }}]\n",
            number + 7
        );
    }
    let outcome = recorder::run::simulate(Scenario::plan("crowd", &text, &[], 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, []);
    outcome
}

/// Returns the times at which each mobile node of a crowd was first registered away, in ascending order.
fn registered_away(outcome: &Outcome) -> Vec<Instant> {
    let moved = Instant::from_millis(3000);
    let mut first = std::collections::BTreeMap::new();
    for record in outcome.records.iter().filter(|record| record.at > moved) {
        if matches!(&record.what, What::Marked(mark) if mark.name == "registered") {
            first.entry(record.host).or_insert(record.at);
        }
    }
    let mut all: Vec<Instant> = first.into_values().collect();
    all.sort_unstable();
    all
}

#[test]
fn a_crowd_that_moves_at_once_is_registered_at_once() {
    let all = registered_away(&crowd(60, "20s", "", "", ""));
    assert_eq!(all.len(), 60);
    assert!(all[59] < Instant::from_millis(3500), "{all:?}");
}

/// The foreign agent has room for a third of the pending requests, and the home agent is unreachable for 2 s, so the
/// first requests are never answered. Later requests must not wait until the first ones expire after 7 s.
#[test]
fn requests_that_wait_in_vain_keep_no_crowd_from_registering() {
    let cut =
        |at: &str, kind: &str| format!("[[event]]\nat = \"{at}\"\nkind = \"{kind}\"\nwire = \"left\"\n");
    let faults = cut("2900ms", "cut") + &cut("5s", "restore");
    let all = registered_away(&crowd(60, "20s", "", ", pending = 20", &faults));
    assert_eq!(all.len(), 60);
    assert!(all[59] < Instant::from_millis(9000), "{all:?}");
}

/// The nodes of the largest crowd, and the rate of its cell in bits per second.
const NODES: usize = 200;
const RATE: u64 = 2_000_000;

/// Two hundred nodes move at one instant. Returns how long it takes until all are registered, and the limit: 250 ms, and
/// the time on the air of a solicitation, a request and a reply of each node. Repetitions do not raise the limit.
fn two_hundred(cell: &str) -> (Duration, Duration) {
    let outcome = crowd(NODES, "5s", cell, "", "");
    let all = registered_away(&outcome);
    assert_eq!(all.len(), NODES);
    let moved = Instant::from_millis(3000);
    let messages: Vec<&Packet> = outcome
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Sent(_, packet) if record.at > moved => Some(packet),
            _ => None,
        })
        .collect();
    let size = |is_one: &dyn Fn(&Packet) -> bool| {
        let message = messages.iter().find(|packet| is_one(packet)).expect("a message of each kind");
        wire::ethernet::HEADER + message.bytes.len()
    };
    let is_registration = |packet: &Packet, kind| packet.bytes[9] == ipv4::UDP && packet.bytes[28] == kind;
    let sizes = [
        size(&|packet| packet.bytes[9] == ipv4::ICMP && packet.bytes[20] == 10),
        size(&|packet| is_registration(packet, 1)),
        size(&|packet| is_registration(packet, 3)),
    ];
    let air = Duration::from_nanos(sizes.iter().sum::<usize>() as u64 * 8 * 1_000_000_000 / RATE);
    let (took, limit) = (all[NODES - 1] - moved, Duration::from_millis(250) + air * NODES as u32);
    eprintln!(
        "{NODES} nodes, `{cell}`: registered within {took:?}; limit 250 ms + {NODES} x {air:?} = {limit:?}, \
         for frames of {sizes:?} bytes at {RATE} b/s; {} requests",
        marks(&outcome.records, "request_sent").filter(|at| *at > moved).count()
    );
    (took, limit)
}

/// The queue of the base station can hold a reply for each node: by default, it has 64 places for each host.
#[test]
fn two_hundred_nodes_that_move_at_once_need_little_more_than_the_air_time_of_their_messages() {
    let (took, limit) = two_hundred("");
    assert!(took <= limit, "{took:?} > {limit:?}");
}

/// With a queue of 64 frames for all hosts together, the base station loses replies. The nodes repeat their requests after
/// a second (RFC 5944, section 3.6.3), and all are registered by the second request.
#[test]
fn replies_that_do_not_fit_the_queue_of_a_base_station_cost_a_second() {
    let (took, limit) = two_hundred("station_queue = 64");
    assert!(took > limit && took < Duration::from_secs(1) + limit, "{took:?}");
}
