//! Checks that the schema accepts the built-in scenarios, and that both schema and parser refuse wrong keys, types
//! and ranges.

use super::*;
use crate::Scenario;
use crate::file::BUILT_IN;
use jsonschema::Validator;

fn validator() -> Validator {
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema()).unwrap()
}

fn document(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap()
}

#[test]
fn every_scenario_is_valid() {
    let validator = validator();
    for (name, text) in BUILT_IN {
        let problems: Vec<String> = validator
            .iter_errors(&document(text))
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:#?}");
    }
}

const FIRST: &str = include_str!("../../../../scenarios/first.toml");
const DRIVE: &str = include_str!("../../../../scenarios/mobile-ip/drive.toml");

#[test]
fn what_is_wrong_in_shape_is_refused_by_both() {
    let validator = validator();
    for (text, from, to) in [
        (FIRST, "[radio]", "[radar]"),
        (FIRST, "[cell.2]", "[cell.two]"),
        (FIRST, "duration = \"6s\"", "duration = 6"),
        (FIRST, "duration = \"6s\"", ""),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"0Mb/s\""),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"2 Mb/s\""),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"2Mb/s\"\nloss = 1.5"),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"2Mb/s\"\nmtu = 67"),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"2Mb/s\"\nburst = { enter = 0.5 }"),
        (FIRST, "rate = \"2Mb/s\"", "rate = \"2Mb/s\"\nnet = \"10.0.0.0\""),
        (FIRST, "delay = \"0.5ms\"", "delay = \"0.5 ms\""),
        (FIRST, "delay = \"0.5ms\"", "delay = [\"1ms\"]"),
        (FIRST, "delay = \"0.5ms\"", "delay = \"-1ms\""),
        (FIRST, "ends = [\"b1\", \"b2\"]", "ends = [\"b1\"]"),
        (FIRST, "rate = 50", "rate = \"fast\""),
        (FIRST, "rate = 50", "rate = -1"),
        (FIRST, "rate = 50", "speed = 50"),
        (FIRST, "kind = \"apps/sink\"", "kind = \"apps/drain\""),
        (FIRST, "kind = \"apps/sink\", at", "at"),
        (FIRST, "uplink = \"correspondent\", ", ""),
        (FIRST, "uplink = \"correspondent\"", "uplink = 3"),
        (FIRST, "kind = \"hard\"", "kind = \"soft\""),
        (FIRST, "kind = \"hard\"", "sort = \"hard\""),
        (FIRST, "delay_device = 1", "delay_device = \"one\""),
        (FIRST, "address = \"10.2.0.2\"", "address = \"10.2.0\""),
        (FIRST, "address = \"10.2.0.2\"", "tcp = { mss = \"big\" }"),
        (FIRST, "address = \"10.2.0.2\"", "tcp = { profile = \"windows\" }"),
        (FIRST, "network_key = \"00", "network_key = \"0x"),
        (FIRST, "network_key", "network_kay"),
        (FIRST, "[radio]", "[[host.b2.program]]\nstart = \"1s\"\n[radio]"),
        (DRIVE, "[host.mobile]", "[host.mobile]\npath = {}\n"),
        (DRIVE, "[host.mobile]", "[host.mobile]\nradios = 0\n"),
    ] {
        let text = if to.starts_with("[host.mobile]\npath") { without_path(text) } else { text.to_owned() };
        assert!(text.contains(from), "{from}");
        let wrong = text.replacen(from, to, 1);
        assert!(!validator.is_valid(&document(&wrong)), "the schema takes `{to}`");
        let refused = Scenario::plan("bad.toml", &wrong, &[], 1);
        assert!(refused.is_err(), "the parser takes `{to}`");
    }
}

/// Returns the text of a scenario without its lines that begin with `path`.
fn without_path(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("path")).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_stands_only_in_files_is_valid_too() {
    let validator = validator();
    let sweep = "[sweep]\nrepetitions = 3\nset.\"radio.retune\" = [1, \"2ms\"]\n";
    let rule = "moves = { between = [\"b3\", \"b2\"], every = \"1s\", kind = \"hard\" } },";
    let (begin, rest) = FIRST.split_once("moves = [").unwrap();
    let (_, end) = rest.split_once("    ] },").unwrap();
    for text in [
        format!("{FIRST}\n{sweep}"),
        format!("{begin}{rule}{end}"),
        DRIVE.replacen("[host.mobile]", "[host.mobile]\npath = { file = \"way.tcl\", node = 3 }\n", 1),
    ] {
        let text = if text.contains("way.tcl") {
            without_path(&text).replacen(
                "[host.mobile]",
                "[host.mobile]\npath = { file = \"way.tcl\", node = 3 }",
                1,
            )
        } else {
            text
        };
        let errors: Vec<String> =
            validator.iter_errors(&document(&text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?} in\n{text}");
    }
}

/// Calls `each` for every key that a schema describes, with the path and the schema of the key.
fn all_keys(schema: &Value, path: &str, each: &mut impl FnMut(&str, &Value)) {
    if let Some(keys) = schema.get("properties").and_then(Value::as_object) {
        for (key, value) in keys {
            each(&format!("{path}.{key}"), value);
        }
    }
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                all_keys(value, &format!("{path}/{key}"), each);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| all_keys(value, path, each)),
        _ => {}
    }
}

