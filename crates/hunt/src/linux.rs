//! The same drafts on Linux: which of them fit a small machine, and what the judges know of such a run.
//!
//! The simulator is asked first when a draft is over: the run on Linux then has that time, and [`MARGIN`] more.

use crate::draft::Draft;
use crate::facts::Facts;
use crate::run::{facts, watch};
use crate::write;
use lab::run::Outcome;
use lab::scenario::Setting;
use lab::{Plan, Scenario};
use trace::Doubt;
use wire::Duration;

/// Routers and mobile hosts of a draft that is run: each has a process, which all want a processor when beacons come together.
const MOST_ROUTERS: usize = 8;
const MOST_HOSTS: usize = 4;
/// A run is not longer, so that 200 seeds of a protocol take hours and not days.
const LONGEST: Duration = Duration::from_secs(40);
/// A run on Linux has this much longer than the simulator needed: the kernel's TCP draws other instants.
const MARGIN: Duration = Duration::from_secs(6);

/// The plan of a draft on Linux.
#[derive(Debug)]
pub enum Fit {
    /// It is to be run.
    Runs(Box<Plan>),
    /// It is too large, and why.
    TooLarge(String),
    /// It is no scenario.
    Refused(String),
}

/// Whether a draft is run on Linux, and for how long.
pub fn fit(draft: &Draft) -> Fit {
    let (routers, hosts) = (draft.routers.len(), draft.hosts.len());
    if routers > MOST_ROUTERS || hosts > MOST_HOSTS {
        return Fit::TooLarge(format!("{routers} routers, {hosts} mobile hosts"));
    }
    let ended = match facts(draft, None) {
        Ok(facts) => facts.ended.since(wire::Instant::ZERO),
        Err(why) => return Fit::Refused(why),
    };
    let long = ended + MARGIN;
    if long > LONGEST {
        return Fit::TooLarge(format!("{:.0} s", long.as_secs_f64()));
    }
    let plan = format!("duration={}ms", long.as_millis()).parse::<Setting>().and_then(|duration| {
        let plan = Scenario::plan("hunt.toml", &write::scenario(draft), &[duration], draft.seed);
        plan.map_err(|error| error.to_string())
    });
    match plan {
        Ok(plan) => Fit::Runs(Box::new(plan)),
        Err(why) => Fit::Refused(why),
    }
}

/// Why nothing is known of the draft by this run: the machine was too busy.
pub fn is_inconclusive(outcome: &Outcome) -> Option<String> {
    outcome.doubts.iter().find(|doubt| doubt.is_timing()).map(ToString::to_string)
}

/// What the judges know of a run on Linux. Unknown are how often a packet crossed a link, as equal packets have one number there, and
/// how many packets were under way at one time.
pub fn facts_of(draft: &Draft, outcome: &Outcome) -> Facts {
    let mut watch = watch(draft, &outcome.plan, None);
    watch.replay(&outcome.records);
    let mut facts = watch.facts;
    facts.ended = outcome.plan.end();
    facts.held = outcome.ledger.held;
    let of_linux = outcome.linux.as_ref().map(|report| report.find_doubts(outcome)).unwrap_or_default();
    let doubts = outcome.ledger.doubts().into_iter().chain(of_linux);
    facts.doubts = doubts.filter(|doubt: &Doubt| !doubt.is_timing()).map(|doubt| doubt.to_string()).collect();
    facts
}
