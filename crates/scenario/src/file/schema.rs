//! The JSON Schema (draft 2020-12) of scenario files, for editors. The schema is generated from the types that the
//! parser reads.

use super::Scenario;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

/// Returns the schema of scenario files: the keys, with their types, ranges and descriptions. The parser also checks
/// names, and how values fit together. So it refuses some scenarios that are valid by the schema.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<Scenario>();
    RecursiveTransform(tidy).transform(&mut schema);
    // The keys `$schema`, `title` and `description` come first in the output.
    let mut whole = serde_json::Map::new();
    for key in ["$schema", "title", "description"] {
        whole.extend(schema.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Value::Object(rest) = schema.to_value() {
        whole.extend(rest);
    }
    Value::Object(whole)
}

/// Converts a schema of Rust types to a schema of TOML: without null, with spans of time as text, with descriptions
/// without links.
fn tidy(schema: &mut Schema) {
    match schema.get_mut("default") {
        Some(Value::Array(list)) => list.iter_mut().for_each(as_written),
        Some(default) => as_written(default),
        None => {}
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(text) = schema.get_mut("description")
        && let Some(plain) = text.as_str().map(plain)
    {
        *text = plain.into();
    }
    without_null(schema);
}

/// Converts a span of time from serde's form to the form in a scenario. Does not change other values.
fn as_written(value: &mut Value) {
    if let Some(text) = span(value) {
        *value = text.into();
    }
}

fn span(value: &Value) -> Option<String> {
    if let [("secs", seconds), ("nanos", nanos)] = entries(value)?.as_slice() {
        let nanos = seconds.as_u64()?.checked_mul(1_000_000_000)?.checked_add(nanos.as_u64()?)?;
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let unit = units.into_iter().find(|(_, unit)| nanos % unit == 0);
        return Some(
            unit.map_or_else(|| format!("{nanos}ns"), |(name, unit)| format!("{}{name}", nanos / unit)),
        );
    }
    None
}

fn entries(value: &Value) -> Option<Vec<(&str, &Value)>> {
    Some(value.as_object()?.iter().map(|(key, value)| (key.as_str(), value)).collect())
}

/// Removes null from the allowed types, as TOML has no null: `anyOf` of a schema and null becomes the schema alone.
fn without_null(schema: &mut Schema) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let null = |value: &Value| value.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(alternatives)) = schema.get("anyOf").cloned()
        && alternatives.iter().any(null)
        && let Some(Value::Object(own)) = alternatives.into_iter().find(|value| !null(value))
    {
        schema.remove("anyOf");
        for (key, value) in own {
            schema.ensure_object().entry(key).or_insert(value);
        }
    }
}

/// Joins the lines of each paragraph of a description, and removes the brackets of links.
fn plain(text: &str) -> String {
    let paragraphs =
        text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n").replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
