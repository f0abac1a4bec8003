//! Routes and IPv6 addresses as they were, to be added again: the kernel's own messages, as `ip route save` keeps them.

use super::Netlink;
use crate::error::{Attempt, Result};
use netlink_packet_core::{Emitable, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, Parseable};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::route::{RouteAttribute, RouteHeader, RouteMessage, RouteProtocol};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use serde::{Deserialize, Serialize};
use std::io;

/// A route or an address, as the kernel listed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Saved {
    /// The bytes of an address message.
    Address(Vec<u8>),
    /// The bytes of a route message.
    Route(Vec<u8>),
}

impl Netlink {
    /// The IPv4 default routes of the main table that [`Netlink::set_route`] would replace: those without a metric.
    pub(crate) fn default_routes(&mut self) -> Result<Vec<Saved>> {
        let is_replaced = |route: &RouteMessage| {
            let has_metric = |attribute: &RouteAttribute| matches!(attribute, RouteAttribute::Priority(metric) if *metric != 0);
            is_of_main_table(route)
                && route.header.destination_prefix_length == 0
                && !route.attributes.iter().any(has_metric)
        };
        self.saved_routes(AddressFamily::Inet, is_replaced)
    }

    /// What the kernel forgets when IPv6 is switched off on a link, and does not find again by itself: permanent addresses, and
    /// routes that neither it nor a router advertisement set. Addresses come before the routes that need them.
    pub(crate) fn ipv6_of(&mut self, index: u32) -> Result<Vec<Saved>> {
        let mut ask = AddressMessage::default();
        ask.header.family = AddressFamily::Inet6;
        let answers = self
            .request(RouteNetlinkMessage::GetAddress(ask), NLM_F_DUMP)
            .attempt("list", "the addresses")?;
        let mut saved: Vec<Saved> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewAddress(address) if is_kept(&address, index) => {
                    Some(Saved::Address(bytes_of(&address)))
                }
                _ => None,
            })
            .collect();
        saved.extend(self.saved_routes(AddressFamily::Inet6, |route| {
            let is_by_itself = matches!(route.header.protocol, RouteProtocol::Kernel | RouteProtocol::Ra);
            is_of_main_table(route) && !is_by_itself && route.attributes.contains(&RouteAttribute::Oif(index))
        })?);
        Ok(saved)
    }

    fn saved_routes(
        &mut self,
        family: AddressFamily,
        is_wanted: impl Fn(&RouteMessage) -> bool,
    ) -> Result<Vec<Saved>> {
        let mut ask = RouteMessage::default();
        ask.header.address_family = family;
        let answers =
            self.request(RouteNetlinkMessage::GetRoute(ask), NLM_F_DUMP).attempt("list", "the routes")?;
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) if is_wanted(&route) => Some(Saved::Route(bytes_of(&route))),
            _ => None,
        });
        Ok(routes.collect())
    }

    /// Adds it as it was; what is there already is not touched, and what was of an interface that is gone is not added.
    pub(crate) fn add_again(&mut self, saved: &Saved) -> Result<()> {
        let (what, message) = match saved {
            Saved::Address(bytes) => {
                let message = AddressMessage::parse(bytes).map_err(io::Error::other);
                ("an address", message.map(RouteNetlinkMessage::NewAddress))
            }
            Saved::Route(bytes) => {
                let message = RouteMessage::parse(bytes).map_err(io::Error::other);
                ("a route", message.map(RouteNetlinkMessage::NewRoute))
            }
        };
        let message = message.attempt("understand", what)?;
        match self.act(message, NLM_F_CREATE | NLM_F_EXCL) {
            Err(done) if matches!(done.raw_os_error(), Some(libc::EEXIST | libc::ENODEV)) => Ok(()),
            other => other.attempt("add again", what),
        }
    }
}

fn is_of_main_table(route: &RouteMessage) -> bool {
    route.header.table == RouteHeader::RT_TABLE_MAIN
}

fn is_kept(address: &AddressMessage, index: u32) -> bool {
    let is_permanent = address.attributes.iter().any(
        |attribute| matches!(attribute, AddressAttribute::Flags(flags) if flags.contains(AddressFlags::Permanent)),
    );
    address.header.index == index && address.header.scope != AddressScope::Link && is_permanent
}

fn bytes_of(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}
