//! Carrying the points of an experiment out, in one world or both.

use super::{Check, Experiment, MustHold, Point, Samples, Scale};
use crate::linux::{self, LinuxError, Programs};
use crate::run::{self, OnWorld, Outcome};
use crate::{Plan, scenario};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trace::{Doubt, NamedDoubt};
use wire::Duration;

/// Bits a second that runs side by side on Linux may offer together.
const SIDE_BY_SIDE: u64 = 50_000_000;
/// How often an invalid run on Linux is repeated, alone.
const REPEATS: usize = 2;

/// Why there is no run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotRun {
    /// This world is not to be had here; says what is missing.
    Cannot(String),
    /// Something of ours is wrong.
    Broken(String),
}

/// How to carry points out.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Runs side by side.
    pub jobs: usize,
    /// The programs of a run on Linux; without them there is none.
    pub linux: Option<&'a Programs>,
    /// Set, it ends what runs on Linux, and no further run begins.
    pub stop: &'a AtomicBool,
    /// Is called with the name of a point after each of its runs.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Is called with the name of a point of which runs are repeated, and why.
    pub repeated: &'a (dyn Fn(&str, &[Doubt]) + Sync),
}

/// Carries out a plan. The only place that knows which world is which.
pub fn run_point(plan: Plan, world: OnWorld, how: &How<'_>) -> Result<Outcome, NotRun> {
    if how.stop.load(Ordering::Relaxed) {
        return Err(NotRun::Broken("interrupted".to_owned()));
    }
    match world {
        OnWorld::Sim => run::simulate(plan).map_err(|error| NotRun::Broken(error.to_string())),
        OnWorld::Linux => {
            let programs = how.linux.ok_or_else(|| NotRun::Cannot("no programs to run".to_owned()))?;
            linux::run(plan, programs, how.stop).map_err(|error| match error {
                missing @ (LinuxError::Machine(_) | LinuxError::Lacks(_)) => {
                    NotRun::Cannot(missing.to_string())
                }
                error => NotRun::Broken(error.to_string()),
            })
        }
    }
}

/// Whether to believe a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Validity {
    /// Yes.
    Valid,
    /// Not this one, and its repetitions were no better: it counts as not holding.
    Invalid(Vec<Doubt>),
    /// The ledger does not balance: nothing that was measured counts.
    Untrusted(Vec<Doubt>),
}

impl Validity {
    /// Why it counts as not holding.
    pub(crate) fn invalid(&self) -> &[Doubt] {
        if let Self::Invalid(why) = self { why } else { &[] }
    }

    /// Why nothing of it counts.
    pub(crate) fn untrusted(&self) -> &[Doubt] {
        if let Self::Untrusted(why) = self { why } else { &[] }
    }
}

/// What a point gave in one world.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The values.
    pub samples: Samples,
    /// Whether to believe them.
    pub validity: Validity,
}

impl Measured {
    /// The mean of a metric over the repetitions.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        crate::stats::mean(self.samples.get(metric)?)
    }

    /// Whether to believe it.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }
}

/// What all points of an experiment gave in one world.
#[derive(Clone, Debug)]
pub struct Results {
    /// Which world.
    pub world: OnWorld,
    /// The points in their order; one that is not for this world has nothing.
    pub rows: Vec<(Point, Option<Measured>)>,
}

impl Results {
    /// The points that are wanted and were measured.
    pub fn rows(&self, wanted: impl Fn(&Point) -> bool) -> impl Iterator<Item = (&Point, &Measured)> {
        let measured = self.rows.iter().filter_map(|(point, measured)| Some((point, measured.as_ref()?)));
        measured.filter(move |(point, _)| wanted(point))
    }

    /// What the point of this name gave.
    pub fn named(&self, label: &str) -> Option<&Measured> {
        self.rows.iter().find(|(point, _)| point.label == label)?.1.as_ref()
    }
}

/// A must-hold in one world.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Which.
    pub must_hold: &'static MustHold,
    /// Where.
    pub world: OnWorld,
    /// What it saw.
    pub check: Check,
    /// Whether a run that it needs is not to be believed.
    pub invalid: bool,
}

impl Verdict {
    /// Whether it holds.
    pub const fn holds(&self) -> bool {
        self.check.holds && !self.invalid
    }
}

