//! What correspondents need of the roles around them: home agents inform them, and the other end of their tunnels opens these.

use super::{CORRESPONDENT, MOBILE_NODE, address, addresses, placed};
use crate::plan::HostPlan;
use ::mobile_ip::config::{CareOf, HomeAgentConfig, MobileNodeConfig};
use roles::RoleConfig;
use std::collections::{BTreeMap, BTreeSet};
use wire::Ipv4Addr;

/// Checks that no correspondent that a home agent informs is only a mobile node.
pub(super) fn check(hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let is_only_node = |host: &&HostPlan| {
        let has = |kind: &str| host.config.roles.iter().any(|role| role.kind() == kind);
        has(MOBILE_NODE) && !has(CORRESPONDENT)
    };
    let mut only_nodes: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
    for host in hosts.iter().filter(is_only_node) {
        only_nodes
            .extend(host.config.all_addresses().into_iter().map(|own| (own, host.config.name.as_str())));
    }
    for at in placed(hosts) {
        let RoleConfig::MobileIpHomeAgent(agent) = at.role else { continue };
        let mut peers = agent.correspondents.iter().enumerate();
        let found = peers.find_map(|(index, peer)| Some((index, only_nodes.get(&peer.address)?)));
        if let Some((index, name)) = found {
            let problem = format!(
                "is the address of the mobile node `{name}`, which has no role `{CORRESPONDENT}`; write that of a host to which packets of mobile nodes go"
            );
            return Err((format!("{}[{index}].address", at.path("correspondents")), problem));
        }
    }
    Ok(())
}

/// Returns a warning for each key by which messages or packets for a correspondent or of one are dropped. It is no error: a grid may
/// vary the key.
pub(super) fn warnings(hosts: &[HostPlan]) -> Vec<(String, String)> {
    let agents = home_agents(hosts);
    let mut found = foreign_networks(hosts, &agents);
    found.extend(closed_tunnels(hosts, &agents));
    found
}

/// Returns the home agents of the scenario by their addresses.
fn home_agents(hosts: &[HostPlan]) -> BTreeMap<Ipv4Addr, &HomeAgentConfig> {
    let agents = placed(hosts).filter_map(|at| match at.role {
        RoleConfig::MobileIpHomeAgent(agent) => Some((agent.address.address, agent)),
        _ => None,
    });
    agents.collect()
}

/// Returns a warning for each home agent of a correspondent with mobile nodes that are not in `networks`. A home agent may know
/// more mobile nodes than there are. A correspondent gets no Binding Update about itself.
fn foreign_networks(
    hosts: &[HostPlan],
    agents: &BTreeMap<Ipv4Addr, &HomeAgentConfig>,
) -> Vec<(String, String)> {
    let known: BTreeSet<Ipv4Addr> = addresses(hosts).collect();
    let mut found = Vec::new();
    for at in placed(hosts) {
        let RoleConfig::MobileIpCorrespondent(host) = at.role else { continue };
        for (index, trusted) in host.home_agents.iter().enumerate() {
            let agent = agents.get(&trusted.address).filter(|_| !trusted.networks.is_empty());
            let nodes = agent.into_iter().flat_map(|agent| &agent.mobile_nodes).map(|node| node.address);
            let is_refused = |node: &Ipv4Addr| {
                let is_inside = trusted.networks.iter().any(|network| network.contains(*node));
                !is_inside && *node != host.address && known.contains(node)
            };
            let mut refused = nodes.filter(is_refused);
            let Some(node) = refused.next() else { continue };
            let others = refused.filter(|other| *other != node).collect::<BTreeSet<_>>().len();
            let more = if others == 0 { String::new() } else { format!(" and of {others} more") };
            let problem = format!(
                "do not contain {node}, the home address of a mobile node: Binding Updates about it{more} are refused"
            );
            found.push((format!("{}[{index}].networks", at.path("home_agents")), problem));
        }
    }
    found
}

/// Returns a warning for each role that would not open the tunnels of correspondents.
fn closed_tunnels(
    hosts: &[HostPlan],
    agents: &BTreeMap<Ipv4Addr, &HomeAgentConfig>,
) -> Vec<(String, String)> {
    let correspondents: BTreeSet<Ipv4Addr> = placed(hosts)
        .filter(|at| at.role.kind() == CORRESPONDENT)
        .filter_map(|at| address(at.role))
        .collect();
    // A home agent does not inform a host about itself.
    let informs = |agent: &HomeAgentConfig, node: Ipv4Addr| {
        let mut informed = agent.correspondents.iter().map(|peer| peer.address);
        informed.any(|peer| peer != node && correspondents.contains(&peer))
    };
    let is_concerned = |node: &MobileNodeConfig| {
        let mut of = [&node.home_agent].into_iter().chain(&node.backup_home_agents);
        // The broadcast address of the home network means all its home agents.
        of.any(|peer| {
            if node.address.is_broadcast(peer.address) {
                return agents.values().any(|agent| informs(agent, node.address.address));
            }
            agents.get(&peer.address).is_some_and(|agent| informs(agent, node.address.address))
        })
    };
    let has_visitors = placed(hosts).any(|at| {
        matches!(at.role, RoleConfig::MobileIpMobileNode(node) if node.care_of == CareOf::Agent && is_concerned(node))
    });
    let of_agent = "is false: packets that correspondents tunnel to a visitor are dropped, and private bindings are denied; write true, or remove this key";
    let of_node = "is false: packets that correspondents tunnel to the care-of address are dropped; write true, or remove this key";
    let problem = |role: &RoleConfig| match role {
        RoleConfig::MobileIpForeignAgent(agent) if has_visitors && !agent.direct_tunnels => Some(of_agent),
        RoleConfig::MobileIpMobileNode(node) => {
            let is_closed = node.care_of != CareOf::Agent && !node.direct_tunnels && !node.private_bindings;
            (is_closed && is_concerned(node)).then_some(of_node)
        }
        _ => None,
    };
    placed(hosts).filter_map(|at| Some((at.path("direct_tunnels"), problem(at.role)?.to_owned()))).collect()
}
