//! The events that the roles record. They divide an outage into stages. Detection lasts from the link's coming up until
//! an agent is heard. Registration lasts from the request to the home agent's new binding. It includes the wait before
//! the request that RFC 5944 requires (section 3.6.3). The path switch lasts from then to the first packet on the new
//! path.

use crate::message::Code;
use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The home agent's name in records.
pub const HOME_AGENT: &str = "home_agent";
/// The foreign agent's name in records.
pub const FOREIGN_AGENT: &str = "foreign_agent";
/// The mobile node's name in records.
pub const MOBILE_NODE: &str = "mobile_node";

/// An event that is recorded for measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MobileIpEvent {
    /// The mobile node's link came up: the mobile node has not heard an agent on it yet.
    LinkUp,
    /// The mobile node heard the agent that it will use, for the first time since its link came up.
    AgentHeard { agent: Ipv4Addr },
    /// The agent of the mobile node expired, or advertised a lifetime of 0.
    AgentLost { agent: Ipv4Addr },
    /// The mobile node waits before it registers: its last registration began less than a second ago.
    RegistrationWaits { agent: Ipv4Addr },
    /// The mobile node sent a request.
    RequestSent { agent: Ipv4Addr, care_of: Ipv4Addr, lifetime: u16, attempt: u32 },
    /// A request was accepted. `lifetime` is the granted one in seconds; 0 at home.
    Registered { care_of: Ipv4Addr, lifetime: u16 },
    /// A request was denied.
    Denied { code: Code },
    /// The registration ended before it could be renewed.
    Lapsed,
    /// The home agent bound a mobile node to another care-of address.
    BindingChanged { host: Ipv4Addr, care_of: Ipv4Addr },
    /// The home agent removed a binding because the mobile node deregistered.
    BindingRemoved { host: Ipv4Addr },
    /// From now on packets to that mobile node take the new path.
    PathSwitched { host: Ipv4Addr },
    /// A binding's lifetime ended without a new registration.
    BindingExpired { host: Ipv4Addr },
    /// The home agent restored a binding from its store when it started.
    BindingRestored { host: Ipv4Addr, care_of: Ipv4Addr },
    /// A stored record could not be read, or belongs to no configured mobile node.
    RecordRefused { why: &'static str },
    /// A registration could not be stored, and was rejected.
    NotStored { host: Ipv4Addr },
    /// A foreign agent has a new visitor.
    VisitorArrived { host: Ipv4Addr },
    /// A visitor's lifetime ended.
    VisitorExpired { host: Ipv4Addr },
    /// The home agent did not answer a request in time.
    RequestTimedOut { host: Ipv4Addr },
}

impl From<MobileIpEvent> for Mark {
    fn from(event: MobileIpEvent) -> Self {
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let home = |name, host: Ipv4Addr| Self::new(HOME_AGENT, name).with("host", host);
        let foreign = |name, host: Ipv4Addr| Self::new(FOREIGN_AGENT, name).with("host", host);
        match event {
            MobileIpEvent::LinkUp => mobile("link_up").at(Span::Begins(Stage::Detection)),
            MobileIpEvent::AgentHeard { agent } => {
                mobile("agent_heard").with("agent", agent).at(Span::Ends(Stage::Detection))
            }
            MobileIpEvent::AgentLost { agent } => mobile("agent_lost").with("agent", agent),
            MobileIpEvent::RegistrationWaits { agent } => {
                mobile("registration_waits").with("agent", agent).at(Span::Begins(Stage::Registration))
            }
            MobileIpEvent::RequestSent { agent, care_of, lifetime, attempt } => mobile("request_sent")
                .with("agent", agent)
                .with("care_of", care_of)
                .with("lifetime", u64::from(lifetime))
                .with("attempt", attempt)
                .at(Span::Begins(Stage::Registration)),
            MobileIpEvent::Registered { care_of, lifetime } => {
                mobile("registered").with("care_of", care_of).with("lifetime", u64::from(lifetime))
            }
            MobileIpEvent::Denied { code } => mobile("denied").with("code", code.to_string()),
            MobileIpEvent::Lapsed => mobile("registration_lapsed"),
            MobileIpEvent::BindingChanged { host, care_of } => {
                home("binding_changed", host).with("care_of", care_of).at(Span::Ends(Stage::Registration))
            }
            MobileIpEvent::BindingRemoved { host } => {
                home("binding_removed", host).at(Span::Ends(Stage::Registration))
            }
            MobileIpEvent::PathSwitched { host } => {
                home("path_switched", host).at(Span::Begins(Stage::PathSwitch))
            }
            MobileIpEvent::BindingExpired { host } => home("binding_expired", host),
            MobileIpEvent::BindingRestored { host, care_of } => {
                home("binding_restored", host).with("care_of", care_of)
            }
            MobileIpEvent::RecordRefused { why } => Self::new(HOME_AGENT, "record_refused").with("why", why),
            MobileIpEvent::NotStored { host } => home("not_stored", host),
            MobileIpEvent::VisitorArrived { host } => foreign("visitor_arrived", host),
            MobileIpEvent::VisitorExpired { host } => foreign("visitor_expired", host),
            MobileIpEvent::RequestTimedOut { host } => foreign("request_timed_out", host),
        }
    }
}
