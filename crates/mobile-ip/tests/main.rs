//! Tests of the roles of Mobile IP, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod cast;
mod kept;
mod refusals;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;
mod transcripts;
