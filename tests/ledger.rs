//! The ledger balances under faults of links, names the place of a loss, and notices a single missing record. The
//! analysis of outages notices a missing record as well.

use node::{Mark, Span, Stage};
use recorder::handoff::{Handoff, Outage};
use recorder::ledger::{self, Ledger, Running, Vanished};
use recorder::run::{Backend, Outcome};
use scenario::{Plan, Scenario, Setting};
use std::collections::BTreeMap;
use trace::{Doubt, HostId, Record, What};
use wire::{Duration, Iface, PacketId};

fn plan_of(name: &str, settings: &[&str]) -> Plan {
    let (file, text) = Scenario::find(name).unwrap();
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    Scenario::plan(&file, &text, &settings, 7).unwrap()
}

fn plan(settings: &[&str]) -> Plan {
    plan_of("first", settings)
}

fn run(settings: &[&str]) -> Outcome {
    recorder::run::simulate(plan(settings)).unwrap()
}

fn judge(plan: &Plan, records: Vec<Record>) -> Outcome {
    Outcome::new(plan.clone(), Backend::Sim, records, None)
}

fn without(records: &[Record], index: usize) -> Vec<Record> {
    records.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, record)| record.clone()).collect()
}

fn sums(ledger: &Ledger) -> (u64, u64) {
    (ledger.sent + ledger.copied, ledger.delivered + ledger.dropped_total() + ledger.held)
}

#[track_caller]
fn trusted(outcome: &Outcome) {
    assert_eq!(outcome.doubts, []);
    assert_eq!(sums(&outcome.ledger).0, sums(&outcome.ledger).1);
    assert!(outcome.ledger.balances());
}

// --- without records
// ---------------------------------------------------------------------------------------------------

/// Checks that a run without records is the same run, and that its ledger is the same, except for the list of losses.
#[track_caller]
fn counts_the_same(plan: &Plan) {
    let outcome = recorder::run::simulate(plan.clone()).unwrap();
    let counted = recorder::run::count(plan.watched(Running::new(plan)).unwrap(), plan);
    assert_eq!(Some(counted.fingerprint), outcome.fingerprint, "{}", plan.name);
    assert_eq!(counted.ledger, Ledger { losses: Vec::new(), ..outcome.ledger }, "{}", plan.name);
    assert_eq!(counted.doubts.is_empty(), counted.ledger.balances());
    let links = |record: &&Record| matches!(record.what, What::Sent(iface, _) if iface != Iface::HOST);
    assert_eq!(counted.hops, outcome.records.iter().filter(links).count() as u64);
    assert!(
        counted.most_open < 1000,
        "{} packets under way: their ledger entries are not final",
        counted.most_open
    );
}

#[test]
fn books_that_are_closed_while_a_run_goes_on_are_those_of_its_records() {
    for name in
        ["first", "mobile-ip/download", "cellular-ip/udp-loss", "sigma/handoff", "indirect-tcp/handoff-time"]
    {
        counts_the_same(&plan_of(name, &[]));
    }
}

#[test]
fn so_they_are_under_every_fault() {
    counts_the_same(&plan(&["wire.left.queue=1", "wire.left.rate=64kb/s", "constant-rate.rate=1000"]));
    counts_the_same(&plan(&["wire.left.duplicate=0.3", "cell.2.loss=0.2", "cell.3.duplicate=0.2"]));
    counts_the_same(&plan(&["radio.excursion=20ms"]));
    counts_the_same(&plan(&[
        "wire.left.duplicate=0.3",
        "wire.left.duplicate_delay=400ms",
        "cell.3.duplicate=0.2",
        "cell.3.duplicate_delay=3s",
    ]));
}

/// One copy may be duplicated by a link while another copy is still on that link.
#[test]
fn so_they_are_where_links_in_a_row_double() {
    counts_the_same(&plan(&[
        "wire.internet.duplicate=0.3",
        "wire.left.duplicate=0.3",
        "wire.right.duplicate=0.3",
    ]));
}

