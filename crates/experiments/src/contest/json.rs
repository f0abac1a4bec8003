//! The comparison as JSON.

use super::carry_out::Comparison;
use super::judge::verdicts;
use super::pairs;
use super::rows::{Row, rows};
use serde_json::{Value, json as object};

/// Returns the comparison as one JSON object. An infinite value is null; for an outage, `why_not` has the reason. For a
/// stall that is only a lower bound, `why_not` says so.
pub fn json(comparison: &Comparison) -> Value {
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    let row = |row: Row| {
        let interval = row.median.and_then(|median| median.interval);
        object!({
            "protocol": row.protocol,
            "move": row.r#move,
            "workload": row.workload,
            "backend": row.backend.name(),
            "metric": row.metric.name,
            "unit": row.metric.unit,
            "median": finite(row.median.map(|median| median.median)),
            "lo": finite(interval.map(|interval| interval.lo)),
            "hi": finite(interval.map(|interval| interval.hi)),
            "n": row.n,
            "invalid": row.invalid,
            "why_not": row.why_not,
        })
    };
    let must_hold = verdicts(comparison).into_iter().map(|verdict| {
        object!({
            "text": verdict.must_hold.text,
            "backend": verdict.backends(),
            "holds": verdict.holds(),
            "value": verdict.value,
        })
    });
    object!({
        "repetitions": comparison.repeat.on_linux(),
        "rows": rows(comparison).into_iter().map(row).collect::<Vec<_>>(),
        "pairs": pairs::json(comparison),
        "agreement": super::agreement::json(comparison),
        "must_hold": must_hold.collect::<Vec<_>>(),
    })
}
