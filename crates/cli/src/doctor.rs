//! `wayfare doctor`: prints the features of this machine, and cleans up after terminated labs and daemons.

use crate::Failure;
use crate::output::print;
use daemon::{LeftByDaemon, left_behind};
use draw::Table;
use emulator::cleanup::{Leftover, clean, look};
use emulator::doctor::{missing_for_lab, probe};
use trace::Doubt;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove what terminated labs left behind, and undo changes of terminated daemons. Running labs and daemons are
    /// not changed.
    #[arg(long)]
    clean: bool,
}

pub(crate) fn doctor(args: &Args) -> Result<(), Failure> {
    if args.clean { clean_up() } else { examine() }
}

fn examine() -> Result<(), Failure> {
    let probes = probe();
    let mut table = Table::new(["state", "feature", "needed for", "detail"]);
    for probe in &probes {
        let verdict = if probe.ok { "ok" } else { "missing" };
        table.push([verdict, probe.name, probe.needed_for, &probe.detail].map(str::to_owned));
    }
    print(&table.render());
    tell_of_leftovers();
    match missing_for_lab(&probes) {
        None => {
            print("\nruns on Linux: yes\n");
            Ok(())
        }
        Some(missing) => Err(Failure::Machine(format!("runs on Linux need: {missing}"))),
    }
}

/// Prints what terminated labs and daemons left behind. A path that cannot be read is printed as a note, and is no
/// failure of the command.
fn tell_of_leftovers() {
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    match look() {
        Ok(labs) => {
            for lab in labs {
                match lab {
                    Leftover::Dead(path) => {
                        lines.push(format!("{}: left by a terminated lab", path.display()));
                    }
                    Leftover::Failed(_, error) => notes.push(error.to_string()),
                    Leftover::Alive(_) | Leftover::NotOurs(_) | Leftover::Cleaned(..) => {}
                }
            }
        }
        Err(error) => notes.push(error.to_string()),
    }
    match left_behind() {
        Ok(daemons) => {
            for (path, left) in daemons {
                let path = path.display();
                match left {
                    LeftByDaemon::Dead => {
                        lines.push(format!("{path}: the changes of a terminated daemon are not undone"));
                    }
                    LeftByDaemon::Lock => lines.push(format!("{path}: a lock of a terminated daemon")),
                    LeftByDaemon::OfAnother(user) => notes.push(of_another(&path, user)),
                    LeftByDaemon::Failed(error) => notes.push(error.to_string()),
                    LeftByDaemon::Alive | LeftByDaemon::PutBack | LeftByDaemon::Gone => {}
                }
            }
        }
        Err(error) => notes.push(error.to_string()),
    }
    if !lines.is_empty() {
        print(&format!(
            "\nleft behind by terminated labs and daemons; `wayfare doctor --clean` undoes and removes it:\n{}\n",
            lines.join("\n")
        ));
    }
    for note in notes {
        print(&format!("\n{note}\n"));
    }
}

/// Returns a note that only `user` can clean up `path`, the folder in which the daemons of `user` record their changes.
fn of_another(path: &impl std::fmt::Display, user: u32) -> String {
    let who = if user == 0 { "root".to_owned() } else { format!("user {user}") };
    format!(
        "{path} belongs to the daemons of {who}; only {who} can clean up after them, with `wayfare doctor --clean`"
    )
}

fn clean_up() -> Result<(), Failure> {
    let found = clean().map_err(|error| Failure::Machine(error.to_string()))?;
    let mut failed = Vec::new();
    let mut some = false;
    for leftover in &found {
        some = true;
        match leftover {
            Leftover::Alive(path) => print(&format!("{}: its lab runs; not changed\n", path.display())),
            Leftover::NotOurs(path) => {
                print(&format!("{}: not a private directory of this user; not changed\n", path.display()));
            }
            Leftover::Cleaned(path, killed) => {
                print(&format!("{}: removed, {} processes ended\n", path.display(), killed.len()));
            }
            Leftover::Dead(path) => print(&format!("{}: left by a terminated lab\n", path.display())),
            Leftover::Failed(path, error) => {
                failed.push(Doubt::NoResult { why: format!("{}: {error}", path.display()) }.into());
            }
        }
    }
    let daemons = daemon::clean().map_err(|error| Failure::Machine(error.to_string()))?;
    for (path, left) in &daemons {
        let path = path.display();
        some |= !matches!(left, LeftByDaemon::OfAnother(_));
        match left {
            LeftByDaemon::Alive => print(&format!("{path}: its daemon runs; not changed\n")),
            LeftByDaemon::Dead => {
                print(&format!("{path}: the changes of a terminated daemon are not undone\n"));
            }
            LeftByDaemon::PutBack => {
                print(&format!("{path}: the changes of a terminated daemon are undone\n"));
            }
            LeftByDaemon::Gone => {
                print(&format!("{path}: its network namespace does not exist any more; removed\n"));
            }
            LeftByDaemon::Lock => print(&format!("{path}: a lock that no process holds; removed\n")),
            LeftByDaemon::OfAnother(user) => print(&format!("{}\n", of_another(&path, *user))),
            LeftByDaemon::Failed(error) => {
                failed.push(Doubt::NoResult { why: format!("{path}: {error}") }.into());
            }
        }
    }
    if !some {
        print("nothing of this user was left behind\n");
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Untrusted(failed)) }
}
