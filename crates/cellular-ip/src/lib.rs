//! Cellular IP (Campbell et al., 2000; draft-ietf-mobileip-cellularip-00) for IPv4: host-specific routes in an access
//! network, made by route-updates and kept alive by data.
//!
//! ```text
//!   Internet ── gateway ──┬── station ))) cell     A mobile host sends route-updates up its path. Every node on the
//!                         └── station ))) cell     path notes the neighbor that they came from: downlink packets
//!                                      mobile      retrace the path. Data refresh a mapping and never make one.
//! ```
//!
//! - [`mobile`]: the mobile host. Hard handoff: it retunes, then sends a route-update. Semisoft: it first sends a
//!   route-update with the S flag through the new base station. So the crossover node sends on both paths for a
//!   limited time.
//! - [`station`]: a base station, or any other node of the network. The crossover is the node where the two paths join.
//! - [`gateway`]: the node that connects the access network to the Internet. Route-updates end there.
//! - [`delay`]: the delay device, which delays the new path so that it is not ahead of the old path.
//! - [`message`], [`update_request`]: the messages between hosts and nodes.
//!
//! Not implemented: beacons, registration, paging, and the gateway broadcast with which nodes find their uplinks. The
//! configuration contains the values that beacons, registration and the broadcast would provide.

mod admission;
mod cache;
pub mod config;
pub mod delay;
pub mod gateway;
pub mod message;
pub mod mobile;
mod per_second;
pub mod reason;
mod route_updates;
mod signals;
pub mod station;
pub mod update_request;

pub use gateway::Gateway;
pub use mobile::Mobile;
pub use station::Station;
