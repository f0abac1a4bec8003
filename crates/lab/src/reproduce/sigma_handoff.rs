//! `sigma/handoff`: how long no data come while a mobile node's association changes its address, beside Mobile IP on the
//! same moves.
//!
//! The new address is known and verified while the old one still carries data, so the gap is what lies between any two
//! packets, and what the new way is longer. Mobile IP's mobile node first has to hear that it is elsewhere.

use super::figure::{draw_at, line};
use super::phases::stratified;
use super::{
    Check, Experiment, Kind, Metric, MustHold, Point, Published, Report, Results, Samples, Scale, Statistic,
};
use crate::run::{OnWorld, Outcome};
use crate::{scenario, segment};
use draw::{Axis, PointFigure, Style};
use node::Mark;
use trace::{Record, What};
use wire::{Duration, Iface, Instant, Ipv4Addr, ipv4};

const GAP: &str = "gap_ms";
const BEFORE: &str = "goodput_before_mbps";
const AFTER: &str = "goodput_after_mbps";
const EMPTY: &str = "empty_bins";
const AMISS: &str = "bytes_amiss";

const WORLDS: &[OnWorld] = &[OnWorld::Sim, OnWorld::Linux];
const SIGMA: &str = "SIGMA";
const MOBILE_IP: &str = "Mobile IP";

const MOBILE: &str = "mobile";
/// Table I: the mobile node's addresses.
const OLD: Ipv4Addr = Ipv4Addr::new(10, 1, 8, 100);
const NEW: Ipv4Addr = Ipv4Addr::new(10, 1, 6, 100);
/// What is downloaded, in bytes, as the scenarios have it.
const BYTES: f64 = 2_000_000.0;
/// Goodput is looked at in bins of this width.
const BIN: Duration = Duration::from_millis(100);
/// Goodput before and after is that of so long.
const WINDOW: Duration = Duration::from_secs(1);
/// When SIGMA's scenario moves, and Mobile IP's is told to.
const MOVE: Duration = Duration::from_millis(5500);
/// When the download begins.
const START: Duration = Duration::from_secs(1);
/// From advertisement to advertisement.
const ADVERTISED: Duration = Duration::from_secs(1);

/// A packet of 1500 bytes and its link header on the air: 2.6 Mb/s.
const PACKET_MS: f64 = 1514.0 * 8.0 / 2600.0;
/// Two wires of 0.5 ms, there and back.
const LINK_RTT_MS: f64 = 2.0;
const MOST_MS: f64 = 2.0 * PACKET_MS + LINK_RTT_MS;

/// The experiment.
pub(crate) const SIGMA_HANDOFF: Experiment = Experiment {
    id: "sigma/handoff",
    about: "the gap in a download while its association changes its address, beside Mobile IP",
    paper: "Sivagurunathan et al. 2004",
    source: "Sivagurunathan et al. 2004 (TR-OU-TNRL-04-105), figures 4 to 7; one run of each protocol",
    notes: &[
        "2 MB from the correspondent, cells of 2.6 Mb/s, wires of 0.5 ms, window 16 KiB, RTO floor 200 ms (ours). Gap: from",
        "the last data packet that the mobile node got before (any: what is on the old way still comes), to the first by the",
        "new way. SIGMA has two radios and moves",
        "by signal (hold 250 ms, ours); Mobile IP has one, which takes 5 ms, and moves at the same instant. Each run is one",
        "move; the n-th of two packets' time (SIGMA) or of the second between advertisements (Mobile IP) is its phase.",
        "Mobile IP: lifetime 10 s, advertisements 1/s, no link trigger. Ours asks the first agent that it hears; the",
        "paper's waited for the end of its registration, hence 8 s. Goodput: the second before the move, and the one after",
        "the first data by the new way. SIGMA's gap is the time between two packets: 4.7 ms at the cells' rate, not a time of",
        "its signalling. The lifetime of 10 s has no influence here: it does not end before an agent is heard. bytes_amiss: lost, duplicated or out of order, as the application saw it.",
    ],
    worlds: WORLDS,
    metrics: &[
        Metric { name: GAP, digits: 2, statistic: Statistic::Mean, official: true },
        Metric { name: BEFORE, digits: 3, statistic: Statistic::Mean, official: true },
        Metric { name: AFTER, digits: 3, statistic: Statistic::Mean, official: true },
        Metric { name: EMPTY, digits: 2, statistic: Statistic::Mean, official: false },
        Metric { name: AMISS, digits: 0, statistic: Statistic::Mean, official: false },
    ],
    points,
    must_hold: MUST_HOLD,
    figures,
};

