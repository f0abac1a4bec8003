//! Tests of joined connections: they pass every byte, the end, a reset and back-pressure. Also tests what is returned
//! when they are parted.

use super::options::{SIOCINQ, SIOCOUTQ, TCP_QUEUE_SEQ, TCP_REPAIR, TCP_REPAIR_QUEUE, get, queued, set};
use super::tcp::Tcp;
use crate::testing::in_sandbox;
use node::stream::{OwnedMigrateEvent, OwnedStreamEvent, refusal};
use node::{Addr, MigrateOp, SocketOption, StreamId, StreamOp, Transport};
use os::{End, EndPlace, NetNs, Netlink};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use wire::icmp::IcmpError;
use wire::ipv4::{self, Header};
use wire::{Duration, Ipv4Addr, Mac, Prefix};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const WIRED: StreamId = StreamId(1);
const RADIO: StreamId = StreamId(2);

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = wire::Rng::new(seed);
    (0..len).map(|_| rng.draw() as u8).collect()
}

/// Two connections of one host, and their peers.
struct Rig {
    tcp: Tcp,
    told: Vec<OwnedStreamEvent>,
    wired: TcpStream,
    radio: TcpStream,
}

impl Rig {
    fn new() -> Self {
        Self::with(65_536, &[])
    }

    /// Builds two connections over a loopback with this MTU, with these options on both.
    fn with(mtu: u32, knobs: &[SocketOption]) -> Self {
        let mut net = Netlink::open().unwrap();
        net.set_mtu("lo", mtu).unwrap();
        net.keep_segments("lo").unwrap();
        net.loopback_up().unwrap();
        net.add_address("lo", HERE, 32).unwrap();
        let mut rig = Tcp::alone(Some(HERE));
        let mut told = Vec::new();
        let [wired, radio] = [(WIRED, 80), (RADIO, 81)].map(|(id, port)| {
            let listener = TcpListener::bind((HERE, port)).unwrap();
            let open = StreamOp::Open {
                by: Transport::Tcp,
                local: None,
                peer: Addr::new(HERE, port),
                foreign: false,
            };
            for op in knobs.iter().map(|knob| StreamOp::Set(*knob)).chain([open]) {
                rig.operate(id, op, &|_| false, &mut told);
            }
            let peer = listener.accept().unwrap().0;
            peer.set_nonblocking(true).unwrap();
            peer
        });
        let mut rig = Self { tcp: rig, told, wired, radio };
        rig.round();
        assert_eq!(rig.told.iter().filter(|told| matches!(told, OwnedStreamEvent::Opened(..))).count(), 2);
        rig.told.clear();
        rig
    }

    fn op(&mut self, id: StreamId, op: StreamOp) {
        self.tcp.operate(id, op, &|_| false, &mut self.told);
    }

    fn join(&mut self, staged: [&[u8]; 2]) {
        self.op(WIRED, StreamOp::Migrate(MigrateOp::Join(RADIO, staged.map(<[u8]>::to_vec))));
    }

    fn round(&mut self) {
        os::pause(Duration::from_millis(1));
        self.tcp.turn(&mut 0, &mut self.told);
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..5000 {
            if done(self) {
                return;
            }
            self.round();
        }
        panic!("{what} never came; {:?}", self.told);
    }

    fn closed(&self) -> Vec<(StreamId, Option<&str>)> {
        let mut closed: Vec<_> = self
            .told
            .iter()
            .filter_map(|told| match told {
                OwnedStreamEvent::Closed(id, why) => Some((*id, why.as_deref())),
                _ => None,
            })
            .collect();
        closed.sort_unstable();
        closed
    }
}

/// Reads what is available; `None` at the end of the stream.
fn take(from: &mut TcpStream, into: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 16_000];
    match from.read(&mut bytes) {
        Ok(0) => None,
        Ok(got) => {
            into.extend_from_slice(&bytes[..got]);
            Some(())
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Some(()),
        Err(error) => panic!("{error}"),
    }
}

