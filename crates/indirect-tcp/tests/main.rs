//! Tests of the roles of Indirect TCP, from outside the crate.

#![cfg(test)]

#[macro_use]
#[path = "../../../tests/support/told.rs"]
mod told;
mod attacks;
mod cast;
#[path = "support/config.rs"]
mod config;
mod others;
mod owners;
#[path = "support/tcp.rs"]
mod tcp;
#[path = "../../../tests/support/transcript.rs"]
mod transcript;
mod transcripts;
