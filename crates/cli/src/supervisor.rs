//! Pid 1 of a lab's sandbox. Only runs on Linux start it.

use crate::Failure;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    dir: PathBuf,
}

pub(crate) fn supervise(args: &Args) -> Result<(), Failure> {
    // The error has already been written to standard output, where the parent process reads it.
    emulator::run::carry_out(&args.dir).map_err(|_| Failure::DidNotHold)
}
