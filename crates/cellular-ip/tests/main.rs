//! Tests of the roles of Cellular IP, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod common;
mod refusals;
mod teller;
mod transcripts;
