//! Simulated handoffs, each with one fault.

use super::{Experience, Handoff, Hole, Recovery, handoffs, holes};
use crate::failure::failures;
use crate::flow::{FlowEnd, Traffic};
use crate::run::{Outcome, simulate};
use scenario::{Scenario, Setting};
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant, PacketId};

fn run(settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find("cellular-ip/udp-loss").unwrap();
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan(&file, &text, &settings, 1).unwrap()).unwrap()
}

/// The packet that ends the outage left the crossover on the new path before the route-update arrived at the crossover.
/// Packets on the new path have no additional delay.
#[test]
fn an_outage_that_a_copy_ends_is_explained() {
    let moves = |at: &str| format!(r#"{{ at = "{at}", to = "b3", kind = "semisoft" }}"#);
    let moves = format!("mobile.moves=[{}]", moves("1.503s"));
    let outcome = run(&[&moves, "station.delay_device=0", r#"wire.left.delay=["61ms", "1ms"]"#]);
    assert_eq!(outcome.doubts, []);
    let outage = outcome.handoffs[0].outage().unwrap();
    assert!(outcome.handoffs[0].lost() > 0 && outage.unexplained().is_zero());
    assert_eq!(outage.owners.last().unwrap().name(), "first byte");
}

/// The first route-update is lost and its repetition arrives: the latency grows, but the round trip does not.
#[test]
fn the_round_trip_is_that_of_the_update_that_came() {
    let outcome = run(&["cell.2.loss=0.5", "cell.3.loss=0.5"]);
    let millis = |span: Option<wire::Duration>| span.unwrap().as_secs_f64() * 1e3;
    let late = outcome.handoffs.iter().filter(|handoff| millis(handoff.latency) > 70.0).count();
    assert!(late > 0, "this seed loses a first route-update");
    for handoff in &outcome.handoffs {
        assert!((millis(handoff.round_trip) - 42.922).abs() < 1.0, "{handoff:?}");
    }
}

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

fn first(settings: &[&str]) -> Outcome {
    run_text(FIRST, settings)
}

fn run_text(text: &str, settings: &[&str]) -> Outcome {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan("first.toml", text, &settings, 1).unwrap()).unwrap()
}

/// Returns the records of a run, in which `change` replaced the arrival of each datagram that was sent in this range of
/// milliseconds.
fn changed(
    outcome: &Outcome,
    sent: std::ops::Range<u64>,
    change: impl Fn(&Record, PacketId) -> Vec<Record>,
) -> Vec<Record> {
    let sendings = outcome.packets[0].sendings.iter();
    let within = sendings.filter(|one| sent.contains(&(one.at.0 / 1_000_000))).map(|one| one.packet);
    let ids: Vec<PacketId> = within.collect();
    assert!(!ids.is_empty());
    let mut records: Vec<Record> = Vec::new();
    for record in &outcome.records {
        match record.what {
            What::AppReceived(id) if ids.contains(&id) => records.extend(change(record, id)),
            _ => records.push(record.clone()),
        }
    }
    records.sort_by_key(|record| record.at);
    records
}

/// Returns a change that replaces an arrival with a loss by the link of `host`.
fn lost_at(host: HostId) -> impl Fn(&Record, PacketId) -> Vec<Record> {
    move |record, id| {
        vec![Record { host, what: What::Lost(Iface(1), id, "link_error".into()), ..record.clone() }]
    }
}

fn read(outcome: &Outcome, records: &[Record]) -> (Vec<Handoff>, Vec<Hole>, Vec<String>, Traffic) {
    let traffic = Traffic::new(&outcome.plan, records);
    let mut handoffs = handoffs(&outcome.plan, records, &traffic);
    let holes = holes(&outcome.plan, records, &traffic, &mut handoffs);
    let failures = failures(&outcome.plan, &traffic, &handoffs, &holes);
    (handoffs, holes, failures, traffic)
}

/// After the handoff at 1 s, the flow has its full goodput from the first datagram on. Datagrams that were sent before
/// this recovery, and lost or duplicated, belong to the handoff. Later datagrams do not.
#[test]
fn losses_and_duplicates_belong_to_a_handoff_up_to_the_recovery() {
    let outcome = first(&[]);
    let cost = &outcome.handoffs[0].flows[0];
    assert_eq!(cost.recovery, Recovery::At(cost.experience.outage().unwrap().to));
    assert_eq!((cost.lost(), cost.duplicates, outcome.flows[0].lost), (3, 0, 6));
    let mobile = outcome.flows[0].to.host;
    let twice = |record: &Record, id| {
        let again = Record { at: record.at + Duration::from_millis(1), ..record.clone() };
        assert_eq!(again.what, What::AppReceived(id));
        vec![record.clone(), again]
    };
    // The changed datagram is sent at 1.06 s, 2 ms before the recovery, or at 1.3 s.
    for (sent, charged) in [(1055..1065, 1), (1295..1305, 0)] {
        let (all, _, _, traffic) = read(&outcome, &changed(&outcome, sent.clone(), lost_at(mobile)));
        assert_eq!((all[0].lost(), traffic.flows[0].lost), (3 + charged, 7), "{sent:?}");
        let (all, ..) = read(&outcome, &changed(&outcome, sent.clone(), twice));
        assert_eq!(all[0].duplicates(), charged, "{sent:?}");
    }
}

/// A flow has one datagram every 20 ms. A gap of 100 ms is no hole, because the window is 100 ms; a gap of 120 ms is a
/// hole.
#[test]
fn a_hole_is_longer_than_the_window() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    for (sent, wanted) in [(1495..1575, 0), (1495..1595, 1)] {
        let (_, holes, failures, _) = read(&outcome, &changed(&outcome, sent, lost_at(mobile)));
        assert_eq!(holes.len(), wanted, "{holes:?}");
        for hole in &holes {
            assert_eq!((hole.host, hole.lost), (mobile, 5));
            assert_eq!(hole.experience.millis().map(f64::round), Some(120.0));
            assert_eq!(hole.experience.outage().unwrap().unexplained(), Duration::ZERO);
        }
        assert_eq!(failures, Vec::<String>::new());
    }
}

/// The source pauses from 4.7 s to 5.1 s. The link loses the last datagrams before the pause and the first ones after
/// it. The pause is no part of a hole.
#[test]
fn a_pause_of_the_source_divides_a_hole() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let within = |sent: std::ops::Range<u64>| {
        let sendings = outcome.packets[0].sendings.iter();
        let within = sendings.filter(move |one| sent.contains(&(one.at.0 / 1_000_000)));
        within.map(|one| one.packet).collect::<Vec<PacketId>>()
    };
    let (paused, last, first) = (within(4_695..5_095), within(4_495..4_695), within(5_095..5_295));
    let records = outcome.records.iter().filter(|record| match &record.what {
        What::Received(_, packet) | What::Sent(_, packet) => !paused.contains(&packet.id),
        What::AppSent(id) | What::AppReceived(id) | What::Lost(_, id, _) | What::Dropped(_, id, _) => {
            !paused.contains(id)
        }
        _ => true,
    });
    let lose = |record: &Record| match record.what {
        What::AppReceived(id) if last.contains(&id) || first.contains(&id) => {
            lost_at(mobile)(record, id).remove(0)
        }
        _ => record.clone(),
    };
    let records: Vec<Record> = records.map(lose).collect();
    let (_, holes, _, traffic) = read(&outcome, &records);
    let found: Vec<_> =
        holes.iter().map(|hole| (hole.lost, hole.experience.millis().map(f64::round))).collect();
    assert_eq!(found, [(10, Some(158.0)), (10, Some(242.0))], "{holes:#?}");
    assert_eq!(holes[0].experience.outage().unwrap().unexplained(), Duration::ZERO, "{holes:#?}");
    let longest = holes.iter().filter_map(|hole| hole.experience.outage()).map(super::Outage::span).max();
    assert!(longest.is_some_and(|longest| longest <= traffic.flows[0].longest_stall), "{holes:#?}");
}

