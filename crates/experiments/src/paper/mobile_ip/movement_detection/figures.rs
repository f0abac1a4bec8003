//! The figures: packets of an LCS run and an ECS run in one panel, and the halts of all runs.

use super::measure::{DETECTED, GOODPUT, LEFT, RECOVERED, REGISTERED, RESENT, ROUND_TRIP, SENT, TIME_OUTS};
use super::points::{BSD, CLASSIC, ECS, FLOOR, LCS, LINUX, NETWORKS, OVERLAP, PATH_MTU, POLICY, TCP};
use super::{HALT, LOST, is_apart};
use crate::reproduce::figure::{Drawn, samples};
use crate::reproduce::{Point, Report, Results, TimeSeries};
use crate::stats::nearest_to_median;
use draw::{
    Axis, DistributionFigure, DistributionPanel, Joined, TimeFigure, TimeLine, TimePanel, TimeWindow,
};
use recorder::run::Backend;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The time before the move, and after the end of the last halt, that the figure of packets shows.
const AROUND: Duration = Duration::from_millis(700);

/// Returns the figure of packets of each backend, then the figure of halts.
pub(super) fn figures(report: &Report) -> Vec<Drawn> {
    let packets = report.backends.iter().filter_map(|results| packets(results).map(Drawn::Time));
    packets.chain([Drawn::Distribution(halts(report))]).collect()
}

fn halts(report: &Report) -> DistributionFigure {
    let panel = |tcp: &'static str| {
        let shown = report.points.iter().filter(|point| is_apart(point) && point.has(TCP, tcp));
        let name = |point: &Point| point.label.replace(&format!(", {tcp}"), "");
        let samples = shown.flat_map(|point| samples(report, point, &name(point), HALT)).collect();
        DistributionPanel {
            title: format!("sender: {tcp}"),
            axis: Axis::new("time without data", "s"),
            samples,
        }
    };
    let overlap = report.points.iter().filter(|point| point.has(NETWORKS, OVERLAP));
    let overlap = DistributionPanel {
        title: "networks overlap: packets with data of which no copy arrived".to_owned(),
        axis: Axis::new("lost packets", ""),
        samples: overlap.flat_map(|point| samples(report, point, &point.label, LOST)).collect(),
    };
    let panels = [BSD, FLOOR, LINUX].map(panel).into_iter().chain([overlap]);
    DistributionFigure {
        title: "Mobile IP: time without data in a move, by policy of movement detection".to_owned(),
        panels: panels.filter(|panel| !panel.samples.is_empty()).collect(),
        caption: format!(
            "Published (figure 4, one run each): LCS 12.5 s, ECS 5.5 s. Measured: each run at separate phases, scale {}.",
            report.scale.name()
        ),
    }
}

/// Returns the figure with the packets of an LCS run and an ECS run of the same phases: those of 4.4BSD with the classic
/// reaction in the simulator, those of the kernel on Linux.
fn packets(results: &Results) -> Option<TimeFigure> {
    let (tcp, mtu) = match results.backend {
        Backend::Sim => (BSD, Some(CLASSIC)),
        Backend::Linux => (LINUX, None),
    };
    let of = |policy: &'static str| {
        let wanted = |point: &Point| {
            is_apart(point)
                && point.has(TCP, tcp)
                && point.has(POLICY, policy)
                && mtu.is_none_or(|mtu| point.has(PATH_MTU, mtu))
        };
        results.rows(wanted).next()
    };
    let ((lcs, slow), (ecs, fast)) = (of(LCS)?, of(ECS)?);
    let run = nearest_to_median(slow.samples.get(HALT)?)?;
    let runs = [(LCS, slow.series.get(run)?), (ECS, fast.series.get(run)?)];
    let published = [(LCS, lcs), (ECS, ecs)].map(|(policy, point)| (policy, point.published(HALT)));
    let published = published.into_iter().filter_map(|(policy, published)| Some((policy, published?.value)));
    Some(figure(runs, &published.collect::<Vec<_>>(), results.backend, tcp))
}

