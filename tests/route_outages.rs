//! The causes of outages with route optimization, in the simulator: the parts follow the datagrams. While a correspondent sends to the
//! care-of address that a mobile node has left, the cause is the registration. The tunnels in which the correspondent sends its datagrams
//! show that, and what the applications send and receive.

use recorder::handoff::{FlowCost, Handoff, Outage, Owner};
use recorder::run::Outcome;
use scenario::{Repetition, Scenario, Setting};
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::ipv4::{self, Header};
use wire::{Duration, Iface, Instant, Ipv4Addr, Packet, PacketId, tunnel, udp};

const SCENARIO: &str = include_str!("../scenarios/mobile-ip/route-optimization.toml");
const SMOOTH: &str = include_str!("../scenarios/mobile-ip/smooth-handoff.toml");

/// The number of phases in which each test moves the mobile node.
const PHASES: u64 = 8;

/// Returns `text` after `changes`: pairs of a text and its replacement.
fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// Runs a scenario in this phase of [`PHASES`]. No doubt may be left: each outage is explained, and the ledger balances.
fn run(text: &str, settings: &[&str], number: u64) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    let repetition = Repetition { number, of: PHASES, seed: 1 };
    let plan = Scenario::repetition("route.toml", text, &settings, 1 + number, repetition).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert_eq!(outcome.doubts, [], "phase {number}");
    outcome
}

/// A datagram of an application for a mobile node, as the host of the application sends it.
struct Datagram {
    at: Instant,
    id: PacketId,
    /// The exit of its tunnel, or the home address without a tunnel.
    to: Ipv4Addr,
}

/// Returns the datagrams that a host sends on its links to this address and port.
fn datagrams(records: &[Record], sender: HostId, (home, port): (Ipv4Addr, u16)) -> Vec<Datagram> {
    let sent = records.iter().filter(|record| record.host == sender);
    let datagram = |record: &Record| {
        let What::Sent(iface, Packet { bytes, id, .. }) = &record.what else { return None };
        let (outer, _) = Header::parse(bytes).ok().filter(|_| *iface != Iface::HOST)?;
        let inner =
            tunnel::decapsulate(bytes).map_or_else(|_| bytes.clone(), |(_, inner)| inner.into_owned());
        let (header, payload) =
            Header::parse(&inner).ok().filter(|(header, _)| header.protocol == ipv4::UDP)?;
        let data = udp::Datagram::parse(payload, header.src, header.dst).ok()?;
        let is_it = (header.dst, data.dst_port) == (home, port);
        is_it.then_some(Datagram { at: record.at, id: *id, to: outer.dst })
    };
    sent.filter_map(datagram).collect()
}

/// When each datagram left its application, and which ones arrived.
struct Applications {
    sent: BTreeMap<PacketId, Instant>,
    received: BTreeMap<PacketId, Instant>,
}

impl Applications {
    fn new(records: &[Record]) -> Self {
        let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
        for record in records {
            match &record.what {
                What::AppSent(id) => drop(sent.entry(*id).or_insert(record.at)),
                What::AppReceived(id) => drop(received.entry(*id).or_insert(record.at)),
                _ => {}
            }
        }
        Self { sent, received }
    }
}

/// What the judge found in the outages of a run.
#[derive(Default)]
struct Findings {
    /// The parts that do not follow the datagrams, as text.
    wrong: Vec<String>,
    /// The number of outages in which the sender lost datagrams at a place that the mobile node had left.
    stale: usize,
    /// The number of evaluated outages.
    outages: usize,
}

