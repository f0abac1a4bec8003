//! Completes the roles of Mobile IP from `[mobile-ip]` and the layout of the scenario.

mod correspondents;
mod counterparts;
mod peers;

use super::{Around, default, hosts_of};
use crate::file::Scenario;
use crate::file::layout::Layout;
use crate::file::networks::AIR;
use crate::plan::HostPlan;
use ::mobile_ip::config::{Buffering, CareOf, KeepWhen, Replay};
use ::mobile_ip::message::{Algorithm, Numbers};
use auth::{Key, hmac_sha256};
use roles::RoleConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};
use trace::hex;
use wire::{InterfaceAddress, Ipv4Addr};

const HOME_AGENT: &str = "mobile-ip/home-agent";
const FOREIGN_AGENT: &str = "mobile-ip/foreign-agent";
const MOBILE_NODE: &str = "mobile-ip/mobile-node";
const CORRESPONDENT: &str = "mobile-ip/correspondent";
/// The name of [`KeepWhen::LinkDown`] in a file.
const LINK_DOWN: &str = "link-down";

/// The mobility security association of every mobile node of the scenario with its home agent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MobileIp {
    /// The security parameter index [default: 256]. The values from 0 to 255 are reserved.
    #[serde(default = "first_spi")]
    #[schemars(range(min = 256))]
    pub(crate) spi: u32,
    /// The algorithm of the authenticators [default: hmac-sha256].
    #[serde(default)]
    pub(crate) algorithm: Algorithm,
    /// How requests are protected against replay: by timestamps or by nonces [default: timestamps].
    #[serde(default)]
    pub(crate) replay: Replay,
    /// The key: 16 bytes or more, in hexadecimal. The key of each home agent and correspondent follows from it and both addresses.
    #[serde(deserialize_with = "node::config::text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub(crate) key: Key,
    /// Whether all foreign agents offer smooth handoffs, and all mobile nodes ask for them [default: false]. Each mobile node
    /// then has a security association with each foreign agent, whose key follows from `key`.
    #[serde(default)]
    pub(crate) smooth_handoff: bool,
    /// Whether home agents distribute the keys of smooth handoffs [default: false]. Each home agent then has a security
    /// association with each foreign agent, whose key follows from `key`, and mobile nodes have none with foreign agents. It
    /// needs `smooth_handoff`.
    #[serde(default)]
    pub(crate) distributed_keys: bool,
    /// Which packets all foreign agents keep for their visitors: the table `buffer` of a `mobile-ip/foreign-agent` [default: none
    /// are kept]. It needs `smooth_handoff`, unless `when` is `link-down`.
    #[serde(default)]
    #[schemars(with = "Option<Buffering>")]
    pub(crate) buffer: Option<Table>,
}

const fn first_spi() -> u32 {
    256
}

impl MobileIp {
    /// Checks the security association as the role of an agent does. An error has the name of the key, and the
    /// problem.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        if self.distributed_keys && !self.smooth_handoff {
            let problem = "needs `smooth_handoff = true`: the keys are used for nothing else";
            return Err(("distributed_keys".to_owned(), problem.to_owned()));
        }
        if self.distributed_keys && self.replay == Replay::Nonces {
            let problem =
                "needs `replay = \"timestamps\"`: a previous agent compares Identifications as times";
            return Err(("distributed_keys".to_owned(), problem.to_owned()));
        }
        if let Some(buffer) = &self.buffer {
            let buffer: Buffering = serde_path_to_error::deserialize(Value::Table(buffer.clone()))
                .map_err(|error| below("buffer", error.path(), error.inner().message()))?;
            buffer.check().map_err(|error| (error.key.to_owned(), error.problem))?;
            if buffer.needs_handoffs() && !self.smooth_handoff {
                let problem = "needs `smooth_handoff = true`, or `when = \"link-down\"`: otherwise kept packets are never sent";
                return Err(("buffer".to_owned(), problem.to_owned()));
            }
        }
        ::mobile_ip::config::check_association(self.spi, &self.key)
            .map_err(|(key, problem)| (key.to_owned(), problem))
    }
}

/// Fills in a mobility agent. It serves the network of its host's cell.
pub(super) fn agent(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    default(role, "address", interface_address(around.layout, around.host)?);
    default(role, "interface", AIR);
    Ok(())
}