/// An experiment that was carried out.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which.
    pub experiment: &'static Experiment,
    /// How often and how long.
    pub scale: Scale,
    /// All its points.
    pub points: Vec<Point>,
    /// What was measured, by world.
    pub worlds: Vec<Results>,
    /// Worlds that were asked for and are not to be had here.
    pub absent: Vec<(OnWorld, String)>,
}

impl Report {
    /// What was measured in a world.
    pub fn results(&self, world: OnWorld) -> Option<&Results> {
        self.worlds.iter().find(|results| results.world == world)
    }

    /// Every must-hold in every world that it was carried out in.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.worlds.iter().flat_map(|results| verdicts(self.experiment.must_hold, results)).collect()
    }

    /// What else was checked, and decides nothing.
    pub fn observed(&self) -> Vec<Verdict> {
        self.worlds.iter().flat_map(|results| verdicts(self.experiment.observed, results)).collect()
    }

    /// Why nothing of it is to be trusted, by point.
    pub fn untrusted(&self) -> Vec<NamedDoubt> {
        doubts(&self.worlds, Validity::untrusted)
    }

    /// Why a point says nothing, by point.
    pub fn invalid(&self) -> Vec<NamedDoubt> {
        doubts(&self.worlds, Validity::invalid)
    }
}

/// What there is of this doubt, by point and world.
pub(crate) fn doubts(worlds: &[Results], of: fn(&Validity) -> &[Doubt]) -> Vec<NamedDoubt> {
    let all = worlds.iter().flat_map(|results| results.rows(|_| true).map(move |row| (results, row)));
    all.flat_map(|(results, (point, measured))| {
        let name = format!("{} on {}", point.label, results.world.name());
        NamedDoubt::all(&name, of(&measured.validity))
    })
    .collect()
}

/// Each of these in one world.
fn verdicts(all: &'static [MustHold], results: &Results) -> Vec<Verdict> {
    let here = all.iter().filter(|must_hold| must_hold.worlds.contains(&results.world));
    here.map(|must_hold| {
        let invalid = results.rows(must_hold.needs).any(|(_, measured)| !measured.is_valid());
        Verdict { must_hold, world: results.world, check: (must_hold.check)(results), invalid }
    })
    .collect()
}

/// Carries an experiment out in these worlds.
pub fn reproduce(
    experiment: &'static Experiment,
    scale: Scale,
    worlds: &[OnWorld],
    how: &How<'_>,
) -> Result<Report, String> {
    let points = (experiment.points)(scale);
    let mut report = Report { experiment, scale, points, worlds: Vec::new(), absent: Vec::new() };
    for world in worlds.iter().filter(|world| experiment.worlds.contains(world)) {
        match measure_all(&report.points, *world, &[], how) {
            Ok(results) => report.worlds.push(results),
            Err(NotRun::Cannot(why)) => report.absent.push((*world, why)),
            Err(NotRun::Broken(why)) => return Err(format!("{}: {why}", experiment.id)),
        }
    }
    Ok(report)
}

/// One run of one point, by their places.
#[derive(Clone, Copy)]
struct Unit {
    point: usize,
    run: usize,
    duration: Duration,
}

/// All runs of these points, the longest first: the last worker then ends soon after the others.
fn units(points: &[Point], world: OnWorld, more: &[scenario::Setting]) -> Result<Vec<Unit>, NotRun> {
    let mut units = Vec::new();
    for (place, point) in points.iter().enumerate().filter(|(_, point)| point.worlds.contains(&world)) {
        for run in 0..point.count() {
            let duration = point.plan(run, more).map_err(broken)?.duration;
            units.push(Unit { point: place, run, duration });
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.duration));
    Ok(units)
}

fn broken(error: impl std::fmt::Display) -> NotRun {
    NotRun::Broken(error.to_string())
}

/// How long these points take on Linux with so many runs side by side, or in virtual time with one.
pub(super) fn span(points: &[Point], world: OnWorld, jobs: usize) -> Duration {
    let mut busy = vec![Duration::ZERO; workers(points, world, jobs)];
    for unit in units(points, world, &[]).into_iter().flatten() {
        if let Some(worker) = busy.iter_mut().min() {
            *worker += unit.duration;
        }
    }
    busy.into_iter().max().unwrap_or_default()
}

