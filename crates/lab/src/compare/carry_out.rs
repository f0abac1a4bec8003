//! Carrying the course out: every leg of every contender, at every phase.

use super::course::{Course, Leg, course, nanos};
use super::measure::{self, OUTAGE};
use super::runs::values;
use crate::reproduce::{self, How, Kind, NotRun, Point, Results, Scale, Validity, doubts};
use crate::run::{OnWorld, Outcome};
use crate::scenario::Setting;
use crate::{Plan, Scenario, ScenarioError, Summary};
use std::collections::BTreeMap;
use trace::NamedDoubt;
use wire::Duration;

/// When the host moves at the earliest: the download has filled its window by then.
const DEPARTURE: Duration = Duration::from_millis(1200);
/// What the phases are spread over: the period of agents' advertisements, and nineteen beats of the questions. So the beat
/// is met in as many places as there are repetitions, too, unless these are a multiple of nineteen.
pub(super) const PERIOD: Duration = Duration::from_millis(950);
/// Bits a second: what a cell carries at most.
const LOAD: u64 = 2_000_000;
const BOTH: &[OnWorld] = &[OnWorld::Sim, OnWorld::Linux];

/// How often a leg is run in the simulator until its interval is narrow: each number is a set of phases of its own.
const STEPS: [usize; 3] = [10, 20, 40];
/// An interval is narrow if it is narrower than this share of the median.
pub(super) const NARROW: f64 = 0.15;

/// How often each leg is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// So often on every backend.
    Fixed(usize),
    /// So often on Linux. In the simulator 10, 20 or 40 times: until the 95 % interval of the median outage is below 15 % of it
    /// for every leg of a move and workload.
    UntilNarrow(usize),
}

impl Repeat {
    /// How often on Linux.
    pub const fn on_linux(self) -> usize {
        let (Self::Fixed(runs) | Self::UntilNarrow(runs)) = self;
        runs
    }
}

/// Whether the 95 % interval of the median is less than 15 % of it wide, or has no width.
pub(super) fn is_narrow(values: &[f64]) -> bool {
    let Some(summary) = Summary::of(values) else { return false };
    let Some(interval) = summary.interval else { return false };
    let same = interval.lo.total_cmp(&interval.hi).is_eq();
    same || interval.hi - interval.lo < NARROW * summary.median.abs()
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The course.
    pub course: &'static Course,
    /// Who was asked for, by place among the contenders.
    pub wanted: Vec<usize>,
    /// How often each leg was run.
    pub repeat: Repeat,
    /// What was measured, by world; the points are the legs, each so many times.
    pub worlds: Vec<Results>,
    /// The simulator at the phases of the runs on Linux, if both were asked for and these are other phases.
    pub same: Option<Results>,
    /// Worlds that were asked for and are not to be had here.
    pub absent: Vec<(OnWorld, String)>,
}

impl Comparison {
    /// Why nothing of it is to be trusted, by run.
    pub fn untrusted(&self) -> Vec<NamedDoubt> {
        doubts(&self.worlds, Validity::untrusted)
    }

    /// Why a run says nothing, by run.
    pub fn invalid(&self) -> Vec<NamedDoubt> {
        doubts(&self.worlds, Validity::invalid)
    }
}

/// A contender, by place in the course.
pub type Rival = usize;

/// The contenders that these words name: a name, or the protocol that names begin with. None: all.
pub fn select(course: &Course, words: &[String]) -> Result<Vec<Rival>, String> {
    let named = |name: &str, word: &String| name == word || name.starts_with(&format!("{word}-"));
    let names: Vec<&str> = course.contenders.iter().map(|contender| contender.name.as_str()).collect();
    for word in words {
        if !names.iter().any(|name| named(name, word)) {
            let meant = crate::scenario::did_you_mean(word, names.iter().copied());
            return Err(format!("unknown protocol `{word}`{meant}; there are: {}", names.join(", ")));
        }
    }
    let wanted = |name: &&str| words.is_empty() || words.iter().any(|word| named(name, word));
    Ok((0..).zip(&names).filter(|(_, name)| wanted(name)).map(|(place, _)| place).collect())
}

/// How often each leg is gone over at a scale. Of fewer than six, no two values enclose the median with 95 %.
pub const fn repetitions(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 6,
        Scale::Default | Scale::Full => 20,
    }
}

