//! [`node::Transport::Udp`] on Linux: kernel sockets of the namespace. Their packets use the host's veth pair, like
//! those of any program.

use super::Done;
use super::options::{MemoryInfo, SO_MEMINFO, get, set};
use crate::Refusal;
use crate::source::Source;
use node::stream::{Inbox, OwnedStreamEvent, UDP_ROOM, refusal};
use node::{Addr, MigrateOp, SocketOption, StreamId, StreamOp};
use os::epoll::{Epoll, Events, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use wire::{Ipv4Addr, PacketId, Reason, SocketAddrV4, udp_identity};

pub(super) struct Udp {
    epoll: Arc<Epoll>,
    address: Option<Ipv4Addr>,
    /// The sockets, by the stream that opened them.
    bound: BTreeMap<StreamId, Bound>,
    streams: BTreeMap<StreamId, Stream>,
    /// The streams that listeners accepted, by listener and peer.
    accepted: BTreeMap<(StreamId, Addr), StreamId>,
    /// The streams in `accepted`, by listener and number of the last use.
    by_use: BTreeSet<(StreamId, u64, StreamId)>,
    /// Counts the uses of listeners' streams, as a clock for `by_use`.
    uses: u64,
    /// Number of datagrams that the kernel dropped at sockets that are closed now, because a socket's buffer was full.
    overflowed: u64,
    /// Room for the largest datagram.
    buffer: Vec<u8>,
    /// The sockets that were visited, for tests.
    #[cfg(test)]
    pub(super) visits: Vec<StreamId>,
}

struct Bound {
    socket: Watched<UdpSocket>,
    local: Addr,
    listens: bool,
    /// Number of streams that the socket has accepted and that are open, if it listens.
    peers: usize,
}

struct Stream {
    /// The stream that opened the socket of this stream.
    bound: StreamId,
    peer: Addr,
    inbox: Inbox,
    /// The number of the last use, if the stream belongs to a listener.
    used: u64,
}

/// Largest number of peers of one listener. It is bounded because source addresses of datagrams can be forged. At this
/// number, a new peer replaces the peer whose last datagram, in either direction, is the oldest.
const PEERS: usize = 4096;
const LARGEST: usize = 65_536;
/// Largest number of datagrams that are read from a socket in one turn, so that a flood does not delay packets. The
/// kernel reports the socket again if more have arrived.
const TURN: usize = 64;
const TOO_MANY_PEERS: Reason = Reason("too_many_peers");
const NO_SOCKET: Reason = Reason("no_socket");

/// A datagram that was written, and the reason if the kernel refused it.
pub(super) type Sent = (PacketId, Option<Refusal>);

/// Reads the next datagram of a socket into `bytes`. Returns its length and its peer, or `None` if there is none.
fn next(socket: &UdpSocket, bytes: &mut [u8]) -> Option<(usize, Addr)> {
    loop {
        match socket.recv_from(bytes) {
            Ok((len, SocketAddr::V4(peer))) => return Some((len, peer)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {} // an ICMP error of a peer
            _ => return None,
        }
    }
}

/// Sets whether datagrams are sent with DF. With DF, they are sent whole, whatever the known path MTU is. Without DF,
/// the kernel cuts a datagram that is longer than the MTU of its device, and ignores ICMP errors about the path MTU.
fn set_dont_fragment(socket: &UdpSocket, on: bool) -> std::io::Result<()> {
    let how = if on { libc::IP_PMTUDISC_PROBE } else { libc::IP_PMTUDISC_DONT };
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
}

/// Returns the number of datagrams that the kernel dropped because the buffer of this socket was full.
fn overflowed(socket: &UdpSocket) -> u64 {
    get::<MemoryInfo>(socket, libc::SOL_SOCKET, SO_MEMINFO).map_or(0, |memory| memory.drops.into())
}

impl Udp {
    pub(super) fn new(epoll: &Arc<Epoll>, address: Option<Ipv4Addr>) -> Self {
        Self {
            epoll: Arc::clone(epoll),
            address,
            bound: BTreeMap::new(),
            streams: BTreeMap::new(),
            accepted: BTreeMap::new(),
            by_use: BTreeSet::new(),
            uses: 0,
            overflowed: 0,
            buffer: vec![0; LARGEST],
            #[cfg(test)]
            visits: Vec::new(),
        }
    }

    pub(super) fn has(&self, id: StreamId) -> bool {
        self.streams.contains_key(&id) || self.bound.contains_key(&id)
    }

    /// Returns the streams that have a socket.
    pub(super) fn all(&self) -> Vec<StreamId> {
        self.bound.keys().copied().collect()
    }

    pub(super) fn operate(
        &mut self,
        id: StreamId,
        op: StreamOp,
        accepted: &mut u32,
        told: &mut Vec<OwnedStreamEvent>,
    ) -> Done {
        match op {
            StreamOp::Open { foreign: true, .. } | StreamOp::Listen { foreign: true, .. } => {
                told.push(OwnedStreamEvent::Closed(id, Some(refusal::NOT_OURS.to_owned())));
            }
            StreamOp::Open { local, peer, .. } => self.bind(id, local, Some(peer), told),
            StreamOp::Listen { local, .. } => self.bind(id, Some(local), None, told),
            StreamOp::Read(_) => {
                told.extend(self.streams.get_mut(&id).and_then(|stream| stream.inbox.read(id)));
            }
            StreamOp::Write(bytes) => {
                told.push(OwnedStreamEvent::Room(id, UDP_ROOM));
                return Done { sent: self.write(id, &bytes), ..Done::default() };
            }
            StreamOp::Finish | StreamOp::Abort | StreamOp::Migrate(MigrateOp::Forget) => {
                let served = matches!(op, StreamOp::Finish).then_some(accepted);
                let ended = self.close(id, served, told).into_iter();
                return Done {
                    ended: ended.map(|(packet, why)| (packet, why, None)).collect(),
                    ..Done::default()
                };
            }
            // Datagrams have no connection that could move.
            StreamOp::Migrate(op) => told.extend(op.refused(id)),
            StreamOp::Set(SocketOption::DontFragment(on)) => {
                if let Some(bound) = self.bound.get(&id) {
                    let _ = set_dont_fragment(&bound.socket, on);
                }
            }
            StreamOp::Set(_) => {}
        }
        Done::default()
    }

    /// Ends a stream, and returns the datagrams that are lost with it. If `served` is given and the stream belongs to a
    /// listener's peer, the datagrams that the role has not read go to a new stream. When the role aborts a stream,
    /// `served` is `None`, because the role would have to abort each new stream too.
    fn close(
        &mut self,
        id: StreamId,
        served: Option<&mut u32>,
        told: &mut Vec<OwnedStreamEvent>,
    ) -> Vec<(PacketId, Reason)> {
        let mut lost = Vec::new();
        if let Some(Bound { socket, local, .. }) = self.bound.remove(&id) {
            self.overflowed += overflowed(&socket);
            // The kernel drops the rest of a socket's queue when it is closed, and does not report it.
            while let Some((len, peer)) = next(&socket, &mut self.buffer) {
                let payload = self.buffer.get(..len).unwrap_or_default();
                lost.push((udp_identity(peer, local, payload), NO_SOCKET));
            }
        }
        told.push(OwnedStreamEvent::Closed(id, None));
        let Some(Stream { bound, peer, inbox, .. }) = self.take(id) else { return lost };
        let Some(accepted) = served else {
            lost.extend(inbox.into_waiting().map(|(packet, _)| (packet, NO_SOCKET)));
            return lost;
        };
        for (packet, payload) in inbox.into_waiting() {
            let kept = self.keep(bound, peer, (packet, payload), accepted, told, &mut lost);
            lost.extend(kept.err().map(|reason| (packet, reason)));
        }
        lost
    }

    /// Gives a datagram to the stream of its peer. A listener accepts a new stream if the peer has none.
    fn keep(
        &mut self,
        by: StreamId,
        peer: Addr,
        (packet, payload): (PacketId, Vec<u8>),
        accepted: &mut u32,
        told: &mut Vec<OwnedStreamEvent>,
        lost: &mut Vec<(PacketId, Reason)>,
    ) -> Result<(), Reason> {
        let Bound { local, listens, .. } = self.bound.get(&by).ok_or(NO_SOCKET)?;
        let (local, listens) = (*local, *listens);
        let stream = if listens { self.accept((by, local), peer, accepted, told, lost) } else { by };
        let inbox = &mut self.streams.get_mut(&stream).ok_or(NO_SOCKET)?.inbox;
        told.extend(inbox.push(stream, packet, payload)?);
        Ok(())
    }

    /// Returns the events of datagrams that have arrived at these sockets, as far as roles have asked for them: at most
    /// [`TURN`] datagrams of each socket. Datagrams that could not be kept are returned with the reason.
    pub(super) fn receive(
        &mut self,
        ready: &[StreamId],
        accepted: &mut u32,
    ) -> (Vec<OwnedStreamEvent>, Vec<(PacketId, Reason)>) {
        let mut told = Vec::new();
        let mut lost = Vec::new();
        let mut bytes = std::mem::take(&mut self.buffer);
        for id in ready.iter().copied() {
            #[cfg(test)]
            self.visits.push(id);
            for _ in 0..TURN {
                let Some(Bound { socket, local, .. }) = self.bound.get(&id) else { break };
                let Some((len, peer)) = next(socket, &mut bytes) else { break };
                let payload = bytes.get(..len).unwrap_or_default();
                let packet = udp_identity(peer, *local, payload);
                let kept = self.keep(id, peer, (packet, payload.to_vec()), accepted, &mut told, &mut lost);
                lost.extend(kept.err().map(|reason| (packet, reason)));
            }
        }
        self.buffer = bytes;
        (told, lost)
    }

    /// Returns the number of datagrams that the kernel dropped because the buffer of their socket was full.
    pub(super) fn overflowed(&self) -> u64 {
        self.bound.values().map(|bound| overflowed(&bound.socket)).sum::<u64>() + self.overflowed
    }

    pub(super) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.streams.values().for_each(|stream| stream.inbox.holds(each));
    }

    fn bind(
        &mut self,
        id: StreamId,
        local: Option<Addr>,
        peer: Option<Addr>,
        told: &mut Vec<OwnedStreamEvent>,
    ) {
        match self.try_bind(id, local, peer) {
            Ok(bound) => {
                told.push(OwnedStreamEvent::Opened(id, bound.local));
                if let Some(peer) = peer {
                    self.streams.insert(id, Stream { bound: id, peer, inbox: Inbox::default(), used: 0 });
                    told.push(OwnedStreamEvent::Room(id, UDP_ROOM));
                }
                self.bound.insert(id, bound);
            }
            Err(error) => told.push(OwnedStreamEvent::Closed(id, Some(error.to_string()))),
        }
    }

    fn try_bind(&self, id: StreamId, local: Option<Addr>, peer: Option<Addr>) -> std::io::Result<Bound> {
        let any = SocketAddrV4::new(self.address.unwrap_or(Ipv4Addr::UNSPECIFIED), 0);
        let socket = UdpSocket::bind(local.unwrap_or(any))?;
        socket.set_nonblocking(true)?;
        set_dont_fragment(&socket, true)?;
        if let Some(peer) = peer {
            socket.connect(peer)?;
        }
        let socket = Watched::new(&self.epoll, socket, Source::Udp(id).token(), Events::IN)?;
        match socket.local_addr()? {
            SocketAddr::V4(local) => Ok(Bound { socket, local, listens: peer.is_none(), peers: 0 }),
            SocketAddr::V6(_) => Err(ErrorKind::Unsupported.into()),
        }
    }

    fn write(&mut self, id: StreamId, bytes: &[u8]) -> Option<Sent> {
        self.touch(id);
        let stream = self.streams.get(&id)?;
        let Bound { socket, local, listens, .. } = self.bound.get(&stream.bound)?;
        let packet = udp_identity(*local, stream.peer, bytes);
        let sent = if *listens { socket.send_to(bytes, stream.peer) } else { socket.send(bytes) };
        Some((packet, sent.err().as_ref().map(Refusal::of_socket)))
    }

    /// Returns the stream of a listener's peer. If the peer has none, accepts a new stream.
    fn accept(
        &mut self,
        (listener, local): (StreamId, Addr),
        peer: Addr,
        accepted: &mut u32,
        told: &mut Vec<OwnedStreamEvent>,
        lost: &mut Vec<(PacketId, Reason)>,
    ) -> StreamId {
        if let Some(known) = self.accepted.get(&(listener, peer)).copied() {
            self.touch(known);
            return known;
        }
        let mut own = self.by_use.range((listener, 0, StreamId(0))..);
        let first = own.next().filter(|(of, ..)| *of == listener).map(|(.., id)| *id);
        if self.bound.get(&listener).is_some_and(|bound| bound.peers >= PEERS)
            && let Some(idle) = first
            && let Some(Stream { inbox, .. }) = self.take(idle)
        {
            told.push(OwnedStreamEvent::Closed(idle, None));
            lost.extend(inbox.into_waiting().map(|(packet, _)| (packet, TOO_MANY_PEERS)));
        }
        let new = StreamId::of_driver(accepted);
        let used = self.uses;
        self.streams.insert(new, Stream { bound: listener, peer, inbox: Inbox::default(), used });
        self.accepted.insert((listener, peer), new);
        self.by_use.insert((listener, used, new));
        self.uses += 1;
        if let Some(bound) = self.bound.get_mut(&listener) {
            bound.peers += 1;
        }
        told.push(OwnedStreamEvent::Accepted { listener, new, local, peer });
        told.push(OwnedStreamEvent::Room(new, UDP_ROOM));
        new
    }

    /// Records a use of a listener's stream.
    fn touch(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if self.by_use.remove(&(stream.bound, stream.used, id)) {
            stream.used = self.uses;
            self.by_use.insert((stream.bound, stream.used, id));
            self.uses += 1;
        }
    }

    fn take(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.streams.remove(&id)?;
        if self.by_use.remove(&(stream.bound, stream.used, id))
            && let Some(bound) = self.bound.get_mut(&stream.bound)
        {
            bound.peers -= 1;
        }
        if self.accepted.get(&(stream.bound, stream.peer)) == Some(&id) {
            self.accepted.remove(&(stream.bound, stream.peer));
        }
        Some(stream)
    }
}