/// The mobile host sends datagrams, and the link of one end loses some of them. The hole belongs to this end.
#[test]
fn a_hole_of_the_uplink_is_the_senders() {
    let sink = r#"{ kind = "apps/sink", at = "mobile:9000" },"#;
    let source = r#"{ kind = "apps/constant-rate", to = "mobile:9000", rate = 50, size = 100, start = "0.5s", stop = "5.5s" },"#;
    let text =
        FIRST.replace(sink, "UP").replace(source, r#"{ kind = "apps/sink", at = "correspondent:9000" },"#);
    let text = text.replace("UP", &source.replace("mobile:9000", "correspondent:9000"));
    let outcome = run_text(&text, &[]);
    assert_eq!((outcome.flows.len(), outcome.flows[0].end), (1, FlowEnd::Completed));
    let [from, to] = [outcome.flows[0].from.host, outcome.flows[0].to.host];
    for place in [from, to] {
        let (_, holes, ..) = read(&outcome, &changed(&outcome, 1495..1595, lost_at(place)));
        let [hole] = holes.as_slice() else { panic!("{holes:?}") };
        assert_eq!(hole.host, place);
        let owners = &hole.experience.outage().unwrap().owners;
        assert_eq!(owners[0].hosts, Some((from, place)), "{owners:?}");
    }
}

/// If the last datagrams of a flow are lost, by a cut or by a link, the experience is `never`.
#[test]
fn nothing_new_until_the_flow_ended_is_never() {
    let outcome = first(&["constant-rate.stop=1.01s"]);
    let flow = &outcome.flows[0];
    assert_eq!((flow.end, flow.lost), (FlowEnd::Unfinished, 3));
    assert!(flow.ended.is_some_and(|ended| ended < Instant::from_millis(1_100)), "{:?}", flow.ended);
    let cost = &outcome.handoffs[0].flows[0];
    assert!(matches!(cost.experience, Experience::Never { .. }), "{cost:?}");
    assert_eq!((cost.lost(), cost.recovery), (3, Recovery::Never));
    assert!(outcome.handoffs[1..].iter().all(|later| later.flows.is_empty()));
    let [failure] = outcome.failures.as_slice() else { panic!("{:?}", outcome.failures) };
    assert!(
        failure.starts_with(
            "handoff 1, flow 1 (correspondent:49152 > mobile:9000, UDP): no new data after the cut"
        ),
        "{failure}"
    );

    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let (all, holes, failures, traffic) = read(&outcome, &changed(&outcome, 4_400..9_000, lost_at(mobile)));
    assert_eq!((all[3].lost(), traffic.flows[0].end, traffic.flows[0].lost), (0, FlowEnd::Unfinished, 62));
    let [hole] = holes.as_slice() else { panic!("{holes:?}") };
    assert!(matches!(hole.experience, Experience::Never { .. }) && hole.lost == 56, "{hole:?}");
    assert!(failures.len() == 1 && failures[0].starts_with("hole, flow 1"), "{failures:?}");
    // The stall lasts from the last arrival to the end of the flow.
    let stall = traffic.flows[0].longest_stall;
    assert_eq!(stall, traffic.flows[0].until.since(traffic.flows[0].arrivals.last().unwrap().at));
}

/// If links lost the last datagrams of a source at random, the run has no failure: the next datagram might have
/// arrived. Losses by an event of the scenario or by a full queue are not random.
#[test]
fn last_datagrams_that_are_lost_at_random_are_no_failure() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let lost_by = |reason: &'static str| {
        let lost = move |record: &Record, id| {
            vec![Record { host: mobile, what: What::Lost(Iface(1), id, reason.into()), ..record.clone() }]
        };
        let (_, holes, failures, traffic) = read(&outcome, &changed(&outcome, 5_000..9_000, lost));
        let flow = &traffic.flows[0];
        assert_eq!((flow.end, flow.lost), (FlowEnd::Unfinished, 32));
        [holes.len(), failures.len()]
    };
    assert_eq!(lost_by("link_error"), [0, 0]);
    assert_eq!([lost_by("link_cut"), lost_by("queue_full")], [[1, 1]; 2]);
}

