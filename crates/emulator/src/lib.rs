//! The links of a lab on Linux in real time, and what a lab needs of the machine it runs on.

pub mod cleanup;
pub mod control_run;
pub mod doctor;
pub mod idle;
pub mod link_emulator;
pub mod steal_time;
#[cfg(test)]
#[path = "../../../tests/support/sandboxed.rs"]
mod testing;
