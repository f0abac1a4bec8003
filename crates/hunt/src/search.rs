//! Many seeds, on all processors.

use crate::draft::{Draft, Protocol};
use crate::draw::draw;
use crate::judge::{Judge, Violation};
use crate::plant::Plant;
use crate::run::{Verdict, run};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A seed at which something is violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The scenario as it was drawn.
    pub draft: Draft,
    /// What was violated; nothing, if the draft was refused.
    pub violations: Vec<Violation>,
    /// Why the draft is no scenario.
    pub refused: Option<String>,
}

/// Runs the seeds from `base` on, so many, on `jobs` threads. `each` is told of each seed that has been run, from any thread;
/// `stop` ends the search.
pub fn search(
    protocol: Protocol,
    base: u64,
    seeds: u64,
    jobs: usize,
    stop: &AtomicBool,
    each: &(dyn Fn(u64) + Sync),
) -> Vec<Found> {
    let next = AtomicU64::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= seeds || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let one = one(protocol, base.wrapping_add(number));
                    found.lock().unwrap_or_else(PoisonError::into_inner).extend(one);
                    each(number);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|found: &Found| found.seed);
    found
}

fn one(protocol: Protocol, seed: u64) -> Option<Found> {
    let draft = draw(protocol, seed);
    match run(&draft, None) {
        Verdict::Refused(why) => Some(Found { seed, draft, violations: Vec::new(), refused: Some(why) }),
        Verdict::Ran(violations) if violations.is_empty() => None,
        Verdict::Ran(violations) => Some(Found { seed, draft, violations, refused: None }),
    }
}

/// The first of so many seeds at which a planted mistake, and it alone, makes its judge find a violation.
pub fn finds(plant: Plant, seeds: u64) -> Option<(Protocol, u64)> {
    let protocol = match plant {
        Plant::Owners => Protocol::IndirectTcp,
        Plant::Unconfirmed => Protocol::Sigma,
        _ => Protocol::CellularIp,
    };
    let violated = |seed, plant: Option<Plant>, judge: Judge| match run(&draw(protocol, seed), plant) {
        Verdict::Ran(found) => found.iter().any(|violation| violation.judge == judge),
        Verdict::Refused(_) => false,
    };
    let judge = plant.judge();
    (1..=seeds)
        .find(|seed| violated(*seed, Some(plant), judge) && !violated(*seed, None, judge))
        .map(|seed| (protocol, seed))
}
