//! Attacks and malformed input from a host without keys, on a running daemon. The bytes come from scripts that use
//! only Python's standard library (`attacks/`), and share no code with Wayfare. A script prints a line for each
//! attack: what was counted, and whether the state that the daemon reports is unchanged. Some messages are authentic,
//! to show that a change would be seen.

use crate::common::*;
use os::{End, EndPlace, NetNs, Netlink};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use trace::Record;
use wire::Mac;

const LINKS: [(&str, &str, Mac, Mac); 2] = [
    ("visited", "air", Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 0x66])),
    ("up", "router", Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 9])),
];
/// The largest permitted growth of a daemon's resident memory during an attack.
const GROWTH_KB: u64 = 2048;

/// The daemon under attack: the addresses of its interfaces, the rest of its configuration, and the addresses of the
/// attacker's own kernel on the first link. Without addresses of its kernel, the attacker sends whole frames.
pub(crate) struct Case {
    pub(crate) addresses: [&'static str; 2],
    pub(crate) config: &'static str,
    pub(crate) attackers: &'static [Ipv4Addr],
    /// The limit of the daemon's descriptors (`ulimit -n`), if it is low.
    pub(crate) descriptors: Option<u32>,
}

/// Creates the daemon's namespace and the attacker's namespace, with two links between them.
pub(crate) fn joined(attackers: &[Ipv4Addr]) -> [NetNs; 2] {
    let [daemons, others] = [(); 2].map(|()| NetNs::create().unwrap());
    let quiet = || drop(os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
    daemons.run(quiet).unwrap();
    let set_up = || {
        quiet();
        let mut here = Netlink::open().unwrap();
        here.loopback_up().unwrap();
        for (theirs, ours, mac, our_mac) in LINKS {
            let near = End { name: ours, mac: our_mac, place: EndPlace::Here };
            here.add_veth(&near, &End { name: theirs, mac, place: EndPlace::Fd(daemons.as_fd()) }).unwrap();
            here.set_arp(ours, !attackers.is_empty()).unwrap();
            here.set_up(ours, true).unwrap();
        }
        for address in attackers {
            here.add_address(LINKS[0].1, *address, 24).unwrap();
        }
    };
    others.run(set_up).unwrap();
    [daemons, others]
}

/// A daemon that ends with its test. If the daemon must be killed, the record of its changes is removed.
struct Victim<'a> {
    child: Child,
    namespace: &'a NetNs,
}

impl Victim<'_> {
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        forget(self.namespace);
    }
}

