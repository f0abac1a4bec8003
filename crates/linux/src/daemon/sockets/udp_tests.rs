//! Datagrams that come while their stream ends.

use super::Sockets;
use crate::Netlink;
use crate::testing::in_world;
use node::stream::Told;
use node::{StreamId, StreamOp, Transport};
use std::net::UdpSocket;
use wire::{Ipv4Addr, SocketAddrV4};

const AT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5300);
const STREAM: StreamId = StreamId(1);

/// What has come: over the loopback interface a datagram is there when the call that sends it returns.
fn receive(sockets: &mut Sockets) -> Vec<Told> {
    let (told, lost) = sockets.receive();
    assert!(lost.is_empty(), "{lost:?}");
    told
}

/// A listener to which one peer has sent three datagrams.
fn asked() -> Sockets {
    Netlink::open().unwrap().loopback_up().unwrap();
    let mut sockets = Sockets::new(None);
    let listen = StreamOp::Listen { by: Transport::Udp, local: AT, foreign: false };
    sockets.operate(STREAM, listen, &mut Vec::new());
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for question in ["one", "two", "three"] {
        client.send_to(question.as_bytes(), AT).unwrap();
    }
    sockets
}

/// A role that answers one datagram and then ends the stream: the next datagram of the same peer comes by a new stream.
#[test]
fn what_a_listener_has_left_is_accepted_again() {
    in_world(|| {
        let mut sockets = asked();
        let mut heard = Vec::new();
        let mut told = receive(&mut sockets);
        while !told.is_empty() {
            let mut next = Vec::new();
            for told in std::mem::take(&mut told) {
                match told {
                    Told::Accepted { new, .. } => drop(sockets.operate(new, StreamOp::Read(512), &mut next)),
                    Told::Data(id, _, bytes) => {
                        heard.push(String::from_utf8(bytes).unwrap());
                        let done = sockets.operate(id, StreamOp::Finish, &mut next);
                        assert!(done.ended.is_empty());
                    }
                    _ => {}
                }
            }
            told = next;
        }
        assert_eq!(heard, ["one", "two", "three"]);
    });
}

/// A role that has no room for a peer aborts its stream: the datagrams are reported, and no stream follows, which the role would abort
/// too.
#[test]
fn what_comes_by_an_aborted_stream_is_reported() {
    in_world(|| {
        let mut sockets = asked();
        let told = receive(&mut sockets);
        let Some(Told::Accepted { new, .. }) = told.first() else { panic!("{told:?}") };
        let mut next = Vec::new();
        let done = sockets.operate(*new, StreamOp::Abort, &mut next);
        assert_eq!(next, [Told::Closed(*new, None)]);
        assert_eq!(done.ended.iter().map(|(_, why, _)| why.0).collect::<Vec<_>>(), ["no_socket"; 3]);
    });
}

/// What is still in the kernel's queue when a socket closes has no reader: each is named, with the reason.
#[test]
fn what_a_closing_socket_has_left_is_reported() {
    in_world(|| {
        Netlink::open().unwrap().loopback_up().unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let std::net::SocketAddr::V4(at) = peer.local_addr().unwrap() else { panic!("IPv4") };
        let (mut sockets, mut told) = (Sockets::new(Some(Ipv4Addr::LOCALHOST)), Vec::new());
        let open = StreamOp::Open { by: Transport::Udp, local: None, peer: at, foreign: false };
        sockets.operate(STREAM, open, &mut told);
        let Some(Told::Opened(_, local)) = told.first() else { panic!("{told:?}") };
        peer.send_to(b"waits for a reader", local).unwrap();
        assert!(receive(&mut sockets).is_empty());
        peer.send_to(b"is with the kernel", local).unwrap();
        let done = sockets.operate(STREAM, StreamOp::Finish, &mut told);
        assert_eq!(done.ended.iter().map(|(_, why, _)| why.0).collect::<Vec<_>>(), ["no_socket"; 2]);
    });
}
