//! `mobile-ip/satellite-single-buffer`: a smooth handoff in which the old agent keeps the last packet of each visitor.
//!
//! The kept packet reaches the mobile node in its new network. Its acknowledgment ends the wait of the correspondent for its
//! next time-out. Each run is compared with a run of the same phase without the buffer.

use super::satellite::run::{Run, between_ms};
use super::satellite::{
    ACROSS, BESIDE_MS, Case, MOVE, PAPER, SAME_SIDE, SATELLITE_MS, SatelliteWay, drawing, within,
};
use crate::reproduce::figure::{Drawn, samples};
use crate::reproduce::{
    BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Report, Results, Samples, Scale,
};
use crate::stats::mean_interval;
use draw::{Axis, DistributionFigure, DistributionPanel};
use recorder::run::Outcome;
use wire::Duration;

const STARTS: &str = "resumes_after_start_reg_ms";
const KEPT: &str = "kept_packets";
const KEPT_ARRIVES: &str = "kept_packet_after_start_reg_ms";
const NEW_DATA: &str = "new_data_after_update_ms";
const HALT: &str = "halt_s";
const STALL: &str = "stall_after_finish_reg_s";
const SHORTER: &str = "halt_shorter_s";

/// The name of the parameter, and its values.
const BUFFER: &str = "buffer";
const NONE: &str = "none";
const ONE: &str = "one packet";
const DIFFERENCE: &str = "difference";

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/satellite-single-buffer",
    about: "a smooth handoff over a satellite in which the old agent keeps one packet, which makes the download continue",
    paper: PAPER,
    source: "Johnson, Bennington: Mobile Internet Protocol Performance and Enhancements over ACTS, section 5 and figure 5; one run",
    notes: &[
        "Scenario: as mobile-ip/satellite-smooth. Points without a buffer are the same runs as there: with the same phases. Only the\n  \
         foreign agents have another key: `buffer`. Mobile node, correspondent and TCP are unchanged.",
        "resumes_after_start_reg: from Start Reg to the first data by the new network. kept_packet_after_start_reg: to the arrival of the kept\n  \
         packet. new_data_after_update: from the instant at which the old agent accepts the Binding Update to the first other data. halt and\n  \
         stall_after_finish_reg: as in mobile-ip/satellite-smooth.",
        "halt_shorter: by how much a halt is shorter than in the run of the same phase without a buffer.",
        "The paper prints no number: \"almost immediately after the mobile node starts the registration process\". Across, this is a round\n  \
         trip of the satellite: request and Binding Update leave together, and the kept packet returns as the reply does.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::median(STARTS, 1),
        Metric::mean(SHORTER, 3),
        Metric::mean(KEPT, 2).beside(),
        Metric::median(KEPT_ARRIVES, 1).beside(),
        Metric::median(NEW_DATA, 1).beside(),
        Metric::median(HALT, 3).beside(),
        Metric::median(STALL, 3).beside(),
    ],
    points,
    must_hold: MUST_HOLD,
    observed: &[],
    figures,
};

fn points(scale: Scale) -> Vec<Point> {
    // An interval of a mean needs six values.
    let counts = match scale {
        Scale::Quick => [6, 4],
        Scale::Default => [20, 20],
        Scale::Full => [60, 60],
    };
    let mut points = Vec::new();
    for (way, n) in [ACROSS, SAME_SIDE].into_iter().zip(counts) {
        for (buffer, set) in [(ONE, &["mobile-ip.buffer={ packets = 1 }"][..]), (NONE, &[])] {
            let case = Case {
                trace: (buffer == ONE).then_some(drawing::trace as _),
                ..Case::whole(way, n, evaluated)
            };
            let kind = if buffer == ONE { Kind::Main } else { Kind::Control };
            let case = if buffer == ONE { Case { measure: with_kept, ..case } } else { case };
            // On the same side, the second time-out of the correspondent ends each halt.
            let is_short = buffer == ONE || way == SAME_SIDE;
            let watched = if is_short { Duration::from_secs(5) } else { case.watched };
            let case = Case { watched, ..case };
            let mut point = case.point(&label(way, buffer), kind, BOTH, set);
            point.setting.push((BUFFER, buffer.into()));
            points.push(point);
        }
        points.push(difference(way, n));
    }
    points
}

