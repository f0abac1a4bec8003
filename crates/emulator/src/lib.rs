//! Runs a plan on the kernel of this machine, with the plan's hosts in namespaces and its links in real time. Also
//! checks what a lab needs of this machine.

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
