//! A simulated run of Indirect TCP: a download moves with its host between two support routers. Roles, sockets, tunnels
//! and cells are those of the product.

use node::{Mark, Stage, Value};
use recorder::run::Outcome;
use scenario::{Plan, Scenario};
use std::collections::BTreeSet;
use std::fmt::Write;
use trace::{Record, What};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant, Packet};

/// Returns the built-in scenario, with these changes to its text.
fn plan(changes: &[(&str, &str)], settings: &[&str], seed: u64) -> Plan {
    let (file, mut text) = Scenario::find("indirect-tcp/handoff-time").unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let settings: Vec<_> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    Scenario::plan(&file, &text, &settings, seed).unwrap()
}

fn run(changes: &[(&str, &str)], settings: &[&str], seed: u64) -> Outcome {
    recorder::run::simulate(plan(changes, settings, seed)).unwrap()
}

fn marks<'a>(records: &'a [Record], name: &'a str) -> impl Iterator<Item = (&'a Record, &'a Mark)> + 'a {
    records.iter().filter_map(move |record| match &record.what {
        What::Marked(mark) if mark.name == name => Some((record, mark)),
        _ => None,
    })
}

fn field<'a>(mark: &'a Mark, name: &str) -> Option<&'a Value> {
    mark.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
}

/// Returns whether this is a segment with this flag: FIN is 1, SYN 2, RST 4.
fn has_flag(packet: &Packet, flag: u8) -> bool {
    Header::parse(&packet.bytes).is_ok_and(|(ip, payload)| ip.protocol == 6 && payload[13] & flag != 0)
}

/// Returns the records of the fixed host.
fn at_fixed(outcome: &Outcome) -> impl Iterator<Item = &Record> {
    let fixed = outcome.plan.hosts.iter().position(|host| host.config.name == "fixed").unwrap();
    outcome.records.iter().filter(move |record| record.host.index() == fixed)
}

/// Returns the number of segments with this flag that reached the fixed host's stack.
fn segments_to_fixed(outcome: &Outcome, flag: u8) -> usize {
    let is =
        |record: &&Record| matches!(&record.what, What::Sent(Iface::HOST, packet) if has_flag(packet, flag));
    at_fixed(outcome).filter(is).count()
}

/// Returns the number of resets of connections that were established at the fixed host's stack. Other resets are not
/// counted. They end a handshake that a move interrupted: the application does not notice it, and the mobile host opens
/// another connection at its new router.
fn connections_reset_at_fixed(outcome: &Outcome) -> usize {
    let mut established = BTreeSet::new();
    let mut resets = 0;
    for record in at_fixed(outcome) {
        match &record.what {
            What::Marked(mark)
                if mark.name == "state" && field(mark, "is") == Some(&Value::from("ESTABLISHED")) =>
            {
                let Some(Value::Text(peer)) = field(mark, "peer") else { panic!("{mark:?}") };
                established.insert(peer.clone());
            }
            What::Sent(Iface::HOST, packet) if has_flag(packet, 4) => {
                let (ip, payload) = Header::parse(&packet.bytes).unwrap();
                let port = u16::from_be_bytes([payload[0], payload[1]]);
                resets += usize::from(established.contains(&format!("{}:{port}", ip.src)));
            }
            _ => {}
        }
    }
    resets
}

/// Returns the time at which the fixed host's stack first sent a FIN.
fn fixed_finished(outcome: &Outcome) -> Option<Instant> {
    let is =
        |record: &&Record| matches!(&record.what, What::Received(Iface::HOST, packet) if has_flag(packet, 1));
    at_fixed(outcome).find(is).map(|record| record.at)
}

#[test]
fn a_download_moves_with_its_host_and_every_byte_is_right() {
    for seed in [1, 7] {
        let outcome = run(&[], &[], seed);
        assert_eq!(outcome.doubts, []);
        assert!(outcome.ledger.balances());
        let (_, done) = marks(&outcome.records, "done").next().expect("it is not done");
        assert_eq!((field(done, "bytes"), field(done, "wrong_at")), (Some(&Value::Int(1_500_000)), None));
        // The handoffs are invisible to the fixed host: one connection, opened once and never reset.
        assert_eq!((segments_to_fixed(&outcome, 2), segments_to_fixed(&outcome, 4)), (1, 0));
        assert_eq!(outcome.handoffs.len(), 3);
        for handoff in &outcome.handoffs {
            let outage = handoff.outage().unwrap();
            assert_eq!(outage.unexplained(), Duration::ZERO, "{outage:?}");
            let owners: Vec<_> = outage.owners.iter().filter_map(|owner| owner.stage).collect();
            let stages =
                [Stage::Link, Stage::Detection, Stage::Registration, Stage::PathSwitch, Stage::FirstByte];
            assert!(stages.iter().all(|stage| owners.contains(stage)), "{outage:?}");
        }
    }
}

