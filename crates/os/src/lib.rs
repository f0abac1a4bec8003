//! Calls of the operating system: thin, safe wrappers of the parts of Linux that Wayfare needs. The crates `daemon` and
//! `emulator` are built on them.
//!
//! A socket stays in the network namespace in which it was opened. So the sockets of this crate can be opened in one
//! namespace ([`NetNs::run`]) and used from a thread in another. Each [`Error`] names what was attempted, and on what.

#[cfg(test)]
extern crate self as os; // files that tests of several crates share use this crate by the name `os`

mod clock;
pub mod counters;
pub mod descriptors;
pub mod epoll;
mod error;
pub mod ethtool;
pub mod files;
pub mod json_lines;
mod link_watch;
pub mod namespace;
mod netlink;
pub mod nft;
pub mod offload;
mod packet;
pub mod peer;
mod process;
mod queue_watch;
pub mod sandbox;
mod signals;
mod stdout;
mod tcp_losses;
pub mod tcp_support;
#[cfg(test)]
mod testing;
mod timer;

pub use clock::{Clock, Offset};
pub use error::{Attempt, Error, Result, check};
pub use link_watch::{LinkChange, LinkWatch};
pub use namespace::NetNs;
pub use netlink::{End, EndPlace, Link, Netlink, Saved, TcpMetrics};
pub use offload::Unfinished;
pub use packet::{Buffer, Kind, Options, PacketSocket, Received, Statistics};
pub use process::{
    Ending, StateChange, bear_file_size_limit, entropy, halt_group, hide_memory, is_frozen, is_stopped,
    lock_memory, open_pidfd, pause, resume, seal_memory, set_ordinary, set_realtime, signal_group,
    state_change, stop,
};
pub use queue_watch::QueueWatch;
pub use sandbox::Sandbox;
pub use signals::Signals;
pub use stdout::stdout_was_closed;
pub use tcp_losses::{TcpLosses, tcp_settings};
pub use timer::{Timer, set_timer_slack};
