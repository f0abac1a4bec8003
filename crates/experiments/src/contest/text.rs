//! The comparison as text.

use super::agreement::{Both, Claim};
use super::carry_out::{Comparison, NOT_ON_LINUX, Repeat, is_narrow};
use super::course::{Leg, Move, Workload};
use super::judge::{Broken, verdicts};
use super::measure::{HANDOFF, METRICS, Metric, OUTAGE, OWNERS};
use super::pairs::{pair, pairs};
use super::rows::{LOWER_BOUND, Row, rows};
use super::runs::values;
use crate::agree::{self, Agreement, Report};
use crate::reproduce::invalid;
use crate::stats::median;
use draw::Table;
use recorder::run::Backend;
use std::cmp::Ordering;
use std::fmt::Write;

/// Returns the text of a comparison: the tables of each move and workload, then the properties that must hold, with
/// their verdicts. The text below a table names each protocol that cannot make the move, with the reason.
pub fn text(comparison: &Comparison) -> String {
    let course = comparison.course;
    let mut out = format!("{}\n", course.about);
    out.push_str(&repetitions(comparison));
    let all = rows(comparison);
    for (how, each) in course.moves.iter().enumerate() {
        for (load, workload) in course.workloads.iter().enumerate() {
            let here = |row: &&Row| row.r#move == each.name && row.workload == workload.name;
            let here: Vec<&Row> = all.iter().filter(here).collect();
            out.push_str(&leg(comparison, each, workload, &here));
            out.push_str(&order(comparison, how, load));
            if let Some(both) = Both::of(comparison) {
                out.push_str(&agreement(comparison, &both, how, load));
            }
        }
    }
    out.push('\n');
    let wanted = course.contenders.iter().enumerate().filter(|(at, _)| comparison.wanted.contains(at));
    for (_, contender) in wanted.filter(|(_, contender)| contender.variant) {
        let _ = writeln!(out, "{}: {}", contender.title, contender.about);
    }
    out.push('\n');
    for metric in METRICS.iter().filter(|metric| metric.name != HANDOFF.name) {
        let _ = writeln!(out, "{:14}  {}", metric.title, metric.about);
    }
    let _ = writeln!(
        out,
        "not told apart  the 95 % interval of the median difference of outages at the same phase contains 0, or n < 6"
    );
    let _ = writeln!(
        out,
        "A < B, C        A has a shorter outage than B and than C, and is told apart from both; the line `not told apart` says whether B and C are"
    );
    if Both::of(comparison).is_some() {
        let _ = writeln!(
            out,
            "both backends   KS and means are of runs at the same phases; KS: Kolmogorov-Smirnov distance, 0 to 1; {}",
            agree::rule()
        );
    }
    out.push_str(&invalid(&comparison.backends));
    for (backend, why) in &comparison.absent {
        let _ = writeln!(out, "\nnot measured on {}: {why}", backend.name());
    }
    let mut table = Table::new(["verdict", "backend", "value", "statement", "meaning of the value"]);
    for verdict in verdicts(comparison) {
        let must_hold = verdict.must_hold;
        table.push([
            verdict.word(),
            verdict.backends(),
            &value(verdict.value),
            must_hold.text,
            must_hold.value,
        ]);
    }
    let _ = write!(out, "\nmust hold\n{}", table.render());
    out
}

/// Describes the number of runs and the meaning of the brackets.
fn repetitions(comparison: &Comparison) -> String {
    let fixed = |runs: usize| if runs == 1 { "one run".to_owned() } else { format!("{runs} runs") };
    let mut out =
        "medians of n runs, each at a different phase, with the 95 % confidence interval of the median in brackets; no brackets: fewer than 6 runs, or \
         both limits of the interval are equal\n"
            .to_owned();
    for results in &comparison.backends {
        let _ = match (comparison.repeat, results.backend) {
            (Repeat::UntilNarrow(_), Backend::Sim) => writeln!(
                out,
                "sim: 10, 20 or 40 runs of each leg, until the 95 % interval of each median outage is narrower than 15 % of the median"
            ),
            (Repeat::UntilNarrow(runs), Backend::Linux) => writeln!(
                out,
                "linux: {} of each leg, whatever the width of its interval; `--runs N` makes N runs",
                fixed(runs)
            ),
            (Repeat::Fixed(runs), backend) => {
                writeln!(
                    out,
                    "{}: {} of each leg, whatever the width of its interval",
                    backend.name(),
                    fixed(runs)
                )
            }
        };
    }
    out
}

