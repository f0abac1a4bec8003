//! The Buffer Control Request of a mobile node to a foreign agent (draft-mkhalil-mobileip-buffer-00, section 4.1): whether to keep
//! packets, and which of them the mobile node has received.
//!
//! ```text
//! +---------------+-+-+-+-+-+-+-+---------------------------------+
//! |    Type 20    |A|B|F|I|K|L|D|            Reserved             |
//! +---------------+-+-+-+-+-+-+-+---------------------------------+
//! |   Home Address, Identification (two words), IP Filter         |
//! |   Extension, Generalized Authentication                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! The draft gives no numbers: see [`Numbers`]. Flags A, K and L are not supported: the sizes are those of the agent, and there is no
//! response. The authentication is that of smooth handoffs. Its authenticator covers all bytes before it.

use super::extension::Association;
use super::generalized::Generalized;
use super::{Numbers, address};
use std::collections::BTreeMap;
use wire::{Ipv4Addr, Malformed, Reader};

/// The largest length of an IP Filter Extension, in bytes after type and length.
const LONGEST_FILTER: usize = 255;

/// A Buffer Control Request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferControl {
    /// What the foreign agent is asked to do.
    pub asks: Asks,
    /// The home address of the mobile node.
    pub home: Ipv4Addr,
    /// The Identification, a timestamp as in a Registration Request: protection against replay.
    pub identification: u64,
    /// The packets that the mobile node has received: the source and the identification of each. The foreign agent does not send
    /// them again.
    pub named: Vec<(Ipv4Addr, u16)>,
    /// The authentication, the last part of the message. Without one ([`BufferControl::sign`]), the receiver drops the message.
    pub authentication: Option<Generalized>,
}

/// What a Buffer Control Request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// Flag B: keep packets from now on.
    Keep,
    /// Flag F: the kept packets are for another agent soon; those that are named need not be sent.
    Forward,
    /// Flag D: drop the kept packets, and keep no more.
    Stop,
}

impl Asks {
    const fn flag(self) -> u8 {
        match self {
            Self::Keep => 0x40,
            Self::Forward => 0x20,
            Self::Stop => 0x02,
        }
    }
}

/// Flag I: there is an Identification.
const IDENTIFICATION: u8 = 0x10;

impl BufferControl {
    /// Parses a UDP payload. `None` if its type is another one. It is an error if the message is malformed.
    pub fn parse(payload: &[u8], numbers: &Numbers) -> Option<Result<Self, Malformed>> {
        let (&kind, rest) = payload.split_first()?;
        (kind == numbers.buffer_control).then(|| Self::parse_rest(rest, numbers))
    }

    fn parse_rest(rest: &[u8], numbers: &Numbers) -> Result<Self, Malformed> {
        let mut r = Reader::new(rest, Malformed("mip_control_short"));
        let flags = r.u8()?;
        let asks = [Asks::Keep, Asks::Forward, Asks::Stop].into_iter();
        let asks = asks.into_iter().find(|asks| flags == asks.flag() | IDENTIFICATION);
        let asks = asks.ok_or(Malformed("mip_control_flags"))?;
        if r.u16()? != 0 {
            return Err(Malformed("mip_control_reserved"));
        }
        let (home, identification) = (address(&mut r)?, r.u64()?);
        let mut rest = r.rest();
        let mut named = Vec::new();
        if let [kind, length, data @ ..] = rest
            && *kind == numbers.ip_filter
        {
            let data_len = usize::from(*length);
            let data = data.get(..data_len).ok_or(Malformed("mip_extension_overrun"))?;
            named = parse_filter(data)?;
            rest = rest.get(2 + data_len..).unwrap_or_default();
        }
        Ok(Self { asks, home, identification, named, authentication: Some(Generalized::parse(rest)?) })
    }

    /// Returns the message as a UDP payload. Of `named`, the last packets are in the message if not all fit.
    pub fn emit(&self, numbers: &Numbers) -> Vec<u8> {
        let mut out = self.emit_before(numbers);
        if let Some(authentication) = &self.authentication {
            authentication.emit(&mut out);
        }
        out
    }

    /// Returns the message without its authentication: the bytes that the authenticator covers first.
    fn emit_before(&self, numbers: &Numbers) -> Vec<u8> {
        let mut out = vec![numbers.buffer_control, self.asks.flag() | IDENTIFICATION, 0, 0];
        out.extend_from_slice(&self.home.octets());
        out.extend_from_slice(&self.identification.to_be_bytes());
        if !self.named.is_empty() {
            let data = filter(&self.named);
            out.extend_from_slice(&[numbers.ip_filter, data.len() as u8]);
            out.extend_from_slice(&data);
        }
        out
    }

