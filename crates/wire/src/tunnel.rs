//! Kinds of tunnels: IP in IP (RFC 2003), minimal encapsulation (RFC 2004), and GRE (RFC 2784).

use crate::ipv4::{self, Header};
use crate::{Malformed, checksum, fragment, ipip, nested};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;
use core::str::FromStr;

/// How a tunnel carries a datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum Kind {
    /// The datagram is the payload of another datagram (RFC 2003).
    #[default]
    IpInIp,
    /// The datagram's own header gets other addresses, and a short header with the original addresses follows (RFC
    /// 2004).
    Minimal,
    /// A header of four bytes precedes the datagram (RFC 2784).
    Gre,
}

/// The length of the header of RFC 2004 without the original source address, in bytes.
const SHORT: usize = 8;
/// The length of the header of RFC 2004 with the original source address, in bytes.
const LONG: usize = 12;
/// The flag of RFC 2004: the header has the original source address.
const SOURCE_PRESENT: u8 = 0x80;
/// The header of RFC 2784 without checksum: no flag, version 0, and the `EtherType` of IPv4.
const GRE_HEADER: [u8; 4] = [0, 0, 8, 0];
/// The flag of RFC 2784: four bytes with a checksum follow the header.
const CHECKSUM_PRESENT: u8 = 0x80;

/// The error of a text that is not the name of a kind of tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseKindError;

impl fmt::Display for ParseKindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a kind of tunnel is `ip-in-ip`, `minimal` or `gre`")
    }
}

impl core::error::Error for ParseKindError {}

impl FromStr for Kind {
    type Err = ParseKindError;
    fn from_str(text: &str) -> Result<Self, ParseKindError> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(ParseKindError)
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::IpInIp, Self::Minimal, Self::Gre];

    /// Returns the name in a configuration and in the status of a role.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpInIp => "ip-in-ip",
            Self::Minimal => "minimal",
            Self::Gre => "gre",
        }
    }

    /// Returns the protocol number in the outer header.
    pub const fn protocol(self) -> u8 {
        match self {
            Self::IpInIp => ipv4::IPIP,
            Self::Minimal => ipv4::MINIMAL,
            Self::Gre => ipv4::GRE,
        }
    }

    /// Returns the kind of tunnel with this protocol number, or `None`.
    pub const fn of_protocol(protocol: u8) -> Option<Self> {
        match protocol {
            ipv4::IPIP => Some(Self::IpInIp),
            ipv4::MINIMAL => Some(Self::Minimal),
            ipv4::GRE => Some(Self::Gre),
            _ => None,
        }
    }

    /// Returns the largest number of bytes that the tunnel adds to a datagram that is not a fragment and has no IP
    /// options.
    pub const fn overhead(self) -> usize {
        match self {
            Self::IpInIp => ipip::OVERHEAD,
            Self::Minimal => LONG,
            Self::Gre => ipv4::HEADER + GRE_HEADER.len(),
        }
    }

    /// Returns the largest number of bytes that the tunnel adds to a fragment. Minimal encapsulation cannot carry
    /// fragments (RFC 2004, section 1); they are carried as IP in IP.
    pub const fn overhead_of_fragment(self) -> usize {
        match self {
            Self::Minimal => ipip::OVERHEAD,
            Self::IpInIp | Self::Gre => self.overhead(),
        }
    }
}

/// A set of kinds of tunnels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Kinds(u8);

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// All kinds.
    pub const ALL: Self = Self(0b111);

    /// Returns the set of one kind.
    pub const fn of(kind: Kind) -> Self {
        Self(1 << kind as u8)
    }

    /// Returns the kinds in which datagrams arrive from a tunnel of one kind. Minimal encapsulation cannot carry fragments
    /// and datagrams with options: these arrive as IP in IP.
    pub const fn from_tunnel(kind: Kind) -> Self {
        match kind {
            Kind::Minimal => Self::of(Kind::Minimal).or(Self::of(Kind::IpInIp)),
            Kind::IpInIp | Kind::Gre => Self::of(kind),
        }
    }

    /// Returns the kinds that are in at least one of the sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether a kind is in the set.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// Returns the set as a number: 1 for IP in IP, 2 for minimal encapsulation and 4 for GRE, added.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the set with this number; `None` if no set has it.
    pub const fn of_bits(bits: u8) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 { Some(Self(bits)) } else { None }
    }
}

