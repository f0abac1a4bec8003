//! The one vocabulary of applications and transports. Nothing is read unless asked for, and a write needs credit: that
//! is all the back-pressure there is.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
pub use std::net::SocketAddrV4 as Addr;
use wire::{PacketId, Reason};

/// A stream of a role. A role numbers those that it opens itself, below [`StreamId::OWN`]; the node keeps the numbers of
/// different roles apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Numbers below this are a role's own.
    pub const OWN: u32 = 1 << 16;
    /// Numbers from here on are given by a role that serves, to streams that it accepted. It counts from here by itself,
    /// up to [`StreamId::ACCEPTED`] of them at one time; the node keeps those of different roles apart.
    pub const SERVED: u32 = 0x4000_0000;
    /// Streams that one role can have accepted at one time.
    pub const ACCEPTED: u32 = 1 << 22;
    /// Numbers from here on are given by the driver, to streams that were accepted.
    pub const DRIVER: u32 = 0x8000_0000;
}

/// Who carries a stream's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transport {
    /// Datagrams: each write is one, each read gives one. The driver provides it.
    Udp,
    /// What a role of the same node serves under this name ([`crate::Role::serves`]).
    Role(&'static str),
}

impl Hash for Transport {
    /// What a driver provides hashes as when there was nothing else, so that a run of old has its old number.
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Self::Role(name) = self {
            name.hash(state);
        }
    }
}

/// What the user of a stream asks for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StreamOp {
    /// Reach a peer; `Opened` or `Closed` answers.
    Open {
        /// By which transport.
        by: Transport,
        /// From where; `None` leaves it to the transport.
        local: Option<Addr>,
        /// To whom.
        peer: Addr,
    },
    /// Wait for peers; `Opened` or `Closed` answers, then `Accepted` for each peer. With UDP a peer is accepted when
    /// its first datagram comes.
    Listen {
        /// By which transport.
        by: Transport,
        /// Where.
        local: Addr,
    },
    /// Take up to so many bytes (one datagram) when there are any; answered by `Data`.
    Read(usize),
    /// Send these bytes.
    Write(Vec<u8>),
    /// The stream is done with.
    Finish,
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
    /// So many bytes may be written.
    Room(usize),
    /// It is gone; why, unless that was asked for.
    Closed(Option<&'a str>),
}

/// Bytes of payload that fit one UDP datagram over IPv4: the credit of a datagram stream.
pub const UDP_ROOM: usize = 65_507;

/// What a driver, or a role that serves, has to tell of its streams: a [`StreamEvent`] that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
    /// See [`StreamEvent::Data`]; the packet is the one that carried it.
    Data(StreamId, PacketId, Vec<u8>),
    /// See [`StreamEvent::Closed`].
    Closed(StreamId, Option<String>),
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
            Self::Closed(id, why) => (*id, StreamEvent::Closed(why.as_deref())),
        }
    }
}

/// Datagrams on their way to a reader: they wait for a `Read`, or a `Read` waits for them.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    wanted: usize,
    queue: VecDeque<(PacketId, Vec<u8>)>,
}

impl Inbox {
    /// Datagrams kept for a reader who has not asked yet; beyond that they are dropped, as a kernel does.
    pub const CAPACITY: usize = 256;

    /// A reader asks for one more.
    pub fn read(&mut self, stream: StreamId) -> Option<Told> {
        let Some((packet, bytes)) = self.queue.pop_front() else {
            self.wanted += 1;
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
        if self.queue.len() >= Self::CAPACITY {
            return Err(SOCKET_FULL);
        }
        self.queue.push_back((packet, bytes));
        Ok(None)
    }

    /// Names the packets that wait.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.queue.iter().for_each(|(id, _)| each(*id));
    }
}

/// The reader was too slow.
pub const SOCKET_FULL: Reason = Reason("socket_queue_full");
