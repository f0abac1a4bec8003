//! Agreement as a table, as a figure, as CSV and as JSON.

use super::sample::Cell;
use super::{Agreement, COMPARED, DISTANCE, LEAST, Report, Resolution, Row, SHARE, Sample};
use crate::batch::{add, metric};
use crate::stats::{self, Difference};
use draw::{Csv, DistributionFigure, DistributionPanel, Style, Table};
use serde_json::{Value, json as object};
use std::fmt::Write;

/// Returns one table for all scenarios, followed by the verdict on each scenario, the numbers of verdicts, and the
/// meaning of the columns.
pub fn text(reports: &[Report]) -> String {
    let mut table = Table::new([
        "scenario",
        "metric",
        "n sim",
        "n Linux",
        "median sim",
        "median Linux",
        "difference (95 %)",
        "KS",
        "mean sim",
        "mean Linux",
        "compared KS",
        "result",
    ]);
    for report in reports {
        for row in &report.rows {
            let [sim, linux] = row.n.map(|n| n.to_string());
            let [median_sim, median_linux] = row.medians.map(number);
            let [mean_sim, mean_linux] = row.means.map(number);
            table.push([
                report.scenario.clone(),
                row.metric.clone(),
                sim,
                linux,
                median_sim,
                median_linux,
                row.difference.as_ref().map_or_else(|| "-".to_owned(), difference),
                distance(row.distance),
                mean_sim,
                mean_linux,
                distance(row.judged_distance),
                result(row),
            ]);
        }
    }
    let mut out = table.render();
    out.push('\n');
    for report in reports {
        let _ = writeln!(out, "{}", line(report));
    }
    let _ = writeln!(out, "{}", counts(reports));
    out + "\n" + &rules()
}

/// Returns a line with the number of scenarios for each verdict.
pub(super) fn counts(reports: &[Report]) -> String {
    let count = |agreement| reports.iter().filter(|report: &&Report| report.agreement == agreement).count();
    format!(
        "scenarios: {} agree, {} differ, {} inconclusive",
        count(Agreement::Agrees),
        count(Agreement::Differs),
        count(Agreement::Inconclusive)
    )
}

/// Returns the rule for agreement in one line.
pub(crate) fn rule() -> String {
    format!(
        "agrees: compared Kolmogorov-Smirnov distance at most {DISTANCE}, and means within {:.0} % or the metric's allowance",
        SHARE * 100.0
    )
}

/// Describes which runs the columns of the table use, and the limits of agreement.
fn rules() -> String {
    let mut out = format!(
        "values in the unit of the metric's name; difference: of the medians, Linux minus simulator, with its 95 % interval\n\
         KS: Kolmogorov-Smirnov distance, 0 to 1; mean, compared KS: the simulator at the same phases as the valid runs on Linux; \
         other columns: all valid runs\n{}\n",
        rule()
    );
    for compared in COMPARED {
        let resolution = match compared.resolution {
            Resolution::Absolute(value) => stats::number(value, 0),
            Resolution::Relative(share) => format!("{:.0} % of the larger median", share * 100.0),
        };
        let _ = writeln!(
            out,
            "{:20}allowance of the means {}; in compared KS, values that differ by at most {resolution} are equal",
            compared.metric,
            stats::number(compared.allowance, 0)
        );
    }
    // The line is below every table, also if all scenarios agree. So it must not begin with the word of a verdict.
    let _ = writeln!(
        out,
        "a metric is inconclusive if fewer than {LEAST} runs of a backend are valid; otherwise it differs if the shares of runs that \
         have it differ by more than {DISTANCE}, and is inconclusive if fewer than {LEAST} runs of a backend have it"
    );
    out
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| stats::number(value, 1))
}

pub(crate) fn distance(distance: Option<f64>) -> String {
    distance.map_or_else(|| "-".to_owned(), |distance| format!("{distance:.2}"))
}

/// Returns the difference of the medians and its 95 % confidence interval as text. An infinite difference is `never on
/// Linux` or `never in sim`.
fn difference(all: &Difference) -> String {
    let end = |value: f64| match value {
        f64::INFINITY => "never on Linux".to_owned(),
        f64::NEG_INFINITY => "never in sim".to_owned(),
        value => stats::number(value, 1),
    };
    let [value, lo, hi] = [all.value, all.lo, all.hi].map(end);
    if lo == hi { value } else { format!("{value} ({lo}..{hi})") }
}