/// Fills in a foreign agent: with smooth handoffs, it has an association with each mobile node, or with each home agent that
/// distributes keys.
pub(super) fn foreign_agent(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    agent(around, role)?;
    // It delivers packets of correspondents if the scenario has any.
    if hosts_of(around.scenario, CORRESPONDENT).next().is_some() {
        default(role, "direct_tunnels", true);
    }
    let Some(shared) = around.scenario.mobile_ip.as_ref() else { return Ok(()) };
    if shared.smooth_handoff {
        smooth_agent(around, shared, role)?;
    }
    // Without smooth handoffs, only packets for a link that is down are ever sent.
    let may_keep =
        |buffer: &&Table| is_smooth(role) || buffer.get("when").and_then(Value::as_str) == Some(LINK_DOWN);
    if let Some(buffer) = shared.buffer.as_ref().filter(may_keep) {
        default(role, "buffer", buffer.clone());
    }
    Ok(())
}

/// Returns whether a role says `smooth_handoff = true`.
fn is_smooth(role: &Table) -> bool {
    role.get("smooth_handoff").and_then(Value::as_bool) == Some(true)
}

/// Fills in the keys of smooth handoffs of a foreign agent.
fn smooth_agent(around: &Around<'_>, shared: &MobileIp, role: &mut Table) -> Result<(), String> {
    let agent = address_of(around.layout, around.host)?;
    default(role, "smooth_handoff", true);
    // The peers have an association with this agent, even if it says `smooth_handoff = false`.
    if shared.distributed_keys {
        let peers = distributing(around, shared, HOME_AGENT)?;
        if !peers.is_empty() {
            if is_smooth(role) {
                default(role, "distributed_keys", true);
            }
            default(role, "home_agents", peers);
        }
    } else {
        let mut peers = Vec::new();
        for node in hosts_of(around.scenario, MOBILE_NODE) {
            let node = address_of(around.layout, node)?;
            peers.push(visitor_association(shared, &node, &node, &agent));
        }
        default(role, "mobile_nodes", peers);
    }
    Ok(())
}

/// Checks the roles of all hosts together: values that must agree, and keys that have no effect because no other host has the
/// counterpart. An error has the path of the key, and the problem.
pub(super) fn check_together(scenario: &Scenario, hosts: &[HostPlan]) -> Result<(), (String, String)> {
    check_numbers(hosts)?;
    peers::check(hosts)?;
    correspondents::check(hosts)?;
    check_radios(hosts)?;
    counterparts::check(scenario, hosts)?;
    check_keeping(scenario, hosts)
}

/// Checks that the keys about kept packets have their counterparts. For a grid over all values of `when`, [`warnings`] has the case
/// that a mobile node asks agents that keep packets without a request.
fn check_keeping(scenario: &Scenario, hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let asks = |role: &RoleConfig| matches!(role, RoleConfig::MobileIpMobileNode(node) if node.ask_to_keep);
    let names =
        |role: &RoleConfig| matches!(role, RoleConfig::MobileIpMobileNode(node) if node.named_packets > 0);
    let when = |role: &RoleConfig| match role {
        RoleConfig::MobileIpForeignAgent(agent) => agent.buffer.as_ref().map(|buffer| buffer.when),
        _ => None,
    };
    let refusal = |is_set: &dyn Fn(&RoleConfig) -> bool, key: &str, problem: &str| {
        let (path, _) = roles(hosts).find(|(_, role)| is_set(role))?;
        Some((format!("{path}.{key}"), format!("has no effect: {problem}")))
    };
    if !roles(hosts).any(|(_, role)| when(role).is_some()) {
        let asked = "no foreign agent keeps packets on request: none has `buffer = { when = \"request\" }`";
        let named =
            format!("no foreign agent keeps packets; {}, or remove this key", buffer_advice(scenario));
        let found = refusal(&asks, "ask_to_keep", asked);
        return found.or_else(|| refusal(&names, "named_packets", &named)).map_or(Ok(()), Err);
    }
    if roles(hosts).any(|(_, role)| asks(role)) {
        return Ok(());
    }
    let problem = "no mobile node asks to keep packets; write `ask_to_keep = true` in the role of a mobile node, or `always` or `link-down` here";
    match refusal(&|role| when(role) == Some(KeepWhen::Request), "buffer.when", problem) {
        // All agents have the table of the scenario, unless a role has its own.
        Some((_, problem)) if has_shared_request(scenario) => {
            Err(("mobile-ip.buffer.when".to_owned(), problem))
        }
        found => found.map_or(Ok(()), Err),
    }
}

