//! `mobile-ip/satellite-smooth`: how long a download is silent after a registration, although the old agent forwards packets.
//!
//! The packets are lost before the mobile node notices its move. So the download continues only with the next time-out of
//! the correspondent.

use super::satellite::run::{Run, between_ms};
use super::satellite::{
    ACROSS, COMES_HOME, Case, LEAVES_HOME, MOVE, PAPER, SAME_SIDE, SATELLITE_MS, VARIATION, drawing, within,
};
use crate::reproduce::figure::{Drawn, samples};
use crate::reproduce::{
    BOTH, Check, Experiment, Kind, Metric, MustHold, Point, Published, Report, SIM, Samples, Scale,
};
use draw::{Axis, DistributionFigure, DistributionPanel};
use recorder::run::Outcome;

const STALL: &str = "stall_after_finish_reg_s";
const HALT: &str = "halt_s";
const OFF: &str = "off_ms";
const EARLY: &str = "lost_before_start_reg_percent";
const LOST: &str = "lost_packets";

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/satellite-smooth",
    about: "how long a download is silent after a registration with a smooth handoff, in which the old agent forwards packets",
    paper: PAPER,
    source: "Johnson, Bennington: Mobile Internet Protocol Performance and Enhancements over ACTS, section 4.2 and figure 4; one run",
    notes: &[
        "Scenario: as mobile-ip/satellite-registration, with a smallest time-out of 1 s, which Linux and the simulator add to the round\n  \
         trip. Each run has a separate phase of the move against the advertisements.",
        "stall_after_finish_reg: from Finish Reg to the first data; 0 if data came before. halt: from the last data by the old\n  \
         network to the first ones by the new network. lost_before_start_reg: the share of the lost packets that the\n  \
         correspondent sent before Start Reg.",
        "off: by how much the first data came later than the next retransmission of the correspondent and the delay of the satellite\n  \
         link, once for each of its crossings.",
        "Same side: the correspondent's second time-out, about 3 s after the move, comes near Finish Reg, and the old agent forwards it.\n  \
         So the stall after Finish Reg is a fraction of a second, and zero in the runs in which the time-out comes first.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::median(STALL, 3),
        Metric::median(HALT, 3).beside(),
        Metric::mean(LOST, 1).beside(),
        Metric::mean(EARLY, 1).beside(),
        Metric::median(OFF, 2).beside(),
    ],
    points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures,
};

const PUBLISHED: Published = Published {
    metric: STALL,
    figure: "4",
    value: 2.0,
    tolerance: 0.0,
    tolerance_from: "the paper prints a lower bound, 2 s or more: a shorter stall does not reproduce it",
    why: "the stall ends with a time-out of the correspondent, and the paper does not give its TCP; with rto_min 1 s, ours is about 2 s",
    shape: &[NEXT, LONG],
};

fn points(scale: Scale) -> Vec<Point> {
    let (n, few) = match scale {
        Scale::Quick => (6, 3),
        Scale::Default => (20, 8),
        Scale::Full => (100, 20),
    };
    let of = |way, n| Case::whole(way, n, stall);
    let across = Case { trace: Some(drawing::trace), ..of(ACROSS, n) };
    let across = across.point(ACROSS.name, Kind::Main, BOTH, &[]);
    let mut points = vec![
        Point { published: vec![PUBLISHED], ..across },
        of(SAME_SIDE, n).point(SAME_SIDE.name, Kind::Main, BOTH, &[]),
    ];
    for way in [LEAVES_HOME, COMES_HOME] {
        points.push(of(way, few).point(way.name, Kind::Control, SIM, &[]));
    }
    points.push(of(ACROSS, few).varied(
        ACROSS.name,
        "no smooth handoff",
        &["mobile-ip.smooth_handoff=false"],
    ));
    for (name, set) in [
        ("smallest time-out 500 ms", "host.correspondent.tcp.rto_min=500ms"),
        ("smallest time-out 2 s", "host.correspondent.tcp.rto_min=2s"),
        ("window 16 KiB", "host.mobile.tcp.receive_buffer=16384"),
        ("window 64 KiB", "host.mobile.tcp.receive_buffer=65535"),
        ("4.4BSD", "host.correspondent.tcp={ profile = \"bsd44\" }"),
    ] {
        points.push(of(ACROSS, few).varied(ACROSS.name, name, &[set]));
    }
    points
}

