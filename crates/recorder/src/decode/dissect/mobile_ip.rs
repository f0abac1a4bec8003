//! The messages of Mobile IP field by field (RFC 5944).

mod binding;

use super::position::position;
use super::timestamp::utc;
use super::{Layer, Problem, in_bytes};
use ::mobile_ip::message::{
    ADVERTISEMENT, Advertisement, AgentFlags, Code, INFINITE, Numbers, Registration, Reply, Request,
    SOLICITATION, Solicitation,
};
use wire::ipv4::Header;
use wire::{Ipv4Addr, icmp};

/// The letters of the flags of a request, from the highest bit (RFC 5944, section 3.3).
const REQUEST_FLAGS: [&str; 8] = ["S", "B", "D", "M", "G", "r", "T", "x"];
/// The letters of the flags of an agent, from the highest bit (RFC 5944, section 2.1.1, and RFCs 3519, 3543 and 4857).
/// Reserved bits have their numbers.
const AGENT_FLAGS: [&str; 16] =
    ["R", "B", "H", "F", "M", "G", "r", "T", "U", "X", "I", "11", "12", "13", "14", "15"];

/// Returns the UDP payload of a datagram to or from port 434, which begins at the offset `at`.
pub(super) fn message(payload: &[u8], at: usize, numbers: &Numbers) -> (Layer, Option<Problem>) {
    if let Some(found) = binding::message(payload, at, numbers) {
        return found;
    }
    // Agents without route optimization do not know its extensions; this program does.
    let known = numbers.extensions();
    let parse = |bytes: &[u8]| Registration::parse_knowing(bytes, &known);
    let parsed = parse(payload);
    let mut layer = Layer::new(format!("Mobile IP {}", name(payload)), at);
    match parsed {
        Ok(message) => {
            fields(&mut layer, &message, payload, numbers);
            (layer, None)
        }
        Err(refused) => {
            let found = position(payload, refused, |begin| parse(begin).map(drop));
            let begin = found.good.and_then(|good| payload.get(..good));
            if let Some(begin) = begin
                && let Ok(message) = parse(begin)
            {
                fields(&mut layer, &message, begin, numbers);
            }
            rest(&mut layer, payload, found.good.unwrap_or(0));
            (layer, Some(Problem { reason: refused.0.to_owned(), at: at + found.at }))
        }
    }
}

/// Returns the agent advertisement or solicitation `payload` of the datagram with header `ip`. It begins at the offset
/// `at`.
pub(super) fn discovery(
    ip: &Header,
    payload: &[u8],
    at: usize,
    numbers: &Numbers,
) -> (Layer, Option<Problem>) {
    let is_solicitation = payload.first() == Some(&SOLICITATION);
    let name = if is_solicitation { "solicitation" } else { "advertisement" };
    let mut layer = Layer::new(format!("Mobile IP agent {name}"), at);
    let parse = |icmp: &[u8]| {
        if is_solicitation {
            Solicitation::parse(ip, icmp).map(|_| None)
        } else {
            Advertisement::parse(ip, icmp).map(Some)
        }
    };
    let refused = match parse(payload) {
        Ok(message) => {
            of_discovery(&mut layer, message.as_ref(), payload, numbers);
            return (layer, None);
        }
        Err(refused) => refused,
    };
    let (offset, good) = match refused.0 {
        "icmp_checksum" => (Some(2), None),
        "mip_advertisement_code" | "mip_solicitation_code" => (Some(1), None),
        "mip_entry_size" => (Some(5), None),
        "mip_no_agent" => (Some(agent_extension(payload)), None),
        "mip_ttl" | "mip_fragment" => (Some(0), None),
        _ => (None, Some(())),
    };
    let found = position(payload, refused, |begin| parse(&with_checksum(begin)).map(drop));
    if good.is_some()
        && let Some(begin) = found.good.and_then(|length| payload.get(..length))
        && let Ok(message) = parse(&with_checksum(begin))
    {
        of_discovery(&mut layer, message.as_ref(), begin, numbers);
    }
    rest(&mut layer, payload, good.and(found.good).unwrap_or(0));
    (layer, Some(Problem { reason: refused.0.to_owned(), at: at + offset.unwrap_or(found.at) }))
}

