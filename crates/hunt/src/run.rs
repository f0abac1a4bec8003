//! Runs one draft in the simulator.

use crate::draft::{Draft, Kind, Mobile, mobile_name};
use crate::facts::Facts;
use crate::judge::{Violation, judge};
use crate::plant::Plant;
use crate::watch::Watch;
use crate::write;
use recorder::handoff::Experience;
use recorder::run::{Outcome, longer_than_stalls};
use scenario::{Plan, Scenario};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// A seed that is a multiple of this number is run a second time, with all records. The second run must have no
/// doubt: for example, each outage must be explained. No outage may be longer than the longest stall of its flow. A
/// run with records takes much longer, so other seeds have no second run.
const EXPLAINED: u64 = 20;

/// The result of a run of a draft.
#[derive(Debug)]
pub enum Verdict {
    /// The draft is not a valid scenario, for this reason. This is an error of the search itself.
    Refused(String),
    /// The draft ran, with these violations; empty if there are none.
    Ran(Vec<Violation>),
}

/// Returns the plan of a draft. The draft is written as a scenario file, and the file is parsed. Fails with the error
/// of the parser.
pub fn plan(draft: &Draft) -> Result<Plan, String> {
    let text = write::scenario(draft);
    Scenario::plan("hunt.toml", &text, &[], draft.seed).map_err(|error| error.to_string())
}

/// Runs a draft in the simulator and evaluates the run. The facts are changed by the mistake `plant`, if it is given.
pub fn run(draft: &Draft, plant: Option<Plant>) -> Verdict {
    match facts(draft, plant) {
        Ok(facts) => Verdict::Ran(judge(draft, &facts)),
        Err(why) => Verdict::Refused(why),
    }
}

/// Runs a draft in the simulator and returns the facts, changed by the mistake `plant` if it is given. Fails if the
/// draft is not a valid scenario or cannot be simulated.
pub fn facts(draft: &Draft, plant: Option<Plant>) -> Result<Facts, String> {
    let plan = plan(draft)?;
    let watch = watch(draft, &plan, plant);
    let run = plan.watched(watch).map_err(|error| error.to_string())?.run(plan.end());
    let ended = run.full.unwrap_or_else(|| plan.end());
    let mut watch = run.records;
    watch.facts.ended = ended;
    watch.facts.most_open = watch.books.most_open();
    let Watch { books, mut facts, .. } = watch;
    let ledger = books.close();
    facts.held = ledger.held + if plant == Some(Plant::Hoard) { 10_000 } else { 0 };
    facts.doubts = ledger.doubts().iter().map(ToString::to_string).collect();
    if facts.doubts.is_empty() && !ledger.balances() {
        facts.doubts.push("the ledger does not balance".to_owned());
    }
    if draft.seed.is_multiple_of(EXPLAINED) && (plant.is_none() || plant == Some(Plant::Overstated)) {
        let outcome = recorder::run::simulate(plan.clone()).map_err(|error| error.to_string())?;
        facts.doubts.extend(analysed(outcome, plant));
    }
    if let Some(stopped) = run.stopped {
        let host = plan.host_name(stopped.host);
        facts.doubts.push(format!(
            "`{}` of {host} is in an endless loop at {} s: more than 100000 effects or rounds of stream events in one \
             step, or more than 100000 time-outs at one instant",
            stopped.role, stopped.at
        ));
    }
    Ok(facts)
}

/// Returns the doubts of a run with records, and the outages that are longer than the longest stall of their flow.
/// Each outage is a second longer if the mistake is planted.
fn analysed(mut outcome: Outcome, plant: Option<Plant>) -> Vec<String> {
    let costs = outcome.handoffs.iter_mut().flat_map(|handoff| &mut handoff.flows);
    let experiences = costs.map(|cost| &mut cost.experience);
    for experience in experiences.chain(outcome.holes.iter_mut().map(|hole| &mut hole.experience)) {
        if let (Experience::Outage(outage), Some(Plant::Overstated)) = (experience, plant) {
            outage.to += Duration::from_secs(1);
        }
    }
    let doubts =
        outcome.doubts.iter().map(|doubt| format!("a second run, with records, has the doubt: {doubt}"));
    let longer = longer_than_stalls(&outcome).into_iter();
    doubts.chain(longer.map(|what| format!("a second run, with records: {what}"))).collect()
}

/// Returns the [`Watch`] that collects the facts of a run of `draft`. `plant` is the mistake that changes the facts.
pub(crate) fn watch(draft: &Draft, plan: &Plan, plant: Option<Plant>) -> Watch {
    let works = || draft.hosts.iter().flat_map(|host| &host.work);
    let is_datagrams = |kind: Kind| matches!(kind, Kind::Datagrams { .. });
    let expected = works().filter(|work| !is_datagrams(work.kind)).count();
    let quiet = if works().any(|work| is_datagrams(work.kind)) { draft.stop() } else { draft.last_change() };
    let quiet = Instant::ZERO + Duration::from_millis(quiet + 2000);
    let mut watch = Watch::new(plan, expected, quiet, plant);
    if plant == Some(Plant::Stuck) {
        watch.stuck = stuck(draft);
    }
    watch
}

/// Returns the times in which no request of a mobile host leaves by its first radio, if it stays on a second one that
/// is out of reach.
fn stuck(draft: &Draft) -> BTreeMap<String, Vec<(Instant, Instant)>> {
    let of = |(number, host): (usize, &Mobile)| {
        let losses = host.second.as_ref()?.losses();
        let times = losses
            .map(|(from, to)| (Instant::from_millis(from), to.map_or(Instant::NEVER, Instant::from_millis)));
        Some((mobile_name(number), times.collect()))
    };
    draft.hosts.iter().enumerate().filter_map(of).collect()
}
