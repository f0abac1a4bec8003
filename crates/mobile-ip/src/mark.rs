//! What the roles mark. An outage is explained by these: detection from the link to the agent; registration from the
//! request, or from where it waits for the rate that RFC 5944 allows (section 3.6.3), to the home agent's new binding; path
//! switch from there to the first packet that takes the tunnel.

use crate::message::Code;
use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The home agent, as a role is named in records.
pub const HOME_AGENT: &str = "home_agent";
/// The foreign agent.
pub const FOREIGN_AGENT: &str = "foreign_agent";
/// The mobile node.
pub const MOBILE_NODE: &str = "mobile_node";

/// Something worth measuring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A mobile node's link came up: it does not know yet who is there.
    LinkUp,
    /// It heard an agent and acts upon that.
    AgentHeard { agent: Ipv4Addr },
    /// Its agent fell silent.
    AgentLost { agent: Ipv4Addr },
    /// It is to register with that agent, and waits: its last registration began less than a second ago.
    RegistrationWaits { agent: Ipv4Addr },
    /// A request left.
    RequestSent { agent: Ipv4Addr, care_of: Ipv4Addr, lifetime: u16, attempt: u32 },
    /// It was accepted; the lifetime granted, 0 at home.
    Registered { care_of: Ipv4Addr, lifetime: u16 },
    /// It was denied.
    Denied { code: Code },
    /// The registration ended before it could be renewed.
    Lapsed,
    /// A home agent has bound a mobile node to another place than before.
    BindingChanged { host: Ipv4Addr, care_of: Ipv4Addr },
    /// A mobile node is at home again.
    BindingRemoved { host: Ipv4Addr },
    /// From now on packets to that host take the new way.
    PathSwitched { host: Ipv4Addr },
    /// Nothing was heard of a mobile node for its lifetime.
    BindingExpired { host: Ipv4Addr },
    /// A binding was there already when the home agent started.
    BindingRestored { host: Ipv4Addr, care_of: Ipv4Addr },
    /// A record of the last run could not be read.
    RecordRefused { why: &'static str },
    /// A registration could not be stored, and was taken back.
    NotStored { host: Ipv4Addr },
    /// A foreign agent has a visitor, who was not there before.
    VisitorArrived { host: Ipv4Addr },
    /// A visitor's lifetime ended.
    VisitorExpired { host: Ipv4Addr },
    /// The home agent did not answer a request in time.
    RequestTimedOut { host: Ipv4Addr },
}

impl From<Event> for Mark {
    fn from(event: Event) -> Self {
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let home = |name, host: Ipv4Addr| Self::new(HOME_AGENT, name).with("host", host);
        let foreign = |name, host: Ipv4Addr| Self::new(FOREIGN_AGENT, name).with("host", host);
        match event {
            Event::LinkUp => mobile("link_up").at(Span::Begins(Stage::Detection)),
            Event::AgentHeard { agent } => {
                mobile("agent_heard").with("agent", agent).at(Span::Ends(Stage::Detection))
            }
            Event::AgentLost { agent } => mobile("agent_lost").with("agent", agent),
            Event::RegistrationWaits { agent } => {
                mobile("registration_waits").with("agent", agent).at(Span::Begins(Stage::Registration))
            }
            Event::RequestSent { agent, care_of, lifetime, attempt } => mobile("request_sent")
                .with("agent", agent)
                .with("care_of", care_of)
                .with("lifetime", u64::from(lifetime))
                .with("attempt", attempt)
                .at(Span::Begins(Stage::Registration)),
            Event::Registered { care_of, lifetime } => {
                mobile("registered").with("care_of", care_of).with("lifetime", u64::from(lifetime))
            }
            Event::Denied { code } => mobile("denied").with("code", code.to_string()),
            Event::Lapsed => mobile("registration_lapsed"),
            Event::BindingChanged { host, care_of } => {
                home("binding_changed", host).with("care_of", care_of).at(Span::Ends(Stage::Registration))
            }
            Event::BindingRemoved { host } => {
                home("binding_removed", host).at(Span::Ends(Stage::Registration))
            }
            Event::PathSwitched { host } => home("path_switched", host).at(Span::Begins(Stage::PathSwitch)),
            Event::BindingExpired { host } => home("binding_expired", host),
            Event::BindingRestored { host, care_of } => {
                home("binding_restored", host).with("care_of", care_of)
            }
            Event::RecordRefused { why } => Self::new(HOME_AGENT, "record_refused").with("why", why),
            Event::NotStored { host } => home("not_stored", host),
            Event::VisitorArrived { host } => foreign("visitor_arrived", host),
            Event::VisitorExpired { host } => foreign("visitor_expired", host),
            Event::RequestTimedOut { host } => foreign("request_timed_out", host),
        }
    }
}