// --- what is published ---------------------------------------------------------------------------------------------

const PRINTED: &str = "half of the last digit that the paper prints";

const SIGMA_GAP: Published = Published {
    metric: GAP,
    figure: "7",
    value: 6.0,
    tolerance: 0.5,
    tolerance_from: PRINTED,
    why: "one run of the paper; the gap is the time between two packets, which cell, window and cross traffic decide, not the protocol",
};

const MOBILE_IP_PUBLISHED: [Published; 3] = [
    Published {
        metric: GAP,
        figure: "4, 5",
        value: 8000.0,
        tolerance: 500.0,
        tolerance_from: PRINTED,
        why: "the paper's node waits for the end of its registration; ours asks the first agent that it hears",
    },
    Published {
        metric: BEFORE,
        figure: "4",
        value: 2.436,
        tolerance: 0.0005,
        tolerance_from: PRINTED,
        why: "the cells' rate is set by us to come near it; the paper has one run over 802.11b",
    },
    Published {
        metric: AFTER,
        figure: "4",
        value: 2.390,
        tolerance: 0.0005,
        tolerance_from: PRINTED,
        why: "both cells have the same rate here; the paper has one run over 802.11b",
    },
];

// --- points --------------------------------------------------------------------------------------------------------

fn points(scale: Scale) -> Vec<Point> {
    let n = match scale {
        Scale::Quick => 5,
        Scale::Default => 10,
        Scale::Full => 20,
    };
    let span = |span: Duration| format!("{}ns", span.as_nanos());
    // An acknowledgment comes for every second packet.
    let packets = Duration::from_secs_f64(2.0 * PACKET_MS / 1e3);
    let starts = stratified(SIGMA, n, packets).into_iter();
    let moves = stratified(MOBILE_IP, n, ADVERTISED).into_iter();
    let sigma = starts.map(|phase| ("bulk-client.start", span(START + phase))).collect();
    let mobile_ip = moves.map(|phase| ("roam.moves.at", span(MOVE + phase))).collect();
    vec![
        point(SIGMA, "sigma/handoff", sigma, vec![SIGMA_GAP]),
        point(MOBILE_IP, "sigma/mobile-ip", mobile_ip, MOBILE_IP_PUBLISHED.to_vec()),
    ]
}

fn point(
    protocol: &'static str,
    scenario: &'static str,
    runs: Vec<(&str, String)>,
    published: Vec<Published>,
) -> Point {
    Point {
        label: protocol.to_owned(),
        setting: vec![("protocol", protocol.into())],
        kind: Kind::Main,
        worlds: WORLDS,
        scenario,
        overrides: Vec::new(),
        n: runs.len(),
        runs: runs.into_iter().map(|(path, value)| vec![scenario::Setting::new(path, value)]).collect(),
        load: 2_600_000,
        published,
        formula: Vec::new(),
        base: None,
        measure: if protocol == SIGMA { measure_sigma } else { measure_mobile_ip },
    }
}

// --- measuring -----------------------------------------------------------------------------------------------------

fn measure_sigma(outcome: &Outcome) -> Result<Samples, String> {
    let data: Vec<(Instant, Ipv4Addr)> = arrivals(outcome)
        .filter_map(|(at, packet)| {
            let (_, to) = ipv4::addresses(&packet.bytes).filter(|_| segment::is_sctp_data(packet))?;
            Some((at, to))
        })
        .collect();
    let new = data.iter().find(|(_, to)| *to == NEW).map(|(at, _)| *at);
    let old = data.iter().filter(|(at, to)| *to == OLD && new.is_none_or(|new| *at < new));
    samples(outcome, old.map(|(at, _)| *at).next_back(), new)
}

