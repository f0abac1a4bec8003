//! A mobile node that is away, with a path of plain kernels: the correspondent and the router between the agents run no
//! code of Wayfare.
//!
//! ```text
//!   correspondent ── router ──── home (home agent) ── home network
//!     (kernel)      (kernel) ─┐
//!                   1492 bytes └─ foreign (foreign agent) ── mobile (mobile node, and the host's kernel behind it)
//! ```

use super::{KEY, PYTHON, Program, Stage, have, mac};
use crate::common::*;
use std::io::Read;
use std::net::Ipv4Addr;
use wire::Prefix;

const NODE: &str = "10.1.0.7";
const CORRESPONDENT: &str = "10.0.0.9";

fn need_kernel_tools() -> bool {
    let programs: [&[&str]; 4] = [&["ping", "-V"], &["iptables", "-V"], &["iperf3", "-v"], &[PYTHON, "-V"]];
    need("root, iptables, iperf3 and ping (iputils-ping)", have(&programs))
}

/// Returns the stage of this file, with the mobile node registered.
pub(super) fn away() -> Stage {
    let mut stage = Stage::new(&["correspondent", "router", "home", "lan", "foreign", "mobile"]);
    stage.join(("correspondent", "eth0", 0x11), ("router", "a", 0x12), 1500);
    stage.join(("router", "b", 0x13), ("home", "up", 3), 1500);
    stage.join(("router", "c", 0x14), ("foreign", "up", 2), 1492);
    stage.join(("home", "lan", 4), ("lan", "eth0", 0x15), 1500);
    stage.join(("foreign", "cell", 1), ("mobile", "cell", 7), 1500);
    let at = Ipv4Addr::from_octets;
    stage.address("correspondent", "eth0", at([10, 0, 0, 9]));
    for (net, interface) in [(0, "a"), (1, "b"), (2, "c")] {
        stage.address("router", interface, at([10, 0, net, 1]));
    }
    stage.route("correspondent", Prefix::ANY, "eth0", at([10, 0, 0, 1]));
    for (net, interface, via) in [(1, "b", 1), (3, "c", 2)] {
        stage.route("router", Prefix::new(at([10, net, 0, 0]), 24), interface, at([10, 0, via, 2]));
    }
    stage.hosts["router"].run(|| os::namespace::sysctl("net/ipv4/ip_forward", "1").unwrap()).unwrap();
    stage.start(
        "home",
        &format!(
            "interface = [\n\
             {{ name = \"lan\", mac = \"{}\", address = \"10.1.0.1/24\" }},\n\
             {{ name = \"up\", mac = \"{}\", address = \"10.0.1.2/24\" }},\n]\n\
             route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.0.1.1\" }}]\n\
             role = [{{ kind = \"mobile-ip/home-agent\", interface = \"lan\", address = \"10.1.0.1/24\", \
             mobile_nodes = [{{ address = \"{NODE}\", spi = 256, key = \"{KEY}\" }}] }}]",
            mac(4),
            mac(3)
        ),
    );
    stage.start(
        "foreign",
        &format!(
            "interface = [\n\
             {{ name = \"cell\", mac = \"{}\", address = \"10.3.0.1/24\" }},\n\
             {{ name = \"up\", mac = \"{}\", address = \"10.0.2.2/24\", mtu = 1492 }},\n]\n\
             route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.0.2.1\" }}]\n\
             role = [{{ kind = \"mobile-ip/foreign-agent\", interface = \"cell\", address = \"10.3.0.1/24\" }}]",
            mac(1),
            mac(2)
        ),
    );
    stage.start(
        "mobile",
        &format!(
            "addresses = [\"{NODE}\"]\n\
             interface = [{{ name = \"cell\", mac = \"{}\", address = \"{NODE}/24\" }}]\n\
             role = [{{ kind = \"mobile-ip/mobile-node\", address = \"{NODE}/24\", interface = \"cell\", \
             home_agent = {{ address = \"10.1.0.1\", spi = 256, key = \"{KEY}\" }} }}]",
            mac(7)
        ),
    );
    stage.wait_state("mobile", "mobile_node", "registered");
    stage
}

