//! A seed gives the same run twice, in debug and in release, and on another machine. The fingerprint covers the whole
//! run: a byte of a packet or the order of two simultaneous events changes it.
//!
//! The stored fingerprint changes only with the behaviour of the scenario. `WAYFARE_BLESS=1` stores it again. A commit
//! with a new fingerprint must explain what changed.

use link::{Fabric, PortId, WireSpec};
use node::{Command, Input, Node, Outbox, Role, Value};
use scenario::{Plan, Scenario};
use sim::{HostSpec, InterfaceSpec, World};
use std::fs;
use std::path::PathBuf;
use std::process;
use trace::{Fingerprint, HostId};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Rng, SocketAddrV4, WallTime, udp};

fn plan(seed: u64) -> Plan {
    let (file, text) = Scenario::find("first").unwrap();
    Scenario::plan(&file, &text, &[], seed).unwrap()
}

fn fingerprint(seed: u64) -> Fingerprint {
    recorder::run::simulate(plan(seed)).unwrap().fingerprint.unwrap()
}

fn expected_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "expected", "first-seed-7.txt"].iter().collect()
}

fn expected() -> String {
    fs::read_to_string(expected_file()).unwrap().trim().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "CI, and an update by maintainers, are set by variables")]
fn asked(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.is_empty())
}

#[test]
fn a_seed_gives_one_run_and_another_seed_another() {
    assert_eq!(fingerprint(7), fingerprint(7));
    assert_ne!(fingerprint(7), fingerprint(8));
}

#[test]
fn the_run_is_the_one_that_was_written_down() {
    let number = fingerprint(7).to_string();
    if asked("WAYFARE_BLESS") {
        fs::write(expected_file(), format!("{number}\n")).unwrap();
    }
    assert_eq!(number, expected(), "debug assertions: {}", cfg!(debug_assertions));
}

/// The release build of the command, optimized and without debug assertions, does the same run. `make released` builds it
/// and runs this test.
#[test]
#[ignore = "needs the release build: `make released`"]
fn the_released_command_does_the_same_run() {
    let binary: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "target", "release", "wayfare"].iter().collect();
    let place = env!("CARGO_TARGET_TMPDIR");
    let output =
        process::Command::new(&binary).args(["run", "first", "--seed", "7"]).current_dir(place).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; build it first", binary.display()));
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.lines().find_map(|line| line.strip_prefix("fingerprint "));
    assert_eq!(number, Some(expected().as_str()), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

// --- what the fingerprint covers --------------------------------------------------------------------------------------

/// A role that sends one packet at its deadline. Two instances differ only in the packet.
#[derive(Debug)]
struct Shout {
    packet: Option<Packet>,
}

const SHOUT_AT: Instant = Instant::from_millis(10);

impl Role for Shout {
    fn name(&self) -> &'static str {
        "shout"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        if matches!(input, Input::Timeout)
            && let Some(packet) = self.packet.take()
        {
            out.send(Iface(1), packet);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.packet.as_ref().map(|_| SHOUT_AT)
    }
    fn status(&self) -> Value {
        Value::None
    }
}

fn host(number: u8, packet: Option<Packet>) -> HostSpec {
    let address = Ipv4Addr::new(10, 0, 0, number);
    let (name, mac) = (format!("h{number}"), Mac([2, 0, 0, 0, 0, number]));
    let port = PortId(u32::from(number));
    HostSpec {
        name,
        node: Node::new(vec![Box::new(Shout { packet })], vec![address]),
        addresses: vec![address],
        interfaces: vec![InterfaceSpec { name: "eth".into(), mac, mtu: 1500, port, tunes: false }],
        wall: WallTime::default(),
        clock_error: wire::ClockError::NONE,
        tcp: tcp::Profile::linux_like().into(),
        rng: Rng::new(1),
    }
}

/// Returns the fingerprint of two hosts on a wire, one of which sends these bytes.
fn shouted(bytes: Vec<u8>) -> Fingerprint {
    let spec = WireSpec {
        rate: 1_000_000_000,
        delay: [Duration::from_millis(1); 2],
        queue: 10,
        mtu: 1500,
        faults: link::Faults::default(),
    };
    let mut fabric = Fabric::default();
    fabric.add_wire([PortId(1), PortId(2)], &spec, &Rng::new(1));
    let packet = Packet::new(Mac([2, 0, 0, 0, 0, 2]), bytes);
    let world = World::new(fabric, vec![host(1, Some(packet)), host(2, None)]);
    world.run(Instant::from_millis(100)).fingerprint
}

#[test]
fn one_changed_byte_of_a_packet_changes_the_number() {
    let ends = [1, 2].map(|number| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, number), 9000));
    let bytes = udp::packet(ends[0], ends[1], b"payload");
    let whole = shouted(bytes.clone());
    assert_eq!(whole, shouted(bytes.clone()));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_ne!(shouted(changed), whole, "byte {at}");
    }
}

/// Returns the fingerprint of `first` with these commands to the mobile host, at an instant without other events.
fn commanded(verbs: [&str; 2]) -> Fingerprint {
    let plan = plan(7);
    let mobile = plan.host_names().iter().position(|name| name == "mobile").unwrap();
    let mut world = plan.world().unwrap();
    for verb in verbs {
        let command = Command { verb: verb.to_owned(), args: Value::None };
        world.command(Instant(5_111_111_111), HostId(mobile as u32), command);
    }
    world.run(plan.end()).fingerprint
}

/// Neither command changes the state, so only the order of the events differs.
#[test]
fn two_simultaneous_events_exchanged_change_the_number() {
    assert_eq!(commanded(["status", "dance"]), commanded(["status", "dance"]));
    assert_ne!(commanded(["status", "dance"]), commanded(["dance", "status"]));
    assert_ne!(commanded(["status", "status"]), fingerprint(7), "an event more");
}
