//! Simulated runs of Mobile IP with route optimization: a correspondent with a binding cache sends to a mobile node that
//! visits two foreign agents and comes home.

use recorder::run::Outcome;
use scenario::{Plan, Repetition, Scenario};
use trace::{HostId, What};
use wire::ipv4::{self, Header};
use wire::tunnel;
use wire::{Instant, Packet};

const SCENARIO: &str = include_str!("../scenarios/mobile-ip/route-optimization.toml");

/// Returns the plan of the scenario after `changes`: pairs of a text and its replacement.
fn plan(changes: &[(&str, &str)]) -> Plan {
    plan_in(changes, Repetition::only(1))
}

fn plan_in(changes: &[(&str, &str)], phase: Repetition) -> Plan {
    let mut text = SCENARIO.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Scenario::repetition("route-optimization", &text, &[], 1, phase).unwrap()
}

/// Runs the scenario after `changes`. The ledger must balance, and no doubt may be left.
fn run(changes: &[(&str, &str)]) -> Outcome {
    run_in(changes, Repetition::only(1))
}

fn run_in(changes: &[(&str, &str)], phase: Repetition) -> Outcome {
    let outcome = recorder::run::simulate(plan_in(changes, phase)).unwrap();
    assert_eq!(outcome.doubts, []);
    assert!(outcome.ledger.balances());
    outcome
}

/// Returns six phases: in each, the moves and the workload begin at other points of the periods of all others.
fn phases() -> impl Iterator<Item = Repetition> {
    (0..6).map(|number| Repetition { number, of: 6, seed: 1 })
}

fn host(outcome: &Outcome, name: &str) -> HostId {
    HostId(outcome.plan.hosts.iter().position(|host| host.config.name == name).unwrap() as u32)
}

/// Returns whether a packet is a UDP datagram for the mobile node, in a tunnel or not.
fn is_data(packet: &Packet) -> bool {
    let inner = tunnel::decapsulate(&packet.bytes)
        .map_or_else(|_| packet.bytes.clone(), |(_, inner)| inner.into_owned());
    let is_for_mobile =
        |(header, _): (Header, &[u8])| header.protocol == ipv4::UDP && header.dst.octets() == [10, 1, 0, 7];
    Header::parse(&inner).is_ok_and(is_for_mobile) && inner.len() > 150
}

/// Returns when data for the mobile node arrived at a host.
fn arrivals(outcome: &Outcome, name: &str) -> Vec<Instant> {
    let at = host(outcome, name);
    let arrived = |what: &What| matches!(what, What::Received(_, packet) if is_data(packet));
    let records = outcome.records.iter().filter(|record| record.host == at && arrived(&record.what));
    records.map(|record| record.at).collect()
}

/// Returns the times and the care-of addresses that the correspondent learnt.
fn learnt(outcome: &Outcome) -> Vec<(Instant, String)> {
    let marks = outcome.records.iter().filter_map(|record| match &record.what {
        What::Marked(mark) if mark.name == "binding_learnt" => {
            let (_, care_of) = mark.fields.iter().find(|(name, _)| *name == "care_of").unwrap();
            Some((record.at, format!("{care_of:?}")))
        }
        _ => None,
    });
    marks.collect()
}

fn count(times: &[Instant], from: Instant, to: Instant) -> usize {
    times.iter().filter(|at| (from..to).contains(*at)).count()
}

/// Asserts that data pass the home agent after a move only until the Update has arrived, and that they reach the mobile
/// node.
#[track_caller]
fn assert_straight(outcome: &Outcome) {
    let learnt = learnt(outcome);
    assert!(learnt.len() == 2, "{learnt:?}");
    let at_home = arrivals(outcome, "home");
    // The packets that were under way to the home agent take 41 ms.
    let under_way = wire::Duration::from_millis(45);
    let moves: Vec<Instant> = outcome.handoffs.iter().map(|handoff| handoff.begun).collect();
    let [away, other, home_again] = moves[..] else { panic!("{moves:?}") };
    assert_eq!(count(&at_home, learnt[0].0 + under_way, home_again), 0, "{learnt:?}");
    let at_mobile = arrivals(outcome, "mobile");
    let from = away + wire::Duration::from_millis(700);
    let (got, all) = (count(&at_mobile, from, other), other.since(from).as_millis() as usize / 20);
    assert!((all - 5..=all + 1).contains(&got), "{got} of {all}");
}

