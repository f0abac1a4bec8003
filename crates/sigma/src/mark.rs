//! What the roles mark.

use node::Mark;
use wire::Ipv4Addr;

/// The location manager, as a role is named in records.
pub const LOCATION_MANAGER: &str = "location_manager";

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
        match event {
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
