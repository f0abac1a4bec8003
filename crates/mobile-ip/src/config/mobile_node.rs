//! The configuration of a mobile node.

use super::{
    Peer, Replay, announcements, check_address, check_agent_peers, check_announcements, check_lifetime,
    check_peers, yes,
};
use crate::encapsulation;
use crate::message::{INFINITE, Numbers, RequestFlags};
use node::config::{ConfigError, span, spans, text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use wire::tunnel::Kind;
use wire::{Duration, InterfaceAddress, Ipv4Addr};

/// The greatest `signal_hysteresis` in dB: no two signals that a radio hears differ by much more.
const MOST_HYSTERESIS: u8 = 60;
/// The longest `expected_round_trip` (not from an RFC).
const LONGEST_ROUND_TRIP: Duration = Duration::from_mins(1);

/// The greatest number of `further_interfaces` (not from an RFC).
const MOST_FURTHER: usize = 7;
/// The signals that a radio can report, in dBm.
const RANGE_OF_SIGNALS: std::ops::RangeInclusive<i16> = -130..=0;
/// The longest `interface_hysteresis` (not from an RFC).
const LONGEST_HYSTERESIS: Duration = Duration::from_mins(10);

/// The maximum of `named_packets`: they fit into one IP Filter Extension if they have one source.
const MOST_NAMED: usize = 100;

/// The configuration of a mobile node: its home network, its associations and its movement detection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the keys are independent options of one file")]
pub struct MobileNodeConfig {
    /// The home address, and the length of the home network's prefix, for example `10.1.0.7/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface that moves between networks. With `further_interfaces`, the mobile node begins with this one.
    pub interface: String,
    /// The preference of `interface`, from 0 to 255; default 0. It has an effect with `further_interfaces` only.
    #[serde(default)]
    pub preference: u8,
    /// The weakest signal, in dBm, with which `interface` is usable: see `further_interfaces`. Without this key, signals do not
    /// matter.
    #[serde(default)]
    #[schemars(range(min = -130, max = 0))]
    pub weakest_signal: Option<i16>,
    /// Further interfaces, at most 7, for example of a satellite beside a wireless LAN (not from an RFC). The mobile node hears
    /// agents on all interfaces, and uses one. `movement` decides between the agents of one interface. An interface is usable
    /// while its link is up, an agent is heard on it, and its signal is not weaker than its `weakest_signal`. From an interface
    /// that is not usable, the mobile node changes at once to the usable one with the highest preference. It needs
    /// `care_of = "agent"`.
    #[serde(default)]
    #[schemars(length(max = 7))]
    pub further_interfaces: Vec<FurtherInterface>,
    /// The time for which an interface with a higher preference must have been usable before the mobile node changes to it; at
    /// most `10min`, default `2s` (not from an RFC). Each interruption begins this time again.
    #[serde(default = "interface_hysteresis", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub interface_hysteresis: Duration,
    /// Whether a mobile node with several interfaces receives by all of them, and sends by the old one until the registration by
    /// the new one is accepted, if the old one can still be used; default true. If false, it uses one interface at a time: it
    /// changes at once, and drops the data that arrive by the others (`interface_not_in_use`).
    #[serde(default = "yes")]
    pub make_before_break: bool,
    /// The home agent, with the security association that signs requests. The address may be the broadcast address of
    /// the home network: then the mobile node asks the home agents of this network for their address (RFC 5944, section
    /// 3.6.1.2).
    pub home_agent: Peer,
    /// Further home agents, in the order of their use. The mobile node turns to the next one if its home agent is
    /// unreachable (codes 80 to 95), or has not answered 3 requests. A foreign agent's denial without an authentication may
    /// be forged, so the mobile node waits for a reply before it turns to the next one. After the last home agent, it turns to
    /// the first again.
    #[serde(default)]
    pub backup_home_agents: Vec<Peer>,
    /// The foreign agents with which the mobile node has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The address of the router of the home network. Without it, the mobile node uses the home agent as the router at
    /// home.
    pub home_router: Option<Ipv4Addr>,
    /// Where the care-of address comes from; default `agent`.
    #[serde(default)]
    pub care_of: CareOf,
    /// With `care_of = "configured"`, the networks that the mobile node can visit. For a network with `cell`, the radio
    /// must be tuned to this cell. The first network that fits is used. If none fits, the mobile node has no care-of
    /// address.
    #[serde(default)]
    pub networks: Vec<ForeignNetwork>,
    /// With `care_of = "configured"`, the time from when the link is up until the address is usable; default `0s`.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub address_delay: Duration,
    /// How the mobile node detects that it has moved; default `lcs`.
    #[serde(default)]
    pub movement: Movement,
    /// Whether the mobile node returns home as soon as it hears its home agent, whatever `movement` is; default true
    /// (RFC 5944, section 2.4.3).
    #[serde(default = "yes")]
    pub home_first: bool,
    /// The number of dB by which the signal of another agent's cell must be stronger before the mobile node changes to
    /// that agent, from 0 to 60. Without this key, signals are not compared (not from an RFC). It applies to a change
    /// from an agent that is still heard, if the radio reports both signals and `agent_cells` has both agents. The
    /// signals that are compared are smoothed: each report counts a quarter, and the level before it three quarters.
    /// After 2 s without a report of a cell, its smoothing begins again. With `ecs` and `pm-eager`, the mobile node then
    /// changes as soon as the smoothed signal is stronger, also to an agent that it has heard before. A change that
    /// `link_trigger` causes is not delayed.
    #[serde(default)]
    #[schemars(range(max = 60))]
    pub signal_hysteresis: Option<u8>,
    /// The cells of agents, for `signal_hysteresis`. A scenario fills in those of all agents.
    #[serde(default)]
    pub agent_cells: Vec<AgentCell>,
    /// Whether the mobile node solicits each time that its interface comes up, and then registers with the next usable
    /// agent that it hears; default true. RFC 5944, section 3.6 and appendix A, allows this. If false, the mobile node
    /// solicits only if no agent is in use.
    #[serde(default = "yes")]
    pub link_trigger: bool,
    /// The lifetime that the mobile node requests, in whole seconds from `3s` to `65534s`; default `5min` (not from an
    /// RFC). If an agent offers less, the mobile node requests the offered lifetime.
    #[serde(default = "lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub lifetime: Duration,
    /// The round trip to the home agent that the mobile node assumes until it has measured one, at most `60s`; default
    /// `0s`. It waits for a reply for twice the round trip and 100 ms, and for 1 s at least (RFC 5944, section 3.6.3).
    /// With a longer round trip than this wait, a reply arrives after the next request, and is dropped.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub expected_round_trip: Duration,
    /// Whether the mobile node asks for simultaneous bindings (flag S); default false (RFC 5944, section 3.6.1.1). Then
    /// the home agent keeps its earlier care-of addresses, and sends a copy of each packet to each of them. With
    /// `further_interfaces`, the mobile node asks only while another interface is usable.
    #[serde(default)]
    pub simultaneous_bindings: bool,
    /// Whether the mobile node receives the broadcasts of its home network, at home and away (flag B); default false
    /// (RFC 5944, section 4.3).
    #[serde(default)]
    pub broadcasts: bool,
    /// Whether the mobile node asks for a reverse tunnel (flag T): `none`, `direct` or `encapsulating`; default `none`
    /// (RFC 3024). It asks only foreign agents that offer one, because others would deny the request. With a co-located
    /// care-of address, it always asks, and puts its packets into a tunnel to the home agent itself; `direct` and
    /// `encapsulating` are then the same.
    #[serde(default)]
    pub reverse_tunnel: ReverseTunnel,
    /// Whether a mobile node with a co-located care-of address takes packets out of tunnels of any host, for example of
    /// correspondents (route optimization); default false: only out of tunnels of its home agent.
    #[serde(default)]
    pub direct_tunnels: bool,
    /// Whether the mobile node asks its home agent not to reveal its care-of address to correspondents (flag P;
    /// draft-ietf-mobileip-optim-09, section 6.1); default false. Agents without route optimization deny such a request
    /// (codes 70 and 134).
    #[serde(default)]
    pub private_bindings: bool,
    /// The kind of tunnel that the mobile node asks for: `ip-in-ip`, `minimal` (flag M) or `gre` (flag G); default
    /// `ip-in-ip`. It asks a foreign agent only if the agent offers this kind. If the home agent does not offer it (code
    /// 139), the mobile node registers with IP in IP.
    #[serde(default, deserialize_with = "text")]
    #[schemars(schema_with = "encapsulation::schema")]
    pub encapsulation: Kind,
    /// Whether the mobile node asks for smooth handoffs (draft-ietf-mobileip-optim-09); default false. It then asks its new
    /// foreign agent to notify the previous one, and that agent forwards the packets that still arrive. Three conditions
    /// apply: the new agent offers it (flag S), there is a key with the previous agent (in `foreign_agents`, or by
    /// `distributed_keys`), and `replay` of `home_agent` is `timestamps`.
    #[serde(default)]
    pub smooth_handoff: bool,
    /// Whether the mobile node has a key for smooth handoffs with each foreign agent without an association in
    /// `foreign_agents`; default false (not from an RFC). It derives the key of each registration from that of `home_agent`.
    /// The foreign agent gets the same key from the home agent (`distribute_keys`). The option needs `smooth_handoff`.
    #[serde(default)]
    pub distributed_keys: bool,
    /// The time for which a previous foreign agent forwards packets, in whole seconds from `1s` to `65534s`; default `30s`
    /// (not from an RFC).
    #[serde(default = "cache_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub cache_lifetime: Duration,
    /// Whether the mobile node asks each foreign agent that accepts its registration to keep its packets
    /// (draft-mkhalil-mobileip-buffer-00); default false. Agents with `when = "request"` in `buffer` need it. It needs
    /// `smooth_handoff`.
    #[serde(default)]
    pub ask_to_keep: bool,
    /// The number of last received packets that the mobile node names to its previous foreign agent, so that they are not sent
    /// again, from 0 to 100; default 0 (draft-mkhalil-mobileip-buffer-00, section 4.5, has no number). Only packets without DF
    /// are named: others have no unique identification. It needs `smooth_handoff`, and agents with `buffer`.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub named_packets: usize,
    /// The numbers of messages, extensions and flags of smooth handoffs. All agents and mobile nodes must have the same
    /// values.
    #[serde(default)]
    pub numbers: Numbers,
    /// The times at which the mobile node announces its return on the home network by gratuitous ARP (RFC 5944, section
    /// 4.6). They count from the return, and are in ascending order; default `0s`, `1s` and `3s` (not from an RFC).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
}

/// A further interface of a mobile node.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FurtherInterface {
    /// The name of the interface.
    pub name: String,
    /// A higher value is preferred, from 0 to 255. Between interfaces with the same value, the mobile node changes only if the
    /// one in use is not usable.
    pub preference: u8,
    /// The weakest signal, in dBm, with which the interface is usable, from -130 to 0. The last report of the signal of its cell
    /// counts. So the mobile node can leave it before its link is lost. Without this key, signals do not matter.
    #[serde(default)]
    #[schemars(range(min = -130, max = 0))]
    pub weakest_signal: Option<i16>,
}

