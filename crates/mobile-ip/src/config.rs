//! The configuration of the Mobile IP roles.

mod buffer;

pub use crate::advertise::Advertise;
use crate::encapsulation;
use crate::message::{Algorithm, Association, INFINITE, RequestFlags};
use crate::tunnels::SMALLEST_MTU;
use auth::Key;
pub use buffer::{Buffering, Drain, KeepWhen};
use node::config::{ConfigError, span, spans, text, texts};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wire::tunnel::Kind;
use wire::{Duration, InterfaceAddress, Ipv4Addr, Prefix};

/// The minimum length of an association's key, in bytes (RFC 5944, section 5.1).
const SHORTEST_KEY: usize = 16;
/// The greatest reserved security parameter index: 0 to 255 are reserved (RFC 5944, section 1.6).
const RESERVED_SPIS: u32 = 255;

/// The greatest `signal_hysteresis` in dB: no two signals that a radio hears differ by much more.
const MOST_HYSTERESIS: u8 = 60;
/// The greatest number of simultaneous bindings of one mobile node (not from an RFC).
const MOST_BINDINGS: usize = 8;

/// The configuration of a home agent: its network, its mobile nodes and its limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HomeAgentConfig {
    /// The address of the home agent, and the length of the home network's prefix, for example `10.1.0.2/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface to the home network.
    pub interface: String,
    /// The mobile nodes that the home agent serves, with their security associations. A mobile node that is listed
    /// twice has two associations.
    pub mobile_nodes: Vec<Peer>,
    /// The foreign agents with which the home agent has security associations.
    #[serde(default)]
    pub foreign_agents: Vec<Peer>,
    /// The longest registration that the home agent grants, in whole seconds from `3s` to `65534s`; default `60min`
    /// (not from an RFC).
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// The longest permitted difference between the timestamp of a request and the home agent's clock. It must be
    /// greater than `3s`; default `7s` (RFC 5944, section 5.7.1).
    #[serde(default = "replay_window", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub replay_window: Duration,
    /// The maximum number of bindings of one mobile node at a time, from 1 to 8; default 8 (not from an RFC). A mobile
    /// node asks for an additional binding with flag S. Each packet is then copied to each care-of address. With 1, a
    /// request with flag S replaces the binding, and is answered with code 1 (RFC 5944, section 3.8.2.2).
    #[serde(default = "simultaneous_bindings")]
    #[schemars(range(min = 1, max = 8))]
    pub simultaneous_bindings: usize,
    /// The prefixes of networks in which no mobile node may register a care-of address, for example `["10.4.0.0/16"]`;
    /// default none. Such requests are denied with code 129.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "node::config::schema::prefixes")]
    pub prohibited_care_of: Vec<Prefix>,
    /// Whether the home agent accepts reverse tunnels (flag T): `none`, `offered` or `required`; default `none` (RFC
    /// 3024). A packet from a reverse tunnel is forwarded only if its source has a binding with flag T to the care-of
    /// address from which the tunnel comes. A host that forges this address can send in the name of the mobile node.
    #[serde(default)]
    pub reverse_tunnel: AgentReverseTunnel,
    /// The kinds of tunnels that the home agent offers besides IP in IP: `minimal` (RFC 2004, flag M) and `gre` (RFC 2784,
    /// flag G), for example `["minimal", "gre"]`; default none. A request for another kind is denied with code 139.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "encapsulation::schema_of_offers")]
    pub encapsulations: Vec<Kind>,
    /// The size of the largest datagram inside a tunnel by IP in IP, in bytes, at least 548. The default is 1480: the
    /// payload of an Ethernet frame (1500 bytes) without the outer header (20 bytes). With minimal encapsulation, 8 bytes
    /// more fit; with GRE, 4 bytes less.
    #[serde(default = "tunnel_mtu")]
    #[schemars(range(min = 548))]
    pub tunnel_mtu: u16,
    /// The times at which the home agent announces a mobile node's new link address on the home network by gratuitous
    /// ARP (RFC 5944, section 4.6). They count from the change, and are in ascending order; default `0s`, `1s` and `3s`
    /// (not from an RFC).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
    /// The parameters of the agent advertisements.
    #[serde(default)]
    pub advertise: Advertise,
    /// All addresses of the host on which the home agent runs, with their links. The caller sets them. None of them,
    /// and no broadcast address of these links, is accepted as a care-of address.
    #[serde(skip)]
    pub host: Vec<InterfaceAddress>,
    /// The care-of addresses of the foreign agents on the same host. The caller sets them. They are accepted as care-of
    /// addresses in the requests that these agents relay.
    #[serde(skip)]
    pub foreign: Vec<Ipv4Addr>,
    /// Whether a foreign agent with the same address and interface is on the same host. The caller sets it. That agent
    /// then advertises for both: a mobile node knows agents by their address.
    #[serde(skip)]
    pub is_foreign: bool,
}

