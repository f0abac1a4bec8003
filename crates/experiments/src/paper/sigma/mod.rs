//! Experiments with SIGMA, and with Mobile IP in the same report.

pub(super) mod handoff;
pub(super) mod mobile_ip;
mod records;
