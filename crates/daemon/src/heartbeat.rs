//! Stalls: times in which a process did not run though its timer had fired.

use serde::{Deserialize, Serialize};
use trace::doubt::STALL_BOUND;
use wire::{Duration, Instant};

/// A stall: a time in which a process did not run though its timer had fired. For a store: a time from a request to
/// store a record until its commit ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The length of the stall, in microseconds.
    pub us: u64,
    /// When the stall ended, in microseconds since the start of the run; at most the end of the run.
    pub until_us: u64,
}

impl Stall {
    fn new(late: Duration, until: Instant) -> Self {
        Self { us: late.as_micros() as u64, until_us: until.since(Instant::ZERO).as_micros() as u64 }
    }
}

/// A detector of stalls, with a periodic timer. If a process notices the timer late, it did not run in between.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    next: Instant,
    end: Instant,
    worst: Stall,
    stalls: Stalls,
    /// When the last stall of more than [`STALL_BOUND`] ended.
    last_long: Option<Instant>,
}

/// The time between two beats of a [`Heartbeat`]. A stall that begins right after a beat is measured too short by up to
/// this time.
pub const BEAT: Duration = Duration::from_millis(5);

/// Only stalls longer than this are kept. If one process measures a stall of the machine of more than [`STALL_BOUND`],
/// every other process that has a heartbeat measures one longer than this.
const NOTED: Duration = Duration::from_millis(5);
const _: () = assert!(NOTED.as_millis() + BEAT.as_millis() <= STALL_BOUND.as_millis());

/// Number of stalls that are kept.
const KEPT: usize = 1000;

/// Stalls of more than [`NOTED`], in the order in which they ended. If there are more than [`KEPT`], the shortest are
/// left out. So only a longer stall can displace a stall, and many short ones cannot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stalls(Vec<Stall>);

impl Stalls {
    pub(crate) fn note(&mut self, late: Duration, until: Instant) {
        if late <= NOTED {
            return;
        }
        if self.0.len() >= KEPT {
            let shortest = self.0.iter().enumerate().min_by_key(|(_, stall)| stall.us);
            let Some((at, shortest)) = shortest.map(|(at, stall)| (at, stall.us)) else { return };
            if u128::from(shortest) >= late.as_micros() {
                return;
            }
            self.0.remove(at);
        }
        self.0.push(Stall::new(late, until));
    }

    pub(crate) fn into_vec(self) -> Vec<Stall> {
        self.0
    }
}

impl Heartbeat {
    /// Creates a heartbeat whose first beat is due 5 ms after the clock's zero ([`BEAT`]). If the process first runs
    /// later, it was stalled until then. Time after `end` does not count.
    pub fn new(end: Instant) -> Self {
        Self::since(Instant::ZERO, end)
    }

    /// Creates a heartbeat whose first beat is due 5 ms after `begin`, for a process that starts later than the run: a
    /// daemon that restarts after a crash. Time after `end` does not count.
    pub fn since(begin: Instant, end: Instant) -> Self {
        let (worst, stalls) = (Stall::default(), Stalls::default());
        Self { next: begin + BEAT, end, worst, stalls, last_long: None }
    }

    /// Returns when the next beat is due.
    pub const fn due(&self) -> Instant {
        self.next
    }

    /// Records that the process runs at `now`. If the next beat is due, the time since then is the length of a stall.
    /// The next beat is then due 5 ms after `now`. If no beat is due, nothing changes.
    pub fn beat(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        let until = now.min(self.end);
        let late = until.since(self.next);
        let stall = Stall::new(late, until);
        if stall.us > self.worst.us {
            self.worst = stall;
        }
        self.stalls.note(late, until);
        if late > STALL_BOUND {
            self.last_long = Some(until);
        }
        self.next = now + BEAT;
    }

    /// Returns the longest stall; zero if there was none.
    pub const fn worst(&self) -> Stall {
        self.worst
    }

    /// Returns the stalls of more than 5 ms, in order of time: at most the 1000 longest.
    pub fn stalls(&self) -> &[Stall] {
        &self.stalls.0
    }

    /// Returns the stalls of more than 5 ms, in order of time: at most the 1000 longest. Consumes the heartbeat.
    pub fn into_stalls(self) -> Vec<Stall> {
        self.stalls.into_vec()
    }

    /// Returns whether the last stall of more than [`STALL_BOUND`] ended at `due` or later: work that was due then may
    /// have waited for the end of this stall. Returns false if there was no such stall.
    pub fn explains(&self, due: Instant) -> bool {
        self.last_long.is_some_and(|until| due <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_that_comes_late_is_a_stall() {
        let mut heart = Heartbeat::new(Instant::from_millis(500));
        heart.beat(Instant::from_millis(3));
        heart.beat(Instant::from_millis(5));
        assert_eq!(heart.worst(), Stall::default());
        assert!(!heart.explains(Instant::from_millis(5)));
        heart.beat(Instant::from_millis(310));
        assert!(heart.explains(Instant::from_millis(5)) && !heart.explains(Instant::from_millis(311)));
        heart.beat(Instant::from_millis(340));
        let long = Stall { us: 300_000, until_us: 310_000 };
        assert_eq!(heart.worst(), long);
        assert_eq!(heart.stalls(), [long, Stall { us: 25_000, until_us: 340_000 }]);
        heart.beat(Instant::from_millis(345));
        heart.beat(Instant::from_millis(900));
        assert_eq!(
            heart.worst(),
            Stall { us: 300_000, until_us: 310_000 },
            "150 ms until the end of the run"
        );
    }

    #[test]
    fn a_process_that_first_runs_after_the_clocks_zero_was_stalled() {
        let mut heart = Heartbeat::new(Instant::from_millis(500));
        heart.beat(Instant::from_millis(305));
        assert_eq!(heart.worst(), Stall { us: 300_000, until_us: 305_000 });
        assert_eq!(heart.stalls().len(), 1);
    }

    #[test]
    fn the_longest_stalls_are_kept_however_many_came_before() {
        let mut heart = Heartbeat::new(Instant::from_millis(100_000));
        let mut now = 5;
        for long in std::iter::repeat_n(11, KEPT).chain([400, 11, 398]) {
            now += long;
            heart.beat(Instant::from_millis(now));
            now += 5;
        }
        let stalls = heart.stalls();
        assert_eq!(stalls.len(), KEPT);
        let long = stalls.iter().filter(|stall| stall.us > 11_000).map(|stall| stall.us);
        assert_eq!(long.collect::<Vec<_>>(), [400_000, 398_000]);
        assert!(stalls.is_sorted_by_key(|stall| stall.until_us));
    }
}