/// Returns the name of a message by its type (RFC 5944).
fn name(payload: &[u8]) -> String {
    match payload.first() {
        None => "message".to_owned(),
        Some(1) => "registration request".to_owned(),
        Some(3) => "registration reply".to_owned(),
        Some(kind) => format!("message of type {kind}"),
    }
}

fn fields(layer: &mut Layer, message: &Registration, bytes: &[u8], numbers: &Numbers) {
    match message {
        Registration::Request(request) => of_request(layer, request, bytes, numbers),
        Registration::Reply(reply) => of_reply(layer, reply, bytes, numbers),
    }
}

fn of_request(layer: &mut Layer, request: &Request, bytes: &[u8], numbers: &Numbers) {
    layer.push(0, "type", 1);
    let letters = named(REQUEST_FLAGS, u16::from(numbers.private_flag) << 8, "P");
    layer.push(1, "flags", flags(u16::from(request.flags.0) << 8, &letters, 2));
    let ends = if request.lifetime == 0 { ": deregistration" } else { "" };
    layer.push(2, "lifetime", lifetime(request.lifetime) + ends);
    layer.push(4, "home address", request.home);
    layer.push(8, "home agent", request.home_agent);
    layer.push(12, "care-of address", request.care_of);
    layer.push(16, "identification", identification(request.identification));
    extensions(layer, bytes, 24, Some(numbers));
}

fn of_reply(layer: &mut Layer, reply: &Reply, bytes: &[u8], numbers: &Numbers) {
    layer.push(0, "type", 3);
    layer.push(1, "code", reply.code);
    layer.push(2, "lifetime", lifetime(reply.lifetime));
    layer.push(4, "home address", reply.home);
    layer.push(8, "home agent", reply.home_agent);
    layer.push(12, "identification", identification(reply.identification));
    extensions(layer, bytes, 20, Some(numbers));
}

/// Adds the fields of an advertisement, or of a solicitation if `message` is `None`.
fn of_discovery(layer: &mut Layer, message: Option<&Advertisement>, bytes: &[u8], numbers: &Numbers) {
    let Some(said) = message else {
        layer.push(0, "type", SOLICITATION);
        return layer.push(1, "code", 0);
    };
    layer.push(0, "type", ADVERTISEMENT);
    let code = if said.registered_only { "16: routes for registered mobile nodes only" } else { "0" };
    layer.push(1, "code", code);
    let leaves = if said.lifetime == 0 { ": the agent leaves" } else { "" };
    layer.push(4, "number of addresses", said.routers.len());
    layer.push(6, "lifetime", format!("{} s{leaves}", said.lifetime));
    for (number, (router, preference)) in said.routers.iter().enumerate() {
        layer.push(
            8 + entry_size(bytes) * number,
            "router address",
            format!("{router}, preference {preference}"),
        );
    }
    let place = agent_extension(bytes);
    let mobility = place.saturating_sub(if place > extensions_of(bytes) { 6 } else { 0 });
    layer.push(mobility + 2, "sequence number", said.sequence);
    layer.push(mobility + 4, "registration lifetime", lifetime(said.registration_lifetime));
    let letters = named(AGENT_FLAGS, AgentFlags::smooth(numbers).0, "S");
    layer.push(mobility + 6, "flags", flags(said.flags.0, &letters, 4));
    for (number, care_of) in said.care_of.iter().enumerate() {
        layer.push(mobility + 8 + 4 * number, "care-of address", care_of);
    }
    extensions(layer, bytes, extensions_of(bytes), None);
    // The fields of the agent's extension were added before the line of this extension.
    layer.fields.sort_by_key(|field| field.at);
}

/// Returns the offset of the extensions of an advertisement (RFC 1256, section 3).
fn extensions_of(bytes: &[u8]) -> usize {
    8 + entry_size(bytes) * usize::from(bytes.get(4).copied().unwrap_or(0))
}

/// Returns the size of a router address with its preference, in bytes.
fn entry_size(bytes: &[u8]) -> usize {
    4 * usize::from(bytes.get(5).copied().unwrap_or(0))
}

