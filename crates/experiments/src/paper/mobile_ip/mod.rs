//! Experiments with Mobile IP.

pub(super) mod triangle;