/// An agent had kept copies of the last datagrams, and dropped them later. The datagrams were lost by the link.
#[test]
fn a_kept_copy_does_not_make_a_random_loss_a_failure() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let lost = |kept: &'static str| {
        move |record: &Record, id| {
            let later = record.at + Duration::from_secs(2);
            let by_link = What::Lost(Iface(1), id, "link_error".into());
            let by_agent = What::Dropped(Iface(1), id, kept.into());
            let of = |at, what| Record { at, host: mobile, what };
            vec![of(record.at, by_link), of(later, by_agent)]
        }
    };
    let (_, holes, failures, traffic) =
        read(&outcome, &changed(&outcome, 5_000..9_000, lost("kept_too_old")));
    assert_eq!((traffic.flows[0].lost, holes.len(), failures.len()), (32, 0, 0), "{failures:?}");
    // A copy on its way that another node dropped is a loss at that time.
    let (_, holes, failures, _) = read(&outcome, &changed(&outcome, 5_000..9_000, lost("forwarding_loop")));
    assert_eq!((holes.len(), failures.len()), (1, 1));
}

/// The link lost a datagram, and an agent still keeps a copy when the run ends.
#[test]
fn a_copy_that_an_agent_keeps_is_not_on_its_way() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let ends = |held: Option<Iface>, is_lost: bool| {
        let change = move |record: &Record, id| {
            let of = |what| Record { host: mobile, what, ..record.clone() };
            let by_link = is_lost.then(|| of(What::Lost(Iface(1), id, "link_error".into())));
            by_link.into_iter().chain([of(What::Held(held, id))]).collect()
        };
        let (.., traffic) = read(&outcome, &changed(&outcome, 5_000..9_000, change));
        [traffic.flows[0].lost, traffic.packets[0].lost.len() as u64, traffic.packets[0].held.len() as u64]
    };
    let before = outcome.flows[0].lost;
    assert_eq!(ends(None, true), [32, 32, 0]);
    assert_eq!(ends(None, false), [before, before, 32 - before], "no copy was lost");
    assert_eq!(ends(Some(Iface(1)), true), [before, before, 32 - before], "another copy is in a queue");
}