/// The copy for the new path waits in the delay device after the other copy has ended. No record contains the waiting
/// copy, and the counts must be the same all the same.
#[test]
fn so_they_are_while_a_node_keeps_a_copy() {
    let plan = Scenario::plan("semisoft.toml", SEMISOFT, &[], 1).unwrap();
    counts_the_same(&plan);
    let outcome = recorder::run::simulate(plan).unwrap();
    assert!(outcome.ledger.copied >= 4, "each handoff makes copies: {:?}", outcome.ledger);
}

/// Datagrams through a gateway above two base stations, to a host that moves between them by semisoft handoffs.
const SEMISOFT: &str = r#"
about = "semisoft"
duration = "20s"
[wire.internet]
ends = ["correspondent", "gw"]
rate = "10Mb/s"
delay = "5ms"
[wire.left]
ends = ["gw", "b1"]
rate = "10Mb/s"
delay = "1ms"
[wire.right]
ends = ["gw", "b2"]
rate = "10Mb/s"
delay = "5ms"
[cell.1]
station = "b1"
rate = "2Mb/s"
[cell.2]
station = "b2"
rate = "2Mb/s"
[cellular-ip]
network_key = "000102030405060708090a0b0c0d0e0f"
[host.correspondent]
address = "10.2.0.2"
default_route = "gw"
role = [{ kind = "apps/constant-rate", to = "mobile:9001", rate = 20, size = 100, start = "0.5s", stop = "19s" }]
[host.gw]
address = "10.1.0.1"
role = [{ kind = "cellular-ip/gateway", uplink = "correspondent" }]
[host.b1]
role = [{ kind = "cellular-ip/station", uplink = "gw" }]
[host.b2]
role = [{ kind = "cellular-ip/station", uplink = "gw" }]
[host.mobile]
address = "10.1.0.7"
role = [
    { kind = "cellular-ip/mobile", start = "b1", moves = [
        { at = "2.01s", to = "b2", kind = "semisoft" },
        { at = "6.02s", to = "b1", kind = "semisoft" },
        { at = "10.03s", to = "b2", kind = "semisoft" },
        { at = "14.04s", to = "b1", kind = "semisoft" },
    ] },
    { kind = "apps/sink", at = "mobile:9001" },
]
"#;

#[test]
fn a_tree_delivers_everything_and_counts_the_same() {
    let plan = plan_of("scale/tree", &["tree.hosts=300", "tree.fan_out=[4, 5, 6]", "duration=3500ms"]);
    counts_the_same(&plan);
    let counted = recorder::run::count(plan.watched(Running::new(&plan)).unwrap(), &plan);
    let ledger = counted.ledger;
    // Each of the 300 hosts sends three datagrams, and the first 181 hosts send a fourth one. At the end of the run,
    // the last datagram is on its first wire. The datagram before it was sent 2.8 ms before the end, and is on its
    // third wire.
    assert_eq!((ledger.sent, ledger.delivered, ledger.held), (900 + 181, 900 + 179, 2));
    assert_eq!((ledger.dropped_total(), ledger.copied), (0, 0));
    assert_eq!(counted.hops, ledger.delivered * 4 + 1 + 3, "four wires each, but for these two");
}

/// In small access networks of Cellular IP, the ledger without records is the same, and route-updates reach their
/// gateways.
#[test]
fn a_tree_of_cellular_ip_delivers_everything_and_counts_the_same() {
    let plan = plan_of("scale/cellular-ip", &["tree.hosts=300", "tree.fan_out=[4, 5, 6]", "duration=3500ms"]);
    counts_the_same(&plan);
    let ledger = recorder::run::count(plan.watched(Running::new(&plan)).unwrap(), &plan).ledger;
    // The datagrams of `scale/tree`, and three route-updates of each host.
    assert_eq!((ledger.sent, ledger.dropped_total(), ledger.copied), (900 + 181 + 3 * 300, 0, 0));
    assert_eq!(ledger.delivered + ledger.held, ledger.sent);
    assert!(ledger.held <= 3, "{} under way at the end", ledger.held);
}

