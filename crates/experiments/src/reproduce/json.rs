//! The reports as JSON, as `reproduce --format json` prints them.

use super::carry_out::Verdict;
use super::published::{Judged, counts, judged};
use super::{Broken, Experiment, Measured, Metric, Point, Report, Setting};
use recorder::run::Backend;
use serde_json::{Map, Value, json as object};

/// Returns all reports as one JSON object. The value of a point is null on a backend without a value, and `"invalid"`
/// if a run of the point is invalid.
pub fn json(reports: &[Report]) -> Value {
    let all: Vec<_> = reports.iter().flat_map(judged).collect();
    object!({ "experiments": reports.iter().map(experiment).collect::<Vec<_>>(), "verdicts": words(&all) })
}

/// Returns, for each verdict, the number of published numbers with it.
fn words(all: &[Judged<'_>]) -> Value {
    counts(all)
        .each()
        .map(|(word, count)| (word.name().to_owned(), object!(count)))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns a published number with its verdict.
fn number(judged: &Judged<'_>) -> Value {
    let on = judged.on.iter().map(|on| {
        let value = on.estimate.map(|estimate| {
            object!({
                "value": estimate.value,
                "lo": estimate.interval.map(|interval| interval.lo),
                "hi": estimate.interval.map(|interval| interval.hi),
                "is_range": estimate.interval.is_some_and(|interval| interval.is_range),
                "n": estimate.n,
            })
        });
        (on.backend.name().to_owned(), object!(value))
    });
    object!({
        "point": judged.point.label,
        "metric": judged.metric.name,
        "statistic": judged.metric.statistic.name(),
        "figure": judged.published.figure,
        "published": judged.published.value,
        "tolerance": judged.published.tolerance,
        "tolerance_from": judged.published.tolerance_from,
        "on": on.collect::<Map<_, _>>(),
        "verdict": judged.word().name(),
        "is_weak": judged.is_weak(),
        "why": judged.why(),
    })
}

/// Returns the effects of all breakers as one JSON object.
pub fn self_test_json(tests: &[(&'static Experiment, Vec<Broken>)]) -> Value {
    let breakers = tests.iter().flat_map(|(experiment, broken)| {
        broken.iter().map(|broken| {
            object!({
                "id": experiment.id,
                "must_hold": broken.must_hold.text,
                "backend": broken.backend.name(),
                "breaker": broken.breaker,
                "broke": broken.broke(),
                "value": broken.check.value,
                "value_whole": broken.whole.value,
            })
        })
    });
    object!({ "self_test": breakers.collect::<Vec<_>>() })
}

fn experiment(report: &Report) -> Value {
    let official = report.experiment.metrics.iter().filter(|metric| metric.official);
    let points =
        report.points.iter().flat_map(|each| official.clone().map(|metric| point(report, each, metric)));
    let checked = |verdicts: Vec<Verdict>| {
        let all = verdicts.into_iter().map(|verdict| {
            object!({
                "text": verdict.must_hold.text,
                "backend": verdict.backend.name(),
                "holds": verdict.holds(),
                "value": verdict.check.value,
            })
        });
        all.collect::<Vec<_>>()
    };
    object!({
        "id": report.experiment.id,
        "scale": report.scale.name(),
        "points": points.collect::<Vec<_>>(),
        "must_hold": checked(report.verdicts()),
        "observed": checked(report.observed()),
        "numbers": judged(report).iter().map(number).collect::<Vec<_>>(),
        "verdicts": words(&judged(report)),
    })
}

fn point(report: &Report, point: &Point, metric: &Metric) -> Value {
    let measured = |backend| report.results(backend).and_then(|results| results.named(&point.label));
    object!({
        "setting": point.setting.iter().map(setting).collect::<Map<_, _>>(),
        "kind": point.kind.name(),
        "metric": metric.name,
        "published": point.published(metric.name).map(|published| published.value),
        "sim": measured(Backend::Sim).map(|measured| value(measured, metric)),
        "linux": measured(Backend::Linux).map(|measured| value(measured, metric)),
        "n": point.n,
    })
}

fn value(measured: &Measured, metric: &Metric) -> Value {
    if measured.is_valid() {
        object!(measured.estimate(metric).map(|estimate| estimate.value))
    } else {
        object!("invalid")
    }
}

fn setting((name, value): &(&'static str, Setting)) -> (String, Value) {
    let value = match *value {
        Setting::Text(text) => object!(text),
        // An integer is written as 25, not as 25.0.
        Setting::Number(number) if number.fract() == 0.0 => object!(number as i64),
        Setting::Number(number) => object!(number),
    };
    ((*name).to_owned(), value)
}
