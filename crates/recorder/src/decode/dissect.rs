//! Packets field by field, for `wayfare decode`: each protocol of a packet is a layer with its fields, and bytes that
//! are malformed have a reason and an offset.
//!
//! The layers use the same parsers as the roles. So a message is malformed here exactly if a role would refuse its
//! bytes.

mod mobile_ip;
mod position;
mod timestamp;

use super::{Control, Numbers, describe, protocol};
use ::dhcp::message::{CLIENT_PORT, SERVER_PORT};
use ::mobile_ip::message::{ADVERTISEMENT, PORT, SOLICITATION};
use serde::Serialize;
use wire::ipv4::{self, Header};
use wire::{EtherType, Frame, Ipv4Addr, Mac, Malformed, Packet, PacketId, ethernet, tunnel, udp};

pub use mobile_ip::{code_text, meaning};

/// The protocol with which bytes begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// An Ethernet frame, without its frame check sequence.
    Ethernet,
    /// An IPv4 datagram.
    Ip,
    /// An ICMP message. Its IP header is not known, so its time to live is not checked.
    Icmp,
    /// The UDP payload of a datagram to or from port 434: a message of Mobile IP.
    Message,
}

impl Begin {
    /// Returns the protocol with which `bytes` probably begin. Bytes of none of the other protocols are a message.
    pub fn guess(bytes: &[u8]) -> Self {
        let is_ip = |bytes: &[u8]| {
            bytes.len() >= ipv4::HEADER && bytes.first().is_some_and(|first| (0x45..=0x4f).contains(first))
        };
        let kind = ethernet::parse(bytes).map(|(frame, rest)| (frame.kind, rest));
        match (kind, bytes.first()) {
            (Ok((EtherType::IPV4, rest)), _) if is_ip(rest) => Self::Ethernet,
            (Ok((EtherType::ARP, _)), _) => Self::Ethernet,
            _ if is_ip(bytes) => Self::Ip,
            (_, Some(&(ADVERTISEMENT | SOLICITATION))) if wire::checksum(bytes) == 0 => Self::Icmp,
            _ => Self::Message,
        }
    }
}

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Field {
    /// The offset of the field's first byte, counted from the begin of the bytes that were given.
    pub at: usize,
    /// The field's name, as in the specification of its protocol.
    pub name: String,
    /// The field's value as text.
    pub value: String,
}

/// The header or message of one protocol.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Layer {
    /// The name of the protocol, and of the message if the protocol has several.
    pub name: String,
    /// The offset of the layer's first byte, counted from the begin of the bytes that were given.
    pub at: usize,
    /// The fields, in the order of the bytes.
    pub fields: Vec<Field>,
}

impl Layer {
    fn new(name: impl Into<String>, at: usize) -> Self {
        Self { name: name.into(), at, fields: Vec::new() }
    }

    /// Adds the field at `offset` within the layer.
    #[expect(clippy::needless_pass_by_value, reason = "callers make most values for this call")]
    fn push(&mut self, offset: usize, name: impl Into<String>, value: impl ToString) {
        self.fields.push(Field { at: self.at + offset, name: name.into(), value: value.to_string() });
    }
}

/// Why bytes are malformed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Problem {
    /// The reason, as in the drop counters of a node, for example `mip_extension_overrun`.
    pub reason: String,
    /// The offset of the refused field or extension, counted from the begin of the bytes that were given. It is the
    /// number of these bytes if the bytes end too early.
    pub at: usize,
}

/// A packet field by field.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Dissection {
    /// The layers, from the outermost.
    pub layers: Vec<Layer>,
    /// Why the bytes are malformed; `None` if they are not, or if the rest of the packet is not known.
    pub problem: Option<Problem>,
    /// Whether the packet is a message of a mobility protocol, or malformed. Beacons and advertisements are such
    /// messages too.
    pub is_message: bool,
    /// Whether the packet is in a tunnel.
    pub is_tunneled: bool,
}

/// The largest number of tunnels within each other that is shown.
const DEPTH: usize = 8;

