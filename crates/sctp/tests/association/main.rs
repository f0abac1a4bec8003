//! Two ends of associations in virtual time: what they agree on, carry, move and refuse.

#![cfg(test)]

mod attacks;
mod bounds;
mod crowds;
mod detours;
mod directory;
mod harness;
mod moves;
mod opening;
mod returning;
mod roaming;
mod routes;
mod rules;
mod script;
mod stress;
mod tags;
mod transfers;
mod tshark;
mod unproved;
mod windows;
