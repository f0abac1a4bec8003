//! The location manager with programs of BIND: `nsupdate` changes the address of a mobile node, and `dig` looks the
//! address up.
//!
//! ```text
//!   nsupdate, dig ── the kernel's stack, 10.9.0.2 ── veth ── 10.9.0.1, wayfare node: sigma/location-manager
//! ```

use crate::common::*;
use crate::sandbox::in_sandbox;
use os::{End, EndPlace, NetNs, Netlink};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use wire::{Duration, Ipv4Addr, Mac};

const MANAGER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const MANAGER_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const NAME: &str = "mn.sigma.example";
/// The mobile node's secret in the daemon's configuration. `KEY` has the same secret in base 64, for BIND's programs,
/// and `WRONG` has another one.
const SECRET: &str = "000102030405060708090a0b0c0d0e0f";
const KEY: &str = "hmac-sha256:mn.sigma.example:AAECAwQFBgcICQoLDA0ODw==";
const WRONG: &str = "hmac-sha256:mn.sigma.example:AAAAAAAAAAAAAAAAAAAAAA==";

/// A location manager as a daemon, and a host that is connected to the daemon.
struct Stage {
    manager: NetNs,
    client: NetNs,
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let (manager, client) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let quiet = || drop(os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
        manager.run(quiet).unwrap();
        let set_up = || {
            quiet();
            let near = End { name: "net", mac: Mac([2, 0, 0, 0, 0, 2]), place: EndPlace::Here };
            let far = End { name: "up", mac: MANAGER_MAC, place: EndPlace::Fd(manager.as_fd()) };
            let mut net = Netlink::open().unwrap();
            net.loopback_up().unwrap();
            net.add_veth(&near, &far).unwrap();
            net.add_address("net", CLIENT, 24).unwrap();
            net.set_up("net", true).unwrap();
            os::ethtool::offloads_off("net").unwrap();
        };
        client.run(set_up).unwrap();
        let stage = Self { manager, client, dir: tempfile::tempdir().unwrap() };
        let text = format!(
            "name = \"manager\"\n\
             interface = [{{ name = \"up\", mac = \"{MANAGER_MAC}\", address = \"{MANAGER}/24\" }}]\n\
             role = [{{ kind = \"sigma/location-manager\", address = \"{MANAGER}\", zone = \"sigma.example\", \
             mobile_nodes = [{{ name = \"{NAME}\", key = \"{SECRET}\" }}] }}]\n\
             [daemon]\ncontrol = \"{}\"\nstore = \"{}\"\n",
            stage.control().display(),
            stage.dir.path().join("store").display()
        );
        std::fs::write(stage.dir.path().join("manager.toml"), text).unwrap();
        stage
    }

    fn control(&self) -> PathBuf {
        self.dir.path().join("manager.sock")
    }

    /// Starts the daemon, and waits until it answers.
    fn start(&self) -> Daemon {
        let mut command = Command::new(wayfare());
        command.arg("node").arg(self.dir.path().join("manager.toml")).stdin(Stdio::null());
        let child = self.manager.run(|| command.spawn()).unwrap().unwrap();
        let ready = || text(&self.dig(&[NAME, "A"]).stdout).contains("status:");
        wait_for("the location manager", || ready().then_some(()));
        Daemon(child)
    }

    fn at_client(&self, command: &mut Command) -> Child {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.client.run(|| command.spawn()).unwrap().unwrap()
    }

    fn dig(&self, words: &[&str]) -> Output {
        let mut command = Command::new("dig");
        command.args(["@10.9.0.1", "+tries=1", "+time=1"]).args(words);
        self.at_client(&mut command).wait_with_output().unwrap()
    }

    /// Returns the mobile node's address, as `dig` prints it.
    fn place(&self) -> String {
        text(&self.dig(&["+short", NAME, "A"]).stdout).trim().to_owned()
    }

