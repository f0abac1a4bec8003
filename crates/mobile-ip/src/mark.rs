//! The events that the roles record for measurements. Some of them divide an outage into stages:
//!
//! - Detection begins when the mobile node's link comes up. It ends when the mobile node hears the agent in use, or
//!   chooses an agent.
//! - With a co-located care-of address, detection ends as soon as the link is up, unless an agent is heard that the
//!   mobile node uses. Then the mobile node waits for its address.
//! - Registration begins with the request, or with the wait before the request. It ends when the home agent changes or
//!   removes the binding. The wait follows from RFC 5944, section 3.6: at most one registration per second.
//! - With a smooth handoff, the previous foreign agent can have the new path first. Then registration ends, and the path
//!   switch begins, at that agent.
//! - A correspondent with a binding cache can have the new path later than the home agent. For the flows of this
//!   correspondent, registration lasts until its entry changes or ends. The marks of the cache have no span, because other
//!   flows do not wait for it.
//! - The path switch begins when the home agent uses the new path, and ends when the first packet arrives by this path.

use crate::message::Code;
use node::{Mark, Span, Stage};
use wire::Ipv4Addr;

/// The name of the home agent role in records.
pub const HOME_AGENT: &str = "home_agent";
/// The name of the foreign agent role in records.
pub const FOREIGN_AGENT: &str = "foreign_agent";
/// The name of the mobile node role in records.
pub const MOBILE_NODE: &str = "mobile_node";
/// The name of the correspondent role in records: the role is a binding cache.
pub const BINDING_CACHE: &str = "binding_cache";