/// Where a mobile node's care-of address comes from. With a co-located care-of address, the mobile node registers
/// directly with its home agent, and needs no foreign agent. It registers through a foreign agent if the agent requires
/// this by the flag R (RFC 5944, section 2.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CareOf {
    /// From foreign agents.
    #[default]
    Agent,
    /// It is an address of the interface that another role of the host acquires, for example the role `dhcp/client`. An
    /// address of the home network is not used.
    Acquired,
    /// It is one of the addresses in the key `networks`.
    Configured,
}

impl CareOf {
    /// Returns the name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Acquired => "acquired",
            Self::Configured => "configured",
        }
    }
}

/// The cell of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentCell {
    /// The address of the agent.
    pub agent: Ipv4Addr,
    /// The number of the cell.
    pub cell: u16,
}

/// A network that a mobile node can visit, and the mobile node's address there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignNetwork {
    /// The number of the network's cell. Without it, the network is any that the interface is connected to.
    pub cell: Option<u16>,
    /// The address, and the length of the network's prefix, for example `10.3.0.77/24`. It must not be in the home
    /// network.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The address of the network's router.
    pub router: Ipv4Addr,
}

/// How a mobile node detects that it has moved: which agent it uses when it hears several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Movement {
    /// Lazy cell switching: the mobile node stays with its agent until the lifetime of the agent's advertisement ends
    /// (algorithm 1 of RFC 5944, section 2.4.2.1).
    #[default]
    Lcs,
    /// Prefix matching, lazy: as `lcs`. In addition, when a renewal is due, the mobile node turns to an agent of
    /// another subnet if it no longer hears its own agent (algorithm 2 of RFC 5944, section 2.4.2.2). An agent is no
    /// longer heard when half of its advertisement's lifetime has passed.
    Pm,
    /// Prefix matching, eager: the mobile node registers with a new agent if both agents advertise prefixes, and the
    /// prefixes differ.
    PmEager,
    /// Eager cell switching: the mobile node registers with each new agent that it hears, unless the agent is in the
    /// subnet of the present agent. RFC 5944, section 3.6, recommends to stay while the present agent is heard.
    Ecs,
    /// The mobile node stays with its agent until its registration is to be renewed, shortly before the registration's
    /// lifetime ends. It uses another agent only if it has not heard its agent within the lifetime of the
    /// advertisement. So does Dynamics, the Mobile IP of the Helsinki University of Technology. At home, where the home
    /// agent keeps no registration, the mobile node counts `lifetime` from its request, and repeats the request when it
    /// ends.
    Expiry,
}