/// Each handoff of these scenarios has a latency: from the cut until the node that switches the path has the new path,
/// plus one delay down this path.
#[test]
fn every_protocol_has_a_latency() {
    let latency = |name: &str| -> Vec<Option<f64>> {
        let (file, text) = Scenario::find(name).unwrap();
        let outcome = simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        outcome.handoffs.iter().map(|handoff| handoff.latency.map(millis)).collect()
    };
    // The latency is 5 ms for the tuning, 1.343 ms up to the crossover and 41.579 ms down.
    assert!(latency("first").iter().all(|ms| (ms.unwrap() - 47.922).abs() < 0.001));
    // With Indirect TCP, the outage ends with the first segment that the new router sends. Before this segment, the
    // router sends six ICMP messages that end the retransmission wait of the host's TCP (1.7 ms of air time).
    for (name, most) in
        [("indirect-tcp/handoff-time", 122.0), ("sigma/handoff", 60.0), ("mobile-ip/download", 60.0)]
    {
        let all = latency(name);
        assert!(
            !all.is_empty() && all.iter().all(|ms| ms.is_some_and(|ms| ms > 1.0 && ms < most)),
            "{name}: {all:?}"
        );
    }
}

/// Answers wait for their questions: the host that asks receives nothing until its question arrives. The outage
/// begins with the cut, and the stall with the next question, or with the last answer, whose acknowledgment was lost.
#[test]
fn a_stall_lasts_as_long_as_the_application_waits() {
    let (file, text) = Scenario::find("evidence/outage").unwrap();
    let outcome = simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
    for cost in &outcome.handoffs[0].flows {
        let outage = cost.experience.outage().unwrap().span();
        let stall = outcome.flows[cost.flow].longest_stall;
        assert!(outage > Duration::from_secs(7), "{outage:?}");
        let near = Duration::from_millis(50);
        assert!(outage < stall + near && stall < outage + near, "{stall:?} and {outage:?}");
    }
}

/// After the outage of the first handoff, one datagram in five arrives, and for 300 ms none. The flow never has half of
/// its goodput again. The hole is no part of the handoff, and losses in and around it are not charged to the handoff.
#[test]
fn a_handoff_without_a_recovery_hides_no_hole() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let lose = lost_at(mobile);
    let thinned = changed(&outcome, 1_070..9_000, |record, id| {
        let millis = record.at.0 / 1_000_000;
        let arrives = (millis / 20).is_multiple_of(5) && !(1_400..1_700).contains(&millis);
        if arrives { vec![record.clone()] } else { lose(record, id) }
    });
    let (all, holes, ..) = read(&outcome, &thinned);
    assert_eq!((all[0].flows[0].recovery, all[0].lost()), (Recovery::Never, 3));
    let is_there = |hole: &&Hole| (1_300..1_400).contains(&(hole.from.0 / 1_000_000));
    let hole = holes.iter().find(is_there).unwrap_or_else(|| panic!("{holes:?}"));
    assert!(hole.lost >= 15 && hole.experience.millis().is_some_and(|ms| ms > 300.0), "{hole:?}");
}

