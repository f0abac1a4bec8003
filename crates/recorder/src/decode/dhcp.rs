//! DHCP: the messages of clients and servers (RFC 2131, section 3.1).

use ::dhcp::message::{CLIENT_PORT, Message as Dhcp, SERVER_PORT};
use std::fmt::{self, Write};
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, udp};

/// A message, as the text by which it is shown and compared. Transaction ids and times are not in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message(String);

impl Message {
    /// Returns the message in an IP packet, and the address of the client that the message is about: its present, granted
    /// or requested address, or else the source address.
    pub(super) fn of(ip: &Header, payload: &[u8]) -> Option<(Ipv4Addr, Self)> {
        if ip.protocol != ipv4::UDP || ip.is_fragment() {
            return None;
        }
        let datagram = udp::Datagram::parse(payload, ip.src, ip.dst).ok()?;
        let ports = [datagram.src_port, datagram.dst_port];
        if !ports.iter().all(|port| [CLIENT_PORT, SERVER_PORT].contains(port)) {
            return None;
        }
        let Ok(said) = Dhcp::parse(datagram.payload) else {
            return Some((ip.src, Self("malformed DHCP message".to_owned())));
        };
        let given = |address: Ipv4Addr| (!address.is_unspecified()).then_some(address);
        let about = given(said.current).or_else(|| given(said.yours)).or(said.requested).unwrap_or(ip.src);
        let mut text = said.kind.name().to_owned();
        let addresses = [
            ("requested", said.requested),
            ("current", given(said.current)),
            ("granted", given(said.yours)),
            ("server", said.server),
            ("router", said.router),
        ];
        for (name, address) in addresses {
            if let Some(address) = address {
                let _ = write!(text, ", {name} {address}");
            }
        }
        if let Some(lease) = said.lease {
            let _ = write!(text, ", lease {lease} s");
        }
        Some((about, Self(text)))
    }

    pub(super) fn constant(&self, fields: &mut Vec<(&'static str, String)>) {
        fields.push(("says", self.0.clone()));
    }

    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, src: Ipv4Addr, dst: Ipv4Addr) -> fmt::Result {
        write!(f, "{}, {src} > {dst}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Control, Numbers};
    use ::dhcp::message::Kind;
    use wire::{Mac, Packet, SocketAddrV4};

    fn packet(message: &Dhcp, [from, to]: [(Ipv4Addr, u16); 2]) -> Packet {
        let [from, to] = [from, to].map(|(address, port)| SocketAddrV4::new(address, port));
        Packet::new(Mac::BROADCAST, udp::packet(from, to, &message.emit()))
    }

    #[test]
    fn a_message_of_dhcp_is_named_with_its_addresses() {
        let (server, client) = (Ipv4Addr::new(10, 3, 0, 1), Ipv4Addr::new(10, 3, 0, 100));
        let new = |kind| Dhcp::new(kind, 7, Mac([2, 0, 0, 0, 0, 7]));
        let asks = [(Ipv4Addr::UNSPECIFIED, CLIENT_PORT), (Ipv4Addr::BROADCAST, SERVER_PORT)];
        let request = Dhcp { requested: Some(client), server: Some(server), ..new(Kind::Request) };
        let found = Control::of(&packet(&request, asks), &Numbers::default()).unwrap();
        assert_eq!((found.protocol(), found.about), ("DHCP", client));
        let text = "DHCPREQUEST, requested 10.3.0.100, server 10.3.0.1, 0.0.0.0 > 255.255.255.255";
        assert_eq!(found.to_string(), text);
        let ack = Dhcp { yours: client, server: Some(server), lease: Some(60), ..new(Kind::Ack) };
        let answers = [(server, SERVER_PORT), (client, CLIENT_PORT)];
        let found = Control::of(&packet(&ack, answers), &Numbers::default()).unwrap();
        let text = "DHCPACK, granted 10.3.0.100, server 10.3.0.1, lease 60 s, 10.3.0.1 > 10.3.0.100";
        assert_eq!((found.about, found.to_string().as_str()), (client, text));
        // The transaction differs from run to run, and is not compared.
        let other = Dhcp { transaction: 8, ..ack.clone() };
        assert_eq!(
            Control::of(&packet(&other, answers), &Numbers::default()).unwrap().constant(),
            found.constant()
        );
        let elsewhere = [(server, SERVER_PORT), (client, 9000)];
        let other = packet(&new(Kind::Offer), elsewhere);
        assert!(!Control::is(&other));
        // Only the message itself is a control message; the packets of its tunnels carry it.
        let within = |packet: &Packet| {
            let bytes = wire::ipip::encapsulate(&packet.bytes, server, client, 1).unwrap();
            Packet { bytes, ..packet.clone() }
        };
        let twice = within(&within(&packet(&ack, answers)));
        assert!(!Control::is(&twice) && Control::is_in(&twice) && !Control::is_in(&within(&other)));
    }
}
