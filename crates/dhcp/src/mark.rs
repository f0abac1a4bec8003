//! The events that the roles record for measurements. The client acquires its address from `address_begun` to
//! `address_ready`.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The name of the client role in records.
pub const CLIENT: &str = "dhcp_client";
/// The name of the server role in records.
pub const SERVER: &str = "dhcp_server";

/// An event that is recorded for measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum DhcpEvent {
    /// The client begins to acquire an address.
    AddressBegun,
    /// The client has an address. `lease_s` is the lease time in seconds.
    AddressReady { address: Ipv4Addr, server: Ipv4Addr, lease_s: u32 },
    /// The client gave up its address.
    AddressGone { address: Ipv4Addr, why: &'static str },
    /// Another host uses the address that the client was to use, or uses.
    AddressInUse { address: Ipv4Addr },
    /// A server refused the client's request.
    LeaseRefused { server: Ipv4Addr },
    /// The operating system could not add or remove the client's address.
    AddressFailed { address: Ipv4Addr, why: String },
    /// The server granted an address to a client that did not have it.
    Leased { host: Ipv4Addr },
    /// The server does not grant this address for some time, because another host uses it.
    SkippedInUse { address: Ipv4Addr },
    /// The server has no address for a client.
    PoolExhausted,
}

impl From<DhcpEvent> for Mark {
    fn from(event: DhcpEvent) -> Self {
        let client = |name| Self::new(CLIENT, name);
        let server = |name| Self::new(SERVER, name);
        match event {
            DhcpEvent::AddressBegun => client("address_begun").at(Span::Begins(Stage::Address)),
            DhcpEvent::AddressReady { address, server, lease_s } => client("address_ready")
                .with("address", address)
                .with("server", server)
                .with("lease_s", u64::from(lease_s))
                .at(Span::Ends(Stage::Address)),
            DhcpEvent::AddressGone { address, why } => {
                client("address_gone").with("address", address).with("why", why)
            }
            DhcpEvent::AddressInUse { address } => client("address_in_use").with("address", address),
            DhcpEvent::LeaseRefused { server } => client("lease_refused").with("server", server),
            DhcpEvent::AddressFailed { address, why } => {
                client("address_failed").with("address", address).with("why", why)
            }
            DhcpEvent::Leased { host } => server("leased").with("host", host),
            DhcpEvent::SkippedInUse { address } => server("address_in_use").with("address", address),
            DhcpEvent::PoolExhausted => server("pool_exhausted"),
        }
    }
}
