//! The interface between applications and transports. Flow control has two parts: data are delivered only when read,
//! and a write needs credit.

use std::cmp::Ordering;
use std::collections::VecDeque;
pub use std::net::SocketAddrV4 as Addr;
use wire::{PacketId, Reason, TcpState};

/// The number of a stream. A role numbers the streams that it opens, below [`StreamId::OWN`]. The node distinguishes
/// equal numbers of different roles.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The first number that a role must not give to a stream that it opens.
    pub const OWN: u32 = 1 << 16;
    /// The first number for streams that the driver requests from roles. There are [`StreamId::OWN`] such numbers.
    pub const OUTSIDE: u32 = 0x0100_0000;
    /// The first number for streams that a role accepted for the users of its transport. The role counts from this
    /// number, with at most [`StreamId::ACCEPTED`] streams at a time. The node distinguishes equal numbers of different
    /// roles.
    pub const SERVED: u32 = 0x4000_0000;
    /// The largest number of accepted streams of one role at a time.
    pub const ACCEPTED: u32 = 1 << 22;
    /// The first number for streams that the driver accepted.
    pub const DRIVER: u32 = 0x8000_0000;

    /// Returns the number of the next stream that a driver accepted, and counts the stream in `accepted`.
    pub const fn of_driver(accepted: &mut u32) -> Self {
        let number = *accepted % Self::DRIVER;
        *accepted = number + 1;
        Self(Self::DRIVER + number)
    }
}

/// The transport protocol of a stream, and whether the driver or a role provides it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// Datagrams: each write is one datagram, each read returns one. The driver provides the transport.
    Udp,
    /// A byte stream in both directions (RFC 9293). The driver provides the transport: the simulator's stack, or the
    /// kernel's sockets.
    Tcp,
    /// A transport that a role of the same node provides under this name ([`crate::Role::serves`]).
    Role(&'static str),
}

/// The two ends of a connection, seen from one host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuple {
    /// The address and port of this host's end.
    pub local: Addr,
    /// The address and port of the peer's end.
    pub remote: Addr,
}

impl Tuple {
    /// Returns a number that orders tuples as their fields do. Look-ups with the number are faster, and a stack makes
    /// several look-ups for each segment.
    fn number(&self) -> u128 {
        let end = |addr: Addr| u64::from(addr.ip().to_bits()) << 16 | u64::from(addr.port());
        u128::from(end(self.local)) << 64 | u128::from(end(self.remote))
    }
}

impl Ord for Tuple {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl PartialOrd for Tuple {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What a host does with received segments of a connection that is being moved to another host, or from one. While a
/// tuple is guarded, the host sends nothing for it except the resets of [`Guard::Reset`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Guard {
    /// The segments are dropped; the peer retransmits them.
    Drop,
    /// At most this number of packets, and at most 1024, is held until the guard is removed. The host then receives the
    /// held packets. Further packets are dropped.
    Hold(usize),
    /// Each segment is dropped, and answered by a reset unless it is itself a reset (RFC 9293, section 3.10.7.1).
    Reset,
}

/// An option of one stream that differs from the default of its host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SocketOption {
    /// The size in bytes of the buffer for unsent and unacknowledged data. Credit that was granted stays valid. A
    /// kernel counts its own overhead, so the size may differ by one or two segments.
    SendBuffer(u32),
    /// The size in bytes of the buffer for unread data: the largest window that is announced from now on. A window
    /// announced before is not withdrawn, but a kernel may drop data beyond the new size. So the size should be set
    /// before the connection opens.
    ReceiveBuffer(u32),
    /// Whether small segments wait while data is unacknowledged (RFC 9293, section 3.7.4).
    Nagle(bool),
    /// Whether the datagrams of a UDP stream are sent with DF, as they are without this option. Without DF, this host
    /// and routers may cut a datagram. Streams of other transports ignore the option.
    DontFragment(bool),
}

