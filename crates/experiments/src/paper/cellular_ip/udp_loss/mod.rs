//! `cellular-ip/udp-loss`: UDP packets lost in a handoff, against the round trip between host and crossover.
//!
//! In a hard handoff, a packet is lost if it passes the crossover too late for the old cell, but before the
//! route-update packet from the new cell arrives at the crossover. So packets are lost during one round trip plus the
//! retune time.

use crate::drawn::style;
use crate::reproduce::figure::{Drawn, draw_at, line};
use crate::reproduce::stratified;
use crate::reproduce::{
    BOTH, Check, Experiment, Kind, Measured, Metric, MustHold, Point, Published, Report, Results, SIM,
    Samples, Scale,
};
use crate::stats::{mean, slope};
use draw::{Axis, PointFigure, Style};
use recorder::run::{Backend, Outcome};
use toml::{Table, Value};
use wire::Duration;

const LOST: &str = "lost_per_handoff";
const DUPLICATES: &str = "duplicates_per_handoff";
const LATENCY: &str = "handoff_latency_ms";
const ROUND_TRIP: &str = "rtt_measured_ms";

const RATES: [f64; 2] = [25.0, 50.0];
const ROUND_TRIPS: [f64; 3] = [3.0, 43.0, 83.0];
const RETUNE_MS: f64 = 5.0;
/// The round trip over the scenario's links, in milliseconds. The paper has 3 ms. A test computes it from the links.
const BASE_MS: f64 = 2.922;
/// The transmission time of a data packet in a cell, in milliseconds: 142 bytes at 2 Mb/s.
const AIRTIME_MS: f64 = 0.568;
/// The instant at which the source begins to send datagrams.
const START: Duration = Duration::from_millis(500);
/// The first handoff, a whole number of packet spacings after the start.
const FIRST: Duration = Duration::from_millis(1500);
/// The time between two handoffs to the shorter path, at every scale.
const BACK_AND_FORTH: Duration = Duration::from_secs(1);

/// The published losses of hard handoffs, in packets per handoff, by rate ([`RATES`]) and round trip ([`ROUND_TRIPS`]).
/// Semisoft handoffs lost nothing.
const PUBLISHED_HARD: [[f64; 3]; 2] = [[0.20, 1.22, 2.21], [0.68, 2.64, 4.50]];

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "cellular-ip/udp-loss",
    about: "UDP packets lost in a Cellular IP handoff",
    paper: "Campbell et al. 2000",
    source: "Campbell et al. 2000, figure 5; with the numbers of draft-gomez-cellularip-perf-00, table 1",
    notes: &[
        "Scenario: payload 100 bytes, b2 <-> b3, cells 2 Mb/s, retune 5 ms, delay device of 1 packet. The n handoffs are spread\n  \
         evenly over the packet spacing. RTT: nominal, in ms. RTT 3: wires of 1 ms and the transmission times, together\n  \
         2.92 ms. For a longer RTT, both wires behind b1 have an additional delay, downlink only (our choice). Excursion (the\n  \
         time in which the radio sends the semisoft packet in the new cell and returns) 0 ms, semisoft delay 100 ms (our\n  \
         choice).",
        "formula: hard: rate x (RTT + retune). Semisoft: the sum of these terms, each if positive: rate x (excursion + airtime)\n  \
         if there is an excursion; rate x (lead + retune + airtime - delay device x spacing); rate x (RTT - semisoft delay).\n  \
         lead: the time by which the delay of the new path is shorter than that of the old path; 0 except in the rows `new path\n  \
         20 ms ahead`. airtime: the transmission time of a packet in a cell, 0.57 ms. spacing: 1 / rate.",
        "shape: the value divided by the value of the same line at RTT 83 ms.",
        "Semisoft loses nothing only if lead + retune + airtime < delay device x spacing. Otherwise, or if the RTT exceeds the\n  \
         semisoft delay, it loses as the formula says. The published hard line at 50/s is that of a radio with a longer retune\n  \
         time: see the rows with a retune of 10 ms at RTT 3 and 43.",
        "control: the new path is 20 ms shorter, without a delay device. n counts the handoffs to the shorter path; the\n  \
         handoffs back are not evaluated.",
        "slope: computed over all handoffs, each with its measured RTT.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::mean(LOST, 2),
        Metric::mean(ROUND_TRIP, 2).beside(),
        Metric::mean(LATENCY, 2),
        Metric::mean(DUPLICATES, 2),
    ],
    points,
    must_hold: MUST_HOLD,
    observed: &[],
    figures,
};

// --- points --------------------------------------------------------------------------------------------------------

