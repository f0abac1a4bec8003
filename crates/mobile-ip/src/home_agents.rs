//! The home agents of a mobile node: which one it uses, and which one is next if that one does not answer.
//!
//! If the configured address is the broadcast address of the home network, the home agent is not known yet. A request to
//! this address is denied by each home agent of the network, with its own address (RFC 5944, section 3.6.1.2).

use crate::config::{Peer, Replay};
use crate::message::Association;
use wire::{InterfaceAddress, Ipv4Addr};

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
}

impl HomeAgents {
    pub(crate) fn new(home: InterfaceAddress, first: &Peer, others: &[Peer]) -> Self {
        let peers = [first].into_iter().chain(others);
        let home_agent = |peer: &Peer| HomeAgent {
            address: peer.address,
            association: peer.association(),
            replay: peer.replay,
        };
        Self { home, all: peers.map(home_agent).collect(), at: 0, address: first.address }
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

    /// Uses the address that a denial with code 136 has named, with the same association.
    pub(crate) const fn learn(&mut self, address: Ipv4Addr) {
        self.address = address;
    }

    /// Turns to the next home agent in the list; after the last one, to the first. Returns whether the address differs
    /// from that of before.
    pub(crate) fn next(&mut self) -> bool {
        let before = self.address;
        self.at = (self.at + 1) % self.all.len();
        self.address = self.in_use().address;
        self.address != before
    }

    /// Uses a home agent that was heard on the link and is in the list. If no home agent is known yet, one in the home
    /// network is used too. Returns whether it is used from now on.
    pub(crate) fn select(&mut self, heard: Ipv4Addr) -> bool {
        let known = self.all.iter().position(|other| other.address == heard);
        match known {
            Some(at) => self.at = at,
            None if self.is_unknown() && self.home.link.contains(heard) => {}
            None => return false,
        }
        self.address = heard;
        true
    }
}
