//! `wayfare explain RUN`: prints the causes of outages, or the path of a packet.

use crate::Failure;
use crate::measuring::{ordinal, seed};
use crate::output::print;
use recorder::explain;
use std::path::PathBuf;
use trace::NamedDoubt;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A run directory that `wayfare run` wrote.
    run: PathBuf,
    /// Print the path of one packet, by its number in `packets.csv`, `events.jsonl` and the figure.
    #[arg(long, value_name = "N", conflicts_with = "handoff", value_parser = seed, allow_negative_numbers = true)]
    packet: Option<u64>,
    /// Print the events of one handoff, by its number from 1.
    #[arg(long, value_name = "N", value_parser = ordinal, allow_negative_numbers = true)]
    handoff: Option<usize>,
}

pub(crate) fn explain(args: &Args) -> Result<(), Failure> {
    let outcome = emulator::run::read_run(&args.run).map_err(|error| Failure::Usage(error.to_string()))?;
    let text = match (args.packet, args.handoff) {
        (Some(number), _) => explain::packet(&outcome, number).map_err(Failure::Usage)?,
        (None, Some(number)) => explain::timeline(&outcome, number).map_err(Failure::Usage)?,
        (None, None) => explain::handoffs(&outcome),
    };
    print(&text);
    let doubts = NamedDoubt::all("", &outcome.doubts);
    if doubts.is_empty() { Ok(()) } else { Err(Failure::Untrusted(doubts)) }
}
