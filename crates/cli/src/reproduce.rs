//! `wayfare reproduce [PAPER|ID ...]`

use crate::Failure;
use crate::measuring::{self, Means, On};
use crate::output::{Format, print};
use lab::reproduce::{self, Experiment, NotRun, Recorded, Report, Scale};
use lab::run::OnWorld;
use std::path::{Path, PathBuf};
use wire::Duration;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Papers or experiments, as `list` prints them; none: all.
    #[arg(value_name = "PAPER|ID")]
    what: Vec<String>,
    /// Who carries the packets.
    #[arg(long, value_enum, default_value_t = On::Both)]
    on: On,
    /// Few handoffs, close together: seconds.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The paper's own counts and times.
    #[arg(long)]
    full: bool,
    /// Break each mechanism, and see that what must hold no longer does.
    #[arg(long)]
    self_test: bool,
    /// Runs side by side.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Where the figures go.
    #[arg(long, default_value = "runs/reproduce")]
    out: PathBuf,
    /// Write the table of all published numbers and their verdicts to this file, as Markdown. What is measured on Linux is
    /// recorded beside it (`.linux.json` in the place of `.md`), and read from there if Linux is not measured.
    #[arg(long, value_name = "FILE", conflicts_with = "self_test")]
    write_table: Option<PathBuf>,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Args {
    const fn scale(&self) -> Scale {
        match (self.quick, self.full) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Full,
            _ => Scale::Default,
        }
    }
}

pub(crate) fn reproduce(args: &Args) -> Result<(), Failure> {
    let experiments = reproduce::select(&args.what).map_err(Failure::Usage)?;
    if args.self_test {
        return self_test(args, &experiments);
    }
    if args.full {
        estimate(args, &experiments);
    }
    measuring::check_out(&args.out)?;
    let mut reports = Vec::new();
    for experiment in experiments {
        let report = carry_out(args, experiment)?;
        if args.format == Format::Text {
            print(&format!("{}\n", reproduce::text(&report)));
        }
        write_figures(args, &report)?;
        reports.push(report);
    }
    match args.format {
        Format::Text => print(&reproduce::summary(&reports)),
        Format::Json => print(&format!("{}\n", reproduce::json(&reports))),
    }
    if let Some(path) = &args.write_table {
        write_table(args, path, &reports)?;
    }
    verdict(&reports)
}

