//! The IP host of the simulator: UDP and TCP sockets behind the operations of [`node::stream`], without I/O.
//!
//! ```text
//!   operate: a StreamOp ──> ┌───────┐ ──> packets, for the node to forward
//!   receive: a packet   ──> │ Stack │ ──> events, for the users of streams
//!   timeout             ──> └───────┘ ──> lost: dropped packets, and why
//! ```
//!
//! The stack takes the place of the Linux kernel: for a role, both have the same events, and the same texts for the
//! same failures. The crate [`tcp`] implements a connection. This crate adds ports, listeners, credit, the path MTU
//! (RFC 1191), and the move of connections.

mod buffer_pool;
mod icmp;
mod path;
mod socket;
mod table;
mod traced;
mod udp;

pub use buffer_pool::BufferPool;
use node::stream::{OwnedStreamEvent, refusal};
use node::{Addr, Mark, MigrateOp, StreamId, StreamOp, Transport, Tuple};
use std::sync::Arc;
use table::Table;
use tcp::{Profile, Segment};
use udp::Udp;
use wire::ipv4::{self, Header};
use wire::{Instant, Ipv4Addr, Malformed, PacketId, Reason, Rng};

/// Why a stack drops a packet. Malformed packets have the reasons of `wire` and `tcp`. Packets of a connection that is
/// being moved have the reasons of [`node::guard`]. A full queue of unread datagrams has a reason in [`node::stream`].
pub mod reason {
    use wire::Reason;

    /// No socket of this host accepts the packet. The peer of a TCP segment gets a reset, unless the segment is a
    /// reset.
    pub const NO_SOCKET: Reason = Reason("no_socket");
    /// The host does not have the protocol, or does not use this kind of ICMP message.
    pub const NO_PROTOCOL: Reason = Reason("no_protocol");
    /// The host has the largest number of TCP sockets that it may have: 4096.
    pub const SOCKETS_FULL: Reason = Reason("sockets_full");
    /// An ICMP error about a segment that is not in flight from this host. Before the first TCP request of a host: any
    /// ICMP message.
    pub const ICMP_STRANGE: Reason = Reason("icmp_about_nothing");
}

/// The output of a stack. The caller takes it out after each call.
#[derive(Debug, Default)]
pub struct Output {
    /// Events for the users of streams, in the order in which they happened.
    pub events: Vec<OwnedStreamEvent>,
    /// Datagrams that this host sends, in the order of sending.
    pub packets: Vec<Vec<u8>>,
    /// Packets that were dropped, and why.
    pub lost: Vec<(PacketId, Reason)>,
    /// Marks of changes inside TCP connections, if the profile has `traced`.
    pub marks: Vec<Mark>,
    /// A pool of buffers. A caller that no longer needs the bytes of a packet or of a read may return them to the pool.
    pub buffers: BufferPool,
}

impl Output {
    /// Returns whether the caller has taken out everything.
    pub const fn is_empty(&self) -> bool {
        self.events.is_empty() && self.packets.is_empty() && self.lost.is_empty() && self.marks.is_empty()
    }
}

/// The UDP and TCP sockets of one host. A host that has opened no socket needs only the size of this struct.
#[derive(Debug)]
pub struct Stack {
    address: Option<Ipv4Addr>,
    mtu: u16,
    profile: Arc<Profile>,
    rng: Rng,
    /// The number of streams that this stack has accepted.
    accepted: u32,
    next_port: u16,
    udp: Udp,
    tcp: Option<Box<Table>>,
}

/// The first ephemeral port (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

impl Stack {
    /// Returns a stack that sends from `address` unless a request names another one. If `address` is `None`, a request
    /// to open a stream must name one. `mtu` is the smallest MTU of the host's interfaces, in bytes.
    pub fn new(address: Option<Ipv4Addr>, mtu: u16, profile: Arc<Profile>, rng: Rng) -> Self {
        let (udp, tcp) = (Udp::default(), None);
        Self { address, mtu, profile, rng, accepted: 0, next_port: EPHEMERAL, udp, tcp }
    }

    /// Returns this stack for a host that has restarted. Its ephemeral ports begin at a random port, because peers may
    /// still have connections to the ports that the host used before the restart (RFC 6056, section 3.3).
    #[must_use]
    pub fn restarted(mut self) -> Self {
        let ports = u64::from(u16::MAX - EPHEMERAL) + 1;
        self.next_port = EPHEMERAL + (self.rng.fork("ports").draw() % ports) as u16;
        self
    }

