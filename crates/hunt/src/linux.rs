//! The search on Linux: the duration of a run, what the judges check of the run ([`Facts`]), and whether host contention
//! makes the run inconclusive.
//!
//! The simulator runs each random scenario ([`Draft`]) first. The run on Linux lasts `MARGIN` longer than the run in
//! the simulator.

use crate::draft::Draft;
use crate::facts::Facts;
use crate::judge::{Judge, Violation, judge};
use crate::run::{facts, watch};
use crate::write;
use recorder::run::Outcome;
use scenario::{Plan, Scenario, Setting};
use trace::Doubt;
use wire::Duration;

/// A run on Linux lasts this much longer than in the simulator: the TCP of the Linux kernel sends at other times.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns the plan of a draft on Linux.
///
/// # Errors
/// The reason if the draft is not a valid scenario. This is an error of the search itself.
pub fn plan(draft: &Draft) -> Result<Plan, String> {
    let ended = facts(draft, None)?.ended.since(wire::Instant::ZERO);
    let long = ended + MARGIN;
    // The duration is rounded up to whole milliseconds.
    let duration = format!("duration={}ms", long.as_millis() + 1).parse::<Setting>()?;
    let plan = Scenario::plan("hunt.toml", &write::scenario(draft), &[duration], draft.seed);
    plan.map_err(|error| error.to_string())
}

/// The result of a run on Linux.
#[derive(Debug)]
pub enum Verdict {
    /// The violations that the judges found; empty if there are none.
    Judged(Vec<Violation>),
    /// The reason why the run has no verdict: host contention, or the run ended early.
    Inconclusive(String),
}

/// Evaluates a run of a draft on Linux: its violations, or why it is inconclusive.
pub fn verdict(draft: &Draft, outcome: &Outcome) -> Verdict {
    match outcome.doubts.iter().find(|doubt| disturbs(doubt)) {
        Some(doubt) => Verdict::Inconclusive(doubt.to_string()),
        None => Verdict::Judged(judge(draft, &facts_of(draft, outcome))),
    }
}

/// Evaluates a run that gave no result. If a daemon did not start, at first or after a crash, [`Judge::Laws`] is
/// violated. All other runs without a result are inconclusive, and the first doubt is the reason.
pub fn verdict_without_result(doubts: &[Doubt]) -> Verdict {
    match doubts.iter().find(|doubt| matches!(doubt, Doubt::NotReady { .. })) {
        Some(doubt) => Verdict::Judged(vec![Violation { judge: Judge::Laws, what: doubt.to_string() }]),
        None => Verdict::Inconclusive(doubts.first().map_or_else(String::new, ToString::to_string)),
    }
}

/// A run is inconclusive if a process was stalled for longer than this time, in milliseconds. The value is half of the
/// shortest time-out of TCP and SCTP.
const STALL_MS: f64 = 100.0;
/// If a process handles more than 1 % of its frames later than this, in microseconds, the run is inconclusive.
const LATE_US: f64 = 20_000.0;

/// Returns whether this doubt makes a run inconclusive. Smaller delays matter only if milliseconds are measured. No
/// judge has a limit of time below 3 s, so smaller delays excuse no violation.
fn disturbs(doubt: &Doubt) -> bool {
    match doubt {
        Doubt::Stalled { stall_ms, .. } | Doubt::MachineStalled { stall_ms, .. } => *stall_ms > STALL_MS,
        Doubt::Late { p99_us, .. } | Doubt::MachineLate { p99_us, .. } => *p99_us > LATE_US,
        _ => false,
    }
}

/// Returns whether a doubt is a violation of [`Judge::Laws`]. Doubts about timing and doubts about the analysis of
/// outages are no violations.
const fn is_of_laws(doubt: &Doubt) -> bool {
    !doubt.is_timing() && !matches!(doubt, Doubt::Uncut { .. } | Doubt::Unexplained { .. })
}

