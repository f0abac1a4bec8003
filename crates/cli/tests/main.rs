//! Tests of the command, without runs on Linux.

#![cfg(test)]

mod agree;
#[path = "support/blocks.rs"]
mod blocks;
mod decode;
mod files;
mod readme;
mod verbs;
