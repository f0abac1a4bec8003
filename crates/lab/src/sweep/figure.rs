//! What came out over what was set: a figure for each thing that was measured.

use super::table::{names, values};
use super::{Done, METRICS, Sweep, metric};
use crate::Summary;
use crate::run::OnWorld;
use draw::{Axis, Point, PointFigure, Series, Style};

/// The figures of a sweep: over the values of the first axis that are all numbers, with a series for each combination of the
/// others. None if there is no such axis.
pub fn figures(sweep: &Sweep, runs: &[Done]) -> Vec<(String, PointFigure)> {
    let numbers = |values: &[String]| values.iter().map(|value| number(value)).collect::<Option<Vec<_>>>();
    let Some(x) = sweep.axes.iter().position(|axis| axis.values.len() > 1 && numbers(&axis.values).is_some())
    else {
        return Vec::new();
    };
    names(runs).into_iter().map(|name| (name.to_owned(), figure(sweep, runs, x, name))).collect()
}

fn figure(sweep: &Sweep, runs: &[Done], x: usize, name: &str) -> PointFigure {
    let style = if sweep.world == OnWorld::Sim { Style::Simulator } else { Style::Linux };
    let mut series: Vec<Series> = Vec::new();
    for point in 0..sweep.len() {
        let set = sweep.values(point);
        let (Some((at, _)), Some(median)) =
            (set.get(x).and_then(|value| number(value)), Summary::of(&values(runs, point, name)))
        else {
            continue;
        };
        let others = sweep.axes.iter().zip(set).enumerate().filter(|(axis, _)| *axis != x);
        let others: Vec<String> = others.map(|(_, (axis, value))| format!("{} {value}", axis.key)).collect();
        let label = if others.is_empty() { sweep.name.clone() } else { others.join(", ") };
        let point = Point {
            x: at,
            y: median.median,
            error: median.interval.map(|interval| (interval.lo, interval.hi)),
        };
        match series.iter_mut().find(|series| series.name == label) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name: label, style, points: vec![point] }),
        }
    }
    let axis = sweep.axes.get(x);
    let unit = axis.and_then(|axis| number(axis.values.first()?)).map_or("", |(_, unit)| unit);
    let about = METRICS.iter().find(|(of, _)| *of == metric(name)).map_or("", |(_, about)| about);
    PointFigure {
        title: format!("{}: {name}", sweep.name),
        x: Axis::new(axis.map_or("", |axis| &axis.key), unit),
        y: amount(name),
        series,
        caption: format!(
            "{about}; medians of {} runs with their 95 % intervals. What never ended is not drawn.",
            sweep.repetitions
        ),
    }
}

/// The axis of a metric: `outage_ms.hard` is an outage, hard, in milliseconds.
fn amount(name: &str) -> Axis {
    let (of, kind) = name.split_once('.').unwrap_or((name, ""));
    let axis = crate::batch::axis(of);
    if kind.is_empty() { axis } else { Axis { label: format!("{}, {kind}", axis.label), ..axis } }
}

/// A number as it is, a span of time in milliseconds, a rate in kb/s; and the unit.
fn number(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(number) = text.parse::<f64>() {
        return Some((number, ""));
    }
    if let Some(span) = node::config::parse_span(text) {
        return Some((span.as_secs_f64() * 1e3, "ms"));
    }
    crate::scenario::parse_rate(text).map(|rate| (rate as f64 / 1e3, "kb/s"))
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
