//! Two ends of associations in virtual time: what they agree on, carry, move and refuse.

#![cfg(test)]

mod harness;
mod moves;
mod transfers;
