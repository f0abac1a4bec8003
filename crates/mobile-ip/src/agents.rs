//! The list of agents that a mobile node has heard and that have not expired (RFC 5944, section 2.4.2.1).

use crate::config::CareOf;
use crate::home_agents::HomeAgents;
use crate::message::{Advertisement, AgentFlags};
use node::Expiry;
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr, Mac, Prefix};

/// The maximum number of agents in the list (not from an RFC). When a further agent is heard, the agent whose lifetime
/// ends first is removed, but neither the new agent nor the agent in use.
const CAPACITY: usize = 16;
/// The sequence number after 0xffff. So a number below this value that follows a higher one shows that the agent
/// restarted (RFC 5944, section 2.3.2).
const ROLLOVER: u16 = 256;

/// An agent that was heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Agent {
    pub(crate) mac: Mac,
    /// When the last advertisement of the agent arrived.
    pub(crate) heard: Instant,
    /// The lifetime of the last advertisement of the agent.
    lifetime: Duration,
    /// The preference of the agent as a router; a higher value is preferred (RFC 1256, section 3). 0 if the agent
    /// advertises no router address.
    pub(crate) preference: i32,
    sequence: u16,
    /// The longest registration that the agent accepts, in seconds; 0: it accepts none, 0xffff: without limit.
    /// [`Agents::hear`] may keep an earlier value.
    pub(crate) registration_lifetime: u16,
    pub(crate) registered_only: bool,
    /// The flags of the last advertisement.
    pub(crate) flags: AgentFlags,
    /// R: a mobile node with a co-located care-of address must register through this agent.
    pub(crate) registration_required: bool,
    /// The first care-of address that the agent offers; `None` if it is not a foreign agent.
    pub(crate) care_of: Option<Ipv4Addr>,
    prefix: Option<Prefix>,
}

impl Agent {
    /// Returns whether an advertisement of the agent arrived within half of its lifetime. An agent advertises at least
    /// three times in its lifetime, so otherwise an advertisement was lost, or the agent is out of range.
    pub(crate) fn is_heard(&self, now: Instant) -> bool {
        now <= self.heard + self.lifetime / 2
    }

    /// Returns whether the agent is a foreign agent that accepts registrations.
    pub(crate) const fn takes_registrations(&self) -> bool {
        self.care_of.is_some() && self.registration_lifetime > 0
    }
}

/// Returns the first care-of address that an advertisement offers; `None` if its sender is not a foreign agent.
pub(crate) fn offered(advertisement: &Advertisement) -> Option<Ipv4Addr> {
    advertisement.care_of.first().copied().filter(|_| advertisement.flags.has(AgentFlags::FOREIGN))
}

/// What an advertisement shows about its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgentChange {
    /// The agent was not in the list, or it accepts registrations now and did not before.
    New,
    /// The sequence number shows that the agent restarted. So it may have lost its visitors.
    Restarted,
    /// Nothing that [`Self::New`] or [`Self::Restarted`] describes.
    None,
}

/// The agents that have not expired, by address.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    list: BTreeMap<Ipv4Addr, Agent>,
    expiry: Expiry<Ipv4Addr>,
    /// The foreign agents that the node uses now.
    pub(crate) uses: Uses,
}

/// Which foreign agents a mobile node uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Uses {
    /// All: their care-of addresses are the node's.
    #[default]
    All,
    /// Those that require it (flag R): the node has its own care-of address.
    Required,
    /// None: the node has no co-located care-of address, and uses no other.
    None,
}

impl Agents {
    /// Returns an empty list for a mobile node whose care-of address comes from `care_of`.
    pub(crate) fn of_node(care_of: CareOf) -> Self {
        let uses = if care_of == CareOf::Agent { Uses::All } else { Uses::None };
        Self { uses, ..Self::default() }
    }