/// Writes as much as the kernel accepts now.
fn give(to: &mut TcpStream, from: &[u8], at: &mut usize) {
    while *at < from.len() {
        match to.write(&from[*at..]) {
            Ok(taken) => *at += taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn every_byte_and_the_end_pass_both_ways_the_staged_ones_first() {
    in_sandbox(|| {
        let mut rig = Rig::new();
        let (down, up) = (pattern(3_000_000, 1), pattern(1_000_000, 2));
        rig.join([b"to the radio", b"to the wire"]);
        let (mut at, mut heard, mut half) = ([0, 0], [Vec::new(), Vec::new()], false);
        rig.until("everything", |rig| {
            give(&mut rig.wired, &down, &mut at[0]);
            give(&mut rig.radio, &up, &mut at[1]);
            if at[0] == down.len() && !half {
                // The direction from the radio to the wire stays open.
                rig.wired.shutdown(std::net::Shutdown::Write).unwrap();
                half = true;
            }
            take(&mut rig.wired, &mut heard[0]);
            let is_over = take(&mut rig.radio, &mut heard[1]).is_none();
            is_over && half && at[1] == up.len() && heard[0].len() == up.len() + 11
        });
        assert_eq!(rig.told, [], "one direction is over, and no role is notified of the relay's reads");
        assert!(heard[0] == [&b"to the wire"[..], &up].concat());
        assert!(heard[1] == [&b"to the radio"[..], &down].concat());
        rig.radio.shutdown(std::net::Shutdown::Write).unwrap();
        rig.until("the end", |rig| rig.closed() == [(WIRED, None), (RADIO, None)]);
        rig.until("the end at the other peer", |rig| take(&mut rig.wired, &mut Vec::new()).is_none());
    });
}

#[test]
fn a_reset_of_one_resets_the_other() {
    in_sandbox(|| {
        for aborts in [false, true] {
            let mut rig = Rig::new();
            rig.join([b"", b""]);
            if aborts {
                rig.op(WIRED, StreamOp::Abort);
                assert_eq!(rig.closed(), [(WIRED, None), (RADIO, Some(refusal::RESET))]);
            } else {
                // A peer that closes with unread data sends a reset.
                rig.radio.write_all(b"never read").unwrap();
                rig.round();
                let Rig { tcp, told, wired, radio } = rig;
                drop(wired);
                let spare = radio.try_clone().unwrap();
                rig = Rig { tcp, told, wired: spare, radio };
                rig.radio.write_all(b"on").unwrap();
                let both = [(WIRED, Some(refusal::RESET)), (RADIO, Some(refusal::RESET))];
                rig.until("the end of both", |rig| rig.closed() == both);
            }
            let mut radio = &rig.radio;
            assert_eq!(radio.read(&mut [0; 100]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            drop(rig);
            Netlink::open().unwrap().delete_address("lo", HERE, 32).unwrap();
        }
    });
}

/// A slow reader stops the writer, and the bytes under way are returned completely.
#[test]
fn a_slow_reader_stops_the_writer_and_parting_gives_back_what_waited() {
    in_sandbox(|| {
        let mut rig = Rig::new();
        rig.join([b"first ", b""]);
        let down = pattern(60_000_000, 3);
        let mut at = 0;
        let mut before = usize::MAX;
        while before != at {
            before = at;
            (0..50).for_each(|_| {
                give(&mut rig.wired, &down, &mut at);
                rig.round();
            });
        }
        assert!(at < down.len(), "back-pressure");
        for id in [WIRED, RADIO] {
            rig.op(id, StreamOp::Migrate(MigrateOp::Freeze));
        }
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Part));
        let [OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Parted([up, waiting]))] = &rig.told[..]
        else {
            panic!("{:?}", rig.told)
        };
        let (up, waiting) = (up.clone(), waiting.clone());
        assert!(up.is_empty() && !waiting.is_empty() && waiting.len() <= 64 * 1024, "{}", waiting.len());
        rig.told.clear();
        // The two connections are ordinary streams again, and get credit when they are thawed. When they are joined a
        // second time, no byte is lost or duplicated.
        for id in [WIRED, RADIO] {
            rig.op(id, StreamOp::Migrate(MigrateOp::Thaw));
        }
        assert!(
            matches!(rig.told[..], [OwnedStreamEvent::Room(WIRED, _), OwnedStreamEvent::Room(RADIO, _)]),
            "{:?}",
            rig.told
        );
        rig.told.clear();
        rig.join([&waiting, b""]);
        let mut heard = Vec::new();
        rig.until("all of it", |rig| {
            give(&mut rig.wired, &down, &mut at);
            take(&mut rig.radio, &mut heard);
            heard.len() == down.len() + 6
        });
        assert!(heard[6..] == down && heard.starts_with(b"first "));
        assert_eq!(rig.told, []);
    });
}

/// Both peers have finished, and the slow reader has not received everything. The relay had room for all bytes of the
/// other peer, so that peer's connection is closed. The reader's connection moves alone, and is closed only when the
/// reader has everything.
#[test]
fn what_is_left_of_a_relay_moves_alone() {
    in_sandbox(|| ends_and_moves_alone(40_000, true));
}

/// Both peers have finished, and the relay had no room for all bytes to the slow reader. The other peer's connection
/// has ended, and some of its bytes are still in its socket or in the relay. A move passes these bytes to the reader's
/// connection.
#[test]
fn what_an_ended_side_had_received_moves_with_the_other() {
    in_sandbox(|| ends_and_moves_alone(100_000, false));
}

fn ends_and_moves_alone(len: usize, room: bool) {
    let mut rig = Rig::with(1500, &[]);
    sockopt::set_socket_recv_buffer_size(&rig.radio, 4096).unwrap();
    rig.join([&[], &[]]);
    rig.radio.shutdown(std::net::Shutdown::Write).unwrap();
    let (sent, mut given, mut heard) = (pattern(len, 5), 0, Vec::new());
    rig.until("the end", |rig| take(&mut rig.wired, &mut heard).is_none());
    rig.until("all is given", |rig| {
        give(&mut rig.wired, &sent, &mut given);
        given == len
    });
    rig.wired.shutdown(std::net::Shutdown::Write).unwrap();
    let ended = |tcp: &Tcp| tcp.sockets.get(&WIRED).is_none_or(|socket| socket.state().unwrap() == 7);
    rig.until("the wired side ends", |rig| ended(&rig.tcp));
    for _ in 0..100 {
        rig.round();
    }
    let closed: &[_] = if room { &[(WIRED, None)] } else { &[] };
    assert_eq!(rig.closed(), closed, "of {len} bytes");
    let ends: &[_] = if room { &[RADIO] } else { &[RADIO, WIRED] };
    rig.told.clear();
    for id in ends {
        rig.op(*id, StreamOp::Migrate(MigrateOp::Freeze));
    }
    if !room {
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Part));
    }
    for id in ends {
        rig.op(*id, StreamOp::Migrate(MigrateOp::Export));
    }
    let told = std::mem::take(&mut rig.told);
    let (staged, state) = match &told[..] {
        [OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Exported(state))] if room => (Vec::new(), state),
        [
            OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Parted([up, down])),
            OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Exported(state)),
            OwnedStreamEvent::Migrate(WIRED, OwnedMigrateEvent::Refused(why)),
        ] if !room && up.is_empty() && !down.is_empty() && why == refusal::NOT_ESTABLISHED => {
            (down.clone(), state)
        }
        told => panic!("{told:?}"),
    };
    let mut state = state.clone();
    assert!(state.finished && state.unread.is_empty() && state.finishing == room);
    state.unacknowledged.extend(staged);
    state.finishing = true;
    for id in ends {
        rig.op(*id, StreamOp::Migrate(MigrateOp::Forget));
    }
    rig.told.clear();
    let new = StreamId(7);
    rig.op(new, StreamOp::Migrate(MigrateOp::Import(state)));
    rig.op(new, StreamOp::Migrate(MigrateOp::Thaw));
    let mut heard = Vec::new();
    rig.until("every byte and the end", |rig| take(&mut rig.radio, &mut heard).is_none());
    assert!(heard == sent, "{} of {len} bytes", heard.len());
    rig.until("it is closed", |rig| !rig.closed().is_empty());
    assert_eq!(rig.closed(), [(new, None)]);
}

