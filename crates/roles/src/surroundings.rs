//! What a role's configuration takes from its host.

use wire::{InterfaceAddress, Ipv4Addr};

/// The facts about a host that its roles need, from the configuration of the host and of its other roles.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// All addresses of the host, each with the prefix of its link; the prefix has 32 bits for an address without an
    /// interface.
    pub own: Vec<InterfaceAddress>,
    /// The names of the host's interfaces on which it is a foreign agent of Mobile IP.
    pub visited: Vec<String>,
    /// The addresses of other hosts to which the host's roles send without a previous request from these addresses: the
    /// support routers of Indirect TCP.
    pub partners: Vec<Ipv4Addr>,
    /// The addresses of the host's home agents of Mobile IP, each with its interface.
    pub home_agents: Vec<(Ipv4Addr, String)>,
    /// The addresses of the host's foreign agents of Mobile IP, each with its interface.
    pub foreign_agents: Vec<(Ipv4Addr, String)>,
}

impl Surroundings {
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        self.own.iter().map(|own| own.address).collect()
    }
}
