//! Writes the roles of Mobile IP, with the options of a draft.

use crate::draft::{Detection, Draft, Protocol};
use crate::options::{
    Backup, Buffer, CareOf, Clock, Interfaces, KeepWhen, Offers, Options, Style, Tunnel, Visited,
};
use std::fmt::Write;

/// The key of the security associations between mobile nodes and home agents.
pub(crate) const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// The key of the security associations between mobile nodes and foreign agents.
const VISITORS_KEY: &str = "202122232425262728292a2b2c2d2e2f";
/// The key of the security associations between home agents and foreign agents.
const AGENTS_KEY: &str = "404142434445464748494a4b4c4d4e4f";
/// The last byte of the address of a home agent that does not exist.
const MISSING: u8 = 250;

/// Returns the table `[mobile-ip]`.
pub(crate) fn table(draft: &Draft) -> String {
    let replay = if draft.options.has_nonces { "replay = \"nonces\"\n" } else { "" };
    let smooth = if draft.options.is_smooth { "smooth_handoff = true\n" } else { "" };
    let keys = if draft.options.has_distributed_keys { "distributed_keys = true\n" } else { "" };
    let buffer = draft.options.buffer.map_or_else(String::new, buffer);
    format!("\n[mobile-ip]\nkey = \"{KEY}\"\n{replay}{smooth}{keys}{buffer}")
}

/// Returns the line of the packets that foreign agents keep.
fn buffer(Buffer { packets, is_paced, when, bytes, max_age_ms, .. }: Buffer) -> String {
    let drain = if is_paced { ", drain = \"paced\"" } else { "" };
    let bytes = bytes.map(|[own, all]| format!(", bytes = {own}, total_bytes = {all}")).unwrap_or_default();
    let age = max_age_ms.map(|age| format!(", max_age = \"{age}ms\"")).unwrap_or_default();
    let when = match when {
        KeepWhen::Always => "",
        KeepWhen::LinkDown => ", when = \"link-down\"",
        KeepWhen::Request => ", when = \"request\"",
    };
    format!("buffer = {{ packets = {packets}{bytes}{age}{drain}{when} }}\n")
}

/// Returns the address of a mobile host in its home network.
pub(crate) fn home_address(draft: &Draft, host: usize) -> String {
    let home = draft.hosts.get(host).map_or(0, |host| host.home);
    format!("10.{}.0.{}", home + 1, 7 + host)
}

/// Returns the line of a host's clock, or an empty text if the clock is right.
pub(crate) fn clock(clock: Clock) -> String {
    let Clock { offset_ms, drift } = clock;
    if clock == Clock::default() {
        return String::new();
    }
    let sign = if offset_ms < 0 { '-' } else { '+' };
    format!("clock = {{ offset = \"{sign}{}ms\", drift = {drift} }}\n", offset_ms.unsigned_abs())
}

fn visited(draft: &Draft, index: usize) -> Visited {
    draft.routers.get(index).map_or(Visited::Plain, |router| router.visited)
}

/// Returns whether the router with this index has a foreign agent.
fn has_foreign_agent(draft: &Draft, index: usize) -> bool {
    let options = &draft.options;
    let is_for_visitors = index > 0 || options.has_homes;
    is_for_visitors && (!options.is_co_located() || visited(draft, index) != Visited::Plain)
}

