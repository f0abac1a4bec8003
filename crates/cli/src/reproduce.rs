//! `wayfare reproduce [ID|PROTOCOL|PAPER ...]`: repeats the experiments of the papers.

use crate::Failure;
use crate::measuring::{self, Backends, On, few, seed, size};
use crate::output::{Format, print, tell};
use experiments::paper;
use experiments::reproduce::{self, Experiment, NotRun, Recorded, Report, Scale};
use recorder::kept::{Folder, SingleFile};
use recorder::run::Backend;
use std::path::{Path, PathBuf};
use wire::Duration;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// Experiments (see `wayfare list`), protocols for all their experiments, or papers: `mobile-ip/triangle`,
    /// `mobile-ip`, `Fikouras et al. 1999`. The first words of a paper are sufficient: `fikouras` [default: all].
    #[arg(value_name = "ID|PROTOCOL|PAPER")]
    what: Vec<String>,
    /// The backend: the simulator, Linux, or both.
    #[arg(long, value_enum, default_value_t = On::Both)]
    on: On,
    /// Run fewer handoffs at shorter intervals: takes seconds per experiment.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run the number of handoffs and the times of the paper.
    #[arg(long)]
    full: bool,
    /// Disable each mechanism, and check that the requirements that depend on it then fail.
    #[arg(long)]
    self_test: bool,
    /// On Linux, measure only experiments whose estimated times add up to at most N seconds, but at least one
    /// experiment. Measure the other experiments in the simulator only.
    #[arg(long, value_name = "N", conflicts_with = "self_test", value_parser = seed, allow_negative_numbers = true)]
    linux_seconds: Option<u64>,
    /// With --linux-seconds, the number of the experiment that is measured first, modulo the number of experiments; 0
    /// is the first one of the list.
    #[arg(long, value_name = "N", requires = "linux_seconds", default_value_t = 0, value_parser = size, allow_negative_numbers = true)]
    turn: usize,
    /// The number of runs at the same time.
    #[arg(long, default_value_t = 4, value_parser = few, allow_negative_numbers = true)]
    jobs: u16,
    /// The folder for figures [default: runs/reproduce, or runs/reproduce.2 and so on if files there must not be
    /// replaced].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace files that Wayfare did not write, or that were changed after Wayfare wrote them.
    #[arg(long, conflicts_with = "self_test")]
    force: bool,
    /// Write a Markdown table of all published numbers and their verdicts to this file. Measurements on Linux are
    /// kept beside it (`.linux.json` instead of `.md`), and are read from there if Linux is not measured.
    #[arg(long, value_name = "FILE", conflicts_with = "self_test")]
    write_table: Option<PathBuf>,
    /// The format of the output.
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
    let experiments = paper::select(&args.what).map_err(Failure::Usage)?;
    if args.self_test {
        return self_test(args, &experiments);
    }
    if args.full {
        estimate(args, &experiments);
    }
    let names = experiments.iter().flat_map(|experiment| reproduce::figure_names(experiment));
    let names: Vec<String> = names.flat_map(|name| [format!("{name}.svg"), format!("{name}.csv")]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let table = args.write_table.as_deref().map(|path| TableFiles::new(path, args.force)).transpose()?;
    let mut folder = measuring::folder(args.out.as_deref(), "reproduce", &names, args.force)?;
    let mut reports = Vec::new();
    let on_linux = on_linux(args, &experiments);
    for (experiment, on_linux) in experiments.into_iter().zip(on_linux) {
        let report = carry_out(args, experiment, on_linux)?;
        if args.format == Format::Text {
            print(&format!("{}\n", reproduce::text(&report)));
        }
        write_figures(args, &mut folder, &report)?;
        reports.push(report);
    }
    match args.format {
        Format::Text => print(&reproduce::summary(&reports)),
        Format::Json => print(&format!("{}\n", reproduce::json(&reports))),
    }
    if let Some(table) = table {
        table.write(args, &reports)?;
    }
    verdict(&reports)
}

/// The files of `--write-table`: the table, and beside it the record of the measurements on Linux.
struct TableFiles {
    table: SingleFile,
    beside: SingleFile,
    old: Option<Recorded>,
}

impl TableFiles {
    /// Returns an error if the table or the record must not be replaced: without `force`, an existing file must be a
    /// table or a record of `reproduce`.
    fn new(path: &Path, force: bool) -> Result<Self, Failure> {
        let beside = path.with_extension("linux.json");
        let old = std::fs::read_to_string(&beside).ok().and_then(|text| Recorded::read(&text).ok());
        let is_record = |text: &str| Recorded::read(text).is_ok();
        let file = |path: &Path, is_ours: fn(&str) -> bool| {
            SingleFile::new(path, is_ours, force).map_err(|error| measuring::unusable(&error))
        };
        Ok(Self { table: file(path, reproduce::is_table)?, beside: file(&beside, is_record)?, old })
    }

