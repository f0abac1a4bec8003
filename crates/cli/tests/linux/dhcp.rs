//! A client of DHCP in a daemon, with `dnsmasq` as the server.
//!
//! ```text
//!   the kernel's stack ── wayfare node: dhcp/client ── veth ── dnsmasq at 10.3.0.1, and the kernel's stack
//! ```

use crate::common::*;
use os::{End, EndPlace, NetNs, Netlink};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use wire::{Ipv4Addr, Mac};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
const CLIENT_MAC: Mac = Mac([2, 0, 0, 0, 0, 7]);
const STATUS: &str = r#"{"do":{"verb":"status"}}"#;

/// A program that a test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // The daemon restores the namespace when it is terminated.
        signal(self.0.id(), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A host with the daemon, and a host with the server.
struct Stage {
    client: NetNs,
    server: NetNs,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let quiet = || drop(os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
        client.run(quiet).unwrap();
        let set_up = || {
            quiet();
            let near = End { name: "lan", mac: Mac([2, 0, 0, 0, 0, 1]), place: EndPlace::Here };
            let far = End { name: "eth", mac: CLIENT_MAC, place: EndPlace::Fd(client.as_fd()) };
            let mut net = Netlink::open().unwrap();
            net.loopback_up().unwrap();
            net.add_veth(&near, &far).unwrap();
            net.add_address("lan", SERVER, 24).unwrap();
            net.set_up("lan", true).unwrap();
            os::ethtool::offloads_off("lan").unwrap();
        };
        server.run(set_up).unwrap();
        let stage = Self { client, server, dir: tempfile::tempdir().unwrap() };
        let text = format!(
            "name = \"client\"\ninterface = [{{ name = \"eth\", mac = \"{CLIENT_MAC}\" }}]\n\
             role = [{{ kind = \"dhcp/client\", interface = \"eth\", retry = \"500ms\" }}]\n\
             [daemon]\ncontrol = \"{}\"\n",
            stage.control().display()
        );
        std::fs::write(stage.dir.path().join("client.toml"), text).unwrap();
        stage
    }

    fn control(&self) -> PathBuf {
        self.dir.path().join("client.sock")
    }

    fn serve(&self) -> Program {
        let leases = format!("--dhcp-leasefile={}", self.leases().display());
        let mut command = Command::new("dnsmasq");
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--interface=lan"]);
        command.args(["--bind-interfaces", "--dhcp-range=10.3.0.100,10.3.0.199,255.255.255.0,2m"]);
        command.args(["--dhcp-option=3,10.3.0.1", "--dhcp-authoritative", "--no-ping", "--user=root"]);
        command.args(["--pid-file", "--log-facility=/dev/null", &leases]).stdin(Stdio::null());
        Program(self.server.run(|| command.spawn()).unwrap().unwrap())
    }

    fn start(&self) -> Program {
        let mut command = Command::new(wayfare());
        command.arg("node").arg(self.dir.path().join("client.toml")).stdin(Stdio::null());
        Program(self.client.run(|| command.spawn()).unwrap().unwrap())
    }

    fn leases(&self) -> PathBuf {
        self.dir.path().join("leases")
    }

    /// Returns the link addresses and addresses in the server's leases.
    fn leased(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.leases()).unwrap_or_default();
        let words = text.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        words.map(|words| (words[1].clone(), words[2].clone())).collect()
    }

    fn ask(&self, line: &str) -> Option<serde_json::Value> {
        let answer = ask(&self.control(), line)?;
        serde_json::from_str::<serde_json::Value>(&answer).ok()?.get("ok").cloned()
    }

    /// Waits until the client's status has this value in this field, and returns the client's status.
    fn wait_until(&self, field: &str, value: &str) -> serde_json::Value {
        wait_for("the client", || {
            let status = self.ask(STATUS)?["dhcp_client"].clone();
            (status[field] == value).then_some(status)
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        forget(&self.client);
    }
}

#[test]
fn dnsmasq_leases_an_address_with_which_the_kernel_connects() {
    let have = Command::new("dnsmasq").arg("--version").output().is_ok();
    if !need("root and dnsmasq (dnsmasq-base)", have && is_root()) {
        return;
    }
    let _turn = beside_others();
    let stage = Stage::new();
    let daemon = stage.start();
    let server = stage.serve();
    let status = stage.wait_until("state", "bound");
    let address = status["address"].as_str().unwrap().trim_end_matches("/24").to_owned();
    assert_eq!(status["router"], "10.3.0.1");
    assert_eq!(status["server"], "10.3.0.1");
    assert_eq!(status["lease_s"], 120);
    assert_eq!(status["refused"], serde_json::json!({}));
    assert_eq!(stage.leased(), [(CLIENT_MAC.to_string(), address.clone())]);

    // The host's kernel has the address, and connects with it.
    let listener = stage.server.run(|| TcpListener::bind((SERVER, 9000))).unwrap().unwrap();
    let here = stage.client.run(|| TcpStream::connect((SERVER, 9000)).map(|stream| stream.local_addr()));
    assert_eq!(here.unwrap().unwrap().unwrap().ip().to_string(), address);
    let (mut peer, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), address);
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0, "the client has closed its socket");

    // The lease is extended by unicast, and released.
    stage.ask(r#"{"do":{"verb":"renew"}}"#).expect("the lease");
    stage.wait_until("state", "bound");
    assert_eq!(stage.ask(r#"{"do":{"verb":"release"}}"#).expect("the lease")["address"], address);
    stage.wait_until("state", "idle");
    wait_for("the server", || stage.leased().is_empty().then_some(()));
    drop((daemon, server));
}
