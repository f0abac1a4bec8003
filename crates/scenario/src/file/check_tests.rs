//! Tests of scenarios that are refused, and of their error messages.

use crate::Scenario;

/// A valid scenario with a server, a router, a base station with a cell, and a mobile host. Every host has an address.
const WHOLE: &str = r#"about = "all that can be wrong"
duration = "5s"
[wire.in]
ends = ["server", "router"]
rate = "10Mb/s"
delay = "1ms"
net = "10.0.0.0/24"
[wire.out]
ends = ["router", "west"]
rate = "10Mb/s"
delay = "1ms"
net = "10.0.1.0/24"
[cell.1]
station = "west"
rate = "2Mb/s"
net = "10.1.0.0/24"
[host.server]
role = [{ kind = "apps/bulk-server", at = "server:9000", bytes = 1000 }]
[host.router]
[host.west]
[host.mobile]
address = "10.1.0.7"
role = [
    { kind = "apps/roam", moves = [{ at = "1s", to = "west" }] },
    { kind = "apps/bulk-client", to = "server:9000" },
]
"#;

fn refusal(from: &str, to: &str) -> String {
    assert!(WHOLE.contains(from), "{from}");
    match Scenario::plan("bad.toml", &WHOLE.replacen(from, to, 1), &[], 1) {
        Ok(_) => format!("`{to}` makes a plan"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_scenario_that_is_spoiled_below_is_whole() {
    assert!(Scenario::plan("good.toml", WHOLE, &[], 1).is_ok_and(|plan| plan.world().is_ok()));
}

/// Wrong scenarios: the text of `WHOLE` to replace, its replacement, and the begin of the error message.
const CASES: &[(&str, &str, &str)] = &[
    // The next scenarios have an error in a wire.
    (
        "[\"server\", \"router\"]",
        "[\"server\"]",
        "line 4, column 8: `wire.in.ends`: must be a list of 2 values; it has 1",
    ),
    (
        "[\"server\", \"router\"]",
        "[\"server\", \"router\", \"west\"]",
        "line 4, column 8: `wire.in.ends`: must be a list of 2 values; it has 3 values",
    ),
    (
        "[\"server\", \"router\"]",
        "[\"server\", \"server\"]",
        "line 4, column 8: `wire.in.ends`: must be two different hosts; both are `server`",
    ),
    (
        "[\"server\", \"router\"]",
        "[\"server\", \"absent\"]",
        "line 4, column 8: `wire.in.ends`: there is no host `absent`; there are: server, router, west, mobile",
    ),
    (
        "[\"router\", \"west\"]",
        "[\"router\", \"server\"]",
        "line 9, column 8: `wire.out.ends`: `router` and `server` are joined by `wire.in`; two hosts can have only one wire between them",
    ),
    (
        "\"10Mb/s\"",
        "\"0Mb/s\"",
        "line 5, column 8: `wire.in.rate`: `0Mb/s` is not a rate; write a whole number above 0",
    ),
    ("\"1ms\"", "\"-1ms\"", "line 6, column 9: `wire.in.delay`: `-1ms` is negative"),
    ("delay = \"1ms\"\n", "", "line 3, column 7: `wire.in.delay`: is missing"),
    (
        "\"1ms\"",
        "\"1ms\"\nmtu = 67",
        "line 7, column 7: `wire.in.mtu`: must be at least 68 bytes (RFC 791, section 3.2)",
    ),
    ("\"1ms\"", "\"1ms\"\nmtu = 70000", "line 7, column 7: `wire.in.mtu`: "),
    ("\"1ms\"", "\"1ms\"\nqueue = -1", "line 7, column 9: `wire.in.queue`: "),
    ("\"1ms\"", "\"1ms\"\nloss = nan", "line 7, column 8: `wire.in.loss`: must be a probability from 0 to 1"),
    ("\"1ms\"", "\"1ms\"\nduplicate = 2", "line 7, column 13: `wire.in.duplicate`: "),
    ("[wire.out]", "[wire.in]", "line 8, column 7: duplicate key `in`; the first is in line 3"),
    // The next scenarios have an error in a cell.
    ("station = \"west\"\n", "", "line 13, column 7: `cell.1.station`: is missing"),
    (
        "station = \"west\"",
        "station = \"east\"",
        "line 14, column 11: `cell.1.station`: there is no host `east`, did you mean `west`?; there are: ",
    ),
    (
        "[cell.1]",
        "[cell.70000]",
        "line 13, column 7: `cell.70000`: the name of a cell must be a number from 0 to 65535",
    ),
    (
        "[cell.1]",
        "[cell.01]",
        "line 13, column 7: `cell.01`: the name of a cell must be a number from 0 to 65535",
    ),
    (
        "[cell.1]",
        "[cell.2]\nstation = \"west\"\nrate = \"2Mb/s\"\n[cell.1]",
        "line 14, column 11: `cell.2.station`: `west` is the base station of cell 1 already; a host can have only one cell",
    ),
    ("\"2Mb/s\"", "\"2Mb/s\"\nmtu = 10", "line 16, column 7: `cell.1.mtu`: must be at least 68 bytes"),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nduplex = \"both\"",
        "line 16, column 10: `cell.1.duplex`: unknown variant `both`",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nuplink_rate = \"1Mb/s\"",
        "line 16, column 15: `cell.1.uplink_rate`: allowed only with `duplex = \"full\"`",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nduplex = \"full\"\nuplink_rate = \"fast\"",
        "line 17, column 15: `cell.1.uplink_rate`: `fast` is not a rate",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nduplex = \"full\"\nchannel = 6",
        "line 17, column 11: `cell.1.channel`: not allowed with `duplex = \"full\"`, because nothing waits for another",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nduplex = \"full\"\naccess = \"fifo\"",
        "line 17, column 10: `cell.1.access`: not allowed with `duplex = \"full\"`",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nbeacon = { every = \"0s\" }",
        "line 16, column 20: `cell.1.beacon.every`: must be longer than 400µs, the time that a beacon takes",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\nbeacon = { bytes = 0 }",
        "line 16, column 20: `cell.1.beacon.bytes`: must be from 1 to 2346 bytes",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\ncontention = { window = 0 }",
        "line 16, column 1: `cell.1.contention`: `window` and `most`",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\ncontention = { most = 16 }",
        "line 16, column 23: `cell.1.contention.most`: must not be less",
    ),
    (
        "\"2Mb/s\"",
        "\"2Mb/s\"\naccess = \"none\"",
        "line 16, column 10: `cell.1.access`: unknown variant `none`",
    ),
    (
        "[cell.1]",
        "[cell.2]\nstation = \"router\"\nrate = \"2Mb/s\"\nchannel = 6\naccess = \"fifo\"\n[cell.1]\nchannel = 6",
        "line 17, column 10: `cell.2.access`: all cells of channel 6 must have the same `access`",
    ),
    (
        "[cell.1]",
        "[radio]\nscan = { every = \"1s\", away = \"1s\" }\n[cell.1]",
        "line 14, column 31: `radio.scan.away`: must be shorter than `every`, because the radio returns",
    ),
    (
        "[cell.1]",
        "[radio]\ndata = \"one\"\n[cell.1]",
        "line 14, column 8: `radio.data`: allowed only with `hears = \"channel\"`",
    ),
    (
        "[cell.1]",
        "[radio]\nhears = \"channel\"\n[cell.1]",
        "line 14, column 9: `radio.hears`: `channel` needs cells with the key `channel`, for example",
    ),
    (
        "[cell.1]",
        "[radio]\nhears = \"all\"\n[cell.1]",
        "line 14, column 9: `radio.hears`: unknown variant `all`",
    ),
    // The next scenarios have an error in a segment.
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 14, column 9: `segment.lan.hosts`: must have at least 2 hosts; it has 1",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"router\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 14, column 20: `segment.lan.hosts[1]`: `router` is listed twice",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"east\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 14, column 20: `segment.lan.hosts[1]`: there is no host `east`, did you mean `west`?",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\nmtu = 60\n[cell.1]",
        "line 16, column 7: `segment.lan.mtu`: must be at least 68 bytes",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\nloss = 2.0\n[cell.1]",
        "line 16, column 8: `segment.lan.loss`: must be a probability from 0 to 1",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\ncontention = { most = 16 }\n[cell.1]",
        "line 16, column 23: `segment.lan.contention.most`: must not be less",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\nnet = \"10.0.0.0/16\"\n[cell.1]",
        "line 16, column 7: `segment.lan.net`: 10.0.0.0/16 overlaps 10.0.0.0/24 of `wire.in`",
    ),
    (
        "[cell.1]",
        "[segment.lan]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\nnet = \"10.7.0.0/31\"\n[cell.1]",
        "line 16, column 7: `segment.lan.net`: 10.7.0.0/31 has too few addresses",
    ),
    (
        "[cell.1]",
        "[segment.air2]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 13, column 10: `segment.air2`: must not be the name of an interface",
    ),
    (
        "[cell.1]",
        "[segment.west]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 13, column 10: `segment.west`: `west` is a host; give the segment another name",
    ),
    (
        "[cell.1]",
        "[segment.out]\nhosts = [\"router\", \"west\"]\nrate = \"10Mb/s\"\n[cell.1]",
        "line 13, column 10: `segment.out`: `out` is a wire; give the segment another name",
    ),
    // The next scenarios have an error in a network or an address.
    (
        "10.0.1.0/24",
        "10.0.0.0/24",
        "line 12, column 7: `wire.out.net`: 10.0.0.0/24 overlaps 10.0.0.0/24 of `wire.in`",
    ),
    (
        "10.0.1.0/24",
        "10.0.0.128/25",
        "line 12, column 7: `wire.out.net`: 10.0.0.128/25 overlaps 10.0.0.0/24 of `wire.in`",
    ),
    (
        "10.1.0.0/24",
        "10.0.0.0/16",
        "line 16, column 7: `cell.1.net`: 10.0.0.0/16 overlaps 10.0.0.0/24 of `wire.in`",
    ),
    ("10.0.1.0/24", "10.0.1.1/24", "line 12, column 7: `wire.out.net`: `10.0.1.1/24`: "),
    (
        "[host.router]",
        "[host.router]\naddress = \"10.1.0.7\"",
        "line 20, column 11: `host.router.address`: 10.1.0.7 is an address of `mobile`",
    ),
    ("10.1.0.7", "10.1.0.1", "line 22, column 11: `host.mobile.address`: 10.1.0.1 is an address of `west`"),
    (
        "10.1.0.7",
        "10.1.0.255",
        "line 22, column 11: `host.mobile.address`: 10.1.0.255 is not a unicast host address",
    ),
    (
        "10.1.0.7",
        "10.1.0.0",
        "line 22, column 11: `host.mobile.address`: 10.1.0.0 is not a unicast host address",
    ),
    (
        "10.1.0.7",
        "224.0.0.1",
        "line 22, column 11: `host.mobile.address`: 224.0.0.1 is not a unicast host address",
    ),
    (
        "10.1.0.7",
        "127.0.0.1",
        "line 22, column 11: `host.mobile.address`: 127.0.0.1 is not a unicast host address",
    ),
    (
        "10.1.0.7",
        "10.1.0.300",
        "line 22, column 11: `host.mobile.address`: not an IPv4 address; write four numbers from 0 to 255",
    ),
    // The next scenarios have an error in a host.
    ("[host.router]", "[host.server]", "line 19, column 7: duplicate key `server`; the first is in line 17"),
    (
        "[host.router]",
        "[host.\"the router\"]",
        "line 19, column 7: `host.the router`: must be 1 to 15 letters",
    ),
    ("[host.router]", "[host.air2]", "line 19, column 7: `host.air2`: must not be the name of an interface"),
    (
        "[host.router]",
        "[host.router]\ndefault_route = \"mobile\"",
        "line 20, column 17: `host.router.default_route`: there is no wire between `router` and `mobile`",
    ),
    (
        "[host.router]",
        "[host.router]\npath.points = [[\"0s\", 0.0, 0.0]]",
        "line 20, column 1: `host.router.path`: allowed only for a host that moves",
    ),
    (
        "[host.router]",
        "[host.router]\nradios = 2",
        "line 20, column 10: `host.router.radios`: allowed only for a host that moves",
    ),
    (
        "[host.mobile]",
        "[host.mobile]\nradios = 0",
        "line 22, column 10: `host.mobile.radios`: must be from 1 to 64 radios",
    ),
    (
        "[host.west]",
        "[host.west]\nrole = [{ kind = \"apps/roam\" }]",
        "line 20, column 7: `host.west`: must not move, because it is the base station of cell 1",
    ),
    (
        "[host.router]",
        "[host.router]\ntcp = { rto_mim = \"1s\" }",
        "line 20, column 19: `host.router.tcp.rto_mim`: unknown field `rto_mim`",
    ),
    // The next scenarios have an error in a role.
    ("bytes = 1000", "bytes = 0", "line 18, column 66: `host.server.role[0].bytes`: must be at least 1"),
    (
        "kind = \"apps/roam\"",
        "kind = \"apps/roam\", start = \"wets\"",
        "line 24, column 35: `host.mobile.role[0].start`: there is no base station `wets`, did you mean `west`?; there are: west",
    ),
    (
        "    { kind = \"apps/bulk-client\"",
        "    { kind = \"apps/roam\" },\n    { kind = \"apps/bulk-client\"",
        "line 25, column 14: `host.mobile.role[1].kind`: `mobile` has a role `apps/roam` already",
    ),
    (
        "    { kind = \"apps/bulk-client\"",
        "    { kind = \"apps/constant-rate\", to = \"server:1\", rate = 4294967295, size = 100, start = \"0s\", stop = \"1s\" },\n    { kind = \"apps/bulk-client\"",
        "line 25, column 60: `host.mobile.role[1].rate`: must be 1 to 1000000 datagrams per second, but is 4294967295",
    ),
    (
        "bytes = 1000",
        "bytes = 99999999999999999999",
        "line 18, column 66: `bytes`: 99999999999999999999 is too large a number; allowed: -9223372036854775808 to",
    ),
    (
        "at = \"server:9000\"",
        "at = \"mobile:9000\"",
        "line 18, column 43: `host.server.role[0].at`: `mobile` is another host; write `server`, or an address of `server`",
    ),
    (
        "apps/bulk-server",
        "apps/bulk-sever",
        "line 18, column 18: `host.server.role[0].kind`: there is no kind `apps/bulk-sever`, did you mean `apps/bulk-server`?; allowed: ",
    ),
    (
        "\"server:9000\" },\n]",
        "\"sever:9000\" },\n]",
        "line 25, column 39: `host.mobile.role[1].to`: there is no host `sever`, did you mean `server`?; there are: server",
    ),
    (
        "\"server:9000\" },\n]",
        "\"server\" },\n]",
        "line 25, column 39: `host.mobile.role[1].to`: write a host and a port from 1 to 65535, for example server:9000",
    ),
    (
        "\"server:9000\" },\n]",
        "\"server:90000\" },\n]",
        "line 25, column 39: `host.mobile.role[1].to`: write a host and a port from 1 to 65535, for example server:9000",
    ),
    (
        "to = \"west\"",
        "to = \"east\"",
        "line 24, column 54: `host.mobile.role[0].moves[0].to`: there is no base station `east`, did you mean `west`?",
    ),
    (
        "at = \"1s\"",
        "at = \"-1s\"",
        "line 24, column 43: `host.mobile.role[0].moves[0].at`: `-1s` is negative",
    ),
    ("\"5s\"", "\"100000min\"", "line 2, column 12: `duration`: must be above 0s and at most 1440min"),
    (
        "\"5s\"",
        "\"99999999999s\"",
        "line 2, column 12: `duration`: `99999999999s` is too long; allowed: at most 1844",
    ),
    (
        "\"1ms\"",
        "\"0.5\"",
        "line 6, column 9: `wire.in.delay`: `0.5` is not a time: it has no unit; write `0.5ms`",
    ),
    (
        "\"1ms\"",
        "\"0.5MS\"",
        "line 6, column 9: `wire.in.delay`: `0.5MS` is not a time: units are in lower case",
    ),
    (
        "\"10Mb/s\"",
        "\"99999999999Gb/s\"",
        "line 5, column 8: `wire.in.rate`: `99999999999Gb/s` is too fast; allowed: at most",
    ),
    (
        "about = ",
        "about = \"twice\"\nabout = ",
        "line 2, column 1: duplicate key `about`; the first is in line 1",
    ),
    ("[host.west]", "[host.\"../west\"]", "line 20, column 7: `host.../west`: must be 1 to 15 letters"),
    ("\"5s\"", "\"0s\"", "line 2, column 12: `duration`: must be greater than zero"),
    ("\"5s\"", "5", "line 2, column 12: `duration`: 5 has no unit"),
    ("\"5s\"", "\"5s", "line 2, column 15: "),
];

#[test]
fn what_cannot_run_is_refused_with_its_place() {
    let mut wrong = Vec::new();
    for (from, to, expected) in CASES {
        let refusal = refusal(from, to);
        if !refusal.starts_with(&format!("bad.toml, {expected}")) {
            wrong.push(format!("{to}\n  wanted {expected}\n  in     {refusal}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

/// Builds a scenario with two fixed hosts and a host with `routes` between them. Returns the error, or `None` if the
/// scenario is accepted.
fn refusal_behind(routes: &str) -> Option<String> {
    const SINK: &str = r#"kind = "apps/sink""#;
    const SOURCE: &str = r#"kind = "apps/constant-rate", rate = 50, size = 100, start = "0s", stop = "1s""#;
    refusal_of(routes, SINK, SOURCE)
}

/// Builds a scenario with two fixed hosts, the roles `server` and `client` on them, and a host with `routes` between
/// them. Returns the error, or `None` if the scenario is accepted.
fn refusal_of(routes: &str, server: &str, client: &str) -> Option<String> {
    let text = format!(
        r#"about = "a host between two others"
duration = "1s"
[wire.near]
ends = ["client", "middle"]
rate = "10Mb/s"
delay = "1ms"
[wire.far]
ends = ["middle", "server"]
rate = "10Mb/s"
delay = "1ms"
[host.middle]
{routes}
[host.server]
address = "10.2.0.2"
default_route = "middle"
role = [{{ {server}, at = "server:9000" }}]
[host.client]
address = "10.1.0.2"
default_route = "middle"
role = [{{ {client}, to = "server:9000" }}]
"#
    );
    Scenario::plan("bad.toml", &text, &[], 1).err().map(|refusal| refusal.to_string())
}

#[test]
fn default_routes_lead_to_the_peer() {
    let refusal = refusal_behind("").unwrap();
    assert!(
        refusal.contains("`host.client.role[0].to`: the default routes of `client` lead to `middle`"),
        "{refusal}"
    );
    assert!(
        refusal.contains("which has no further route: give `middle` a `default_route` towards `server`"),
        "{refusal}"
    );
    let round = refusal_behind("default_route = \"client\"").unwrap();
    assert!(round.contains("lead to `client`, where they form a loop"), "{round}");
    assert_eq!(refusal_behind("default_route = \"server\""), None);
}

/// A connection is refused if the default routes of the server do not lead back to the client. Datagrams are
/// accepted, as they are not answered.
#[test]
fn default_routes_lead_back_from_the_peer_of_a_connection() {
    let routes = "default_route = \"server\"";
    assert_eq!(refusal_behind(routes), None);
    let (server, client) = (r#"kind = "apps/bulk-server", bytes = 1000"#, r#"kind = "apps/bulk-client""#);
    let refusal = refusal_of(routes, server, client).unwrap();
    assert!(
        refusal.contains(
            "`host.client.role[0].to`: the default routes of `server` lead to `server`, where they form a loop: \
             give `server` a `default_route` towards `client`"
        ),
        "{refusal}"
    );
}

#[test]
fn whom_no_links_lead_to_cannot_be_reached() {
    let cut = WHOLE
        .replace("[wire.out]\nends = [\"router\", \"west\"]", "[wire.out]\nends = [\"router\", \"far\"]");
    let cut = cut.replace("[host.west]", "[host.far]\n[host.west]");
    let refusal = Scenario::plan("bad.toml", &cut, &[], 1).unwrap_err().to_string();
    let expected =
        "bad.toml, line 26, column 39: `host.mobile.role[1].to`: no links lead from `mobile` to `server`";
    assert!(refusal.starts_with(expected), "{refusal}");

    let alone = include_str!("../../../../scenarios/bulk.toml").replace("default_route = \"server\"\n", "");
    let refusal = Scenario::plan("bad.toml", &alone, &[], 1).unwrap_err().to_string();
    assert!(refusal.contains("`client` has no route to `server`: give it a `default_route`"), "{refusal}");

    let nameless = include_str!("../../../../scenarios/bulk.toml").replace("address = \"10.2.0.2\"\n", "");
    let refusal = Scenario::plan("bad.toml", &nameless, &[], 1).unwrap_err().to_string();
    assert!(refusal.contains("`server` has no address"), "{refusal}");
}

#[test]
fn a_host_that_moves_needs_a_cell() {
    let (begin, rest) = WHOLE.split_once("[cell.1]").unwrap();
    let (_, end) = rest.split_once("[host.server]").unwrap();
    let refusal =
        Scenario::plan("bad.toml", &format!("{begin}[host.server]{end}"), &[], 1).unwrap_err().to_string();
    assert!(refusal.contains("`host.mobile`: a host that moves needs a cell"), "{refusal}");
}

/// For a scenario that is refused, `warnings` returns the same error as `plan`, and no warnings.
#[test]
fn a_scenario_that_is_refused_has_no_warnings() {
    for (from, to) in [("\"5s\"", "\"0s\""), ("[host.west]", "[host.\"../west\"]")] {
        let text = WHOLE.replacen(from, to, 1);
        let refused = Scenario::plan("bad.toml", &text, &[], 1).unwrap_err();
        assert_eq!(super::super::warnings("bad.toml", &text, &[]).unwrap_err(), refused);
    }
}

#[test]
fn a_move_to_its_own_cell_is_a_mistake_only_of_a_role_that_then_does_nothing() {
    let warnings = |file: &str, text: &str| {
        let all = super::super::warnings(file, text, &[]).unwrap();
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warnings("good.toml", WHOLE), "", "roam tunes its radio anew");
    let (file, text) = Scenario::find("evidence/outage").unwrap();
    assert_eq!(warnings(&file, &text), "", "a handoff of more than 7 s");
    let (file, first) = Scenario::find("first").unwrap();
    let stays = first.replacen("to = \"b3\", kind = \"hard\"", "to = \"b2\", kind = \"hard\"", 1);
    assert!(warnings(&file, &stays).contains("the host is at `b2` already, so this move has no effect"));
    let late = first.replacen("start = \"0.5s\", stop = \"5.5s\"", "start = \"60s\", stop = \"5.5s\"", 1);
    let said = warnings(&file, &late);
    assert!(
        said.contains(
            ".start`: starts at 60s, but the run ends at 6s, so this role never runs; allowed: below 6s"
        ),
        "{said}"
    );
}

#[test]
fn a_cellular_ip_key_is_refused_where_it_is_written() {
    let (_, first) = Scenario::find("first").unwrap();
    let line = first.lines().position(|line| line.starts_with("network_key")).unwrap();
    let key = first.lines().nth(line).unwrap();
    let refusal =
        Scenario::plan("f.toml", &first.replacen(key, "network_key = \"0102\"", 1), &[], 1).unwrap_err();
    let begin =
        format!("f.toml, line {}, column 15: `cellular-ip.network_key`: must have at least 16", line + 1);
    assert!(refusal.to_string().starts_with(&begin), "{refusal}");
    let gateways = first.replacen(
        "kind = \"cellular-ip/mobile\"",
        "kind = \"cellular-ip/mobile\", gateway = \"10.1\"",
        1,
    );
    let refusal = Scenario::plan("f.toml", &gateways, &[], 1).unwrap_err().to_string();
    assert!(refusal.contains("`host.mobile.role[0].gateway`: not an IPv4 address"), "{refusal}");
}

#[test]
fn an_address_that_is_in_no_cells_network_is_named() {
    let (_, text) = Scenario::find("mobile-ip/download").unwrap();
    let line = text.lines().find(|line| line.starts_with("address = \"10.1.")).unwrap();
    let refusal = Scenario::plan("f.toml", &text.replacen(line, "address = \"10.77.0.7\"", 1), &[], 1)
        .unwrap_err()
        .to_string();
    assert!(
        refusal
            .contains("the address of `mobile`, 10.77.0.7, is in the `net` of no cell; the cells have: 10."),
        "{refusal}"
    );
}

/// Two servers may have one port number if they use different transports.
#[test]
fn a_port_belongs_to_one_server_of_each_transport() {
    let one = "role = [{ kind = \"apps/bulk-server\", at = \"server:9000\", bytes = 1000 }]";
    let second = |keys: &str| {
        let server = "{ kind = \"apps/bulk-server\", at = \"server:9000\", bytes = 1000";
        refusal(one, &format!("role = [{server} }}, {server}{keys} }}]"))
    };
    let problem = "another role of `server` has tcp port 9000";
    assert!(second("").contains(problem), "{}", second(""));
    assert!(!second(", transport = \"sctp\"").contains(problem), "{}", second(", transport = \"sctp\""));
}

/// Returns the error of a built-in scenario with `from` replaced by `to`.
pub(super) fn refusal_in(name: &str, from: &str, to: &str) -> String {
    let (_, text) = Scenario::find(name).unwrap();
    assert!(text.contains(from), "{from}");
    let refused = Scenario::plan("f.toml", &text.replacen(from, to, 1), &[], 1);
    refused.map_or_else(|error| error.to_string(), |_| format!("`{to}` makes a plan"))
}

#[test]
fn a_role_that_acquires_addresses_and_a_mobile_node_that_uses_them_belong_together() {
    let client = "    { kind = \"dhcp/client\", probe_wait = \"50ms\" },\n";
    let (_, text) = Scenario::find("mobile-ip/dhcp").unwrap();
    let line = |what: &str| text.lines().position(|line| line.contains(what)).unwrap() + 1;
    let refusal = refusal_in("mobile-ip/dhcp", client, "");
    let begin = format!(
        "f.toml, line {}, column 49: `host.mobile.role[0].care_of`: `acquired` needs a role of this host that acquires an address of the interface `air`; add the role `dhcp/client`",
        line("care_of = \"acquired\"")
    );
    assert!(refusal.starts_with(&begin), "{refusal}");
    let refusal = refusal_in("mobile-ip/dhcp", ", care_of = \"acquired\"", "");
    let begin = format!(
        "f.toml, line {}, column 14: `host.mobile.role[1].kind`: the mobile node of this host has `care_of = \"agent\"`, and does not use the address that this role acquires; write `care_of = \"acquired\"`",
        line("kind = \"dhcp/client\"")
    );
    assert!(refusal.starts_with(&begin), "{refusal}");
}

#[test]
fn wrong_keys_of_agents_and_servers_are_refused() {
    let agent = "kind = \"mobile-ip/foreign-agent\"";
    for (name, from, to, expected) in [
        (
            "mobile-ip/download",
            agent,
            "kind = \"mobile-ip/foreign-agent\", visitors = 0",
            "`host.foreign.role[0].visitors`: must be at least 1",
        ),
        (
            "mobile-ip/download",
            agent,
            "kind = \"mobile-ip/foreign-agent\", encapsulations = [\"gre\", \"gre\"]",
            "`host.foreign.role[0].encapsulations`: must have each kind once; the kind at position 2 is there before",
        ),
        (
            "mobile-ip/download",
            agent,
            "kind = \"mobile-ip/foreign-agent\", encapsulations = \"gre\"",
            "`host.foreign.role[0].encapsulations`: invalid type: string \"gre\", expected a list, for example [\"gre\"]",
        ),
        (
            "mobile-ip/dhcp",
            "first = \"10.2.0.100\", last = \"10.2.0.199\"",
            "first = \"10.2.0.1\", last = \"10.2.0.1\"",
            "`host.cafe.role[0].last`: no address of the pool can be granted",
        ),
    ] {
        let refusal = refusal_in(name, from, to);
        assert!(refusal.contains(expected), "{refusal}");
    }
}
