//! Experiments with Mobile IP.

pub(super) mod movement_detection;
pub(super) mod registration_delay;
pub(super) mod triangle;