/// A host without traffic keeps its mappings by route-updates, one every 3 s.
#[test]
fn an_idle_host_of_a_tree_announces_itself() {
    let settings = ["tree.hosts=10", "tree.fan_out=[2, 2]", "duration=10s", "tree.host.role=[]"];
    let outcome = recorder::run::simulate(plan_of("scale/cellular-ip", &settings)).unwrap();
    trusted(&outcome);
    // Each host sends three route-updates at the start, and another one 3, 6 and 9 s after the third. All hosts start
    // before 900 ms.
    assert_eq!((outcome.ledger.sent, outcome.ledger.delivered), (10 * 6, 10 * 6));
}

// --- faults of a link
// --------------------------------------------------------------------------------------------------

#[test]
fn a_full_queue_is_named_with_its_interface() {
    // 100 kB/s are sent into a wire that carries 8 kB/s.
    let outcome = run(&["wire.left.queue=1", "wire.left.rate=64kb/s", "constant-rate.rate=1000"]);
    trusted(&outcome);
    let full: Vec<_> = outcome.ledger.losses.iter().filter(|loss| loss.reason == "queue_full").collect();
    assert!(full.len() > 1000, "{}", full.len());
    assert!(full.iter().all(|loss| loss.place == "b1:b2"), "{:?}", full.first());
    assert_eq!(outcome.ledger.dropped.get("queue_full"), Some(&(full.len() as u64)));
    assert_eq!(run(&[]).ledger.dropped.get("queue_full"), None);
}

#[test]
fn what_a_wire_doubles_is_counted_as_copied_and_the_wire_is_named() {
    let outcome = run(&["wire.left.duplicate=0.2"]);
    trusted(&outcome);
    let down = outcome.ledger.doubled.get("the wire from b1:b2 to b2:b1").copied().unwrap_or_default();
    assert!((5..80).contains(&down), "about a fifth of half of 250: {:?}", outcome.ledger.doubled);
    assert!(
        outcome.ledger.doubled.keys().all(|place| place.contains("b1:b2")),
        "{:?}",
        outcome.ledger.doubled
    );
    let doubled: u64 = outcome.ledger.doubled.values().sum();
    let plain = run(&[]);
    assert!(plain.ledger.doubled.is_empty() && outcome.ledger.copied >= plain.ledger.copied + doubled);
    let handed = |outcome: &Outcome| {
        outcome.records.iter().filter(|record| matches!(record.what, What::AppReceived(_))).count()
    };
    assert!(handed(&outcome) > handed(&plain), "the application met the copies");
}

/// On Linux a packet is identified by its bytes. A home agent announces an address with the same bytes as the host that
/// has the address, and each of them receives the other's packet.
#[test]
fn what_two_hosts_make_in_the_same_words_is_one_packet_and_a_copy() {
    let plan = plan(&[]);
    let ([a, b], _) = &plan.wires[0];
    let place = |wanted| {
        let mut places = plan.hosts.iter().zip((0..).map(HostId)).flat_map(|(host, id)| {
            (1..).map(Iface).zip(&host.ports).map(move |(iface, port)| (port.port, id, iface))
        });
        places.find(|(port, ..)| *port == wanted).map(|(_, host, iface)| (host, iface)).unwrap()
    };
    let packet = wire::Packet { id: PacketId(7), ..wire::Packet::new(wire::Mac::ZERO, vec![1]) };
    let mut records = Vec::new();
    for [from, to] in [[a, b], [b, a]] {
        let mut write = |(host, iface), what: &dyn Fn(Iface) -> What| {
            records.push(Record { at: wire::Instant::ZERO, host, what: what(iface) });
        };
        write(place(*from), &|iface| What::Sent(iface, packet.clone()));
        write(place(*to), &|iface| What::Received(iface, packet.clone()));
        write(place(*to), &|iface| What::Dropped(iface, packet.id, "consumed".into()));
    }
    let ledger = ledger::close(&plan, &records);
    assert_eq!((ledger.sent, ledger.copied, ledger.delivered), (1, 1, 2));
    assert!(ledger.balances(), "{:?}", ledger.doubts());
}

