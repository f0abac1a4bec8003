//! Cellular IP (Campbell et al., 2000; draft-ietf-mobileip-cellularip-00) for IPv4: host-specific routes in an access
//! network, made by route-updates and kept alive by data.
//!
//! ```text
//!   Internet ── gateway ──┬── station ))) cell     A mobile host sends route-updates up its path. Every node on the
//!                         └── station ))) cell     path notes the neighbor that they came from: downlink packets
//!                                      mobile      retrace the path. Data refresh a mapping and never make one.
//! ```
//!
//! - [`mobile`]: the mobile host. Hard handoff: retune, then route-update. Semisoft: a route-update with the S flag
//!   through the new base station first, so that the crossover node sends both ways for a while.
//! - [`station`]: a base station, and any other node of the network; the crossover is whichever node two paths share.
//! - [`gateway`]: the node where the access network meets the Internet, and route-updates end.
//! - [`delay`]: the delay device in front of the new path, so that it is not ahead of the old path.
//! - [`message`], [`update_request`]: what they say to each other.
//!
//! Not here yet: beacons, registration, paging, and the gateway broadcast that fixes uplinks; what they would tell
//! comes from the configuration.

mod admission;
mod cache;
pub mod config;
pub mod delay;
pub mod gateway;
pub mod message;
pub mod mobile;
mod per_second;
mod signals;
pub mod station;
pub mod update_request;
mod updates;

pub use gateway::Gateway;
pub use mobile::Mobile;
pub use station::Station;
