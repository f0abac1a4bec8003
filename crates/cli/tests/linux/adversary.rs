//! Tests of daemons outside of a lab: with attackers, with mistakes of an operator, with interfaces that change, and
//! with records that cannot be written.

use crate::beside_kernels::Between;
use crate::common::*;
use os::{Clock, Netlink};
use rustix::process::Signal;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wire::Prefix;

/// Runs a program in the daemon's namespace. Returns the output of the program.
fn there(between: &Between, words: &str) -> String {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap());
    let output = between.router.run(|| command.args(words).output().unwrap()).unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Ends the daemon by SIGTERM. Returns its exit code, and what it printed.
fn end(between: &mut Between) -> (Option<i32>, String) {
    let child = between.child.take().unwrap();
    signal(child.id(), Signal::TERM);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stderr))
}

fn started(between: &mut Between) {
    between.begin();
    assert!(there(between, "ip -br link").contains("wf-host"));
}

/// Adds lines to the table `daemon` of the configuration.
fn configure(between: &Between, lines: &str) {
    let text = fs::read_to_string(between.config()).unwrap();
    fs::write(between.config(), format!("{text}{lines}\n")).unwrap();
}

/// Asserts that a daemon with this configuration does not start. Returns what the daemon printed.
fn refused(between: &Between) -> String {
    let output = between.spawn().wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(!there(between, "ip -br link").contains("wf-host"));
    said
}

/// Returns whether the daemon forwards datagrams from left to right, within 50 tries.
fn forwards(between: &Between) -> bool {
    let [left, right] = &between.peers;
    let to = right.run(|| UdpSocket::bind("10.2.0.1:9000").unwrap()).unwrap();
    to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let from = left.run(|| UdpSocket::bind("10.1.0.1:9001").unwrap()).unwrap();
    (0..50).any(|_| from.send_to(b"hello", "10.2.0.1:9000").is_ok() && to.recv(&mut [0; 10]).is_ok())
}

#[test]
fn a_step_that_fails_keeps_nothing_else_from_being_put_back() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone(); // `doctor --clean` looks at all daemons
    let mut between = Between::new();
    between
        .router
        .run(|| {
            let mut here = Netlink::open().unwrap();
            here.add_address("left", Ipv4Addr::new(10, 1, 0, 9), 24).unwrap();
            here.set_up("left", true).unwrap();
            here.set_route(Prefix::ANY, "left", Some(Ipv4Addr::new(10, 1, 0, 1))).unwrap();
        })
        .unwrap();
    let shown = |between: &Between| {
        let words = [
            "ip -br -4 addr show dev lo",
            "ip rule",
            "cat /proc/sys/net/ipv4/conf/left/rp_filter /proc/sys/net/ipv4/tcp_rmem",
        ];
        words.map(|words| there(between, words)).concat()
    };
    let before = shown(&between);
    let clean = || run(&["doctor", "--clean"], Path::new("/"));
    // The first daemon cannot restore the route when it ends. A second daemon starts all the same, and cannot restore
    // the route either.
    for _ in 0..2 {
        started(&mut between);
        there(&between, "ip link set left down");
        let (code, said) = end(&mut between);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("the route default via 10.1.0.1"), "{said}");
        assert_eq!(shown(&between), before);
        let links = there(&between, "ip -br link");
        assert!(!links.contains("wf-host"), "{links}");
        assert_exit(&clean(), 4, "the route default via 10.1.0.1");
    }
    there(&between, "ip link set left up");
    assert_exit(&clean(), 0, "the changes of a terminated daemon are undone");
    assert!(there(&between, "ip -4 route").contains("default via 10.1.0.1 dev left"));
    let words = clean();
    assert!(!text(&words.stdout).contains("undone"), "{}", text(&words.stdout));
}