/// The parameters that vary between points. [`Case::published`] has the paper's values.
struct Case {
    kind: Kind,
    handoff: &'static str,
    rate: f64,
    round_trip: f64,
    retune: f64,
    excursion: f64,
    semisoft_delay: f64,
    delay_device: u32,
    /// The delay of the path through b2 minus that of the path through b3, in milliseconds.
    ahead: f64,
}

impl Case {
    const fn published(handoff: &'static str, rate: f64, round_trip: f64) -> Self {
        Self {
            kind: Kind::Main,
            handoff,
            rate,
            round_trip,
            retune: RETUNE_MS,
            excursion: 0.0,
            semisoft_delay: 100.0,
            delay_device: 1,
            ahead: 0.0,
        }
    }

    fn sensitivity(handoff: &'static str, rate: f64, round_trip: f64) -> Self {
        Self { kind: Kind::Sensitivity, ..Self::published(handoff, rate, round_trip) }
    }
}

fn points(scale: Scale) -> Vec<Point> {
    let mut cases = Vec::new();
    for handoff in ["hard", "semisoft"] {
        for rate in RATES {
            cases.extend(ROUND_TRIPS.map(|round_trip| Case::published(handoff, rate, round_trip)));
        }
    }
    for rate in RATES {
        let even = Case::published("semisoft", rate, 43.0);
        cases.push(Case { kind: Kind::Control, delay_device: 0, ahead: 20.0, ..even });
    }
    let hard = |round_trip| RATES.map(|rate| Case::sensitivity("hard", rate, round_trip)).into_iter();
    let soft = |round_trip| RATES.map(|rate| Case::sensitivity("semisoft", rate, round_trip)).into_iter();
    for retune in [2.5, 10.0] {
        for round_trip in [3.0, 43.0] {
            cases.extend(hard(round_trip).map(|case| Case { retune, ..case }));
        }
    }
    for excursion in [1.0, 5.0] {
        cases.extend(soft(43.0).map(|case| Case { excursion, ..case }));
    }
    for semisoft_delay in [50.0, 200.0] {
        cases.extend(soft(83.0).map(|case| Case { semisoft_delay, ..case }));
    }
    cases.extend(soft(43.0).map(|case| Case { delay_device: 0, ..case }));
    cases.extend(soft(43.0).map(|case| Case { ahead: 20.0, ..case }));
    cases.iter().map(|case| point(case, scale)).collect()
}

fn point(case: &Case, scale: Scale) -> Point {
    let (n, interval) = match scale {
        Scale::Quick => (10, Duration::from_secs(1)),
        Scale::Default => (15, Duration::from_secs(5)),
        Scale::Full => (50, Duration::from_secs(5)),
    };
    let usual = Case::published(case.handoff, case.rate, case.round_trip);
    let mut label = format!("{} {}/s RTT {}", case.handoff, case.rate, case.round_trip);
    let mut setting = vec![
        ("handoff", case.handoff.into()),
        ("rate_pps", case.rate.into()),
        ("rtt_ms", case.round_trip.into()),
    ];
    for (name, before, value, after, usual) in [
        ("ahead_ms", "new path", case.ahead, " ms ahead", usual.ahead),
        ("delay_device", "delay device", case.delay_device.into(), " packets", usual.delay_device.into()),
        ("retune_ms", "retune", case.retune, " ms", usual.retune),
        ("excursion_ms", "excursion", case.excursion, " ms", usual.excursion),
        ("semisoft_delay_ms", "semisoft delay", case.semisoft_delay, " ms", usual.semisoft_delay),
    ] {
        if value.total_cmp(&usual).is_ne() {
            label = format!("{label}, {before} {value}{after}");
            setting.push((name, value.into()));
        }
    }
    let published = if case.kind == Kind::Main { vec![published(case)] } else { Vec::new() };
    let base = (case.kind == Kind::Main).then(|| format!("{} {}/s RTT 83", case.handoff, case.rate));
    Point {
        // The phases depend on the label. Its unit is left out, so that the unit does not change the phases.
        overrides: overrides(case, &label.replace(" packets", ""), n, interval),
        label,
        setting,
        kind: case.kind,
        backends: if case.kind == Kind::Sensitivity { SIM } else { BOTH },
        scenario: "cellular-ip/udp-loss",
        runs: Vec::new(),
        phases: false,
        n,
        load: (case.rate * 142.0 * 8.0) as u64,
        published,
        formula: vec![(LOST, formula(case))],
        base,
        measure: if case.ahead > 0.0 { handoffs_to_b3 } else { all_handoffs },
        combine: None,
        trace: None,
    }
}

