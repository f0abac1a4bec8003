//! The one vocabulary of applications and transports. Nothing is read unless asked for, and a write needs credit: that
//! is all the back-pressure there is.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
pub use std::net::SocketAddrV4 as Addr;
use wire::{PacketId, Reason, TcpState};

/// A stream of a role. A role numbers those that it opens itself, below [`StreamId::OWN`]; the node keeps the numbers of
/// different roles apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Numbers below this are a role's own.
    pub const OWN: u32 = 1 << 16;
    /// Numbers from here on, [`StreamId::OWN`] of them, are the driver's for what it asks roles for.
    pub const OUTSIDE: u32 = 0x0100_0000;
    /// Numbers from here on are given by a role that serves, to streams that it accepted. It counts from here by itself,
    /// up to [`StreamId::ACCEPTED`] of them at one time; the node keeps those of different roles apart.
    pub const SERVED: u32 = 0x4000_0000;
    /// Streams that one role can have accepted at one time.
    pub const ACCEPTED: u32 = 1 << 22;
    /// Numbers from here on are given by the driver, to streams that were accepted.
    pub const DRIVER: u32 = 0x8000_0000;

    /// The number that a driver gives to the next stream that it accepted; `accepted` counts them.
    pub const fn of_driver(accepted: &mut u32) -> Self {
        let number = *accepted % Self::DRIVER;
        *accepted = number + 1;
        Self(Self::DRIVER + number)
    }
}

/// Who carries a stream's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// Datagrams: each write is one, each read gives one. The driver provides it.
    Udp,
    /// A stream of bytes each way (RFC 9293). The driver provides it: the simulator's stack, or the kernel's sockets.
    Tcp,
    /// What a role of the same node serves under this name ([`crate::Role::serves`]).
    Role(&'static str),
}

/// Datagrams add nothing to the number of a run: they were there before there was a choice.
impl Hash for Transport {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Udp => {}
            Self::Tcp => state.write_u8(1),
            Self::Role(name) => (2u8, name).hash(state),
        }
    }
}

/// Both ends of a connection, as the host that it belongs to sees them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuple {
    /// This host's end.
    pub local: Addr,
    /// The peer's.
    pub remote: Addr,
}

impl Tuple {
    /// As a number whose order is that of the fields: a stack looks several times for each segment.
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

/// What becomes of segments of a tuple that is on its way to another host, or from one. While it is guarded this host
/// says nothing of its own on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Guard {
    /// They are dropped; the peer sends them again.
    Drop,
    /// So many packets are kept until the guard is lifted, and are then received; what comes beyond is dropped.
    Hold(usize),
    /// Each is answered by a reset (RFC 9293, section 3.10.7.1).
    Reset,
}

/// What may be set of one TCP connection, where it is not to be as its host's are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Knob {
    /// Bytes that may wait to be sent or acknowledged. Credit that was given stays good. A kernel counts what it spends on
    /// them too, so that it may be a segment or two more or less.
    SendBuffer(u32),
    /// Bytes that may wait to be read: the largest window that is announced from now on. What was announced stays so, though
    /// a kernel may drop what comes beyond; so it is best set before.
    ReceiveBuffer(u32),
    /// Whether small segments wait while data is unacknowledged (RFC 9293, section 3.7.4).
    Nagle(bool),
}