/// Returns the offset of the flags of the first Mobility Agent Advertisement Extension; the offset of the extensions if
/// there is none.
fn agent_extension(bytes: &[u8]) -> usize {
    let begin = extensions_of(bytes);
    let mut at = begin;
    while let Some(&kind) = bytes.get(at) {
        match (kind, bytes.get(at + 1)) {
            (0, _) => at += 1,
            (16, _) => return at + 6,
            (_, Some(length)) => at += 2 + usize::from(*length),
            (_, None) => break,
        }
    }
    begin
}

/// Returns an ICMP message with its correct checksum.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    match bytes {
        [kind, code, _, _, body @ ..] => icmp::Message { kind: *kind, code: *code, body }.emit(),
        short => short.to_vec(),
    }
}

/// Adds the bytes from `from` on, which are not part of a well-formed message.
fn rest(layer: &mut Layer, bytes: &[u8], from: usize) {
    if let Some(rest) = bytes.get(from..)
        && !rest.is_empty()
    {
        layer.push(from, "not decoded", trace::hex(rest));
    }
}

/// Adds the extensions of a well-formed message from the offset `at` on. `numbers` are those of a registration message;
/// `None` for an advertisement.
fn extensions(layer: &mut Layer, bytes: &[u8], mut at: usize, numbers: Option<&Numbers>) {
    let is_advertisement = numbers.is_none();
    let mut padding = 0;
    while let Some(&kind) = bytes.get(at) {
        if is_advertisement && kind == 0 {
            (padding, at) = (padding + 1, at + 1); // a single byte without a length (RFC 5944, section 2.1.3)
            continue;
        }
        let (head, length) = length(bytes, at, is_advertisement);
        let data = bytes.get(at + head..at + head + length).unwrap_or_default();
        let name = numbers.map_or_else(|| advertised(kind), |numbers| extension(layer, kind, data, numbers));
        layer.push(at, "extension", format!("{name} (type {kind}), {}", in_bytes(length)));
        of_extension(layer, at, (kind, head, data), numbers);
        at += head + length;
    }
    if padding > 0 {
        layer.push(at - 1, "padding", in_bytes(padding));
    }
}

/// Returns the length of an extension's header, and of its data. In registration messages, types 36 to 38 have the long
/// form with a sub-type and a length of 16 bits (RFC 5944, section 1.10).
fn length(bytes: &[u8], at: usize, is_advertisement: bool) -> (usize, usize) {
    let byte = |offset: usize| bytes.get(at + offset).copied().unwrap_or(0);
    if !is_advertisement && (36..=38).contains(&byte(0)) {
        return (4, usize::from(u16::from_be_bytes([byte(2), byte(3)])));
    }
    (2, usize::from(byte(1)))
}

/// Adds the content of an extension: its fields if it authenticates the message or names the previous agent, or else its bytes.
fn of_extension(
    layer: &mut Layer,
    at: usize,
    (kind, head, data): (u8, usize, &[u8]),
    numbers: Option<&Numbers>,
) {
    match (data, kind, numbers) {
        (lengths, 19, None) => {
            let lengths: Vec<String> = lengths.iter().map(u8::to_string).collect();
            layer.push(at + head, "  prefix lengths", lengths.join(", "));
        }
        (data, kind, Some(numbers)) if kind == numbers.previous_agent && data.len() >= 14 => {
            previous_agent(layer, at + head, data);
        }
        (data, kind, Some(numbers)) if is_key(layer, kind, data, numbers) => {
            distributed_key(layer, at + head, data);
        }
        ([a, b, c, d, authenticator @ ..], 32..=34 | 36, Some(_)) => {
            layer.push(at + head, "  SPI", u32::from_be_bytes([*a, *b, *c, *d]));
            layer.push(at + head + 4, "  authenticator", trace::hex(authenticator));
        }
        (data, 131, Some(_)) => {
            layer.push(at + head, "  NAI", String::from_utf8_lossy(data).escape_debug());
        }
        // The fields of extension 16 are the agent's.
        (_, 16, None) | ([], ..) => {}
        (data, ..) => layer.push(at + head, "  data", trace::hex(data)),
    }
}

