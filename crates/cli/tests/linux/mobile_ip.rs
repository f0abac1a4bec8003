//! Mobile IP on a real kernel: a download continues while its host moves to a foreign network.

use crate::common::*;
use crate::exchanged_radios::EXCHANGED_RADIOS;
use crate::tshark::tshark;
use std::path::Path;

/// A run with one move, at 4.3 s, during the download.
const SHORT: [&str; 8] = [
    "run",
    "mobile-ip/download",
    "--on",
    "linux",
    "--set",
    "duration=9s",
    "--set",
    "bulk-server.bytes=1200000",
];

/// Asserts that the run has no failure, that each part of its outage has an owner, and that every byte arrived in
/// order.
fn assert_downloaded(output: &Output, out: &Path) {
    assert_held(output, "mobile-ip-download on linux");
    let run = kept_run(out);
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let status = |name: &str| &hosts.iter().find(|host| host["name"] == name).unwrap()["summary"]["status"];
    let client = &status("mobile")["bulk-client"];
    assert!(client["wrong_at"].is_null(), "{client}");
    if !did_in_time(output, client["state"] == "done") {
        return;
    }
    let said = text(&output.stdout);
    for owner in ["link", "detection", "registration", "recovery", "first byte"] {
        assert!(said.contains(owner), "no {owner} in\n{said}");
    }
    assert!(!said.contains("unexplained"), "{said}");
    assert_eq!(client["state"], "done", "{client}");
    assert_eq!(client["bytes"], 1_200_000, "{client}");
    assert_eq!(status("mobile")["mobile_node"]["care_of"], "10.2.0.1");
    assert_eq!(status("home")["home_agent"]["bindings"]["10.1.0.7"][0]["care_of"], "10.2.0.1");
}

#[test]
fn a_download_goes_on_while_its_host_moves() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    assert_downloaded(&run(&SHORT, out.path()), out.path());
}

#[test]
fn a_user_without_rights_gets_the_same() {
    if !need("root, to become another user", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    assert_downloaded(&run_as_nobody(&SHORT, out.path()), out.path());
}

/// A download through a path of 1492 bytes between the agents, an upload over an uplink of 576 bytes, and datagrams of
/// 1500 bytes without DF. All flows end, and each packet is accounted for. The kernel of the mobile node gets whole
/// datagrams: every datagram that arrives has its full length.
#[test]
fn packets_that_do_not_fit_their_path_arrive() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&["run", "mobile-ip/narrow-path", "--on", "linux"], out.path());
    assert_held(&output, "mobile-ip-narrow-path on linux");
    let flows = std::fs::read_to_string(kept(out.path()).join("flows.csv")).unwrap();
    assert_eq!(flows.lines().filter(|line| line.contains("completed")).count(), 3, "{flows}");
    let records = std::fs::read_to_string(kept(out.path()).join("records.jsonl")).unwrap();
    assert!(records.contains("reassembled"), "the foreign agent and the mobile node join fragments");
}

/// A correspondent that keeps a binding cache sends straight to the foreign agents. After its first Update, no datagram
/// passes the home agent until the mobile node is at home again, except those that were under way. Each packet is accounted
/// for.
#[test]
fn packets_after_an_update_do_not_pass_the_home_agent() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run(&["run", "mobile-ip/route-optimization", "--on", "linux"], out.path());
    assert_held(&output, "mobile-ip-route-optimization on linux");
    let packets = std::fs::read_to_string(kept(out.path()).join("packets.csv")).unwrap();
    let rows = packets.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter_map(|row| Some((row[2].parse::<f64>().ok()?, row))).collect();
    let is_update = |row: &[&str]| row[3] == "correspondent" && row[10].contains("binding update");
    let updates: Vec<f64> = rows.iter().filter(|(_, row)| is_update(row)).map(|(at, _)| *at).collect();
    let is_data = |row: &[&str]| row[3] == "home" && row[5] == "in" && row[10].contains(":9002");
    let passed: Vec<f64> = rows.iter().filter(|(_, row)| is_data(row)).map(|(at, _)| *at).collect();
    let [first, second, third] = updates[..] else { panic!("{updates:?}") };
    // The packets that were under way to the home agent take 41 ms.
    let late = passed.iter().filter(|at| (first + 0.1..third).contains(*at)).count();
    let is_in_time = first < 4.3 && second < 8.3 && third < 12.3;
    if did_in_time(&output, is_in_time) {
        assert!(late == 0 && !passed.is_empty(), "{late} of {} packets after {first} s", passed.len());
    }
    assert_waits_for_updates(&kept_run(out.path())["summary"]["handoffs"]);
}

