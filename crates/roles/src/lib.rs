//! From a host's configuration to its node: the one place that knows every protocol by name.
//!
//! A [`HostConfig`] is what `wayfare node` reads from a file and what the lab makes from a scenario, so that both
//! worlds build the same node from the same words.

mod host;
mod schema;
mod tcp;

pub use host::{DaemonConfig, HostConfig, InterfaceConfig, KeyError, NodeError, ParseViaError, RoleConfig};
pub use host::{RouteConfig, Surroundings, Via};
pub use tcp::{EstimatorName, ProfileName, RecoveryName, TcpConfig, TooBigName};
