//! The deterministic simulator: hosts on wires and in radio cells, in virtual time.
//!
//! Time is integer nanoseconds. Simultaneous events happen in the order in which they were scheduled; that order is
//! part of what a run means, and of its fingerprint. One seed gives one run, on any machine, debug or release.
//!
//! [`World`] is the driver of [`node::Node`] in virtual time, as the daemon in `linux` is in real time. Frames are
//! carried by [`link::Fabric`], the same model that the radio process on Linux uses.

mod host;
mod order;
mod queue;
mod store;
mod world;

pub use host::{HostSpec, InterfaceSpec};
pub use order::{HostEvent, Order, reason};
pub use store::StoreFault;
pub use world::{Run, Stopped, World};
