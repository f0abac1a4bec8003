//! A daemon outside a lab: where it refuses to start, what it restores when it ends, and which requests it accepts.

use crate::beside_kernels::Between;
use crate::common::*;
use os::Netlink;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use wire::Prefix;

/// Returns the state of the daemon's namespace: the output of `ip` and `nft`, some values of sysctl, and the offloads
/// of an interface.
fn namespace_of(between: &Between) -> String {
    let of = |words: &[&str]| {
        let said = between.router.run(|| Command::new(words[0]).args(&words[1..]).output().unwrap()).unwrap();
        text(&said.stdout)
    };
    let sysctl = |name: &str| {
        between.router.run(|| std::fs::read_to_string(format!("/proc/sys/net/{name}"))).unwrap().unwrap()
    };
    [
        of(&["ip", "-4", "route", "show", "table", "all"]),
        of(&["ip", "-6", "route", "show", "dev", "left", "proto", "boot"]),
        of(&["ip", "-6", "-br", "addr", "show", "dev", "left", "scope", "global"]),
        of(&["ip", "rule"]),
        of(&["ip", "-br", "link"]),
        of(&["ip", "-br", "-4", "addr"]),
        of(&["nft", "list", "ruleset"]),
        sysctl("ipv4/tcp_no_metrics_save"),
        sysctl("ipv4/tcp_rmem"),
        sysctl("ipv4/conf/left/rp_filter"),
        format!("{:?}", between.router.run(|| os::ethtool::offloads("left").unwrap()).unwrap()),
    ]
    .join("\n")
}

/// Returns a network whose router has a default route, and addresses and routes of IPv4 and IPv6.
fn configured() -> Between {
    let between = Between::new();
    between
        .router
        .run(|| {
            let mut here = Netlink::open().unwrap();
            here.loopback_up().unwrap();
            here.add_address("left", Ipv4Addr::new(10, 1, 0, 9), 24).unwrap();
            here.set_up("left", true).unwrap();
            here.set_route(Prefix::ANY, "left", Some(Ipv4Addr::new(10, 1, 0, 1))).unwrap();
            for words in
                ["-6 addr add 2001:db8::9/64 dev left nodad", "-6 route add 2001:db8:1::/48 via 2001:db8::1"]
            {
                assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
            }
        })
        .unwrap();
    between
}