fn measure_mobile_ip(outcome: &Outcome) -> Result<Samples, String> {
    let moved = outcome.handoffs.first().ok_or("no handoff at all")?.begun;
    let data = || arrivals(outcome).filter(|(_, packet)| segment::carries_data(packet)).map(|(at, _)| at);
    samples(outcome, data().filter(|at| *at <= moved).last(), data().find(|at| *at > moved))
}

/// What comes to the mobile node over the air.
fn arrivals(outcome: &Outcome) -> impl Iterator<Item = (Instant, &wire::Packet)> {
    here(outcome).filter_map(|record| match &record.what {
        What::Received(iface, packet) if *iface != Iface::HOST => Some((record.at, packet)),
        _ => None,
    })
}

fn here(outcome: &Outcome) -> impl Iterator<Item = &Record> {
    outcome.records.iter().filter(|record| outcome.host(record.host) == MOBILE)
}

/// `old` is when the last packet came by the old way, `new` when the first came by the new one.
fn samples(outcome: &Outcome, old: Option<Instant>, new: Option<Instant>) -> Result<Samples, String> {
    let reads: Vec<(Instant, u64)> =
        here(outcome).filter_map(|record| Some((record.at, record.what.read()?))).collect();
    let (Some((first, _)), Some((last, _))) = (reads.first(), reads.last()) else {
        return Err("the application had nothing at all".to_owned());
    };
    let goodput = |from: Instant| {
        let within = reads.iter().filter(|(at, _)| *at >= from && at.since(from) < WINDOW);
        within.map(|(_, bytes)| *bytes).sum::<u64>() as f64 * 8.0 / WINDOW.as_secs_f64() / 1e6
    };
    // The last bin is not whole.
    let whole = (last.since(*first).as_nanos() / BIN.as_nanos()) as usize;
    let mut bins = vec![0; whole];
    for (at, bytes) in &reads {
        let bin = (at.since(*first).as_nanos() / BIN.as_nanos()) as usize;
        bins.get_mut(bin).into_iter().for_each(|bin| *bin += bytes);
    }
    let mut samples = Samples::new();
    samples.insert(EMPTY, vec![bins.iter().filter(|bytes| **bytes == 0).count() as f64]);
    samples.insert(AMISS, vec![amiss(outcome)]);
    if let (Some(old), Some(new)) = (old, new) {
        samples.insert(GAP, vec![new.since(old).as_secs_f64() * 1e3]);
        samples.insert(BEFORE, vec![goodput(old - WINDOW)]);
        samples.insert(AFTER, vec![goodput(new)]);
    }
    Ok(samples)
}

/// Bytes that the application did not have at the end, or had behind the first that was not the right one.
fn amiss(outcome: &Outcome) -> f64 {
    let field = |mark: &Mark, name: &str| {
        mark.fields.iter().find(|(key, _)| *key == name).and_then(|(_, value)| value.as_int())
    };
    let ended = here(outcome).find_map(|record| match &record.what {
        What::Marked(mark) if mark.name == "done" || mark.name == "failed" => Some(mark),
        _ => None,
    });
    let right = ended.and_then(|mark| field(mark, "wrong_at").or_else(|| field(mark, "bytes")));
    (BYTES - right.unwrap_or_default() as f64).abs()
}

// --- what must hold ------------------------------------------------------------------------------------------------

/// One radio loses its cell later than two change theirs: the download has to last so long.
const DOWNLOAD: &str = "bulk-server.bytes=2200000";
/// Both addresses are one radio's: nothing can be prepared, and the association breaks before it is made.
const ONE_RADIO: &[&str] = &["host.mobile.radios=1", DOWNLOAD];
/// The same, and for so long that a whole bin falls into it.
const ONE_SLOW_RADIO: &[&str] = &["host.mobile.radios=1", "radio.retune=300ms", DOWNLOAD];
/// It never has an address in the second network, and the first cell is out of range before the download ends.
const ONE_ADDRESS: &[&str] = &[
    "mobile-node.addresses=[\"10.1.8.100\"]",
    "host.mobile.course.1=[[\"0s\", -50], [\"3s\", -50], [\"7s\", -96]]",
];

