//! Pid 1 of a lab's world: started by `run --on linux`, by nobody else.

use crate::Failure;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    dir: PathBuf,
}

pub(crate) fn lab_world(args: &Args) -> Result<(), Failure> {
    // The error is on standard output already, where the parent process reads it.
    lab::linux::carry_out(&args.dir).map_err(|_| Failure::DidNotHold)
}
