//! A home agent as a daemon outside a lab, and a mobile node in the test that sends frames to it. A binding to which
//! the agent replied survives `kill -9`, and a binding that cannot be stored is refused.

use crate::common::*;
use auth::Key;
use mobile_ip::message::{
    Algorithm, Association, Between, Code, PORT, Received, Registration, Reply, Request, RequestFlags,
    datagram,
};
use os::{Clock, End, EndPlace, NetNs, Netlink, Options, PacketSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use wire::{EtherType, Frame, Ipv4Addr, Mac, SocketAddrV4, ethernet};

const AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const AGENT_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);
const VISITED_MAC: Mac = Mac([2, 0, 0, 0, 0, 3]);
const NODE_MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// Number of mobile nodes that the agent knows, from 10.1.1.0 on.
const NODES: u16 = 200;
/// The role of a foreign agent on the same node, and the interval of its advertisements in nanoseconds.
const BEACONS: &str = "{ kind = \"mobile-ip/foreign-agent\", interface = \"visited\", address = \"10.3.0.1/24\", \
                       advertise = { interval = \"20ms\", jitter = \"0ms\", lifetime = \"1s\" } },\n";
const BEACON: i64 = 20_000_000;
/// One second in units of NTP time.
const SECOND: i64 = 1 << 32;

fn home(node: u16) -> Ipv4Addr {
    let [high, low] = node.to_be_bytes();
    Ipv4Addr::new(10, 1, high + 1, low)
}

/// The home network: a wire between the agent's namespace and that of the mobile nodes, and another wire with a
/// foreign agent of the same daemon.
struct HomeNetwork {
    agent: NetNs,
    air: PacketSocket,
    visited: PacketSocket,
    dir: tempfile::TempDir,
    /// A command that starts the daemon, for example `nsenter` with its arguments. The daemon's command is appended to
    /// it. Empty if the daemon is started directly.
    wrapper: Vec<String>,
}