// --- what a run shows ----------------------------------------------------------------------------------------------

fn stall(outcome: &Outcome) -> Result<Samples, String> {
    let run = Run::of(outcome)?;
    let off = match run.halt() {
        Some((_, first, packet)) => {
            let sent = run
                .segment(packet)
                .ok_or("the first data after the move were not sent by the correspondent")?;
            let later = run.sent.iter().find(|sent| sent.at >= run.finished);
            // Data that arrive after Finish Reg can have been sent before it.
            let next = later.filter(|later| later.at < sent.at).unwrap_or(sent);
            let crossings = f64::from(run.crossings().get(&packet).copied().unwrap_or_default());
            let off = between_ms(next.at, first) - crossings * SATELLITE_MS;
            if sent.is_resent { off } else { f64::INFINITY }
        }
        None => f64::INFINITY,
    };
    let lost = run.lost();
    let early = lost.iter().filter(|at| **at < run.started).count();
    let early = if lost.is_empty() { 0.0 } else { early as f64 / lost.len() as f64 * 100.0 };
    Ok(Samples::from([
        (STALL, vec![run.stall_s()]),
        (HALT, vec![run.halt_s()]),
        (OFF, vec![off]),
        (LOST, vec![lost.len() as f64]),
        (EARLY, vec![early]),
    ]))
}

// --- what must hold ------------------------------------------------------------------------------------------------

const NEXT: &str = "in every run, the first data come with the next retransmission of the correspondent, within 50 ms (Linux: 100 ms) \
     of its delay";
const LONG: &str = "across: in at least one run, the stall after Finish Reg is 1 s or longer";

/// The old agent keeps the last packet: the download continues without a time-out.
const KEPT: &[&str] = &["mobile-ip.buffer={ packets = 1 }"];
const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: NEXT,
        value: "the latest arrival after the delay of the satellite link, ms",
        backends: BOTH,
        needs: is_main,
        check: |results| {
            let most = if results.backend == recorder::run::Backend::Sim { 50.0 } else { 100.0 };
            within(results.values(is_main, OFF), 0.0..=most)
        },
        breakers: &[KEPT],
    },
    MustHold {
        text: LONG,
        value: "the longest stall, s",
        backends: BOTH,
        needs: is_across,
        check: |results| Check::within(results.values(is_across, STALL).max_by(f64::total_cmp), 1.0..1e9),
        breakers: &[KEPT],
    },
];

const OBSERVED: &[MustHold] = &[MustHold {
    text: "across: in every run, most lost packets were sent before the mobile node noticed its move",
    value: "the smallest share, percent",
    backends: BOTH,
    needs: is_across,
    check: |results| Check::within(results.values(is_across, EARLY).min_by(f64::total_cmp), 50.0..),
    breakers: &[],
}];

fn is_main(point: &Point) -> bool {
    point.kind == Kind::Main
}

fn is_across(point: &Point) -> bool {
    is_main(point) && point.has(MOVE, ACROSS.name)
}

// --- the figures ---------------------------------------------------------------------------------------------------

fn figures(report: &Report) -> Vec<Drawn> {
    let panel = |title: &str, axis: &str, metric: &'static str| {
        let shown =
            report.points.iter().filter(|point| !point.setting.iter().any(|(name, _)| *name == VARIATION));
        DistributionPanel {
            title: title.to_owned(),
            axis: Axis::new(axis, "s"),
            samples: shown.flat_map(|point| samples(report, point, &point.label, metric)).collect(),
        }
    };
    let stalls = DistributionFigure {
        title: "Mobile IP: stalls of a download in moves with smooth handoff over a satellite".to_owned(),
        panels: vec![
            panel("after the registration", "time from Finish Reg to the first data", STALL),
            panel("in all", "time without data", HALT),
        ],
        caption: format!(
            "Published (figure 4, one run): 2 s or more after Finish Reg. Measured: each run at a separate phase, scale {}.",
            report.scale.name()
        ),
    };
    let mut figures = drawing::packets(report, ACROSS.name, "in a move with smooth handoff (figure 4)");
    figures.push(Drawn::Distribution(stalls));
    figures
}
