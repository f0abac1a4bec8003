//! The configuration of a foreign agent.

use super::{
    Advertise, AgentReverseTunnel, Buffering, Peer, check_address, check_agent_peers, check_lifetime,
    check_tunnel_mtu, registration_lifetime, tunnel_mtu, yes,
};
use crate::encapsulation;
use crate::message::Numbers;
use node::config::{ConfigError, span, text, texts};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::tunnel::Kind;
use wire::{Duration, InterfaceAddress, Ipv4Addr};

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
    /// It is also the largest number of mobile nodes that have left and to which packets are forwarded: the oldest makes room.
    #[serde(default = "visitors")]
    #[schemars(range(min = 1))]
    pub visitors: usize,
    /// The maximum number of requests that wait for a home agent's reply, at least 1; default 1024 (RFC 5944, section 3.7.1,
    /// suggests 5). Of these, at most 2 may have the same home and link address, and at most 4 the same link address.
    /// Requests of registered visitors are not counted.
    #[serde(default = "pending")]
    #[schemars(range(min = 1))]
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
    /// Whether packets for visitors are delivered out of tunnels of any host, for example of correspondents (route
    /// optimization), and private bindings (flag P) are relayed; default false: only tunnels of the visitor's home agent are
    /// opened. A host that tunnels a packet to a visitor could send it to the home address as well.
    #[serde(default)]
    pub direct_tunnels: bool,
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
    /// it keeps none; an empty table keeps the last packet of each visitor. The table needs `smooth_handoff`, unless `when` is
    /// `link-down`.
    #[serde(default)]
    pub buffer: Option<Buffering>,
    /// Whether the foreign agent offers smooth handoffs (flag S; draft-ietf-mobileip-optim-09); default false. As the new
    /// agent, it sends the Binding Update of a mobile node to the previous agent, and delivers packets of that agent before
    /// the registration is accepted. As the previous agent, it forwards packets to the new care-of address. For that, it needs
    /// an association with the mobile node in `mobile_nodes`, or `distributed_keys`.
    #[serde(default)]
    pub smooth_handoff: bool,
    /// Whether the foreign agent takes keys for smooth handoffs from the home agents in `home_agents`, which send one with each
    /// registration that they accept (`distribute_keys`); default false (not from an RFC). A key is used only for the visit, and
    /// for its end by a smooth handoff. A mobile node in `mobile_nodes` keeps the key that is configured there. The option needs
    /// `smooth_handoff`.
    #[serde(default)]
    pub distributed_keys: bool,
    /// Whether a packet out of a tunnel for a host that is no visitor, and has not left by a smooth handoff, goes back to
    /// the host's home agent in a special tunnel; default false: it is dropped (draft-ietf-mobileip-optim-05, section 10.5). The
    /// home agent needs `special_tunnels` too.
    #[serde(default)]
    pub special_tunnels: bool,
    /// The numbers of messages, extensions and flags of smooth handoffs. All agents and mobile nodes must have the same
    /// values.
    #[serde(default)]
    pub numbers: Numbers,
    /// The parameters of the agent advertisements.
    #[serde(default)]
    pub advertise: Advertise,
}

impl ForeignAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_agent_peers("mobile_nodes", &self.mobile_nodes)?;
        check_agent_peers("home_agents", &self.home_agents)?;
        check_lifetime("registration_lifetime", self.registration_lifetime)?;
        self.advertise.check()?;
        self.numbers.check()?;
        check_tunnel_mtu(self.tunnel_mtu)?;
        encapsulation::check(&self.encapsulations)?;
        if self.visitors == 0 {
            let problem = "must be at least 1: without visits, no mobile node could register";
            return Err(ConfigError::new("visitors", problem));
        }
        if self.pending == 0 {
            let problem = "must be at least 1: without waiting requests, no mobile node could register";
            return Err(ConfigError::new("pending", problem));
        }
        if !(1..=16).contains(&self.challenge_window) {
            return Err(ConfigError::new("challenge_window", "must be from 1 to 16"));
        }
        if self.challenge && self.mobile_nodes.is_empty() {
            let problem = "needs `mobile_nodes`: without an association, no mobile node could register";
            return Err(ConfigError::new("challenge", problem));
        }
        if self.pending_timeout.is_zero() {
            return Err(ConfigError::new("pending_timeout", "must be greater than zero, for example `7s`"));
        }
        if self.buffer.as_ref().is_some_and(Buffering::needs_handoffs) && !self.smooth_handoff {
            let problem = "needs `smooth_handoff = true`, or `when = \"link-down\"`: otherwise kept packets are never sent";
            return Err(ConfigError::new("buffer", problem));
        }
        if self.distributed_keys && !self.smooth_handoff {
            let problem = "needs `smooth_handoff = true`: the keys are used for nothing else";
            return Err(ConfigError::new("distributed_keys", problem));
        }
        if self.distributed_keys && self.home_agents.is_empty() {
            let problem =
                "needs `home_agents`: a key is taken from an agent with a security association only";
            return Err(ConfigError::new("distributed_keys", problem));
        }
        self.buffer.as_ref().map_or(Ok(()), Buffering::check)
    }

    /// Returns the key that has no effect with the others, and the reason; `None` if there is none.
    pub fn without_effect(&self) -> Option<ConfigError> {
        let has_keys = self.distributed_keys || !self.mobile_nodes.is_empty();
        let is_for_handoffs = self.buffer.as_ref().is_some_and(Buffering::needs_handoffs);
        let problem = "has no effect: without `mobile_nodes` or `distributed_keys = true`, the agent has no key for smooth handoffs, and kept packets are never sent";
        (is_for_handoffs && !has_keys).then(|| ConfigError::new("buffer", problem))
    }
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
