//! Checks of the roles of one host together. A role checks its own keys when it is built.

use crate::{NodeError, RoleConfig};
use mobile_ip::config::CareOf;
use node::config::ConfigError;

/// Checks the roles of one host together.
pub(crate) fn check(roles: &[RoleConfig]) -> Result<(), NodeError> {
    check_care_of(roles)?;
    check_binding_updates(roles)
}

/// Checks that no correspondent takes the Binding Updates of a foreign agent at the same address.
fn check_binding_updates(roles: &[RoleConfig]) -> Result<(), NodeError> {
    let first = roles.iter().enumerate().find_map(|(index, role)| {
        let RoleConfig::MobileIpCorrespondent(correspondent) = role else { return None };
        let is_same = |agent: &RoleConfig| {
            matches!(agent, RoleConfig::MobileIpForeignAgent(agent) if agent.address.address == correspondent.address)
        };
        roles.iter().skip(index).any(is_same).then_some((index, correspondent.address))
    });
    let Some((index, address)) = first else { return Ok(()) };
    let problem = format!(
        "{address} is the address of the foreign agent of this host: this role, which is before it, would take its Binding Updates; write another address of the host"
    );
    let (kind, error) = (roles[index].kind(), ConfigError::new("address", problem));
    Err(NodeError::Role { kind, index, error })
}

/// Checks that a mobile node that uses acquired addresses has a role that acquires them, and that a mobile node that uses
/// other addresses has none on its interface: its address would not be used, and its default route would replace that of
/// the mobile node.
fn check_care_of(roles: &[RoleConfig]) -> Result<(), NodeError> {
    for (index, role) in roles.iter().enumerate() {
        let RoleConfig::MobileIpMobileNode(node) = role else { continue };
        let interface = &node.interface;
        let client = roles.iter().position(|other| is_client(other, interface));
        let (place, key, problem) = match (node.care_of, client) {
            (CareOf::Acquired, None) => (
                index,
                "care_of",
                format!(
                    "`acquired` needs a role of this host that acquires an address of the interface `{interface}`; add the role `dhcp/client` with this interface, or write `agent` or `configured`"
                ),
            ),
            (CareOf::Agent | CareOf::Configured, Some(client)) => (
                client,
                "kind",
                format!(
                    "the mobile node of this host has `care_of = \"{}\"`, and does not use the address that this role acquires; write `care_of = \"acquired\"` in the role `mobile-ip/mobile-node`, or remove this role",
                    node.care_of.name()
                ),
            ),
            _ => continue,
        };
        let (kind, error) = (roles[place].kind(), ConfigError::new(key, problem));
        return Err(NodeError::Role { kind, index: place, error });
    }
    Ok(())
}

fn is_client(role: &RoleConfig, interface: &str) -> bool {
    matches!(role, RoleConfig::DhcpClient(client) if client.interface == interface)
}
