//! Makes the node of a host from the host's configuration. No other crate needs to know the protocols to build a node.
//!
//! `wayfare node` reads a [`HostConfig`] from a file, and the lab makes a [`HostConfig`] from a scenario. So both
//! backends build the same node from the same configuration.

mod clock;
mod error;
mod expected;
mod host;
mod kind;
mod schema;
mod surroundings;
mod tcp;
mod together;

pub use clock::ClockConfig;
pub use error::{KeyError, NodeError};
pub use expected::by_schema;
pub use host::{DaemonConfig, DataPathPlace, HostConfig, InterfaceConfig, ParseViaError, RouteConfig, Via};
pub use kind::RoleConfig;
pub use surroundings::Surroundings;
pub use tcp::{EstimatorName, ProfileName, RecoveryName, TcpConfig, TooBigName};
