//! The security associations of the roles of Mobile IP: each is in two roles, which must agree.

use super::{CORRESPONDENT, FOREIGN_AGENT, HOME_AGENT, MOBILE_NODE, Placed, address, addresses, placed};
use crate::file::Scenario;
use crate::plan::HostPlan;
use ::mobile_ip::config::{Peer, TrustedHomeAgent};
use roles::RoleConfig;
use std::collections::{BTreeMap, BTreeSet};
use wire::Ipv4Addr;

/// The maximum number of addresses in a message.
const MOST_NAMED: usize = 12;

/// A kind of roles, and the address by which other roles know one of them.
type Name = (&'static str, Ipv4Addr);

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

    /// Returns the roles of both ends: of this one, and of the peer.
    fn roles(&self) -> [Name; 2] {
        [(self.at.role.kind(), self.own), (self.of, self.peer.address)]
    }

    /// Returns whether `other` is in the same list of the same role, with the same peer.
    fn is_beside(&self, other: &Self) -> bool {
        let list = |end: &Self| (end.at.name, end.at.index, end.key, end.peer.address);
        list(self) == list(other)
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

/// Checks that each correspondent of a home agent is a host of the scenario: the key has no other use. For the other peers, [`warnings`]
/// has this case: an agent may know more peers than there are, and a scenario may show what a mobile node does if one does not answer.
pub(super) fn check(hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let known: BTreeSet<Ipv4Addr> = addresses(hosts).collect();
    let all = ends(hosts);
    let unknown = all.iter().find(|end| end.of == CORRESPONDENT && !known.contains(&end.peer.address));
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
    let mut roles = roles.filter_map(|at| Some(address(at.role)?.to_string()));
    let mut known: Vec<String> = roles.by_ref().take(MOST_NAMED).collect();
    let others = roles.count();
    if others > 0 {
        known.push(format!("and {others} more"));
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("those with the role `{kind}` have: {known}")
}

/// Returns a warning for each association whose two ends do not agree. It is no error: a scenario may show that a message with a
/// wrong key is refused.
pub(super) fn warnings(scenario: &Scenario, hosts: &[HostPlan]) -> Vec<(String, String)> {
    let all = ends(hosts);
    // A scenario may have thousands of roles and associations, so they are found by address.
    let mut of_roles: BTreeMap<[Name; 2], Vec<&End<'_>>> = BTreeMap::new();
    for end in &all {
        of_roles.entry(end.roles()).or_default().push(end);
    }
    let mut roles: BTreeMap<Name, Placed<'_>> = BTreeMap::new();
    for (at, own) in placed(hosts).filter_map(|at| Some((at, address(at.role)?))) {
        roles.entry((at.role.kind(), own)).or_insert(at);
    }
    // The programs of a host may be another implementation of a role.
    let with_programs = hosts.iter().filter(|host| !host.programs.is_empty());
    let with_programs: BTreeSet<Ipv4Addr> =
        with_programs.flat_map(|host| host.config.all_addresses()).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut pairs: BTreeSet<[(&str, usize, &str); 2]> = BTreeSet::new();
    for end in &all {
        let [own, peer] = end.roles();
        let Some(role) = roles.get(&peer) else {
            if !end.is_spare() && !end.is_broadcast() && !with_programs.contains(&peer.1) {
                let with_role = with_role(hosts, end.of);
                found.push((
                    end.path("address"),
                    format!("no role `{}` has the address {}; {with_role}", peer.0, peer.1),
                ));
            }
            continue;
        };
        let others: &[&End<'_>] = of_roles.get(&[peer, own]).map_or(&[], Vec::as_slice);
        let Some(other) = others.first() else {
            found.extend(missing(scenario, end, role));
            continue;
        };
        let mut pair = [end, other].map(|end| (end.at.name, end.at.index, end.key));
        pair.sort_unstable();
        if pairs.insert(pair) {
            let beside = of_roles.get(&[own, peer]).into_iter().flatten().copied();
            let own: Vec<&End<'_>> = beside.filter(|other| end.is_beside(other)).collect();
            found.extend(difference(scenario, [&own, others]));
        }
    }
    found
}

/// Returns a warning about an association that the peer's role does not have.
fn missing(scenario: &Scenario, end: &End<'_>, peer: &Placed<'_>) -> Option<(String, String)> {
    let key = match (end.of, end.at.role.kind()) {
        (FOREIGN_AGENT | HOME_AGENT, MOBILE_NODE) => "mobile_nodes",
        (HOME_AGENT | MOBILE_NODE, FOREIGN_AGENT) => "foreign_agents",
        (HOME_AGENT, _) => "correspondents",
        (MOBILE_NODE, _) => "home_agent",
        _ => "home_agents",
    };
    // A mobile node need not use each agent that knows it.
    if [key, end.key] == ["home_agent", "mobile_nodes"] {
        return None;
    }
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

/// Returns a warning if one of two roles does not know the association with which the other one signs. `one` and `two`: the associations
/// of each role with the other one. The warning is at a role that has several, because their order counts.
fn difference(scenario: &Scenario, [one, two]: [&[&End<'_>]; 2]) -> Option<(String, String)> {
    let is_in_file = one.first().is_some_and(|end| end.at.has(scenario, end.key));
    let is_several = |list: &[&End<'_>]| list.len() > 1;
    let of_one = unknown(one, two).map(|found| (found, is_several(one) || (is_in_file && !is_several(two))));
    let ((signed, known, key), is_at_sender) = of_one.or_else(|| {
        let found = unknown(two, one)?;
        Some((found, is_several(two) || !(is_in_file || is_several(one))))
    })?;
    let (here, there) = if is_at_sender { (signed, known) } else { (known, signed) };
    let allowed = match key {
        "spi" => format!(": {}", there.peer.spi),
        "algorithm" => format!(": {}", there.peer.algorithm.name()),
        "replay" => format!(": {}", there.peer.replay.name()),
        _ => String::new(),
    };
    let is_order = is_several(one) || is_several(two);
    let why =
        if is_order { ": of several associations with one peer, a role signs with the first" } else { "" };
    // A message about a secret key has no text in quotation marks.
    let other = there.at.path(there.key);
    Some((
        here.path(key),
        format!("is not that of the other end, {other}{allowed}; messages between both are refused{why}"),
    ))
}

/// Returns the association with which a role signs, if the role with the associations `to` does not know it. With the association that
/// this role has in its place, and the key in which both differ.
fn unknown<'e, 'a>(
    from: &[&'e End<'a>],
    to: &[&'e End<'a>],
) -> Option<(&'e End<'a>, &'e End<'a>, &'static str)> {
    let signed: &'e End<'a> = from.first()?;
    let tried = match (signed.at.role.kind(), signed.of) {
        // Both sign only answers, with the association of the message.
        (HOME_AGENT, MOBILE_NODE) | (CORRESPONDENT, HOME_AGENT) => return None,
        // A mobile node checks the replies of a foreign agent with the association with which it signs.
        (FOREIGN_AGENT, MOBILE_NODE) => to.get(..1)?,
        _ => to,
    };
    let known = tried.iter().find(|known| known.peer.spi == signed.peer.spi).or(tried.first())?;
    Some((signed, known, different_key(signed, known)?))
}

/// Returns the first key in which two ends differ; `None` if they agree.
fn different_key(signed: &End<'_>, known: &End<'_>) -> Option<&'static str> {
    // The Identification protects requests to the home agent and messages to a correspondent.
    let kinds = [signed.at.role.kind(), signed.of];
    let has_replay = kinds.contains(&HOME_AGENT) && !kinds.contains(&FOREIGN_AGENT);
    let (one, two) = (&signed.peer, &known.peer);
    let all = [
        ("spi", one.spi != two.spi),
        ("algorithm", one.algorithm != two.algorithm),
        ("key", one.key != two.key),
        ("replay", has_replay && one.replay != two.replay),
    ];
    all.into_iter().find(|(_, differs)| *differs).map(|(key, _)| key)
}