#[test]
fn packets_after_an_update_do_not_pass_the_home_agent() {
    for phase in phases() {
        assert_straight(&run_in(&[], phase));
    }
}

#[test]
fn nonces_protect_updates_as_timestamps_do() {
    for phase in phases() {
        assert_straight(&run_in(&[("[mobile-ip]\n", "[mobile-ip]\nreplay = \"nonces\"\n")], phase));
    }
}

#[test]
fn the_tunnel_is_of_the_kind_that_the_mobile_node_asked_for() {
    let offers = "encapsulations = [\"gre\", \"minimal\"]";
    for kind in ["gre", "minimal"] {
        let agent = format!("\"mobile-ip/home-agent\", {offers}");
        let foreign = format!("\"mobile-ip/foreign-agent\", {offers}");
        let mobile = format!("\"mobile-ip/mobile-node\", encapsulation = \"{kind}\"");
        let correspondent = format!("\"mobile-ip/correspondent\", {offers}");
        let outcome = run(&[
            ("\"mobile-ip/home-agent\"", &agent),
            ("\"mobile-ip/foreign-agent\"", &foreign),
            ("\"mobile-ip/mobile-node\"", &mobile),
            ("\"mobile-ip/correspondent\"", &correspondent),
        ]);
        assert_straight(&outcome);
        let protocol = if kind == "gre" { ipv4::GRE } else { ipv4::MINIMAL };
        let at = host(&outcome, "correspondent");
        let is_tunnel = |packet: &Packet| {
            Header::parse(&packet.bytes).is_ok_and(|(header, _)| header.protocol == protocol)
        };
        let sent = outcome.records.iter().filter(|record| record.host == at);
        let sent = sent.filter(|record| matches!(&record.what, What::Sent(_, packet) if is_tunnel(packet)));
        assert!(sent.count() > 300, "{kind}");
    }
}

/// The clock of the home agent, or that of the correspondent, is set by more than the window while the correspondent has an entry. Then
/// the mobile node moves. The correspondent does not accept the Update, but does not keep the old entry either: data reach the
/// mobile node by the home agent, if not straight.
#[test]
fn after_a_clock_step_data_do_not_follow_an_old_entry() {
    for host in ["home", "correspondent"] {
        for step in ["+60s", "-60s"] {
            let event = format!(
                "\n[[event]]\nat = \"15.3s\"\nkind = \"clock\"\nhost = \"{host}\"\nstep = \"{step}\"\n"
            );
            // When the mobile node moves, the entry is older than the window of 7 s.
            let outcome = run(&[
                ("duration = \"14s\"", "duration = \"40s\""),
                ("stop = \"13s\"", "stop = \"39s\""),
                ("\"7.3s\"", "\"17.3s\""),
                ("\"11.3s\"", "\"32.3s\""),
                ("[host.router]", &format!("[host.router]{event}")),
            ]);
            let at_mobile = arrivals(&outcome, "mobile");
            let second = |second: u64| Instant::from_millis(second * 1000);
            for (from, to) in [(5, 17), (20, 32), (34, 39)] {
                let got = count(&at_mobile, second(from), second(to));
                let all = (to - from) as usize * 50;
                assert!(got + 2 >= all && got <= all + 2, "{host} {step}: {got} of {all} from {from} s");
            }
        }
    }
}

/// A private binding: the correspondent learns nothing, and all packets pass the home agent.
#[test]
fn a_private_binding_keeps_the_triangle() {
    let outcome = run(&[("\"mobile-ip/mobile-node\"", "\"mobile-ip/mobile-node\", private_bindings = true")]);
    assert_eq!(learnt(&outcome), []);
    let (from, to) = (Instant::from_millis(4_000), Instant::from_millis(7_000));
    assert_eq!(count(&arrivals(&outcome, "home"), from, to), 150);
    assert_eq!(count(&arrivals(&outcome, "mobile"), from, to), 150);
}

/// A short lifetime: the entry is renewed by Binding Requests while it is in use. Lifetimes are whole seconds, so an entry can
/// end shortly before the registration is renewed. Then a few packets pass the home agent.
#[test]
fn an_entry_in_use_does_not_end() {
    let outcome = run(&[("\"mobile-ip/mobile-node\"", "\"mobile-ip/mobile-node\", lifetime = \"3s\"")]);
    let at_home = arrivals(&outcome, "home");
    let first = learnt(&outcome)[0].0 + wire::Duration::from_millis(45);
    let passed = count(&at_home, first, Instant::from_millis(11_300));
    assert!(passed <= 12, "{passed} of 400");
}

