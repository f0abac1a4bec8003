//! Agreement as a table, as a figure, and for programs.

use super::{Agreement, COMPARED, DISTANCE, LEAST, Report, Resolution, SHARE};
use crate::batch::{Collected, axis, metric};
use crate::stats;
use draw::{Csv, DistributionFigure, DistributionPanel, Sample, Style, Table};
use std::fmt::Write;

/// One table for all scenarios, and what its columns mean.
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
        "judged KS",
        "result",
    ]);
    for report in reports {
        for row in &report.rows {
            let [sim, linux] = row.n.map(|n| n.to_string());
            let number = |value: f64| stats::number(value, 1);
            let [median_sim, median_linux] = row.medians.map(number);
            let [mean_sim, mean_linux] = row.means.map(number);
            let difference = row.difference.as_ref().map_or_else(
                || "-".to_owned(),
                |all| format!("{} ({}..{})", number(all.value), number(all.lo), number(all.hi)),
            );
            table.push([
                report.scenario.clone(),
                row.metric.clone(),
                sim,
                linux,
                median_sim,
                median_linux,
                difference,
                format!("{:.2}", row.distance),
                mean_sim,
                mean_linux,
                format!("{:.2}", row.judged_distance),
                row.agreement.name().to_owned(),
            ]);
        }
    }
    let mut out = table.render();
    out.push('\n');
    for report in reports {
        let _ = writeln!(out, "{}", line(report));
    }
    let _ = writeln!(
        out,
        "\nmean, judged KS: the simulator at the same phases as the runs on Linux that count; the rest: all runs\n\
         agrees: judged Kolmogorov-Smirnov distance at most {DISTANCE}, and means within {:.0} % or the metric's allowance",
        SHARE * 100.0
    );
    for compared in COMPARED {
        let resolution = match compared.resolution {
            Resolution::Absolute(value) => stats::number(value, 0),
            Resolution::Relative(share) => format!("{:.0} % of the median", share * 100.0),
        };
        let _ = writeln!(
            out,
            "{:20}allowance {}, and for the judged distance values within {resolution} are equal",
            compared.metric,
            stats::number(compared.allowance, 0)
        );
    }
    let _ = writeln!(out, "inconclusive: fewer than {LEAST} runs of a backend can be trusted");
    out
}

/// What became of a scenario, in one line.
fn line(report: &Report) -> String {
    let worst = report.rows.iter().filter(|row| row.agreement == Agreement::Differs);
    let worst = worst.max_by(|a, b| a.judged_distance.total_cmp(&b.judged_distance));
    let [runs_sim, runs_linux] = report.runs;
    let mut line = format!("{}: {}", report.scenario, report.agreement.name());
    if let Some(row) = worst {
        let cause = report.cause.unwrap_or("cause not known");
        let _ = write!(line, ", {} at distance {:.2}; {cause}", row.metric, row.judged_distance);
    }
    let _ = write!(line, " ({runs_sim} runs in the simulator, {runs_linux} on Linux");
    let untrusted: usize = report.untrusted.iter().map(Vec::len).sum();
    if untrusted > 0 {
        let _ = write!(line, ", {untrusted} of them not to be trusted and not counted");
    }
    line + ")"
}

/// A row for each metric of each scenario.
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
    ]);
    for report in reports {
        for row in &report.rows {
            let [n_sim, n_linux] = row.n.map(|n| n.to_string());
            let [median_sim, median_linux] = row.medians.map(|value| value.to_string());
            let [mean_sim, mean_linux] = row.means.map(|value| value.to_string());
            csv.row([
                report.scenario.as_str(),
                &row.metric,
                &n_sim,
                &n_linux,
                &median_sim,
                &median_linux,
                &mean_sim,
                &mean_linux,
                &row.distance.to_string(),
                &row.judged_distance.to_string(),
                row.agreement.name(),
            ]);
        }
    }
    csv.finish()
}

/// The distributions of both backends, a panel for each metric.
pub fn figure(scenario: &str, results: [&Collected; 2]) -> DistributionFigure {
    let mut panels: Vec<DistributionPanel> = Vec::new();
    for (style, results) in [Style::Simulator, Style::Linux].into_iter().zip(results) {
        for name in results.names().filter(|name| COMPARED.iter().any(|of| of.metric == metric(name))) {
            let (of, kind) = name.split_once('.').unwrap_or((name, ""));
            let sample = Sample::new(
                if kind.is_empty() { scenario } else { kind },
                style,
                results.values(name).to_vec(),
            );
            match panels.iter_mut().find(|panel| panel.title == of) {
                Some(panel) => panel.samples.push(sample),
                None => panels.push(DistributionPanel {
                    title: of.to_owned(),
                    axis: axis(of),
                    samples: vec![sample],
                }),
            }
        }
    }
    DistributionFigure {
        title: format!("{scenario}: both backends, each run at other phases"),
        panels,
        caption: "One value a run: the median of its handoffs.".to_owned(),
    }
}
