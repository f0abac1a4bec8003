//! [`node::Transport::Udp`] on Linux: kernel sockets of the namespace. Their packets go through the host's veth pair, as
//! any program's would.

use super::options::set;
use crate::Refusal;
use node::stream::{Inbox, Told, UDP_ROOM, refusal};
use node::{Addr, StreamId, StreamOp};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use wire::{Ipv4Addr, PacketId, Reason, SocketAddrV4, udp_identity};

pub(super) struct Udp {
    address: Option<Ipv4Addr>,
    /// By the stream that opened them.
    bound: BTreeMap<StreamId, Bound>,
    streams: BTreeMap<StreamId, Stream>,
    /// For the largest datagram.
    buffer: Vec<u8>,
}

struct Bound {
    socket: UdpSocket,
    local: Addr,
    listens: bool,
}

struct Stream {
    /// The socket it goes by.
    bound: StreamId,
    peer: Addr,
    inbox: Inbox,
}

/// Peers that one host's listeners take together.
const PEERS: usize = 4096;
const LARGEST: usize = 65_536;
const TOO_MANY_PEERS: Reason = Reason("too_many_peers");

/// A datagram that was written, and why the kernel refused it if it did.
pub(super) type Sent = (PacketId, Option<Refusal>);

impl Udp {
    pub(super) fn new(address: Option<Ipv4Addr>) -> Self {
        Self { address, bound: BTreeMap::new(), streams: BTreeMap::new(), buffer: vec![0; LARGEST] }
    }

    pub(super) fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id) || self.bound.contains_key(&id)
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.bound.values().map(|bound| bound.socket.as_fd())
    }

    pub(super) fn operate(&mut self, id: StreamId, op: StreamOp, told: &mut Vec<Told>) -> Option<Sent> {
        match op {
            StreamOp::Open { foreign: true, .. } | StreamOp::Listen { foreign: true, .. } => {
                told.push(Told::Closed(id, Some(refusal::NOT_OURS.to_owned())));
            }
            StreamOp::Open { local, peer, .. } => self.bind(id, local, Some(peer), told),
            StreamOp::Listen { local, .. } => self.bind(id, Some(local), None, told),
            StreamOp::Read(_) => told.extend(self.streams.get_mut(&id)?.inbox.read(id)),
            StreamOp::Write(bytes) => {
                told.push(Told::Room(id, UDP_ROOM));
                return self.write(id, &bytes);
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Forget => {
                self.streams.remove(&id);
                self.bound.remove(&id);
                told.push(Told::Closed(id, None));
            }
            StreamOp::Export => told.push(Told::Refused(id, refusal::NOT_ESTABLISHED.to_owned())),
            StreamOp::Join(..) => told.push(Told::Refused(id, refusal::NOT_JOINABLE.to_owned())),
            StreamOp::Part => told.push(Told::Refused(id, refusal::NOT_JOINED.to_owned())),
            // Datagrams have no connection that could move.
            StreamOp::Freeze
            | StreamOp::Thaw
            | StreamOp::Import(_)
            | StreamOp::Guard(..)
            | StreamOp::Set(_) => {}
        }
        None
    }

    /// All datagrams that have come, as far as their readers have asked for them.
    /// What could not be kept comes back with the reason.
    pub(super) fn receive(&mut self, accepted: &mut u32) -> (Vec<Told>, Vec<(PacketId, Reason)>) {
        let mut told = Vec::new();
        let mut lost = Vec::new();
        let mut bytes = std::mem::take(&mut self.buffer);
        let bound: Vec<StreamId> = self.bound.keys().copied().collect();
        for id in bound {
            while let Some(Bound { socket, local, listens }) = self.bound.get(&id) {
                let (local, listens) = (*local, *listens);
                let (len, peer) = match socket.recv_from(&mut bytes) {
                    Ok((len, SocketAddr::V4(peer))) => (len, peer),
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue, // a peer's ICMP
                    _ => break,
                };
                let payload = bytes.get(..len).unwrap_or_default();
                let packet = udp_identity(peer, local, payload);
                let stream =
                    if listens { self.accept(id, local, peer, accepted, &mut told) } else { Some(id) };
                let Some((stream, inbox)) =
                    stream.and_then(|id| Some((id, &mut self.streams.get_mut(&id)?.inbox)))
                else {
                    lost.push((packet, TOO_MANY_PEERS));
                    continue;
                };
                match inbox.push(stream, packet, payload.to_vec()) {
                    Ok(data) => told.extend(data),
                    Err(reason) => lost.push((packet, reason)),
                }
            }
        }
        self.buffer = bytes;
        (told, lost)
    }

    pub(super) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.streams.values().for_each(|stream| stream.inbox.holds(each));
    }

    fn bind(&mut self, id: StreamId, local: Option<Addr>, peer: Option<Addr>, told: &mut Vec<Told>) {
        match self.try_bind(local, peer) {
            Ok(bound) => {
                told.push(Told::Opened(id, bound.local));
                if let Some(peer) = peer {
                    self.streams.insert(id, Stream { bound: id, peer, inbox: Inbox::default() });
                    told.push(Told::Room(id, UDP_ROOM));
                }
                self.bound.insert(id, bound);
            }
            Err(error) => told.push(Told::Closed(id, Some(error.to_string()))),
        }
    }

    fn try_bind(&self, local: Option<Addr>, peer: Option<Addr>) -> std::io::Result<Bound> {
        let any = SocketAddrV4::new(self.address.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        let socket = UdpSocket::bind(local.unwrap_or(any))?;
        socket.set_nonblocking(true)?;
        // A datagram stays whole, with DF, whatever the path is said to take: pieces would be packets that nobody sent.
        set(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
        if let Some(peer) = peer {
            socket.connect(peer)?;
        }
        match socket.local_addr()? {
            SocketAddr::V4(local) => Ok(Bound { socket, local, listens: peer.is_none() }),
            SocketAddr::V6(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    fn write(&mut self, id: StreamId, bytes: &[u8]) -> Option<Sent> {
        let stream = self.streams.get(&id)?;
        let Bound { socket, local, listens } = self.bound.get(&stream.bound)?;
        let packet = udp_identity(*local, stream.peer, bytes);
        let sent = if *listens { socket.send_to(bytes, stream.peer) } else { socket.send(bytes) };
        Some((packet, sent.err().as_ref().map(Refusal::of_socket)))
    }

    fn accept(
        &mut self,
        listener: StreamId,
        local: Addr,
        peer: Addr,
        accepted: &mut u32,
        told: &mut Vec<Told>,
    ) -> Option<StreamId> {
        let known = self.streams.iter().find(|(_, stream)| stream.bound == listener && stream.peer == peer);
        if let Some((id, _)) = known {
            return Some(*id);
        }
        if self.streams.len() >= PEERS {
            return None;
        }
        let new = StreamId::of_driver(accepted);
        self.streams.insert(new, Stream { bound: listener, peer, inbox: Inbox::default() });
        told.push(Told::Accepted { listener, new, local, peer });
        told.push(Told::Room(new, UDP_ROOM));
        Some(new)
    }
}
