//! `wayfare agree [SCENARIO...]`

use crate::measuring::{check_out, keep};
use crate::output::{Format, Progress, print};
use crate::run::on_linux;
use crate::{Failure, interrupt};
use lab::agree::{self, Agreement, NotCounted, Report};
use lab::batch::{self, Collected};
use lab::run::OnWorld;
use lab::scenario::{Repetition, Setting, stem};
use lab::{Scenario, ScenarioError};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use trace::doubt::joined;
use trace::{Doubt, NamedDoubt};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names as `list` prints them, or paths of files [default: the five scenarios that have to agree, and every leg of
    /// `compare`].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Change a value on both backends: ROLE.KEY=VALUE, or the path of a value in the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// How many runs in the simulator, each with the next seed and at other phases.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// How many runs on Linux, at phases that are stratified in the same way.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..))]
    linux_runs: u64,
    /// The first run's seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many runs on Linux at a time. Runs beside each other disturb each other's timing.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// How often a run on Linux is repeated when the machine stood still during it.
    #[arg(long, value_name = "N", default_value_t = 4)]
    repeats: usize,
    /// The folder for `agree.csv`, and a figure of each scenario.
    #[arg(long, value_name = "DIR", default_value = "runs/agree")]
    out: PathBuf,
    /// For people, or for programs.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(crate) fn agree(args: &Args) -> Result<(), Failure> {
    let scenarios = scenarios(args).map_err(|error| Failure::Usage(error.to_string()))?;
    check_out(&args.out)?;
    let stop = interrupt::flag()?;
    let mut reports = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        eprintln!("{} of {}: {scenario}", index + 1, scenarios.len());
        let (report, results) = one(args, scenario, &stop)?;
        let figure = agree::figure(scenario, [&results[0], &results[1]]);
        let name = stem(scenario).replace('/', "-");
        keep(&args.out.join(format!("{name}.svg")), &figure.svg())?;
        reports.push(report);
        // What is measured stays, even if a later scenario is interrupted.
        keep(&args.out.join("agree.csv"), &agree::csv(&reports))?;
    }
    match args.format {
        Format::Text => print(&agree::text(&reports)),
        Format::Json => {
            let json = serde_json::to_string_pretty(&reports)
                .map_err(|error| Failure::Machine(error.to_string()))?;
            print(&format!("{json}\n"));
        }
    }
    judged(&reports)
}

/// What to run; every one is read before any is started.
fn scenarios(args: &Args) -> Result<Vec<String>, ScenarioError> {
    let scenarios = if args.scenarios.is_empty() {
        let legs = agree::legs()?;
        agree::SCENARIOS.iter().map(|name| (*name).to_owned()).chain(legs).collect()
    } else {
        args.scenarios.clone()
    };
    for scenario in &scenarios {
        let (file, text) = Scenario::find(scenario)?;
        Scenario::plan(&file, &text, &args.set, args.seed)?;
    }
    Ok(scenarios)
}

fn one(args: &Args, scenario: &str, stop: &AtomicBool) -> Result<(Report, [Collected; 2]), Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let all = |of: u64| (0..of).collect::<Vec<_>>();
    let sim = collect(args, scenario, (OnWorld::Sim, processors), (args.runs, &all(args.runs)), stop)?;
    let on_linux = (args.linux_runs, all(args.linux_runs));
    let linux = collect(args, scenario, (OnWorld::Linux, args.jobs.into()), (on_linux.0, &on_linux.1), stop)?;
    let same = collect(args, scenario, (OnWorld::Sim, processors), (on_linux.0, &linux.counted), stop)?;
    let runs = [args.runs, args.linux_runs];
    let untrusted = [sim.untrusted, linux.untrusted];
    let report = agree::report(scenario, runs, untrusted, [&sim.values, &linux.values], &same.values);
    Ok((report, [sim.values, linux.values]))
}

