//! Checks of the roles of one host together. A role checks its own keys when it is built.

use crate::{NodeError, RoleConfig};
use mobile_ip::config::CareOf;
use node::config::ConfigError;

/// Checks that a mobile node that uses acquired addresses has a role that acquires them, and that a mobile node that uses
/// other addresses has none on its interface: its address would not be used, and its default route would replace that of
/// the mobile node.
pub(crate) fn check(roles: &[RoleConfig]) -> Result<(), NodeError> {
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
