//! Links on a real kernel: ports that are plugged in and out, segments that several hosts share, and overlapping cells.

use crate::common::*;
use std::path::Path;

/// Returns the rows of `packets.csv` of a run, each as the values of these columns.
fn packets(run: &Path, columns: [&str; 5]) -> Vec<[String; 5]> {
    let text = std::fs::read_to_string(run.join("packets.csv")).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let head = row(text.lines().next().unwrap());
    let place = |name: &str| head.iter().position(|column| column == name).unwrap();
    let places = columns.map(place);
    text.lines().skip(1).map(row).map(|row| places.map(|place| row[place].clone())).collect()
}

/// Returns the bits per second of datagrams that arrived at a host. A datagram has 1514 bytes with its headers.
fn rate(run: &Path, host: &str) -> f64 {
    let rows = packets(run, ["host", "interface", "direction", "protocol", "time_s"]);
    let arrived = rows.iter().filter(|[at, interface, direction, protocol, _]| {
        at == host && interface != "host" && direction == "in" && protocol == "UDP"
    });
    let times: Vec<f64> = arrived.map(|[.., time]| time.parse().unwrap()).collect();
    (times.len() - 1) as f64 * 1514.0 * 8.0 / (times[times.len() - 1] - times[0])
}

/// Two hosts each send 8 Mb/s to the other. A port carries both, at its rate of each direction, and a segment shares its
/// rate.
#[test]
fn a_port_has_a_rate_in_each_direction_and_a_segment_shares_one() {
    let _turn = beside_few();
    let port = "[cell.1]\nstation = 'router'\nduplex = 'full'\nrate = '6Mb/s'\nuplink_rate = '2Mb/s'\nnet = '10.1.0.0/24'\n";
    let segment = "[segment.lan]\nhosts = ['router', 'host']\nrate = '6Mb/s'\nnet = '10.1.0.0/24'\n";
    let roam = ", { kind = 'apps/roam' }";
    for (link, more, down, up) in [(port, roam, 6e6, 2e6), (segment, "", 3e6, 3e6)] {
        let out = tempfile::tempdir().unwrap();
        let role = |own: &str, to: &str, more: &str| {
            format!(
                "role = [{{ kind = 'apps/constant-rate', to = '{to}:9000', rate = 660, size = 1472, start = '0.2s', stop = '1.7s' }}, \
                 {{ kind = 'apps/sink', at = '{own}:9000' }}{more}]"
            )
        };
        let (router, host) = (role("router", "host", ""), role("host", "router", more));
        let text = format!(
            "about = 'both ways'\nduration = '2s'\n{link}[host.router]\n{router}\n[host.host]\naddress = '10.1.0.2'\n{host}\n"
        );
        std::fs::write(out.path().join("ways.toml"), text).unwrap();
        let output = run(&["run", "ways.toml", "--on", "linux", "--out", "run"], out.path());
        if !held_or_late(&output, "ways on linux") {
            late(&output);
        }
        // A late run can make packets later, and no link faster.
        let lowest = if output.was_only_late() { 0.5 } else { 0.97 };
        for (name, wanted) in [("host", down), ("router", up)] {
            let seen = rate(&out.path().join("run"), name);
            assert!(
                (lowest..1.03).contains(&(seen / wanted)),
                "{link}{name}: {seen:.0} b/s, not {wanted:.0}"
            );
        }
    }
}

/// The link emulator reports the signals of both cells. An eager mobile node changes when the signal of the other cell is
/// stronger by 6 dB, and its record says why it stayed before. When its first cell is out of reach, its radio is in the other
/// cell, and its daemon gets an event without an interruption.
#[test]
fn a_mobile_node_waits_for_a_stronger_signal() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let text = include_str!("../../../../scenarios/links/overlap.toml")
        .replace(
            r#"2 = [["0s", -120], ["3s", -120], ["3s", -62], ["9s", -62]]"#,
            r#"2 = [["0s", -120], ["3s", -120], ["3s", -85], ["6s", -25], ["9s", -25]]"#,
        )
        .replace("movement = \"ecs\"", "movement = \"ecs\", signal_hysteresis = 6");
    std::fs::write(out.path().join("signal.toml"), text).unwrap();
    let output = run(&["run", "signal.toml", "--on", "linux", "--out", "run"], out.path());
    assert_held(&output, "signal on linux");
    let records = std::fs::read_to_string(out.path().join("run/records.jsonl")).unwrap();
    let decided = ["below_hysteresis", "stronger_signal"]
        .map(|why| records.lines().filter(|one| one.contains(why) && one.contains("10.2.0.1")).count());
    assert_eq!(decided, [1, 1], "{output:?}");
    let moved = |record: &&str| {
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        record["event"] == "up" && record["cell"] == 2
    };
    assert_eq!(records.lines().filter(moved).count(), 1, "its radio is in cell 2");
    assert!(!records.contains(r#""event":"down""#), "without an interruption");
}

#[test]
fn a_host_is_notified_that_its_cable_is_unplugged_and_plugged() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let words = ["run", "links/plug", "--on", "linux", "--out", "run", "--set", "duration=8s"];
    let output = run(&[&words[..], &["--set", "bulk-server.bytes=4000000"]].concat(), out.path());
    assert_held(&output, "links-plug on linux");
    let records = std::fs::read_to_string(out.path().join("run/records.jsonl")).unwrap();
    let links: Vec<serde_json::Value> = records
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|record| record["event"] == "down" || (record["event"] == "up" && !record["cell"].is_null()))
        .collect();
    let seen: Vec<(&str, &serde_json::Value)> =
        links.iter().map(|link| (link["event"].as_str().unwrap(), &link["reason"])).collect();
    let (none, unplugged) = (serde_json::Value::Null, serde_json::Value::from("unplugged"));
    assert_eq!(seen, [("up", &none), ("down", &unplugged), ("up", &none)]);
    let client = &kept_status(out.path())["bulk-client"];
    assert!(did_in_time(&output, client["bytes"] == 4_000_000), "{client}");
}

fn kept_status(out: &Path) -> serde_json::Value {
    let run = std::fs::read_to_string(out.join("run/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == "mobile").unwrap()["summary"]["status"].clone()
}

#[test]
fn a_node_in_the_overlap_of_two_cells_loses_nothing() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&["run", "links/overlap", "--on", "linux", "--out", "run"], out.path());
    if !held_or_late(&output, "links-overlap on linux") {
        return late(&output);
    }
    let flows = std::fs::read_to_string(out.path().join("run/flows.csv")).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let head = row(flows.lines().next().unwrap());
    let lost = head.iter().position(|column| column == "lost").unwrap();
    assert_eq!(row(flows.lines().nth(1).unwrap())[lost], "0", "{flows}");
    assert_eq!(kept_status(out.path())["mobile_node"]["care_of"], "10.2.0.1");
}

#[test]
fn downloads_share_a_segment_behind_a_router_with_two() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&["run", "links/segments", "--on", "linux"], out.path());
    assert_held(&output, "links-segments on linux");
}