/// A script that sends a frame with 60000 bytes of TCP every 4 ms. The receiver has to cut each frame into segments of
/// the given size.
const FLOOD: &str = r#"
import socket, struct, sys, time
size, seconds = int(sys.argv[1]), float(sys.argv[2])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.setsockopt(263, 15, 1); s.bind(("eth0", 0)); s.setblocking(False)
data = b"x" * 60000
ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(data), 7, 0x4000, 64, 6, 0)
ip += socket.inet_aton("10.1.0.1") + socket.inet_aton("10.2.0.1")
total = sum(struct.unpack("!10H", ip))
while total >> 16: total = (total & 0xffff) + (total >> 16)
ip = ip[:10] + struct.pack("!H", ~total & 0xffff) + ip[12:]
tcp = struct.pack("!HHIIBBHHH", 1000, 80, 1, 1, 0x50, 0x10, 1024, 0, 0)
header = struct.pack("=BBHHHH", 1, 1, 54, size, 34, 16)
frame = header + bytes.fromhex("02000000010102000000010208 00".replace(" ", "")) + ip + tcp + data
print("ready", flush=True)
until = time.time() + seconds
while time.time() < until:
    try: s.send(frame)
    except OSError: pass
    time.sleep(0.004)
"#;

#[test]
fn frames_that_become_many_packets_stop_no_daemon() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    for size in ["1", "250"] {
        let mut between = Between::start();
        let mut flood = Command::new("python3");
        flood.args(["-c", FLOOD, size, "8"]).stdin(Stdio::null());
        let mut flood = between.peers[0].run(|| flood.spawn().unwrap()).unwrap();
        pause(1500);
        let clock = Clock::start();
        let drops = between.status().unwrap()["drops"].clone();
        let took = clock.now();
        assert!(took < wire::Instant::from_millis(4000), "{size}: {took:?}");
        if size == "1" {
            assert!(drops["offload_too_many_segments"].as_u64() > Some(10), "{drops}");
        }
        let clock = Clock::start();
        let (code, said) = end(&mut between);
        let took = clock.now();
        assert!(code == Some(0) && took < wire::Instant::from_millis(6000), "{said} {took:?}");
        flood.kill().unwrap();
        flood.wait().unwrap();
    }
}

#[test]
fn an_interface_that_was_away_is_heard_again() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    assert!(forwards(&between));
    let path =
        |namespace: &os::NetNs| format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    let index = |between: &Between| {
        between.router.run(|| Netlink::open().unwrap().link("left").unwrap().index).unwrap()
    };
    let before = index(&between);
    // No device in the other namespace has this index, so the moved device keeps its index.
    let elsewhere = os::NetNs::create().unwrap();
    // The device moves 20 times, because the daemon may be notified of the device just after the device has left again.
    for round in 0..20 {
        there(&between, &format!("ip link set left netns {}", path(&elsewhere)));
        pause(15 * (round % 4));
        let back = format!("link set left netns {}", path(&between.router));
        let moved =
            elsewhere.run(|| Command::new("ip").args(back.split(' ')).status().unwrap().success()).unwrap();
        assert!(moved);
        there(&between, "ip link set left up");
        assert_eq!(index(&between), before, "the test is about the same number");
    }
    let (is_heard, status) = (forwards(&between), between.status());
    let (code, said) = end(&mut between);
    assert!(is_heard && code == Some(0), "{code:?}, {said} {status:?}");
}

#[test]
fn a_user_without_rights_claims_no_namespace() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::new();
    let squatter = "import os, socket, time\n\
        os.setgid(65534); os.setuid(65534)\n\
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('\\0wayfare/node'); s.listen(1)\n\
        time.sleep(60)";
    let mut squat = Command::new("python3");
    squat.args(["-c", squatter]);
    let mut squatter = between.router.run(|| squat.spawn().unwrap()).unwrap();
    wait_for("the squatter", || {
        there(&between, "cat /proc/net/unix").contains("@wayfare/node").then_some(())
    });
    between.begin();
    // A process of another user has bound the socket name `wayfare/node`. The daemon has started all the same, and a
    // second daemon is refused.
    let second = between.spawn().wait_with_output().unwrap();
    let said = text(&second.stderr);
    assert!(second.status.code() == Some(3) && said.contains("another process is its daemon"), "{said}");
    assert!(between.status().is_some());
    assert_eq!(end(&mut between).0, Some(0));
    squatter.kill().unwrap();
    squatter.wait().unwrap();
}

