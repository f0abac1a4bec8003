//! How a host's TCP behaves, as configurations write it.

use node::config::some_span;
use serde::Deserialize;
use tcp::Profile;
use wire::Duration;

/// A host's TCP. What is not given is the profile's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// The simulator's TCP begins with the constants of this one.
    #[serde(default)]
    pub profile: ProfileName,
    /// Linux: the kernel's congestion control for connections of this host, by its name there; `reno` if none is given.
    pub congestion: Option<String>,
    /// Simulator: partial acknowledgments keep fast recovery going (RFC 6582).
    pub newreno: Option<bool>,
    /// Simulator: initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Simulator: smallest retransmission time-out.
    #[serde(default, deserialize_with = "some_span")]
    pub rto_min: Option<Duration>,
    /// Simulator: retransmission time-out before there is a sample.
    #[serde(default, deserialize_with = "some_span")]
    pub rto_initial: Option<Duration>,
    /// Simulator: how long an acknowledgment may wait for a second segment; zero is not at all.
    #[serde(default, deserialize_with = "some_span")]
    pub delayed_ack: Option<Duration>,
    /// Simulator: bytes that may wait to be acknowledged.
    pub send_buffer: Option<u32>,
    /// Simulator: bytes that may wait to be read.
    pub receive_buffer: Option<u32>,
}

/// Where a profile begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileName {
    /// See [`Profile::linux_like`].
    #[default]
    LinuxLike,
    /// See [`Profile::rfc6298_reno`].
    Rfc6298Reno,
}

impl TcpConfig {
    /// The profile of the simulator's TCP.
    pub fn profile(&self) -> Profile {
        let base = match self.profile {
            ProfileName::LinuxLike => Profile::linux_like(),
            ProfileName::Rfc6298Reno => Profile::rfc6298_reno(),
        };
        Profile {
            newreno: self.newreno.unwrap_or(base.newreno),
            initial_window: self.initial_window.unwrap_or(base.initial_window),
            rto_min: self.rto_min.unwrap_or(base.rto_min),
            rto_initial: self.rto_initial.unwrap_or(base.rto_initial),
            delayed_ack: match self.delayed_ack {
                Some(Duration::ZERO) => None,
                Some(delay) => Some(delay),
                None => base.delayed_ack,
            },
            send_buffer: self.send_buffer.unwrap_or(base.send_buffer),
            receive_buffer: self.receive_buffer.unwrap_or(base.receive_buffer),
            ..base
        }
    }
}
