//! The middle of a few values, and how sure one can be of it.

/// The median of a few values, and the two of them that enclose that of all with 95 %.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Median {
    /// The middle one, or the mean of the two in the middle.
    pub value: f64,
    /// The interval; none of fewer than six values.
    pub interval: Option<(f64, f64)>,
}

impl Median {
    /// Of these values, if there are any. Infinite ones are larger than all others.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied();
        let half = values.len() / 2;
        let value = match values.len() % 2 {
            0 => {
                let (low, high) = (at(half.checked_sub(1)?)?, at(half)?);
                if low.total_cmp(&high).is_eq() { low } else { f64::midpoint(low, high) }
            }
            _ => at(half)?,
        };
        let interval =
            outermost(values.len()).and_then(|rank| Some((at(rank)?, at(values.len() - 1 - rank)?)));
        Some(Self { value, interval })
    }

    /// For people: the median, and its interval where it has any width.
    pub(crate) fn text(&self, digits: usize) -> String {
        let text = |value: f64| match value {
            value if value.is_infinite() => "never".to_owned(),
            // Four digits are enough of anything.
            value if value >= 100.0 => format!("{value:.0}"),
            value => format!("{value:.digits$}"),
        };
        match self.interval.map(|(lo, hi)| (text(lo), text(hi))) {
            Some((lo, hi)) if lo != hi => format!("{} ({lo}..{hi})", text(self.value)),
            _ => text(self.value),
        }
    }
}

/// How many values may be left out at either end so that the rest still encloses the median with 95 %: each value lies
/// below it with the chance of a coin (the sign test's interval).
fn outermost(n: usize) -> Option<usize> {
    let mut chance = 0.5f64.powi(i32::try_from(n).ok()?);
    let (mut below, mut rank) = (chance, None);
    for left_out in 0..n / 2 {
        if below > 0.025 {
            break;
        }
        rank = Some(left_out);
        chance *= (n - left_out) as f64 / (left_out + 1) as f64;
        below += chance;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_leaves_out_as_many_as_the_sign_test_allows() {
        // From tables of the sign test at 5 %, two-sided: with n values, the interval is from the (r+1)th smallest.
        let known = [
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (10, Some(1)),
            (20, Some(5)),
            (50, Some(17)),
        ];
        for (n, rank) in known {
            assert_eq!(outermost(n), rank, "{n}");
        }
    }

    #[test]
    fn an_interval_without_width_is_not_written() {
        let text = |values: &[f64]| Median::of(values).unwrap().text(1);
        assert_eq!(text(&[1.0, 2.0, 3.0, 4.0, 5.0, 200.4]), "3.5 (1.0..200)");
        assert_eq!([text(&[2.0; 6]), text(&[f64::INFINITY; 3])], ["2.0", "never"]);
    }

    #[test]
    fn a_median_has_its_interval_and_infinity_is_a_value() {
        let six = Median::of(&[4.0, 1.0, 3.0, 2.0, 6.0, 5.0]).unwrap();
        assert_eq!(six, Median { value: 3.5, interval: Some((1.0, 6.0)) });
        assert_eq!(Median::of(&[2.0, 1.0, 9.0]).unwrap(), Median { value: 2.0, interval: None });
        assert!(Median::of(&[f64::INFINITY; 6]).unwrap().value.is_infinite());
        assert_eq!(Median::of(&[]), None);
    }
}
