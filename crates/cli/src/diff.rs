//! `wayfare diff RUN RUN`

use crate::Failure;
use crate::output::print;
use lab::rundir;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A run directory.
    first: PathBuf,
    /// Another run of the same scenario, in the same world or in the other.
    second: PathBuf,
}

pub(crate) fn diff(args: &Args) -> Result<(), Failure> {
    let read = |dir: &PathBuf| rundir::read(dir).map_err(|error| Failure::Usage(error.to_string()));
    let runs = [read(&args.first)?, read(&args.second)?];
    let difference = lab::diff::diff([&runs[0], &runs[1]]).map_err(Failure::Usage)?;
    print(&difference.text);
    let doubts: Vec<String> = [&args.first, &args.second]
        .iter()
        .zip(&runs)
        .flat_map(|(dir, run)| run.doubts.iter().map(move |doubt| format!("{}: {doubt}", dir.display())))
        .collect();
    match difference.equal {
        _ if !doubts.is_empty() => Err(Failure::Untrusted(doubts)),
        true => Ok(()),
        false => Err(Failure::DidNotHold),
    }
}