    /// Sets the authentication.
    pub fn sign(&mut self, association: &Association, numbers: &Numbers) {
        let covered = self.emit_before(numbers);
        self.authentication = Some(association.sign_generalized(numbers.smooth_authentication, &covered));
    }

    /// Returns whether the authentication is that of smooth handoffs, and has the SPI of `association` and a correct authenticator.
    pub fn verify(&self, association: &Association, numbers: &Numbers) -> bool {
        let Some(found) = &self.authentication else { return false };
        found.subtype == numbers.smooth_authentication
            && association.verifies_generalized(found, &self.emit_before(numbers))
    }
}

/// Parses the data of an IP Filter Extension (section 4.5): addresses, and the identifications of packets of each. Flag C must be
/// clear, and each address must have identifications: filters of whole addresses are not supported.
fn parse_filter(data: &[u8]) -> Result<Vec<(Ipv4Addr, u16)>, Malformed> {
    let mut r = Reader::new(data, Malformed("mip_filter_length"));
    let (count, flags) = (r.u8()?, r.u8()?);
    if flags != 0 || count == 0 {
        return Err(Malformed("mip_filter_flags"));
    }
    let addresses = (0..count).map(|_| address(&mut r)).collect::<Result<Vec<_>, _>>()?;
    if addresses.iter().enumerate().any(|(at, one)| addresses.iter().take(at).any(|other| other == one)) {
        return Err(Malformed("mip_filter_address"));
    }
    let mut named = Vec::new();
    for index in 0..count {
        // The tuples are in the order of the addresses: so each address has one, and the message has one form.
        let (of, ids) = (r.u8()?, r.u8()?);
        let source = addresses.get(usize::from(of)).filter(|_| of == index && ids > 0);
        let source = *source.ok_or(Malformed("mip_filter_index"))?;
        for _ in 0..ids {
            named.push((source, r.u16()?));
        }
        // The tuple is padded to a multiple of four bytes.
        if ids % 2 == 0 && r.u16()? != 0 {
            return Err(Malformed("mip_filter_padding"));
        }
    }
    if r.is_empty() { Ok(named) } else { Err(Malformed("mip_filter_length")) }
}

