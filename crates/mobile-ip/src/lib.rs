//! Mobile IP for IPv4 (RFC 5944): a host keeps its home address wherever it is attached.
//!
//! ```text
//!                    ┌── home link ── home agent ══ tunnel ══ foreign agent ── visited link ── mobile node
//!   correspondent ───┤                                                                             │
//!                    └────────────────────── straight to the correspondent ────────────────────────┘
//! ```
//!
//! Away from home a mobile node registers, through a foreign agent, the address where its tunnel is to end. Its home
//! agent answers ARP for it, and tunnels what comes.
//!
//! - [`home_agent`]: keeps bindings, answers ARP for who is away, tunnels.
//! - [`foreign_agent`]: advertises, relays registrations, opens tunnels for its visitors.
//! - [`mobile_node`]: listens for agents, decides that it moved, registers.
//! - [`message`]: what they say to each other. [`mark`]: what they mark for whoever measures.
//!
//! Not here yet: route optimization, smooth handoff, reverse tunnels, nonces, co-located care-of addresses, and
//! movement detection other than by every new agent.

mod advertiser;
mod agents;
mod announcer;
mod binding;
mod clock;
mod codes;
pub mod config;
pub mod foreign_agent;
pub mod home_agent;
mod limiter;
pub mod mark;
pub mod message;
pub mod mobile_node;
mod pending;
mod registrar;
mod tunnels;

pub use foreign_agent::ForeignAgent;
pub use home_agent::HomeAgent;
pub use mobile_node::MobileNode;