#[test]
fn what_a_link_loses_is_in_the_books_with_its_place() {
    for (setting, place) in [
        ("wire.left.loss=0.2", "b1:b2"),
        ("wire.internet.loss=0.2", "correspondent:b1"),
        ("cell.2.loss=0.2", "b2:air"),
    ] {
        let outcome = run(&[setting]);
        assert_eq!(outcome.ledger.doubts(), [], "{setting}");
        assert!(outcome.ledger.balances(), "{setting}");
        let lost: Vec<_> = outcome.ledger.losses.iter().filter(|loss| loss.reason == "link_error").collect();
        assert!(lost.iter().filter(|loss| loss.place == place).count() > 10, "{setting}: {lost:?}");
    }
}

#[test]
fn loss_and_doubling_at_once_balance_whatever_the_seed() {
    let settings =
        ["wire.left.duplicate=0.3", "wire.right.loss=0.3", "cell.2.duplicate=0.3", "cell.3.loss=0.3"];
    for seed in 0..10 {
        let plan = Plan { seed, ..plan(&settings) };
        let outcome = recorder::run::simulate(plan).unwrap();
        assert_eq!(outcome.ledger.doubts(), [], "seed {seed}");
        assert!(outcome.ledger.balances(), "seed {seed}: {:?}", sums(&outcome.ledger));
    }
}

// --- one record missing
// ------------------------------------------------------------------------------------------------

/// Returns the meaning of a record for the ledger, or `None` if it has none. `AppSent` has none: the record of the
/// host's node shows the datagram too. A datagram with only that record may be a kernel's own, which has no
/// application.
fn kind(record: &Record) -> Option<&'static str> {
    Some(match &record.what {
        What::Received(Iface::HOST, _) => "received from the host",
        What::Received(..) => "received",
        What::Sent(Iface::HOST, _) => "sent to the host",
        What::Sent(..) => "sent",
        What::Dropped(_, _, reason) if reason == "consumed" => "consumed",
        What::Dropped(..) => "dropped",
        What::Lost(..) => "lost",
        What::Held(None, _) => "held by a role",
        What::Held(..) => "held by a queue",
        What::AppReceived(_) => "received by an application",
        _ => return None,
    })
}

/// Returns two runs that together have records of every kind. The first run ends while packets are on links and in the
/// delay device. In the second run, the mobile host also sends, and holds its own packets while it retunes.
fn eventful() -> [Outcome; 2] {
    let crossing = run(&["duration=2.13s", "wire.left.loss=0.05", "station.delay_device=8"]);
    let (file, text) = Scenario::find("first").unwrap();
    let sink = "{ kind = \"apps/sink\", at = \"mobile:9000\" },";
    let sends = "{ kind = \"apps/constant-rate\", to = \"correspondent:9\", rate = 500, size = 8, \
        start = \"0.9s\", stop = \"2s\" },";
    assert!(text.contains(sink));
    let settings = ["duration=1.004s", "mobile.tuning_queue=1"].map(|setting| setting.parse().unwrap());
    let plan = Scenario::plan(&file, &text.replace(sink, &format!("{sink}{sends}")), &settings, 7).unwrap();
    let both = [crossing, recorder::run::simulate(plan).unwrap()];
    both.iter().for_each(trusted);
    both
}