/// Records what was measured on Linux, and writes the table with what is recorded.
fn write_table(args: &Args, path: &Path, reports: &[Report]) -> Result<(), Failure> {
    let beside = path.with_extension("linux.json");
    let problem = |error: String| Failure::Machine(format!("cannot read {}: {error}", beside.display()));
    let old = match std::fs::read_to_string(&beside) {
        Ok(text) => Some(Recorded::read(&text).map_err(problem)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(problem(error.to_string())),
    };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let recorded = match Recorded::of(reports, &kernel, args.scale()) {
        Some(new) => {
            // Numbers of experiments that were not asked for stay, if they are of the same kernel and scale.
            let new = match old.filter(|old| (&old.kernel, &old.scale) == (&new.kernel, &new.scale)) {
                Some(old) => new.with_the_rest_of(old),
                None => new,
            };
            measuring::keep(&beside, &new.json())?;
            Some(new)
        }
        None => old,
    };
    measuring::keep(path, &reproduce::table(reports, recorded.as_ref()))
}

fn verdict(reports: &[Report]) -> Result<(), Failure> {
    let untrusted: Vec<trace::NamedDoubt> = reports.iter().flat_map(Report::untrusted).collect();
    if !untrusted.is_empty() {
        return Err(Failure::Untrusted(untrusted));
    }
    let (invalid, failed): (Vec<_>, Vec<_>) = reports
        .iter()
        .flat_map(Report::verdicts)
        .filter(|verdict| !verdict.holds())
        .partition(|verdict| verdict.invalid);
    for (count, what) in
        [(failed.len(), "does not"), (invalid.len(), "counts as not holding: a run was invalid")]
    {
        if count > 0 {
            eprintln!("{count} of what must hold {what}");
        }
    }
    match (failed.is_empty(), invalid.is_empty()) {
        (false, _) => Err(Failure::DidNotHold),
        // Whether it holds is not known: no run was good enough to tell.
        (true, false) => Err(Failure::Untrusted(reports.iter().flat_map(Report::invalid).collect())),
        (true, true) => Ok(()),
    }
}

fn carry_out(args: &Args, experiment: &'static Experiment) -> Result<Report, Failure> {
    let means = Means::new(args.jobs)?;
    let on_linux = args.on.worlds().contains(&OnWorld::Linux);
    let estimate = if on_linux && experiment.worlds.contains(&OnWorld::Linux) {
        reproduce::span(experiment, args.scale(), OnWorld::Linux, args.jobs.into())
    } else {
        Duration::ZERO
    };
    let report = means
        .carry_out(experiment.id, estimate, |how| {
            reproduce::reproduce(experiment, args.scale(), args.on.worlds(), how)
        })
        .map_err(|problem| means.failure(problem))?;
    for (world, why) in &report.absent {
        cannot(args, experiment, *world, why)?;
    }
    Ok(report)
}

fn self_test(args: &Args, experiments: &[&'static Experiment]) -> Result<(), Failure> {
    let means = Means::new(args.jobs)?;
    let mut tests = Vec::new();
    for experiment in experiments {
        let mut broken = Vec::new();
        for world in args.on.worlds().iter().filter(|world| experiment.worlds.contains(world)) {
            match means
                .carry_out(experiment.id, Duration::ZERO, |how| reproduce::self_test(experiment, *world, how))
            {
                Ok(more) => broken.extend(more),
                Err(NotRun::Cannot(why)) => cannot(args, experiment, *world, &why)?,
                Err(NotRun::Broken(why)) => {
                    return Err(means.failure(format!("{}: {why}", experiment.id)));
                }
            }
        }
        if args.format == Format::Text {
            print(&format!("{}\n", reproduce::self_test_text(experiment, &broken)));
        }
        tests.push((*experiment, broken));
    }
    if args.format == Format::Json {
        print(&format!("{}\n", reproduce::self_test_json(&tests)));
    }
    let whole = tests.iter().flat_map(|(_, broken)| broken).filter(|broken| !broken.broke()).count();
    if whole == 0 {
        return Ok(());
    }
    eprintln!("{whole} breakers broke nothing");
    Err(Failure::DidNotHold)
}

fn cannot(args: &Args, experiment: &Experiment, world: OnWorld, why: &str) -> Result<(), Failure> {
    args.on.without(format!("{} on {}: {why}", experiment.id, world.name()))
}

fn write_figures(args: &Args, report: &Report) -> Result<(), Failure> {
    let out = &args.out;
    for figure in reproduce::figures(report) {
        for (end, text) in [("svg", &figure.svg), ("csv", &figure.csv)] {
            let path = out.join(format!("{}.{end}", figure.name));
            measuring::keep(&path, text)?;
            if args.format == Format::Text {
                print(&format!("{end}: {}\n", path.display()));
            }
        }
    }
    Ok(())
}

/// Before anything that may take long.
fn estimate(args: &Args, experiments: &[&'static Experiment]) {
    for experiment in experiments {
        for world in args.on.worlds().iter().filter(|world| experiment.worlds.contains(world)) {
            let (span, how) = match world {
                // Of virtual time; how fast it passes depends on the scenario: some thousand times, or more.
                OnWorld::Sim => (reproduce::span(experiment, args.scale(), *world, 1), "of virtual time"),
                OnWorld::Linux => (
                    reproduce::span(experiment, args.scale(), *world, args.jobs.into()),
                    "and what is repeated",
                ),
            };
            let minutes = span.as_secs_f64() / 60.0;
            eprintln!("estimate: {} on {}: {minutes:.0} min {how}", experiment.id, world.name());
        }
    }
}