fn figure(
    runs: [(&'static str, &TimeSeries); 2],
    published: &[(&'static str, f64)],
    backend: Backend,
    tcp: &str,
) -> TimeFigure {
    let left = runs.iter().find_map(|(_, series)| series.at(LEFT)).unwrap_or_default();
    let mut handoffs = vec![(left, "left".to_owned())];
    let mut ends = Vec::new();
    for (policy, series) in runs {
        // Detection and registration are a few milliseconds apart, so one line is drawn for both.
        let at = series.at(REGISTERED).or_else(|| series.at(DETECTED));
        handoffs.extend(at.map(|at| (at, format!("{policy} registered"))));
        ends.extend(series.at(RECOVERED).map(|at| (at, format!("{policy} recovered"))));
    }
    handoffs.extend(ends);
    handoffs.extend(
        published
            .iter()
            .map(|(policy, halt)| (left + Duration::from_secs_f64(*halt), format!("{policy} published"))),
    );
    handoffs.sort();
    let last = handoffs.last().map_or(left, |(at, _)| *at);
    let window = |(flow, (policy, series)): (usize, &(&str, &TimeSeries))| {
        let recovered = series.at(RECOVERED)?;
        let handoff = handoffs.iter().position(|(at, _)| *at == recovered)?;
        Some(TimeWindow {
            title: format!("{policy}: the end of the halt"),
            from: recovered - AROUND,
            until: recovered + AROUND,
            flows: vec![flow],
            finer: BTreeMap::new(),
            handoff,
        })
    };
    let windows = runs.iter().enumerate().filter_map(window).collect();
    let until = last + AROUND * 3;
    let paper = if published.is_empty() {
        ""
    } else {
        " Lines with `published`: the end of the halt in the paper, if it begins with the move."
    };
    TimeFigure {
        title: format!("Mobile IP: packets of a download in a move, {tcp}, {}", backend.name()),
        panels: panels(&runs, until),
        handoffs,
        until,
        windows,
        caption: format!(
            "One run of each policy, with the same phases: the LCS run whose halt is nearest to the median, and the ECS run with \
             the same number. Left: the cable is unplugged. Registered: the home agent has the new binding, a few milliseconds \
             after the policy chose the foreign agent. Recovered: the first new data. Before the move, both runs are nearly equal, so ECS \
             covers LCS. Dots of `sent again` are retransmissions; \
             after the move, each is a time-out of the sender, or follows one.{paper}"
        ),
    }
}

/// Returns the panels: the packets, the goodput and the round-trip time of both runs.
fn panels(runs: &[(&'static str, &TimeSeries); 2], until: Instant) -> Vec<TimePanel> {
    let line = |flow: usize, name: String, series: &TimeSeries, what: &str, joined| {
        let all = series.lines.get(what).into_iter().flatten().copied();
        TimeLine { name, flow, joined, points: all.filter(|(at, _)| *at <= until).collect() }
    };
    let both = |what: &'static str, joined: Joined| {
        let of = |(flow, (policy, series)): (usize, &(&str, &TimeSeries))| {
            line(flow, (*policy).to_owned(), series, what, joined)
        };
        runs.iter().enumerate().map(of).collect::<Vec<_>>()
    };
    let again = runs.iter().enumerate().map(|(flow, (policy, series))| {
        line(flow, format!("{policy}, sent again"), series, RESENT, Joined::Dots)
    });
    let panel = |label: &str, unit: &str, lines| TimePanel {
        axis: Axis::new(label, unit),
        lines,
        remark: "no value".to_owned(),
        cuts_peaks: false,
    };
    vec![
        panel("packets sent: first byte", "kB", both(SENT, Joined::Dots).into_iter().chain(again).collect()),
        panel("time-outs of the sender in the halt, so far", "", both(TIME_OUTS, Joined::Steps)),
        panel("goodput", "Mb/s", both(GOODPUT, Joined::Steps)),
        panel("round-trip time", "ms", both(ROUND_TRIP, Joined::Dots)),
    ]
}