/// Carries points out in one world, with `more` overrides on top of their own.
pub(crate) fn measure_all(
    points: &[Point],
    world: OnWorld,
    more: &[scenario::Setting],
    how: &How<'_>,
) -> Result<Results, NotRun> {
    let units = units(points, world, more)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(point) = points.get(unit.point) else { break };
            let reading = Reading::of(point, unit.run, world, more, how);
            let ended = reading.is_err();
            done.push((*unit, reading));
            (how.progress)(&point.label);
            if ended {
                break;
            }
        }
        done
    };
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers(points, world, how.jobs)).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    // One that failed may have kept others from being begun: its reason is all there is to say.
    let is_there = done.iter().any(|(_, reading)| reading.is_ok());
    done.sort_by_key(|(unit, _)| (unit.point, unit.run));
    let mut readings: Vec<Vec<Reading>> = points.iter().map(|_| Vec::new()).collect();
    for (unit, reading) in done {
        let label = points.get(unit.point).map(|point| point.label.as_str()).unwrap_or_default();
        let reading = reading.map_err(|error| match error {
            // A world that carried one run out is there: what it cannot do now is a failure, not an absence.
            NotRun::Cannot(why) if is_there => NotRun::Broken(format!("{label}: {why}")),
            error => error,
        })?;
        if let Some(all) = readings.get_mut(unit.point) {
            all.push(reading);
        }
    }
    let mut results = Results { world, rows: Vec::new() };
    for (point, readings) in points.iter().zip(readings) {
        let here = point.worlds.contains(&world);
        let believed = here.then(|| believed(point, world, more, how, readings)).transpose()?;
        results.rows.push((point.clone(), believed));
    }
    Ok(results)
}

/// On Linux, points whose load sums to too much do not run side by side.
fn workers(points: &[Point], world: OnWorld, jobs: usize) -> usize {
    let heaviest = points.iter().map(|point| point.load).max().unwrap_or(0).max(1);
    let room = if world == OnWorld::Linux { (SIDE_BY_SIDE / heaviest) as usize } else { usize::MAX };
    let runs = points.iter().filter(|point| point.worlds.contains(&world)).map(Point::count).sum();
    jobs.min(room).min(runs).max(1)
}

/// What a point gave. Its invalid runs on Linux are repeated, alone.
fn believed(
    point: &Point,
    world: OnWorld,
    more: &[scenario::Setting],
    how: &How<'_>,
    mut readings: Vec<Reading>,
) -> Result<Measured, NotRun> {
    let mut measured = judge(point, &readings);
    for _ in 0..REPEATS {
        let Some(doubts) = worth_repeating(&measured.validity, world, !more.is_empty()) else { break };
        (how.repeated)(&point.label, doubts);
        let all = metrics(&readings);
        for (run, reading) in readings.iter_mut().enumerate() {
            if !reading.doubts.is_empty() || reading.is_short(point, &all) {
                *reading = Reading::of(point, run, world, more, how)?;
            }
        }
        measured = judge(point, &readings);
    }
    Ok(measured)
}

/// What is wrong with a run, if another may do better: the machine's timing, frames that its kernel dropped, or that less happened
/// than was to be measured. Anything else, as a packet that nothing accounts for, stays a doubt. The simulator would only say the same again; so would a run whose
/// mechanism is `broken` on purpose, if all that is wrong is that less happened.
pub(crate) fn worth_repeating(validity: &Validity, world: OnWorld, broken: bool) -> Option<&[Doubt]> {
    let Validity::Invalid(doubts) = validity else { return None };
    let is_short = |doubt: &Doubt| matches!(doubt, Doubt::Short { .. });
    let expected = broken && doubts.iter().all(is_short);
    let of_the_machine = |doubt: &Doubt| doubt.is_timing() || matches!(doubt, Doubt::CaptureDrops { .. });
    let may_do_better = doubts.iter().all(|doubt| of_the_machine(doubt) || is_short(doubt));
    (world == OnWorld::Linux && !expected && may_do_better).then_some(doubts)
}

