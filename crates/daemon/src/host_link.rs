//! [`wire::Iface::HOST`] on Linux: a veth pair inside the namespace. The kernel has one end, with the host's addresses
//! and the default route. The node has the other end, on which the ingress hook keeps the kernel from receiving frames.

use os::{End, EndPlace, Netlink, Options, PacketSocket, Result, TcpMetrics, ethtool, namespace::sysctl};
use std::collections::{BTreeMap, BTreeSet};
use wire::{EtherType, Frame, Ipv4Addr, Mac, Prefix, icmp, ipv4};

/// Name of the device that is the kernel's end of the pair.
pub(crate) const KERNEL_SIDE: &str = "wf-host";
/// Name of the device that is the node's end of the pair.
pub(crate) const NODE_SIDE: &str = "wf-node";

const KERNEL_MAC: Mac = Mac([0x02, 0x57, 0x46, 0xff, 0, 1]);
const NODE_MAC: Mac = Mac([0x02, 0x57, 0x46, 0xff, 0, 2]);

/// The node's end of the pair.
pub(crate) struct HostLink {
    pub(crate) socket: PacketSocket,
    /// Whether both ends carry frames.
    pub(crate) carries: bool,
    /// The interface indexes of both ends: the kernel's end, then the node's.
    pub(crate) pair: [u32; 2],
    /// Whether the pair was removed.
    pub(crate) is_removed: bool,
    /// Whether the daemon has set a default route to the pair. The kernel may have removed it since.
    has_default_route: bool,
    /// Settings of the host's TCP connections.
    tcp: TcpMetrics,
    /// The addresses of the host's own stack.
    own: BTreeSet<Ipv4Addr>,
}

impl HostLink {
    pub(crate) fn set_up(net: &mut Netlink, addresses: &[Ipv4Addr], tcp: &TcpMetrics) -> Result<Self> {
        if net.link(KERNEL_SIDE).is_ok() {
            net.delete_link(KERNEL_SIDE)?; // left by a daemon that crashed in this namespace
        }
        // The kernel must not start a connection with the metrics of an earlier one.
        let _ = sysctl("net/ipv4/tcp_no_metrics_save", "1");
        // The kernel's defaults depend on the machine's memory. The window scale, and with it each window, depends on
        // the largest buffer.
        let _ = sysctl("net/ipv4/tcp_rmem", "4096 131072 6291456");
        match tcp.send_buffer {
            Some(most) => sysctl("net/ipv4/tcp_wmem", &format!("4096 {} {most}", most.min(16_384)))?,
            None => drop(sysctl("net/ipv4/tcp_wmem", "4096 16384 4194304")),
        }
        tcp.losses.apply()?;
        let kernel = End { name: KERNEL_SIDE, mac: KERNEL_MAC, place: EndPlace::Here };
        let node = End { name: NODE_SIDE, mac: NODE_MAC, place: EndPlace::Here };
        net.add_veth(&kernel, &node)?;
        for device in [KERNEL_SIDE, NODE_SIDE] {
            // A checksum left to hardware that does not exist would be sent unfinished.
            ethtool::offloads_off(device)?;
            disable_autoconf(device);
            net.set_arp(device, false)?;
            net.set_up(device, true)?;
        }
        // The node's ICMP errors to this host have an address of this host as their source, for example if a packet does not
        // fit a tunnel that begins here. Without this setting, the kernel drops them, and does not learn the MTU.
        let _ = sysctl(&format!("net/ipv4/conf/{KERNEL_SIDE}/accept_local"), "1");
        net.keep_segments(KERNEL_SIDE)?;
        for address in addresses {
            net.add_address(KERNEL_SIDE, *address, 32)?;
        }
        let socket = PacketSocket::open(NODE_SIDE, &Options { bypass_qdisc: true, ..Options::default() })?;
        let pair = [net.link(KERNEL_SIDE)?.index, net.link(NODE_SIDE)?.index];
        let mut host = Self {
            socket,
            carries: true,
            pair,
            is_removed: false,
            has_default_route: false,
            tcp: tcp.clone(),
            own: addresses.iter().copied().collect(),
        };
        if !addresses.is_empty() {
            host.add_default_route(net)?;
        }
        Ok(host)
    }