/// Returns whether a record is of a copy that a node made, and then held or dropped. The ledger of the node balances
/// without such a record, because the other copy left. Law 6 checks that a role loses no copy.
fn is_copy_within_a_node(records: &[Record], record: &Record) -> bool {
    let (What::Held(None, id) | What::Dropped(_, id, _)) = &record.what else { return false };
    let left = |other: &Record| matches!(&other.what, What::Sent(_, packet) if packet.id == *id);
    records.iter().any(|other| other.host == record.host && left(other))
}

/// Returns the two places between which the ledger must report a missing packet if this record is removed. A place is a
/// node, an application or an interface.
fn places(plan: &Plan, records: &[Record], record: &Record) -> (String, String) {
    let names = plan.host_names();
    let name = &names[record.host.index()];
    let node = format!("{name}'s node");
    let application = format!("{name}'s application");
    let ports = &plan.hosts[record.host.index()].ports;
    let far = |iface: Iface| match ports[usize::from(iface.0) - 1].name.as_str() {
        "air" => None,
        other => Some((format!("{name}:{other}"), format!("{other}:{name}"))),
    };
    match &record.what {
        What::Received(Iface::HOST, _) => (application, node),
        What::AppReceived(_) | What::Lost(Iface::HOST, ..) => (node, application),
        What::Received(iface, packet) => far(*iface).map_or_else(
            || (of_mac(plan, packet.link.src), of_mac(plan, packet.link.dst)),
            |(here, there)| (there, here),
        ),
        What::Lost(iface, id, _) | What::Held(Some(iface), id) => {
            far(*iface).unwrap_or_else(|| (format!("{name}:air"), addressee(plan, records, record.host, *id)))
        }
        _ => (node.clone(), node),
    }
}

/// Returns the interface to which a host sent this packet.
fn addressee(plan: &Plan, records: &[Record], host: HostId, id: PacketId) -> String {
    let sent = records.iter().rev().find_map(|record| match &record.what {
        What::Sent(_, packet) if record.host == host && packet.id == id => Some(packet.link.dst),
        _ => None,
    });
    of_mac(plan, sent.unwrap())
}

/// Returns the two places that the ledger may name if the record of a sent packet is removed: the sender's node and the
/// sender's interface. The ledger names them if the packet has no earlier record at this node, because a role made the
/// packet or it is a second copy.
fn sent_by(plan: &Plan, record: &Record) -> Option<(String, String)> {
    let What::Sent(_, packet) = &record.what else { return None };
    let sender = of_mac(plan, packet.link.src);
    Some((format!("{}'s node", plan.host_names()[record.host.index()]), sender))
}

fn of_mac(plan: &Plan, mac: wire::Mac) -> String {
    let ports = plan.hosts.iter().flat_map(|host| host.ports.iter().map(move |port| (host, port)));
    let (host, port) = ports.into_iter().find(|(_, port)| port.mac == mac).unwrap();
    format!("{}:{}", host.config.name, port.name)
}

#[test]
fn every_single_record_that_is_missing_is_missed_between_the_right_places() {
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for Outcome { plan, records, .. } in &eventful() {
        for (index, record) in records.iter().enumerate() {
            let Some(kind) = kind(record).filter(|_| !is_copy_within_a_node(records, record)) else {
                continue;
            };
            let times = tried.entry(kind).or_default();
            *times += 1;
            // Tests the first 20 records of each kind, and later ones only if their index is a multiple of 17.
            if *times > 20 && !index.is_multiple_of(17) {
                continue;
            }
            let ledger = ledger::close(plan, &without(records, index));
            let (between, link) = (places(plan, records, record), sent_by(plan, record));
            let is_named =
                |vanished: &Vanished| vanished.between == between || Some(&vanished.between) == link.as_ref();
            let named = ledger.vanished.iter().any(is_named);
            assert!(named, "without {record:?}: {:?}, not {between:?}", ledger.doubts());
            assert!(!ledger.balances(), "{record:?}");
            assert!(!judge(plan, without(records, index)).doubts.is_empty());
        }
    }
    assert_eq!(tried.len(), 10, "kinds that the runs had: {tried:?}");
}

