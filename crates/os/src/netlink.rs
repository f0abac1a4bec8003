//! Links, addresses and routes, by rtnetlink(7). Each call blocks until the kernel has answered.

mod saved;

use crate::TcpLosses;
use crate::error::{Attempt, Error, Result};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use wire::{Ipv4Addr, Mac, Prefix};

pub use saved::Saved;

/// The network namespace for an end of a new link.
#[derive(Clone, Copy, Debug)]
pub enum EndPlace<'a> {
    /// The namespace in which the [`Netlink`] was opened.
    Here,
    /// The namespace of this descriptor; see [`crate::NetNs`].
    Fd(BorrowedFd<'a>),
    /// The namespace of the process with this pid.
    Process(u32),
}

/// One end of a new veth pair.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The name of the link, at most 15 bytes.
    pub name: &'a str,
    /// The link address of this end.
    pub mac: Mac,
    /// The namespace into which this end is put.
    pub place: EndPlace<'a>,
}

/// A link as the kernel lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The index of the link in its namespace.
    pub index: u32,
    /// The name of the link.
    pub name: String,
    /// The link address; zero if it is not six bytes long.
    pub mac: Mac,
    /// The MTU of the link, in bytes.
    pub mtu: u32,
    /// Whether the link is administratively up (`IFF_UP`).
    pub up: bool,
    /// Whether the link carries frames: it is up, has a carrier and is not dormant (waiting for authentication). A veth
    /// has a carrier if both ends are up.
    pub carries: bool,
    /// Whether the kernel does ARP on the link.
    pub arp: bool,
}

/// A socket for the links, addresses and routes of one network namespace: that of the thread that opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// The number of the metric `rto_min` of a route (`linux/rtnetlink.h`).
const RTAX_RTO_MIN: u32 = 13;

/// Settings of TCP connections that use a route (`ip-route(8)`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpMetrics {
    /// `congctl`: the congestion control, by the kernel's name; `None` is the kernel's default.
    pub congestion: Option<String>,
    /// `window`: the largest window that is advertised to a peer, in bytes; `None` is no limit.
    pub window: Option<u32>,
    /// `rto_min`: the smallest retransmission time-out, in milliseconds; `None` is that of the namespace
    /// (`tcp_rto_min_us`).
    pub rto_min: Option<u32>,
    /// `tcp_wmem`: the largest send buffer in bytes, with what the kernel needs for each packet; `None` is 4 MiB. It is
    /// a setting of the namespace, so [`Netlink::set_route_for`] does not set it.
    pub send_buffer: Option<u32>,
    /// Options and loss recovery of all connections of the namespace. It is not an attribute of a route, so
    /// [`Netlink::set_route_for`] does not set it.
    pub losses: TcpLosses,
}

