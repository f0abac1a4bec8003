//! The home agents of a mobile node: which one it uses, and which one is next if that one does not answer.
//!
//! If the configured address is the broadcast address of the home network, the home agent is not known yet. A request to
//! this address is denied by each home agent of the network, with its own address (RFC 5944, section 3.6.1.2).

use crate::config::{Peer, Replay};
use crate::message::Association;
use std::collections::VecDeque;
use wire::{InterfaceAddress, Ipv4Addr};

/// The maximum number of home agents that are not configured (not from an RFC).
const FOUND: usize = 8;

/// A configured home agent.
#[derive(Debug)]
struct HomeAgent {
    address: Ipv4Addr,
    association: Association,
    replay: Replay,
}

/// The home agents of one mobile node, of which one is in use.
#[derive(Debug)]
pub(crate) struct HomeAgents {
    /// The home address, and the prefix of the home network.
    home: InterfaceAddress,
    /// The configured home agents, in the order of their use. The list is not empty.
    all: Vec<HomeAgent>,
    /// The index of the home agent in use.
    at: usize,
    /// The address of the home agent in use: the configured one, or one that a denial or an advertisement has named.
    address: Ipv4Addr,
    /// The last addresses in use that are not configured, each with the index of its association.
    found: VecDeque<(Ipv4Addr, usize)>,
    /// The home agent that was heard on the home link, while the node ends the binding of another one; `None` otherwise.
    pub(crate) home_link: Option<Ipv4Addr>,
}

impl HomeAgents {
    pub(crate) fn new(home: InterfaceAddress, first: &Peer, others: &[Peer]) -> Self {
        let peers = [first].into_iter().chain(others);
        let home_agent = |peer: &Peer| HomeAgent {
            address: peer.address,
            association: peer.association(),
            replay: peer.replay,
        };
        Self {
            home,
            all: peers.map(home_agent).collect(),
            at: 0,
            address: first.address,
            found: VecDeque::new(),
            home_link: None,
        }
    }

    /// Returns the address of the home agent in use. It is the broadcast address of the home network if the home agent
    /// is not known yet.
    pub(crate) const fn address(&self) -> Ipv4Addr {
        self.address
    }

    #[expect(clippy::indexing_slicing, reason = "`at` is below the length of `all`, which is not empty")]
    fn in_use(&self) -> &HomeAgent {
        &self.all[self.at]
    }

    /// Returns the security association with the home agent in use.
    pub(crate) fn association(&self) -> &Association {
        &self.in_use().association
    }

    /// Returns how the association protects requests against replay.
    pub(crate) fn replay(&self) -> Replay {
        self.in_use().replay
    }

    /// Returns whether the address of the home agent is not known yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.home.broadcast() == Some(self.address)
    }

    /// Returns whether this is a home agent of the mobile node that can be heard on the home link: the one in use or heard
    /// before, or one in the home network that is configured or was in use.
    pub(crate) fn has(&self, agent: Ipv4Addr) -> bool {
        let is_in_use = agent == self.address || Some(agent) == self.home_link;
        is_in_use || self.home.link.contains(agent) && self.index(agent).is_some()
    }

    /// Returns the index of the association with a home agent; `None` if it is no home agent of the mobile node.
    fn index(&self, agent: Ipv4Addr) -> Option<usize> {
        let configured = self.all.iter().position(|other| other.address == agent);
        let found = || self.found.iter().find(|(other, _)| *other == agent).map(|(_, at)| *at);
        configured.or_else(found)
    }

    /// Uses the address that a denial with code 136 has named, with the same association.
    pub(crate) fn learn(&mut self, address: Ipv4Addr) {
        self.address = address;
        if self.index(address).is_none() {
            if self.found.len() >= FOUND {
                self.found.pop_front();
            }
            self.found.push_back((address, self.at));
        }
    }

    /// If no home agent is known yet, uses one that was heard in the home network. Returns whether it is used from now on.
    pub(crate) fn meet(&mut self, heard: Ipv4Addr) -> bool {
        let is_met = self.is_unknown() && self.home.link.contains(heard);
        if is_met {
            self.learn(heard);
        }
        is_met
    }

    /// Turns to the next home agent in the list; after the last one, to the first. Returns whether the address differs
    /// from that of before.
    pub(crate) fn next(&mut self) -> bool {
        let before = self.address;
        self.at = (self.at + 1) % self.all.len();
        self.address = self.in_use().address;
        self.address != before
    }

    /// Uses this home agent of the mobile node. Returns whether it is used from now on: it may be no home agent of this node.
    pub(crate) fn select(&mut self, home_agent: Ipv4Addr) -> bool {
        let Some(at) = self.index(home_agent) else { return false };
        (self.at, self.address) = (at, home_agent);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Denials name more addresses than the node remembers: it forgets the first ones.
    #[test]
    fn the_last_found_home_agents_are_remembered() {
        let key = "000102030405060708090a0b0c0d0e0f";
        let peer: Peer = toml::from_str(&format!("address = '10.1.0.2'\nspi = 256\nkey = '{key}'")).unwrap();
        let mut home_agents = HomeAgents::new("10.1.0.7/16".parse().unwrap(), &peer, &[]);
        let found = |last: usize| Ipv4Addr::new(10, 1, 1, last as u8);
        for last in 0..FOUND + 2 {
            home_agents.learn(found(last));
        }
        let known: Vec<usize> = (0..FOUND + 2).filter(|last| home_agents.has(found(*last))).collect();
        assert_eq!(known, (2..FOUND + 2).collect::<Vec<_>>());
        assert!(home_agents.select(found(2)));
        assert!(!home_agents.select(found(1)), "without an association");
    }
}
