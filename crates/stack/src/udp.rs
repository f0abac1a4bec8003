//! The UDP sockets of one host. Streams to several peers may share the port of a listener.

use crate::{Output, reason};
use node::stream::{Inbox, OwnedStreamEvent, UDP_ROOM, refusal};
use node::{Addr, MigrateOp, SocketOption, StreamId, StreamOp};
use std::collections::HashMap;
use wire::ipv4::Header;
use wire::udp::{self, Datagram};
use wire::{PacketId, Reason, SocketAddrV4};

/// The sockets, sorted by stream. A server has one for each peer. The sockets are searched one by one until there are
/// more than `FEW`; from then on, there is an index.
#[derive(Debug, Default)]
pub(crate) struct Udp {
    sockets: Vec<(StreamId, Socket)>,
    index: Option<Box<Index>>,
    /// The identification of the last datagram without DF.
    last_id: u16,
}

/// Streams by the ends of their sockets. The map is never iterated, because its order is random.
type Index = HashMap<Ends, StreamId>;

/// The largest number of sockets for which no index is made.
const FEW: usize = 8;

/// The addresses and ports of a socket. A listener has no peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Ends {
    local: Addr,
    peer: Option<Addr>,
}

#[derive(Debug)]
struct Socket {
    ends: Ends,
    inbox: Inbox,
    /// Whether datagrams are sent without DF.
    is_divisible: bool,
}

impl Udp {
    /// Checks that the index has as many entries as there are sockets.
    ///
    /// # Panics
    ///
    /// The number of entries in the index is not the number of sockets.
    pub(crate) fn check(&self) {
        let indexed = self.index.as_ref().map_or(self.sockets.len(), |index| index.len());
        assert_eq!(indexed, self.sockets.len(), "the index must have one entry for each socket");
    }

    pub(crate) fn has(&self, id: StreamId) -> bool {
        self.place(id).is_ok()
    }

