//! The Internet checksum (RFC 1071).

/// The one's complement of the one's complement sum of `bytes`. Zero over a block that carries its own checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    Checksum::default().add(bytes).finish()
}

/// A checksum over several blocks; all but the last must have an even length.
#[derive(Clone, Copy, Default, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds a block.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "adding a block is not `+`")]
    pub fn add(self, bytes: &[u8]) -> Self {
        let mut sum = self.0;
        // Eight bytes at a time would overflow; four give the same sum modulo 2^16 - 1 (RFC 1071, section 2, B).
        let (words, tail) = bytes.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_be_bytes(*word));
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(tail) {
            *to = *from;
        }
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// The checksum as it stands in a header.
    pub const fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_rfc_example() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn odd_lengths_are_padded_with_zero_behind() {
        assert_eq!(checksum(&[1, 2, 3]), checksum(&[1, 2, 3, 0]));
        assert_eq!(checksum(&[1, 2, 3, 4, 5]), checksum(&[1, 2, 3, 4, 5, 0]));
    }

    #[test]
    fn blocks_add_up() {
        let bytes: [u8; 12] = core::array::from_fn(|i| (i * 37) as u8);
        assert_eq!(Checksum::default().add(&bytes[..6]).add(&bytes[6..]).finish(), checksum(&bytes));
    }
}