/// The parts of the outages are the whole outages. In the second and the third move, the correspondent has an entry, and the transit of
/// the Update is a part of the registration: the wires to the home agent have 41 ms.
fn assert_waits_for_updates(handoffs: &serde_json::Value) {
    for (number, name) in [(1, "binding_learnt"), (2, "binding_forgotten")] {
        let flow = &handoffs[number]["flows"][0];
        let owners = flow["owners"].as_array().unwrap();
        let ms = |part: &serde_json::Value| part["ms"].as_f64().unwrap();
        let sum: f64 = owners.iter().map(ms).sum();
        assert!((sum - flow["outage_ms"].as_f64().unwrap()).abs() < 0.001, "{flow}");
        let update = owners.iter().find(|part| part["ends"] == name).unwrap_or_else(|| panic!("{flow}"));
        assert!(update["owner"] == "registration" && ms(update) > 40.0, "{flow}");
    }
}

/// Both agents offer GRE, and the mobile node asks for it and for a reverse tunnel. Wireshark reads the tunnels of the
/// capture: from the home agent and to it. Each carries the download or the upload over TCP of the kernels.
#[test]
fn another_program_reads_the_tunnels_of_gre() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let offers = r#"encapsulations=["gre"]"#;
    let settings = ["home-agent", "foreign-agent"]
        .map(|agent| [format!("{agent}.{offers}"), format!("{agent}.reverse_tunnel=offered")]);
    let asks = ["mobile-node.encapsulation=gre", "mobile-node.reverse_tunnel=direct"].map(str::to_owned);
    let settings: Vec<String> = settings.into_iter().flatten().chain(asks).collect();
    let mut words = vec!["run", "mobile-ip/narrow-path", "--on", "linux"];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let output = run(&words, out.path());
    assert_held(&output, "mobile-ip-narrow-path on linux");
    let flows = std::fs::read_to_string(kept(out.path()).join("flows.csv")).unwrap();
    assert_eq!(flows.lines().filter(|line| line.contains("completed")).count(), 3, "{flows}");
    let run = kept_run(out.path());
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let status = |name: &str| &hosts.iter().find(|host| host["name"] == name).unwrap()["summary"]["status"];
    assert_eq!(status("home")["home_agent"]["bindings"]["10.1.0.7"][0]["encapsulation"], "gre");
    assert_eq!(status("foreign")["foreign_agent"]["visitors"]["10.1.0.7"][0]["encapsulation"], "gre");
    let capture = kept(out.path()).join("capture.pcapng");
    for (filter, what) in [
        ("gre && ip.src == 10.1.0.1 && tcp.srcport == 9000", "to the care-of address"),
        ("gre && ip.dst == 10.1.0.1 && tcp.srcport == 9001", "in the reverse tunnel"),
    ] {
        let fields = ["-Y", filter, "-T", "fields", "-e", "gre.proto", "-e", "frame.protocols"];
        let Some(printed) = tshark(&capture, &fields) else { return };
        let rows: Vec<&str> =
            printed.lines().filter(|row| row.starts_with("0x0800\teth:ethertype:ip:gre:ip:tcp")).collect();
        assert!(rows.len() > 100, "{what}: {printed}");
    }
}

/// A mobile node acquires its care-of address by DHCP, and asks for a reverse tunnel. Wireshark reads the tunnel of the
/// capture: the segments of the node's kernel are in it, and none is outside of it.
#[test]
fn a_node_with_its_own_address_sends_through_a_reverse_tunnel() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let settings =
        ["--set", "home-agent.reverse_tunnel=offered", "--set", "mobile-node.reverse_tunnel=direct"];
    let words: Vec<&str> = ["run", "mobile-ip/dhcp", "--on", "linux"].into_iter().chain(settings).collect();
    let output = run(&words, out.path());
    assert_held(&output, "mobile-ip-dhcp on linux");
    let flows = std::fs::read_to_string(kept(out.path()).join("flows.csv")).unwrap();
    assert!(flows.contains("completed"), "{flows}");
    let run = kept_run(out.path());
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let home = &hosts.iter().find(|host| host["name"] == "home").unwrap()["summary"]["status"]["home_agent"];
    assert!(home["reversed"].as_u64().is_some_and(|count| count > 100), "{home}");
    assert_eq!(home["bindings"]["10.1.0.7"][0]["flags"], "DT");
    let capture = kept(out.path()).join("capture.pcapng");
    let fields =
        ["-Y", "ip.src == 10.2.0.100 && ip.dst == 10.1.0.1 && tcp", "-T", "fields", "-e", "frame.protocols"];
    let Some(printed) = tshark(&capture, &fields) else { return };
    let rows = printed.lines().filter(|row| row.starts_with("eth:ethertype:ip:ip:tcp")).count();
    assert!(rows > 100, "{printed}");
}

