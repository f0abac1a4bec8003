//! The table for people.

use super::carry_out::Comparison;
use super::course::{Move, Workload};
use super::judge::{Broken, verdicts};
use super::measure::{HANDOFF, METRICS, Metric, OUTAGE, OWNERS, STALL};
use super::rows::{Row, rows};
use crate::reproduce::invalid;
use draw::Table;
use std::fmt::Write;

/// All tables, by move and workload; what could not be, and why; what must hold.
pub fn text(comparison: &Comparison) -> String {
    let course = comparison.course;
    let mut out = format!("{}\n", course.about);
    let _ = writeln!(
        out,
        "medians of {}, each with another phase, and in brackets what encloses the median with 95 %",
        match comparison.repetitions {
            1 => "one run".to_owned(),
            n => format!("{n} runs"),
        }
    );
    let all = rows(comparison);
    for each in &course.moves {
        for workload in &course.workloads {
            let here = |row: &&Row| row.r#move == each.name && row.workload == workload.name;
            let here: Vec<&Row> = all.iter().filter(here).collect();
            out.push_str(&leg(comparison, each, workload, &here));
        }
    }
    out.push('\n');
    for metric in METRICS.iter().filter(|metric| metric.name != HANDOFF.name) {
        let _ = writeln!(out, "{:14}  {}", metric.title, metric.about);
    }
    out.push_str(&invalid(&comparison.worlds));
    for (world, why) in &comparison.absent {
        let _ = writeln!(out, "\nnot on {}: {why}", world.name());
    }
    let mut table = Table::new(["verdict", "world", "value", "what must hold", "what the value is"]);
    for verdict in verdicts(comparison) {
        let must_hold = verdict.must_hold;
        table.push([
            verdict.word(),
            verdict.worlds(),
            &value(verdict.value),
            must_hold.text,
            must_hold.value,
        ]);
    }
    let _ = write!(out, "\nmust hold\n{}", table.render());
    out
}

fn leg(comparison: &Comparison, each: &Move, workload: &Workload, here: &[&Row]) -> String {
    let mut out = format!("\n{}, {}: {}; {}\n\n", each.name, workload.name, each.about, workload.about);
    let measured = |metric: &&Metric| {
        let mut rows = here.iter().filter(|row| row.metric == **metric);
        rows.any(|row| row.median.is_some()) && metric.name != HANDOFF.name
    };
    let metrics: Vec<&Metric> = METRICS.iter().filter(measured).collect();
    let heads = metrics.iter().map(|metric| format!("{} {}", metric.title, metric.unit));
    out.push_str(&table(comparison, here, heads, |of| {
        metrics.iter().map(|metric| cell(of, metric)).collect()
    }));
    out.push_str(&reasons(comparison, here));
    let has = |owner: &&Metric| {
        let mut rows = here.iter().filter(|row| row.metric == **owner);
        rows.any(|row| row.median.is_some_and(|median| median.median > 0.0))
    };
    let owners: Vec<&Metric> = OWNERS.iter().filter(has).collect();
    if !owners.is_empty() {
        out.push_str("\noutage by owner, ms\n\n");
        let heads = owners.iter().map(|owner| owner.title.to_owned());
        let only = |of: &dyn Fn(&Metric) -> Option<Row>, owner: &Metric| {
            let median = of(owner).and_then(|row| row.median);
            median.map_or("-".to_owned(), |median| format!("{:.1}", median.median))
        };
        out.push_str(&table(comparison, here, heads, |of| {
            owners.iter().map(|owner| only(of, owner)).collect()
        }));
    }
    out
}

/// A row for each contender and world that has anything to say.
fn table(
    comparison: &Comparison,
    here: &[&Row],
    heads: impl Iterator<Item = String>,
    cells: impl Fn(&dyn Fn(&Metric) -> Option<Row>) -> Vec<String>,
) -> String {
    let mut table = Table::new(["protocol".to_owned(), "world".to_owned()].into_iter().chain(heads));
    for who in comparison.wanted.iter().filter_map(|who| comparison.course.contenders.get(*who)) {
        for results in &comparison.worlds {
            let ours = |row: &&&Row| row.protocol == who.name && row.world == results.world;
            let of = |metric: &Metric| {
                let row = here.iter().filter(ours).find(|row| row.metric == *metric)?;
                Some((*row).clone())
            };
            let mut row = vec![who.title.clone(), results.world.name().to_owned()];
            if of(&OUTAGE).is_some_and(|row| row.median.is_none() && row.why_not.is_some()) {
                row.push("cannot".to_owned());
            } else {
                row.extend(cells(&of));
            }
            table.push(row);
        }
    }
    table.render()
}

fn cell(of: &dyn Fn(&Metric) -> Option<Row>, metric: &Metric) -> String {
    let Some(median) = of(metric).and_then(|row| row.median) else { return "-".to_owned() };
    let never = of(&OUTAGE).and_then(|row| row.median).is_some_and(|median| median.median.is_infinite());
    let more = if never && metric.name == STALL.name { ">" } else { "" };
    format!("{more}{}", median.text(metric.digits))
}

/// Why a contender cannot, or never recovers.
fn reasons(comparison: &Comparison, here: &[&Row]) -> String {
    let mut out = String::new();
    for who in comparison.wanted.iter().filter_map(|who| comparison.course.contenders.get(*who)) {
        let ours = |row: &&&Row| row.protocol == who.name && row.metric == OUTAGE;
        let mut said: Vec<&str> = Vec::new();
        for row in here.iter().filter(ours) {
            let Some(why) = row.why_not.as_deref().filter(|why| !said.contains(why)) else { continue };
            let word = if row.median.is_some() { "never" } else { "cannot" };
            let _ = writeln!(out, "  {} {word}: {why}", who.title);
            said.push(why);
        }
    }
    out
}

/// What each breaker did.
pub fn self_test_text(tests: &[Broken]) -> String {
    let mut table = Table::new(["breaker", "value without", "value with it", "what no longer holds", "set"]);
    for test in tests {
        let word = match (test.broke(), test.whole.holds) {
            (true, _) => "broke it",
            (false, false) => "DID NOT HOLD BEFORE",
            (false, true) => "STILL HOLDS",
        };
        let (whole, with) = (value(test.whole.value), value(test.check.value));
        table.push([word, &whole, &with, test.must_hold.text, &test.set]);
    }
    format!("compare: self-test, in the simulator\n{}", table.render())
}

fn value(value: Option<f64>) -> String {
    value.map_or("nothing measured".to_owned(), |value| format!("{value}"))
}
