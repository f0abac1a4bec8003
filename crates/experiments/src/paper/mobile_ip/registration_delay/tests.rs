use super::*;
use crate::reproduce::{Scale, judge_one};
use recorder::run::simulate;

#[test]
fn the_wait_doubles_until_it_exceeds_the_round_trip() {
    for (round_trip, again, ends) in
        [(0.0, 0.0, 0.0), (0.9, 0.0, 0.9), (1.0, 1.0, 2.0), (9.0, 4.0, 24.0), (13.0, 4.0, 28.0)]
    {
        assert_eq!(points::doublings(round_trip), (again, ends), "{round_trip}");
    }
}

fn values(label: &str) -> [f64; 3] {
    let points = points::points(Scale::Quick);
    let mut point = points.into_iter().find(|point| point.label == label).unwrap();
    (point.n, point.runs) = (1, Vec::new());
    let measured = judge_one(&point, &simulate(point.plan(0, &[]).unwrap()).unwrap());
    assert!(measured.is_valid(), "{:?}", measured.validity);
    [SUCCESS, RETRANSMISSIONS, TIME].map(|metric| measured.samples[metric][0])
}

/// The times follow from the link: twice its delay, and the time of the frames.
#[test]
fn a_node_that_knows_the_round_trip_sends_one_request() {
    let [success, again, time] = values("2 RTT + 100 ms, delay 2.2 s");
    assert!(success > 0.5 && again < 0.5 && (4.4..4.41).contains(&time), "{time}");
    let [success, again, time] = values("1 s, delay 2.2 s");
    assert!(success > 0.5 && (2.5..3.5).contains(&again) && (11.4..11.41).contains(&time), "{again} {time}");
    let [success, again, time] = values("1 s, delay 7.5 s");
    assert!(success < 0.5 && again > 3.5 && time.is_infinite());
}
