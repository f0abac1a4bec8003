//! The search over many seeds, on several threads.

use crate::draft::{Draft, Protocol};
use crate::draw::{Size, draw};
use crate::judge::{Judge, Violation};
use crate::plant::Plant;
use crate::run::{Verdict, run};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// A seed whose scenario violates a rule, or is not valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The random seed from which the scenario was drawn.
    pub seed: u64,
    /// The scenario as it was drawn.
    pub draft: Draft,
    /// The violations. Empty if the draft was refused.
    pub violations: Vec<Violation>,
    /// Why the draft is not a valid scenario; `None` if it is valid.
    pub refused: Option<String>,
}

/// Runs `seeds` scenarios on `jobs` threads: those of the seeds from `base` on. After each seed, in the order of the
/// seeds, calls `each` with the difference of the seed and `base`. If `stop` becomes true, the search ends. Returns the
/// seeds whose scenario has violations or is not valid.
pub fn search(
    protocol: Protocol,
    base: u64,
    seeds: u64,
    jobs: usize,
    stop: &AtomicBool,
    each: &dyn Fn(u64),
) -> Vec<Found> {
    let mut found = Vec::new();
    let work = |number| one(protocol, base.wrapping_add(number));
    experiments::batch::each(seeds, jobs, work, |number, one| {
        found.extend(one);
        each(number);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

fn one(protocol: Protocol, seed: u64) -> Option<Found> {
    let draft = draw(protocol, seed, &Size::SIMULATOR);
    match run(&draft, None) {
        Verdict::Refused(why) => Some(Found { seed, draft, violations: Vec::new(), refused: Some(why) }),
        Verdict::Ran(violations) if violations.is_empty() => None,
        Verdict::Ran(violations) => Some(Found { seed, draft, violations, refused: None }),
    }
}

/// Returns the first seed from 1 to `seeds`, with its protocol, at which the mistake's judge finds a violation only
/// because of the mistake. `None` if there is no such seed.
pub fn finds(plant: Plant, seeds: u64) -> Option<(Protocol, u64)> {
    let protocol = match plant {
        Plant::Owners => Protocol::IndirectTcp,
        Plant::Unconfirmed => Protocol::Sigma,
        Plant::Unbound
        | Plant::Circle
        | Plant::Diverted
        | Plant::Leaked
        | Plant::KeptOn
        | Plant::Stale
        | Plant::Stuck
        | Plant::Replayed
        | Plant::Bypassed
        | Plant::Unchallenged
        | Plant::Kinds
        | Plant::Unsigned => Protocol::MobileIp,
        _ => Protocol::CellularIp,
    };
    let violated = |seed, plant: Option<Plant>, judge: Judge| match run(
        &draw(protocol, seed, &Size::SIMULATOR),
        plant,
    ) {
        Verdict::Ran(found) => found.iter().any(|violation| violation.judge == judge),
        Verdict::Refused(_) => false,
    };
    let judge = plant.judge();
    (1..=seeds)
        .find(|seed| violated(*seed, Some(plant), judge) && !violated(*seed, None, judge))
        .map(|seed| (protocol, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_that_is_longer_than_each_stall_is_found() {
        assert!(finds(Plant::Overstated, 200).is_some());
    }

    #[test]
    fn planted_leaks_of_kept_packets_are_found() {
        for plant in [Plant::Leaked, Plant::KeptOn] {
            assert!(finds(plant, 200).is_some(), "{plant:?}");
        }
    }
}
