//! The part of an agent's configuration that its advertisements need.

use node::config::{ConfigError, span};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::Duration;

/// The parameters of the advertisements of a home agent or foreign agent (RFC 5944, section 2.3).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advertise {
    /// The interval of advertisements, greater than zero; default `1s`: RFC 2002, section 2.3, recommends at most one
    /// advertisement per second.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub interval: Duration,
    /// The longest time by which an advertisement is sent early, less than `interval`; default `50ms` (not from an
    /// RFC). The time is random, so that agents do not synchronize (RFC 5944, section 2.1).
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub jitter: Duration,
    /// The lifetime of an advertisement, in whole seconds from three times `interval` (RFC 5944, section 2.1) to
    /// `9000s` (RFC 1256, section 4.1); default `3s`.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The maximum number of solicitations per second that get separate answers; default 20 (not from an RFC). Further
    /// solicitations are answered together, by at most the same number of advertisements to all hosts per second.
    pub answers: u16,
}

impl Default for Advertise {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            jitter: Duration::from_millis(50),
            lifetime: Duration::from_secs(3),
            answers: 20,
        }
    }
}

impl Advertise {
    /// Checks the times. An error names the key `advertise` and the problem.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.interval.is_zero() || self.jitter >= self.interval {
            let problem = "`interval` must be greater than zero, and `jitter` less than `interval`";
            return Err(ConfigError::new("advertise", problem));
        }
        // With a shorter lifetime, an agent could expire although only two advertisements were lost.
        let least = self.interval.saturating_mul(3);
        // RFC 1256, section 4.1, limits the lifetime to 9000 s.
        if self.lifetime < least || self.lifetime > Duration::from_mins(150) {
            let problem = format!(
                "`lifetime` must be at least three times `interval` ({least:?}; RFC 5944, section 2.1) and at most 9000s"
            );
            return Err(ConfigError::new("advertise", problem));
        }
        if self.lifetime.subsec_nanos() != 0 {
            return Err(ConfigError::new("advertise", "`lifetime` must be whole seconds, for example `3s`"));
        }
        Ok(())
    }
}