impl Netlink {
    /// Opens a socket for the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let open = || {
            let socket = Socket::new(NETLINK_ROUTE)?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok::<_, io::Error>(socket)
        };
        Ok(Self { socket: open().attempt("open", "an rtnetlink socket")?, sequence: 0 })
    }

    /// Returns all links of the namespace.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let ask = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.request(ask, NLM_F_DUMP).attempt("list", "the links of this network namespace")?;
        Ok(answers.into_iter().filter_map(link_of).collect())
    }

    /// Returns the link called `name`; the error is `ENODEV` if there is none.
    pub fn link(&mut self, name: &str) -> Result<Link> {
        let ask = RouteNetlinkMessage::GetLink(named(name));
        let answers = self.request(ask, NLM_F_ACK).attempt("find the link", name)?;
        let found = answers.into_iter().find_map(link_of);
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV)).attempt("find the link", name)
    }

    /// Creates a veth pair. Both ends are down, and each can be used only in its namespace. Fails with `EEXIST` if a
    /// name is in use.
    pub fn add_veth(&mut self, a: &End<'_>, b: &End<'_>) -> Result<()> {
        let mut message = end(a);
        let info =
            vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end(b))))];
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let made = self.act(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL);
        made.attempt("make the veth pair", format_args!("{} - {}", a.name, b.name))
    }

    /// Deletes a link. If it is an end of a veth pair, the kernel deletes both ends.
    pub fn delete_link(&mut self, name: &str) -> Result<()> {
        self.act(RouteNetlinkMessage::DelLink(named(name)), 0).attempt("delete the link", name)
    }

    /// Sets a link up or down.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<()> {
        self.set_flag(name, LinkFlags::Up, up).attempt(if up { "bring up" } else { "bring down" }, name)
    }

    /// Enables or disables the kernel's ARP on a link.
    pub fn set_arp(&mut self, name: &str, arp: bool) -> Result<()> {
        self.set_flag(name, LinkFlags::Noarp, !arp).attempt("switch ARP on or off on", name)
    }

    /// Sets the MTU of a link, in bytes.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<()> {
        let mut message = named(name);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.act(RouteNetlinkMessage::SetLink(message), 0).attempt("set the MTU of", name)
    }

    /// Makes the kernel's TCP queue and send data over this link segment by segment, and not in large GSO packets that
    /// are cut later. A GSO packet may exceed the send buffer. The setting applies to connections that begin after this
    /// call.
    pub fn keep_segments(&mut self, name: &str) -> Result<()> {
        let mut message = named(name);
        message.attributes.push(LinkAttribute::GsoMaxSegs(1));
        self.act(RouteNetlinkMessage::SetLink(message), 0).attempt("limit the GSO segments of", name)
    }

    /// Sets the loopback up; it is down in a new namespace.
    pub fn loopback_up(&mut self) -> Result<()> {
        self.set_up("lo", true)
    }

    /// Adds an address in a prefix of `len` bits to a link. The kernel adds the route to the prefix when the link is
    /// up. Fails with `EEXIST` if the link already has the address.
    pub fn add_address(&mut self, name: &str, address: Ipv4Addr, len: u8) -> Result<()> {
        let message = self.address(name, address, len)?;
        let added = self.act(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL);
        added.attempt("add the address", format_args!("{address}/{len} to {name}"))
    }

    /// Deletes an address from a link.
    pub fn delete_address(&mut self, name: &str, address: Ipv4Addr, len: u8) -> Result<()> {
        let message = self.address(name, address, len)?;
        let deleted = self.act(RouteNetlinkMessage::DelAddress(message), 0);
        deleted.attempt("delete the address", format_args!("{address}/{len} from {name}"))
    }

    /// Returns whether a link has an IPv4 address, in a prefix of any length.
    pub fn has_address(&mut self, name: &str, address: Ipv4Addr) -> Result<bool> {
        let index = self.link(name)?.index;
        let mut ask = AddressMessage::default();
        ask.header.family = AddressFamily::Inet;
        let answers = self
            .request(RouteNetlinkMessage::GetAddress(ask), NLM_F_DUMP)
            .attempt("list", format_args!("the IPv4 addresses of {name}"))?;
        let local = AddressAttribute::Local(IpAddr::V4(address));
        Ok(answers.iter().any(|answer| {
            matches!(answer, RouteNetlinkMessage::NewAddress(found)
                if found.header.index == index && found.attributes.contains(&local))
        }))
    }

    fn address(&mut self, name: &str, address: Ipv4Addr, len: u8) -> Result<AddressMessage> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = len;
        message.header.index = self.link(name)?.index;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
        ];
        Ok(message)
    }

    /// Sets the route to the prefix `to`: over the link `name`, by the neighbor `via`. If `via` is `None`, each
    /// destination is on the link. [`Prefix::ANY`] is the default route. An older route to the same prefix is replaced.
    /// Fails with `ENETUNREACH` if `via` is not on the link.
    pub fn set_route(&mut self, to: Prefix, name: &str, via: Option<Ipv4Addr>) -> Result<()> {
        self.set_route_for(to, name, via, &TcpMetrics::default())
    }

    /// Sets a route like [`Netlink::set_route`], with settings for the TCP connections that use the route. Programs
    /// need no socket options for them, and the settings of other connections do not change.
    pub fn set_route_for(
        &mut self,
        to: Prefix,
        name: &str,
        via: Option<Ipv4Addr>,
        tcp: &TcpMetrics,
    ) -> Result<()> {
        let index = self.link(name)?.index;
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = to.len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = if via.is_some() { RouteScope::Universe } else { RouteScope::Link };
        message.header.kind = RouteType::Unicast;
        message.attributes =
            vec![RouteAttribute::Destination(RouteAddress::Inet(to.address())), RouteAttribute::Oif(index)];
        message.attributes.extend(via.map(|via| RouteAttribute::Gateway(RouteAddress::Inet(via))));
        let congestion = tcp.congestion.clone().map(RouteMetric::CcAlgo);
        // The kernel uses `rto_min` only if it is locked.
        let rto_min = tcp.rto_min.map(|ms| [RouteMetric::Lock(1 << RTAX_RTO_MIN), RouteMetric::RtoMin(ms)]);
        let window = tcp.window.map(RouteMetric::Window);
        let metrics: Vec<RouteMetric> =
            congestion.into_iter().chain(window).chain(rto_min.into_iter().flatten()).collect();
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let set = self.act(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE);
        set.attempt("set the route", format_args!("{to} dev {name}"))
    }

    /// Deletes the rule of [`Netlink::add_rule_for`], and the local default route ([`Prefix::ANY`]) of
    /// [`Netlink::set_local_route`]. If one of them does not exist, that is no error.
    pub fn forget_table(&mut self, name: &str, table: u8) -> Result<()> {
        let rule = self.act(RouteNetlinkMessage::DelRule(rule_for(name, table)), 0);
        let route = self.local_route(Prefix::ANY, table)?;
        let route = self.act(RouteNetlinkMessage::DelRoute(route), 0);
        for done in [rule, route] {
            match done {
                Err(none) if matches!(none.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
                other => other.attempt("remove", format_args!("table {table}"))?,
            }
        }
        Ok(())
    }

    /// Adds a route of type `local` to a routing table: the kernel receives packets to the prefix `to` itself if it
    /// looks them up in this table.
    pub fn set_local_route(&mut self, to: Prefix, table: u8) -> Result<()> {
        let message = self.local_route(to, table)?;
        let set = self.act(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE);
        set.attempt("set the local route", format_args!("{to} in table {table}"))
    }

    fn local_route(&mut self, to: Prefix, table: u8) -> Result<RouteMessage> {
        let index = self.link("lo")?.index;
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = to.len();
        message.header.table = table;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Host;
        message.header.kind = RouteType::Local;
        message.attributes =
            vec![RouteAttribute::Destination(RouteAddress::Inet(to.address())), RouteAttribute::Oif(index)];
        Ok(message)
    }

    /// Adds a rule: packets that the link `name` receives are looked up in `table`, after the table of the host's local
    /// addresses. The table's number is also the rule's priority. If the rule exists, that is no error.
    pub fn add_rule_for(&mut self, name: &str, table: u8) -> Result<()> {
        match self.act(RouteNetlinkMessage::NewRule(rule_for(name, table)), NLM_F_CREATE | NLM_F_EXCL) {
            Err(there) if there.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            other => other.attempt("add a rule for", format_args!("{name} to table {table}")),
        }
    }

    fn set_flag(&mut self, name: &str, flag: LinkFlags, on: bool) -> io::Result<()> {
        let mut message = named(name);
        message.header.flags = if on { flag } else { LinkFlags::empty() };
        message.header.change_mask = flag;
        self.act(RouteNetlinkMessage::SetLink(message), 0)
    }

    fn act(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request(message, NLM_F_ACK | flags).map(|_| ())
    }

    /// Sends one request and collects the answers before its acknowledgement, or before the end of its dump.
    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;

        let mut answers = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            if collect(&bytes, self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Reads one datagram of answers. Returns true when the request is complete.
fn collect(mut bytes: &[u8], sequence: u32, answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while !bytes.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map_err(io::Error::other)?;
        // Each message begins at a multiple of four bytes.
        let len = (message.header.length as usize).next_multiple_of(4).max(4);
        bytes = bytes.get(len..).unwrap_or_default();
        if message.header.sequence_number != sequence {
            continue;
        }
        match message.payload {
            NetlinkPayload::Error(answer) if answer.code.is_some() => return Err(answer.to_io()),
            NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::InnerMessage(answer) => answers.push(answer),
            _ => {}
        }
    }
    Ok(false)
}

fn rule_for(name: &str, table: u8) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.table = table;
    message.header.action = RuleAction::ToTable;
    message.attributes =
        vec![RuleAttribute::Priority(u32::from(table)), RuleAttribute::Iifname(name.to_owned())];
    message
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn end(end: &End<'_>) -> LinkMessage {
    let mut message = named(end.name);
    message.attributes.push(LinkAttribute::Address(end.mac.0.to_vec()));
    match end.place {
        EndPlace::Here => {}
        EndPlace::Fd(fd) => message.attributes.push(LinkAttribute::NetNsFd(fd.as_raw_fd())),
        EndPlace::Process(pid) => message.attributes.push(LinkAttribute::NetNsPid(pid)),
    }
    message
}

pub(crate) fn link_of(message: RouteNetlinkMessage) -> Option<Link> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: Mac::ZERO,
        mtu: 0,
        up: flags.contains(LinkFlags::Up),
        carries: flags.contains(LinkFlags::Up | LinkFlags::LowerUp) && !flags.contains(LinkFlags::Dormant),
        arp: !flags.contains(LinkFlags::Noarp),
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Address(mac) => link.mac = mac.try_into().map_or(Mac::ZERO, Mac),
            _ => {}
        }
    }
    Some(link)
}

