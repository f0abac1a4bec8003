//! `wayfare agree [SCENARIO...]`: checks that the simulator and Linux give the same distributions of results.

use crate::measuring::{count, few, folder, keep, seed, size, unusable, unwritten};
use crate::output::{Format, Progress, print, tell};
use crate::run::on_linux;
use crate::{Failure, interrupt, measuring};
use experiments::agree::{self, Agreement, Measured, NotCounted, Recorded, Repeated, Report, Run};
use experiments::batch;
use recorder::kept::SingleFile;
use recorder::run::Backend;
use scenario::{Setting, stem};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use trace::doubt::joined;
use trace::{Doubt, Fingerprint, NamedDoubt};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names of built-in scenarios (see `wayfare list`), or paths of files [default: first, mobile-ip/download,
    /// cellular-ip/udp-loss, sigma/handoff, indirect-tcp/handoff-time and every leg of `compare`; with --from, all
    /// scenarios of the record].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Set a value on both backends: KEY is ROLE.NAME, for example `bulk-client.start`, or the path of the value in the
    /// scenario file, for example `cell.1.station_queue`. KEY=@FILE reads the value from a file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The number of runs in the simulator, each at a different phase.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = count, allow_negative_numbers = true)]
    runs: u64,
    /// The number of runs on Linux, each at a different phase.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = count, allow_negative_numbers = true)]
    linux_runs: u64,
    /// The random seed of the first run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,
    /// The number of runs on Linux at the same time. Parallel runs compete for the processors, so more frames can be
    /// late.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = few, allow_negative_numbers = true)]
    jobs: u16,
    /// Repeat a run on Linux at most N times if all its doubts are about timing (the host was too busy).
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = size, allow_negative_numbers = true)]
    repeats: usize,
    /// The folder for `agree.json` (the values of each run), `agree.csv`, and a figure of each scenario. Runs that
    /// `agree.json` has already (same scenario, settings, seed, kernel and number of runs) are not repeated, unless
    /// they are invalid only because of timing (the host was too busy) [default: runs/agree, or runs/agree.2 and so on
    /// if files there must not be replaced].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that Wayfare did not write, or that were changed after Wayfare wrote them.
    #[arg(long)]
    force: bool,
    /// Run nothing, and evaluate the record at PATH: a folder with `agree.json`, or a file.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["set", "runs", "linux_runs", "seed", "jobs", "repeats", "out"])]
    from: Option<PathBuf>,
    /// With --from: repeat the runs in the simulator, and use the recorded runs on Linux.
    #[arg(long, requires = "from")]
    simulate_again: bool,
    /// Write a Markdown page about all recorded scenarios to this file, and the record beside it (`.linux.json`
    /// instead of `.md`).
    #[arg(long, value_name = "FILE")]
    write_table: Option<PathBuf>,
    /// The format of the output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn agree(args: &Args) -> Result<(), Failure> {
    let page = args.write_table.as_deref().map(|path| {
        let beside = path.with_extension("linux.json");
        let page = SingleFile::new(path, agree::is_page, args.force)?;
        Ok((page, SingleFile::new(&beside, |text| Recorded::read(text).is_ok(), args.force)?))
    });
    let page = page.transpose().map_err(|error: std::io::Error| unusable(&error))?;
    let (recorded, reports) = match &args.from {
        Some(from) => recorded(args, from)?,
        None => measured(args)?,
    };
    match args.format {
        Format::Text => print(&agree::text(&reports)),
        Format::Json => print(&format!("{:#}\n", agree::json(&reports))),
    }
    if let Some((page, beside)) = page {
        for (file, text) in [(beside, recorded.json()), (page, Ok(agree::page(&recorded)))] {
            text.and_then(|text| file.put(&text)).map_err(|error| unwritten(file.path(), &error))?;
        }
    }
    judged(&reports)
}

/// Reads the record of earlier runs. Returns it with the reports of the requested scenarios.
fn recorded(args: &Args, from: &Path) -> Result<(Recorded, Vec<Report>), Failure> {
    let path = if from.is_dir() { from.join(RECORD) } else { from.to_owned() };
    let recorded = read(&path)?.ok_or_else(|| {
        Failure::Usage(format!(
            "--from: {} does not exist; give a folder with {RECORD}, or a file that `agree` wrote",
            path.display()
        ))
    })?;
    let recorded = if args.simulate_again { simulated_again(&recorded)? } else { recorded };
    let reports = if args.scenarios.is_empty() {
        recorded.all().iter().map(agree::report).collect()
    } else {
        let find = |scenario: &String| {
            let found = recorded.find(scenario).map(agree::report);
            found.ok_or_else(|| {
                Failure::Usage(format!(
                    "--from: {} has no runs of {scenario}; give no scenario to evaluate all recorded ones",
                    path.display()
                ))
            })
        };
        args.scenarios.iter().map(find).collect::<Result<_, _>>()?
    };
    Ok((recorded, reports))
}

