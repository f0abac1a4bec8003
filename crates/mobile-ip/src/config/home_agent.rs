//! The configuration of a home agent.

use super::{
    Advertise, AgentReverseTunnel, Peer, announcements, check_address, check_agent_peers,
    check_announcements, check_lifetime, check_peers, check_replay_window, check_tunnel_mtu,
    registration_lifetime, replay_window, tunnel_mtu,
};
use crate::encapsulation;
use crate::message::Numbers;
use node::config::{ConfigError, span, spans, text, texts};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::tunnel::Kind;
use wire::{Duration, InterfaceAddress, Ipv4Addr, Prefix};

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
    /// Whether the home agent sends each of these foreign agents a key for smooth handoffs with a mobile node, in the reply that
    /// accepts its registration; default false (not from an RFC). The mobile node and the foreign agent need `distributed_keys`.
    /// A mobile node with `replay = "nonces"` gets no key: smooth handoffs need timestamps.
    #[serde(default)]
    pub distribute_keys: bool,
    /// The correspondents that the home agent informs of care-of addresses (route optimization), with their security
    /// associations; default none. Such a host sends its packets straight to the care-of address of a mobile node.
    #[serde(default)]
    pub correspondents: Vec<Peer>,
    /// The numbers of the messages of route optimization, and of distributed keys. They are used only with `correspondents` or
    /// `distribute_keys`.
    #[serde(default)]
    pub numbers: Numbers,
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
    /// Whether the home agent opens special tunnels of foreign agents that do not know a mobile node any more, and sends the
    /// packets to its present care-of address; default false: such a packet enters a second tunnel
    /// (draft-ietf-mobileip-optim-05, section 9.5).
    #[serde(default)]
    pub special_tunnels: bool,
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

impl HomeAgentConfig {
    /// Checks the configuration. An error names the key and the problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_address("address", self.address)?;
        check_peers("mobile_nodes", &self.mobile_nodes)?;
        check_agent_peers("foreign_agents", &self.foreign_agents)?;
        if self.distribute_keys && self.foreign_agents.is_empty() {
            let problem =
                "needs `foreign_agents`: a key is sent to an agent with a security association only";
            return Err(ConfigError::new("distribute_keys", problem));
        }
        check_peers("correspondents", &self.correspondents)?;
        if self.correspondents.iter().any(|peer| peer.address == self.address.address) {
            let problem = format!("{} is the address of the home agent", self.address.address);
            return Err(ConfigError::new("correspondents", problem));
        }
        self.numbers.check()?;
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
        check_replay_window(self.replay_window)?;
        if !(1..=MOST_BINDINGS).contains(&self.simultaneous_bindings) {
            let problem = format!("must be from 1 to {MOST_BINDINGS}");
            return Err(ConfigError::new("simultaneous_bindings", problem));
        }
        check_tunnel_mtu(self.tunnel_mtu)?;
        encapsulation::check(&self.encapsulations)?;
        check_announcements(&self.announcements)
    }
}

const fn simultaneous_bindings() -> usize {
    MOST_BINDINGS
}