/// Returns the data of an IP Filter Extension with the last of these packets that fit. The addresses are in the order of their first
/// packets.
fn filter(named: &[(Ipv4Addr, u16)]) -> Vec<u8> {
    let mut counts: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
    let mut length = 2;
    let fits = |(source, _): &&(Ipv4Addr, u16)| {
        let count = counts.entry(*source).or_default();
        // An address and a tuple, or a further pair of identifications.
        length += if *count == 0 { 8 } else { (*count % 2) * 4 };
        *count += 1;
        length <= LONGEST_FILTER
    };
    let fitting = named.iter().rev().take_while(fits).count();
    let mut of: Vec<(Ipv4Addr, Vec<u16>)> = Vec::new();
    for (source, id) in named.iter().skip(named.len() - fitting) {
        match of.iter_mut().find(|(other, _)| other == source) {
            Some((_, ids)) => ids.push(*id),
            None => of.push((*source, vec![*id])),
        }
    }
    let mut data = vec![of.len() as u8, 0];
    for (source, _) in &of {
        data.extend_from_slice(&source.octets());
    }
    for (index, (_, ids)) in (0..).zip(&of) {
        data.extend_from_slice(&[index, ids.len() as u8]);
        for id in ids {
            data.extend_from_slice(&id.to_be_bytes());
        }
        if ids.len() % 2 == 0 {
            data.extend_from_slice(&[0, 0]);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Algorithm;
    use auth::Key;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn association() -> Association {
        Association { spi: 0x300, algorithm: Algorithm::HmacSha256, key: Key::new(b"1234567812345678") }
    }

    fn message(asks: Asks, named: Vec<(Ipv4Addr, u16)>) -> BufferControl {
        let home = Ipv4Addr::new(10, 1, 1, 10);
        let identification = 0xed00_0000_1234_5800;
        let mut message = BufferControl { asks, home, identification, named, authentication: None };
        message.sign(&association(), &Numbers::default());
        message
    }

    fn read(payload: &[u8]) -> Result<BufferControl, Malformed> {
        BufferControl::parse(payload, &Numbers::default()).expect("the type")
    }

    #[test]
    fn the_bytes_are_those_of_the_draft() {
        let numbers = Numbers::default();
        let sources = [[10, 2, 0, 2], [10, 2, 0, 3]].map(Ipv4Addr::from);
        let named = vec![(sources[0], 7), (sources[1], 0x102), (sources[0], 8), (sources[0], 9)];
        let bytes = message(Asks::Forward, named).emit(&numbers);
        let head = [20, 0x30, 0, 0, 10, 1, 1, 10, 0xed, 0, 0, 0, 0x12, 0x34, 0x58, 0];
        let filter = [200, 22, 2, 0, 10, 2, 0, 2, 10, 2, 0, 3, 0, 3, 0, 7, 0, 8, 0, 9, 1, 1, 1, 2];
        assert_eq!(bytes[..16], head);
        assert_eq!(bytes[16..40], filter);
        assert_eq!(bytes[40..48], [36, 251, 0, 36, 0, 0, 3, 0]);
        assert_eq!(bytes.len(), 80);
        let read = read(&bytes).unwrap();
        assert!(read.verify(&association(), &numbers));
        let other = Association { key: Key::new(b"1234567812345679"), ..association() };
        assert!(!read.verify(&other, &numbers));
        assert!(BufferControl::parse(&[18], &numbers).is_none());
    }

    #[test]
    fn malformed_messages_are_refused() {
        let numbers = Numbers::default();
        let whole = message(Asks::Forward, vec![(Ipv4Addr::new(10, 2, 0, 2), 7)]).emit(&numbers);
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            read(&bytes).unwrap_err().0
        };
        for length in 1..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(read(&[whole.clone(), vec![0]].concat()).unwrap_err().0, "mip_binding_trailing");
        assert_eq!(with(1, 0x20), "mip_control_flags", "no Identification");
        assert_eq!(with(1, 0x70), "mip_control_flags", "both B and F");
        assert_eq!(with(1, 0xb0), "mip_control_flags", "flag A");
        assert_eq!(with(3, 1), "mip_control_reserved");
        assert_eq!(with(17, 255), "mip_extension_overrun");
        assert_eq!(with(17, 9), "mip_filter_length");
        assert_eq!(with(18, 0), "mip_filter_flags", "no address");
        assert_eq!(with(19, 0x80), "mip_filter_flags", "flag C");
        assert_eq!(with(24, 1), "mip_filter_index", "another address");
        assert_eq!(with(25, 0), "mip_filter_index", "an address without identifications");
        assert_eq!(with(16, 201), "mip_unknown_extension");
        assert_eq!(
            parse_filter(&[1, 0, 9, 9, 9, 9, 0, 2, 0, 7, 0, 8, 0, 1]).unwrap_err().0,
            "mip_filter_padding"
        );
        let twice = [2, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 1, 0, 7, 1, 1, 0, 8];
        assert_eq!(parse_filter(&twice).unwrap_err().0, "mip_filter_address");
        let unsigned = BufferControl { authentication: None, ..read(&whole).unwrap() }.emit(&numbers);
        assert_eq!(read(&unsigned).unwrap_err().0, "mip_binding_unauthenticated");
    }

    #[test]
    fn the_last_packets_are_named_if_not_all_fit() {
        let named: Vec<_> = (0..200).map(|id| (Ipv4Addr::new(10, 2, 0, 2), id)).collect();
        let read = read(&message(Asks::Forward, named).emit(&Numbers::default())).unwrap();
        assert_eq!(read.named.len(), 123);
        assert_eq!(read.named.iter().map(|(_, id)| *id).max(), Some(199));
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_read(
            asks in prop_oneof![Just(Asks::Keep), Just(Asks::Forward), Just(Asks::Stop)],
            named in vec((0..4_u8, any::<u16>()), 0..40),
        ) {
            let named = named.into_iter().map(|(source, id)| (Ipv4Addr::new(10, 2, 0, source), id)).collect();
            let sent = message(asks, named);
            let read = read(&sent.emit(&Numbers::default())).unwrap();
            prop_assert!(read.verify(&association(), &Numbers::default()));
            let sorted = |message: &BufferControl| {
                let mut named = message.named.clone();
                named.sort_unstable();
                named
            };
            prop_assert_eq!(sorted(&read), sorted(&sent));
            prop_assert_eq!((read.asks, read.home, read.identification), (sent.asks, sent.home, sent.identification));
        }

        /// One byte of a message is changed. What is still a message is read in full.
        #[test]
        fn bytes_are_read_as_they_are_emitted(
            named in vec((0..4_u8, any::<u16>()), 0..20),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let named = named.into_iter().map(|(source, id)| (Ipv4Addr::new(10, 2, 0, source), id)).collect();
            let mut bytes = message(Asks::Forward, named).emit(&Numbers::default());
            let at = 1 + at.index(bytes.len() - 1);
            bytes[at] = byte;
            if let Ok(changed) = read(&bytes) {
                prop_assert_eq!(changed.emit(&Numbers::default()), bytes);
            }
        }
    }
}
