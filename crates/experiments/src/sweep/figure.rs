//! The figures of a sweep: one for each metric.

use super::table::{names, values};
use super::{Done, METRICS, Sweep, metric};
use crate::drawn::{enclosed, style};
use crate::stats::Summary;
use draw::{Axis, Point, PointFigure, Series};

/// Returns one figure for each metric, with the name of the metric. The x axis is the first axis of the sweep that has
/// several values and only numbers; otherwise the first that has several values, which are then categories. Each kind of
/// handoff, with each combination of the values of the other axes, is a series. Empty if no axis has several values.
pub fn figures(sweep: &Sweep, runs: &[Done]) -> Vec<(String, PointFigure)> {
    let numbers = |values: &[String]| values.iter().map(|value| number(value)).collect::<Option<Vec<_>>>();
    let several = |axis: &super::Axis| axis.values.len() > 1;
    let by_number = sweep.axes.iter().position(|axis| several(axis) && numbers(&axis.values).is_some());
    let Some(x) = by_number.or_else(|| sweep.axes.iter().position(several)) else {
        return Vec::new();
    };
    let x = (x, by_number.is_none());
    let names = names(runs);
    let of = |wanted: &str| names.iter().copied().filter(|name| metric(name) == wanted).collect::<Vec<_>>();
    let all = METRICS.iter().map(|(wanted, about)| (*wanted, *about, of(wanted)));
    let measured = all.filter(|(_, _, names)| !names.is_empty());
    measured.map(|(of, about, names)| (of.to_owned(), figure(sweep, runs, x, (of, about), &names))).collect()
}

/// Returns the figure of a metric. `x` is the index of the axis of the sweep that is the x axis, and whether its values are
/// categories.
fn figure(
    sweep: &Sweep,
    runs: &[Done],
    (x, categories): (usize, bool),
    (of, about): (&str, &str),
    names: &[&str],
) -> PointFigure {
    let axis = sweep.axes.get(x);
    let place = |value: &String| match axis.filter(|_| categories) {
        Some(axis) => axis.values.iter().position(|each| each == value).map(|index| index as f64),
        None => number(value).map(|(at, _)| at),
    };
    let style = style(sweep.backend);
    let mut series: Vec<Series> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for name in names {
        for point in 0..sweep.len() {
            let set = sweep.values(point);
            let values = values(runs, point, name);
            let (Some(at), Some(median)) = (set.get(x).and_then(place), Summary::of(&values)) else {
                continue;
            };
            counts.push(median.n);
            let label = label(sweep, set, x, name);
            let point = Point { x: at, y: median.median, whisker: enclosed(&median, &values) };
            match series.iter_mut().find(|series| series.name == label) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name: label, style, points: vec![point] }),
            }
        }
    }
    let key = axis.map_or("", |axis| &axis.key);
    let unit = axis.and_then(|axis| number(axis.values.first()?)).map_or("", |(_, unit)| unit);
    let y = crate::batch::axis(of);
    let n = match (counts.iter().min(), counts.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.map_or(0, |most| *most).to_string(),
    };
    let whiskers = series.iter().flat_map(|series| &series.points).filter_map(|point| point.whisker);
    let has_interval = whiskers.into_iter().any(|whisker| !whisker.is_range);
    let intervals = if has_interval { " Solid bars: 95 % intervals of the median." } else { "" };
    PointFigure {
        title: format!("{}: {} over {key}", sweep.name, y.label),
        x: match axis.filter(|_| categories) {
            Some(axis) => Axis::of_names(key, axis.values.clone()),
            None => Axis::new(key, unit),
        },
        y,
        series,
        caption: format!("{about}. Markers: medians of {n} runs.{intervals} Infinite values are not drawn."),
    }
}

/// Returns the label of a series: the kind of handoff and the values of the other axes; the sweep's name if there are
/// none.
fn label(sweep: &Sweep, set: &[String], x: usize, name: &str) -> String {
    let kind = name.split_once('.').map(|(_, kind)| kind.to_owned());
    let others = sweep.axes.iter().zip(set).enumerate().filter(|(axis, _)| *axis != x);
    let others = others.map(|(_, (axis, value))| format!("{} = {value}", axis.key));
    let parts: Vec<String> = kind.into_iter().chain(others).collect();
    if parts.is_empty() { sweep.name.clone() } else { parts.join(", ") }
}

/// Parses a plain number, a span of time or a rate. Returns the value and its unit: none, ms or kb/s.
fn number(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(number) = text.parse::<f64>() {
        return Some((number, ""));
    }
    if let Some(span) = node::config::parse_span(text) {
        return Some((span.as_secs_f64() * 1e3, "ms"));
    }
    scenario::parse_rate(text).map(|rate| (rate as f64 / 1e3, "kb/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_rates_are_numbers() {
        let all = ["3", "0.5", "50ms", "2s", "2Mb/s", "hard", ""].map(number);
        let ms = |number| Some((number, "ms"));
        assert_eq!(
            all,
            [Some((3.0, "")), Some((0.5, "")), ms(50.0), ms(2000.0), Some((2000.0, "kb/s")), None, None]
        );
    }
}
