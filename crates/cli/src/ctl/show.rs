//! The state of a daemon as tables. The keys are the roles': a key that is new to this file is printed all the same.

use draw::Table;
use recorder::decode::dissect::code_text;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Members of a status that are the daemon's, and not a role's.
const OF_DAEMON: [&str; 3] = ["clock", "drops", "troubles"];
/// The columns that come first in a table, in this order; other columns follow in alphabetical order.
const FIRST: [&str; 13] = [
    "state",
    "at",
    "agent",
    "home_agent",
    "care_of",
    "lifetime_s",
    "left_s",
    "age_s",
    "ends_unix_s",
    SINCE,
    "spi",
    "home_agent_spi",
    "codes",
];

/// The name of the time at which something began. Its age is printed.
const SINCE: &str = "since_unix_s";

/// Returns the roles of a status, by name.
pub(super) fn roles(status: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = status.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| !OF_DAEMON.contains(name))
}

/// Returns the time of the host's wall clock, in seconds since 1970; `None` if the daemon does not report it.
fn clock(status: &Value) -> Option<i64> {
    status.get("clock")?.get("unix_s")?.as_i64()
}

/// Returns the whole state as text: a part for each role, then the packets that were dropped, and the troubles.
pub(super) fn status(status: &Value) -> String {
    let now = clock(status);
    let mut out = String::new();
    for (name, role) in roles(status) {
        part(&mut out, name, role, now);
    }
    for name in OF_DAEMON {
        match status.get(name) {
            Some(Value::Array(troubles)) => {
                for trouble in troubles {
                    let _ = writeln!(out, "trouble: {}", cell(trouble));
                }
            }
            Some(value) => part(&mut out, name, value, now),
            None => {}
        }
    }
    out
}

/// Returns the tables `key` of all roles that have one, as JSON and as text. `None` if no role has it.
pub(super) fn tables(status: &Value, key: &str) -> Option<(Value, String)> {
    let now = clock(status);
    let found: Map<String, Value> =
        roles(status).filter_map(|(name, role)| Some((name.to_owned(), role.get(key)?.clone()))).collect();
    if found.is_empty() {
        return None;
    }
    let mut out = String::new();
    for value in found.values() {
        let rows = rows_of(value).map_or(0, |rows| rows.len());
        let _ = writeln!(out, "{rows} {}", if rows == 1 { key.trim_end_matches('s') } else { key });
        if let Some(rows) = rows_of(value) {
            out.push_str(&table(value, &rows, now));
        }
    }
    Some((Value::Object(found), out))
}

/// Returns an answer with a few values as one line.
pub(super) fn line(answer: &Value) -> String {
    match answer {
        Value::Null => "done\n".to_owned(),
        Value::Object(members) => {
            let all: Vec<String> =
                members.iter().map(|(name, value)| format!("{name} {}", cell(value))).collect();
            format!("{}\n", all.join(", "))
        }
        other => format!("{}\n", cell(other)),
    }
}

/// Adds a role's state: first its single values, then its tables and counters.
fn part(out: &mut String, name: &str, value: &Value, now: Option<i64>) {
    let Some(members) = value.as_object() else {
        let _ = writeln!(out, "{name}: {}\n", cell(value));
        return;
    };
    let _ = writeln!(out, "{name}{}", if members.is_empty() { ": none" } else { "" });
    if name == "drops" {
        counters(out, members, name);
        out.push('\n');
        return;
    }
    let mut names: Vec<&String> = members.keys().collect();
    names.sort_by_key(|name| (place(name), *name));
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let all = names.into_iter().filter_map(|name| Some((name, members.get(name)?)));
    let (single, tables): (Vec<_>, Vec<_>) = all.partition(|(_, value)| is_cell(value));
    for (name, value) in single {
        let space = " ".repeat(width - name.len());
        let _ = writeln!(out, "  {name}{space}  {}{}", cell(value), left(name, value, now));
    }
    for (name, inner) in tables {
        let empty =
            inner.as_object().is_some_and(Map::is_empty) || inner.as_array().is_some_and(Vec::is_empty);
        let _ = writeln!(out, "  {name}{}", if empty { ": none" } else { "" });
        if let Some(rows) = rows_of(inner) {
            indent(out, &table(inner, &rows, now));
        } else if let Some(counts) = inner.as_object() {
            counters(out, counts, name);
        } else if !empty {
            let _ = writeln!(out, "    {}", cell(inner));
        }
    }
    out.push('\n');
}