/// Compares the causes of all outages of flows to a mobile node that moved with the datagrams of `records`.
fn judge(outcome: &Outcome, records: &[Record]) -> Findings {
    let mut findings = Findings::default();
    let applications = Applications::new(records);
    for handoff in &outcome.handoffs {
        for cost in &handoff.flows {
            let Some(outage) = cost.experience.outage() else { continue };
            findings.outages += 1;
            whole(outage, &mut findings.wrong);
            let received = applications.received.iter();
            let ending = received
                .filter(|(id, _)| applications.sent.contains_key(id))
                .find(|(_, at)| **at == outage.to);
            let Some((ending, _)) = ending else { continue };
            let flow = &outcome.flows[cost.flow];
            let all = datagrams(records, flow.from.host, (*flow.to.at.ip(), flow.to.at.port()));
            let ids: Vec<PacketId> = all.iter().map(|datagram| datagram.id).collect();
            on_their_way(outage, &ids, &applications, &mut findings.wrong);
            if flow.to.host == handoff.host {
                to_moved(
                    outcome,
                    records,
                    (&all, &applications),
                    (handoff, cost, outage, *ending),
                    &mut findings,
                );
            }
        }
    }
    findings
}

/// Returns the parts of an outage as text.
fn parts(outage: &Outage) -> String {
    let part = |part: &Owner| {
        format!("\n  {} to {} {}: {} .. {}", part.from, part.to, part.name(), part.begins, part.ends)
    };
    format!("outage to {}{}", outage.to, outage.owners.iter().map(part).collect::<String>())
}

/// The parts are the whole outage, one after the other, and each has a cause.
fn whole(outage: &Outage, wrong: &mut Vec<String>) {
    let mut at = outage.from;
    for part in &outage.owners {
        if part.from != at || part.to < part.from || part.stage.is_none() {
            wrong.push(format!("{part:?} follows {at}"));
        }
        at = part.to;
    }
    if at != outage.to || outage.owners.iter().map(Owner::span).sum::<Duration>() != outage.span() {
        wrong.push(format!("the parts end at {at}: {outage:?}"));
    }
}

/// The source had nothing to send only while no datagram was sent that arrived later. While the first data are on their way, there is a
/// datagram that was sent before, and arrives later or is lost.
fn on_their_way(outage: &Outage, ids: &[PacketId], applications: &Applications, wrong: &mut Vec<String>) {
    let times = |id: &PacketId| Some((*applications.sent.get(id)?, applications.received.get(id).copied()));
    let all: Vec<_> = ids.iter().filter_map(times).collect();
    let is_wrong = |part: &Owner| match part.name() {
        "traffic" => all
            .iter()
            .any(|(sent, got)| *sent >= part.from && *sent < part.to && got.is_some_and(|got| got > part.to)),
        "first byte" => {
            !all.iter().any(|(sent, got)| *sent <= part.from && got.is_none_or(|got| got >= part.to))
        }
        _ => false,
    };
    if outage.owners.iter().any(is_wrong)
        || outage.owners.last().is_none_or(|part| part.name() != "first byte")
    {
        wrong.push(format!("not the datagrams that were on their way: {}", parts(outage)));
    }
}

/// While the sender lost datagrams at a place that the mobile node had left, the cause is the registration.
fn to_moved(
    outcome: &Outcome,
    records: &[Record],
    (all, applications): (&[Datagram], &Applications),
    (handoff, cost, outage, ending): (&Handoff, &FlowCost, &Outage, PacketId),
    findings: &mut Findings,
) {
    let flow = &outcome.flows[cost.flow];
    let Some(last) = all.iter().rfind(|datagram| datagram.id == ending) else { return };
    // If the outage lasts beyond the next handoff, the outage of that one has the same parts from then on.
    let later = outcome.handoffs.iter().filter(|later| later.host == handoff.host && later.cut < outage.to);
    let begun = later.map(|later| later.cut).max().unwrap_or(outage.from);
    let asks = |record: &&Record| {
        let is_request = matches!(&record.what, What::Marked(mark) if mark.name == "request_sent");
        record.host == handoff.host && is_request && record.at >= begun
    };
    let Some(asked) = records.iter().find(asks) else { return };
    // What the sender has sent to a care-of address that is not the one of the datagram that ends the outage.
    let is_stale = |datagram: &&Datagram| {
        let is_within = datagram.at > asked.at && datagram.at < last.at;
        is_within && ![last.to, *flow.to.at.ip()].contains(&datagram.to)
    };
    let stale: Vec<&Datagram> = all.iter().filter(is_stale).collect();
    // A previous agent that forwards would make these datagrams arrive.
    if stale.is_empty() || stale.iter().any(|datagram| applications.received.contains_key(&datagram.id)) {
        return;
    }
    findings.stale += 1;
    for datagram in &stale {
        let part = outage.owners.iter().find(|part| part.from <= datagram.at && datagram.at < part.to);
        if part.is_none_or(|part| part.name() != "registration") {
            findings.wrong.push(format!(
                "a datagram of {} was lost at {}: {}",
                datagram.at,
                datagram.to,
                parts(outage)
            ));
        }
    }
    let last_stale = stale.last().map_or(asked.at, |datagram| datagram.at);
    let ends = |part: &Owner| part.name() == "registration" && part.to >= last_stale && part.to <= last.at;
    if !outage.owners.iter().any(ends) {
        findings.wrong.push(format!(
            "no registration ends from {last_stale} to {}: {}",
            last.at,
            parts(outage)
        ));
    }
}