/// Returns the facts of a run on Linux. Two numbers are not counted. Crossings of a link are not counted, because equal
/// packets have the same identity on Linux. Packets under way at one time are not counted.
fn facts_of(draft: &Draft, outcome: &Outcome) -> Facts {
    let mut watch = watch(draft, &outcome.plan, None);
    watch.replay(&outcome.records);
    let mut facts = watch.facts;
    facts.ended = outcome.plan.end();
    facts.held = outcome.ledger.held;
    let doubts = outcome.doubts.iter().filter(|doubt| is_of_laws(doubt));
    facts.doubts = doubts.map(ToString::to_string).collect();
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Protocol;
    use crate::draw::{Size, draw};

    /// Returns a run of the simulator without violations, in the form of a run on Linux.
    fn run() -> (Draft, Outcome) {
        let draft = draw(Protocol::MobileIp, 1, &Size::LINUX);
        let outcome = recorder::run::simulate(plan(&draft).unwrap()).unwrap();
        (draft, outcome)
    }

    /// Returns the violations with these doubts, or `None` if the run is inconclusive.
    fn with(doubts: Vec<Doubt>) -> Option<Vec<Judge>> {
        let (draft, mut outcome) = run();
        outcome.doubts = doubts;
        match verdict(&draft, &outcome) {
            Verdict::Judged(found) => Some(found.into_iter().map(|violation| violation.judge).collect()),
            Verdict::Inconclusive(_) => None,
        }
    }

    fn stalled(stall_ms: f64) -> Doubt {
        Doubt::MachineStalled { until_s: 3.0, stall_ms, stalled: 7, processes: 7, idle_ms: stall_ms }
    }

    fn late(p99_us: f64) -> Doubt {
        Doubt::Late { process: "r0".to_owned(), p99_us, alone_us: None }
    }

    #[test]
    fn a_run_has_the_time_that_the_simulator_needed_and_more() {
        let draft = draw(Protocol::Sigma, 3, &Size::LINUX);
        let ended = facts(&draft, None).unwrap().ended;
        assert!(plan(&draft).unwrap().end() >= ended + MARGIN);
    }

    #[test]
    fn a_short_stall_is_no_excuse_and_a_long_one_tells_nothing() {
        assert_eq!(with(Vec::new()), Some(vec![]));
        assert_eq!(with(vec![stalled(48.0), late(3000.0)]), Some(vec![]));
        assert_eq!(with(vec![stalled(101.0)]), None);
        assert_eq!(with(vec![late(21_000.0)]), None);
    }

    #[test]
    fn what_breaks_a_law_is_a_violation_however_late_the_machine_was() {
        let between = ["m0's node", "m0's application"].map(str::to_owned);
        let lost = Doubt::Unaccounted { between, packets: 1, first_s: 1.5 };
        assert_eq!(with(vec![stalled(48.0), lost]), Some(vec![Judge::Laws]));
        assert_eq!(with(vec![Doubt::Unbalanced]), Some(vec![Judge::Laws]));
        let changed = Doubt::Changed { host: "r0".to_owned(), what: "was killed".to_owned() };
        assert_eq!(with(vec![changed]), Some(vec![Judge::Laws]));
        assert_eq!(with(vec![Doubt::Uncut { begun_s: 1.0 }]), Some(vec![]), "of the analysis alone");
    }

    #[test]
    fn a_daemon_that_does_not_begin_is_a_violation_and_a_lab_that_ends_early_is_none() {
        let why = "the daemon ended before it was ready, exit status: 101: no store".to_owned();
        let never = Doubt::NotReady { host: "r0".to_owned(), why };
        let Verdict::Judged(found) = verdict_without_result(std::slice::from_ref(&never)) else {
            panic!("it is the daemon's own doing")
        };
        assert_eq!(found, [Violation { judge: Judge::Laws, what: never.to_string() }]);
        let early = Doubt::NoResult { why: "pid 1 of the lab ended".to_owned() };
        assert!(matches!(verdict_without_result(&[early]), Verdict::Inconclusive(_)));
    }

    #[test]
    fn what_a_host_did_not_record_is_missed() {
        let (draft, mut outcome) = run();
        outcome.records.clear();
        let Verdict::Judged(found) = verdict(&draft, &outcome) else { panic!("the run has a verdict") };
        assert!(!found.is_empty());
    }
}
