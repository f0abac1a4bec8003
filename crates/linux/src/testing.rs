//! Shared by the tests: separate namespaces, and reports of what was skipped.

use crate::{End, NetNs, Netlink, Options, PacketSocket, Place, World};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use wire::{Duration, EtherType, Frame, Ipv4Addr, Mac, SocketAddrV4, ethernet};

/// The environment variable with the role of a process that a test starts from its own binary.
const ROLE: &str = "WAYFARE_TEST_ROLE";

/// Returns whether a test that needs `what` can run. In continuous integration (`CI`) a missing feature is a failure;
/// elsewhere the skip is printed past the harness's capture.
pub(crate) fn need(what: &str, have: bool) -> bool {
    assert!(have || variable("CI").is_none(), "CI must be able to test: {what}");
    if !have {
        let _ = writeln!(std::io::stderr(), "SKIPPED, because this machine lacks: {what}");
    }
    have
}

/// Returns the role with which this process was started.
pub(crate) fn role() -> Option<String> {
    variable(ROLE)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests run in separate processes, and the variable names the test"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Runs the body of the calling test in a new [`World`]; the body is given as a closure of the test function.
pub(crate) fn in_world<F: FnOnce()>(body: F) {
    if role().as_deref() == Some("world") {
        return body();
    }
    let spawned = World::spawn(again::<F>("world"));
    let refusal = spawned.as_ref().err().map(ToString::to_string).unwrap_or_default();
    if !need(&format!("a world {refusal}"), spawned.is_ok()) {
        return;
    }
    let mut world = spawned.unwrap();
    let ended = world.wait(Some(Duration::from_mins(1))).unwrap();
    assert!(ended.is_some_and(|status| status.success()), "inside its world: {ended:?}");
}

/// Runs the body in a new world twice: as the user that runs the tests, and as a user without any rights.
pub(crate) fn in_world_of_root_and_of_nobody<F: FnOnce()>(body: F) {
    if role().is_none() && need("root, to become another user", rustix::process::geteuid().is_root()) {
        let mut command = again::<F>("nobody");
        command.uid(65534).gid(65534);
        assert!(command.status().unwrap().success(), "as the user nobody");
    }
    in_world(body);
}

/// Returns a command that runs the calling test again in another process. Its name is that of the function around the
/// closure `F`.
pub(crate) fn again<F>(role: &str) -> Command {
    let name = std::any::type_name::<F>();
    let name = name.split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    // Not by its path, which another user may not be allowed to traverse.
    let mut command = Command::new("/proc/self/exe");
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Makes a veth pair, with both ends in this namespace and up, without IPv6.
pub(crate) fn veth(a: &str, b: &str) {
    let _ = crate::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1");
    let mut here = Netlink::open().unwrap();
    let end = |name, last| End { name, mac: Mac([2, 0, 0, 0, 0, last]), place: Place::Here };
    here.add_veth(&end(a, 1), &end(b, 2)).unwrap();
    here.set_up(a, true).unwrap();
    here.set_up(b, true).unwrap();
}

/// Returns whether `fd` becomes readable within `millis` milliseconds.
pub(crate) fn readable(fd: &impl AsFd, millis: i64) -> bool {
    let limit = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// The test's own end of [`joined`].
pub(crate) const NEAR: Mac = Mac([2, 0, 0, 0, 0, 1]);
/// The other end, where the kernel answers.
pub(crate) const FAR: Mac = Mac([2, 0, 0, 0, 0, 2]);

/// Two namespaces and the veth pair between them.
pub(crate) struct Joined {
    /// A socket on the near end; the near kernel has no address there.
    pub(crate) near: PacketSocket,
    /// A socket on the far end.
    pub(crate) tap: PacketSocket,
    /// The namespace whose kernel has the address 10.9.0.2 on device `b0`, with the link address [`FAR`].
    pub(crate) far: NetNs,
}

pub(crate) fn joined() -> Joined {
    let quiet = || drop(crate::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
    let far = NetNs::create().unwrap();
    let mut here = Netlink::open().unwrap();
    quiet();
    far.run(quiet).unwrap();
    let a = End { name: "a0", mac: NEAR, place: Place::Here };
    here.add_veth(&a, &End { name: "b0", mac: FAR, place: Place::Fd(far.as_fd()) }).unwrap();
    here.set_arp("a0", false).unwrap();
    here.set_up("a0", true).unwrap();
    crate::ethtool::offloads_off("a0").unwrap();
    let tap = far.run(|| {
        let mut there = Netlink::open().unwrap();
        there.add_address("b0", Ipv4Addr::new(10, 9, 0, 2), 24).unwrap();
        there.set_up("b0", true).unwrap();
        crate::ethtool::offloads_off("b0").unwrap();
        PacketSocket::open("b0", &Options::default()).unwrap()
    });
    let near = PacketSocket::open("a0", &Options { bypass_qdisc: true, ..Options::default() }).unwrap();
    Joined { near, tap: tap.unwrap(), far }
}

/// Returns a frame from [`NEAR`] with an ARP request (RFC 826) of 10.9.0.1 for 10.9.0.2.
pub(crate) fn arp_request() -> Vec<u8> {
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.extend_from_slice(&NEAR.0);
    arp.extend_from_slice(&[10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2]);
    ethernet::emit(&Frame { kind: EtherType(0x0806), src: NEAR, dst: Mac::BROADCAST }, &arp)
}

/// Returns a frame from [`NEAR`] to a closed port of [`FAR`]: a kernel that receives it answers by ICMP.
pub(crate) fn datagram(payload: &[u8]) -> Vec<u8> {
    let at = |last, port| SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, last), port);
    let bytes = wire::udp::packet(at(1, 434), at(2, 434), payload);
    ethernet::emit(&Frame { kind: EtherType::IPV4, src: NEAR, dst: FAR }, &bytes)
}

/// Returns all frames that arrive until none has for `millis` milliseconds.
pub(crate) fn hear(socket: &PacketSocket, millis: i64) -> Vec<(crate::Received, Vec<u8>)> {
    let mut heard = Vec::new();
    let mut frame = [0; 2000];
    while readable(socket, millis) {
        while let Some(received) = socket.receive(&mut frame).unwrap() {
            heard.push((received, frame[..received.len].to_vec()));
        }
    }
    heard
}