/// Returns the roles of the router with this index.
pub(crate) fn router(draft: &Draft, index: usize) -> Vec<String> {
    let options = &draft.options;
    let is_home = index == 0 || options.has_homes;
    let mut roles = Vec::new();
    let reverse = match (options.reverse, options.is_reverse_required) {
        (None, _) => "",
        (Some(_), false) => ", reverse_tunnel = \"offered\"",
        (Some(_), true) => ", reverse_tunnel = \"required\"",
    };
    let offers = draft.routers.get(index).map_or(Offers::ALL, |router| router.offers);
    if is_home {
        roles.push(home_agent(draft, index, reverse, offers));
    }
    let visited = visited(draft, index);
    if has_foreign_agent(draft, index) {
        let is_reverse = offers.reverse || options.is_reverse_required;
        let reverse = if is_reverse { reverse } else { "" };
        let kinds = encapsulations(options.tunnel, offers.foreign);
        let special = special_tunnels(options);
        let mut keys = format!("kind = \"mobile-ip/foreign-agent\"{reverse}{kinds}{special}");
        if options.has_agent_keys {
            let homes = (0..draft.routers.len()).filter(|other| *other == 0 || options.has_homes);
            let _ = write!(keys, ", home_agents = [{}]", agents(homes, index));
        }
        if options.is_co_located() && visited == Visited::Optional {
            keys.push_str(", registration_required = false");
        }
        if options.has_challenge {
            let visitor = |host| association(&home_address(draft, host), VISITORS_KEY, "");
            let visitors: Vec<String> = (0..draft.hosts.len()).map(visitor).collect();
            let _ = write!(keys, ", challenge = true, mobile_nodes = [{}]", visitors.join(", "));
        }
        roles.push(format!("{{ {keys} }}"));
    }
    if options.care_of == CareOf::Acquired && (!is_home || options.has_homes) {
        let net = index + 1;
        roles.push(format!(
            "{{ kind = \"dhcp/server\", first = \"10.{net}.0.100\", last = \"10.{net}.0.199\" }}"
        ));
    }
    roles
}

/// Returns the role of a home agent with these offers.
fn home_agent(draft: &Draft, index: usize, reverse: &str, offers: Offers) -> String {
    let options = &draft.options;
    let mut keys = format!("kind = \"mobile-ip/home-agent\"{reverse}");
    keys.push_str(&encapsulations(options.tunnel, offers.home));
    keys.push_str(special_tunnels(options));
    if options.is_single_binding {
        keys.push_str(", simultaneous_bindings = 1");
    }
    if options.has_agent_keys {
        let _ = write!(keys, ", foreign_agents = [{}]", agents(0..draft.routers.len(), index));
    }
    format!("{{ {keys} }}")
}

const fn special_tunnels(options: &Options) -> &'static str {
    if options.has_special_tunnels { ", special_tunnels = true" } else { "" }
}

/// Returns the associations with the agents of these routers, except those of the router with the index `own`.
fn agents(routers: impl Iterator<Item = usize>, own: usize) -> String {
    let other = |index: usize| association(&format!("10.{}.0.1", index + 1), AGENTS_KEY, "");
    routers.filter(|index| *index != own).map(other).collect::<Vec<_>>().join(", ")
}

/// Returns the key with the kinds of tunnels that an agent offers: minimal encapsulation, and GRE. Returns an empty text if
/// no mobile node asks for one.
fn encapsulations(tunnel: Tunnel, offered: [bool; 2]) -> String {
    let names = ["\"minimal\"", "\"gre\""].into_iter().zip(offered);
    let names: Vec<&str> = names.filter(|(_, is_offered)| *is_offered).map(|(name, _)| name).collect();
    if tunnel == Tunnel::IpInIp || names.is_empty() {
        return String::new();
    }
    format!(", encapsulations = [{}]", names.join(", "))
}

/// Returns the text of a security association.
fn association(address: &str, key: &str, more: &str) -> String {
    format!("{{ address = \"{address}\", spi = 256, key = \"{key}\"{more} }}")
}

