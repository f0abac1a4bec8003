//! Handoffs of the benchmark's scenarios in the simulator, some with changed records.

use recorder::handoff::{Experience, FlowCost, Handoff, Outage, Recovery};
use recorder::run::{Outcome, simulate};
use recorder::segment::carries_data;
use scenario::Scenario;
use std::fmt::Debug;
use trace::{Record, What};
use wire::{Duration, Iface};

fn run(name: &str, settings: &[&str], seed: u64) -> Outcome {
    let (file, text) = crate::catalogue::find(name).unwrap();
    let settings: Vec<_> = settings.iter().map(|text| text.parse().unwrap()).collect();
    simulate(Scenario::plan(&file, &text, &settings, seed).unwrap()).unwrap()
}

/// Returns the handoffs that `run` would have if its records were `records`.
fn handoffs(run: &Outcome, records: Vec<Record>) -> Vec<Handoff> {
    Outcome::new(run.plan.clone(), run.backend, records, None).handoffs
}

/// Returns the cut, latency and effects of all handoffs, and the recovery of each flow. Since when data are due is left out: it
/// depends on data that arrive by the old path after the cut.
fn effects(all: &[Handoff]) -> Vec<(impl PartialEq + Debug + use<>, Recovery)> {
    let effect = |handoff: &Handoff, cost: &FlowCost| {
        let mut experience = cost.experience.clone();
        if let Experience::Outage(outage) = &mut experience {
            outage.due = outage.from;
        }
        let times = (handoff.begun, handoff.cut, handoff.latency, handoff.round_trip);
        ((times, experience, cost.lost(), cost.duplicates), cost.recovery)
    };
    all.iter().flat_map(|handoff| handoff.flows.iter().map(|cost| effect(handoff, cost))).collect()
}

#[test]
fn what_the_stack_had_before_the_cut_ends_no_outage() {
    let run = run("compare/mobile-ip/gap/bulk", &[], 1);
    let [before] = run.handoffs.as_slice() else { panic!("{:?}", run.handoffs) };
    let mut records = run.records.clone();
    let at = before.cut + Duration::from_micros(1);
    let index = records.partition_point(|record| record.at <= at);
    let first = records.iter().find(|record| record.host == before.host && record.what.read().is_some());
    let read = first.unwrap().what.clone();
    records.insert(index, Record { at, host: before.host, what: read });
    let after = handoffs(&run, records);
    // The time of recovery is not compared. It depends on the goodput before the handoff, and the inserted read changes
    // this goodput.
    let effects = |all: &[Handoff]| effects(all).into_iter().map(|(effect, _)| effect).collect::<Vec<_>>();
    assert_eq!(effects(&after), effects(&run.handoffs));
    assert!(after[0].flows[0].recovery.at().is_some());
}

/// A frame may arrive before the radio leaves, while the kernel processes the frame only after the cut. Data in such a
/// frame end no outage.
#[test]
fn what_is_handed_over_while_the_radio_is_away_ends_no_outage() {
    let run = run("compare/mobile-ip/gap/bulk", &[], 1);
    let [before] = run.handoffs.as_slice() else { panic!("{:?}", run.handoffs) };
    let mut records = run.records.clone();
    let of_tcp = |record: &Record| {
        record.host == before.host
            && record.at < before.cut
            && matches!(&record.what, What::Sent(Iface::HOST, packet) if carries_data(packet))
    };
    let handed = records.iter().rposition(of_tcp).unwrap();
    let read = |record: &Record| record.host == before.host && record.what.read().is_some();
    let read = handed + records[handed..].iter().position(read).unwrap();
    for (place, micros) in [(read, 200), (handed, 100)] {
        let at = before.cut + Duration::from_micros(micros);
        let late = Record { at, ..records.remove(place) };
        let index = records.partition_point(|record| record.at <= at);
        records.insert(index, late);
    }
    assert_eq!(effects(&handoffs(&run, records)), effects(&run.handoffs));
}

/// A support router relays the question of a host that moved. The host's TCP had sent the question when the path was
/// cut, and retransmitted it until the router had it. So the outage is recovery, not traffic. Once there was a path,
/// the host's TCP did not wait for its timer, because the new router notified it.
#[test]
fn a_relayed_question_is_followed_from_its_host() {
    let outcome = run("compare/indirect-tcp/gap/requests", &[], 1);
    assert_eq!(outcome.flows.len(), 2);
    for cost in &outcome.handoffs[0].flows {
        let flow = &outcome.flows[cost.flow];
        let outage = cost.experience.outage().unwrap();
        let stall = flow.longest_stall;
        let gap = Duration::from_secs(1);
        assert!(stall > gap && stall < gap + Duration::from_millis(300), "{stall:?}");
        // An answer is due since its question was sent, shortly before the cut.
        assert!(stall <= outage.span() + Duration::from_millis(100), "{:?}", outage.span());
        assert!(outage.owners.iter().all(|owner| owner.name() != "traffic"), "{:?}", outage.owners);
        assert!(cost.lost() > 0 && flow.retransmissions > 0, "{cost:?}");
    }
}

/// A mobile node that always has a second link changes only its address. Its next question waits for the previous
/// answer or for a retransmission, not for a link.
#[test]
fn a_question_that_no_link_held_up_is_explained() {
    for seed in [1, 2, 7, 8, 9, 10] {
        let lossy = ["cell.1.loss=0.05", "cell.2.loss=0.05"];
        let outcome = run("compare/sigma/overlap/requests", &lossy, seed);
        for cost in &outcome.handoffs[0].flows {
            let outage = cost.experience.outage();
            assert!(outage.is_none_or(Outage::is_explained), "seed {seed}: {outage:?}");
        }
    }
}

/// If the run ends within the sender's first time-out after the cut, the handoff is not measured. Whether new data
/// would have come is unknown.
#[test]
fn a_handoff_at_the_end_of_a_run_is_not_measured() {
    let run = |settings: &[&str]| run("compare/plain-ip/overlap/bulk", settings, 1);
    let cut = run(&[]).handoffs[0].cut;
    for (millis, wanted) in [(900, false), (1_900, true)] {
        let end = (cut + Duration::from_millis(millis)).as_secs_f64();
        let outcome = run(&[&format!("duration={end}s")]);
        let experience = &outcome.handoffs[0].flows[0].experience;
        let is_never = matches!(experience, Experience::Never { .. });
        assert!(is_never == wanted && (wanted || *experience == Experience::NotMeasured), "{experience:?}");
    }
}
