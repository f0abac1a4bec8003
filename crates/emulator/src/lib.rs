//! Runs a plan on the kernel of this machine: the plan's hosts in namespaces, its links in real time, and what a lab needs of the
//! machine it runs on.

pub mod cleanup;
pub mod control_run;
pub mod doctor;
pub mod idle;
pub mod link_emulator;
pub mod run;
pub mod steal_time;
#[cfg(test)]
#[path = "../../../tests/support/sandboxed.rs"]
mod testing;