/// Returns the roles of a mobile node. Values that are the default are left out.
pub(crate) fn mobile_node(draft: &Draft, host: usize) -> Vec<String> {
    let Detection { policy, trigger } = draft.detection;
    let mut keys = "kind = \"mobile-ip/mobile-node\"".to_owned();
    if policy != Detection::DEFAULT.policy {
        let _ = write!(keys, ", movement = \"{policy}\"");
    }
    if !trigger {
        keys.push_str(", link_trigger = false");
    }
    if policy == "expiry" {
        let _ = write!(keys, ", lifetime = \"{}s\"", Detection::LIFETIME);
    }
    if draft.protocol != Protocol::MobileIp {
        return vec![format!("{{ {keys} }}")];
    }
    let options = &draft.options;
    if !options.is_home_first {
        keys.push_str(", home_first = false");
    }
    match options.reverse {
        None => {}
        Some(Style::Direct) => keys.push_str(", reverse_tunnel = \"direct\""),
        Some(Style::Encapsulating) => keys.push_str(", reverse_tunnel = \"encapsulating\""),
    }
    if options.has_bindings {
        keys.push_str(", simultaneous_bindings = true");
    }
    if options.is_private {
        keys.push_str(", private_bindings = true");
    }
    match options.tunnel {
        Tunnel::IpInIp => {}
        Tunnel::Minimal => keys.push_str(", encapsulation = \"minimal\""),
        Tunnel::Gre => keys.push_str(", encapsulation = \"gre\""),
    }
    // Without a foreign agent, no packets are kept, and the keys would be refused.
    let buffer =
        options.buffer.filter(|_| (0..draft.routers.len()).any(|index| has_foreign_agent(draft, index)));
    if buffer.is_some_and(|buffer| buffer.when == KeepWhen::Request) {
        keys.push_str(", ask_to_keep = true");
    }
    if buffer.is_some_and(|buffer| buffer.are_named) {
        keys.push_str(", named_packets = 20");
    }
    if let Some(hysteresis) = options.hysteresis {
        let _ = write!(keys, ", signal_hysteresis = {hysteresis}");
    }
    backup(draft, host, &mut keys);
    interfaces(draft, host, &mut keys);
    if options.has_challenge {
        let agent = |index: usize| association(&format!("10.{}.0.1", index + 1), VISITORS_KEY, "");
        let agents: Vec<String> = (0..draft.routers.len()).map(agent).collect();
        let _ = write!(keys, ", foreign_agents = [{}]", agents.join(", "));
    }
    match options.care_of {
        CareOf::Agent => {}
        CareOf::Acquired => keys.push_str(", care_of = \"acquired\""),
        CareOf::Configured(delay) => networks(draft, host, delay, &mut keys),
    }
    let mut roles = vec![format!("{{ {keys} }}")];
    if options.care_of == CareOf::Acquired {
        roles.push("{ kind = \"dhcp/client\" }".to_owned());
    }
    roles
}

/// Writes the second interface of a mobile node, if it has one.
fn interfaces(draft: &Draft, host: usize, keys: &mut String) {
    let has_second = draft.hosts.get(host).is_some_and(|host| host.second.is_some());
    let Some(Interfaces { is_second_preferred, hysteresis_ms, is_make_before_break }) =
        draft.options.interfaces.filter(|_| has_second)
    else {
        return;
    };
    let [first, second] = [!is_second_preferred, is_second_preferred].map(u8::from);
    let _ = write!(
        keys,
        ", preference = {first}, further_interfaces = [{{ name = \"air2\", preference = {second} }}], \
         interface_hysteresis = \"{hysteresis_ms}ms\", make_before_break = {is_make_before_break}"
    );
}

/// Writes the home agents of a mobile node, if it has several.
fn backup(draft: &Draft, host: usize, keys: &mut String) {
    let replay = if draft.options.has_nonces { ", replay = \"nonces\"" } else { "" };
    let net = draft.hosts.get(host).map_or(0, |host| host.home) + 1;
    let agent = |number: u8| association(&format!("10.{net}.0.{number}"), KEY, replay);
    let (first, second) = match draft.options.backup {
        Backup::None => return,
        Backup::Missing => (1, MISSING),
        Backup::Needed => (MISSING, 1),
    };
    let _ = write!(keys, ", home_agent = {}, backup_home_agents = [{}]", agent(first), agent(second));
}

/// Writes the networks of a mobile node with configured care-of addresses.
fn networks(draft: &Draft, host: usize, delay: u64, keys: &mut String) {
    let home = draft.hosts.get(host).map_or(0, |host| host.home);
    let network = |index: usize| {
        let net = index + 1;
        let own = 100 + host;
        format!("{{ cell = {net}, address = \"10.{net}.0.{own}/24\", router = \"10.{net}.0.1\" }}")
    };
    let visited = (0..draft.routers.len()).filter(|index| *index != home);
    let networks: Vec<String> = visited.map(network).collect();
    if networks.is_empty() {
        return; // the host stays at home
    }
    let _ = write!(
        keys,
        ", care_of = \"configured\", address_delay = \"{delay}ms\", networks = [{}]",
        networks.join(", ")
    );
}
