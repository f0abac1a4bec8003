//! The location of a mobile node, in the form that the location manager stores.

use crate::message::{Name, ResourceRecord, class, kind};
use wire::{Ipv4Addr, Malformed, Reader, WallTime};

/// The maximum number of addresses, and of texts, of one mobile node.
pub(crate) const ADDRESSES: usize = 8;
pub(crate) const TEXTS: usize = 2;
/// The maximum length of the data of one TXT record, in bytes.
const LONGEST_TEXT: usize = 255;
/// The maximum number of updates of one mobile node with the same signing time whose MACs are remembered.
pub(crate) const CODES: usize = 16;

/// The addresses and texts of a mobile node, and the signing time and MACs of its last updates. Signing time and MACs
/// are kept when the addresses lapse, so that an old update cannot be replayed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Location {
    /// The addresses in the order in which they were added: the primary address is the first.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// The data of the TXT records.
    pub(crate) texts: Vec<Vec<u8>>,
    /// When addresses and texts lapse, by the wall clock.
    pub(crate) ends: WallTime,
    /// When the last accepted update was signed, in seconds since 1970; 0 before the first. After a damaged record, it
    /// is the time of the start.
    pub(crate) signed: u64,
    /// The MACs of the accepted updates with the time in `signed`.
    pub(crate) codes: Vec<[u8; 32]>,
}

const FORMAT: u8 = 1;

impl Location {
    /// Returns whether the mobile node has no addresses and no texts.
    pub(crate) const fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.texts.is_empty()
    }

    /// Returns the data of all records of the type `of`, one of [`kind`]; empty for types other than A and TXT.
    pub(crate) fn data(&self, of: u16) -> Vec<Vec<u8>> {
        match of {
            kind::A => self.addresses.iter().map(|address| address.octets().to_vec()).collect(),
            kind::TXT => self.texts.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the records of the type `of`, one of [`kind`], with this name and this time to live in seconds.
    pub(crate) fn records(&self, name: &Name, of: u16, ttl: u32) -> Vec<ResourceRecord> {
        let record = |data| ResourceRecord { name: name.clone(), kind: of, class: class::IN, ttl, data };
        self.data(of).into_iter().map(record).collect()
    }

    /// Returns whether the list of MACs is full for updates with the signing time `signed`. Then a replay of one more
    /// such update could not be recognized.
    pub(crate) const fn is_full_at(&self, signed: u64) -> bool {
        self.signed == signed && self.codes.len() >= CODES
    }

    /// Records the signing time and the MAC (`code`) of an accepted update. Removes the MACs of updates with another
    /// signing time. The list of MACs must not be full.
    pub(crate) fn accepted(&mut self, signed: u64, code: &[u8]) {
        if self.signed != signed {
            self.codes.clear();
        }
        self.signed = signed;
        self.codes.extend(<[u8; 32]>::try_from(code));
    }

    /// Returns the bytes to store.
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.ends.0.to_be_bytes());
        bytes.extend(self.signed.to_be_bytes());
        bytes.push(self.addresses.len() as u8);
        self.addresses.iter().for_each(|address| bytes.extend(address.octets()));
        bytes.push(self.texts.len() as u8);
        for text in &self.texts {
            bytes.push(text.len() as u8);
            bytes.extend(text);
        }
        bytes.push(self.codes.len() as u8);
        self.codes.iter().for_each(|code| bytes.extend(code));
        bytes
    }

    /// Parses stored bytes. Fails if they are of another format, too short or too long.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(bytes, Malformed("place_truncated"));
        if r.u8()? != FORMAT {
            return Err(Malformed("place_format"));
        }
        let (ends, signed) = (WallTime(r.u64()?.cast_signed()), r.u64()?);
        let addresses = (0..r.u8()?).map(|_| r.array::<4>().map(Ipv4Addr::from)).collect::<Result<_, _>>()?;
        let mut texts = Vec::new();
        for _ in 0..r.u8()? {
            let length = usize::from(r.u8()?);
            texts.push(r.take(length)?.to_vec());
        }
        let codes = (0..r.u8()?).map(|_| r.array::<32>()).collect::<Result<_, _>>()?;
        if r.is_empty() {
            Ok(Self { addresses, texts, ends, signed, codes })
        } else {
            Err(Malformed("place_trailing_bytes"))
        }
    }
}

/// Returns whether `data` are valid for a TXT record: at least one string, each after a byte with its length, and
/// together at most 255 bytes.
pub(crate) fn is_text(data: &[u8]) -> bool {
    let mut rest = data;
    while let Some((length, tail)) = rest.split_first() {
        let Some(behind) = tail.get(usize::from(*length)..) else { return false };
        rest = behind;
    }
    !data.is_empty() && data.len() <= LONGEST_TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back_and_what_is_damaged_is_refused() {
        let location = Location {
            addresses: vec![Ipv4Addr::new(10, 1, 6, 100), Ipv4Addr::new(10, 1, 8, 100)],
            texts: vec![b"\x05seq=7".to_vec()],
            ends: WallTime(5),
            signed: 9,
            codes: vec![[7; 32]],
        };
        let bytes = location.emit();
        assert_eq!(Location::parse(&bytes), Ok(location));
        for len in 0..bytes.len() {
            assert!(Location::parse(&bytes[..len]).is_err(), "{len}");
        }
        assert!(Location::parse(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn codes_are_those_of_the_latest_second() {
        let mut location = Location::default();
        for code in 0..CODES {
            assert!(!location.is_full_at(100), "{code}");
            location.accepted(100, &[code as u8; 32]);
        }
        assert!(location.is_full_at(100) && !location.is_full_at(101));
        assert_eq!((location.codes.len(), location.codes[15]), (CODES, [15; 32]));
        location.accepted(101, &[1; 32]);
        assert_eq!(location.codes, [[1; 32]]);
        assert!(!location.is_full_at(101));
    }

    #[test]
    fn a_text_is_strings_behind_their_lengths() {
        assert!(is_text(b"\x03abc") && is_text(b"\x01a\x01b") && is_text(b"\0"));
        assert!(!is_text(b"") && !is_text(b"\x04abc") && !is_text(&[0; 256]));
    }
}
