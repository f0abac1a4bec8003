//! The report as text.

use super::carry_out::{Validity, Verdict};
use super::published::{Judged, counts, judged};
use super::table::{number, tolerance, value};
use super::{Broken, Experiment, Measured, Metric, Point, Report, Results};
use draw::Table;
use recorder::run::Backend;
use std::fmt::Write;

/// Returns the report of an experiment as text: the published and the measured values, and which properties hold.
pub fn text(report: &Report) -> String {
    let experiment = report.experiment;
    let mut out = format!("{}: {}\n", experiment.id, experiment.about);
    let _ = writeln!(out, "scale {}; published: {}", report.scale.name(), experiment.source);
    for note in experiment.notes {
        let _ = writeln!(out, "  {note}");
    }
    let backends: Vec<Backend> = report.backends.iter().map(|results| results.backend).collect();
    let is_published = |metric: &&Metric| report.points.iter().any(|p| p.published(metric.name).is_some());
    for metric in experiment.metrics.iter().filter(is_published) {
        let _ = write!(out, "\n{}\n{}", metric.title(), published(report, metric, &backends));
    }
    let others: Vec<&Metric> = experiment.metrics.iter().filter(|metric| !is_published(metric)).collect();
    if !others.is_empty() {
        let _ = write!(out, "\nalso measured, not published\n{}", also(report, &others, &backends));
    }
    out.push_str(&invalid(&report.backends));
    for (backend, why) in &report.absent {
        let _ = writeln!(out, "\nnot measured on {}: {why}", backend.name());
    }
    let _ = write!(out, "\nmust hold\n{}", must_hold(&report.verdicts()));
    let observed = report.observed();
    if !observed.is_empty() {
        let _ = write!(out, "\nalso checked, without effect on the verdict\n{}", must_hold(&observed));
    }
    let judged = judged(report);
    if !judged.is_empty() {
        let _ = write!(out, "\npublished numbers\n{}", numbers(&judged, &backends));
        let _ = writeln!(out, "\n{}: {}", experiment.id, counts(&judged));
    }
    out
}

/// Returns a line with the numbers of verdicts on the published numbers of these reports.
pub fn summary(reports: &[Report]) -> String {
    let all: Vec<Judged<'_>> = reports.iter().flat_map(judged).collect();
    format!("published numbers: {}\n", counts(&all))
}

/// The meaning of `-` in the tables.
const ABSENT: &str = "below a backend, there is no valid value, or the mean or the median is infinite, because runs did not end; below published, formula and shape, there is no such number";

fn numbers(judged: &[Judged<'_>], backends: &[Backend]) -> String {
    let mut headers = vec!["verdict".to_owned(), "point".to_owned(), "metric".to_owned()];
    headers.extend(["published", "tolerance"].map(str::to_owned));
    headers.extend(backends.iter().map(|backend| backend.name().to_owned()));
    headers.push("why".to_owned());
    let mut table = Table::new(headers);
    for judged in judged {
        let (metric, published) = (judged.metric, judged.published);
        let name = metric.title();
        let mut row = vec![judged.verdict(), judged.point.label.clone(), name];
        row.push(format!("{:.*}", metric.digits, published.value));
        row.push(tolerance(published.tolerance));
        row.extend(backends.iter().map(|backend| {
            let estimate = judged.on.iter().find(|on| on.backend == *backend).and_then(|on| on.estimate);
            estimate.map_or("-".to_owned(), |estimate| value(estimate, metric))
        }));
        row.push(judged.why().unwrap_or_default());
        table.push(row);
    }
    let mut from: Vec<&str> = judged.iter().map(|judged| judged.published.tolerance_from).collect();
    from.dedup();
    format!("{}tolerances: {}\n", table.render_with_meaning(ABSENT), from.join("; "))
}

fn published(report: &Report, metric: &Metric, backends: &[Backend]) -> String {
    let shaped = report.points.iter().any(|point| point.base.is_some());
    let mut headers: Vec<String> = ["kind", "point", "n", "published"].map(str::to_owned).into();
    headers.extend(backends.iter().map(|backend| backend.name().to_owned()));
    let has_formula = report.points.iter().any(|point| formula(point, metric).is_some());
    headers.extend(has_formula.then(|| "formula".to_owned()));
    if shaped {
        headers.push("shape published".to_owned());
        headers.extend(backends.iter().map(|backend| format!("shape {}", backend.name())));
    }
    let mut table = Table::new(headers);
    for point in report.points.iter().filter(|point| concerns(report, point, metric)) {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| number(v, metric.digits));
        let mut row = vec![point.kind.name().to_owned(), point.label.clone(), point.n.to_string()];
        row.push(number(point.published(metric.name).map(|published| published.value)));
        row.extend(backends.iter().map(|backend| cell(measured(report, point, *backend), metric)));
        if has_formula {
            row.push(number(formula(point, metric)));
        }
        if shaped {
            let base = report.points.iter().find(|base| Some(&base.label) == point.base.as_ref());
            let of = |value: &dyn Fn(&Point) -> Option<f64>| {
                let fraction = value(point).zip(base.and_then(value)).filter(|(_, base)| *base != 0.0);
                fraction.map_or("-".to_owned(), |(value, base)| format!("{:.2}", value / base))
            };
            row.push(of(&|point| point.published(metric.name).map(|published| published.value)));
            row.extend(
                backends.iter().map(|backend| of(&|point| middle(measured(report, point, *backend), metric))),
            );
        }
        table.push(row);
    }
    table.render_with_meaning(ABSENT)
}

