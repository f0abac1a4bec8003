//! What the message of a wrong value expects: the range of a number, and the keys of a table, as the schema of the
//! configuration has them. The message of serde has the types of Rust, whose ranges are wider.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// Returns the message `problem` about the value at `path` of a configuration or scenario `T`. If the message ends with a type of
/// Rust, and the schema of the key says more, the message ends with what is allowed.
pub fn by_schema<T: JsonSchema>(path: &str, problem: &str) -> String {
    let Some((before, wanted)) = problem.rsplit_once("expected ") else { return problem.to_owned() };
    let mut generator = SchemaGenerator::default();
    let schema = T::json_schema(&mut generator).to_value();
    let definitions = Value::Object(generator.take_definitions(false));
    let Some(of_key) = find(&schema, &definitions, path) else { return problem.to_owned() };
    let allowed = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => range(of_key),
        "f32" | "f64" => range_of_fraction(of_key),
        table if table.starts_with("struct ") => example(of_key),
        _ => None,
    };
    allowed.map_or_else(|| problem.to_owned(), |allowed| format!("{before}expected {allowed}"))
}

/// Returns the schema of the value at a path such as `advertise.answers` or `mobile_nodes[0].spi`.
fn find<'a>(schema: &'a Value, definitions: &'a Value, path: &str) -> Option<&'a Value> {
    let mut here = schema;
    for step in path.split(['.', '[']) {
        let inner = match step.strip_suffix(']') {
            Some(_) => here.get("items")?,
            // A table whose keys are names, for example of wires.
            None => {
                let key = here.get("properties").and_then(|keys| keys.get(step));
                key.or_else(|| here.get("additionalProperties").filter(|each| each.is_object()))?
            }
        };
        here = resolved(inner, definitions);
    }
    Some(here)
}

/// Follows a reference to a definition. An optional value is one of a schema and null.
fn resolved<'a>(schema: &'a Value, definitions: &'a Value) -> &'a Value {
    let named = |schema: &'a Value| {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        definitions.get(name)
    };
    let some = schema.get("anyOf").and_then(Value::as_array).and_then(|all| all.iter().find_map(named));
    named(schema).or(some).unwrap_or(schema)
}

fn range(schema: &Value) -> Option<String> {
    // A limit may be negative, or above the largest `i64`.
    let limit = |name: &str| schema.get(name).filter(|limit| limit.is_i64() || limit.is_u64());
    Some(match (limit("minimum"), limit("maximum")) {
        (Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
        (None, Some(most)) => format!("a whole number, at most {most}"),
        (Some(least), None) if least.as_u64() != Some(0) => format!("a whole number, {least} or greater"),
        _ => return None,
    })
}

/// Returns the range of a number that need not be whole; `None` if the schema has no upper limit.
fn range_of_fraction(schema: &Value) -> Option<String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let most = limit("maximum")?;
    match (limit("minimum"), limit("exclusiveMinimum")) {
        (Some(least), _) => Some(format!("a number from {least} to {most}")),
        (None, Some(least)) => Some(format!("a number above {least} and at most {most}")),
        (None, None) => Some(format!("a number, at most {most}")),
    }
}

/// Returns an example of a table with its required keys.
fn example(schema: &Value) -> Option<String> {
    let keys: Vec<&str> = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let keys: Vec<String> = keys.iter().map(|key| format!("{key} = ...")).collect();
    Some(format!("a table, for example {{ {} }}", keys.join(", "))).filter(|_| !keys.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::RoleConfig;

    /// Returns the problem of a mobile node or foreign agent with this key.
    fn problem(kind: &str, key: &str) -> String {
        let text = format!(
            "kind = 'mobile-ip/{kind}'\naddress = '10.1.0.7/16'\ninterface = 'air'\n{key}\n{}",
            if kind == "mobile-node" {
                "home_agent = { address = '10.1.0.2', spi = 256, key = '000102030405060708090a0b0c0d0e0f' }\n"
            } else {
                ""
            }
        );
        let error = RoleConfig::read(toml::from_str(&text).unwrap()).unwrap_err();
        format!("{}: {}", error.path, error.problem)
    }

    #[test]
    fn a_wrong_value_has_the_limits_of_its_key() {
        for (kind, key, expected) in [
            (
                "mobile-node",
                "signal_hysteresis = -3",
                "signal_hysteresis: invalid value: integer `-3`, expected a whole number from 0 to 60",
            ),
            (
                "mobile-node",
                "signal_hysteresis = '3'",
                "signal_hysteresis: invalid type: string \"3\", expected a whole number from 0 to 60",
            ),
            (
                "foreign-agent",
                "tunnel_mtu = -1",
                "tunnel_mtu: invalid value: integer `-1`, expected a whole number from 548 to 65535",
            ),
            (
                "foreign-agent",
                "challenge_window = -1",
                "challenge_window: invalid value: integer `-1`, expected a whole number from 1 to 16",
            ),
            (
                "mobile-node",
                "weakest_signal = '80dBm'",
                "weakest_signal: invalid type: string \"80dBm\", expected a whole number from -130 to 0",
            ),
            (
                "mobile-node",
                "backup_home_agents = ['home']",
                "backup_home_agents[0]: invalid type: string \"home\", expected a table, for example { address = ..., spi = ..., key = ... }",
            ),
            (
                "foreign-agent",
                "advertise = { answers = -1 }",
                "advertise.answers: invalid value: integer `-1`, expected a whole number from 0 to 65535",
            ),
        ] {
            assert_eq!(problem(kind, key), expected);
        }
    }
}
