//! SCTP (RFC 9260) without I/O: no socket, no clock, no thread. Addresses can be added and deleted while an
//! association lives (RFC 5061), with authentication (RFC 4895). The crate does not depend on roles and nodes: its
//! caller drives it.
//!
//! ```text
//!   open, listen, write, read,   ┌──────────┐ ──> poll_transmit: source, destination, packet; until there is none
//!   change, prefer, finish   ──> │ Endpoint │ <── receive: source, destination, packet
//!   poll_event               <── └──────────┘ <── on_timeout, when deadline() has come
//!                                 associations, each with paths: one for every address of the peer
//! ```
//!
//! After each call, poll until `None`; then wait for `deadline`. A packet must leave from the source that it names:
//! paths of a host with several addresses differ by their source.
//!
//! ```text
//!   inbound    chunks ─> messages        outbound   messages ─> chunks, retransmission
//!   path       one address of the peer   locals     our own addresses
//!   route      source and destination    detour     another route while the chosen one is silent
//!   ours       changes of our addresses  theirs     changes of the peer's addresses
//!   handshake  second  restart  directory  the opening, and addresses of the peer from a directory
//!   arrive  leave  timers               packets received, packets sent, time-outs
//! ```
//!
//! IPv4 only: IPv6 addresses of a peer are parsed and ignored.

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