/// Evaluates the run again without the marks with one of these names, and compares the causes with all records.
fn judge_without(outcome: &Outcome, names: &[&str]) -> Findings {
    let is_kept =
        |record: &&Record| !matches!(&record.what, What::Marked(mark) if names.contains(&mark.name));
    let records: Vec<Record> = outcome.records.iter().filter(is_kept).cloned().collect();
    judge(&Outcome::new(outcome.plan.clone(), outcome.backend, records, None), &outcome.records)
}

/// The marks of binding caches.
const CACHE: [&str; 2] = ["binding_learnt", "binding_forgotten"];

/// Runs a scenario in all phases. The causes must follow the datagrams, and must not follow them without the marks of the caches:
/// in at least `least` outages, the sender must have lost datagrams at an earlier place.
#[track_caller]
fn assert_causes(text: &str, settings: &[&str], least: usize) -> Vec<Outcome> {
    let (mut stale, mut outages, mut broken) = (0, 0, 0);
    let mut outcomes = Vec::new();
    for number in 0..PHASES {
        let outcome = run(text, settings, number);
        let findings = judge(&outcome, &outcome.records);
        assert!(findings.wrong.is_empty(), "phase {number}: {}", findings.wrong.join("\n"));
        stale += findings.stale;
        outages += findings.outages;
        broken += judge_without(&outcome, &CACHE).wrong.len();
        outcomes.push(outcome);
    }
    assert!(stale >= least, "{stale} of {outages} outages have datagrams for an earlier place");
    assert!(broken >= least, "without the marks of the caches, {broken} parts are wrong");
    outcomes
}

/// Returns whether an outage has a part that ends with an event of this name.
fn has_end(outage: &Outage, name: &str) -> bool {
    outage.owners.iter().any(|part| part.ends == name && !part.span().is_zero())
}

/// The mobile node moves from one foreign agent to another, and home. The `latency` is that of the correspondent.
#[test]
fn the_transit_of_an_update_is_a_part_of_the_registration() {
    for outcome in assert_causes(SCENARIO, &[], 2 * PHASES as usize) {
        let [away, other, home] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
        assert!(!has_end(away.outage().unwrap(), "binding_learnt"), "it had no entry: {away:?}");
        for (handoff, name) in [(other, "binding_learnt"), (home, "binding_forgotten")] {
            let outage = handoff.outage().unwrap();
            let part = outage.owners.iter().find(|part| part.ends == name).unwrap();
            // The wires to the home agent have 41 ms.
            assert!((41..45).contains(&part.span().as_millis()), "{outage:?}");
            let least = part.to.since(handoff.cut);
            let latency = handoff.latency.unwrap();
            assert!(latency > least && latency < outage.span() + Duration::from_millis(1), "{handoff:?}");
        }
    }
}

#[test]
fn with_nonces_the_causes_are_the_same() {
    assert_causes(SCENARIO, &["mobile-ip.replay=nonces"], 2 * PHASES as usize);
}

