//! `mobile-ip/triangle`: the efficiency of a download against the length of the triangle between correspondent, home agent
//! and mobile node.
//!
//! A packet goes over each hop of the triangle once more, so the download takes longer by the time of one packet and the
//! propagation of the hop. If a window limits the download, each hop makes each round trip longer.

mod claims;
mod measure;
mod points;
#[cfg(test)]
mod tests;

use crate::drawn::style;
use crate::reproduce::figure::{Drawn, draw_at, line};
use crate::reproduce::{
    BOTH, Check, Experiment, Kind, Measured, Metric, MustHold, Point, Report, Results, SIM,
};
use draw::{Axis, PointFigure, Series, Style};
use points::{BASE_RTT_MS, RTT_PER_HOP_MS, TABLE_1};

const EFFICIENCY: &str = "efficiency";
const SHARED: &str = "efficiency_shared";
const WINDOW: &str = "efficiency_window";
const LOST_PER_HOP: &str = "lost_per_hop";
const LOST_POINTS: &str = "lost_points";
const MORE_DELAY: &str = "more_delay_percent";
const COMPLETION: &str = "completion_s";
const IN_FLIGHT: &str = "in_flight_bytes";

/// The names of the parameters of points; then the values of the parameter `series`.
const SERIES: &str = "series";
const HOPS: &str = "hops";
const VARIATION: &str = "variation";
const FULL_DUPLEX: &str = "full duplex";
const SHARED_LINKS: &str = "shared links";
const WINDOW_LIMITED: &str = "window 32 KiB";

/// The rate of all links, in Mb/s: the maximum capacity in the paper's definition of efficiency.
const CAPACITY_MBPS: f64 = 10.0;
/// The propagation delay of a link of the chain, in microseconds.
const CHAIN_DELAY_US: f64 = 100.0;
/// The transmission time of a packet of 1500 bytes with its link header, in milliseconds.
const PACKET_MS: f64 = 1514.0 * 8.0 / 1e3 / CAPACITY_MBPS;
/// The points of efficiency that the header of the tunnel takes: 20 of 1500 bytes.
const TUNNEL_POINTS: f64 = 20.0 / 1500.0 * 100.0;

pub(in crate::paper) const EXPERIMENT: Experiment = Experiment {
    id: "mobile-ip/triangle",
    about: "the efficiency of a download through a Mobile IP tunnel, as a function of the length of the triangle",
    paper: "Fikouras et al. 1999",
    source: "Fikouras, El Malki, Cvetkovic and Smythe, Performance evaluation of TCP over Mobile IP, table 1, sections IV-A and V",
    notes: &[
        "efficiency: bytes / time / 10 Mb/s, in percent (the paper's definition). The time (completion) is from the first data\n  \
         packet that the correspondent sends until the mobile node has read the last byte. Data go by the home agent and the\n  \
         tunnel, acknowledgments directly. Hops: the links between home agent and foreign agent. 0 hops: the mobile node is at\n  \
         home, without Mobile IP.",
        "Scenario: all links 10 Mb/s, full duplex, 100 us (our choice), MTU 1500; window 64 KiB (our choice). A frame takes the\n  \
         time of its packet and 14 bytes; Ethernet adds preamble, checksum and gap. The mobile node is in the foreign network\n  \
         from the start. An earlier request has an answer of 20 kB, so the correspondent knows the path\n  \
         MTU. The paper sends 1000 MB; we send 2 MB (quick), 8 MB (default) or 16 MB (full), and with\n  \
         window 32 KiB 2.5, 4 or 8 MB. So a constant time per hop is a larger share here. From 10 hops on, the initial window of 10 packets does not fill a round trip, so a hop costs more.",
        "A pause of the machine makes a download slower, never faster. So on Linux 6 ms are 0.35 points of 2 MB. The two statements with a\n  \
         bound in points compare the fastest download of each number of hops, of at least 4.",
        "shared links: all links are half duplex, and acknowledgments return by the chain.",
        "window 32 KiB: the round trip is 30 ms, and 5 ms more for each hop: from a full packet to the acknowledgment of this one\n  \
         and the next, because the receiver acknowledges every second packet. The window holds 22 segments. in_flight: bytes\n  \
         that were sent and not yet acknowledged, the mean over the middle half of the download.",
        "lost_per_hop: the slope over 1, 2 and 3 hops; it counts as reproduced from 0.5 to 1.5 points. lost_points: the efficiency\n  \
         without Mobile IP minus that of the hops. more_delay: how much longer the download takes. All are computed for each\n  \
         repetition.",
        "The paper's claim that 20 points less efficiency are 50 % more delay is computed from 1 hop of the series with a window\n  \
         of 32 KiB, the only one whose efficiency falls by 20 points.",
        "Variations: half and double the window, the propagation delay of a hop, and the size of the download. half duplex: chain\n  \
         and cells are half duplex, but acknowledgments return by a separate wire (as the paper's two Ethernets between the\n  \
         agents). contention: on shared links, hosts draw slots of 51.2 us from a window of 2 to 1024; a collision takes the time\n  \
         of a whole frame, and not that of an Ethernet.",
    ],
    backends: BOTH,
    metrics: &[
        Metric::mean(EFFICIENCY, 2),
        Metric::mean(LOST_PER_HOP, 2),
        Metric::mean(LOST_POINTS, 2),
        Metric::mean(MORE_DELAY, 1),
        Metric::mean(SHARED, 2),
        Metric::mean(WINDOW, 2),
        Metric::mean(COMPLETION, 4).beside(),
        Metric::mean(IN_FLIGHT, 0).beside(),
    ],
    points: points::points,
    must_hold: MUST_HOLD,
    observed: OBSERVED,
    figures,
};

