//! Keys of Mobile IP that need a counterpart in another role.

use super::{Placed, placed};
use crate::file::Scenario;
use crate::file::layout::Layout;
use crate::plan::HostPlan;
use ::mobile_ip::config::CareOf;
use roles::RoleConfig;
use std::collections::BTreeSet;
use toml::Value;

/// A key that is needed in a role of each side: the kind of role, the name of the key, the test whether it is set, and the problem if
/// no role of the scenario has it.
struct Side {
    kind: &'static str,
    key: &'static str,
    is_set: fn(&RoleConfig) -> bool,
    missing: &'static str,
}

const SMOOTH: &[Side] = &[
    Side {
        kind: "mobile-ip/mobile-node",
        key: "smooth_handoff",
        is_set: |role| matches!(role, RoleConfig::MobileIpMobileNode(node) if node.smooth_handoff),
        missing: "no mobile node asks for smooth handoffs",
    },
    Side {
        kind: "mobile-ip/foreign-agent",
        key: "smooth_handoff",
        is_set: |role| matches!(role, RoleConfig::MobileIpForeignAgent(agent) if agent.smooth_handoff),
        missing: "no foreign agent offers smooth handoffs",
    },
];

const DISTRIBUTED: &[Side] = &[
    Side {
        kind: "mobile-ip/mobile-node",
        key: "distributed_keys",
        is_set: |role| matches!(role, RoleConfig::MobileIpMobileNode(node) if node.distributed_keys),
        missing: "no mobile node uses distributed keys",
    },
    Side {
        kind: "mobile-ip/foreign-agent",
        key: "distributed_keys",
        is_set: |role| matches!(role, RoleConfig::MobileIpForeignAgent(agent) if agent.distributed_keys),
        missing: "no foreign agent takes distributed keys",
    },
    Side {
        kind: "mobile-ip/home-agent",
        key: "distribute_keys",
        is_set: |role| matches!(role, RoleConfig::MobileIpHomeAgent(agent) if agent.distribute_keys),
        missing: "no home agent distributes keys",
    },
];

const SPECIAL: &[Side] = &[
    Side {
        kind: "mobile-ip/foreign-agent",
        key: "special_tunnels",
        is_set: |role| matches!(role, RoleConfig::MobileIpForeignAgent(agent) if agent.special_tunnels),
        missing: "no foreign agent sends packets in special tunnels; write `special_tunnels = true` in the role of a foreign agent, or remove this key",
    },
    Side {
        kind: "mobile-ip/home-agent",
        key: "special_tunnels",
        is_set: |role| matches!(role, RoleConfig::MobileIpHomeAgent(agent) if agent.special_tunnels),
        missing: "no home agent opens special tunnels; write `special_tunnels = true` in the role of a home agent, or remove this key",
    },
];

/// A key without its counterpart: the path of the key, and the problem.
enum Unmatched {
    /// A role has a key without an effect.
    Refused((String, String)),
    /// A role says `false`, and the table of the scenario `true`. A grid may do so, to compare both.
    Warned((String, String)),
}

/// Checks that the keys about smooth handoffs have their counterparts.
pub(super) fn check(scenario: &Scenario, hosts: &[HostPlan]) -> Result<(), (String, String)> {
    match unmatched_of_smooth(scenario, hosts) {
        Some(Unmatched::Refused(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Returns a warning for each key that has no effect because of another role, or because of another key of its role.
pub(super) fn warnings(scenario: &Scenario, layout: &Layout, hosts: &[HostPlan]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(Unmatched::Warned(warning)) = unmatched_of_smooth(scenario, hosts) {
        found.push(warning);
    }
    // It is no error: the packet then enters a second tunnel, and a grid may compare both.
    if let Some(Unmatched::Refused(warning) | Unmatched::Warned(warning)) =
        unmatched(scenario, hosts, SPECIAL, "special_tunnels")
    {
        found.push(warning);
    }
    found.extend(within_a_role(scenario, hosts));
    found.extend(direct_tunnels_of_agents(layout));
    found
}

/// Without smooth handoffs, distributed keys are not checked: the error or warning about the former says enough.
fn unmatched_of_smooth(scenario: &Scenario, hosts: &[HostPlan]) -> Option<Unmatched> {
    let has = |kind: &str| placed(hosts).any(|Placed { role, .. }| role.kind() == kind);
    // The table of the scenario may ask for smooth handoffs although there is no foreign agent, or no mobile node.
    if !has("mobile-ip/foreign-agent") || !has("mobile-ip/mobile-node") {
        return None;
    }
    let smooth = unmatched(scenario, hosts, SMOOTH, "smooth_handoff");
    smooth.or_else(|| unmatched(scenario, hosts, DISTRIBUTED, "distributed_keys"))
}

/// Returns a key of one of the sides if another side has no role with its key; `None` if all sides have one, or none. `shared`: the
/// key of the table of the scenario from which roles take the keys that they do not have.
fn unmatched(scenario: &Scenario, hosts: &[HostPlan], sides: &[Side], shared: &str) -> Option<Unmatched> {
    let set: Vec<_> = sides
        .iter()
        .flat_map(|side| placed(hosts).filter(|at| (side.is_set)(at.role)).map(move |at| (at, side.key)))
        .collect();
    let is_set = |side: &Side| placed(hosts).any(|at| (side.is_set)(at.role));
    let missing = sides.iter().find(|side| !is_set(side)).filter(|_| !set.is_empty())?;
    let mut others = placed(hosts).filter(|at| at.role.kind() == missing.kind);
    let denied = others.find(|at| at.has(scenario, missing.key)).map(|at| at.path(missing.key));
    let own = set.iter().find(|(at, key)| at.has(scenario, key)).map(|(at, key)| at.path(key));
    Some(match (own, denied) {
        (None, Some(denied)) => Unmatched::Warned((
            denied,
            format!(
                "{}, so `mobile-ip.{shared} = true` has no effect; remove one of both keys",
                missing.missing
            ),
        )),
        (own, denied) => {
            let denied = denied.map_or_else(String::new, |path| format!(": `{path}` is false"));
            let path = own.unwrap_or_else(|| format!("mobile-ip.{shared}"));
            Unmatched::Refused((path, format!("has no effect: {}{denied}", missing.missing)))
        }
    })
}

/// Returns a warning for each key that has no effect with the other keys of its role. If the role takes it from the table of the
/// scenario, the warning is about the key of this table.
fn within_a_role(scenario: &Scenario, hosts: &[HostPlan]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for at in placed(hosts) {
        let Some(error) = at.role.without_effect() else { continue };
        let path =
            if at.has(scenario, error.key) { at.path(error.key) } else { format!("mobile-ip.{}", error.key) };
        if known.insert(path.clone()) {
            found.push((path, error.problem));
        }
    }
    found
}

/// Returns a warning for each mobile node that would open tunnels itself, but has the care-of address of a foreign agent. It is no
/// error: a grid may vary `care_of`.
fn direct_tunnels_of_agents(layout: &Layout) -> Vec<(String, String)> {
    let problem = "has no effect with `care_of = \"agent\"`: the foreign agent opens all tunnels; write `direct_tunnels = true` in its role, or remove this key";
    let nodes = super::mobile_nodes(layout).filter(|(_, role)| {
        let source = role.get("care_of").and_then(Value::as_str);
        role.get("direct_tunnels").and_then(Value::as_bool) == Some(true)
            && source.is_none_or(|source| source == CareOf::Agent.name())
    });
    nodes.map(|(path, _)| (format!("{path}.direct_tunnels"), problem.to_owned())).collect()
}
