use super::*;
use std::collections::BTreeMap;
use trace::Doubt;

const FINGERPRINT: trace::Fingerprint = trace::Fingerprint { version: 2, value: 7 };

/// Returns runs with these values of a metric, numbered from 0; `None` is a run without the metric.
fn sample(metric: &str, values: impl IntoIterator<Item = Option<f64>>) -> Sample {
    let runs: Vec<Run> = values
        .into_iter()
        .map(|value| {
            let values: BTreeMap<String, f64> =
                value.map(|value| (metric.to_owned(), value)).into_iter().collect();
            Run { values, ..Run::default() }
        })
        .collect();
    let mut sample = Sample::new(runs.len() as u64);
    (0..).zip(runs).for_each(|(number, run)| sample.add(number, run));
    sample
}

/// Returns a doubt about the timing of the machine.
fn late() -> Doubt {
    Doubt::Late { process: "b1".to_owned(), p99_us: 3000.0, alone_us: None }
}

fn of(metric: &str, values: &[f64]) -> Sample {
    sample(metric, values.iter().copied().map(Some))
}

fn measured(sim: Sample, same: Sample, linux: Sample) -> Measured {
    let scenario = Repeated::of("first", &[], 1).unwrap();
    let mut measured = Measured::new(&scenario, [sim.of, linux.of], "6.18").with_runs_of(None, FINGERPRINT);
    (measured.sim, measured.same, measured.linux) = (sim, same, linux);
    measured
}

fn judged(sim: Sample, linux: Sample) -> Report {
    report(&measured(sim.clone(), sim, linux))
}

fn judge(metric: &str, sim: &[f64], linux: &[f64]) -> Agreement {
    judged(of(metric, sim), of(metric, linux)).agreement
}

#[test]
fn one_distribution_agrees_with_itself_and_not_with_another_of_the_same_median() {
    let spread: Vec<f64> = (0..40).map(|n| 40.0 + f64::from(n)).collect();
    assert_eq!(judge("outage_ms", &spread, &spread), Agreement::Agrees);
    // The median is the same, but 19 of 40 runs are in a second mode.
    let modes: Vec<f64> = (0..40).map(|n| if n < 21 { 59.5 } else { 500.0 }).collect();
    assert_eq!(judge("outage_ms", &spread, &modes), Agreement::Differs);
}

#[test]
fn what_the_emulator_cannot_resolve_is_no_difference_and_what_it_can_is_one() {
    let constant = [62.091; 12];
    assert_eq!(judge("outage_ms", &constant, &[63.0; 12]), Agreement::Agrees);
    assert_eq!(judge("outage_ms", &constant, &[65.0; 12]), Agreement::Differs);
    assert_eq!(
        judge("lost_packets", &[3.0; 12], &[4.0; 12]),
        Agreement::Differs,
        "packets are counted whole"
    );
    assert_eq!(judge("goodput_kbps", &[1700.0; 12], &[1690.0; 12]), Agreement::Agrees);
    assert_eq!(judge("goodput_kbps", &[1700.0; 12], &[1600.0; 12]), Agreement::Differs);
}

/// Returns the verdict if `far` of `n` values are 10 ms larger and `far` are 10 ms smaller, so that the means are
/// equal.
fn apart(far: usize, n: usize) -> Agreement {
    let at = |number: usize| match number {
        number if number < far => 1010.0,
        number if number < 2 * far => 990.0,
        _ => 1000.0,
    };
    let linux: Vec<f64> = (0..n).map(at).collect();
    judge("outage_ms", &vec![1000.0; n], &linux)
}

#[test]
fn the_distance_may_be_three_tenths_and_no_more() {
    assert_eq!(apart(6, 20), Agreement::Agrees, "six of twenty are 0.3");
    assert_eq!(apart(7, 20), Agreement::Differs, "0.35");
    assert_eq!(apart(3, 10), Agreement::Agrees, "0.3, whatever binary fractions make of it");
    assert_eq!((DISTANCE, SHARE, LEAST), (0.3, 0.2, 6));
}

#[test]
fn means_may_be_a_fifth_or_20_ms_apart_and_no_more() {
    // One value in ten is far from the others: the distance is 0.1, so the mean decides.
    let mean = |metric, base: f64, by: f64| {
        let (sim, mut linux) = ([base; 10], [base; 10]);
        linux[9] = base + 10.0 * by;
        judge(metric, &sim, &linux)
    };
    for metric in ["outage_ms", "longest_stall_ms"] {
        assert_eq!(mean(metric, 50.0, 20.0), Agreement::Agrees, "20 ms");
        assert_eq!(mean(metric, 50.0, 20.1), Agreement::Differs, "more than 20 ms, and than a fifth");
        assert_eq!(mean(metric, 1000.0, 250.0), Agreement::Agrees, "a fifth of the larger");
        assert_eq!(mean(metric, 1000.0, 251.0), Agreement::Differs, "more than a fifth");
    }
    assert_eq!(mean("goodput_kbps", 1000.0, 250.0), Agreement::Agrees);
    assert_eq!(mean("goodput_kbps", 1000.0, 251.0), Agreement::Differs);
    assert_eq!(mean("goodput_kbps", 50.0, 19.0), Agreement::Differs, "no allowance but the fifth");
    assert_eq!(mean("lost_packets", 2.0, 1.0), Agreement::Agrees, "one packet");
    assert_eq!(mean("lost_packets", 2.0, 1.1), Agreement::Differs);
}