    /// Stores the measurements on Linux beside the table, if there are any. Writes the table from the reports and the
    /// stored measurements.
    fn write(self, args: &Args, reports: &[Report]) -> Result<(), Failure> {
        let Self { table, beside, old } = self;
        let put = |file: &SingleFile, text: &str| {
            file.put(text).map_err(|error| measuring::unwritten(file.path(), &error))
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let recorded = match Recorded::of(reports, &kernel, args.scale()) {
            Some(new) => {
                // Keep the numbers of experiments that were not requested now, if they are of the same kernel and
                // scale.
                let new = match old.filter(|old| (&old.kernel, &old.scale) == (&new.kernel, &new.scale)) {
                    Some(old) => new.with_the_rest_of(old),
                    None => new,
                };
                let text = new.json().map_err(|error| measuring::unwritten(beside.path(), &error))?;
                put(&beside, &text)?;
                Some(new)
            }
            None => old,
        };
        put(&table, &reproduce::table(reports, recorded.as_ref()))
    }
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
        [(failed.len(), "failed"), (invalid.len(), "could not be evaluated: a run was invalid")]
    {
        if count > 0 {
            tell!("must-hold statements: {count} {what}");
        }
    }
    match (failed.is_empty(), invalid.is_empty()) {
        (false, _) => Err(Failure::DidNotHold),
        // The requirements in `invalid` have no valid run, so it is not known whether they hold.
        (true, false) => Err(Failure::Untrusted(reports.iter().flat_map(Report::invalid).collect())),
        (true, true) => Ok(()),
    }
}

/// Returns, for each experiment, whether `--linux-seconds` permits that it is measured on Linux.
fn on_linux(args: &Args, experiments: &[&'static Experiment]) -> Vec<bool> {
    let Some(seconds) = args.linux_seconds else { return vec![true; experiments.len()] };
    let budget = Duration::from_secs(seconds);
    reproduce::in_turn(experiments, args.scale(), args.jobs.into(), budget, args.turn)
}

fn carry_out(args: &Args, experiment: &'static Experiment, on_linux: bool) -> Result<Report, Failure> {
    let means = Backends::new(args.jobs)?;
    let backends: Vec<Backend> =
        args.on.backends().iter().copied().filter(|backend| on_linux || *backend != Backend::Linux).collect();
    let on_linux = backends.contains(&Backend::Linux);
    let estimate = if on_linux && experiment.backends.contains(&Backend::Linux) {
        reproduce::span(experiment, args.scale(), Backend::Linux, args.jobs.into())
    } else {
        Duration::ZERO
    };
    let report = means
        .carry_out(experiment.id, estimate, |how| {
            reproduce::reproduce(experiment, args.scale(), &backends, how)
        })
        .map_err(|problem| means.failure(problem))?;
    for (backend, why) in &report.absent {
        cannot(args, experiment, *backend, why)?;
    }
    Ok(report)
}

fn self_test(args: &Args, experiments: &[&'static Experiment]) -> Result<(), Failure> {
    let means = Backends::new(args.jobs)?;
    let mut tests = Vec::new();
    for experiment in experiments {
        let mut broken = Vec::new();
        for backend in args.on.backends().iter().filter(|backend| experiment.backends.contains(backend)) {
            match means.carry_out(experiment.id, Duration::ZERO, |how| {
                reproduce::self_test(experiment, *backend, how)
            }) {
                Ok(more) => broken.extend(more),
                Err(NotRun::Cannot(why)) => cannot(args, experiment, *backend, &why)?,
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
    tell!("breakers without effect: {whole}");
    Err(Failure::DidNotHold)
}

fn cannot(args: &Args, experiment: &Experiment, backend: Backend, why: &str) -> Result<(), Failure> {
    args.on.without(format!("{} on {}: {why}", experiment.id, backend.name()))
}

fn write_figures(args: &Args, folder: &mut Folder, report: &Report) -> Result<(), Failure> {
    for figure in reproduce::figures(report) {
        for (end, text) in [("svg", &figure.svg), ("csv", &figure.csv)] {
            let path = measuring::keep(folder, &format!("{}.{end}", figure.name), text)?;
            if args.format == Format::Text {
                print(&format!("{end}: {}\n", path.display()));
            }
        }
    }
    Ok(())
}

/// Prints how long the experiments will take, before they start.
fn estimate(args: &Args, experiments: &[&'static Experiment]) {
    for experiment in experiments {
        for backend in args.on.backends().iter().filter(|backend| experiment.backends.contains(backend)) {
            let (span, how) = match backend {
                // The estimate is in virtual time, because the speed of the simulator depends on the scenario.
                Backend::Sim => (reproduce::span(experiment, args.scale(), *backend, 1), "of virtual time"),
                Backend::Linux => (
                    reproduce::span(experiment, args.scale(), *backend, args.jobs.into()),
                    "plus the time of repeated runs",
                ),
            };
            let minutes = span.as_secs_f64() / 60.0;
            tell!("estimate: {} on {}: {minutes:.0} min {how}", experiment.id, backend.name());
        }
    }
}