/// Returns whether an extension of a registration message is a key for the foreign agent.
fn is_key(layer: &Layer, kind: u8, data: &[u8], numbers: &Numbers) -> bool {
    let vendor_key = [numbers.vendor.to_be_bytes().as_slice(), &numbers.vendor_key.to_be_bytes()].concat();
    let is_own = kind == numbers.vendor_extension && data.get(2..8) == Some(&vendor_key);
    is_own && data.len() == 44 && layer.name.ends_with("reply")
}

/// Adds the fields of a key for the foreign agent, of 44 bytes.
fn distributed_key(layer: &mut Layer, at: usize, data: &[u8]) {
    layer.push(at + 2, "  vendor", word(data, 2));
    layer.push(at + 6, "  vendor type", word(data, 4) & 0xffff);
    layer.push(at + 8, "  SPI", word(data, 8));
    layer.push(at + 12, "  masked key", trace::hex(data.get(12..).unwrap_or_default()));
}

/// Returns the four bytes from the offset `from` on; 0 if there are fewer.
fn word(data: &[u8], from: usize) -> u32 {
    let word = data.get(from..from + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_be_bytes)
}

/// Adds the fields of a Previous Foreign Agent Notification, of at least 14 bytes.
fn previous_agent(layer: &mut Layer, at: usize, data: &[u8]) {
    let word = |from: usize| word(data, from);
    layer.push(at, "  cache lifetime", lifetime((word(0) >> 16) as u16));
    layer.push(at + 2, "  previous agent", Ipv4Addr::from_bits(word(2)));
    layer.push(at + 6, "  new care-of address", Ipv4Addr::from_bits(word(6)));
    layer.push(at + 10, "  SPI", word(10));
    layer.push(at + 14, "  authenticator", trace::hex(data.get(14..).unwrap_or_default()));
}

/// Returns the name of an extension of a registration message.
fn extension(layer: &Layer, kind: u8, data: &[u8], numbers: &Numbers) -> &'static str {
    match kind {
        _ if kind == numbers.warning_extension => "Binding Warning",
        _ if kind == numbers.previous_agent => "Previous Foreign Agent Notification",
        _ if is_key(layer, kind, data, numbers) => "Mobile-Foreign Key",
        32 => "Mobile-Home Authentication",
        33 => "Mobile-Foreign Authentication",
        34 => "Foreign-Home Authentication",
        36 => "Generalized Authentication",
        44 => "UDP Tunnel Reply",
        131 => "Mobile Node NAI",
        132 => "Mobile-Foreign Challenge",
        134 => "Normal Vendor/Organization Specific",
        139 => "Dynamic Home Agent",
        144 => "UDP Tunnel Request",
        _ => "unknown",
    }
}

/// Returns the name of an extension of an advertisement by its type.
const fn advertised(kind: u8) -> &'static str {
    match kind {
        16 => "Mobility Agent Advertisement",
        19 => "Prefix-Lengths",
        24 => "Foreign Agent Challenge",
        _ => "unknown",
    }
}

fn lifetime(seconds: u16) -> String {
    if seconds == INFINITE { format!("{seconds}: without end") } else { format!("{seconds} s") }
}

fn identification(value: u64) -> String {
    format!("{value:#018x}, as a time {}", utc(value))
}

/// Returns the letters of flags with another letter for the flag `bit`.
fn named<const N: usize>(
    mut letters: [&'static str; N],
    bit: u16,
    letter: &'static str,
) -> [&'static str; N] {
    if let Some(place) = letters.get_mut(bit.leading_zeros() as usize) {
        *place = letter;
    }
    letters
}

/// Returns flags as a number of `digits` hexadecimal digits, with the letters of the flags that are set. The first letter
/// is that of the highest of 16 bits.
fn flags(bits: u16, letters: &[&str], digits: usize) -> String {
    let set = letters.iter().zip(0..).filter(|(_, place)| bits & (0x8000 >> place) != 0);
    let set: Vec<&str> = set.map(|(letter, _)| *letter).collect();
    let number = if digits == 2 { bits >> 8 } else { bits };
    let list = if set.is_empty() { "none".to_owned() } else { set.join(" ") };
    format!("0x{number:0digits$x}: {list}")
}

/// Returns the code of a Registration Reply as text: its number and its meaning (RFC 5944, section 3.4).
pub fn code_text(number: u8) -> String {
    Code::from_number(number).to_string()
}

/// Returns what is wrong for a reason of Mobile IP and of the protocols below it. Returns `None` for other reasons, whose
/// name is that of the malformed field.
pub fn meaning(reason: &str) -> Option<&'static str> {
    REASONS.iter().find(|(name, _)| *name == reason).map(|(_, text)| *text)
}

