//! `wayfare run SCENARIO`: runs a scenario once or several times.

use crate::measuring::{count, few, seed, size, unusable};
use crate::output::{Countdown, Format, Progress, print, tell};
use crate::{Failure, interrupt, linux_failure, measuring};
use draw::Snap;
use experiments::batch::{self, Collected};
use experiments::catalogue;
use experiments::sweep::{Job, Sweep};
use recorder::kept::Folder;
use recorder::report;
use recorder::run::{Backend, Outcome};
use recorder::rundir::{self, Options, RunFile};
use scenario::{Plan, Repetition, Scenario, ScenarioError, Setting, is_shifted, stem};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use trace::NamedDoubt;

#[derive(Clone, clap::Args)]
pub(crate) struct Args {
    /// The name of a built-in scenario (see `wayfare list`), or the path of a file.
    scenario: String,
    /// The backend: the simulator or Linux.
    #[arg(long, value_enum, default_value_t = On::Sim)]
    on: On,
    /// Set a value: KEY is ROLE.NAME, for example `bulk-client.start`, or the path of the value in the scenario file,
    /// for example `cell.1.station_queue`. KEY=A|B|C runs a grid with each of the values. KEY=@FILE reads the value
    /// from a file: use it for secret keys, as every user of the machine can read a command line.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The random seed of the run, or of the first of several runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// The number of runs; for a grid, the number for each point. Each run has the next seed and a different phase: each
    /// move and each start of a flow is shifted by a separate time of at most the scenario's `phase` (1 s by default)
    /// [default: 1; for a grid 10, or the number in the scenario].
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    runs: Option<u64>,
    /// Run only one of several runs, by its number from 1: `--seed S --repetition I --of N` is run I of `--seed S
    /// --runs N`.
    #[arg(long, value_name = "I", requires = "of", conflicts_with = "runs", value_parser = count, allow_negative_numbers = true)]
    repetition: Option<u64>,
    /// The total number of runs, for `--repetition`.
    #[arg(long, value_name = "N", requires = "repetition", value_parser = count, allow_negative_numbers = true)]
    of: Option<u64>,
    /// Ignore the scenario's `[sweep]`: run the scenario once, with the values of the file.
    #[arg(long)]
    once: bool,
    /// The number of runs at the same time [default: one per processor in the simulator, 1 on Linux].
    #[arg(long, value_name = "N", value_parser = few, allow_negative_numbers = true)]
    jobs: Option<u16>,
    /// Repeat a run on Linux at most N times if all its doubts are about timing (the host was too busy) [default: 2].
    /// Linux only.
    #[arg(long, value_name = "N", value_parser = size, allow_negative_numbers = true)]
    repeats: Option<usize>,
    /// The run directory; with several runs, the folder for them [default: runs/NAME-BACKEND-SEED, or
    /// runs/NAME-BACKEND-of-N for N runs, with a digest of the settings].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an earlier run in the run directory; with several runs, also tables and figures in their folder. Other
    /// files are never replaced.
    #[arg(long)]
    force: bool,
    /// The number of bytes of each frame in the capture, from its Ethernet header on: at least 34, or `full`.
    #[arg(long, value_name = "BYTES", default_value = "128", value_parser = snap)]
    snap: Snap,
    /// Keep no records, and write no run directory: for speed, and for scenarios with too many hosts for records. The
    /// ledger, connections and datagrams are checked during the run; handoffs are not reported. Simulator only.
    #[arg(long, conflicts_with_all = ["out", "jobs", "snap", "force"])]
    no_records: bool,
    /// The format of the output: `json` prints `run.json` only.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Args {
    fn runs(&self) -> u64 {
        self.runs.unwrap_or(1)
    }

    /// Returns the index of the first requested run, from 0, and the number of all runs.
    fn repetitions(&self) -> (u64, u64) {
        match (self.repetition, self.of) {
            (Some(number), Some(of)) => (number - 1, of),
            _ => (0, self.runs()),
        }
    }

