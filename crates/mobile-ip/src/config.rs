//! The configuration of the Mobile IP roles: what several roles have in common. Each file of the folder has the keys of one role.

mod buffer;
mod correspondent;
mod foreign_agent;
mod home_agent;
mod mobile_node;
mod peer;

pub use crate::advertise::Advertise;
pub(crate) use buffer::Limits;
pub use buffer::{Buffering, Drain, KeepWhen};
pub use correspondent::{CorrespondentConfig, TrustedHomeAgent};
pub use foreign_agent::ForeignAgentConfig;
pub use home_agent::HomeAgentConfig;
pub use mobile_node::{
    AgentCell, CareOf, ForeignNetwork, FurtherInterface, MobileNodeConfig, Movement, ReverseTunnel,
};
pub use peer::{Peer, Replay, check_association};

pub(crate) use peer::Associations;

use crate::message::INFINITE;
use crate::tunnels::SMALLEST_MTU;
use node::config::ConfigError;
use peer::{check_agent_peers, check_peers};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Duration, InterfaceAddress};

/// Whether an agent supports reverse tunnels (RFC 3024): from the care-of address to the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReverseTunnel {
    /// The agent denies requests with flag T (code 74 or 137).
    #[default]
    None,
    /// The agent accepts requests with and without flag T.
    Offered,
    /// The agent denies registrations without flag T (code 75 or 138).
    Required,
}

fn check_address(key: &'static str, own: InterfaceAddress) -> Result<(), ConfigError> {
    if wire::ipv4::is_host(own.address) && !own.is_broadcast(own.address) {
        return Ok(());
    }
    let problem = format!(
        "{} is not a unicast host address; loopback, multicast, reserved and broadcast addresses are not allowed",
        own.address
    );
    Err(ConfigError::new(key, problem))
}

/// Checks the lifetime of registrations. A lifetime is sent in whole seconds, and [`INFINITE`] means without end.
/// Requests are at least 1 s apart. So a lifetime shorter than 3 s could end before a lost request is repeated.
fn check_lifetime(key: &'static str, lifetime: Duration) -> Result<(), ConfigError> {
    if lifetime.subsec_nanos() == 0 && (3..INFINITE.into()).contains(&lifetime.as_secs()) {
        return Ok(());
    }
    Err(ConfigError::new(key, "must be whole seconds, from 3s to 65534s"))
}

fn check_tunnel_mtu(mtu: u16) -> Result<(), ConfigError> {
    if mtu >= SMALLEST_MTU {
        return Ok(());
    }
    let problem =
        format!("must be at least {SMALLEST_MTU} bytes, the smallest MTU that an agent uses for a tunnel");
    Err(ConfigError::new("tunnel_mtu", problem))
}

/// Checks the times of announcements. Announcements are sent in the order of the list, so the times must be ascending.
fn check_announcements(times: &[Duration]) -> Result<(), ConfigError> {
    if times.is_sorted() {
        return Ok(());
    }
    Err(ConfigError::new(
        "announcements",
        "must be in ascending order, for example `[\"0s\", \"1s\", \"3s\"]`",
    ))
}

/// Checks the longest permitted difference between a timestamp and the clock of the host that checks it.
fn check_replay_window(window: Duration) -> Result<(), ConfigError> {
    if window > Duration::from_secs(3) {
        return Ok(());
    }
    Err(ConfigError::new("replay_window", "must be greater than 3s (RFC 5944, section 5.7.1)"))
}

const fn yes() -> bool {
    true
}

const fn registration_lifetime() -> Duration {
    Duration::from_hours(1)
}

const fn replay_window() -> Duration {
    Duration::from_secs(7)
}

const fn tunnel_mtu() -> u16 {
    1480
}

fn announcements() -> Vec<Duration> {
    vec![Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)]
}
