use super::*;

#[test]
fn a_hosts_configuration_is_refused_at_its_key() {
    let text = "name = \"h\"\naddresses = [\"10.9.0.1\"]\n[[interface]]\nname = \"eth\"\nmac = \"02:00:00:00:00:01\"\n\
                [[role]]\nkind = \"apps/constant-rate\"\nto = \"10.0.0.1:9\"\nrate = 5\nsize = 100\nstart = \"0s\"\nstop = \"1s\"\n";
    assert!(host_config("h.toml", text).is_ok());
    for (from, to, says) in [
        ("rate = 5", "rate = 0", "h.toml, line 9, column 8: `role[0].rate`: must be 1 to 1000000"),
        ("start = \"0s\"", "start = 0", "h.toml, line 11, column 9: `role[0].start`: 0 has no unit"),
        (
            "rate = 5",
            "ratte = 5",
            "h.toml, line 9, column 9: `role[0].ratte`: unknown field `ratte`, did you mean `rate`?",
        ),
        ("10.9.0.1", "10.9", "h.toml, line 2, column 14: `addresses[0]`: not an IPv4 address"),
        ("02:00:00:00:00:01", "02", "h.toml, line 5, column 7: `interface[0].mac`: `02`: "),
        ("name = \"h\"", "nam = \"h\"", "h.toml, line 1, column 7: `nam`: unknown field `nam`"),
        (
            "[[role]]",
            "[[rolle]]",
            "h.toml, line 6, column 1: `rolle`: unknown field `rolle`, did you mean `role`?",
        ),
    ] {
        let refusal = host_config("h.toml", &text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(refusal.starts_with(says), "{refusal}");
    }
}

const DAEMON: &str = r#"name = "h"
addresses = ["10.9.0.1"]
[[interface]]
name = "eth0"
mac = "02:00:00:00:00:01"
address = "10.0.0.2/24"
[[interface]]
name = "eth1"
mac = "02:00:00:00:00:02"
address = "10.1.0.1/24"
[[route]]
to = "10.2.0.0/16"
interface = "eth0"
via = "10.0.0.1"
[[route]]
to = "0.0.0.0/0"
interface = "eth0"
via = "10.0.0.3"
[[role]]
kind = "mobile-ip/home-agent"
interface = "eth1"
address = "10.1.0.1/24"
mobile_nodes = []
[[role]]
kind = "mobile-ip/foreign-agent"
interface = "eth0"
address = "10.0.0.2/24"
[daemon]
control = "/run/h.sock"
clients = "/run/h-clients.sock"
store = "/var/h.store"
records = "/var/h.jsonl"
"#;

/// Wrong configurations: the text to replace, its replacement, the line of the error, and the begin of the message.
const WRONG: [(&str, &str, usize, &str); 24] = [
    ("name = \"h\"", "name = \"\"", 1, "`name`: the host needs a name"),
    ("eth1\"\nmac", "eth0\"\nmac", 8, "`interface[1].name`: `eth0` is the name of interface[0] already"),
    (
        "00:00:02",
        "00:00:01",
        9,
        "`interface[1].mac`: `02:00:00:00:00:01` is the link address of interface[0] already",
    ),
    (
        "02:00:00:00:00:02",
        "03:00:00:00:00:02",
        9,
        "`interface[1].mac`: `03:00:00:00:00:02` is not a unicast link address",
    ),
    (
        "02:00:00:00:00:02",
        "00:00:00:00:00:00",
        9,
        "`interface[1].mac`: `00:00:00:00:00:00` is not a unicast link address",
    ),
    ("02:00:00:00:00:02", "02:00", 9, "`interface[1].mac`: `02:00`: a link address consists of six"),
    ("\"eth1\"\nmac", "\"\"\nmac", 8, "`interface[1].name`: `` is not a device name; allowed: 1 to 15 bytes"),
    (
        "\"eth1\"\nmac",
        "\"eth1-is-too-long\"\nmac",
        8,
        "`interface[1].name`: `eth1-is-too-long` is not a device name",
    ),
    ("\"eth1\"\nmac", "\"e/th\"\nmac", 8, "`interface[1].name`: `e/th` is not a device name"),
    (
        "\"eth1\"\nmac",
        "\"lo\"\nmac",
        8,
        "`interface[1].name`: `lo` cannot be taken over; allowed: a device other",
    ),
    ("\"eth1\"\nmac", "\"wf-host\"\nmac", 8, "`interface[1].name`: `wf-host` cannot be taken over"),
    (
        "address = \"10.1.0.1/24\"\n[[",
        "address = \"10.1.0.1/24\"\nmtu = 67\n[[",
        11,
        "`interface[1].mtu`: 67 is too small; allowed: 68",
    ),
    (
        "10.0.0.2/24\"\n[[",
        "10.0.0.0/24\"\n[[",
        6,
        "`interface[0].address`: 10.0.0.0 is not a unicast host address in 10.0.0.0/24",
    ),
    (
        "10.0.0.2/24\"\n[[",
        "10.0.0.255/24\"\n[[",
        6,
        "`interface[0].address`: 10.0.0.255 is not a unicast host address",
    ),
    (
        "10.0.0.2/24\"\n[[",
        "10.0.0.2/33\"\n[[",
        6,
        "`interface[0].address`: `10.0.0.2/33`: an interface's address consists of",
    ),
    (
        "10.0.0.2/24\"\n[[",
        "10.1.0.1/16\"\n[[",
        10,
        "`interface[1].address`: interface[0] has this address already",
    ),
    (
        "[\"10.9.0.1\"]",
        "[\"10.9.0.1\", \"224.0.0.1\"]",
        2,
        "`addresses[1]`: 224.0.0.1 is not a unicast host address; allowed",
    ),
    ("[\"10.9.0.1\"]", "[\"10.9.0.1\", \"10.9.0.1\"]", 2, "`addresses[1]`: 10.9.0.1 is addresses[0] already"),
    (
        "\"eth0\"\nvia = \"10.0.0.3\"",
        "\"eth7\"\nvia = \"10.0.0.3\"",
        17,
        "`route[1].interface`: this host has no interface `eth7`",
    ),
    (
        "10.0.0.3",
        "10.0.0.2",
        18,
        "`route[1].via`: must be the address of a router, and not an address of this host",
    ),
    (
        "\"eth0\"\naddress = \"10.0.0.2/24\"\n[d",
        "\"eth7\"\naddress = \"10.0.0.2/24\"\n[d",
        26,
        "`role[1].interface`: this host has no interface `eth7`",
    ),
    ("\"/run/h.sock\"", "\"\"", 29, "`daemon.control`: the path is empty; give"),
    (
        "/run/h-clients.sock",
        "/run/h.sock",
        30,
        "`daemon.clients`: `daemon.control` has this path too; allowed",
    ),
    ("/var/h.jsonl", "/var//h.store", 32, "`daemon.records`: `daemon.store` has this path too; allowed"),
];

#[test]
fn whatever_is_wrong_with_a_daemons_configuration_has_its_key_and_its_line() {
    host_config("h.toml", DAEMON).unwrap();
    for (from, to, line, says) in WRONG {
        assert_eq!(DAEMON.matches(from).count(), 1, "{from}");
        let refusal = host_config("h.toml", &DAEMON.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            refusal.starts_with(&format!("h.toml, line {line}, column ")) && refusal.contains(says),
            "{refusal}"
        );
    }
    let long = DAEMON.replace("/run/h.sock", &format!("/run/{}", "x".repeat(103)));
    let refusal = host_config("h.toml", &long).unwrap_err().to_string();
    assert!(
        refusal.contains("line 29") && refusal.contains("`daemon.control`: 108 bytes are too long"),
        "{refusal}"
    );
}

#[test]
fn a_daemon_without_an_interface_or_without_a_word_is_refused() {
    let refusal =
        host_config("h.toml", "name = \"h\"\naddresses = [\"10.9.0.1\"]\n").unwrap_err().to_string();
    assert!(
        refusal.starts_with("h.toml: `interface`: there is none; allowed: one [[interface]] or more"),
        "{refusal}"
    );
    let refusal = host_config("h.toml", " \n").unwrap_err().to_string();
    assert_eq!(refusal, "h.toml: the file is empty; docs/node.md describes its content");
}

/// `wayfare node` accepts the configurations that the lab writes for the hosts of all built-in scenarios.
#[test]
fn the_hosts_of_all_scenarios_are_daemons() {
    for (name, text) in crate::file::BUILT_IN {
        let plan = crate::Scenario::plan(name, text, &[], 1).unwrap();
        for host in &plan.hosts {
            host_config("h.toml", &host.text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
