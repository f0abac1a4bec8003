//! The marks of the roles of Indirect TCP. Mobile IP begins the stage [`Stage::PathSwitch`]. The mark `taken` of the
//! new router ends the stage, so the stage includes the transfer of a connection's state.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The name of the support router's role in records.
pub const SUPPORT_ROUTER: &str = "support_router";
/// The name of the mobile host's role in records.
pub const MOBILE_HOST: &str = "indirect_host";

/// An event that is recorded as a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum IndirectTcpEvent {
    /// The mobile host sent a greeting. `connections`: the number of connections in the greeting that the host has not
    /// closed. `attempt` counts the transmissions from 1.
    Greeting { router: Ipv4Addr, connections: usize, attempt: u32 },
    /// The mobile host repeats an answered greeting, because the router may have restarted after its answer.
    Refresh { router: Ipv4Addr, attempt: u32 },
    /// The router has accepted the mobile host's greeting.
    Welcomed { router: Ipv4Addr },
    /// The router rejected the greeting as stale, or does not answer.
    NotWelcome { router: Ipv4Addr, why: &'static str },
    /// A router has accepted a greeting, and buffers packets for the connections that it expects from earlier routers.
    /// `connections`: the number of expected connections that the host has not closed.
    Greeted { host: Ipv4Addr, connections: usize },
    /// The new router has sent a forward pointer to an earlier router.
    Pointed { host: Ipv4Addr, to: Ipv4Addr },
    /// The earlier router has accepted the forward pointer, and has this number of connections of the host.
    Forwarded { host: Ipv4Addr, to: Ipv4Addr, connections: usize },
    /// The earlier router has offered the connections of a host. `bytes` is the length of the frame and its code in
    /// bytes, `codes` the length of the code.
    Offered { host: Ipv4Addr, bytes: usize, codes: usize },
    /// The old router has frozen a connection: both halves, or the one that is left.
    Frozen { host: Ipv4Addr, connection: u32 },
    /// The state of a connection was sent, with its commit. `bytes` is the length of all frames and their codes in
    /// bytes, `codes` the length of the codes.
    Shipped { host: Ipv4Addr, connection: u32, to: Ipv4Addr, bytes: usize, codes: usize },
    /// The new router has set the connection up, and serves it. `buffered`: the number of data bytes that came with the
    /// connection's state. `closing`: the host has closed the connection.
    Taken { host: Ipv4Addr, connection: u32, buffered: usize, closing: bool },
    /// The old router has deleted the connection.
    Forgotten { host: Ipv4Addr, connection: u32 },
    /// The old router has handed over all connections that could move.
    HandedOver { host: Ipv4Addr },
    /// The old router resumes a frozen connection.
    Resumed { host: Ipv4Addr, connection: u32 },
    /// A connection is lost. Both ends are notified, unless another router may own it.
    Lost { host: Ipv4Addr, connection: u32, why: &'static str },
    /// A connection was removed before the host had the answer to its call. The host calls again.
    Undone { host: Ipv4Addr, connection: u32 },
    /// A router has accepted a call, and connects to the peer.
    Called { host: Ipv4Addr, connection: u32 },
    /// Both halves of a connection are open.
    Connected { host: Ipv4Addr, connection: u32 },
}

impl From<IndirectTcpEvent> for Mark {
    fn from(event: IndirectTcpEvent) -> Self {
        let mobile = |name, router: Ipv4Addr| Self::new(MOBILE_HOST, name).with("router", router);
        let router = |name, host: Ipv4Addr| Self::new(SUPPORT_ROUTER, name).with("host", host);
        let about = |name, host, connection: u32| router(name, host).with("connection", connection);
        match event {
            IndirectTcpEvent::Greeting { router, connections, attempt } => mobile("greeting_sent", router)
                .with("connections", connections as u64)
                .with("attempt", attempt),
            IndirectTcpEvent::Refresh { router, attempt } => {
                mobile("greeting_repeated", router).with("attempt", attempt)
            }
            IndirectTcpEvent::Welcomed { router } => mobile("welcomed", router),
            IndirectTcpEvent::NotWelcome { router, why } => mobile("not_welcome", router).with("why", why),
            IndirectTcpEvent::Greeted { host, connections } => {
                router("greeted", host).with("connections", connections as u64)
            }
            IndirectTcpEvent::Pointed { host, to } => router("pointer_sent", host).with("to", to),
            IndirectTcpEvent::Forwarded { host, to, connections } => {
                router("pointer_taken", host).with("to", to).with("connections", connections as u64)
            }
            IndirectTcpEvent::Offered { host, bytes, codes } => {
                router("offered", host).with("bytes", bytes as u64).with("codes", codes as u64)
            }
            IndirectTcpEvent::Frozen { host, connection } => about("frozen", host, connection),
            IndirectTcpEvent::Shipped { host, connection, to, bytes, codes } => {
                let shipped = about("shipped", host, connection).with("to", to);
                shipped.with("bytes", bytes as u64).with("codes", codes as u64)
            }
            IndirectTcpEvent::Taken { host, connection, buffered, closing } => {
                let taken = about("taken", host, connection).with("buffered", buffered as u64);
                // The program has closed the connection, so the mark `greeted` does not count it.
                let taken = if closing { taken.with("closing", "yes") } else { taken };
                taken.at(Span::Ends(Stage::PathSwitch))
            }
            IndirectTcpEvent::Forgotten { host, connection } => about("forgotten", host, connection),
            IndirectTcpEvent::HandedOver { host } => router("handed_over", host),
            IndirectTcpEvent::Resumed { host, connection } => about("resumed", host, connection),
            IndirectTcpEvent::Lost { host, connection, why } => {
                about("connection_lost", host, connection).with("why", why)
            }
            IndirectTcpEvent::Undone { host, connection } => about("call_undone", host, connection),
            IndirectTcpEvent::Called { host, connection } => about("called", host, connection),
            IndirectTcpEvent::Connected { host, connection } => about("connected", host, connection),
        }
    }
}
