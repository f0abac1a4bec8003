//! Executes the points of an experiment on a backend, and evaluates their runs.

use super::{Check, Combine, Experiment, MustHold, Point, Samples, Scale, TimeSeries};
use crate::execute::{How, NotRun, run_point};
use recorder::run::{Backend, Outcome};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};
use trace::{Doubt, NamedDoubt};
use wire::Duration;

/// The largest total load of parallel runs on Linux, in bit/s. A run with a larger load is executed alone.
const SIDE_BY_SIDE: u64 = 50_000_000;
/// The largest number of repetitions of an invalid run on Linux. A repetition is not parallel with other runs.
const REPEATS: usize = 2;

/// Whether the values of a measurement may be used, and if not, why.
#[derive(Clone, PartialEq, Debug)]
pub enum Validity {
    /// The measurement is valid.
    Valid,
    /// The measurement is invalid, also after repetitions if it was repeated. Properties that need it do not hold.
    Invalid(Vec<Doubt>),
    /// The ledger of a run does not balance, so no value of the measurement may be used.
    Untrusted(Vec<Doubt>),
}

impl Validity {
    /// Returns the doubts about an invalid measurement; empty for any other.
    pub(crate) fn invalid(&self) -> &[Doubt] {
        if let Self::Invalid(why) = self { why } else { &[] }
    }

    /// Returns the doubts about a measurement whose ledger does not balance; empty for any other.
    pub(crate) fn untrusted(&self) -> &[Doubt] {
        if let Self::Untrusted(why) = self { why } else { &[] }
    }
}

/// The results of a point on one backend.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The values of each metric, one for each repetition.
    pub samples: Samples,
    /// The time series of each run, if the point has a [`Point::trace`]; otherwise empty.
    pub series: Vec<TimeSeries>,
    /// The validity of the values.
    pub validity: Validity,
}

impl Measured {
    /// Returns the mean of a metric over the repetitions, or `None` if there is no value.
    pub fn mean(&self, metric: &str) -> Option<f64> {
        crate::stats::mean(self.samples.get(metric)?)
    }

    /// Returns the greatest value of a metric, or `None` if there is no value.
    pub fn greatest(&self, metric: &str) -> Option<f64> {
        self.samples.get(metric)?.iter().copied().max_by(f64::total_cmp)
    }

    /// Returns whether the values are valid.
    pub fn is_valid(&self) -> bool {
        self.validity == Validity::Valid
    }
}

/// The results of all points of an experiment on one backend.
#[derive(Clone, Debug)]
pub struct Results {
    /// The backend on which the points were measured.
    pub backend: Backend,
    /// The points in the order of the experiment, with their results. `None` if the point is not for this backend.
    pub rows: Vec<(Point, Option<Measured>)>,
}

impl Results {
    /// Returns the wanted points that were measured, with their results.
    pub fn rows(&self, wanted: impl Fn(&Point) -> bool) -> impl Iterator<Item = (&Point, &Measured)> {
        let measured = self.rows.iter().filter_map(|(point, measured)| Some((point, measured.as_ref()?)));
        measured.filter(move |(point, _)| wanted(point))
    }

    /// Returns all values of a metric at the wanted points.
    pub fn values<'a>(
        &'a self,
        wanted: impl Fn(&Point) -> bool + 'a,
        metric: &'a str,
    ) -> impl Iterator<Item = f64> + 'a {
        let samples = self.rows(wanted).filter_map(move |(_, measured)| measured.samples.get(metric));
        samples.flatten().copied()
    }

    /// Returns the results of the point with this label, or `None` if there are none.
    pub fn named(&self, label: &str) -> Option<&Measured> {
        self.rows.iter().find(|(point, _)| point.label == label)?.1.as_ref()
    }
}

/// The verdict on a property on one backend.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The property that was checked.
    pub must_hold: &'static MustHold,
    /// The backend whose results were checked.
    pub backend: Backend,
    /// The result of the check.
    pub check: Check,
    /// Whether a run that the property needs is invalid.
    pub invalid: bool,
}

impl Verdict {
    /// Returns whether the property holds, and all runs that it needs are valid.
    pub const fn holds(&self) -> bool {
        self.check.holds && !self.invalid
    }
}

