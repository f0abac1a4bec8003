//! Executes the benchmark: each leg of the requested protocols, at several phases.

use super::course::{Course, Leg, course, nanos};
use super::measure::{self, OUTAGE};
use super::runs::values;
use crate::catalogue;
use crate::reproduce::{self, BOTH, How, Kind, NotRun, Point, Results, SIM, Scale, Validity, doubts};
use crate::stats::Summary;
use recorder::run::{Backend, Outcome};
use scenario::{Plan, Scenario, ScenarioError, Setting};
use std::collections::BTreeMap;
use trace::NamedDoubt;
use wire::Duration;

/// The time from the begin of the run to the earliest departure of the host. The download has filled its window then.
const DEPARTURE: Duration = Duration::from_millis(1200);
/// The range of the phases: one period of agent advertisements, or 19 periods of the requests. So each repetition also
/// has another phase of the requests, unless 19 divides the number of repetitions.
pub(super) const PERIOD: Duration = Duration::from_millis(950);
/// The capacity of a cell, in bit/s.
const LOAD: u64 = 2_000_000;
/// The reason why a protocol has no values on Linux.
pub(super) const NOT_ON_LINUX: &str = "a variant; with at most 6 runs, it is measured in the simulator only";

/// The numbers of simulator runs of each leg. For each move and workload, they are tried in this order until the
/// interval of every leg is narrow. Each number of runs has a separate set of phases.
const STEPS: [usize; 3] = [10, 20, 40];
/// The width of a narrow interval is below this share of the median.
pub(super) const NARROW: f64 = 0.15;

/// The number of runs of each leg.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// This number of runs on each backend.
    Fixed(usize),
    /// This number of runs on Linux. In the simulator 10, 20 or 40 runs, for all legs of a move and workload: until the
    /// 95 % confidence interval of the median outage of each of these legs is narrower than 15 % of the median.
    UntilNarrow(usize),
}

impl Repeat {
    /// Returns the number of runs on Linux.
    pub const fn on_linux(self) -> usize {
        let (Self::Fixed(runs) | Self::UntilNarrow(runs)) = self;
        runs
    }
}

/// Returns whether the 95 % confidence interval of the median is narrower than 15 % of the median, or has no width.
/// `false` if there is no interval.
pub(super) fn is_narrow(values: &[f64]) -> bool {
    let Some(summary) = Summary::of(values) else { return false };
    let Some(interval) = summary.interval else { return false };
    let same = interval.lo.total_cmp(&interval.hi).is_eq();
    same || interval.hi - interval.lo < NARROW * summary.median.abs()
}

/// The results of `wayfare compare`: the runs of the requested legs on each backend.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The benchmark scenario, with its protocols, moves, workloads and legs.
    pub course: &'static Course,
    /// The requested protocols, as indices into [`Course::contenders`].
    pub wanted: Vec<usize>,
    /// The number of runs of each leg.
    pub repeat: Repeat,
    /// The results of the available backends, in the order of the request. Each row is one repetition of a leg.
    pub backends: Vec<Results>,
    /// The simulator's results at the phases of the Linux runs, if both backends were requested and the simulator's
    /// main runs have other phases.
    pub same: Option<Results>,
    /// Requested backends that are not available on this machine, with the reason.
    pub absent: Vec<(Backend, String)>,
}

impl Comparison {
    /// Returns the doubts that make the whole comparison invalid, with the names of their runs.
    pub fn untrusted(&self) -> Vec<NamedDoubt> {
        doubts(&self.backends, Validity::untrusted)
    }

    /// Returns the doubts that make single runs invalid, with the names of these runs.
    pub fn invalid(&self) -> Vec<NamedDoubt> {
        doubts(&self.backends, Validity::invalid)
    }
}

/// A protocol under test, as an index into [`Course::contenders`].
pub type Rival = usize;

/// Returns the protocols under test that `words` name, or all if there are no words. A word is a name, or the part that
/// the names of variants share: `cellular-ip` selects all names that begin with `cellular-ip-`, and `mobile-ip` itself and all names
/// that end with `-mobile-ip`. Returns an error for an unknown word.
pub fn select(course: &Course, words: &[String]) -> Result<Vec<Rival>, String> {
    let names: Vec<&str> = course.contenders.iter().map(|contender| contender.name.as_str()).collect();
    let named = |name: &str, word: &String| {
        let is_variant = names.contains(&word.as_str()) && name.ends_with(&format!("-{word}"));
        name == word || name.starts_with(&format!("{word}-")) || is_variant
    };
    for word in words {
        if !names.iter().any(|name| named(name, word)) {
            let meant = scenario::did_you_mean(word, names.iter().copied());
            return Err(format!("unknown protocol `{word}`{meant}; there are: {}", names.join(", ")));
        }
    }
    let wanted = |name: &&str| words.is_empty() || words.iter().any(|word| named(name, word));
    Ok((0..).zip(&names).filter(|(_, name)| wanted(name)).map(|(place, _)| place).collect())
}

/// Returns the number of runs of each leg at a scale. At least six are needed for a 95 % confidence interval of the
/// median.
pub const fn repetitions(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 6,
        Scale::Default | Scale::Full => 20,
    }
}

/// Returns an estimate of the time that a comparison takes on Linux with `jobs` parallel runs: the duration of all
/// runs, divided by `jobs`.
pub fn span(course: &'static Course, wanted: &[Rival], repetitions: usize, jobs: usize) -> Duration {
    let points = points(course, repetitions, |leg| wanted.contains(&leg.contender));
    let here = points.iter().filter(|point| point.backends.contains(&Backend::Linux));
    let durations = here.filter_map(|point| point.durations(&[]).ok()).flatten();
    durations.sum::<Duration>() / jobs.max(1) as u32
}

