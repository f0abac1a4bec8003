//! Control messages: their bytes and their authentication.
//!
//! Of the draft's messages, only the route-update (draft-ietf-mobileip-cellularip-00, section 3.3.2) is implemented,
//! with HMAC-SHA-256. The draft does not define the ICMP type, the codes and the numbers of the control information.
//! The values below are Wayfare's.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type 253    |    Code 0     |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |                      Timestamp, NTP 32.32                     |
//! |                                                               |
//! +-----+-+-------+---------------+-------------------------------+
//! | CU  |S| AType | Auth. Length  |              CU               |
//! +-----+-+-------+---------------+-------------------------------+
//! |    KeyGen     |                     zero                      |
//! +---------------+-----------------------------------------------+
//! |                             R_MH                              |
//! |                                                               |
//! +---------------------------------------------------------------+
//! |                                                               |
//! |                       Digest, 16 bytes                        |
//! |                                                               |
//! |                                                               |
//! +---------------+---------------+-------------------------------+
//! | TLV type      | TLV length    | TLV data …
//! +---------------+---------------+-------------------------------+
//! ```

use auth::{Key, equal, hmac_sha256};
use wire::icmp::Message;
use wire::ipv4::{self, Header};
use wire::{Ipv4Addr, Malformed, Reader};

/// The ICMP type of all control messages. No type was assigned to Cellular IP; 253 is for experiments (RFC 4727).
pub const ICMP_TYPE: u8 = 253;
/// The ICMP code of a route-update. The draft gives no number.
pub const ROUTE_UPDATE: u8 = 0;
/// The highest ICMP code in use, that of the update-request. Codes 1 to 5 are for messages that are not implemented.
const LAST_CODE: u8 = 6;

/// Bit 4 of the flags: S, a semisoft route-update.
const SEMISOFT: u8 = 0x10;
/// Bit 5 of the flags: I, an indirect semisoft route-update. The draft does not use this bit, and Wayfare does not
/// support it.
const INDIRECT: u8 = 0x20;
/// Bits 7 and 6 of the flags: currently unused, and zero.
const UNUSED: u8 = 0xc0;
/// Bits 3 to 0 of the flags: `AType`, how the message is authenticated.
const ATYPE: u8 = 0x0f;
/// The `AType` of HMAC-SHA-256, cut to 128 bits.
const HMAC_SHA_256: u8 = 2;
/// The Auth. Length of HMAC-SHA-256, in bytes: `KeyGen`, padding, `R_MH` and digest.
const AUTH_LENGTH: u8 = 28;
/// The type of the control information that names the base station. The type is odd: a node that does not know it must
/// refuse the message.
const SERVING_BS: u8 = 3;

/// The type of the control information with the timestamp of a semisoft host's attachment to its old base station. The
/// draft does not define it. The type is even: a node that does not know it ignores the information.
const ATTACHED_SINCE: u8 = 6;

/// Returns the ICMP code of a control message, even if the code is not in use; `None` for other packets. It is a cheap
/// check before [`RouteUpdate::parse`].
///
/// Only the first fragment of a datagram contains the ICMP type. Such a fragment counts as a control message, and is
/// then refused. Without the first fragment, the datagram cannot be reassembled.
pub fn control_code(ip: &Header, payload: &[u8]) -> Option<u8> {
    match payload {
        [ICMP_TYPE, code, ..] if ip.protocol == ipv4::ICMP && ip.offset == 0 => Some(*code),
        _ => None,
    }
}

/// Returns the session key of a mobile host. Every node of the network can compute it from the packet and the network
/// key.
///
/// Campbell et al. compute an MD5 hash of IP address, `R_MH` and network key. Wayfare computes an HMAC-SHA-256 with the
/// network key, over the generation of the network key, IP address and `R_MH`. Because of the generation, no two
/// generations share a session key.
pub fn session_key(network_key: &Key, key_gen: u8, mobile: Ipv4Addr, r_mh: [u8; 8]) -> Key {
    Key::new(hmac_sha256(network_key, &[b"CIPv1 session", &[key_gen], &mobile.octets(), &r_mh]))
}

/// The Authentication field of a control message: it identifies the session key, and contains the digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Authentication {
    /// The generation of the network key that the session key was derived from.
    pub key_gen: u8,
    /// The random value that the gateway gave the mobile host when the host registered.
    pub r_mh: [u8; 8],
    /// The first 16 bytes of the HMAC; zero before [`RouteUpdate::sign`].
    pub digest: [u8; 16],
}

