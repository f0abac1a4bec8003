//! JSON Schemas (draft 2020-12) of values that are written as text, for editors.
//!
//! The functions are for `#[schemars(schema_with = "...")]` on fields that have a `#[serde(deserialize_with = "...")]`.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Returns the schema of a duration as [`super::span`] reads it, for example `5ms`.
pub fn span(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^[0-9]+(\.[0-9]{0,9})?(ns|us|ms|s|min)$",
        "examples": ["5ms", "1.5s"],
    })
}

/// Returns the schema of a time with a sign as [`super::signed_span`] reads it.
pub fn signed_span(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^[+-][0-9]+(\.[0-9]{0,9})?(ns|us|ms|s|min)$",
        "examples": ["+5s", "-200ms"],
    })
}

/// Returns the schema of a list of durations as [`super::spans`] reads it.
pub fn spans(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": span(generator) })
}

/// Returns the schema of a rate as [`super::rate`] reads it, for example `2Mb/s`.
pub fn rate(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^[0-9]*[1-9][0-9]*(b|kb|Mb|Gb)/s$",
        "examples": ["2Mb/s", "64kb/s"],
    })
}

/// Returns the schema of any text, for values that [`super::text`] reads.
pub fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// Returns the schema of an authentication key: an even number of hexadecimal digits.
pub fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2})+$" })
}

/// Returns the schema of a link address, for example `02:00:00:00:00:01`.
pub fn mac(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$" })
}

/// Returns the schema of an interface address with a prefix length, for example `10.1.0.1/24`.
pub fn interface_address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$" })
}

/// Returns the schema of a prefix, for example `10.1.0.0/24`.
pub fn prefix(generator: &mut SchemaGenerator) -> Schema {
    interface_address(generator)
}

/// Returns the schema of a list of prefixes, as [`super::texts`] reads it.
pub fn prefixes(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": prefix(generator) })
}
