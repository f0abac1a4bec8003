//! TCP (RFC 9293) without I/O: no socket, no clock, no thread, no randomness. Papers about mobility measure the
//! behavior of TCP. So this crate implements TCP, and the parameters that differ between TCP stacks are public fields
//! of [`Profile`].
//!
//! ```text
//!   write, finish, abort ──> ┌────────────┐ ──> poll: segments, until there is none
//!   read, readable       <── │ Connection │ <── receive: one segment
//!   state, info          <── └────────────┘ <── timeout, when deadline() has come
//! ```
//!
//! After each call that changes the connection, the caller calls `poll` until it returns `None`. Then the caller waits
//! for `deadline()`, for a segment, or for a call of the application.
//!
//! | what | by | where |
//! |---|---|---|
//! | states, FIN, RST, simultaneous open, window probes | RFC 9293, RFC 5961 | `connection.rs handshake.rs send/timers.rs challenge.rs` |
//! | slow start, congestion avoidance, Tahoe, Reno, `NewReno` | RFC 5681, 6582, 3042 | `congestion.rs send/acknowledge.rs` |
//! | selective acknowledgments | RFC 2018, 6675 | `scoreboard.rs send/sack_recovery.rs reassembly.rs` |
//! | per-segment loss recovery as in Linux: RACK, tail loss probes, rate reduction, F-RTO | RFC 8985, 6937, 5682 | `send/repair/` |
//! | CUBIC | RFC 9438 | `cubic.rs` |
//! | retransmission time-out of the RFC, of 4.4BSD, of Linux | RFC 6298; Jacobson, 1988 | `estimator/ timing.rs ticks.rs timer_wheel.rs` |
//! | timestamps, PAWS, window scaling | RFC 7323 | `timestamps.rs options.rs` |
//! | Nagle, silly window avoidance, delayed acknowledgments | RFC 9293, 5681 | `send.rs receive.rs` |
//! | growth of the receive window | Linux | `growth.rs` |
//! | state and congestion events, for reports | | `events.rs state.rs` |
//! | export of a connection to another host | | `export.rs record.rs` |

mod challenge;
mod congestion;
mod connection;
mod cubic;
mod estimator;
mod events;
mod export;
mod growth;
mod handshake;
mod mechanisms;
mod options;
mod profile;
mod reassembly;
mod receive;
mod record;
mod scoreboard;
mod segment;
mod send;
mod state;
mod ticks;
mod timer_wheel;
mod timestamps;
mod timing;

pub use challenge::Challenge;
pub use congestion::Phase;
pub use connection::Connection;
pub use cubic::Cubic;
pub use estimator::RoundTrip;
pub use events::{Change, Watch};
pub use growth::Growth;
pub use mechanisms::{Avoidance, Estimator, Mechanisms, Recovery};
pub use options::{Blocks, Options, Timestamps};
pub use profile::{Profile, TooBig};
pub use record::{ConnectionRecord, Receiving, Sending};
pub use segment::{Flags, HEADER, PROTOCOL, Segment};
pub use send::repair::{FRto, Prr, Rack, Repair, Segments, Sent, Standing, Tail, Undo};
pub use send::timers::Timer;
pub use send::{Errand, Fin};
pub use state::{Ended, Info, State};
pub use ticks::Ticks;
pub use timer_wheel::Wheel;
pub use timestamps::Clocks;
pub use timing::Timing;
pub use wire::{Seq, TcpState};
