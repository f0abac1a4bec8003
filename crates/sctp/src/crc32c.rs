//! The checksum of SCTP: `CRC32c` (RFC 9260, appendix A).

/// The polynomial 0x1EDC6F41 with its bits reversed: the lowest bit of a byte comes first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the contribution of byte `b` to the sum when `k` more bytes follow it.
static TABLES: [[u32; 256]; 4] = tables();

const fn tables() -> [[u32; 256]; 4] {
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut k = 1;
    while k < 4 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        k += 1;
    }
    tables
}

/// Returns the `CRC32c` of the concatenation of `parts`.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    let [last, third, second, first] = &TABLES;
    let mut sum = u32::MAX;
    for part in parts {
        let (words, tail) = part.as_chunks::<4>();
        for word in words {
            let [a, b, c, d] = (sum ^ u32::from_le_bytes(*word)).to_le_bytes();
            sum =
                first[usize::from(a)] ^ second[usize::from(b)] ^ third[usize::from(c)] ^ last[usize::from(d)];
        }
        for byte in tail {
            let [low, ..] = sum.to_le_bytes();
            sum = (sum >> 8) ^ last[usize::from(low ^ byte)];
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sums equal the check value in the catalogue of CRC algorithms, and the examples of RFC 3720, appendix B.4.
    #[test]
    fn published_values() {
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(crc32c(&[&rising]), 0x46dd_794e);
    }

    #[test]
    fn where_the_parts_are_cut_does_not_matter() {
        let whole: Vec<u8> = (0..=255).collect();
        for cut in [0, 1, 3, 4, 7, 255] {
            let (head, tail) = whole.split_at(cut);
            assert_eq!(crc32c(&[head, tail]), crc32c(&[&whole]));
        }
    }
}
