//! The seeds of a hunt on Linux, one after the other.

use crate::output::{print, tell};
use crate::{Failure, run};
use hunt::draft::Protocol;
use hunt::draw::draw;
use hunt::judge::judge;
use hunt::linux::{Fit, facts_of, fit, is_inconclusive};
use hunt::search::Found;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run that a busy machine disturbed is repeated so often.
const REPEATS: usize = 2;

/// Runs the seeds from `base` on, so many, and says how many were judged, too large or inconclusive; and whether there is one of
/// the latter, or none was judged.
pub(super) fn search(
    protocol: Protocol,
    base: u64,
    seeds: u64,
    stop: &AtomicBool,
    each: &dyn Fn(u64),
) -> Result<(Vec<Found>, bool), Failure> {
    let (mut judged, mut too_large, mut inconclusive) = (0, 0, Vec::new());
    let mut all = Vec::new();
    for number in 0..seeds {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let seed = base.wrapping_add(number);
        let draft = draw(protocol, seed);
        match fit(&draft) {
            Fit::TooLarge(_) => too_large += 1,
            Fit::Refused(why) => {
                all.push(Found { seed, draft, violations: Vec::new(), refused: Some(why) });
            }
            Fit::Runs(plan) => {
                let outcome = run::on_linux(&plan, REPEATS, stop)?;
                if let Some(why) = is_inconclusive(&outcome) {
                    tell!("seed {seed} is inconclusive: {why}");
                    inconclusive.push(seed.to_string());
                } else {
                    judged += 1;
                    let violations = judge(&draft, &facts_of(&draft, &outcome));
                    if !violations.is_empty() {
                        all.push(Found { seed, draft, violations, refused: None });
                    }
                }
            }
        }
        each(number);
    }
    let which = if inconclusive.is_empty() { String::new() } else { format!(": {}", inconclusive.join(" ")) };
    let is_incomplete = !inconclusive.is_empty() || judged == 0;
    print(&format!(
        "{protocol} on Linux: {judged} seeds judged, {too_large} too large, {} inconclusive{which}\n",
        inconclusive.len()
    ));
    Ok((all, is_incomplete))
}