/// A download over TCP: the correspondent's host learns the MTU of its tunnel, and all bytes arrive.
#[test]
fn a_download_fits_the_direct_tunnel() {
    let source = "{ kind = \"apps/constant-rate\", to = \"mobile:9002\", rate = 50, size = 160, start = \"0.5s\", stop = \"13s\" }";
    let outcome = run(&[
        (source, "{ kind = \"apps/bulk-server\", at = \"correspondent:9000\", bytes = 1_500_000 }"),
        (
            "{ kind = \"apps/sink\", at = \"mobile:9002\" }",
            "{ kind = \"apps/bulk-client\", to = \"correspondent:9000\", start = \"0.5s\" }",
        ),
    ]);
    assert!(learnt(&outcome).len() >= 2, "{:?}", learnt(&outcome));
    assert_eq!(outcome.flows.len(), 1);
    assert_eq!(outcome.flows[0].bytes, 1_500_000, "{:?}", outcome.flows[0]);
}

/// The delays of the wire to the home network in the table of docs/mobile-ip.md, in milliseconds.
const DELAYS_MS: [u64; 6] = [1, 5, 20, 40, 80, 250];

/// Returns the changes of the scenario for this delay of the wire to the home network, with or without a binding cache.
fn path(ms: u64, has_cache: bool) -> Vec<(&'static str, String)> {
    let mut changes = vec![("delay = \"40ms\"", format!("delay = \"{ms}ms\""))];
    if !has_cache {
        changes.push(("{ kind = \"mobile-ip/correspondent\" },", String::new()));
    }
    changes
}

fn borrowed<'a>(changes: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    changes.iter().map(|(from, to)| (*from, to.as_str())).collect()
}

/// Returns the shortest delay in milliseconds of a datagram that is sent from 5 s to 7 s, when the mobile node has been away for
/// 2 s. And the number of datagrams that pass the home agent while the mobile node is away.
fn datagrams(ms: u64, has_cache: bool) -> (f64, usize) {
    let outcome = run(&borrowed(&path(ms, has_cache)));
    let mut sent = std::collections::BTreeMap::new();
    let mut delays = Vec::new();
    for record in &outcome.records {
        match &record.what {
            What::AppSent(packet) => drop(sent.insert(*packet, record.at)),
            What::AppReceived(packet) => {
                delays.extend(sent.get(packet).map(|at| (*at, record.at.since(*at))));
            }
            _ => {}
        }
    }
    let is_away = |at: &Instant| (Instant::from_millis(5000)..Instant::from_millis(7000)).contains(at);
    let shortest = delays.iter().filter(|(at, _)| is_away(at)).map(|(_, delay)| *delay).min().unwrap();
    let [from, to] = [3_300, 11_300].map(Instant::from_millis);
    (shortest.as_secs_f64() * 1e3, count(&arrivals(&outcome, "home"), from, to))
}

/// Returns the throughput in Mb/s of a download over 8 s, which begins when the mobile node has been away for 2 s.
fn throughput(ms: u64, has_cache: bool, rate: &str) -> f64 {
    let mut changes = path(ms, has_cache);
    let source = "{ kind = \"apps/constant-rate\", to = \"mobile:9002\", rate = 50, size = 160, start = \"0.5s\", stop = \"13s\" }";
    let server = "{ kind = \"apps/bulk-server\", at = \"correspondent:9000\", duration = \"8s\" }";
    let client = "{ kind = \"apps/bulk-client\", to = \"correspondent:9000\", start = \"5.3s\" }";
    let later = ", { at = \"7.3s\", to = \"other\" }, { at = \"11.3s\", to = \"home\" }";
    changes.push((source, server.to_owned()));
    changes.push(("{ kind = \"apps/sink\", at = \"mobile:9002\" }", client.to_owned()));
    changes.push((later, String::new()));
    changes.push(("duration = \"14s\"", "duration = \"20s\"".to_owned()));
    changes.push(("rate = \"2Mb/s\"", format!("rate = \"{rate}\"")));
    let plan = plan(&borrowed(&changes));
    let opened = Instant::from_millis(5_300);
    // Without the analysis of the run, which takes longer than the run.
    let records = plan.world().unwrap().run(plan.end()).records;
    let bytes: u64 = records
        .iter()
        .filter(|record| record.at.since(opened) <= wire::Duration::from_secs(8) && record.at > opened)
        .filter_map(|record| record.what.read())
        .sum();
    bytes as f64 * 8.0 / 8e6
}

