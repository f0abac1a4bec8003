//! How often the rule of agreement is wrong: about two samples of one distribution, and about two of different ones.

use super::{Agreement, COMPARED, Compared};
use crate::reproduce::stratified;
use wire::{Duration, Seed};

/// How often it is tried.
const TRIALS: usize = 1000;
/// What phases are spread over.
const PERIOD: Duration = Duration::from_secs(1);
/// How much later than in the simulator a run on Linux may meet anything, in milliseconds: frames are up to 2 ms late.
const LATE_MS: f64 = 2.0;

/// An outage in milliseconds, by the phase: a fraction below one.
type Outage = fn(f64) -> f64;

/// Two samples that are compared.
pub(super) struct Pair {
    /// What they are, in words.
    pub(super) text: &'static str,
    first: Outage,
    second: Outage,
    /// Whether both are at the same phases, as `agree` has them; or each at phases of its own.
    is_at_same_phases: bool,
}

/// One distribution twice: what differs is chance.
pub(super) const SAME: [Pair; 4] = [
    Pair { text: "one mode, at the same phases", first: one_mode, second: one_mode, is_at_same_phases: true },
    Pair {
        text: "two modes, at the same phases",
        first: two_modes,
        second: two_modes,
        is_at_same_phases: true,
    },
    Pair {
        text: "one mode, each at random phases",
        first: one_mode,
        second: one_mode,
        is_at_same_phases: false,
    },
    Pair {
        text: "two modes, each at random phases",
        first: two_modes,
        second: two_modes,
        is_at_same_phases: false,
    },
];

/// Two distributions.
pub(super) const DIFFERENT: [Pair; 4] = [
    Pair { text: "40 ms longer on Linux", first: one_mode, second: longer, is_at_same_phases: true },
    Pair {
        text: "the half that is slow takes twice as long on Linux",
        first: two_modes,
        second: slower,
        is_at_same_phases: true,
    },
    Pair {
        text: "half of the runs are slow in the simulator, and nine of ten on Linux",
        first: two_modes,
        second: mostly_slow,
        is_at_same_phases: true,
    },
    Pair {
        text: "the same mean, one mode in the place of two",
        first: two_modes,
        second: the_mean,
        is_at_same_phases: true,
    },
];

fn one_mode(phase: f64) -> f64 {
    40.0f64.mul_add(phase, 60.0)
}

fn longer(phase: f64) -> f64 {
    one_mode(phase) + 40.0
}

/// As the outages of a download are that meets its time-out in half of the phases.
fn two_modes(phase: f64) -> f64 {
    modes(phase, 0.5, 1.0)
}

fn slower(phase: f64) -> f64 {
    modes(phase, 0.5, 2.0)
}

fn mostly_slow(phase: f64) -> f64 {
    modes(phase, 0.1, 1.0)
}

fn modes(phase: f64, fast: f64, times: f64) -> f64 {
    if phase < fast {
        40.0f64.mul_add(phase / fast, 50.0)
    } else {
        times * 900.0f64.mul_add((phase - fast) / (1.0 - fast), 400.0)
    }
}

/// What [`two_modes`] has in the mean: 70 and 850 ms.
fn the_mean(phase: f64) -> f64 {
    40.0f64.mul_add(phase, 440.0)
}

/// In how many of 100 trials two samples of `n` values each are said to differ.
pub(super) fn differs(pair: &Pair, n: usize) -> f64 {
    let mut random = Seed::new(1).fork("chance").fork(pair.text);
    let [outage, ..] = &COMPARED;
    let found = (0..TRIALS).filter(|trial| is_found(outage, pair, n, *trial, &mut random)).count();
    found as f64 * 100.0 / TRIALS as f64
}

fn is_found(outage: &Compared, pair: &Pair, n: usize, trial: usize, random: &mut Seed) -> bool {
    let period_ms = PERIOD.as_secs_f64() * 1e3;
    let phases: Vec<f64> = stratified(&format!("{trial}"), n, PERIOD)
        .into_iter()
        .map(|phase| {
            if pair.is_at_same_phases { phase.as_secs_f64() / PERIOD.as_secs_f64() } else { uniform(random) }
        })
        .collect();
    let first: Vec<f64> = phases.iter().map(|phase| (pair.first)(*phase)).collect();
    let second = phases.iter().map(|phase| {
        let phase = if pair.is_at_same_phases { *phase } else { uniform(random) };
        let late = LATE_MS * uniform(random);
        (pair.second)((phase + late / period_ms) % 1.0) + LATE_MS * uniform(random)
    });
    let second: Vec<f64> = second.collect();
    outage.judge(&first, &second) == Agreement::Differs
}

/// Below one.
fn uniform(random: &mut Seed) -> f64 {
    (random.draw() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_distribution_is_accepted_at_the_same_phases_and_two_are_found() {
        for pair in &SAME {
            let [few, many] = [12, 40].map(|n| differs(pair, n));
            if pair.is_at_same_phases {
                assert!(few <= 1.0 && many <= 1.0, "{}: {few} % and {many} %", pair.text);
            } else {
                assert!(many < few, "{}: {few} % and {many} %", pair.text);
            }
        }
        for pair in &DIFFERENT {
            for n in [12, 40] {
                assert!(differs(pair, n) >= 99.0, "{}, {n}: {} %", pair.text, differs(pair, n));
            }
        }
    }
}