/// All links lose 5 % of their frames, also Binding Updates: the home agent repeats them.
#[test]
fn with_losses_the_causes_follow_the_datagrams() {
    // The time between the moves permits several repetitions: after 1, 3 and 7 s.
    let text = changed(
        SCENARIO,
        &[
            ("duration = \"14s\"", "duration = \"32s\""),
            ("stop = \"13s\"", "stop = \"31s\""),
            ("\"7.3s\"", "\"12.3s\""),
            ("\"11.3s\"", "\"21.3s\""),
        ],
    );
    let outcomes = assert_causes(&text, &LOSSES, PHASES as usize);
    let (mut later, mut all) = (0, 0);
    for outcome in &outcomes {
        later += later_arrive(outcome);
        all += Applications::new(&outcome.records).sent.len();
    }
    assert!(later * 2 > all, "{later} of {all} datagrams were sent after an Update");
}

/// A loss of 5 % at all links.
const LOSSES: [&str; 7] = [
    "wire.internet.loss=0.05",
    "wire.long.loss=0.05",
    "wire.left.loss=0.05",
    "wire.right.loss=0.05",
    "cell.1.loss=0.05",
    "cell.2.loss=0.05",
    "cell.3.loss=0.05",
];

/// Returns the number of datagrams that were sent when the correspondent had learnt a place and the mobile node had the reply that
/// accepts its registration, and in time to arrive before the next move. Asserts that only a link loses one of them, that each
/// datagram that did not arrive has a loss with a reason, and that the flow counts all of them.
#[track_caller]
fn later_arrive(outcome: &Outcome) -> usize {
    let applications = Applications::new(&outcome.records);
    let missing: BTreeSet<PacketId> =
        applications.sent.keys().filter(|id| !applications.received.contains_key(id)).copied().collect();
    let mut reasons: BTreeMap<PacketId, &str> = BTreeMap::new();
    for record in &outcome.records {
        if let What::Lost(_, id, why) | What::Dropped(_, id, why) = &record.what
            && missing.contains(id)
        {
            reasons.insert(*id, why.as_ref());
        }
    }
    assert_eq!(reasons.len(), missing.len(), "each has a cause");
    assert_eq!(outcome.flows[0].lost, missing.len() as u64);
    let moves: Vec<Instant> = outcome.handoffs.iter().map(|handoff| handoff.begun).collect();
    let mut later = 0;
    for (index, begun) in moves.iter().enumerate() {
        let until = moves.get(index + 1).copied().unwrap_or(Instant::NEVER);
        let within = |record: &&Record| record.at > *begun && record.at < until;
        let marks = outcome.records.iter().filter(within).filter_map(|record| match &record.what {
            What::Marked(mark) => Some((record.at, mark)),
            _ => None,
        });
        // The home agent repeats an Update that is lost.
        let learnt = marks.clone().rfind(|(_, mark)| CACHE.contains(&mark.name));
        let (learnt, _) = learnt.unwrap_or_else(|| panic!("no Update arrived after {begun}"));
        let mut replies = marks.filter(|(_, mark)| mark.name == "registered");
        let Some((registered, _)) = replies.next() else { continue };
        let ready = learnt.max(registered);
        // What is under way at the next move may be lost there.
        let quiet = Duration::from_millis(150);
        for (id, sent) in applications.sent.iter().filter(|(_, at)| **at > ready && **at + quiet < until) {
            later += 1;
            let why = reasons.get(id).copied();
            assert!(
                why.is_none_or(|why| why == link::reason::LINK_ERROR.0),
                "{why:?} of one that was sent at {sent}"
            );
        }
    }
    later
}

