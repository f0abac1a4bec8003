//! Finds stalls that the machine caused: an idle thread or another process was stalled at the same time. All processes
//! of a lab use the same clock.

use daemon::Stall;
use trace::doubt::STALL_BOUND;

/// Largest part of a shared stall, in microseconds, that only one process sees. Two processes look at the clock up to 5
/// ms apart, and after the stall one of them runs first. If more than this part of a stall is not shared, the stall has
/// another cause.
const EXCESS_US: u64 = STALL_BOUND.as_micros() as u64 + 5000;

/// Returns the common time of two stalls, in microseconds.
const fn overlap(a: Stall, b: Stall) -> u64 {
    let (from_a, from_b) = (a.until_us.saturating_sub(a.us), b.until_us.saturating_sub(b.us));
    let from = if from_a > from_b { from_a } else { from_b };
    let until = if a.until_us < b.until_us { a.until_us } else { b.until_us };
    until.saturating_sub(from)
}

/// Returns how long another process was stalled during `stall`, in microseconds.
pub(super) fn meanwhile(stall: Stall, other: &[Stall]) -> u64 {
    other.iter().map(|other| overlap(*other, stall)).sum()
}

/// Returns whether another process was also stalled: for at least half of `stall`, and for all but [`EXCESS_US`] of it.
pub(super) fn is_shared(stall: Stall, other: &[Stall]) -> bool {
    let shared = meanwhile(stall, other);
    shared * 2 >= stall.us && stall.us - shared <= EXCESS_US
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(from_ms: u64, until_ms: u64) -> Stall {
        Stall { us: (until_ms - from_ms) * 1000, until_us: until_ms * 1000 }
    }

    #[test]
    fn a_stall_is_shared_if_the_other_had_it_too() {
        let idle = [stall(300, 320), stall(504, 538)];
        assert!(is_shared(stall(500, 540), &idle) && is_shared(stall(301, 312), &idle));
        assert!(!is_shared(stall(100, 112), &idle), "at another time");
        assert!(!is_shared(stall(400, 540), &idle), "frozen before the machine was");
        assert!(!is_shared(stall(490, 510), &idle), "the smaller part of it");
        assert!(!is_shared(stall(500, 540), &[]));
    }

    #[test]
    fn what_another_had_meanwhile_is_summed() {
        assert_eq!(meanwhile(stall(0, 400), &[stall(300, 320), stall(390, 410)]), 30_000);
        assert_eq!(meanwhile(stall(0, 50), &[stall(300, 320)]), 0);
    }
}
