//! Experiments with SIGMA.

pub(super) mod handoff;