#[test]
fn means_count_beside_the_distance() {
    let sim = [50.0; 20];
    let mut linux = [50.0; 20];
    linux[19] = 2000.0;
    assert_eq!(judge("outage_ms", &sim, &linux), Agreement::Differs, "one in twenty is far away");
}

#[test]
fn an_outage_that_never_ends_on_one_backend_alone_differs() {
    let never = f64::INFINITY;
    let note = |sim: &[f64], linux: &[f64]| {
        let report = judged(of("outage_ms", sim), of("outage_ms", linux));
        (report.agreement, report.rows[0].note.clone().unwrap_or_default())
    };
    let (ends, mut once) = ([50.0; 12], [50.0; 12]);
    once[0] = never;
    let words = "the outage is `never` in 0 of 12 runs in the simulator, and in 1 of 12 runs on Linux";
    assert_eq!(note(&ends, &once), (Agreement::Differs, words.to_owned()));
    assert_eq!(
        note(&ends, &[never; 12]),
        (Agreement::Differs, "all outages on Linux are `never`".to_owned())
    );
    assert_eq!(
        note(&[never; 12], &ends),
        (Agreement::Differs, "all outages in the simulator are `never`".to_owned())
    );
    assert_eq!(note(&once, &once), (Agreement::Agrees, String::new()));
    assert_eq!(note(&[never; 12], &[never; 12]), (Agreement::Agrees, String::new()));
}

#[test]
fn a_metric_that_one_backend_alone_has_differs_and_nothing_is_printed_as_no_number() {
    let all = of("outage_ms", &[50.0; 12]);
    let none = sample("outage_ms", [None; 12]);
    let some = sample("outage_ms", (0..12).map(|number| (number < 8).then_some(50.0)));
    for (sim, linux, says) in [
        (&all, &none, "not measured on Linux"),
        (&none, &all, "not measured in the simulator"),
        (&all, &some, "measured in 12 of 12 runs in the simulator, and in 8 of 12 runs on Linux"),
    ] {
        let reports = [judged(sim.clone(), linux.clone())];
        assert_eq!(reports[0].agreement, Agreement::Differs, "{says}");
        let printed = [text(&reports), csv(&reports), json(&reports).to_string()];
        assert!(printed.iter().all(|text| text.contains(says) && !text.contains("NaN")), "{printed:?}");
    }
    assert_eq!(judged(some.clone(), some).agreement, Agreement::Agrees);
}

/// The text below the table contains the rules of agreement. If all metrics agree, no line begins with another verdict.
#[test]
fn no_line_of_a_report_that_agrees_begins_with_another_verdict() {
    let all = of("outage_ms", &[50.0; 12]);
    let printed = text(&[judged(all.clone(), all)]);
    assert!(printed.contains("first: agrees"), "{printed}");
    let others = [Agreement::Inconclusive, Agreement::Differs].map(Agreement::name);
    let is_other = |line: &&str| others.iter().any(|name| line.starts_with(name));
    assert_eq!(printed.lines().find(is_other), None);
}

#[test]
fn few_runs_or_none_are_inconclusive() {
    assert_eq!(judge("outage_ms", &[1.0; 40], &[1.0; 5]), Agreement::Inconclusive);
    assert_eq!(judge("outage_ms", &[1.0; 40], &[]), Agreement::Inconclusive);
    assert_eq!(judge("handoff_latency_ms", &[1.0; 40], &[2.0; 12]), Agreement::Inconclusive, "not compared");
}

#[test]
fn every_named_scenario_and_leg_is_there() {
    for name in SCENARIOS.iter().map(|name| (*name).to_owned()).chain(legs().unwrap()) {
        assert!(Repeated::of(&name, &[], 1).is_ok(), "{name}");
    }
}

#[test]
fn what_the_simulator_gives_at_the_same_phases_is_judged() {
    // The outages have two modes. In the simulator 20 of 40 runs are slow, on Linux 10 of 12. At the same phases, 10 or
    // 2 of 12 are slow in the simulator.
    let modes = |slow: usize, of: usize| {
        sample("outage_ms", (0..of).map(move |n| Some(if n < slow { 500.0 } else { 50.0 })))
    };
    let (sim, linux) = (modes(20, 40), modes(10, 12));
    let agreement = |same: Sample| {
        let report = report(&measured(sim.clone(), same, linux.clone()));
        assert!(report.rows[0].distance > Some(DISTANCE));
        report.agreement
    };
    assert_eq!(agreement(modes(10, 12)), Agreement::Agrees);
    assert_eq!(agreement(modes(2, 12)), Agreement::Differs);
    assert_eq!(agreement(modes(2, 3)), Agreement::Inconclusive);
}