/// The configuration of a foreign agent: its network, its associations and its limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the keys are independent options of one file")]
pub struct ForeignAgentConfig {
    /// The care-of address, and the length of the visited network's prefix, for example `10.2.0.1/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface to the visited network.
    pub interface: String,
    /// The names of the interfaces to visited networks of all foreign agents on the same host. The caller sets them.
    #[serde(skip)]
    pub visited: Vec<String>,
    /// The care-of addresses of all foreign agents on the same host, in the order of the roles. The caller sets them. The
    /// place of this agent in the list selects its packet classes. If the list is empty, the host has no other agent.
    #[serde(skip)]
    pub agents: Vec<Ipv4Addr>,
    /// Addresses to which other roles on the same host send without a previous request from these addresses. The caller
    /// sets them. A registration with one of them as the home address is denied.
    #[serde(skip)]
    pub partners: Vec<Ipv4Addr>,
    /// All addresses of the host on which the foreign agent runs. The caller sets them.
    #[serde(skip)]
    pub own: Vec<Ipv4Addr>,
    /// The addresses in `own` that belong to home agents on the same host. The caller sets them. Requests for these home
    /// agents are relayed to them. A home agent may have the address of this foreign agent.
    #[serde(skip)]
    pub beside: Vec<Ipv4Addr>,
    /// Whether a home agent with the same address and interface is on the same host. The caller sets it. This agent then
    /// advertises for both.
    #[serde(skip)]
    pub is_home: bool,
    /// The mobile nodes with which the foreign agent has security associations.
    #[serde(default)]
    pub mobile_nodes: Vec<Peer>,
    /// The home agents with which the foreign agent has security associations.
    #[serde(default)]
    pub home_agents: Vec<Peer>,
    /// The longest registration that the foreign agent advertises and accepts, in whole seconds from `3s` to `65534s`;
    /// default `60min` (not from an RFC).
    #[serde(default = "registration_lifetime", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub registration_lifetime: Duration,
    /// Whether mobile nodes with a co-located care-of address must register through this agent too (flag R; RFC 5944,
    /// section 2.1.1); default true.
    #[serde(default = "yes")]
    pub registration_required: bool,
    /// The maximum number of visits, at least 1; default 1024 (not from an RFC). When it is reached, the foreign agent advertises
    /// that it is busy, and denies requests that begin a visit. Without a security association, the foreign agent
    /// cannot check whether a mobile node exists. So a host on the link can use up all visits for
    /// `registration_lifetime`, if another host accepts its requests as the home agent.
    #[serde(default = "visitors")]
    #[schemars(range(min = 1))]
    pub visitors: usize,
    /// The maximum number of requests that wait for a home agent's reply; default 1024 (RFC 5944, section 3.7.1,
    /// suggests 5). Of these, at most 2 may have the same home and link address, and at most 4 the same link address.
    /// Requests of registered visitors are not counted.
    #[serde(default = "pending")]
    pub pending: usize,
    /// Whether the foreign agent offers reverse tunnels (flag T): `none`, `offered` or `required`; default `none` (RFC
    /// 3024).
    #[serde(default)]
    pub reverse_tunnel: AgentReverseTunnel,
    /// Whether the foreign agent supports the encapsulating delivery style of reverse tunnels; default true. Otherwise
    /// such requests are denied (code 79; RFC 3024, section 4.3.1).
    #[serde(default = "yes")]
    pub encapsulating_delivery: bool,
    /// Whether a request must contain a challenge from one of the last advertisements, and a Mobile-Foreign
    /// Authentication; default false (RFC 4721). So a recorded request cannot be used again. Only the mobile nodes in
    /// `mobile_nodes` can then register.
    #[serde(default)]
    pub challenge: bool,
    /// The number of last advertised challenges that a request may contain, from 1 to 16; default 2 (RFC 4721, section
    /// 9).
    #[serde(default = "challenge_window")]
    #[schemars(range(min = 1, max = 16))]
    pub challenge_window: usize,
    /// The kinds of tunnels that the foreign agent offers besides IP in IP: `minimal` (RFC 2004, flag M) and `gre` (RFC 2784,
    /// flag G), for example `["minimal", "gre"]`; default none. A request for another kind is denied with code 72.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(schema_with = "encapsulation::schema_of_offers")]
    pub encapsulations: Vec<Kind>,
    /// The size of the largest datagram inside a reverse tunnel by IP in IP, in bytes, at least 548; default 1480, as for
    /// a home agent.
    #[serde(default = "tunnel_mtu")]
    #[schemars(range(min = 548))]
    pub tunnel_mtu: u16,
    /// How long a request waits for the home agent's reply at most, greater than zero; default `7s` (RFC 5944, section
    /// 3.7.1).
    #[serde(default = "pending_timeout", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub pending_timeout: Duration,
    /// Which packets the foreign agent keeps for its visitors, to send them to their next care-of address. Without this table,
    /// it keeps none; an empty table keeps the last packet of each visitor.
    #[serde(default)]
    pub buffer: Option<Buffering>,
    /// The parameters of the agent advertisements.
    #[serde(default)]
    pub advertise: Advertise,
}