    /// Makes `nsupdate` send these changes, signed if there is a key. Returns whether `nsupdate` succeeded, and what it
    /// printed.
    fn update(&self, key: Option<&str>, changes: &[&str]) -> (bool, String) {
        let mut command = Command::new("nsupdate");
        command.args(["-t", "5"]);
        if let Some(key) = key {
            command.args(["-y", key]);
        }
        let mut child = self.at_client(&mut command);
        let mut orders = child.stdin.take().unwrap();
        writeln!(orders, "server {MANAGER} 53\nzone sigma.example\n{}\nsend", changes.join("\n")).unwrap();
        drop(orders);
        let output = child.wait_with_output().unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }

    /// Moves the mobile node to this address, and removes its other addresses.
    fn moves(&self, key: Option<&str>, to: &str) -> (bool, String) {
        let (gone, there) = (format!("update delete {NAME}. A"), format!("update add {NAME}. 5 A {to}"));
        self.update(key, &[&gone, &there])
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        forget(&self.manager);
    }
}

struct Daemon(Child);

impl Daemon {
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn nsupdate_and_dig_find_a_name_server_in_it() {
    let have = ["nsupdate", "dig"].iter().all(|program| Command::new(program).arg("-V").output().is_ok());
    if !need("nsupdate and dig (bind9-dnsutils)", have) {
        return;
    }
    let _turn = beside_others();
    in_sandbox(Duration::from_mins(2), || {
        let stage = Stage::new();
        let daemon = stage.start();
        assert!(text(&stage.dig(&[NAME, "A"]).stdout).contains("status: NXDOMAIN"));
        assert_eq!(stage.moves(Some(KEY), "10.1.8.100"), (true, String::new()));
        assert_eq!(stage.place(), "10.1.8.100");

        // Forged and unsigned updates are refused, each with its reason, and have no effect.
        let (done, said) = stage.moves(Some(WRONG), "10.6.6.6");
        assert!(!done && said.contains("NOTAUTH(BADSIG)"), "{said}");
        let stranger = KEY.replace("mn.", "stranger.");
        let (done, said) = stage.moves(Some(&stranger), "10.6.6.6");
        assert!(!done && said.contains("NOTAUTH(BADKEY)"), "{said}");
        let (done, said) = stage.moves(None, "10.6.6.6");
        assert!(!done && said.contains("REFUSED"), "{said}");
        let other = ["update add other.sigma.example. 5 A 10.6.6.6"];
        let (done, said) = stage.update(Some(KEY), &other);
        assert!(!done && said.contains("REFUSED"), "{said}");
        assert_eq!(stage.place(), "10.1.8.100");

        // An update is applied only if its prerequisites hold (RFC 2136, section 2.4).
        let text_is = |seq: u8| format!("prereq yxrrset {NAME}. TXT \"seq={seq}\"");
        let added = format!("update add {NAME}. 5 TXT \"seq=1\"");
        assert_eq!(stage.update(Some(KEY), &[&added]), (true, String::new()));
        let there = format!("update add {NAME}. 5 A 10.1.6.100");
        let gone = format!("update delete {NAME}. A");
        let (done, said) = stage.update(Some(KEY), &[&text_is(2), &gone, &there]);
        assert!(!done && said.contains("NXRRSET"), "{said}");
        assert_eq!(stage.place(), "10.1.8.100");
        assert_eq!(stage.update(Some(KEY), &[&text_is(1), &gone, &there]), (true, String::new()));
        assert_eq!(stage.place(), "10.1.6.100");

        // `dig` signs its query, and verifies the answer's signature.
        let signed = text(&stage.dig(&["-y", KEY, NAME, "A"]).stdout);
        assert!(signed.contains("10.1.6.100") && signed.contains("TSIG PSEUDOSECTION"), "{signed}");
        assert!(signed.contains("NOERROR") && !signed.contains("Couldn't verify"), "{signed}");

        // An accepted update survives the end of the daemon.
        daemon.kill();
        let daemon = stage.start();
        assert_eq!(stage.place(), "10.1.6.100");
        daemon.kill();
    });
}
