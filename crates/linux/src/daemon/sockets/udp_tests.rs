//! Datagrams that come while their stream ends, by the sockets of the kernel.

#[path = "../../../../../tests/support/datagrams.rs"]
mod datagrams;

use super::Sockets;
use crate::Netlink;
use crate::testing::in_world;
use datagrams::{Answer, Backend, HOST};
use node::{Addr, StreamId, StreamOp};
use std::net::{SocketAddr, UdpSocket};

/// Kernel sockets and a peer, in a namespace of their own. Over the loopback interface a datagram is there when the call that sends it
/// returns.
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
        let (told, lost) = self.sockets.receive();
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
    Kernel { sockets: Sockets::new(Some(HOST)), peer: UdpSocket::bind((HOST, 0)).unwrap() }
}

#[test]
fn what_a_listener_has_left_is_accepted_again() {
    in_world(|| datagrams::what_a_listener_has_left_is_accepted_again(&mut kernel()));
}

#[test]
fn what_comes_by_an_aborted_stream_is_reported() {
    in_world(|| datagrams::what_comes_by_an_aborted_stream_is_reported(&mut kernel()));
}

#[test]
fn what_is_left_without_a_listener_is_reported() {
    in_world(|| datagrams::what_is_left_without_a_listener_is_reported(&mut kernel()));
}

#[test]
fn what_a_closing_socket_has_left_is_reported() {
    in_world(|| datagrams::what_a_closing_socket_has_left_is_reported(&mut kernel()));
}
