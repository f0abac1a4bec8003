//! The built-in scenarios make plans, and what is wrong is named where it stands.

use super::*;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

fn refusal(from: &str, to: &str) -> String {
    assert!(FIRST.contains(from), "{from}");
    Scenario::plan("bad.toml", &FIRST.replace(from, to), &[], 1).unwrap_err().to_string()
}

#[test]
fn every_built_in_scenario_makes_a_plan() {
    for (name, text) in BUILT_IN {
        let plan = Scenario::plan(name, text, &[], 1).unwrap_or_else(|error| panic!("{error}"));
        assert!(!plan.hosts.is_empty() && plan.world().is_ok(), "{name}");
        assert!(Scenario::about(text).is_some());
    }
}

#[test]
fn a_mistake_is_named_with_file_line_key_and_what_is_allowed() {
    let cases = [
        ("delay = \"0.5ms\"", "delay = \"0.5 m\"", "line 11: `wire.internet.delay`: write one span"),
        ("rate = 50", "rate = \"fast\"", "line 43: `host.correspondent.role[0].rate`"),
        ("rate = 50", "speed = 50", "allowed: `to`, `rate`, `size`, `start`, `stop`"),
        (
            "uplink = \"correspondent\"",
            "uplink = \"b9\"",
            "no host `b9`; there are: correspondent, b1, b2, b3, mobile",
        ),
        (
            "kind = \"apps/sink\"",
            "kind = \"apps/drain\"",
            "there is no `apps/drain`; allowed: cellular-ip/gateway",
        ),
        ("to = \"b3\", kind = \"hard\"", "to = \"b7\", kind = \"hard\"", "no station `b7`; known: b2, b3"),
        ("[radio]", "[radar]", "unknown field `radar`"),
        ("[cell.2]", "[cell.two]", "a cell's name is its number"),
        ("about =", "about ==", "line 5"),
    ];
    for (from, to, expected) in cases {
        let refusal = refusal(from, to);
        assert!(refusal.starts_with("bad.toml"), "{refusal}");
        assert!(refusal.contains(expected), "{to}: wanted `{expected}` in\n{refusal}");
    }
}

#[test]
fn settings_reach_every_role_of_a_name_and_values_in_the_file() {
    let set = |text: &str| {
        let setting: Setting = text.parse().unwrap();
        Scenario::plan("first.toml", FIRST, &[setting], 1)
    };
    let plan = set("station.delay_device=0").unwrap();
    let with = plan.hosts.iter().filter(|host| host.text.contains("delay_device = 0")).count();
    assert_eq!(with, 3, "both stations, and the gateway, which is a node too");
    assert_eq!(
        set("radio.retune=7ms").unwrap().hosts[4].ports[0].radio.as_ref().unwrap().retune.as_millis(),
        7
    );
    let plan = set("mobile.moves.kind=semisoft").unwrap();
    assert!(plan.hosts[4].text.contains("semisoft") && !plan.hosts[4].text.contains("hard"));
    assert!(set("mobile.movez.kind=semisoft").unwrap_err().to_string().contains("no table `mobile`"));
    assert!(set("station.delay_devise=0").unwrap_err().to_string().contains("unknown field `delay_devise`"));
    assert!(set("statoin.delay_device=0").unwrap_err().to_string().contains("there are: cell, cellular-ip"));
    let setting: Setting = "radio.retune=7ms".parse().unwrap();
    assert_eq!(setting.to_string().parse(), Ok(setting), "what is printed is read back");
    assert!("nonsense".parse::<Setting>().is_err());
}
