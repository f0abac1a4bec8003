//! Experiments with Mobile IP.

pub(super) mod movement_detection;
pub(super) mod registration_delay;
mod satellite;
pub(super) mod satellite_buffer;
pub(super) mod satellite_registration;
pub(super) mod satellite_single_buffer;
pub(super) mod satellite_smooth;
pub(super) mod triangle;
