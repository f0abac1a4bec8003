//! Tests which sockets are visited, and what wakes the daemon. Other tests use the functions of this module that do
//! what a daemon does in one turn.

use super::tcp::Tcp;
use super::{Screened, Sockets};
use crate::source::{Ready, ReadySockets};
use crate::testing::in_sandbox;
use node::stream::OwnedStreamEvent;
use node::{Addr, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use os::Netlink;
use os::epoll::Epoll;
use rustix::time::Timespec;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use wire::{Ipv4Addr, PacketId, Reason};

impl Tcp {
    /// Creates a transport with a separate epoll instance.
    pub(super) fn alone(address: Option<Ipv4Addr>) -> Self {
        Self::new(&Arc::new(Epoll::new().unwrap()), address)
    }

    /// Does what a daemon does in a turn. The segments of tests do not pass through a daemon. So each relay that holds
    /// bytes is visited, as if a segment had passed to one of its sockets.
    pub(super) fn turn(&mut self, accepted: &mut u32, told: &mut Vec<OwnedStreamEvent>) {
        self.update_interests().unwrap();
        let ready = Ready::now(&self.epoll).sockets;
        self.wakes.stir_all();
        self.receive(&ready.tcp, accepted, told);
    }
}

impl Sockets {
    pub(super) fn alone(address: Option<Ipv4Addr>) -> Self {
        Self::new(&Arc::new(Epoll::new().unwrap()), address)
    }

    /// Returns the sockets that are ready now.
    fn ready(&mut self) -> ReadySockets {
        self.update_interests().unwrap();
        Ready::now(&self.tcp.epoll).sockets
    }

    pub(super) fn turn(&mut self) -> (Vec<OwnedStreamEvent>, Vec<(PacketId, Reason)>) {
        let ready = self.ready();
        self.receive(&ready)
    }

    /// Waits like a daemon, for at most `millis` ms. Returns the sockets that have woken it, if any have.
    fn wait(&mut self, millis: i64) -> Option<ReadySockets> {
        self.update_interests().unwrap();
        let mut ready = Vec::new();
        let limit = Timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 };
        self.tcp.epoll.wait(&mut ready, Some(&limit)).unwrap();
        (!ready.is_empty()).then(|| Ready::of(&ready).sockets)
    }

    fn wakes(&mut self, millis: i64) -> bool {
        self.wait(millis).is_some()
    }
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn sockets() -> Sockets {
    let mut net = Netlink::open().unwrap();
    net.loopback_up().unwrap();
    net.add_address("lo", HERE, 32).unwrap();
    Sockets::alone(Some(HERE))
}

fn operate(sockets: &mut Sockets, id: u32, op: StreamOp) -> Vec<OwnedStreamEvent> {
    let mut told = Vec::new();
    sockets.operate(StreamId(id), op, &mut told);
    told
}

fn listen(by: Transport, port: u16) -> StreamOp {
    StreamOp::Listen { by, local: Addr::new(HERE, port), foreign: false }
}

/// Opens a connection, and returns its peer.
fn connected(sockets: &mut Sockets, id: u32, to: &TcpListener) -> TcpStream {
    let port = to.local_addr().unwrap().port();
    let open =
        StreamOp::Open { by: Transport::Tcp, local: None, peer: Addr::new(HERE, port), foreign: false };
    operate(sockets, id, open);
    let (peer, _) = to.accept().unwrap();
    let told = sockets.turn().0;
    assert!(matches!(told[..], [OwnedStreamEvent::Opened(..), OwnedStreamEvent::Room(..)]), "{told:?}");
    peer
}

#[test]
fn of_three_thousand_sockets_only_the_ready_one_is_visited() {
    in_sandbox(|| {
        os::descriptors::raise();
        let mut sockets = sockets();
        for number in 0..1500 {
            for (by, id, port) in [(Transport::Udp, number, 10_000), (Transport::Tcp, 5000 + number, 20_000)]
            {
                let told = operate(&mut sockets, id, listen(by, port + number as u16));
                assert!(matches!(told[..], [OwnedStreamEvent::Opened(..)]), "{told:?}");
            }
        }
        assert!(!sockets.wakes(0), "nothing has arrived");
        let peer = UdpSocket::bind((HERE, 0)).unwrap();
        peer.send_to(b"data", (HERE, 10_777)).unwrap();
        let _caller = TcpStream::connect((HERE, 20_444)).unwrap();
        let (told, lost) = sockets.turn();
        assert!(told.iter().any(|told| matches!(told, OwnedStreamEvent::Accepted { .. })) && lost.is_empty());
        assert_eq!(sockets.udp.visits, [StreamId(777)]);
        assert_eq!(sockets.tcp.wakes.visits, [StreamId(5444)]);
    });
}

#[test]
fn more_ready_sockets_than_one_wait_returns_are_all_visited() {
    in_sandbox(|| {
        os::descriptors::raise();
        let mut sockets = sockets();
        let peer = UdpSocket::bind((HERE, 0)).unwrap();
        for number in 0..600 {
            operate(&mut sockets, number, listen(Transport::Udp, 10_000 + number as u16));
            peer.send_to(b"data", (HERE, 10_000 + number as u16)).unwrap();
        }
        let turns: Vec<usize> = (0..4).map(|_| sockets.turn().0.len()).collect();
        let two = |sockets: usize| 2 * sockets; // it is accepted, and may write
        assert_eq!(turns, [two(256), two(256), two(88), 0]);
        sockets.udp.visits.sort_unstable();
        assert!(sockets.udp.visits.iter().copied().eq((0..600).map(StreamId)), "each of them once");
    });
}

#[test]
fn data_for_a_user_that_has_asked_for_none_does_not_wake_the_daemon() {
    in_sandbox(|| {
        let mut sockets = sockets();
        let listener = TcpListener::bind((HERE, 80)).unwrap();
        let mut peer = connected(&mut sockets, 1, &listener);
        peer.write_all(b"some data").unwrap();
        let wakes = (0..5).filter(|_| sockets.wakes(10)).count();
        assert_eq!(wakes, 0);
        // The data are not lost: when the user requests a read, it gets what has arrived before.
        let told = operate(&mut sockets, 1, StreamOp::Read(4));
        assert!(matches!(&told[..], [OwnedStreamEvent::Data(_, _, bytes)] if bytes == b"some"), "{told:?}");
        assert!(!sockets.wakes(10), "a read of four bytes has been answered");
        operate(&mut sockets, 1, StreamOp::Read(3));
        operate(&mut sockets, 1, StreamOp::Read(9));
        assert!(!sockets.wakes(10), "nothing is left to be read");
        operate(&mut sockets, 1, StreamOp::Read(9));
        peer.write_all(b"and more").unwrap();
        assert!(sockets.wakes(900) && sockets.wakes(0), "it waits until it is served");
        assert!(matches!(sockets.turn().0[..], [OwnedStreamEvent::Data(..)]));
        assert!(!sockets.wakes(10));
    });
}

/// A hang-up lasts for ever, so it is reported only once.
#[test]
fn a_peer_that_has_gone_wakes_the_daemon_once() {
    in_sandbox(|| {
        let mut sockets = sockets();
        let listener = TcpListener::bind((HERE, 80)).unwrap();
        let peer = connected(&mut sockets, 1, &listener);
        operate(&mut sockets, 1, StreamOp::Finish);
        drop(peer);
        let mut wakes = 0;
        while let Some(ready) = sockets.wait(50) {
            assert!(sockets.receive(&ready).0.is_empty());
            wakes += 1;
            assert!(wakes < 3, "the daemon does not rest");
        }
        let told = operate(&mut sockets, 1, StreamOp::Read(1));
        assert_eq!(
            told,
            [OwnedStreamEvent::Finished(StreamId(1)), OwnedStreamEvent::Closed(StreamId(1), None)]
        );
        // A reset is reported although the user has requested nothing.
        let peer = connected(&mut sockets, 2, &listener);
        peer.set_nonblocking(true).unwrap();
        rustix::net::sockopt::set_socket_linger(&peer, Some(std::time::Duration::ZERO)).unwrap();
        drop(peer);
        let ready = sockets.wait(900).unwrap();
        let told = sockets.receive(&ready).0;
        assert!(matches!(told[..], [OwnedStreamEvent::Closed(StreamId(2), Some(_))]), "{told:?}");
        assert!(!sockets.wakes(10));
    });
}

#[test]
fn a_token_of_a_socket_that_was_closed_meanwhile_is_ignored() {
    in_sandbox(|| {
        let mut sockets = sockets();
        let listener = TcpListener::bind((HERE, 80)).unwrap();
        let mut peers: Vec<TcpStream> = (1..=2).map(|id| connected(&mut sockets, id, &listener)).collect();
        operate(&mut sockets, 3, listen(Transport::Udp, 434));
        for id in 1..=2 {
            operate(&mut sockets, id, StreamOp::Read(9));
        }
        for peer in &mut peers {
            peer.write_all(b"data").unwrap();
        }
        UdpSocket::bind((HERE, 0)).unwrap().send_to(b"data", (HERE, 434)).unwrap();
        let ready = sockets.ready();
        assert_eq!((&ready.udp[..], &ready.tcp[..]), (&[StreamId(3)][..], &[StreamId(1), StreamId(2)][..]));
        // A role that gets a frame in the same turn closes two of the sockets.
        operate(&mut sockets, 1, StreamOp::Abort);
        operate(&mut sockets, 3, StreamOp::Abort);
        let (told, lost) = sockets.receive(&ready);
        assert!(matches!(told[..], [OwnedStreamEvent::Data(StreamId(2), ..)]), "{told:?}");
        assert!(lost.is_empty());
        assert_eq!(sockets.ready().tcp, []);
    });
}

/// The kernel gives a new socket the lowest free number: that of the socket that was just closed.
#[test]
fn a_number_that_is_used_again_in_the_same_turn_is_no_mistake() {
    in_sandbox(|| {
        use std::os::fd::{AsFd, AsRawFd};
        let mut sockets = sockets();
        let listener = TcpListener::bind((HERE, 80)).unwrap();
        let mut first = connected(&mut sockets, 1, &listener);
        operate(&mut sockets, 1, StreamOp::Read(9));
        first.write_all(b"of the first").unwrap();
        let number = |sockets: &Sockets, id| sockets.tcp.sockets[&StreamId(id)].fd.as_fd().as_raw_fd();
        let (ready, before) = (sockets.ready(), number(&sockets, 1));
        assert_eq!(ready.tcp, [StreamId(1)]);
        operate(&mut sockets, 1, StreamOp::Abort);
        let open =
            StreamOp::Open { by: Transport::Tcp, local: None, peer: Addr::new(HERE, 80), foreign: false };
        operate(&mut sockets, 2, open);
        assert_eq!(number(&sockets, 2), before);
        let opened = operate(&mut sockets, 2, StreamOp::Read(9));
        assert!(matches!(opened[..], [OwnedStreamEvent::Opened(StreamId(2), _), ..]), "{opened:?}");
        assert!(sockets.receive(&ready).0.is_empty(), "the token is that of the first stream");
        let (mut second, _) = listener.accept().unwrap();
        second.write_all(b"second").unwrap();
        let told = sockets.turn().0;
        assert!(
            matches!(&told[..], [OwnedStreamEvent::Data(StreamId(2), _, bytes)] if bytes == b"second"),
            "{told:?}"
        );
        drop(first.read(&mut [0; 9]));
    });
}

/// A listener that may not accept must not keep the daemon awake, and accepts again when there is room.
#[test]
fn a_listener_waits_while_no_socket_may_be_added() {
    in_sandbox(|| {
        let mut sockets = sockets().sharing(2); // one socket
        operate(&mut sockets, 1, listen(Transport::Tcp, 80));
        let callers: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect((HERE, 80)).unwrap()).collect();
        let told = sockets.turn().0;
        let [OwnedStreamEvent::Accepted { new, .. }, OwnedStreamEvent::Room(..)] = told[..] else {
            panic!("{told:?}")
        };
        assert!(!sockets.wakes(20), "the second waits in the kernel's queue");
        sockets.operate(new, StreamOp::Abort, &mut Vec::new());
        assert!(sockets.wakes(900));
        assert!(matches!(sockets.turn().0[..], [OwnedStreamEvent::Accepted { .. }, ..]));
        drop(callers);
    });
}