impl HomeNetwork {
    fn new() -> Self {
        let (agent, nodes) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let quiet = || drop(os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
        agent.run(quiet).unwrap();
        let sockets = nodes.run(|| {
            quiet();
            let mut here = Netlink::open().unwrap();
            [("air", "home", AGENT_MAC), ("elsewhere", "visited", VISITED_MAC)].map(
                |(here_name, there, mac)| {
                    let near = End { name: here_name, mac: NODE_MAC, place: EndPlace::Here };
                    let far = End { name: there, mac, place: EndPlace::Fd(agent.as_fd()) };
                    here.add_veth(&near, &far).unwrap();
                    here.set_arp(here_name, false).unwrap();
                    here.set_up(here_name, true).unwrap();
                    PacketSocket::open(here_name, &Options::default()).unwrap()
                },
            )
        });
        let [air, visited] = sockets.unwrap();
        let network = Self { agent, air, visited, dir: tempfile::tempdir().unwrap(), wrapper: Vec::new() };
        network.configure(NODES, &network.dir.path().join("store"), "");
        network
    }

    fn configure(&self, nodes: u16, store: &Path, more_roles: &str) {
        let nodes =
            (0..nodes).map(|node| format!("{{ address = \"{}\", spi = 256, key = \"{KEY}\" }}", home(node)));
        let nodes = nodes.collect::<Vec<_>>().join(", ");
        let text = format!(
            "name = \"agent\"\n\
             interface = [\n\
             {{ name = \"home\", mac = \"{AGENT_MAC}\", address = \"{AGENT}/16\" }},\n\
             {{ name = \"visited\", mac = \"{VISITED_MAC}\", address = \"10.3.0.1/24\" }},\n]\n\
             role = [\n\
             {{ kind = \"mobile-ip/home-agent\", interface = \"home\", address = \"{AGENT}/16\", \
             mobile_nodes = [{nodes}] }},\n{more_roles}]\n\
             [daemon]\ncontrol = \"{}\"\nstore = \"{}\"\n",
            self.control().display(),
            store.display()
        );
        std::fs::write(self.dir.path().join("agent.toml"), text).unwrap();
    }

    fn control(&self) -> PathBuf {
        self.dir.path().join("agent.sock")
    }

    /// Starts the daemon, and does not wait until it answers.
    fn spawn(&self) -> Child {
        let words = self.wrapper.iter().map(String::as_str);
        let words: Vec<&str> = words.chain([wayfare().to_str().unwrap(), "node"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(self.dir.path().join("agent.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.agent.run(|| command.spawn()).unwrap().unwrap()
    }

    /// Starts the daemon, and waits until it answers.
    fn start(&self) -> Agent {
        let agent = Agent { child: self.spawn(), control: self.control() };
        wait_for("the agent", || agent.try_ask(r#"{"do":{"verb":"status"}}"#));
        agent
    }

    /// Sends a request of a node whose clock is ahead by `ahead` seconds, and returns the reply's code.
    fn register(&self, node: u16, ahead: i64) -> Code {
        // A mobile node repeats a request that is not answered (RFC 5944, section 3.6.3). The first request may arrive
        // before the agent knows that its link is up: the kernel reports a carrier up to a second late.
        for _ in 0..10 {
            let identification = Clock::wall().to_ntp().wrapping_add_signed(ahead * SECOND);
            self.send(node, identification);
            if let Some(reply) = (0..200).find_map(|_| self.reply(identification)) {
                return reply.code;
            }
        }
        panic!("a reply to {} did not come", home(node));
    }

    fn send(&self, node: u16, identification: u64) {
        self.air.send(&frame(node, CARE_OF, identification)).unwrap();
    }

    /// Waits for at most 5 ms, and returns the next reply if it is the reply to this request.
    fn reply(&self, identification: u64) -> Option<Reply> {
        let soon = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        poll(&mut [PollFd::new(&self.air, PollFlags::IN)], Some(&soon)).unwrap();
        // If the node's clock is wrong, the upper half of the reply's identification is the agent's time (RFC 5944,
        // section 5.7.1).
        self.heard().filter(|reply| reply.identification as u32 == identification as u32)
    }

    /// Returns the next reply to a mobile node among the frames that have arrived.
    fn heard(&self) -> Option<Reply> {
        let mut frame = [0; 2000];
        while let Some(received) = self.air.receive(&mut frame).unwrap() {
            let (link, bytes) = ethernet::parse(&frame[..received.len]).unwrap();
            if let Ok(Received { message: Registration::Reply(reply), .. }) = Received::parse(bytes)
                && link.dst == NODE_MAC
            {
                return Some(reply);
            }
        }
        None
    }
}

impl Drop for HomeNetwork {
    fn drop(&mut self) {
        forget(&self.agent);
    }
}

/// Builds a request that a mobile node sends at home for a care-of address elsewhere.
fn frame(node: u16, care_of: Ipv4Addr, identification: u64) -> Vec<u8> {
    let (flags, home, home_agent) = (RequestFlags::default(), home(node), AGENT);
    let (lifetime, extensions) = (600, Vec::new());
    let mut request = Request { flags, lifetime, home, home_agent, care_of, identification, extensions };
    let key: Key = KEY.parse().unwrap();
    request.sign(Between::MobileHome, &Association { spi: 256, algorithm: Algorithm::HmacSha256, key });
    let [from, to] = [home, AGENT].map(|address| SocketAddrV4::new(address, PORT));
    let link = Frame { kind: EtherType::IPV4, src: NODE_MAC, dst: AGENT_MAC };
    ethernet::emit(&link, &datagram(from, to, 255, &request.emit()))
}

/// A running daemon with a home agent.
struct Agent {
    child: Child,
    control: PathBuf,
}

impl Agent {
    fn try_ask(&self, line: &str) -> Option<serde_json::Value> {
        let answer = ask(&self.control, line)?;
        serde_json::from_str::<serde_json::Value>(&answer).ok()?.get("ok").cloned()
    }

    fn bindings(&self) -> BTreeMap<String, String> {
        let status = self.try_ask(r#"{"do":{"verb":"status"}}"#).expect("a status");
        let bindings = status["home_agent"]["bindings"].as_object().expect("bindings");
        let care_of =
            |bindings: &serde_json::Value| bindings[0]["care_of"].as_str().expect("an address").to_owned();
        bindings.iter().map(|(host, binding)| (host.clone(), care_of(binding))).collect()
    }

    /// Kills the daemon by `kill -9`. Returns what the daemon printed.
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        let mut said = Vec::new();
        self.child.stderr.take().unwrap().read_to_end(&mut said).unwrap();
        text(&said)
    }
}

impl Drop for Agent {
    /// A test that fails must not leave a daemon behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bound(nodes: u16) -> BTreeMap<String, String> {
    (0..nodes).map(|node| (home(node).to_string(), CARE_OF.to_string())).collect()
}

#[test]
fn kill_9_right_after_any_reply_loses_no_binding() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let network = HomeNetwork::new();
    let mut agent = network.start();
    for round in 0..25 {
        // The mobile node's clock is 6 s ahead. When the agent starts again, the time in the request is still in the
        // future.
        assert_eq!(network.register(round, 6), Code::Accepted, "round {round}");
        agent.kill();
        agent = network.start();
        assert_eq!(agent.bindings(), bound(round + 1), "round {round}");
        // The time in this request is after the agent's start, and before the time in the accepted request. Only the
        // stored binding shows that the request is old.
        assert_eq!(network.register(round, 3), Code::IdentificationMismatch, "round {round}");
        assert_eq!(agent.bindings(), bound(round + 1), "round {round}");
    }
    agent.kill();
}

#[test]
fn an_operator_sees_the_bindings_and_the_codes() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let network = HomeNetwork::new();
    let agent = network.start();
    assert_eq!(network.register(3, 0), Code::Accepted);
    assert_eq!(network.register(4, 60), Code::IdentificationMismatch);
    let control = network.control();
    let ctl = |words: &[&str]| {
        let output = run(&[&["ctl", control.to_str().unwrap()], words].concat(), network.dir.path());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let said = ctl(&["bindings"]);
    let row: Vec<&str> = said.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[..3], [&home(3).to_string(), &CARE_OF.to_string(), "600"], "{said}");
    assert!(said.starts_with("1 binding\n") && said.contains("spi") && row.contains(&"256"), "{said}");
    let ends: u32 = row[3].parse().unwrap();
    assert!((500..=600).contains(&ends), "the rest of the lifetime: {said}");
    let json: serde_json::Value = serde_json::from_str(&ctl(&["bindings", "--format", "json"])).unwrap();
    assert_eq!(json["home_agent"][home(3).to_string()][0]["spi"], 256);
    let said = ctl(&["status"]);
    assert!(said.contains("1  133 (home agent: Identification mismatch)"), "{said}");
    agent.kill();
}

/// A file system of 96 KiB, of which a filler takes 32 KiB. The file system is visible only to the holder and to
/// commands that enter the holder's namespace.
struct TinyDisk {
    holder: Child,
    place: PathBuf,
}

impl TinyDisk {
    fn mount(place: &Path) -> Self {
        std::fs::create_dir(place).unwrap();
        let script = format!(
            "mount -t tmpfs -o size=96k tiny {0} && head -c 32768 /dev/zero > {0}/filler && exec sleep 1000",
            place.display()
        );
        let mut command = Command::new("unshare");
        let holder = command.args(["-m", "sh", "-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        let disk = Self { holder, place: place.to_owned() };
        wait_for("the disk", || disk.outside("filler").exists().then_some(()));
        disk
    }

    /// Returns the path of a file on the disk, as seen from outside of the holder's namespace.
    fn outside(&self, name: &str) -> PathBuf {
        let inside = self.place.join(name);
        Path::new(&format!("/proc/{}/root", self.holder.id())).join(inside.strip_prefix("/").unwrap())
    }

    /// Returns a command that starts another command in the holder's mount namespace. The caller appends the other
    /// command.
    fn enter(&self) -> Vec<String> {
        ["nsenter", "-m", "-t", &self.holder.id().to_string(), "--"].map(str::to_owned).to_vec()
    }

    fn run(&self, words: &[&str]) {
        let enter = self.enter();
        let output = Command::new(&enter[0]).args(&enter[1..]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[test]
fn a_disk_that_is_full_or_read_only_is_told_and_nothing_is_half_accepted() {
    if !need("root, to mount a disk", is_root()) {
        return;
    }
    let _turn = alone();
    let mut network = HomeNetwork::new();
    let disk = TinyDisk::mount(&network.dir.path().join("disk"));
    network.wrapper = disk.enter();
    network.configure(NODES, &disk.place.join("store"), "");

    // The store has 64 KiB: it accepts bindings, then refuses some, and then refuses all.
    let agent = network.start();
    let codes: Vec<Code> = (0..NODES).map(|node| network.register(node, 0)).collect();
    assert!(codes.iter().all(|code| [Code::Accepted, Code::HomeResources].contains(code)), "{codes:?}");
    let mut kept = bound(NODES);
    let refused: Vec<u16> = (0..NODES).filter(|node| codes[usize::from(*node)] != Code::Accepted).collect();
    for node in &refused {
        kept.remove(&home(*node).to_string());
    }
    assert!((10..150).contains(&kept.len()) && refused.last() == Some(&(NODES - 1)), "{codes:?}");
    assert_eq!(agent.bindings(), kept);
    let said = agent.kill();
    assert!(said.contains("No space left on device"), "{said}");

    // The disk is still full, but the agent has all accepted bindings again. After the filler is removed, new bindings
    // are accepted.
    let agent = network.start();
    assert_eq!(agent.bindings(), kept);
    let last = NODES - 1;
    assert_eq!(network.register(last, 0), Code::HomeResources);
    disk.run(&["rm", disk.place.join("filler").to_str().unwrap()]);
    assert_eq!(network.register(last, 1), Code::Accepted);
    kept.extend(bound(NODES).remove_entry(&home(last).to_string()));
    agent.kill();
    let agent = network.start();
    assert_eq!(agent.bindings(), kept);
    agent.kill();

    // An agent does not start if its disk cannot be written, because it could only refuse requests.
    disk.run(&["mount", "-o", "remount,ro", disk.place.to_str().unwrap()]);
    let refused = network.spawn().wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("Read-only file system"), "{}", text(&refused.stderr));
}

#[test]
fn a_limit_of_file_sizes_is_told_like_a_full_disk() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let mut network = HomeNetwork::new();
    let limited = "ulimit -f 160; exec \"$0\" \"$@\""; // 80 KiB
    network.wrapper = ["sh", "-c", limited].map(str::to_owned).to_vec();
    let agent = network.start();
    let codes: Vec<Code> = (0..NODES).map(|node| network.register(node, 0)).collect();
    let accepted = codes.iter().filter(|code| **code == Code::Accepted).count();
    let refused = codes.iter().filter(|code| **code == Code::HomeResources).count();
    assert!(accepted >= 10 && refused >= 10 && accepted + refused == codes.len(), "{codes:?}");
    let kept = agent.bindings();
    assert_eq!(kept.len(), accepted);
    let said = agent.kill();
    assert!(said.contains("File too large"), "{said}");
    let agent = network.start();
    assert_eq!(agent.bindings(), kept);
    agent.kill();
}

#[test]
fn a_store_that_was_removed_or_replaced_takes_nothing_more() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    for (replaced, says) in [(false, "was removed"), (true, "another file has replaced the store")] {
        let network = HomeNetwork::new();
        let agent = network.start();
        assert_eq!(network.register(0, 0), Code::Accepted);
        let store = network.dir.path().join("store");
        if replaced {
            std::fs::copy(&store, network.dir.path().join("copy")).unwrap();
            std::fs::rename(network.dir.path().join("copy"), &store).unwrap();
        } else {
            std::fs::remove_file(&store).unwrap();
        }
        for node in [1, 2] {
            assert_eq!(network.register(node, 0), Code::HomeResources);
        }
        assert_eq!(agent.bindings(), bound(1));
        let status = agent.try_ask(r#"{"do":{"verb":"status"}}"#).unwrap();
        assert!(status["troubles"].to_string().contains(says), "{}", status["troubles"]);
        let said = agent.kill();
        assert!(said.contains(says), "{said}");
    }
}

// --- system calls that fail or take long -----------------------------------------------------------------------------

/// A process `strace` that injects faults into a daemon's system calls until this value is dropped.
struct Meddler(Child);

impl Meddler {
    /// Starts `strace`. Each injection is the value of an expression `inject` (strace(1)).
    fn with(agent: &Agent, injections: &[&str]) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-p", &agent.child.id().to_string()]);
        let calls: Vec<&str> =
            injections.iter().map(|injection| injection.split(':').next().unwrap()).collect();
        command.arg("-e").arg(format!("trace={}", calls.join(",")));
        for injection in injections {
            command.arg("-e").arg(format!("inject={injection}"));
        }
        let meddler = Self(command.stdin(Stdio::null()).spawn().unwrap());
        wait_for("strace", || {
            let mut threads = std::fs::read_dir(format!("/proc/{}/task", agent.child.id())).unwrap();
            let status = |thread: &Path| std::fs::read_to_string(thread.join("status")).unwrap();
            let is_traced = |thread: &Path| !status(thread).contains("TracerPid:\t0\n");
            threads.all(|thread| is_traced(&thread.unwrap().path())).then_some(())
        });
        meddler
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM); // strace detaches from the daemon
        let _ = self.0.wait();
    }
}

fn can_meddle() -> bool {
    let strace = Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_ok();
    need("root, to make a network", is_root()) && need("strace", strace)
}

#[test]
fn a_reply_leaves_when_the_sync_has_returned_and_beacons_do_not_wait_for_it() {
    if !can_meddle() {
        return;
    }
    let _turn = alone();
    let network = HomeNetwork::new();
    network.configure(NODES, &network.dir.path().join("store"), BEACONS);
    let agent = network.start();
    let slow = Meddler::with(&agent, &["fdatasync:delay_exit=500000"]);
    let mut heard = Load::default();
    heard.hear(&network, &[]);
    heard.beacons.clear();
    let begin = Clock::wall();
    assert_eq!(network.register(0, 0), Code::Accepted);
    let took = Clock::wall().0 - begin.0;
    assert!(took >= 500_000_000, "{took} ns");
    heard.hear(&network, &[]);
    let due = usize::try_from(took / BEACON).unwrap();
    assert!(heard.beacons.len() > due / 2, "{} of {due} beacons", heard.beacons.len());

    // An agent that is killed during the sync has not replied to this request. The binding of the earlier request, to
    // which the agent replied, is stored.
    network.send(1, Clock::wall().to_ntp());
    agent.kill();
    drop(slow);
    let agent = network.start();
    assert_eq!(agent.bindings().get(&home(0).to_string()), bound(1).get(&home(0).to_string()));
    agent.kill();
}

#[test]
fn what_a_failed_sync_should_have_stored_is_refused_and_not_there_after_kill_9() {
    if !can_meddle() {
        return;
    }
    let _turn = alone();
    let network = HomeNetwork::new();
    let agent = network.start();
    let _meddler = Meddler::with(&agent, &["fdatasync:error=EIO:when=2"]);
    let codes: Vec<Code> = (0..3).map(|node| network.register(node, 0)).collect();
    assert_eq!(codes, [Code::Accepted, Code::HomeResources, Code::Accepted]);
    let said = agent.kill();
    assert!(said.contains("Input/output error") && said.contains("the store works again"), "{said}");
    let agent = network.start();
    let mut kept = bound(3);
    kept.remove(&home(1).to_string());
    assert_eq!(agent.bindings(), kept);
    agent.kill();
}

#[test]
fn a_disk_that_turns_read_only_is_told_like_a_full_one() {
    if !can_meddle() {
        return;
    }
    let _turn = alone();
    let network = HomeNetwork::new();
    let agent = network.start();
    assert_eq!(network.register(0, 0), Code::Accepted);
    let read_only = ["pwrite64", "ftruncate", "/^rename"].map(|call| format!("{call}:error=EROFS"));
    let meddler = Meddler::with(&agent, &read_only.each_ref().map(String::as_str));
    for node in 1..4 {
        assert_eq!(network.register(node, 0), Code::HomeResources);
    }
    assert_eq!(agent.bindings(), bound(1));
    drop(meddler);
    assert_eq!(network.register(1, 1), Code::Accepted);
    let said = agent.kill();
    assert_eq!(said.matches("Read-only file system").count(), 1, "{said}");
    let agent = network.start();
    assert_eq!(agent.bindings(), bound(2));
    agent.kill();
}

// --- load --------------------------------------------------------------------------------------------------------------

/// The number of registrations per second, their duration in seconds, and the number of mobile nodes that register in
/// turn.
const RATE: u64 = 10_000;
const SECONDS: u64 = 4;
const CROWD: u16 = 10_000;

/// Returns the care-of address in the `number`th registration: a different one for each round.
fn place(number: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, (number / u64::from(CROWD)) as u8, 1)
}

/// The numbers of requests and replies under load, and the beacons that were received.
#[derive(Default)]
struct Load {
    sent: u64,
    replied: u64,
    /// The last round to which the agent replied, by home address.
    last: BTreeMap<String, u8>,
    /// When beacons arrived, in nanoseconds.
    beacons: Vec<i64>,
}

impl Load {
    fn hear(&mut self, network: &HomeNetwork, identifications: &[u64]) {
        while let Some(reply) = network.heard() {
            if reply.code != Code::Accepted {
                continue;
            }
            let number = identifications.binary_search(&reply.identification).expect("one of ours");
            self.replied += 1;
            self.last.insert(reply.home.to_string(), place(number as u64).octets()[2]);
        }
        let mut frame = [0; 2000];
        while let Some(received) = network.visited.receive(&mut frame).unwrap() {
            if frame[12..14] == [8, 0] {
                self.beacons.push(received.at.0);
            }
        }
    }

    /// Returns the median and the 99th percentile of the beacons' deviation from their interval, in milliseconds.
    fn jitter(&self) -> [f64; 2] {
        let gaps = self.beacons.windows(2).map(|pair| (pair[1] - pair[0]).abs_diff(BEACON));
        let mut gaps: Vec<u64> = gaps.collect();
        gaps.sort_unstable();
        [50, 99].map(|part| gaps[gaps.len() * part / 100] as f64 / 1e6)
    }
}

/// The test needs a release build and an idle machine. `make load` runs it.
#[test]
#[ignore = "measures this machine"]
fn ten_thousand_registrations_a_second_beside_beacons() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = alone();
    let network = HomeNetwork::new();
    network.configure(CROWD, &network.dir.path().join("store"), BEACONS);
    let agent = network.start();
    let all = RATE * SECONDS;
    let begin = Clock::wall().plus(wire::Duration::from_secs(3));
    let at = |number: u64| begin.plus(wire::Duration::from_nanos(number * 1_000_000_000 / RATE));
    let identifications: Vec<u64> = (0..all).map(|number| at(number).to_ntp()).collect();
    let frames = (0..all).zip(&identifications);
    let frames: Vec<Vec<u8>> =
        frames.map(|(number, id)| frame((number % u64::from(CROWD)) as u16, place(number), *id)).collect();
    let mut load = Load::default();
    while load.sent < all * 9 / 10 {
        while load.sent < all && Clock::wall() >= at(load.sent) {
            network.air.send(&frames[load.sent as usize]).unwrap();
            load.sent += 1;
        }
        load.hear(&network, &identifications);
    }
    agent.kill();
    load.hear(&network, &identifications);
    load.beacons.retain(|at| *at >= begin.0);
    let [median, most] = load.jitter();
    let seconds = load.sent as f64 / RATE as f64;
    eprintln!(
        "{:.0} registrations a second sent, {:.0} replied; {} beacons off their beat by {median:.3} ms (median), {most:.3} ms (99 %)",
        load.sent as f64 / seconds,
        load.replied as f64 / seconds,
        load.beacons.len()
    );
    let agent = network.start();
    let kept = agent.bindings();
    for (home, round) in &load.last {
        let place: Ipv4Addr = kept[home].parse().unwrap();
        assert!(place.octets()[2] >= *round, "{home}: round {round} was replied to, {place} is kept");
    }
    agent.kill();
    assert!(load.replied > load.sent * 9 / 10, "{} of {}", load.replied, load.sent);
    assert!(most < 5.0, "{most} ms");
}