/// What one run of a point gave.
#[derive(Clone, Default)]
struct Reading {
    samples: Samples,
    doubts: Vec<Doubt>,
    is_open: bool,
}

impl Reading {
    /// Carries the run out and reads it.
    fn of(
        point: &Point,
        run: usize,
        world: OnWorld,
        more: &[scenario::Setting],
        how: &How<'_>,
    ) -> Result<Self, NotRun> {
        let plan = point.plan(run, more).map_err(broken)?;
        Ok(Self::from(point, &run_point(plan, world, how)?))
    }

    fn from(point: &Point, outcome: &Outcome) -> Self {
        let mut doubts = outcome.doubts.clone();
        let samples = (point.measure)(outcome).unwrap_or_else(|why| {
            doubts.push(Doubt::NotMeasured { why });
            Samples::new()
        });
        Self { samples, doubts, is_open: !outcome.ledger.balances() }
    }

    /// Whether it gave fewer values of one of these metrics than its share of the point's repetitions.
    fn is_short(&self, point: &Point, metrics: &BTreeSet<&'static str>) -> bool {
        let share = point.n / point.count();
        metrics.iter().any(|metric| self.samples.get(metric).map_or(0, Vec::len) != share)
    }
}

/// All metrics of which any of these runs gave a value.
fn metrics(readings: &[Reading]) -> BTreeSet<&'static str> {
    readings.iter().flat_map(|reading| reading.samples.keys().copied()).collect()
}

/// Puts the runs of a point together, and says whether to believe them.
fn judge(point: &Point, readings: &[Reading]) -> Measured {
    let mut samples = Samples::new();
    for (metric, values) in readings.iter().flat_map(|reading| &reading.samples) {
        samples.entry(metric).or_default().extend(values);
    }
    let mut doubts: Vec<Doubt> = readings.iter().flat_map(|reading| reading.doubts.clone()).collect();
    for (metric, values) in samples.iter().filter(|(_, values)| values.len() != point.n) {
        let (metric, values) = ((*metric).to_owned(), values.len());
        doubts.push(Doubt::Short { metric, values, repetitions: point.n });
    }
    let is_open = readings.iter().any(|reading| reading.is_open);
    let validity = match (is_open, doubts.is_empty()) {
        (true, _) => Validity::Untrusted(doubts),
        (false, false) => Validity::Invalid(doubts),
        (false, true) => Validity::Valid,
    };
    Measured { samples, validity }
}

/// Reads the one run of a point, and says whether to believe it.
#[cfg(test)]
pub(crate) fn judge_one(point: &Point, outcome: &Outcome) -> Measured {
    judge(point, &[Reading::from(point, outcome)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_are_invalid_are_repeated() {
        let mut point = (crate::reproduce::EXPERIMENTS[1].points)(Scale::Quick).remove(0);
        point.runs.truncate(3);
        point.n = 3;
        let gap = Reading { samples: Samples::from([("gap_ms", vec![1.0])]), ..Reading::default() };
        let set = || Doubt::WallClockSet { process: "mobile".to_owned() };
        let late = Reading { doubts: vec![set()], ..gap.clone() };
        let readings = [gap, Reading::default(), late];
        let all = metrics(&readings);
        let again = readings.each_ref().map(|one| !one.doubts.is_empty() || one.is_short(&point, &all));
        assert_eq!(again, [false, true, true]);
        let short = Doubt::Short { metric: "gap_ms".to_owned(), values: 2, repetitions: 3 };
        let why = vec![set(), short];
        assert_eq!(judge(&point, &readings).validity, Validity::Invalid(why));
    }

    #[test]
    fn runs_of_one_point_go_side_by_side_the_longest_first() {
        let points = (crate::reproduce::EXPERIMENTS[1].points)(Scale::Quick);
        let main: Vec<Point> = points.into_iter().take(2).collect();
        let [one, four] = [1, 4].map(|jobs| span(&main, OnWorld::Linux, jobs));
        assert_eq!(four * 4, one, "all of these last as long, and there are four for each of four workers");
        let units = units(&main, OnWorld::Linux, &[]).unwrap_or_default();
        assert!(units.len() == 16 && units.is_sorted_by(|one, next| one.duration >= next.duration));
    }
}