impl Drop for Victim<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Runs a script against a daemon, and returns what the script printed. Asserts that the daemon ended cleanly. Without
/// a limit of descriptors, also asserts that the daemon still ran after the script, and that its memory has not grown
/// by more than [`GROWTH_KB`].
fn attacked(case: &Case, script: &str) -> String {
    let [daemons, others] = joined(case.attackers);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let interfaces = LINKS.iter().zip(case.addresses).map(|((name, _, mac, _), address)| {
        let address = if address.is_empty() { String::new() } else { format!(", address = \"{address}\"") };
        format!("{{ name = \"{name}\", mac = \"{mac}\"{address} }}")
    });
    let interfaces = interfaces.collect::<Vec<_>>().join(", ");
    let (control, store) = (at("daemon.sock"), at("store"));
    // Only a case with a limit of descriptors has records. In the other cases, records would take more memory with each
    // packet, and the growth of the memory is checked.
    let records = case.descriptors.map(|_| format!("records = \"{}\"", at("records").display()));
    let records = records.unwrap_or_default();
    let config = format!(
        "name = \"daemon\"\ninterface = [{interfaces}]\n{}\n[daemon]\ncontrol = \"{}\"\nstore = \"{}\"\n{records}\n",
        case.config,
        control.display(),
        store.display()
    );
    std::fs::write(at("daemon.toml"), config).unwrap();
    std::fs::set_permissions(at("daemon.toml"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut daemon = Command::new("sh");
    let limit = case.descriptors.map(|limit| format!("ulimit -n {limit} && ")).unwrap_or_default();
    daemon.args(["-c".to_owned(), format!("{limit}exec \"$0\" node \"$1\"")]).arg(wayfare());
    daemon.arg(at("daemon.toml")).stdin(Stdio::null()).stdout(Stdio::null());
    daemon.stderr(std::fs::File::create(at("stderr")).unwrap());
    let child = daemons.run(|| daemon.spawn()).unwrap().unwrap();
    let mut daemon = Victim { child, namespace: &daemons };
    wait_for("the daemon", || ask(&control, r#"{"do":{"verb":"status"}}"#));

    if case.config.contains("key = ") {
        let said = std::fs::read_to_string(at("stderr")).unwrap();
        assert!(said.contains("has keys, and other users can read or change it (mode 0644)"), "{said}");
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.child.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    }
    // Another program of the same host with the port of registrations gets no message for the home agent.
    let is_home_agent = case.config.contains("mobile-ip/home-agent");
    let second = is_home_agent.then(|| daemons.run(|| UdpSocket::bind("0.0.0.0:434").unwrap()).unwrap());
    let before = resident_kb(daemon.child.id());
    let mut attack = Command::new("python3");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linux/attacks/");
    // With `-B`, Python writes no compiled copy of `bench` beside the script.
    attack.args(["-B".to_owned(), format!("{folder}{script}")]).arg(&control);
    attack.args(LINKS.map(|(_, ours, ..)| ours)).stdin(Stdio::null());
    let output = others.run(|| attack.output()).unwrap().unwrap();
    if case.descriptors.is_some() {
        // A script that succeeds has ended the daemon itself.
        if !output.status.success() {
            daemon.kill();
        }
        let status = daemon.child.wait().unwrap();
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        let records = std::fs::read_to_string(at("records")).unwrap_or_default();
        let is_whole = records.ends_with('\n')
            && records.lines().all(|line| Record::from_line(trace::HostId(0), line).is_ok());
        assert!(status.success() && is_whole, "{status}: {} bytes of records", records.len());
        return text(&output.stdout);
    }
    let lives = daemon.child.try_wait().unwrap().is_none();
    let after = resident_kb(daemon.child.id());
    if lives {
        signal(daemon.child.id(), rustix::process::Signal::TERM);
    }
    let status = daemon.child.wait().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(lives && status.success(), "{status}");
    assert!(after <= before + GROWTH_KB, "from {before} to {after} kB");
    if let Some(second) = second {
        second.set_nonblocking(true).unwrap();
        assert!(second.recv(&mut [0; 8]).is_err(), "a message for the home agent");
    }
    text(&output.stdout)
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Runs a script against a daemon, and asserts that it prints these lines.
#[track_caller]
pub(crate) fn prints(case: &Case, script: &str, wanted: &[&str]) {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let printed = attacked(case, script);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines, wanted);
}

pub(crate) const FOREIGN_AGENT: Case = Case {
    addresses: ["10.3.0.1/24", "10.9.0.1/24"],
    config: r#"route = [{ to = "0.0.0.0/0", interface = "up", via = "10.9.0.2" }]
role = [{ kind = "mobile-ip/foreign-agent", interface = "visited", address = "10.3.0.1/24", pending_timeout = "60s" }]"#,
    attackers: &[],
    descriptors: None,
};

#[test]
fn nonsense_on_the_control_socket_changes_nothing() {
    prints(
        &FOREIGN_AGENT,
        "control.py",
        &[
            "empty error same",
            "words error same",
            "zeros error same",
            "not-utf-8 error same",
            "number error same",
            "unknown error same",
            "unknown-verb unknown same",
            "wrong-type error same",
            "begin-again error same",
            "begin-at-the-end-of-time error same",
            "deep error same",
            "long-verb unknown same",
            "endless given-up",
            "noise same",
        ],
    );
}

#[test]
fn frames_that_no_host_sends_end_with_a_reason() {
    let router =
        Case { addresses: ["10.3.0.1/16", "10.9.0.1/16"], config: "", attackers: &[], descriptors: None };
    prints(
        &router,
        "frames.py",
        &[
            "at-first 020000000009",
            "empty ip_truncated+1 same",
            "version ip_version+1 same",
            "header-length ip_total_length+1 same",
            "header-too-short ip_header_length+1 same",
            "length-beyond ip_truncated+1 same",
            "length-within ip_total_length+1 same",
            "checksum ip_checksum+1 same",
            "no-hops ttl_expired+1 same",
            "last-hop ttl_expired+1 same",
            "another-station other_station+1 same",
            "no-route no_route+1 same",
            "arp-short arp_truncated+1 same",
            "arp-conflict arp_conflict+1 same",
            "between 020000000009",
            "after-the-floods 020000000009",
        ],
    );
}

const SUPPORT_ROUTER: Case = Case {
    addresses: ["10.3.0.1/16", "10.9.0.1/24"],
    config: r#"role = [{ kind = "indirect-tcp/support-router", address = "10.3.0.1",
    hosts = [{ address = "10.3.0.7", key = "000102030405060708090a0b0c0d0e0f" }],
    routers = [{ address = "10.4.0.1", key = "101112131415161718191a1b1c1d1e1f" }] }]"#,
    attackers: &[Ipv4Addr::new(10, 3, 0, 7), Ipv4Addr::new(10, 3, 0, 66)],
    descriptors: None,
};

#[test]
fn a_support_router_holds_few_callers_and_none_for_long() {
    prints(
        &SUPPORT_ROUTER,
        "indirect_tcp.py",
        &[
            "wrong-key itcp_forged+1 same",
            "routers-key itcp_forged+1 same",
            "from-another itcp_misdirected+1 same",
            "to-another-router itcp_misdirected+1 same",
            "unknown-host itcp_stranger+1 same",
            "empty itcp_truncated+1 same",
            "magic itcp_magic+1 same",
            "version itcp_version+1 same",
            "unknown-type itcp_unknown_type+1 same",
            "truncated itcp_truncated+1 same",
            "trailing itcp_trailing+1 same",
            "lying-count itcp_too_many+1 same",
            "too-few-entries itcp_reserved+1 same",
            "a-pointer-of-unknown-router itcp_truncated+1 same",
            "a-reply-of-unknown-router itcp_unexpected+1 same",
            "call-magic itcp_magic+1 same",
            "call-forged itcp_forged+1 same",
            "call-from-another itcp_misdirected+1 same",
            "frame-too-long itcp_frame_length+1 same",
            "flood-held 16 prompt",
            "beside-the-flood nothing CHANGED",
            "flood-later 0",
            "flood-counted itcp_busy+184 itcp_silent+16",
            "replay nothing same",
            "older itcp_stale+1 same",
            "noise same",
        ],
    );
}

#[test]
fn a_flood_of_many_hosts_keeps_no_mobile_host_from_its_support_router() {
    prints(
        &SUPPORT_ROUTER,
        "indirect_tcp_many.py",
        &[
            "authentic nothing CHANGED",
            "greetings-of-many counted same",
            "forged-by-many counted same",
            "replayed-by-many counted same",
            "noise-of-many counted same",
            "icmp-errors-of-many same",
            "icmp-errors-about-calls same",
            "calls-of-many same",
            "a-call-behind-them itcp_magic+1 same",
            "the-host-in-the-flood True",
        ],
    );
}

#[test]
fn a_host_in_a_cell_moves_no_other_host() {
    const GATEWAY: Case = Case {
        addresses: ["", "10.9.0.1/24"],
        config: r#"role = [{ kind = "cellular-ip/gateway", id = 1, gateway = "10.9.0.1", radio = "visited",
    network_key = "000102030405060708090a0b0c0d0e0f", uplink = { interface = "up", mac = "02:00:00:00:00:09" } }]"#,
        attackers: &[],
        descriptors: None,
    };
    prints(
        &GATEWAY,
        "cellular_ip.py",
        &[
            "authentic nothing CHANGED",
            "after-the-authentic 020000000007",
            "replay stale_timestamp+1 same",
            "older stale_timestamp+1 same",
            "out-of-window stale_timestamp+1 same",
            "ahead-of-window outside_window+1 same",
            "wrong-key bad_auth+1 same",
            "digest bad_auth+1 same",
            "other-station wrong_serving_bs+1 same",
            "other-gateway wrong_gateway+1 same",
            "other-generation unknown_key_generation+1 same",
            "gateways-own-address bad_source+1 same",
            "nowhere bad_source+1 same",
            "semisoft-by-another bad_auth+1 same",
            "indirect cip_indirect+1 same",
            "unused-flag cip_unused_flags+1 same",
            "other-authentication cip_atype_md5+1 same",
            "unknown-information cip_unknown_tlv+1 same",
            "overrun cip_tlv_overrun+1 same",
            "truncated cip_short+1 same",
            "unknown-code cip_not_route_update+1 same",
            "from-above wrong_direction+1 same",
            "data-of-another uplink_mismatch+1 same",
            "data-of-unknown-host uplink_no_mapping+1 same",
            "flood limited 3000 same",
            "noise same",
            "authentic-again nothing same",
            "forged-by-many counted same",
            "replayed-by-many counted same",
            "forged-for-many counted same",
            "data-of-many counted same",
            "icmp-errors-of-many same",
            "data-for-many counted same",
            "after-all-attacks 020000000007",
            "authentic-elsewhere nothing same",
            "after-the-host-moved 020000000009",
            "a-move-in-the-flood True",
        ],
    );
}