const SLOPE: [&str; 2] = [
    "hard, 25 packets/s: the least-squares slope of lost packets over RTT is the packet rate within 10 %",
    "hard, 50 packets/s: the least-squares slope of lost packets over RTT is the packet rate within 10 %",
];
const RATIO: [&str; 2] = [
    "hard, RTT 43 ms: the loss at 50 packets/s is 1.8 to 2.3 times the loss at 25 packets/s",
    "hard, RTT 83 ms: the loss at 50 packets/s is 1.8 to 2.3 times the loss at 25 packets/s",
];

/// Returns the texts of the must-holds for a published loss of hard handoff: the slope of the line at this rate, and
/// the ratio of both lines at this round trip. No ratio is required at the shortest round trip.
const fn shape(rate: usize, round_trip: usize) -> &'static [&'static str] {
    match (rate, round_trip) {
        (0, 0) => &[SLOPE[0]],
        (0, 1) => &[SLOPE[0], RATIO[0]],
        (0, _) => &[SLOPE[0], RATIO[1]],
        (_, 0) => &[SLOPE[1]],
        (_, 1) => &[SLOPE[1], RATIO[0]],
        (_, _) => &[SLOPE[1], RATIO[1]],
    }
}

fn published(case: &Case) -> Published {
    let place =
        |values: &[f64], wanted: f64| values.iter().position(|value| value.total_cmp(&wanted).is_eq());
    let is_hard = case.handoff == "hard";
    let hard = || {
        let (rate, round_trip) = (place(&RATES, case.rate)?, place(&ROUND_TRIPS, case.round_trip)?);
        Some((*PUBLISHED_HARD.get(rate)?.get(round_trip)?, shape(rate, round_trip)))
    };
    let none: &[&str] = &[];
    let (value, shape) = if is_hard { hard().unwrap_or((f64::NAN, none)) } else { (0.0, none) };
    Published {
        metric: LOST,
        figure: "5",
        value,
        tolerance: value * 0.1,
        tolerance_from: if is_hard {
            "10 %: lost = rate x (RTT + retune), and the slope must be the rate within 10 %"
        } else {
            "none: in the paper, semisoft handoff lost nothing"
        },
        why: if is_hard {
            "the published line at 50/s fits a radio with a retune of 7 to 11 ms, and the line at 25/s a radio with 5 to 6 ms; the scenario has 5 ms"
        } else {
            "a semisoft handoff must not lose packets"
        },
        shape,
    }
}

fn formula(case: &Case) -> f64 {
    let round_trip = case.round_trip - ROUND_TRIPS[0] + BASE_MS;
    let deaf = if case.handoff == "hard" {
        round_trip + case.retune
    } else {
        let away = if case.excursion > 0.0 { case.excursion + AIRTIME_MS } else { 0.0 };
        let spacing = 1e3 / case.rate;
        let gap = case.ahead + case.retune + AIRTIME_MS - f64::from(case.delay_device) * spacing;
        away + gap.max(0.0) + (round_trip - case.semisoft_delay).max(0.0)
    };
    case.rate * deaf / 1e3
}

/// Returns the settings of a point; the scenario has all others.
fn overrides(case: &Case, label: &str, n: usize, interval: Duration) -> Vec<scenario::Setting> {
    // If one path is shorter, only handoffs to it are counted and have phases. The host moves back in the middle
    // between two counted handoffs.
    let back = case.ahead > 0.0;
    let interval = if back { BACK_AND_FORTH } else { interval };
    let spacing = Duration::from_secs_f64(1.0 / case.rate);
    let mut moves = Vec::new();
    let mut at = FIRST;
    for (i, phase) in stratified(label, n, spacing).into_iter().enumerate() {
        let to = if back || i % 2 == 0 { "b3" } else { "b2" };
        moves.push(step(at + phase, to, case.handoff));
        if back {
            moves.push(step(at + interval / 2, "b2", case.handoff));
        }
        at += interval;
    }
    let down = case.round_trip - ROUND_TRIPS[0] + 1.0;
    let delay = |down: f64| Value::from(vec![format!("{down}ms"), "1ms".to_owned()]);
    let set = |path: &str, value: Value| scenario::Setting::new(path, value);
    vec![
        set("mobile.moves", moves.into()),
        set("constant-rate.rate", Value::from(case.rate as i64)),
        set("constant-rate.start", span(START)),
        set("constant-rate.stop", span(at)),
        set("duration", span(at + START)),
        set("wire.left.delay", delay(down + case.ahead)),
        set("wire.right.delay", delay(down)),
        set("radio.retune", format!("{}ms", case.retune).into()),
        set("radio.excursion", format!("{}ms", case.excursion).into()),
        set("station.delay_device", Value::from(i64::from(case.delay_device))),
        set("mobile.semisoft_delay", format!("{}ms", case.semisoft_delay).into()),
    ]
}

