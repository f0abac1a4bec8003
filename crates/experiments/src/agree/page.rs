//! The page docs/agreement.md: recorded measurements and their evaluation, as Markdown.

use super::error_rates::{DIFFERENT, Pair, SAME, differs};
use super::text::{counts, distance, number, worst};
use super::{Agreement, DISTANCE, LEAST, Recorded, Report, Row, SHARE, report};
use crate::batch::metric;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The columns of the table: a metric and its title.
const COLUMNS: [(&str, &str); 4] = [
    ("outage_ms", "outage, ms"),
    ("longest_stall_ms", "longest stall, ms"),
    ("goodput_kbps", "goodput, kb/s"),
    ("lost_packets", "lost packets"),
];

/// Returns the page as Markdown: the recorded measurements and their evaluation.
pub fn page(recorded: &Recorded) -> String {
    let reports: Vec<Report> = recorded.all().iter().map(report).collect();
    let mut out = head(recorded);
    let _ = writeln!(out, "**{}.**\n", counts(&reports));
    let heads: Vec<&str> = COLUMNS.iter().map(|(_, head)| *head).collect();
    let _ = writeln!(out, "| scenario | n | {} | |", heads.join(" | "));
    let _ = writeln!(out, "|---|---|{}---|", "---|".repeat(COLUMNS.len()));
    for report in &reports {
        for (place, kind) in kinds(report).into_iter().enumerate() {
            out.push_str(&row(report, kind, place == 0));
        }
    }
    out.push_str("\nDifferences and their causes:\n\n");
    for report in reports.iter().filter(|report| report.agreement == Agreement::Differs) {
        let cause = report.cause.unwrap_or("not known");
        let _ = writeln!(out, "- `{}`: {}. Cause: {cause}.", report.scenario, worst(report));
    }
    let open: Vec<String> = reports
        .iter()
        .filter(|report| report.agreement == Agreement::Inconclusive)
        .map(|report| format!("`{}`", report.scenario))
        .collect();
    if !open.is_empty() {
        let _ = writeln!(out, "\nInconclusive, with too few valid values: {}.", open.join(", "));
    }
    out.push_str("\nA value that *differs* is valid only for the backend on which it was measured.\n");
    out + &error_rates()
}

const TITLE: &str = "# Agreement of the two backends";

/// Returns whether a text is an earlier output of [`page`], so that it may be overwritten.
pub fn is_page(text: &str) -> bool {
    text.strip_prefix(TITLE).is_some_and(|rest| rest.trim_start().starts_with("Generated from"))
}

fn head(recorded: &Recorded) -> String {
    let all = recorded.all();
    let kernels: BTreeSet<&str> = all.iter().map(|measured| measured.kernel.as_str()).collect();
    let of = |runs: BTreeSet<u64>| runs.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
    let sim = of(all.iter().map(|measured| measured.sim.of).collect());
    let linux = of(all.iter().map(|measured| measured.linux.of).collect());
    let untrusted: usize = all.iter().map(|measured| measured.linux.untrusted().len()).sum();
    format!(
        "{TITLE}\n\n\
         Generated from `docs/agreement.linux.json` by `wayfare agree --from docs/agreement.linux.json --write-table\n\
         docs/agreement.md`; `--simulate-again` runs the simulator's part again, and `wayfare agree --out DIR` measures everything. A\n\
         test compares this page with the record, and the first recorded run of each scenario with the simulator.\n\n\
         {sim} runs in the simulator, {linux} on Linux (kernel {}), at stratified phases. {untrusted} runs on Linux are\n\
         invalid: each has a doubt, for example the host was too busy, or a packet is unaccounted for. *n* counts the valid runs on Linux.\n\
         With fewer than {LEAST} valid runs a metric is *inconclusive*.\n\n\
         Each cell: median in the simulator / median on Linux, then the Kolmogorov-Smirnov distance. This is the distance between the\n\
         valid runs on Linux and the simulator's runs at the same phases; values within 2 ms (outage, stall) or 1 % (goodput) count as\n\
         equal. A metric agrees if this distance is at most {DISTANCE} and the means are within {:.0} % or the metric's allowance: 20 ms\n\
         for outage and stall, 1 for lost packets. A metric that only one backend has differs.\n\n",
        kernels.into_iter().collect::<Vec<_>>().join(", "),
        SHARE * 100.0
    )
}

