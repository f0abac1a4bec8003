//! The events of application streams in the records of a run. They have the same form for every transport and provider.

use crate::stream::{Addr, OwnedStreamEvent, StreamId, StreamOp, Transport};
use wire::PacketId;

/// One event of one stream, as the user of the stream sees it. No role is notified of this event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AppEvent {
    /// The number of the stream in its node. The role that uses the stream may have another number for it. A number may
    /// be used again after [`AppChange::Closed`].
    pub stream: StreamId,
    /// What happened.
    pub change: AppChange,
}

/// What happened to a stream of an application.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum AppChange {
    /// The application requests a connection, or listens.
    Asked {
        /// The name of the role that uses the stream; empty for a program outside the daemon.
        role: &'static str,
        /// The requested transport.
        by: Transport,
        /// The requested local address, if any.
        local: Option<Addr>,
        /// The address of the peer; `None` for a listener.
        peer: Option<Addr>,
    },
    /// The stream is open, with this local address.
    Opened(Addr),
    /// The listening stream accepted a new stream.
    Accepted {
        /// The new stream.
        new: StreamId,
        /// The local address of the new stream.
        local: Addr,
        /// The address of the peer.
        peer: Addr,
    },
    /// The application received this number of bytes.
    Read(u64),
    /// The peer has finished, and the application received everything.
    Finished,
    /// The stream is closed, for this reason. `None` if both sides have finished, or the application ended the stream.
    Closed(Option<String>),
}

impl AppEvent {
    /// Returns the event for a request of the role `role`, or `None` if the request is neither `Open` nor `Listen`.
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

    /// Returns the event for a notification of an application, or `None` if the records do not keep it. The records
    /// contain a datagram as a packet, not as an event.
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
