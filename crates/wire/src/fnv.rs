//! A 64-bit FNV-1a hash. It need not resist forgery: it distinguishes packets that are compared within one run, or that
//! one host sends at nearly the same time.

/// The value of a hash without bytes.
pub(crate) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds bytes to a hash.
pub(crate) fn fold(mut hash: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
