//! Mobile IP for IPv4 (RFC 5944): a host keeps its home address wherever it is attached.
//!
//! ```text
//!                    ┌── home link ── home agent ══ tunnel ══ foreign agent ── visited link ── mobile node
//!   correspondent ───┤                                                                             │
//!                    └────────────────────── straight to the correspondent ────────────────────────┘
//! ```
//!
//! Away from home, a mobile node registers a care-of address, the exit of its tunnel, through a foreign agent. Its home
//! agent answers ARP requests for the home address, and tunnels packets for this address to the care-of address. With a
//! co-located care-of address, the mobile node registers directly, and is itself the exit of the tunnel.
//!
//! - [`home_agent`]: keeps bindings, answers ARP requests for mobile nodes that are away, tunnels packets to them.
//! - [`foreign_agent`]: advertises, relays registrations, takes the packets for its visitors out of tunnels.
//! - [`mobile_node`]: listens for agents, detects movement, registers.
//! - [`correspondent`]: sends packets for mobile nodes straight to their care-of addresses (route optimization).
//! - [`message`]: the messages of these roles. [`mark`]: the events that these roles record for measurements. [`refusal`]: the
//!   reasons for which they refuse a message.
//!
//! `docs/mobile-ip.md` lists the options of a registration, and the codes of denials.

mod advertise;
mod advertiser;
mod agents;
mod binding;
mod clock;
pub mod config;
pub mod correspondent;
mod encapsulation;
pub mod foreign_agent;
pub mod home_agent;
mod home_agents;
mod interfaces;
mod limiter;
pub mod mark;
pub mod message;
pub mod mobile_node;
mod movement;
mod one_tunnel;
mod own_address;
mod passed;
mod pending;
pub mod refusal;
mod registrar;
mod reply_counts;
mod signals;
mod tunnels;
mod unacknowledged;
mod under_way;

pub use correspondent::Correspondent;
pub use foreign_agent::ForeignAgent;
pub use home_agent::HomeAgent;
pub use mobile_node::MobileNode;