/// The user's buffer sizes limit what a relay keeps; here, the relay and each kernel buffer keep a few kilobytes.
#[test]
fn buffers_of_its_own_bound_what_a_relay_keeps() {
    in_sandbox(|| {
        let knobs =
            [SocketOption::SendBuffer(8192), SocketOption::ReceiveBuffer(8192), SocketOption::Nagle(false)];
        let mut rig = Rig::with(1500, &knobs);
        rig.join([b"", b""]);
        let socket = &rig.tcp.sockets[&RADIO].fd;
        assert!(sockopt::tcp_nodelay(socket).unwrap());
        let down = pattern(6_000_000, 3);
        let mut at = 0;
        (0..500).for_each(|_| {
            give(&mut rig.wired, &down, &mut at);
            rig.round();
        });
        let (far, near) = (&rig.tcp.sockets[&WIRED].fd, &rig.tcp.sockets[&RADIO].fd);
        let kept = [queued(far, SIOCINQ).unwrap(), queued(near, SIOCOUTQ).unwrap()];
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Part));
        let OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Parted([_, waiting])) = &rig.told[0] else {
            panic!("it did not part")
        };
        assert!(waiting.len() <= 4096, "{}", waiting.len());
        assert!(kept.iter().all(|kept| (1..=12_288).contains(kept)), "{kept:?}");
    });
}