    /// Returns whether the host's own stack has an address.
    pub(crate) fn has_address(&self, address: Ipv4Addr) -> bool {
        self.own.contains(&address)
    }

    /// Adds an address to the host's own stack, and sets the default route; or deletes an address.
    pub(crate) fn change_address(
        &mut self,
        net: &mut Netlink,
        address: Ipv4Addr,
        is_added: bool,
    ) -> Result<()> {
        if is_added {
            net.add_address(KERNEL_SIDE, address, 32)?;
            self.own.insert(address);
            return self.add_default_route(net);
        }
        self.own.remove(&address);
        net.delete_address(KERNEL_SIDE, address, 32)
    }

    /// Sets the default route of the host's own stack: the node gets all packets that leave this stack.
    fn add_default_route(&mut self, net: &mut Netlink) -> Result<()> {
        self.has_default_route = true;
        net.set_route_for(Prefix::ANY, KERNEL_SIDE, None, &self.tcp)
    }

    /// Restores the default route, if there was one: the kernel removes it when the pair goes down.
    pub(crate) fn restore_default_route(&mut self, net: &mut Netlink) -> Result<()> {
        if self.has_default_route { self.add_default_route(net) } else { Ok(()) }
    }

    /// Returns the settings of TCP as the kernel has them, by name and value. Those of the route of the host's stack
    /// have the names of `ip-route(8)`.
    pub(crate) fn tcp_settings(&self) -> BTreeMap<String, String> {
        let of_namespace = os::tcp_settings().into_iter().map(|(name, value)| (name.to_owned(), value));
        let named = |name: &str, value: String| (name.to_owned(), value);
        let of_route = [
            self.tcp.congestion.as_ref().map(|name| named("congctl", name.clone())),
            self.tcp.rto_min.map(|ms| named("rto_min", format!("{ms} ms"))),
            self.tcp.window.map(|bytes| named("window", format!("{bytes} bytes"))),
        ];
        of_namespace.chain(of_route.into_iter().flatten()).collect()
    }

    /// Passes a datagram to the host's own stack. Does nothing if another host forges an address of this host.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<()> {
        if !may_enter(&self.own, bytes) {
            return Ok(());
        }
        let link = Frame { kind: EtherType::IPV4, src: NODE_MAC, dst: KERNEL_MAC };
        self.socket.send_payload(&link, bytes)
    }
}

/// Returns whether the host's own stack may get a datagram. One with an address of this host as its source was made here only
/// if it is an ICMP error, or a segment of a connection that a role carries for a program of this host (`clients`). The
/// kernel drops all others by default, and `accept_local` switches that off.
fn may_enter(own: &BTreeSet<Ipv4Addr>, bytes: &[u8]) -> bool {
    let is_own = ipv4::addresses(bytes).is_some_and(|(src, _)| own.contains(&src));
    let payload = bytes.first().and_then(|first| bytes.get(usize::from(first & 0x0f) * 4..));
    let kind = payload.and_then(|payload| payload.first());
    match bytes.get(9).copied() {
        Some(ipv4::TCP) => true,
        Some(ipv4::ICMP) => !is_own || kind.is_some_and(|kind| icmp::is_error(*kind)),
        _ => !is_own,
    }
}

/// Number of the routing table for foreign addresses, and the priority of its rule.
const FOREIGN: u8 = 87;

/// Makes the kernel receive every datagram that the node passes to it, also if the destination is not an address of the
/// host. A socket that is bound to the destination (`IP_TRANSPARENT`) then gets the datagram. A second call changes
/// nothing.
pub(crate) fn accept_foreign_addresses() -> Result<()> {
    let mut net = Netlink::open()?;
    net.set_local_route(Prefix::ANY, FOREIGN)?;
    net.add_rule_for(KERNEL_SIDE, FOREIGN)
}

/// Undoes [`accept_foreign_addresses`].
pub(crate) fn refuse_foreign_addresses() -> Result<()> {
    Netlink::open()?.forget_table(KERNEL_SIDE, FOREIGN)
}

