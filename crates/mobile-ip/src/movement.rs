//! Movement detection: whether a mobile node stays with its agent, or registers with another (RFC 5944, section 2.4.2).
//!
//! A policy has no state. [`Situation::decide`] decides about one event from the list of agents and the agent in use.
//! The decision names its reason, which the mobile node records.

use crate::agents::{Agent, AgentChange, Agents};
use crate::config::Movement;
use crate::home_agents::HomeAgents;
use crate::signals::{BELIEVED, Comparison, Signals};
use wire::{Instant, Ipv4Addr};

/// What a mobile node decides about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurrence {
    /// An advertisement of this usable agent arrived, and shows this change.
    Heard(Ipv4Addr, AgentChange),
    /// The advertisement of the agent in use has expired, or the agent has left.
    AgentLost,
    /// The registration is to be renewed.
    RenewalDue,
    /// The lifetime of the registration has ended.
    Expired,
}

/// What a mobile node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// It stays with the agent in use.
    Stay(Why),
    /// It registers with this agent, which may be the agent in use.
    Register(Ipv4Addr, Why),
    /// It has no agent to register with, and solicits.
    Search(Why),
}

/// The reason of a decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Why {
    /// No agent is in use.
    NoAgent,
    /// The agent in use was heard, and has not changed.
    SameAgent,
    /// The sequence number of the agent in use shows that it restarted.
    AgentRestarted,
    /// The link came up, and the configuration has `link_trigger`.
    LinkUp,
    /// A home agent was heard, so the node is at home (RFC 5944, section 2.4.3).
    AtHome,
    /// The agent was not in the list of agents.
    NewAgent,
    /// The agent was in the list of agents already.
    KnownAgent,
    /// The agent is in the subnet of the agent in use.
    SameSubnet,
    /// The agent is in another subnet than the agent in use.
    OtherSubnet,
    /// One of the two agents advertises no prefix (RFC 5944, section 2.4.2.2).
    UnknownSubnet,
    /// The signal of the agent is stronger than that of the agent in use by the configured hysteresis.
    StrongerSignal,
    /// The signal of the agent is weaker than that of the agent in use, or stronger by less than the configured hysteresis.
    BelowHysteresis,
    /// The advertisement of the agent in use has not expired.
    AgentAlive,
    /// The advertisement of the agent in use has expired, or the agent has left.
    AgentLost,
    /// The registration has not ended.
    RegistrationHolds,
    /// The registration is to be renewed, or has ended.
    RegistrationEnds,
    /// The requests to the agent in use were not answered.
    NoReply,
    /// The agent in use denied the request.
    Denied,
    /// The agent is on an interface that is preferred to the one in use.
    PreferredInterface,
    /// The link of the interface in use is down.
    LinkDown,
    /// The signal of the interface in use is too weak.
    WeakSignal,
}

impl Why {
    /// Returns the name of the reason in records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NoAgent => "no_agent",
            Self::SameAgent => "same_agent",
            Self::AgentRestarted => "agent_restarted",
            Self::LinkUp => "link_up",
            Self::AtHome => "at_home",
            Self::NewAgent => "new_agent",
            Self::KnownAgent => "known_agent",
            Self::SameSubnet => "same_subnet",
            Self::OtherSubnet => "other_subnet",
            Self::UnknownSubnet => "unknown_subnet",
            Self::StrongerSignal => "stronger_signal",
            Self::BelowHysteresis => "below_hysteresis",
            Self::AgentAlive => "agent_alive",
            Self::AgentLost => "agent_lost",
            Self::RegistrationHolds => "registration_holds",
            Self::RegistrationEnds => "registration_ends",
            Self::NoReply => "no_reply",
            Self::Denied => "denied",
            Self::PreferredInterface => "preferred_interface",
            Self::LinkDown => "link_down",
            Self::WeakSignal => "weak_signal",
        }
    }
}