#[test]
fn a_host_in_the_cell_of_a_base_station_moves_no_other_host() {
    const STATION: Case = Case {
        addresses: ["", ""],
        config: r#"role = [{ kind = "cellular-ip/station", id = 2, gateway = "10.9.0.1", radio = "visited",
    network_key = "000102030405060708090a0b0c0d0e0f", uplink = { interface = "up", mac = "02:00:00:00:00:09" } }]"#,
        attackers: &[],
        descriptors: None,
    };
    prints(
        &STATION,
        "cellular_ip_station.py",
        &[
            "authentic nothing CHANGED",
            "after-the-authentic 020000000007",
            "replay stale_timestamp+1 same",
            "older stale_timestamp+1 same",
            "out-of-window stale_timestamp+1 same",
            "wrong-key bad_auth+1 same",
            "other-station wrong_serving_bs+1 same",
            "other-gateway wrong_gateway+1 same",
            "from-above wrong_direction+1 same",
            "data-of-another uplink_mismatch+1 same",
            "data-of-the-host 1",
            "forged-by-many counted same",
            "replayed-by-many counted same",
            "forged-for-many counted same",
            "data-of-many counted same",
            "data-for-many counted same",
            "icmp-errors-of-many same",
            "after-the-floods 020000000007",
            "authentic-elsewhere nothing same",
            "after-the-host-moved 020000000009",
            "a-move-in-the-flood True",
        ],
    );
}

