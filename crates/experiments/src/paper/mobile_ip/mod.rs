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

/// Returns the margin for halts of equal runs, which differ at random on Linux, in seconds; none in the simulator.
fn at_random(results: &Results) -> f64 {
    if results.backend == Backend::Sim { 0.0 } else { 0.1 }
}