    pub(crate) fn operate(&mut self, id: StreamId, op: StreamOp, accepted: &mut u32, out: &mut Output) {
        match op {
            StreamOp::Listen { local, .. } => self.bind(id, local, None, out),
            StreamOp::Read(_) => {
                out.events.extend(self.get_mut(id).and_then(|socket| socket.inbox.read(id)));
            }
            StreamOp::Write(bytes) => {
                let Some(socket) = self.get_mut(id) else { return };
                let (Ends { local, peer }, is_divisible) = (socket.ends, socket.is_divisible);
                out.events.push(OwnedStreamEvent::Room(id, UDP_ROOM));
                let Some(peer) = peer else { return };
                out.packets.push(if is_divisible {
                    self.last_id = self.last_id.wrapping_add(1);
                    udp::divisible_packet(local, peer, &bytes, self.last_id)
                } else {
                    udp::packet(local, peer, &bytes)
                });
            }
            StreamOp::Finish => self.close(id, Some(accepted), out),
            StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget) => self.close(id, None, out),
            // Datagrams have no connection that could move.
            StreamOp::Migrate(op) => out.events.extend(op.refused(id)),
            StreamOp::Set(SocketOption::DontFragment(on)) => {
                if let Some(socket) = self.get_mut(id) {
                    socket.is_divisible = !on;
                }
            }
            StreamOp::Open { .. } | StreamOp::Set(_) => {}
        }
    }

    pub(crate) fn bind(&mut self, id: StreamId, local: Addr, peer: Option<Addr>, out: &mut Output) {
        if self.find(Ends { local, peer }).is_some() {
            return out.events.push(OwnedStreamEvent::Closed(id, Some(refusal::IN_USE.to_owned())));
        }
        self.insert(id, Ends { local, peer });
        out.events.push(OwnedStreamEvent::Opened(id, local));
        if peer.is_some() {
            out.events.push(OwnedStreamEvent::Room(id, UDP_ROOM));
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
        self.keep(Ends { local, peer: Some(peer) }, (id, datagram.payload.to_vec()), accepted, out)
    }

    /// Closes a stream. With `served` (the role finished the stream), unread datagrams go to a new stream of the
    /// listener, if there is one. On Linux, the result is the same, because one socket receives for all streams of a
    /// listener. Without `served` the datagrams are dropped: a role that aborts a stream would abort the new one too,
    /// without end.
    fn close(&mut self, id: StreamId, served: Option<&mut u32>, out: &mut Output) {
        let Some(Socket { ends, inbox, .. }) = self.remove(id) else { return };
        out.events.push(OwnedStreamEvent::Closed(id, None));
        let Some(accepted) = served else {
            return out.lost.extend(inbox.into_waiting().map(|(packet, _)| (packet, reason::NO_SOCKET)));
        };
        for (packet, payload) in inbox.into_waiting() {
            let kept = self.keep(ends, (packet, payload), accepted, out);
            out.lost.extend(kept.err().map(|reason| (packet, reason)));
        }
    }

    /// Adds a datagram to the stream of its peer. If there is no such stream, the listener accepts a new one.
    fn keep(
        &mut self,
        ends: Ends,
        (packet, payload): (PacketId, Vec<u8>),
        accepted: &mut u32,
        out: &mut Output,
    ) -> Result<(), Reason> {
        let found = self.find(ends).or_else(|| self.accept(ends.local, ends.peer?, accepted, out));
        let stream = found.ok_or(reason::NO_SOCKET)?;
        let socket = self.get_mut(stream).ok_or(reason::NO_SOCKET)?;
        out.events.extend(socket.inbox.push(stream, packet, payload)?);
        Ok(())
    }

    /// Reports the datagrams that are not read yet.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for (_, socket) in &self.sockets {
            socket.inbox.holds(each);
        }
    }

    fn accept(&mut self, local: Addr, peer: Addr, accepted: &mut u32, out: &mut Output) -> Option<StreamId> {
        let listener = self.find(Ends { local, peer: None })?;
        let new = StreamId::of_driver(accepted);
        self.insert(new, Ends { local, peer: Some(peer) });
        out.events.push(OwnedStreamEvent::Accepted { listener, new, local, peer });
        out.events.push(OwnedStreamEvent::Room(new, UDP_ROOM));
        Some(new)
    }

    // --- where sockets are -----------------------------------------------------------------------------------------

    fn find(&self, ends: Ends) -> Option<StreamId> {
        match &self.index {
            Some(index) => index.get(&ends).copied(),
            None => self.sockets.iter().find(|(_, socket)| socket.ends == ends).map(|(id, _)| *id),
        }
    }

    /// Returns the index of a stream's socket in `sockets`, or the index at which to insert it as the error.
    fn place(&self, id: StreamId) -> Result<usize, usize> {
        self.sockets.binary_search_by_key(&id, |(id, _)| *id)
    }

    fn get_mut(&mut self, id: StreamId) -> Option<&mut Socket> {
        let place = self.place(id).ok()?;
        self.sockets.get_mut(place).map(|(_, socket)| socket)
    }

    /// Adds a socket. Accepted streams have ascending numbers, so they are added at the end.
    fn insert(&mut self, id: StreamId, ends: Ends) {
        let socket = (id, Socket { ends, inbox: Inbox::default(), is_divisible: false });
        self.sockets.reserve_exact(usize::from(self.sockets.is_empty()));
        match self.place(id) {
            Ok(place) => {
                let Some(there) = self.sockets.get_mut(place) else { return };
                let before = std::mem::replace(there, socket).1.ends;
                if let Some(index) = &mut self.index {
                    index.remove(&before);
                }
            }
            Err(place) => self.sockets.insert(place, socket),
        }
        match &mut self.index {
            Some(index) => drop(index.insert(ends, id)),
            None if self.sockets.len() > FEW => {
                self.index =
                    Some(Box::new(self.sockets.iter().map(|(id, socket)| (socket.ends, *id)).collect()));
            }
            None => {}
        }
    }

    fn remove(&mut self, id: StreamId) -> Option<Socket> {
        let place = self.place(id).ok()?;
        let (_, socket) = self.sockets.remove(place);
        if let Some(index) = &mut self.index {
            index.remove(&socket.ends);
        }
        Some(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Ipv4Addr;

    const AT: Addr = Addr::new(Ipv4Addr::new(10, 0, 0, 1), 9000);

    fn peer(number: u16) -> Addr {
        Addr::new(Ipv4Addr::new(10, 0, 1, 1), number)
    }

    /// Receives a datagram from each of `peers` peers, twice. Returns the sockets, and the numbers of `Accepted` and
    /// `Room` events.
    fn served(peers: u16) -> (Udp, usize, usize) {
        let (mut udp, mut accepted, mut out) = (Udp::default(), 0, Output::default());
        udp.bind(StreamId(0), AT, None, &mut out);
        for number in (0..peers).chain(0..peers) {
            let bytes = udp::packet(peer(number), AT, b"12345678");
            let (header, payload) = Header::parse(&bytes).unwrap();
            udp.receive(PacketId(1), &header, payload, &mut accepted, &mut out).unwrap();
        }
        let told =
            |wanted: fn(&OwnedStreamEvent) -> bool| out.events.iter().filter(|told| wanted(told)).count();
        (
            udp,
            told(|told| matches!(told, OwnedStreamEvent::Accepted { .. })),
            told(|told| matches!(told, OwnedStreamEvent::Room(..))),
        )
    }

    #[test]
    fn few_and_many_peers_are_found_alike() {
        for peers in [1, FEW as u16, 1000] {
            let (mut udp, accepted, rooms) = served(peers);
            assert_eq!((accepted, rooms), (usize::from(peers), usize::from(peers)), "each is accepted once");
            assert_eq!(udp.index.is_some(), usize::from(peers) >= FEW);
            let last = udp.find(Ends { local: AT, peer: Some(peer(peers - 1)) }).unwrap();
            let mut out = Output::default();
            udp.operate(last, StreamOp::Abort, &mut 0, &mut out);
            assert!(!udp.has(last) && udp.find(Ends { local: AT, peer: Some(peer(peers - 1)) }).is_none());
            udp.bind(StreamId(1), AT, None, &mut out);
            assert_eq!(
                out.events.last(),
                Some(&OwnedStreamEvent::Closed(StreamId(1), Some(refusal::IN_USE.to_owned())))
            );
        }
    }

    /// Each datagram without DF has another identification (RFC 6864, section 4.1).
    #[test]
    fn datagrams_without_df_have_an_identification() {
        let (mut udp, mut out) = (Udp::default(), Output::default());
        udp.bind(StreamId(0), AT, Some(peer(1)), &mut out);
        let mut sent = |op| {
            udp.operate(StreamId(0), op, &mut 0, &mut out);
            let headers = out.packets.drain(..).map(|bytes| Header::parse(&bytes).unwrap().0);
            headers.map(|header| (header.dont_fragment, header.id)).collect::<Vec<_>>()
        };
        let write = || StreamOp::Write(vec![0; 9]);
        assert_eq!(sent(write()), [(true, 0)]);
        assert_eq!(sent(StreamOp::Set(SocketOption::DontFragment(false))), []);
        assert_eq!([sent(write()), sent(write())].concat(), [(false, 1), (false, 2)]);
        assert_eq!(sent(StreamOp::Set(SocketOption::DontFragment(true))), []);
        assert_eq!(sent(write()), [(true, 0)]);
    }

    #[test]
    #[should_panic(expected = "the index must have one entry for each socket")]
    fn the_index_has_every_socket() {
        let mut udp = Udp::default();
        for number in 1..=FEW as u32 + 1 {
            let local = Addr::new(std::net::Ipv4Addr::LOCALHOST, number as u16);
            udp.bind(StreamId(number), local, None, &mut Output::default());
            udp.check();
        }
        udp.sockets.pop();
        udp.check();
    }
}
