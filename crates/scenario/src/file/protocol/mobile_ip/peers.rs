//! The security associations of the roles of Mobile IP: each is in two roles, which must agree.

use super::{CORRESPONDENT, Placed, placed};
use crate::file::Scenario;
use crate::plan::HostPlan;
use ::mobile_ip::config::{Peer, TrustedHomeAgent};
use roles::RoleConfig;
use std::collections::BTreeSet;
use wire::{InterfaceAddress, Ipv4Addr};

const HOME_AGENT: &str = "mobile-ip/home-agent";
const FOREIGN_AGENT: &str = "mobile-ip/foreign-agent";
const MOBILE_NODE: &str = "mobile-ip/mobile-node";

/// One end of a security association.
struct End<'a> {
    at: Placed<'a>,
    /// The key of the role, and the place in its list. `home_agent` of a mobile node is a table.
    key: &'static str,
    index: Option<usize>,
    /// The address of this role.
    own: Ipv4Addr,
    /// The kind of the peer's role.
    of: &'static str,
    peer: Peer,
}

impl End<'_> {
    /// Returns the path of a key of the association.
    fn path(&self, key: &str) -> String {
        let index = self.index.map_or_else(String::new, |index| format!("[{index}]"));
        format!("{}{index}.{key}", self.at.path(self.key))
    }

    /// Returns whether the peer may be absent: an agent may know more mobile nodes than there are.
    fn is_spare(&self) -> bool {
        self.key == "mobile_nodes"
    }

    /// Returns whether the peer is any home agent of the home network: its broadcast address means all of them.
    fn is_broadcast(&self) -> bool {
        matches!(self.at.role, RoleConfig::MobileIpMobileNode(node) if node.address.is_broadcast(self.peer.address))
    }

    /// Returns whether `other` is the other end of this association, or of another one with the same peer.
    fn is_with(&self, other: &Self) -> bool {
        other.at.role.kind() == self.of
            && other.own == self.peer.address
            && other.of == self.at.role.kind()
            && other.peer.address == self.own
    }
}

/// Returns all ends of associations, in the order of the roles.
fn ends(hosts: &[HostPlan]) -> Vec<End<'_>> {
    let of_role = |at: Placed<'_>| match at.role {
        RoleConfig::MobileIpHomeAgent(agent) => vec![
            (agent.address.address, "mobile_nodes", MOBILE_NODE, agent.mobile_nodes.clone()),
            (agent.address.address, "foreign_agents", FOREIGN_AGENT, agent.foreign_agents.clone()),
            (agent.address.address, "correspondents", CORRESPONDENT, agent.correspondents.clone()),
        ],
        RoleConfig::MobileIpForeignAgent(agent) => vec![
            (agent.address.address, "mobile_nodes", MOBILE_NODE, agent.mobile_nodes.clone()),
            (agent.address.address, "home_agents", HOME_AGENT, agent.home_agents.clone()),
        ],
        RoleConfig::MobileIpMobileNode(node) => vec![
            (node.address.address, "home_agent", HOME_AGENT, vec![node.home_agent.clone()]),
            (node.address.address, "backup_home_agents", HOME_AGENT, node.backup_home_agents.clone()),
            (node.address.address, "foreign_agents", FOREIGN_AGENT, node.foreign_agents.clone()),
        ],
        RoleConfig::MobileIpCorrespondent(host) => {
            let agents = host.home_agents.iter().map(TrustedHomeAgent::peer).collect();
            vec![(host.address, "home_agents", HOME_AGENT, agents)]
        }
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for at in placed(hosts) {
        for (own, key, of, peers) in of_role(at) {
            let index = |index| (key != "home_agent").then_some(index);
            all.extend(peers.into_iter().enumerate().map(|(place, peer)| End {
                at,
                key,
                index: index(place),
                own,
                of,
                peer,
            }));
        }
    }
    all
}

