//! Control messages of the mobility protocols as text, and their fields that must be equal on both backends.
//!
//! Beacons, ARP, ICMP errors and TCP are not control messages: they belong to no exchange of a mobility protocol.

mod cellular_ip;
mod dhcp;
pub mod dissect;
mod indirect_tcp;
mod mobile_ip;
mod sigma;

pub use ::mobile_ip::message::Numbers;

use crate::segment;
use scenario::Plan;
use std::fmt;
use wire::ipv4::Header;
use wire::{Ipv4Addr, Packet, WallTime};

/// A control message of a mobility protocol in an IP packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Control {
    /// The source address in the IP header.
    pub src: Ipv4Addr,
    /// The destination address in the IP header.
    pub dst: Ipv4Addr,
    /// The address of the mobile host that the message is about. If the message is malformed, this can be the
    /// source address.
    pub about: Ipv4Addr,
    says: Says,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Says {
    CellularIp(cellular_ip::Message),
    MobileIp(mobile_ip::Message),
    IndirectTcp(indirect_tcp::Message),
    Sigma(sigma::Message),
    Dhcp(dhcp::Message),
}

impl Control {
    /// Returns the control message in a packet, or `None` if the packet contains no control message. `numbers` are those
    /// of the run's messages of Mobile IP ([`Plan::numbers`]).
    pub fn of(packet: &Packet, numbers: &Numbers) -> Option<Self> {
        let (ip, payload) = Header::parse(&packet.bytes).ok()?;
        let cellular =
            || cellular_ip::Message::of(&ip, payload).map(|(about, said)| (about, Says::CellularIp(said)));
        let mobile = || {
            mobile_ip::Message::of(&ip, payload, numbers).map(|(about, said)| (about, Says::MobileIp(said)))
        };
        let indirect =
            || indirect_tcp::Message::of(&ip, payload).map(|(about, said)| (about, Says::IndirectTcp(said)));
        let sigma = || sigma::Message::of(&ip, payload).map(|(about, said)| (about, Says::Sigma(said)));
        let dhcp = || dhcp::Message::of(&ip, payload).map(|(about, said)| (about, Says::Dhcp(said)));
        let (about, says) = cellular().or_else(mobile).or_else(indirect).or_else(sigma).or_else(dhcp)?;
        Some(Self { src: ip.src, dst: ip.dst, about, says })
    }

    /// Returns whether a packet is a control message. Only the content of a message depends on the numbers, so they are
    /// not needed.
    pub fn is(packet: &Packet) -> bool {
        Self::of(packet, &Numbers::default()).is_some()
    }

    /// Returns whether a packet is a control message, or carries one in tunnels.
    pub fn is_in(packet: &Packet) -> bool {
        Self::is(packet)
            || wire::tunnel::decapsulate(&packet.bytes)
                .is_ok_and(|(_, inner)| Self::is_in(&Packet { bytes: inner.into_owned(), ..packet.clone() }))
    }