/// The results of an experiment on each measured backend.
#[derive(Clone, Debug)]
pub struct Report {
    /// The experiment that was executed.
    pub experiment: &'static Experiment,
    /// The number and the length of the runs.
    pub scale: Scale,
    /// All points of the experiment.
    pub points: Vec<Point>,
    /// The results of each requested backend that is available.
    pub backends: Vec<Results>,
    /// Requested backends that are not available on this machine, with the reason.
    pub absent: Vec<(Backend, String)>,
}

impl Report {
    /// Returns the results on a backend, or `None` if it was not measured.
    pub fn results(&self, backend: Backend) -> Option<&Results> {
        self.backends.iter().find(|results| results.backend == backend)
    }

    /// Returns the report without its invalid points, and the names of these.
    pub(super) fn divided(&self) -> (Self, Vec<String>) {
        let mut valid = self.clone();
        let mut invalid = Vec::new();
        for results in &mut valid.backends {
            for (point, measured) in &mut results.rows {
                if measured.take_if(|measured| !measured.is_valid()).is_some() {
                    invalid.push(format!("{} ({})", point.label, results.backend.title()));
                }
            }
        }
        (valid, invalid)
    }

    /// Returns the verdict on every property on every measured backend.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.backends.iter().flat_map(|results| verdicts(self.experiment.must_hold, results)).collect()
    }

    /// Returns the verdicts on the observed properties, which do not decide the result.
    pub fn observed(&self) -> Vec<Verdict> {
        self.backends.iter().flat_map(|results| verdicts(self.experiment.observed, results)).collect()
    }

    /// Returns the doubts that make the whole report invalid, each with the name of its point and backend.
    pub fn untrusted(&self) -> Vec<NamedDoubt> {
        doubts(&self.backends, Validity::untrusted)
    }

    /// Returns the doubts that make the values of single points invalid, each with the name of its point and backend.
    pub fn invalid(&self) -> Vec<NamedDoubt> {
        doubts(&self.backends, Validity::invalid)
    }
}

/// Returns the doubts that `of` selects, each with the name of its point and backend.
pub(crate) fn doubts(backends: &[Results], of: fn(&Validity) -> &[Doubt]) -> Vec<NamedDoubt> {
    let all = backends.iter().flat_map(|results| results.rows(|_| true).map(move |row| (results, row)));
    all.flat_map(|(results, (point, measured))| {
        let name = format!("{} on {}", point.label, results.backend.name());
        NamedDoubt::all(&name, of(&measured.validity))
    })
    .collect()
}

/// Returns a verdict on each of these properties that is required on the backend of the results.
fn verdicts(all: &'static [MustHold], results: &Results) -> Vec<Verdict> {
    let here = all.iter().filter(|must_hold| must_hold.backends.contains(&results.backend));
    here.map(|must_hold| {
        let invalid = results.rows(must_hold.needs).any(|(_, measured)| !measured.is_valid());
        Verdict { must_hold, backend: results.backend, check: (must_hold.check)(results), invalid }
    })
    .collect()
}

/// Executes an experiment on each of these backends that the experiment supports. Backends that this machine does not
/// have are listed in the report. Returns an error if a run fails.
pub fn reproduce(
    experiment: &'static Experiment,
    scale: Scale,
    backends: &[Backend],
    how: &How<'_>,
) -> Result<Report, String> {
    let points = (experiment.points)(scale);
    let mut report = Report { experiment, scale, points, backends: Vec::new(), absent: Vec::new() };
    for backend in backends.iter().filter(|backend| experiment.backends.contains(backend)) {
        match measure_all(&report.points, *backend, &[], how) {
            Ok(results) => report.backends.push(results),
            Err(NotRun::Cannot(why)) => report.absent.push((*backend, why)),
            Err(NotRun::Broken(why)) => return Err(format!("{}: {why}", experiment.id)),
        }
    }
    Ok(report)
}

/// One run of one point: the index of the point, the index of the run in the point, the duration of the run, and its load in
/// bit/s.
#[derive(Clone, Copy)]
struct Unit {
    point: usize,
    run: usize,
    duration: Duration,
    load: u64,
}

/// Returns all runs of these points, the longest first, so that all workers end at about the same time.
fn units(points: &[Point], backend: Backend, more: &[scenario::Setting]) -> Result<Vec<Unit>, NotRun> {
    let mut units = Vec::new();
    for (place, point) in points.iter().enumerate().filter(|(_, point)| point.is_run_on(backend)) {
        let durations = point.durations(more).map_err(broken)?;
        units.extend(durations.into_iter().enumerate().map(|(run, duration)| Unit {
            point: place,
            run,
            duration,
            load: if backend == Backend::Linux { point.load } else { 0 },
        }));
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.duration));
    Ok(units)
}