/// The path is ready, and the new cell loses the next datagrams. The cause of this time is the link, not a pause of the
/// source.
#[test]
fn what_was_sent_and_lost_is_no_pause_of_the_source() {
    let outcome = first(&[]);
    let (all, ..) = read(&outcome, &changed(&outcome, 1_015..1_200, lost_at(outcome.flows[0].to.host)));
    let outage = all[0].outage().unwrap();
    assert!(outage.span() > Duration::from_millis(200) && outage.unexplained().is_zero(), "{outage:?}");
    assert_eq!(outage.owners.iter().map(super::Owner::span).sum::<Duration>(), outage.span());
    let is_loss = |owner: &&super::Owner| owner.name() == "link" && owner.ends == "last_loss";
    let loss = outage.owners.iter().find(is_loss).unwrap_or_else(|| panic!("{outage:?}"));
    assert!(loss.span() > Duration::from_millis(100), "{outage:?}");
    let traffic = outage.owners.iter().filter(|owner| owner.name() == "traffic").map(super::Owner::span);
    assert!(traffic.sum::<Duration>() <= Duration::from_millis(20), "{outage:?}");
}

/// The host moves three times within 0.4 s, and an outage lasts beyond the next handoff. The parts of each outage sum
/// to the outage.
#[test]
fn an_outage_that_outlasts_the_next_handoff_is_explained() {
    let (file, text) = Scenario::find("mobile-ip/download").unwrap();
    let moves = r#"roam.moves=[{ at = "4.3s", to = "foreign" }, { at = "4.5s", to = "home" }, { at = "4.7s", to = "foreign" }]"#;
    let outcome = simulate(Scenario::plan(&file, &text, &[moves.parse().unwrap()], 1).unwrap()).unwrap();
    assert_eq!(outcome.doubts, []);
    let second = outcome.handoffs[1].outage().unwrap();
    assert!(second.to > outcome.handoffs[2].cut, "{second:?}");
    for outage in outcome.handoffs.iter().filter_map(Handoff::outage) {
        assert_eq!(outage.owners.iter().map(super::Owner::span).sum::<Duration>(), outage.span());
    }
}

/// A flow whose last datagram is lost exactly at the instant of the cut has a cost of the handoff.
#[test]
fn a_flow_that_ends_with_the_cut_is_charged() {
    let outcome = first(&["constant-rate.stop=0.95s"]);
    assert!(outcome.handoffs[0].flows.is_empty(), "{:?}", outcome.handoffs[0]);
    let (cut, mobile) = (outcome.handoffs[0].cut, outcome.flows[0].to.host);
    let lose = lost_at(mobile);
    let at_cut = |record: &Record, id| lose(&Record { at: cut, ..record.clone() }, id);
    let (all, ..) = read(&outcome, &changed(&outcome, 925..945, at_cut));
    let [cost] = all[0].flows.as_slice() else { panic!("{:?}", all[0]) };
    assert_eq!(cost.lost(), 1);
    assert!(matches!(cost.experience, Experience::Never { .. }), "{cost:?}");
}

/// If two handoffs could be charged with one loss, it is charged to the handoff of the host that lost the packet, or
/// else to the earlier handoff.
#[test]
fn a_loss_belongs_to_one_handoff() {
    let outcome = first(&[]);
    let [one, ..] = outcome.handoffs.as_slice() else { panic!("{:?}", outcome.handoffs) };
    let (mobile, other) = (outcome.flows[0].to.host, outcome.flows[0].from.host);
    let traffic = Traffic::new(&outcome.plan, &outcome.records);
    for (host, twin, wanted) in [(mobile, mobile, [3, 0]), (other, HostId(u32::MAX), [3, 0])] {
        let mut both = [Handoff { host, ..one.clone() }, Handoff { host: twin, ..one.clone() }];
        super::HandoffAnalysis::new(&outcome.plan, &outcome.records, &traffic).charge_once(&mut both);
        assert_eq!(both.map(|handoff| handoff.lost()), wanted);
    }
    let loss = one.flows[0].losses[0];
    let lost = outcome.records.iter().find(|record| {
        record.at == loss.at
            && matches!(&record.what, What::Lost(_, id, _) | What::Dropped(_, id, _) if *id == loss.packet)
    });
    let loser = lost.unwrap().host;
    let mut both =
        [Handoff { host: HostId(u32::MAX), ..one.clone() }, Handoff { host: loser, ..one.clone() }];
    super::HandoffAnalysis::new(&outcome.plan, &outcome.records, &traffic).charge_once(&mut both);
    assert!(both[1].lost() > 0 && both[0].lost() + both[1].lost() == 3, "{both:?}");
}

