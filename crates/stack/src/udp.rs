//! The UDP sockets of one host. Connected sockets and accepted peers share a listener's port, as on a real host.

use crate::{Output, reason};
use node::stream::{Inbox, Told, UDP_ROOM, refusal};
use node::{Addr, StreamId, StreamOp};
use std::collections::BTreeMap;
use wire::ipv4::Header;
use wire::udp::{self, Datagram};
use wire::{PacketId, Reason, SocketAddrV4};

#[derive(Debug, Default)]
pub(crate) struct Udp {
    by_stream: BTreeMap<StreamId, Socket>,
}

#[derive(Debug)]
struct Socket {
    local: Addr,
    /// `None` for a listener.
    peer: Option<Addr>,
    inbox: Inbox,
}

impl Udp {
    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.by_stream.contains_key(&id)
    }

    pub(crate) fn operate(&mut self, id: StreamId, op: StreamOp, out: &mut Output) {
        match op {
            StreamOp::Listen { local, .. } => self.bind(id, local, None, out),
            StreamOp::Read(_) => {
                let socket = self.by_stream.get_mut(&id);
                out.told.extend(socket.and_then(|socket| socket.inbox.read(id)));
            }
            StreamOp::Write(bytes) => {
                let Some(socket) = self.by_stream.get(&id) else { return };
                out.told.push(Told::Room(id, UDP_ROOM));
                out.packets.extend(socket.peer.map(|peer| udp::packet(socket.local, peer, &bytes)));
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Forget => {
                if self.by_stream.remove(&id).is_some() {
                    out.told.push(Told::Closed(id, None));
                }
            }
            StreamOp::Export => {
                out.told.push(Told::Refused(id, refusal::NOT_ESTABLISHED.to_owned()));
            }
            StreamOp::Join(..) => out.told.push(Told::Refused(id, refusal::NOT_JOINABLE.to_owned())),
            StreamOp::Part => out.told.push(Told::Refused(id, refusal::NOT_JOINED.to_owned())),
            // Datagrams have no connection that could move.
            StreamOp::Open { .. }
            | StreamOp::Freeze
            | StreamOp::Thaw
            | StreamOp::Import(_)
            | StreamOp::Guard(..)
            | StreamOp::Set(_) => {}
        }
    }

    pub(crate) fn bind(&mut self, id: StreamId, local: Addr, peer: Option<Addr>, out: &mut Output) {
        if self.by_stream.values().any(|socket| socket.local == local && socket.peer == peer) {
            return out.told.push(Told::Closed(id, Some(refusal::IN_USE.to_owned())));
        }
        self.by_stream.insert(id, Socket { local, peer, inbox: Inbox::default() });
        out.told.push(Told::Opened(id, local));
        if peer.is_some() {
            out.told.push(Told::Room(id, UDP_ROOM));
        }
    }

    pub(crate) fn receive(
        &mut self,
        id: PacketId,
        header: &Header,
        payload: &[u8],
        accepted: &mut u32,
        out: &mut Output,
    ) -> Result<(), Reason> {
        let datagram = Datagram::parse(payload, header.src, header.dst)?;
        let local = SocketAddrV4::new(header.dst, datagram.dst_port);
        let peer = SocketAddrV4::new(header.src, datagram.src_port);
        let found = self.find(local, peer).or_else(|| self.accept(local, peer, accepted, out));
        let stream = found.ok_or(reason::NO_SOCKET)?;
        let socket = self.by_stream.get_mut(&stream).ok_or(reason::NO_SOCKET)?;
        out.told.extend(socket.inbox.push(stream, id, datagram.payload.to_vec())?);
        Ok(())
    }

    /// Names the packets that wait for a reader.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for socket in self.by_stream.values() {
            socket.inbox.holds(each);
        }
    }

    fn find(&self, local: Addr, peer: Addr) -> Option<StreamId> {
        let matches = |socket: &Socket| socket.local == local && socket.peer == Some(peer);
        self.by_stream.iter().find(|(_, socket)| matches(socket)).map(|(id, _)| *id)
    }

    fn accept(&mut self, local: Addr, peer: Addr, accepted: &mut u32, out: &mut Output) -> Option<StreamId> {
        let waits = |socket: &Socket| socket.local == local && socket.peer.is_none();
        let (listener, _) = self.by_stream.iter().find(|(_, socket)| waits(socket))?;
        let (listener, new) = (*listener, StreamId::of_driver(accepted));
        self.by_stream.insert(new, Socket { local, peer: Some(peer), inbox: Inbox::default() });
        out.told.push(Told::Accepted { listener, new, local, peer });
        out.told.push(Told::Room(new, UDP_ROOM));
        Some(new)
    }
}