/// A request for a stream by its user.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StreamOp {
    /// Connects to a peer; `Opened` or `Closed` answers.
    Open {
        /// The transport of the stream.
        by: Transport,
        /// The local address; `None` lets the transport choose it.
        local: Option<Addr>,
        /// The peer's address.
        peer: Addr,
        /// Whether `local` may be the address of another host. Packets to this address reach the stream only if the
        /// node sends them to [`wire::Iface::HOST`].
        foreign: bool,
    },
    /// Waits for peers; `Opened` or `Closed` answers, then `Accepted` for each peer. With UDP, the first datagram of a
    /// peer creates its stream.
    Listen {
        /// The transport of the accepted streams.
        by: Transport,
        /// The local address at which peers are accepted.
        local: Addr,
        /// Whether `local` may be the address of another host, also for accepted streams.
        foreign: bool,
    },
    /// Reads as soon as data arrive; `Data` or `Finished` answers. On a byte stream, the value is the largest number of
    /// bytes of the answer. Only the latest read is open, and a read of [`StreamOp::ALL`] bytes stays open after each
    /// answer. On a stream of datagrams, the value is ignored: each read is answered by one datagram.
    Read(usize),
    /// Sends these bytes, at most as many as there is credit for. A connection is aborted if its user writes more than
    /// its credit, or writes after `Finish`.
    Write(Vec<u8>),
    /// Ends the direction from this user to the peer. The peer is notified after the last byte, and may continue to
    /// send. When the peer has finished too, and the user has received `Finished`, `Closed` follows. Datagram streams
    /// and listeners are closed at once.
    Finish,
    /// Ends the stream at once. A TCP peer receives a reset, unless the connection is frozen. `Closed` answers.
    Abort,
    /// Moves a TCP connection to another host, or relays between two TCP connections.
    Migrate(MigrateOp),
    /// Sets an option of a TCP connection. The option does not move with the connection. An option that is set before
    /// `Open` or `Import` applies from the first segment on. An option that is set before `Listen` applies to accepted
    /// connections. Other transports have no options.
    Set(SocketOption),
}

impl StreamOp {
    /// The number of bytes in a [`StreamOp::Read`] that requests all data of a byte stream. Such a read remains open
    /// after each answer.
    pub const ALL: usize = usize::MAX;

    /// Returns the number of bytes that a read of `most` bytes from a byte stream still requests after an answer:
    /// [`StreamOp::ALL`] if `most` is `ALL`, otherwise 0.
    pub const fn left_to_read(most: usize) -> usize {
        if most == Self::ALL { most } else { 0 }
    }
}

/// A request that moves a TCP connection to another host, or relays between two connections.
///
/// A connection moves by `Freeze`, `Export` and `Forget` at the old host, and by `Import` and `Thaw` at the new one.
/// Until `Forget`, the old host can continue the connection with `Thaw`. Until `Thaw`, the new host sends nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum MigrateOp {
    /// Stops the connection: no segment is sent, and received segments are dropped unless a `Guard` holds them.
    Freeze,
    /// Returns the state of a frozen connection; `Exported` or `Refused` answers. The connection remains frozen.
    Export,
    /// Takes over a connection, which stays frozen until `Thaw`; `Imported` or `Closed` answers. The local address may
    /// belong to another host. If both ends have finished and everything was read, `Closed` follows when everything is
    /// acknowledged. Until then the connection can move again.
    Import(Box<TcpState>),
    /// Continues a frozen connection.
    Thaw,
    /// Removes the stream without notifying the peer; `Closed` answers.
    Forget,
    /// Sets or removes (`None`) the guard of a tuple, whether the tuple has a socket or not. The guard belongs to the
    /// host, not to the stream.
    Guard(Tuple, Option<Guard>),
    /// Relays between this stream and the given stream. Both streams must be open TCP connections of the driver, and
    /// neither may be in a relay; otherwise `Refused` answers. Each connection sends what the other connection
    /// receives, including FIN and reset. The given bytes are sent first: the first item on the given stream, the
    /// second item on this stream.
    ///
    /// During the relay, the user neither reads nor writes, and earlier credit is void. The buffers of both connections
    /// bound the data that are relayed and not sent yet. When both connections have finished, the relay ends. Each
    /// connection is `Closed` when all its data are acknowledged, and can move until then. `Freeze`, `Export` and
    /// `Forget` apply only to the stream that they name. A frozen stream neither takes nor gives data.
    Join(StreamId, [Vec<u8>; 2]),
    /// Ends the relay of which this stream is one side; `Parted` or `Refused` answers. If a side has finished, the
    /// bytes that it received cannot move with it, so these bytes are returned too. After the answer, both streams are
    /// as before the `Join`, except that a finished direction stays finished. A stream gets new credit when it is
    /// neither frozen nor guarded.
    Part,
}

impl MigrateOp {
    /// Returns the answer of a transport whose streams cannot move, or `None` if the request needs no answer.
    pub fn refused(&self, stream: StreamId) -> Option<OwnedStreamEvent> {
        let why = match self {
            Self::Export => refusal::NOT_ESTABLISHED,
            Self::Join(..) => refusal::NOT_JOINABLE,
            Self::Part => refusal::NOT_JOINED,
            Self::Freeze | Self::Import(_) | Self::Thaw | Self::Forget | Self::Guard(..) => return None,
        };
        Some(OwnedStreamEvent::refused(stream, why))
    }
}