#[test]
fn all_is_as_it_was_after_sigterm_sigint_an_order_to_stop_and_a_repair_after_sigkill() {
    if !need("root, to make a network, and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = alone(); // `doctor --clean` looks at all daemons
    let mut between = configured();
    let before = namespace_of(&between);
    assert!(before.contains("default via 10.1.0.1"), "{before}");
    for signal_or_stop in [Some(Signal::TERM), Some(Signal::INT), None] {
        between.begin();
        let during = namespace_of(&between);
        assert!(during.contains("wf-host") && during.contains("wayfare_own"), "{during}");
        match signal_or_stop {
            Some(name) => signal(between.child.as_ref().unwrap().id(), name),
            None => drop(ask(&between.control(), r#""stop""#)),
        }
        let status = between.child.as_mut().unwrap().wait().unwrap();
        assert!(status.success(), "{signal_or_stop:?}: {status}");
        assert_eq!(namespace_of(&between), before, "{signal_or_stop:?}");
        assert!(!between.control().exists());
    }

    // A killed daemon undoes nothing. The next daemon starts all the same, and is killed too. Then `doctor --clean`
    // restores the state `before`.
    let kill = |between: &mut Between| {
        signal(between.child.as_ref().unwrap().id(), Signal::KILL);
        between.child.as_mut().unwrap().wait().unwrap();
        assert!(namespace_of(between).contains("default dev wf-host"));
    };
    let clean = || run(&["doctor", "--clean"], std::path::Path::new("/"));
    between.begin();
    kill(&mut between);
    between.begin();
    let untouched = namespace_of(&between);
    assert_exit(&clean(), 0, "the daemon is running; not changed");
    assert_eq!(namespace_of(&between), untouched);
    let cookie = between.router.run(os::namespace::cookie).unwrap().unwrap();
    let left =
        format!("/run/wayfare/namespace-{cookie}.json: the changes of a terminated daemon are not undone");
    let look = || run(&["doctor"], std::path::Path::new("/"));
    assert!(!text(&look().stdout).contains(&left), "it runs");
    kill(&mut between);
    assert!(between.control().exists(), "a killed daemon leaves its socket's file; the next one replaces it");
    // `doctor` without `--clean` only reports. For another user it names the owner.
    let told = run(&["doctor"], std::path::Path::new("/"));
    assert_exit(
        &told,
        0,
        "terminated labs and daemons left this behind; `wayfare doctor --clean` undoes changes and removes files:\n",
    );
    assert_exit(&told, 0, &left);
    assert!(namespace_of(&between).contains("default dev wf-host"));
    let elsewhere = tempfile::tempdir().unwrap();
    let nobody = run_as_nobody(&["doctor", "--clean"], elsewhere.path());
    let whose = "/run/wayfare belongs to the daemons of root; only root can clean up after them, with `wayfare doctor --clean`";
    assert_exit(&nobody, 0, whose);
    assert_exit(&clean(), 0, "the changes of a terminated daemon are undone");
    assert_eq!(namespace_of(&between), before);
}

#[test]
fn what_doctor_cannot_print_is_an_error() {
    let _turn = alone(); // `doctor --clean` looks at all daemons
    for (how, code) in [(">/dev/full", 3), (">&-", 3), ("2>/dev/full", 0), ("2>&-", 0)] {
        let script = format!("exec \"$0\" doctor --clean {how}");
        let output = Command::new("sh").args(["-c", &script]).arg(wayfare()).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{how}: {said}");
        assert!(code == 0 || said.contains("cannot write to standard output"), "{how}: {said}");
    }
}

#[test]
fn a_second_daemon_is_refused_before_it_touches_anything() {
    if !need("root, to make a network, and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    let before = namespace_of(&between);
    let refused = between.spawn().wait_with_output().unwrap();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains(&format!("process {}", between.child.as_ref().unwrap().id())), "{said}");
    assert_eq!(namespace_of(&between), before);
    assert!(between.lives() && between.status().is_some());
}

#[test]
fn a_daemon_refuses_the_network_namespace_of_pid_1() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    // The daemon's network namespace is that of pid 1 of a new PID namespace. So a daemon that does not refuse takes
    // over nothing of this machine.
    let between = Between::new();
    let (wayfare, config) = (wayfare().display(), between.config());
    let config = config.display();
    let asked = "timeout --preserve-status -s TERM 1";
    let script = format!(
        "'{wayfare}' node '{config}'; echo code $?; ip -br link; \
         {asked} '{wayfare}' node --on-this-machine '{config}'; echo with the flag $?; ip -br link"
    );
    let words = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script];
    let output = between.router.run(|| Command::new("unshare").args(words).output().unwrap()).unwrap();
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(
        said.contains("code 2") && said.contains("with the flag 0") && said.contains("--on-this-machine"),
        "{said}"
    );
    assert!(said.contains("receives nothing by left, right any more"), "{said}");
    assert!(!text(&output.stdout).contains("wf-host"), "{said}");
}

#[test]
fn no_key_is_in_a_run_directory_and_a_labs_files_are_its_owners() {
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let key = "5ec2e75ec2e75ec2e75ec2e75ec2e75e";
    // The key is in a file, because every user can read a key on the command line.
    std::fs::write(out.path().join("key"), key).unwrap();
    let set = format!("cellular-ip.network_key=@{}", out.path().join("key").display());
    let mut words = SHORT.to_vec();
    words.extend(["--set", &set]);
    let running = Running::start(&words, out.path());
    running.under_way();
    let dir = running.dir();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let mut have_keys = 0;
    for entry in std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
        if std::fs::read_to_string(&entry).is_ok_and(|text| text.contains(key)) {
            have_keys += 1;
            assert_eq!(mode(&entry), 0o600, "{}", entry.display());
        }
    }
    assert!(have_keys >= 4, "{have_keys}");
    let output = running.end();
    held_or_late(&output, "first on linux");
    for entry in std::fs::read_dir(kept(out.path())).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read(&entry).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&text).contains(key), "{}", entry.display());
    }
    // `explain` reads the run directory, although the directory does not contain the key.
    let explained = run(&["explain", kept(out.path()).to_str().unwrap()], out.path());
    assert!(text(&explained.stdout).contains("handoff 1"), "{}", text(&explained.stderr));
}

