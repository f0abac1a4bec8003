//! Pid 1 of a lab's world: started by `run --on linux`, by nobody else.

use crate::Failure;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    dir: PathBuf,
}

pub(crate) fn lab_world(args: &Args) -> Result<(), Failure> {
    // What went wrong is on standard output, for who gave the order: said here too, it would be said twice.
    lab::linux::carry_out(&args.dir).map_err(|_| Failure::DidNotHold)
}