#[test]
fn every_key_is_described_and_nothing_is_as_rust_has_it() {
    let schema = schema();
    let (mut keys, mut bare) = (0, Vec::new());
    all_keys(&schema, "", &mut |path, value| {
        keys += 1;
        let is_described =
            value.get("description").is_some() || value.get("const").is_some() || value.get("$ref").is_some();
        // The description of `moves` has the keys of a rule of moves.
        if !is_described && !path.contains("anyOf") {
            bare.push(path.to_owned());
        }
    });
    assert!(keys > 150, "{keys}");
    assert!(bare.is_empty(), "{bare:#?}");
    let text = schema.to_string();
    for wrong in ["nanos", "[`", "\"null\"", "::"] {
        assert!(!text.contains(wrong), "{wrong} in {text}");
    }
}

/// A default that the description of a time names must be a time that the parser accepts.
#[test]
fn each_described_default_of_a_time_is_accepted() {
    fn check(value: &Value, checked: &mut usize) {
        if let Some(schema) = value.as_object()
            && schema.get("pattern").and_then(Value::as_str).is_some_and(|pattern| pattern.contains("|min)$"))
            && let Some((_, rest)) = schema
                .get("description")
                .and_then(Value::as_str)
                .and_then(|text| text.split_once("default `"))
        {
            let default = rest.split('`').next().unwrap_or_default();
            let unsigned = default.trim_start_matches(['+', '-']);
            assert!(node::config::read_span(unsigned).is_ok(), "{default}: {schema:?}");
            *checked += 1;
        }
        match value {
            Value::Object(inner) => inner.values().for_each(|inner| check(inner, checked)),
            Value::Array(inner) => inner.iter().for_each(|inner| check(inner, checked)),
            _ => {}
        }
    }
    let mut checked = 0;
    check(&schema(), &mut checked);
    assert!(checked > 10, "{checked}");
}

/// The message of a wrong number says what is allowed: its unit, or its range.
#[test]
fn a_wrong_number_is_refused_with_what_is_allowed() {
    let (_, smooth) = Scenario::find("mobile-ip/smooth-handoff").unwrap();
    for (text, setting, allowed) in [
        (FIRST, "cell.2.loss=half", "expected a number from 0 to 1"),
        (FIRST, "cell.2.loss=2", "must be a probability from 0 to 1"),
        (FIRST, "cell.2.duplicate=x", "expected a number from 0 to 1"),
        (FIRST, "cell.2.burst.enter=x", "expected a number from 0 to 1"),
        (FIRST, "radio.exponent=x", "expected a number from 1 to 10"),
        (FIRST, "cell.2.beacon.bytes=-1", "expected a whole number from 1 to 2346"),
        (FIRST, "cell.2.contention.window=x", "expected a whole number from 1 to 32768"),
        (FIRST, "cell.2.mtu=-1", "expected a whole number from 68 to 65535"),
        (FIRST, "cell.2.rate=fast", "write a whole number above 0 and b/s, kb/s, Mb/s or Gb/s"),
        (FIRST, "radio.retune=5", "write \"5ms\" or \"5s\", or another unit: us, ns, min"),
        (FIRST, "radio.retune=x", "write a number and ns, us, ms, s or min"),
        (FIRST, "host.mobile.radios=x", "expected a whole number from 1 to 64"),
        (FIRST, "host.mobile.tcp.sack=maybe", "expected true or false"),
        (FIRST, "host.mobile.tcp.mss=x", "expected a whole number from 48 to 65495"),
        (FIRST, "host.mobile.tcp.send_buffer=-1", "expected a whole number from 536 to 1073741824"),
        (FIRST, "host.mobile.tcp.initial_window=x", "expected a whole number, 1 or greater"),
        (FIRST, "host.mobile.tcp.max_retransmissions=x", "expected a whole number from 0 to 255"),
        (FIRST, "constant-rate.rate=x", "expected a whole number from 1 to 1000000"),
        (&smooth, "mobile-ip.buffer.packets=x", "expected a whole number from 1 to 1000"),
        (&smooth, "mobile-ip.buffer.packets=-1", "expected a whole number from 1 to 1000"),
        (&smooth, "mobile-ip.buffer.bytes=10kB", "expected a whole number, 576 or greater"),
        (&smooth, "mobile-ip.buffer.max_age=0s", "must be greater than zero, for example `10s`"),
        (&smooth, "mobile-node.lifetime=10", "10 has no unit; write \"10ms\" or \"10s\", or another unit"),
        (&smooth, "mobile-node.weakest_signal=80dBm", "expected a whole number from -130 to 0"),
        (&smooth, "mobile-node.lifetime=1s", "must be whole seconds, from 3s to 65534s"),
        (&smooth, "mobile-node.home_first=1", "expected true or false"),
    ] {
        let refused = Scenario::plan("f.toml", text, &[setting.parse().unwrap()], 1);
        let refusal = refused.map_or_else(|error| error.to_string(), |_| "makes a plan".to_owned());
        assert!(refusal.contains(allowed), "{setting}: {refusal}");
    }
}