/// What runs of a scenario on a backend gave.
#[derive(Default)]
struct Done {
    values: Collected,
    /// The numbers of the runs that count.
    counted: Vec<u64>,
    /// The others: which, and why.
    untrusted: Vec<NotCounted>,
}

/// Runs a scenario on a backend, so many runs side by side: those of these numbers, of so many at other phases.
fn collect(
    args: &Args,
    scenario: &str,
    (on, jobs): (OnWorld, usize),
    (of, numbers): (u64, &[u64]),
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let usage = |error: ScenarioError| Failure::Usage(error.to_string());
    let (file, text) = Scenario::find(scenario).map_err(usage)?;
    let numbered = |place: u64| usize::try_from(place).ok().and_then(|place| numbers.get(place)).copied();
    let run = |place: u64| {
        let number = numbered(place).unwrap_or(place);
        let repetition = Repetition { number, of, seed: args.seed };
        let seed = args.seed.wrapping_add(number);
        let plan = Scenario::repetition(&file, &text, &args.set, seed, repetition).map_err(usage)?;
        let outcome = match on {
            OnWorld::Sim => lab::run::simulate(plan).map_err(|error| Failure::Usage(error.to_string()))?,
            OnWorld::Linux => on_linux(&plan, args.repeats, stop)?,
        };
        Ok((outcome.doubts.clone(), batch::of_run(&batch::measure(&outcome))))
    };
    let mut progress = Progress::new(numbers.len());
    let (mut all, mut failed) = (Done::default(), None);
    batch::each(numbers.len() as u64, jobs, run, |place, done: Result<_, Failure>| {
        progress.step();
        match done {
            Ok((doubts, values)) if doubts.is_empty() => {
                all.values.add(&values);
                all.counted.extend(numbered(place));
            }
            Ok((doubts, _)) => {
                let number = numbered(place).unwrap_or(place);
                let seed = args.seed.wrapping_add(number);
                let run = format!("{} seed {seed}", on.name());
                eprintln!("not counted: {run}: {}", joined(&doubts));
                all.untrusted.push(NotCounted { run, doubts });
            }
            Err(failure) => {
                failed = Some(failure);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    failed.map_or(Ok(all), Err)
}

/// A difference is a failure; that too few runs could be trusted is a doubt.
fn judged(reports: &[Report]) -> Result<(), Failure> {
    let is = |agreement| move |report: &&Report| report.agreement == agreement;
    if reports.iter().any(|report| report.agreement == Agreement::Differs) {
        return Err(Failure::DidNotHold);
    }
    let open = reports.iter().filter(is(Agreement::Inconclusive));
    let open: Vec<NamedDoubt> = open.flat_map(too_few).collect();
    if open.is_empty() { Ok(()) } else { Err(Failure::Untrusted(open)) }
}

/// Why nothing can be said of a scenario: a line for each doubt of each run that does not count.
fn too_few(report: &Report) -> Vec<NamedDoubt> {
    let name = &report.scenario;
    if report.untrusted.iter().all(Vec::is_empty) {
        let why = format!("{name}: fewer than {} runs were asked for", agree::LEAST);
        return vec![Doubt::NoResult { why }.into()];
    }
    let of = |NotCounted { run, doubts }: &NotCounted| {
        NamedDoubt::all(&format!("{name}: too few runs that count: {run}"), doubts)
    };
    report.untrusted.iter().flatten().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubt_has_a_line() {
        let late = Doubt::Late { process: "b1".to_owned(), p99_us: 3000.0, alone_us: None };
        let doubts = vec![late, Doubt::Unbalanced];
        let untrusted = [Vec::new(), vec![NotCounted { run: "linux seed 3".to_owned(), doubts }]];
        let none = Collected::default();
        let report = agree::report("first", [1, 1], untrusted, [&none, &none], &none);
        let lines = too_few(&report);
        assert_eq!(lines.len(), 2, "what reads them asks of each whether it is about timing: {lines:?}");
        let last = lines[1].to_string();
        assert!(last.ends_with("linux seed 3: the ledger does not balance"), "{last}");
    }
}