    /// Returns the seed and the phases of a requested run; `number` counts from 0.
    fn repetition(&self, number: u64) -> (u64, Repetition) {
        let (first, of) = self.repetitions();
        let number = first + number;
        (self.seed.wrapping_add(number), Repetition { number, of, seed: self.seed })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum On {
    /// The simulator, in virtual time.
    Sim,
    /// Real daemons on this kernel.
    Linux,
}

/// The smallest allowed number of bytes of a frame in the capture: its Ethernet header and an IPv4 header.
const LEAST_SNAP: u32 = 14 + 20;

fn snap(text: &str) -> Result<Snap, String> {
    match text {
        "full" => Ok(Snap::Full),
        _ => match text.parse() {
            Ok(bytes) if bytes >= LEAST_SNAP => Ok(Snap::First(bytes)),
            _ => Err(format!("allowed: `full`, or a number of bytes, at least {LEAST_SNAP}")),
        },
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    measuring::check_settings(&args.set)?;
    let (_, text) = catalogue::find(&args.scenario).map_err(|error| Failure::Usage(error.to_string()))?;
    measuring::check_overwritten(&text, &args.set)?;
    if args.no_records {
        if args.on == On::Linux {
            return Err(Failure::Usage("--no-records is allowed only with --on sim".to_owned()));
        }
        check_seeds(args)?;
        interrupt::flag()?;
        let repetitions = (0..args.runs()).map(|number| args.repetition(number));
        return crate::count::count(&args.scenario, &args.set, &repetitions, args.format);
    }
    if args.on == On::Sim && args.repeats.is_some() {
        return Err(Failure::Usage("--repeats is for runs on Linux: use --on linux".to_owned()));
    }
    let sweep = sweep_of(args)?;
    let jobs = match (args.jobs, args.on) {
        (Some(jobs), _) => jobs.into(),
        (None, On::Sim) => std::thread::available_parallelism().map_or(1, usize::from),
        (None, On::Linux) => 1, // concurrent runs would change each other's timing
    };
    let stop = interrupt::flag()?;
    if let Some((sweep, all)) = sweep {
        measuring::warn(sweep.warnings().map_err(|error| Failure::Usage(error.to_string()))?);
        let folder = args.out.clone().unwrap_or_else(|| sweep.default_folder(backend(args.on)));
        let carry_out = |job: &Job| {
            let plan = sweep.plan(job).map_err(|error| Failure::Usage(error.to_string()))?;
            carry_out(args, &plan, &stop)
        };
        return crate::sweep::sweep(&sweep, &all, jobs, &folder, (args.format, args.force), &stop, carry_out);
    }
    if args.runs() == 1 {
        check(args)?;
        let _claim = args.out.as_deref().map(rundir::claim).transpose().map_err(|error| unusable(&error))?;
        return single(args, &stop);
    }
    let folder = folder(args)?;
    let args = &Args { out: Some(folder.clone()), ..args.clone() };
    check(args)?;
    let names = distribution_names(args)?;
    let names = names.each_ref().map(String::as_str);
    let kept = Folder::open(&folder, names, args.force).map_err(|error| unusable(&error))?;
    many(args, jobs, kept, &stop)
}

fn single(args: &Args, stop: &AtomicBool) -> Result<(), Failure> {
    let (plan, dir) = plan(args, 0)?;
    let (outcome, file) = one(args, &plan, &dir, stop)?;
    match args.format {
        Format::Json => print(&json(&file)?),
        Format::Text => print(&text(&outcome, &dir)),
    }
    // The failures are not printed here, because `text` and `json` contain them.
    measuring::judged(NamedDoubt::all("", &file.doubts), usize::from(!file.failures.is_empty()))
}

/// Returns the text of `run.json`, or an error if this text cannot be created.
fn json(file: &RunFile) -> Result<String, Failure> {
    file.to_json().map_err(|error| Failure::Machine(format!("run.json cannot be written: {error}")))
}

/// The largest number of doubts, and of failures, that are listed.
const DOUBTS: usize = 100;

/// Executes the runs, at most `jobs` at a time. Only the measured values of each run are kept in memory.
fn many(args: &Args, jobs: usize, mut kept: Folder, stop: &AtomicBool) -> Result<(), Failure> {
    let runs = args.runs();
    let mut progress = Progress::new(usize::try_from(runs).unwrap_or(usize::MAX));
    let (mut all, mut doubts, mut failed) = (Collected::default(), Vec::new(), None);
    let (mut untrusted, mut failures) = (0, 0);
    let json = args.format == Format::Json;
    if json {
        print("{\n\"runs\": [\n");
    }
    let run = |number: u64| {
        let (plan, dir) = plan(args, number)?;
        let (outcome, file) = one(args, &plan, &dir, stop)?;
        Ok((file, batch::of_run(&batch::measure(&outcome))))
    };
    batch::each(runs, jobs, run, |number, done: Result<_, Failure>| {
        progress.step();
        let (file, values) = match done {
            Ok(done) => done,
            Err(failure) => {
                failed = Some(failure);
                return ControlFlow::Break(());
            }
        };
        if file.doubts.is_empty() {
            all.add(&values);
        } else {
            untrusted += 1;
        }
        let room = DOUBTS.saturating_sub(doubts.len());
        let seed = args.seed.wrapping_add(number);
        for what in &file.failures {
            if failures < DOUBTS {
                tell!("failure: seed {seed}: {what}");
            }
            failures += 1;
        }
        doubts.extend(NamedDoubt::all(&format!("seed {seed}"), &file.doubts).into_iter().take(room));
        if json {
            let comma = if number + 1 < runs { ",\n" } else { "" };
            match self::json(&file) {
                Ok(text) => print(&format!("{}{comma}", text.trim_end())),
                Err(failure) => {
                    failed = Some(failure);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    });
    drop(progress);
    if let Some(failure) = failed {
        return Err(failure);
    }
    let summary = all.summary();
    if json {
        let summary = serde_json::to_string_pretty(&summary).unwrap_or_default();
        print(&format!("\n],\n\"summary\": {summary}\n}}\n"));
    } else {
        let figure = distribution(args, &mut kept, &all)?;
        print(&batch_text(args, &all, untrusted, figure.as_deref())?);
    }
    measuring::judged(doubts, failures)
}

/// Draws the distribution of several runs into their folder. Returns the path, or `None` if there is no figure.
fn distribution(args: &Args, kept: &mut Folder, all: &Collected) -> Result<Option<PathBuf>, Failure> {
    let Some(mut figure) = all.figure(&name(args)?, backend(args.on)) else { return Ok(None) };
    figure.title = figure.title.replace("each at a different phase", phases(args)?);
    let [svg, csv] = distribution_names(args)?;
    measuring::keep(kept, &csv, &figure.csv())?;
    measuring::keep(kept, &svg, &figure.svg()).map(Some)
}

/// Returns a text about the phases of several runs.
fn phases(args: &Args) -> Result<&'static str, Failure> {
    Ok(if is_shifted(&repetition(args, 0)?) {
        "at different phases"
    } else {
        "at the same phases (phase = 0s)"
    })
}

fn distribution_names(args: &Args) -> Result<[String; 2], Failure> {
    let name = format!("{}-{}-distribution", name(args)?, backend(args.on).name());
    Ok(["svg", "csv"].map(|end| format!("{name}.{end}")))
}

fn name(args: &Args) -> Result<String, Failure> {
    let (file, _) = catalogue::find(&args.scenario).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(stem(&file))
}

/// Returns the folder for several runs: that of `--out`, or the default folder.
fn folder(args: &Args) -> Result<PathBuf, Failure> {
    if let Some(out) = &args.out {
        return Ok(out.clone());
    }
    let (name, first) = (name(args)?, repetition(args, 0)?);
    Ok(rundir::default_folder(&name, &first, backend(args.on), args.runs()))
}

/// Returns the grid and its runs, or `None` if neither the scenario nor the settings define a grid.
fn sweep_of(args: &Args) -> Result<Option<(Sweep, Vec<Job>)>, Failure> {
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    let (file, text) = catalogue::find(&args.scenario).map_err(usage)?;
    if args.once {
        let varied = args.set.iter().find(|setting| setting.alternatives().len() > 1);
        return varied.map_or(Ok(None), |setting| {
            let (path, value) = setting.parts();
            Err(Failure::Usage(format!("--set {path}={value}: give one value; with --once there is no grid")))
        });
    }
    let runs = args.runs.and_then(|runs| usize::try_from(runs).ok());
    Sweep::of(&file, &text, &args.set, runs, args.seed, backend(args.on)).map_err(usage)
}

/// Checks that `--repetition` is at most `--of`, and that the seed of the last run does not exceed the largest seed.
fn check_seeds(args: &Args) -> Result<(), Failure> {
    let (first, of) = args.repetitions();
    if first >= of {
        return Err(Failure::Usage(format!(
            "--repetition {}: allowed: 1 to {of}, the value of --of",
            first + 1
        )));
    }
    let last = args.seed.checked_add(of - 1);
    let problem = || {
        Failure::Usage(format!(
            "--seed: the seed of the last run would exceed {}; give a smaller --seed",
            u64::MAX
        ))
    };
    last.map(|_| ()).ok_or_else(problem)
}

/// Checks the seeds, the scenario and the run directories before the first run is started, and prints warnings.
fn check(args: &Args) -> Result<(), Failure> {
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    check_seeds(args)?;
    let (file, text) = catalogue::find(&args.scenario).map_err(usage)?;
    measuring::warn(scenario::warnings(&file, &text, &args.set).map_err(usage)?);
    plan(args, 0)?;
    let Some(out) = &args.out else { return Ok(()) };
    // A folder that does not exist has no earlier runs to protect, so nothing more is checked.
    for number in (1..args.runs()).take_while(|_| out.exists()) {
        plan(args, number)?;
    }
    Ok(())
}

fn repetition(args: &Args, number: u64) -> Result<Plan, Failure> {
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    let (file, text) = catalogue::find(&args.scenario).map_err(usage)?;
    let (seed, repetition) = args.repetition(number);
    Scenario::repetition(&file, &text, &args.set, seed, repetition).map_err(usage)
}

/// Returns the plan and the directory of one of the requested runs; `number` counts from 0.
fn plan(args: &Args, number: u64) -> Result<(Plan, PathBuf), Failure> {
    let plan = repetition(args, number)?;
    let dir = match &args.out {
        None => rundir::default_dir(&name(args)?, &plan, backend(args.on)),
        Some(out) if args.runs() == 1 => out.clone(),
        Some(out) => rundir::member(out, &name(args)?, backend(args.on), plan.seed),
    };
    rundir::check(&dir, &plan, backend(args.on), args.force).map_err(|error| unusable(&error))?;
    Ok((plan, dir))
}

const fn backend(on: On) -> Backend {
    match on {
        On::Sim => Backend::Sim,
        On::Linux => Backend::Linux,
    }
}

fn carry_out(args: &Args, plan: &Plan, stop: &AtomicBool) -> Result<Outcome, Failure> {
    match args.on {
        On::Sim => recorder::run::simulate(plan.clone()).map_err(|error| Failure::Usage(error.to_string())),
        On::Linux => on_linux(plan, args.repeats.unwrap_or(2), stop),
    }
}

/// Executes a run on this kernel. Repeats the run, at most `repeats` times, if all its doubts are about timing (host
/// contention, steal time).
pub(crate) fn on_linux(plan: &Plan, repeats: usize, stop: &AtomicBool) -> Result<Outcome, Failure> {
    let programs = emulator::run::Programs::of_this_program().map_err(|error| linux_failure(&error))?;
    let told = |why: &str| tell!("the run is repeated, because the host was too busy: {why}");
    emulator::run::run_undisturbed(plan, &programs, stop, repeats, &told)
        .map_err(|error| linux_failure(&error))
}

fn one(args: &Args, plan: &Plan, dir: &Path, stop: &AtomicBool) -> Result<(Outcome, RunFile), Failure> {
    // With `--out`, the caller has locked `dir` or the folder that contains it.
    let _claim = match args.out {
        None => Some(rundir::claim(dir).map_err(|error| unusable(&error))?),
        Some(_) => None,
    };
    let outcome = {
        let name = format!("{} on {}", plan.name, backend(args.on).name());
        let _countdown = (args.on == On::Linux && args.runs() == 1)
            .then(|| Countdown::new(&name, plan.duration + measuring::SETUP));
        carry_out(args, plan, stop)?
    };
    let options = Options { snap: args.snap, ..Options::default() };
    let unwritten = |error| Failure::Machine(format!("cannot write {}: {error}", dir.display()));
    let file = rundir::write(&outcome, dir, &options).map_err(unwritten)?;
    Ok((outcome, file))
}

fn text(outcome: &Outcome, dir: &Path) -> String {
    let mut out = report::text(outcome);
    if let Some(linux) = emulator::run::report_of(outcome) {
        let [median, most, worst] = linux.lateness_us;
        let _ = writeln!(
            out,
            "link emulator: {} frames, late by {median:.0} us (median), {most:.0} us (99 %), {worst:.0} us (worst)",
            linux.frames
        );
        out.push_str(&emulator::run::timing(&linux));
        out.push_str(&kernel_tcp(outcome, &linux));
    }
    if !outcome.handoffs.is_empty() {
        let _ = writeln!(
            out,
            "these are the values of one run; `--runs 40` executes 40 runs {}",
            variety(&outcome.plan)
        );
    }
    let figure = dir.join("figures").join("handoffs.svg");
    let _ = writeln!(out, "\nwritten to {}; the figure is\n{}", dir.display(), figure.display());
    out
}

/// Returns a line for each host whose scenario changes the kernel's TCP: the settings as its kernel had them.
fn kernel_tcp(outcome: &Outcome, linux: &emulator::run::LinuxReport) -> String {
    let mut out = String::new();
    for (host, report) in outcome.plan.hosts.iter().zip(&linux.hosts) {
        if let Some(summary) = report.summary.as_ref().filter(|_| host.config.tcp.changes_the_kernel()) {
            let all: Vec<String> = summary
                .tcp_settings
                .iter()
                .map(|(name, value)| format!("{name} {}", one_line(value)))
                .collect();
            let _ = writeln!(out, "TCP of {}'s kernel: {}", report.name, all.join(", "));
        }
    }
    out
}

/// Returns a value without the tabs between its numbers.
fn one_line(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns how several runs of `plan` would differ from each other: in their phases, or only in their seeds.
fn variety(plan: &Plan) -> &'static str {
    if is_shifted(plan) { "at different phases" } else { "with different seeds" }
}

fn batch_text(
    args: &Args,
    all: &Collected,
    untrusted: u64,
    figure: Option<&Path>,
) -> Result<String, Failure> {
    let (name, backend, runs) = (name(args)?, backend(args.on).name(), args.runs());
    let (first, last) = (args.seed, args.seed.wrapping_add(runs - 1));
    let phases = if is_shifted(&repetition(args, 0)?) {
        "at different phases"
    } else {
        "at the same phases (phase = 0s)"
    };
    let mut out = format!("{name} on {backend}, {runs} runs {phases}, seeds {first} to {last}\n\n");
    if untrusted > 0 {
        let _ = writeln!(out, "{untrusted} runs have doubts; the table does not include them\n");
    }
    out.push_str(&batch::table(&all.summary()));
    let _ = writeln!(out, "\nwritten to {}", folder(args)?.display());
    if let Some(path) = figure {
        let _ = writeln!(out, "the figure of the distribution is\n{}", path.display());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_are_at_different_phases_only_if_the_scenario_is_shifted() {
        let (file, text) = Scenario::find("first").unwrap();
        let of = |settings: &[Setting]| variety(&Scenario::plan(&file, &text, settings, 1).unwrap());
        assert_eq!(of(&[]), "at different phases");
        assert_eq!(of(&["phase=0s".parse().unwrap()]), "with different seeds");
    }
}
