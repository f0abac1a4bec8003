//! The points of the experiment: delays from 0 to 8 s with two first time-outs, and variations.

use super::{RETRANSMISSIONS, TIME, measure};
use crate::reproduce::{Kind, Measure, Point, SIM, Scale, settings};

/// The names of the parameters of points; then the values of the parameter `first`.
pub(super) const DELAY: &str = "delay_s";
pub(super) const FIRST: &str = "first_time_out";
const VARIATION: &str = "variation";
pub(super) const UNKNOWN: &str = "1 s";
pub(super) const KNOWN: &str = "2 RTT + 100 ms";

/// The home agent's replay window in the scenario, in seconds.
pub(super) const WINDOW_S: f64 = 7.0;
/// The delays of the link in seconds, each way. 0.256 s is that of a geostationary satellite.
const DELAYS: [f64; 13] = [0.0, 0.1, 0.256, 0.4, 0.7, 1.2, 2.2, 3.2, 4.5, 5.5, 6.5, 7.5, 8.0];
/// The delays at which parameters are varied.
const VARIED: [f64; 3] = [0.256, 2.2, 4.5];
/// The time from the last reply to the end of a run, in seconds.
const AFTER_S: f64 = 2.0;
/// The length of a run whose registration may fail, in seconds.
const WATCHED_S: f64 = 32.0;

/// The number of runs of a point, of a variation, and of a variation with random losses.
const fn counts(scale: Scale) -> [usize; 3] {
    match scale {
        Scale::Quick => [2, 1, 3],
        Scale::Default => [4, 2, 40],
        Scale::Full => [4, 4, 200],
    }
}

pub(super) fn points(scale: Scale) -> Vec<Point> {
    let [n, few, lossy] = counts(scale);
    let mut points = Vec::new();
    for first in [UNKNOWN, KNOWN] {
        points.extend(DELAYS.map(|delay| point(first, delay, n)));
    }
    for (name, n, set) in [
        ("replay window 3.5 s", few, &["home-agent.replay_window=3500ms"][..]),
        ("replay window 14 s", few, &["home-agent.replay_window=14s"]),
        ("foreign agent waits 7 s", few, &["foreign-agent.pending_timeout=7s"]),
        ("nonces", few, &["mobile-ip.replay=nonces"]),
        ("5 % lost", lossy, &["wire.satellite.loss=0.05"]),
        ("10 % lost", lossy, &["wire.satellite.loss=0.1"]),
    ] {
        for first in [UNKNOWN, KNOWN] {
            points.extend(VARIED.map(|delay| varied(first, delay, name, n, set)));
        }
    }
    points
}

/// Returns the number of requests after the first until the wait, which doubles from 1 s, exceeds the round trip; and when
/// the reply to the last of them arrives, in seconds.
pub(super) fn doublings(round_trip: f64) -> (f64, f64) {
    let (mut wait, mut sent, mut again) = (1.0, 0.0, 0.0);
    while wait <= round_trip {
        sent += wait;
        wait *= 2.0;
        again += 1.0;
    }
    (again, sent + round_trip)
}

fn point(first: &'static str, delay: f64, n: usize) -> Point {
    let round_trip = 2.0 * delay;
    let (again, time) = if first == KNOWN { (0.0, round_trip) } else { doublings(round_trip) };
    let is_accepted = delay < WINDOW_S;
    let duration = if is_accepted { time + AFTER_S } else { WATCHED_S };
    let known = if first == KNOWN { round_trip } else { 0.0 };
    let set = [
        format!("wire.satellite.delay={delay}s"),
        format!("mobile-node.expected_round_trip={known:.3}s"),
        format!("duration={duration:.3}s"),
    ];
    Point {
        label: format!("{first}, delay {delay} s"),
        setting: vec![(FIRST, first.into()), (DELAY, delay.into())],
        kind: Kind::Main,
        backends: SIM,
        scenario: "mobile-ip/registration-delay",
        overrides: settings(set),
        runs: vec![Vec::new(); n],
        phases: true,
        n,
        load: 1_000_000,
        published: Vec::new(),
        formula: if is_accepted { vec![(RETRANSMISSIONS, again), (TIME, time)] } else { Vec::new() },
        base: None,
        measure: measure::registration as Measure,
        combine: None,
        trace: None,
    }
}

fn varied(first: &'static str, delay: f64, name: &'static str, n: usize, set: &[&str]) -> Point {
    let mut point = point(first, delay, n);
    point.label = format!("{}, {name}", point.label);
    point.setting.push((VARIATION, name.into()));
    point.overrides.extend(settings(set.iter().copied()));
    point.overrides.extend(settings([format!("duration={WATCHED_S}s")]));
    Point { kind: Kind::Sensitivity, formula: Vec::new(), ..point }
}
