//! The deterministic simulator: hosts on wires and in radio cells, in virtual time.
//!
//! Time is integer nanoseconds. Simultaneous events happen in the order in which they were scheduled. That order is
//! part of a run's result and of its fingerprint. The same hosts, links and seeds give the same run, on any machine, in
//! debug and release builds.
//!
//! [`World`] drives [`node::Node`]s in virtual time, as `daemon` does in real time. [`link::Fabric`]
//! carries the frames: the same model that the link emulator on Linux uses.

mod host;
mod queue;
mod store;
mod world;

pub use host::{HostSpec, InterfaceSpec};
pub use store::StoreFault;
pub use world::{HostEvent, Order, Run, Stopped, World, reason};
