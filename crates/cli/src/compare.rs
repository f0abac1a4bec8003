//! `wayfare compare [PROTOCOL ...]`

use crate::output::print;
use crate::{Failure, interrupt};
use clap::ValueEnum;
use lab::compare::{self, Comparison, Course};
use lab::linux::Programs;
use lab::reproduce::{How, NotRun, Scale};
use lab::run::OnWorld;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Who takes part, as the table names them in `--format json`, or a protocol for all its variants; none: all.
    #[arg(value_name = "PROTOCOL")]
    who: Vec<String>,
    /// Who carries the packets.
    #[arg(long, value_enum, default_value_t = On::Sim)]
    on: On,
    /// Six runs of each leg, the fewest that have an interval; on Linux that takes two minutes. Otherwise twenty.
    #[arg(long)]
    quick: bool,
    /// So many runs of each leg.
    #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Break each mechanism in the simulator, and see that what must hold no longer does.
    #[arg(long, conflicts_with_all = ["on", "quick", "runs", "who"])]
    self_test: bool,
    /// Runs side by side.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Where `compare.csv`, `compare.json` and `compare.svg` go.
    #[arg(long, default_value = "runs/compare")]
    out: PathBuf,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    Sim,
    Linux,
    Both,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl On {
    const fn worlds(self) -> &'static [OnWorld] {
        match self {
            Self::Sim => &[OnWorld::Sim],
            Self::Linux => &[OnWorld::Linux],
            Self::Both => &[OnWorld::Sim, OnWorld::Linux],
        }
    }
}

pub(crate) fn compare(args: &Args) -> Result<(), Failure> {
    let course = compare::course().map_err(|error| Failure::Usage(error.to_string()))?;
    let wayfare = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
    let programs = Programs { wayfare, instead: None };
    let stop = interrupt::flag()?;
    let how = How {
        jobs: args.jobs.into(),
        linux: Some(&programs),
        stop: &stop,
        progress: &progress,
        repeated: &repeated,
    };
    if args.self_test {
        return self_test(course, &how);
    }
    let wanted = compare::select(course, &args.who).map_err(Failure::Usage)?;
    let usual = compare::repetitions(if args.quick { Scale::Quick } else { Scale::Default });
    let runs = args.runs.map_or(usual, usize::from);
    let comparison = compare::compare(course, &wanted, runs, args.on.worlds(), &how)
        .map_err(|problem| failure(&stop, problem))?;
    clear_progress();
    for (world, why) in &comparison.absent {
        let problem = format!("{}: {why}", world.name());
        if args.on == On::Linux {
            return Err(Failure::Machine(problem));
        }
        eprintln!("note: {problem}");
    }
    let json = format!("{:#}\n", compare::json(&comparison));
    match args.format {
        Format::Text => print(&compare::text(&comparison)),
        Format::Json => print(&json),
    }
    keep(args, &comparison, &json)?;
    verdict(&comparison)
}

fn verdict(comparison: &Comparison) -> Result<(), Failure> {
    let untrusted = comparison.untrusted();
    if !untrusted.is_empty() {
        return Err(Failure::Untrusted(untrusted));
    }
    let verdicts = compare::verdicts(comparison);
    let failed: Vec<_> = verdicts.iter().filter(|verdict| !verdict.holds()).collect();
    if failed.iter().any(|verdict| !verdict.invalid) {
        return Err(Failure::DidNotHold);
    }
    // Whether it holds is not known: no run was good enough to tell.
    if failed.is_empty() { Ok(()) } else { Err(Failure::Untrusted(comparison.invalid())) }
}

fn self_test(course: &'static Course, how: &How<'_>) -> Result<(), Failure> {
    let tests = compare::self_test(course, how).map_err(|error| match error {
        NotRun::Cannot(why) => Failure::Machine(why),
        NotRun::Broken(why) => failure(how.stop, why),
    })?;
    clear_progress();
    print(&compare::self_test_text(&tests));
    if tests.iter().all(compare::Broken::broke) { Ok(()) } else { Err(Failure::DidNotHold) }
}

/// What went wrong, unless somebody wanted it to end.
fn failure(stop: &AtomicBool, problem: String) -> Failure {
    if stop.load(Ordering::Relaxed) { Failure::Interrupted } else { Failure::Untrusted(vec![problem]) }
}

fn keep(args: &Args, comparison: &Comparison, json: &str) -> Result<(), Failure> {
    for (end, text) in
        [("csv", &compare::csv(comparison)), ("json", &json.to_owned()), ("svg", &compare::svg(comparison))]
    {
        let path = args.out.join(format!("compare.{end}"));
        let written = std::fs::create_dir_all(&args.out).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| Failure::Usage(format!("--out: {}: {error}", path.display())))?;
        if args.format == Format::Text {
            print(&format!("{end}: {}\n", path.display()));
        }
    }
    Ok(())
}

/// On a terminal, one line that says which run was done last.
fn progress(run: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{run}");
    }
}

/// Why a run takes longer.
fn repeated(run: &str, why: &[String]) {
    clear_progress();
    for why in why {
        eprintln!("repeated: {run}: {why}");
    }
}

fn clear_progress() {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}
