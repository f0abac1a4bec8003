//! The Internet checksum (RFC 1071).

use core::net::Ipv4Addr;

/// Returns the Internet checksum of `bytes`: the one's complement of the one's complement sum of their 16-bit words.
/// The result is zero if the bytes contain their own correct checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    Checksum::default().add(bytes).finish()
}

/// Returns the Internet checksum of an IPv4 header, whose length is a multiple of four bytes.
pub(crate) fn of_header(header: &[u8]) -> u16 {
    let words = header.as_chunks::<4>().0.iter();
    let sum: u64 = words.map(|word| u64::from(u32::from_le_bytes(*word))).sum();
    !fold(sum).swap_bytes()
}

/// An Internet checksum over several blocks of bytes. All blocks but the last must have an even length.
#[derive(Clone, Copy, Default, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// Returns a checksum that includes the pseudo header of TCP, UDP and other transports (RFC 9293, section 3.1).
    /// `len` is the length of the transport header and payload, in bytes.
    pub const fn of_pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: u16) -> Self {
        let (src, dst) = (src.to_bits() as u64, dst.to_bits() as u64);
        Self((src >> 16) + (src & 0xffff) + (dst >> 16) + (dst & 0xffff) + protocol as u64 + len as u64)
    }

    /// Adds the bytes of the next block.
    #[must_use]
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "adding a block is not `+`")]
    pub fn add(self, bytes: &[u8]) -> Self {
        // The sum of byte-swapped words is the byte-swapped sum (RFC 1071, section 2 (B)). So the words are added as
        // little-endian numbers of 64 bits (RFC 1071, section 2 (C)), and then the bytes of the sum are swapped.
        let (blocks, rest) = bytes.as_chunks::<64>();
        let (words, rest) = rest.as_chunks::<8>();
        let (half, tail) = rest.as_chunks::<4>();
        let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let last = half.first().map_or(last, |half| u64::from(u32::from_le_bytes(*half)) | last << 32);
        let mut sum = if blocks.is_empty() { 0 } else { sum_of(blocks) } + u128::from(last);
        for word in words {
            sum += u128::from(u64::from_le_bytes(*word));
        }
        let sum = (sum as u64 >> 32) + (sum as u64 & 0xffff_ffff) + (sum >> 64) as u64;
        Self(self.0 + u64::from(fold(sum).swap_bytes()))
    }

    /// Returns the checksum of all blocks.
    pub const fn finish(self) -> u16 {
        !fold(self.0)
    }
}

/// Adds the blocks in two independent sums, which the CPU can compute in parallel.
fn sum_of(blocks: &[[u8; 64]]) -> u128 {
    let (pairs, last) = blocks.as_chunks::<2>();
    let (mut one, mut other) = ((0, false), (0, false));
    for [a, b] in pairs {
        one = plus(one, a);
        other = plus(other, b);
    }
    for block in last {
        one = plus(one, block);
    }
    u128::from(one.0) + u128::from(one.1) + u128::from(other.0) + u128::from(other.1)
}

/// Adds the eight 64-bit words of a block. The carry of each addition is an input of the next addition, so the code
/// needs no branch for a carry.
#[inline]
fn plus((mut sum, mut carry): (u64, bool), block: &[u8; 64]) -> (u64, bool) {
    for word in block.as_chunks::<8>().0 {
        (sum, carry) = sum.carrying_add(u64::from_le_bytes(*word), carry);
    }
    (sum, carry)
}

/// Returns the one's complement sum of the 16-bit words of `sum`.
const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the example bytes in RFC 1071, section 3, is ddf2 (hexadecimal).
    #[test]
    fn the_rfc_example() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    /// Adds one 16-bit word after the other, as in RFC 1071.
    fn plainly(bytes: &[u8]) -> u16 {
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        let mut sum: u32 = bytes.chunks(2).map(word).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn lanes_add_up_to_the_same() {
        let bytes: [u8; 257] = core::array::from_fn(|i| (i * i * 31 + 7) as u8);
        for end in 0..bytes.len() {
            assert_eq!(checksum(&bytes[..end]), plainly(&bytes[..end]), "{end} bytes");
        }
        assert_eq!(checksum(&[0xff; 96]), plainly(&[0xff; 96]));
    }

    #[test]
    fn a_header_is_summed_as_anything_else() {
        let bytes: [u8; 60] = core::array::from_fn(|i| (i * i * 29 + 0xf3) as u8);
        for len in (20..=60).step_by(4) {
            assert_eq!(of_header(&bytes[..len]), plainly(&bytes[..len]), "{len} bytes");
        }
        assert_eq!(of_header(&[0xff; 20]), plainly(&[0xff; 20]));
    }

    #[test]
    fn a_pseudo_header_counts_as_its_bytes_do() {
        let (src, dst) = (Ipv4Addr::new(255, 254, 253, 252), Ipv4Addr::new(10, 1, 200, 7));
        let bytes = [255, 254, 253, 252, 10, 1, 200, 7, 0, 17, 0xfe, 0xdc];
        assert_eq!(Checksum::of_pseudo_header(src, dst, 17, 0xfedc).finish(), plainly(&bytes));
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