#[test]
fn the_control_socket_is_its_owners_and_no_client_keeps_others_out() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let between = Between::start();
    let control = between.control();
    assert_eq!(std::fs::metadata(&control).unwrap().permissions().mode() & 0o777, 0o600);
    let began = ask(&control, r#"{"begin":{"t0":0}}"#).unwrap();
    assert!(began.contains("begun already"), "{began}");

    // Another user is refused, although the permissions of the control socket allow the access.
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    open(control.parent().unwrap(), 0o755);
    open(&control, 0o666);
    let script = format!(
        "import os, socket, contextlib\n\
         os.setgid(65534); os.setuid(65534)\n\
         s = socket.socket(socket.AF_UNIX); s.connect('{}')\n\
         with contextlib.suppress(BrokenPipeError): s.sendall(b'\"stop\"\\n')\n\
         print(s.recv(200).decode())",
        control.display()
    );
    let stranger = Command::new("python3").args(["-c", &script]).output().unwrap();
    assert!(text(&stranger.stdout).contains("only root and the user that runs this daemon"), "{stranger:?}");
    assert!(between.status().is_some());

    // Other clients must get answers while one client sends without end.
    let mut talker = UnixStream::connect(&control).unwrap();
    talker.set_nonblocking(true).unwrap();
    let noise = "1\n".repeat(1 << 15);
    let mut answers = vec![0; 1 << 16];
    for _ in 0..40 {
        let _ = talker.write(noise.as_bytes());
        let _ = talker.read(&mut answers);
        let mut other = UnixStream::connect(&control).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        other.write_all(b"{\"do\":{\"verb\":\"status\"}}\n").unwrap();
        assert!(BufReader::new(other).lines().next().unwrap().unwrap().contains("drops"));
    }
    drop(talker);

    // More clients connect than the limit allows, and the last client is refused. After 10 s, idle clients lose their
    // places to a new client, so the daemon answers the new client.
    let idle: Vec<_> = (0..20).map(|_| UnixStream::connect(&control).unwrap()).collect();
    let mut refused = String::new();
    let last = idle.last().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    BufReader::new(last).read_line(&mut refused).unwrap();
    assert!(refused.contains("clients are connected"), "{refused}");
    pause(10_500);
    assert!(between.status().is_some());
}

/// An error in the configuration that only this machine can detect is reported with its key.
#[test]
fn a_device_or_a_congestion_control_that_there_is_not_is_named_at_its_key() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let between = Between::new();
    let good = std::fs::read_to_string(between.config()).unwrap();
    for (config, says) in [
        (
            good.replace("\"right\"", "\"rigt\""),
            "line 4, column 10: `interface[1].name`: this network namespace has no device `rigt`",
        ),
        (
            format!("{good}[tcp]\ncongestion = \"vegass\"\n"),
            "column 14: `tcp.congestion`: this kernel has no congestion control `vegass`",
        ),
    ] {
        std::fs::write(between.config(), config).unwrap();
        let refused = between.spawn().wait_with_output().unwrap();
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(3) && said.contains(says), "{said}");
        assert!(!namespace_of(&between).contains("wf-host"));
    }
}

/// Daemons have real-time priority. If a daemon polled a closed connection without end, the kernel could not end the
/// lab, and no other process could run.
#[test]
fn the_daemons_of_a_lab_that_is_killed_end_at_once() {
    let _turn = alone();
    for of_user in [true, false] {
        let out = tempfile::tempdir().unwrap();
        let running = Running::start(&SHORT, out.path());
        running.under_way();
        let all = descendants(running.0.id());
        let verb = |pid: &u32, verb: &str| command_line(*pid).get(1).is_some_and(|word| word == verb);
        let daemons: Vec<u32> = all.iter().copied().filter(|pid| verb(pid, "node")).collect();
        assert!(daemons.len() >= 4, "{daemons:?}");
        let lab = all.into_iter().find(|pid| verb(pid, "lab-supervisor")).unwrap();
        let clock = os::Clock::start();
        signal(if of_user { running.0.id() } else { lab }, if of_user { Signal::TERM } else { Signal::KILL });
        wait_for("the end of the daemons", || daemons.iter().all(|pid| !verb(pid, "node")).then_some(()));
        let took = clock.now().since(wire::Instant::ZERO);
        assert!(took < wire::Duration::from_secs(1), "{took:?}");
        assert_exit(&running.end(), if of_user { 143 } else { 4 }, "");
    }
}

/// Two processes of a run are outside of the lab's user namespace. Their memory must belong to root, not to the user of
/// the run.
#[test]
fn other_processes_of_its_user_do_not_read_the_memory_of_a_run() {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    if !need("root, to become another user", is_root()) {
        return;
    }
    let _turn = beside_others();
    let out = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(out.path(), 0o777);
    let copy = out.path().join("wayfare");
    std::fs::copy(wayfare(), &copy).unwrap();
    mode(&copy, 0o755);
    let mut command = Command::new(&copy);
    command.args(SHORT).current_dir(out.path()).uid(65534).gid(65534);
    let child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn();
    let mut child = child.unwrap();
    wait_for("a lab", || {
        descendants(child.id())
            .iter()
            .any(|pid| command_line(*pid).iter().any(|word| word == "node"))
            .then_some(())
    });
    let owner = std::fs::metadata(format!("/proc/{}/mem", child.id())).unwrap().uid();
    let keeper = descendants(child.id())[1];
    let owner_of_copy = std::fs::metadata(format!("/proc/{keeper}/mem")).unwrap().uid();
    signal(child.id(), Signal::QUIT);
    let status = child.wait().unwrap();
    assert_eq!((owner, owner_of_copy, status.code()), (0, 0, Some(131)));
}
