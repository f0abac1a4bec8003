//! SCTP (RFC 9260) without I/O: no socket, no clock, no thread. With addresses that come and go while an association
//! lives (RFC 5061), authenticated (RFC 4895). It knows nothing of roles and nodes: who has one drives it.
//!
//! ```text
//!   open, listen, write, read,   ┌──────────┐ ──> poll_transmit: source, destination, packet; until there is none
//!   change, prefer, finish   ──> │ Endpoint │ <── receive: source, destination, packet
//!   poll_event               <── └──────────┘ <── on_timeout, when deadline() has come
//!                                 associations, each with paths: one for every address of the peer
//! ```
//!
//! After each call, poll until `None`; then wait for `deadline`. A packet must leave from the source that it names: that
//! is what tells the paths of a host with several addresses apart.
//!
//! ```text
//!   inbound    chunks ─> messages        outbound   messages ─> chunks, and again
//!   path       one address of the peer   locals     our own addresses
//!   route      from one to the other      detour     another route while the chosen one is silent
//!   ours       changes that we ask for   theirs     changes that we are asked for
//!   handshake  second  restart  directory  how it begins, and where the peer may be
//!   arrive  leave  timers               what an association does, by occasion
//! ```
//!
//! IPv4 only: IPv6 addresses of a peer are read and not used.

mod arrive;
mod association;
mod chance;
mod config;
mod cookie;
mod crc32c;
mod detour;
mod directory;
mod endpoint;
mod event;
mod handshake;
mod inbound;
mod keys;
mod leave;
mod locals;
pub mod message;
mod ours;
mod outbound;
mod path;
mod restart;
mod route;
mod second;
mod serial;
mod theirs;
mod timers;

pub use association::{Association, Open, Transmit, WriteError};
pub use config::{Config, Hmac};
pub use endpoint::{AssociationId, Complaint, Endpoint};
pub use event::{Cannot, Change, Ended, Event, Outcome, State};
pub use inbound::Piece;
pub use message::PROTOCOL;
pub use outbound::Counts;
pub use path::{PathInfo, PathState};
