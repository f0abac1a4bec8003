//! Tests of the roles of SIGMA, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod cast;
mod location_manager;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;
mod transcripts;
