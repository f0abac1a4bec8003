//! Tests that need several crates: the protocols in the simulator, the ledger, the laws of roles, and agreement with other
//! simulators and kernels.

#![cfg(test)]

mod air;
mod bulk;
mod cellular_ip;
mod determinism;
mod dhcp;
mod distributed_keys;
mod events;
mod evidence;
mod indirect_tcp;
mod kept_packets;
mod laws;
mod ledger;
mod links;
mod many_handoffs;
mod mobile_ip;
mod moves;
mod route_optimization;
mod route_outages;
mod sigma;
mod sigma_stress;
mod smooth_handoff;
mod tunnels;
mod vertical_handoff;