/// Executes the benchmark on these backends. Backends that this machine does not have are listed in the result. Returns
/// an error if a run fails.
pub fn compare(
    course: &'static Course,
    wanted: &[Rival],
    repeat: Repeat,
    backends: &[Backend],
    how: &How<'_>,
) -> Result<Comparison, String> {
    let mut comparison = Comparison {
        course,
        wanted: wanted.to_vec(),
        repeat,
        backends: Vec::new(),
        same: None,
        absent: Vec::new(),
    };
    let as_often = |backend| {
        let points = points(course, repeat.on_linux(), |leg| wanted.contains(&leg.contender));
        reproduce::measure_all(&points, backend, &[], how)
    };
    for backend in backends {
        let results = match (backend, repeat) {
            (Backend::Sim, Repeat::UntilNarrow(_)) => until_narrow(course, wanted, how),
            _ => as_often(*backend),
        };
        match results {
            Ok(results) => comparison.backends.push(results),
            Err(NotRun::Cannot(why)) => comparison.absent.push((*backend, why)),
            Err(NotRun::Broken(why)) => return Err(why),
        }
    }
    if comparison.backends.len() == 2 && repeat != Repeat::Fixed(repeat.on_linux()) {
        comparison.same = match as_often(Backend::Sim) {
            Ok(same) => Some(same),
            Err(NotRun::Cannot(why) | NotRun::Broken(why)) => return Err(why),
        };
    }
    Ok(comparison)
}

/// Executes the benchmark in the simulator with the numbers of runs in `STEPS`. All legs of a move and workload have
/// the same number of runs at the same phases, because they are compared in pairs.
fn until_narrow(course: &'static Course, wanted: &[Rival], how: &How<'_>) -> Result<Results, NotRun> {
    let mut all = Results { backend: Backend::Sim, rows: Vec::new() };
    for r#move in 0..course.moves.len() {
        for workload in 0..course.workloads.len() {
            let here = |leg: &Leg| {
                wanted.contains(&leg.contender) && leg.r#move == r#move && leg.workload == workload
            };
            let mut last = Vec::new();
            for n in STEPS {
                let results = reproduce::measure_all(&points(course, n, here), Backend::Sim, &[], how)?;
                let mut legs = course.legs.iter().filter(|leg| here(leg));
                let done = legs.all(|leg| is_narrow(&values(&results, leg, OUTAGE.name)));
                last = results.rows;
                if done {
                    break;
                }
            }
            all.rows.extend(last);
        }
    }
    Ok(all)
}

/// Returns a point for each repetition of the wanted legs. All hosts record their state. `wayfare agree` executes the legs
/// without these records: docs/agreement.linux.json has the fingerprints of runs without them.
pub(crate) fn points(course: &'static Course, n: usize, wanted: impl Fn(&Leg) -> bool) -> Vec<Point> {
    let of_leg = |leg: &'static Leg| {
        let record = |host: &String| Setting::new(&format!("host.{host}.record_state"), true);
        let records: Vec<Setting> = leg.hosts.iter().map(record).collect();
        (0..n).map(move |number| {
            let mut point = point(course, leg, (number, n), FIRST_SEED);
            point.overrides.extend_from_slice(&records);
            point
        })
    };
    course.legs.iter().filter(|leg| wanted(leg)).flat_map(of_leg).collect()
}

/// The default seed of the phases.
const FIRST_SEED: u64 = 1;

/// Returns the plan of repetition `number` (from 0) of `of` repetitions of a leg, with additional settings. Another
/// seed gives other phases. Returns an error if a setting is invalid.
pub fn plan(
    leg: &'static Leg,
    (number, of): (u64, u64),
    seed: u64,
    more: &[Setting],
) -> Result<Plan, ScenarioError> {
    let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let point = point(course()?, leg, (place(number), place(of)), seed);
    let (file, text) = catalogue::find(point.scenario)?;
    let settings: Vec<Setting> = point.overrides.iter().chain(more).cloned().collect();
    Scenario::plan(&file, &text, &settings, seed)
}

/// Returns the values of a leg's run, by metric. Returns an error if the run cannot be evaluated.
pub fn values_of_run(outcome: &Outcome) -> Result<BTreeMap<String, f64>, String> {
    let first = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), *values.first()?));
    Ok(measure::measure(outcome)?.into_iter().filter_map(first).collect())
}

/// Returns the point of repetition `number` (from 0) of `n`. The phases depend on a name that all legs share, so all
/// legs have the same phases.
fn point(course: &'static Course, leg: &'static Leg, (number, n): (usize, usize), seed: u64) -> Point {
    let name = if seed == FIRST_SEED { "compare".to_owned() } else { format!("compare {seed}") };
    let phase = reproduce::stratified(&name, n, PERIOD).get(number).copied().unwrap_or_default();
    let departure = DEPARTURE + phase;
    let window = course.moves.get(leg.r#move).map(|each| each.window).unwrap_or_default();
    let mut overrides = leg.mover.departing(departure);
    overrides.push(Setting::new("duration", nanos(departure + window)));
    let is_variant = course.contenders.get(leg.contender).is_some_and(|contender| contender.variant);
    let is_short = n <= repetitions(Scale::Quick);
    Point {
        label: format!("{} {}/{n}", leg.name, number + 1),
        setting: vec![("leg", leg.name.as_str().into())],
        kind: Kind::Main,
        backends: if is_short && is_variant { SIM } else { BOTH },
        scenario: &leg.name,
        overrides,
        runs: Vec::new(),
        phases: false,
        n: 1,
        load: LOAD,
        published: Vec::new(),
        formula: Vec::new(),
        base: None,
        measure: measure::measure,
        combine: None,
        trace: None,
    }
}