/// Returns the datagram from `src` to `dst` that carries `inner` in a tunnel of this kind. A node that forwards `inner`
/// must first decrement the time to live of `inner`. `id` is the identification of the outer header; with minimal
/// encapsulation, it is that of `inner`. A fragment and a datagram with options are carried as IP in IP if the kind is
/// [`Kind::Minimal`].
///
/// Fails as [`ipip::encapsulate`] does.
pub fn encapsulate(
    kind: Kind,
    inner: &[u8],
    src: Ipv4Addr,
    dst: Ipv4Addr,
    id: u16,
) -> Result<Vec<u8>, Malformed> {
    let (header, payload) = Header::parse(inner)?;
    let has_options = ipv4::total_len(inner) != ipv4::HEADER + payload.len();
    match kind {
        Kind::Minimal if !header.is_fragment() && !has_options => minimal(&header, payload, src, dst),
        Kind::IpInIp | Kind::Minimal => ipip::encapsulate(inner, src, dst, id),
        Kind::Gre => {
            check((&header, payload), ipv4::total_len(inner), Kind::Gre.overhead())?;
            let Header { tos, dont_fragment, .. } = header;
            let outer = Header { tos, id, dont_fragment, ..Header::new(ipv4::GRE, src, dst) };
            let whole = inner.get(..ipv4::total_len(inner)).unwrap_or(inner);
            let mut out = outer.begin(GRE_HEADER.len() + whole.len());
            out.extend_from_slice(&GRE_HEADER);
            out.extend_from_slice(whole);
            Ok(out)
        }
    }
}

/// Encapsulates the datagram in `bytes` as [`encapsulate`] does. With [`Kind::IpInIp`], the datagram is not copied if
/// `bytes` has room for [`ipip::OVERHEAD`] more bytes. Fails as [`encapsulate`] does; `bytes` is then unchanged.
pub fn enclose(
    kind: Kind,
    bytes: &mut Vec<u8>,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    id: u16,
) -> Result<(), Malformed> {
    if kind == Kind::IpInIp {
        return ipip::enclose(bytes, src, dst, id);
    }
    *bytes = encapsulate(kind, bytes, src, dst, id)?;
    Ok(())
}

/// Fails if the time to live of an inner datagram is zero, if the outer datagram would exceed 65,535 bytes, or if the inner
/// one is in four tunnels already.
fn check((inner, payload): (&Header, &[u8]), len: usize, overhead: usize) -> Result<(), Malformed> {
    if inner.ttl == 0 {
        return Err(Malformed("ipip_ttl"));
    }
    if len + overhead > usize::from(u16::MAX) {
        return Err(Malformed("ipip_too_long"));
    }
    nested::check(inner, payload)
}

