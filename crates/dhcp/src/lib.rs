//! DHCP for IPv4 (RFC 2131): a client that acquires the address of an interface, and a server.
//!
//! ```text
//!   client                                server
//!     │ DISCOVER  from 0.0.0.0, broadcast ──> │ sends an ARP request for the address: if a host answers,
//!     │                                       │ the server tries another address
//!     │ <────────────────────────────── OFFER │
//!     │ REQUEST ────────────────────────────> │
//!     │ <──────────────────────────────── ACK │
//!     │ ARP probe of the address (RFC 5227): if another host uses it, DECLINE, and again from the begin
//!     │
//!     │ at T1: REQUEST to the server (renew) ─> │        at T2: REQUEST to all servers (rebind)
//! ```
//!
//! A client adds the address to the node by [`node::Act::Address`], with a default route through the offered router, and
//! notifies the other roles of the node ([`node::Notification::AddressAcquired`]). When the link comes up, the host may
//! be on another link. So the client gives up its address, and starts again.
//!
//! Not implemented: INIT-REBOOT of a client, DHCPINFORM, relay agents, authentication (RFC 3118), and options of other
//! purposes, for example the addresses of DNS servers. A server does not store its leases: after a restart it grants each
//! address that no host answers for, and a client that renews keeps its address.

mod client;
pub mod config;
mod lease;
mod leases;
mod mark;
pub mod message;
mod pending;
pub mod refusal;
mod server;

pub use client::Client;
pub use mark::{CLIENT, SERVER};
pub use server::Server;
