//! Message authentication codes.

use crate::Key;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The block size of SHA-256 and SHA-1 (FIPS 180-4, figure 1), and of MD5 (RFC 1321), in bytes.
const BLOCK: usize = 64;

/// Returns the HMAC-SHA-256 of `parts`, concatenated (RFC 2104, RFC 4231).
pub fn hmac_sha256(key: &Key, parts: &[&[u8]]) -> [u8; 32] {
    // A key of exactly one block is always valid, so there is no error to handle.
    let mut mac = Hmac::<Sha256>::new(&one_block::<Sha256>(key.as_bytes()).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the HMAC-SHA-1 of `parts`, concatenated (RFC 2104, RFC 2202). Every SCTP endpoint with AUTH must support it
/// (RFC 4895, section 3.3), and some support nothing else.
pub fn hmac_sha1(key: &Key, parts: &[&[u8]]) -> [u8; 20] {
    let mut mac = Hmac::<Sha1>::new(&one_block::<Sha1>(key.as_bytes()).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the HMAC-MD5 of `parts`, concatenated (RFC 2104, RFC 2202), for protocols whose peers may support nothing
/// newer. The collisions of MD5 do not break HMAC, but a new protocol should not use it.
pub fn hmac_md5(key: &Key, parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new(&one_block::<Md5>(key.as_bytes()).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the keyed MD5 of `parts`, concatenated, in the mode *prefix and suffix*: the MD5 of the key, the parts and the
/// key again (RFC 2002, section 3.5.1). Mobile IP before RFC 3344 has no other algorithm. It is weaker than HMAC: use it
/// only for a peer that supports nothing else.
pub fn keyed_md5(key: &Key, parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Md5::new_with_prefix(key.as_bytes());
    for part in parts {
        digest.update(part);
    }
    digest.update(key.as_bytes());
    digest.finalize().into()
}

/// Returns the key padded with zeros to one block. A longer key is hashed first (RFC 2104, section 2).
fn one_block<D: Digest>(key: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut fill = |short: &[u8]| block.iter_mut().zip(short).for_each(|(to, from)| *to = *from);
    if key.len() > BLOCK {
        fill(&D::digest(key));
    } else {
        fill(key);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.parse::<Key>().unwrap().as_bytes().to_vec()
    }

    /// The first, second and sixth test case of RFC 2202, section 2: keys of 16, 4 and 80 bytes.
    #[test]
    fn hmac_md5_is_that_of_the_rfc() {
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 16], b"Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
            (b"Jefe", b"what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"),
            (&[0xaa; 80], long, "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"),
        ];
        for (key, data, expected) in cases {
            assert_eq!(hmac_md5(&Key::new(key), &[data]).to_vec(), hex(expected));
            let (head, tail) = data.split_at(3);
            assert_eq!(hmac_md5(&Key::new(key), &[head, tail]).to_vec(), hex(expected));
        }
    }

    /// Computed with Python's hashlib: `md5(key + data + key)`.
    #[test]
    fn keyed_md5_is_that_of_another_implementation() {
        let key = Key::new(b"1234567812345678");
        for (data, expected) in [
            (&b""[..], "8993930e271c9985b304d83239d0c70d"),
            (b"what do ya want for nothing?", "78853eec4d15ab8d220301f39c290d96"),
        ] {
            assert_eq!(keyed_md5(&key, &[data]).to_vec(), hex(expected));
            let (head, tail) = data.split_at(data.len() / 2);
            assert_eq!(keyed_md5(&key, &[head, tail]).to_vec(), hex(expected));
        }
    }

    /// All seven test cases of RFC 2202, section 3; the fifth is cut to 96 bits.
    #[test]
    fn hmac_sha1_is_that_of_the_rfc() {
        let rising: Vec<u8> = (1..=25).collect();
        let long = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let longer = b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data";
        let cases: [(&[u8], &[u8], &str); 7] = [
            (&[0x0b; 20], b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (b"Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (&[0xaa; 20], &[0xdd; 50], "125d7342b9ac11cd91a39af48aa17b4f63f175d3"),
            (&rising, &[0xcd; 50], "4c9007f4026250c6bc8414f9bf50c86c2d7235da"),
            (&[0x0c; 20], b"Test With Truncation", "4c1a03424b55e07fe7f27be1"),
            (&[0xaa; 80], long, "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
            (&[0xaa; 80], longer, "e8e99d0f45237d786d6bbaa7965c7808bbff1a91"),
        ];
        for (key, data, expected) in cases {
            let (head, tail) = data.split_at(3);
            let expected = hex(expected);
            assert_eq!(hmac_sha1(&Key::new(key), &[data])[..expected.len()], expected);
            assert_eq!(hmac_sha1(&Key::new(key), &[head, tail])[..expected.len()], expected);
        }
    }

    /// Returns the test cases of RFC 4231, section 4: key, data, code.
    fn cases() -> [(Vec<u8>, Vec<u8>, &'static str); 7] {
        let long = b"This is a test using a larger than block-size key and a larger than block-size data. \
            The key needs to be hashed before being used by the HMAC algorithm.";
        [
            (
                vec![0x0b; 20],
                b"Hi There".to_vec(),
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe".to_vec(),
                b"what do ya want for nothing?".to_vec(),
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 20],
                vec![0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                (1..=25).collect(),
                vec![0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (vec![0x0c; 20], b"Test With Truncation".to_vec(), "a3b6167473100ee06e0c796c2955552b"),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                vec![0xaa; 131],
                long.to_vec(),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ]
    }

    #[test]
    fn the_rfc_4231_cases() {
        for (number, (key, data, code)) in (1..).zip(cases()) {
            let code = hex(code);
            let made = hmac_sha256(&Key::new(key), &[&data]);
            assert_eq!(made[..code.len()], code, "case {number}");
        }
    }

    #[test]
    fn where_the_parts_are_cut_does_not_matter() {
        let key = Key::new([7; BLOCK]);
        let whole = hmac_sha256(&key, &[b"one two three"]);
        assert_eq!(hmac_sha256(&key, &[b"one ", b"", b"two three"]), whole);
        assert_ne!(hmac_sha256(&key, &[b"one two"]), whole);
    }

    #[test]
    fn a_key_of_one_block_is_not_hashed_and_one_byte_more_is() {
        let (exact, over) = (vec![3; BLOCK], vec![3; BLOCK + 1]);
        assert_eq!(one_block::<Sha256>(&exact).as_slice(), exact);
        assert_eq!(one_block::<Sha256>(&over)[..32], Sha256::digest(&over)[..]);
    }
}
