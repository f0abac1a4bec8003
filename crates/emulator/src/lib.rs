//! Emulates the links and hosts of a plan on the kernel of this machine.

pub mod run;