fn broken(error: impl std::fmt::Display) -> NotRun {
    NotRun::Broken(error.to_string())
}

/// Returns the time that the runs of these points take on a backend with `jobs` parallel runs. For the simulator, this
/// time is virtual.
pub(super) fn span(points: &[Point], backend: Backend, jobs: usize) -> Duration {
    let mut free = vec![Duration::ZERO; jobs.max(1)];
    // The ends and the loads of the runs that were begun.
    let mut begun: Vec<(Duration, u64)> = Vec::new();
    // When the last run was begun: runs begin in their order.
    let mut latest = Duration::ZERO;
    for unit in units(points, backend, &[]).into_iter().flatten() {
        let Some(worker) = free.iter_mut().min() else { break };
        let mut at = latest.max(*worker);
        loop {
            begun.retain(|(end, _)| *end > at);
            let next = begun.iter().map(|(end, _)| *end).min();
            let Some(next) = next.filter(|_| !fits(begun.iter().map(|(_, load)| load).sum(), unit.load))
            else {
                break;
            };
            at = next;
        }
        latest = at;
        *worker = at + unit.duration;
        begun.push((*worker, unit.load));
    }
    free.into_iter().max().unwrap_or_default()
}

/// Returns whether a run with this load may begin beside runs with the total load `others`.
const fn fits(others: u64, load: u64) -> bool {
    others == 0 || others.saturating_add(load) <= SIDE_BY_SIDE
}

/// Hands out runs in the order of their list, while the total load of those that are being executed is not too large.
struct Queue<'a> {
    units: &'a [Unit],
    state: Mutex<Begun>,
    changed: Condvar,
}

/// The number of runs that were begun, and the total load of those that are being executed.
#[derive(Default)]
struct Begun {
    runs: usize,
    load: u64,
}

impl<'a> Queue<'a> {
    fn new(units: &'a [Unit]) -> Self {
        Self { units, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until the next run of the list may begin, and returns it; `None` after the last one. No run overtakes another one:
    /// otherwise, a run with a large load would begin last, and be executed alone. The run ends when [`Taken`] is dropped.
    fn next(&self) -> Option<(&'a Unit, Taken<'_>)> {
        let waits = |now: &mut Begun| self.units.get(now.runs).is_some_and(|unit| !fits(now.load, unit.load));
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        let unit = self.units.get(state.runs)?;
        state.runs += 1;
        state.load += unit.load;
        drop(state);
        // The run after this one may begin beside it, or there is none.
        self.changed.notify_all();
        Some((unit, Taken { queue: self, load: unit.load }))
    }
}

/// The load of a run that is being executed. A run that panics frees it too, so that no other run waits for ever.
struct Taken<'a> {
    queue: &'a Queue<'a>,
    load: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().unwrap_or_else(PoisonError::into_inner).load -= self.load;
        self.queue.changed.notify_all();
    }
}

