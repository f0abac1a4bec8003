//! Transmission sequence numbers (TSNs) as 64-bit numbers. The 32-bit numbers on the wire wrap; the 64-bit numbers do
//! not.

/// A transmission sequence number, extended to 64 bits so that numbers have a total order.
pub(crate) type Tsn = u64;

/// Returns the initial TSN `low` of an association as a 64-bit number. Bit 32 is set, so that smaller TSNs exist.
pub(crate) const fn begin(low: u32) -> Tsn {
    (1 << 32) | low as u64
}

/// Returns the number nearest to `near` whose low 32 bits are `low` (RFC 9260, section 2.6).
pub(crate) const fn extend(near: Tsn, low: u32) -> Tsn {
    near.wrapping_add_signed(low.wrapping_sub(near as u32).cast_signed() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_taken_across_the_end_of_the_space() {
        let near = begin(u32::MAX);
        assert_eq!(extend(near, 0), near + 1);
        assert_eq!(extend(near + 1, u32::MAX), near);
        assert_eq!(extend(begin(0), u32::MAX), begin(0) - 1);
        assert_eq!(extend(near, near as u32), near);
    }
}
