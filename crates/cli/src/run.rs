//! `wayfare run SCENARIO`

use crate::Failure;
use lab::scenario::Setting;
use lab::{Scenario, report};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A name as `list` prints it, or the path of a file.
    scenario: String,
    /// Which world carries the packets.
    #[arg(long, value_enum, default_value_t = On::Sim)]
    on: On,
    /// Change a value: ROLE.KEY=VALUE, or the path of a value in the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum On {
    Sim,
    Linux,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let (file, text) = Scenario::find(&args.scenario).map_err(|error| usage(&error))?;
    let plan = Scenario::plan(&file, &text, &args.set, args.seed).map_err(|error| usage(&error))?;
    let outcome = match args.on {
        On::Sim => lab::run::simulate(plan).map_err(|error| usage(&error))?,
        On::Linux => {
            let wayfare = std::env::current_exe().map_err(|error| Failure::Machine(error.to_string()))?;
            let programs = lab::linux::Programs { wayfare, instead: None };
            let stop = std::sync::atomic::AtomicBool::new(false);
            lab::linux::run(plan, &programs, &stop).map_err(|error| Failure::Machine(error.to_string()))?
        }
    };
    if let Some(linux) = &outcome.linux {
        println!("{:?} frames {} uid {} map {}", linux.lateness_us, linux.frames, linux.uid, linux.uid_map);
    }
    print!("{}", report::text(&outcome));
    if outcome.doubts.is_empty() { Ok(()) } else { Err(Failure::Untrusted(outcome.doubts)) }
}
