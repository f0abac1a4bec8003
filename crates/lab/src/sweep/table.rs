//! A sweep's results: a CSV for each metric, and one table for people.

use super::journal::fingerprint;
use super::{Done, METRICS, Sweep};
use crate::Median;
use draw::Table;
use std::fmt::Write;

/// All values of a metric at a point, of runs that are to be trusted.
fn values(runs: &[Done], point: usize, metric: &str) -> Vec<f64> {
    let here = runs.iter().filter(|run| run.point == point && run.doubts.is_empty());
    here.filter_map(|run| run.values.get(metric)).flatten().copied().collect()
}

/// The CSV of each metric that has any value: its name, and a row for each point.
pub fn csv(sweep: &Sweep, runs: &[Done]) -> Vec<(&'static str, String)> {
    METRICS.iter().filter_map(|(metric, _)| Some((*metric, of_metric(sweep, runs, metric)?))).collect()
}

fn of_metric(sweep: &Sweep, runs: &[Done], metric: &str) -> Option<String> {
    let mut keys: Vec<&str> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    keys.extend(["n", "median", "lo", "hi"]);
    let mut out = row(keys.iter().map(|key| (*key).to_owned()));
    let mut any = false;
    for point in 0..sweep.len() {
        let values = values(runs, point, metric);
        let median = Median::of(&values);
        any |= median.is_some();
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let interval = median.and_then(|median| median.interval);
        let mut fields = sweep.values(point).to_vec();
        fields.push(values.len().to_string());
        let ends =
            [median.map(|median| median.value), interval.map(|(lo, _)| lo), interval.map(|(_, hi)| hi)];
        fields.extend(ends.map(number));
        out.push_str(&row(fields));
    }
    any.then_some(out)
}

/// For programs: axes, and every run. An infinite value is null.
pub fn json(sweep: &Sweep, runs: &[Done]) -> serde_json::Value {
    let fingerprint = format!("{:016x}", fingerprint(runs));
    serde_json::json!({
        "sweep": sweep.name,
        "axes": sweep.axes,
        "repetitions": sweep.repetitions,
        "fingerprint": runs.iter().all(|run| run.fingerprint.is_some()).then_some(fingerprint),
        "points": (0..sweep.len()).map(|point| sweep.values(point)).collect::<Vec<_>>(),
        "runs": runs,
    })
}

/// Fields with commas or quotes are quoted (RFC 4180).
fn row(fields: impl IntoIterator<Item = String>) -> String {
    let quoted = |field: String| {
        if field.contains([',', '"', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
    };
    let mut line = fields.into_iter().map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

/// Medians, with the interval that encloses each with 95 %.
pub fn text(sweep: &Sweep, runs: &[Done]) -> String {
    let mut out = format!("{}: {} points, {} runs of each\n", sweep.name, sweep.len(), sweep.repetitions);
    out.push_str("medians, and in brackets what encloses the median with 95 %\n\n");
    let shown: Vec<_> = METRICS
        .iter()
        .filter(|(metric, _)| (0..sweep.len()).any(|point| !values(runs, point, metric).is_empty()))
        .collect();
    let keys = sweep.axes.iter().map(|axis| axis.key.clone());
    let mut table = Table::new(keys.chain(shown.iter().map(|(metric, _)| (*metric).to_owned())));
    for point in 0..sweep.len() {
        let cells = shown.iter().map(|(metric, _)| cell(&values(runs, point, metric)));
        table.push(sweep.values(point).iter().cloned().chain(cells));
    }
    out.push_str(&table.render());
    out.push('\n');
    for (metric, about) in &shown {
        let _ = writeln!(out, "{metric:20}{about}");
    }
    for run in runs.iter().filter(|run| !run.doubts.is_empty()) {
        let at = sweep.values(run.point).join(", ");
        let _ = writeln!(out, "not counted: seed {} at {at}: {}", run.seed, run.doubts.join("; "));
    }
    if runs.iter().all(|run| run.fingerprint.is_some()) {
        let _ = writeln!(out, "fingerprint {:016x}", fingerprint(runs));
    }
    out
}

fn cell(values: &[f64]) -> String {
    let Some(Median { value, interval }) = Median::of(values) else { return "-".to_owned() };
    let short = |value: f64| match value {
        value if value.is_infinite() => "never".to_owned(),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    };
    match interval {
        Some((lo, hi)) => format!("{} [{}, {}]", short(value), short(lo), short(hi)),
        None => short(value),
    }
}