#[test]
fn the_simulator_is_judged_at_the_phases_that_count_on_linux_alone() {
    // On Linux, the runs at the slow half of the phases had host contention. Only the fast half counts, on Linux and
    // in the simulator.
    let sim = of("outage_ms", &(0..20).map(|n| if n < 10 { 500.0 } else { 50.0 }).collect::<Vec<_>>());
    let mut linux = sim.clone();
    for number in 0..10 {
        linux.add(number, Run { doubts: vec![late()], ..Run::default() });
    }
    let report = judged(sim, linux);
    assert_eq!((report.agreement, report.counted), (Agreement::Agrees, [20, 10]));
    assert_eq!(report.untrusted[1].len(), 10);
}

#[test]
fn a_record_is_read_as_it_was_written_and_keeps_what_never_ended() {
    let never = f64::INFINITY;
    let mut linux = sample("outage_ms", [Some(1.5), Some(never), None, Some(0.0)]);
    linux.add(1, Run { doubts: vec![late(), Doubt::Unbalanced], ..Run::default() });
    let mut recorded = Recorded::default();
    recorded.keep(measured(of("outage_ms", &[never; 3]), of("outage_ms", &[1.0; 4]), linux)).unwrap();
    let again = Recorded::read(&recorded.json().unwrap()).unwrap();
    assert_eq!(again, recorded);
    assert_eq!(again.json().unwrap(), recorded.json().unwrap());
    // If a value changes, the file's digest no longer matches.
    let changed = recorded.json().unwrap().replacen("1.5", "1.6", 1);
    assert!(Recorded::read(&changed).unwrap_err().contains("was changed after"), "{changed}");
    let first = again.find("first").unwrap();
    assert!(first.sim.values("outage_ms").iter().all(|value| value.is_infinite()));
    assert_eq!(first.linux.values("outage_ms"), [1.5, 0.0]);
}

#[test]
fn a_later_call_runs_only_what_is_missing() {
    let scenario = |set: &[&str]| {
        let set: Vec<_> = set.iter().map(|text| text.parse().unwrap()).collect();
        Repeated::of("first", &set, 1).unwrap()
    };
    let kept = |of: &Repeated, runs, kernel: &str, fingerprint| {
        let old = measured(self::of("outage_ms", &[1.0; 9]), self::of("outage_ms", &[1.0; 8]), {
            let mut linux = self::of("outage_ms", &[1.0; 8]);
            linux.add(3, Run { doubts: vec![late()], ..Run::default() });
            linux.add(4, Run { doubts: vec![late(), Doubt::Unbalanced], ..Run::default() });
            linux
        });
        let new = Measured::new(of, runs, kernel).with_runs_of(Some(&old), fingerprint);
        [new.sim.missing().len(), new.same.missing().len(), new.linux.missing().len()]
    };
    let first = scenario(&[]);
    assert_eq!(kept(&first, [9, 8], "6.18", FINGERPRINT), [0, 0, 1], "one that the machine disturbed");
    assert_eq!(
        kept(&first, [9, 8], "6.18", trace::Fingerprint { value: 8, ..FINGERPRINT }),
        [9, 8, 1],
        "the simulator has changed"
    );
    assert_eq!(kept(&first, [9, 8], "6.19", FINGERPRINT), [0, 0, 8], "another kernel");
    assert_eq!(kept(&first, [9, 7], "6.18", FINGERPRINT), [0, 7, 7], "other phases on Linux");
    assert_eq!(kept(&first, [10, 8], "6.18", FINGERPRINT), [10, 0, 1], "other phases in the simulator");
    let other = scenario(&["radio.retune=10ms"]);
    assert_eq!(kept(&other, [9, 8], "6.18", FINGERPRINT), [9, 8, 8], "another scenario");
}

#[test]
fn a_leg_of_compare_runs_at_the_phases_of_compare() {
    let course = course().unwrap();
    let leg = &course.legs[0];
    let repeated = Repeated::of(&leg.name, &[], 1).unwrap();
    let points = crate::contest::points(course, 6, |other| other.name == leg.name);
    for (number, point) in (0..6).zip(points) {
        let [ours, theirs] = [repeated.plan(number, 6).unwrap(), point.plan(0, &[]).unwrap()];
        assert_eq!(ours.duration, theirs.duration, "{}", point.label);
        // Then `compare` only switches on the records of the state.
        assert!(theirs.settings.starts_with(&ours.settings), "{}", point.label);
        let further = &theirs.settings[ours.settings.len()..];
        assert!(!further.is_empty());
        assert!(
            further.iter().all(|setting| setting.to_string().ends_with(".record_state=true")),
            "{further:?}"
        );
    }
}