/// Returns where a table `buffer` is accepted: that of the scenario needs smooth handoffs in the same table.
fn buffer_advice(scenario: &Scenario) -> String {
    let is_shared = scenario.mobile_ip.as_ref().is_some_and(|shared| shared.smooth_handoff);
    let place = if is_shared { "the table [mobile-ip]" } else { "the role of a foreign agent" };
    format!("write `buffer = {{ packets = 16 }}` in {place}")
}

/// Returns whether the table `[mobile-ip]` says that foreign agents keep packets on request.
fn has_shared_request(scenario: &Scenario) -> bool {
    let buffer = scenario.mobile_ip.as_ref().and_then(|shared| shared.buffer.as_ref());
    buffer.and_then(|buffer| buffer.get("when")?.as_str()) == Some("request")
}

/// Checks that each radio of a mobile node with several interfaces has a role that tunes it.
fn check_radios(hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let all = hosts.iter().flat_map(|host| placed(std::slice::from_ref(host)).map(move |at| (host, at)));
    for (host, at) in all {
        let RoleConfig::MobileIpMobileNode(node) = at.role else { continue };
        let is_tuned = |name: &str| {
            let is_fixed = host.ports.iter().any(|port| {
                port.name == name && port.radio.as_ref().is_none_or(|radio| radio.cell.is_some())
            });
            is_fixed
                || host
                    .config
                    .roles
                    .iter()
                    .any(|role| matches!(role, RoleConfig::Roam(roam) if roam.interface == name))
        };
        let further = node.further_interfaces.iter().enumerate();
        let all =
            further.map(|(index, further)| (format!("further_interfaces[{index}].name"), &further.name));
        let first = (!node.further_interfaces.is_empty()).then(|| ("interface".to_owned(), &node.interface));
        if let Some((key, name)) = all.chain(first).find(|(_, name)| !is_tuned(name)) {
            let problem = format!(
                "no role tunes the radio `{name}`, so it is in no cell; add a role `apps/roam` with `interface = \"{name}\"`"
            );
            return Err((at.path(&key), problem));
        }
    }
    Ok(())
}

/// Returns a warning for each key and each security association that cannot have its effect.
pub(super) fn warnings(scenario: &Scenario, layout: &Layout, hosts: &[HostPlan]) -> Vec<(String, String)> {
    let mut found = smooth_with_nonces(scenario, layout);
    found.extend(smooth_and_co_located(scenario, layout));
    found.extend(unneeded_requests(scenario, layout));
    found.extend(private_without_correspondents(layout));
    found.extend(counterparts::warnings(scenario, layout, hosts));
    found.extend(peers::warnings(scenario, hosts));
    found.extend(correspondents::warnings(hosts));
    found
}

/// Returns a warning for each mobile node with private bindings, if no home agent informs correspondents. It is no error:
/// a scenario may show that agents without route optimization deny such requests.
fn private_without_correspondents(layout: &Layout) -> Vec<(String, String)> {
    let mut all = layout.hosts().flat_map(|(_, host)| &host.role);
    let informs = |role: &Table| {
        role.get("kind").and_then(Value::as_str) == Some(CORRESPONDENT) || role.contains_key("correspondents")
    };
    if all.any(informs) {
        return Vec::new();
    }
    let is_set = |role: &Table| role.get("private_bindings").and_then(Value::as_bool) == Some(true);
    let problem = format!(
        "agents deny each registration (codes 70 and 134): no home agent informs correspondents; add a host with the role `{CORRESPONDENT}`, or remove this key"
    );
    let asking = mobile_nodes(layout).filter(|(_, role)| is_set(role));
    asking.map(|(path, _)| (format!("{path}.private_bindings"), problem.clone())).collect()
}