#[test]
fn a_location_manager_moves_nobody_without_the_key() {
    const MANAGER: Case = Case {
        addresses: ["10.3.0.1/16", "10.9.0.1/24"],
        config: r#"role = [{ kind = "sigma/location-manager", address = "10.3.0.1", zone = "sigma.example",
    mobile_nodes = [{ name = "mn.sigma.example", key = "000102030405060708090a0b0c0d0e0f" }] }]"#,
        attackers: &[Ipv4Addr::new(10, 3, 0, 66)],
        descriptors: None,
    };
    prints(
        &MANAGER,
        "location_manager.py",
        &[
            "authentic NOERROR+1 CHANGED",
            "replay NOERROR+1 same",
            "unsigned REFUSED+1 same",
            "wrong-key BADSIG+1 same",
            "unknown-key BADKEY+1 same",
            "unknown-algorithm BADKEY+1 same",
            "cut-short BADTRUNC+1 same",
            "an-hour-old BADTIME+1 same",
            "an-hour-ahead BADTIME+1 same",
            "name-of-another REFUSED+1 same",
            "zone-of-another NOTAUTH+1 same",
            "changed BADSIG+1 same",
            "short unreadable+1 same",
            "an-answer unasked answer+1 same",
            "loop-of-names FORMERR+1 same",
            "lying-counts FORMERR+1 same",
            "noise same",
            "questions-of-many counted same",
            "unsigned-of-many counted same",
            "forged-of-many counted same",
            "replayed-by-many counted same",
            "short-of-many counted same",
            "icmp-errors-of-many same",
            "a-signed-update-in-the-flood True",
        ],
    );
}

