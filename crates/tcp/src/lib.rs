//! TCP (RFC 9293) without I/O: no socket, no clock, no thread, no randomness. It is ours because it is what papers about
//! mobility measure, so every constant that shapes a measurement is a public knob of [`Profile`].
//!
//! ```text
//!   write, finish, abort ──> ┌────────────┐ ──> poll: segments, until there is none
//!   read, readable       <── │ Connection │ <── receive: one segment
//!   state, info          <── └────────────┘ <── timeout, when deadline() has come
//! ```
//!
//! The caller drives it: after each `receive`, `timeout`, `write`, `read` or `finish` it calls `poll` until `None`, and
//! then waits for `deadline`. Congestion control is RFC 5681 (Reno) or RFC 6582 (`NewReno`), retransmission RFC 6298.

mod challenge;
mod congestion;
mod connection;
mod export;
mod handshake;
mod profile;
mod receive;
mod segment;
mod send;
mod state;

pub use congestion::Congestion;
pub use connection::Connection;
pub use profile::Profile;
pub use segment::{Flags, HEADER, Options, PROTOCOL, Segment};
pub use state::{Ended, Info, State};
pub use wire::{Rto, Seq, TcpState};
