//! The command `wayfare`. Each subcommand (`Verb`) has a file.

#![deny(clippy::print_stdout)] // `output::print` keeps the error of a failed write
#![deny(clippy::print_stderr)] // `output::tell` does not panic if standard error cannot be written

use clap::{Parser, Subcommand};
use output::tell;
use std::process::ExitCode;
use trace::{Doubt, NamedDoubt};

mod agree;
mod compare;
mod count;
mod ctl;
mod decode;
mod diff;
mod doctor;
mod exec;
mod explain;
mod hunt;
mod interrupt;
mod list;
mod measuring;
mod node;
mod output;
mod reproduce;
mod run;
mod scale;
mod supervisor;
mod sweep;

/// Keeps IP sessions alive while hosts move, and shows exactly what each move cost.
#[derive(Parser)]
#[command(name = "wayfare", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the built-in scenarios and experiments.
    List,
    /// Run a scenario once or several times, and write its records and figures.
    Run(run::Args),
    /// Repeat the experiments of the papers, and compare published with measured values.
    Reproduce(reproduce::Args),
    /// Compare all protocols in the same scenario: outage and its causes, loss, goodput, signalling.
    Compare(compare::Args),
    /// Check that both backends give the same distributions of outage, stall, goodput and loss.
    Agree(agree::Args),
    /// Measure the simulator's speed and memory as functions of the number of hosts.
    Scale(scale::Args),
    /// Explain the causes of an outage, or the path of a packet.
    Explain(explain::Args),
    /// Print the messages of mobility protocols in a capture file or in hexadecimal digits, field by field.
    Decode(decode::Args),
    /// Search for bugs with random scenarios; violations are shrunk to scenario files.
    Hunt(hunt::Args),
    /// Print the JSON Schema of scenario files, for editors.
    Schema,
    /// Print the first divergence of two runs, on the same backend or on both.
    Diff(diff::Args),
    /// Run the daemon of one host in this network namespace.
    Node(node::Args),
    /// Show the state of a running daemon, or send it a command.
    Ctl(ctl::Args),
    /// Run a program whose TCP connections are made through a role of this host's daemon.
    Exec(exec::Args),
    /// Print which kernel features are available and used; with --clean, undo what terminated labs and daemons left
    /// behind.
    Doctor(doctor::Args),
    /// Run as pid 1 of a lab's sandbox. Only runs on Linux use this subcommand.
    #[command(hide = true)]
    LabSupervisor(supervisor::Args),
}

/// How a subcommand fails. The exit codes are part of the interface.
pub(crate) enum Failure {
    /// 1: a check failed; the output names it.
    DidNotHold,
    /// 2: a usage or scenario error, or a file that must not be replaced.
    Usage(String),
    /// 2: a daemon has no role with the command; the text names the commands that it has.
    UnknownCommand(String),
    /// 3: this machine cannot execute the subcommand; the text names what is missing.
    Machine(String),
    /// 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, 131 after SIGQUIT: 128 plus the signal. Everything has
    /// been cleaned up.
    Interrupted,
    /// 4: the subcommand ran, but its result is not to be trusted, for these doubts.
    Untrusted(Vec<NamedDoubt>),
}

impl Failure {
    /// Returns the failure of a subcommand that ran and has no valid result; `why` is the reason.
    pub(crate) fn no_result(why: String) -> Self {
        Self::Untrusted(vec![Doubt::NoResult { why }.into()])
    }
}

fn main() -> ExitCode {
    os::bear_file_size_limit();
    let result = match Cli::try_parse() {
        Ok(cli) => dispatch(cli.verb),
        Err(refusal) if refusal.use_stderr() => refusal.exit(),
        Err(help) => {
            output::print(&help.render().to_string());
            Ok(())
        }
    };
    let result = match output::unwritten() {
        // A signal can cause other errors, for example because a file is already removed. Only the signal is reported.
        _ if result.is_err() && interrupt::came() => Err(Failure::Interrupted),
        Some(error) => Err(Failure::Machine(format!("cannot write to standard output: {error}"))),
        None => result,
    };
    end(result)
}

fn dispatch(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::List => {
            list::list();
            Ok(())
        }
        Verb::Run(args) => run::run(&args),
        Verb::Reproduce(args) => reproduce::reproduce(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Agree(args) => agree::agree(&args),
        Verb::Scale(args) => scale::scale(&args),
        Verb::Explain(args) => explain::explain(&args),
        Verb::Decode(args) => decode::decode(&args),
        Verb::Hunt(args) => hunt::hunt(&args),
        Verb::Schema => {
            output::print(&format!("{:#}\n", scenario::schema()));
            Ok(())
        }
        Verb::Diff(args) => diff::diff(&args),
        Verb::Node(args) => node::node(&args),
        Verb::Ctl(args) => ctl::ctl(&args),
        Verb::Exec(args) => exec::exec(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::LabSupervisor(args) => supervisor::supervise(&args),
    }
}

/// Prints why the command failed, and returns its exit code.
fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::DidNotHold) => ExitCode::from(1),
        Err(Failure::Usage(problem) | Failure::UnknownCommand(problem)) => {
            tell!("error: {problem}");
            ExitCode::from(2)
        }
        Err(Failure::Machine(missing)) => {
            tell!("error: {missing}");
            ExitCode::from(3)
        }
        Err(Failure::Interrupted) => ExitCode::from(interrupt::end()),
        Err(Failure::Untrusted(doubts)) => {
            for doubt in &doubts {
                tell!("not to be trusted: {doubt}");
            }
            output::keep_doubts(&doubts);
            ExitCode::from(4)
        }
    }
}

/// Converts an error of a run on Linux to the failure of the subcommand.
pub(crate) fn linux_failure(error: &emulator::run::LinuxError) -> Failure {
    use emulator::run::LinuxError;
    match error {
        LinuxError::Interrupted => Failure::Interrupted,
        LinuxError::Machine(_) | LinuxError::Lacks(_) => {
            Failure::Machine(format!("{error}; `wayfare doctor` shows the features of this machine"))
        }
        LinuxError::NotReady { host, why } => {
            Failure::Untrusted(vec![Doubt::NotReady { host: host.clone(), why: why.clone() }.into()])
        }
        LinuxError::Lab(_) | LinuxError::File(..) => Failure::no_result(error.to_string()),
    }
}
