//! From a host's configuration to its node. Only this crate knows every protocol by name.
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