/// Returns the rows of a table: a map or a list of maps, or a map of lists of maps, for example the bindings of each
/// mobile node. `None` if the value is not a table, or is empty.
fn rows_of<'a>(value: &'a Value) -> Option<Vec<(String, &'a Map<String, Value>)>> {
    let rows: Option<Vec<_>> = match value {
        Value::Object(members) => {
            let rows_at =
                |(name, row): (&String, &'a Value)| -> Option<Vec<(String, &'a Map<String, Value>)>> {
                    match row {
                        Value::Array(rows) => {
                            rows.iter().map(|row| Some((name.clone(), row.as_object()?))).collect()
                        }
                        row => Some(vec![(name.clone(), Value::as_object(row)?)]),
                    }
                };
            let rows: Option<Vec<_>> = members.iter().map(rows_at).collect();
            rows.map(|rows| rows.into_iter().flatten().collect())
        }
        Value::Array(rows) => {
            (1..).zip(rows).map(|(number, row)| Some((format!("{number}"), row.as_object()?))).collect()
        }
        _ => None,
    };
    rows.filter(|rows| !rows.is_empty())
}

/// Returns a table with one row for each entry of `value`: an address, or a place in a list. `now`: the time of the host's clock, from which the rest of a lifetime
/// follows.
fn table(value: &Value, rows: &[(String, &Map<String, Value>)], now: Option<i64>) -> String {
    let first = if value.is_array() { "number" } else { "host" };
    let mut columns: Vec<&String> = Vec::new();
    for (_, row) in rows {
        for name in row.keys() {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    columns.sort_by_key(|name| (place(name), *name));
    let title = |name: &String| match name.strip_suffix("_unix_s") {
        Some(_) if now.is_some() && name == SINCE => "age s".to_owned(),
        Some(event) if now.is_some() => format!("{event} in s"),
        _ => name.replace('_', " "),
    };
    let mut table =
        Table::new(std::iter::once(first.to_owned()).chain(columns.iter().map(|name| title(name))));
    for (host, row) in rows {
        let cells = columns.iter().map(|name| match (row.get(*name), now) {
            (None, _) => "-".to_owned(),
            (Some(value), Some(now)) if name.ends_with("_unix_s") => {
                let shown = |at| if *name == SINCE { now - at } else { at - now };
                value.as_i64().map_or_else(|| cell(value), |at| shown(at).to_string())
            }
            (Some(value), _) => cell(value),
        });
        table.push(std::iter::once(host.clone()).chain(cells));
    }
    table.render()
}

/// Returns how long it is until a time of the host's clock, or how long ago it was, as an addition to the time.
fn left(name: &str, value: &Value, now: Option<i64>) -> String {
    match (name.ends_with("_unix_s"), value.as_i64(), now) {
        (true, Some(at), Some(now)) if name == SINCE => format!(" ({} s ago)", now - at),
        (true, Some(at), Some(now)) => format!(" (in {} s)", at - now),
        _ => String::new(),
    }
}

fn place(name: &str) -> usize {
    FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len())
}

/// Adds counters by reason or code, the largest first. `of` is the key of the counters: `codes` are those of Mobile IP,
/// and are printed with their names.
fn counters(out: &mut String, counts: &Map<String, Value>, of: &str) {
    let mut all: Vec<(&String, &Value)> = counts.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(count.as_u64().unwrap_or(0)));
    // A value that is no number is not a reason to move the others.
    let numbers = all.iter().filter(|(_, count)| count.is_number());
    let width = numbers.map(|(_, count)| cell(count).len()).max().unwrap_or(0);
    for (reason, count) in all {
        let named = reason.parse().ok().filter(|_| of == "codes").map(code_text);
        let reason = named.as_ref().unwrap_or(reason);
        // The width of a formatting macro is at most 65535, and a value can be longer.
        let count = cell(count);
        let space = " ".repeat(width.saturating_sub(count.len()));
        let _ = writeln!(out, "    {space}{count}  {reason}");
    }
}