/// Returns the verdict on a metric as text, with the note of the row if there is one.
fn result(row: &Row) -> String {
    let note = row.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
    format!("{}{note}", row.agreement.name())
}

/// Returns the verdict on a scenario as one line.
fn line(report: &Report) -> String {
    let [runs_sim, runs_linux] = report.runs;
    let mut line = format!("{}: {}", report.scenario, report.agreement.name());
    if report.agreement == Agreement::Differs {
        let _ = write!(line, ", {}; {}", worst(report), report.cause.unwrap_or("cause not known"));
    }
    let _ = write!(line, " ({runs_sim} runs in the simulator, {runs_linux} on Linux");
    let untrusted: usize = report.untrusted.iter().map(Vec::len).sum();
    if untrusted > 0 {
        let _ = write!(line, ", {untrusted} of them invalid and not counted");
    }
    line + ")"
}

/// Describes each metric that differs: its note, or its distance and means.
pub(super) fn worst(report: &Report) -> String {
    let differs = report.rows.iter().filter(|row| row.agreement == Agreement::Differs);
    let of = |row: &Row| match &row.note {
        Some(note) => format!("{} {note}", row.metric),
        None => {
            let [sim, linux] = row.means.map(number);
            format!(
                "{} at Kolmogorov-Smirnov distance {}, means {sim} in the simulator and {linux} on Linux",
                row.metric,
                distance(row.judged_distance)
            )
        }
    };
    differs.map(of).collect::<Vec<_>>().join("; ")
}

/// Returns the reports as CSV, with a row for each compared metric of each scenario. An infinite value is `inf`; a
/// value that was not measured is empty.
pub fn csv(reports: &[Report]) -> String {
    let mut csv = Csv::default();
    csv.row([
        "scenario",
        "metric",
        "n_sim",
        "n_linux",
        "median_sim",
        "median_linux",
        "mean_sim",
        "mean_linux",
        "ks",
        "judged_ks",
        "result",
        "note",
    ]);
    for report in reports {
        for row in &report.rows {
            let [n_sim, n_linux] = row.n.map(|n| n.to_string());
            let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let [median_sim, median_linux] = row.medians.map(number);
            let [mean_sim, mean_linux] = row.means.map(number);
            csv.row([
                report.scenario.as_str(),
                &row.metric,
                &n_sim,
                &n_linux,
                &median_sim,
                &median_linux,
                &mean_sim,
                &mean_linux,
                &number(row.distance),
                &number(row.judged_distance),
                row.agreement.name(),
                row.note.as_deref().unwrap_or_default(),
            ]);
        }
    }
    csv.finish()
}

/// Returns all reports as JSON. In `medians` and `means`, an infinite value is `"never"`, and a value that was not
/// measured is null. An infinite difference is null.
pub fn json(reports: &[Report]) -> Value {
    let value = |value: Option<f64>| object!(Cell::from(value));
    let row = |row: &Row| {
        object!({
            "metric": row.metric,
            "n": row.n,
            "medians": row.medians.map(value),
            "means": row.means.map(value),
            "difference": row.difference,
            "distance": row.distance,
            "judged_distance": row.judged_distance,
            "agreement": row.agreement.name(),
            "note": row.note,
        })
    };
    let report = |report: &Report| {
        object!({
            "scenario": report.scenario,
            "runs": report.runs,
            "counted": report.counted,
            "untrusted": report.untrusted,
            "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
            "agreement": report.agreement.name(),
            "cause": report.cause,
        })
    };
    reports.iter().map(report).collect()
}

/// Returns the figure of the distributions in `samples` (simulator, Linux), with a panel for each compared metric.
pub fn figure(scenario: &str, samples: [&Sample; 2]) -> DistributionFigure {
    let mut panels: Vec<DistributionPanel> = Vec::new();
    for (style, sample) in [Style::Simulator, Style::Linux].into_iter().zip(samples) {
        for name in
            sample.names().into_iter().filter(|name| COMPARED.iter().any(|of| of.metric == metric(name)))
        {
            add(&mut panels, name, scenario, style, &sample.values(name));
        }
    }
    DistributionFigure {
        title: format!("{scenario}: both backends, each run at a different phase"),
        panels,
        caption: "One value per run. For a metric per handoff, it is the median of the run's handoffs."
            .to_owned(),
    }
}
