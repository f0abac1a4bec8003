//! The fingerprint of a run: two runs with the same one did the same things in the same order.

use std::hash::{Hash, Hasher};

/// A 64-bit hash of events, packet bytes and effects, in order.
///
/// Every step is a bijection of the state for a given word, and of the word for a given state. So a single changed
/// byte always changes the result, and an exchange of two events almost always. Words are folded with a fixed byte
/// order and width, so the result is the same on every machine.
#[derive(Clone, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0x9ae1_6a3b_2f90_404f)
    }
}

impl Fingerprint {
    /// Adds any plain data.
    pub fn add(&mut self, what: &impl Hash) {
        what.hash(self);
    }

    /// Returns the current value.
    pub fn value(&self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 32)
    }
}

/// The least length, in bytes, of a block that is folded in lanes. Shorter blocks are folded word by word, which keeps
/// earlier fingerprints valid.
const LONG: usize = 256;

const fn folded(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25)
}

impl Fingerprint {
    /// Folds a long block in eight independent lanes, which the CPU computes in parallel. Each lane is a bijection,
    /// and so is the folding of the lanes.
    fn write_long(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<64>();
        let mut lanes = [0u64, 1, 2, 3, 4, 5, 6, 7];
        for block in blocks {
            let (words, _) = block.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = folded(*lane, u64::from_le_bytes(*word));
            }
        }
        for lane in lanes {
            self.write_u64(lane);
        }
        self.write(rest);
    }
}

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.value()
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() >= LONG {
            return self.write_long(bytes);
        }
        let (words, tail) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(last ^ (tail.len() as u64) << 56);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = folded(self.0, word);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(what: &impl Hash) -> u64 {
        let mut fingerprint = Fingerprint::default();
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

    /// Recorded once: every machine, build and compiler must give the same.
    #[test]
    fn the_number_is_the_same_everywhere() {
        assert_eq!(of(&(7u16, "handoff", Some(-1i64), vec![1u8, 2, 3])), FIXED);
    }

    const FIXED: u64 = 5_425_495_087_614_997_355;
}
