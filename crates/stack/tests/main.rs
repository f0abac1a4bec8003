//! Tests of the simulator's host: sockets, transfers, relays.

#![cfg(test)]

mod datagrams;
mod harness;
mod relays;
#[path = "../../../tests/support/datagrams.rs"]
mod sockets;
mod transcripts;
mod transfers;
