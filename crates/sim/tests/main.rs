//! Tests of the simulator.

#![cfg(test)]

mod restless;
mod served;
mod world;
