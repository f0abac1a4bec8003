//! The only crate that uses the operating system: thin, safe wrappers of the parts of Linux that Wayfare needs.
//!
//! A socket belongs for ever to the network namespace of the thread that opened it. So everything here can be opened in
//! one namespace ([`NetNs::run`]) and used from another. Every error names what was attempted, and on what.

mod clock;
pub mod control;
pub mod counters;
pub mod daemon;
mod descriptors;
pub mod doctor;
mod error;
pub mod ethtool;
mod files;
pub mod idle;
pub mod leftover;
pub mod lines;
mod link_watch;
pub mod namespace;
mod netlink;
pub mod nft;
mod offload;
mod packet;
mod peer;
mod process;
mod queue_watch;
pub mod radio;
mod refusal;
mod stdio;
mod stolen;
mod store;
mod tcp_losses;
pub mod tcp_support;
#[cfg(test)]
mod testing;
mod timer;
mod world;

pub use clock::{Clock, Offset};
pub use error::{Error, Result};
pub use files::room;
pub use link_watch::{LinkChange, LinkWatch};
pub use namespace::NetNs;
pub use netlink::{End, Link, Netlink, Place, TcpMetrics};
pub use offload::Unfinished;
pub use packet::{Buffer, Kind, Options, PacketSocket, Received, Statistics};
pub use process::{
    Ending, Trouble, bear_file_size_limit, entropy, halt_group, hide_memory, is_frozen, is_stopped,
    lock_memory, pause, resume, seal_memory, set_ordinary, set_realtime, signal_group, state_change, stop,
};
pub use refusal::Refusal;
pub use stdio::stdout_was_closed;
pub use stolen::stolen;
pub use store::Store;
pub use tcp_losses::TcpLosses;
pub use timer::{Timer, set_timer_slack};
pub use world::World;