/// A relay writes as soon as one byte fits, but the kernel does not report this. So a relay is visited when a segment
/// passes to one of its sockets. No other relay is visited.
#[test]
fn a_segment_to_a_full_relay_moves_this_relay_only() {
    in_sandbox(|| {
        let mut sockets = sockets();
        let listener = TcpListener::bind((HERE, 80)).unwrap();
        let mut peers: Vec<TcpStream> = (1..=4).map(|id| connected(&mut sockets, id, &listener)).collect();
        for id in [1, 3] {
            let join = MigrateOp::Join(StreamId(id + 1), [Vec::new(), Vec::new()]);
            operate(&mut sockets, id, StreamOp::Migrate(join));
        }
        assert!(!sockets.tcp.wakes.has_loaded());
        // The peers of the second ends read nothing.
        for peer in [0, 2] {
            peers[peer].set_nonblocking(true).unwrap();
            let mut idle = 0;
            while idle < 5 {
                idle = if peers[peer].write(&[7; 16_000]).is_ok() { 0 } else { idle + 1 };
                sockets.turn();
                os::pause(wire::Duration::from_millis(2));
            }
        }
        assert!(sockets.tcp.wakes.has_loaded());
        assert!(!sockets.wakes(20), "a full relay does not keep the daemon awake");
        let Tuple { local, remote } = sockets.tcp.sockets[&StreamId(2)].tuple;
        let segment = ::tcp::Segment {
            src_port: remote.port(),
            dst_port: local.port(),
            flags: ::tcp::Flags::ACK,
            ..::tcp::Segment::default()
        };
        let payload = segment.emit(*remote.ip(), *local.ip());
        let bytes = wire::ipv4::Header::new(::tcp::PROTOCOL, *remote.ip(), *local.ip()).emit(&payload);
        assert!(matches!(sockets.screen_in(PacketId::NEW, &bytes), Screened::Passes));
        assert!(sockets.tcp.wakes.take_stirred().into_iter().eq([StreamId(1)]));
    });
}