/// What the user of a stream asks for.
///
/// A TCP connection moves by `Freeze`, `Export`, and `Forget` at one host, and `Import` and `Thaw` at the other. Until
/// `Forget` the first can go on by `Thaw`, as if nothing had been. Until `Thaw` the second says nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamOp {
    /// Reach a peer; `Opened` or `Closed` answers.
    Open {
        /// By which transport.
        by: Transport,
        /// From where; `None` leaves it to the transport.
        local: Option<Addr>,
        /// To whom.
        peer: Addr,
        /// `local` may be an address that is not this host's own. What answers reaches the stream only if the node hands it
        /// to [`wire::Iface::HOST`].
        foreign: bool,
    },
    /// Wait for peers; `Opened` or `Closed` answers, then `Accepted` for each peer. With UDP a peer is accepted when
    /// its first datagram comes.
    Listen {
        /// By which transport.
        by: Transport,
        /// Where.
        local: Addr,
        /// As in `Open`; what is accepted here is foreign too.
        foreign: bool,
    },
    /// Take up to so many bytes (one datagram) when there are any; answered by `Data` or `Finished`. Of a stream of
    /// bytes one read is open at a time, the last that was asked for. [`StreamOp::ALL`] bytes stay asked for, as they come,
    /// piece by piece: for who never has too much.
    Read(usize),
    /// Send these bytes: at most as many as there is credit for. Who writes more has its connection aborted.
    Write(Vec<u8>),
    /// Nothing more will be written; the peer is told after the last byte, and may go on sending. When the peer has
    /// finished too, `Closed` follows. Datagrams and listeners have nothing to wait for.
    Finish,
    /// End at once; a TCP peer is told by a reset. `Closed` answers.
    Abort,
    /// From now on no segment leaves and none is answered. What comes is dropped, unless a `Guard` holds it.
    Freeze,
    /// Give the state of a frozen connection; `Exported` or `Refused` answers. The connection stays, and stays frozen.
    Export,
    /// Take over a connection, frozen; `Imported` or `Closed` answers. Its local address may be foreign. One whose ends have both
    /// finished, and of which nothing is unread, is `Closed` when all of it is acknowledged: until then it can move again.
    Import(Box<TcpState>),
    /// A frozen connection goes on.
    Thaw,
    /// End without a word to the peer; `Closed` answers.
    Forget,
    /// Sets or lifts the guard of a tuple, whether there is a socket or not. It belongs to the host, not to the stream.
    Guard(Tuple, Option<Guard>),
    /// Relays between this stream and that, both TCP, open and of one provider: what one receives the other sends, the end
    /// too; a reset of one resets the other. The staged bytes go first: those for that stream, then those for this. The
    /// user reads and writes neither meanwhile, and credit that it had is void. What is relayed and not yet sent is bounded
    /// by the buffers of both. When both have finished, the relay ends by itself, and each is `Closed` when all of it is
    /// acknowledged: until then it can move. Freeze, Export and Forget mean the one stream that they name, as ever: a frozen one takes
    /// and gives nothing. `Refused` answers what cannot be.
    Join(StreamId, [Vec<u8>; 2]),
    /// Ends the relay of which this stream is one side; `Parted` or `Refused` answers. With the bytes that are given back are
    /// those that a side has received and that cannot move with it, because it has ended in order. Both streams are as they were
    /// before the `Join`, except that what has ended stays ended, and get new credit when neither frozen nor guarded.
    Part,
    /// Sets a knob of a TCP connection, from now on; it does not move with the connection. Before `Open` or `Import` it holds
    /// from the first segment on, before `Listen` for what is accepted. Other transports have none.
    Set(Knob),
}

impl StreamOp {
    /// All bytes of a stream, for [`StreamOp::Read`].
    pub const ALL: usize = usize::MAX;

    /// What a read of so many bytes asks for still, when a piece has answered it.
    pub const fn left_to_read(most: usize) -> usize {
        if most == Self::ALL { most } else { 0 }
    }
}

/// A run that opens nothing foreign has its old number. Of bytes that are written their length is enough, as of [`Told`].
impl Hash for StreamOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Open { by, local, peer, foreign } => {
                (by, local, peer).hash(state);
                hash_foreign(*foreign, state);
            }
            Self::Listen { by, local, foreign } => {
                (by, local).hash(state);
                hash_foreign(*foreign, state);
            }
            Self::Read(most) => most.hash(state),
            Self::Write(bytes) => bytes.len().hash(state),
            Self::Import(connection) => connection.hash(state),
            Self::Guard(tuple, guard) => (tuple, guard).hash(state),
            Self::Join(other, staged) => (other, staged).hash(state),
            Self::Set(knob) => knob.hash(state),
            Self::Finish
            | Self::Abort
            | Self::Freeze
            | Self::Export
            | Self::Thaw
            | Self::Forget
            | Self::Part => {}
        }
    }
}

