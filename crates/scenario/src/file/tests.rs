//! Tests that the built-in scenarios make plans, and that errors have the line and column of their key.

use super::*;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");
const DOWNLOAD: &str = include_str!("../../../../scenarios/mobile-ip/download.toml");

fn refusal(scenario: &str, from: &str, to: &str) -> String {
    assert!(scenario.contains(from), "{from}");
    match Scenario::plan("bad.toml", &scenario.replace(from, to), &[], 1) {
        Ok(_) => panic!("`{to}` makes a plan"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn all_are_named(scenario: &str, cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (from, to, expected) in cases {
        let refusal = refusal(scenario, from, to);
        if !refusal.starts_with("bad.toml") || !refusal.contains(expected) {
            wrong.push(format!("{to}: wanted `{expected}` in\n{refusal}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_built_in_scenario_makes_a_plan() {
    for (name, text) in BUILT_IN {
        let plan = Scenario::plan(name, text, &[], 1).unwrap_or_else(|error| panic!("{error}"));
        assert!(!plan.is_empty() && plan.world().is_ok(), "{name}");
        assert!(Scenario::about(text).is_some());
    }
}

#[test]
fn a_mistake_is_named_with_file_line_key_and_what_is_allowed() {
    let cases = [
        (
            "delay = \"0.5ms\"",
            "delay = \"0.5 m\"",
            "line 11, column 9: `wire.internet.delay`: `0.5 m` is not a time",
        ),
        (
            "[host.b2]\n",
            "[host.b2]\nprogram = [\"iperf3\"]\n",
            "line 51, column 12: `host.b2.program[0]`: invalid type: string \"iperf3\", expected a table, for example {",
        ),
        (
            "[host.b2]\n",
            "[host.b2]\nprogram = { command = \"true\" }\n",
            "line 51, column 1: `host.b2.program`: invalid type: a table, expected a list: [ ... ], or a header in double brackets, [[ ]], for each entry",
        ),
        ("rate = 50", "rate = \"fast\"", "line 43, column 63: `host.correspondent.role[0].rate`"),
        ("rate = 50", "speed = 50", "allowed: `to`, `rate`, `size`, `dont_fragment`, `start`, `stop`"),
        (
            "uplink = \"correspondent\"",
            "uplink = \"b9\"",
            "no host `b9`; there are: correspondent, b1, b2, b3, mobile",
        ),
        (
            "kind = \"apps/sink\"",
            "kind = \"apps/drain\"",
            "there is no kind `apps/drain`, did you mean `apps/roam`?; allowed: cellular-ip/gateway",
        ),
        (
            "to = \"b3\", kind = \"hard\"",
            "to = \"b7\", kind = \"hard\"",
            "no base station `b7`; there are: b2, b3",
        ),
        ("[radio]", "[radar]", "unknown field `radar`"),
        ("[cell.2]", "[cell.two]", "the name of a cell must be a number"),
        ("about =", "about ==", "line 5"),
    ];
    all_are_named(FIRST, &cases);
}

#[test]
fn a_mistake_about_mobile_ip_is_named_too() {
    let agent = "role = [{ kind = \"mobile-ip/home-agent\" }]";
    let key = "key = \"000102030405060708090a0b0c0d0e0f\"";
    let with = |role: &str| format!("role = [{{ kind = \"mobile-ip/home-agent\", {role} }}]");
    let (interval, window, unknown) =
        (with("advertise = { interval = \"0s\" }"), with("replay_window = \"1s\""), with("bindings = 3"));
    let cases = [
        (
            "net = \"10.0.1.0/24\"",
            "net = \"10.0.1.0/31\"",
            "line 18, column 7: `wire.left.net`: 10.0.1.0/31 has too few",
        ),
        (
            "net = \"10.1.0.0/24\"",
            "net = \"10.1.0.0/32\"",
            "line 29, column 7: `cell.1.net`: 10.1.0.0/32 has too few",
        ),
        ("net = \"10.2.0.0/24\"", "net = \"10.2.0.0\"", "line 34, column 7: `cell.2.net`"),
        (
            "address = \"10.1.0.7\"\n",
            "",
            "line 55, column 5: `host.mobile.role[0]`: the host's radio has no address",
        ),
        (
            "address = \"10.1.0.7\"\n",
            "address = \"10.7.0.7\"\n",
            "the address of `mobile`, 10.7.0.7, is in the `net` of no cell",
        ),
        (
            agent,
            "",
            "line 56, column 5: `host.mobile.role[0]`: there is no mobile-ip/home-agent in the home network of the mobile node",
        ),
        (key, "key = \"00112233445566778899aabbccddee\"", "line 40, column 7: `mobile-ip.key`"),
        (key, "key = \"0011223344556677889900112233445g\"", "line 40, column 7: `mobile-ip.key`"),
        (
            key,
            &format!("{key}\nspi = 255"),
            "line 41, column 7: `mobile-ip.spi`: SPI 255 is reserved; use 256 or more",
        ),
        (key, &format!("{key}\nspy = 256"), "unknown field `spy`"),
        (&format!("[mobile-ip]\n{key}\n"), "", "a Mobile IP role needs the table [mobile-ip]"),
        (agent, &interval, "line 48, column 42: `host.home.role[0].advertise`"),
        (agent, &window, "line 48, column 58: `host.home.role[0].replay_window`"),
        (agent, &unknown, "line 48, column 53: `host.home.role[0].bindings`: unknown field `bindings`"),
    ];
    all_are_named(DOWNLOAD, &cases);
}

#[test]
fn a_mobile_host_has_as_many_radios_as_it_says_and_goes_its_way_with_all_of_them() {
    let way = "radios = 2\ncourse.2 = [[\"0s\", -60], [\"3s\", -99]]\n";
    let host = "[host.mobile]\n";
    let plan = |way: &str| Scenario::plan("c.toml", &DOWNLOAD.replace(host, &format!("{host}{way}")), &[], 1);
    let mobile = plan(way).unwrap().hosts.pop().unwrap();
    let names: Vec<&str> = mobile.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["air", "air2"]);
    assert!(
        mobile.ports.iter().all(|port| port.course.is_some()) && mobile.ports[0].mac != mobile.ports[1].mac
    );
    let cases = [
        ("course.3 = [[\"0s\", -60]]", "`host.mobile.course.3`: there is no cell `3`; there are: 1, 2"),
        (
            "course.1 = []",
            "`host.mobile.course.1`: must be a list of at least one point, in the order of time",
        ),
        (
            "course.1 = [[\"2s\", -60], [\"1s\", -60]]",
            "must be a list of at least one point, in the order of time",
        ),
        ("course.1 = [[\"2s\", 60]]", "each strength must be from -130 to 0"),
        ("course.1 = [[\"2\", -60]]", "`2` is not a time: it has no unit"),
    ];
    for (way, expected) in cases {
        let refusal = plan(&format!("{way}\n")).unwrap_err().to_string();
        assert!(refusal.starts_with("c.toml") && refusal.contains(expected), "{way}: {refusal}");
    }
}

/// Builds the plan of the download scenario, with positions of the base stations, and with the line `way` in the
/// table of the mobile host.
fn walk(way: &str) -> Result<Plan, ScenarioError> {
    let mut text = DOWNLOAD.replace("[cell.1]\n", "[cell.1]\nposition = [0.0, 0.0]\n");
    text = text.replace("[cell.2]\n", "[cell.2]\nposition = [200.0, 0.0]\n");
    Scenario::plan("w.toml", &text.replace("[host.mobile]\n", &format!("[host.mobile]\n{way}\n")), &[], 1)
}

#[test]
fn what_a_radio_hears_follows_from_where_its_host_goes() {
    let plan = walk("path.points = [[\"0s\", 10.0, 0.0], [\"10s\", 190.0, 0.0]]").unwrap();
    let course = plan.hosts.last().unwrap().ports[0].course.clone().unwrap();
    let at = |seconds: u64| {
        let now = wire::Instant::from_millis(seconds * 1000);
        [1, 2].map(|cell| course.strength(wire::Cell(cell), now).unwrap())
    };
    assert_eq!([at(0), at(5), at(10)], [[-55, -93], [-85, -85], [-93, -55]]);
    let random = |seed| {
        let way = "path.random = { area = [200.0, 50.0], speed = [1.0, 9.0] }";
        let text = walk(way).unwrap().text;
        let plan = Scenario::plan("w.toml", &text, &[], seed).unwrap();
        plan.hosts.last().unwrap().ports[0].course.clone()
    };
    assert!(random(1) == random(1) && random(1) != random(2), "random numbers are those of the seed");
}

#[test]
fn a_way_that_cannot_be_gone_is_named() {
    let cases = [
        (
            "path.points = []",
            "`host.mobile.path.points`: must be a list of at least one point, in the order of time",
        ),
        ("path = {}", "`host.mobile.path`: give exactly one of"),
        (
            "path.random = { area = [9.0, 9.0], speed = [0.0, 1.0] }",
            "`speed`: must be [lowest, highest] in metres per second",
        ),
        ("path.file = \"no/such.csv\"", "`host.mobile.path.file`: no/such.csv: No such file"),
        (
            "course.1 = [[\"0s\", -60]]\npath.points = [[\"0s\", 0.0, 0.0]]",
            "`host.mobile.path`: a host has a `path` or a `course`, not both",
        ),
    ];
    for (way, expected) in cases {
        let refusal = walk(way).unwrap_err().to_string();
        assert!(refusal.starts_with("w.toml") && refusal.contains(expected), "{way}: {refusal}");
    }
    let nowhere = DOWNLOAD.replace("[host.mobile]\n", "[host.mobile]\npath.points = [[\"0s\", 0.0, 0.0]]\n");
    let refusal = Scenario::plan("w.toml", &nowhere, &[], 1).unwrap_err().to_string();
    assert!(
        refusal.contains("`cell.1`: `mobile` has a `path`, so every cell needs a `position`"),
        "{refusal}"
    );
}

#[test]
fn a_way_in_a_file_is_kept_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("way.csv"), "time,x,y\n0,10,0\n10,190,0\n").unwrap();
    let file = folder.path().join("w.toml").display().to_string();
    let text = walk("path.points = [[\"0s\", 1.0, 0.0]]").unwrap().text;
    let text = text.replace("path.points = [[\"0s\", 1.0, 0.0]]", "path.file = \"way.csv\"");
    let plan = Scenario::plan(&file, &text, &[], 1).unwrap();
    drop(folder);
    let again = Scenario::plan("elsewhere.toml", &plan.text, &[], 1).unwrap();
    let course = |plan: &Plan| plan.hosts.last().unwrap().ports[0].course.clone();
    assert!(course(&plan).is_some() && course(&plan) == course(&again));
}

#[test]
fn a_timetable_may_be_given_by_its_rule() {
    let list = "moves = [{ at = \"4.3s\", to = \"foreign\" }]";
    assert!(DOWNLOAD.contains(list), "{DOWNLOAD}");
    let plan =
        |rule: &str| Scenario::plan("t.toml", &DOWNLOAD.replace(list, &format!("moves = {rule}")), &[], 1);
    let text = plan("{ between = [\"foreign\", \"home\"], every = \"2s\", start = \"1s\", stop = \"6s\" }")
        .unwrap()
        .hosts
        .pop()
        .unwrap()
        .text;
    for (at, to) in [("1000000000ns", "foreign"), ("3000000000ns", "home"), ("5000000000ns", "foreign")] {
        assert!(text.contains(at) && text.contains(to), "{at} in\n{text}");
    }
    assert!(!text.contains("7000000000ns") && !text.contains("between"));
    for (rule, expected) in [
        ("{ every = \"2s\" }", "`moves.between`: must be a list of at least one station"),
        ("{ between = [\"foreign\"] }", "`moves.every`: give the time between two moves"),
        ("{ between = [\"foreign\"], every = \"0s\" }", "`moves.every`"),
        ("{ between = [\"foreign\"], every = 2 }", "`moves.every`: must be a time"),
        ("{ between = [\"nowhere\"], every = \"2s\" }", "no place `nowhere`"),
    ] {
        let refusal = plan(rule).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{rule}: {refusal}");
    }
}

#[test]
fn losses_may_come_in_bursts() {
    let cell = "[cell.2]\n";
    let plan =
        |burst: &str| Scenario::plan("b.toml", &FIRST.replace(cell, &format!("{cell}{burst}\n")), &[], 1);
    let cells = plan("burst = { enter = 0.01, leave = 0.25 }").unwrap().cells;
    assert!(cells.iter().any(|cell| (cell.faults.mean_loss() - 0.01 / 0.26).abs() < 1e-9));
    for (burst, expected) in [
        ("burst = { enter = 1.5, leave = 0.25 }", "`cell.2.burst.enter`: must be a probability from 0 to 1"),
        ("burst = { enter = 0.5 }", "`cell.2.burst.leave`: is missing"),
        ("rate = \"0kb/s\"", "duplicate key"),
    ] {
        let refusal = plan(burst).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{burst}: {refusal}");
    }
}

#[test]
fn the_second_copy_of_a_frame_may_be_late() {
    let cell = "[cell.2]\n";
    let plan =
        |keys: &str| Scenario::plan("b.toml", &FIRST.replace(cell, &format!("{cell}{keys}\n")), &[], 1);
    let cells = plan("duplicate = 0.1\nduplicate_delay = \"2s\"").unwrap().cells;
    assert!(cells.iter().any(|cell| cell.faults.duplicate_delay == Duration::from_secs(2)));
    for (keys, expected) in [
        (
            "duplicate_delay = \"2s\"",
            "`cell.2.duplicate_delay`: has no effect, because the link duplicates no frames",
        ),
        ("duplicate = 0.1\nduplicate_delay = 2", "duplicate_delay"),
        ("duplicate = 0.1\nduplicate_delay = \"-1s\"", "duplicate_delay"),
    ] {
        let refusal = plan(keys).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{keys}: {refusal}");
    }
}

#[test]
fn a_mistake_about_a_program_is_named_and_one_that_is_right_is_planned() {
    let with = |host: &str, program: &str| format!("{DOWNLOAD}\n[[host.{host}.program]]\n{program}\n");
    let plan = |host: &str, program: &str| Scenario::plan("p.toml", &with(host, program), &[], 1);
    let planned = plan("mobile", "command = \"iperf3 -c 10.0.0.1\"\nstart = \"1s\"\nstop = \"9s\"").unwrap();
    let mobile = planned.hosts.last().unwrap();
    assert_eq!(mobile.programs[0].command, "iperf3 -c 10.0.0.1");
    let refused = planned.world().unwrap_err().to_string();
    assert!(refused.contains("`mobile` runs programs, which need a kernel"), "{refused}");
    let cases = [
        ("command = \"\"", "`host.mobile.program[0].command`: the command is missing"),
        (
            "command = \"true\"\nstart = \"10s\"",
            "`host.mobile.program[0].start`: must be before 10s, the end of the run",
        ),
        ("command = \"true\"\nstart = \"2s\"\nstop = \"2s\"", "program[0].stop`: must be later than `start`"),
        ("command = \"true\"\nstop = \"2\"", "`host.mobile.program[0].stop`: `2` is not a time"),
        ("comand = \"true\"", "unknown field `comand`"),
        ("start = \"1s\"", "program[0].command`: is missing"),
    ];
    for (program, expected) in cases {
        let refusal = plan("mobile", program).unwrap_err().to_string();
        assert!(refusal.starts_with("p.toml, line ") && refusal.contains(expected), "{program}: {refusal}");
    }
    let nowhere = format!("{FIRST}\n[[host.b2.program]]\ncommand = \"true\"\n");
    let refusal = Scenario::plan("p.toml", &nowhere, &[], 1).unwrap_err().to_string();
    assert!(refusal.contains("a program needs a host with an address"), "{refusal}");
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
    assert!(
        set("mobile.movez.kind=semisoft")
            .unwrap_err()
            .to_string()
            .contains("no role `mobile` has a list of tables `movez`")
    );
    assert!(set("station.delay_devise=0").unwrap_err().to_string().contains("unknown field `delay_devise`"));
    assert!(set("statoin.delay_device=0").unwrap_err().to_string().contains("there are: cell, cellular-ip"));
    let policy = |name: &str| {
        let setting = format!("mobile.movement={name}").parse().unwrap();
        Scenario::plan("download.toml", DOWNLOAD, &[setting], 1)
    };
    assert!(policy("ecs").unwrap().hosts.iter().any(|host| host.text.contains("movement = \"ecs\"")));
    assert!(policy("eager").unwrap_err().to_string().contains("`ecs`"));
    let program = format!("{FIRST}\n[[host.mobile.program]]\ncommand = \"true\"\nstart = \"1s\"\n");
    let late = |set: &str| Scenario::plan("p.toml", &program, &[set.parse().unwrap()], 1);
    let plan = late("host.mobile.program[0].start=2s").unwrap();
    assert_eq!(plan.hosts[4].programs[0].start.as_millis(), 2000);
    let refusal = late("host.mobile.program.start=2s").unwrap_err().to_string();
    assert!(refusal.contains("`program` is a list; write program[0] to program[0]"), "{refusal}");
    assert!(late("host.mobile.program[1].start=2s").is_err());
    let setting: Setting = "radio.retune=7ms".parse().unwrap();
    assert_eq!(setting.to_string().parse(), Ok(setting), "what is printed is read back");
    assert!("nonsense".parse::<Setting>().is_err());
}
