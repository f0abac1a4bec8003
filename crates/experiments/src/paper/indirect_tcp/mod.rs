//! Experiments with Indirect TCP.

pub(super) mod handoff_time;