fn hash_foreign<H: Hasher>(foreign: bool, state: &mut H) {
    if foreign {
        state.write_u8(1);
    }
}

/// What becomes of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamEvent<'a> {
    /// It is open, at this local address.
    Opened(Addr),
    /// A peer came: its stream, the local address, the peer's.
    Accepted(StreamId, Addr, Addr),
    /// What a `Read` asked for.
    Data(&'a [u8]),
    /// Credit: so many more bytes may be written. It adds up, so that a grant that crosses a write does no harm. Of
    /// datagrams: each may be so long.
    Room(usize),
    /// The peer has finished and all was read.
    Finished,
    /// What an `Export` asked for.
    Exported(&'a TcpState),
    /// An `Import` is done, and waits for `Thaw`; credit comes with that.
    Imported,
    /// An `Export` cannot be carried out, and why. The stream is as it was.
    Refused(&'a str),
    /// It is gone; why, unless that was asked for: one of [`refusal`], or what the operating system says.
    Closed(Option<&'a str>),
    /// What a `Part` gives back: bytes that were read here and not yet sent to the other stream, then those that were read
    /// there and not yet sent here. Staged with the next `Join`, they are neither lost nor doubled.
    Parted([&'a [u8]; 2]),
}

/// Why a stream is closed, or cannot do what it was asked: the same words in both worlds.
pub mod refusal {
    /// Nobody here provides the transport that was asked for.
    pub const NO_TRANSPORT: &str = "no such transport";
    /// The peer answered with a reset when it was asked for.
    pub const REFUSED: &str = "connection refused";
    /// The peer reset it.
    pub const RESET: &str = "connection reset by the peer";
    /// The peer was silent for too long.
    pub const TIMED_OUT: &str = "timed out";
    /// A router says that there is no way (RFC 792, type 3).
    pub const UNREACHABLE: &str = "unreachable";
    /// Somebody else is there.
    pub const IN_USE: &str = "address in use";
    /// This host has no address.
    pub const NO_ADDRESS: &str = "this host has no address";
    /// The table of sockets is full.
    pub const FULL: &str = "too many sockets";
    /// More was written than there was credit for.
    pub const BEYOND_CREDIT: &str = "wrote beyond its credit";
    /// Only what is frozen can be exported.
    pub const NOT_FROZEN: &str = "not frozen";
    /// Only a connection that was established, and of which something is to come or to be acknowledged, can be exported: of any
    /// other that has not failed both ends have finished, and know it.
    pub const NOT_ESTABLISHED: &str = "not established";
    /// Only two open TCP connections of one provider can be joined, each with one other.
    pub const NOT_JOINABLE: &str = "not joinable";
    /// Only what was joined can be parted.
    pub const NOT_JOINED: &str = "not joined";
    /// The address is another host's, and was not asked for as such.
    pub const NOT_OURS: &str = "address not available";
}

/// Bytes of payload that fit one UDP datagram over IPv4: the credit of a datagram stream.
pub const UDP_ROOM: usize = 65_507;

/// What a driver, or a role that serves, has to tell of its streams: a [`StreamEvent`] that owns its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// See [`StreamEvent::Opened`].
    Opened(StreamId, Addr),
    /// See [`StreamEvent::Room`].
    Room(StreamId, usize),
    /// See [`StreamEvent::Accepted`].
    Accepted {
        /// Who waited.
        listener: StreamId,
        /// The new stream.
        new: StreamId,
        /// Where.
        local: Addr,
        /// Who came.
        peer: Addr,
    },
    /// See [`StreamEvent::Data`]. The packet is the one that carried a datagram; bytes of a stream have
    /// [`PacketId::NEW`].
    Data(StreamId, PacketId, Vec<u8>),
    /// See [`StreamEvent::Closed`].
    Closed(StreamId, Option<String>),
    /// See [`StreamEvent::Finished`].
    Finished(StreamId),
    /// See [`StreamEvent::Exported`].
    Exported(StreamId, Box<TcpState>),
    /// See [`StreamEvent::Imported`].
    Imported(StreamId),
    /// See [`StreamEvent::Refused`].
    Refused(StreamId, String),
    /// See [`StreamEvent::Parted`].
    Parted(StreamId, [Vec<u8>; 2]),
}

/// Bytes are in a run's number since they went out by a link; of what is handed on of them, their length is enough.
impl Hash for Told {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Opened(id, local) => (id, local).hash(state),
            Self::Room(id, room) => (id, room).hash(state),
            Self::Accepted { listener, new, local, peer } => (listener, new, local, peer).hash(state),
            Self::Data(id, packet, bytes) => (id, packet, bytes.len()).hash(state),
            Self::Closed(id, why) => (id, why).hash(state),
            Self::Finished(id) | Self::Imported(id) => id.hash(state),
            Self::Exported(id, connection) => (id, connection).hash(state),
            Self::Refused(id, why) => (id, why).hash(state),
            Self::Parted(id, back) => (id, back).hash(state),
        }
    }
}

impl Told {
    /// Whose stream, and the event.
    pub fn event(&self) -> (StreamId, StreamEvent<'_>) {
        match self {
            Self::Opened(id, local) => (*id, StreamEvent::Opened(*local)),
            Self::Room(id, room) => (*id, StreamEvent::Room(*room)),
            Self::Accepted { listener, new, local, peer } => {
                (*listener, StreamEvent::Accepted(*new, *local, *peer))
            }
            Self::Data(id, _, bytes) => (*id, StreamEvent::Data(bytes)),
            Self::Finished(id) => (*id, StreamEvent::Finished),
            Self::Exported(id, state) => (*id, StreamEvent::Exported(state)),
            Self::Imported(id) => (*id, StreamEvent::Imported),
            Self::Refused(id, why) => (*id, StreamEvent::Refused(why)),
            Self::Closed(id, why) => (*id, StreamEvent::Closed(why.as_deref())),
            Self::Parted(id, [there, here]) => (*id, StreamEvent::Parted([there, here])),
        }
    }
}

/// Datagrams on their way to a reader: they wait for a `Read`, or a `Read` waits for them.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    wanted: u32,
    /// A reader who asks in time needs none.
    queue: Option<Box<Waiting>>,
}

/// Datagrams that nobody has asked for yet.
type Waiting = VecDeque<(PacketId, Vec<u8>)>;

impl Inbox {
    /// Datagrams kept for a reader who has not asked yet; beyond that they are dropped, as a kernel does.
    pub const CAPACITY: usize = 256;

    /// A reader asks for one more.
    pub fn read(&mut self, stream: StreamId) -> Option<Told> {
        let Some((packet, bytes)) = self.queue.as_mut().and_then(|queue| queue.pop_front()) else {
            self.wanted = self.wanted.saturating_add(1);
            return None;
        };
        Some(Told::Data(stream, packet, bytes))
    }

    /// A datagram came. Refused when the queue is full.
    pub fn push(
        &mut self,
        stream: StreamId,
        packet: PacketId,
        bytes: Vec<u8>,
    ) -> Result<Option<Told>, Reason> {
        if self.wanted > 0 {
            self.wanted -= 1;
            return Ok(Some(Told::Data(stream, packet, bytes)));
        }
        let queue = self.queue.get_or_insert_default();
        if queue.len() >= Self::CAPACITY {
            return Err(SOCKET_FULL);
        }
        queue.push_back((packet, bytes));
        Ok(None)
    }

    /// What no reader has asked for, in the order in which it came.
    pub fn into_waiting(self) -> impl Iterator<Item = (PacketId, Vec<u8>)> {
        self.queue.map(|queue| *queue).unwrap_or_default().into_iter()
    }

    /// Names the packets that wait.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.queue.iter().flat_map(|queue| queue.iter()).for_each(|(id, _)| each(*id));
    }
}

/// The reader was too slow.
pub const SOCKET_FULL: Reason = Reason("socket_queue_full");