// --- what must hold ------------------------------------------------------------------------------------------------

/// Ten times the propagation delay of each hop.
const LONG_HOPS: &[&str] = &["chain.net.delay=1ms"];
/// Hops that are twice as fast.
const FAST_HOPS: &[&str] = &["chain.net.rate=20Mb/s"];
/// Behind a half-duplex last hop, where acknowledgments take more than the tunnel's header, the tunnel cannot show.
const HALF_DUPLEX: &[&str] = &["cell.1.duplex=half", "cell.2.duplex=half"];
/// A slower home network: then a download takes longer at home than through the tunnel.
const SLOW_HOME: &[&str] = &["cell.1.rate=8Mb/s"];
/// Short downloads, while links are cut at random: the cuts determine the efficiency, and not the hops.
const CUTS: &[&str] =
    &["bulk-server.bytes=300000", "random_event=[{ kinds = [\"cut\"], rate = 3, lasts = \"30ms\" }]"];
/// A window that is no limit: then queues make the round trips longer.
const WIDE: &[&str] = &["host.mobile.tcp.receive_buffer=1000000"];

const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "from 1 to 2 and from 2 to 3 hops, the completion time grows by one packet time + propagation, within 10 %",
        value: "growth / (packet time + propagation) of the step whose ratio is farthest from 1",
        backends: SIM,
        needs: |point| is_main(point, FULL_DUPLEX, 1.0..=3.0),
        check: |results| grows(results, 1.0..=3.0),
        breakers: &[LONG_HOPS, FAST_HOPS],
    },
    MustHold {
        text: "the efficiency of 1 hop is below that without Mobile IP by the tunnel's 20/1500, within 0.3 points",
        value: "difference of the fastest downloads, in points",
        backends: BOTH,
        needs: |point| is_main(point, FULL_DUPLEX, 0.0..=1.0),
        check: |results| {
            let [none, one] = [0.0, 1.0].map(|hops| fastest(results, hops));
            let cost = none.zip(one).map(|(none, one)| none - one);
            Check::within(cost, TUNNEL_POINTS - 0.3..=TUNNEL_POINTS + 0.3)
        },
        breakers: &[HALF_DUPLEX],
    },
    MustHold {
        text: "no hop raises the efficiency by more than 0.2 points",
        value: "largest rise of the fastest download from one measured number of hops to the next, in points",
        backends: BOTH,
        needs: |point| is_main(point, FULL_DUPLEX, 0.0..=20.0),
        check: |results| Check::within(largest_of(&fastest_by_hops(results)), ..=0.2),
        breakers: &[SLOW_HOME],
    },
    MustHold {
        text: "window 32 KiB: the efficiency falls with each hop",
        value: "largest rise from one measured number of hops to the next, in points",
        backends: BOTH,
        needs: |point| is_main(point, WINDOW_LIMITED, 1.0..=20.0),
        check: |results| Check::within(largest_rise(results, WINDOW_LIMITED, WINDOW), ..0.0),
        breakers: &[CUTS],
    },
    MustHold {
        text: "window 32 KiB: the throughput is W / RTT within 5 %, with the bytes in flight as W and the RTT of the links",
        value: "throughput / (W / RTT) of the number of hops that differs most",
        backends: BOTH,
        needs: |point| is_main(point, WINDOW_LIMITED, 1.0..=20.0),
        check: |results| follows_window(results, WINDOW_LIMITED),
        breakers: &[WIDE, LONG_HOPS],
    },
];

