//! What a run's records contain about the streams of applications, whatever provides the transport.

use crate::stream::{Addr, OwnedStreamEvent, StreamId, StreamOp, Transport};
use wire::PacketId;

/// One event of one stream, as the role that uses it sees it. No role is notified of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AppEvent {
    /// The stream, by its number outside its role. A number may be used again after [`AppChange::Closed`].
    pub stream: StreamId,
    /// What happened.
    pub change: AppChange,
}

/// What happened to a stream of an application.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AppChange {
    /// The application requests a connection, or listens.
    Asked {
        /// The role that uses the stream; empty for a program outside the daemon.
        role: &'static str,
        /// The transport.
        by: Transport,
        /// The requested local address, if any.
        local: Option<Addr>,
        /// The peer; `None` for a listener.
        peer: Option<Addr>,
    },
    /// It is open at this local address.
    Opened(Addr),
    /// This listener accepted a stream.
    Accepted {
        /// The new stream.
        new: StreamId,
        /// Its local address.
        local: Addr,
        /// Its peer.
        peer: Addr,
    },
    /// The application was given this number of bytes.
    Read(u64),
    /// The peer has finished, and the application was given everything.
    Finished,
    /// The stream is closed: why, unless the application requested it.
    Closed(Option<String>),
}

impl AppEvent {
    /// Returns the event for a request of an application, or `None` if the records do not keep it.
    pub const fn of_op(role: &'static str, stream: StreamId, op: &StreamOp) -> Option<Self> {
        let change = match op {
            StreamOp::Open { by, local, peer, .. } => {
                AppChange::Asked { role, by: *by, local: *local, peer: Some(*peer) }
            }
            StreamOp::Listen { by, local, .. } => {
                AppChange::Asked { role, by: *by, local: Some(*local), peer: None }
            }
            StreamOp::Read(_)
            | StreamOp::Write(_)
            | StreamOp::Finish
            | StreamOp::Abort
            | StreamOp::Migrate(_)
            | StreamOp::Set(_) => return None,
        };
        Some(Self { stream, change })
    }

    /// Returns the event for a notification of an application, or `None` if the records do not keep it. A datagram is
    /// recorded as a packet instead.
    pub fn of_event(event: &OwnedStreamEvent) -> Option<Self> {
        let (stream, change) = match event {
            OwnedStreamEvent::Opened(id, local) => (*id, AppChange::Opened(*local)),
            OwnedStreamEvent::Accepted { listener, new, local, peer } => {
                (*listener, AppChange::Accepted { new: *new, local: *local, peer: *peer })
            }
            OwnedStreamEvent::Data(id, PacketId::NEW, bytes) => (*id, AppChange::Read(bytes.len() as u64)),
            OwnedStreamEvent::Finished(id) => (*id, AppChange::Finished),
            OwnedStreamEvent::Closed(id, why) => (*id, AppChange::Closed(why.clone())),
            OwnedStreamEvent::Room(..) | OwnedStreamEvent::Data(..) | OwnedStreamEvent::Migrate(..) => {
                return None;
            }
        };
        Some(Self { stream, change })
    }
}