/// The table of docs/mobile-ip.md has what is measured here.
#[test]
fn the_gains_of_a_correspondent_are_those_of_the_table() {
    let page = include_str!("../docs/mobile-ip.md");
    let mut missing = Vec::new();
    for ms in DELAYS_MS {
        let ((by_home, all), (straight, some)) = (datagrams(ms, false), datagrams(ms, true));
        assert_eq!(all, 400, "{ms} ms");
        let [slow, fast] =
            ["2Mb/s", "11Mb/s"].map(|rate| [false, true].map(|has_cache| throughput(ms, has_cache, rate)));
        let row = format!(
            "| {ms} ms | {by_home:.2} ms | {straight:.2} ms | {some} | {:.2}, {:.2} Mb/s | {:.2}, {:.2} Mb/s |",
            slow[0], slow[1], fast[0], fast[1]
        );
        if !page.contains(&row) {
            missing.push(row);
        }
    }
    assert!(missing.is_empty(), "docs/mobile-ip.md does not have these rows:\n{}", missing.join("\n"));
}

/// Both ends are mobile nodes with a binding cache. The role of the cache is behind that of the mobile node in the list.
#[test]
fn two_mobile_nodes_with_caches_reach_each_other_straight() {
    let second = r#"[host.second]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "mobile-ip/correspondent" },
    { kind = "apps/roam", start = "other" },
    { kind = "apps/constant-rate", to = "mobile:9002", rate = 50, size = 160, start = "4.5s", stop = "10s" },
]

[host.router]"#;
    let outcome = run(&[
        (
            "    { kind = \"apps/constant-rate\", to = \"mobile:9002\", rate = 50, size = 160, start = \"0.5s\", stop = \"13s\" },\n",
            "",
        ),
        ("[host.router]", second),
        ("{ at = \"7.3s\", to = \"other\" }, { at = \"11.3s\", to = \"home\" }", ""),
    ]);
    let learnt = learnt(&outcome);
    assert!(
        learnt.iter().any(|(at, care_of)| at.0 < 5_500_000_000 && care_of.contains("10.2.0.1")),
        "{learnt:?}"
    );
    let flow = &outcome.flows[0];
    assert!(flow.lost <= 1, "{} lost", flow.lost);
    let late = arrivals(&outcome, "home").into_iter().filter(|at| at.0 > 5_700_000_000).count();
    assert_eq!(late, 0, "packets that pass the home agent after the first second");
}

/// Returns when the datagrams were sent that no application received.
fn missing(outcome: &Outcome) -> Vec<Instant> {
    let mut sent = std::collections::BTreeMap::new();
    for record in &outcome.records {
        match &record.what {
            What::AppSent(packet) => drop(sent.insert(*packet, record.at)),
            What::AppReceived(packet) => drop(sent.remove(packet)),
            _ => {}
        }
    }
    sent.into_values().collect()
}

/// Returns when marks with one of these names were set, with their names.
fn marked<'a>(outcome: &'a Outcome, names: &[&str]) -> Vec<(Instant, &'a str)> {
    let name = |what: &'a What| match what {
        What::Marked(mark) if names.contains(&mark.name) => Some(mark.name),
        _ => None,
    };
    outcome.records.iter().filter_map(|record| Some((record.at, name(&record.what)?))).collect()
}

/// Returns when the home agent had the second care-of address, and when the correspondent had it or had no entry.
fn known(outcome: &Outcome) -> [Instant; 2] {
    let moved = outcome.handoffs[1].begun;
    let mut changed = marked(outcome, &["binding_changed"]).into_iter().map(|(at, _)| at);
    let changed = changed.find(|at| *at > moved).unwrap();
    let cache = marked(outcome, &["binding_learnt", "binding_forgotten"]);
    let before = cache.iter().rfind(|(at, _)| *at < changed).unwrap();
    let after = cache.iter().find(|(at, _)| *at >= changed);
    let known = if before.1 == "binding_forgotten" { Some(before) } else { after };
    let known = known.unwrap_or_else(|| panic!("the correspondent keeps its former entry: {cache:?}"));
    [changed, known.0]
}

