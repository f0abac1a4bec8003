//! A sweep's results: a CSV for each metric, and one table as text.

use super::journal::fingerprint;
use super::{Done, METRICS, Sweep, metric};
use crate::stats::Summary;
use draw::{Csv, Table};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Returns the value of each valid run at a point: the median of the metric's values in the run.
pub(super) fn values(runs: &[Done], point: usize, name: &str) -> Vec<f64> {
    let here = runs.iter().filter(|run| run.point == point && run.doubts.is_empty());
    here.filter_map(|run| Some(Summary::of(run.values.get(name)?)?.median)).collect()
}

/// Returns the names of the measured metrics, ordered by metric, then by kind of handoff.
pub(super) fn names(runs: &[Done]) -> Vec<&str> {
    let all: BTreeSet<&str> = runs.iter().flat_map(|run| run.values.keys()).map(String::as_str).collect();
    METRICS.iter().flat_map(|(of, _)| all.iter().copied().filter(move |name| metric(name) == *of)).collect()
}

/// Returns, for each metric, its name and a CSV with a row for each point of the grid.
pub fn csv(sweep: &Sweep, runs: &[Done]) -> Vec<(String, String)> {
    names(runs).into_iter().map(|name| (name.to_owned(), of_metric(sweep, runs, name))).collect()
}

/// Returns the names of the files in a folder that a sweep may have written: its tables and figures.
pub fn files_in(folder: &Path) -> Vec<String> {
    let is_metric = |name: &str| METRICS.iter().any(|(known, _)| *known == metric(name));
    let is_ours = |name: &String| Path::new(name).extension().is_some_and(|end| end == "csv" || end == "svg");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(is_ours).filter(|name| is_metric(name)).collect()
}

fn of_metric(sweep: &Sweep, runs: &[Done], name: &str) -> String {
    let mut csv = Csv::default();
    let keys = sweep.axes.iter().map(|axis| axis.key.as_str());
    csv.row(keys.chain(["n", "median", "lo", "hi", "p5", "p95", "mean"]));
    for point in 0..sweep.len() {
        let values = values(runs, point, name);
        let median = Summary::of(&values);
        let interval = median.and_then(|median| median.interval);
        let ends = [
            median.map(|median| median.median),
            interval.map(|interval| interval.lo),
            interval.map(|interval| interval.hi),
            median.map(|median| median.p5),
            median.map(|median| median.p95),
            median.map(|median| median.mean),
        ];
        let numbers = ends.map(|value| value.map_or(String::new(), |value| super::short(value).to_string()));
        let n = values.len().to_string();
        let fields = sweep.values(point).iter().chain([&n]).chain(&numbers);
        csv.row(fields.map(String::as_str));
    }
    csv.finish()
}

/// Returns the sweep as JSON: its axes, points, runs and fingerprint. The fingerprint is null unless every run has one.
/// An infinite value is null.
pub fn json(sweep: &Sweep, runs: &[Done]) -> serde_json::Value {
    let fingerprint = fingerprint(runs).to_string();
    serde_json::json!({
        "sweep": sweep.name,
        "axes": sweep.axes,
        "repetitions": sweep.repetitions,
        "fingerprint": runs.iter().all(|run| run.fingerprint.is_some()).then_some(fingerprint),
        "points": (0..sweep.len()).map(|point| sweep.values(point)).collect::<Vec<_>>(),
        "runs": runs,
    })
}

/// Returns a table of medians with their 95 % confidence intervals, a line about each metric, and the invalid runs.
pub fn text(sweep: &Sweep, runs: &[Done]) -> String {
    let mut out =
        format!("{}: {} points, {} runs of each point\n", sweep.name, sweep.len(), sweep.repetitions);
    out.push_str("each cell: the median of the runs; in brackets the 95 % interval of the median (\"range\": smallest and largest value). No brackets: both limits are equal, \
         or there are fewer than 6 runs\n\n");
    let names = names(runs);
    let keys = sweep.axes.iter().map(|axis| axis.key.as_str());
    let mut table = Table::new(keys.chain(names.iter().copied()));
    for point in 0..sweep.len() {
        let cells = names.iter().map(|name| {
            let cut = metric(name) == STALL && has_no_end(runs, point);
            let more = if cut { ">" } else { "" };
            format!("{more}{}", cell(&values(runs, point, name)))
        });
        table.push(sweep.values(point).iter().cloned().chain(cells));
    }
    out.push_str(&table.render());
    out.push('\n');
    if names.is_empty() {
        out.push_str("nothing was measured: no host of this scenario moved, and no flow was recorded\n");
    }
    for (of, about) in METRICS.iter().filter(|(of, _)| names.iter().any(|name| metric(name) == *of)) {
        let _ = writeln!(out, "{of:20}{about}");
    }
    if (0..sweep.len()).any(|point| has_no_end(runs, point)) {
        let _ = writeln!(
            out,
            "{:20}in at least one of the runs an outage had no end, so the end of the run cut the stall",
            format!("> {STALL}")
        );
    }
    for run in runs.iter().filter(|run| !run.doubts.is_empty()) {
        let at = sweep.values(run.point).join(", ");
        let _ = writeln!(
            out,
            "run not counted: seed {} at {at}: {}",
            run.seed,
            trace::doubt::joined(&run.doubts)
        );
    }
    if runs.iter().all(|run| run.fingerprint.is_some()) {
        let _ = writeln!(out, "fingerprint {}", fingerprint(runs));
    }
    out
}

/// The name of the metric that the end of a run can cut.
const STALL: &str = "longest_stall_ms";

/// Returns whether an outage of a valid run at a point had no end.
fn has_no_end(runs: &[Done], point: usize) -> bool {
    let here = runs.iter().filter(|run| run.point == point && run.doubts.is_empty());
    let outages = here.flat_map(|run| &run.values).filter(|(name, _)| metric(name) == "outage_ms");
    outages.flat_map(|(_, values)| values).any(|value| value.is_infinite())
}

fn cell(values: &[f64]) -> String {
    Summary::of(values).map_or_else(|| "-".to_owned(), |median| median.text(1))
}