/// The Update after the first move between foreign agents is lost. The home agent repeats it after 1 s.
#[test]
fn a_lost_update_is_a_part_of_the_registration() {
    let text = SCENARIO.to_owned() + &lossy(7_290, 1.0) + &lossy(7_800, 0.0);
    let mut repeated = 0;
    for outcome in assert_causes(&text, &["phase=40ms"], 2 * PHASES as usize) {
        let outage = outcome.handoffs[1].outage().unwrap();
        let update = outage.owners.iter().find(|part| part.ends == "binding_learnt").unwrap();
        repeated += usize::from(update.span() > Duration::from_secs(1));
    }
    assert_eq!(repeated, PHASES as usize);
}

/// Two correspondents send to the mobile node. Only the first one has a binding cache.
#[test]
fn each_flow_waits_for_the_cache_of_its_sender() {
    let plain = r#"[wire.plain]
ends = ["plain", "router"]
rate = "100Mb/s"
delay = "1ms"
net = "10.0.4.0/24"

[host.plain]
role = [{ kind = "apps/constant-rate", to = "mobile:9003", rate = 50, size = 160, start = "0.5s", stop = "13s" }]

[host.router]"#;
    let sinks = "{ kind = \"apps/sink\", at = \"mobile:9002\" },\n    { kind = \"apps/sink\", at = \"mobile:9003\" },";
    let text = changed(
        SCENARIO,
        &[("[host.router]", plain), ("{ kind = \"apps/sink\", at = \"mobile:9002\" },", sinks)],
    );
    for outcome in assert_causes(&text, &[], 2 * PHASES as usize) {
        for handoff in &outcome.handoffs[1..] {
            let waits: Vec<bool> = handoff
                .flows
                .iter()
                .map(|cost| {
                    let outage = cost.experience.outage().unwrap();
                    CACHE.iter().any(|name| has_end(outage, name))
                })
                .collect();
            let is_first = |cost: &FlowCost| outcome.flows[cost.flow].to.at.port() == 9002;
            let expected: Vec<bool> = handoff.flows.iter().map(is_first).collect();
            assert_eq!(waits, expected, "{handoff:?}");
        }
    }
}

/// Two mobile nodes with binding caches send to each other, and both move, at the same time or one after the other.
#[test]
fn two_mobile_nodes_wait_for_each_other() {
    let second = r#"[host.second]
address = "10.1.0.8"
role = [
    { kind = "mobile-ip/mobile-node" },
    { kind = "mobile-ip/correspondent" },
    { kind = "apps/roam", start = "home", moves = [{ at = "2.3s", to = "other" }, { at = "7.302s", to = "foreign" }, { at = "9.9s", to = "other" }] },
    { kind = "apps/sink", at = "second:9004" },
    { kind = "apps/constant-rate", to = "mobile:9002", rate = 50, size = 160, start = "0.5s", stop = "13s" },
]

[host.router]"#;
    let first = r#"{ kind = "mobile-ip/correspondent" },
    { kind = "apps/constant-rate", to = "second:9004", rate = 50, size = 160, start = "0.51s", stop = "13s" },
    { kind = "apps/sink", at = "mobile:9002" },"#;
    let text = changed(
        SCENARIO,
        &[
            (
                "    { kind = \"mobile-ip/correspondent\" },\n    { kind = \"apps/constant-rate\", to = \"mobile:9002\", rate = 50, size = 160, start = \"0.5s\", stop = \"13s\" },\n",
                "",
            ),
            ("[host.router]", second),
            ("{ kind = \"apps/sink\", at = \"mobile:9002\" },", first),
        ],
    );
    for phase in ["phase=1s", "phase=60ms"] {
        assert_causes(&text, &[phase], PHASES as usize);
    }
}