/// Each router has a separate key for each host and for each other router.
#[test]
fn a_download_moves_where_no_two_routers_have_the_same_key() {
    let outcome = run(&[], &["indirect-tcp.key_per_router=true"], 1);
    assert_eq!(outcome.doubts, []);
    let (_, done) = marks(&outcome.records, "done").next().expect("it is not done");
    assert_eq!((field(done, "bytes"), field(done, "wrong_at")), (Some(&Value::Int(1_500_000)), None));
    assert_eq!((marks(&outcome.records, "taken").count(), segments_to_fixed(&outcome, 4)), (3, 0));
}

/// Runs three handoffs of a host with this number of idle connections. Returns the time from the last greeting until
/// the new router has taken the last connection.
fn handoff_of(connections: usize) -> Duration {
    let client = |number: usize| {
        format!(
            "{{ kind = \"apps/request-client\", to = \"fixed:9000\", transport = \"indirect\", start = \"{}ms\", \
             question = 40, answer = 50, every = \"8s\", exchanges = 1 }}",
            500 + 20 * number
        )
    };
    let clients: Vec<String> = (0..connections).map(client).collect();
    let server = (
        "{ kind = \"apps/bulk-server\", at = \"fixed:9000\", bytes = 1_500_000 }",
        "{ kind = \"apps/request-server\", at = \"fixed:9000\" }",
    );
    let client = (
        "{ kind = \"apps/bulk-client\", to = \"fixed:9000\", transport = \"indirect\", start = \"0.5s\" }",
        &*clients.join(", "),
    );
    let outcome = run(&[server, client], &["duration=12s"], 1);
    assert_eq!(outcome.doubts, []);
    assert_eq!(marks(&outcome.records, "taken").count(), 3 * connections);
    assert_eq!(marks(&outcome.records, "answered").count(), connections);
    let last = |name| marks(&outcome.records, name).last().unwrap().0.at;
    last("taken").since(last("greeted"))
}

/// The round trip between the routers is 10 ms. Sixteen connections need at most two such round trips more than one
/// connection. They need this time for the transfer of more states, because no connection waits for an answer about
/// another connection.
#[test]
fn sixteen_connections_are_handed_over_in_the_time_of_one_and_two_round_trips() {
    let [one, eight, sixteen] = [1, 8, 16].map(handoff_of);
    let round_trip = Duration::from_millis(10);
    assert!(
        eight < one + 2 * round_trip && sixteen < one + 2 * round_trip,
        "{one:?}, {eight:?}, {sixteen:?}"
    );
}

/// Runs a host that turns back before a handoff is over, ten times, while the wires between routers lose packets.
/// Checks that every byte arrives, and that neither end is notified of an error.
fn goes_there_and_back(every_ms: usize) {
    const FIRST_MS: usize = 2_000;
    const MOVES: usize = 10;
    let moves = (0..MOVES).map(|number| {
        let to = if number % 2 == 0 { "right" } else { "left" };
        format!("{{ at = \"{}ms\", to = \"{to}\" }}", FIRST_MS + number * every_ms)
    });
    let moves = format!("roam.moves=[{}]", moves.collect::<Vec<_>>().join(", "));
    let mut lost = Vec::new();
    for loss in ["0.005", "0.01", "0.02"] {
        for seed in 1..=20 {
            let losses = ["left", "right"].map(|wire| format!("wire.{wire}.loss={loss}"));
            let settings = [&moves, &losses[0], &losses[1], "duration=60s", "bulk-server.bytes=600000"];
            let outcome = run(&[], &settings, seed);
            let right = marks(&outcome.records, "done").next().is_some_and(|(_, done)| {
                (field(done, "bytes"), field(done, "wrong_at")) == (Some(&Value::Int(600_000)), None)
            });
            let resets = connections_reset_at_fixed(&outcome);
            let told = marks(&outcome.records, "client_lost").count();
            let served = marks(&outcome.records, "served").count() == 1;
            if !right
                || !served
                || told > 0
                || resets > 0
                || marks(&outcome.records, "connection_lost").count() > 0
            {
                lost.push((loss, seed, right, resets));
            }
        }
    }
    assert_eq!(lost, [], "of 60 runs with a move every {every_ms} ms");
}

