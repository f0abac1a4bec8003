//! Two kernels with a veth pair between them, and frames for it. The unit tests of `os` and `daemon` use it.

use os::{End, EndPlace, NetNs, Netlink, Options, PacketSocket};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::os::fd::AsFd;
use wire::{EtherType, Frame, Ipv4Addr, Mac, SocketAddrV4, ethernet};

/// Returns whether `fd` becomes readable within `millis` milliseconds.
pub(crate) fn readable(fd: &impl AsFd, millis: i64) -> bool {
    let limit = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// The link address of the near end, which the test uses.
pub(crate) const NEAR: Mac = Mac([2, 0, 0, 0, 0, 1]);
/// The link address of the far end, where the kernel answers.
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
    let quiet = || drop(os::namespace::sysctl("net/ipv6/conf/default/disable_ipv6", "1"));
    let far = NetNs::create().unwrap();
    let mut here = Netlink::open().unwrap();
    quiet();
    far.run(quiet).unwrap();
    let a = End { name: "a0", mac: NEAR, place: EndPlace::Here };
    here.add_veth(&a, &End { name: "b0", mac: FAR, place: EndPlace::Fd(far.as_fd()) }).unwrap();
    here.set_arp("a0", false).unwrap();
    here.set_up("a0", true).unwrap();
    os::ethtool::offloads_off("a0").unwrap();
    let tap = far.run(|| {
        let mut there = Netlink::open().unwrap();
        there.add_address("b0", Ipv4Addr::new(10, 9, 0, 2), 24).unwrap();
        there.set_up("b0", true).unwrap();
        os::ethtool::offloads_off("b0").unwrap();
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
pub(crate) fn hear(socket: &PacketSocket, millis: i64) -> Vec<(os::Received, Vec<u8>)> {
    let mut heard = Vec::new();
    let mut frame = [0; 2000];
    while readable(socket, millis) {
        while let Some(received) = socket.receive(&mut frame).unwrap() {
            heard.push((received, frame[..received.len].to_vec()));
        }
    }
    heard
}
