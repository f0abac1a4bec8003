//! `wayfare diff RUN RUN`: prints the first divergence of two runs.

use crate::Failure;
use crate::measuring::{ordinal, unusable, unwritten};
use crate::output::print;
use recorder::conformance;
use recorder::kept::SingleFile;
use recorder::run::Outcome;
use std::path::PathBuf;
use trace::NamedDoubt;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory of the first run.
    first: PathBuf,
    /// The directory of another run of the same scenario, on the same or the other backend.
    second: PathBuf,
    /// Draw one handoff of both runs into this SVG file.
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Replace the file of `--figure` if it exists.
    #[arg(long, requires = "figure")]
    force: bool,
    /// The number of the handoff to draw, from 1.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "figure", value_parser = ordinal, allow_negative_numbers = true)]
    handoff: usize,
}

pub(crate) fn diff(args: &Args) -> Result<(), Failure> {
    let figure = args.figure.as_deref().map(|file| SingleFile::new(file, |_| false, args.force)).transpose();
    let figure = figure.map_err(|error| unusable(&error))?;
    let read =
        |dir: &PathBuf| emulator::run::read_run(dir).map_err(|error| Failure::Usage(error.to_string()));
    let runs = [read(&args.first)?, read(&args.second)?];
    let difference = conformance::diff([&runs[0], &runs[1]]).map_err(Failure::Usage)?;
    if let Some(file) = figure {
        let drawn =
            conformance::figure([&runs[0], &runs[1]], args.handoff).ok_or_else(|| missing(args, &runs))?;
        file.put(&drawn.svg()).map_err(|error| unwritten(file.path(), &error))?;
    }
    print(&difference.text);
    let of_run = |(dir, run): (&PathBuf, &Outcome)| NamedDoubt::all(&dir.display().to_string(), &run.doubts);
    let doubts: Vec<NamedDoubt> =
        [&args.first, &args.second].into_iter().zip(&runs).flat_map(of_run).collect();
    match difference.equal {
        _ if !doubts.is_empty() => Err(Failure::Untrusted(doubts)),
        true => Ok(()),
        false => Err(Failure::DidNotHold),
    }
}

fn missing(args: &Args, runs: &[Outcome; 2]) -> Failure {
    let number = args.handoff;
    Failure::Usage(match runs.iter().map(|run| run.handoffs.len()).min() {
        None | Some(0) => format!("--handoff {number}: at least one of the two runs has no handoff"),
        Some(most) => format!("--handoff {number}: allowed: 1 to {most}, the handoffs that both runs have"),
    })
}
