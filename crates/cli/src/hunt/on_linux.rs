//! The seeds of a hunt on Linux. Several seeds run at the same time, because one run uses the processors for only a
//! part of its time.

use crate::output::{print, tell};
use crate::{Failure, run};
use experiments::batch;
use hunt::draft::Protocol;
use hunt::draw::{Size, draw};
use hunt::linux::{self, Verdict};
use hunt::search::Found;
use recorder::run::Outcome;
use recorder::rundir::{self, Options};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The largest number of repetitions of an inconclusive run.
const REPEATS: usize = 2;

/// The default number of concurrent runs.
pub(super) const JOBS: usize = 4;

/// Runs `seeds` seeds, from `base` on. Returns the violations, and whether any seed could not be evaluated.
pub(super) fn search(
    protocol: Protocol,
    (base, seeds): (u64, u64),
    jobs: usize,
    out: &Path,
    stop: &AtomicBool,
    each: &dyn Fn(u64),
) -> Result<(Vec<Found>, bool), Failure> {
    let mut tally = Tally::default();
    let mut failed = None;
    let work = |number| seed(protocol, base.wrapping_add(number), out, stop);
    batch::each(seeds, jobs, work, |number, judged| match judged {
        Ok(judged) => {
            tally.take(judged);
            each(number);
            ControlFlow::Continue(())
        }
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    });
    // The counts are printed also if the search was aborted.
    print(&tally.text(protocol));
    match failed {
        Some(failure) => Err(failure),
        None => Ok((tally.found, !tally.inconclusive.is_empty())),
    }
}

/// The result of a seed.
enum Judged {
    /// No requirement was violated.
    Held,
    /// A requirement was violated, or the scenario was not valid.
    Found(Box<Found>),
    /// This seed could not be evaluated.
    Inconclusive(u64),
}

#[derive(Default)]
struct Tally {
    judged: usize,
    inconclusive: Vec<String>,
    found: Vec<Found>,
}

impl Tally {
    fn take(&mut self, judged: Judged) {
        match judged {
            Judged::Held => self.judged += 1,
            Judged::Found(found) => {
                self.judged += usize::from(found.refused.is_none());
                self.found.push(*found);
            }
            Judged::Inconclusive(seed) => self.inconclusive.push(seed.to_string()),
        }
    }

    fn text(&self, protocol: Protocol) -> String {
        let Self { judged, inconclusive, .. } = self;
        let which =
            if inconclusive.is_empty() { String::new() } else { format!(": {}", inconclusive.join(" ")) };
        format!("{protocol} on Linux: {judged} seeds checked, {} inconclusive{which}\n", inconclusive.len())
    }
}

/// Runs the scenario of a seed, and repeats the run at most [`REPEATS`] times while it is inconclusive. Keeps the run
/// directory of a violation.
fn seed(protocol: Protocol, seed: u64, out: &Path, stop: &AtomicBool) -> Result<Judged, Failure> {
    let draft = draw(protocol, seed, &Size::LINUX);
    let found =
        |draft, violations, refused| Judged::Found(Box::new(Found { seed, draft, violations, refused }));
    let plan = match linux::plan(&draft) {
        Ok(plan) => plan,
        Err(why) => return Ok(found(draft, Vec::new(), Some(why))),
    };
    for attempt in 0..=REPEATS {
        let (verdict, outcome) = match run::on_linux(&plan, 0, stop) {
            Ok(outcome) => (linux::verdict(&draft, &outcome), Some(outcome)),
            // Only this run failed, so the search continues.
            Err(Failure::Untrusted(doubts)) => {
                let doubts: Vec<_> = doubts.into_iter().map(|named| named.doubt).collect();
                (linux::verdict_without_result(&doubts), None)
            }
            Err(failure) => return Err(failure),
        };
        let why = match verdict {
            Verdict::Judged(violations) if violations.is_empty() => return Ok(Judged::Held),
            Verdict::Judged(violations) => {
                for violation in &violations {
                    tell!("{protocol}, seed {seed}: {}: {}", violation.judge, violation.what);
                }
                if let Some(outcome) = outcome {
                    keep(&outcome, &out.join(format!("{protocol}-linux-{seed}")));
                }
                return Ok(found(draft, violations, None));
            }
            Verdict::Inconclusive(why) => why,
        };
        let what = if attempt < REPEATS { "repeated" } else { "inconclusive" };
        tell!("{protocol}, seed {seed} is {what}: {why}");
    }
    Ok(Judged::Inconclusive(seed))
}

/// Keeps the run directory for `wayfare explain`, because another run of the seed may not show the violation.
fn keep(outcome: &Outcome, dir: &Path) {
    if let Err(error) = rundir::write(outcome, dir, &Options::default()) {
        tell!("cannot write {}: {error}", dir.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hunt::{Judge, judge::Violation};

    #[test]
    fn inconclusive_and_refused_seeds_are_not_judged() {
        let draft = draw(Protocol::Sigma, 1, &Size::LINUX);
        let found = |seed, violations, refused| {
            Judged::Found(Box::new(Found { seed, draft: draft.clone(), violations, refused }))
        };
        let violation = Violation { judge: Judge::Laws, what: "1 lost".to_owned() };
        let mut tally = Tally::default();
        tally.take(Judged::Held);
        tally.take(found(2, vec![violation], None));
        tally.take(found(3, Vec::new(), Some("no such key".to_owned())));
        assert_eq!(tally.text(Protocol::Sigma), "sigma on Linux: 2 seeds checked, 0 inconclusive\n");
        tally.take(Judged::Inconclusive(4));
        tally.take(Judged::Inconclusive(7));
        assert_eq!(tally.text(Protocol::Sigma), "sigma on Linux: 2 seeds checked, 2 inconclusive: 4 7\n");
        assert_eq!(tally.found.iter().map(|found| found.seed).collect::<Vec<_>>(), [2, 3]);
    }
}