#[test]
fn an_association_is_ended_and_changed_by_its_peer_alone() {
    const CORRESPONDENT: Case = Case {
        addresses: ["10.3.0.1/16", "10.9.0.1/16"],
        config: r#"role = [{ kind = "sigma/correspondent", address = "10.3.0.1" },
    { kind = "apps/request-server", at = "10.3.0.1:9000", transport = "sctp" }]"#,
        attackers: &[Ipv4Addr::new(10, 3, 0, 7), Ipv4Addr::new(10, 3, 0, 66)],
        descriptors: None,
    };
    prints(
        &CORRESPONDENT,
        "sctp.py",
        &[
            "handshake nothing CHANGED",
            "abort-wrong-tag sctp_tag+1 same",
            "abort-own-tag-without-t sctp_tag+1 same",
            "abort-t-bit sctp_tag+1 same",
            "shutdown-wrong-tag sctp_tag+1 same",
            "shutdown-complete-wrong-tag sctp_tag+1 same",
            "wrong-checksum sctp_checksum+1 same",
            "from-another-address sctp_no_association+1 same",
            "asconf-without-auth sctp_unauthenticated+1 same",
            "asconf-forged sctp_auth_code+1 same",
            "forged-cookie sctp_cookie_forged+1 same",
            "short-cookie sctp_cookie_truncated+1 same",
            "cookie-repeated nothing same",
            "init-repeated nothing same",
            "init-with-tag sctp_init_tag+1 same",
            "init-without-tag sctp_init_refused+1 same",
            "init-short sctp_init_truncated+1 same",
            "init-with-another sctp_not_alone+1 same",
            "data-of-nothing sctp_data_truncated+1 same",
            "lying-length sctp_chunk_overrun+1 same",
            "length-zero sctp_chunk_length+1 same",
            "no-chunk sctp_no_chunk+1 same",
            "truncated sctp_truncated+1 same",
            "no-association sctp_no_association+1 same",
            "floods same",
            "openings-of-many same",
            "forged-cookies-of-many counted same",
            "aborts-of-many counted same",
            "icmp-errors-of-many counted same",
            "icmp-errors-about-it counted same",
            "a-newcomer-in-the-flood True",
            "alive answered",
            "abort nothing CHANGED",
        ],
    );
}

#[test]
fn silent_calls_leave_descriptors_for_the_daemon() {
    const CALLERS: [Ipv4Addr; 8] = {
        let mut callers = [Ipv4Addr::UNSPECIFIED; 8];
        let mut number = 0;
        while number < 8 {
            callers[number] = Ipv4Addr::new(10, 3, 0, 11 + number as u8);
            number += 1;
        }
        callers
    };
    const SERVER: Case = Case {
        addresses: ["10.3.0.1/24", "10.9.0.1/24"],
        config: r#"role = [{ kind = "apps/request-server", at = "10.3.0.1:9000" }]"#,
        attackers: &CALLERS,
        descriptors: Some(128),
    };
    prints(
        &SERVER,
        "silent_calls.py",
        &[
            "answers promptly",
            "processor free",
            "descriptors left",
            "one-address limited",
            "afterwards same",
            "answers 8 bytes",
        ],
    );
}
