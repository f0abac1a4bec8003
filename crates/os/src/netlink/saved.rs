//! Saved routes, addresses and neighbors, to be added again later: the kernel's own messages, as `ip route save`
//! keeps them.

use super::Netlink;
use crate::error::{Attempt, Result};
use netlink_packet_core::{Emitable, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, Parseable};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressProtocol};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAttribute, RouteHeader, RouteMessage, RouteNextHop, RouteProtocol};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;

/// A route, an address or a neighbor, as the kernel listed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Saved {
    /// The body of an address message: `struct ifaddrmsg` and its attributes.
    Address(Vec<u8>),
    /// The body of a route message: `struct rtmsg` and its attributes.
    Route(Vec<u8>),
    /// The body of a neighbor message: `struct ndmsg` and its attributes.
    Neighbor(Vec<u8>),
}

impl Netlink {
    /// Returns the IPv4 default routes of the main table that [`Netlink::set_route`] would replace: those without a
    /// metric.
    pub fn default_routes(&mut self) -> Result<Vec<Saved>> {
        let is_replaced = |route: &RouteMessage| {
            let has_metric = |attribute: &RouteAttribute| matches!(attribute, RouteAttribute::Priority(metric) if *metric != 0);
            route.header.table == RouteHeader::RT_TABLE_MAIN
                && route.header.destination_prefix_length == 0
                && !route.attributes.iter().any(has_metric)
        };
        let routes = self.routes(AddressFamily::Inet)?;
        let replaced = routes.into_iter().filter(|route| is_replaced(route)).map(as_added);
        Ok(replaced.map(|route| Saved::Route(bytes_of(&route))).collect())
    }

    /// Returns the IPv6 state of the link with this index, to be added again after IPv6 was switched off on the link.
    /// It has permanent addresses, permanent neighbors, and routes of every table. What the kernel or a router
    /// advertisement has set is left out. Addresses come before the routes that need them. If a route has several next
    /// hops, each hop over this link is a separate entry: hops over other links stay in the kernel.
    ///
    /// Nexthop objects (`ip nexthop`) and the routes that refer to them stay in the kernel when IPv6 is switched off.
    /// Such a route is included with the id of its object, because another program may remove the route. An object that
    /// was deleted meanwhile is not created again, and [`Netlink::add_again`] fails for its routes.
    ///
    /// The kernel learns again what router advertisements contain. Proxy neighbor entries (`ip neigh add proxy`) and
    /// memberships of multicast groups are not included. Settings of `net.ipv6.conf` that change together with
    /// `disable_ipv6` are not included either.
    pub fn ipv6_of(&mut self, index: u32) -> Result<Vec<Saved>> {
        let mut ask = AddressMessage::default();
        ask.header.family = AddressFamily::Inet6;
        let answers = self
            .request(RouteNetlinkMessage::GetAddress(ask), NLM_F_DUMP)
            .attempt("list", format_args!("the IPv6 addresses of the link with index {index}"))?;
        let mut saved: Vec<Saved> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewAddress(address) if is_kept(&address, index) => {
                    Some(Saved::Address(bytes_of(&address)))
                }
                _ => None,
            })
            .collect();
        let is_by_itself = |protocol| matches!(protocol, RouteProtocol::Kernel | RouteProtocol::Ra);
        let routes = self.routes(AddressFamily::Inet6)?.into_iter();
        let routes = routes.filter(|route| !is_by_itself(route.header.protocol));
        saved.extend(
            routes.flat_map(|route| by_link(route, index)).map(|route| Saved::Route(bytes_of(&route))),
        );
        saved.extend(self.permanent_neighbors(index)?);
        Ok(saved)
    }

    fn permanent_neighbors(&mut self, index: u32) -> Result<Vec<Saved>> {
        let mut ask = NeighbourMessage::default();
        ask.header.family = AddressFamily::Inet6;
        let answers = self
            .request(RouteNetlinkMessage::GetNeighbour(ask), NLM_F_DUMP)
            .attempt("list", format_args!("the IPv6 neighbors of the link with index {index}"))?;
        let neighbors = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewNeighbour(neighbor)
                if neighbor.header.ifindex == index && neighbor.header.state == NeighbourState::Permanent =>
            {
                Some(Saved::Neighbor(bytes_of(&neighbor)))
            }
            _ => None,
        });
        Ok(neighbors.collect())
    }

    fn routes(&mut self, family: AddressFamily) -> Result<Vec<RouteMessage>> {
        let mut ask = RouteMessage::default();
        ask.header.address_family = family;
        let answers = self
            .request(RouteNetlinkMessage::GetRoute(ask), NLM_F_DUMP)
            .attempt("list", "the routes of all tables")?;
        let routes = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        Ok(routes.collect())
    }

    /// Adds a saved entry to the kernel again. If the entry exists already, or if its interface does not exist any
    /// more, this does nothing.
    pub fn add_again(&mut self, saved: &Saved) -> Result<()> {
        let (message, flags) = match saved {
            Saved::Address(bytes) => {
                let message = AddressMessage::parse(bytes).map_err(io::Error::other);
                (message.map(RouteNetlinkMessage::NewAddress), NLM_F_EXCL)
            }
            Saved::Route(bytes) => {
                let message = RouteMessage::parse(bytes).map_err(io::Error::other);
                // A next hop joins the existing hops of its route.
                let is_hop = message.as_ref().is_ok_and(is_hop);
                (message.map(RouteNetlinkMessage::NewRoute), if is_hop { NLM_F_APPEND } else { NLM_F_EXCL })
            }
            Saved::Neighbor(bytes) => {
                let message = NeighbourMessage::parse(bytes).map_err(io::Error::other);
                (message.map(RouteNetlinkMessage::NewNeighbour), NLM_F_EXCL)
            }
        };
        let what = saved.name();
        let message = message.attempt("parse", &what)?;
        match self.act(message, NLM_F_CREATE | flags) {
            Err(done) if matches!(done.raw_os_error(), Some(libc::EEXIST | libc::ENODEV)) => Ok(()),
            other => other.attempt("restore", what),
        }
    }
}