fn minimal(inner: &Header, payload: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<Vec<u8>, Malformed> {
    check((inner, payload), ipv4::HEADER + payload.len(), LONG)?;
    let has_source = src != inner.src;
    let mut forwarding = Vec::with_capacity(LONG);
    forwarding.extend_from_slice(&[inner.protocol, if has_source { SOURCE_PRESENT } else { 0 }, 0, 0]);
    forwarding.extend_from_slice(&inner.dst.octets());
    if has_source {
        forwarding.extend_from_slice(&inner.src.octets());
    }
    let sum = checksum(&forwarding).to_be_bytes();
    if let Some(field) = forwarding.get_mut(2..4) {
        field.copy_from_slice(&sum);
    }
    let outer = Header { protocol: ipv4::MINIMAL, src, dst, ..*inner };
    let mut out = outer.begin(forwarding.len() + payload.len());
    out.extend_from_slice(&forwarding);
    out.extend_from_slice(payload);
    Ok(out)
}

/// Returns the outer header and the inner datagram. The inner time to live is not changed; with minimal encapsulation
/// it is that of the outer header.
///
/// Fails if a header is malformed, if the outer header is not that of a tunnel, or if it belongs to a fragment. Also
/// fails if the inner time to live is zero. Fails if a GRE header has another version, a reserved flag (RFC 2784,
/// section 2.3) or a wrong checksum, or does not carry IPv4.
pub fn decapsulate(bytes: &[u8]) -> Result<(Header, Cow<'_, [u8]>), Malformed> {
    let (outer, payload) = Header::parse(bytes)?;
    match Kind::of_protocol(outer.protocol) {
        Some(Kind::Minimal | Kind::Gre) if outer.is_fragment() => Err(Malformed("ipip_fragment")),
        Some(Kind::Minimal) => {
            let options = bytes.get(ipv4::HEADER..ipv4::total_len(bytes) - payload.len()).unwrap_or_default();
            let (inner, rest) = open_minimal(&outer, payload)?;
            if inner.ttl == 0 {
                return Err(Malformed("ipip_ttl"));
            }
            Ok((outer, Cow::Owned(inner.emit_with(options, rest))))
        }
        Some(Kind::Gre) => {
            let inner = open_gre(payload)?;
            match Header::parse(inner)? {
                (Header { ttl: 0, .. }, _) => Err(Malformed("ipip_ttl")),
                _ => Ok((outer, Cow::Borrowed(inner))),
            }
        }
        Some(Kind::IpInIp) | None => {
            ipip::decapsulate(bytes).map(|(outer, inner)| (outer, Cow::Borrowed(inner)))
        }
    }
}

/// Parses the header of RFC 2004. Returns the header of the original datagram, and its payload.
fn open_minimal<'a>(outer: &Header, payload: &'a [u8]) -> Result<(Header, &'a [u8]), Malformed> {
    const TRUNCATED: Malformed = Malformed("minimal_truncated");
    let flags = payload.get(1).ok_or(TRUNCATED)?;
    let has_source = flags & SOURCE_PRESENT != 0;
    let len = if has_source { LONG } else { SHORT };
    let (forwarding, rest) = payload.split_at_checked(len).ok_or(TRUNCATED)?;
    if checksum(forwarding) != 0 {
        return Err(Malformed("minimal_checksum"));
    }
    let address = |at: usize| forwarding.get(at..).and_then(|rest| rest.first_chunk::<4>().copied());
    let dst = address(4).map(Ipv4Addr::from).ok_or(TRUNCATED)?;
    let src = address(8).map_or(outer.src, Ipv4Addr::from);
    let protocol = *payload.first().ok_or(TRUNCATED)?;
    Ok((Header { protocol, src, dst, ..*outer }, rest))
}

/// Parses the header of RFC 2784. Returns the datagram behind it.
fn open_gre(payload: &[u8]) -> Result<&[u8], Malformed> {
    const TRUNCATED: Malformed = Malformed("gre_truncated");
    let [flags, version, high, low, rest @ ..] = payload else { return Err(TRUNCATED) };
    if flags & !CHECKSUM_PRESENT != 0 || *version != 0 {
        return Err(Malformed("gre_flags"));
    }
    if [*high, *low] != [8, 0] {
        return Err(Malformed("gre_protocol"));
    }
    if flags & CHECKSUM_PRESENT == 0 {
        return Ok(rest);
    }
    let inner = rest.get(4..).ok_or(TRUNCATED)?;
    if checksum(payload) != 0 {
        return Err(Malformed("gre_checksum"));
    }
    Ok(inner)
}