impl Movement {
    /// Returns the name of the policy in a configuration and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lcs => "lcs",
            Self::Pm => "pm",
            Self::PmEager => "pm-eager",
            Self::Ecs => "ecs",
            Self::Expiry => "expiry",
        }
    }
}

/// Whether a mobile node asks for a reverse tunnel (RFC 3024), and how it sends its packets to the foreign agent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReverseTunnel {
    /// The mobile node asks for no reverse tunnel.
    #[default]
    None,
    /// The mobile node sends its packets to the foreign agent as its router, and the foreign agent puts them into the
    /// reverse tunnel.
    Direct,
    /// The mobile node puts its packets into a tunnel to the foreign agent, and the foreign agent puts them into the
    /// reverse tunnel.
    Encapsulating,
}

impl MobileNodeConfig {
    /// Returns the flags of a request for a binding, except those that depend on the agent.
    pub(crate) const fn flags(&self) -> RequestFlags {
        RequestFlags(0)
            .with(RequestFlags::BROADCAST, self.broadcasts)
            .with(RequestFlags(self.numbers.private_flag), self.private_bindings)
    }

    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        self.numbers.check()?;
        check_peers("home_agent", std::slice::from_ref(&self.home_agent))?;
        check_agent_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("lifetime", self.lifetime)?;
        if self.home_agent.address == self.address.address {
            return Err(ConfigError::new("home_agent", "must have another address than the mobile node"));
        }
        check_peers("backup_home_agents", &self.backup_home_agents)?;
        let mut known = BTreeSet::from([self.address.address, self.home_agent.address]);
        if let Some(peer) = self.backup_home_agents.iter().find(|peer| !known.insert(peer.address)) {
            let problem =
                format!("{} must differ from all other addresses of this mobile node", peer.address);
            return Err(ConfigError::new("backup_home_agents", problem));
        }
        self.check_care_of()?;
        self.check_interfaces()?;
        if self.expected_round_trip > LONGEST_ROUND_TRIP {
            return Err(ConfigError::new("expected_round_trip", "must be at most 60s"));
        }
        if self.named_packets > MOST_NAMED {
            return Err(ConfigError::new("named_packets", format!("must be from 0 to {MOST_NAMED}")));
        }
        let cached = self.cache_lifetime;
        if cached.subsec_nanos() != 0 || !(1..INFINITE.into()).contains(&cached.as_secs()) {
            return Err(ConfigError::new("cache_lifetime", "must be whole seconds, from 1s to 65534s"));
        }
        for (key, is_set) in [
            ("named_packets", self.named_packets > 0),
            ("ask_to_keep", self.ask_to_keep),
            ("distributed_keys", self.distributed_keys),
            ("cache_lifetime", self.cache_lifetime != cache_lifetime()),
        ] {
            if is_set && !self.smooth_handoff {
                return Err(ConfigError::new(key, "needs `smooth_handoff = true`"));
            }
        }
        if self.distributed_keys && self.home_agent.replay == Replay::Nonces {
            let problem = "needs `replay = \"timestamps\"` of `home_agent`: a previous agent compares Identifications as times";
            return Err(ConfigError::new("distributed_keys", problem));
        }
        if self.signal_hysteresis.is_some_and(|step| step > MOST_HYSTERESIS) {
            let problem = format!("must be from 0 to {MOST_HYSTERESIS} dB");
            return Err(ConfigError::new("signal_hysteresis", problem));
        }
        let mut known = BTreeSet::new();
        if let Some(twice) = self.agent_cells.iter().find(|of| !known.insert(of.agent)) {
            let problem = format!("{} must have one cell only", twice.agent);
            return Err(ConfigError::new("agent_cells", problem));
        }
        check_announcements(&self.announcements)
    }

    /// Returns the key that has no effect with the others, and the reason; `None` if there is none.
    pub fn without_effect(&self) -> Option<ConfigError> {
        let has_keys = self.distributed_keys || !self.foreign_agents.is_empty();
        let problem = "has no effect: without `foreign_agents` or `distributed_keys = true`, the mobile node has no key for smooth handoffs";
        (self.smooth_handoff && !has_keys).then(|| ConfigError::new("smooth_handoff", problem))
    }
}

