//! The core of the workspace. A protocol is a set of [`Role`]s, and a [`Node`] is the roles of one host and its
//! forwarding table. Neither does I/O. A node takes inputs with their time, and returns [`Act`]s, which a driver
//! executes. The driver is the simulator or the Linux daemon; roles and nodes are the same in both.
//!
//! The laws that every role keeps (`tests/laws.rs` checks them):
//!
//! 1. `Timeout` before `deadline` changes nothing.
//! 2. After `Timeout` at or after the deadline, the new deadline is later than the time of this `Timeout`, or there is
//!    none.
//! 3. No packet causes a panic.
//! 4. The same inputs cause the same effects.
//! 5. Each `Command` gets exactly one `Answer`.
//! 6. Every packet that a role receives is sent, passed on, discarded or still held.
//! 7. `Input` and `Act` contain only data, so that a run of a daemon can be recorded and replayed.
//! 8. A role that provides a transport reports events only of streams that were requested, none after their `Closed`,
//!    and no more data than a `Read` requested.
//! 9. One input causes a bounded number of effects.
//! 10. A role handles the failure of each of its acts, and does not repeat the act at once.

mod act;
mod announcer;
mod app_event;
mod arp;
pub mod config;
pub mod guard;
mod input;
mod listen;
pub mod mark;
mod mirror;
mod node;
mod outbox;
pub mod reason;
mod refusals;
mod ruleset;
pub mod stream;
mod timer;
mod value;
mod waiting;

pub use act::{Act, Effect, Neighbor};
pub use announcer::Announcer;
pub use app_event::{AppChange, AppEvent};
pub use input::{Boot, Command, CommandId, FailedAct, Fault, Input, Link, Listen, Notification, Proto, Rx};
pub use mark::{HANDOFF, HANDOFF_ABORTED, HANDOFF_FAILED, HANDOFF_REFUSED, Mark, Span, Stage};
pub use mirror::MirrorAct;
pub use node::data_path::KeptPacket;
pub use node::{Node, Role};
pub use outbox::Outbox;
pub use refusals::Refusals;
pub use ruleset::Ruleset;
pub use stream::{
    Addr, Guard, MigrateEvent, MigrateOp, SocketOption, StreamEvent, StreamId, StreamOp, Transport, Tuple,
};
pub use table::{
    Action, Aside, Class, Datagram, Disposition, Encap, EntryId, Found, Hop, IngressPolicy,
    Kind as TunnelKind, Kinds as TunnelKinds, Lifetime, NextHop, Port, PuntReason, RoleId, Route, RouteKey,
    Rules, Verdict, decide, decide_opened,
};
pub use timer::{Expiry, TimerName, Timers};
pub use value::Value;
pub use wire::{InterfaceAddress, Rng};