/// Runs `ping` at the correspondent. Returns its output, and how many answers it got.
fn ping(stage: &Stage, words: &[&str]) -> (String, usize) {
    let all = [&["ping", "-n", "-i", "0.2", "-W", "2"], words, &[NODE]].concat();
    let output = stage.run("correspondent", &all);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    let answers = said.lines().filter(|line| line.contains(" bytes from ")).count();
    (said, answers)
}

/// The size of the payload of an echo in an IP packet of this size.
fn echo_of(packet: usize) -> String {
    (packet - 28).to_string()
}

#[test]
fn a_kernel_pings_a_mobile_node_with_packets_larger_than_its_path() {
    if !need_kernel_tools() {
        return;
    }
    let _turn = beside_others();
    let mut stage = away();

    // Without DF: the home agent cuts each packet, and all arrive.
    let (said, answers) = ping(&stage, &["-c", "10", "-M", "dont", "-s", &echo_of(1500)]);
    assert_eq!(answers, 10, "{said}");

    // With DF: the tunnel takes 1480 bytes, and the path behind it 1472. Each size is learned from the home agent.
    for (size, mtu) in [(1500, 1480), (1480, 1472)] {
        let (said, answers) = ping(&stage, &["-c", "3", "-M", "do", "-s", &echo_of(size)]);
        assert!(answers == 0 && said.contains(&format!("mtu = {mtu}")), "{size}: {said}");
    }
    let (said, answers) = ping(&stage, &["-c", "5", "-M", "do", "-s", &echo_of(1472)]);
    assert_eq!(answers, 5, "{said}");

    // The kernel of the correspondent cuts the packets itself to what it has learned.
    let (said, answers) = ping(&stage, &["-c", "5", "-M", "want", "-s", &echo_of(1500)]);
    assert_eq!(answers, 5, "{said}");
    stage.output("correspondent", &["ip", "route", "flush", "cache"]);
    let (said, answers) = ping(&stage, &["-c", "8", "-M", "want", "-s", &echo_of(1500)]);
    assert!(answers >= 6, "{said}");
    stage.stop("mobile");
    let records = std::fs::read_to_string(stage.at("mobile.records")).unwrap();
    assert!(records.contains("reassembled"), "the mobile node joins fragments");
}

/// Sets the time to live of packets at the router.
fn ttl_rule(stage: &Stage, words: &[&str]) {
    stage.output("router", &["iptables", "-t", "mangle", "-F"]);
    stage.output("router", &[&["iptables", "-t", "mangle"], words].concat());
}

#[test]
fn the_time_to_live_counts_the_hops_of_the_inner_packet() {
    if !need_kernel_tools() {
        return;
    }
    let _turn = beside_others();
    let stage = away();
    // The router, the home agent and the foreign agent are three hops. An answer passes the foreign agent and the router.
    let (said, answers) = ping(&stage, &["-c", "2", "-t", "4"]);
    assert!(answers == 2 && said.contains("ttl=62"), "{said}");
    for (ttl, from) in [("1", "10.0.0.1"), ("2", "10.0.1.2")] {
        let (said, answers) = ping(&stage, &["-c", "1", "-t", ttl]);
        assert!(answers == 0 && said.contains(&format!("From {from} ")), "{ttl}: {said}");
        assert!(said.contains("Time to live exceeded"), "{ttl}: {said}");
    }
    // The packet leaves the tunnel with a time to live of 1, so the foreign agent cannot forward it.
    let (said, answers) = ping(&stage, &["-c", "1", "-t", "3"]);
    assert!(answers == 0 && said.contains("Time to live exceeded"), "{said}");

    // The outer header of a packet arrives with 1: it is at its destination.
    ttl_rule(&stage, &["-A", "FORWARD", "-p", "4", "-j", "TTL", "--ttl-set", "1"]);
    let (said, answers) = ping(&stage, &["-c", "2"]);
    assert!(answers == 2 && said.contains("ttl=62"), "{said}");
    // It is decremented on the path, which does not change the inner packet.
    ttl_rule(&stage, &["-A", "FORWARD", "-p", "4", "-j", "TTL", "--ttl-dec", "40"]);
    let (said, answers) = ping(&stage, &["-c", "2", "-t", "4"]);
    assert!(answers == 2 && said.contains("ttl=62"), "{said}");
    // A packet reaches the home agent with 1, which is too little to forward it.
    ttl_rule(&stage, &["-A", "FORWARD", "-d", NODE, "-j", "TTL", "--ttl-set", "1"]);
    let (said, answers) = ping(&stage, &["-c", "2"]);
    assert!(
        answers == 0 && said.contains("From 10.0.1.2 ") && said.contains("Time to live exceeded"),
        "{said}"
    );
    // The outer packet does not survive the router. For the sender, the host is unreachable (RFC 2003, section 4.4).
    ttl_rule(&stage, &["-A", "PREROUTING", "-p", "4", "-j", "TTL", "--ttl-set", "1"]);
    let (said, answers) = ping(&stage, &["-c", "3"]);
    assert!(answers == 0 && said.contains("Destination Host Unreachable"), "{said}");
}

