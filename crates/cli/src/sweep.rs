//! `wayfare run` of a grid: `[sweep]` in the scenario, or alternatives in `--set`.

use crate::Failure;
use crate::measuring::{keep, unusable};
use crate::output::{Format, Progress, print, tell};
use experiments::batch;
use experiments::sweep::{self, Done, Job, Journal, Sweep};
use recorder::kept::Folder;
use recorder::run::Outcome;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::NamedDoubt;

/// The largest number of failures that are listed.
const NAMED: usize = 100;

/// Opens the sweep's journal of finished runs, and the folder of its tables and figures.
fn open(sweep: &Sweep, folder: &Path, force: bool) -> Result<(Journal, Folder), Failure> {
    let journal = Journal::open(folder, sweep).map_err(|error| unusable(&error))?;
    let kept = Folder::open(folder, [], force).map_err(|error| unusable(&error))?;
    for name in sweep::files_in(folder) {
        kept.check(&name).map_err(|error| unusable(&error))?;
    }
    Ok((journal, kept))
}

/// Executes the runs of a sweep that its journal does not contain, `side_by_side` at a time, and writes the tables and
/// figures.
pub(crate) fn sweep(
    sweep: &Sweep,
    jobs: &[Job],
    side_by_side: usize,
    folder: &Path,
    (format, force): (Format, bool),
    stop: &AtomicBool,
    carry_out: impl Fn(&Job) -> Result<Outcome, Failure> + Sync,
) -> Result<(), Failure> {
    let (journal, mut kept) = open(sweep, folder, force)?;
    if !journal.is_empty() {
        tell!("{} of {} runs are complete already, and are not repeated", journal.len(), jobs.len());
    }
    let open: Vec<(usize, &Job)> =
        jobs.iter().enumerate().filter(|(number, _)| !journal.has(*number)).collect();
    let mut progress = Progress::new(open.len());
    let run = |place: u64| {
        let open = usize::try_from(place).ok().and_then(|place| open.get(place));
        let (number, job) = open.ok_or(Failure::Interrupted)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        // An error of one run is likely to affect others, so no further run is started.
        let outcome = carry_out(job).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let done = Done::of(*number, job, &outcome);
        journal.note(&done).map_err(|error| {
            stop.store(true, Ordering::Relaxed);
            Failure::Machine(format!("cannot write {}: {error}", folder.display()))
        })?;
        Ok(done)
    };
    let mut fresh = Ok(Vec::new());
    batch::each(open.len() as u64, side_by_side, run, |_, done| {
        progress.step();
        match (&mut fresh, done) {
            (Ok(all), Ok(done)) => all.push(done),
            (_, Err(failure)) => {
                fresh = Err(failure);
                return ControlFlow::Break(());
            }
            (Err(_), _) => {}
        }
        ControlFlow::Continue(())
    });
    drop(progress);
    let fresh: Vec<Done> = fresh?;
    let all = journal.all(fresh);
    for (name, csv) in sweep::csv(sweep, &all) {
        keep(&mut kept, &format!("{name}.csv"), &csv)?;
    }
    let figures = sweep::figures(sweep, &all);
    for (name, figure) in &figures {
        keep(&mut kept, &format!("{name}.svg"), &figure.svg())?;
    }
    match format {
        Format::Text => {
            let mut text = format!("{}\nwritten to {}", sweep::text(sweep, &all), folder.display());
            if let Some((name, _)) = figures.first() {
                let _ =
                    write!(text, "; the first figure is\n{}", folder.join(format!("{name}.svg")).display());
            }
            print(&format!("{text}\n"));
        }
        Format::Json => print(&format!("{:#}\n", sweep::json(sweep, &all))),
    }
    let name =
        |job: usize| jobs.get(job).map_or_else(|| format!("run {}", job + 1), |job| sweep.name_of(job));
    let of_run = |run: &Done| NamedDoubt::all(&name(run.job), &run.doubts);
    let doubts: Vec<NamedDoubt> = all.iter().flat_map(of_run).collect();
    let failures = all.iter().flat_map(|run| run.failures.iter().map(move |what| (run.job, what)));
    let mut held = true;
    for (job, what) in failures.take(NAMED) {
        held = false;
        tell!("failure: {}: {what}", name(job));
    }
    match (doubts.is_empty(), held) {
        (false, _) => Err(Failure::Untrusted(doubts)),
        (true, false) => Err(Failure::DidNotHold),
        (true, true) => Ok(()),
    }
}
