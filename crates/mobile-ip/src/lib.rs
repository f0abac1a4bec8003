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
//! - [`message`]: what they say to each other.
//!
//! Not here yet: route optimization, smooth handoff, reverse tunnels, nonces, co-located care-of addresses, and
//! movement detection other than by every new agent.

pub mod message;