/// The part of an inner datagram that an ICMP error about its outer datagram quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotedInner<'a> {
    /// The number of bytes that the tunnel added to the inner datagram.
    pub overhead: usize,
    /// The first bytes of the inner datagram. With minimal encapsulation they are restored, without type of service and
    /// identification; empty if the quotation does not contain the original source address.
    pub bytes: Cow<'a, [u8]>,
}

/// Returns what an ICMP error says about the inner datagram of a tunnel. Returns `None` if the quoted datagram is not
/// in a tunnel.
pub fn quoted_inner<'a>(quote: &crate::icmp::Quote<'a>) -> Option<QuotedInner<'a>> {
    let kind = Kind::of_protocol(quote.protocol)?;
    let of = |overhead, bytes: &'a [u8]| QuotedInner { overhead, bytes: Cow::Borrowed(bytes) };
    Some(match kind {
        Kind::IpInIp => of(kind.overhead(), quote.payload),
        Kind::Gre => of(kind.overhead(), quote.payload.get(GRE_HEADER.len()..).unwrap_or_default()),
        Kind::Minimal => {
            let has_source = quote.payload.get(1).is_some_and(|flags| flags & SOURCE_PRESENT != 0);
            let overhead = if has_source { LONG } else { SHORT };
            let outer = Header { ttl: 1, ..Header::new(kind.protocol(), quote.src, quote.dst) };
            match open_minimal(&outer, quote.payload) {
                Ok((inner, rest)) => {
                    let mut bytes = inner.emit(rest);
                    let len = quote.len.saturating_sub(overhead as u16).to_be_bytes();
                    if let Some(field) = bytes.get_mut(2..4) {
                        field.copy_from_slice(&len);
                    }
                    QuotedInner { overhead, bytes: Cow::Owned(bytes) }
                }
                Err(_) => of(overhead, &[]),
            }
        }
    })
}