/// An event of a stream, for its user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamEvent<'a> {
    /// The stream is open, with this local address.
    Opened(Addr),
    /// A peer was accepted. The values are the new stream, its local address, and the peer's address.
    Accepted(StreamId, Addr, Addr),
    /// The data that a `Read` requested.
    Data(&'a [u8]),
    /// Credit: this number of bytes may be written in addition to earlier credit. For datagrams, it is the largest
    /// payload of each.
    Room(usize),
    /// The peer has finished, and everything was read.
    Finished,
    /// The stream is closed, for this reason: one of [`refusal`], or the text of the operating system. `None` if both
    /// sides have finished, or the user ended the stream.
    Closed(Option<&'a str>),
    /// The answer to a [`MigrateOp`].
    Migrate(MigrateEvent<'a>),
}

/// The answer to a [`MigrateOp`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MigrateEvent<'a> {
    /// The state that an `Export` requested.
    Exported(&'a TcpState),
    /// An `Import` is complete. The connection waits for `Thaw`. Credit is granted only after the `Thaw`.
    Imported,
    /// An `Export`, `Join`, `Part` or `Guard` was refused, for this reason. The stream is unchanged. Exception: if the
    /// kernel fails during a `Part`, both connections are reset, because bytes are lost.
    Refused(&'a str),
    /// The bytes that a `Part` returns. Index 0: the bytes that were received on this stream and not yet sent on the
    /// other stream of the relay. Index 1: the bytes of the opposite direction. If these bytes are given to the next
    /// `Join`, none is lost or duplicated.
    Parted([&'a [u8]; 2]),
}

/// The reasons why a stream is closed or a request is refused. Both backends have the same texts.
pub mod refusal {
    /// Neither the driver nor a role of this host provides the requested transport.
    pub const NO_TRANSPORT: &str = "no such transport";
    /// The peer answered the connection request with a reset.
    pub const REFUSED: &str = "connection refused";
    /// The peer reset the connection.
    pub const RESET: &str = "connection reset by the peer";
    /// The peer did not answer in time.
    pub const TIMED_OUT: &str = "timed out";
    /// A router or this host reported that the peer is unreachable (RFC 792, type 3).
    pub const UNREACHABLE: &str = "unreachable";
    /// Another socket uses the address.
    pub const IN_USE: &str = "address in use";
    /// The host has no address, or (simulator) no free local port for this peer.
    pub const NO_ADDRESS: &str = "this host has no address";
    /// The host already has the largest number of sockets, or of guards, that it may have. On Linux, the limit of open
    /// files can be the reason too.
    pub const FULL: &str = "too many sockets";
    /// The user wrote more bytes than it had credit for, or wrote after it had finished.
    pub const BEYOND_CREDIT: &str = "wrote beyond its credit";
    /// Only a frozen connection can be exported.
    pub const NOT_FROZEN: &str = "not frozen";
    /// Only an established connection can be exported, until both ends have finished and everything is acknowledged.
    pub const NOT_ESTABLISHED: &str = "not established";
    /// Only two open TCP connections of the driver can be joined, and only if neither is joined already.
    pub const NOT_JOINABLE: &str = "cannot join: not two open TCP connections";
    /// Only streams that were joined by [`super::MigrateOp::Join`] can be parted.
    pub const NOT_JOINED: &str = "not joined";
    /// The local address belongs to another host, and the request is not `foreign`. Or (Linux) the kernel cannot assign
    /// the address.
    pub const NOT_OURS: &str = "address not available";
}

/// The largest payload of a UDP datagram over IPv4 in bytes: the credit of a datagram stream.
pub const UDP_ROOM: usize = 65_507;

/// An event of a stream, from a driver or from a role that provides a transport: a [`StreamEvent`] that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OwnedStreamEvent {
    /// The stream is open, with this local address ([`StreamEvent::Opened`]).
    Opened(StreamId, Addr),
    /// The stream got this number of bytes of credit ([`StreamEvent::Room`]).
    Room(StreamId, usize),
    /// A listening stream accepted a peer ([`StreamEvent::Accepted`]).
    Accepted {
        /// The listening stream.
        listener: StreamId,
        /// The new stream.
        new: StreamId,
        /// The local address of the new stream.
        local: Addr,
        /// The peer's address.
        peer: Addr,
    },
    /// Received data of the stream ([`StreamEvent::Data`]). The identity is that of the packet that carried a datagram,
    /// or [`PacketId::NEW`] for a byte stream.
    Data(StreamId, PacketId, Vec<u8>),
    /// The stream is closed, for this reason ([`StreamEvent::Closed`]).
    Closed(StreamId, Option<String>),
    /// The peer of the stream has finished ([`StreamEvent::Finished`]).
    Finished(StreamId),
    /// The answer to a [`MigrateOp`] of the stream ([`StreamEvent::Migrate`]).
    Migrate(StreamId, OwnedMigrateEvent),
}

/// A [`MigrateEvent`] that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OwnedMigrateEvent {
    /// The state of the exported connection ([`MigrateEvent::Exported`]).
    Exported(Box<TcpState>),
    /// The import is complete ([`MigrateEvent::Imported`]).
    Imported,
    /// The request was refused, for this reason ([`MigrateEvent::Refused`]).
    Refused(String),
    /// The bytes that a `Part` returns, in the order of [`MigrateEvent::Parted`].
    Parted([Vec<u8>; 2]),
}

impl OwnedMigrateEvent {
    /// Returns this event with borrowed bytes.
    pub fn event(&self) -> MigrateEvent<'_> {
        match self {
            Self::Exported(state) => MigrateEvent::Exported(state),
            Self::Imported => MigrateEvent::Imported,
            Self::Refused(why) => MigrateEvent::Refused(why),
            Self::Parted([there, here]) => MigrateEvent::Parted([there, here]),
        }
    }
}

impl OwnedStreamEvent {
    /// Returns the event that a [`MigrateOp`] of this stream was refused.
    pub fn refused(stream: StreamId, why: &str) -> Self {
        Self::Migrate(stream, OwnedMigrateEvent::Refused(why.to_owned()))
    }

    /// Returns the stream, and its event with borrowed bytes.
    pub fn event(&self) -> (StreamId, StreamEvent<'_>) {
        match self {
            Self::Opened(id, local) => (*id, StreamEvent::Opened(*local)),
            Self::Room(id, room) => (*id, StreamEvent::Room(*room)),
            Self::Accepted { listener, new, local, peer } => {
                (*listener, StreamEvent::Accepted(*new, *local, *peer))
            }
            Self::Data(id, _, bytes) => (*id, StreamEvent::Data(bytes)),
            Self::Finished(id) => (*id, StreamEvent::Finished),
            Self::Closed(id, why) => (*id, StreamEvent::Closed(why.as_deref())),
            Self::Migrate(id, event) => (*id, StreamEvent::Migrate(event.event())),
        }
    }
}

/// The received datagrams of a stream that were not read yet, or a read that waits for a datagram.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    wanted: u32,
    /// The datagrams that were not read yet. `None` until a datagram arrives for which no read is open.
    queue: Option<Box<Waiting>>,
}

type Waiting = VecDeque<(PacketId, Vec<u8>)>;

impl Inbox {
    /// The largest number of datagrams that wait for a read. Further datagrams are dropped, as in a kernel.
    pub const CAPACITY: usize = 256;

    /// Takes the next datagram, and returns the event that answers the read. If no datagram waits, the read stays open,
    /// and the result is `None`.
    pub fn read(&mut self, stream: StreamId) -> Option<OwnedStreamEvent> {
        let Some((packet, bytes)) = self.queue.as_mut().and_then(|queue| queue.pop_front()) else {
            self.wanted = self.wanted.saturating_add(1);
            return None;
        };
        Some(OwnedStreamEvent::Data(stream, packet, bytes))
    }

    /// Adds a datagram. If a read is open, returns the event that answers it. The error is the drop reason when the
    /// queue is full.
    pub fn push(
        &mut self,
        stream: StreamId,
        packet: PacketId,
        bytes: Vec<u8>,
    ) -> Result<Option<OwnedStreamEvent>, Reason> {
        if self.wanted > 0 {
            self.wanted -= 1;
            return Ok(Some(OwnedStreamEvent::Data(stream, packet, bytes)));
        }
        let queue = self.queue.get_or_insert_default();
        if queue.len() >= Self::CAPACITY {
            return Err(SOCKET_FULL);
        }
        queue.push_back((packet, bytes));
        Ok(None)
    }

    /// Returns the datagrams that were not read, in the order of arrival.
    pub fn into_waiting(self) -> impl Iterator<Item = (PacketId, Vec<u8>)> {
        self.queue.map(|queue| *queue).unwrap_or_default().into_iter()
    }

    /// Calls `each` with the identity of each datagram that waits for a read.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.queue.iter().flat_map(|queue| queue.iter()).for_each(|(id, _)| each(*id));
    }
}

/// The drop reason of a datagram that arrives when [`Inbox::CAPACITY`] datagrams already wait for a read.
pub const SOCKET_FULL: Reason = Reason("socket_queue_full");
