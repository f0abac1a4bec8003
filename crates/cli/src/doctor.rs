//! `wayfare doctor`

use crate::Failure;
use crate::output::print;
use draw::Table;
use linux::daemon::LeftByDaemon;
use linux::doctor::{missing_for_lab, probe};
use linux::leftover::{Leftover, clean};
use trace::Doubt;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove what dead labs left behind, and undo what dead daemons changed. What still runs is not touched.
    #[arg(long)]
    clean: bool,
}

pub(crate) fn doctor(args: &Args) -> Result<(), Failure> {
    if args.clean { clean_up() } else { examine() }
}

fn examine() -> Result<(), Failure> {
    let probes = probe();
    let mut table = Table::new(["", "feature", "needed for", "detail"]);
    for probe in &probes {
        let verdict = if probe.ok { "ok" } else { "missing" };
        table.push([verdict, probe.name, probe.needed_for, &probe.detail].map(str::to_owned));
    }
    print(&table.render());
    match missing_for_lab(&probes) {
        None => {
            print("\nruns on Linux: yes\n");
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
            Leftover::Alive(path) => print(&format!("{}: its lab runs; not touched\n", path.display())),
            Leftover::NotOurs(path) => print(&format!("{}: not ours; not touched\n", path.display())),
            Leftover::Cleaned(path, killed) => {
                print(&format!("{}: removed, {} processes ended\n", path.display(), killed.len()));
            }
            Leftover::Failed(path, error) => {
                failed.push(Doubt::NoResult { why: format!("{}: {error}", path.display()) }.into());
            }
        }
    }
    let daemons = linux::daemon::clean().map_err(|error| Failure::Machine(error.to_string()))?;
    for (record, left) in &daemons {
        let record = record.display();
        match left {
            LeftByDaemon::Alive => print(&format!("{record}: its daemon runs; not touched\n")),
            LeftByDaemon::PutBack => print(&format!("{record}: what its daemon changed is undone\n")),
            LeftByDaemon::Gone => print(&format!("{record}: its network namespace is gone; removed\n")),
            LeftByDaemon::Failed(error) => {
                failed.push(Doubt::NoResult { why: format!("{record}: {error}") }.into());
            }
        }
    }
    if found.is_empty() && daemons.is_empty() {
        print("nothing was left behind\n");
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Untrusted(failed)) }
}