#[test]
fn a_path_that_is_wrong_costs_no_file() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("thesis.txt");
    for key in ["control", "clients", "records"] {
        fs::write(&file, "my thesis\n").unwrap();
        let between = Between::new();
        if key == "control" {
            let text = fs::read_to_string(between.config()).unwrap();
            let own = between.control().display().to_string();
            fs::write(between.config(), text.replace(&own, &file.display().to_string())).unwrap();
        } else {
            configure(&between, &format!("{key} = \"{}\"", file.display()));
        }
        let said = refused(&between);
        assert!(said.contains("thesis.txt"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "my thesis\n", "{key}");
    }
}

#[test]
fn a_daemon_that_is_refused_destroys_no_records() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::new();
    let records = between.config().with_file_name("records");
    configure(&between, &format!("records = \"{}\"\nrecords_at_once = true", records.display()));
    between.begin();
    assert!(forwards(&between));
    assert_eq!(fs::metadata(&records).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read_to_string(&records).unwrap();
    assert!(before.lines().count() > 2, "{before}");
    // A daemon in another namespace is refused if it has the same file for its records: first with the same control
    // socket, then with a separate one.
    for control in [between.control(), between.config().with_file_name("other.sock")] {
        let other = Between::new();
        let text = fs::read_to_string(between.config()).unwrap();
        let own = between.control().display().to_string();
        fs::write(other.config(), text.replace(&own, &control.display().to_string())).unwrap();
        refused(&other);
        assert!(fs::read_to_string(&records).unwrap().starts_with(&before));
        assert!(between.status().is_some());
    }
    assert_eq!(end(&mut between).0, Some(0));
    let after = fs::read_to_string(&records).unwrap();
    assert!(after.lines().all(|line| trace::Record::from_line(trace::HostId(0), line).is_ok()));
    // After the end of the daemon, another one replaces the records.
    between.begin();
    assert_eq!(end(&mut between).0, Some(0));
}

#[test]
fn records_that_cannot_be_written_are_reported_and_the_end_is_whole() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::new();
    configure(&between, "records = \"/dev/full\"\nrecords_at_once = true");
    between.begin();
    assert!(forwards(&between));
    let troubles = between.status().unwrap()["troubles"].to_string();
    assert!(troubles.contains("records cannot be written"), "{troubles}");
    let answer = ask(&between.control(), r#""stop""#).unwrap();
    assert!(answer.contains("\"ok\""), "{answer}");
    let output = between.child.take().unwrap().wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("/dev/full"), "{said}");
    assert!(!between.control().exists() && !there(&between, "ip -br link").contains("wf-host"));
}

#[test]
fn a_device_that_becomes_narrower_is_a_narrow_path() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    assert!(forwards(&between));
    there(&between, "ip link set right mtu 600");
    let from = between.peers[0].run(|| UdpSocket::bind("10.1.0.1:9002").unwrap()).unwrap();
    from.connect("10.2.0.1:9000").unwrap();
    let option = |name: i32| {
        let (mut value, mut len) = (0_i32, 4);
        // SAFETY: `value` and `len` outlive the call, and `len` is the size of `value`.
        let got =
            unsafe { libc::getsockopt(from.as_raw_fd(), 0, name, (&raw mut value).cast(), &raw mut len) };
        assert_eq!(got, 0);
        value
    };
    // Option 10 is IP_MTU_DISCOVER with the value IP_PMTUDISC_DO, and option 14 is IP_MTU.
    let always = 2_i32;
    // SAFETY: `always` outlives the call, and 4 is the size of `always`.
    let set = unsafe { libc::setsockopt(from.as_raw_fd(), 0, 10, (&raw const always).cast(), 4) };
    assert_eq!(set, 0);
    assert_eq!(option(14), 1500);
    wait_for("the MTU of the path", || {
        let _ = from.send(&[0; 1200]);
        (option(14) == 600).then_some(())
    });
    assert!(forwards(&between));
    assert_eq!(end(&mut between).0, Some(0));
}

