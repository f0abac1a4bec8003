//! A foreign agent whose packets are forwarded in the kernel: a flow to a visitor does not reach the daemon, the last packets are
//! kept all the same, and only the visitor's new care-of address gets them.

use crate::attacks::joined;
use crate::attacks_buffers::BUFFER_ROWS;
use crate::attacks_mobile_ip::{HANDOFF_ROWS, handoff_agent};
use crate::common::*;
use aya::maps::{HashMap, Map, MapData, loaded_maps};
use os::{Clock, NetNs, Options, PacketSocket};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use wire::ipv4::{self, Header};
use wire::{Duration, EtherType, Frame, Ipv4Addr, Mac, Packet, PacketId, ipip};

/// A daemon of a foreign agent, and the namespace of all other hosts.
struct Agent {
    child: Child,
    daemons: NetNs,
    others: NetNs,
    dir: tempfile::TempDir,
}

impl Agent {
    /// Starts the agent, with further keys of its role and of its daemon. Returns the text of its error if it does not start.
    fn start(role: &str, daemon: &str) -> Result<Self, String> {
        let [daemons, others] = joined(&[]);
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "name = \"agent\"\ninterface = [{{ name = \"visited\", mac = \"02:00:00:00:00:01\", address = \"10.3.0.1/24\" }}, \
             {{ name = \"up\", mac = \"02:00:00:00:00:02\", address = \"10.9.0.1/24\" }}]\n{}\n[daemon]\ncontrol = \"{}\"\n{daemon}",
            handoff_agent(role).config,
            dir.path().join("agent.sock").display()
        );
        std::fs::write(dir.path().join("agent.toml"), config).unwrap();
        let mut command = Command::new(wayfare());
        command.arg("node").arg(dir.path().join("agent.toml")).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(dir.path().join("stderr")).unwrap());
        let child = daemons.run(|| command.spawn()).unwrap().unwrap();
        let mut agent = Self { child, daemons, others, dir };
        let is_there = wait_for("the agent", || {
            let has_ended = agent.child.try_wait().unwrap().map(|_| false);
            has_ended.or_else(|| ask(&agent.control(), r#"{"do":{"verb":"status"}}"#).map(|_| true))
        });
        if is_there { Ok(agent) } else { Err(agent.said()) }
    }

    fn control(&self) -> PathBuf {
        self.dir.path().join("agent.sock")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("stderr")).unwrap_or_default()
    }

    /// Returns the number of packets that the kernel has forwarded.
    fn forwarded(&self) -> u64 {
        let said = ask(&self.control(), r#"{"do":{"verb":"status"}}"#).unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said["ok"]["data_path"]["forwarded"].as_u64().unwrap_or_else(|| panic!("{said}"))
    }

    /// Runs a script of the other hosts, and returns the lines that it printed.
    fn script(&self, name: &str, more: &[&str]) -> Vec<String> {
        let mut script = Command::new("python3");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linux/attacks/");
        script.args(["-B".to_owned(), format!("{folder}{name}")]).arg(self.control());
        script.args(["air", "router"]).args(more).stdin(Stdio::null());
        let output = self.others.run(|| script.output()).unwrap().unwrap();
        assert!(output.status.success(), "{}{}{}", text(&output.stdout), text(&output.stderr), self.said());
        text(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Returns what the kernel says about the uplink.
    fn uplink(&self) -> String {
        let mut command = Command::new("ip");
        command.args(["-details", "link", "show", "dev", "up"]);
        text(&self.daemons.run(|| command.output()).unwrap().unwrap().stdout)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        forget(&self.daemons);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts an agent with the data path in the kernel, or returns `None` if this machine or this build cannot have one.
fn in_kernel(role: &str) -> Option<Agent> {
    if !need("root, to make a network", is_root()) {
        return None;
    }
    let agent = Agent::start(role, "data_path = \"kernel\"\n");
    let why = agent.as_ref().err().cloned().unwrap_or_default();
    if need(&format!("a data path in the kernel {why}"), agent.is_ok()) { agent.ok() } else { None }
}

fn maps() -> BTreeSet<u32> {
    loaded_maps().filter_map(|info| Some(info.ok()?.id())).collect()
}

/// Removes all rules from the maps with these numbers. The program then forwards nothing.
fn clear(maps: &BTreeSet<u32>) {
    fn empty<const K: usize, const V: usize>(id: u32) {
        let data = Map::HashMap(MapData::from_id(id).unwrap());
        let mut map: HashMap<MapData, [u8; K], [u8; V]> = data.try_into().unwrap();
        for key in map.keys().flatten().collect::<Vec<_>>() {
            map.remove(&key).unwrap();
        }
    }
    let mut cleared = BTreeSet::new();
    for info in loaded_maps().flatten().filter(|info| maps.contains(&info.id())) {
        let name = info.name_as_str().unwrap_or_default().to_owned();
        match name.as_str() {
            "config" => empty::<4, 400>(info.id()),
            "routes" => empty::<12, 64>(info.id()),
            "addresses" => empty::<4, 4>(info.id()),
            _ => continue,
        }
        cleared.insert(name);
    }
    assert_eq!(cleared.len(), 3, "{cleared:?}");
}

#[test]
fn a_flow_stays_in_the_kernel_and_its_last_packets_follow_the_visitor() {
    let _turn = alone();
    let before = maps();
    let Some(mut agent) = in_kernel("buffer = { packets = 3 }\n") else { return };
    let own: BTreeSet<u32> = maps().difference(&before).copied().collect();
    let wanted = [
        "flow all-in-order forwarded 2000 kept 2000 passed few",
        "buffered 3",
        "forged [] [] []",
        "left [] [1997, 1998, 1999, 2000, 2001, 2002, 2003, 2004] [62, 63] buffered 0",
        "moved whole kept ordered",
    ];
    assert_eq!(agent.script("kernel_data_path.py", &["leave"]), wanted);

    let flow = || agent.script("kernel_data_path.py", &["flow"]);
    assert_eq!(flow(), ["flow all-in-order forwarded 1000 kept 1000 passed few"]);
    // Without its rules, the program passes the packets to the daemon.
    clear(&own);
    assert_eq!(flow(), ["flow all-in-order forwarded 0 kept 0 passed all"]);

    assert!(agent.uplink().contains("xdp"), "{}", agent.uplink());
    agent.kill();
    assert!(!agent.uplink().contains("xdp"), "{}", agent.uplink());
    let left = || Some(()).filter(|()| maps().is_disjoint(&own));
    wait_for("the end of the maps", left);
}

/// The tests of a daemon without a data path in the kernel print the same with the data path in the kernel.
#[test]
fn the_daemon_does_the_same_with_and_without_the_kernel() {
    let _turn = beside_others();
    let Some(agent) = in_kernel("buffer = { when = \"request\", packets = 8 }\n") else { return };
    assert_eq!(agent.script("mobile_ip_buffers.py", &[]), BUFFER_ROWS);
    assert!(agent.forwarded() > 0, "the kernel had no part in it");
    let Some(agent) = in_kernel("") else { return };
    // Its packets come right behind messages, so the program must pass all of them.
    assert_eq!(agent.script("mobile_ip_handoffs.py", &[]), HANDOFF_ROWS);
}

#[test]
fn a_data_path_in_the_kernel_is_refused_where_each_packet_is_recorded() {
    if !need("root, to make a network", is_root()) {
        return;
    }
    let _turn = beside_others();
    let said = Agent::start("", "data_path = \"kernel\"\nrecords = \"records\"\n").err().unwrap();
    assert!(said.contains("daemon.data_path") && said.contains("are not recorded"), "{said}");
}

// --- the cost ------------------------------------------------------------------------------------------------------------------

/// How long packets are sent at once, and how often.
const BURST: Duration = Duration::from_millis(300);
const ROUNDS: usize = 9;

impl Agent {
    /// Returns the number of packets that have arrived on the visited link.
    fn delivered(&self) -> u64 {
        let text = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let text = self.others.run(text).unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("air:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Sends datagrams of `size` bytes to the visitor as fast as possible, and returns how many of them arrive per second.
    fn rate(&self, size: usize) -> f64 {
        let [sender, visitor] = [Ipv4Addr::new(10, 2, 0, 2), Ipv4Addr::new(10, 1, 0, 7)];
        let [home_agent, care_of] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 3, 0, 1)];
        let inner = Header::new(ipv4::UDP, sender, visitor).emit(&vec![7; size - ipv4::HEADER]);
        let bytes = ipip::encapsulate(&inner, home_agent, care_of, 1).unwrap();
        let [src, dst] = [9, 2].map(|last| Mac([2, 0, 0, 0, 0, last]));
        let link = Frame { kind: EtherType::IPV4, src, dst };
        let packets = vec![Packet { link, id: PacketId(1), bytes }; PacketSocket::AT_ONCE];
        let options = Options { bypass_qdisc: true, ..Options::default() };
        let socket = self.others.run(|| PacketSocket::open("router", &options).unwrap()).unwrap();
        let (before, clock) = (self.delivered(), Clock::start());
        while clock.now().since(wire::Instant::ZERO) < BURST {
            socket.send_packets(&packets, &mut |_, _| {});
        }
        let taken = clock.now().0;
        pause(100);
        (self.delivered() - before) as f64 * 1e9 / taken as f64
    }
}

/// Prints how many packets per second a foreign agent forwards: by its daemon and in the kernel, without and with a buffer.
#[test]
#[ignore = "a measurement: `make kept-packets` runs it"]
fn keeping_in_the_kernel_costs() {
    let _turn = alone();
    let kernel = "data_path = \"kernel\"\n";
    let ways = [
        ("daemon", "", ""),
        ("daemon, kept", "buffer = {}\n", ""),
        ("kernel", "", kernel),
        ("kernel, kept", "buffer = {}\n", kernel),
    ];
    let agents = ways.map(|(_, role, daemon)| Agent::start(role, daemon).unwrap());
    for agent in &agents {
        assert_eq!(agent.script("kernel_data_path.py", &["register"]), ["[0]"]);
    }
    for size in [100, 1400] {
        let mut rates = ways.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            agents.iter().zip(&mut rates).for_each(|(agent, rates)| rates.push(agent.rate(size)));
        }
        let medians = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[ROUNDS / 2]
        });
        for ((name, ..), rate) in ways.iter().zip(medians) {
            println!(
                "{size:>5} bytes  {name:<13} {:>8.0} packets/s  {:.2} of `daemon`",
                rate,
                rate / medians[0]
            );
        }
        println!(
            "{size:>5} bytes  with a buffer: {:.2} in the daemon, {:.2} in the kernel",
            medians[1] / medians[0],
            medians[3] / medians[2]
        );
    }
}