impl Authentication {
    /// Returns the Authentication field of a message that is not signed yet. The digest is zero.
    pub const fn unsigned(key_gen: u8, r_mh: [u8; 8]) -> Self {
        Self { key_gen, r_mh, digest: [0; 16] }
    }
}

/// The control information of even type, as bytes. The digest depends on the order of all control information. So the
/// bytes before the information that names the base station are kept apart from the bytes after it. Only
/// [`Self::attached_since`] is interpreted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// The bytes before the serving base station, or all bytes if the message names no base station.
    before: Vec<u8>,
    /// The bytes after the serving base station.
    behind: Vec<u8>,
}

/// A route-update (draft-ietf-mobileip-cellularip-00, section 3.3.2). It reports that the mobile host can be reached on
/// the path that the message takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteUpdate {
    /// The mobile host's home address: the packet's source.
    pub mobile: Ipv4Addr,
    /// The gateway's address: the packet's destination.
    pub gateway: Ipv4Addr,
    /// An NTP timestamp of 32.32 bits. It increases strictly over all control messages that a host signs by one clock.
    pub timestamp: u64,
    /// The flag S: the host still listens at its old base station. The crossover adds the new path and keeps the old
    /// one.
    pub semisoft: bool,
    /// The generation of the network key, `R_MH`, and the digest of the message.
    pub auth: Authentication,
    /// The id of the base station to which the host sent the message; `None` if the message names none. Because of the
    /// id, the message cannot be relayed through another base station. A base station refuses a message by radio if
    /// this is `None` or another id.
    pub serving_bs: Option<u32>,
    /// The control information of even type. A mobile host sends at most [`Skipped::attached_since`].
    pub skipped: Skipped,
}

impl Skipped {
    /// Returns the control information of a semisoft route-update. `timestamp` is that of the route-update with which
    /// the host attached to its old base station.
    pub fn attached_since(timestamp: u64) -> Self {
        let mut behind = vec![ATTACHED_SINCE, 8];
        behind.extend_from_slice(&timestamp.to_be_bytes());
        Self { before: Vec::new(), behind }
    }

    /// Returns a copy without the information of [`Self::attached_since`].
    #[must_use]
    pub fn others(&self) -> Self {
        let of = |side: &[u8]| {
            let (mut r, mut others) = (Reader::new(side, Malformed("cip_tlv_truncated")), Vec::new());
            while let (Ok(kind), Ok(length)) = (r.u8(), r.u8())
                && let Ok(data) = r.take(usize::from(length))
            {
                if kind != ATTACHED_SINCE {
                    others.extend([kind, length]);
                    others.extend(data);
                }
            }
            others
        };
        Self { before: of(&self.before), behind: of(&self.behind) }
    }

    /// Returns the data of the control information of type `wanted`, `N` bytes; `None` if there is none of this length.
    fn find<const N: usize>(&self, wanted: u8) -> Option<[u8; N]> {
        [&self.before, &self.behind].into_iter().find_map(|side| {
            let mut r = Reader::new(side, Malformed("cip_tlv_truncated"));
            while let (Ok(kind), Ok(length)) = (r.u8(), r.u8()) {
                let data = r.take(usize::from(length)).ok()?;
                if kind == wanted {
                    return data.try_into().ok();
                }
            }
            None
        })
    }
}

impl RouteUpdate {
    /// Returns the timestamp of the route-update with which the host attached to its old base station. Returns `None`
    /// if the message does not contain it, as in a hard handoff. A node with only older timestamps of this host is not
    /// on the host's present path, and does not become the crossover.
    pub fn attached_since(&self) -> Option<u64> {
        self.skipped.find(ATTACHED_SINCE).map(u64::from_be_bytes)
    }

