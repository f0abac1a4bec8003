//! What the roles mark.

use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The location manager, as a role is named in records.
pub const LOCATION_MANAGER: &str = "location_manager";

/// The mobile node.
pub const MOBILE_NODE: &str = "mobile_node";
/// The correspondent.
pub const CORRESPONDENT: &str = "correspondent";

/// Something worth measuring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A location manager knows another address of a mobile node than before; `None`: none.
    Located { name: String, address: Option<Ipv4Addr> },
    /// Nothing was heard of a mobile node for its lifetime.
    Lapsed { name: String },
    /// An update could not be stored, and was taken back.
    NotStored { name: String },
    /// A record of the last run could not be read.
    RecordRefused { why: &'static str },
    /// Nobody can be answered.
    Deaf { why: String },
    /// A mobile node's link is up, and it has no address there yet.
    AddressBegun { network: String },
    /// It has.
    AddressReady { address: Ipv4Addr },
    /// It gave an address up.
    AddressGone { address: Ipv4Addr },
    /// It told its correspondents of an address.
    AddSent,
    /// All of them have answered, and at least one took it.
    AddAcknowledged { address: Ipv4Addr },
    /// All of them have answered where data are to go, and at least one will send there, once it has proved the address.
    PrimaryAcknowledged { address: Ipv4Addr },
    /// The host's own stack did not take this address, or did not give it up.
    AddressFailed { address: Ipv4Addr, why: String },
    /// One of them did not want to.
    ChangeRefused { address: Ipv4Addr },
    /// A peer is silent, and its location manager says that it is here.
    PeerLocated { name: String, address: Ipv4Addr },
    /// It has decided to move. `switches`: it can be reached both ways, and the way is switched at once.
    Handoff { kind: &'static str, from: String, to: String, switches: bool },
    /// The first data came by the new way.
    FirstData { address: Ipv4Addr },
    /// A correspondent's peer can be reached at another address too.
    PeerAdded { address: Ipv4Addr },
    /// It wants its data there.
    PeerPrimary { address: Ipv4Addr },
    /// It cannot be reached there any more.
    PeerDeleted { address: Ipv4Addr },
    /// Data take another way than before.
    Switched { from: Ipv4Addr, to: Ipv4Addr },
    /// A mobile node told its location manager where it is.
    RegistrationSent { role: &'static str, address: Ipv4Addr, attempt: u32 },
    /// The location manager took it.
    Registered { role: &'static str, address: Ipv4Addr },
    /// It did not, and why.
    RegistrationFailed { role: &'static str, why: String },
}

impl From<Event> for Mark {
    fn from(event: Event) -> Self {
        let manager = |name| Self::new(LOCATION_MANAGER, name);
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let correspondent = |name, address: Ipv4Addr| Self::new(CORRESPONDENT, name).with("address", address);
        match event {
            Event::AddressBegun { network } => {
                mobile("address_begun").with("network", network).at(Span::Begins(Stage::Address))
            }
            Event::AddressReady { address } => {
                mobile("address_ready").with("address", address).at(Span::Ends(Stage::Address))
            }
            Event::AddressGone { address } => mobile("address_gone").with("address", address),
            Event::AddSent => mobile("add_sent").at(Span::Begins(Stage::Registration)),
            Event::AddAcknowledged { address } => {
                mobile("add_acknowledged").with("address", address).at(Span::Ends(Stage::Registration))
            }
            Event::PrimaryAcknowledged { address } => mobile("primary_acknowledged").with("address", address),
            Event::AddressFailed { address, why } => {
                mobile("address_failed").with("address", address).with("why", why)
            }
            Event::PeerLocated { name, address } => {
                mobile("peer_located").with("name", name).with("address", address)
            }
            Event::ChangeRefused { address } => mobile("change_refused").with("address", address),
            Event::Handoff { kind, from, to, switches } => {
                let mark = mobile(node::HANDOFF).with("kind", kind).with("from", from).with("to", to);
                if switches { mark.at(Span::Begins(Stage::PathSwitch)) } else { mark }
            }
            Event::FirstData { address } => {
                mobile("first_data").with("address", address).at(Span::Ends(Stage::PathSwitch))
            }
            Event::PeerAdded { address } => correspondent("peer_added", address),
            Event::PeerPrimary { address } => correspondent("peer_primary", address),
            Event::PeerDeleted { address } => correspondent("peer_deleted", address),
            Event::Switched { from, to } => correspondent("switched", to).with("from", from),
            Event::Located { name, address } => {
                let mark = manager("located").with("name", name);
                match address {
                    Some(address) => mark.with("address", address),
                    None => mark,
                }
            }
            Event::Lapsed { name } => manager("location_lapsed").with("name", name),
            Event::NotStored { name } => manager("not_stored").with("name", name),
            Event::RecordRefused { why } => manager("record_refused").with("why", why),
            Event::Deaf { why } => manager("deaf").with("why", why),
            Event::RegistrationSent { role, address, attempt } => {
                Self::new(role, "location_sent").with("address", address).with("attempt", attempt)
            }
            Event::Registered { role, address } => Self::new(role, "location_known").with("address", address),
            Event::RegistrationFailed { role, why } => Self::new(role, "location_failed").with("why", why),
        }
    }
}