/// The configuration of a mobile node: its home network, its associations and its movement detection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the keys are independent options of one file")]
pub struct MobileNodeConfig {
    /// The home address, and the length of the home network's prefix, for example `10.1.0.7/16`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::interface_address")]
    pub address: InterfaceAddress,
    /// The name of the interface that moves between networks.
    pub interface: String,
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
    /// Whether the mobile node asks for simultaneous bindings (flag S); default false (RFC 5944, section 3.6.1.1). Then
    /// the home agent keeps its earlier care-of addresses, and sends a copy of each packet to each of them.
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
    /// The kind of tunnel that the mobile node asks for: `ip-in-ip`, `minimal` (flag M) or `gre` (flag G); default
    /// `ip-in-ip`. It asks a foreign agent only if the agent offers this kind. If the home agent does not offer it (code
    /// 139), the mobile node registers with IP in IP.
    #[serde(default, deserialize_with = "text")]
    #[schemars(schema_with = "encapsulation::schema")]
    pub encapsulation: Kind,
    /// The times at which the mobile node announces its return on the home network by gratuitous ARP (RFC 5944, section
    /// 4.6). They count from the return, and are in ascending order; default `0s`, `1s` and `3s` (not from an RFC).
    #[serde(default = "announcements", deserialize_with = "spans")]
    #[schemars(schema_with = "node::config::schema::spans")]
    pub announcements: Vec<Duration>,
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

/// A peer with which there is a mobility security association.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The address of the peer; of a mobile node, its home address.
    pub address: Ipv4Addr,
    /// The security parameter index, at least 256 (RFC 5944, section 1.6).
    pub spi: u32,
    /// The algorithm of the authenticator: `hmac-sha256`, or for a peer that does not support it `hmac-md5`,
    /// `keyed-md5` (RFC 3344) or `keyed-md5-without-spi` (RFC 2002); default `hmac-sha256`. A message is never checked
    /// with another algorithm than this one.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// How the association protects the requests of a mobile node to its home agent against replay: `timestamps` or
    /// `nonces`; default `timestamps` (RFC 5944, section 5.7). Both ends must have the same value. All associations with
    /// one mobile node must have the same value.
    #[serde(default)]
    pub replay: Replay,
    /// The key of the association, at least 16 bytes in hexadecimal.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::key")]
    pub key: Key,
}

/// Whether an agent supports reverse tunnels (RFC 3024): from the care-of address to the home agent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReverseTunnel {
    /// The agent denies requests with flag T (code 74 or 137).
    #[default]
    None,
    /// The agent accepts requests with and without flag T.
    Offered,
    /// The agent denies registrations without flag T (code 75 or 138).
    Required,
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

/// How an association protects requests against replay (RFC 5944, section 5.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// The Identification is a timestamp: near the home agent's clock, and later than that of the last accepted request.
    #[default]
    Timestamps,
    /// The high half of the Identification is the nonce in the home agent's last reply. The low half is a random number
    /// of the mobile node. So the two clocks need not agree.
    Nonces,
}

impl Replay {
    /// Returns the name in a configuration and in a role's status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timestamps => "timestamps",
            Self::Nonces => "nonces",
        }
    }
}

