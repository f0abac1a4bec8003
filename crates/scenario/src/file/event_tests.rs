//! Tests of events: which ones are refused and at which key, and which random events are drawn.

use super::*;
use crate::file::{Scenario, schema};
use crate::{Plan, ScenarioError};

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

fn plan(events: &str, seed: u64) -> Result<Plan, ScenarioError> {
    Scenario::plan("x.toml", &format!("{FIRST}\n{events}"), &[], seed)
}

fn is_valid(events: &str) -> bool {
    let document: toml::Table = toml::from_str(&format!("{FIRST}\n{events}")).unwrap();
    let validator = jsonschema::draft202012::options().build(&schema()).unwrap();
    validator.is_valid(&serde_json::to_value(document).unwrap())
}

fn one(at: &str, rest: &str) -> String {
    format!("[[event]]\nat = \"{at}\"\n{rest}\n")
}

#[test]
fn every_kind_is_taken_and_named() {
    let all = [
        ("kind = \"crash\"\nhost = \"b1\"", "crash of b1"),
        ("kind = \"restart\"\nhost = \"b1\"", "restart of b1"),
        ("kind = \"stop\"\nhost = \"b2\"", "stop of b2"),
        ("kind = \"continue\"\nhost = \"b2\"", "continue of b2"),
        ("kind = \"cut\"\nwire = \"left\"", "cut of wire left"),
        ("kind = \"restore\"\nwire = \"left\"", "restore of wire left"),
        ("kind = \"cut\"\ncell = 2", "cut of cell 2"),
        ("kind = \"cut\"\ncell = 3\nhost = \"mobile\"", "cut of cell 3 for mobile"),
        ("kind = \"loss\"\nwire = \"left\"\nloss = 0.1", "loss of 10 % on wire left"),
        ("kind = \"mtu\"\ncell = 2\nmtu = 600", "MTU 600 on cell 2"),
        ("kind = \"clock\"\nhost = \"b1\"\nstep = \"-200ms\"", "clock step -200ms of b1"),
        ("kind = \"disk-full\"\nhost = \"b1\"", "disk full at b1"),
        ("kind = \"disk-free\"\nhost = \"b1\"", "disk free at b1"),
    ];
    let text: String = all.iter().map(|(rest, _)| one("1s", rest)).collect();
    let plan = plan(&text, 1).unwrap();
    let names: Vec<String> = plan.events.iter().map(|event| event.recorded.to_string()).collect();
    assert_eq!(names, all.map(|(_, name)| name));
    assert!(is_valid(&text));
    // Planned events can be written as a scenario and read again.
    for event in &plan.events {
        let written = toml::to_string(&event.table).unwrap();
        assert_eq!(toml::from_str::<EventTable>(&written).unwrap(), event.table, "{written}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    for (event, key, problem, by_schema) in [
        (one("1s", "kind = \"crash\"\nhost = \"b4\""), "event[0].host", "no host `b4`", false),
        (one("1s", "kind = \"cut\"\nwire = \"lift\""), "event[0].wire", "no wire or segment `lift`", false),
        (one("1s", "kind = \"cut\"\ncell = 9"), "event[0].cell", "there are: 2, 3", false),
        (one("6s", "kind = \"crash\"\nhost = \"b1\""), "event[0].at", "allowed: 0s to below 6s", false),
        (
            one("1s", "kind = \"restart\"\nhost = \"b1\""),
            "event[0].kind",
            "`restart` follows a `crash`",
            false,
        ),
        (
            one("1s", "kind = \"restore\"\nwire = \"left\""),
            "event[0].kind",
            "`restore` follows a `cut`",
            false,
        ),
        (
            one("1s", "kind = \"continue\"\nhost = \"b1\""),
            "event[0].kind",
            "`continue` follows a `stop`",
            false,
        ),
        (one("1s", "kind = \"disk-free\"\nhost = \"b1\""), "event[0].kind", "follows a `disk-full`", false),
        (one("1s", "kind = \"crush\"\nhost = \"b1\""), "event[0].kind", "did you mean `crash`", true),
        (one("1", "kind = \"crash\"\nhost = \"b1\""), "event[0].at", "write `1ms`", true),
        (one("1s", "kind = \"crash\"\nwire = \"left\""), "event[0].host", "needs a `host`", true),
        (one("1s", "kind = \"cut\"\nhost = \"b1\""), "event[0].wire", "needs a `wire` or a `cell`", true),
        (one("1s", "kind = \"cut\"\ncell = 2\nwire = \"left\""), "event[0].cell", "not both", true),
        (
            one("1s", "kind = \"cut\"\ncell = 2\nhost = \"b1\""),
            "event[0].host",
            "has no radio that moves",
            false,
        ),
        (one("1s", "kind = \"loss\"\nwire = \"left\""), "event[0].loss", "is missing", true),
        (one("1s", "kind = \"loss\"\nwire = \"left\"\nloss = 10"), "event[0].loss", "from 0 to 1", true),
        (one("1s", "kind = \"mtu\"\nwire = \"left\"\nmtu = 60"), "event[0].mtu", "68 bytes", true),
        (
            one("1s", "kind = \"crash\"\nhost = \"b1\"\nmtu = 600"),
            "event[0].mtu",
            "does not have this key",
            true,
        ),
        (one("1s", "kind = \"clock\"\nhost = \"b1\"\nstep = \"5s\""), "event[0].step", "write + or -", true),
    ] {
        let refusal = plan(&event, 1).unwrap_err().to_string();
        let named = refusal.starts_with("x.toml, line ") && refusal.contains(&format!("`{key}`: "));
        assert!(named && refusal.contains(problem), "{event}\n{refusal}");
        assert_eq!(is_valid(&event), !by_schema, "the schema: {event}");
    }
}

#[test]
fn random_events_follow_the_seed_and_end_what_they_begin() {
    let table = "[[random_event]]\nkinds = [\"crash\", \"cut\", \"stop\"]\nrate = 4\nlasts = \"300ms\"\nto = \"5s\"\n";
    let drawn = |seed| -> Vec<EventTable> {
        plan(table, seed).unwrap().events.into_iter().map(|event| event.table).collect()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    assert!(is_valid(table));
    for seed in 1..=20 {
        let all = drawn(seed);
        assert!(all.is_sorted_by_key(|event| event.at) && states(&all).is_ok());
        let begun = all.iter().filter(|event| event.kind.end().is_some()).count();
        assert_eq!(all.len(), 2 * begun, "each ends within the run: {all:?}");
    }
    let begun: usize = (1..=20).map(|seed| drawn(seed).len() / 2).sum();
    assert!((300..=440).contains(&begun), "4 a second for 5 s, 20 times, less what has no room: {begun}");
    let seldom = plan(&table.replace("rate = 4", "rate = 1e-300"), 1).unwrap();
    assert!(seldom.events.is_empty(), "the first would come after any time that there is");
    let refusal = plan(&table.replace("rate = 4", "rate = 0"), 1).unwrap_err().to_string();
    assert!(refusal.contains("`random_event[0].rate`: must be above 0"), "{refusal}");
    let refusal = plan(&table.replace("\"cut\"", "\"restore\""), 1).unwrap_err().to_string();
    assert!(refusal.contains("follows automatically"), "{refusal}");
}

#[test]
fn a_random_event_has_no_key_that_does_not_fit() {
    let table = |kinds: &str, rest: &str| {
        format!("[[random_event]]\nkinds = [{kinds}]\nrate = 2\nlasts = \"200ms\"\n{rest}\n")
    };
    for (kinds, rest, key, problem) in [
        (
            "\"cut\"",
            "hosts = [\"b2\"]",
            "hosts",
            "kinds allowed with this key: `crash`, `stop`, `clock`, `disk-full`",
        ),
        ("\"crash\"", "wires = [\"left\"]", "wires", "kinds allowed with this key: `cut`, `loss`, `mtu`"),
        ("\"crash\"", "cells = [2]", "cells", "kinds allowed with this key: `cut`, `loss`, `mtu`"),
        ("\"crash\"", "hosts = []", "hosts", "is empty"),
        ("\"cut\", \"cut\"", "", "kinds[1]", "twice"),
        ("\"cut\"", "wires = [\"left\", \"left\"]", "wires[1]", "twice"),
    ] {
        let refusal = plan(&table(kinds, rest), 1).unwrap_err().to_string();
        assert!(
            refusal.contains(&format!("`random_event[0].{key}`: ")) && refusal.contains(problem),
            "{refusal}"
        );
    }
    for (kinds, rest) in
        [("\"cut\"", "wires = [\"left\"]"), ("\"crash\", \"cut\"", "hosts = [\"b2\"]\ncells = [2]")]
    {
        assert!(plan(&table(kinds, rest), 1).is_ok(), "{kinds} {rest}");
    }
}

#[test]
fn a_refusal_says_the_limit() {
    let at = |at: &str| one(at, "kind = \"crash\"\nhost = \"b1\"");
    let step = |step: &str| one("1s", &format!("kind = \"clock\"\nhost = \"b1\"\nstep = \"{step}\""));
    for (event, problem) in [
        (one("1s", "kind = \"mtu\"\nwire = \"left\"\nmtu = 70000"), "a whole number from 68 to 65535"),
        (one("1s", "kind = [\"crash\"]\nhost = \"b1\""), "expected a word in quotation marks"),
        (step("+99999999999s"), "allowed: at most 9223372036s"),
        (step("-9999999999s"), "allowed: at most 9223372036s"),
        (at("1.0000000000s"), "allowed: at most 9"),
    ] {
        let refusal = plan(&event, 1).unwrap_err().to_string();
        assert!(refusal.contains(problem), "{event}\n{refusal}");
    }
    let two = at("1s") + &at("2s").replace("crash", "restart");
    let setting = "event[5].at=3s".parse().unwrap();
    let refusal =
        Scenario::plan("x.toml", &format!("{FIRST}\n{two}"), &[setting], 1).unwrap_err().to_string();
    assert!(refusal.contains("no `event[5]`; there are: event[0] to event[1]"), "{refusal}");
}

/// The page docs/events.md has a row for each key of both tables and for each kind that begins a fault. Its example
/// is accepted.
#[test]
fn the_page_about_events_has_every_key() {
    let page = include_str!("../../../../docs/events.md");
    let (events, random) = page.split_once("## `[[random_event]]`").unwrap();
    for (text, schema) in
        [(events, schemars::schema_for!(EventTable)), (random, schemars::schema_for!(RandomTable))]
    {
        let keys = schema.get("properties").and_then(|keys| keys.as_object()).unwrap().keys();
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("| `"))
            .filter_map(|line| line.split(" | ").next())
            .collect();
        for key in keys {
            assert!(rows.iter().any(|row| row.contains(&format!("`{key}`"))), "{key} is not in {rows:?}");
        }
    }
    let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(plan(example, 1).unwrap().events.len(), 2);
    for kind in ["crash", "stop", "clock", "disk-full", "cut", "loss", "mtu"] {
        assert!(events.contains(&format!("\n| `{kind}` | ")), "{kind}");
    }
}