/// Switches IPv6 off on a device, so that the kernel sends no frames there by itself. Also switches off the reverse
/// path filter (`rp_filter`). Settings that the kernel does not have are skipped.
pub(crate) fn disable_autoconf(device: &str) {
    let [ipv6_is_off, filter] = sysctls_of(device);
    let _ = sysctl(&ipv6_is_off, "1");
    let _ = sysctl(&filter, "0");
}

/// Returns the names of the settings that [`disable_autoconf`] writes for a device.
pub(crate) fn sysctls_of(device: &str) -> [String; 2] {
    [format!("net/ipv6/conf/{device}/disable_ipv6"), format!("net/ipv4/conf/{device}/rp_filter")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_sandbox;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
    use wire::SocketAddrV4;

    /// Returns the congestion control of a connection that begins now.
    fn congestion() -> String {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let begun = connect(&socket, &SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 9), 9));
        assert_eq!(begun, Err(rustix::io::Errno::INPROGRESS));
        sockopt::tcp_congestion(&socket).unwrap()
    }

    #[test]
    fn only_errors_and_segments_may_have_an_address_of_this_host_as_their_source() {
        let [own, other] = [7, 8].map(|last| Ipv4Addr::new(10, 1, 0, last));
        let all = BTreeSet::from([own]);
        let datagram =
            |src, protocol, kind| ipv4::Header::new(protocol, src, own).emit(&[kind, 0, 0, 0, 0, 0, 0, 0]);
        for (protocol, kind, is_allowed) in [
            (ipv4::UDP, 0, false),
            (ipv4::TCP, 0, true),
            (ipv4::ICMP, 8, false),
            (ipv4::ICMP, 3, true),
            (4, 0, false),
        ] {
            assert_eq!(may_enter(&all, &datagram(own, protocol, kind)), is_allowed, "{protocol} {kind}");
            assert!(may_enter(&all, &datagram(other, protocol, kind)));
        }
        assert!(may_enter(&all, &[]), "the kernel drops it");
    }

    #[test]
    fn an_address_that_comes_later_keeps_the_congestion_control() {
        in_sandbox(|| {
            let mut net = Netlink::open().unwrap();
            let tcp = TcpMetrics { congestion: Some("reno".to_owned()), ..TcpMetrics::default() };
            let [first, later] = [7, 8].map(|last| Ipv4Addr::new(10, 1, 0, last));
            for addresses in [vec![first], vec![]] {
                let mut host = HostLink::set_up(&mut net, &addresses, &tcp).unwrap();
                host.change_address(&mut net, later, true).unwrap();
                assert_eq!(congestion(), "reno", "{addresses:?}");
            }
            // Check of the test itself: a route without this attribute leaves the kernel's default.
            net.set_route(Prefix::ANY, KERNEL_SIDE, None).unwrap();
            let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
            assert_eq!(congestion(), default.trim());
        });
    }

    /// The kernel's own tool shows what the kernel has taken.
    #[test]
    fn the_smallest_time_out_and_the_send_buffer_are_the_hosts() {
        in_sandbox(|| {
            let mut net = Netlink::open().unwrap();
            let tcp = TcpMetrics { rto_min: Some(1500), send_buffer: Some(8192), ..TcpMetrics::default() };
            let host = HostLink::set_up(&mut net, &[Ipv4Addr::new(10, 1, 0, 7)], &tcp).unwrap();
            let shown = host.tcp_settings();
            assert_eq!(shown["rto_min"], "1500 ms");
            assert_eq!(shown["tcp_wmem"].split_whitespace().collect::<Vec<_>>(), ["4096", "8192", "8192"]);
            assert!(shown.contains_key("tcp_recovery") && !shown.contains_key("congctl"), "{shown:?}");
            if let Ok(routes) = std::process::Command::new("ip").args(["route", "show", "default"]).output() {
                let routes = String::from_utf8(routes.stdout).unwrap();
                assert!(
                    routes.contains("rto_min lock 1.5s") || routes.contains("rto_min lock 1500ms"),
                    "{routes}"
                );
            }
            let refused = TcpMetrics { send_buffer: Some(0), ..TcpMetrics::default() };
            assert!(
                HostLink::set_up(&mut net, &[], &refused).is_err(),
                "the kernel refuses a buffer of 0 bytes"
            );
        });
    }
}