/// Returns whether the table of a metric shows a point: a value was measured, published or computed by a formula, or the
/// point is invalid.
fn concerns(report: &Report, point: &Point, metric: &Metric) -> bool {
    let is_shown = |results: &Results| {
        let measured = results.named(&point.label);
        measured.is_some_and(|measured| !measured.is_valid() || measured.samples.contains_key(metric.name))
    };
    let has_number = point.published(metric.name).is_some() || formula(point, metric).is_some();
    has_number || report.backends.iter().any(is_shown)
}

fn also(report: &Report, metrics: &[&Metric], backends: &[Backend]) -> String {
    let mut headers = vec!["kind".to_owned(), "point".to_owned(), "n".to_owned()];
    for metric in metrics {
        let name = metric.title();
        headers.extend(backends.iter().map(|backend| format!("{name} {}", backend.name())));
    }
    let mut table = Table::new(headers);
    let any = |point: &&Point| metrics.iter().any(|metric| concerns(report, point, metric));
    for point in report.points.iter().filter(any) {
        let mut row = vec![point.kind.name().to_owned(), point.label.clone(), point.n.to_string()];
        for metric in metrics {
            row.extend(backends.iter().map(|backend| cell(measured(report, point, *backend), metric)));
        }
        table.push(row);
    }
    table.render_with_meaning(ABSENT)
}

fn must_hold(verdicts: &[Verdict]) -> String {
    let mut table = Table::new(["verdict", "backend", "value", "statement", "meaning of the value"]);
    for verdict in verdicts {
        let word = match (verdict.invalid, verdict.check.holds) {
            (true, _) => "INVALID",
            (false, true) => "holds",
            (false, false) => "DOES NOT HOLD",
        };
        let (text, value) = (verdict.must_hold.text, verdict.must_hold.value);
        table.push([word, verdict.backend.name(), &decided_by(verdict.check.value), text, value]);
    }
    table.render()
}

/// Describes which runs are invalid, and why.
pub(crate) fn invalid(backends: &[Results]) -> String {
    let mut out = String::new();
    for results in backends {
        for (point, measured) in results.rows(|_| true) {
            let (word, why) = match &measured.validity {
                Validity::Valid => continue,
                Validity::Invalid(why) => ("invalid", why),
                Validity::Untrusted(why) => ("not trusted", why),
            };
            let _ = writeln!(
                out,
                "\n{word} on {}: {}: {}",
                results.backend.name(),
                point.label,
                trace::doubt::joined(why)
            );
        }
    }
    out
}

/// Returns the table of all breakers and their effects, or a line that says that there are none.
pub fn self_test_text(experiment: &Experiment, broken: &[Broken]) -> String {
    if broken.is_empty() {
        return format!(
            "{}: self-test\nno must-hold statement with a breaker is checked on this backend\n",
            experiment.id
        );
    }
    let mut table = Table::new([
        "result",
        "backend",
        "value without breaker",
        "value with breaker",
        "statement that must fail",
        "settings of the breaker",
    ]);
    for broken in broken {
        let word = match (broken.broke(), broken.whole.holds, broken.check.value) {
            (true, ..) => "fails, as required",
            (false, false, _) => "FAILS WITHOUT THE BREAKER",
            (false, true, None) => "NO VALUE WITH THE BREAKER",
            (false, true, Some(_)) => "HOLDS WITH THE BREAKER",
        };
        table.push([
            word,
            broken.backend.name(),
            &decided_by(broken.whole.value),
            &decided_by(broken.check.value),
            broken.must_hold.text,
            &broken.breaker.join(" "),
        ]);
    }
    format!("{}: self-test\n{}", experiment.id, table.render())
}

fn measured<'a>(report: &'a Report, point: &Point, backend: Backend) -> Option<&'a Measured> {
    report.results(backend)?.named(&point.label)
}

fn middle(measured: Option<&Measured>, metric: &Metric) -> Option<f64> {
    Some(measured.filter(|measured| measured.is_valid())?.estimate(metric)?.value)
}

fn cell(measured: Option<&Measured>, metric: &Metric) -> String {
    match measured {
        Some(measured) if !measured.is_valid() => "invalid".to_owned(),
        _ => middle(measured, metric).map_or("-".to_owned(), |value| number(value, metric.digits)),
    }
}

fn formula(point: &Point, metric: &Metric) -> Option<f64> {
    point.formula.iter().find(|(name, _)| *name == metric.name).map(|(_, value)| *value)
}

fn decided_by(value: Option<f64>) -> String {
    value.map_or("nothing measured".to_owned(), |value| format!("{value:.3}"))
}