fn label(way: SatelliteWay, buffer: &str) -> String {
    format!("{}, {buffer}", way.name)
}

/// Returns a point with the differences of the halts of a move.
fn difference(way: SatelliteWay, n: usize) -> Point {
    let mut point = Case::whole(way, n, evaluated).point(&label(way, DIFFERENCE), Kind::Control, BOTH, &[]);
    point.setting.push((BUFFER, DIFFERENCE.into()));
    point.runs.clear();
    point.combine = Some(|point, all| {
        let halts = |buffer| {
            let same = |other: &&(&Point, &Samples)| {
                other.0.has(BUFFER, buffer) && SatelliteWay::of(other.0) == SatelliteWay::of(point)
            };
            all.iter().find(same).and_then(|(_, samples)| samples.get(HALT)).ok_or("the halts are missing")
        };
        let pairs = halts(NONE)?.iter().zip(halts(ONE)?);
        Ok(Samples::from([(SHORTER, pairs.map(|(without, with)| without - with).collect())]))
    });
    point
}

// --- what a run shows ----------------------------------------------------------------------------------------------

fn evaluated(outcome: &Outcome) -> Result<Samples, String> {
    Ok(values(&Run::of(outcome)?))
}

fn values(run: &Run<'_>) -> Samples {
    let starts = run.halt().map_or(f64::INFINITY, |(_, first, _)| between_ms(run.started, first));
    Samples::from([(STARTS, vec![starts]), (HALT, vec![run.halt_s()]), (STALL, vec![run.stall_s()])])
}

fn with_kept(outcome: &Outcome) -> Result<Samples, String> {
    let run = Run::of(outcome)?;
    let mut samples = values(&run);
    let [kept, other] = run.resumed();
    let departed = run.departed.unwrap_or(run.started);
    samples.insert(KEPT, vec![run.kept.map_or(0.0, |(_, packets)| packets as f64)]);
    samples.insert(KEPT_ARRIVES, vec![kept.map_or(f64::INFINITY, |at| between_ms(run.started, at))]);
    samples.insert(NEW_DATA, vec![other.map_or(f64::INFINITY, |at| between_ms(departed, at))]);
    Ok(samples)
}

// --- what must hold ------------------------------------------------------------------------------------------------

const ARRIVES: &str = "across: the kept packet arrives 512 to 612 ms after Start Reg in every run";
const NEW: &str = "across: the first other data arrive at most 868 ms after the Binding Update at the old agent in every run";