/// Returns the layers of `bytes`, which begin with the protocol `begin`. `is_cut` says that a capture has only the
/// first bytes of the packet: the missing bytes are then not a problem. `numbers` are those of the messages of Mobile IP.
pub fn dissect(bytes: &[u8], begin: Begin, is_cut: bool, numbers: &Numbers) -> Dissection {
    let mut found = Walk { found: Dissection::default(), is_cut, link: Frame::to(Mac::ZERO), numbers };
    match begin {
        Begin::Ethernet => found.ethernet(bytes),
        Begin::Ip => found.ip(bytes, 0),
        Begin::Icmp => {
            let ip =
                Header { ttl: 1, ..Header::new(ipv4::ICMP, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED) };
            found.of_mobile_ip(mobile_ip::discovery(&ip, bytes, 0, numbers));
        }
        Begin::Message => found.of_mobile_ip(mobile_ip::message(bytes, 0, numbers)),
    }
    let mut found = found.found;
    if is_cut {
        found.problem = None;
    }
    found.is_message |= found.problem.is_some();
    found
}

struct Walk<'a> {
    found: Dissection,
    is_cut: bool,
    link: Frame,
    numbers: &'a Numbers,
}

impl Walk<'_> {
    fn refuse(&mut self, malformed: Malformed, at: usize) {
        self.found.problem = Some(Problem { reason: malformed.0.to_owned(), at });
    }

    fn of_mobile_ip(&mut self, (layer, problem): (Layer, Option<Problem>)) {
        self.found.layers.push(layer);
        self.found.problem = problem;
        self.found.is_message = true;
    }

    fn ethernet(&mut self, bytes: &[u8]) {
        let (frame, rest) = match ethernet::parse(bytes) {
            Ok(parsed) => parsed,
            Err(malformed) => return self.refuse(malformed, bytes.len()),
        };
        let mut layer = Layer::new("Ethernet", 0);
        layer.push(0, "destination", frame.dst);
        layer.push(6, "source", frame.src);
        layer.push(12, "type", format!("{:#06x}", frame.kind.0));
        self.found.layers.push(layer);
        self.link = frame;
        match frame.kind {
            EtherType::IPV4 => self.ip(rest, ethernet::HEADER),
            EtherType::ARP => {
                let packet = Packet { link: frame, id: PacketId::NEW, bytes: rest.to_vec() };
                let mut layer = Layer::new("ARP", ethernet::HEADER);
                layer.push(0, "message", describe(&packet, self.numbers));
                self.found.layers.push(layer);
            }
            _ => {}
        }
    }

    /// Adds the IPv4 datagram at the offset `at`, and what it contains.
    fn ip(&mut self, bytes: &[u8], at: usize) {
        // A capture may have only the begin of a datagram, but the checksum covers only the header.
        let whole = if self.is_cut { padded(bytes) } else { bytes.to_vec() };
        let (ip, payload) = match Header::parse(&whole) {
            Ok(parsed) => parsed,
            Err(malformed) => return self.refuse(malformed, at + offset_in_ip(malformed, bytes.len())),
        };
        let header = usize::from(bytes.first().copied().unwrap_or(0) & 15) * 4;
        let is_inner = self.found.layers.iter().any(|layer| layer.name.starts_with("IPv4"));
        self.found.layers.push(of_header(&ip, header + payload.len(), at, is_inner));
        let end = bytes.len().min(header + payload.len());
        let payload = bytes.get(header..end).unwrap_or_default();
        self.inside(&ip, payload, &whole, at + header);
    }

    /// Adds what a datagram contains. `whole` is the datagram, and its `payload` begins at the offset `inside`.
    fn inside(&mut self, ip: &Header, payload: &[u8], whole: &[u8], inside: usize) {
        match ip.protocol {
            _ if ip.offset != 0 => {}
            ipv4::IPIP | ipv4::MINIMAL | ipv4::GRE if self.found.layers.len() > DEPTH => {
                self.found.is_tunneled = true;
            }
            ipv4::IPIP => {
                self.found.is_tunneled = true;
                self.ip(payload, inside);
            }
            ipv4::GRE => self.gre(payload, whole, inside),
            ipv4::MINIMAL => self.minimal(payload, whole, inside),
            ipv4::ICMP if matches!(payload.first(), Some(&(ADVERTISEMENT | SOLICITATION))) => {
                let (layer, mut problem) = mobile_ip::discovery(ip, payload, inside, self.numbers);
                let begin = self.found.layers.last().map_or(0, |layer| layer.at);
                for problem in problem.iter_mut().filter(|problem| problem.reason == "mip_ttl") {
                    problem.at = begin + 8; // the field of the IP header
                }
                self.of_mobile_ip((layer, problem));
            }
            ipv4::UDP => self.udp(ip, payload, whole, inside),
            _ => self.others(whole, inside),
        }
    }

    /// Adds the header of a GRE tunnel (RFC 2784, section 2.1), and the datagram behind it.
    fn gre(&mut self, payload: &[u8], whole: &[u8], at: usize) {
        self.found.is_tunneled = true;
        let word = |at: usize| payload.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
        let mut layer = Layer::new("GRE", at);
        for (offset, name) in [(0, "flags and version"), (2, "protocol")] {
            if let Some(word) = word(offset) {
                layer.push(offset, name, format!("{word:#06x}"));
            }
        }
        let has_checksum = payload.first().is_some_and(|flags| flags & 0x80 != 0);
        if let Some(sum) = word(4).filter(|_| has_checksum) {
            layer.push(4, "checksum", format!("{sum:#06x}"));
        }
        self.found.layers.push(layer);
        if let Err(malformed) = tunnel::decapsulate(whole)
            && malformed.0.starts_with("gre_")
        {
            return self.refuse(malformed, at + offset_in_gre(malformed, payload.len()));
        }
        let header = if has_checksum { 8 } else { 4 };
        self.ip(payload.get(header..).unwrap_or_default(), at + header);
    }

    /// Adds the header of minimal encapsulation (RFC 2004, section 3.1), and the payload of the original datagram, whose
    /// other fields are those of the outer header.
    fn minimal(&mut self, payload: &[u8], whole: &[u8], at: usize) {
        self.found.is_tunneled = true;
        let (_, inner) = match tunnel::decapsulate(whole) {
            Ok(opened) => opened,
            Err(malformed) => {
                let offset = if malformed.0 == "minimal_checksum" { 2 } else { payload.len() };
                return self.refuse(malformed, at + offset);
            }
        };
        let (ip, all) = match Header::parse(&inner) {
            Ok(parsed) => parsed,
            Err(malformed) => return self.refuse(malformed, at),
        };
        let has_source = payload.get(1).is_some_and(|flags| flags & 0x80 != 0);
        let header = if has_source { 12 } else { 8 };
        let mut layer = Layer::new("minimal encapsulation", at);
        layer.push(0, "original protocol", format!("{} ({})", ip.protocol, protocol(ip.protocol)));
        layer.push(1, "original source present", if has_source { "yes" } else { "no: the outer source" });
        layer.push(4, "original destination", ip.dst);
        if has_source {
            layer.push(8, "original source", ip.src);
        }
        self.found.layers.push(layer);
        let there = payload.len().saturating_sub(header).min(all.len());
        self.inside(&ip, all.get(..there).unwrap_or_default(), &inner, at + header);
    }

    fn udp(&mut self, ip: &Header, payload: &[u8], whole: &[u8], at: usize) {
        let [a, b, c, d] = payload.first_chunk::<4>().copied().unwrap_or_default();
        let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let body = if self.is_cut {
            payload.get(udp::HEADER..).unwrap_or_default()
        } else {
            match udp::Datagram::parse(payload, ip.src, ip.dst) {
                Ok(datagram) => datagram.payload,
                Err(malformed) => {
                    return self.refuse(malformed, at + offset_in_udp(malformed, payload.len()));
                }
            }
        };
        let mut layer = Layer::new("UDP", at);
        layer.push(0, "source port", from);
        layer.push(2, "destination port", to);
        layer.push(udp::HEADER, "payload", in_bytes(body.len()));
        self.found.layers.push(layer);
        if from == PORT || to == PORT {
            self.of_mobile_ip(mobile_ip::message(body, at + udp::HEADER, self.numbers));
        } else if self.is_cut && [from, to].iter().all(|port| [CLIENT_PORT, SERVER_PORT].contains(port)) {
            self.cut_dhcp(body, at + udp::HEADER);
        } else {
            self.others(whole, at + udp::HEADER);
        }
    }

    /// Adds the begin of a message of DHCP whose options the capture has cut (RFC 2131, section 2). The options say what
    /// kind of message it is.
    fn cut_dhcp(&mut self, body: &[u8], at: usize) {
        let mut layer = Layer::new("DHCP", at);
        let word = |at: usize| body.get(at..).and_then(<[u8]>::first_chunk::<4>).copied();
        match body.first() {
            Some(1) => layer.push(0, "operation", "1: from a client"),
            Some(2) => layer.push(0, "operation", "2: from a server"),
            Some(other) => layer.push(0, "operation", other),
            None => {}
        }
        if let Some(transaction) = word(4) {
            layer.push(4, "transaction", format!("{:#010x}", u32::from_be_bytes(transaction)));
        }
        for (offset, name) in [(12, "client address"), (16, "granted address")] {
            if let Some(address) = word(offset) {
                layer.push(offset, name, Ipv4Addr::from(address));
            }
        }
        self.found.layers.push(layer);
        self.found.is_message = true;
    }

    /// Adds the message of another protocol than Mobile IP, by the recorder's decoder of this protocol.
    fn others(&mut self, datagram: &[u8], at: usize) {
        let packet = Packet { link: self.link, id: PacketId::NEW, bytes: datagram.to_vec() };
        let Some(control) = Control::of(&packet, self.numbers) else {
            let mut layer = Layer::new("content", at);
            layer.push(0, "packet", describe(&packet, self.numbers));
            return self.found.layers.push(layer);
        };
        let mut layer = Layer::new(control.protocol(), at);
        layer.push(0, "message", control.to_string());
        self.found.problem = control.unreadable().map(|reason| Problem { reason: reason.to_owned(), at });
        for (name, value) in control.constant() {
            if !["from", "to"].contains(&name) {
                layer.push(0, name, value);
            }
        }
        self.found.layers.push(layer);
        self.found.is_message = true;
    }
}