/// Returns, for each backend, the order of the protocols by outage, and which of them are not told apart or have a wide
/// interval.
fn order(comparison: &Comparison, each: usize, workload: usize) -> String {
    let course = comparison.course;
    let title =
        |leg: &Leg| course.contenders.get(leg.contender).map_or("", |contender| contender.title.as_str());
    let all = pairs(comparison);
    let mut out = String::new();
    for results in &comparison.backends {
        let here = |leg: &&Leg| {
            leg.r#move == each && leg.workload == workload && comparison.wanted.contains(&leg.contender)
        };
        let outages = course.legs.iter().filter(here).map(|leg| (leg, values(results, leg, OUTAGE.name)));
        let outages: Vec<(&Leg, Vec<f64>)> = outages.filter(|(_, values)| !values.is_empty()).collect();
        let medians = outages.iter().filter_map(|(leg, values)| Some((median(values)?, *leg)));
        let medians: Vec<(f64, &Leg)> = medians.collect();
        if medians.len() < 2 {
            continue;
        }
        let order = ranks(medians, title, |a, b| pair(results, a, b).order() == Some(Ordering::Less));
        let mine = all.iter().filter(|pair| pair.backend == results.backend && pair.legs.iter().all(here));
        let blurred: Vec<String> = mine
            .filter(|pair| pair.order().is_none())
            .map(|pair| pair.legs.map(title).join(" and "))
            .collect();
        let backend = results.backend.place();
        let _ = writeln!(out, "  {backend}, by outage: {order}");
        if !blurred.is_empty() {
            let _ = writeln!(out, "  {backend}, not told apart: {}", blurred.join("; "));
        }
        let wide: Vec<&str> =
            outages.iter().filter(|(_, values)| !is_narrow(values)).map(|(leg, _)| title(leg)).collect();
        if !wide.is_empty() {
            let _ = writeln!(
                out,
                "  {backend}, without a 95 % interval of the median outage, or with an interval of at least 15 % of the median: {}",
                wide.join(", ")
            );
        }
    }
    out
}

/// Describes whether the backends agree about each leg at the same phases, and the order that both have for legs on
/// which they agree.
fn agreement(comparison: &Comparison, both: &Both<'_>, each: usize, workload: usize) -> String {
    let course = comparison.course;
    let here = |leg: &&Leg| {
        leg.r#move == each
            && leg.workload == workload
            && comparison.wanted.contains(&leg.contender)
            && both.has(leg)
    };
    let title =
        |leg: &Leg| course.contenders.get(leg.contender).map_or("", |contender| contender.title.as_str());
    let mut table = Table::new([
        "protocol",
        "n Linux",
        "agreement of outages",
        "KS",
        "mean outage sim ms",
        "mean outage Linux ms",
        "agreement of other metrics",
    ]);
    let mut agreed: Vec<(f64, &Leg)> = Vec::new();
    for leg in course.legs.iter().filter(here) {
        let report = both.report(leg);
        let Some(row) = report.rows.iter().find(|row| row.metric == OUTAGE.name) else { continue };
        let note = row.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        let [mean_sim, mean_linux] = row.means.map(agree::number);
        table.push([
            title(leg).to_owned(),
            report.counted[1].to_string(),
            format!("{}{note}", row.agreement.name()),
            agree::distance(row.judged_distance),
            mean_sim,
            mean_linux,
            others(&report),
        ]);
        let median = median(&values(both.sim, leg, OUTAGE.name));
        agreed.extend(median.filter(|_| row.agreement == Agreement::Agrees).map(|median| (median, leg)));
    }
    let order = if agreed.is_empty() {
        "no protocol".to_owned()
    } else {
        ranks(agreed, title, |a, b| both.claim(a, b) == Claim::Same(Ordering::Less))
    };
    let mut out = format!(
        "\n{}  on both backends, by outage, for protocols whose outages agree: {order}\n",
        table.render_with_meaning(
            "no valid run of this backend has such an outage, so there is no value and no distance"
        )
    );
    let legs: Vec<&Leg> = course.legs.iter().filter(here).collect();
    let all: Vec<(Claim, String)> = legs
        .iter()
        .enumerate()
        .flat_map(|(place, a)| legs.iter().skip(place + 1).map(move |b| (*a, *b)))
        .map(|(a, b)| (both.claim(a, b), [title(a), title(b)].join(" and ")))
        .collect();
    for (what, is) in CLAIMS {
        let names: Vec<&str> =
            all.iter().filter(|(claim, _)| is(claim)).map(|(_, name)| name.as_str()).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "  pairs {what}: {}", names.join("; "));
        }
    }
    out
}

