//! Experiments with Mobile IP.

use crate::reproduce::Results;
use recorder::run::Backend;

pub(super) mod movement_detection;
pub(super) mod registration_delay;
mod satellite;
pub(super) mod satellite_buffer;
pub(super) mod satellite_registration;
pub(super) mod satellite_single_buffer;
pub(super) mod satellite_smooth;
pub(super) mod triangle;

/// Returns by how much the halts of two equal runs can differ at random, in seconds: not at all in the simulator.
fn at_random(results: &Results) -> f64 {
    if results.backend == Backend::Sim { 0.0 } else { 0.1 }
}