/// Returns a warning for each place that asks for smooth handoffs of mobile nodes whose requests have nonces. It is no error: a
/// foreign agent then still knows the mobile node by its association, and a grid may vary one of both keys.
fn smooth_with_nonces(scenario: &Scenario, layout: &Layout) -> Vec<(String, String)> {
    let shared = scenario.mobile_ip.as_ref();
    // The place that asks for smooth handoffs of this role, if its requests have nonces.
    let asks = |name: &str, at: usize, role: &Table| {
        let is_node = role.get("kind").and_then(Value::as_str) == Some(MOBILE_NODE);
        // A role with its own table of the home agent takes nothing from the table of the scenario.
        let replay = match role.get("home_agent") {
            Some(own) => own.get("replay").and_then(Value::as_str),
            None => shared.map(|shared| shared.replay.name()),
        };
        let own = role.get("smooth_handoff").and_then(Value::as_bool);
        let is_smooth = own.unwrap_or_else(|| shared.is_some_and(|shared| shared.smooth_handoff));
        let place = match own {
            Some(_) => format!("host.{name}.role[{at}].smooth_handoff"),
            None => "mobile-ip.smooth_handoff".to_owned(),
        };
        (is_node && is_smooth && replay == Some(Replay::Nonces.name())).then_some(place)
    };
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, host) in layout.hosts() {
        for place in host.role.iter().enumerate().filter_map(|(at, role)| asks(name, at, role)) {
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, names)) => names.push(name),
                None => places.push((place, vec![name])),
            }
        }
    }
    let problem = |names: &[&str]| {
        let first = names.first().copied().unwrap_or_default();
        let others = match names.len() {
            0 | 1 => String::new(),
            2 => " and 1 other".to_owned(),
            all => format!(" and {} others", all - 1),
        };
        format!(
            "no handoff of `{first}`{others} is smooth with `replay = \"nonces\"`, and no kept packet follows it: a previous agent compares Identifications as times; write `replay = \"timestamps\"`, or remove this key"
        )
    };
    places.iter().map(|(place, names)| (place.clone(), problem(names))).collect()
}

/// Returns a warning for each mobile node that asks to keep packets, if all agents that keep some do so without a request.
fn unneeded_requests(scenario: &Scenario, layout: &Layout) -> Vec<(String, String)> {
    let shared = scenario.mobile_ip.as_ref().and_then(|shared| shared.buffer.as_ref());
    let agents = roles_of(layout, FOREIGN_AGENT);
    let buffers = agents.filter_map(|(_, role)| role.get("buffer").and_then(Value::as_table).or(shared));
    let whens: Vec<Option<&str>> = buffers.map(|buffer| buffer.get("when")?.as_str()).collect();
    if whens.is_empty() || whens.contains(&Some("request")) {
        return Vec::new();
    }
    let problem = "has no effect: no foreign agent keeps packets on request; write `when = \"request\"` in `buffer`, or remove this key";
    let asks = |role: &Table| role.get("ask_to_keep").and_then(Value::as_bool) == Some(true);
    let asking = mobile_nodes(layout).filter(|(_, role)| asks(role));
    asking.map(|(path, _)| (format!("{path}.ask_to_keep"), problem.to_owned())).collect()
}

/// Returns a warning for each key of smooth handoffs in the role of a mobile node with a co-located care-of address, and for the
/// key of the scenario if all mobile nodes have such addresses. It is no error: an agent with the flag R still knows the
/// mobile node by its association, and a grid may vary `care_of`.
fn smooth_and_co_located(scenario: &Scenario, layout: &Layout) -> Vec<(String, String)> {
    let source = |role: &Table| role.get("care_of").and_then(Value::as_str).map(str::to_owned);
    let own = |role: &Table| source(role).filter(|from| from != CareOf::Agent.name());
    let is_set = |value: &Value| value.as_bool() == Some(true) || value.as_integer().is_some_and(|n| n > 0);
    let problem = |care_of: &str| {
        format!(
            "has no effect with `care_of = \"{care_of}\"`: no foreign agent forwards or keeps packets for a co-located care-of address; write `care_of = \"agent\"`, or remove this key"
        )
    };
    let mut found = Vec::new();
    let is_shared = scenario.mobile_ip.as_ref().is_some_and(|shared| shared.smooth_handoff);
    if is_shared && mobile_nodes(layout).all(|(_, role)| own(role).is_some()) {
        let first = mobile_nodes(layout).find_map(|(_, role)| own(role));
        found.extend(first.map(|from| ("mobile-ip.smooth_handoff".to_owned(), problem(&from))));
    }
    for (path, role) in mobile_nodes(layout) {
        let Some(from) = own(role) else { continue };
        let keys = ["smooth_handoff", "distributed_keys", "ask_to_keep", "named_packets"];
        let set = keys.into_iter().filter(|key| role.get(*key).is_some_and(is_set));
        found.extend(set.map(|key| (format!("{path}.{key}"), problem(&from))));
    }
    found
}