type Is = fn(&Claim) -> bool;

/// The result of the comparison of both backends for a pair of protocols: the words of its line, and the test for it.
const CLAIMS: [(&str, Is); 4] = [
    ("checked, the same order on both backends", |claim| matches!(claim, Claim::Same(_))),
    ("checked, DIFFERENT ORDER on the two backends", |claim| *claim == Claim::Other),
    ("not checked, the backends do not agree about both outages", |claim| *claim == Claim::NotClaimed),
    ("not checked, not told apart (by at least 30 ms and 15 %) on any backend", |claim| {
        *claim == Claim::NotToldApart
    }),
];

/// Returns the names in the order of their medians. A `<` is set between two names if all names before the `<` are less
/// than all names after the `<` (`is_less`).
fn ranks<'a>(
    mut medians: Vec<(f64, &'a Leg)>,
    title: impl Fn(&'a Leg) -> &'a str,
    is_less: impl Fn(&'a Leg, &'a Leg) -> bool,
) -> String {
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let legs: Vec<&Leg> = medians.into_iter().map(|(_, leg)| leg).collect();
    let mut text = String::new();
    for (place, leg) in legs.iter().enumerate() {
        let (before, behind) = legs.split_at(place);
        let is_cut = before.iter().all(|a| behind.iter().all(|b| is_less(a, b)));
        text.push_str(match (place, is_cut) {
            (0, _) => "",
            (_, true) => " < ",
            (_, false) => ", ",
        });
        text.push_str(title(leg));
    }
    if legs.len() > 1 && !text.contains(" < ") { format!("not ordered: {text}") } else { text }
}

/// Describes the metrics of a leg other than the outage: returns `agree`, or the metrics that do not agree.
fn others(report: &Report) -> String {
    let other =
        report.rows.iter().filter(|row| row.metric != OUTAGE.name && row.agreement != Agreement::Agrees);
    let other: Vec<String> = other
        .map(|row| {
            format!("{} {} ({})", row.metric, row.agreement.name(), agree::distance(row.judged_distance))
        })
        .collect();
    if other.is_empty() { "agree".to_owned() } else { other.join(", ") }
}

fn leg(comparison: &Comparison, each: &Move, workload: &Workload, here: &[&Row]) -> String {
    let mut out = format!("\n{}, {}: {}; {}\n\n", each.name, workload.name, each.about, workload.about);
    let measured = |metric: &&Metric| {
        let mut rows = here.iter().filter(|row| row.metric == **metric);
        rows.any(|row| row.median.is_some()) && metric.name != HANDOFF.name
    };
    let metrics: Vec<&Metric> = METRICS.iter().filter(measured).collect();
    let heads = metrics.iter().map(|metric| format!("{} {}", metric.title, metric.unit));
    let heads = ["n".to_owned()].into_iter().chain(heads);
    out.push_str(&table(comparison, here, heads, "no valid run has a value of this column", |of| {
        let n = of(&OUTAGE).map_or(0, |row| row.n).to_string();
        [n].into_iter().chain(metrics.iter().map(|metric| cell(of, metric))).collect()
    }));
    out.push_str(&reasons(comparison, here));
    let has = |owner: &&Metric| {
        let mut rows = here.iter().filter(|row| row.metric == **owner);
        rows.any(|row| row.median.is_some_and(|median| median.median > 0.0))
    };
    let owners: Vec<&Metric> = OWNERS.iter().filter(has).collect();
    if !owners.is_empty() {
        out.push_str("\nmedian of each owner's part of the outage, ms\n\n");
        let heads = owners.iter().map(|owner| owner.title.to_owned());
        let only = |of: &dyn Fn(&Metric) -> Option<Row>, owner: &Metric| {
            let median = of(owner).and_then(|row| row.median);
            median.map_or("-".to_owned(), |median| format!("{:.1}", median.median))
        };
        out.push_str(&table(comparison, here, heads, "no outage ended in a valid run", |of| {
            owners.iter().map(|owner| only(of, owner)).collect()
        }));
    }
    out
}

/// Returns a table with a row for each requested protocol and backend. `cells` makes the cells of a row; `absent` is the
/// meaning of a cell `-`.
fn table(
    comparison: &Comparison,
    here: &[&Row],
    heads: impl Iterator<Item = String>,
    absent: &str,
    cells: impl Fn(&dyn Fn(&Metric) -> Option<Row>) -> Vec<String>,
) -> String {
    let mut table = Table::new(["protocol".to_owned(), "backend".to_owned()].into_iter().chain(heads));
    for who in comparison.wanted.iter().filter_map(|who| comparison.course.contenders.get(*who)) {
        for results in &comparison.backends {
            let ours = |row: &&&Row| row.protocol == who.name && row.backend == results.backend;
            let of = |metric: &Metric| {
                let row = here.iter().filter(ours).find(|row| row.metric == *metric)?;
                Some((*row).clone())
            };
            let mut row = vec![who.title.clone(), results.backend.name().to_owned()];
            let none = of(&OUTAGE).filter(|row| row.median.is_none() && row.why_not.is_some());
            if let Some(none) = none {
                row.push(none.absent().to_owned());
            } else {
                row.extend(cells(&of));
            }
            table.push(row);
        }
    }
    table.render_with_meaning(absent)
}

fn cell(of: &dyn Fn(&Metric) -> Option<Row>, metric: &Metric) -> String {
    let Some(row) = of(metric) else { return "-".to_owned() };
    let Some(median) = row.median else { return "-".to_owned() };
    let more = if row.why_not.as_deref() == Some(LOWER_BOUND) { ">" } else { "" };
    format!("{more}{}", median.text(metric.digits))
}

/// Describes why a protocol cannot make a move, or never recovers.
fn reasons(comparison: &Comparison, here: &[&Row]) -> String {
    let mut out = String::new();
    for who in comparison.wanted.iter().filter_map(|who| comparison.course.contenders.get(*who)) {
        let ours = |row: &&&Row| row.protocol == who.name && row.metric == OUTAGE;
        let mut said: Vec<&str> = Vec::new();
        for row in here.iter().filter(ours) {
            let Some(why) = row.why_not.as_deref().filter(|why| !said.contains(why)) else { continue };
            let word = match row.median {
                Some(_) => "never",
                None if why == NOT_ON_LINUX => "not measured on Linux",
                None => row.absent(),
            };
            let _ = writeln!(out, "  {} {word}: {why}", who.title);
            said.push(why);
        }
    }
    out
}

/// Returns the table of all breakers and their effects.
pub fn self_test_text(tests: &[Broken]) -> String {
    let mut table = Table::new([
        "result",
        "value without breaker",
        "value with breaker",
        "statement that must fail",
        "settings of the breaker",
    ]);
    for test in tests {
        let word = match (test.broke(), test.whole.holds) {
            (true, _) => "fails, as required",
            (false, false) => "FAILS WITHOUT THE BREAKER",
            (false, true) => "HOLDS WITH THE BREAKER",
        };
        let (whole, with) = (value(test.whole.value), value(test.check.value));
        table.push([word, &whole, &with, test.must_hold.text, &test.set]);
    }
    format!("compare: self-test, in the simulator\n{}", table.render())
}

fn value(value: Option<f64>) -> String {
    value.map_or("nothing measured".to_owned(), |value| {
        if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.2}") }
    })
}
