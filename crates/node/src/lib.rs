//! The core: a protocol is a set of [`Role`]s, a [`Node`] is the roles of one host and its forwarding table, and both
//! are without I/O. Inputs go in with the time, [`Act`]s come out; a driver carries them out, in virtual time or on
//! Linux. It is the same object in both worlds.
//!
//! Laws that every role keeps (`tests/laws.rs` holds them against each):
//!
//! 1. `Timeout` before `deadline` changes nothing.
//! 2. After `Timeout` at or past the deadline, the deadline lies later, or nowhere.
//! 3. No packet panics.
//! 4. Same inputs, same effects.
//! 5. One `Answer` to each `Command`.
//! 6. Every packet that a role was handed is sent, passed on, discarded or still held: none vanishes.
//! 7. Nothing in `Input` or `Act` is more than data, so that a daemon can be recorded and replayed.
//! 8. Who serves speaks of streams that were asked for, and of none after its `Closed`, and gives no more than a `Read`
//!    asked for.
//! 9. One input causes a bounded number of effects.
//! 10. A role takes note of each act of its own that failed, and does not ask for the same again at once.

mod act;
mod app_event;
mod arp;
pub mod config;
mod forward;
pub mod guard;
mod input;
mod listen;
pub mod mark;
mod neighbor;
mod node;
mod outbox;
mod records;
mod rules;

pub mod stream;
mod streams;
mod timer;
mod value;
mod waiting;

pub use act::{Act, Effect, Neighbor};
pub use app_event::{AppChange, AppEvent};
pub use input::{Boot, Command, CommandId, Fault, Input, Link, Listen, News, Proto, Rx, Undone};
pub use mark::{HANDOFF, HANDOFF_ABORTED, HANDOFF_FAILED, HANDOFF_REFUSED, Mark, Span, Stage};
pub use node::{Node, Role, reason};
pub use outbox::Outbox;
pub use rules::Ruleset;
pub use stream::{Addr, Guard, Knob, StreamEvent, StreamId, StreamOp, Transport, Tuple};
pub use table::{Action, Class, Encap, Gate, Hop, Key, Life, NextHop, Port, RoleId, Route, Why};
pub use timer::{Expiry, TimerName, Timers};
pub use value::Value;
pub use wire::{InterfaceAddress, Seed};