    /// Executes a request of the user of a stream.
    pub fn operate(&mut self, now: Instant, id: StreamId, op: StreamOp, out: &mut Output) {
        let by = match &op {
            StreamOp::Open { by, .. } | StreamOp::Listen { by, .. } => *by,
            StreamOp::Migrate(MigrateOp::Import(_) | MigrateOp::Guard(..)) => Transport::Tcp,
            _ if self.udp.has(id) => Transport::Udp,
            StreamOp::Set(_) => Transport::Tcp,
            _ if self.tcp.as_ref().is_some_and(|tcp| tcp.has(id)) => Transport::Tcp,
            _ => return, // the stream was closed before the request came
        };
        match (by, op) {
            (Transport::Udp, StreamOp::Open { local, peer, .. }) => {
                match local.or_else(|| self.ephemeral()) {
                    Some(local) => self.udp.bind(id, local, Some(peer), out),
                    None => no_address(id, out),
                }
            }
            (Transport::Tcp, StreamOp::Open { local, peer, .. }) => {
                match local.or_else(|| self.ephemeral_to(peer)) {
                    Some(local) => self.tcp().0.connect(now, id, Tuple { local, remote: peer }, out),
                    None => no_address(id, out),
                }
            }
            (Transport::Udp, op) => self.udp.operate(id, op, &mut self.accepted, out),
            (Transport::Tcp, op) => {
                let (tcp, accepted) = self.tcp();
                tcp.operate(now, id, op, accepted, out);
            }
            // The node itself serves the transports of its roles.
            (Transport::Role(_), _) => {
                out.events.push(OwnedStreamEvent::Closed(id, Some(refusal::NO_TRANSPORT.to_owned())));
            }
        }
        self.check();
    }

    /// Receives a datagram that is addressed to this host.
    pub fn receive(&mut self, now: Instant, id: PacketId, bytes: &[u8], out: &mut Output) {
        if let Err(reason) = self.take(now, id, bytes, out) {
            out.lost.push((id, reason));
        }
        self.check();
    }

    /// Returns the time at which `timeout` is due next, or `None` if no timer is set.
    pub fn deadline(&self) -> Option<Instant> {
        self.tcp.as_ref()?.deadline()
    }

    /// Executes the timers that are due at `now`. A call before the deadline has no effect.
    pub fn timeout(&mut self, now: Instant, out: &mut Output) {
        if let Some(tcp) = &mut self.tcp {
            tcp.timeout(now, &mut self.accepted, out);
        }
        self.check();
    }

    /// Checks the tables of sockets, after each call.
    fn check(&self) {
        self.udp.check();
        if let Some(tcp) = &self.tcp {
            tcp.check();
        }
    }

    /// Reports the packets that are held: datagrams that were not read yet, and segments that a guard holds.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.udp.holds(each);
        if let Some(tcp) = &self.tcp {
            tcp.holds(each);
        }
    }

    /// Returns the internal state of the TCP connection of a stream. `None` if the stream has no connection, for
    /// example a listener.
    pub fn info(&self, id: StreamId) -> Option<tcp::Info> {
        self.tcp.as_ref()?.info(id)
    }

    fn take(&mut self, now: Instant, id: PacketId, bytes: &[u8], out: &mut Output) -> Result<(), Reason> {
        let datagram = Datagram::parse(id, bytes)?;
        let Datagram { header, payload, .. } = datagram;
        match header.protocol {
            ipv4::UDP => self.udp.receive(id, &header, payload, &mut self.accepted, out),
            tcp::PROTOCOL => match &mut self.tcp {
                Some(tcp) => tcp.receive(now, datagram, &mut self.accepted, out),
                None => {
                    table::refuse(&header, &Segment::parse(payload, header.src, header.dst)?, out);
                    Err(reason::NO_SOCKET)
                }
            },
            ipv4::ICMP => match &mut self.tcp {
                Some(tcp) => tcp.icmp(now, payload, &mut self.accepted, out),
                None => Err(reason::ICMP_STRANGE),
            },
            _ => Err(reason::NO_PROTOCOL),
        }
    }

    /// Returns the TCP sockets, which are created at the first use, and the number of accepted streams.
    fn tcp(&mut self) -> (&mut Table, &mut u32) {
        let make = || Box::new(Table::new(self.mtu, &self.profile, self.rng.fork("tcp")));
        (self.tcp.get_or_insert_with(make), &mut self.accepted)
    }

    fn ephemeral(&mut self) -> Option<Addr> {
        let port = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(EPHEMERAL);
        Some(Addr::new(self.address?, port))
    }

    /// Returns the host's address with an ephemeral port that no connection to this peer uses. `None` if all ports are
    /// used, or if the host has no address.
    fn ephemeral_to(&mut self, remote: Addr) -> Option<Addr> {
        let last = self.ephemeral()?;
        let taken = |stack: &Self, local| {
            stack.tcp.as_ref().is_some_and(|tcp| tcp.is_taken(&Tuple { local, remote }))
        };
        let mut local = last;
        while taken(self, local) {
            local = self.ephemeral().filter(|next| *next != last)?;
        }
        Some(local)
    }
}

/// A received datagram with its parsed header.
#[derive(Clone, Copy)]
struct Datagram<'a> {
    id: PacketId,
    bytes: &'a [u8],
    header: Header,
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    fn parse(id: PacketId, bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, payload) = Header::parse(bytes)?;
        Ok(Self { id, bytes, header, payload })
    }
}

fn no_address(id: StreamId, out: &mut Output) {
    out.events.push(OwnedStreamEvent::Closed(id, Some(refusal::NO_ADDRESS.to_owned())));
}
