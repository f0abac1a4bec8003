//! Tests of TCP, from outside the crate.

#![cfg(test)]

mod cross_check;
mod harness;
mod packets;
mod scripts;
mod streams;
mod throughput;
mod unchanged;