impl Error {
    /// Returns whether the attempt failed because its object does not exist: no such device, file or process.
    pub fn is_absent(&self) -> bool {
        matches!(self.errno(), Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::ENXIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetNs;
    use crate::testing::in_sandbox;
    use std::os::fd::AsFd;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    #[test]
    fn a_pair_is_made_set_up_and_removed() {
        in_sandbox(|| {
            let mut here = Netlink::open().unwrap();
            here.loopback_up().unwrap();
            assert!(here.link("lo").unwrap().up);
            let a = End { name: "a0", mac: A, place: EndPlace::Here };
            let b = End { name: "b0", mac: B, place: EndPlace::Here };
            here.add_veth(&a, &b).unwrap();
            assert_eq!(here.add_veth(&a, &b).unwrap_err().errno(), Some(libc::EEXIST));
            assert_eq!(here.link("a0").unwrap().mac, A);
            assert_eq!(here.link("b0").unwrap().mac, B);

            here.set_arp("a0", false).unwrap();
            here.set_mtu("a0", 1300).unwrap();
            here.set_up("a0", true).unwrap();
            let link = here.link("a0").unwrap();
            assert!(link.up && !link.carries && !link.arp && link.mtu == 1300, "{link:?}");
            here.set_up("b0", true).unwrap();
            assert!(here.link("a0").unwrap().carries && here.link("b0").unwrap().arp);

            here.delete_link("a0").unwrap();
            let names: Vec<_> = here.links().unwrap().into_iter().map(|link| link.name).collect();
            assert!(names.contains(&"lo".to_owned()) && !names.contains(&"b0".to_owned()), "{names:?}");
            assert!(here.link("a0").unwrap_err().is_absent());
            assert!(here.delete_link("a0").unwrap_err().is_absent());
        });
    }

    #[test]
    fn ends_go_to_other_namespaces_and_are_used_from_there() {
        in_sandbox(|| {
            let (mut here, there) = (Netlink::open().unwrap(), NetNs::create().unwrap());
            let a = End { name: "x0", mac: A, place: EndPlace::Process(std::process::id()) };
            let b = End { name: "x0", mac: B, place: EndPlace::Fd(there.as_fd()) };
            here.add_veth(&a, &b).unwrap();
            assert_eq!(here.link("x0").unwrap().mac, A);
            // A socket stays in the namespace where it was opened.
            let mut there = there.run(Netlink::open).unwrap().unwrap();
            assert_eq!(there.link("x0").unwrap().mac, B);
        });
    }

    #[test]
    fn addresses_and_routes_are_what_the_kernel_uses() {
        in_sandbox(|| {
            crate::testing::veth("a0", "b0");
            let mut here = Netlink::open().unwrap();
            let me = Ipv4Addr::new(10, 9, 0, 1);
            here.add_address("a0", me, 24).unwrap();
            assert_eq!(here.add_address("a0", me, 24).unwrap_err().errno(), Some(libc::EEXIST));
            let unreachable =
                here.set_route(Prefix::ANY, "a0", Some(Ipv4Addr::new(10, 8, 0, 1))).unwrap_err();
            assert_eq!(unreachable.errno(), Some(libc::ENETUNREACH));
            here.set_route(Prefix::ANY, "a0", Some(Ipv4Addr::new(10, 9, 0, 2))).unwrap();
            here.set_route(Prefix::host(Ipv4Addr::new(10, 7, 0, 1)), "b0", None).unwrap();
            here.set_route(Prefix::ANY, "a0", Some(Ipv4Addr::new(10, 9, 0, 3))).unwrap();
            let routes = std::fs::read_to_string("/proc/thread-self/net/route").unwrap();
            let words: Vec<Vec<_>> = routes.lines().map(|l| l.split_whitespace().take(3).collect()).collect();
            assert!(words.contains(&vec!["a0", "00000000", "0300090A"]), "{routes}");
            assert!(!words.contains(&vec!["a0", "00000000", "0200090A"]), "{routes}");
            assert!(words.contains(&vec!["b0", "0100070A", "00000000"]), "{routes}");
        });
    }

    #[test]
    fn a_pair_that_cannot_be_is_named_and_leaves_nothing() {
        in_sandbox(|| {
            let mut here = Netlink::open().unwrap();
            let end = |name| End { name, mac: A, place: EndPlace::Here };
            let refused = here.add_veth(&end("a-name-that-is-too-long"), &end("b0")).unwrap_err();
            assert!(refused.to_string().contains("a-name-that-is-too-long - b0"), "{refused}");
            assert!(here.link("b0").unwrap_err().is_absent());
        });
    }
}