/// Starts the script `bytes.py` as a server, and waits until it listens.
fn serve(stage: &Stage, host: &str, transport: &str, address: &str, count: &str) -> Program {
    let file = format!("{}/bytes.py", super::FOLDER);
    let mut server = stage.spawn(host, &[PYTHON, "-B", &file, "serve", transport, address, "9000", count]);
    let mut ready = [0; 6];
    server.0.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    server
}

/// Datagrams of 1500 bytes without DF, at 333 per second, in each direction.
#[test]
fn datagrams_of_1500_bytes_without_df_arrive_whole() {
    if !need_kernel_tools() {
        return;
    }
    let _turn = beside_others();
    let stage = away();
    for (to, address, from) in [("mobile", NODE, "correspondent"), ("correspondent", CORRESPONDENT, "mobile")]
    {
        let server = serve(&stage, to, "udp", address, "600");
        stage.script(from, "bytes.py", &["send", "udp", address, "9000", "600"]);
        assert_eq!(server.end(), format!("600 datagrams, {} bytes, 0 wrong\n", 600 * 1472), "to {to}");
    }
    assert_eq!(stage.drops("home", "too_big") + stage.drops("foreign", "too_big"), 0);
}

/// TCP of two kernels over the tunnel. Each direction ends, and each byte arrives.
#[test]
fn tcp_of_kernels_ends_with_each_byte_in_both_directions() {
    if !need_kernel_tools() {
        return;
    }
    let _turn = beside_few();
    let stage = away();
    let count = "3000000";
    let server = serve(&stage, "mobile", "tcp", NODE, count);
    let said = stage.script("correspondent", "bytes.py", &["send", "tcp", NODE, "9000", count]);
    assert_eq!(said, [format!("{count} bytes, right")]);
    assert_eq!(server.end(), format!("{count} bytes, right\n"));

    for direction in [&[][..], &["-R"]] {
        let server = stage.spawn("mobile", &["iperf3", "-s", "-1", "-B", NODE]);
        let words = [&["iperf3", "-c", NODE, "-n", "8M", "-w", "64K", "-J"], direction].concat();
        // The server may not listen yet. With `-J`, the client then succeeds, and reports the error.
        let report = wait_for("a report of iperf3", || {
            let output = stage.run("correspondent", &words);
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            report["error"].is_null().then_some(report)
        });
        let [sent, received] =
            ["sum_sent", "sum_received"].map(|sum| report["end"][sum]["bytes"].as_u64().unwrap());
        // The receiver of iperf3 may end before it has read the bytes that are in the buffers of the sockets.
        assert!(
            sent >= 8 << 20 && received * 10 >= sent * 9,
            "{direction:?}: {sent} sent, {received} received"
        );
        eprintln!("iperf3 {direction:?}: {sent} bytes sent, {received} received");
        server.end();
    }
}
