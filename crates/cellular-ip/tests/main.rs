//! Tests of the roles of Cellular IP, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod cast;
mod common;
mod refusals;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;
mod transcripts;