const REASONS: [(&str, &str); 45] = [
    ("ip_truncated", "the bytes end before the datagram does"),
    ("ip_version", "the version is not 4"),
    ("ip_header_length", "the header is shorter than 20 bytes"),
    ("ip_total_length", "the total length is less than that of the header"),
    ("ip_checksum", "the checksum of the IP header is wrong"),
    ("udp_truncated", "the datagram ends before its UDP length"),
    ("udp_length", "the UDP length is less than that of the header"),
    ("udp_checksum", "the UDP checksum is wrong; 0 would mean that there is none"),
    ("ipip_ttl", "the time to live of the inner datagram is 0"),
    ("nested_tunnels", "the datagram is in four tunnels already"),
    ("minimal_truncated", "the datagram ends within the header of minimal encapsulation"),
    ("minimal_checksum", "the checksum of the header of minimal encapsulation is wrong"),
    ("gre_truncated", "the datagram ends within the GRE header"),
    ("gre_flags", "only the flag of the checksum is allowed, and version 0"),
    ("gre_protocol", "the protocol must be 0x0800: IPv4"),
    ("gre_checksum", "the checksum of the GRE header is wrong"),
    ("icmp_truncated", "the message is shorter than an ICMP header"),
    ("icmp_checksum", "the ICMP checksum is wrong"),
    ("mip_empty", "the message has no bytes"),
    ("mip_unknown_type", "no message has this type"),
    ("mip_request_short", "a request has at least 24 bytes"),
    ("mip_reply_short", "a reply has at least 20 bytes"),
    ("mip_extension_truncated", "the message ends within the type and length of an extension"),
    ("mip_extension_overrun", "the length of the extension is greater than the rest of the message"),
    ("mip_unknown_extension", "an extension of an unknown type from 0 to 127: the whole message is dropped"),
    ("mip_authentication_length", "an authentication is too short for its SPI of 4 bytes"),
    ("mip_authentication_twice", "there is a second authentication of this type"),
    ("mip_extension_order", "the Mobile-Home Authentication must be the first authentication"),
    ("mip_extension_twice", "there is a second extension of this type"),
    ("mip_warning_short", "a warning has at least 12 bytes"),
    ("mip_warning_targets", "a warning has at least one target, and ends with a whole address"),
    ("mip_binding_request_length", "a binding request has 16 bytes before its authentication"),
    ("mip_update_short", "an update has at least 12 bytes, and 8 more with flag I"),
    ("mip_acknowledge_length", "an acknowledge has 8 bytes, or 16 bytes before its authentication"),
    ("mip_binding_unauthenticated", "the message has no authentication"),
    (
        "mip_binding_reserved",
        "the reserved bits must be zero, because the authentication does not cover them",
    ),
    ("mip_binding_trailing", "there are bytes after the authentication"),
    ("mip_ttl", "the time to live must be 1"),
    ("mip_fragment", "the datagram is a fragment"),
    ("mip_advertisement_code", "the code of an advertisement must be 0 or 16"),
    ("mip_advertisement_short", "the message ends within the router addresses"),
    ("mip_entry_size", "the size of a router address must be at least 2 words"),
    ("mip_no_agent", "a router without mobility: no Mobility Agent Advertisement with flag F or H"),
    ("mip_no_care_of", "a foreign agent must advertise a care-of address"),
    ("mip_prefix_lengths", "there must be one prefix length, of at most 32 bits, for each router address"),
];
