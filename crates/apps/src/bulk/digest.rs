//! The SHA-256 of the bytes of a stream, which shows at both ends that they are the same.

use node::Mark;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The SHA-256 of the bytes of one stream so far; nothing if it was not requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamDigest(Option<Sha256>);

impl StreamDigest {
    /// Returns the digest of an empty stream. If `is_requested` is false, nothing is computed.
    pub(crate) fn new(is_requested: bool) -> Self {
        Self(is_requested.then(Sha256::new))
    }

    /// Adds the next bytes of the stream.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.0 {
            digest.update(bytes);
        }
    }

    /// Adds the field `sha256` to a mark, if the digest was requested: 64 hexadecimal digits.
    pub(crate) fn on(&self, mark: Mark) -> Mark {
        let Some(digest) = &self.0 else { return mark };
        let mut text = String::with_capacity(64);
        for byte in digest.clone().finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        mark.with("sha256", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::Value;

    /// The digest of `abc` is that of FIPS 180-4.
    #[test]
    fn the_digest_is_that_of_all_bytes_however_they_are_cut() {
        let mut digest = StreamDigest::new(true);
        digest.add(b"a");
        digest.add(b"bc");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.on(Mark::new("x", "done")).fields, [("sha256", Value::from(expected))]);
        let mut none = StreamDigest::new(false);
        none.add(b"abc");
        assert_eq!(none.on(Mark::new("x", "done")).fields, []);
    }
}