impl Saved {
    /// Returns a name for messages, similar to the output of `ip`: `the route default via 10.0.0.1`.
    fn name(&self) -> String {
        match self {
            Self::Address(bytes) => AddressMessage::parse(bytes).map_or("an address".to_owned(), |message| {
                let address = message.attributes.iter().find_map(|attribute| match attribute {
                    AddressAttribute::Address(address) => Some(address.to_string()),
                    _ => None,
                });
                format!("the address {}/{}", address.unwrap_or_default(), message.header.prefix_len)
            }),
            Self::Route(bytes) => {
                RouteMessage::parse(bytes).map_or("a route".to_owned(), |message| name_of_route(&message))
            }
            Self::Neighbor(bytes) => {
                NeighbourMessage::parse(bytes).map_or("a neighbor".to_owned(), |message| {
                    let destination = message.attributes.iter().find_map(|attribute| match attribute {
                        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                            Some(address.to_string())
                        }
                        _ => None,
                    });
                    format!("the neighbor {}", destination.unwrap_or_default())
                })
            }
        }
    }
}

fn name_of_route(route: &RouteMessage) -> String {
    use netlink_packet_route::route::RouteAddress;
    let text = |address: &RouteAddress| match address {
        RouteAddress::Inet(address) => address.to_string(),
        RouteAddress::Inet6(address) => address.to_string(),
        other => format!("{other:?}"),
    };
    let (mut name, mut destination) = (String::new(), "default".to_owned());
    let len = route.header.destination_prefix_length;
    for attribute in &route.attributes {
        let _ = match attribute {
            RouteAttribute::Destination(address) if len > 0 => {
                destination = format!("{}/{len}", text(address));
                Ok(())
            }
            RouteAttribute::Gateway(address) => write!(name, " via {}", text(address)),
            RouteAttribute::NhId(object) => write!(name, " nhid {object}"),
            RouteAttribute::Table(table) if *table != u32::from(RouteHeader::RT_TABLE_MAIN) => {
                write!(name, " table {table}")
            }
            _ => Ok(()),
        };
    }
    format!("the route {destination}{name}")
}