/// An event that is recorded for measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MobileIpEvent {
    /// The mobile node's link came up.
    LinkUp,
    /// The mobile node's link came up, and its care-of addresses are co-located.
    NetworkFound,
    /// The mobile node's link is up, and it waits for its own care-of address of the configuration.
    AddressBegun,
    /// The mobile node can use its own care-of address of the configuration.
    AddressReady { address: Ipv4Addr },
    /// The mobile node heard the agent in use, or chose an agent, for the first time since its link came up.
    AgentHeard { agent: Ipv4Addr },
    /// The agent in use by the mobile node expired, or advertised a lifetime of 0.
    AgentLost { agent: Ipv4Addr },
    /// Movement detection decided that the mobile node registers with this agent. `policy` is the configured policy, and
    /// `why` is the reason.
    AgentChosen { agent: Ipv4Addr, policy: &'static str, why: &'static str },
    /// Movement detection decided that the mobile node does not register with this agent, which it heard. The record is
    /// made for the first such decision about the agent with this reason, after the later of two events: an agent was
    /// chosen, or the link came up.
    AgentIgnored { agent: Ipv4Addr, policy: &'static str, why: &'static str },
    /// Movement detection decided that the mobile node stays with its agent, although the agent has expired or left.
    AgentKept { agent: Ipv4Addr, policy: &'static str, why: &'static str },
    /// An interface of a mobile node with several interfaces became usable, or is not usable any more.
    InterfaceChanged { interface: String, is_usable: bool },
    /// The host did not give a further interface the home address, or did not take it away. `why` is the host's error. The mobile
    /// node asks again.
    HomeAddressFailed { interface: String, is_added: bool, why: String },
    /// A mobile node with several interfaces changes from one to another. `why` is the reason.
    InterfaceChosen { from: String, to: String, why: &'static str },
    /// The mobile node uses this home agent from now on: the home agent before did not answer, was unreachable or was not
    /// known.
    HomeAgentChosen { home_agent: Ipv4Addr },
    /// The mobile node waits before it registers: its last registration began less than a second ago.
    RegistrationWaits { agent: Ipv4Addr },
    /// The mobile node sent a Registration Request. `lifetime` is the requested lifetime in seconds. `attempt` is 1 for
    /// the first request, and one more for each repetition. It is 1 again after an accepted request, after an
    /// authenticated denial that corrects the clock, the lifetime or the home agent, and after the choice of an agent.
    RequestSent { agent: Ipv4Addr, care_of: Ipv4Addr, lifetime: u16, attempt: u32 },
    /// The mobile node's request was accepted. `lifetime` is the granted lifetime in seconds; 0: the registration has
    /// ended.
    Registered { care_of: Ipv4Addr, lifetime: u16 },
    /// The mobile node's request was denied with this code.
    Denied { code: Code },
    /// The lifetime of the mobile node's registration ended before a renewal was accepted.
    Expired,
    /// The home agent bound a mobile node that had no binding, or whose binding had another care-of address.
    BindingChanged { host: Ipv4Addr, care_of: Ipv4Addr },
    /// The home agent removed a binding because the mobile node deregistered.
    BindingRemoved { host: Ipv4Addr },
    /// From now on, the home agent sends packets for this mobile node by another path.
    PathSwitched { host: Ipv4Addr },
    /// The lifetime of a binding at the home agent ended without a new registration.
    BindingExpired { host: Ipv4Addr },
    /// The home agent restored a binding from its store when it started.
    BindingRestored { host: Ipv4Addr, care_of: Ipv4Addr },
    /// The home agent could not read a stored record, or the record belongs to no configured mobile node.
    RecordRefused { why: &'static str },
    /// The home agent could not store a registration, and denied it.
    NotStored { host: Ipv4Addr },
    /// A foreign agent has a new visitor.
    VisitorArrived { host: Ipv4Addr },
    /// The lifetime of a visitor at a foreign agent ended without a new registration.
    VisitorExpired { host: Ipv4Addr },
    /// The home agent did not answer in time a request that the foreign agent relayed.
    RequestTimedOut { host: Ipv4Addr },
}

/// An event of route optimization or of a smooth handoff that is recorded for measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HandoffEvent {
    /// A previous foreign agent sends the packets that it kept for a visitor to the new care-of address.
    KeptSent { host: Ipv4Addr, care_of: Ipv4Addr, packets: u64 },
    /// A foreign agent has received a key for smooth handoffs of a visitor from its home agent.
    KeyReceived { host: Ipv4Addr, spi: u32 },
    /// A new foreign agent has sent the Binding Update of a mobile node to its previous agent.
    UpdateSent { host: Ipv4Addr, previous: Ipv4Addr, care_of: Ipv4Addr },
    /// A previous foreign agent has accepted a Binding Update that ends the visit.
    VisitorDeparted { host: Ipv4Addr },
    /// A previous foreign agent has accepted a Binding Update with this new care-of address.
    CareOfLearnt { host: Ipv4Addr, care_of: Ipv4Addr },
    /// From now on, a previous foreign agent forwards packets for this mobile node to the new care-of address.
    ForwardingBegun { host: Ipv4Addr },
    /// A previous foreign agent does not forward packets for a mobile node any more.
    ForwardingEnded { host: Ipv4Addr },
    /// The mobile node asks its previous foreign agent to forward packets to `care_of`, by the new agent or itself.
    PreviousNamed { previous: Ipv4Addr, care_of: Ipv4Addr },
    /// The mobile node has sent the Binding Update to its previous agent itself. `attempt` is 1 for the first time.
    UpdateRepeated { previous: Ipv4Addr, attempt: u32 },
    /// The previous foreign agent has answered the Binding Update with this status; 0: accepted.
    UpdateAcknowledged { previous: Ipv4Addr, status: u8 },
    /// The home agent sent a Binding Update about a mobile node to a correspondent. `lifetime` is in seconds; 0: the
    /// correspondent must forget the binding.
    CorrespondentInformed { host: Ipv4Addr, correspondent: Ipv4Addr, lifetime: u16 },
    /// The correspondent sends its packets for a mobile node straight to this care-of address from now on.
    BindingLearnt { host: Ipv4Addr, care_of: Ipv4Addr },
    /// The correspondent sends its packets for a mobile node to the home network again.
    BindingForgotten { host: Ipv4Addr, why: &'static str },
}

fn interface_changed(is_usable: bool) -> &'static str {
    if is_usable { "interface_usable" } else { "interface_unusable" }
}

fn home_address_failed(is_added: bool) -> &'static str {
    if is_added { "home_address_refused" } else { "home_address_stays" }
}