/// All roles of mobile nodes as in the file, each with the path of its table.
fn mobile_nodes(layout: &Layout) -> impl Iterator<Item = (String, &Table)> {
    roles_of(layout, MOBILE_NODE)
}

/// All roles of this kind as in the file, each with the path of its table.
fn roles_of<'a>(layout: &'a Layout, kind: &'static str) -> impl Iterator<Item = (String, &'a Table)> {
    let is_it = move |role: &Table| role.get("kind").and_then(Value::as_str) == Some(kind);
    layout.hosts().flat_map(move |(name, host)| {
        let roles = host.role.iter().enumerate().filter(move |(_, role)| is_it(role));
        roles.map(move |(at, role)| (format!("host.{name}.role[{at}]"), role))
    })
}

/// A role of a host.
#[derive(Clone, Copy)]
struct Placed<'a> {
    /// The name of the host.
    name: &'a str,
    /// The place of the role in the list of the host.
    index: usize,
    role: &'a RoleConfig,
}

impl Placed<'_> {
    /// Returns the path of a key of the role.
    fn path(&self, key: &str) -> String {
        format!("host.{}.role[{}].{key}", self.name, self.index)
    }

    /// Returns whether the role has this key in the file.
    fn has(&self, scenario: &Scenario, key: &str) -> bool {
        let roles = scenario.host.get(self.name).and_then(|host| host.get("role"));
        roles.and_then(|roles| roles.get(self.index)?.get(key)).is_some()
    }
}

/// All roles of all hosts.
fn placed(hosts: &[HostPlan]) -> impl Iterator<Item = Placed<'_>> {
    hosts.iter().flat_map(|host| {
        let roles = host.config.roles.iter().enumerate();
        roles.map(|(index, role)| Placed { name: &host.config.name, index, role })
    })
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

/// All addresses of hosts and of roles of Mobile IP.
fn addresses(hosts: &[HostPlan]) -> impl Iterator<Item = Ipv4Addr> {
    let of_hosts = hosts.iter().flat_map(|host| host.config.all_addresses());
    of_hosts.chain(placed(hosts).filter_map(|at| address(at.role)))
}

/// All roles of all hosts, each with the path of its table.
fn roles(hosts: &[HostPlan]) -> impl Iterator<Item = (String, &RoleConfig)> {
    let of = |host: &HostPlan| host.config.name.clone();
    hosts.iter().flat_map(move |host| {
        let name = of(host);
        (0..).zip(&host.config.roles).map(move |(at, role)| (format!("host.{name}.role[{at}]"), role))
    })
}

/// Checks that all roles have the same numbers of messages and extensions.
fn check_numbers(hosts: &[HostPlan]) -> Result<(), (String, String)> {
    let all: Vec<(String, Numbers)> =
        roles(hosts).filter_map(|(path, role)| Some((path, role.numbers()?))).collect();
    // The error is at a role with other numbers than the default, so at one that the file gives numbers.
    let Some((path, odd)) = all.iter().find(|(_, numbers)| *numbers != Numbers::default()) else {
        return Ok(());
    };
    match all.iter().find(|(_, numbers)| numbers != odd) {
        Some((other, _)) => {
            let problem =
                format!("must be the same for all roles of Mobile IP, but differs from that of {other}");
            Err((format!("{path}.numbers"), problem))
        }
        None => Ok(()),
    }
}

/// Returns the path of a key in the table `key` of kept packets, and the problem. The path of an error about the table itself is `.`.
fn below(key: &str, path: &serde_path_to_error::Path, problem: &str) -> (String, String) {
    match path.to_string() {
        path if path == "." => (key.to_owned(), problem.to_owned()),
        path => (format!("{key}.{path}"), roles::by_schema::<Buffering>(&path, problem)),
    }
}

