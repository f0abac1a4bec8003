//! Delays as text, and default values.

use node::config::read_span;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serializer, de::Error};
use wire::Duration;

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
