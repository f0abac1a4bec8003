//! The one vocabulary of applications and transports. Nothing is read unless asked for, and a write needs credit: that
//! is all the back-pressure there is.

pub use std::net::SocketAddrV4 as Addr;

/// A stream of a role. A role numbers those that it opens itself, below [`StreamId::DRIVER`]; the node keeps the
/// numbers of different roles apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Numbers from here on are given by the driver, to streams that were accepted.
    pub const DRIVER: u32 = 0x8000_0000;
}

/// Who carries a stream's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// Datagrams: each write is one, each read gives one. The driver provides it.
    Udp,
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
