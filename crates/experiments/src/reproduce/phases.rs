//! Stratified phases: every part of a period on which a result depends has the same number of repetitions.

use wire::{Duration, Rng};

/// Returns the phase of each of `n` repetitions. Repetition `i` has the phase `period * (i + u) / n`. The fraction `u`,
/// from 0 to below 1, depends only on `name`, so both backends have the same phases.
pub(crate) fn stratified(name: &str, n: usize, period: Duration) -> Vec<Duration> {
    // The fraction has 53 bits, so it is exact and below 1.
    let u = (Rng::new(1).fork(name).draw() >> 11) as f64 / (1u64 << 53) as f64;
    (0..n).map(|i| period.mul_f64((i as f64 + u) / n as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stratum_is_met_once_and_all_at_the_same_place() {
        let period = Duration::from_millis(40);
        for n in [1, 10, 15, 50] {
            let phases = stratified("hard 25", n, period);
            assert_eq!(phases.len(), n);
            for (i, phase) in (0..).zip(&phases) {
                let (low, high) = (period * i / n as u32, period * (i + 1) / n as u32);
                assert!((low..high).contains(phase), "{i} of {n}: {phase:?}");
                let step = phase.as_nanos().abs_diff((phases[0] + low).as_nanos());
                assert!(step <= 2, "{i} of {n}: {step} ns off");
            }
        }
    }

    #[test]
    fn phases_can_be_repeated_and_differ_by_name() {
        let phases = |name| stratified(name, 10, Duration::from_millis(20));
        assert_eq!(phases("a"), phases("a"));
        assert_ne!(phases("a"), phases("b"));
    }
}
