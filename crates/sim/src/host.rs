//! A host of the simulator: its node, and the UDP sockets of its own IP stack.

use link::PortId;
use node::stream::{Inbox, Told, UDP_ROOM};
use node::{Addr, Node, StreamId, StreamOp};
use std::collections::BTreeMap;
use wire::ipv4::{self, Header};
use wire::udp::{self, Datagram};
use wire::{Iface, Ipv4Addr, Mac, PacketId, Reason, SocketAddrV4, WallTime};

/// A host, ready to be placed in a world.
#[derive(Debug)]
pub struct HostSpec {
    /// Its name in records and reports.
    pub name: String,
    /// Its roles and table.
    pub node: Node,
    /// Its own addresses; the first is the one its sockets use.
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; number 1 is the first.
    pub interfaces: Vec<InterfaceSpec>,
    /// What its wall clock says when the run begins.
    pub wall: WallTime,
}

/// An interface of a host.
#[derive(Clone, Debug)]
pub struct InterfaceSpec {
    /// Its name.
    pub name: String,
    /// Its link address.
    pub mac: Mac,
    /// The largest datagram it takes.
    pub mtu: u16,
    /// Where it is plugged into the fabric.
    pub port: PortId,
    /// Whether it is a radio that has to tune before it carries anything.
    pub tunes: bool,
}

/// Why the stack ends a packet's journey.
pub(crate) mod reason {
    use wire::Reason;

    pub(crate) const NO_SOCKET: Reason = Reason("no_socket");
    pub(crate) const NOT_UDP: Reason = Reason("no_protocol");
}

/// The UDP sockets of one host. Connected sockets and accepted peers share a listener's port, as on a real host.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    address: Option<Ipv4Addr>,
    by_stream: BTreeMap<StreamId, Socket>,
    next_port: u16,
    accepted: u32,
}

#[derive(Debug)]
struct Socket {
    local: Addr,
    /// `None` for a listener.
    peer: Option<Addr>,
    inbox: Inbox,
}

impl Sockets {
    pub(crate) fn new(address: Option<Ipv4Addr>) -> Self {
        Self { address, next_port: 49_152, ..Self::default() }
    }

    /// Carries out an operation; a datagram to send comes back.
    pub(crate) fn operate(&mut self, id: StreamId, op: StreamOp, told: &mut Vec<Told>) -> Option<Vec<u8>> {
        match op {
            StreamOp::Open { local, peer, .. } => self.bind(id, local, Some(peer), told),
            StreamOp::Listen { local, .. } => self.bind(id, Some(local), None, told),
            StreamOp::Read(_) => {
                told.extend(self.by_stream.get_mut(&id)?.inbox.read(id));
            }
            StreamOp::Write(bytes) => {
                let socket = self.by_stream.get(&id)?;
                told.push(Told::Room(id, UDP_ROOM));
                return Some(udp::packet(socket.local, socket.peer?, &bytes));
            }
            StreamOp::Finish => {
                self.by_stream.remove(&id)?;
                told.push(Told::Closed(id, None));
            }
        }
        None
    }

    /// Takes a datagram that the node gave to its host.
    pub(crate) fn deliver(&mut self, id: PacketId, bytes: &[u8], told: &mut Vec<Told>) -> Result<(), Reason> {
        let (header, payload) = Header::parse(bytes)?;
        if header.protocol != ipv4::UDP {
            return Err(reason::NOT_UDP);
        }
        let datagram = Datagram::parse(payload, header.src, header.dst)?;
        let local = SocketAddrV4::new(header.dst, datagram.dst_port);
        let peer = SocketAddrV4::new(header.src, datagram.src_port);
        let stream =
            self.find(local, peer).or_else(|| self.accept(local, peer, told)).ok_or(reason::NO_SOCKET)?;
        let socket = self.by_stream.get_mut(&stream).ok_or(reason::NO_SOCKET)?;
        told.extend(socket.inbox.push(stream, id, datagram.payload.to_vec())?);
        Ok(())
    }

    /// Names the packets that wait for a reader.
    pub(crate) fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for socket in self.by_stream.values() {
            socket.inbox.holds(each);
        }
    }

    fn bind(&mut self, id: StreamId, local: Option<Addr>, peer: Option<Addr>, told: &mut Vec<Told>) {
        let Some(local) = local.or_else(|| self.ephemeral()) else {
            return told.push(Told::Closed(id, Some("this host has no address".to_owned())));
        };
        if self.by_stream.values().any(|socket| socket.local == local && socket.peer == peer) {
            return told.push(Told::Closed(id, Some("address in use".to_owned())));
        }
        self.by_stream.insert(id, Socket { local, peer, inbox: Inbox::default() });
        told.push(Told::Opened(id, local));
        if peer.is_some() {
            told.push(Told::Room(id, UDP_ROOM));
        }
    }

    fn ephemeral(&mut self) -> Option<Addr> {
        let port = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(49_152);
        Some(SocketAddrV4::new(self.address?, port))
    }

    fn find(&self, local: Addr, peer: Addr) -> Option<StreamId> {
        let matches = |socket: &Socket| socket.local == local && socket.peer == Some(peer);
        self.by_stream.iter().find(|(_, socket)| matches(socket)).map(|(id, _)| *id)
    }

    fn accept(&mut self, local: Addr, peer: Addr, told: &mut Vec<Told>) -> Option<StreamId> {
        let waits = |socket: &Socket| socket.local == local && socket.peer.is_none();
        let (listener, _) = self.by_stream.iter().find(|(_, socket)| waits(socket))?;
        let (listener, new) = (*listener, StreamId(StreamId::DRIVER + self.accepted));
        self.accepted += 1;
        self.by_stream.insert(new, Socket { local, peer: Some(peer), inbox: Inbox::default() });
        told.push(Told::Accepted { listener, new, local, peer });
        told.push(Told::Room(new, UDP_ROOM));
        Some(new)
    }
}

/// A host in a world.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: Node,
    pub(crate) interfaces: Vec<InterfaceSpec>,
    pub(crate) sockets: Sockets,
    pub(crate) wall: WallTime,
    /// The instant for which the node's next time-out is scheduled.
    pub(crate) due: Option<wire::Instant>,
}

impl Host {
    pub(crate) fn new(spec: HostSpec) -> Self {
        let sockets = Sockets::new(spec.addresses.first().copied());
        Self { node: spec.node, interfaces: spec.interfaces, sockets, wall: spec.wall, due: None }
    }

    pub(crate) fn interface(&self, iface: Iface) -> Option<&InterfaceSpec> {
        self.interfaces.get(usize::from(iface.0).checked_sub(1)?)
    }
}