impl Peer {
    /// Returns the security association with this peer.
    pub fn association(&self) -> Association {
        Association { spi: self.spi, algorithm: self.algorithm, key: self.key.clone() }
    }
}

/// The security associations of a role, by the peer's address. Those with the same peer are in the order of the
/// configuration.
#[derive(Clone, Debug)]
pub(crate) struct Associations {
    all: BTreeMap<Ipv4Addr, Vec<Association>>,
    /// The peers whose associations use nonces.
    nonces: BTreeSet<Ipv4Addr>,
}

impl Associations {
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let mut all: BTreeMap<Ipv4Addr, Vec<Association>> = BTreeMap::new();
        for peer in peers {
            all.entry(peer.address).or_default().push(peer.association());
        }
        let nonces = peers.iter().filter(|peer| peer.replay == Replay::Nonces).map(|peer| peer.address);
        Self { all, nonces: nonces.collect() }
    }

    /// Returns how the associations with `peer` protect against replay.
    pub(crate) fn replay(&self, peer: Ipv4Addr) -> Replay {
        if self.nonces.contains(&peer) { Replay::Nonces } else { Replay::Timestamps }
    }

    /// Returns the association to sign with: the first that is configured for `peer`. `None` if there is none.
    pub(crate) fn first(&self, peer: Ipv4Addr) -> Option<&Association> {
        self.all.get(&peer)?.first()
    }

    /// Returns the association with `peer` that has this SPI; `None` if there is none.
    pub(crate) fn named(&self, peer: Ipv4Addr, spi: u32) -> Option<&Association> {
        self.all.get(&peer)?.iter().find(|association| association.spi == spi)
    }
}

impl HomeAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("mobile_nodes", &self.mobile_nodes)?;
        check_agent_peers("foreign_agents", &self.foreign_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        for peer in &self.mobile_nodes {
            // The home agent answers ARP requests for a mobile node's address. So this address must be in the home
            // network, and must not be the home agent's.
            let at_home = self.address.link.contains(peer.address) && peer.address != self.address.address;
            if !at_home || self.address.is_broadcast(peer.address) {
                let problem = format!(
                    "{} must be a host address of {} other than {}",
                    peer.address, self.address.link, self.address.address
                );
                return Err(ConfigError::new("mobile_nodes", problem));
            }
        }
        if self.replay_window <= Duration::from_secs(3) {
            return Err(ConfigError::new(
                "replay_window",
                "must be greater than 3s (RFC 5944, section 5.7.1)",
            ));
        }
        if !(1..=MOST_BINDINGS).contains(&self.simultaneous_bindings) {
            let problem = format!("must be from 1 to {MOST_BINDINGS}");
            return Err(ConfigError::new("simultaneous_bindings", problem));
        }
        check_tunnel_mtu(self.tunnel_mtu)?;
        encapsulation::check(&self.encapsulations)?;
        check_announcements(&self.announcements)
    }
}

impl ForeignAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_agent_peers("mobile_nodes", &self.mobile_nodes)?;
        check_agent_peers("home_agents", &self.home_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        check_tunnel_mtu(self.tunnel_mtu)?;
        encapsulation::check(&self.encapsulations)?;
        if self.visitors == 0 {
            let problem = "must be at least 1: without visits, no mobile node could register";
            return Err(ConfigError::new("visitors", problem));
        }
        if !(1..=16).contains(&self.challenge_window) {
            return Err(ConfigError::new("challenge_window", "must be from 1 to 16"));
        }
        if self.challenge && self.mobile_nodes.is_empty() {
            let problem = "needs `mobile_nodes`: without an association, no mobile node could register";
            return Err(ConfigError::new("challenge", problem));
        }
        if self.pending_timeout.is_zero() {
            return Err(ConfigError::new("pending_timeout", "must be greater than zero"));
        }
        self.buffer.as_ref().map_or(Ok(()), Buffering::check)
    }
}

impl MobileNodeConfig {
    /// Returns the flags of a request for a binding, except those that depend on the agent.
    pub(crate) const fn flags(&self) -> RequestFlags {
        RequestFlags(0)
            .with(RequestFlags::SIMULTANEOUS, self.simultaneous_bindings)
            .with(RequestFlags::BROADCAST, self.broadcasts)
    }

    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
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
                format!("{} must be another address than all others of this mobile node", peer.address);
            return Err(ConfigError::new("backup_home_agents", problem));
        }
        self.check_care_of()?;
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