#[test]
fn a_host_whose_own_link_was_removed_says_so_and_forwards() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    assert!(forwards(&between));
    assert_eq!(between.status().unwrap()["troubles"].to_string(), "[]");
    there(&between, "ip link del wf-host");
    wait_for("the trouble", || {
        between.status().unwrap()["troubles"].to_string().contains("wf-host was removed").then_some(())
    });
    assert!(forwards(&between));
    let own = between.peers[0].run(|| UdpSocket::bind("10.1.0.1:9003").unwrap()).unwrap();
    own.send_to(b"x", "10.1.0.2:9").unwrap();
    wait_for("the drop", || {
        between.status().unwrap()["drops"]["send_link_down"].as_u64().filter(|drops| *drops > 0)
    });
    let (code, said) = end(&mut between);
    assert!(code == Some(0) && said.contains("wf-host was removed"), "{code:?} {said}");
}

#[test]
fn users_without_rights_have_folders_of_their_own() {
    if !need("root, to become other users", is_root()) {
        return;
    }
    let _turn = beside_others();
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(dir.path(), 0o1777);
    let (binary, config) = (dir.path().join("wayfare"), dir.path().join("router.toml"));
    fs::copy(wayfare(), &binary).unwrap();
    open(&binary, 0o755);
    let between = Between::new();
    let own = between.control().display().to_string();
    let control = dir.path().join("$USER.sock").display().to_string();
    for user in ["1001", "1002"] {
        let given = fs::read_to_string(between.config()).unwrap();
        fs::write(&config, given.replace(&own, &control.replace("$USER", user))).unwrap();
        open(&config, 0o644);
        let script = format!(
            "for it in left:01 right:03; do ip link add ${{it%:*}} address 02:00:00:00:01:${{it#*:}} type veth; done; \
             timeout --preserve-status -s TERM 1 {} node {}; echo code $?; ip -br link",
            binary.display(),
            config.display()
        );
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
            "unshare",
            "-Urn",
            "sh",
            "-c",
            &script,
        ]);
        let output = command.env("TMPDIR", dir.path()).current_dir("/").output().unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        if !need("user namespaces for users without rights", !said.contains("unshare failed")) {
            return;
        }
        assert!(said.contains("code 0") && !said.contains("wf-host"), "{said}");
        assert!(dir.path().join(format!("wayfare-of-{user}")).is_dir(), "{said}");
    }
}

#[test]
fn an_ingress_hook_that_somebody_flushes_is_put_back() {
    if !need("root, to make a network, and nft", is_root() && has_nft()) {
        return;
    }
    let _turn = beside_others();
    let mut between = Between::start();
    let rules = |between: &Between| there(between, "nft list table netdev wayfare_own");
    let before = rules(&between);
    let hooks = |rules: &str| rules.matches("policy drop").count();
    assert_eq!(hooks(&before), 3, "{before}");
    for flush in ["nft flush ruleset", "nft delete table netdev wayfare_own"] {
        there(&between, flush);
        wait_for("the hook", || {
            let there = between.router.run(|| {
                let words = ["list", "table", "netdev", "wayfare_own"];
                Command::new("nft").args(words).output().unwrap().stdout
            });
            (hooks(&text(&there.unwrap())) == 3).then_some(())
        });
        pause(1100); // a repair is reported at most once a second
    }
    // The daemon treats a chain that accepts all frames as missing, and installs its own chain again.
    there(&between, "nft add chain netdev wayfare_own left { policy accept ; }");
    wait_for("the policy", || (hooks(&rules(&between)) == 3).then_some(()));
    assert!(forwards(&between));
    assert_eq!(between.status().unwrap()["troubles"].to_string(), "[]");
    let (code, said) = end(&mut between);
    assert!(code == Some(0) && said.matches("The table is installed again").count() == 3, "{code:?} {said}");
    assert_eq!(there(&between, "nft list ruleset"), "");
}
