//! A download over a byte stream: the server sends a known pattern, and the client checks every byte of it.

mod client;
mod digest;
mod server;

use node::Transport;
use schemars::JsonSchema;
use serde::Deserialize;

pub use client::{BulkClient, BulkClientConfig};
pub use server::{BulkServer, BulkServerConfig};

/// The transport of a workload's stream. A configuration names it `tcp`, `sctp` or `indirect`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// TCP of the host's own stack.
    #[default]
    Tcp,
    /// SCTP, by a SIGMA role of the same host.
    Sctp,
    /// Indirect TCP, by a role of the same host.
    Indirect,
}

impl From<Carrier> for Transport {
    fn from(carrier: Carrier) -> Self {
        match carrier {
            Carrier::Tcp => Self::Tcp,
            Carrier::Sctp => Self::Role("sctp"),
            Carrier::Indirect => Self::Role("indirect"),
        }
    }
}

/// Returns `len` bytes of the pattern from `offset` on. All aligned words of eight bytes are different, so that lost,
/// duplicated or moved data are detected.
pub(crate) fn pattern(offset: u64, len: usize) -> Vec<u8> {
    let skip = (offset % 8) as usize;
    let mut next = word(offset / 8);
    let words = (0..(skip + len).div_ceil(8)).map(|_| {
        let word = next;
        next = next.wrapping_add(STEP);
        word.to_le_bytes()
    });
    let mut bytes = words.collect::<Vec<_>>().into_flattened();
    bytes.truncate(skip + len);
    bytes.drain(..skip);
    bytes
}

/// Returns the number of leading `bytes` that equal the pattern from `offset` on.
pub(crate) fn intact(offset: u64, bytes: &[u8]) -> usize {
    let (head, rest) = bytes.split_at(partial(offset).min(bytes.len()));
    let (words, tail) = rest.as_chunks::<8>();
    let mut expected = word(offset.div_ceil(8));
    let mut differ = 0;
    for place in words {
        differ |= u64::from_le_bytes(*place) ^ expected;
        expected = expected.wrapping_add(STEP);
    }
    let good = |at: u64, bytes: &[u8]| {
        bytes.iter().zip(at..).take_while(|(byte, at)| **byte == byte_at(*at)).count()
    };
    let tail_at = offset + (bytes.len() - tail.len()) as u64;
    let all = differ == 0 && good(offset, head) == head.len() && good(tail_at, tail) == tail.len();
    if all { bytes.len() } else { good(offset, bytes) }
}

/// Returns the byte of the pattern at `offset`.
fn byte_at(offset: u64) -> u8 {
    (word(offset / 8) >> (offset % 8 * 8)) as u8
}

/// Returns the number of bytes from `offset` to the start of the next word; 0 if a word begins at `offset`.
const fn partial(offset: u64) -> usize {
    (offset.wrapping_neg() % 8) as usize
}

/// Returns the word `number` of the pattern: a multiple of an odd constant, so that no two words are equal. The
/// constant is 2^64 divided by the golden ratio, so that adjacent words differ in many bits.
const fn word(number: u64) -> u64 {
    number.wrapping_mul(STEP)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_however_it_is_cut() {
        let whole = pattern(0, 100);
        for (from, to) in [(0, 100), (3, 5), (7, 9), (8, 16), (99, 100), (13, 77)] {
            assert_eq!(pattern(from as u64, to - from), whole[from..to], "{from}..{to}");
        }
    }

    #[test]
    fn one_wrong_byte_is_found_where_it_is() {
        let mut bytes = pattern(1000, 64);
        assert_eq!(intact(1000, &bytes), 64);
        assert!(intact(1008, &bytes) < 8, "shifted by a word");
        bytes[37] ^= 1;
        assert_eq!(intact(1000, &bytes), 37);
    }

    #[test]
    fn no_place_is_left_unchecked() {
        let mut bytes = pattern(1003, 75);
        assert_eq!(intact(1003, &bytes), 75);
        for wrong in 0..bytes.len() {
            bytes[wrong] ^= 0x80;
            assert_eq!(intact(1003, &bytes), wrong);
            bytes[wrong] ^= 0x80;
        }
    }
}
