//! The daemon's place at a kernel's door, for tests that have no daemon: it sees what comes, and shuts the door while a
//! connection is elsewhere.

use super::former::Tells;
use super::tcp::Tcp;
use crate::packet::{Options, PacketSocket};
use crate::{NetNs, nft};
use ::tcp::Segment;
use node::Tuple;
use wire::ipv4::Header;
use wire::{SocketAddrV4, ethernet};

pub(super) struct Door {
    tap: PacketSocket,
    device: &'static str,
}

impl Door {
    /// The door of a namespace, on its one device.
    pub(super) fn of(namespace: &NetNs, device: &'static str) -> Self {
        let tap = namespace.run(|| PacketSocket::open(device, &Options::default())).unwrap().unwrap();
        Self { tap, device }
    }

    pub(super) fn shut(&self) {
        nft::deafen(&[self.device]).unwrap();
    }

    pub(super) fn open() {
        nft::listen_again().unwrap();
    }

    /// Lets the sockets hear what has come: a daemon would before the kernel does. A socket that is replaced must not be
    /// missed meanwhile; what comes in that moment is lost, and costs a second.
    pub(super) fn listen(&self, tcp: &mut Tcp) {
        let mut frame = [0; 2048];
        while let Some(received) = self.tap.receive(&mut frame).unwrap() {
            if !tcp.has_former() {
                continue;
            }
            let Ok((_, bytes)) = ethernet::parse(&frame[..received.len]) else { continue };
            let Ok((header, payload)) = Header::parse(bytes) else { continue };
            let Ok(segment) = Segment::parse(payload, header.src, header.dst) else { continue };
            let end = SocketAddrV4::new;
            let local = end(header.dst, segment.dst_port);
            let tuple = Tuple { local, remote: end(header.src, segment.src_port) };
            let socket = tcp.by_tuple.get(&tuple).and_then(|id| tcp.sockets.get(id));
            let is_replaced = socket.is_some_and(|socket| socket.tells(&segment) == Tells::Ahead);
            if is_replaced {
                self.shut();
            }
            tcp.hears(&tuple, &segment);
            if is_replaced {
                Self::open();
            }
        }
    }
}
