//! Events that the roles record.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The name of the location manager's role in records.
pub const LOCATION_MANAGER: &str = "location_manager";

/// The name of the mobile node's role in records.
pub const MOBILE_NODE: &str = "mobile_node";
/// The name of the correspondent's role in records.
pub const CORRESPONDENT: &str = "correspondent";

/// An event that is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SigmaEvent {
    /// The location manager stored another primary address of a mobile node; `None`: it has no address any more.
    Located { name: String, address: Option<Ipv4Addr> },
    /// A mobile node sent no update for its lifetime.
    Lapsed { name: String },
    /// An update could not be stored, and was withdrawn.
    NotStored { name: String },
    /// A record of the last run could not be parsed.
    RecordRefused { why: &'static str },
    /// The listener of the location manager was closed, so it receives no messages.
    Deaf { why: String },
    /// The link of a mobile node is up, and it has no address there yet.
    AddressBegun { network: String },
    /// The mobile node has the address.
    AddressReady { address: Ipv4Addr },
    /// The mobile node gave up an address.
    AddressGone { address: Ipv4Addr },
    /// The mobile node asked its peers to add an address.
    AddSent,
    /// All peers have answered the addition, and at least one accepted it.
    AddAcknowledged { address: Ipv4Addr },
    /// All peers have answered the request for a primary address. At least one accepted it, and sends there once the
    /// address is confirmed.
    PrimaryAcknowledged { address: Ipv4Addr },
    /// The host's own stack could not add or remove this address.
    AddressFailed { address: Ipv4Addr, why: String },
    /// A peer refused a change of this address.
    ChangeRefused { address: Ipv4Addr },
    /// The location manager gave this address of a silent peer, and packets for the peer are sent there.
    PeerLocated { name: String, address: Ipv4Addr },
    /// The mobile node has decided to move. `switches`: the path switch begins at this instant.
    Handoff { kind: &'static str, from: String, to: String, switches: bool },
    /// The first data arrived on the new path.
    FirstData { address: Ipv4Addr },
    /// The peer of a correspondent added an address.
    PeerAdded { address: Ipv4Addr },
    /// The peer set its primary address.
    PeerPrimary { address: Ipv4Addr },
    /// The peer deleted an address.
    PeerDeleted { address: Ipv4Addr },
    /// The correspondent sends new data to another address of its peer.
    Switched { from: Ipv4Addr, to: Ipv4Addr },
    /// A node sent its address to its location manager.
    RegistrationSent { role: &'static str, address: Ipv4Addr, attempt: u32 },
    /// The location manager accepted the address.
    Registered { role: &'static str, address: Ipv4Addr },
    /// The registration failed, and why.
    RegistrationFailed { role: &'static str, why: String },
}

impl From<SigmaEvent> for Mark {
    fn from(event: SigmaEvent) -> Self {
        let manager = |name| Self::new(LOCATION_MANAGER, name);
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let correspondent = |name, address: Ipv4Addr| Self::new(CORRESPONDENT, name).with("address", address);
        match event {
            SigmaEvent::AddressBegun { network } => {
                mobile("address_begun").with("network", network).at(Span::Begins(Stage::Address))
            }
            SigmaEvent::AddressReady { address } => {
                mobile("address_ready").with("address", address).at(Span::Ends(Stage::Address))
            }
            SigmaEvent::AddressGone { address } => mobile("address_gone").with("address", address),
            SigmaEvent::AddSent => mobile("add_sent").at(Span::Begins(Stage::Registration)),
            SigmaEvent::AddAcknowledged { address } => {
                mobile("add_acknowledged").with("address", address).at(Span::Ends(Stage::Registration))
            }
            SigmaEvent::PrimaryAcknowledged { address } => {
                mobile("primary_acknowledged").with("address", address)
            }
            SigmaEvent::AddressFailed { address, why } => {
                mobile("address_failed").with("address", address).with("why", why)
            }
            SigmaEvent::PeerLocated { name, address } => {
                mobile("peer_located").with("name", name).with("address", address)
            }
            SigmaEvent::ChangeRefused { address } => mobile("change_refused").with("address", address),
            SigmaEvent::Handoff { kind, from, to, switches } => {
                let mark = mobile(node::HANDOFF).with("kind", kind).with("from", from).with("to", to);
                if switches { mark.at(Span::Begins(Stage::PathSwitch)) } else { mark }
            }
            SigmaEvent::FirstData { address } => {
                mobile("first_data").with("address", address).at(Span::Ends(Stage::PathSwitch))
            }
            SigmaEvent::PeerAdded { address } => correspondent("peer_added", address),
            SigmaEvent::PeerPrimary { address } => correspondent("peer_primary", address),
            SigmaEvent::PeerDeleted { address } => correspondent("peer_deleted", address),
            SigmaEvent::Switched { from, to } => correspondent("switched", to).with("from", from),
            SigmaEvent::Located { name, address } => {
                let mark = manager("located").with("name", name);
                match address {
                    Some(address) => mark.with("address", address),
                    None => mark,
                }
            }
            SigmaEvent::Lapsed { name } => manager("location_lapsed").with("name", name),
            SigmaEvent::NotStored { name } => manager("not_stored").with("name", name),
            SigmaEvent::RecordRefused { why } => manager("record_refused").with("why", why),
            SigmaEvent::Deaf { why } => manager("deaf").with("why", why),
            SigmaEvent::RegistrationSent { role, address, attempt } => {
                Self::new(role, "location_sent").with("address", address).with("attempt", attempt)
            }
            SigmaEvent::Registered { role, address } => {
                Self::new(role, "location_known").with("address", address)
            }
            SigmaEvent::RegistrationFailed { role, why } => {
                Self::new(role, "location_failed").with("why", why)
            }
        }
    }
}
