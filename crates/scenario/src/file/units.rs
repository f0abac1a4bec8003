//! Rates and delays as text, and default values.

use node::config::read_span;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de::Error};
use wire::Duration;

/// Reads a rate in bit/s, such as `2Mb/s`, `64kb/s` or `1Gb/s`.
pub(crate) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value.as_str().and_then(parse_rate).ok_or_else(|| {
        D::Error::custom(if is_too_fast(&text) {
            format!("`{text}` is too fast; allowed: at most {}Gb/s", u64::MAX / 1_000_000_000)
        } else {
            format!(
                "`{text}` is not a rate; write a whole number above 0 and b/s, kb/s, Mb/s or Gb/s, for example \"2Mb/s\""
            )
        })
    })
}

/// Reads a rate as [`rate`] does, for a key that may be absent.
pub(crate) fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    rate(deserializer).map(Some)
}

/// Reads a rate as text, for example `2Mb/s`. Returns it in bit/s, or `None` if the text is malformed, zero or too
/// large.
pub fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit: u64 = match unit {
        "b/s" => 1,
        "kb/s" => 1_000,
        "Mb/s" => 1_000_000,
        "Gb/s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|rate| *rate > 0)
}

/// Returns whether a text is a rate whose number is too large.
fn is_too_fast(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_above_0 = text.bytes().take_while(u8::is_ascii_digit).any(|digit| digit != b'0');
    is_above_0 && parse_rate(&format!("1{unit}")).is_some() && parse_rate(text).is_none()
}

/// Reads a delay: one span of time for both directions, or a list of two spans.
pub(crate) fn delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[Duration; 2], D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrTwo {
        One(String),
        Two([String; 2]),
    }
    let bad = || {
        D::Error::custom(
            "must be one time, for example `1ms`, or a list of two times, for example `[\"21ms\", \"1ms\"]`",
        )
    };
    let texts = OneOrTwo::deserialize(deserializer).map_err(|_| bad())?;
    let span = |text: &str| read_span(text).map_err(D::Error::custom);
    match texts {
        OneOrTwo::One(both) => Ok([span(&both)?; 2]),
        OneOrTwo::Two([there, back]) => Ok([span(&there)?, span(&back)?]),
    }
}

/// Writes a span of time as in a scenario, without loss: `1500ms`.
pub(crate) fn span_text(span: Duration) -> String {
    let nanos = span.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let unit = units.into_iter().find(|(_, unit)| nanos.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{nanos}ns"), |(name, unit)| format!("{}{name}", nanos / unit))
}

/// Writes a span of time as in a scenario, for `#[serde(serialize_with)]`.
pub(crate) fn write_span<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&span_text(*span))
}

#[expect(clippy::ref_option, reason = "serde passes this type")]
pub(crate) fn write_some_span<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => write_span(span, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn schema_rate(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^[0-9]*[1-9][0-9]*(b|kb|Mb|Gb)/s$",
        "examples": ["2Mb/s", "64kb/s"],
    })
}

pub(crate) fn schema_delay(generator: &mut SchemaGenerator) -> Schema {
    let span = node::config::schema::span(generator);
    json_schema!({ "anyOf": [span, { "type": "array", "items": span, "minItems": 2, "maxItems": 2 }] })
}

pub(crate) const fn one() -> usize {
    1
}

pub(crate) const fn beacon_interval() -> Duration {
    Duration::from_micros(102_400)
}

pub(crate) const fn beacon_bytes() -> usize {
    100
}

pub(crate) const fn slot() -> Duration {
    Duration::from_micros(20)
}

pub(crate) const fn window() -> u32 {
    32
}

pub(crate) const fn most() -> u32 {
    1024
}

pub(crate) const fn surely() -> f64 {
    1.0
}

pub(crate) const fn at_1m() -> f64 {
    -25.0
}

pub(crate) const fn exponent() -> f64 {
    3.0
}

pub(crate) const fn wire_queue() -> usize {
    128
}

pub(crate) const fn radio_queue() -> usize {
    64
}

pub(crate) const fn ethernet_mtu() -> u16 {
    1500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        assert_eq!(parse_rate("2Mb/s"), Some(2_000_000));
        assert_eq!(parse_rate("100kb/s"), Some(100_000));
        for bad in ["", "2", "2 Mb/s", "2MB/s", "0Mb/s", "-1Mb/s", "1.5Mb/s", "99999999999999Gb/s"] {
            assert_eq!(parse_rate(bad), None, "{bad}");
            assert_eq!(is_too_fast(bad), bad.ends_with("9Gb/s"), "{bad}");
        }
    }
}
