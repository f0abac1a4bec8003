//! Checks of the constants of the experiment against the scenario's links, and of the computed points.

use super::*;
use crate::reproduce::{Samples, Scale};
use wire::Duration;

fn quick() -> Vec<Point> {
    points::points(Scale::Quick)
}

/// The lengths of frames in bytes: data outside and inside the tunnel, and an acknowledgment.
const PLAIN: f64 = 1494.0;
const TUNNELLED: f64 = 1514.0;
const ACKNOWLEDGMENT: f64 = 66.0;

#[test]
fn the_round_trip_of_the_window_is_that_of_the_links() {
    for point in quick().iter().filter(|point| is_main(point, WINDOW_LIMITED, 0.0..=20.0)) {
        let plan = point.plan(0, &[]).unwrap();
        let hops = point.number(HOPS).unwrap();
        assert_eq!(plan.wires.len(), hops as usize + 2);
        let cell = &plan.cells[1];
        let wires: f64 = plan.wires.iter().map(|(_, wire)| wire.delay[0].as_secs_f64()).sum();
        let bits = (2.0 * PLAIN + (hops + 1.0) * TUNNELLED + 2.0 * ACKNOWLEDGMENT) * 8.0;
        let rate = CAPACITY_MBPS * 1e6;
        assert!(plan.wires.iter().all(|(_, wire)| wire.rate == rate as u64) && cell.rate == rate as u64);
        let links = (wires + 2.0 * cell.delay.as_secs_f64() + bits / rate) * 1e3;
        let nominal = RTT_PER_HOP_MS.mul_add(hops, BASE_RTT_MS);
        assert!((links - nominal).abs() < 0.001, "{}: {links} ms, not {nominal}", point.label);
    }
}

#[test]
fn a_hop_of_the_scenario_has_the_delay_and_the_rate_of_the_formula() {
    for point in quick().iter().filter(|point| is_main(point, FULL_DUPLEX, 1.0..=20.0)) {
        let plan = point.plan(0, &[]).unwrap();
        for (_, wire) in &plan.wires {
            assert_eq!(wire.delay[0], Duration::from_micros(CHAIN_DELAY_US as u64));
            assert_eq!(wire.rate, (CAPACITY_MBPS * 1e6) as u64);
        }
    }
}

fn made_up(efficiency: impl Fn(f64) -> f64) -> Vec<(Point, Samples)> {
    let points = quick().into_iter().filter(|point| is_main(point, FULL_DUPLEX, 0.0..=20.0));
    let values = |point: &Point| {
        let value = efficiency(point.number(HOPS).unwrap());
        Samples::from([(EFFICIENCY, vec![value, value]), (COMPLETION, vec![100.0 / value; 2])])
    };
    points.map(|point| (values(&point), point)).map(|(samples, point)| (point, samples)).collect()
}

fn computed(label: &str, valid: &[(Point, Samples)]) -> Result<Samples, String> {
    let points = quick();
    let point = points.iter().find(|point| point.label == label).unwrap();
    let valid: Vec<(&Point, &Samples)> = valid.iter().map(|(point, samples)| (point, samples)).collect();
    point.combine.unwrap()(point, &valid)
}

#[test]
fn the_claims_are_computed_from_the_points() {
    let all = made_up(|hops| 80.0 - hops);
    let one = |label: &str| {
        let samples = computed(label, &all).unwrap();
        let (_, values) = samples.iter().next().unwrap();
        assert_eq!(values.len(), 2, "one value for each repetition");
        values[0]
    };
    assert!((one("slope over hops 1 to 3") - 1.0).abs() < 1e-9);
    assert!((one("10 hops against no Mobile IP") - 10.0).abs() < 1e-9);
    assert!((one("20 hops against no Mobile IP, delay") - (80.0 / 60.0 - 1.0) * 100.0).abs() < 1e-9);
}

#[test]
fn a_claim_without_its_points_has_no_value() {
    let mut all = made_up(|hops| 80.0 - hops);
    all.retain(|(point, _)| !point.has(HOPS, 2.0) && !point.has(HOPS, 10.0));
    assert!(computed("slope over hops 1 to 3", &all).unwrap_err().contains("1, 2 and 3 hops"));
    assert!(computed("10 hops against no Mobile IP", &all).unwrap_err().contains("10 hops"));
    assert!(computed("15 hops against no Mobile IP", &all).is_ok());
}
