//! Makes the node of a host from the host's configuration. No other crate needs to know the protocols to build a node.
//!
//! `wayfare node` reads a [`HostConfig`] from a file, and the lab makes one from a scenario. So both backends build the
//! same node from the same configuration.

mod host;
mod kind;
mod schema;
mod tcp;

pub use host::{DaemonConfig, HostConfig, InterfaceConfig, KeyError, NodeError, ParseViaError};
pub use host::{RouteConfig, Surroundings, Via};
pub use kind::RoleConfig;
pub use tcp::{EstimatorName, ProfileName, RecoveryName, TcpConfig, TooBigName};
