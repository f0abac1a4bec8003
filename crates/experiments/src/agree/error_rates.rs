//! How often the rule of agreement is wrong: it finds a difference between two samples of one distribution, or finds
//! none between samples of two distributions.

use super::{Agreement, COMPARED, Compared};
use crate::reproduce::stratified;
use wire::{Duration, Rng};

/// The number of trials. Each trial compares two random samples.
const TRIALS: usize = 1000;
/// The period of the phases.
const PERIOD: Duration = Duration::from_secs(1);
/// The largest random addition to the phases and to the outages of the second sample, in milliseconds. In a valid run
/// on Linux, at least 99 % of the frames are at most 2 ms late.
const LATE_MS: f64 = 2.0;

/// Returns the outage in milliseconds at a phase from 0 to below 1.
type Outage = fn(f64) -> f64;

/// Two distributions whose samples are compared.
pub(super) struct Pair {
    /// The seed of the pair's random numbers. It does not change if `text` changes.
    seed: &'static str,
    /// The description of this pair in the table of docs/agreement.md.
    pub(super) text: &'static str,
    first: Outage,
    second: Outage,
    /// Whether both samples have the same stratified phases, as in `wayfare agree`. If not, each sample has separate
    /// random phases.
    is_at_same_phases: bool,
}

/// Pairs of equal distributions: any difference is random.
pub(super) const SAME: [Pair; 4] = [
    Pair {
        seed: "one mode, at the same phases",
        text: "all outages are near one value; both samples have the same phases",
        first: one_mode,
        second: one_mode,
        is_at_same_phases: true,
    },
    Pair {
        seed: "two modes, at the same phases",
        text: "all outages are near two values; both samples have the same phases",
        first: two_modes,
        second: two_modes,
        is_at_same_phases: true,
    },
    Pair {
        seed: "one mode, each at random phases",
        text: "all outages are near one value; each sample has separate random phases",
        first: one_mode,
        second: one_mode,
        is_at_same_phases: false,
    },
    Pair {
        seed: "two modes, each at random phases",
        text: "all outages are near two values; each sample has separate random phases",
        first: two_modes,
        second: two_modes,
        is_at_same_phases: false,
    },
];

/// Pairs of different distributions.
pub(super) const DIFFERENT: [Pair; 4] = [
    Pair {
        seed: "40 ms longer on Linux",
        text: "each outage is 40 ms longer on Linux",
        first: one_mode,
        second: longer,
        is_at_same_phases: true,
    },
    Pair {
        seed: "the slow half takes twice as long on Linux",
        text: "half of the outages are long, and these are twice as long on Linux",
        first: two_modes,
        second: slower,
        is_at_same_phases: true,
    },
    Pair {
        seed: "half of the runs are slow in the simulator, and 90 % on Linux",
        text: "50 % of the outages are long in the simulator, and 90 % on Linux",
        first: two_modes,
        second: mostly_slow,
        is_at_same_phases: true,
    },
    Pair {
        seed: "the same mean, one mode instead of two",
        text: "outages are near two values in the simulator, and near the mean of these values on Linux",
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

/// Outages with two modes. A download has such outages if it needs a retransmission time-out at half of the phases.
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

/// Outages with a single mode and the mean of [`two_modes`]: 460 ms, between its modes at 70 and 850 ms.
fn the_mean(phase: f64) -> f64 {
    40.0f64.mul_add(phase, 440.0)
}

/// Returns the percentage of trials in which the rule finds that two samples of `n` values each differ.
pub(super) fn differs(pair: &Pair, n: usize) -> f64 {
    let mut rng = Rng::new(1).fork("chance").fork(pair.seed);
    let [outage, ..] = &COMPARED;
    let found = (0..TRIALS).filter(|trial| is_found(outage, pair, n, *trial, &mut rng)).count();
    found as f64 * 100.0 / TRIALS as f64
}

fn is_found(outage: &Compared, pair: &Pair, n: usize, trial: usize, rng: &mut Rng) -> bool {
    let period_ms = PERIOD.as_secs_f64() * 1e3;
    let phases: Vec<f64> =
        stratified(&format!("{trial}"), n, PERIOD)
            .into_iter()
            .map(|phase| {
                if pair.is_at_same_phases { phase.as_secs_f64() / PERIOD.as_secs_f64() } else { uniform(rng) }
            })
            .collect();
    let first: Vec<f64> = phases.iter().map(|phase| (pair.first)(*phase)).collect();
    let second = phases.iter().map(|phase| {
        let phase = if pair.is_at_same_phases { *phase } else { uniform(rng) };
        let late = LATE_MS * uniform(rng);
        (pair.second)((phase + late / period_ms) % 1.0) + LATE_MS * uniform(rng)
    });
    let second: Vec<f64> = second.collect();
    outage.judge(&first, &second) == Agreement::Differs
}

/// Returns a random number from 0 to below 1.
fn uniform(rng: &mut Rng) -> f64 {
    (rng.draw() >> 11) as f64 / (1u64 << 53) as f64
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
