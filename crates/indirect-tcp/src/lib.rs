//! Indirect TCP (Bakre and Badrinath, 1995): a host's connections end at its router, and move with it from router to router.
//!
//! ```text
//!                       near half                    far half
//!   mobile host ))) support router ─────────────────────────────── fixed host
//!   home:port <───> first router's address:PORT                    sees home:port, as if nobody stood between
//!                       │
//!                       │ handoff: both sockets, frozen, as bytes
//!                       v
//!   mobile host ))) support router 2 ───────────────────────────── fixed host
//! ```
//!
//! The mobile host asks its router to connect for it; the router does so from the host's own address, and relays. When the
//! host has gone to another router it greets that one, with a list of its connections. The new router keeps what comes for
//! them, and tells the earlier one, which freezes them, ships them and forgets them. The ends of both halves never change.
//! Each connection has one owner at every instant: the old router's until the new one has said that it took it. Each attempt
//! to hand a connection over has a number, and only the router that it went to is asked what became of it.
//!
//! - [`router`]: the support router. [`mobile`]: the mobile host's side, which serves `Transport::Role("indirect")`.
//! - [`message`]: what they say. [`mark`]: what they mark for whoever measures.
//!
//! How packets find the host is not this protocol's affair: beneath is Mobile IP, whose agents are at the routers, and which
//! tells the host's side of the agent that it attached to ([`node::News::Gateway`]).
//!
//! Keys. A host shares a key with each router, and two routers share one. It may be one key for all routers: then a router in
//! wrong hands can say in the name of each host that it is with it, and take its connections from the other routers. Where a
//! host has a key for each router (`routers` of its configuration), its greeting has a code for each earlier one
//! ([`message::Greeting::codes`]), and a router can show others what the host has said to it, and say nothing in its name. It
//! still has in its hands the connections of hosts that come to it.
//!
//! Limits. A router acknowledges bytes before their receiver has them: what a router that fails had acknowledged is lost, and
//! both ends are reset. What moves between routers is authenticated and not encrypted. A host has 16 connections at most.
//! A greeting that was recorded before a router restarted counts there again if the router's clock has gone back meanwhile: then
//! it needs one that goes on, as from a battery or from NTP. Other routers, and the host's next greeting, are not misled by it.
//!
//! Waits. The new router waits 10 s (`patience`) for a connection that a greeting names, and after each sign that an earlier router
//! hands it over, which its answer to the forward pointer is too, 30 s (three times as long). An earlier router keeps what it is to
//! hand over for 30 s after the last sign of the new one. Then both ends are reset. So if the two routers cannot reach each other
//! from the move on, the host hears of it 10 s after its greeting where the forward pointer or its answer was lost, and 30 s after
//! that answer where it came: only then is it known that the connection is there, and may come when the way is back.
//!
//! Not here yet: listeners at the router, filters, and encryption between routers.

pub mod config;
pub mod mark;
pub mod message;
pub mod mobile;
pub mod router;

pub use mobile::MobileHost;
pub use router::SupportRouter;

/// The transport that the mobile host's role serves.
pub const TRANSPORT: node::Transport = node::Transport::Role("indirect");