/// Returns a route in a form that the kernel accepts. The kernel lists a route by a nexthop object together with the
/// object's hops, but refuses a request with both.
fn as_added(mut route: RouteMessage) -> RouteMessage {
    if is_by_object(&route) {
        let is_of_object = |attribute: &RouteAttribute| {
            matches!(
                attribute,
                RouteAttribute::Oif(_)
                    | RouteAttribute::Gateway(_)
                    | RouteAttribute::Via(_)
                    | RouteAttribute::MultiPath(_)
                    | RouteAttribute::Encap(_)
                    | RouteAttribute::EncapType(_)
            )
        };
        route.attributes.retain(|attribute| !is_of_object(attribute));
    }
    route
}

fn is_by_object(route: &RouteMessage) -> bool {
    route.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::NhId(_)))
}

/// Returns the parts of a route that use the link with this index: the whole route, or a route for each of its next
/// hops over the link. The result is empty if the route does not use the link.
fn by_link(route: RouteMessage, index: u32) -> Vec<RouteMessage> {
    if is_by_object(&route) {
        let goes_by = |attribute: &RouteAttribute| match attribute {
            RouteAttribute::Oif(link) => *link == index,
            RouteAttribute::MultiPath(hops) => hops.iter().any(|hop| hop.interface_index == index),
            _ => false,
        };
        let is_there = route.attributes.iter().any(goes_by);
        return is_there.then(|| as_added(route)).into_iter().collect();
    }
    if route.attributes.contains(&RouteAttribute::Oif(index)) {
        return vec![route];
    }
    let hops = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::MultiPath(hops) => Some(hops.clone()),
        _ => None,
    });
    let alone = |hop: RouteNextHop| {
        let mut part = route.clone();
        part.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::MultiPath(_)));
        part.attributes.push(RouteAttribute::MultiPath(vec![hop]));
        part
    };
    hops.into_iter().flatten().filter(|hop| hop.interface_index == index).map(alone).collect()
}

/// Returns whether the route is one next hop that [`by_link`] has taken from a route with several hops.
fn is_hop(route: &RouteMessage) -> bool {
    route.header.address_family == AddressFamily::Inet6
        && route.attributes.iter().any(|attribute| matches!(attribute, RouteAttribute::MultiPath(_)))
}

/// Returns whether an address must be saved: it is permanent, and belongs to the link with this index. Link-local and
/// loopback addresses that the kernel has created are not saved, because the kernel creates them again.
fn is_kept(address: &AddressMessage, index: u32) -> bool {
    let has = |is: fn(&AddressAttribute) -> bool| address.attributes.iter().any(is);
    let is_permanent = has(
        |attribute| matches!(attribute, AddressAttribute::Flags(flags) if flags.contains(AddressFlags::Permanent)),
    );
    let is_the_kernels = has(|attribute| {
        matches!(
            attribute,
            AddressAttribute::Protocol(AddressProtocol::LinkLocal | AddressProtocol::Loopback)
        )
    });
    address.header.index == index && is_permanent && !is_the_kernels
}