fn check_address(key: &'static str, own: InterfaceAddress) -> Result<(), ConfigError> {
    if wire::ipv4::is_host(own.address) && !own.is_broadcast(own.address) {
        return Ok(());
    }
    let problem = format!(
        "{} is not a unicast host address; loopback, multicast, reserved and broadcast addresses are not allowed",
        own.address
    );
    Err(ConfigError::new(key, problem))
}

/// Checks the SPI and the key of an association. An error has the name of the wrong part, `spi` or `key`, and the
/// problem.
pub fn check_association(spi: u32, key: &Key) -> Result<(), (&'static str, String)> {
    if spi <= RESERVED_SPIS {
        return Err(("spi", format!("SPI {spi} is reserved; use {} or more", RESERVED_SPIS + 1)));
    }
    if key.as_bytes().len() < SHORTEST_KEY {
        return Err((
            "key",
            format!(
                "the key must have at least {SHORTEST_KEY} bytes, {} hexadecimal digits",
                2 * SHORTEST_KEY
            ),
        ));
    }
    Ok(())
}

fn check_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    let mut known = BTreeSet::new();
    for peer in peers {
        let problem = if !wire::ipv4::is_host(peer.address) {
            format!(
                "{} is not a unicast host address; loopback, multicast and reserved addresses are not allowed",
                peer.address
            )
        } else if let Err((_, problem)) = check_association(peer.spi, &peer.key) {
            format!("{}: {problem}", peer.address)
        } else if peers.iter().any(|other| other.address == peer.address && other.replay != peer.replay) {
            format!("{}: all its associations must have the same `replay`", peer.address)
        } else if !known.insert((peer.address, peer.spi)) {
            format!("{} has two associations with SPI {}; give each a different SPI", peer.address, peer.spi)
        } else {
            continue;
        };
        return Err(ConfigError::new(key, problem));
    }
    Ok(())
}

/// Checks the associations between a foreign agent and its peers. Requests are protected against replay between the
/// mobile node and its home agent only.
fn check_agent_peers(key: &'static str, peers: &[Peer]) -> Result<(), ConfigError> {
    check_peers(key, peers)?;
    match peers.iter().find(|peer| peer.replay == Replay::Nonces) {
        Some(peer) => {
            let problem = format!(
                "{}: `replay` must be `timestamps`; nonces are used only between a mobile node and its home agent",
                peer.address
            );
            Err(ConfigError::new(key, problem))
        }
        None => Ok(()),
    }
}

/// Checks the lifetime of registrations. A lifetime is sent in whole seconds, and [`INFINITE`] means without end.
/// Requests are at least 1 s apart. So a lifetime shorter than 3 s could end before a lost request is repeated.
fn check_lifetime(key: &'static str, lifetime: Duration) -> Result<(), ConfigError> {
    if lifetime.subsec_nanos() == 0 && (3..INFINITE.into()).contains(&lifetime.as_secs()) {
        return Ok(());
    }
    Err(ConfigError::new(key, "must be whole seconds, from 3s to 65534s"))
}

fn check_tunnel_mtu(mtu: u16) -> Result<(), ConfigError> {
    if mtu >= SMALLEST_MTU {
        return Ok(());
    }
    let problem =
        format!("must be at least {SMALLEST_MTU} bytes, the smallest MTU that an agent uses for a tunnel");
    Err(ConfigError::new("tunnel_mtu", problem))
}

/// Checks the times of announcements. Announcements are sent in the order of the list, so the times must be ascending.
fn check_announcements(times: &[Duration]) -> Result<(), ConfigError> {
    if times.is_sorted() {
        return Ok(());
    }
    Err(ConfigError::new(
        "announcements",
        "must be in ascending order, for example `[\"0s\", \"1s\", \"3s\"]`",
    ))
}

const fn yes() -> bool {
    true
}
const fn registration_lifetime() -> Duration {
    Duration::from_hours(1)
}
const fn replay_window() -> Duration {
    Duration::from_secs(7)
}
const fn simultaneous_bindings() -> usize {
    MOST_BINDINGS
}
const fn tunnel_mtu() -> u16 {
    1480
}
fn announcements() -> Vec<Duration> {
    vec![Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)]
}
const fn challenge_window() -> usize {
    2
}
const fn visitors() -> usize {
    1024
}
const fn pending() -> usize {
    1024
}
const fn pending_timeout() -> Duration {
    Duration::from_secs(7)
}
const fn lifetime() -> Duration {
    Duration::from_mins(5)
}
