//! `wayfare doctor`

use crate::Failure;
use linux::doctor::{missing_for_lab, probe};
use linux::leftover::{Leftover, clean};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove what labs that are dead have left behind. Labs that still run are not touched.
    #[arg(long)]
    clean: bool,
}

pub(crate) fn doctor(args: &Args) -> Result<(), Failure> {
    if args.clean { clean_up() } else { examine() }
}

fn examine() -> Result<(), Failure> {
    let probes = probe();
    for probe in &probes {
        let verdict = if probe.ok { "ok" } else { "missing" };
        println!("{verdict:8} {:34} {:28} {}", probe.name, probe.needed_for, probe.detail);
    }
    match missing_for_lab(&probes) {
        None => {
            println!("\nruns on Linux: yes");
            Ok(())
        }
        Some(missing) => Err(Failure::Machine(format!("runs on Linux need: {missing}"))),
    }
}

fn clean_up() -> Result<(), Failure> {
    let found = clean().map_err(|error| Failure::Machine(error.to_string()))?;
    let mut failed = Vec::new();
    for leftover in &found {
        match leftover {
            Leftover::Alive(path) => println!("{}: its lab runs; not touched", path.display()),
            Leftover::NotOurs(path) => println!("{}: not ours; not touched", path.display()),
            Leftover::Cleaned(path, killed) => {
                println!("{}: removed, {} processes ended", path.display(), killed.len());
            }
            Leftover::Failed(path, error) => failed.push(format!("{}: {error}", path.display())),
        }
    }
    if found.is_empty() {
        println!("nothing was left behind");
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Untrusted(failed)) }
}