#[test]
fn a_datagram_that_only_its_application_does_not_know_of_is_no_complaint() {
    let [outcome, _] = eventful();
    let index = outcome.records.iter().position(|record| matches!(record.what, What::AppSent(_))).unwrap();
    let ledger = ledger::close(&outcome.plan, &without(&outcome.records, index));
    assert_eq!(ledger, outcome.ledger);
}

// --- one event of an outage missing
// ------------------------------------------------------------------------------------

fn unexplained(handoffs: &[Handoff], place: usize) -> Option<&Outage> {
    handoffs.get(place)?.outage()
}

/// A route-update later than this after the cut is a repetition, because retuning takes 5 ms.
const FIRST_UPDATE: Duration = Duration::from_millis(10);

/// Returns the records at the edges of the stages of one outage.
fn edges(outcome: &Outcome, place: usize) -> Vec<usize> {
    let handoff = &outcome.handoffs[place];
    let outage = handoff.outage().unwrap();
    let within = |record: &Record| record.at >= outage.from && record.at <= outage.to;
    let is_edge = |record: &Record| match &record.what {
        What::Up(_, Some(_)) => record.host == handoff.host,
        What::Marked(Mark { span: Some(span), .. }) => {
            // The mark of the crossover ends the registration. The new station's mark is made before, on the path of
            // the route-update.
            let crossover = outcome.plan.host_names()[record.host.index()] == "b1";
            let repeat = record.at > outage.from + FIRST_UPDATE;
            (matches!(span, Span::Begins(Stage::Registration)) && !repeat) || crossover
        }
        _ => false,
    };
    let found = outcome.records.iter().enumerate().filter(|(_, record)| within(record) && is_edge(record));
    found.map(|(index, _)| index).collect()
}

#[test]
fn an_outage_is_explained_to_the_end_until_one_of_its_events_is_missing() {
    let outcome = run(&[]);
    trusted(&outcome);
    let outage = unexplained(&outcome.handoffs, 0).expect("a hard handoff has an outage");
    assert!(outage.unexplained().is_zero() && outage.is_explained());
    let edges = edges(&outcome, 0);
    assert!(edges.len() >= 4, "up, route-update, mapping, switch: {edges:?}");
    let mut doubted = 0;
    for index in edges {
        let records = without(&outcome.records, index);
        let left = judge(&outcome.plan, records);
        let outage = unexplained(&left.handoffs, 0).expect("the outage is there still");
        let (part, whole) = (outage.unexplained(), outage.span());
        assert!(!part.is_zero(), "without {:?}: {:?}", outcome.records[index], outage.owners);
        let more_than_a_twentieth = part * 20 > whole;
        assert_eq!(outage.is_explained(), !more_than_a_twentieth);
        let is_first = |doubt: &&Doubt| matches!(doubt, Doubt::Unexplained { handoff: Some(1), .. });
        let doubts = left.doubts.iter().filter(is_first).count();
        assert_eq!(doubts, usize::from(more_than_a_twentieth), "{part:?} of {whole:?}: {:?}", left.doubts);
        doubted += doubts;
    }
    assert!(doubted > 0, "no event of the outage was worth a twentieth of it");
}

#[test]
fn a_handoff_without_the_event_that_cut_the_path_is_not_passed_over() {
    let outcome = run(&[]);
    let cut = outcome
        .records
        .iter()
        .position(|record| record.at >= outcome.handoffs[0].begun && matches!(record.what, What::Tuned(..)));
    let records = without(&outcome.records, cut.unwrap());
    let again = Outcome::new(outcome.plan.clone(), outcome.backend, records.clone(), None);
    assert_eq!(again.handoffs.len(), outcome.handoffs.len() - 1);
    let doubts = judge(&outcome.plan, records).doubts;
    assert!(doubts.iter().any(|doubt| matches!(doubt, Doubt::Uncut { .. })), "{doubts:?}");
}
