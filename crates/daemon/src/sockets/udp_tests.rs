//! Tests with kernel sockets: datagrams that arrive while their stream ends, and floods of datagrams.

#[path = "../../../../tests/support/datagrams.rs"]
mod datagrams;

use super::Sockets;
use crate::testing::in_sandbox;
use datagrams::{Answer, Backend, HOST};
use node::stream::OwnedStreamEvent;
use node::{Addr, StreamId, StreamOp, Transport};
use os::Netlink;
use std::net::{SocketAddr, UdpSocket};
use wire::Ipv4Addr;

/// Kernel sockets and a peer, in a separate namespace. Over the loopback, a datagram has arrived when the call that
/// sends it returns.
struct Kernel {
    sockets: Sockets,
    peer: UdpSocket,
}

impl Backend for Kernel {
    fn peer(&self) -> Addr {
        let SocketAddr::V4(at) = self.peer.local_addr().unwrap() else { panic!("IPv4") };
        at
    }

    fn arrives(&mut self, to: Addr, text: &str) {
        self.peer.send_to(text.as_bytes(), to).unwrap();
    }

    fn receive(&mut self) -> Answer {
        let (told, lost) = self.sockets.turn();
        (told, lost.into_iter().map(|(_, reason)| reason.0).collect())
    }

    fn operate(&mut self, id: StreamId, op: StreamOp) -> Answer {
        let mut told = Vec::new();
        let done = self.sockets.operate(id, op, &mut told);
        (told, done.ended.into_iter().map(|(_, reason, _)| reason.0).collect())
    }
}

fn kernel() -> Kernel {
    Netlink::open().unwrap().loopback_up().unwrap();
    Kernel { sockets: Sockets::alone(Some(HOST)), peer: UdpSocket::bind((HOST, 0)).unwrap() }
}

#[test]
fn what_a_listener_has_left_is_accepted_again() {
    in_sandbox(|| datagrams::what_a_listener_has_left_is_accepted_again(&mut kernel()));
}

#[test]
fn what_comes_by_an_aborted_stream_is_reported() {
    in_sandbox(|| datagrams::what_comes_by_an_aborted_stream_is_reported(&mut kernel()));
}

#[test]
fn what_is_left_without_a_listener_is_reported() {
    in_sandbox(|| datagrams::what_is_left_without_a_listener_is_reported(&mut kernel()));
}

#[test]
fn what_a_closing_socket_has_left_is_reported() {
    in_sandbox(|| datagrams::what_a_closing_socket_has_left_is_reported(&mut kernel()));
}

/// A flood must not delay packets, so each turn reads a bounded number of datagrams. The kernel counts those for which
/// the socket has no room.
#[test]
fn a_flood_is_read_in_turns_and_each_lost_datagram_is_counted() {
    in_sandbox(|| {
        let mut kernel = kernel();
        let (id, local) = (StreamId(1), Addr::new(HOST, 5300));
        kernel.operate(id, StreamOp::Listen { by: Transport::Udp, local, foreign: false });
        let sent = 5000_u64;
        for _ in 0..sent {
            kernel.peer.send_to(&[7; 512], local).unwrap();
        }
        let (mut read, mut dropped) = (0, 0);
        loop {
            dropped += kernel.receive().1.len() as u64;
            let mut held = 0;
            kernel.sockets.udp.holds(&mut |_| held += 1);
            let taken = dropped + held - read;
            assert!(taken <= 64, "{taken}");
            read += taken;
            if taken == 0 {
                break;
            }
        }
        let lost = kernel.sockets.overflowed();
        assert!(read > 64 && lost > 0 && read + lost == sent, "{read} read, {lost} lost");
        kernel.operate(id, StreamOp::Abort);
        assert_eq!(kernel.sockets.overflowed(), lost, "the count outlives the socket");
    });
}

/// Datagrams from forged sources do not exclude other peers: the peer of this listener that was idle for the longest
/// time is replaced. Peers of other listeners are not.
#[test]
fn a_flood_of_peers_keeps_nobody_out() {
    in_sandbox(|| {
        let mut kernel = kernel();
        let [one, other] = [1, 2].map(StreamId);
        for (id, port) in [(one, 5300), (other, 5301)] {
            let local = Addr::new(HOST, port);
            let (told, _) =
                kernel.operate(id, StreamOp::Listen { by: Transport::Udp, local, foreign: false });
            assert_eq!(told, [OwnedStreamEvent::Opened(id, local)]);
        }
        let accepted = |(told, lost): Answer| {
            assert!(lost.is_empty(), "{lost:?}");
            let new = told.iter().find_map(|told| match told {
                OwnedStreamEvent::Accepted { new, .. } => Some(*new),
                _ => None,
            });
            let closed = told.iter().filter_map(|told| match told {
                OwnedStreamEvent::Closed(id, None) => Some(*id),
                _ => None,
            });
            (new, closed.collect::<Vec<_>>())
        };
        kernel.arrives(Addr::new(HOST, 5301), "a question");
        let (beside, _) = accepted(kernel.receive());
        let mut flood = Vec::new();
        for number in 0..4096_u16 {
            // Each datagram has a different source: all addresses of 127.0.0.0/8 are this host's.
            let [high, low] = number.to_be_bytes();
            let source = UdpSocket::bind((Ipv4Addr::new(127, 9, high, low), 5000)).unwrap();
            source.send_to(b"12345678", (HOST, 5300)).unwrap();
            let (new, closed) = accepted(kernel.receive());
            assert!(closed.is_empty());
            kernel.operate(new.unwrap(), StreamOp::Read(512));
            flood.push(new.unwrap());
        }
        // The first peer of the flood is used once more.
        kernel.operate(flood[0], StreamOp::Write(b"an answer".to_vec()));
        kernel.arrives(Addr::new(HOST, 5300), "an honest question");
        let (new, closed) = accepted(kernel.receive());
        assert!(new.is_some());
        assert_eq!(closed, [flood[1]]);
        kernel.arrives(Addr::new(HOST, 5301), "another question");
        assert_eq!(accepted(kernel.receive()), (None, Vec::new()));
        let (told, _) = kernel.operate(beside.unwrap(), StreamOp::Read(512));
        assert!(matches!(told[..], [OwnedStreamEvent::Data(..), ..]), "{told:?}");
    });
}
