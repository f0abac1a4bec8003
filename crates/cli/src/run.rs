//! `wayfare run SCENARIO`

use crate::output::{Format, Progress, print};
use crate::{Failure, count, interrupt, linux_failure};
use draw::Snap;
use lab::batch::{self, Cost};
use lab::run::{OnWorld, Outcome};
use lab::rundir::{self, Options, RunFile};
use lab::scenario::{Setting, stem};
use lab::sweep::{Job, Sweep};
use lab::{Plan, Scenario, ScenarioError, report};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A name as `list` prints it, or the path of a file.
    scenario: String,
    /// Who carries the packets.
    #[arg(long, value_enum, default_value_t = On::Sim)]
    on: On,
    /// Change a value: ROLE.KEY=VALUE, or the path of a value in the file. KEY=A|B|C: a grid of runs, with each.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The seed of all chance; of the first run, if there are several.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many runs, each with the next seed; of a grid, of each of its points [default: one; of a grid ten, or what the
    /// scenario says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Run it as it stands in its file, whatever its `[sweep]` varies.
    #[arg(long)]
    once: bool,
    /// How many runs at a time [default: one per processor in the simulator, one on Linux].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// How often a run on Linux is repeated when the machine stood still during it.
    #[arg(long, value_name = "N", default_value_t = 2)]
    repeats: usize,
    /// The run directory [default: runs/NAME-WORLD-SEED]; with several runs, the folder that holds them.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How much of each packet the capture keeps: `full`, or a number of bytes.
    #[arg(long, value_name = "BYTES", default_value = "128", value_parser = snap)]
    snap: Snap,
    /// Judge what happens as it happens, and keep nothing: for speed, and for more hosts than records have room. Simulator
    /// only; no run directory is written, and handoffs are not told of.
    #[arg(long, conflicts_with_all = ["out", "jobs", "snap"])]
    no_records: bool,
    /// For people, or for programs: then `run.json`, and nothing else, on standard output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Args {
    fn runs(&self) -> u64 {
        self.runs.unwrap_or(1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum On {
    /// The simulator, in virtual time.
    Sim,
    /// Real daemons on this kernel.
    Linux,
}

fn snap(text: &str) -> Result<Snap, String> {
    match text {
        "full" => Ok(Snap::Full),
        _ => text.parse().map(Snap::First).map_err(|_| "`full`, or a number of bytes".to_owned()),
    }
}

/// A run that has been written down.
struct Done {
    seed: u64,
    dir: PathBuf,
    file: RunFile,
    costs: Vec<Cost>,
    /// Only for a single run.
    text: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.no_records {
        if args.on == On::Linux {
            return Err(Failure::Usage("--no-records is for the simulator".to_owned()));
        }
        let seeds = (args.seed..).take(usize::try_from(args.runs.unwrap_or(1)).unwrap_or(usize::MAX));
        return count::count(&args.scenario, &args.set, &seeds, args.format);
    }
    let sweep = sweep_of(args)?;
    let plans = if sweep.is_some() { Vec::new() } else { plans(args)? };
    let jobs = args.jobs.unwrap_or_else(|| match args.on {
        On::Sim => std::thread::available_parallelism().map_or(1, usize::from),
        On::Linux => 1, // runs beside each other would disturb each other's timing
    });
    let stop = match args.on {
        On::Sim => Arc::default(), // Ctrl-C just ends it: there is nothing to clean up
        On::Linux => interrupt::flag()?,
    };
    if let Some((sweep, all)) = sweep {
        let folder = args.out.clone().unwrap_or_else(|| {
            PathBuf::from("runs").join(format!("{}-{}-sweep", sweep.name, world(args.on).name()))
        });
        let carry_out = |job: &Job| {
            let plan = sweep.plan(job).map_err(|error| Failure::Usage(error.to_string()))?;
            carry_out(args, &plan, &stop)
        };
        return crate::sweep::sweep(&sweep, &all, jobs, &folder, args.format, &stop, carry_out);
    }
    let mut progress = Progress::new(plans.len());
    let results = batch::each(&plans, jobs, |(plan, dir)| one(args, plan, dir, &stop), |_| progress.step());
    drop(progress);
    let done = results.into_iter().collect::<Result<Vec<Done>, Failure>>()?;
    match (args.format, done.as_slice()) {
        (Format::Json, [only]) => print(&only.file.to_json()),
        (Format::Json, all) => print(&batch_json(all)),
        (Format::Text, [only]) => print(&only.text),
        (Format::Text, all) => print(&batch_text(args, all)),
    }
    let several = done.len() > 1;
    let doubts: Vec<String> = done
        .iter()
        .flat_map(|done| done.file.doubts.iter().map(|doubt| (done.seed, doubt)))
        .map(|(seed, doubt)| if several { format!("seed {seed}: {doubt}") } else { doubt.clone() })
        .collect();
    if !doubts.is_empty() {
        return Err(Failure::Untrusted(doubts));
    }
    let failed = done.iter().filter(|done| !done.file.failures.is_empty());
    for done in failed.clone().filter(|_| several) {
        done.file.failures.iter().for_each(|what| eprintln!("does not hold: seed {}: {what}", done.seed));
    }
    if failed.count() > 0 { Err(Failure::DidNotHold) } else { Ok(()) }
}

/// The grid, if the scenario or the settings ask for one. Whatever is wrong shows before anything is started.
fn sweep_of(args: &Args) -> Result<Option<(Sweep, Vec<Job>)>, Failure> {
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    let (file, text) = Scenario::find(&args.scenario).map_err(usage)?;
    if args.once {
        let varied = args.set.iter().find(|setting| setting.alternatives().len() > 1);
        return varied.map_or(Ok(None), |setting| {
            Err(Failure::Usage(format!("--once takes one value of each setting, not {setting}")))
        });
    }
    let runs = args.runs.and_then(|runs| usize::try_from(runs).ok());
    Sweep::of(&file, &text, &args.set, runs, args.seed, world(args.on)).map_err(usage)
}

/// The plans and where each run is kept. Whatever is wrong shows before anything is started.
fn plans(args: &Args) -> Result<Vec<(Plan, PathBuf)>, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let (file, text) = Scenario::find(&args.scenario).map_err(|error| usage(&error))?;
    let world = world(args.on);
    let mut plans = Vec::new();
    for seed in (args.seed..).take(usize::try_from(args.runs()).unwrap_or(usize::MAX)) {
        let plan = Scenario::plan(&file, &text, &args.set, seed).map_err(|error| usage(&error))?;
        let usual = rundir::default_dir(&stem(&file), world, seed);
        let dir = match &args.out {
            None => usual,
            Some(out) if args.runs() == 1 => out.clone(),
            Some(out) => out.join(usual.file_name().unwrap_or_default()),
        };
        rundir::check(&dir).map_err(|error| usage(&error))?;
        plans.push((plan, dir));
    }
    Ok(plans)
}

const fn world(on: On) -> OnWorld {
    match on {
        On::Sim => OnWorld::Sim,
        On::Linux => OnWorld::Linux,
    }
}

fn carry_out(args: &Args, plan: &Plan, stop: &AtomicBool) -> Result<Outcome, Failure> {
    match args.on {
        On::Sim => lab::run::simulate(plan.clone()).map_err(|error| Failure::Usage(error.to_string())),
        On::Linux => {
            let wayfare = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
            let programs = lab::linux::Programs { wayfare, instead: None };
            let told = |why: &str| eprintln!("repeated, for the machine disturbed it: {why}");
            lab::linux::run_undisturbed(plan, &programs, stop, args.repeats, &told)
                .map_err(|error| linux_failure(&error))
        }
    }
}

fn one(args: &Args, plan: &Plan, dir: &Path, stop: &AtomicBool) -> Result<Done, Failure> {
    let outcome = carry_out(args, plan, stop)?;
    let options = Options { snap: args.snap, ..Options::default() };
    let unwritten = |error| Failure::Machine(format!("cannot write {}: {error}", dir.display()));
    let file = rundir::write(&outcome, dir, &options).map_err(unwritten)?;
    let text = if args.runs() == 1 { text(&outcome, dir) } else { String::new() };
    Ok(Done { seed: plan.seed, dir: dir.to_owned(), file, costs: batch::costs(&outcome), text })
}

fn text(outcome: &Outcome, dir: &Path) -> String {
    let mut out = report::text(outcome);
    if let Some(linux) = &outcome.linux {
        let [median, most, worst] = linux.lateness_us;
        let _ = writeln!(
            out,
            "radio: {} frames, late by {median:.0} us (median), {most:.0} us (99 %), {worst:.0} us",
            linux.frames
        );
    }
    let figure = dir.join("figures").join("handoffs.svg");
    let _ = writeln!(out, "\nkept in {}; the figure is\n{}", dir.display(), figure.display());
    out
}

fn batch_text(args: &Args, all: &[Done]) -> String {
    let world = world(args.on).name();
    let name = all.first().map_or("", |done| done.file.scenario.name.as_str());
    let (first, last) = (args.seed, all.last().map_or(0, |done| done.seed));
    let mut out = format!("{name} on {world}, {} runs, seeds {first} to {last}; per handoff:\n\n", all.len());
    let costs: Vec<Cost> = all.iter().flat_map(|done| done.costs.clone()).collect();
    out.push_str(&batch::table(&batch::summary(&costs)));
    if let Some(Done { dir, .. }) = all.first() {
        let folder = dir.parent().unwrap_or(dir);
        let _ = writeln!(out, "\nkept in {}; the figure of the first is", folder.display());
        let _ = writeln!(out, "{}", dir.join("figures").join("handoffs.svg").display());
    }
    out
}

fn batch_json(all: &[Done]) -> String {
    let costs: Vec<Cost> = all.iter().flat_map(|done| done.costs.clone()).collect();
    let runs: Vec<&RunFile> = all.iter().map(|done| &done.file).collect();
    let json = serde_json::json!({ "summary": batch::summary(&costs), "runs": runs });
    format!("{json:#}\n")
}