/// Returns a number of bytes with its unit.
pub fn in_bytes(number: usize) -> String {
    format!("{number} byte{}", if number == 1 { "" } else { "s" })
}

/// Returns the bytes of a datagram, with zeros instead of the bytes that a capture has cut.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut whole = bytes.to_vec();
    if let Some(&[high, low]) = bytes.get(2..4) {
        let total = usize::from(u16::from_be_bytes([high, low]));
        whole.resize(total.max(bytes.len()), 0);
    }
    whole
}

fn of_header(ip: &Header, total: usize, at: usize, is_inner: bool) -> Layer {
    let mut layer = Layer::new(if is_inner { "IPv4 in a tunnel" } else { "IPv4" }, at);
    if ip.tos != 0 {
        layer.push(1, "type of service", format!("{:#04x}", ip.tos));
    }
    layer.push(2, "total length", in_bytes(total));
    layer.push(4, "identification", ip.id);
    let fragment = match (ip.dont_fragment, ip.is_fragment()) {
        (true, false) => "do not fragment".to_owned(),
        (false, false) => "none".to_owned(),
        (_, true) => {
            let more = if ip.more_fragments { ", more follow" } else { ", the last" };
            format!("a fragment at byte {}{more}", u32::from(ip.offset) * 8)
        }
    };
    layer.push(6, "fragmentation", fragment);
    layer.push(8, "time to live", ip.ttl);
    layer.push(9, "protocol", format!("{} ({})", ip.protocol, protocol(ip.protocol)));
    layer.push(12, "source", ip.src);
    layer.push(16, "destination", ip.dst);
    layer
}

/// Returns the offset of the refused field in an IPv4 header (RFC 791, section 3.1).
fn offset_in_ip(malformed: Malformed, len: usize) -> usize {
    match malformed.0 {
        "ip_version" | "ip_header_length" => 0,
        "ip_total_length" => 2,
        "ip_reserved_flag" => 6,
        "ip_checksum" => 10,
        _ => len,
    }
}

/// Returns the offset of the refused field in a GRE header (RFC 2784, section 2.1).
fn offset_in_gre(malformed: Malformed, len: usize) -> usize {
    match malformed.0 {
        "gre_flags" => 0,
        "gre_protocol" => 2,
        "gre_checksum" => 4,
        _ => len,
    }
}

/// Returns the offset of the refused field in a UDP header (RFC 768).
fn offset_in_udp(malformed: Malformed, len: usize) -> usize {
    match malformed.0 {
        "udp_length" => 4,
        "udp_checksum" => 6,
        _ => len,
    }
}

#[cfg(test)]
mod tests;
