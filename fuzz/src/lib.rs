//! What the targets share.

use wire::Checksum;

/// Puts two bytes at `at`, if there is room.
pub fn patch(bytes: &mut [u8], at: usize, field: [u8; 2]) {
    if let Some(to) = bytes.get_mut(at..at + 2) {
        to.copy_from_slice(&field);
    }
}

/// Makes the Internet checksum at `at` fit the rest of `bytes`.
pub fn set_checksum(bytes: &mut [u8], at: usize) {
    set_checksum_over(bytes, at, Checksum::default());
}

/// The same when the checksum covers more than `bytes`; `before` has summed that up.
pub fn set_checksum_over(bytes: &mut [u8], at: usize, before: Checksum) {
    patch(bytes, at, [0, 0]);
    let sum = before.add(bytes).finish();
    patch(bytes, at, sum.to_be_bytes());
}
