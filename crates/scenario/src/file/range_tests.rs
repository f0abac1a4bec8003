//! Tests of values that cannot work: each is refused where it is written, with the permitted range.

use super::tests::refusal_in;
use crate::Scenario;

/// Returns the position of the value of `what` (`KEY = VALUE`) in the scenario `name` after `from` was replaced by `to`, as an
/// error has it.
fn place(name: &str, from: &str, to: &str, what: &str) -> String {
    let (_, text) = Scenario::find(name).unwrap();
    let text = text.replacen(from, to, 1);
    let (line, text) = (1..).zip(text.lines()).find(|(_, line)| line.contains(what)).unwrap();
    format!("f.toml, line {line}, column {}: ", text.find(what).unwrap() + what.find("= ").unwrap() + 3)
}

#[test]
fn values_of_tcp_that_cannot_work_are_refused_with_their_place_and_range() {
    let usual = "tcp = { congestion = \"reno\" }";
    for (key, value, allowed) in [
        ("mss", "1", "must be from 48 to 65495 bytes"),
        ("rto_min", "\"0s\"", "must be from 1us to 1000s"),
        ("rto_max", "\"1ms\"", "must be at least 200ms, the value of `rto_min`"),
        ("max_retransmissions", "4294967295", "must be from 0 to 255 retransmissions"),
        ("send_buffer", "0", "must be from 536 to 1073741824 bytes"),
        ("receive_buffer", "4294967295", "must be from 536 to 1073741824 bytes"),
        ("timestamp_tick", "\"0s\"", "must be from 1us to 1s"),
        ("persist_max", "\"0s\"", "must be from 1us to 1000s"),
    ] {
        let given = format!("{key} = {value}");
        let to = format!("tcp = {{ {given} }}");
        let refusal = refusal_in("bulk", usual, &to);
        let expected = format!("{}`host.server.tcp.{key}`: {allowed}\n", place("bulk", usual, &to, &given));
        assert!(refusal.starts_with(&expected), "{refusal}\n{expected}");
    }
}

#[test]
fn a_congestion_control_that_the_simulator_lacks_is_refused_with_its_place() {
    let (_, text) = Scenario::find("bulk").unwrap();
    let text = text.replacen("\"reno\"", "\"fast\"", 1);
    let plan = Scenario::plan("f.toml", &text, &[], 1).unwrap();
    let refusal = plan.world().unwrap_err().to_string();
    let expected = format!(
        "{}`host.server.tcp.congestion`: the simulator has no congestion control `fast`; allowed: `reno` and `cubic`, or on Linux a name of the kernel\n",
        place("bulk", "\"reno\"", "\"fast\"", "congestion = ")
    );
    assert!(refusal.starts_with(&expected), "{refusal}\n{expected}");
    let setting = "host.server.tcp.congestion=fast".parse().unwrap();
    let (_, text) = Scenario::find("bulk").unwrap();
    let refusal = Scenario::plan("f.toml", &text, &[setting], 1).unwrap().world().unwrap_err().to_string();
    let expected = "f.toml, with host.server.tcp.congestion=\"fast\": `host.server.tcp.congestion`: the simulator has no";
    assert!(refusal.starts_with(expected), "{refusal}");
}

#[test]
fn values_of_links_and_radios_that_cannot_work_are_refused_with_their_range() {
    let (wire, cell, long) =
        ("queue = 64", "station = \"b2\"", "must be at most 1440min, the longest duration of a run");
    let radio = "retune = \"5ms\"";
    for (name, from, key, value, allowed) in [
        ("bulk", wire, "wire.path.duplicate_delay", "\"1441min\"", long),
        ("first", cell, "cell.2.delay", "\"1441min\"", long),
        ("first", cell, "cell.2.per_frame", "\"1441min\"", long),
        ("first", cell, "cell.2.beacon.every", "\"1441min\"", long),
        ("first", cell, "cell.2.contention.slot", "\"1441min\"", long),
        ("first", cell, "cell.2.contention.slot", "\"0s\"", "must be greater than zero, for example `20us`"),
        (
            "first",
            cell,
            "cell.2.position",
            "[nan, 0.0]",
            "must be two numbers from -1000000 to 1000000, in metres",
        ),
        (
            "first",
            cell,
            "cell.2.position",
            "[0.0, 1e7]",
            "must be two numbers from -1000000 to 1000000, in metres",
        ),
        ("first", radio, "radio.association", "\"1441min\"", long),
        ("first", radio, "radio.scan", "{ every = \"1441min\", away = \"1s\" }", long),
        ("first", radio, "radio.at_1m", "nan", "must be from -100 to 30 (dBm)"),
        ("first", radio, "radio.exponent", "0", "must be from 1 to 10"),
    ] {
        let own = key.splitn(if key.starts_with("radio") { 2 } else { 3 }, '.').last().unwrap();
        let refusal = refusal_in(name, from, &format!("{from}\n{own} = {value}"));
        let path = if own == "scan" { format!("{key}.every") } else { key.to_owned() };
        assert!(refusal.starts_with("f.toml, line "), "{key} = {value}: {refusal}");
        assert!(refusal.contains(&format!("`{path}`: {allowed}\n")), "{key} = {value}: {refusal}");
    }
    let slow = refusal_in("bulk", "delay = \"10ms\"", "delay = [\"10ms\", \"1441min\"]");
    assert!(slow.contains(&format!("`wire.path.delay`: {long}\n")), "{slow}");
    let segment =
        refusal_in("links/segments", "[segment.lan]", "[segment.lan]\ncontention = { slot = \"0s\" }");
    assert!(segment.contains("`segment.lan.contention.slot`: must be greater than zero"), "{segment}");
}

#[test]
fn values_of_a_station_that_cannot_work_are_refused_with_their_place_and_range() {
    let (usual, mobile) = ("delay_device = 1", "start = \"b2\"");
    for (from, given, path, allowed) in [
        (
            usual,
            "delay_device = 99999",
            "b1.role[0].delay_device",
            "must be from 0 to 256 packets, the value of `delay_pool`",
        ),
        (usual, "cache_capacity = 0", "b1.role[0].cache_capacity", "must be at least 1 host"),
        (usual, "replay_window = \"0s\"", "b1.role[0].replay_window", "must be from 1ms to 1440min"),
        (usual, "route_reauth_time = \"1ns\"", "b1.role[0].route_reauth_time", "must be 0s, or at least 1ms"),
        (
            mobile,
            "route_update_time = \"1us\"",
            "mobile.role[0].route_update_time",
            "must be at least 1ms, for example `3s`",
        ),
        (
            mobile,
            "route_reauth_time = \"1ns\"",
            "mobile.role[0].route_reauth_time",
            "must be 0s, or at least 1ms",
        ),
    ] {
        let to = if from == mobile { format!("{mobile}, {given}") } else { given.to_owned() };
        let refusal = refusal_in("first", from, &to);
        let expected = format!("{}`host.{path}`: {allowed}\n", place("first", from, &to, given));
        assert!(refusal.starts_with(&expected), "{refusal}\n{expected}");
    }
    let pool = refusal_in("first", usual, "delay_device = 4, delay_pool = 3");
    assert!(pool.contains("`host.b1.role[0].delay_device`: must be from 0 to 3 packets"), "{pool}");
}
