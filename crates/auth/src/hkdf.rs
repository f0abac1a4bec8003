//! Derivation of keys.

use crate::Key;
use hkdf::Hkdf;
use sha2::Sha256;

/// The longest output of HKDF-SHA-256 in bytes: 255 blocks (RFC 5869, section 2.3).
const LONGEST: usize = 255 * 32;

/// Returns `N` bytes that HKDF-SHA-256 derives from a key (RFC 5869). `info` is the concatenation of its parts. Outputs for
/// different `salt` or `info` are independent of each other. `N` is at most 8160.
pub fn hkdf_sha256<const N: usize>(key: &Key, salt: &[u8], info: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= LONGEST, "HKDF-SHA-256 has at most 8160 bytes") };
    let mut out = [0; N];
    #[expect(
        clippy::expect_used,
        reason = "the only error is a longer output, and its length is checked above"
    )]
    Hkdf::<Sha256>::new(Some(salt), key.as_bytes())
        .expand_multi_info(info, &mut out)
        .expect("a valid length");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.parse::<Key>().unwrap().as_bytes().to_vec()
    }

    /// RFC 5869, appendix A.1: the basic test case.
    #[test]
    fn a_short_output_is_that_of_the_rfc() {
        let (key, salt) = (Key::new([0x0b; 22]), hex("000102030405060708090a0b0c"));
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
        let made: [u8; 42] = hkdf_sha256(&key, &salt, &[&hex("f0f1f2f3f4f5f6f7f8f9")]);
        assert_eq!(made.to_vec(), hex(expected));
        let parts: [&[u8]; 3] = [&hex("f0f1"), b"", &hex("f2f3f4f5f6f7f8f9")];
        assert_eq!(hkdf_sha256::<42>(&key, &salt, &parts), made, "the parts of `info` are concatenated");
    }

    /// RFC 5869, appendix A.2: longer inputs and an output of several blocks.
    #[test]
    fn a_long_output_is_that_of_the_rfc() {
        let all = |from: u8, to: u8| (from..=to).collect::<Vec<u8>>();
        let made: [u8; 82] = hkdf_sha256(&Key::new(all(0x00, 0x4f)), &all(0x60, 0xaf), &[&all(0xb0, 0xff)]);
        let expected = "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c6\
                        5e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87";
        assert_eq!(made.to_vec(), hex(expected));
    }

    /// RFC 5869, appendix A.3: without salt and info.
    #[test]
    fn an_output_without_salt_and_info_is_that_of_the_rfc() {
        let made: [u8; 42] = hkdf_sha256(&Key::new([0x0b; 22]), &[], &[]);
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
        assert_eq!(made.to_vec(), hex(expected));
    }
}