const OBSERVED: &[MustHold] = &[
    MustHold {
        text: "from 1 to 20 hops, the completion time grows by one packet time + propagation for each hop, within 10 %",
        value: "growth / (packet time + propagation) of the step whose ratio is farthest from 1",
        backends: SIM,
        needs: |point| is_main(point, FULL_DUPLEX, 1.0..=20.0),
        check: |results| grows(results, 1.0..=20.0),
        breakers: &[],
    },
    MustHold {
        text: "shared links: no hop raises the efficiency by more than 0.2 points",
        value: "largest rise from one measured number of hops to the next, in points",
        backends: SIM,
        needs: |point| is_main(point, SHARED_LINKS, 0.0..=3.0),
        check: |results| Check::within(largest_rise(results, SHARED_LINKS, SHARED), ..=0.2),
        breakers: &[],
    },
];

/// Returns whether a point is a measured main point of a series, with these hops.
fn is_main(point: &Point, series: &'static str, hops: std::ops::RangeInclusive<f64>) -> bool {
    let in_range = point.number(HOPS).is_some_and(|number| hops.contains(&number));
    point.kind == Kind::Main && point.combine.is_none() && point.has(SERIES, series) && in_range
}

/// Returns the means of a metric over the hops, in the order of the hops.
fn by_hops(results: &Results, series: &'static str, metric: &str) -> Vec<(f64, f64)> {
    let rows = results.rows(|point| is_main(point, series, 0.0..=f64::INFINITY));
    rows.filter_map(|(point, measured)| Some((point.number(HOPS)?, measured.mean(metric)?))).collect()
}

/// Returns the greatest efficiency of the downloads over each number of hops, in the order of the hops. A pause of the
/// machine can only make a download slower: on Linux, 6 ms are 0.35 points of a quick download. So the fastest one shows what
/// the hops cost.
fn fastest_by_hops(results: &Results) -> Vec<(f64, f64)> {
    let rows = results.rows(|point| is_main(point, FULL_DUPLEX, 0.0..=f64::INFINITY));
    let fastest = |measured: &Measured| measured.greatest(EFFICIENCY);
    rows.filter_map(|(point, measured)| Some((point.number(HOPS)?, fastest(measured)?))).collect()
}

fn fastest(results: &Results, hops: f64) -> Option<f64> {
    let row = |point: &Point| is_main(point, FULL_DUPLEX, hops..=hops);
    results.rows(row).next()?.1.greatest(EFFICIENCY)
}

/// Checks the growth of the completion time from each measured number of hops to the next, within a range of hops.
fn grows(results: &Results, range: std::ops::RangeInclusive<f64>) -> Check {
    let mut all = by_hops(results, FULL_DUPLEX, COMPLETION);
    all.retain(|(hops, _)| range.contains(hops));
    let expected = PACKET_MS + CHAIN_DELAY_US / 1e3;
    let steps = all.iter().zip(all.iter().skip(1));
    let ratios = steps.map(|((from, before), (to, after))| (after - before) * 1e3 / (to - from) / expected);
    Check::within(farthest_from_one(ratios), 0.9..=1.1)
}

/// Returns the largest rise of a series' means from each measured number of hops to the next; negative if all values
/// fall.
fn largest_rise(results: &Results, series: &'static str, metric: &str) -> Option<f64> {
    largest_of(&by_hops(results, series, metric))
}

fn largest_of(all: &[(f64, f64)]) -> Option<f64> {
    all.iter().zip(all.iter().skip(1)).map(|((_, before), (_, after))| after - before).max_by(f64::total_cmp)
}