/// Returns the kinds of handoffs that have separate rows. If there are none, returns one empty name.
fn kinds(report: &Report) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in report.rows.iter().filter_map(|row| Some(row.metric.split_once('.')?.1)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() { vec![""] } else { kinds }
}

/// Returns the row of a scenario and one kind of handoff. `is_first`: the row is the scenario's first, which also has
/// the metrics of whole runs, the number of runs and the verdict.
fn row(report: &Report, kind: &str, is_first: bool) -> String {
    let cells = COLUMNS.iter().map(|(of, _)| {
        let here = |row: &&Row| match row.metric.split_once('.') {
            Some((_, other)) => other == kind,
            None => is_first,
        };
        let row = report.rows.iter().filter(|row| metric(&row.metric) == *of).find(here);
        row.map_or_else(String::new, cell)
    });
    let cells: Vec<String> = cells.collect();
    let name = if kind.is_empty() { String::new() } else { format!(", {kind}") };
    let (n, word) =
        if is_first { (report.counted[1].to_string(), report.agreement.name()) } else { (String::new(), "") };
    format!("| `{}`{name} | {n} | {} | {word} |\n", report.scenario, cells.join(" | "))
}

fn cell(row: &Row) -> String {
    let [sim, linux] = row.medians.map(number);
    let text = format!("{sim} / {linux}, {}", distance(row.judged_distance));
    match row.agreement {
        Agreement::Agrees => text,
        Agreement::Inconclusive => format!("{text} (inconclusive)"),
        Agreement::Differs => format!("{text} **differs**"),
    }
}

/// Describes how often the rule for agreement is wrong.
fn error_rates() -> String {
    let mut out = "\n## How often the rule is wrong\n\n\
         The rule for outages is applied to two random samples, in 1000 trials. In the second sample, phases are up to 2 ms later and\n\
         outages up to 2 ms longer, as they can be on Linux. The tables have the share of trials with the result *differs*.\n\n\
         | outages of both samples | 12 runs each | 40 runs each |\n|---|---|---|\n"
        .to_owned();
    let row = |pair: &Pair| {
        let [few, many] = [12, 40].map(|n| differs(pair, n));
        format!("| {} | {few:.1} % | {many:.1} % |\n", pair.text)
    };
    out.extend(SAME.iter().map(row));
    out.push_str(
        "\n| outages of the two samples, at the same phases | 12 runs each | 40 runs each |\n|---|---|---|\n",
    );
    out.extend(DIFFERENT.iter().map(row));
    out.push_str(
        "\nAt random phases, samples of one distribution often differ by this rule. So both backends run at the same phases.\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn docs() -> PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    }

    /// Returns the recorded measurements, or `None` if there is no file.
    fn recorded() -> Option<Recorded> {
        match std::fs::read_to_string(docs().join("agreement.linux.json")) {
            Ok(text) => Some(Recorded::read(&text).unwrap()),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "docs/agreement.linux.json: {error}");
                None
            }
        }
    }

    /// docs/agreement.md is the page of docs/agreement.linux.json. `wayfare agree --from docs/agreement.linux.json
    /// --write-table docs/agreement.md` rewrites it.
    #[test]
    fn the_page_is_what_is_recorded() {
        let then = std::fs::read_to_string(docs().join("agreement.md")).unwrap();
        let Some(recorded) = recorded() else {
            assert!(
                !is_page(&then),
                "docs/agreement.md is generated from docs/agreement.linux.json, which is missing"
            );
            return;
        };
        let now = page(&recorded);
        let differs = then.lines().zip(now.lines()).find(|(then, now)| then != now);
        assert!(then == now, "docs/agreement.md: {differs:?}");
    }

    /// The simulator's first run of each scenario has the recorded fingerprint. Otherwise, `wayfare agree --from
    /// docs/agreement.linux.json --simulate-again --write-table docs/agreement.md` measures again and rewrites the
    /// page.
    #[test]
    fn the_simulator_gives_what_is_recorded_of_it() {
        for measured in recorded().iter().flat_map(Recorded::all) {
            let name = measured.scenario();
            let scenario = measured.repeated().unwrap();
            let outcome = recorder::run::simulate(scenario.plan(0, measured.sim.of).unwrap()).unwrap();
            let fingerprint = outcome.fingerprint.unwrap();
            assert!(measured.has_fingerprint(fingerprint), "{name}: the simulator gives something else now");
        }
    }
}
