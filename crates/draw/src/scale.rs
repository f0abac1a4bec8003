//! Axis scales: ranges, and ticks at multiples of 1, 2 and 5.

/// The largest number of ticks of an axis.
const TICKS_MAX: u32 = 50;

/// Larger values are not drawn, so that sums and differences of values are finite.
pub(crate) const FAR: f64 = 1e300;

/// A finite, non-empty range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Range {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

impl Range {
    /// Returns the range of the `values` up to [`FAR`]. Without values it is from 0 to 1. Around a single value it is
    /// widened.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (lo, hi) = values
            .into_iter()
            .filter(|value| value.abs() <= FAR)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| (lo.min(value), hi.max(value)));
        if lo > hi {
            return Self { lo: 0.0, hi: 1.0 };
        }
        Self { lo, hi }.widened()
    }

    /// Returns the range of places in a stream or in a sequence of datagrams, which begin at zero: a single place zero is
    /// drawn on an axis without negative numbers.
    pub(crate) fn of_places(places: impl IntoIterator<Item = f64>) -> Self {
        let range = Self::of(places);
        if range == (Self { lo: -1.0, hi: 1.0 }) { Self { lo: 0.0, hi: 1.0 } } else { range }
    }

    /// Returns the range, extended at both ends by `share` of its length.
    pub(crate) fn padded(self, share: f64) -> Self {
        let pad = (self.hi - self.lo) * share;
        Self { lo: self.lo - pad, hi: self.hi + pad }
    }

    /// Returns the position of `value` in the range: 0 at the lower end, 1 at the upper end.
    pub(crate) fn share(self, value: f64) -> f64 {
        (value - self.lo) / (self.hi - self.lo)
    }

    pub(crate) fn contains(self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    /// Returns the range, widened if it is so narrow that ticks would not be distinct numbers.
    fn widened(self) -> Self {
        let magnitude = self.lo.abs().max(self.hi.abs());
        if self.hi - self.lo > magnitude * 1e-9 {
            return self;
        }
        let pad = if magnitude > 0.0 { magnitude * 0.1 } else { 1.0 };
        Self { lo: self.lo - pad, hi: self.hi + pad }
    }
}

/// The ticks of an axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ticks {
    pub(crate) values: Vec<f64>,
    decimals: usize,
    /// Whether the values are exponents: 3 means a thousand.
    decades: bool,
}

impl Ticks {
    /// Returns about `target` ticks within `range`.
    pub(crate) fn new(range: Range, target: u32) -> Self {
        Self::every(range, Step::for_span(range.hi - range.lo, target))
    }

    /// Returns no ticks.
    pub(crate) const fn none() -> Self {
        Self { values: Vec::new(), decimals: 0, decades: false }
    }

    /// Returns a tick for each power of ten, on an axis of exponents.
    pub(crate) fn decades(range: Range) -> Self {
        Self { decades: true, ..Self::every(range, Step { mantissa: 1.0, exponent: 0 }) }
    }

    /// Returns about `target` ticks at whole numbers, for counts.
    pub(crate) fn whole(range: Range, target: u32) -> Self {
        let step = Step::for_span(range.hi - range.lo, target);
        Self::every(range, if step.exponent < 0 { Step { mantissa: 1.0, exponent: 0 } } else { step })
    }

    fn every(range: Range, step: Step) -> Self {
        let size = step.size();
        let slack = size * 1e-6; // keeps a tick at the end in spite of rounding
        let first = ((range.lo - slack) / size).ceil();
        let values = (0..TICKS_MAX)
            .map(|index| (first + f64::from(index)) * size)
            .take_while(|value| *value <= range.hi + slack)
            .collect();
        Self { values, decimals: usize::try_from(-step.exponent).unwrap_or(0), decades: false }
    }

    /// Returns the label of a tick. Labels that are neither powers of ten nor in scientific notation have the same
    /// number of decimals on one axis.
    pub(crate) fn label(&self, value: f64) -> String {
        if self.decades {
            return decade(value.round() as i32);
        }
        if value != 0.0 && (value.abs() >= 1e12 || self.decimals > 7) {
            return format!("{value:.3e}");
        }
        let text = format!("{value:.*}", self.decimals);
        let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        if is_zero { text.trim_start_matches('-').to_owned() } else { text.replace('-', "−") }
    }
}

/// The distance of two ticks: 1, 2 or 5 times a power of ten. It is computed without logarithms, which round
/// differently on different machines.
#[derive(Clone, Copy, Debug)]
struct Step {
    mantissa: f64,
    exponent: i32,
}

