//! The fingerprint of a run: runs with the same fingerprint did the same things in the same order.

use std::fmt;
use std::str::FromStr;

/// Plain data that can be added to a fingerprint, as 64-bit words. Unequal values of a type add different words.
/// Exceptions are documented at the implementation or in its module.
pub trait Fold {
    /// Adds the 64-bit words of this value.
    fn fold(&self, into: &mut Fingerprinter);

    /// Adds the 64-bit words of several values, but no word for the number of values.
    fn fold_all(all: &[Self], into: &mut Fingerprinter)
    where
        Self: Sized,
    {
        for one in all {
            one.fold(into);
        }
    }
}

/// The fingerprint of a simulated run. Fingerprints of different versions cannot be compared.
///
/// Its text is, for example, `v2:5f0c3a9d7e21b846`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fingerprint {
    /// The version of the hash function, and of the 64-bit words that each type adds.
    pub version: u32,
    /// The hash, 64 bits.
    pub value: u64,
}

impl Fingerprint {
    /// The version of the fingerprints that this program computes. A change of a [`Fold`] or of the [`Fingerprinter`]
    /// needs a new version. A change of what a run does needs none.
    pub const VERSION: u32 = 2;
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}:{:016x}", self.version, self.value)
    }
}

/// The error for a text that is not a fingerprint. The text must be 16 hexadecimal digits, optionally after a version:
/// `v`, a number of at most 32 bits and a colon, for example `v2:`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseFingerprintError;

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    /// Reads the text of a fingerprint. Text without a version, only 16 hexadecimal digits, is a fingerprint of version
    /// 1.
    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let (version, digits) = match text.strip_prefix('v').and_then(|rest| rest.split_once(':')) {
            Some((version, digits)) => (version.parse().map_err(|_| ParseFingerprintError)?, digits),
            None => (1, text),
        };
        if digits.len() != 16 || digits.starts_with('+') {
            return Err(ParseFingerprintError);
        }
        let value = u64::from_str_radix(digits, 16).map_err(|_| ParseFingerprintError)?;
        Ok(Self { version, value })
    }
}

/// Computes a fingerprint: a 64-bit hash of the events, effects and packet bytes of a run, in order.
///
/// Data are added as words of 64 bits. Two different words change the same state into different states. The same word
/// changes two different states into different states. So a single changed byte always changes the hash. The exchange
/// of two events almost always changes it. The byte order and width of words are fixed, so each machine computes the
/// same hash.
#[derive(Clone, Debug)]
pub struct Fingerprinter(u64);

impl Default for Fingerprinter {
    fn default() -> Self {
        Self(folded(0x9ae1_6a3b_2f90_404f, u64::from(Fingerprint::VERSION)))
    }
}

/// The smallest length, in bytes, of a block that `long` adds to the fingerprint.
const LONG: usize = 256;

const fn folded(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25)
}

impl Fingerprinter {
    /// Adds the 64-bit words of a value.
    pub fn add(&mut self, what: &impl Fold) {
        what.fold(self);
    }

    /// Returns the hash of all words that were added.
    pub fn value(&self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 32)
    }

    /// Returns the hash of all words that were added, with its version.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint { version: Fingerprint::VERSION, value: self.value() }
    }

    /// Adds one 64-bit word.
    pub fn word(&mut self, word: u64) {
        self.0 = folded(self.0, word);
    }

    /// Adds bytes, but no word for the number of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() >= LONG {
            return self.long(bytes);
        }
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.word(last ^ (tail.len() as u64) << 56);
    }

    /// Adds a long block. Its words are distributed over eight independent hashes, which the CPU computes in parallel.
    /// Then the eight hashes are added as words.
    fn long(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut lanes = [0u64, 1, 2, 3, 4, 5, 6, 7];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = folded(*lane, u64::from_le_bytes(*word));
            }
        }
        for lane in lanes {
            self.word(lane);
        }
        self.bytes(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(what: &impl Fold) -> u64 {
        let mut fingerprint = Fingerprinter::default();
        fingerprint.add(what);
        fingerprint.value()
    }

    #[test]
    fn every_changed_bit_of_a_packet_shows() {
        for len in [131, LONG + 75] {
            let bytes: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let whole = of(&bytes);
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(of(&changed), whole, "bit {bit} of {len} bytes");
            }
        }
    }

    #[test]
    fn words_exchanged_within_and_across_lanes_show() {
        let mut bytes: Vec<u8> = (0..2 * LONG).map(|byte| (byte / 8) as u8).collect();
        let whole = of(&bytes);
        for (a, b) in [(0, 8), (0, 64), (8, 72), (440, 448)] {
            for byte in 0..8 {
                bytes.swap(a + byte, b + byte);
            }
            assert_ne!(of(&bytes), whole, "{a} and {b}");
            for byte in 0..8 {
                bytes.swap(a + byte, b + byte);
            }
        }
        assert_eq!(of(&bytes), whole);
    }

    #[test]
    fn order_and_length_show() {
        assert_ne!(of(&[1u64, 2]), of(&[2u64, 1]));
        assert_ne!(of(&vec![0u8; 7]), of(&vec![0u8; 8]));
        assert_ne!(of(&(vec![1u8], vec![2u8, 3])), of(&(vec![1u8, 2], vec![3u8])));
    }

    /// The expected number was recorded once. Each machine, build profile and compiler must compute the same number.
    #[test]
    fn the_number_is_the_same_everywhere() {
        assert_eq!(of(&(7u16, "handoff", Some(-1i64), vec![1u8, 2, 3])), FIXED);
    }

    const FIXED: u64 = 7_933_730_093_320_807_571;

    #[test]
    fn a_text_names_its_version() {
        let fingerprint = Fingerprint { version: 2, value: 0x1cda_0a70_0d3f_8c77 };
        assert_eq!(fingerprint.to_string(), "v2:1cda0a700d3f8c77");
        assert_eq!("v2:1cda0a700d3f8c77".parse(), Ok(fingerprint));
        assert_eq!("1cda0a700d3f8c77".parse(), Ok(Fingerprint { version: 1, ..fingerprint }));
        for wrong in ["", "v2:", "v:1cda0a700d3f8c77", "v2:1cda", "1cda0a700d3f8c7g", "v2:+cda0a700d3f8c77"] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(ParseFingerprintError), "{wrong}");
        }
    }
}
