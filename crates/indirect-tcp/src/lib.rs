//! Indirect TCP (Bakre and Badrinath, 1995): a mobile host's connections end at its support router, and move with the
//! host from router to router.
//!
//! ```text
//!                       near half                    far half
//!   mobile host ))) support router ─────────────────────────────── fixed host
//!   home:port <───> first router's address:PORT                    peer is home:port: the router is transparent
//!                       │
//!                       │ handoff: both sockets, frozen, as bytes
//!                       v
//!   mobile host ))) support router 2 ───────────────────────────── fixed host
//! ```
//!
//! The mobile host asks its router to connect to a peer. The router connects from the host's own address, and relays.
//! After a move, the host sends a greeting with a list of its connections to its new router. The new router buffers
//! packets for them, and sends a forward pointer to the earlier router. The earlier router freezes the connections,
//! ships their state, and deletes them. The end points of both halves never change. The old router is responsible for a
//! connection until the new router has answered that it took the connection. Each attempt to hand a connection over has
//! a number. Only the router to which an attempt was sent can answer whether it succeeded.
//!
//! - [`router`]: the support router. [`mobile`]: the mobile host's side, which serves `Transport::Role("indirect")`.
//! - [`message`]: the messages between mobile hosts and support routers. [`mark`]: the marks for measurements.
//!
//! This protocol does not route packets to the host: Mobile IP does, with agents at the routers. The Mobile IP role on
//! the mobile host reports the agent that the host attached to ([`node::Notification::Gateway`]).
//!
//! Keys. A host shares a key with each router, and two routers share a key. The host may have one key for all routers.
//! Then a compromised router can forge greetings of such a host, and take its connections from the other routers. If
//! the host has a key for each router (`routers` of its configuration), its greeting has a code for each earlier router
//! ([`message::Greeting::codes`]). Then a router can prove to an earlier router what the host sent to it, but cannot
//! forge a message of the host to another router. A compromised router still controls the connections of hosts that
//! come to it.
//!
//! Limits. A router acknowledges bytes before their receiver has them. If a router fails, the bytes that it had
//! acknowledged and not relayed are lost, and both ends are reset. The state that moves between routers is
//! authenticated and not encrypted. A host has at most 16 connections. A greeting recorded before a restart of a router
//! may be accepted there again if the router's clock went back in the restart. So the router needs a clock that keeps
//! running, from a battery or NTP. Other routers and the host's next greeting are not affected.
//!
//! Waits. The new router waits 10 s (`patience`) for a connection that a greeting names. After each sign that an
//! earlier router hands the connection over, the new router waits 30 s (`3 * patience`). The answer to the forward
//! pointer is such a sign, if that router has connections of the host. An earlier router keeps the connections to hand
//! over until 30 s after the last sign of the new router. After these waits both ends are reset. There are two
//! exceptions. The end of a connection that the host has closed is not reported. An earlier router whose commit was not
//! answered sends no reset while the host is elsewhere, as the new router may have the connection. If the two routers
//! cannot reach each other after the move, and the forward pointer or the answer to it was lost, the new router
//! notifies the host 10 s after the greeting. If the answer arrived, the new router notifies the host 30 s after it:
//! the answer shows that the connection exists and may still come.
//!
//! Not implemented: listeners at the router, filters, and encryption between routers.

pub mod config;
pub mod mark;
pub mod message;
pub mod mobile;
pub mod router;

pub use mobile::MobileHost;
pub use router::SupportRouter;

/// The name of the transport that the role [`MobileHost`] provides to other roles and programs of the mobile host: byte
/// streams to a peer, through a support router.
pub const TRANSPORT: node::Transport = node::Transport::Role("indirect");