/// Measures points on one backend, with the settings `more` after those of each point.
pub(crate) fn measure_all(
    points: &[Point],
    backend: Backend,
    more: &[scenario::Setting],
    how: &How<'_>,
) -> Result<Results, NotRun> {
    let units = units(points, backend, more)?;
    let queue = Queue::new(&units);
    let work = || {
        let mut done = Vec::new();
        while let Some((unit, taken)) = queue.next() {
            let Some(point) = points.get(unit.point) else { break };
            let reading = Reading::of(point, unit.run, backend, more, how);
            drop(taken);
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
        let workers: Vec<_> = (0..how.jobs.clamp(1, units.len().max(1))).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    // After a failed run, some runs may not have started. So the first error is returned, and no results.
    let is_there = done.iter().any(|(_, reading)| reading.is_ok());
    done.sort_by_key(|(unit, _)| (unit.point, unit.run));
    let mut readings: Vec<Vec<Reading>> = points.iter().map(|_| Vec::new()).collect();
    for (unit, reading) in done {
        let label = points.get(unit.point).map(|point| point.label.as_str()).unwrap_or_default();
        let reading = reading.map_err(|error| match error {
            // If another run succeeded, the backend is available. So this run has failed for another reason.
            NotRun::Cannot(why) if is_there => NotRun::Broken(format!("{label}: {why}")),
            error => error,
        })?;
        if let Some(all) = readings.get_mut(unit.point) {
            all.push(reading);
        }
    }
    let mut results = Results { backend, rows: Vec::new() };
    for (point, readings) in points.iter().zip(readings) {
        let here = point.is_run_on(backend);
        let believed = here.then(|| believed(point, backend, more, how, readings)).transpose()?;
        results.rows.push((point.clone(), believed));
    }
    let combined = points.iter().map(|point| combined(point, &results)).collect::<Vec<_>>();
    for ((_, measured), combined) in results.rows.iter_mut().zip(combined) {
        *measured = measured.take().or(combined);
    }
    Ok(results)
}

/// Returns the results of a point whose values are computed from those of other points; `None` for any other point, and
/// for another backend.
fn combined(point: &Point, results: &Results) -> Option<Measured> {
    let combine: Combine = point.combine.filter(|_| point.backends.contains(&results.backend))?;
    let of = |wanted: fn(&Measured) -> bool| -> Vec<(&Point, &Samples)> {
        let rows = results.rows(|_| true).filter(|(_, measured)| wanted(measured));
        rows.map(|(point, measured)| (point, &measured.samples)).collect()
    };
    let doubts = |why| {
        // If the values are there, and only are not valid, the reasons for that are those of this point too. Otherwise, a busy
        // host would look like a missing measurement.
        let invalid: Vec<Doubt> =
            results.rows(|_| true).flat_map(|(_, measured)| measured.validity.invalid().to_vec()).collect();
        let is_there = combine(point, &of(|_| true)).is_ok();
        if is_there && !invalid.is_empty() { invalid } else { vec![Doubt::NotMeasured { why }] }
    };
    let reading = match combine(point, &of(Measured::is_valid)) {
        Ok(samples) => Reading { samples, ..Reading::default() },
        Err(why) => Reading { doubts: doubts(why), ..Reading::default() },
    };
    Some(judge(point, &[reading]))
}

/// Returns the results of a point. Its invalid runs on Linux are repeated, not in parallel with others.
fn believed(
    point: &Point,
    backend: Backend,
    more: &[scenario::Setting],
    how: &How<'_>,
    mut readings: Vec<Reading>,
) -> Result<Measured, NotRun> {
    let mut measured = judge(point, &readings);
    for _ in 0..REPEATS {
        let Some(doubts) = worth_repeating(&measured.validity, backend, !more.is_empty()) else { break };
        (how.repeated)(&point.label, doubts);
        let all = metrics(&readings);
        for (run, reading) in readings.iter_mut().enumerate() {
            if !reading.doubts.is_empty() || reading.is_short(point, &all) {
                *reading = Reading::of(point, run, backend, more, how)?;
            }
        }
        measured = judge(point, &readings);
    }
    Ok(measured)
}

/// Returns the problems of an invalid Linux run, if a repetition may be valid: timing of the machine, frames dropped by
/// its kernel, or fewer values than expected. A repetition does not change other problems, for example an unaccounted
/// packet. With `broken`, a breaker is applied, so too few values are expected, and are no reason to repeat. A repeated
/// simulator run gives the same result.
pub(crate) fn worth_repeating(validity: &Validity, backend: Backend, broken: bool) -> Option<&[Doubt]> {
    let Validity::Invalid(doubts) = validity else { return None };
    let is_short = |doubt: &Doubt| matches!(doubt, Doubt::Short { .. });
    let expected = broken && doubts.iter().all(is_short);
    let of_the_machine = |doubt: &Doubt| doubt.is_timing() || matches!(doubt, Doubt::CaptureDrops { .. });
    let may_do_better = doubts.iter().all(|doubt| of_the_machine(doubt) || is_short(doubt));
    (backend == Backend::Linux && !expected && may_do_better).then_some(doubts)
}

/// The values of one run of a point.
#[derive(Clone, Default)]
struct Reading {
    samples: Samples,
    series: Option<TimeSeries>,
    doubts: Vec<Doubt>,
    is_open: bool,
}

impl Reading {
    /// Executes one run of a point, and evaluates it.
    fn of(
        point: &Point,
        run: usize,
        backend: Backend,
        more: &[scenario::Setting],
        how: &How<'_>,
    ) -> Result<Self, NotRun> {
        let plan = point.plan(run, more).map_err(broken)?;
        Ok(Self::from(point, &run_point(plan, backend, how)?))
    }

    fn from(point: &Point, outcome: &Outcome) -> Self {
        let mut doubts = outcome.doubts.clone();
        let samples = (point.measure)(outcome).unwrap_or_else(|why| {
            doubts.push(Doubt::NotMeasured { why });
            Samples::new()
        });
        let series = point.trace.map(|trace| trace(outcome));
        Self { samples, series, doubts, is_open: !outcome.ledger.balances() }
    }

    /// Returns whether, for one of these metrics, the run has fewer or more values than repetitions.
    fn is_short(&self, point: &Point, metrics: &BTreeSet<&'static str>) -> bool {
        let share = point.n / point.count();
        metrics.iter().any(|metric| self.samples.get(metric).map_or(0, Vec::len) != share)
    }
}

/// Returns all metrics for which at least one of these runs has a value.
fn metrics(readings: &[Reading]) -> BTreeSet<&'static str> {
    readings.iter().flat_map(|reading| reading.samples.keys().copied()).collect()
}

/// Combines the runs of a point, and determines their validity.
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
    let series = readings.iter().filter_map(|reading| reading.series.clone()).collect();
    Measured { samples, series, validity }
}