    /// Parses `icmp`, the payload of the datagram with header `ip`. It is an error if the message is malformed or not a
    /// route-update.
    ///
    /// The digest is not checked, because that requires a key: see [`Self::verify`].
    pub fn parse(ip: &Header, icmp: &[u8]) -> Result<Self, Malformed> {
        let body = body(ip, icmp)?;
        let mut r = Reader::new(body, Malformed("cip_short"));
        let timestamp = r.u64()?;
        let (flags, auth_length, unused) = (r.u8()?, r.u8()?, r.u16()?);
        if flags & INDIRECT != 0 {
            return Err(Malformed("cip_indirect"));
        }
        if flags & UNUSED != 0 {
            return Err(Malformed("cip_unused_flags"));
        }
        if unused != 0 {
            return Err(Malformed("cip_unused_field"));
        }
        let auth = authentication(flags & ATYPE, auth_length, &mut r)?;
        let (serving_bs, skipped) = information(r.rest())?;
        let semisoft = flags & SEMISOFT != 0;
        Ok(Self { mobile: ip.src, gateway: ip.dst, timestamp, semisoft, auth, serving_bs, skipped })
    }

    /// Returns the message as a whole IPv4 datagram.
    pub fn emit(&self) -> Vec<u8> {
        let body = self.body(self.auth.digest);
        let icmp = Message { kind: ICMP_TYPE, code: ROUTE_UPDATE, body: &body }.emit();
        // `Header::new` sets DF: control messages are never fragmented.
        Header::new(ipv4::ICMP, self.mobile, self.gateway).emit(&icmp)
    }

    /// Computes the digest with the session key, and sets it.
    pub fn sign(&mut self, session_key: &Key) {
        self.auth.digest = self.digest(session_key);
    }

    /// Returns whether the digest is that of this message with the session key. The time of the comparison does not
    /// depend on the position of a wrong byte.
    pub fn verify(&self, session_key: &Key) -> bool {
        equal(&self.digest(session_key), &self.auth.digest)
    }

    /// Computes the digest.
    ///
    /// The digest covers the source and destination addresses and the whole ICMP message, with zeros for checksum and
    /// digest. It covers no other field of the IP header: nodes may change some of them.
    fn digest(&self, session_key: &Key) -> [u8; 16] {
        let (src, dst) = (self.mobile.octets(), self.gateway.octets());
        let head = [ICMP_TYPE, ROUTE_UPDATE, 0, 0];
        let code = hmac_sha256(session_key, &[&src, &dst, &head, &self.body([0; 16])]);
        let (halves, _) = code.as_chunks::<16>();
        halves.first().copied().unwrap_or_default()
    }

    /// Returns the bytes after the ICMP checksum, with `digest` as their digest.
    fn body(&self, digest: [u8; 16]) -> Vec<u8> {
        let flags = HMAC_SHA_256 | if self.semisoft { SEMISOFT } else { 0 };
        let mut out = Vec::with_capacity(46 + self.skipped.before.len() + self.skipped.behind.len());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&[flags, AUTH_LENGTH, 0, 0]);
        out.extend_from_slice(&[self.auth.key_gen, 0, 0, 0]);
        out.extend_from_slice(&self.auth.r_mh);
        out.extend_from_slice(&digest);
        out.extend_from_slice(&self.skipped.before);
        if let Some(id) = self.serving_bs {
            out.extend_from_slice(&[SERVING_BS, 4]);
            out.extend_from_slice(&id.to_be_bytes());
        }
        out.extend_from_slice(&self.skipped.behind);
        out
    }
}

/// Returns the bytes after the ICMP checksum. It is an error if the datagram is not a route-update.
fn body<'a>(ip: &Header, icmp: &'a [u8]) -> Result<&'a [u8], Malformed> {
    if ip.protocol != ipv4::ICMP {
        return Err(Malformed("cip_protocol"));
    }
    if ip.is_fragment() {
        return Err(Malformed("cip_fragment"));
    }
    let message = Message::parse(icmp)?;
    match (message.kind, message.code) {
        (ICMP_TYPE, ROUTE_UPDATE) => Ok(message.body),
        (ICMP_TYPE, ..=LAST_CODE) => Err(Malformed("cip_not_route_update")),
        (ICMP_TYPE, _) => Err(Malformed("cip_unknown_code")),
        _ => Err(Malformed("cip_type")),
    }
}