impl MobileNodeConfig {
    fn check_care_of(&self) -> Result<(), ConfigError> {
        if self.networks.is_empty() == (self.care_of == CareOf::Configured) {
            let problem =
                "must list at least one network with `care_of = \"configured\"`, and none without it";
            return Err(ConfigError::new("networks", problem));
        }
        let home = self.address;
        for ForeignNetwork { address, router, .. } in &self.networks {
            check_address("networks", *address)?;
            if home.link.contains(address.address) || address.link.contains(home.address) {
                let problem = format!(
                    "{address} must not be in the home network {}, nor {} in the network {}",
                    home.link, home.address, address.link
                );
                return Err(ConfigError::new("networks", problem));
            }
            if !address.link.contains(*router) || *router == address.address || address.is_broadcast(*router)
            {
                let problem = format!("the router {router} must be another host address of {}", address.link);
                return Err(ConfigError::new("networks", problem));
            }
        }
        Ok(())
    }
}

impl MobileNodeConfig {
    /// Returns the interface of the key `interface`, in the form of a further one.
    pub(crate) fn first_interface(&self) -> FurtherInterface {
        FurtherInterface {
            name: self.interface.clone(),
            preference: self.preference,
            weakest_signal: self.weakest_signal,
        }
    }

    fn check_interfaces(&self) -> Result<(), ConfigError> {
        let wrong = |problem: &str| Err(ConfigError::new("further_interfaces", problem));
        if self.further_interfaces.len() > MOST_FURTHER {
            return wrong(&format!("must be at most {MOST_FURTHER} interfaces"));
        }
        if !self.further_interfaces.is_empty() && self.care_of != CareOf::Agent {
            return wrong("needs `care_of = \"agent\"`");
        }
        let mut known = BTreeSet::new();
        for FurtherInterface { name, .. } in &self.further_interfaces {
            if *name == self.interface {
                return wrong(&format!("`{name}` is `interface` already"));
            }
            if !known.insert(name) {
                return wrong(&format!("`{name}` must be listed once"));
            }
        }
        let signals = RANGE_OF_SIGNALS;
        if self.weakest_signal.is_some_and(|weakest| !signals.contains(&weakest)) {
            return Err(ConfigError::new("weakest_signal", "must be from -130 to 0 dBm"));
        }
        let mut further = self.further_interfaces.iter().filter_map(|further| further.weakest_signal);
        if further.any(|weakest| !signals.contains(&weakest)) {
            return wrong("`weakest_signal` must be from -130 to 0 dBm");
        }
        if self.interface_hysteresis > LONGEST_HYSTERESIS {
            return Err(ConfigError::new("interface_hysteresis", "must be at most 10min"));
        }
        let without_effect = [
            ("preference", self.preference != 0),
            ("weakest_signal", self.weakest_signal.is_some()),
            ("interface_hysteresis", self.interface_hysteresis != interface_hysteresis()),
            ("make_before_break", !self.make_before_break),
        ];
        match without_effect.into_iter().find(|(_, is_set)| *is_set && self.further_interfaces.is_empty()) {
            Some((key, _)) => {
                Err(ConfigError::new(key, "needs `further_interfaces`: there is one interface"))
            }
            None => Ok(()),
        }
    }
}

const fn interface_hysteresis() -> Duration {
    Duration::from_secs(2)
}

const fn lifetime() -> Duration {
    Duration::from_mins(5)
}

const fn cache_lifetime() -> Duration {
    Duration::from_secs(30)
}
