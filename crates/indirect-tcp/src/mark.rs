//! What the roles mark. The path switch that Mobile IP begins ends where the new router has taken a connection: what was
//! between is the state's journey.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The support router, as a role is named in records.
pub const SUPPORT_ROUTER: &str = "support_router";
/// The mobile host's side.
pub const MOBILE_HOST: &str = "indirect_host";

/// Something worth measuring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A mobile host told a router that it is there, with so many connections.
    Greeting { router: Ipv4Addr, connections: usize, attempt: u32 },
    /// It says so once more, for a router that may have restarted since.
    Refresh { router: Ipv4Addr, attempt: u32 },
    /// The router is ready.
    Welcomed { router: Ipv4Addr },
    /// The router does not want it, or does not answer.
    NotWelcome { router: Ipv4Addr, why: &'static str },
    /// A router has accepted a greeting, and keeps packets for the connections in it. `connections` counts those that are
    /// open at the host.
    Greeted { host: Ipv4Addr, connections: usize },
    /// It has told an earlier router.
    Pointed { host: Ipv4Addr, to: Ipv4Addr },
    /// That one heard it, and has so many connections.
    Forwarded { host: Ipv4Addr, to: Ipv4Addr, connections: usize },
    /// It has offered them, by a frame of so many bytes; so many of them are its code.
    Offered { host: Ipv4Addr, bytes: usize, codes: usize },
    /// Both halves of a connection stand still.
    Frozen { host: Ipv4Addr, connection: u32 },
    /// Its state has left, the commit too: so many bytes of frames, so many of them codes.
    Shipped { host: Ipv4Addr, connection: u32, to: Ipv4Addr, bytes: usize, codes: usize },
    /// The new router has its own state of it, and owns it.
    Taken { host: Ipv4Addr, connection: u32, buffered: usize, closing: bool },
    /// The old router has forgotten it.
    Forgotten { host: Ipv4Addr, connection: u32 },
    /// All connections that could be handed over were.
    HandedOver { host: Ipv4Addr },
    /// It goes on where it was.
    Resumed { host: Ipv4Addr, connection: u32 },
    /// It is lost, and both ends are told.
    Lost { host: Ipv4Addr, connection: u32, why: &'static str },
    /// It was called for, and is not open: where the host is now it calls again.
    Undone { host: Ipv4Addr, connection: u32 },
    /// A router connects for a host.
    Called { host: Ipv4Addr, connection: u32 },
    /// Both halves are up.
    Connected { host: Ipv4Addr, connection: u32 },
}

impl From<Event> for Mark {
    fn from(event: Event) -> Self {
        let mobile = |name, router: Ipv4Addr| Self::new(MOBILE_HOST, name).with("router", router);
        let router = |name, host: Ipv4Addr| Self::new(SUPPORT_ROUTER, name).with("host", host);
        let about = |name, host, connection: u32| router(name, host).with("connection", connection);
        match event {
            Event::Greeting { router, connections, attempt } => mobile("greeting_sent", router)
                .with("connections", connections as u64)
                .with("attempt", attempt),
            Event::Refresh { router, attempt } => {
                mobile("greeting_repeated", router).with("attempt", attempt)
            }
            Event::Welcomed { router } => mobile("welcomed", router),
            Event::NotWelcome { router, why } => mobile("not_welcome", router).with("why", why),
            Event::Greeted { host, connections } => {
                router("greeted", host).with("connections", connections as u64)
            }
            Event::Pointed { host, to } => router("pointer_sent", host).with("to", to),
            Event::Forwarded { host, to, connections } => {
                router("pointer_taken", host).with("to", to).with("connections", connections as u64)
            }
            Event::Offered { host, bytes, codes } => {
                router("offered", host).with("bytes", bytes as u64).with("codes", codes as u64)
            }
            Event::Frozen { host, connection } => about("frozen", host, connection),
            Event::Shipped { host, connection, to, bytes, codes } => {
                let shipped = about("shipped", host, connection).with("to", to);
                shipped.with("bytes", bytes as u64).with("codes", codes as u64)
            }
            Event::Taken { host, connection, buffered, closing } => {
                let taken = about("taken", host, connection).with("buffered", buffered as u64);
                // Its program has closed it already: `greeted` does not count it.
                let taken = if closing { taken.with("closing", "yes") } else { taken };
                taken.at(Span::Ends(Stage::PathSwitch))
            }
            Event::Forgotten { host, connection } => about("forgotten", host, connection),
            Event::HandedOver { host } => router("handed_over", host),
            Event::Resumed { host, connection } => about("resumed", host, connection),
            Event::Lost { host, connection, why } => {
                about("connection_lost", host, connection).with("why", why)
            }
            Event::Undone { host, connection } => about("call_undone", host, connection),
            Event::Called { host, connection } => about("called", host, connection),
            Event::Connected { host, connection } => about("connected", host, connection),
        }
    }
}