#[test]
fn it_goes_there_and_back_every_half_second_over_wires_that_lose() {
    goes_there_and_back(500);
}

#[test]
fn it_goes_there_and_back_every_second_over_wires_that_lose() {
    goes_there_and_back(1_000);
}

#[test]
fn it_goes_there_and_back_every_two_seconds_over_wires_that_lose() {
    goes_there_and_back(2_000);
}

/// At every instant, at most one router may send for a connection: the new router only after it has taken the
/// connection, and the old router only before.
#[test]
fn what_was_taken_was_frozen_and_shipped_before_and_is_forgotten_after() {
    let outcome = run(&[], &[], 3);
    let names =
        ["greeted", "pointer_taken", "offered", "frozen", "shipped", "taken", "forgotten", "handed_over"];
    let moves = marks(&outcome.records, "taken").count();
    assert_eq!(moves, 3);
    for round in 0..moves {
        let at = names.map(|name| {
            let skip = if name == "greeted" { round + 1 } else { round }; // the first greeting named no connection
            marks(&outcome.records, name).nth(skip).unwrap_or_else(|| panic!("{name}")).0.at
        });
        assert!(at.is_sorted(), "{at:?}");
    }
    assert_eq!(marks(&outcome.records, "connection_lost").count(), 0);
}

/// The fixed host finishes at about the time of the move. The bytes that the routers still have for the mobile host,
/// and the FIN, come from the new router, or by the normal route if nothing else is left.
#[test]
fn a_download_whose_end_meets_a_handoff_ends_in_order() {
    let moves = "roam.moves=[{ at = \"2300ms\", to = \"right\" }]";
    let mut moved_after_its_end = 0;
    for bytes in (300_000..460_000).step_by(4_000) {
        let outcome = run(&[], &[moves, &format!("bulk-server.bytes={bytes}")], 1);
        assert_eq!(outcome.doubts, [], "{bytes}");
        let done: Vec<_> = marks(&outcome.records, "done").collect();
        let [(done, mark)] = done[..] else { panic!("{bytes}: {} times done", done.len()) };
        assert_eq!((field(mark, "bytes"), field(mark, "wrong_at")), (Some(&Value::Int(bytes)), None));
        assert_eq!(marks(&outcome.records, "connection_lost").count(), 0, "{bytes}");
        assert_eq!(segments_to_fixed(&outcome, 4), 0, "{bytes}: a reset");
        let at = |name| marks(&outcome.records, name).next().map(|(record, _)| record.at);
        let after = |taken| fixed_finished(&outcome).is_some_and(|end| end < taken) && taken < done.at;
        moved_after_its_end += usize::from(at("taken").is_some_and(after));
    }
    assert!(moved_after_its_end > 0);
}

/// A host that has sent all requests moves while the FINs of both directions are still under way. One half may have
/// ended at the router while the other half still has bytes or a FIN to send. These bytes and the FIN move, and both
/// programs see a clean end. (The fixed host's stack may not: if the last acknowledgment of its FIN is lost, no router
/// can repeat it after the move.)
#[test]
fn a_dialogue_whose_end_meets_handoffs_ends_cleanly_at_both_programs() {
    let server = (
        "{ kind = \"apps/bulk-server\", at = \"fixed:9000\", bytes = 1_500_000 }",
        "{ kind = \"apps/request-server\", at = \"fixed:9000\" }",
    );
    let mut bad = Vec::new();
    for (question, answer) in [(40, 50), (60_000, 50), (40, 60_000)] {
        for start in 0..60 {
            let client = format!(
                "{{ kind = \"apps/request-client\", to = \"fixed:9000\", transport = \"indirect\", \
                 start = \"{}ms\", question = {question}, answer = {answer}, every = \"300ms\", exchanges = 4 }}",
                1_000 + 5 * start
            );
            let client = (
                "{ kind = \"apps/bulk-client\", to = \"fixed:9000\", transport = \"indirect\", start = \"0.5s\" }",
                client.as_str(),
            );
            let moves = "roam.moves=[{ at = \"2300ms\", to = \"right\" }, { at = \"2700ms\", to = \"left\" }, \
                         { at = \"3100ms\", to = \"right\" }]";
            let losses =
                ["wire.left", "wire.right", "cell.1", "cell.2"].map(|link| format!("{link}.loss=0.01"));
            let mut settings = vec![moves, "duration=60s"];
            settings.extend(losses.iter().map(String::as_str));
            let outcome = run(&[server, client], &settings, 1 + start);
            assert_eq!(outcome.doubts, []);
            let answered = marks(&outcome.records, "answered").count();
            let ended = |name| marks(&outcome.records, name).count();
            let (done, lost) =
                (ended("done"), ended("connection_lost") + ended("failed") + ended("client_lost"));
            if (answered, done, lost) != (4, 1, 0) {
                bad.push((question, answer, start, answered, done, lost));
            }
        }
    }
    assert_eq!(bad, []);
}

