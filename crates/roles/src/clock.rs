//! The configuration of a host's wall clock.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error};
use wire::ClockError;

/// The error of a host's wall clock. On Linux, the machine's clock is not changed: only the host's roles see the error,
/// and not its programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockConfig {
    /// How far the clock is ahead of the right time when the run begins: a time with a sign, for example `+1.5s` or
    /// `-60min`; at most ten years (`315360000s`); default `+0s`.
    #[serde(default, deserialize_with = "offset")]
    #[schemars(schema_with = "node::config::schema::signed_span")]
    pub offset: i64,
    /// How much too fast the clock is, in parts per million: -10000 to 10000; default 0. A clock with a drift of 20
    /// gains 1.7 s a day. The drift begins with the run, or with the start of a daemon outside a lab.
    #[serde(default, deserialize_with = "drift")]
    #[schemars(range(min = -10_000, max = 10_000))]
    pub drift: i32,
}

/// The largest drift, in parts per million.
const MOST_DRIFT: i64 = 10_000;
/// The largest offset, in seconds: ten years of 365 days. A time with this offset is still an NTP timestamp of the
/// same or of the next era.
const MOST_OFFSET: i32 = 315_360_000;

impl ClockConfig {
    /// Returns the error of the clock.
    pub const fn error(self) -> ClockError {
        ClockError { offset: self.offset, drift: self.drift }
    }
}

fn offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    node::config::signed_span(deserializer, MOST_OFFSET)
}

fn drift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    let drift = value.as_integer().filter(|drift| drift.abs() <= MOST_DRIFT);
    drift.and_then(|drift| i32::try_from(drift).ok()).ok_or_else(|| {
        D::Error::custom(format!(
            "`{value}` is not a drift; allowed: a whole number of parts per million, -{MOST_DRIFT} to {MOST_DRIFT}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ClockConfig, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_clock_has_an_offset_and_a_drift() {
        assert_eq!(read("").unwrap().error(), ClockError::NONE);
        let given = read("offset = '+1.5s'\ndrift = -20").unwrap();
        assert_eq!(given.error(), ClockError { offset: 1_500_000_000, drift: -20 });
        assert_eq!(read("offset = '-60min'").unwrap().offset, -3_600_000_000_000);
        assert_eq!(read("offset = '+0s'").unwrap().offset, 0);
    }

    #[test]
    fn a_wrong_clock_is_refused_with_what_is_allowed() {
        for (text, expected) in [
            ("offset = '5s'", "write + or -"),
            ("offset = 5", "write + or -"),
            ("offset = '+5'", "no unit"),
            ("offset = '+315360001s'", "allowed: -315360000s to +315360000s"),
            ("offset = '-99999999999s'", "allowed: -315360000s to +315360000s"),
            ("drift = 10001", "-10000 to 10000"),
            ("drift = -10001", "-10000 to 10000"),
            ("drift = 1.5", "a whole number of parts per million"),
            ("drift = '20ppm'", "a whole number of parts per million"),
            ("skew = 1", "unknown field `skew`, expected `offset` or `drift`"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
