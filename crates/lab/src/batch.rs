//! Many runs of one scenario, told apart by their seeds, and what they have in common.

use crate::run::Outcome;
use draw::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Does `work` for each of `items`, so many at a time, and hands each result over as soon as it is there, from this
/// thread. Results come back in the order of the items.
pub fn each<I: Sync, T: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> T + Sync,
    mut done: impl FnMut(&T),
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let mut results: BTreeMap<usize, T> = BTreeMap::new();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, items.len().max(1)) {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    if send.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for (index, result) in receive {
            done(&result);
            results.insert(index, result);
        }
    });
    results.into_values().collect()
}

/// What the handoffs of one kind cost, over many runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindSummary {
    /// As the protocol calls it.
    pub kind: String,
    /// How many handoffs.
    pub n: usize,
    /// Datagrams lost in one.
    pub lost: Spread,
    /// Copies too many in one.
    pub duplicates: Spread,
    /// Its outage; none counts as zero, never as infinite. What was not measured does not count.
    pub outage_ms: Option<Spread>,
    /// Its latency, where there was one.
    pub latency_ms: Option<Spread>,
}

/// Median and range.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub lo: f64,
    /// The largest.
    pub hi: f64,
}

impl Spread {
    /// Of these values, if there are any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = |index: usize| values.get(index).copied();
        let half = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(middle(half.checked_sub(1)?)?, middle(half)?),
            _ => middle(half)?,
        };
        Some(Self { median, lo: *values.first()?, hi: *values.last()? })
    }

    fn text(&self, digits: usize) -> [String; 2] {
        let Self { median, lo, hi } = self;
        [format!("{median:.digits$}"), format!("{lo:.digits$}..{hi:.digits$}")]
    }
}

/// What a batch needs to know of a run, so that its records need not be kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    kind: String,
    lost: u64,
    duplicates: u64,
    outage_ms: Option<f64>,
    latency_ms: Option<f64>,
}

/// What each handoff of a run cost.
pub fn costs(outcome: &Outcome) -> Vec<Cost> {
    let ms = |span: wire::Duration| span.as_secs_f64() * 1e3;
    let cost = |handoff: &crate::handoff::Handoff| Cost {
        kind: handoff.kind.clone(),
        lost: handoff.lost(),
        duplicates: handoff.duplicates(),
        outage_ms: handoff.outage_ms(),
        latency_ms: handoff.latency.map(ms),
    };
    outcome.handoffs.iter().map(cost).collect()
}

/// Sums up by kind of handoff.
pub fn summary(costs: &[Cost]) -> Vec<KindSummary> {
    let mut kinds: BTreeMap<&str, Vec<&Cost>> = BTreeMap::new();
    for cost in costs {
        kinds.entry(&cost.kind).or_default().push(cost);
    }
    let sum_up = |(kind, costs): (&str, Vec<&Cost>)| {
        let spread = |value: fn(&Cost) -> f64| Spread::of(costs.iter().map(|cost| value(cost)));
        Some(KindSummary {
            kind: kind.to_owned(),
            n: costs.len(),
            lost: spread(|cost| cost.lost as f64)?,
            duplicates: spread(|cost| cost.duplicates as f64)?,
            outage_ms: Spread::of(costs.iter().filter_map(|cost| cost.outage_ms)),
            latency_ms: Spread::of(costs.iter().filter_map(|cost| cost.latency_ms)),
        })
    };
    kinds.into_iter().filter_map(sum_up).collect()
}

/// The summary as a table.
pub fn table(kinds: &[KindSummary]) -> String {
    let mut table = Table::new([
        "kind",
        "n",
        "lost",
        "min..max",
        "duplicates",
        "min..max",
        "outage ms",
        "min..max",
        "latency ms",
        "min..max",
    ]);
    for kind in kinds {
        let mut row = vec![kind.kind.clone(), kind.n.to_string()];
        row.extend(kind.lost.text(0));
        row.extend(kind.duplicates.text(0));
        row.extend(kind.outage_ms.map_or_else(Default::default, |spread| spread.text(3)));
        row.extend(kind.latency_ms.map_or_else(Default::default, |spread| spread.text(3)));
        table.push(row);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, lo: 1.0, hi: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, lo: 1.0, hi: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn all_is_done_once_and_comes_back_in_order() {
        for jobs in [0, 1, 3, 99] {
            let mut seen = 0;
            let items: Vec<u64> = (0..10).collect();
            let squares = each(&items, jobs, |item| item * item, |_| seen += 1);
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
            assert_eq!(seen, 10);
        }
        assert!(each(&[(); 0], 4, |()| 1, |_| ()).is_empty());
    }
}