/// A wire behind the router has a smaller MTU. The ICMP error goes to the mobile host's address, which the router's far
/// half uses.
#[test]
fn an_upload_learns_of_a_narrow_wire_behind_its_router() {
    let outcome = recorder::run::simulate(narrow()).unwrap();
    assert_eq!(outcome.doubts, []);
    assert_eq!(marks(&outcome.records, "done").count(), 1);
    assert_eq!(connections_reset_at_fixed(&outcome), 0);
}

fn narrow() -> Plan {
    let text = r#"
        about = "A narrow wire behind a router"
        duration = "20s"
        [wire.internet]
        ends = ["fixed", "gateway"]
        rate = "10Mb/s"
        delay = "1ms"
        mtu = 1000
        net = "10.0.0.0/24"
        [wire.access]
        ends = ["gateway", "router"]
        rate = "10Mb/s"
        delay = "1ms"
        net = "10.0.1.0/24"
        [cell.1]
        station = "router"
        rate = "2Mb/s"
        net = "10.1.0.0/24"
        [radio]
        retune = "5ms"
        [mobile-ip]
        key = "000102030405060708090a0b0c0d0e0f"
        [indirect-tcp]
        key = "101112131415161718191a1b1c1d1e1f"
        [host.gateway]
        [host.router]
        role = [{ kind = "indirect-tcp/support-router" }, { kind = "mobile-ip/home-agent" }]
        [host.fixed]
        role = [{ kind = "apps/request-server", at = "fixed:9000" }]
        [host.mobile]
        address = "10.1.0.7"
        role = [
            { kind = "mobile-ip/mobile-node" },
            { kind = "indirect-tcp/mobile-host" },
            { kind = "apps/roam", start = "router", moves = [] },
            { kind = "apps/request-client", to = "fixed:9000", start = "2s", question = 60000, answer = 20, every = "100ms", exchanges = 1, transport = "indirect" },
        ]
        "#;
    Scenario::plan("narrow", text, &[], 1).unwrap()
}

/// The host moves just after it has requested a connection. Whichever router connects for the host, the peer's
/// application sees one connection and no error.
#[test]
fn a_call_that_meets_a_move_is_answered_by_one_router() {
    for at in (0..60).step_by(2) {
        let start = format!("start = \"{}ms\"", 1_950 + at);
        let outcome = recorder::run::simulate(chain(2, &start)).unwrap();
        assert_eq!(outcome.doubts, [], "{at}");
        assert_eq!(connections_reset_at_fixed(&outcome), 0, "{at}");
        assert_eq!(marks(&outcome.records, "done").count(), 1, "{at}");
    }
}

#[test]
fn what_never_comes_is_reported_at_both_ends() {
    let (old, new) = (
        "[host.left]\nrole = [{ kind = \"indirect-tcp/support-router\"",
        "[host.left]\nrole = [{ kind = \"indirect-tcp/support-router\", \
         routers = [{ address = \"10.2.0.1\", key = \"ffffffffffffffffffffffffffffffff\" }]",
    );
    let outcome = run(&[(old, new)], &["support-router.patience=1s", "duration=60s"], 1);
    let (_, failed) = marks(&outcome.records, "failed").next().expect("the client waits for ever");
    assert_eq!(field(failed, "why"), Some(&Value::from("connection reset by the peer")));
    assert!(field(failed, "wrong_at").is_none(), "{failed:?}");
    let (_, lost) = marks(&outcome.records, "client_lost").next().expect("the server waits for ever");
    assert!(field(lost, "why").is_some(), "{lost:?}");
    assert_eq!(marks(&outcome.records, "done").count() + marks(&outcome.records, "served").count(), 0);
    assert!(marks(&outcome.records, "connection_lost").next().is_some());
}