    /// Records an advertisement, and returns what it shows about its sender. `keep` is the agent in use: it is not
    /// removed if the list is full. If the agent in use advertises registration lifetime 0, its earlier registration
    /// lifetime is kept, because an advertisement is not authenticated.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        advertisement: &Advertisement,
        mac: Mac,
        keep: Option<Ipv4Addr>,
    ) -> AgentChange {
        let before = self
            .list
            .get(&advertisement.src)
            .filter(|_| advertisement.registration_lifetime == 0 && keep == Some(advertisement.src));
        let agent = Agent {
            mac,
            heard: now,
            lifetime: Duration::from_secs(advertisement.lifetime.into()),
            preference: advertisement.preference(),
            sequence: advertisement.sequence,
            registration_lifetime: before
                .map_or(advertisement.registration_lifetime, |old| old.registration_lifetime),
            registered_only: advertisement.registered_only,
            flags: advertisement.flags,
            registration_required: advertisement.flags.has(AgentFlags::REGISTRATION_REQUIRED),
            care_of: offered(advertisement),
            prefix: advertisement.prefix(),
        };
        self.expiry.set(advertisement.src, now + agent.lifetime);
        let change = match self.list.get(&advertisement.src) {
            None => AgentChange::New,
            Some(old) if !old.takes_registrations() && agent.takes_registrations() => AgentChange::New,
            // A lower sequence number of 256 or more counts as a rollover (RFC 5944, section 2.4.4).
            Some(old) if advertisement.sequence < old.sequence && advertisement.sequence < ROLLOVER => {
                AgentChange::Restarted
            }
            Some(_) => AgentChange::None,
        };
        self.list.insert(advertisement.src, agent);
        if self.list.len() > CAPACITY {
            let others =
                self.list.iter().filter(|(who, _)| **who != advertisement.src && Some(**who) != keep);
            let first = others.min_by_key(|(who, agent)| (agent.heard + agent.lifetime, **who));
            if let Some(who) = first.map(|(who, _)| *who) {
                self.forget(who);
            }
        }
        change
    }

    pub(crate) fn get(&self, who: Ipv4Addr) -> Option<&Agent> {
        self.list.get(&who)
    }

    /// Returns whether a mobile node with these home agents can register through this agent. It must be in the list, and be a
    /// home agent of the node or a foreign agent that takes registrations.
    pub(crate) fn is_usable(&self, agent: Ipv4Addr, home_agents: &HomeAgents) -> bool {
        let takes = |known: &Agent| {
            let is_used = match self.uses {
                Uses::All => true,
                Uses::Required => known.registration_required,
                Uses::None => false,
            };
            is_used && known.takes_registrations()
        };
        self.get(agent).is_some_and(|known| home_agents.has(agent) || takes(known))
    }

    pub(crate) fn forget(&mut self, who: Ipv4Addr) {
        self.list.remove(&who);
        self.expiry.stop(who);
    }

    /// Removes all agents.
    pub(crate) fn forget_all(&mut self) {
        self.list.clear();
        self.expiry = Expiry::default();
    }

    /// Lets an agent expire when a third of its lifetime has passed from now, because the link to the agent is down. An
    /// earlier expiry is kept.
    pub(crate) fn suspect(&mut self, now: Instant, who: Ipv4Addr) {
        if let Some(agent) = self.list.get(&who) {
            self.expiry.set_by(who, now + agent.lifetime / 3);
        }
    }

    /// Returns when the next agent expires; `None` if there is no agent.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.expiry.next()
    }

    /// Removes and returns an agent that has expired, with its address; `None` if there is none.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<(Ipv4Addr, Agent)> {
        let who = self.expiry.pop(now)?;
        self.list.remove(&who).map(|agent| (who, agent))
    }

    /// Returns whether two agents advertise the same prefix; `None` if one of them advertises none.
    pub(crate) fn share_a_subnet(&self, one: Ipv4Addr, other: Ipv4Addr) -> Option<bool> {
        let prefix = |who| self.get(who).and_then(|agent| agent.prefix);
        Some(prefix(one)? == prefix(other)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Agent)> {
        self.list.iter().map(|(who, agent)| (*who, agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ALL_SYSTEMS;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn agent(number: u8, sequence: u16, prefix: u8) -> Advertisement {
        let src = Ipv4Addr::new(10, 3, 0, number);
        Advertisement {
            src,
            dst: ALL_SYSTEMS,
            registered_only: false,
            lifetime: 3,
            routers: vec![(src, 0)],
            sequence,
            registration_lifetime: 300,
            flags: AgentFlags::FOREIGN,
            care_of: vec![src],
            prefix_lengths: (prefix > 0).then(|| vec![prefix]),
            challenge: None,
        }
    }

    #[test]
    fn new_means_not_believed_any_more() {
        let mut agents = Agents::default();
        let hear = |agents: &mut Agents, at, sequence| {
            agents.hear(Instant::from_millis(at), &agent(1, sequence, 0), MAC, None)
        };
        assert_eq!(hear(&mut agents, 0, 7), AgentChange::New);
        assert_eq!(hear(&mut agents, 1000, 8), AgentChange::None);
        assert!(agents.expired(Instant::from_millis(3999)).is_none());
        assert_eq!(agents.due(), Some(Instant::from_millis(4000)));
        let (who, last) = agents.expired(Instant::from_millis(4000)).unwrap();
        assert_eq!((who, last.heard), (Ipv4Addr::new(10, 3, 0, 1), Instant::from_millis(1000)));
        assert_eq!(hear(&mut agents, 4000, 9), AgentChange::New);
    }

    #[test]
    fn a_restart_is_told_from_a_rollover() {
        let mut agents = Agents::default();
        for (sequence, change) in [
            (0xfffe, AgentChange::New),
            (256, AgentChange::None),
            (300, AgentChange::None),
            (0, AgentChange::Restarted),
            (1, AgentChange::None),
            (0, AgentChange::Restarted),
            (400, AgentChange::None),
            (255, AgentChange::Restarted),
        ] {
            assert_eq!(agents.hear(Instant::ZERO, &agent(1, sequence, 0), MAC, None), change, "{sequence}");
        }
    }

    #[test]
    fn a_full_list_forgets_the_stalest_but_never_ours() {
        let mut agents = Agents::default();
        let ours = Some(Ipv4Addr::new(10, 3, 0, 0));
        for number in 0..=CAPACITY as u8 {
            agents.hear(Instant::from_millis(number.into()), &agent(number, 0, 0), MAC, ours);
        }
        assert_eq!(agents.iter().count(), CAPACITY);
        assert!(agents.get(Ipv4Addr::new(10, 3, 0, 0)).is_some());
        assert!(agents.get(Ipv4Addr::new(10, 3, 0, 1)).is_none());
        assert!(agents.get(Ipv4Addr::new(10, 3, 0, CAPACITY as u8)).is_some());
    }

    #[test]
    fn a_suspect_is_believed_for_one_interval() {
        let mut agents = Agents::default();
        agents.hear(Instant::ZERO, &agent(1, 0, 0), MAC, None);
        agents.suspect(Instant::from_millis(500), Ipv4Addr::new(10, 3, 0, 1));
        assert_eq!(agents.due(), Some(Instant::from_millis(1500)));
        // A second report that the link is down does not postpone the expiry.
        agents.suspect(Instant::from_millis(1400), Ipv4Addr::new(10, 3, 0, 1));
        assert_eq!(agents.due(), Some(Instant::from_millis(1500)));
        agents.hear(Instant::from_millis(1450), &agent(1, 1, 0), MAC, None);
        agents.suspect(Instant::from_millis(4400), Ipv4Addr::new(10, 3, 0, 1));
        assert_eq!(agents.due(), Some(Instant::from_millis(4450)));
    }

    #[test]
    fn a_subnet_is_shared_if_both_advertise_the_prefix() {
        let mut agents = Agents::default();
        for (number, prefix) in [(1, 24), (2, 24), (3, 25), (4, 0), (5, 0)] {
            agents.hear(Instant::ZERO, &agent(number, 0, prefix), MAC, None);
        }
        let shared =
            |one, other| agents.share_a_subnet(Ipv4Addr::new(10, 3, 0, one), Ipv4Addr::new(10, 3, 0, other));
        assert_eq!([shared(1, 2), shared(1, 3)], [Some(true), Some(false)]);
        assert_eq!([shared(1, 4), shared(4, 5), shared(1, 9)], [None; 3]);
    }
}
