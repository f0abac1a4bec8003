//! Comparison of secrets.

use subtle::ConstantTimeEq;

/// Returns whether `a` and `b` are equal. The time of the comparison depends only on their lengths.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_needs_equal_lengths() {
        assert!(equal(b"", b""));
        assert!(equal(b"same", b"same"));
        assert!(!equal(b"same", b"sama"));
        assert!(!equal(b"same", b"sam"));
    }
}