/// Returns the recorded runs on Linux, with new runs of the simulator.
fn simulated_again(recorded: &Recorded) -> Result<Recorded, Failure> {
    let mut again = Recorded::default();
    for measured in recorded.all() {
        let scenario = measured.repeated().map_err(Failure::Usage)?;
        let mut now = measured.without_simulator(fingerprint(&scenario, measured.sim.of)?);
        simulate_missing(&scenario, &mut now)?;
        again.keep(now).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(again)
}

/// The name of the file with the measured values of each run, in the folder of `--out`.
const RECORD: &str = "agree.json";

/// The name of the file with a row for each compared metric, in the folder of `--out`.
const TABLE: &str = "agree.csv";

fn figure_name(scenario: &str) -> String {
    format!("{}.svg", stem(scenario).replace('/', "-"))
}

fn read(path: &Path) -> Result<Option<Recorded>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Recorded::read(&text).map(Some).map_err(|error| {
            Failure::Usage(format!("{} is not a record that `wayfare agree` wrote: {error}", path.display()))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::Machine(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Executes the runs that are not recorded yet. Returns the record and the reports.
fn measured(args: &Args) -> Result<(Recorded, Vec<Report>), Failure> {
    measuring::check_settings(&args.set)?;
    if let Some(varied) = args.set.iter().find(|setting| setting.alternatives().len() > 1) {
        let (path, value) = varied.parts();
        return Err(Failure::Usage(format!(
            "--set {path}={value}: give one value; `agree` does not run grids"
        )));
    }
    if args.seed.checked_add(args.runs.max(args.linux_runs) - 1).is_none() {
        return Err(Failure::Usage(format!(
            "--seed: the seed of the last run would exceed {}; give a smaller --seed",
            u64::MAX
        )));
    }
    let scenarios = scenarios(args)?;
    for scenario in &scenarios {
        measuring::check_overwritten(scenario.text(), &args.set)?;
        measuring::warn(scenario.warnings().map_err(|error| Failure::Usage(error.to_string()))?);
    }
    let figures: Vec<String> = scenarios.iter().map(|scenario| figure_name(&scenario.name)).collect();
    let names: Vec<&str> = figures.iter().map(String::as_str).chain([TABLE]).collect();
    let mut folder = folder(args.out.as_deref(), "agree", &names, args.force)?;
    folder.accept(RECORD, |text| Recorded::read(text).is_ok()).map_err(|error| unusable(&error))?;
    let mut recorded = read(&folder.path().join(RECORD))?.unwrap_or_default();
    let stop = interrupt::flag()?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut reports = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        tell!("{} of {}: {}", index + 1, scenarios.len(), scenario.name);
        let runs = [args.runs, args.linux_runs];
        let now = Measured::new(scenario, runs, &kernel);
        let now = now.with_runs_of(recorded.find(&scenario.name), fingerprint(scenario, args.runs)?);
        let now = complete(args, scenario, now, &stop, &mut |measured| {
            recorded.keep(measured.clone()).map_err(|error| Failure::Usage(error.to_string()))?;
            let text = recorded.json().map_err(|error| unwritten(Path::new(RECORD), &error))?;
            keep(&mut folder, RECORD, &text).map(|_| ())
        })?;
        let figure = agree::figure(&scenario.name, [&now.sim, &now.linux]);
        keep(&mut folder, &figure_name(&scenario.name), &figure.svg())?;
        reports.push(agree::report(&now));
        keep(&mut folder, TABLE, &agree::csv(&reports))?;
    }
    Ok((recorded, reports))
}

/// Returns the scenarios to run. All scenarios are read before the first run starts.
fn scenarios(args: &Args) -> Result<Vec<Repeated>, Failure> {
    let usage = |error: scenario::ScenarioError| Failure::Usage(error.to_string());
    let names = if args.scenarios.is_empty() {
        let legs = agree::legs().map_err(usage)?;
        agree::SCENARIOS.iter().map(|name| (*name).to_owned()).chain(legs).collect()
    } else {
        args.scenarios.clone()
    };
    names.iter().map(|name| Repeated::of(name, &args.set, args.seed).map_err(usage)).collect()
}

/// Executes the first of `of` runs of the scenario in the simulator, and returns the fingerprint of this run.
fn fingerprint(scenario: &Repeated, of: u64) -> Result<Fingerprint, Failure> {
    let outcome = simulate(scenario, 0, of)?;
    outcome.fingerprint.ok_or_else(|| {
        Failure::Usage(format!(
            "{}: the simulated run has no fingerprint; this is a bug in Wayfare, please report it",
            scenario.name
        ))
    })
}

fn simulate(scenario: &Repeated, number: u64, of: u64) -> Result<recorder::run::Outcome, Failure> {
    let plan = scenario.plan(number, of).map_err(|error| Failure::Usage(error.to_string()))?;
    recorder::run::simulate(plan).map_err(|error| Failure::Usage(error.to_string()))
}

/// Executes the missing runs. Calls `kept` with the results after the runs in the simulator, and after each run on
/// Linux.
fn complete(
    args: &Args,
    scenario: &Repeated,
    mut now: Measured,
    stop: &AtomicBool,
    kept: &mut dyn FnMut(&Measured) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    simulate_missing(scenario, &mut now)?;
    kept(&now)?;
    let (missing, all) = (now.linux.missing(), now.linux.of);
    let run = |number| {
        let plan = scenario.plan(number, all).map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(scenario.read(&on_linux(&plan, args.repeats, stop)?))
    };
    each(&missing, args.jobs.into(), run, |number, run| {
        told(Backend::Linux, number, &run);
        now.linux.add(number, run);
        kept(&now)
    })?;
    Ok(now)
}

/// Executes the missing runs in the simulator.
fn simulate_missing(scenario: &Repeated, now: &mut Measured) -> Result<(), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for is_same in [false, true] {
        if is_same && now.same.of == now.sim.of {
            now.same = now.sim.clone();
        }
        let sample = if is_same { &mut now.same } else { &mut now.sim };
        let (missing, all) = (sample.missing(), sample.of);
        let run = |number| Ok(scenario.read(&simulate(scenario, number, all)?));
        each(&missing, processors, run, |number, run| {
            told(Backend::Sim, number, &run);
            sample.add(number, run);
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `run` for each of `numbers`, at most `jobs` at the same time, and passes the results to `done` in the order of
/// `numbers`. Stops after the first error.
fn each(
    numbers: &[u64],
    jobs: usize,
    run: impl Fn(u64) -> Result<Run, Failure> + Sync,
    mut done: impl FnMut(u64, Run) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let numbered = |place: u64| usize::try_from(place).ok().and_then(|place| numbers.get(place)).copied();
    let mut progress = Progress::new(numbers.len());
    let mut failed = Ok(());
    batch::each(
        numbers.len() as u64,
        jobs,
        |place| run(numbered(place).unwrap_or(place)),
        |place, result: Result<Run, Failure>| {
            progress.step();
            failed = result.and_then(|run| done(numbered(place).unwrap_or(place), run));
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    failed
}

/// If `run` has doubts, prints that the comparison does not use this run.
fn told(on: Backend, number: u64, run: &Run) {
    if !run.doubts.is_empty() {
        tell!("not compared, because it is not valid: {} run {number}: {}", on.name(), joined(&run.doubts));
    }
}

/// Returns an error if the backends differ in a scenario (exit code 1), or else if a scenario has too few runs without
/// doubts (exit code 4).
fn judged(reports: &[Report]) -> Result<(), Failure> {
    let is = |agreement| move |report: &&Report| report.agreement == agreement;
    if reports.iter().any(|report| report.agreement == Agreement::Differs) {
        return Err(Failure::DidNotHold);
    }
    let open = reports.iter().filter(is(Agreement::Inconclusive));
    let open: Vec<NamedDoubt> = open.flat_map(too_few).collect();
    if open.is_empty() { Ok(()) } else { Err(Failure::Untrusted(open)) }
}

/// Returns why a scenario has no result: a line for each doubt of each run that does not count, or one line if too few
/// runs were requested.
fn too_few(report: &Report) -> Vec<NamedDoubt> {
    let name = &report.scenario;
    if report.untrusted.iter().all(Vec::is_empty) {
        let why = format!("{name}: too few runs; --runs and --linux-runs must be at least {}", agree::LEAST);
        return vec![Doubt::NoResult { why }.into()];
    }
    let of = |on: Backend, NotCounted { number, doubts }: &NotCounted| {
        NamedDoubt::all(&format!("{name}: too few valid runs; not valid: {} run {number}", on.name()), doubts)
    };
    let both = [Backend::Sim, Backend::Linux].into_iter().zip(&report.untrusted);
    both.flat_map(|(on, untrusted)| untrusted.iter().flat_map(move |run| of(on, run))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubt_has_a_line() {
        let late = Doubt::Late { process: "b1".to_owned(), p99_us: 3000.0, alone_us: None };
        let doubts = vec![late, Doubt::Unbalanced];
        let scenario = Repeated::of("first", &[], 1).unwrap();
        let mut measured = Measured::new(&scenario, [1, 1], "");
        measured.linux.add(3, Run { doubts, ..Run::default() });
        let lines = too_few(&agree::report(&measured));
        assert_eq!(lines.len(), 2, "what reads them asks of each whether it is about timing: {lines:?}");
        let last = lines[1].to_string();
        assert!(last.ends_with("linux run 3: the ledger does not balance"), "{last}");
    }
}
