//! Carrying the points of an experiment out, in one world or both.

use super::{Check, Experiment, MustHold, Point, Samples, Scale};
use crate::linux::{self, LinuxError, Programs};
use crate::run::{self, OnWorld, Outcome};
use crate::{Plan, scenario};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trace::{Doubt, NamedDoubt};

/// Bits a second that points which run side by side on Linux may offer together.
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
    /// Points side by side.
    pub jobs: usize,
    /// The programs of a run on Linux; without them there is none.
    pub linux: Option<&'a Programs>,
    /// Set, it ends what runs on Linux, and no further run begins.
    pub stop: &'a AtomicBool,
    /// Is told of every point that is done.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Is told of every point that is carried out again, and why.
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
        self.worlds.iter().flat_map(|results| verdicts(self.experiment, results)).collect()
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

/// Every must-hold of an experiment in one world.
fn verdicts(experiment: &'static Experiment, results: &Results) -> Vec<Verdict> {
    let here = experiment.must_hold.iter().filter(|must_hold| must_hold.worlds.contains(&results.world));
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

/// Carries points out in one world, with `more` overrides on top of their own.
pub(crate) fn measure_all(
    points: &[Point],
    world: OnWorld,
    more: &[scenario::Setting],
    how: &How<'_>,
) -> Result<Results, NotRun> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let here = point.worlds.contains(&world);
            let measured = here.then(|| measure(point, world, more, how)).transpose();
            let ended = measured.is_err();
            done.push((point.label.clone(), measured));
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
    let mut rows = Vec::new();
    for point in points {
        let place = done.iter().position(|(label, _)| *label == point.label);
        let Some((_, measured)) = place.map(|place| done.swap_remove(place)) else { continue };
        rows.push((point.clone(), measured));
    }
    // One that failed may have kept others from being begun: its reason is all there is to say.
    let is_there = rows.iter().any(|(_, measured)| matches!(measured, Ok(Some(_))));
    let mut results = Results { world, rows: Vec::new() };
    for (point, measured) in rows {
        let measured = measured.map_err(|error| match error {
            // A world that carried one point out is there: what it cannot do now is a failure, not an absence.
            NotRun::Cannot(why) if is_there => NotRun::Broken(format!("{}: {why}", point.label)),
            error => error,
        })?;
        let believed = measured.map(|first| repeated(&point, world, more, how, first)).transpose()?;
        results.rows.push((point, believed));
    }
    Ok(results)
}

/// On Linux, points whose load sums to too much do not run side by side.
fn workers(points: &[Point], world: OnWorld, jobs: usize) -> usize {
    let heaviest = points.iter().map(|point| point.load).max().unwrap_or(0).max(1);
    let room = if world == OnWorld::Linux { (SIDE_BY_SIDE / heaviest) as usize } else { usize::MAX };
    jobs.min(room).min(points.len()).max(1)
}

/// An invalid run on Linux is repeated alone.
fn repeated(
    point: &Point,
    world: OnWorld,
    more: &[scenario::Setting],
    how: &How<'_>,
    first: Measured,
) -> Result<Measured, NotRun> {
    let mut measured = first;
    for _ in 0..REPEATS {
        let Some(doubts) = worth_repeating(&measured.validity, world, !more.is_empty()) else { break };
        (how.repeated)(&point.label, doubts);
        measured = measure(point, world, more, how)?;
    }
    Ok(measured)
}

/// What is wrong with a run, if another may do better. The simulator would only say the same again; so would a run whose
/// mechanism is `broken` on purpose, if all that is wrong is that less happened in it than was to be measured.
pub(crate) fn worth_repeating(validity: &Validity, world: OnWorld, broken: bool) -> Option<&[Doubt]> {
    let Validity::Invalid(doubts) = validity else { return None };
    let expected = broken && doubts.iter().all(|doubt| matches!(doubt, Doubt::Short { .. }));
    (world == OnWorld::Linux && !expected).then_some(doubts)
}

fn measure(
    point: &Point,
    world: OnWorld,
    more: &[scenario::Setting],
    how: &How<'_>,
) -> Result<Measured, NotRun> {
    let plans = point.plans(more).map_err(|error| NotRun::Broken(error.to_string()))?;
    let outcomes = plans.into_iter().map(|plan| run_point(plan, world, how));
    let mut all = Reading::default();
    for outcome in outcomes {
        all.add(point, &outcome?);
    }
    Ok(all.judge(point))
}

/// What the runs of a point gave, as far as they were read.
#[derive(Default)]
struct Reading {
    samples: Samples,
    doubts: Vec<Doubt>,
    is_open: bool,
}

impl Reading {
    fn add(&mut self, point: &Point, outcome: &Outcome) {
        self.doubts.extend_from_slice(&outcome.doubts);
        self.is_open |= !outcome.ledger.balances();
        match (point.measure)(outcome) {
            Ok(samples) => {
                for (metric, values) in samples {
                    self.samples.entry(metric).or_default().extend(values);
                }
            }
            Err(why) => self.doubts.push(Doubt::NotMeasured { why }),
        }
    }

    fn judge(mut self, point: &Point) -> Measured {
        for (metric, values) in self.samples.iter().filter(|(_, values)| values.len() != point.n) {
            let (metric, values) = ((*metric).to_owned(), values.len());
            self.doubts.push(Doubt::Short { metric, values, repetitions: point.n });
        }
        let validity = match (self.is_open, self.doubts.is_empty()) {
            (true, _) => Validity::Untrusted(self.doubts),
            (false, false) => Validity::Invalid(self.doubts),
            (false, true) => Validity::Valid,
        };
        Measured { samples: self.samples, validity }
    }
}

/// Reads the one run of a point, and says whether to believe it.
#[cfg(test)]
pub(crate) fn judge(point: &Point, outcome: &Outcome) -> Measured {
    let mut reading = Reading::default();
    reading.add(point, outcome);
    reading.judge(point)
}
