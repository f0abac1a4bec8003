//! The JSON Schemas of the roles' configurations, for editors. The schemas are generated from the types that are
//! deserialized.

use crate::RoleConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl RoleConfig {
    /// Returns the schema of a role of this kind, including the key `kind`. Returns `None` if there is no such kind.
    pub fn schema(kind: &str, generator: &mut SchemaGenerator) -> Option<Schema> {
        let mut schema = Self::schema_of_kind(kind, generator)?;
        let object = schema.ensure_object();
        object.insert("title".to_owned(), kind.into());
        let keys = object.entry("properties").or_insert_with(|| serde_json::json!({}));
        if let Some(keys) = keys.as_object_mut() {
            keys.insert("kind".to_owned(), serde_json::json!({ "const": kind }));
        }
        let required = object.entry("required").or_insert_with(|| serde_json::json!([]));
        if let Some(required) = required.as_array_mut() {
            required.insert(0, "kind".into());
        }
        Some(schema)
    }
}

impl JsonSchema for RoleConfig {
    fn schema_name() -> Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Schema> =
            Self::KINDS.iter().filter_map(|kind| Self::schema(kind, generator)).collect();
        json_schema!({ "oneOf": kinds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_schema_that_names_it_and_takes_nothing_unknown() {
        let mut generator = SchemaGenerator::default();
        for kind in RoleConfig::KINDS {
            let schema = RoleConfig::schema(kind, &mut generator).unwrap_or_else(|| panic!("{kind}"));
            assert_eq!(schema.pointer("/properties/kind/const").and_then(|name| name.as_str()), Some(kind));
            assert_eq!(schema.get("additionalProperties"), Some(&false.into()), "{kind}");
            assert!(
                schema
                    .pointer("/properties")
                    .and_then(|keys| keys.as_object())
                    .is_some_and(|keys| keys.len() > 1)
            );
        }
        assert_eq!(RoleConfig::schema("apps/drain", &mut generator), None);
    }
}
