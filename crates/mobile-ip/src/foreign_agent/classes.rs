//! The packet classes of a foreign agent. The foreign agents of one host share the node's table, so each has separate
//! classes. Otherwise, packets from a tunnel to one agent would reach the visitors of another one.

use super::reverse::PAIRS;
use crate::config::ForeignAgentConfig;
use node::Class;
use node::config::ConfigError;

/// The maximum number of foreign agents on one host (not from an RFC): the classes of frames suffice for 6.
const MOST: u8 = 6;
/// The first class of frames from visitors with reverse tunnels. Lower classes are those of other protocols, for example
/// of Cellular IP.
const FIRST_OPEN: u8 = Class::CLOSED.0 - MOST * 2 * PAIRS;
/// The first class of packets from tunnels. Lower closed classes are those of other roles, for example of a mobile node
/// with a co-located care-of address.
const FIRST_CLOSED: u8 = Class::CLOSED.0 + 16;

/// The packet classes of one foreign agent. The closed classes are divided among the foreign agents of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Classes {
    /// The first class of frames.
    open: u8,
    /// The first class of packets from tunnels.
    closed: u8,
    /// The number of classes of packets from tunnels.
    len: u8,
}

impl Classes {
    /// Returns the classes of an agent. Fails if another agent of the host has its address, or if the host has too many
    /// agents.
    pub(super) fn of(config: &ForeignAgentConfig) -> Result<Self, ConfigError> {
        let (own, all) = (config.address.address, &config.agents);
        if all.iter().filter(|address| **address == own).count() > 1 {
            let problem = format!(
                "{own} is the address of another foreign agent of this host too; each must have a separate address"
            );
            return Err(ConfigError::new("address", problem));
        }
        let count = all.len().max(1);
        let place = all.iter().position(|address| *address == own).unwrap_or_default();
        let (Ok(place), Ok(count @ ..=MOST)) = (u8::try_from(place), u8::try_from(count)) else {
            let problem = format!(
                "{own} is the address of one of {count} foreign agents of this host; allowed: at most {MOST}, because \
                 each needs separate packet classes"
            );
            return Err(ConfigError::new("address", problem));
        };
        let len = (u8::MAX - FIRST_CLOSED) / count;
        Ok(Self { open: FIRST_OPEN + place * 2 * PAIRS, closed: FIRST_CLOSED + place * len, len })
    }

    /// Returns the class of packets from tunnels whose source is not a visitor's home agent. The only route of this class
    /// drops these packets.
    pub(super) const fn of_unknown(self) -> Class {
        Class(self.closed)
    }

    /// Returns the maximum number of home agents with visitors at a time: the number of classes for home agents (not from
    /// an RFC).
    pub(super) const fn home_agents(self) -> u8 {
        self.len - 1 - PAIRS
    }

    /// Returns the classes for home agents. Each home agent with visitors has a separate class, so that packets from its
    /// tunnels find routes to its mobile nodes only.
    pub(super) fn of_home_agents(self) -> impl Iterator<Item = Class> {
        (1..=self.home_agents()).map(move |number| Class(self.closed + number))
    }

    /// Returns the class of frames from visitors with the pair of classes `pair`.
    pub(super) const fn frames(self, pair: u8) -> Class {
        Class(self.open + pair)
    }

    /// Returns the class of the routes by which the sources of these frames are checked.
    pub(super) const fn checks(self, pair: u8) -> Class {
        Class(self.open + PAIRS + pair)
    }

    /// Returns the class of packets that these visitors put into a tunnel to this agent.
    pub(super) const fn of_opened(self, pair: u8) -> Class {
        Class(self.closed + self.len - PAIRS + pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the configurations of this number of foreign agents of one host.
    fn agents(count: u8) -> Vec<ForeignAgentConfig> {
        let all: Vec<_> = (1..=count).map(|number| [10, number, 0, 1].into()).collect();
        let of = |address: &std::net::Ipv4Addr| {
            let text = format!("address = \"{address}/24\"\ninterface = \"visited\"");
            ForeignAgentConfig { agents: all.clone(), ..toml::from_str(&text).unwrap() }
        };
        all.iter().map(of).collect()
    }

    #[test]
    fn no_two_agents_of_a_host_have_a_class_in_common() {
        for count in 1..=MOST {
            let mut all = BTreeSet::new();
            for config in agents(count) {
                let classes = Classes::of(&config).unwrap();
                let closed = classes.of_home_agents().chain([classes.of_unknown()]);
                let closed: Vec<Class> =
                    closed.chain((0..PAIRS).map(|pair| classes.of_opened(pair))).collect();
                assert!(closed.iter().all(|class| class.is_closed() && class.0 >= FIRST_CLOSED), "{count}");
                let open = (0..PAIRS).flat_map(|pair| [classes.frames(pair), classes.checks(pair)]);
                let open: Vec<Class> = open.collect();
                assert!(open.iter().all(|class| !class.is_closed() && class.0 >= 32), "{count}");
                assert!(closed.into_iter().chain(open).all(|class| all.insert(class)), "{count}");
                assert!(classes.home_agents() >= 9, "{count}");
            }
        }
    }

    #[test]
    fn too_many_agents_and_agents_with_one_address_are_refused() {
        let refused = |config: &ForeignAgentConfig| Classes::of(config).unwrap_err().to_string();
        let seven = agents(7);
        assert!(refused(&seven[0]).contains("one of 7 foreign agents of this host; allowed: at most 6"));
        let mut twice = agents(2).remove(0);
        twice.agents[1] = twice.agents[0];
        assert!(
            refused(&twice).contains("10.1.0.1 is the address of another foreign agent of this host too")
        );
    }
}
