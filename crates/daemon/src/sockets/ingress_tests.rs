//! The daemon's filter in front of a kernel, for tests that have no daemon. It sees incoming segments, and blocks
//! them while a connection is being moved.

use super::tcp::Tcp;
use super::unacked_after_move::Acknowledges;
use ::tcp::Segment;
use node::Tuple;
use os::{NetNs, Options, PacketSocket, nft};
use wire::ipv4::Header;
use wire::{SocketAddrV4, ethernet};

pub(super) struct IngressFilter {
    tap: PacketSocket,
    device: &'static str,
}

impl IngressFilter {
    /// Returns the filter of a namespace, on its one device.
    pub(super) fn of(namespace: &NetNs, device: &'static str) -> Self {
        let tap = namespace.run(|| PacketSocket::open(device, &Options::default())).unwrap().unwrap();
        Self { tap, device }
    }

    pub(super) fn shut(&self) {
        nft::install_ingress_drop(&[self.device]).unwrap();
    }

    pub(super) fn open() {
        nft::remove_ingress_drop().unwrap();
    }

    /// Passes segments that have arrived to the sockets' checks, which a daemon does before the kernel gets them. While
    /// a socket is replaced, a segment would find no socket. So the filter blocks segments in that moment; the sender
    /// of a blocked segment sends it again.
    pub(super) fn listen(&self, tcp: &mut Tcp) {
        let mut frame = [0; 2048];
        while let Some(received) = self.tap.receive(&mut frame).unwrap() {
            if !tcp.has_unacked() {
                continue;
            }
            let Ok((_, bytes)) = ethernet::parse(&frame[..received.len]) else { continue };
            let Ok((header, payload)) = Header::parse(bytes) else { continue };
            let Ok(segment) = Segment::parse(payload, header.src, header.dst) else { continue };
            let end = SocketAddrV4::new;
            let local = end(header.dst, segment.dst_port);
            let tuple = Tuple { local, remote: end(header.src, segment.src_port) };
            let socket = tcp.by_tuple.get(&tuple).and_then(|id| tcp.sockets.get(id));
            let is_replaced =
                socket.is_some_and(|socket| socket.acknowledged_by(&segment) == Acknowledges::Ahead);
            if is_replaced {
                self.shut();
            }
            tcp.observe(&tuple, &segment);
            if is_replaced {
                Self::open();
            }
        }
    }
}