/// Evaluates the only run of a point, and determines its validity.
#[cfg(test)]
pub(crate) fn judge_one(point: &Point, outcome: &Outcome) -> Measured {
    judge(point, &[Reading::from(point, outcome)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_are_invalid_are_repeated() {
        let mut point = (crate::paper::EXPERIMENTS[1].points)(Scale::Quick).remove(0);
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
        let points = (crate::paper::EXPERIMENTS[1].points)(Scale::Quick);
        let main: Vec<Point> = points.into_iter().take(1).collect();
        let [one, four] = [1, 4].map(|jobs| span(&main, Backend::Linux, jobs));
        assert_eq!(four * 4, one, "all of these last as long, and there are two for each of four workers");
        let units = units(&main, Backend::Linux, &[]).unwrap_or_default();
        assert!(units.len() == 8 && units.is_sorted_by(|one, next| one.duration >= next.duration));
    }

    /// Returns runs with these loads.
    fn loads<const N: usize>(loads: [u64; N]) -> [Unit; N] {
        loads.map(|load| Unit { point: 0, run: 0, duration: Duration::from_secs(1), load })
    }

    /// Runs with a large load are executed one after the other, and others beside them only if there is room.
    #[test]
    fn the_load_of_parallel_runs_is_limited() {
        let mut points = (crate::paper::EXPERIMENTS[1].points)(Scale::Quick);
        points.truncate(1);
        let lasts = |load: u64| {
            let points: Vec<Point> = points.iter().map(|point| Point { load, ..point.clone() }).collect();
            span(&points, Backend::Linux, 4)
        };
        let alone = lasts(SIDE_BY_SIDE);
        assert_eq!([1, SIDE_BY_SIDE / 4, SIDE_BY_SIDE / 2].map(lasts), [alone / 4, alone / 4, alone / 2]);
        assert_eq!(lasts(SIDE_BY_SIDE * 3), alone);
        let units = loads([SIDE_BY_SIDE / 2; 3]);
        let (queue, (send, receive)) = (Queue::new(&units), std::sync::mpsc::channel());
        let first = [queue.next().unwrap(), queue.next().unwrap()];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _third = queue.next().unwrap();
                send.send(()).unwrap();
            });
            let soon = std::time::Duration::from_millis(50);
            receive.recv_timeout(soon).expect_err("there is no room for a third run");
            drop(first);
            receive.recv().unwrap();
        });
        assert!(queue.next().is_none(), "there are three runs");
    }

    /// A heavy run waits until the others have ended. Lighter runs behind it in the list wait too: otherwise, the heavy run would
    /// begin last, and the times of [`span`] would be those of another schedule.
    #[test]
    fn no_run_overtakes_another_one() {
        let units = loads([1, SIDE_BY_SIDE, 1]);
        let (queue, (send, receive)) = (Queue::new(&units), std::sync::mpsc::channel());
        let light = queue.next().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (queue, send) = (&queue, send.clone());
                scope.spawn(move || {
                    let (unit, _taken) = queue.next().unwrap();
                    send.send(unit.load).unwrap();
                });
            }
            let soon = std::time::Duration::from_millis(50);
            receive.recv_timeout(soon).expect_err("the light run waits behind the heavy one");
            drop(light);
            assert_eq!([1, 2].map(|_| receive.recv().unwrap()), [SIDE_BY_SIDE, 1]);
        });
    }
}