    /// Returns the name of the message's protocol, for example `Mobile IP`.
    pub const fn protocol(&self) -> &'static str {
        match &self.says {
            Says::CellularIp(_) => "Cellular IP",
            Says::MobileIp(_) => "Mobile IP",
            Says::IndirectTcp(_) => "Indirect TCP",
            Says::Sigma(_) => "SIGMA",
            Says::Dhcp(_) => "DHCP",
        }
    }

    /// Returns whether the message is a route-update of Cellular IP that requests a semisoft handoff.
    pub(crate) fn is_semisoft(&self) -> bool {
        matches!(&self.says, Says::CellularIp(message) if message.is_semisoft())
    }

    /// Returns whether the message notifies a host other than the mobile node and its home agent of a new path (Mobile IP).
    pub(crate) fn is_of_route_optimization(&self) -> bool {
        matches!(&self.says, Says::MobileIp(message) if message.is_binding())
    }

    /// Returns the names and values of the fields that must be equal on both backends. Timestamps, digests and other
    /// fields that depend on the wall clock are left out.
    pub fn constant(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("from", self.src.to_string()), ("to", self.dst.to_string())];
        match &self.says {
            Says::CellularIp(message) => message.constant(&mut fields),
            Says::MobileIp(message) => message.constant(self.src, &mut fields),
            Says::IndirectTcp(message) => message.constant(&mut fields),
            Says::Sigma(message) => message.constant(&mut fields),
            Says::Dhcp(message) => message.constant(&mut fields),
        }
        fields
    }

    /// Returns why the message cannot be read; `None` if it can.
    pub fn unreadable(&self) -> Option<&'static str> {
        match &self.says {
            Says::CellularIp(message) => message.unreadable(),
            Says::MobileIp(message) => message.unreadable(),
            Says::IndirectTcp(message) => message.unreadable(),
            Says::Sigma(_) | Says::Dhcp(_) => None,
        }
    }

    /// Returns the message as one line. A route-update of Cellular IP also has the name of its base station, its
    /// timestamp and the number of its key. A registration message of Mobile IP also has its identification. Timestamps
    /// and identifications are in seconds since the begin of the run.
    pub fn text(&self, names: &Names<'_>) -> String {
        match &self.says {
            Says::CellularIp(message) => format!("{self}{}", message.detail(names)),
            Says::MobileIp(message) => format!("{self}{}", message.detail(names)),
            Says::IndirectTcp(_) | Says::Sigma(_) | Says::Dhcp(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst) = (self.src, self.dst);
        match &self.says {
            Says::CellularIp(message) => message.write(f, src, dst),
            Says::MobileIp(message) => message.write(f, src, dst),
            Says::IndirectTcp(message) => message.write(f, src, dst),
            Says::Sigma(message) => message.write(f, src, dst),
            Says::Dhcp(message) => message.write(f, src, dst),
        }
    }
}

/// The data of a run that the text of a control message needs.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// The plan of the run, with the names and roles of the hosts.
    pub plan: &'a Plan,
    /// The wall-clock time at which the run began.
    pub epoch: WallTime,
}

impl Names<'_> {
    /// Returns an NTP time as seconds since the begin of the run.
    fn since_begin(&self, ntp: u64) -> String {
        let ahead = wire::ntp_distance(ntp, self.epoch.to_ntp());
        format!("{:+.6} s", ahead as f64 / 4_294_967_296.0)
    }
}

/// Returns one line about any packet, as in the column `what` of `packets.csv`, for example `UDP 10.0.0.1:9000 >
/// 10.0.0.2:9000`. `numbers` are those of the run's messages of Mobile IP.
pub fn describe(packet: &Packet, numbers: &Numbers) -> String {
    if let Some(control) = Control::of(packet, numbers) {
        return control.to_string();
    }
    if let Ok(arp) = wire::arp::Message::parse(&packet.bytes)
        && packet.link.kind == wire::EtherType::ARP
    {
        return match arp.operation {
            wire::arp::Operation::Request => format!("ARP {} asks for {}", arp.sender, arp.target),
            wire::arp::Operation::Reply => format!("ARP {} is at {}", arp.sender, arp.sender_mac),
        };
    }
    if let Ok((outer, inner)) = wire::tunnel::decapsulate(&packet.bytes) {
        let inner = Packet { bytes: inner.into_owned(), ..packet.clone() };
        return format!("{} > {}: {}", outer.src, outer.dst, describe(&inner, numbers));
    }
    let Ok((ip, payload)) = Header::parse(&packet.bytes) else { return "not IPv4".to_owned() };
    if let Some(seen) = segment::of(packet) {
        return seen.text();
    }
    match wire::udp::Datagram::parse(payload, ip.src, ip.dst) {
        Ok(udp) if ip.protocol == wire::ipv4::UDP => {
            format!("UDP {}:{} > {}:{}", ip.src, udp.src_port, ip.dst, udp.dst_port)
        }
        _ => format!("{} {} > {}", protocol(ip.protocol), ip.src, ip.dst),
    }
}

/// Returns the name of an IP protocol, or `protocol NUMBER` if Wayfare has no name for it.
pub fn protocol(number: u8) -> String {
    match number {
        1 => "ICMP".to_owned(),
        4 => "IPIP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        47 => "GRE".to_owned(),
        55 => "minimal encapsulation".to_owned(),
        132 => "SCTP".to_owned(),
        other => format!("protocol {other}"),
    }
}
