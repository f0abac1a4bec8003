//! Mobile IP against programs of others: messages of scapy, tshark as a decoder, and the kernel as correspondent and
//! router. Each daemon runs in a separate network namespace, without a lab. `make mip-peers` runs these tests.

mod dissector;
mod operator;
mod path;
mod scapy;
mod speed;
mod three_decoders;

use crate::common::*;
use os::{End, EndPlace, NetNs, Netlink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use wire::{Mac, Prefix};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// The folder of the scripts.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linux/mip_peers");
/// The interpreter of Debian, for which Debian's package installs scapy. Another `python3` can be first in the `PATH`.
const PYTHON: &str = "/usr/bin/python3";

/// Returns the link address of an interface of a test.
fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 2, last])
}

/// Hosts in network namespaces, joined by links. Some have a daemon, the others only the kernel or a script.
struct Stage {
    dir: tempfile::TempDir,
    hosts: BTreeMap<&'static str, NetNs>,
    daemons: BTreeMap<&'static str, Child>,
}

impl Stage {
    fn new(hosts: &[&'static str]) -> Self {
        let quiet = || {
            let _ = os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
            Netlink::open().unwrap().loopback_up().unwrap();
        };
        let make = |host: &&'static str| {
            let namespace = NetNs::create().unwrap();
            namespace.run(quiet).unwrap();
            (*host, namespace)
        };
        let hosts = hosts.iter().map(make).collect();
        Self { dir: tempfile::tempdir().unwrap(), hosts, daemons: BTreeMap::new() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Joins two hosts. Each end is a host, the name of the interface and the last byte of its link address.
    fn join(&self, a: (&str, &str, u8), b: (&str, &str, u8), mtu: u32) {
        let far = &self.hosts[b.0];
        let near = || {
            let mut here = Netlink::open().unwrap();
            let ends = [(a, EndPlace::Here), (b, EndPlace::Fd(far.as_fd()))];
            let [here_end, there] = ends.map(|((_, name, last), place)| End { name, mac: mac(last), place });
            here.add_veth(&here_end, &there).unwrap();
            here.set_mtu(a.1, mtu).unwrap();
            here.set_up(a.1, true).unwrap();
        };
        self.hosts[a.0].run(near).unwrap();
        let set_up = || {
            let mut there = Netlink::open().unwrap();
            there.set_mtu(b.1, mtu).unwrap();
            there.set_up(b.1, true).unwrap();
        };
        far.run(set_up).unwrap();
    }

    /// Keeps the kernel from using an interface, so that only the script sends and answers there.
    fn silence(&self, host: &str, interface: &str) {
        self.hosts[host].run(|| Netlink::open().unwrap().set_arp(interface, false).unwrap()).unwrap();
    }

    /// Gives an address in a prefix of 24 bits to an interface of a host's kernel.
    fn address(&self, host: &str, interface: &str, address: Ipv4Addr) {
        let add = || Netlink::open().unwrap().add_address(interface, address, 24).unwrap();
        self.hosts[host].run(add).unwrap();
    }

    /// Sets a route of a host's kernel.
    fn route(&self, host: &str, to: Prefix, interface: &str, via: Ipv4Addr) {
        let set = || Netlink::open().unwrap().set_route(to, interface, Some(via)).unwrap();
        self.hosts[host].run(set).unwrap();
    }

    /// Starts a daemon with this configuration, and waits until it answers.
    fn start(&mut self, host: &'static str, config: &str) {
        let (file, control) = (self.at(&format!("{host}.toml")), self.control(host));
        let records = format!("records = \"{}\"\n", self.at(&format!("{host}.records")).display());
        let config = format!(
            "name = \"{host}\"\n{config}\n[daemon]\ncontrol = \"{}\"\nstore = \"{}\"\n{}",
            control.display(),
            self.at(&format!("{host}.store")).display(),
            records,
        );
        std::fs::write(&file, config).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(wayfare());
        command.arg("node").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(self.at(&format!("{host}.stderr"))).unwrap());
        self.daemons.insert(host, self.hosts[host].run(|| command.spawn()).unwrap().unwrap());
        for _ in 0..2000 {
            if self.try_status(host).is_some() {
                return;
            }
            pause(5);
        }
        panic!("{host}: {}", std::fs::read_to_string(self.at(&format!("{host}.stderr"))).unwrap());
    }

    fn control(&self, host: &str) -> PathBuf {
        self.at(&format!("{host}.sock"))
    }

    fn ask(&self, host: &str, line: &str) -> Option<Value> {
        let answer = ask(&self.control(host), line)?;
        serde_json::from_str::<Value>(&answer).ok()?.get("ok").cloned()
    }

    fn try_status(&self, host: &str) -> Option<Value> {
        self.ask(host, r#"{"do":{"verb":"status"}}"#)
    }

    fn status(&self, host: &str) -> Value {
        self.try_status(host).unwrap_or_else(|| panic!("no status of {host}"))
    }

    /// Returns how many packets a daemon dropped for this reason.
    fn drops(&self, host: &str, reason: &str) -> u64 {
        self.status(host)["drops"][reason].as_u64().unwrap_or(0)
    }

    /// Waits until the role of a host has this state.
    fn wait_state(&self, host: &str, role: &str, state: &str) {
        wait_for(&format!("the state `{state}` of {host}"), || {
            (self.try_status(host)?[role]["state"] == state).then_some(())
        });
    }

    /// Returns a program that will run in the namespace of a host.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs a program of others at a host to its end.
    fn run(&self, host: &str, words: &[&str]) -> std::process::Output {
        let mut command = self.command(words);
        self.hosts[host].run(|| command.output()).unwrap().unwrap()
    }

    /// Runs a program of others at a host. It must succeed. Returns its output.
    fn output(&self, host: &str, words: &[&str]) -> String {
        let output = self.run(host, words);
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Starts a program of others at a host.
    fn spawn(&self, host: &str, words: &[&str]) -> Program {
        let mut command = self.command(words);
        command.stdout(Stdio::piped());
        Program(self.hosts[host].run(|| command.spawn()).unwrap().unwrap())
    }

    /// Captures what an interface of a host receives, until the program ends. A tap does not see the frames that a daemon
    /// on this host sends, because they bypass the queueing discipline.
    fn capture(&self, host: &str, interface: &str, file: &str) -> Program {
        let file = self.at(file);
        let mut command = self.command(&["tshark", "-q", "-i", interface, "-w", file.to_str().unwrap()]);
        command.stderr(Stdio::null());
        let capture = Program(self.hosts[host].run(|| command.spawn()).unwrap().unwrap());
        wait_for("the capture", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 0).then_some(()));
        capture
    }

    /// Runs a script of this folder at a host. It must succeed. Returns the lines of its output.
    fn script(&self, host: &str, name: &str, arguments: &[&str]) -> Vec<String> {
        let file = format!("{FOLDER}/{name}");
        // With `-B`, Python writes no compiled copy beside the scripts.
        let words = [&[PYTHON, "-B", &file], arguments].concat();
        self.output(host, &words).lines().map(str::to_owned).collect()
    }

    /// Ends a daemon by SIGTERM, after which its records are written.
    fn stop(&mut self, host: &str) {
        let mut child = self.daemons.remove(host).unwrap();
        signal(child.id(), rustix::process::Signal::TERM);
        let status = child.wait().unwrap();
        let said = std::fs::read_to_string(self.at(&format!("{host}.stderr"))).unwrap();
        assert!(status.success(), "{host}: {status}: {said}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for (host, child) in &mut self.daemons {
            // After SIGTERM, a daemon restores its namespace.
            if let Ok(None) = child.try_wait() {
                signal(child.id(), rustix::process::Signal::TERM);
            }
            let _ = child.wait();
            forget(&self.hosts[host]);
        }
    }
}

/// A program of others that ends with its test.
struct Program(Child);

impl Program {
    /// Ends a capture. Then its file is complete.
    fn interrupt(mut self) {
        signal(self.0.id(), rustix::process::Signal::INT);
        self.0.wait().unwrap();
    }

    /// Waits for the end of the program, which must succeed. Returns its output.
    fn end(mut self) -> String {
        let mut said = String::new();
        let output = self.0.stdout.take().map(|mut out| std::io::Read::read_to_string(&mut out, &mut said));
        output.unwrap().unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            signal(self.0.id(), rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// Returns whether these programs are installed; each is called with an argument that ends it at once.
fn have(programs: &[&[&str]]) -> bool {
    let is_there = |words: &&[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    is_root() && programs.iter().all(is_there)
}

/// Returns whether the tests with programs of others can run.
fn need_peers(have: bool) -> bool {
    need("root, tshark and scapy (python3-scapy)", have)
}