/// Fills in a home agent with all mobile nodes whose home network it serves.
pub(super) fn home_agent(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    agent(around, role)?;
    let Around { scenario, layout, host } = *around;
    let nodes = hosts_of(scenario, MOBILE_NODE);
    let at_home = nodes.filter(|node| layout.same_network(host, node));
    let peers: Result<Vec<Value>, String> = at_home.map(|node| peer(scenario, layout, node)).collect();
    default(role, "mobile_nodes", peers?);
    let correspondents = hosts_of(scenario, CORRESPONDENT);
    let peers: Result<Vec<Value>, String> = correspondents
        .map(|other| {
            let other = host_address(layout, other)?;
            let of = [&address_of(layout, host)?, &other];
            Ok(Value::Table(informed_association(scenario, other.clone(), of)?))
        })
        .collect();
    let peers = peers?;
    if !peers.is_empty() {
        default(role, "correspondents", peers);
    }
    if let Some(shared) = scenario.mobile_ip.as_ref().filter(|shared| shared.distributed_keys) {
        let peers = distributing(around, shared, FOREIGN_AGENT)?;
        if !peers.is_empty() {
            default(role, "distribute_keys", true);
            default(role, "foreign_agents", peers);
        }
    }
    Ok(())
}

/// Returns the associations of an agent with the agents of the other kind, for distributed keys. The key of each pair follows
/// from that of the scenario and both addresses. Agents with the same address need none.
fn distributing(around: &Around<'_>, shared: &MobileIp, kind: &str) -> Result<Vec<Value>, String> {
    let own = address_of(around.layout, around.host)?;
    let is_foreign = kind == FOREIGN_AGENT;
    let mut peers = Vec::new();
    for other in hosts_of(around.scenario, kind) {
        let other = address_of(around.layout, other)?;
        if other != own {
            let [foreign, home] = if is_foreign { [&other, &own] } else { [&own, &other] };
            let key = hmac_sha256(&shared.key, &[b"foreign-home", foreign.as_bytes(), b" ", home.as_bytes()]);
            peers.push(peer_with(shared, &other, &key));
        }
    }
    Ok(peers)
}

/// Fills in a correspondent. All home agents of the scenario inform it, each about its home network.
pub(super) fn correspondent(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    let own = host_address(layout, host)?;
    default(role, "address", own.as_str());
    let agents = hosts_of(scenario, HOME_AGENT).map(|agent| {
        let (address, of) = (interface_address(layout, agent)?, address_of(layout, agent)?);
        let mut peer = informed_association(scenario, of.clone(), [&of, &own])?;
        let home: InterfaceAddress = address.parse().map_err(|error| format!("{address}: {error:?}"))?;
        peer.insert("networks".to_owned(), Value::from(vec![Value::from(home.link.to_string())]));
        Ok(Value::Table(peer))
    });
    let agents: Result<Vec<Value>, String> = agents.collect();
    default(role, "home_agents", agents?);
    Ok(())
}

/// Returns the address of a host by which other hosts know it.
fn host_address(layout: &Layout, host: &str) -> Result<String, String> {
    let address = layout.address(host).ok_or_else(|| {
        "the host has no address: give it an `address`, or give the wire or cell that it is connected to a `net`".to_owned()
    })?;
    Ok(address.to_string())
}

pub(super) fn mobile_node(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let Around { scenario, layout, host } = *around;
    default(role, "address", interface_address(layout, host)?);
    default(role, "interface", AIR);
    let agent = hosts_of(scenario, HOME_AGENT).find(|agent| layout.same_network(agent, host));
    let agent = agent.ok_or("there is no mobile-ip/home-agent in the home network of the mobile node; give this role to the base station of that network")?;
    default(role, "home_agent", peer(scenario, layout, agent)?);
    if let Some(shared) = scenario.mobile_ip.as_ref().filter(|shared| shared.smooth_handoff) {
        default(role, "smooth_handoff", true);
        if shared.distributed_keys && is_smooth(role) {
            default(role, "distributed_keys", true);
        } else if !shared.distributed_keys {
            let node = address_of(layout, host)?;
            let mut peers = Vec::new();
            for agent in hosts_of(scenario, FOREIGN_AGENT) {
                let agent = address_of(layout, agent)?;
                peers.push(visitor_association(shared, &agent, &node, &agent));
            }
            default(role, "foreign_agents", peers);
        }
    }
    if hosts_of(scenario, CORRESPONDENT).next().is_some() {
        default(role, "direct_tunnels", true);
    }
    if role.contains_key("signal_hysteresis") {
        let kinds = [HOME_AGENT, FOREIGN_AGENT];
        let agents = kinds.into_iter().flat_map(|kind| hosts_of(scenario, kind));
        let mut cells = Vec::new();
        for agent in agents {
            let Some(cell) = layout.cell_of(agent) else { continue };
            let address = address_of(layout, agent)?;
            let of = Table::from_iter([
                ("agent".to_owned(), Value::from(address)),
                ("cell".to_owned(), Value::from(i64::from(cell))),
            ]);
            if !cells.contains(&Value::Table(of.clone())) {
                cells.push(Value::Table(of));
            }
        }
        default(role, "agent_cells", cells);
    }
    Ok(())
}

