//! `wayfare`: one file per verb.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod diff;
mod explain;
mod list;
mod output;
mod run;

/// Keeps IP sessions alive while hosts move, and shows exactly what each move cost.
#[derive(Parser)]
#[command(name = "wayfare", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Built-in scenarios and experiments, one line each.
    List,
    /// Run a scenario, once or with many seeds, and keep all that is known of it.
    Run(run::Args),
    /// Where an outage went; what became of a packet.
    Explain(explain::Args),
    /// First divergence of two runs, also simulator against Linux.
    Diff(diff::Args),
}

/// How a verb ends, when not well. The numbers are part of the interface.
pub(crate) enum Failure {
    /// 1: something did not hold; the output has said what.
    DidNotHold,
    /// 2: what was asked for makes no sense; nothing was started.
    Usage(String),
    /// 3: this machine cannot, and what is missing.
    Machine(String),
    /// 4: it ran, but is not to be trusted.
    Untrusted(Vec<String>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::List => {
            list::list();
            Ok(())
        }
        Verb::Run(args) => run::run(&args),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Diff(args) => diff::diff(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::DidNotHold) => ExitCode::from(1),
        Err(Failure::Usage(problem)) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
        Err(Failure::Machine(problem)) => {
            eprintln!("this machine cannot: {problem}");
            ExitCode::from(3)
        }
        Err(Failure::Untrusted(doubts)) => {
            for doubt in doubts {
                eprintln!("not to be trusted: {doubt}");
            }
            ExitCode::from(4)
        }
    }
}