/// A script that sends a pattern to the first client that connects.
const SERVER: &str = r#"
import socket
listener = socket.create_server(("10.0.0.1", 9000))
listener.accept()[0].sendall(bytes(range(250)) * 3200)
"#;
/// A script that receives the pattern, and prints whether it is right. Then it sends two datagrams: to a port with a
/// socket, and to a port without one.
const CLIENT: &str = r#"
import socket
server, taken = socket.create_connection(("10.0.0.1", 9000)), b""
while more := server.recv(65536):
    taken += more
print("right" if taken == bytes(range(250)) * 3200 else "wrong", len(taken), "bytes")
datagrams = socket.socket(type=socket.SOCK_DGRAM)
for port in [9001, 9002]:
    datagrams.sendto(b"done", ("10.0.0.1", port))
"#;
const LISTENER: &str = r#"
import socket
listener = socket.socket(type=socket.SOCK_DGRAM)
listener.bind(("10.0.0.1", 9001))
print(listener.recv(100).decode(), flush=True)
listener.recv(100)
"#;

/// Returns the scenario `mobile-ip/download` with programs instead of its bulk server and bulk client. The mobile node
/// moves at 2.3 s, and the run lasts 8 s.
fn programs(server: &str, client: &str) -> String {
    let (_, text) = scenario::Scenario::find("mobile-ip/download").unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("apps/bulk-")).collect();
    let topology =
        lines.join("\n").replace("duration = \"10s\"", "duration = \"8s\"").replace("4.3s", "2.3s");
    format!(
        "{topology}\n\
         [[host.correspondent.program]]\ncommand = \"{server}\"\n\
         [[host.correspondent.program]]\ncommand = \"python3 listener.py\"\nstop = \"7s\"\n\
         [[host.mobile.program]]\ncommand = \"{client}\"\nstart = \"500ms\"\n"
    )
}

fn run_programs(server: &str, client: &str, out: &Path) -> Output {
    for (name, text) in [("server.py", SERVER), ("client.py", CLIENT), ("listener.py", LISTENER)] {
        std::fs::write(out.join(name), text).unwrap();
    }
    std::fs::write(out.join("programs.toml"), programs(server, client)).unwrap();
    run(&["run", "programs.toml", "--on", "linux"], out)
}

#[test]
fn any_program_is_a_workload_and_outlives_the_move() {
    if !need("python3", std::process::Command::new("python3").arg("-V").output().is_ok()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run_programs("python3 server.py", "python3 client.py", out.path());
    assert_held(&output, "programs on linux");
    let dir = kept(out.path());
    let said = |name: &str| std::fs::read_to_string(dir.join("programs").join(name)).unwrap();
    let done = said("correspondent-2.log");
    if !did_in_time(&output, done == "done\n") {
        return;
    }
    assert_eq!(said("mobile-1.log"), "right 800000 bytes\n");
    assert_eq!(done, "done\n");
    let run = std::fs::read_to_string(dir.join("run.json")).unwrap();
    assert!(run.contains("stopped: signal: 15 (SIGTERM)"), "{run}");
}

#[test]
fn a_program_that_fails_fails_the_run_and_is_named_with_its_last_words() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run_programs("sleep 100 & sleep 101", "echo no server; exit 7", out.path());
    if output.was_only_late() {
        return late(&output);
    }
    assert_exit(&output, 1, "mobile: program 1 (`echo no server; exit 7`) ended by itself");
    assert_exit(&output, 1, "exit status: 7; its last output: no server");
    let in_the_simulator = run(&["run", "programs.toml"], out.path());
    assert_exit(&in_the_simulator, 2, "runs programs, which need a kernel; use --on linux");
}

