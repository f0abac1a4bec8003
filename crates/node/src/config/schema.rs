//! The same words for editors: JSON Schemas (draft 2020-12) of what is written as text.
//!
//! For `#[schemars(schema_with = "...")]`, beside the reader of the same name in `#[serde(deserialize_with = "...")]`.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A span of time: [`super::span`].
pub fn span(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": r"^[0-9]+(\.[0-9]{0,9})?(ns|us|ms|s|min)$",
        "examples": ["5ms", "1.5s"],
    })
}

/// Several: [`super::spans`].
pub fn spans(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": span(generator) })
}

/// What has a text form of its own: [`super::text`].
pub fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// A key, in hexadecimal.
pub fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2})+$" })
}

/// A link address, as `02:00:00:00:00:01`.
pub fn mac(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$" })
}

/// An address of an interface and the length of its link's prefix, as `10.1.0.1/24`.
pub fn interface_address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$" })
}

/// A network, as `10.1.0.0/24`.
pub fn prefix(generator: &mut SchemaGenerator) -> Schema {
    interface_address(generator)
}