fn bytes_of(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::sysctl;
    use crate::testing::{in_sandbox, need, veth};
    use std::process::Command;

    fn ip(words: &str) -> String {
        let output = Command::new("ip").args(words.split(' ')).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Lists IPv6 routes, addresses and permanent neighbors, except those that the kernel creates by itself.
    fn ipv6() -> String {
        let by_hand = |shown: String| {
            let mut lines: Vec<&str> =
                shown.lines().map(str::trim_end).filter(|line| !line.contains("proto kernel")).collect();
            lines.sort_unstable();
            lines.join("\n")
        };
        let routes = by_hand(ip("-6 route show table all"));
        let by_link = by_hand(ip("-6 -o addr show scope link"));
        let global = by_hand(ip("-6 -o addr show scope global"));
        format!(
            "{routes}\n{}\n{global}\n{}",
            by_link.replace(" tentative", ""),
            ip("-6 neigh show nud permanent")
        )
    }

    /// Makes a veth pair with addresses, and a nexthop object. Returns false if `ip` or the kernel does not support
    /// nexthop objects.
    fn with_objects() -> bool {
        veth("a0", "b0");
        for device in ["a0", "b0"] {
            sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "0").unwrap();
        }
        ip("addr add 10.1.0.9/24 dev a0");
        ip("-6 addr add 2001:db8::1/64 dev a0 nodad");
        let made = Command::new("ip").args("nexthop add id 5 via 10.1.0.1 dev a0".split(' ')).output();
        need("nexthop objects", made.is_ok_and(|made| made.status.success()))
    }

    #[test]
    fn routes_by_nexthop_objects_return() {
        in_sandbox(|| {
            if !need("ip", Command::new("ip").arg("-V").output().is_ok()) || !with_objects() {
                return;
            }
            for words in [
                "nexthop add id 6 via 2001:db8::9 dev a0",
                "nexthop add id 7 via 2001:db8::a dev a0",
                "nexthop add id 8 group 6,2/7",
                "route add default nhid 5",
                "-6 route add 2001:db8:1::/48 nhid 6",
                "-6 route add 2001:db8:2::/48 nhid 8",
            ] {
                ip(words);
            }
            // The kernel lists the link-local routes of both devices in the order in which they were added. So they are
            // sorted.
            let routes = || {
                let all = format!("{}{}{}", ip("route show"), ip("-6 route show"), ip("nexthop show"));
                let (mut link_local, others): (Vec<_>, Vec<_>) =
                    all.lines().map(str::to_owned).partition(|line| line.starts_with("fe80::/64"));
                link_local.sort();
                (others, link_local)
            };
            let before = routes();
            let mut net = Netlink::open().unwrap();
            let mut saved = net.default_routes().unwrap();
            let index = net.link("a0").unwrap().index;
            saved.extend(net.ipv6_of(index).unwrap());
            // A daemon replaces the default route and switches IPv6 off. Then another program deletes routes.
            net.set_route(wire::Prefix::ANY, "b0", None).unwrap();
            sysctl("net/ipv6/conf/a0/disable_ipv6", "1").unwrap();
            ip("-6 route del 2001:db8:2::/48");
            assert_ne!(routes(), before);
            sysctl("net/ipv6/conf/a0/disable_ipv6", "0").unwrap();
            ip("route del default");
            for _ in 0..2 {
                for saved in &saved {
                    net.add_again(saved).unwrap();
                }
                assert_eq!(routes(), before);
            }
            // When a nexthop object is deleted, the kernel deletes the routes that refer to it.
            ip("nexthop del id 5");
            let refused = net.add_again(&saved[0]).unwrap_err().to_string();
            assert!(refused.contains("the route default nhid 5"), "{refused}");
        });
    }

    #[test]
    fn what_ipv6_loses_on_a_link_is_added_again() {
        in_sandbox(|| {
            if !need("ip", Command::new("ip").arg("-V").output().is_ok()) {
                return;
            }
            veth("a0", "b0");
            for device in ["a0", "b0"] {
                sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "0").unwrap();
            }
            for words in [
                "addr add 2001:db8::1/64 dev a0 nodad",
                "addr add fe80::1/64 dev a0 nodad",
                "addr add 2001:db8:b::1/64 dev b0 nodad",
                "route add 2001:db8:1::/48 via 2001:db8::9 dev a0",
                "route add 2001:db8:2::/48 nexthop via 2001:db8::9 dev a0 weight 3 nexthop via 2001:db8::a dev a0",
                "route add 2001:db8:4::/48 nexthop via 2001:db8::9 dev a0 nexthop via 2001:db8:b::9 dev b0",
                "route add 2001:db8:3::/48 via 2001:db8::9 dev a0 table 100",
                "route add 2001:db8:5::/48 via 2001:db8::9 dev a0 table 1000",
                "route add default via fe80::99 dev a0",
                "neigh add 2001:db8::9 lladdr 02:00:00:00:00:66 dev a0 nud permanent",
            ] {
                ip(&format!("-6 {words}"));
            }
            let before = ipv6();
            let mut net = Netlink::open().unwrap();
            let index = net.link("a0").unwrap().index;
            let saved = net.ipv6_of(index).unwrap();
            sysctl("net/ipv6/conf/a0/disable_ipv6", "1").unwrap();
            assert_ne!(ipv6(), before);
            sysctl("net/ipv6/conf/a0/disable_ipv6", "0").unwrap();
            for saved in &saved {
                net.add_again(saved).unwrap();
            }
            assert_eq!(ipv6(), before);
            // An entry that exists is not added a second time.
            for saved in &saved {
                net.add_again(saved).unwrap();
            }
            assert_eq!(ipv6(), before);
        });
    }
}