/// Checks that the throughput is the bytes in flight divided by the nominal round trip. The latter is computed from the
/// scenario's links, because a measured one would depend on the same packets as the throughput.
fn follows_window(results: &Results, series: &'static str) -> Check {
    let efficiency = by_hops(results, series, WINDOW);
    let in_flight = by_hops(results, series, IN_FLIGHT);
    let ratios = efficiency.iter().zip(&in_flight).map(|((hops, efficiency), (_, bytes))| {
        let round_trip = RTT_PER_HOP_MS.mul_add(*hops, BASE_RTT_MS) / 1e3;
        efficiency / 100.0 * CAPACITY_MBPS * 1e6 / (bytes * 8.0 / round_trip)
    });
    Check::within(farthest_from_one(ratios), 0.95..=1.05)
}

fn farthest_from_one(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    ratios.max_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()))
}

// --- the figures ---------------------------------------------------------------------------------------------------

/// Returns three figures: the efficiency with table 1, the longer delay with the claim about 20 hops, and the series that
/// a window limits.
fn figures(report: &Report) -> Vec<Drawn> {
    let n = report.points.first().map_or(0, |point| point.n);
    let measured = format!("Measured: means of n = {n} downloads, scale {}.", report.scale.name());
    let figure = |title: &str, y: Axis, series: Vec<Series>, caption: &str| {
        let has_none = series.iter().flat_map(|series| &series.points).any(|point| point.x <= 0.0);
        let none = if has_none { "; 0: without Mobile IP" } else { "" };
        Drawn::Points(PointFigure {
            title: format!("Mobile IP: {title}"),
            x: Axis::new(format!("hops between home agent and foreign agent{none}"), ""),
            y,
            series,
            caption: format!("{caption} {measured}"),
        })
    };
    let table = line(
        "table 1",
        Style::Published,
        (1..).zip(TABLE_1).map(|(hops, value)| draw_at(f64::from(hops), value, None)),
    );
    let efficiency =
        [vec![table], drawn(report, FULL_DUPLEX, EFFICIENCY), drawn(report, SHARED_LINKS, SHARED)];
    let claim = line("claim of section V", Style::Published, std::iter::once(draw_at(20.0, 50.0, None)));
    let delay = [vec![claim], longer(report)];
    let percent = |text| Axis::new(text, "% of 10 Mb/s");
    vec![
        figure(
            "efficiency of a download and length of the triangle (table 1)",
            percent("efficiency"),
            efficiency.concat(),
            "Published: PCs of 1998 on half-duplex Ethernet, 1000 MB.",
        ),
        figure(
            "longer delay of a download and length of the triangle",
            Axis::new("additional time of the download", "%"),
            delay.concat(),
            "Published: a triangle of 20 hops increases the delay by 50 %.",
        ),
        figure(
            "efficiency with a window of 32 KiB",
            percent("efficiency"),
            drawn(report, WINDOW_LIMITED, WINDOW),
            "The round trip is 30 ms, and 5 ms more for each hop. The paper has no such series.",
        ),
    ]
}

/// Returns the values of a series over the hops, for each backend.
fn drawn(report: &Report, series: &'static str, metric: &str) -> Vec<Series> {
    let metric = EXPERIMENT.metrics.iter().find(|each| each.name == metric);
    let backends = report.backends.iter();
    let all = backends.map(|results| {
        let rows = results.rows(|point| is_main(point, series, 0.0..=f64::INFINITY));
        let rows = rows.filter(|(_, measured)| measured.is_valid());
        let points = rows.filter_map(|(point, measured)| {
            let estimate = measured.estimate(metric?)?;
            Some(draw_at(point.number(HOPS)?, estimate.value, estimate.interval))
        });
        line(series, style(results.backend), points)
    });
    all.collect()
}

/// Returns by how many percent downloads take longer than without Mobile IP, for each backend.
fn longer(report: &Report) -> Vec<Series> {
    let all = report.backends.iter().map(|results| {
        let all = by_hops(results, FULL_DUPLEX, COMPLETION);
        let none = all.iter().find(|(hops, _)| *hops <= 0.0).map(|(_, seconds)| *seconds);
        let points: Vec<(f64, f64)> =
            all.iter().filter_map(|(hops, seconds)| Some((*hops, (seconds / none? - 1.0) * 100.0))).collect();
        let points = points.into_iter().map(|(hops, percent)| draw_at(hops, percent, None));
        line(FULL_DUPLEX, style(results.backend), points)
    });
    all.collect()
}
