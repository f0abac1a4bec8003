//! Tests of associations between two endpoints in virtual time: opening, transfer of data, moves, refusals and the
//! end.

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