/// Runs `server.py` and `client.py` over Mobile IP. Returns what the run printed, and its summary.
fn programs_flow(settings: &[&str], out: &Path) -> (Output, serde_json::Value) {
    for (name, text) in [("server.py", SERVER), ("client.py", CLIENT), ("listener.py", LISTENER)] {
        std::fs::write(out.join(name), text).unwrap();
    }
    std::fs::write(out.join("programs.toml"), programs("python3 server.py", "python3 client.py")).unwrap();
    let mut words = vec!["run", "programs.toml", "--on", "linux"];
    words.extend(settings);
    let output = run(&words, out);
    let summary = kept_run(out)["summary"].clone();
    (output, summary)
}

/// Returns the cost of the handoff for the programs' connection.
fn cost_of_the_connection(summary: &serde_json::Value) -> &serde_json::Value {
    let flows = summary["flows"].as_array().unwrap();
    let is_download = |flow: &&serde_json::Value| {
        flow["transport"] == "TCP" && flow["from_address"].as_str().unwrap().ends_with(":9000")
    };
    let flow = flows.iter().find(is_download).unwrap_or_else(|| panic!("no download in {flows:#?}"));
    assert!(flow["bytes"].as_u64().unwrap() > 0, "{flow:#?}");
    let handoffs = summary["handoffs"].as_array().unwrap();
    let [handoff] = &handoffs[..] else { panic!("not one handoff: {handoffs:#?}") };
    let costs = handoff["flows"].as_array().unwrap();
    costs.iter().find(|cost| cost["flow"] == flow["number"]).unwrap_or_else(|| panic!("{handoff:#?}"))
}

