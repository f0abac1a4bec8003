//! Sequence numbers: arithmetic modulo 2^32 (RFC 9293, section 3.4).

/// A place in the sequence space. There is no order on the whole circle, so it is not `Ord`: comparisons are right for
/// numbers less than 2^31 apart, and a window is never larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// The number `n` further on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// The number `n` further back.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// How far this is beyond `earlier`, going forward on the circle.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Whether this comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// The later of two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_end_of_the_space() {
        let (before, after) = (Seq(u32::MAX - 1), Seq(3));
        assert!(before.before(after) && after.after(before));
        assert_eq!(after.since(before), 5);
        assert_eq!(before.plus(5), after);
        assert_eq!(after.minus(5), before);
        assert_eq!(before.latest(after), after);
        assert!(!after.before(after) && !after.after(after));
    }
}