#[test]
fn only_two_open_connections_can_be_joined_and_only_once() {
    in_sandbox(|| {
        let mut rig = Rig::new();
        let refused = |rig: &mut Rig, id, op, why: &str| {
            rig.op(id, op);
            assert_eq!(rig.told.pop(), Some(OwnedStreamEvent::refused(id, why)));
        };
        refused(&mut rig, WIRED, StreamOp::Migrate(MigrateOp::Part), refusal::NOT_JOINED);
        let join = |other| StreamOp::Migrate(MigrateOp::Join(other, [Vec::new(), Vec::new()]));
        for other in [WIRED, StreamId(7)] {
            refused(&mut rig, WIRED, join(other), refusal::NOT_JOINABLE);
        }
        rig.join([b"", b""]);
        refused(&mut rig, RADIO, join(WIRED), refusal::NOT_JOINABLE);
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Part));
        assert!(matches!(rig.told[0], OwnedStreamEvent::Migrate(RADIO, OwnedMigrateEvent::Parted(_))));
    });
}

/// If one end closes silently while bytes are under way, the other end must not be closed cleanly.
#[test]
fn bytes_that_are_lost_are_not_followed_by_a_clean_end() {
    in_sandbox(|| {
        let mut rig = Rig::new();
        rig.join([b"", b""]);
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Freeze));
        rig.wired.write_all(b"lost").unwrap();
        rig.round();
        rig.op(RADIO, StreamOp::Migrate(MigrateOp::Forget));
        assert_eq!(rig.closed(), [(WIRED, Some(refusal::RESET)), (RADIO, None)]);
        let mut wired = &rig.wired;
        assert_eq!(wired.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

/// If a daemon dies during a relay or during a move, both peers get an error and no clean end.
#[test]
fn who_dies_leaves_errors_and_not_an_end_in_good_order() {
    in_sandbox(|| {
        for moves in [false, true] {
            let mut rig = Rig::new();
            rig.join([b"", b""]);
            rig.wired.write_all(b"begun").unwrap();
            let mut heard = Vec::new();
            rig.until("the begin", |rig| {
                take(&mut rig.radio, &mut heard);
                heard == b"begun"
            });
            for op in [StreamOp::Migrate(MigrateOp::Freeze), StreamOp::Migrate(MigrateOp::Export)]
                .iter()
                .filter(|_| moves)
            {
                rig.op(WIRED, op.clone());
                rig.op(RADIO, op.clone());
            }
            let Rig { tcp, wired, radio, .. } = rig;
            drop(tcp);
            for mut peer in [&wired, &radio] {
                if moves {
                    // A connection that is being moved is closed silently. So a peer gets a reset only after it has
                    // sent a segment.
                    assert_eq!(peer.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
                    peer.write_all(b"still there?").unwrap();
                    os::pause(Duration::from_millis(10));
                }
                assert_eq!(peer.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionReset);
            }
            Netlink::open().unwrap().delete_address("lo", HERE, 32).unwrap();
        }
    });
}

/// A stream can connect from, and listen on, the address of another host. On a router, the node passes datagrams for
/// such an address to the kernel.
#[test]
fn a_foreign_address_is_spoken_from_and_heard_at() {
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 1);
    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 7);
    in_sandbox(|| {
        // The device of the daemon's veth pair, with a peer's kernel instead of the daemon. Without ARP a kernel
        // sends frames to its own link address, so both ends have the same one.
        let there = NetNs::create().unwrap();
        let mut net = Netlink::open().unwrap();
        net.loopback_up().unwrap();
        let near = End { name: "wf-host", mac: Mac([2, 0, 0, 0, 0, 1]), place: EndPlace::Here };
        let far = End { name: "p0", mac: Mac([2, 0, 0, 0, 0, 1]), place: EndPlace::Fd(there.as_fd()) };
        net.add_veth(&near, &far).unwrap();
        net.add_address("wf-host", HERE, 32).unwrap();
        net.set_up("wf-host", true).unwrap();
        net.set_arp("wf-host", false).unwrap();
        net.set_route(Prefix::ANY, "wf-host", None).unwrap();
        os::ethtool::offloads_off("wf-host").unwrap();
        let listener = there
            .run(|| {
                let mut net = Netlink::open().unwrap();
                net.add_address("p0", PEER, 32).unwrap();
                net.set_up("p0", true).unwrap();
                net.set_arp("p0", false).unwrap();
                net.set_route(Prefix::ANY, "p0", None).unwrap();
                os::ethtool::offloads_off("p0").unwrap();
                TcpListener::bind((PEER, 80)).unwrap()
            })
            .unwrap();
        let mut rig = Tcp::alone(Some(HERE));
        let mut told = Vec::new();
        let local = Addr::new(MOBILE, 4000);
        let open = |foreign| StreamOp::Open {
            by: Transport::Tcp,
            local: Some(local),
            peer: Addr::new(PEER, 80),
            foreign,
        };
        rig.operate(WIRED, open(false), &|_| false, &mut told);
        assert_eq!(told, [OwnedStreamEvent::Closed(WIRED, Some(refusal::NOT_OURS.to_owned()))]);
        told.clear();
        rig.operate(WIRED, open(true), &|_| false, &mut told);
        let mut accepted = None;
        listener.set_nonblocking(true).unwrap();
        for _ in 0..2000 {
            rig.turn(&mut 0, &mut told);
            accepted = accepted.or_else(|| listener.accept().ok());
            if accepted.is_some() && told.contains(&OwnedStreamEvent::Opened(WIRED, local)) {
                break;
            }
            os::pause(Duration::from_millis(1));
        }
        assert!(told.contains(&OwnedStreamEvent::Opened(WIRED, local)), "{told:?}");
        assert_eq!(accepted.unwrap().1, std::net::SocketAddr::from(local));
        told.clear();
        let local = Addr::new(MOBILE, 4001);
        let listen = |foreign| StreamOp::Listen { by: Transport::Tcp, local, foreign };
        rig.operate(RADIO, listen(false), &|_| false, &mut told);
        assert_eq!(told.pop(), Some(OwnedStreamEvent::Closed(RADIO, Some(refusal::NOT_OURS.to_owned()))));
        rig.operate(RADIO, listen(true), &|_| false, &mut told);
        assert_eq!(told.pop(), Some(OwnedStreamEvent::Opened(RADIO, local)));
        let call = there.run(|| TcpStream::connect(local)).unwrap().unwrap();
        rig.turn(&mut 0, &mut told);
        let peer = call.local_addr().unwrap();
        let Some(OwnedStreamEvent::Accepted { listener: RADIO, local: at, peer: from, .. }) = told.first()
        else {
            panic!("{told:?}")
        };
        assert_eq!((*at, std::net::SocketAddr::from(*from)), (local, peer));
    });
}

/// A router reports that it has no route to the peer. The kernel reports this as an error but continues, and so does
/// the stream.
#[test]
fn a_report_that_the_kernel_outlives_ends_nothing() {
    in_sandbox(|| {
        let mut rig = Rig::new();
        let ours = match rig.wired.peer_addr().unwrap() {
            std::net::SocketAddr::V4(ours) => ours,
            std::net::SocketAddr::V6(other) => panic!("{other}"),
        };
        let next = next_of_ours(&rig.wired);
        let segment =
            [&ours.port().to_be_bytes()[..], &80_u16.to_be_bytes(), &next.to_be_bytes(), &[0; 12]].concat();
        let about = Header::new(ipv4::TCP, HERE, HERE).emit(&segment);
        let report = IcmpError::HostUnreachable.about(&about, HERE).unwrap();
        let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).unwrap();
        sendto(&raw, &report[ipv4::HEADER..], SendFlags::empty(), &SocketAddrV4::new(HERE, 0)).unwrap();
        for _ in 0..20 {
            rig.round();
        }
        assert_eq!(rig.closed(), []);
        rig.op(WIRED, StreamOp::Write(b"continues".to_vec()));
        let mut got = Vec::new();
        rig.until("what was written", |rig| {
            take(&mut rig.wired, &mut got).unwrap();
            got == b"continues"
        });
    });
}

/// Returns the sequence number that this socket expects: the number that its peer sends next.
fn next_of_ours(theirs: &TcpStream) -> u32 {
    const RECEIVED: i32 = 1;
    set(theirs, libc::IPPROTO_TCP, TCP_REPAIR, 1).unwrap();
    set(theirs, libc::IPPROTO_TCP, TCP_REPAIR_QUEUE, RECEIVED).unwrap();
    let next = get::<u32>(theirs, libc::IPPROTO_TCP, TCP_QUEUE_SEQ).unwrap();
    set(theirs, libc::IPPROTO_TCP, TCP_REPAIR, -1).unwrap(); // without a window probe
    next
}