/// The cell that it moves to is faster, and so are the wires; there is more to fetch.
const FAST_CELL: &[&str] = &["cell.2.rate=5Mb/s", "bulk-server.bytes=4000000"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "SIGMA: gap <= 2 packet times + link RTT (11.3 ms) in every run",
        value: "the longest gap, ms",
        worlds: WORLDS,
        metrics: &[GAP],
        needs: is_sigma,
        check: |results| Check::within(worst(results, SIGMA, GAP), ..=MOST_MS),
        breakers: &[ONE_RADIO],
    },
    MustHold {
        text: "SIGMA: no 100 ms bin without goodput in any run",
        value: "the most such bins in a run",
        worlds: WORLDS,
        metrics: &[EMPTY],
        needs: is_sigma,
        check: |results| Check::within(worst(results, SIGMA, EMPTY), ..=0.0),
        breakers: &[ONE_SLOW_RADIO],
    },
    MustHold {
        text: "SIGMA: 0 bytes lost, duplicated or reordered to the application in every run",
        value: "the most in a run",
        worlds: WORLDS,
        metrics: &[AMISS],
        needs: is_sigma,
        check: |results| Check::within(worst(results, SIGMA, AMISS), ..=0.0),
        breakers: &[ONE_ADDRESS],
    },
    MustHold {
        text: "Mobile IP's gap on the same moves >= 20 times SIGMA's, means over the phases",
        value: "the ratio",
        worlds: WORLDS,
        metrics: &[GAP],
        needs: |_| true,
        check: ratio,
        breakers: &[ONE_SLOW_RADIO],
    },
    MustHold {
        text: "Mobile IP: goodput after the move <= 1.01 times that before, means over the phases",
        value: "after / before",
        worlds: WORLDS,
        metrics: &[BEFORE, AFTER],
        needs: |point| point.label == MOBILE_IP,
        check: |results| {
            let mean = |metric| results.named(MOBILE_IP)?.mean(metric).filter(|mbps| *mbps > 0.0);
            Check::within(mean(AFTER).zip(mean(BEFORE)).map(|(after, before)| after / before), ..=1.01)
        },
        breakers: &[FAST_CELL],
    },
];

fn is_sigma(point: &Point) -> bool {
    point.label == SIGMA
}

fn worst(results: &Results, protocol: &str, metric: &str) -> Option<f64> {
    results.named(protocol)?.samples.get(metric)?.iter().copied().max_by(f64::total_cmp)
}

fn ratio(results: &Results) -> Check {
    let mean = |protocol| results.named(protocol)?.mean(GAP).filter(|gap| *gap > 0.0);
    let ratio = mean(MOBILE_IP).zip(mean(SIGMA)).map(|(theirs, ours)| theirs / ours);
    Check::within(ratio, 20.0..)
}

// --- the figure ----------------------------------------------------------------------------------------------------

fn figures(report: &Report) -> Vec<PointFigure> {
    let mut series = Vec::new();
    for point in &report.points {
        if let Some(published) = point.published(GAP) {
            let runs = (0..=point.n).map(|run| draw_at(run as f64, published.value, None));
            series.push(line(&point.label, Style::Published, runs));
        }
        for results in &report.worlds {
            let style = match results.world {
                OnWorld::Sim => Style::Simulator,
                OnWorld::Linux => Style::Linux,
            };
            let Some(measured) = results.named(&point.label).filter(|measured| measured.is_valid()) else {
                continue;
            };
            let mean = SIGMA_HANDOFF.metrics.first().and_then(|metric| measured.estimate(metric));
            let mean = mean.map(|mean| draw_at(0.0, mean.value, mean.interval));
            let gaps = (1..).zip(measured.samples.get(GAP).into_iter().flatten());
            let gaps = gaps.map(|(run, gap)| draw_at(f64::from(run), *gap, None));
            series.push(line(&point.label, style, mean.into_iter().chain(gaps)));
        }
    }
    vec![PointFigure {
        title: "SIGMA and Mobile IP: time without data in a move (figures 5 and 7)".to_owned(),
        x: Axis::new("run (0: mean of all, with its interval)", ""),
        y: Axis::new("gap", "ms").in_decades(),
        series,
        caption: format!(
            "Published: SIGMA 6 ms, Mobile IP 8 s, one run each: {}. Measured: each run at a separate phase, scale {}; the interval is that of 95 %, below six runs the range.",
            report.experiment.source,
            report.scale.name()
        ),
    }]
}
