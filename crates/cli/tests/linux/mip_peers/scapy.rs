//! Hosts of scapy beside daemons: agents for our mobile node, a home agent for our foreign agent, and a mobile node for
//! our agents. Their authenticators are made and checked by Python. Each frame of a test is kept in a capture, and read by
//! three decoders.
//!
//! ```text
//!   agents.py       mobile node ── scapy: a foreign agent and a home agent
//!   home_agent.py   mobile node ── foreign agent ── scapy: a home agent
//!   mobile.py       scapy: a mobile node ── foreign agent ── the kernel: a router ── home agent ── scapy: a correspondent
//! ```

use super::three_decoders::assert_same;
use super::{KEY, PYTHON, Program, Stage, have, mac, need_peers};
use crate::common::*;
use serde_json::Value;
use std::net::Ipv4Addr;
use wire::Prefix;

/// The keys between the agents, and between the foreign agent and its visitor.
const AGENT_KEY: &str = "101112131415161718191a1b1c1d1e1f";
const VISITOR_KEY: &str = "202122232425262728292a2b2c2d2e2f";

fn can_test() -> bool {
    need_peers(have(&[&["tshark", "--version"], &[PYTHON, "-c", "import scapy"]]))
}

fn mobile_node(algorithm: &str, more: &str) -> String {
    format!(
        "addresses = [\"10.1.0.7\"]\n\
         interface = [{{ name = \"cell\", mac = \"{}\", address = \"10.1.0.7/24\" }}]\n\
         role = [{{ kind = \"mobile-ip/mobile-node\", address = \"10.1.0.7/24\", interface = \"cell\", \
         home_agent = {{ address = \"10.1.0.1\", spi = 256, key = \"{KEY}\", algorithm = \"{algorithm}\" }}{more} }}]",
        mac(7)
    )
}

fn foreign_agent(more: &str) -> String {
    format!(
        "interface = [\n\
         {{ name = \"cell\", mac = \"{}\", address = \"10.3.0.1/24\" }},\n\
         {{ name = \"up\", mac = \"{}\", address = \"10.9.0.1/24\" }},\n]\n\
         route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.9.0.2\" }}]\n\
         role = [{{ kind = \"mobile-ip/foreign-agent\", interface = \"cell\", address = \"10.3.0.1/24\"{more} }}]",
        mac(1),
        mac(2)
    )
}

fn a_mobile_node_with(algorithm: &str) {
    if !can_test() {
        return;
    }
    let _turn = beside_others();
    let mut stage = Stage::new(&["mobile", "agents"]);
    stage.join(("mobile", "cell", 7), ("agents", "eth0", 0x66), 1500);
    stage.silence("agents", "eth0");
    stage.start("mobile", &mobile_node(algorithm, ""));
    let (control, capture) = (stage.control("mobile"), stage.at("capture.pcap"));
    let said = stage.script(
        "agents",
        "agents.py",
        &[control.to_str().unwrap(), "eth0", capture.to_str().unwrap(), algorithm],
    );
    assert_eq!(
        said,
        [
            "solicitation to 224.0.0.2",
            "forged reply: no effect",
            "registered after code 133",
            "the kernel of the mobile node answers an echo",
            "registered again after a restart of the agent",
            "deregistered at home",
        ]
    );
    assert!(assert_same(&capture).len() >= 15);
    stage.stop("mobile");
}

#[test]
fn a_mobile_node_obeys_agents_of_scapy() {
    a_mobile_node_with("hmac-sha256");
}

#[test]
fn a_mobile_node_obeys_agents_of_scapy_with_the_algorithm_of_rfc_5944() {
    a_mobile_node_with("hmac-md5");
}

#[test]
fn a_mobile_node_obeys_agents_of_scapy_with_the_algorithm_of_rfc_2002() {
    a_mobile_node_with("keyed-md5-without-spi");
}

#[test]
fn a_foreign_agent_relays_to_a_home_agent_of_scapy() {
    if !can_test() {
        return;
    }
    let _turn = beside_others();
    let mut stage = Stage::new(&["mobile", "foreign", "home"]);
    stage.join(("mobile", "cell", 7), ("foreign", "cell", 1), 1500);
    stage.join(("foreign", "up", 2), ("home", "eth0", 0x66), 1500);
    stage.silence("home", "eth0");
    let agents = format!(
        ", reverse_tunnel = \"required\", challenge = true, \
         mobile_nodes = [{{ address = \"10.1.0.7\", spi = 4294967294, key = \"{VISITOR_KEY}\" }}], \
         home_agents = [{{ address = \"10.1.0.1\", spi = 4000, key = \"{AGENT_KEY}\" }}]"
    );
    let visitors = format!(
        ", reverse_tunnel = \"direct\", \
         foreign_agents = [{{ address = \"10.3.0.1\", spi = 4294967294, key = \"{VISITOR_KEY}\" }}]"
    );
    let captures = ["foreign", "mobile"].map(|host| stage.capture(host, "cell", &format!("{host}.pcapng")));
    stage.start("foreign", &foreign_agent(&agents));
    stage.start("mobile", &mobile_node("hmac-sha256", &visitors));
    let (control, capture) = (stage.control("mobile"), stage.at("capture.pcap"));
    let said = stage.script(
        "home",
        "home_agent.py",
        &[control.to_str().unwrap(), "eth0", capture.to_str().unwrap()],
    );
    assert_eq!(
        said,
        [
            "forged Foreign-Home Authentication: {'68': 1}",
            "registered: {'0': 1, '68': 1, '130': 1}",
            "an echo through the tunnel and the reverse tunnel; time to live 63",
            "a packet to another host: no answer",
        ]
    );
    assert!(assert_same(&capture).len() >= 6);
    captures.into_iter().for_each(Program::interrupt);
    // On the visited link, the messages also have a challenge and the Mobile-Foreign Authentication.
    for (host, kind, wanted) in
        [("foreign", 1, &[32, 132, 33][..]), ("mobile", 3, &[32, 132, 33]), ("mobile", 9, &[16, 19, 24])]
    {
        let read = assert_same(&stage.at(&format!("{host}.pcapng")));
        let is_one = |row: &&Value| row["type"] == kind && row["extensions"] == serde_json::json!(wanted);
        assert!(read.iter().filter(is_one).count() >= 2, "{host}: {read:?}");
    }
    let visitor = &stage.status("foreign")["foreign_agent"]["visitors"]["10.1.0.7"][0];
    assert_eq!(
        (&visitor["spi"], &visitor["home_agent_spi"]),
        (&4_294_967_294_u32.into(), &4000.into()),
        "{visitor}"
    );
    assert_eq!(stage.drops("foreign", "not_a_visitor"), 1);
    stage.stop("mobile");
    stage.stop("foreign");
}