/// Checks that each peer is a host of the scenario. For a home agent of a mobile node, [`warnings`] has this case: a scenario may show
/// what a mobile node does if one does not answer.
pub(super) fn check(hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let known: BTreeSet<Ipv4Addr> = hosts
        .iter()
        .flat_map(|host| host.config.all_addresses())
        .chain(placed(hosts).filter_map(|at| address(at.role)))
        .collect();
    let may_be_absent =
        |end: &End<'_>| end.is_spare() || (end.of == HOME_AGENT && end.at.role.kind() == MOBILE_NODE);
    let all = ends(hosts);
    let unknown = all.iter().find(|end| !may_be_absent(end) && !known.contains(&end.peer.address));
    let Some(end) = unknown else { return Ok(()) };
    let problem = format!(
        "no host of the scenario has the address {}; write that of a host; {}",
        end.peer.address,
        with_role(hosts, end.of)
    );
    Err((end.path("address"), problem))
}

/// Returns the addresses of the roles of a kind, for a message.
fn with_role(hosts: &[HostPlan], kind: &str) -> String {
    let roles = placed(hosts).filter(|at| at.role.kind() == kind);
    let known: Vec<String> = roles.filter_map(|at| Some(address(at.role)?.to_string())).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("those with the role `{kind}` have: {known}")
}

/// Returns the address by which other roles know a role of Mobile IP.
fn address(role: &RoleConfig) -> Option<Ipv4Addr> {
    match role {
        RoleConfig::MobileIpHomeAgent(agent) => Some(agent.address.address),
        RoleConfig::MobileIpForeignAgent(agent) => Some(agent.address.address),
        RoleConfig::MobileIpMobileNode(node) => Some(node.address.address),
        RoleConfig::MobileIpCorrespondent(host) => Some(host.address),
        _ => None,
    }
}

/// Returns a warning for each association whose two ends do not agree. It is no error: a scenario may show that a message with a
/// wrong key is refused.
pub(super) fn warnings(scenario: &Scenario, hosts: &[HostPlan]) -> Vec<(String, String)> {
    let all = ends(hosts);
    let mut found: Vec<(String, String)> = Vec::new();
    let mut pairs: BTreeSet<[(&str, usize, &str); 2]> = BTreeSet::new();
    // The programs of a host may be another implementation of a role.
    let has_programs = |address: Ipv4Addr| {
        let mut with = hosts.iter().filter(|host| !host.programs.is_empty());
        with.any(|host| host.config.all_addresses().contains(&address))
    };
    for end in &all {
        let roles: Vec<Placed<'_>> = placed(hosts)
            .filter(|at| at.role.kind() == end.of && address(at.role) == Some(end.peer.address))
            .collect();
        if roles.is_empty() {
            if !end.is_spare() && !end.is_broadcast() && !has_programs(end.peer.address) {
                let problem = format!(
                    "no role `{}` has the address {}; {}",
                    end.of,
                    end.peer.address,
                    with_role(hosts, end.of)
                );
                found.push((end.path("address"), problem));
            }
            continue;
        }
        let others: Vec<&End<'_>> = all.iter().filter(|other| end.is_with(other)).collect();
        let is_same = |other: &&End<'_>| {
            (other.at.name, other.at.index, other.key) == (end.at.name, end.at.index, end.key)
                && other.peer.address == end.peer.address
        };
        let own: Vec<&End<'_>> = all.iter().filter(is_same).collect();
        let Some(other) = others.first() else {
            found.extend(missing(scenario, end, roles.first()));
            continue;
        };
        let mut pair = [end, other].map(|end| (end.at.name, end.at.index, end.key));
        pair.sort_unstable();
        if pairs.insert(pair) {
            found.extend(difference(scenario, [end, other], &own, &others));
        }
    }
    found.extend(foreign_networks(hosts));
    found
}