fn indent(out: &mut String, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "    {line}");
    }
}

/// Returns whether a value fits into a cell of a table.
fn is_cell(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(values) => values.iter().all(|value| !value.is_object() && !value.is_array()),
        _ => true,
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name} {}", cell(value)))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn home() -> Value {
        json!({
            "home_agent": {
                "bindings": {
                    "10.1.0.7": { "care_of": "10.2.0.1", "lifetime_s": 600, "ends_unix_s": 1_000_500, "spi": 256 },
                    "10.1.0.8": [{ "care_of": "10.3.0.1", "lifetime_s": 60, "ends_unix_s": 1_000_010, "since_unix_s": 999_950, "spi": null, "flags": "", "new": [1, 2] }],
                },
                "codes": { "0": 3, "133": 12 },
                "refused": {},
                "pending": 0,
            },
            "clock": { "unix_s": 1_000_000, "ahead_ms": 0 },
            "drops": { "no_route": 7 },
            "troubles": ["records cannot be written: full"],
        })
    }

    #[test]
    fn an_empty_value_is_not_blank() {
        let empty = [json!([]), json!({}), json!(null), json!({ "arrivals": {}, "sent": 2 })];
        assert_eq!(empty.map(|value| cell(&value)), ["none", "none", "-", "arrivals none, sent 2"]);
    }

    #[test]
    fn a_status_has_all_keys_of_the_roles() {
        let expected = "\
home_agent
  pending   0
  codes
    12  133 (home agent: Identification mismatch)
     3  0 (accepted)
  bindings
    host      care of   lifetime s  ends in s  age s  spi  flags  new
    --------  --------  ----------  ---------  -----  ---  -----  ----
    10.1.0.7  10.2.0.1         600        500  -      256  -      -
    10.1.0.8  10.3.0.1          60         10  50     -    -      1, 2
  refused: none

clock
  ahead_ms  0
  unix_s    1000000

drops
    7  no_route

trouble: records cannot be written: full
";
        let text = status(&home());
        let squeezed = |text: &str| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    }

    #[test]
    fn the_rows_of_a_list_have_numbers() {
        let status = json!({ "mobile_node": { "interfaces": [{ "name": "air" }, { "name": "air2" }] } });
        let (_, text) = tables(&status, "interfaces").unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["number", "name"], "{text}");
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["1", "air"], "{text}");
    }

    /// A foreign agent with many pending visitors, and a home agent with many correspondents.
    #[test]
    fn a_value_of_any_length_is_printed() {
        let nested: Map<String, Value> =
            (0..4000).map(|number| (format!("10.4.0.{number}"), json!({ "pending": 1 }))).collect();
        assert!(cell(&json!(nested)).len() > usize::from(u16::MAX));
        for value in [json!({ "a": nested.clone(), "b": 7 }), json!(nested), json!("x".repeat(70_000))] {
            let status = json!({ "foreign_agent": { "early": value, "short": 1 } });
            let text = super::status(&status);
            assert!(text.len() > 10_000 && text.contains("short"), "{}", text.len());
        }
        let text = super::status(&json!({ "foreign_agent": { "early": { "a": nested, "b": 7 } } }));
        assert!(text.contains("\n    7  b\n"), "a long value does not move the others");
    }

    #[test]
    fn a_table_of_one_kind_is_found_in_any_role() {
        let (json, text) = tables(&home(), "bindings").unwrap();
        assert_eq!(json["home_agent"]["bindings"], Value::Null, "by role, without the key");
        assert_eq!(json["home_agent"]["10.1.0.7"]["spi"], 256);
        assert!(text.starts_with("2 bindings\nhost "), "{text}");
        assert!(tables(&home(), "visitors").is_none());
        let none = json!({ "foreign_agent": { "visitors": {} } });
        assert_eq!(tables(&none, "visitors").unwrap().1, "0 visitors\n");
    }

    #[test]
    fn an_answer_is_one_line() {
        assert_eq!(line(&Value::Null), "done\n");
        assert_eq!(line(&json!({ "agent": "10.2.0.1" })), "agent 10.2.0.1\n");
        assert_eq!(line(&json!([1, null])), "1, -\n");
    }
}
