//! The table of all published numbers, as Markdown.

use super::published::{Estimate, Judged, Statistic, counts, judged};
use super::{Metric, Recorded, Report};
use recorder::run::Backend;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Returns the table of all published numbers of these reports with their verdicts. Recorded values fill the Linux
/// column of a report without Linux results.
pub fn table(reports: &[Report], recorded: Option<&Recorded>) -> String {
    let all = with_recorded(reports, recorded);
    let scale = reports.first().map_or("", |report| report.scale.name());
    let mut out = head(scale, recorded, &medians(&all));
    let _ = writeln!(out, "**{}.**\n", counts(all.iter().map(|(_, judged)| judged)));
    out.push_str("| paper | figure | point, metric | published | tolerance | simulator | Linux | verdict |\n|---|---|---|---|---|---|---|---|\n");
    for (report, judged) in &all {
        let _ = writeln!(out, "{}", row(report, judged));
    }
    out.push_str("\nRemarks on numbers whose verdict is not *reproduced*, is weak, or differs between the backends:\n\n");
    for (why, numbers) in grouped(&all, reason) {
        let _ = writeln!(out, "- {}: {why}.", numbers.join("; "));
    }
    out.push_str("\nThe sources of the tolerances:\n\n");
    for (from, numbers) in grouped(&all, |judged| Some(judged.published.tolerance_from.to_owned())) {
        let _ = writeln!(out, "- {from}: {}.", numbers.join("; "));
    }
    out
}

/// Returns the short form of the table: the number of each verdict by experiment.
pub fn short(reports: &[Report], recorded: Option<&Recorded>) -> String {
    let all = with_recorded(reports, recorded);
    let mut out = "| experiment | numbers | reproduced | of them weak | shape | not reproduced |\n|---|---|---|---|---|---|\n".to_owned();
    for report in reports {
        let here = all.iter().filter(|(of, _)| of.experiment.id == report.experiment.id);
        let counts = counts(here.map(|(_, judged)| judged));
        let [reproduced, shape, not] = counts.words;
        let (experiment, sum) = (report.experiment, reproduced + shape + not);
        let _ = writeln!(
            out,
            "| `{}`, {} | {sum} | {reproduced} | {} | {shape} | {not} |",
            experiment.id, experiment.paper, counts.weak
        );
    }
    out
}

/// Returns every published number of the reports. Recorded values are added to reports without Linux results.
fn with_recorded<'a>(reports: &'a [Report], recorded: Option<&Recorded>) -> Vec<(&'a Report, Judged<'a>)> {
    let mut all: Vec<(&Report, Judged<'_>)> = Vec::new();
    for report in reports {
        for mut judged in judged(report) {
            if report.results(Backend::Linux).is_none() {
                judged.on.extend(recorded.and_then(|recorded| recorded.find(report.experiment.id, &judged)));
            }
            all.push((report, judged));
        }
    }
    all
}

const TITLE: &str = "# What is reproduced";

/// Returns whether a text is an earlier output of [`table`], so that it may be overwritten.
pub fn is_table(text: &str) -> bool {
    text.strip_prefix(TITLE)
        .is_some_and(|rest| rest.trim_start().starts_with("Generated: `wayfare reproduce"))
}

/// Returns the names of the metrics whose values are medians.
fn medians(all: &[(&Report, Judged<'_>)]) -> String {
    let medians =
        all.iter().map(|(_, judged)| judged.metric).filter(|one| one.statistic == Statistic::Median);
    let names: BTreeSet<String> = medians.map(|metric| format!("`{}`", metric.name)).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn head(scale: &str, recorded: Option<&Recorded>, medians: &str) -> String {
    let linux = recorded.map_or("there is no record of Linux".to_owned(), |recorded| {
        format!("the Linux column was recorded with kernel {}, scale {}", recorded.kernel, recorded.scale)
    });
    format!(
        "{TITLE}\n\n\
         Generated: `wayfare reproduce --quick --on sim --write-table docs/reproduced.md`; with `--on both`, Linux is measured\n\
         again and recorded in `docs/reproduced.linux.json`. A test compares this page with the simulator.\n\n\
         *Reproduced*: the value is within the tolerance. *Weak*: a 95 % interval exceeds the tolerance on both sides, or there is none, so\n\
         another value may be the true one. *Shape*: the value differs, but the number is part of a series (a slope, a ratio, an order),\n\
         and each must-hold about that series holds. *Not reproduced*: neither; a single number has no shape. The verdict is the worse one\n\
         of the two backends; `-` means that there is no valid value. Values are means with 95 % intervals; of these metrics, they are\n\
         medians: {medians}.\n\
         `range` is the smallest and the largest value. The simulator's column has scale {scale};\n\
         {linux}.\n\n"
    )
}

fn row(report: &Report, judged: &Judged<'_>) -> String {
    let on = |backend| {
        let on = judged.on.iter().find(|on| on.backend == backend);
        on.and_then(|on| on.estimate).map_or("-".to_owned(), |each| value(each, judged.metric))
    };
    let published = judged.published;
    format!(
        "| {} | {} | {}, {} | {:.*} | {} | {} | {} | {} |",
        report.experiment.paper,
        published.figure,
        judged.point.label,
        judged.metric.name,
        judged.metric.digits,
        published.value,
        tolerance(published.tolerance),
        on(Backend::Sim),
        on(Backend::Linux),
        judged.verdict(),
    )
}

/// Returns a tolerance with at most four decimals, without trailing zeros.
pub(super) fn tolerance(tolerance: f64) -> String {
    let text = format!("{tolerance:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a value with its interval and n, as text.
pub(super) fn value(estimate: Estimate, metric: &Metric) -> String {
    let digits = metric.digits;
    let interval = estimate.interval.map_or(String::new(), |interval| {
        let word = if interval.is_range { "range " } else { "" };
        format!("{word}{}..{}, ", number(interval.lo, digits), number(interval.hi, digits))
    });
    format!("{} ({interval}n = {})", number(estimate.value, digits), estimate.n)
}

/// Returns a value as text, or `-` if it is infinite: then runs have no value, for example no ratio of two intervals.
pub(super) fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

fn reason(judged: &Judged<'_>) -> Option<String> {
    judged.why()
}

/// Groups numbers with the same text, in the order of the first number of each group.
fn grouped(
    all: &[(&Report, Judged<'_>)],
    of: impl Fn(&Judged<'_>) -> Option<String>,
) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (_, judged) in all {
        let Some(text) = of(judged) else { continue };
        let name = format!("{}, {}", judged.point.label, judged.metric.name);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups
}
