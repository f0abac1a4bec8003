//! The figures: the distribution of the gap, and one run over time as in figures 4 and 5 of the paper.

use super::measure::{FIRST, GOODPUT, MOVED, PACKETS, REGISTERED, ROUND_TRIPS};
use super::{AFTER, BEFORE, EXPERIMENT, GAP, RTT_PEAK};
use crate::reproduce::figure::{Drawn, samples};
use crate::reproduce::{Kind, Measured, Point, Report, TimeSeries};
use crate::stats::nearest_to_median;
use draw::{
    Axis, DistributionFigure, DistributionPanel, Joined, TimeFigure, TimeLine, TimePanel, TimeWindow,
};
use recorder::run::Backend;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The length of the line at the published peak of the round trip. The paper has one value, and no duration.
const PEAK: Duration = Duration::from_millis(200);

pub(super) fn figures(report: &Report) -> Vec<Drawn> {
    let mut figures = vec![Drawn::Distribution(gaps(report))];
    figures.extend(course(report).map(Drawn::Time));
    figures
}

/// Returns the distribution of the gap at the main point and the controls.
fn gaps(report: &Report) -> DistributionFigure {
    let shown = report.points.iter().filter(|point| point.kind != Kind::Sensitivity);
    let samples = shown.flat_map(|point| samples(report, point, &point.label, GAP)).collect();
    DistributionFigure {
        title: "Mobile IP: time without data in a move (figures 4 and 5)".to_owned(),
        panels: vec![DistributionPanel {
            title: String::new(),
            axis: Axis::new("time without data in a move", "s"),
            samples,
        }],
        caption: format!(
            "Published: 8 s: {}. Measured: each run at a separate phase of the lifetime of 10 s, scale {}.",
            EXPERIMENT.source,
            report.scale.name()
        ),
    }
}

/// Returns the run whose gap is nearest to the median of the first backend, on each backend, and the published values. `None` if
/// there is no valid run.
fn course(report: &Report) -> Option<TimeFigure> {
    let point = report.points.iter().find(|point| point.kind == Kind::Main)?;
    let valid: Vec<(Backend, &Measured)> = report
        .backends
        .iter()
        .filter_map(|results| Some((results.backend, results.named(&point.label)?)))
        .filter(|(_, measured)| measured.is_valid())
        .collect();
    let (_, first) = valid.first()?;
    let run = nearest_to_median(first.samples.get(GAP)?)?;
    let gap = *first.samples.get(GAP)?.get(run)?;
    let courses: Vec<(Backend, &TimeSeries)> =
        valid.iter().filter_map(|(backend, measured)| Some((*backend, measured.series.get(run)?))).collect();
    let (_, one) = courses.first()?;
    let moved = one.at(MOVED)?;
    let until = last(&courses)?;
    let panels = vec![
        panel(point, &courses, PACKETS, ("data received since the move", "kB"), Joined::Dots, None),
        panel(point, &courses, GOODPUT, ("throughput", "Mb/s"), Joined::Steps, Some((moved, until))),
        panel(point, &courses, ROUND_TRIPS, ("round trip", "s"), Joined::Dots, Some((moved, until))),
    ];
    let mut handoffs = vec![(moved, "move".to_owned())];
    for name in [REGISTERED, FIRST] {
        handoffs.extend(one.at(name).map(|at| (at, name.to_owned())));
    }
    let published = point.published(GAP).map(|published| moved + Duration::from_secs_f64(published.value));
    handoffs.extend(published.map(|at| (at, "published end of the gap".to_owned())));
    let zoom = |title: &str, at: Instant, index: usize| TimeWindow {
        title: title.to_owned(),
        from: at - Duration::from_millis(100),
        until: at + Duration::from_millis(200),
        flows: vec![0],
        finer: BTreeMap::new(),
        handoff: index,
    };
    let mut windows = vec![zoom("the last packets by the old cell", moved, 0)];
    windows.extend(one.at(FIRST).map(|at| zoom("the first packets by the new cell", at, 2)));
    Some(TimeFigure {
        title: "Mobile IP: one move in a download (figures 4 and 5)".to_owned(),
        panels,
        handoffs,
        until,
        windows,
        caption: format!(
            "The run whose gap is nearest to the median ({gap:.3} s), scale {}. The lines of the events are those of the first backend. \
             Throughput: in bins of 0.5 s. Data before the move have negative places. Published: {}. The published values begin at the \
             move of this run; the published peak of the round trip is a short line after the move.",
            report.scale.name(),
            EXPERIMENT.source
        ),
    })
}

fn last(courses: &[(Backend, &TimeSeries)]) -> Option<Instant> {
    let lines = courses.iter().filter_map(|(_, series)| series.lines.get(PACKETS)?.last());
    lines.map(|(at, _)| *at).max()
}

/// Returns a panel with a quantity of each backend, and with the published values if `published` has the move and the
/// end of the figure.
fn panel(
    point: &Point,
    courses: &[(Backend, &TimeSeries)],
    quantity: &str,
    (label, unit): (&str, &str),
    joined: Joined,
    published: Option<(Instant, Instant)>,
) -> TimePanel {
    // The windows show flow 0. The bins of the throughput are longer than a window.
    let flow = usize::from(quantity == GOODPUT);
    let line = |name: &str, joined, points| TimeLine { name: name.to_owned(), flow, joined, points };
    let mut lines: Vec<TimeLine> = courses
        .iter()
        .filter_map(|(backend, series)| {
            let name = if *backend == Backend::Linux { "Linux" } else { "simulator" };
            Some(line(name, joined, series.lines.get(quantity)?.clone()))
        })
        .collect();
    let values = published.map(|(moved, until)| published_line(point, quantity, moved, until));
    lines.extend(
        values.filter(|values| !values.is_empty()).map(|values| line("published", Joined::Steps, values)),
    );
    TimePanel { axis: Axis::new(label, unit), lines, remark: "no valid run".to_owned(), cuts_peaks: false }
}

/// Returns the published values of a quantity as a line: the throughput before, in and after the gap, or the peak of
/// the round trip.
fn published_line(point: &Point, quantity: &str, moved: Instant, until: Instant) -> Vec<(Instant, f64)> {
    let value = |metric| point.published(metric).map(|published| published.value);
    if quantity == ROUND_TRIPS {
        let ends = moved + PEAK;
        return value(RTT_PEAK).map(|peak| vec![(moved, peak), (ends, peak)]).unwrap_or_default();
    }
    let (Some(before), Some(gap), Some(after)) = (value(BEFORE), value(GAP), value(AFTER)) else {
        return Vec::new();
    };
    let again = moved + Duration::from_secs_f64(gap);
    vec![(Instant::ZERO, before), (moved, 0.0), (again, after), (until.max(again), after)]
}