/// Returns the largest fragment for a tunnel whose largest whole datagram has `mtu` bytes.
pub fn largest_fragment(kind: Kind, mtu: u16) -> u16 {
    let more = (kind.overhead_of_fragment() - kind.overhead()) as u16;
    mtu.saturating_sub(more).max(fragment::SMALLEST as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IcmpError, icmp, identity, udp};
    use core::net::SocketAddrV4;

    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const EXIT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
    const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
    const KINDS: [Kind; 3] = Kind::ALL;

    #[test]
    fn a_kind_has_its_name() {
        assert_eq!(KINDS.map(Kind::name), ["ip-in-ip", "minimal", "gre"]);
        assert_eq!(KINDS.map(|kind| kind.name().parse()), KINDS.map(Ok));
        assert_eq!("ipip".parse::<Kind>(), Err(ParseKindError));
    }

    fn inner() -> Vec<u8> {
        udp::packet(SocketAddrV4::new(FAR, 9000), SocketAddrV4::new(HOST, 9000), &[7; 100])
    }

    fn opened(bytes: &[u8]) -> (Header, Vec<u8>) {
        let (outer, inner) = decapsulate(bytes).unwrap();
        (outer, inner.into_owned())
    }

    #[test]
    fn what_is_encapsulated_is_read_back() {
        for kind in KINDS {
            let bytes = encapsulate(kind, &inner(), ENTRY, EXIT, 9).unwrap();
            let (outer, got) = opened(&bytes);
            assert_eq!((got, outer.src, outer.dst), (inner(), ENTRY, EXIT));
            assert_eq!(outer.protocol, kind.protocol());
            assert_eq!(bytes.len(), inner().len() + kind.overhead(), "{kind:?}");
            assert_eq!(identity(&bytes), identity(&inner()), "a tunnel does not change the identity");
            assert_eq!(Kind::of_protocol(kind.protocol()), Some(kind));
        }
    }

    #[test]
    fn a_datagram_is_encapsulated_in_its_buffer() {
        let short = Header::new(ipv4::UDP, FAR, HOST).emit(&[]);
        for (kind, inner) in KINDS.into_iter().flat_map(|kind| [(kind, inner()), (kind, short.clone())]) {
            let expected = encapsulate(kind, &inner, ENTRY, EXIT, 9).unwrap();
            let mut bytes = Vec::with_capacity(200);
            bytes.extend_from_slice(&[&inner[..], &[0; 6]].concat()); // with padding
            let at = bytes.as_ptr();
            enclose(kind, &mut bytes, ENTRY, EXIT, 9).unwrap();
            assert_eq!(bytes, expected, "{kind:?}");
            assert_eq!(bytes.as_ptr() == at, kind == Kind::IpInIp);
            let mut full = inner.clone();
            full.shrink_to_fit();
            enclose(kind, &mut full, ENTRY, EXIT, 9).unwrap();
            assert_eq!(full, expected);
            let dead = Header { ttl: 0, ..Header::new(ipv4::UDP, FAR, HOST) }.emit(&[7; 9]);
            let mut unchanged = dead.clone();
            assert_eq!(enclose(kind, &mut unchanged, ENTRY, EXIT, 9), Err(Malformed("ipip_ttl")));
            assert_eq!(unchanged, dead);
        }
    }

    /// The bytes of RFC 2004, section 3.1, and of RFC 2784, section 2.1.
    #[test]
    fn the_headers_have_the_bytes_of_the_rfcs() {
        let behind = |kind, src| encapsulate(kind, &inner(), src, EXIT, 9).unwrap()[20..].to_vec();
        let minimal = behind(Kind::Minimal, ENTRY);
        assert_eq!(minimal[..12], [17, 0x80, 0xda, 0x74, 10, 1, 0, 7, 10, 2, 0, 1]);
        let of_sender = behind(Kind::Minimal, FAR);
        assert_eq!(of_sender[..8], [17, 0, 0xe4, 0xf7, 10, 1, 0, 7], "the entry is the original source");
        assert_eq!([minimal.len(), of_sender.len()], [112 + 8, 108 + 8]);
        assert_eq!(behind(Kind::Gre, ENTRY)[..5], [0, 0, 8, 0, 0x45]);
        let sent = encapsulate(Kind::Minimal, &inner(), FAR, EXIT, 9).unwrap();
        assert_eq!(opened(&sent).1, inner());
    }

    #[test]
    fn a_set_of_kinds_has_what_was_put_into_it() {
        assert!(KINDS.iter().all(|kind| Kinds::ALL.has(*kind) && !Kinds::NONE.has(*kind)));
        assert_eq!(KINDS.map(|kind| Kinds::of(kind).bits()), [1, 2, 4]);
        assert_eq!(KINDS.map(|kind| Kinds::from_tunnel(kind).bits()), [1, 3, 4]);
        assert_eq!(KINDS.into_iter().map(Kinds::of).fold(Kinds::NONE, Kinds::or), Kinds::ALL);
        assert_eq!([Kinds::of_bits(5), Kinds::of_bits(8)], [Some(Kinds(5)), None]);
    }

    #[test]
    fn minimal_encapsulation_is_not_used_for_fragments_and_options() {
        let header = Header { dont_fragment: false, id: 7, ..Header::new(ipv4::UDP, FAR, HOST) };
        let piece = fragment::pieces(&header.emit(&[7; 1000]), 576).unwrap().remove(0);
        for bytes in [piece, header.emit_with(&[1, 1, 1, 1], &[7; 100])] {
            let outer = encapsulate(Kind::Minimal, &bytes, ENTRY, EXIT, 9).unwrap();
            assert_eq!(opened(&outer).1, bytes);
            assert_eq!(Header::parse(&outer).unwrap().0.protocol, ipv4::IPIP);
        }
        assert_eq!(KINDS.map(|kind| largest_fragment(kind, 1000)), [1000, 992, 1000]);
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let refusal = |protocol, payload: &[u8]| {
            let bytes = Header::new(protocol, ENTRY, EXIT).emit(payload);
            decapsulate(&bytes).unwrap_err().0
        };
        let minimal = encapsulate(Kind::Minimal, &inner(), ENTRY, EXIT, 9).unwrap()[20..].to_vec();
        assert_eq!(refusal(ipv4::MINIMAL, &minimal[..1]), "minimal_truncated");
        assert_eq!(refusal(ipv4::MINIMAL, &minimal[..11]), "minimal_truncated");
        let mut wrong = minimal.clone();
        wrong[7] ^= 1;
        assert_eq!(refusal(ipv4::MINIMAL, &wrong), "minimal_checksum");
        let gre = |header: &[u8]| [header, &inner()].concat();
        assert_eq!(refusal(ipv4::GRE, &[0, 0, 8]), "gre_truncated");
        assert_eq!(refusal(ipv4::GRE, &gre(&[0x20, 0, 8, 0])), "gre_flags");
        assert_eq!(refusal(ipv4::GRE, &gre(&[0, 1, 8, 0])), "gre_flags");
        assert_eq!(refusal(ipv4::GRE, &gre(&[0, 0, 0x86, 0xdd])), "gre_protocol");
        assert_eq!(refusal(ipv4::GRE, &gre(&[0x80, 0, 8, 0, 1, 2, 0, 0])), "gre_checksum");
        assert_eq!(refusal(ipv4::UDP, &inner()), "ipip_protocol");
        let mut summed = gre(&[0x80, 0, 8, 0, 0, 0, 0, 0]);
        let sum = checksum(&summed).to_be_bytes();
        summed[4..6].copy_from_slice(&sum);
        let bytes = Header::new(ipv4::GRE, ENTRY, EXIT).emit(&summed);
        assert_eq!(opened(&bytes).1, inner(), "a checksum is accepted");
        for kind in KINDS {
            let mut old = Header { ttl: 0, ..Header::new(ipv4::UDP, FAR, HOST) }.emit(b"any");
            assert_eq!(encapsulate(kind, &old, ENTRY, EXIT, 9).unwrap_err().0, "ipip_ttl");
            old.truncate(9);
            assert_eq!(encapsulate(kind, &old, ENTRY, EXIT, 9).unwrap_err().0, "ip_truncated");
            let long = Header::new(ipv4::UDP, FAR, HOST).emit(&alloc::vec![0; 65_510]);
            assert_eq!(encapsulate(kind, &long, ENTRY, EXIT, 9).unwrap_err().0, "ipip_too_long");
            let cut = Header { more_fragments: true, ..Header::new(kind.protocol(), ENTRY, EXIT) };
            assert_eq!(decapsulate(&cut.emit(&[0; 64])).unwrap_err().0, "ipip_fragment");
        }
    }

    /// An ICMP error about a tunnel finds the inner sender if enough bytes are quoted. A quotation of eight bytes (RFC
    /// 792) is not enough.
    #[test]
    fn an_error_about_a_tunnel_quotes_the_inner_datagram() {
        for kind in KINDS {
            let outer = encapsulate(kind, &inner(), ENTRY, EXIT, 9).unwrap();
            let error = IcmpError::HostUnreachable.about(&outer, EXIT).unwrap();
            let message = icmp::Message::parse(&error[20..]).unwrap();
            let quoted = quoted_inner(&icmp::Quote::of(&message).unwrap()).unwrap();
            assert_eq!(quoted.overhead, kind.overhead());
            let told = IcmpError::HostUnreachable.about_quoted(&quoted.bytes, ENTRY).unwrap();
            let about = icmp::Quote::of(&icmp::Message::parse(&told[20..]).unwrap()).unwrap().len;
            assert_eq!((Header::parse(&told).unwrap().0.dst, usize::from(about)), (FAR, inner().len()));
            let short = icmp::Message { body: &message.body[..4 + 28], ..message };
            let quoted = quoted_inner(&icmp::Quote::of(&short).unwrap()).unwrap();
            assert_eq!(IcmpError::HostUnreachable.about_quoted(&quoted.bytes, ENTRY), None);
        }
    }
}