/// Returns a warning about an association that the peer's role does not have.
fn missing(scenario: &Scenario, end: &End<'_>, peer: Option<&Placed<'_>>) -> Option<(String, String)> {
    let key = match (end.of, end.at.role.kind()) {
        (FOREIGN_AGENT | HOME_AGENT, MOBILE_NODE) => "mobile_nodes",
        (HOME_AGENT | MOBILE_NODE, FOREIGN_AGENT) => "foreign_agents",
        (HOME_AGENT, _) => "correspondents",
        (MOBILE_NODE, _) => "home_agent",
        _ => "home_agents",
    };
    let kept = [key, end.key];
    // A mobile node need not use each agent that knows it.
    let peer = peer.filter(|_| kept != ["home_agent", "mobile_nodes"])?;
    let problem = |other: String, address: Ipv4Addr| {
        format!("there is no security association with {address}, which `{other}` has; both ends need it")
    };
    Some(if end.at.has(scenario, end.key) || !peer.has(scenario, key) {
        (
            end.path("address"),
            format!("`{}` has no security association with {}; both ends need it", peer.path(key), end.own),
        )
    } else {
        (peer.path(key), problem(end.at.path(end.key), end.own))
    })
}

/// Returns a warning if none of the associations `own` and `others` of the same two roles agrees: about the first ones.
fn difference(
    scenario: &Scenario,
    [end, other]: [&End<'_>; 2],
    own: &[&End<'_>],
    others: &[&End<'_>],
) -> Option<(String, String)> {
    // The Identification protects requests to the home agent and messages to a correspondent.
    let has_replay = [end.at.role.kind(), end.of].contains(&HOME_AGENT)
        && ![end.at.role.kind(), end.of].contains(&FOREIGN_AGENT);
    let differs = |one: &Peer, two: &Peer| {
        let all = [
            ("spi", one.spi != two.spi),
            ("algorithm", one.algorithm != two.algorithm),
            ("key", one.key != two.key),
            ("replay", has_replay && one.replay != two.replay),
        ];
        all.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
    };
    let pairs = own.iter().flat_map(|end| others.iter().map(|other| differs(&end.peer, &other.peer)));
    let key = pairs.min_by_key(Option::is_some)??;
    let (here, there) = if end.at.has(scenario, end.key) { (end, other) } else { (other, end) };
    let allowed = match key {
        "spi" => format!(": {}", there.peer.spi),
        "algorithm" => format!(": {}", there.peer.algorithm.name()),
        "replay" => format!(": {}", there.peer.replay.name()),
        _ => String::new(),
    };
    // A message about a secret key has no text in quotation marks.
    let other = there.at.path(there.key);
    Some((
        here.path(key),
        format!("is not that of the other end, {other}{allowed}; messages between both are refused"),
    ))
}

/// Returns a warning for each home agent of a correspondent whose home network is not in `networks`.
fn foreign_networks(hosts: &[HostPlan]) -> Vec<(String, String)> {
    let home_of = |address: Ipv4Addr| -> Option<InterfaceAddress> {
        placed(hosts).find_map(|at| match at.role {
            RoleConfig::MobileIpHomeAgent(agent) if agent.address.address == address => Some(agent.address),
            _ => None,
        })
    };
    let mut found = Vec::new();
    for at in placed(hosts) {
        let RoleConfig::MobileIpCorrespondent(host) = at.role else { continue };
        for (index, agent) in host.home_agents.iter().enumerate() {
            let Some(home) = home_of(agent.address).filter(|_| !agent.networks.is_empty()) else { continue };
            let is_inside =
                |net: &wire::Prefix| net.contains(home.link.address()) || home.link.contains(net.address());
            if !agent.networks.iter().any(is_inside) {
                let problem = format!(
                    "do not contain the home network {}: Binding Updates about its mobile nodes are refused",
                    home.link
                );
                found.push((format!("{}[{index}].networks", at.path("home_agents")), problem));
            }
        }
    }
    found
}
