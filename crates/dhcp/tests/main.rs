//! Tests of the roles of DHCP, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod cast;
mod configs;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;
mod transcripts;