/// The agents keep packets only while their own link is down, and nothing takes it down.
const KEEPS_NOTHING: &[&str] = &["mobile-ip.buffer={ when = \"link-down\" }"];
/// The agents keep four packets.
const KEEPS_FOUR: &[&str] = &["mobile-ip.buffer={ packets = 4 }"];
/// The delay of the satellite link is twice as long.
const FAR: &[&str] = &["wire.geo.delay=512ms"];
/// The path to the old agent in B is long.
const LONG_B: &[&str] = &["wire.to-b1.delay=100ms"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "the old agent keeps and sends exactly one packet in every run",
        value: "runs with another number",
        backends: BOTH,
        needs: has_one,
        check: |results| {
            Check::each(results.values(has_one, KEPT).map(|packets| (packets - 1.0).abs() < 0.5))
        },
        breakers: &[KEEPS_FOUR, KEEPS_NOTHING],
    },
    MustHold {
        text: ARRIVES,
        value: "the time that is farthest from 562 ms",
        backends: BOTH,
        needs: is_across,
        check: |results| {
            within(
                results.values(is_across, KEPT_ARRIVES),
                2.0 * SATELLITE_MS..=2.0 * SATELLITE_MS + BESIDE_MS,
            )
        },
        breakers: &[FAR],
    },
    MustHold {
        text: NEW,
        value: "the longest time, ms",
        backends: BOTH,
        needs: is_across,
        check: |results| {
            let longest = results.values(is_across, NEW_DATA).max_by(f64::total_cmp);
            Check::within(longest, 0.0..=3.0 * SATELLITE_MS + BESIDE_MS)
        },
        breakers: &[KEEPS_NOTHING],
    },
    MustHold {
        text: "same side: the kept packet and the first other data arrive at most 100 ms after Start Reg and the Binding Update in every run",
        value: "the longest time, ms",
        backends: BOTH,
        needs: is_near,
        check: |results| {
            let both = results.values(is_near, KEPT_ARRIVES).chain(results.values(is_near, NEW_DATA));
            Check::within(both.max_by(f64::total_cmp), 0.0..=BESIDE_MS)
        },
        breakers: &[LONG_B],
    },
    MustHold {
        text: "same side: the halt is shorter than without the buffer in at least 90 % of the pairs of runs",
        value: "share of the pairs",
        backends: BOTH,
        needs: |point| point.has(MOVE, SAME_SIDE.name),
        check: |results| {
            let pairs = differences(results, SAME_SIDE);
            let shorter = pairs.iter().filter(|shorter| **shorter > 0.0).count();
            let share = (!pairs.is_empty()).then(|| shorter as f64 / pairs.len() as f64);
            Check::within(share, 0.9..)
        },
        breakers: &[KEEPS_NOTHING],
    },
    MustHold {
        text: "across: the 95 % interval of the mean difference of the halts is above 0",
        value: "the lower end, s",
        backends: BOTH,
        needs: |point| point.has(MOVE, ACROSS.name),
        check: |results| {
            let pairs = differences(results, ACROSS);
            let low = mean_interval(&pairs).map(|interval| interval.lo).or_else(|| {
                let equal =
                    pairs.first().filter(|first| pairs.iter().all(|pair| pair.total_cmp(first).is_eq()));
                equal.copied()
            });
            Check { value: low, holds: low.is_some_and(|low| low > 0.0) }
        },
        breakers: &[KEEPS_NOTHING],
    },
];

fn has_one(point: &Point) -> bool {
    point.has(BUFFER, ONE)
}

fn is_across(point: &Point) -> bool {
    has_one(point) && point.has(MOVE, ACROSS.name)
}

fn is_near(point: &Point) -> bool {
    has_one(point) && point.has(MOVE, SAME_SIDE.name)
}

/// Returns by how much each halt of a move is shorter than that of the run with the same phase without a buffer, in s.
fn differences(results: &Results, way: SatelliteWay) -> Vec<f64> {
    let of_move = |point: &Point| point.has(BUFFER, DIFFERENCE) && point.has(MOVE, way.name);
    results.values(of_move, SHORTER).collect()
}

// --- the figures ---------------------------------------------------------------------------------------------------

fn figures(report: &Report) -> Vec<Drawn> {
    let panel = |title: &str, metric: &'static str| DistributionPanel {
        title: title.to_owned(),
        axis: Axis::new(title, "s"),
        samples: report
            .points
            .iter()
            .flat_map(|point| samples(report, point, &point.label, metric))
            .collect(),
    };
    let halts = DistributionFigure {
        title: "Mobile IP: halts of a download in moves over a satellite, with and without one kept packet"
            .to_owned(),
        panels: vec![
            panel("time without data", HALT),
            panel("difference of two runs with the same phase: halt without - with", SHORTER),
        ],
        caption: format!(
            "Each run at a separate phase of the move against the advertisements, scale {}.",
            report.scale.name()
        ),
    };
    let mut figures =
        drawing::packets(report, &label(ACROSS, ONE), "in a move with one kept packet (figure 5)");
    figures.extend(drawing::packets(
        report,
        &label(SAME_SIDE, ONE),
        "in a move on the same side with one kept packet",
    ));
    figures.push(Drawn::Distribution(halts));
    figures
}