/// What `mobile.py` prints.
const SERVED: [&str; 18] = [
    "advertisement of 10.3.0.1: code 0 ttl 1 lifetime 3 flags 145 registration_lifetime 3600 \
             care_of ['10.3.0.1'] extensions [16, 19] prefixes [24]",
    "advertisement of 10.1.0.1: code 0 ttl 1 lifetime 3 flags 33 registration_lifetime 3600 \
             care_of [] extensions [16, 19] prefixes [24]",
    "accepted: code 0 lifetime 300",
    "a packet through the tunnel: outer 64 inner 63 arrived 62",
    "too long: code 69 lifetime 3600",
    "another care-of address: code 77 lifetime 300",
    "minimal encapsulation: code 72 lifetime 300",
    "a reserved flag: code 70 lifetime 300",
    "a wrong key: code 131 lifetime 300",
    "a clock that is an hour slow: code 133 lifetime 300",
    "hmac-sha256: code 0 lifetime 300",
    "hmac-md5: code 0 lifetime 300",
    "keyed-md5: code 0 lifetime 300",
    "keyed-md5-without-spi: code 0 lifetime 300",
    "with a reverse tunnel: code 0 lifetime 300",
    "a packet through the reverse tunnel: outer 64 inner 63 arrived 62",
    "deregistration: code 0 lifetime 0",
    "ARP after it: no answer",
];

/// Returns both agents, a router of the kernel between them, and links for a mobile node and a correspondent of scapy.
fn agents_between_scapy() -> Stage {
    let mut stage = Stage::new(&["peer", "foreign", "home"]);
    stage.join(("foreign", "cell", 1), ("peer", "cell", 0x66), 1500);
    stage.join(("foreign", "up", 2), ("peer", "fa", 0x67), 1500);
    stage.join(("home", "up", 3), ("peer", "ha", 0x68), 1500);
    stage.join(("home", "lan", 4), ("peer", "lan", 0x69), 1500);
    for interface in ["cell", "lan"] {
        stage.silence("peer", interface);
    }
    for (interface, net, last) in [("fa", 9, 2), ("ha", 8, 2)] {
        stage.address("peer", interface, Ipv4Addr::new(10, net, 0, last));
    }
    for (net, interface, via) in [(1, "ha", 8), (3, "fa", 9)] {
        let to = Prefix::new(Ipv4Addr::new(10, net, 0, 0), 24);
        stage.route("peer", to, interface, Ipv4Addr::new(10, via, 0, 1));
    }
    stage.hosts["peer"].run(|| os::namespace::sysctl("net/ipv4/ip_forward", "1").unwrap()).unwrap();
    stage.start("foreign", &foreign_agent(", reverse_tunnel = \"offered\""));
    let node = |last: u8, algorithm: &str| {
        format!("{{ address = \"10.1.0.{last}\", spi = 256, key = \"{KEY}\", algorithm = \"{algorithm}\" }}")
    };
    let nodes = [(7, "hmac-sha256"), (8, "hmac-md5"), (9, "keyed-md5"), (10, "keyed-md5-without-spi")];
    let nodes = nodes.map(|(last, algorithm)| node(last, algorithm)).join(", ");
    stage.start(
        "home",
        &format!(
            "interface = [\n\
             {{ name = \"lan\", mac = \"{}\", address = \"10.1.0.1/24\" }},\n\
             {{ name = \"up\", mac = \"{}\", address = \"10.8.0.1/24\" }},\n]\n\
             route = [{{ to = \"0.0.0.0/0\", interface = \"up\", via = \"10.8.0.2\" }}]\n\
             role = [{{ kind = \"mobile-ip/home-agent\", interface = \"lan\", address = \"10.1.0.1/24\", \
             reverse_tunnel = \"offered\", mobile_nodes = [{nodes}] }}]",
            mac(4),
            mac(3)
        ),
    );
    stage
}

#[test]
fn agents_serve_a_mobile_node_of_scapy() {
    if !can_test() {
        return;
    }
    let _turn = beside_others();
    let mut stage = agents_between_scapy();
    let capture = stage.at("capture.pcap");
    let said = stage.script("peer", "mobile.py", &["cell", "lan", "fa", "ha", capture.to_str().unwrap()]);
    assert_eq!(said, SERVED);
    assert!(assert_same(&capture).len() >= 40);
    let status = stage.status("home");
    let bindings = status["home_agent"]["bindings"].as_object().unwrap();
    assert_eq!(bindings.keys().collect::<Vec<_>>(), ["10.1.0.8", "10.1.0.9", "10.1.0.10"]);
    for host in ["foreign", "home"] {
        stage.stop(host);
    }
}