/// Runs the scenario in this phase, without the return home, and with the second move at `moves_ms`. These faults occur: each is a time
/// in nanoseconds and the lines of an event. A phase shifts these times too.
fn with_faults(phase: Repetition, moves_ms: u64, faults: &[(u64, &str)]) -> Outcome {
    let event = |(at, lines): &(u64, &str)| {
        format!("\n[[event]]\nat = \"{}.{:09}s\"\n{lines}\n", at / 1_000_000_000, at % 1_000_000_000)
    };
    let events: String = faults.iter().map(event).collect();
    let changes = [
        (", { at = \"11.3s\", to = \"home\" }", String::new()),
        ("\"7.3s\"", format!("\"{moves_ms}ms\"")),
        ("[host.router]", format!("[host.router]{events}")),
    ];
    run_in(&borrowed(&changes), phase)
}

const CRASH: &str = "kind = \"crash\"\nhost = \"home\"";
const RESTART: &str = "kind = \"restart\"\nhost = \"home\"";

/// Asserts that the datagrams that are lost are those for which there is a reason: they were sent between the move to the second
/// foreign agent, and the time at which the home agent and the correspondent know its care-of address, or the correspondent sends to
/// the home agent. This time is at most `most` after the move. Returns their number. The datagrams that were under way at the first
/// move do not count.
#[track_caller]
fn assert_explained(outcome: &Outcome, most: wire::Duration) -> usize {
    let moved = outcome.handoffs[1].begun;
    let [changed, known] = known(outcome);
    let end = changed.max(known);
    assert!(end.since(moved) <= most, "{:?} after the move", end.since(moved));
    // A datagram needs 43 ms to the home agent, and as long from there to the foreign agent.
    let begin = moved - wire::Duration::from_millis(100);
    let first = outcome.handoffs[0].begun + wire::Duration::from_millis(100);
    let missing: Vec<Instant> = missing(outcome).into_iter().filter(|at| *at > first).collect();
    let others: Vec<_> = missing.iter().filter(|at| **at < begin || **at > end).collect();
    assert!(others.len() <= 1, "lost at {others:?}, without a reason before {begin:?} or after {end:?}");
    missing.len()
}

/// The home agent is down for about 1 s: when the mobile node moves, until shortly before it moves, or earlier. The correspondent has an
/// entry with the former care-of address.
#[test]
fn a_home_agent_that_restarts_around_a_move_loses_no_further_datagram() {
    let at = |ms: u64| ms * 1_000_000;
    for phase in phases() {
        for (down, up, most, most_lost) in
            [(7_200, 8_400, 3_200, 65), (6_100, 7_100, 200, 7), (5_000, 6_000, 200, 7)]
        {
            let outcome = with_faults(phase, 7300, &[(at(down), CRASH), (at(up), RESTART)]);
            let lost = assert_explained(&outcome, wire::Duration::from_millis(most));
            assert!(lost <= most_lost, "{lost} lost: down from {down} to {up} ms");
        }
    }
}

/// The home agent crashes when it has stored the new care-of address. The Binding Update about it is lost. After the restart, the
/// correspondent must not keep its entry with the former care-of address.
#[test]
fn an_update_that_was_lost_before_a_restart_is_no_lasting_loss() {
    for moves_ms in [7300, 7467, 7634, 7801, 7968, 8135] {
        let run = |faults| with_faults(Repetition::only(1), moves_ms, faults);
        let usual = run(&[]);
        let changed = known(&usual)[0].0;
        let ms = 1_000_000;
        let faults = [
            (changed + ms, "kind = \"cut\"\nwire = \"long\""),
            (changed + 2 * ms, CRASH),
            (changed + 700 * ms, RESTART),
            (changed + 710 * ms, "kind = \"restore\"\nwire = \"long\""),
        ];
        let outcome = run(&faults);
        let learnt: Vec<u64> = learnt(&outcome).into_iter().map(|(at, _)| at.0).collect();
        let early = learnt.iter().filter(|at| (changed..changed + 710 * ms).contains(at));
        assert_eq!(early.count(), 0, "the first Update is lost: {learnt:?}");
        let lost = assert_explained(&outcome, wire::Duration::from_millis(2_200));
        assert!((50..=70).contains(&lost), "{lost} lost: about one second, until the next request");
    }
}