#[test]
fn the_connection_of_a_program_has_its_row_its_outage_and_a_figure() {
    if !need("python3", std::process::Command::new("python3").arg("-V").output().is_ok()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let (output, summary) = programs_flow(&[], out.path());
    assert_held(&output, "programs on linux");
    let cost = cost_of_the_connection(&summary);
    // Retuning alone takes 5 ms, and a registration needs a round trip of 2 ms on the wire.
    let outage_ms = cost["outage_ms"].as_f64().unwrap_or_else(|| panic!("{cost:#?}"));
    assert!((7.0..5000.0).contains(&outage_ms), "{outage_ms}");
    let shown = format!("{outage_ms:.3}");
    assert_eq!(cost["experience"], "outage", "{cost:#?}");
    let said = text(&output.stdout);
    let row = said.lines().find(|line| line.contains("correspondent:9000") && line.contains("TCP"));
    let row = row.unwrap_or_else(|| panic!("no row of the connection in\n{said}"));
    if did_in_time(&output, row.contains("completed")) {
        assert!(row.contains("completed") && row.contains("800000"), "{row}");
    }
    assert!(said.contains(&shown), "no {shown} in\n{said}");
    let figure = std::fs::read_to_string(kept(out.path()).join("figures/handoffs.svg")).unwrap();
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    assert!(figure.split("outage ").skip(1).any(is_number), "no outage in the figure");
}

/// iperf3 has one connection for control, which is silent during the move, and one for the data.
#[test]
fn a_download_by_iperf3_has_its_outage() {
    if !need("iperf3", std::process::Command::new("iperf3").arg("--version").output().is_ok()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let output = run_programs("iperf3 -s -1", "iperf3 -c 10.0.0.1 -R -n 1M", out.path());
    assert_held(&output, "programs on linux");
    let run = kept_run(out.path());
    let flows = run["summary"]["flows"].as_array().unwrap();
    let data = flows.iter().find(|flow| flow["bytes"] == 1 << 20).unwrap_or_else(|| panic!("{flows:#?}"));
    if !did_in_time(&output, data["end"] == "completed") {
        return;
    }
    let costs = run["summary"]["handoffs"][0]["flows"].as_array().unwrap();
    let experience = |flow: &serde_json::Value| {
        costs.iter().find(|cost| cost["flow"] == flow["number"]).map(|cost| &cost["experience"])
    };
    assert_eq!(experience(data), Some(&"outage".into()), "{costs:#?}");
    let told: Vec<_> = flows.iter().filter(|flow| flow["bytes"].as_u64() < Some(1000)).collect();
    assert!(
        told.len() >= 2 && told.iter().all(|flow| experience(flow) == Some(&"not measured".into())),
        "{costs:#?}"
    );
}

#[test]
fn the_connection_of_a_program_that_never_comes_back_is_said_never() {
    if !need("python3", std::process::Command::new("python3").arg("-V").output().is_ok()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    // The foreign agent has no connection to the rest of the network: no registration, no data.
    let (output, summary) = programs_flow(&["--set", "wire.right.loss=1"], out.path());
    let cost = cost_of_the_connection(&summary);
    assert_eq!(cost["experience"], "never", "{cost:#?}");
    assert!(cost["outage_ms"].is_null(), "{cost:#?}");
    let said = text(&output.stdout);
    assert!(said.contains("never"), "{said}");
    assert_ne!(output.status.code(), Some(0), "{said}");
}

/// Wires of 1520 bytes carry a tunnel whose packets have 1500 bytes, as in the simulator: no packet of a download is too big.
#[test]
fn a_wire_with_a_large_mtu_carries_large_packets() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let wide = [
        "--set",
        "wire.left.mtu=1520",
        "--set",
        "wire.right.mtu=1520",
        "--set",
        "home-agent.tunnel_mtu=1500",
    ];
    let output = run(&[&SHORT[..], &wide].concat(), out.path());
    assert_downloaded(&output, out.path());
    let events = std::fs::read_to_string(kept(out.path()).join("events.jsonl")).unwrap();
    assert!(!events.contains("too_big"), "{events}");
    let packets = std::fs::read_to_string(kept(out.path()).join("packets.csv")).unwrap();
    let tunnelled =
        packets.lines().filter(|line| line.contains(",foreign,router,in,") && line.contains(",1520,"));
    assert!(tunnelled.count() > 20, "the tunnel carries packets of 1500 bytes");
}

/// Returns the number of lost packets of a run's only flow, and the part of the status of each foreign agent about handoffs.
fn smooth(out: &Path, settings: &[&str]) -> (Output, u64, Vec<serde_json::Value>) {
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let words: Vec<&str> = ["run", "mobile-ip/smooth-handoff", "--on", "linux", "--set", "duration=9.5s"]
        .into_iter()
        .chain(settings)
        .collect();
    let output = run(&words, out);
    assert_held(&output, "mobile-ip-smooth-handoff on linux");
    let flows = std::fs::read_to_string(kept(out).join("flows.csv")).unwrap();
    let mut lines = flows.lines();
    let column = lines.next().unwrap().split(',').position(|name| name == "lost").unwrap();
    let lost = lines.next().unwrap().split(',').nth(column).unwrap().parse().unwrap();
    let run = kept_run(out);
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let status = |name: &str| {
        let host = hosts.iter().find(|host| host["name"] == name).unwrap();
        host["summary"]["status"]["foreign_agent"]["handoffs"].clone()
    };
    (output, lost, ["a", "b", "c"].map(status).to_vec())
}

/// A mobile node moves from one foreign network to the next, twice, 40 ms away from its home agent. With smooth handoffs, the
/// previous agents forward its packets, and about 1 packet per move is lost. Without them, about 9 are lost.
#[test]
fn the_previous_foreign_agent_forwards_packets() {
    let _turn = beside_others();
    let out = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (output, lost, status) = smooth(out[0].path(), &[]);
    let [a, b, c] = &status[..] else { panic!("{status:?}") };
    assert_eq!((&b["updates_sent"], &c["updates_sent"]), (&1.into(), &1.into()), "{status:?}");
    assert_eq!(a["departures"]["10.1.0.7"][0]["care_of"], "10.3.0.1", "{a}");
    assert_eq!(b["departures"]["10.1.0.7"][0]["care_of"], "10.4.0.1", "{b}");
    assert_eq!(c["arrivals"]["10.1.0.7"][0]["previous"], "10.3.0.1", "{c}");
    for agent in [b, c] {
        assert!(agent["delivered"].as_u64().is_some_and(|count| count > 3), "{agent}");
    }
    let (_, without, status) = smooth(out[1].path(), &["mobile-ip.smooth_handoff=false"]);
    assert!(status.iter().all(serde_json::Value::is_null), "{status:?}");
    did_in_time(&output, lost <= 8 && without >= 12 && lost < without);
}

/// The foreign agents have no association with the mobile node. They forward its packets with the keys that the home agent
/// distributes. If it does not, they know no key, and drop the Binding Updates.
#[test]
fn the_previous_foreign_agent_forwards_packets_with_a_distributed_key() {
    let _turn = beside_others();
    let out = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let keys = "mobile-ip.distributed_keys=true";
    let (output, lost, status) = smooth(out[0].path(), &[keys]);
    let [a, b, c] = &status[..] else { panic!("{status:?}") };
    assert_eq!(a["departures"]["10.1.0.7"][0]["care_of"], "10.3.0.1", "{a}");
    assert_eq!(b["departures"]["10.1.0.7"][0]["care_of"], "10.4.0.1", "{b}");
    assert_eq!([a, b, c].map(|agent| agent["keys"].as_u64()), [Some(1); 3], "{status:?}");
    let events = std::fs::read_to_string(kept(out[0].path()).join("events.jsonl")).unwrap();
    assert_eq!(events.matches("\"update_acknowledged\"").count(), 2, "{events}");
    let (_, without, status) = smooth(out[1].path(), &[keys, "home-agent.distribute_keys=false"]);
    for agent in &status {
        assert_eq!((&agent["departures"], &agent["keys"]), (&serde_json::json!({}), &0.into()), "{agent}");
    }
    did_in_time(&output, lost <= 8 && without >= 12 && lost < without);
}

/// The changes of `mobile-ip/overlay` for a drive of 34 s: the truck leaves its home network, and visits the town.
const SHORT_DRIVE: [&str; 6] = [
    "duration=34s",
    "host.truck.course.2=[[\"0s\", -60], [\"4s\", -60], [\"6s\", -98]]",
    "host.truck.course.3=[[\"0s\", -98], [\"9s\", -98], [\"10s\", -60], [\"16s\", -60], [\"18s\", -98]]",
    "host.truck.course.4=[[\"0s\", -98]]",
    "constant-rate.stop=22s",
    "bulk-server.duration=17s",
];

/// As [`SHORT_DRIVE`], but the wireless LAN is the further interface, and the truck comes home again.
const EXCHANGED: [&str; 7] = [
    EXCHANGED_RADIOS,
    "duration=30s",
    "host.truck.course.2=[[\"0s\", -60], [\"5s\", -60], [\"7s\", -98], [\"10s\", -98], [\"11s\", -60]]",
    "host.truck.course.3=[[\"0s\", -98], [\"17s\", -98]]",
    "host.truck.course.4=[[\"0s\", -98]]",
    "constant-rate.stop=22s",
    "bulk-server.duration=17s",
];

/// A mobile node with a wireless LAN and a satellite terminal changes between them three times, each time before it loses the
/// wireless LAN. It loses no datagram, and its download continues.
#[test]
fn a_node_with_two_radios_changes_its_interface() {
    changes_its_interface(&SHORT_DRIVE, &["air2", "air", "air2"]);
}

/// A mobile node is at home by its further interface, which then has the home address too. The host's own stack keeps the address
/// when the node leaves home, and comes back.
#[test]
fn a_node_with_two_radios_is_at_home_by_the_further_one() {
    changes_its_interface(&EXCHANGED, &["air", "air2"]);
}

/// Runs `mobile-ip/overlay` with these settings. The truck must change to these interfaces, and lose nothing.
fn changes_its_interface(settings: &[&str], expected: &[&str]) {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let words: Vec<&str> =
        ["run", "mobile-ip/overlay", "--on", "linux"].into_iter().chain(settings).collect();
    let output = run(&words, out.path());
    assert_held(&output, "mobile-ip-overlay on linux");
    let run = kept_run(out.path());
    let handoffs = run["summary"]["handoffs"].as_array().unwrap();
    let to: Vec<_> = handoffs.iter().map(|one| (one["kind"].as_str(), one["to"].as_str())).collect();
    let changes: Vec<_> = expected.iter().map(|to| (Some("interface"), Some(*to))).collect();
    let lost: u64 = handoffs.iter().map(|one| one["flows"][0]["lost"].as_u64().unwrap_or(0)).sum();
    if !did_in_time(&output, to == changes && lost == 0) {
        return;
    }
    assert_eq!((to, lost), (changes, 0), "{handoffs:?}");
    let hosts = run["linux"]["hosts"].as_array().unwrap();
    let truck = hosts.iter().find(|host| host["name"] == "truck").unwrap();
    let status = &truck["summary"]["status"]["mobile_node"];
    let interfaces = status["interfaces"].as_array().unwrap();
    let in_use = interfaces.iter().filter(|one| one["state"] == "in_use");
    assert_eq!(
        in_use.map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        expected[expected.len() - 1..],
        "{status}"
    );
    let flows = std::fs::read_to_string(kept(out.path()).join("flows.csv")).unwrap();
    assert_eq!(flows.lines().filter(|line| line.contains("completed")).count(), 2, "{flows}");
}
