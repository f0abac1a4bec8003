//! `wayfare ctl` with daemons outside a lab.

use crate::beside_kernels::Between;
use crate::common::*;
use serde_json::Value;
use std::path::Path;

/// Returns the output of `wayfare ctl` with these arguments; it must end with this status.
fn ctl(words: &[&str], status: i32) -> String {
    let words = [&["ctl"], words].concat();
    let output = run(&words, Path::new("/"));
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{words:?}: {all}");
    all
}

#[test]
fn a_daemon_is_found_by_its_socket_its_configuration_and_its_name() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let between = Between::start();
    let (socket, config) = (between.control(), between.config());
    for host in [socket.to_str().unwrap(), config.to_str().unwrap()] {
        let said = ctl(&[host, "status"], 0);
        assert!(said.contains("drops") && said.contains("clock\n  ahead_ms  0\n"), "{said}");
    }
    let by_name = ctl(&[&between.name, "status"], 0);
    assert!(by_name.contains("drops"), "{by_name}");
    let json = ctl(&[socket.to_str().unwrap(), "status", "--format", "json"], 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["clock"]["unix_s"].as_i64().is_some_and(|at| at > 1_700_000_000), "{json}");
}

#[test]
fn a_wrong_request_is_refused_with_what_is_allowed() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let between = Between::start();
    let socket = between.control();
    let socket = socket.to_str().unwrap();
    for (words, says) in [
        (
            &[socket, "bindings"][..],
            "no role has bindings; allowed: a host with a home agent. Its roles: none",
        ),
        (&[socket, "visitors"], "allowed: a host with a foreign agent"),
        (&[socket, "register", "10.0.0.1"], "no role of this host has the command `register`; known: status"),
        (&[socket, "handoff", "b2"], "no role of this host has the command `handoff`; known: status"),
        (&[socket, "handoff", "b2", "--semisoft"], "has the command `handoff`"),
        (&[socket, "dance"], "status|bindings|visitors|register [AGENT]|deregister|handoff TO"),
        (&["no-such-host", "status"], "no daemon of this user runs for `no-such-host`; running: "),
    ] {
        let said = ctl(words, 2);
        assert!(said.contains(says), "{words:?}: {said}");
    }
    let said = ctl(&["/no/such.sock", "status"], 3);
    assert!(said.contains("/no/such.sock: cannot connect to the daemon's control socket: "), "{said}");
}

/// A mobile node of a lab that obeys its operator: it moves, registers, and ends its registration.
#[test]
fn an_operator_moves_a_mobile_node_and_its_agents_show_it() {
    let _turn = beside_few();
    let out = tempfile::tempdir().unwrap();
    let lab = Running::start(
        &[
            "run",
            "mobile-ip/download",
            "--on",
            "linux",
            "--set",
            "duration=20s",
            "--set",
            "roam.moves=[]",
            "--set",
            "host.mobile.clock={offset=\"+60min\"}",
        ],
        out.path(),
    );
    let config = command_line(lab.daemon("mobile"))[2].clone();
    let socket = |host: &str| Path::new(&config).with_file_name(format!("{host}.sock"));
    let ctl = |host: &str, words: &[&str]| {
        let socket = socket(host);
        let output = run(&[&["ctl", socket.to_str().unwrap()], words].concat(), Path::new("/"));
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    let state = |wanted: &str| {
        wait_for(&format!("the state `{wanted}`"), || {
            let (code, said) = ctl("mobile", &["status"]);
            let is_there = |line: &str| line.split_whitespace().eq(["state", wanted]);
            (code == Some(0) && said.lines().any(is_there)).then_some(said)
        })
    };
    state("home");
    assert_eq!(ctl("home", &["bindings"]), (Some(0), "0 bindings\n".to_owned()));

    assert_eq!(ctl("mobile", &["handoff", "foreign"]).0, Some(0));
    let said = state("registered");
    assert!(said.contains("ahead_ms  3600000"), "{said}");
    let (_, said) = ctl("foreign", &["visitors"]);
    assert!(said.starts_with("1 visitor\n") && said.contains("10.1.0.7  10.1.0.1"), "{said}");
    let (_, said) = ctl("home", &["bindings"]);
    assert!(said.starts_with("1 binding\n") && said.contains("10.1.0.7  10.2.0.1"), "{said}");

    let (code, said) = ctl("mobile", &["register", "10.9.9.9"]);
    assert!(
        code == Some(2) && said.contains("`agent`: must be an agent that the mobile node hears"),
        "{said}"
    );
    assert!(said.contains("it hears: ") && said.contains("10.2.0.1"), "{said}");
    assert_eq!(ctl("mobile", &["register"]), (Some(0), "agent 10.2.0.1\n".to_owned()));
    assert_eq!(ctl("mobile", &["deregister"]), (Some(0), "agent 10.2.0.1\n".to_owned()));
    state("deregistered");
    assert_eq!(ctl("home", &["bindings"]), (Some(0), "0 bindings\n".to_owned()));
    let pid = lab.0.id();
    signal(pid, rustix::process::Signal::INT);
    lab.end();
}
