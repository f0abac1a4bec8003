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
//! After each call, the caller polls `poll_transmit` and `poll_event` until both return `None`, and then waits until
//! `deadline` at the latest. `Transmit::src` is the source address that the packet must have.
//!
//! ```text
//!   endpoint                                    all associations of a host, and packets outside of them
//!   inbound        chunks ─> messages           outbound  messages ─> chunks, retransmission
//!   path           one address of the peer
//!   local_addresses  directory                  our own addresses; addresses of the peer from a directory
//!   keys  cookie  secret_rng                    AUTH, the state cookie, random numbers
//!   association                                 one association, with these modules:
//!     route  detour                             source and destination; another route while the chosen one is silent
//!     asconf_out  asconf_in                     changes of our own addresses; changes of the peer's addresses
//!     handshake  second_opening  restart        the opening of an association, and its exceptions
//!     receive  transmit  timers                 packets received, packets sent, time-outs
//! ```
//!
//! IPv4 only: IPv6 addresses of a peer are parsed, but not used.

mod association;
mod config;
mod cookie;
mod crc32c;
mod directory;
mod endpoint;
mod event;
mod inbound;
mod keys;
mod local_addresses;
pub mod message;
mod outbound;
mod path;
mod secret_rng;
mod tsn;
mod unicast;

pub use association::{Association, Open, Transmit, WriteError};
pub use config::{Config, Hmac};
pub use endpoint::{AssociationId, Endpoint, Rejection};
pub use event::{AssociationEvent, Change, ChangeOutcome, Ended, RequestError, State};
pub use inbound::Piece;
pub use message::PROTOCOL;
pub use outbound::Counts;
pub use path::{PathInfo, PathState};
