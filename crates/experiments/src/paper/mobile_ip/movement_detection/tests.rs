use super::*;
use crate::reproduce::{Measured, Samples, Scale, Validity, judge_one};
use recorder::run::{Backend, simulate};
use std::collections::BTreeMap;

fn point(label: &str) -> Point {
    points::points(Scale::Quick).into_iter().find(|point| point.label == label).unwrap()
}

/// Returns the results of the first run of a point.
fn first(label: &str) -> Measured {
    let mut point = point(label);
    point.runs.truncate(1);
    point.n = 1;
    judge_one(&point, &simulate(point.plan(0, &[]).unwrap()).unwrap())
}

fn value(measured: &Measured, metric: &str) -> f64 {
    measured.samples[metric][0]
}

/// Returns a metric that counts something.
fn count(measured: &Measured, metric: &str) -> u32 {
    value(measured, metric) as u32
}

/// The expected times follow from the policy: the home agent expires 3 s after its last advertisement, the foreign agent
/// advertises each second. The sender's time-outs follow from the ticks of 4.4BSD.
#[test]
fn a_halt_ends_with_the_second_time_out_after_the_handoff_if_the_reaction_is_classic() {
    let [classic, modern] = ["LCS, 4.4BSD classic", "LCS, 4.4BSD modern"].map(first);
    assert_eq!((&classic.validity, &modern.validity), (&Validity::Valid, &Validity::Valid));
    for measured in [&classic, &modern] {
        let done = value(measured, DONE);
        assert!((2.0..3.1).contains(&done), "{done}");
        assert!(value(measured, ON_RESENT) > 0.5 && value(measured, FIRST_BY_TIME_OUT) > 0.5);
        assert!(value(measured, HALT) > done && value(measured, SINCE_DONE) > 0.0);
    }
    assert_eq!(count(&classic, TICK), count(&modern, TICK) + 1);
    // Of the time-outs r, 2r and 4r, the last begins with the one that the modern reaction ends with.
    let ratio = value(&classic, DOUBLING);
    assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
    assert!(value(&classic, HALT) > value(&modern, HALT) + 4.0);
}

#[test]
fn a_figure_shows_the_steps_of_a_run_in_order_and_each_time_out() {
    let measured = first("ECS, 4.4BSD classic");
    let series = &measured.series[0];
    let names: Vec<&str> = series.events.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, [measure::LEFT, measure::DETECTED, measure::REGISTERED, measure::RECOVERED]);
    assert!(series.events.is_sorted());
    let most = series.lines[measure::TIME_OUTS].iter().map(|(_, number)| *number).fold(0.0, f64::max);
    assert_eq!(most as u32, count(&measured, TICK));
    let round_trips = &series.lines[measure::ROUND_TRIP];
    assert!(
        round_trips.len() > 100 && round_trips.iter().all(|(_, ms)| *ms < 250.0),
        "no halt is a round trip"
    );
}

#[test]
fn in_the_overlap_only_a_lazy_policy_loses_packets() {
    let [eager, lazy] = ["ECS, overlap", "LCS, overlap"].map(first);
    assert_eq!(count(&eager, LOST), 0);
    assert!(value(&lazy, LOST) > 0.0 && value(&lazy, HALT) > 2.0);
    assert!(value(&eager, DONE) < 1.1 && value(&lazy, DONE) > 2.0);
}

/// The label of a point, and the values of its metrics.
type Row<'a> = (&'a str, &'a [(&'static str, &'a [f64])]);

/// Returns results with these values for the points of these labels.
fn results(rows: &[Row<'_>]) -> Results {
    let row = |(label, values): &Row<'_>| {
        let samples: Samples =
            values.iter().map(|(metric, values)| (*metric, values.to_vec())).collect::<BTreeMap<_, _>>();
        (point(label), Some(Measured { samples, validity: Validity::Valid, series: Vec::new() }))
    };
    Results { backend: Backend::Sim, rows: rows.iter().map(row).collect() }
}

#[test]
fn policies_are_compared_in_runs_with_the_same_phases_and_the_same_sender() {
    let all = results(&[
        ("LCS, 4.4BSD classic", &[(HALT, &[10.0, 12.0])]),
        ("ECS, 4.4BSD classic", &[(HALT, &[9.0, 12.0])]),
        ("LCS, Linux", &[(HALT, &[3.0])]),
        ("ECS, Linux", &[(HALT, &[1.0])]),
    ]);
    assert_eq!(differences(&all, HALT, [LCS, ECS]), [1.0, 0.0, 2.0]);
    let must_hold = MUST_HOLD.iter().find(|must_hold| must_hold.text == FIRST).unwrap();
    assert!(!(must_hold.check)(&all).holds, "in the second run, both recover at the same time");
    let mut equal = results(&[("LCS, Linux", &[(HALT, &[1.001])]), ("ECS, Linux", &[(HALT, &[1.0])])]);
    assert!((must_hold.check)(&equal).holds);
    equal.backend = Backend::Linux;
    assert!(!(must_hold.check)(&equal).holds, "two equal runs differ at random");
}

#[test]
fn a_time_out_more_is_required_only_if_a_time_out_sends_the_first_packet() {
    let check = |first: f64, by_time_out: bool| {
        let [ticks, firsts] = [&[1.0, 1.0], &[1.0, first]];
        let fits = results(&[
            ("LCS, 4.4BSD, path MTU fits", &[(TICK, &[1.0, 1.0])]),
            ("LCS, 4.4BSD classic", &[(TICK, &[2.0, 1.0]), (FIRST_BY_TIME_OUT, firsts)]),
            ("LCS, 4.4BSD modern", &[(TICK, ticks), (FIRST_BY_TIME_OUT, firsts)]),
        ]);
        one_more(&fits, by_time_out).holds
    };
    assert!(check(0.0, true) && !check(1.0, true) && !check(0.0, false));
}