/// Over plain TCP, no support router takes a connection over. The mobile host greets the routers all the same.
#[test]
fn without_the_transport_nothing_is_handed_over() {
    let outcome = run(&[("transport = \"indirect\"", "transport = \"tcp\"")], &[], 1);
    assert_eq!(marks(&outcome.records, "taken").count(), 0);
    assert!(marks(&outcome.records, "greeted").count() >= 4, "it greets all the same");
}

#[test]
fn a_peer_that_refuses_is_told_as_by_tcp() {
    for transport in ["tcp", "indirect"] {
        let change = ("transport = \"indirect\"", format!("transport = \"{transport}\""));
        let change = (change.0, change.1.as_str());
        let outcome = run(&[change, ("to = \"fixed:9000\"", "to = \"fixed:9001\"")], &[], 1);
        let (_, failed) = marks(&outcome.records, "failed").next().unwrap();
        assert_eq!(field(failed, "why"), Some(&Value::from("connection refused")), "{transport}");
    }
}

/// Returns a scenario with routers in a row behind one gateway, each with its own network. The host passes one router
/// per second, and sends each router a greeting with the list of the earlier routers.
fn chain(routers: u32, start: &str) -> Plan {
    let mut text = String::from(
        r#"
        about = "Routers in a row"
        duration = "40s"
        [wire.internet]
        ends = ["fixed", "gateway"]
        rate = "10Mb/s"
        delay = "1ms"
        net = "10.0.0.0/24"
        [radio]
        retune = "5ms"
        [mobile-ip]
        key = "000102030405060708090a0b0c0d0e0f"
        [indirect-tcp]
        key = "101112131415161718191a1b1c1d1e1f"
        [host.gateway]
        [host.fixed]
        role = [{ kind = "apps/bulk-server", at = "fixed:9000", bytes = 3000000 }]
        "#,
    );
    let (mut moves, router) =
        (String::new(), "{ kind = \"indirect-tcp/support-router\", send_buffer = 32768 }");
    for number in 1..=routers {
        let agent = if number == 1 { "home-agent" } else { "foreign-agent" };
        write!(text, "[wire.w{number}]\nends = [\"gateway\", \"r{number}\"]\nrate = \"10Mb/s\"\ndelay = \"2500us\"\nnet = \"10.0.{number}.0/24\"\n\
             [cell.{number}]\nstation = \"r{number}\"\nrate = \"2Mb/s\"\nnet = \"10.{number}.0.0/24\"\n\
             [host.r{number}]\nrole = [{router}, {{ kind = \"mobile-ip/{agent}\" }}]\n",
        ).unwrap();
        if number > 1 {
            write!(moves, "{{ at = \"{number}s\", to = \"r{number}\" }},").unwrap();
        }
    }
    write!(text, "[host.mobile]\naddress = \"10.1.0.7\"\nrole = [{{ kind = \"mobile-ip/mobile-node\" }}, \
         {{ kind = \"indirect-tcp/mobile-host\" }}, {{ kind = \"apps/roam\", start = \"r1\", moves = [{moves}] }}, \
         {{ kind = \"apps/bulk-client\", to = \"fixed:9000\", transport = \"indirect\", {start} }}]\n",
    ).unwrap();
    Scenario::plan("chain", &text, &[], 1).unwrap()
}

/// At the fourth router, the host's Registration Request and three forward pointers wait for one ARP reply. None may be
/// lost, as the host is not reachable without them.
#[test]
fn no_message_of_a_router_is_lost_behind_others_that_wait_for_arp() {
    let outcome = recorder::run::simulate(chain(6, "start = \"0.5s\"")).unwrap();
    assert_eq!(outcome.doubts, []);
    let lost = outcome
        .records
        .iter()
        .find(|record| matches!(&record.what, What::Dropped(_, _, why) if why == "neighbor_queue_full"));
    assert!(lost.is_none(), "{lost:?}");
    assert_eq!(marks(&outcome.records, "done").count(), 1);
    let sent: Vec<Instant> = outcome
        .records
        .iter()
        .filter(|record| read_by_mobile(&outcome, record))
        .map(|record| record.at)
        .collect();
    let longest = sent.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
    assert!(longest < Duration::from_secs(1), "no bytes for {longest:?}");
}

/// Returns whether this is a read of the mobile host's program.
fn read_by_mobile(outcome: &Outcome, record: &Record) -> bool {
    let mobile = outcome.plan.hosts.iter().position(|host| host.config.name == "mobile").unwrap();
    let is_read =
        matches!(&record.what, What::App(event) if matches!(event.change, node::AppChange::Read(_)));
    is_read && record.host.index() == mobile
}
