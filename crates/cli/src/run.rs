//! `wayfare run SCENARIO`

use crate::Failure;
use lab::scenario::Setting;
use lab::{Scenario, report};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A name as `list` prints it, or the path of a file.
    scenario: String,
    /// Change a value: ROLE.KEY=VALUE, or the path of a value in the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let (file, text) = Scenario::find(&args.scenario).map_err(|error| usage(&error))?;
    let plan = Scenario::plan(&file, &text, &args.set, args.seed).map_err(|error| usage(&error))?;
    let outcome = lab::run::simulate(plan).map_err(|error| usage(&error))?;
    print!("{}", report::text(&outcome));
    if outcome.doubts.is_empty() { Ok(()) } else { Err(Failure::Untrusted(outcome.doubts)) }
}