impl Step {
    fn for_span(span: f64, target: u32) -> Self {
        let raw = span / f64::from(target.max(1));
        if !(raw.is_finite() && raw > 0.0) {
            return Self { mantissa: 1.0, exponent: 0 };
        }
        let mut exponent = 0;
        while power_of_ten(exponent + 1) <= raw {
            exponent += 1;
        }
        while power_of_ten(exponent) > raw && exponent > -300 {
            exponent -= 1;
        }
        // The step is the nearest of 1, 2 and 5. So the number of ticks is between half and twice the target.
        match raw / power_of_ten(exponent) {
            mantissa if mantissa < 1.5 => Self { mantissa: 1.0, exponent },
            mantissa if mantissa < 3.5 => Self { mantissa: 2.0, exponent },
            mantissa if mantissa < 7.5 => Self { mantissa: 5.0, exponent },
            _ => Self { mantissa: 1.0, exponent: exponent + 1 },
        }
    }

    fn size(self) -> f64 {
        // Dividing by an exact power is more precise than multiplying by an inexact one.
        if self.exponent < 0 {
            self.mantissa / power_of_ten(-self.exponent)
        } else {
            self.mantissa * power_of_ten(self.exponent)
        }
    }
}

/// Returns a power of ten as text: `0.01`, `1`, `100 000`.
fn decade(exponent: i32) -> String {
    if exponent < 0 {
        return format!("{:.*}", exponent.unsigned_abs() as usize, power_of_ten(exponent));
    }
    let digits = format!("1{}", "0".repeat(exponent.unsigned_abs() as usize));
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join("\u{202f}")
}

fn power_of_ten(exponent: i32) -> f64 {
    let power = (0..exponent.unsigned_abs()).fold(1.0, |power, _| power * 10.0);
    if exponent < 0 { 1.0 / power } else { power }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(lo: f64, hi: f64, target: u32) -> Vec<String> {
        let ticks = Ticks::new(Range { lo, hi }, target);
        ticks.values.iter().map(|value| ticks.label(*value)).collect()
    }

    #[test]
    fn ticks_are_multiples_of_one_two_and_five() {
        assert_eq!(labels(0.0, 10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(0.0, 1.0, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(2.85, 3.13, 6), ["2.85", "2.90", "2.95", "3.00", "3.05", "3.10"]);
        assert_eq!(labels(-150.0, 230.0, 6), ["−150", "−100", "−50", "0", "50", "100", "150", "200"]);
        assert_eq!(labels(0.0, 4300.0, 4), ["0", "1000", "2000", "3000", "4000"]);
    }

    #[test]
    fn a_tick_at_the_very_end_is_kept() {
        assert_eq!(labels(0.1, 0.3, 2), ["0.1", "0.2", "0.3"]);
        assert_eq!(labels(-0.3, 0.0, 3), ["−0.3", "−0.2", "−0.1", "0.0"]);
    }

    #[test]
    fn decades_are_written_out() {
        let ticks = Ticks::decades(Range { lo: -2.1, hi: 6.2 });
        let labels: Vec<String> = ticks.values.iter().map(|value| ticks.label(*value)).collect();
        let thin = |text: &str| text.replace(' ', "\u{202f}");
        assert_eq!(labels[..3], ["0.01", "0.1", "1"]);
        assert_eq!(labels[5..], ["1 000", "10 000", "100 000", "1 000 000"].map(thin));
    }

    #[test]
    fn counted_things_have_no_halves() {
        assert_eq!(Ticks::whole(Range { lo: 0.0, hi: 3.0 }, 6).values, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(Ticks::whole(Range { lo: 0.0, hi: 300.0 }, 3).values, [0.0, 100.0, 200.0, 300.0]);
    }

    #[test]
    fn odd_ranges_end_in_few_finite_ticks() {
        let huge = Range { lo: -FAR, hi: FAR }.padded(0.1);
        let odd =
            [Range::of([]), Range::of([f64::NAN]), Range::of([5.0]), Range::of([1e9, 1e9 + 1e-6]), huge];
        for range in odd.into_iter().chain([Range { lo: 0.0, hi: f64::MIN_POSITIVE }]) {
            let ticks = Ticks::new(range, 6);
            assert!(
                ticks.values.len() <= 50 && ticks.values.iter().all(|value| value.is_finite()),
                "{range:?}"
            );
        }
        assert_eq!(Range::of([5.0]), Range { lo: 4.5, hi: 5.5 });
        assert_eq!(Range::of_places([0.0]), Range { lo: 0.0, hi: 1.0 });
        assert_eq!(Range::of_places([5.0]), Range { lo: 4.5, hi: 5.5 });
    }
}