pub(super) fn interface_address(layout: &Layout, host: &str) -> Result<String, String> {
    layout.air_address(host).ok_or_else(|| match (layout.address(host), layout.cell_nets()) {
        (Some(address), nets) if !nets.is_empty() => {
            format!(
                "the address of `{host}`, {address}, is in the `net` of no cell; the cells have: {}",
                nets.join(", ")
            )
        }
        _ => {
            "the host's radio has no address: give the cell a `net`, and a mobile node an `address` in this network".to_owned()
        }
    })
}

/// Returns the address of a host's radio, without the length of its prefix.
fn address_of(layout: &Layout, host: &str) -> Result<String, String> {
    let address = interface_address(layout, host)?;
    Ok(address.split('/').next().unwrap_or_default().to_owned())
}

/// Returns the association between a mobile node and a foreign agent, for the end whose peer has the address `peer`. Its key
/// follows from that of the scenario and both addresses.
fn visitor_association(shared: &MobileIp, peer: &str, node: &str, agent: &str) -> Value {
    let key = hmac_sha256(&shared.key, &[b"mobile-foreign", node.as_bytes(), b" ", agent.as_bytes()]);
    peer_with(shared, peer, &key)
}

/// Returns an association of the scenario's kind with the host `peer`, with another key.
fn peer_with(shared: &MobileIp, peer: &str, key: &[u8]) -> Value {
    Value::Table(Table::from_iter([
        ("address".to_owned(), Value::from(peer)),
        ("spi".to_owned(), Value::from(i64::from(shared.spi))),
        ("algorithm".to_owned(), Value::from(shared.algorithm.name())),
        ("key".to_owned(), Value::from(hex(key))),
    ]))
}

/// Returns the association between a home agent and a correspondent, for the end whose peer has the address `peer`. Its key
/// follows from that of the scenario and both addresses, so a Binding Update to one correspondent is not valid at another.
fn informed_association(
    scenario: &Scenario,
    peer: String,
    [agent, correspondent]: [&String; 2],
) -> Result<Table, String> {
    let mut association = association(scenario, peer)?;
    if let Some(shared) = &scenario.mobile_ip {
        let addresses = [agent.as_bytes(), b" ", correspondent.as_bytes()];
        let key = hmac_sha256(&shared.key, &[&b"home-correspondent"[..], &addresses.concat()]);
        association.insert("key".to_owned(), Value::from(hex(&key)));
    }
    Ok(association)
}

fn peer(scenario: &Scenario, layout: &Layout, host: &str) -> Result<Value, String> {
    association(scenario, address_of(layout, host)?).map(Value::Table)
}

/// Returns the security association of the scenario with the host of this address.
fn association(scenario: &Scenario, address: String) -> Result<Table, String> {
    let shared =
        scenario.mobile_ip.as_ref().ok_or("a Mobile IP role needs the table [mobile-ip] with `key`")?;
    Ok(Table::from_iter([
        ("address".to_owned(), Value::from(address)),
        ("spi".to_owned(), Value::from(i64::from(shared.spi))),
        ("algorithm".to_owned(), Value::from(shared.algorithm.name())),
        ("replay".to_owned(), Value::from(shared.replay.name())),
        ("key".to_owned(), Value::from(hex(shared.key.as_bytes()))),
    ]))
}

#[cfg(test)]
mod tests;