/// With smooth handoffs, the previous agent forwards before the Update arrives. So no outage waits for the Update.
#[test]
fn a_smooth_handoff_does_not_wait_for_the_update() {
    let text = changed(
        SMOOTH,
        &[(
            "role = [{ kind = \"apps/constant-rate\"",
            "role = [{ kind = \"mobile-ip/correspondent\" }, { kind = \"apps/constant-rate\"",
        )],
    );
    let (mut outages, mut late) = (0_u64, 0);
    // With 25 datagrams a second, the next one may leave after the home agent has the new binding.
    for rate in [100, 25] {
        let text = text.replace("rate = 100, size", &format!("rate = {rate}, size"));
        for number in 0..PHASES {
            let outcome = run(&text, &[], number);
            let findings = judge(&outcome, &outcome.records);
            assert!(findings.wrong.is_empty(), "phase {number}: {}", findings.wrong.join("\n"));
            for outage in outcome.handoffs.iter().skip(1).filter_map(Handoff::outage) {
                assert!(has_end(outage, "care_of_learnt"), "{}", parts(outage));
                let is_later =
                    |part: &Owner| ["binding_changed", CACHE[0], CACHE[1]].contains(&part.ends.as_str());
                assert!(!outage.owners.iter().any(is_later), "{}", parts(outage));
                let changed = |record: &&Record| {
                    let is_it = matches!(&record.what, What::Marked(mark) if mark.name == "binding_changed");
                    is_it && record.at > outage.from
                };
                outages += 1;
                late += usize::from(
                    outcome.records.iter().find(changed).is_some_and(|record| record.at < outage.to),
                );
            }
        }
    }
    assert!(
        outages >= 2 * PHASES && late > 0,
        "{late} of {outages} outages end after the change at the home agent"
    );
}

/// The Update and its first repetition are lost. The entry expires before the next one. From then on, data pass the home agent, which
/// has the new binding.
#[test]
fn an_entry_that_expires_ends_the_registration() {
    let cache = [(
        "{ kind = \"mobile-ip/correspondent\" }",
        "{ kind = \"mobile-ip/correspondent\", request_before = \"1ms\" }",
    )];
    let text = changed(SCENARIO, &cache) + &lossy(7_290, 1.0) + &lossy(7_600, 0.0);
    for outcome in assert_causes(&text, &["phase=40ms", "mobile-node.lifetime=3s"], 2 * PHASES as usize) {
        let outage = outcome.handoffs[1].outage().unwrap();
        assert!(has_end(outage, "binding_forgotten"), "{outage:?}");
        let expired = outage.owners.iter().find(|part| part.ends == "binding_forgotten").unwrap();
        assert!(expired.span() > Duration::from_millis(300), "{outage:?}");
    }
}

/// Returns an event: the wire of the correspondent loses frames with this probability from now on.
fn lossy(at: u64, loss: f64) -> String {
    format!("\n[[event]]\nat = \"{at}ms\"\nkind = \"loss\"\nwire = \"internet\"\nloss = {loss:?}\n")
}

/// A download: the segments that were sent to the earlier place are lost, and TCP retransmits.
#[test]
fn a_download_waits_for_the_update() {
    let text = changed(
        SCENARIO,
        &[
            (
                "{ kind = \"apps/constant-rate\", to = \"mobile:9002\", rate = 50, size = 160, start = \"0.5s\", stop = \"13s\" }",
                "{ kind = \"apps/bulk-server\", at = \"correspondent:9000\", duration = \"12s\" }",
            ),
            (
                "{ kind = \"apps/sink\", at = \"mobile:9002\" }",
                "{ kind = \"apps/bulk-client\", to = \"correspondent:9000\", start = \"0.5s\" }",
            ),
        ],
    );
    for number in 0..PHASES {
        let outcome = run(&text, &[], number);
        for (handoff, name) in outcome.handoffs[1..].iter().zip(["binding_learnt", "binding_forgotten"]) {
            let down = |cost: &&FlowCost| outcome.flows[cost.flow].to.host == handoff.host;
            let outage = handoff.flows.iter().find(down).unwrap().experience.outage().unwrap();
            let mut wrong = Vec::new();
            whole(outage, &mut wrong);
            assert!(wrong.is_empty(), "{wrong:?}");
            let names: Vec<&str> = outage.owners.iter().map(Owner::name).collect();
            assert!(
                names.ends_with(&["registration", "registration", "recovery", "first byte"]),
                "{outage:?}"
            );
            assert!(has_end(outage, name), "{outage:?}");
        }
    }
}
