//! Completes the roles of DHCP from the layout of the scenario.

use super::mobile_ip::interface_address;
use super::{Around, default};
use crate::file::networks::AIR;
use toml::Table;

/// Fills in a client. It acquires an address for its host's radio.
#[expect(clippy::unnecessary_wraps, reason = "the type of all functions that complete a role")]
pub(super) fn client(_: &Around<'_>, role: &mut Table) -> Result<(), String> {
    default(role, "interface", AIR);
    Ok(())
}

/// Fills in a server. It serves the network of its host's cell. Without a `router`, its host is the router.
pub(super) fn server(around: &Around<'_>, role: &mut Table) -> Result<(), String> {
    let own = interface_address(around.layout, around.host)?;
    let address = own.split('/').next().unwrap_or_default().to_owned();
    default(role, "address", own.clone());
    default(role, "router", address);
    default(role, "interface", AIR);
    Ok(())
}
