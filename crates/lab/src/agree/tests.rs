use super::*;
use std::collections::BTreeMap;

fn collected(metric: &str, values: impl IntoIterator<Item = f64>) -> Collected {
    let mut all = Collected::default();
    for value in values {
        all.add(&BTreeMap::from([(metric.to_owned(), value)]));
    }
    all
}

fn judge(metric: &str, sim: &[f64], linux: &[f64]) -> Agreement {
    let [sim, linux] = [sim, linux].map(|values| collected(metric, values.iter().copied()));
    report("s", [40, 12], [Vec::new(), Vec::new()], [&sim, &linux], &sim).agreement
}

#[test]
fn one_distribution_agrees_with_itself_and_not_with_another_of_the_same_median() {
    let spread: Vec<f64> = (0..40).map(|n| 40.0 + f64::from(n)).collect();
    assert_eq!(judge("outage_ms", &spread, &spread), Agreement::Agrees);
    // The median is the same, and half of it lies in a second mode.
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

#[test]
fn means_count_beside_the_distance() {
    let sim = [50.0; 20];
    let mut linux = [50.0; 20];
    linux[19] = 2000.0;
    assert_eq!(judge("outage_ms", &sim, &linux), Agreement::Differs, "one in twenty is far away");
}

#[test]
fn an_outage_that_never_ends_on_one_backend_alone_differs() {
    let (ends, mut never) = ([50.0; 12], [50.0; 12]);
    never[0] = f64::INFINITY;
    assert_eq!(judge("outage_ms", &ends, &never), Agreement::Differs);
    assert_eq!(judge("outage_ms", &never, &never), Agreement::Agrees);
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
        assert!(crate::Scenario::find(&name).is_ok(), "{name}");
    }
}

#[test]
fn what_the_simulator_gives_at_the_same_phases_is_judged() {
    // Two modes: of 40 runs in the simulator 20 are slow, of 12 on Linux 10, and of the same 12 in the simulator 10 or 2.
    let modes = |slow: usize, of: usize| (0..of).map(move |n| if n < slow { 500.0 } else { 50.0 });
    let [sim, linux] = [(20, 40), (10, 12)].map(|(slow, of)| collected("outage_ms", modes(slow, of)));
    let agreement = |same: &Collected| {
        let report = report("s", [40, 12], [Vec::new(), Vec::new()], [&sim, &linux], same);
        assert!(report.rows[0].distance > DISTANCE);
        report.agreement
    };
    assert_eq!(agreement(&collected("outage_ms", modes(10, 12))), Agreement::Agrees);
    assert_eq!(agreement(&collected("outage_ms", modes(2, 12))), Agreement::Differs);
    assert_eq!(agreement(&collected("outage_ms", modes(2, 3))), Agreement::Inconclusive);
}
