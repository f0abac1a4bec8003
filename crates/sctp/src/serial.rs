//! Numbers that wrap on the wire, and do not here.

/// A transmission sequence number, with the times that it wrapped: so numbers have an order.
pub(crate) type Tsn = u64;

/// The first number of an association. It is far from zero, so that the one before it exists.
pub(crate) const fn begin(low: u32) -> Tsn {
    (1 << 32) | low as u64
}

/// The number that ends in `low` and is nearest to `near` (RFC 9260, section 1.6).
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