fn step(at: Duration, to: &str, kind: &str) -> Value {
    let keys = [("at", span(at)), ("to", to.into()), ("kind", kind.into())];
    Value::Table(keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Table>())
}

fn span(span: Duration) -> Value {
    format!("{}ns", span.as_nanos()).into()
}

// --- measuring -----------------------------------------------------------------------------------------------------

fn all_handoffs(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, |_| true)
}

fn handoffs_to_b3(outcome: &Outcome) -> Result<Samples, String> {
    measure(outcome, |to| to == "b3")
}

fn measure(outcome: &Outcome, counts: fn(&str) -> bool) -> Result<Samples, String> {
    let mut samples = Samples::new();
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    for handoff in outcome.handoffs.iter().filter(|handoff| counts(&handoff.to)) {
        let mut add = |metric, value: Option<f64>| samples.entry(metric).or_default().extend(value);
        add(LOST, Some(handoff.lost() as f64));
        add(DUPLICATES, Some(handoff.duplicates() as f64));
        add(LATENCY, handoff.latency.map(millis));
        add(ROUND_TRIP, handoff.round_trip.map(millis));
    }
    if samples.is_empty() {
        Err("the run has no handoff, so nothing was measured".to_owned())
    } else {
        Ok(samples)
    }
}

// --- what must hold ------------------------------------------------------------------------------------------------

/// Only the path through b3 has the added delay. Then the losses depend on the delay of the old path, but the measured
/// round trip is that of the new path.
const ONE_PATH: &[&str] = &["wire.left.delay=[\"1ms\", \"1ms\"]"];
/// Another packet rate: 1.6 and 0.8 times the rates that the slopes should have.
const OTHER_RATE: &[&str] = &["constant-rate.rate=40"];
/// Cells that lose half of their frames at random, so that many route-update packets have to be repeated.
const LOSSY: &[&str] = &["cell.2.loss=0.5", "cell.3.loss=0.5"];
/// Cells with the capacity for 25 packets/s but not for 50.
const NARROW: &[&str] = &["cell.2.rate=40kb/s", "cell.3.rate=40kb/s"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: SLOPE[0],
        value: "slope / rate",
        backends: BOTH,
        needs: |point| hard(point, RATES[0]),
        check: |results| slope_is_rate(results, RATES[0]),
        breakers: &[ONE_PATH, OTHER_RATE],
    },
    MustHold {
        text: SLOPE[1],
        value: "slope / rate",
        backends: BOTH,
        needs: |point| hard(point, RATES[1]),
        check: |results| slope_is_rate(results, RATES[1]),
        breakers: &[ONE_PATH, OTHER_RATE],
    },
    MustHold {
        text: RATIO[0],
        value: "ratio",
        backends: BOTH,
        needs: |point| is_hard(point) && point.has("rtt_ms", 43.0),
        check: |results| ratio(results, 43.0),
        breakers: &[NARROW],
    },
    MustHold {
        text: RATIO[1],
        value: "ratio",
        backends: BOTH,
        needs: |point| is_hard(point) && point.has("rtt_ms", 83.0),
        check: |results| ratio(results, 83.0),
        breakers: &[NARROW],
    },
    MustHold {
        text: "hard: the handoff latency is the nominal RTT(host, crossover) + 5 ms retune, within 10 % (on Linux: within 10 % or 2 ms)",
        value: "|latency / (nominal RTT + retune) - 1|, largest value",
        backends: BOTH,
        needs: is_hard,
        check: latency_is_round_trip,
        breakers: &[&["radio.retune=20ms"], LOSSY],
    },
    MustHold {
        text: "semisoft: exactly 0 packets lost in every run",
        value: "number of packets lost in all runs",
        backends: BOTH,
        needs: |point| point.kind == Kind::Main && point.has("handoff", "semisoft"),
        check: semisoft_loses_nothing,
        breakers: &[&["station.semisoft=false"], &["mobile.semisoft_delay=0ms"]],
    },
    MustHold {
        text: "control: semisoft without a delay device loses packets if the new path is 20 ms shorter, at both packet rates",
        value: "packets lost per handoff, smallest value",
        backends: BOTH,
        needs: |point| point.kind == Kind::Control,
        check: control_loses,
        breakers: &[&["station.delay_device=8"]],
    },
];

fn is_hard(point: &Point) -> bool {
    point.kind == Kind::Main && point.has("handoff", "hard")
}