/// Reads the Authentication field. Only HMAC-SHA-256 is accepted.
fn authentication(atype: u8, length: u8, r: &mut Reader<'_>) -> Result<Authentication, Malformed> {
    match atype {
        HMAC_SHA_256 => {}
        // Only a request to register has no authentication, and this message is not implemented.
        0 => return Err(Malformed("cip_atype_none")),
        1 => return Err(Malformed("cip_atype_md5")),
        15 => return Err(Malformed("cip_atype_private")),
        _ => return Err(Malformed("cip_atype_reserved")),
    }
    if length != AUTH_LENGTH {
        return Err(Malformed("cip_auth_length"));
    }
    let field = r.take(usize::from(length)).map_err(|_| Malformed("cip_auth_truncated"))?;
    let mut field = Reader::new(field, Malformed("cip_auth_truncated"));
    let (key_gen, padding) = (field.u8()?, field.array::<3>()?);
    if padding != [0; 3] {
        return Err(Malformed("cip_auth_padding"));
    }
    Ok(Authentication { key_gen, r_mh: field.array()?, digest: field.array()? })
}

/// Parses the control information: types, lengths and data up to the end of the packet.
fn information(bytes: &[u8]) -> Result<(Option<u32>, Skipped), Malformed> {
    let mut r = Reader::new(bytes, Malformed("cip_tlv_truncated"));
    let (mut serving_bs, mut skipped) = (None, Skipped::default());
    while !r.is_empty() {
        let (kind, length) = (r.u8()?, r.u8()?);
        let data = r.take(usize::from(length)).map_err(|_| Malformed("cip_tlv_overrun"))?;
        if kind == SERVING_BS {
            let id = data.try_into().map_err(|_| Malformed("cip_serving_bs_length"))?;
            if serving_bs.replace(u32::from_be_bytes(id)).is_some() {
                return Err(Malformed("cip_serving_bs_twice"));
            }
        } else if kind % 2 == 1 {
            return Err(Malformed("cip_unknown_tlv"));
        } else {
            let side = if serving_bs.is_none() { &mut skipped.before } else { &mut skipped.behind };
            side.extend_from_slice(&[kind, length]);
            side.extend_from_slice(data);
        }
    }
    Ok((serving_bs, skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
    use wire::checksum;

    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
    const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const R_MH: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    /// The ICMP message of [`golden`], byte for byte.
    const GOLDEN: &str = "fd004869e900000080000000121c000001000000\
        010203040506070895ccaf4e956acfccdeed8f2defdc2312030400000003";

    fn hex(text: &str) -> Vec<u8> {
        text.parse::<Key>().unwrap().as_bytes().to_vec()
    }

    fn golden_key() -> Key {
        let network_key: Vec<u8> = (0..16).collect();
        session_key(&Key::new(network_key), 1, MOBILE, R_MH)
    }

    fn golden() -> RouteUpdate {
        RouteUpdate {
            mobile: MOBILE,
            gateway: GATEWAY,
            timestamp: 0xe900_0000_8000_0000,
            semisoft: true,
            auth: Authentication::unsigned(1, R_MH),
            serving_bs: Some(3),
            skipped: Skipped::default(),
        }
    }

    fn header() -> Header {
        Header::new(ipv4::ICMP, MOBILE, GATEWAY)
    }

    /// Sets the checksum of `bytes` at the index `at`.
    fn set_checksum(bytes: &mut [u8], at: usize) {
        bytes[at..at + 2].fill(0);
        let sum = checksum(bytes);
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Parses the golden message after `change`, with a correct checksum.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Result<RouteUpdate, Malformed> {
        let mut icmp = hex(GOLDEN);
        change(&mut icmp);
        set_checksum(&mut icmp, 2);
        RouteUpdate::parse(&header(), &icmp)
    }

    /// Returns the reason why the golden message is refused after `change`.
    fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> &'static str {
        changed(change).unwrap_err().0
    }

    /// Parses the golden message with `bytes` as its control information.
    fn with_information(bytes: &[u8]) -> Result<RouteUpdate, Malformed> {
        changed(|icmp| {
            icmp.truncate(44);
            icmp.extend_from_slice(bytes);
        })
    }

    #[test]
    fn since_when_a_host_is_attached_is_found_wherever_it_stands() {
        let since = 0xe900_0000_0000_0004;
        let sent = RouteUpdate { skipped: Skipped::attached_since(since), ..golden() };
        let datagram = sent.emit();
        let (ip, icmp) = Header::parse(&datagram).unwrap();
        assert_eq!(RouteUpdate::parse(&ip, icmp), Ok(sent.clone()));
        assert_eq!((sent.attached_since(), golden().attached_since()), (Some(since), None));
        let with = |bytes: &[u8]| with_information(bytes).unwrap().attached_since();
        assert_eq!(with(&[8, 1, 9, 6, 8, 0, 0, 0, 0, 0, 0, 0, 5, 3, 4, 0, 0, 0, 3]), Some(5));
        assert_eq!(with(&[6, 2, 0, 0, 3, 4, 0, 0, 0, 3]), None, "of another length");
        let both = with_information(&[8, 1, 9, 6, 8, 0, 0, 0, 0, 0, 0, 0, 5, 3, 4, 0, 0, 0, 3]).unwrap();
        assert_eq!(both.skipped.others(), with_information(&[8, 1, 9, 3, 4, 0, 0, 0, 3]).unwrap().skipped);
    }

    #[test]
    fn the_golden_session_key() {
        let expected = "0a4372d6688c87585d0dcdc62043281ec876820aef70fd7346f01bac0e1cb0ec";
        assert_eq!(golden_key().as_bytes(), hex(expected));
    }

    #[test]
    fn the_golden_message_is_made_and_read() {
        let mut update = golden();
        assert!(!update.verify(&golden_key()));
        update.sign(&golden_key());
        assert!(update.verify(&golden_key()));
        let packet = update.emit();
        let (ip, icmp) = Header::parse(&packet).unwrap();
        assert_eq!((ip, icmp), (header(), hex(GOLDEN).as_slice()));
        assert_eq!(control_code(&ip, icmp), Some(ROUTE_UPDATE));
        assert_eq!(RouteUpdate::parse(&ip, icmp), Ok(update));
    }

    #[test]
    fn another_session_cannot_sign_it() {
        let network_key: Vec<u8> = (0..16).collect();
        let network_key = Key::new(network_key);
        let mut update = golden();
        update.sign(&golden_key());
        assert!(!update.verify(&session_key(&network_key, 2, MOBILE, R_MH)));
        assert!(!update.verify(&session_key(&network_key, 1, GATEWAY, R_MH)));
        assert!(!update.verify(&session_key(&network_key, 1, MOBILE, [0; 8])));
        assert!(!update.verify(&session_key(&Key::new([0; 16]), 1, MOBILE, R_MH)));
    }

    #[test]
    fn only_control_messages_show_a_code() {
        let icmp = hex(GOLDEN);
        let later = Header { offset: 1, ..header() };
        let first = Header { more_fragments: true, ..header() };
        assert_eq!(control_code(&header(), &icmp), Some(0));
        assert_eq!(control_code(&first, &icmp), Some(0));
        assert_eq!(control_code(&later, &icmp), None);
        assert_eq!(control_code(&Header { protocol: ipv4::UDP, ..header() }, &icmp), None);
        assert_eq!(control_code(&header(), &[8, 0, 0, 0]), None);
        assert_eq!(control_code(&header(), &[ICMP_TYPE]), None);
    }

    #[test]
    fn another_protocol_is_refused() {
        let udp = Header { protocol: ipv4::UDP, ..header() };
        assert_eq!(RouteUpdate::parse(&udp, &hex(GOLDEN)).unwrap_err().0, "cip_protocol");
    }

    #[test]
    fn a_fragment_is_refused() {
        for piece in [Header { more_fragments: true, ..header() }, Header { offset: 1, ..header() }] {
            assert_eq!(RouteUpdate::parse(&piece, &hex(GOLDEN)).unwrap_err().0, "cip_fragment");
        }
    }

    #[test]
    fn a_message_cut_before_its_checksum_is_refused() {
        for len in 0..4 {
            let icmp = &hex(GOLDEN)[..len];
            assert_eq!(RouteUpdate::parse(&header(), icmp).unwrap_err().0, "icmp_truncated", "{len}");
        }
    }

    #[test]
    fn a_bad_checksum_is_refused() {
        let mut icmp = hex(GOLDEN);
        icmp[4] ^= 1;
        assert_eq!(RouteUpdate::parse(&header(), &icmp).unwrap_err().0, "icmp_checksum");
    }

    #[test]
    fn another_icmp_type_is_refused() {
        assert_eq!(refusal(|icmp| icmp[0] = 8), "cip_type");
    }

    #[test]
    fn another_control_message_is_refused() {
        for code in 1..=6 {
            assert_eq!(refusal(|icmp| icmp[1] = code), "cip_not_route_update", "{code}");
        }
    }

    #[test]
    fn an_unknown_code_is_refused() {
        assert_eq!(refusal(|icmp| icmp[1] = 7), "cip_unknown_code");
        assert_eq!(refusal(|icmp| icmp[1] = 255), "cip_unknown_code");
    }

    #[test]
    fn less_than_sixteen_bytes_are_refused() {
        for len in 4..16 {
            assert_eq!(refusal(|icmp| icmp.truncate(len)), "cip_short", "{len}");
        }
    }

    #[test]
    fn indirect_semisoft_is_refused() {
        assert_eq!(refusal(|icmp| icmp[12] |= 0x20), "cip_indirect");
    }

    #[test]
    fn unused_flags_must_be_zero() {
        assert_eq!(refusal(|icmp| icmp[12] |= 0x80), "cip_unused_flags");
        assert_eq!(refusal(|icmp| icmp[12] |= 0x40), "cip_unused_flags");
    }

    #[test]
    fn the_unused_field_must_be_zero() {
        assert_eq!(refusal(|icmp| icmp[14] = 1), "cip_unused_field");
        assert_eq!(refusal(|icmp| icmp[15] = 1), "cip_unused_field");
    }

    #[test]
    fn a_message_without_authentication_is_refused() {
        let bare = |icmp: &mut Vec<u8>| {
            icmp.truncate(16);
            icmp[12..14].fill(0);
        };
        assert_eq!(refusal(bare), "cip_atype_none");
    }

    #[test]
    fn keyed_md5_is_refused() {
        assert_eq!(refusal(|icmp| icmp[12] = 0x11), "cip_atype_md5");
    }

    #[test]
    fn reserved_authentication_types_are_refused() {
        for atype in 3..15 {
            assert_eq!(refusal(|icmp| icmp[12] = atype), "cip_atype_reserved", "{atype}");
        }
    }

    #[test]
    fn the_private_authentication_type_is_refused() {
        assert_eq!(refusal(|icmp| icmp[12] = 15), "cip_atype_private");
    }

    #[test]
    fn an_authentication_of_another_length_is_refused() {
        for length in [0, 27, 29, 255] {
            assert_eq!(refusal(|icmp| icmp[13] = length), "cip_auth_length", "{length}");
        }
    }

    #[test]
    fn an_authentication_beyond_the_packet_is_refused() {
        for len in 16..44 {
            assert_eq!(refusal(|icmp| icmp.truncate(len)), "cip_auth_truncated", "{len}");
        }
    }

    #[test]
    fn the_padding_of_the_key_generation_must_be_zero() {
        for at in 17..20 {
            assert_eq!(refusal(|icmp| icmp[at] = 1), "cip_auth_padding", "{at}");
        }
    }

    #[test]
    fn control_information_without_a_length_is_refused() {
        assert_eq!(refusal(|icmp| icmp.truncate(45)), "cip_tlv_truncated");
        assert_eq!(refusal(|icmp| icmp.push(2)), "cip_tlv_truncated");
    }

    #[test]
    fn control_information_beyond_the_packet_is_refused() {
        for len in 46..50 {
            assert_eq!(refusal(|icmp| icmp.truncate(len)), "cip_tlv_overrun", "{len}");
        }
        assert_eq!(refusal(|icmp| icmp.extend_from_slice(&[4, 1])), "cip_tlv_overrun");
    }

    #[test]
    fn control_information_of_unknown_odd_type_is_refused() {
        for kind in [1, 5, 129, 255] {
            assert_eq!(with_information(&[kind, 0]).unwrap_err().0, "cip_unknown_tlv", "{kind}");
        }
    }

    #[test]
    fn a_serving_base_station_of_another_length_is_refused() {
        for tlv in [&[3, 0][..], &[3, 3, 0, 0, 3], &[3, 5, 0, 0, 0, 3, 0]] {
            assert_eq!(with_information(tlv).unwrap_err().0, "cip_serving_bs_length", "{tlv:?}");
        }
    }

    #[test]
    fn two_serving_base_stations_are_refused() {
        assert_eq!(refusal(|icmp| icmp.extend_from_slice(&[3, 4, 0, 0, 0, 3])), "cip_serving_bs_twice");
    }

    #[test]
    fn a_missing_serving_base_station_is_left_to_the_role() {
        assert_eq!(with_information(&[]).unwrap().serving_bs, None);
        assert_eq!(with_information(&[4, 2, 9, 9]).unwrap().serving_bs, None);
    }

    #[test]
    fn even_control_information_is_skipped_and_still_covered() {
        let tlvs = [2, 1, 7, 0, 0, 3, 4, 0, 0, 0, 9, 2, 1, 8, 254, 0];
        let mut update = with_information(&tlvs).unwrap();
        assert_eq!(update.serving_bs, Some(9));
        update.sign(&golden_key());
        let packet = update.emit();
        let (ip, icmp) = Header::parse(&packet).unwrap();
        assert_eq!(icmp[44..], tlvs);
        let read = RouteUpdate::parse(&ip, icmp).unwrap();
        assert!(read.verify(&golden_key()));
        assert!(!RouteUpdate { skipped: Skipped::default(), ..read }.verify(&golden_key()));
    }

    /// Returns a strategy for control information of even types, as bytes.
    fn skippable() -> impl Strategy<Value = Vec<u8>> {
        vec((any::<u8>(), vec(any::<u8>(), 0..20)), 0..3).prop_map(|tlvs| {
            tlvs.into_iter()
                .flat_map(|(kind, data)| [vec![kind & !1, data.len() as u8], data].concat())
                .collect()
        })
    }

    fn updates() -> impl Strategy<Value = RouteUpdate> {
        let addresses = any::<(u32, u32)>();
        let auth = any::<(u8, [u8; 8], [u8; 16])>();
        let fields = any::<(u64, bool, Option<u32>)>();
        (addresses, auth, fields, skippable(), skippable()).prop_map(
            |((mobile, gateway), (key_gen, r_mh, digest), fields, before, behind)| {
                let (timestamp, semisoft, serving_bs) = fields;
                // Without a serving base station, all control information is in `before`.
                let behind = if serving_bs.is_some() { behind } else { Vec::new() };
                RouteUpdate {
                    mobile: Ipv4Addr::from_bits(mobile),
                    gateway: Ipv4Addr::from_bits(gateway),
                    timestamp,
                    semisoft,
                    auth: Authentication { key_gen, r_mh, digest },
                    serving_bs,
                    skipped: Skipped { before, behind },
                }
            },
        )
    }

    /// Returns whether a node with `key` accepts the datagram.
    fn believed(packet: &[u8], key: &Key) -> bool {
        Header::parse(packet)
            .and_then(|(ip, icmp)| RouteUpdate::parse(&ip, icmp))
            .is_ok_and(|update| update.verify(key))
    }

    /// Returns whether a bit of the datagram may change without a wrong digest. Such bits are in DSCP and ECN,
    /// identification, DF, time to live, and the two checksums, which the test recomputes. The IP header has 20 bytes.
    fn is_free(bit: usize) -> bool {
        matches!(bit / 8, 1 | 4 | 5 | 8 | 10 | 11 | 22 | 23) || bit == 6 * 8 + 6
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read_back(update in updates()) {
            let packet = update.emit();
            let (ip, icmp) = Header::parse(&packet).unwrap();
            prop_assert_eq!(RouteUpdate::parse(&ip, icmp), Ok(update));
        }

        #[test]
        fn one_wrong_bit_is_noticed(mut update in updates(), key in any::<[u8; 16]>()) {
            let key = Key::new(key);
            update.sign(&key);
            let good = update.emit();
            prop_assert!(believed(&good, &key));
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(!believed(&bad, &key), "bit {} by accident", bit);
                set_checksum(&mut bad[20..], 2);
                set_checksum(&mut bad[..20], 10);
                prop_assert_eq!(believed(&bad, &key), is_free(bit), "bit {} by intent", bit);
            }
        }

        #[test]
        fn parse_survives_anything(protocol in any::<u8>(), offset in 0..3_u16, icmp in vec(any::<u8>(), 0..128)) {
            let _ = RouteUpdate::parse(&Header { protocol, offset, ..header() }, &icmp);
            let _ = RouteUpdate::parse(&header(), &icmp);
        }

        #[test]
        fn parse_survives_anything_behind_a_good_start(keep in 4..50_usize, tail in vec(any::<u8>(), 0..64)) {
            let parsed = changed(|icmp| {
                icmp.truncate(keep);
                icmp.extend_from_slice(&tail);
            });
            if let Ok(update) = parsed {
                let packet = update.emit();
                let (ip, icmp) = Header::parse(&packet).unwrap();
                prop_assert_eq!(RouteUpdate::parse(&ip, icmp), Ok(update));
            }
        }
    }
}
