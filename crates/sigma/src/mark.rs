//! The events that the roles record for measurements.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The name of the location manager role in records.
pub const LOCATION_MANAGER: &str = "location_manager";

/// The name of the mobile node role in records.
pub const MOBILE_NODE: &str = "mobile_node";
/// The name of the correspondent role in records.
pub const CORRESPONDENT: &str = "correspondent";

/// An event that a role records for measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SigmaEvent {
    /// The location manager stored another primary address of a mobile node; `None`: the mobile node has no address
    /// now.
    Located { name: String, address: Option<Ipv4Addr> },
    /// A registration at the location manager ended, because its lifetime has ended.
    Lapsed { name: String },
    /// The location manager could not store an update, and withdrew it.
    NotStored { name: String },
    /// The location manager could not parse a record of an earlier run.
    RecordRefused { why: &'static str },
    /// The listener of the location manager was closed, so the location manager receives no further messages. `why` is
    /// the reason; empty if there is none.
    Deaf { why: String },
    /// The link of the mobile node to this network is up, and the assignment of an address begins.
    AddressBegun { network: String },
    /// The mobile node has this address now.
    AddressReady { address: Ipv4Addr },
    /// The mobile node gave up an address.
    AddressGone { address: Ipv4Addr },
    /// The mobile node asked one or more peers to add an address to their associations.
    AddSent,
    /// No answer to the request to add this address is outstanding, and at least one peer accepted the request.
    AddAcknowledged { address: Ipv4Addr },
    /// No answer to the request to make this address primary is outstanding, and at least one peer accepted the
    /// request. Such a peer sends to this address when the peer has confirmed the address.
    PrimaryAcknowledged { address: Ipv4Addr },
    /// The operating system of the mobile node could not add or remove this address.
    AddressFailed { address: Ipv4Addr, why: String },
    /// A peer refused, or will not answer, a request to add, delete or make primary this address of the mobile node.
    ChangeRefused { address: Ipv4Addr },
    /// The location manager gave this address of a peer, and the mobile node sends an outstanding request to this
    /// address.
    PeerLocated { name: String, address: Ipv4Addr },
    /// The mobile node has decided to move between two networks. `switches`: whether the path switch begins at this
    /// instant.
    Handoff { kind: &'static str, from: String, to: String, switches: bool },
    /// The first data arrived at this address, the new primary address of the mobile node.
    FirstData { address: Ipv4Addr },
    /// A peer of the correspondent added this address.
    PeerAdded { address: Ipv4Addr },
    /// A peer of the correspondent made this address primary.
    PeerPrimary { address: Ipv4Addr },
    /// A peer of the correspondent deleted this address.
    PeerDeleted { address: Ipv4Addr },
    /// The correspondent sends new data to another address of its peer.
    Switched { from: Ipv4Addr, to: Ipv4Addr },
    /// A role sent the address of its host to the location manager. `attempt` is 1 for the first transmission of an
    /// update.
    RegistrationSent { role: &'static str, address: Ipv4Addr, attempt: u32 },
    /// The location manager confirmed the address that a role sent.
    Registered { role: &'static str, address: Ipv4Addr },
    /// A registration of a role failed. `why` is the result code or the error of the signature that the location
    /// manager sent, or `no answer`.
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