const BURSTS: &str = r#"
about = "a wire that loses in bursts"
duration = "20s"
[wire.path]
ends = ["server", "client"]
rate = "10Mb/s"
delay = "20ms"
burst = { enter = 0.001, leave = 0.01 }
[host.server]
address = "10.2.0.2"
default_route = "client"
tcp = { profile = "linux", congestion = "cubic" }
role = [{ kind = "apps/bulk-server", at = "server:5001", duration = "60s" }]
[host.client]
address = "10.1.0.7"
default_route = "server"
tcp = { profile = "linux" }
role = [{ kind = "apps/bulk-client", to = "server:5001", start = "0.5s" }]
"#;

/// A wire loses in bursts, in both directions. If all data arrived and the acknowledgments did not, the sender
/// retransmits until the run ends. Then this time is a stall and a hole.
#[test]
fn lost_acknowledgments_hide_no_stall() {
    let mut hidden = 0;
    for seed in 1..=8 {
        let outcome = simulate(Scenario::plan("bursts.toml", BURSTS, &[], seed).unwrap()).unwrap();
        let [flow] = outcome.flows.as_slice() else { panic!("{:?}", outcome.flows) };
        let last = flow.arrivals.last().unwrap().at;
        let silence = flow.until.since(last);
        if silence < Duration::from_secs(2) {
            continue;
        }
        hidden += u32::from(outcome.packets[0].first_sent(flow.bytes).is_none());
        assert!(flow.longest_stall >= silence, "seed {seed}: {:?} of {silence:?}", flow.longest_stall);
        let is_never = |hole: &Hole| matches!(hole.experience, Experience::Never { .. });
        assert!(outcome.holes.iter().any(is_never), "seed {seed}: {:?}", outcome.holes);
        assert!(!outcome.failures.is_empty());
    }
    assert!(hidden > 0, "no seed loses acknowledgments alone");
}

/// If the run ends within the sender's first time-out, no hole is `never`: whether new data would have come is unknown.
#[test]
fn a_run_that_ends_within_a_time_out_has_no_never() {
    let text = BURSTS.replace("burst = { enter = 0.001, leave = 0.01 }\n", "");
    for (at, wanted) in [("19.5s", false), ("18.5s", true)] {
        let event = format!("[[event]]\nat = \"{at}\"\nkind = \"loss\"\nwire = \"path\"\nloss = 1.0\n");
        let plan = Scenario::plan("lossy.toml", &format!("{text}{event}"), &[], 1).unwrap();
        let outcome = simulate(plan).unwrap();
        let is_never = |hole: &Hole| matches!(hole.experience, Experience::Never { .. });
        assert_eq!(outcome.holes.iter().any(is_never), wanted, "{at}: {:?}", outcome.holes);
        assert_eq!(outcome.failures.is_empty(), !wanted, "{at}: {:?}", outcome.failures);
    }
}

/// Packets are lost, and then the link goes down. The hole begins with the last arrival, and all of it has a cause.
#[test]
fn a_hole_begins_before_the_link_went_down_if_packets_were_lost_before() {
    let outcome = first(&[]);
    let mobile = outcome.flows[0].to.host;
    let edges = [
        (1_600, What::Down(Iface(1), node::Link::OUT_OF_RANGE.into())),
        (1_610, What::Up(Iface(1), Some(wire::Cell(2)))),
    ];
    for (sent, begins) in [(1495..1615, "last_arrival"), (1555..1715, "down")] {
        let mut records = changed(&outcome, sent, lost_at(mobile));
        for (at, what) in edges.clone() {
            let at = Instant::from_millis(at);
            let place = records.partition_point(|record| record.at <= at);
            records.insert(place, Record { at, host: mobile, what });
        }
        let (_, holes, ..) = read(&outcome, &records);
        let [hole] = holes.as_slice() else { panic!("{holes:?}") };
        let outage = hole.experience.outage().unwrap();
        assert_eq!(
            (outage.owners[0].begins.as_str(), outage.unexplained()),
            (begins, Duration::ZERO),
            "{outage:?}"
        );
        let down = Instant::from_millis(1_600);
        assert_eq!(hole.from < down, begins == "last_arrival", "{hole:?}");
    }
}