/// How long a comparison takes on Linux, without what is repeated, with `jobs` runs side by side.
pub fn span(course: &'static Course, wanted: &[Rival], repetitions: usize, jobs: usize) -> Duration {
    let points = points(course, repetitions, |leg| wanted.contains(&leg.contender));
    let plans = points.iter().filter_map(|point| point.plans(&[]).ok()).flatten();
    plans.map(|plan| plan.duration).sum::<Duration>() / jobs.max(1) as u32
}

/// Carries the course out in these worlds.
pub fn compare(
    course: &'static Course,
    wanted: &[Rival],
    repeat: Repeat,
    worlds: &[OnWorld],
    how: &How<'_>,
) -> Result<Comparison, String> {
    let mut comparison = Comparison {
        course,
        wanted: wanted.to_vec(),
        repeat,
        worlds: Vec::new(),
        same: None,
        absent: Vec::new(),
    };
    let as_often = |world| {
        let points = points(course, repeat.on_linux(), |leg| wanted.contains(&leg.contender));
        reproduce::measure_all(&points, world, &[], how)
    };
    for world in worlds {
        let results = match (world, repeat) {
            (OnWorld::Sim, Repeat::UntilNarrow(_)) => until_narrow(course, wanted, how),
            _ => as_often(*world),
        };
        match results {
            Ok(results) => comparison.worlds.push(results),
            Err(NotRun::Cannot(why)) => comparison.absent.push((*world, why)),
            Err(NotRun::Broken(why)) => return Err(why),
        }
    }
    if comparison.worlds.len() == 2 && repeat != Repeat::Fixed(repeat.on_linux()) {
        comparison.same = match as_often(OnWorld::Sim) {
            Ok(same) => Some(same),
            Err(NotRun::Cannot(why) | NotRun::Broken(why)) => return Err(why),
        };
    }
    Ok(comparison)
}

/// In the simulator. All legs of a move and workload are run equally often, at the same phases: they are compared in pairs.
fn until_narrow(course: &'static Course, wanted: &[Rival], how: &How<'_>) -> Result<Results, NotRun> {
    let mut all = Results { world: OnWorld::Sim, rows: Vec::new() };
    for r#move in 0..course.moves.len() {
        for workload in 0..course.workloads.len() {
            let here = |leg: &Leg| {
                wanted.contains(&leg.contender) && leg.r#move == r#move && leg.workload == workload
            };
            let mut last = Vec::new();
            for n in STEPS {
                let results = reproduce::measure_all(&points(course, n, here), OnWorld::Sim, &[], how)?;
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

/// A point for each repetition of the legs that are wanted.
pub(crate) fn points(course: &'static Course, n: usize, wanted: impl Fn(&Leg) -> bool) -> Vec<Point> {
    let legs = course.legs.iter().filter(|leg| wanted(leg));
    legs.flat_map(|leg| (0..n).map(move |number| point(course, leg, (number, n), FIRST_SEED))).collect()
}

/// The seed of the phases, if none is asked for.
const FIRST_SEED: u64 = 1;

/// The plan of one of several repetitions of a leg, with `more` settings on top of the course's. Another seed is other phases.
pub fn plan(
    leg: &'static Leg,
    (number, of): (u64, u64),
    seed: u64,
    more: &[Setting],
) -> Result<Plan, ScenarioError> {
    let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let point = point(course()?, leg, (place(number), place(of)), seed);
    let (file, text) = Scenario::find(point.scenario)?;
    let settings: Vec<Setting> = point.overrides.iter().chain(more).cloned().collect();
    Scenario::plan(&file, &text, &settings, seed)
}

/// What a run of a leg gave, by metric.
pub fn values_of_run(outcome: &Outcome) -> Result<BTreeMap<String, f64>, String> {
    let first = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), *values.first()?));
    Ok(measure::measure(outcome)?.into_iter().filter_map(first).collect())
}

/// One of `n` repetitions, from 0. The same instants for all legs: the phases have a name that no leg has for itself.
fn point(course: &'static Course, leg: &'static Leg, (number, n): (usize, usize), seed: u64) -> Point {
    let name = if seed == FIRST_SEED { "compare".to_owned() } else { format!("compare {seed}") };
    let phase = reproduce::stratified(&name, n, PERIOD).get(number).copied().unwrap_or_default();
    let departure = DEPARTURE + phase;
    let window = course.moves.get(leg.r#move).map(|each| each.window).unwrap_or_default();
    let mut overrides = leg.mover.departing(departure);
    overrides.push(Setting::new("duration", nanos(departure + window)));
    Point {
        label: format!("{} {}/{n}", leg.name, number + 1),
        setting: vec![("leg", leg.name.as_str().into())],
        kind: Kind::Main,
        worlds: BOTH,
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
    }
}