/// What a policy knows when it decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) now: Instant,
    pub(crate) policy: Movement,
    /// Whether the node registers with a home agent whenever it hears one and is not at home.
    pub(crate) home_first: bool,
    pub(crate) home_agents: &'a HomeAgents,
    /// The agents that were heard and have not expired.
    pub(crate) agents: &'a Agents,
    /// The signals of the agents' cells.
    pub(crate) signals: &'a Signals,
    /// The agent in use; `None` if there is none. It may have expired.
    pub(crate) in_use: Option<Ipv4Addr>,
    /// Whether the link came up, and no usable agent was heard since. Always false without `link_trigger`.
    pub(crate) triggered: bool,
    /// When the link came up; always [`Instant::ZERO`] without `link_trigger`. Other agents that were not heard since may be
    /// out of reach.
    pub(crate) linked: Instant,
    /// Whether the lifetime of a registration has not ended. With `expiry`, a registration at home has one too.
    pub(crate) registered: bool,
    /// The lifetime that the node requests, in seconds. An agent that offers more is not better.
    pub(crate) lifetime: u16,
}

impl Situation<'_> {
    /// Returns what the node does.
    pub(crate) fn decide(&self, occurrence: Occurrence) -> Decision {
        match occurrence {
            Occurrence::Heard(agent, change) => self.heard(agent, change),
            Occurrence::AgentLost if self.policy == Movement::Expiry && self.registered => {
                Decision::Stay(Why::RegistrationHolds)
            }
            Occurrence::AgentLost => self.turn(Why::AgentLost),
            Occurrence::RenewalDue => self.renewal(),
            Occurrence::Expired if self.is_alive() => Decision::Stay(Why::AgentAlive),
            Occurrence::Expired => self.turn(Why::RegistrationEnds),
        }
    }

    fn heard(&self, agent: Ipv4Addr, change: AgentChange) -> Decision {
        let Some(in_use) = self.in_use else { return Decision::Register(agent, Why::NoAgent) };
        if in_use == agent {
            // After the link came up, the node registers again with the agent in use. The agent may have restarted
            // although its sequence number does not show this, or a reply may be lost.
            return match change {
                AgentChange::Restarted => Decision::Register(agent, Why::AgentRestarted),
                _ if self.triggered => Decision::Register(agent, Why::LinkUp),
                // The agent had expired. Its former sequence number is forgotten, so it may have restarted.
                AgentChange::New => Decision::Register(agent, Why::NewAgent),
                AgentChange::None => Decision::Stay(Why::SameAgent),
            };
        }
        if self.triggered {
            return Decision::Register(agent, Why::LinkUp);
        }
        let signal = self.compared(in_use, agent);
        if self.home_first && self.home_agents.has(agent) {
            return match signal {
                _ if self.home_agents.has(in_use) && self.is_alive() => Decision::Stay(Why::AtHome),
                Some(Comparison::BelowHysteresis) => Decision::Stay(Why::BelowHysteresis),
                Some(Comparison::Stronger) | None => Decision::Register(agent, Why::AtHome),
            };
        }
        let is_new = change == AgentChange::New;
        match (self.policy, self.agents.share_a_subnet(in_use, agent)) {
            (Movement::Lcs | Movement::Pm, _) => Decision::Stay(Why::AgentAlive),
            (Movement::Expiry, _) => Decision::Stay(Why::RegistrationHolds),
            // With several agents in one subnet, the node would register with each of them in turn.
            (Movement::Ecs | Movement::PmEager, Some(true)) => Decision::Stay(Why::SameSubnet),
            (Movement::PmEager, None) => Decision::Stay(Why::UnknownSubnet),
            // The agent may have been heard when its signal was too weak. So it need not be new.
            (Movement::Ecs | Movement::PmEager, _) if signal == Some(Comparison::BelowHysteresis) => {
                Decision::Stay(Why::BelowHysteresis)
            }
            (Movement::Ecs | Movement::PmEager, _) if signal == Some(Comparison::Stronger) => {
                Decision::Register(agent, Why::StrongerSignal)
            }
            (Movement::Ecs | Movement::PmEager, _) if !is_new => Decision::Stay(Why::KnownAgent),
            (Movement::Ecs, _) => Decision::Register(agent, Why::NewAgent),
            (Movement::PmEager, Some(false)) => Decision::Register(agent, Why::OtherSubnet),
        }
    }

    /// Decides whether the registration is renewed with the agent in use. With `pm`, the node turns to an agent of
    /// another subnet if it no longer hears the agent in use (RFC 5944, section 2.4.2.2).
    fn renewal(&self) -> Decision {
        let Some(in_use) = self.in_use else { return self.turn(Why::RegistrationEnds) };
        if !self.is_alive() {
            return self.turn(Why::RegistrationEnds);
        }
        let is_heard = |who| self.agents.get(who).is_some_and(|agent| agent.is_heard(self.now));
        match self.other_agent() {
            Some(other)
                if self.policy == Movement::Pm
                    && !is_heard(in_use)
                    && is_heard(other)
                    && self.agents.share_a_subnet(in_use, other) == Some(false) =>
            {
                match self.compared(in_use, other) {
                    Some(Comparison::BelowHysteresis) => Decision::Stay(Why::BelowHysteresis),
                    Some(Comparison::Stronger) | None => Decision::Register(other, Why::OtherSubnet),
                }
            }
            _ => Decision::Stay(Why::AgentAlive),
        }
    }

    /// Compares the signal of another agent with that of the agent in use. An agent whose cell has fallen silent, and of
    /// which no advertisement was heard either, has the weaker signal. `None` if the agent in use has expired: then the
    /// node needs another one, whatever its signal is.
    fn compared(&self, in_use: Ipv4Addr, other: Ipv4Addr) -> Option<Comparison> {
        let known = self.agents.get(in_use)?;
        let is_silent = self.now > known.heard + BELIEVED && self.signals.is_silent(self.now, in_use, other);
        let compared = self.signals.compare(self.now, in_use, other);
        if is_silent { Some(Comparison::Stronger) } else { compared }
    }

    fn turn(&self, why: Why) -> Decision {
        self.other_agent().map_or(Decision::Search(why), |other| Decision::Register(other, why))
    }

    /// Returns whether an agent is in use and has not expired.
    fn is_alive(&self) -> bool {
        self.in_use.is_some_and(|agent| self.agents.get(agent).is_some())
    }

    /// Returns the best usable agent except the agent in use; `None` if there is none.
    pub(crate) fn other_agent(&self) -> Option<Ipv4Addr> {
        self.best_of(|_| true)
    }

    /// Returns the best usable agent except the agent in use. If the agent in use was heard since the link came up, only others that
    /// were heard since are considered: those of before may be out of reach.
    pub(crate) fn other_in_reach(&self) -> Option<Ipv4Addr> {
        let is_heard = |agent: &Agent| agent.heard >= self.linked;
        let in_use = self.in_use.and_then(|agent| self.agents.get(agent));
        let all = !in_use.is_some_and(is_heard);
        self.best_of(|agent| all || is_heard(agent))
    }

    /// Returns the best usable agent of some, except the agent in use.
    ///
    /// An agent that was heard within half of its lifetime is better than one that was not. Then the order is: a home
    /// agent with `home_first` (the one in use before others), the higher preference (RFC 1256, section 3), the longer lifetime up to the requested
    /// one. Last come the agent that was heard last, and the higher address.
    fn best_of(&self, is_considered: impl Fn(&Agent) -> bool) -> Option<Ipv4Addr> {
        let is_other = |(who, agent): &(Ipv4Addr, &Agent)| Some(*who) != self.in_use && is_considered(agent);
        let others = self.agents.iter().filter(is_other);
        let usable = others.filter(|(who, _)| self.agents.is_usable(*who, self.home_agents));
        let rank = |(who, agent): &(Ipv4Addr, &Agent)| {
            let is_home = self.home_first && self.home_agents.has(*who);
            let is_chosen = is_home && *who == self.home_agents.address();
            let lifetime = agent.registration_lifetime.min(self.lifetime);
            (agent.is_heard(self.now), is_home, is_chosen, agent.preference, lifetime, agent.heard, *who)
        };
        usable.max_by_key(rank).map(|(who, _)| who)
    }
}

#[cfg(test)]
#[path = "movement_tests.rs"]
mod tests;