impl From<MobileIpEvent> for Mark {
    fn from(event: MobileIpEvent) -> Self {
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let home = |name, host: Ipv4Addr| Self::new(HOME_AGENT, name).with("host", host);
        let foreign = |name, host: Ipv4Addr| Self::new(FOREIGN_AGENT, name).with("host", host);
        let decided = |name, agent: Ipv4Addr, policy: &'static str, why: &'static str| {
            mobile(name).with("agent", agent).with("policy", policy).with("why", why)
        };
        match event {
            MobileIpEvent::LinkUp => mobile("link_up").at(Span::Begins(Stage::Detection)),
            MobileIpEvent::AgentHeard { agent } => {
                mobile("agent_heard").with("agent", agent).at(Span::Ends(Stage::Detection))
            }
            MobileIpEvent::NetworkFound => mobile("network_found").at(Span::Ends(Stage::Detection)),
            MobileIpEvent::AddressBegun => mobile("address_begun").at(Span::Begins(Stage::Address)),
            MobileIpEvent::AddressReady { address } => {
                mobile("address_ready").with("address", address).at(Span::Ends(Stage::Address))
            }
            MobileIpEvent::AgentLost { agent } => mobile("agent_lost").with("agent", agent),
            MobileIpEvent::AgentChosen { agent, policy, why } => decided("agent_chosen", agent, policy, why),
            MobileIpEvent::AgentIgnored { agent, policy, why } => {
                decided("agent_ignored", agent, policy, why)
            }
            MobileIpEvent::AgentKept { agent, policy, why } => decided("agent_kept", agent, policy, why),
            MobileIpEvent::InterfaceChanged { interface, is_usable } => {
                mobile(interface_changed(is_usable)).with("interface", interface)
            }
            MobileIpEvent::HomeAddressFailed { interface, is_added, why } => {
                mobile(home_address_failed(is_added)).with("interface", interface).with("why", why)
            }
            MobileIpEvent::InterfaceChosen { from, to, why } => mobile(node::HANDOFF)
                .with("kind", "interface")
                .with("from", from)
                .with("to", to)
                .with("why", why)
                .at(Span::Begins(Stage::PathSwitch)),
            MobileIpEvent::HomeAgentChosen { home_agent } => {
                mobile("home_agent_chosen").with("home_agent", home_agent)
            }
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
            MobileIpEvent::Expired => mobile("registration_expired"),
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

impl From<HandoffEvent> for Mark {
    fn from(event: HandoffEvent) -> Self {
        let mobile = |name| Self::new(MOBILE_NODE, name);
        let home = |name, host: Ipv4Addr| Self::new(HOME_AGENT, name).with("host", host);
        let foreign = |name, host: Ipv4Addr| Self::new(FOREIGN_AGENT, name).with("host", host);
        let cache = |name, host: Ipv4Addr| Self::new(BINDING_CACHE, name).with("host", host);
        match event {
            HandoffEvent::KeptSent { host, care_of, packets } => {
                foreign("kept_sent", host).with("care_of", care_of).with("packets", packets)
            }
            HandoffEvent::KeyReceived { host, spi } => {
                foreign("key_received", host).with("spi", u64::from(spi))
            }
            HandoffEvent::UpdateSent { host, previous, care_of } => {
                foreign("update_sent", host).with("previous", previous).with("care_of", care_of)
            }
            HandoffEvent::VisitorDeparted { host } => foreign("visitor_departed", host),
            HandoffEvent::CareOfLearnt { host, care_of } => {
                foreign("care_of_learnt", host).with("care_of", care_of).at(Span::Ends(Stage::Registration))
            }
            HandoffEvent::ForwardingBegun { host } => {
                foreign("forwarding_begun", host).at(Span::Begins(Stage::PathSwitch))
            }
            HandoffEvent::ForwardingEnded { host } => foreign("forwarding_ended", host),
            HandoffEvent::PreviousNamed { previous, care_of } => {
                mobile("previous_agent_named").with("previous", previous).with("care_of", care_of)
            }
            HandoffEvent::UpdateRepeated { previous, attempt } => {
                mobile("update_repeated").with("previous", previous).with("attempt", attempt)
            }
            HandoffEvent::UpdateAcknowledged { previous, status } => {
                mobile("update_acknowledged").with("previous", previous).with("status", u64::from(status))
            }
            HandoffEvent::CorrespondentInformed { host, correspondent, lifetime } => {
                home("update_sent", host)
                    .with("correspondent", correspondent)
                    .with("lifetime", u64::from(lifetime))
            }
            HandoffEvent::BindingLearnt { host, care_of } => {
                cache("binding_learnt", host).with("care_of", care_of)
            }
            HandoffEvent::BindingForgotten { host, why } => cache("binding_forgotten", host).with("why", why),
        }
    }
}