fn hard(point: &Point, rate: f64) -> bool {
    is_hard(point) && point.has("rate_pps", rate)
}

/// Fits the slope over all handoffs, not over the means of the points, because each loss belongs to the round trip of
/// its own handoff.
fn slope_is_rate(results: &Results, rate: f64) -> Check {
    let rows = results.rows(|point| hard(point, rate));
    let handoffs = rows.flat_map(|(_, measured)| {
        let all = |metric| measured.samples.get(metric).into_iter().flatten().copied();
        all(ROUND_TRIP).map(|millis| millis / 1e3).zip(all(LOST))
    });
    Check::within(slope(&handoffs.collect::<Vec<_>>()).map(|slope| slope / rate), 0.9..=1.1)
}

fn ratio(results: &Results, nominal: f64) -> Check {
    let lost = |rate| {
        let mut rows = results.rows(|point| hard(point, rate) && point.has("rtt_ms", nominal));
        rows.next()?.1.mean(LOST)
    };
    let ratio = lost(RATES[1]).zip(lost(RATES[0])).filter(|(_, slow)| *slow > 0.0);
    Check::within(ratio.map(|(fast, slow)| fast / slow), 1.8..=2.3)
}

fn latency_is_round_trip(results: &Results) -> Check {
    let slack = if results.backend == Backend::Linux { 2.0 } else { 0.0 };
    let mut check = Check { value: None, holds: true };
    for (point, measured) in results.rows(is_hard) {
        let Some((latency, nominal)) = measured.mean(LATENCY).zip(point.number("rtt_ms")) else {
            return Check { value: None, holds: false };
        };
        // The expected value is computed from the scenario's links. A measured round trip would depend on the same
        // two instants as the latency.
        let expected = nominal - ROUND_TRIPS[0] + BASE_MS + RETUNE_MS;
        let off = (latency - expected).abs();
        check.holds &= off <= f64::max(expected * 0.1, slack);
        check.value = Some(f64::max(check.value.unwrap_or_default(), off / expected));
    }
    Check { holds: check.holds && check.value.is_some(), ..check }
}

fn semisoft_loses_nothing(results: &Results) -> Check {
    let rows = results.rows(|point| point.kind == Kind::Main && point.has("handoff", "semisoft"));
    let lost: Vec<f64> =
        rows.filter_map(|(_, measured)| measured.samples.get(LOST)).flatten().copied().collect();
    Check::within(mean(&lost).map(|mean| mean * lost.len() as f64), 0.0..=0.0)
}

fn control_loses(results: &Results) -> Check {
    let rows = results.rows(|point| point.kind == Kind::Control);
    let least = rows.filter_map(|(_, measured)| measured.mean(LOST)).min_by(f64::total_cmp);
    Check { value: least, holds: least.is_some_and(|least| least > 0.0) }
}

fn round_trip(measured: &Measured) -> Option<f64> {
    measured.mean(ROUND_TRIP)
}

// --- the figure ----------------------------------------------------------------------------------------------------

fn figures(report: &Report) -> Vec<Drawn> {
    let mut series = Vec::new();
    for handoff in ["hard", "semisoft"] {
        for rate in RATES {
            let name = format!("{handoff}, {rate} packet/s");
            let wanted = |point: &Point| {
                point.kind == Kind::Main && point.has("handoff", handoff) && point.has("rate_pps", rate)
            };
            let published = report.points.iter().filter(|point| wanted(point));
            let published =
                published.filter_map(|p| Some(draw_at(p.number("rtt_ms")?, p.published(LOST)?.value, None)));
            series.push(line(&name, Style::Published, published));
            for results in &report.backends {
                let rows = results.rows(wanted).filter(|(_, measured)| measured.is_valid());
                let values = rows.filter_map(|(_, measured)| {
                    let lost = measured.estimate(EXPERIMENT.metrics.first()?)?;
                    Some(draw_at(round_trip(measured)?, lost.value, lost.interval))
                });
                series.push(line(&name, style(results.backend), values));
            }
        }
    }
    let n = report.points.first().map_or(0, |point| point.n);
    vec![Drawn::Points(PointFigure {
        title: "Cellular IP: packets lost in a handoff (figure 5)".to_owned(),
        x: Axis::new("round trip between host and crossover", "ms"),
        y: Axis::new("packets lost per handoff", ""),
        series,
        caption: format!(
            "Published values: {}, at nominal round trips. Measured values: means of n = {n} handoffs with 95 % intervals, scale {}, \
             at measured round trips.",
            report.experiment.source,
            report.scale.name()
        ),
    })]
}

#[cfg(test)]
mod tests;
