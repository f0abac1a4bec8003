//! What a daemon, or the link emulator, measures about itself: how long frames waited for it, how long it did not
//! run, and how many frames it handled.

use crate::Clock;
use crate::counters::Counters;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trace::doubt::STALL_BOUND;
use wire::{Duration, Instant};

/// The report of a daemon that has ended. The daemon writes it and the lab reads it: every field is required.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonSummary {
    /// The host's name.
    pub name: String,
    /// The status of its roles at the end.
    pub status: serde_json::Value,
    /// The kernel's values for each TCP socket: congestion control, retransmissions, times, sizes.
    pub tcp: serde_json::Value,
    /// The counters of its namespace's kernel during the run.
    pub counters: Counters,
    /// How long frames waited until the daemon read them, from the kernel's receive stamp.
    pub read: Ages,
    /// How long frames waited until the daemon had handled them, from the same stamp. Frames that arrived during a
    /// stall of more than [`STALL_BOUND`] are not counted, because that stall is reported as a doubt.
    pub handled: Ages,
    /// The longest time in which the daemon did not run.
    pub stall: Stall,
    /// Its 1000 longest stalls of more than 5 ms. A stall that all processes have in common is the machine's.
    pub stalls: Vec<Stall>,
    /// How long the thread `store` took from each request until the record was durable.
    pub stored: Ages,
    /// The 1000 longest of these times that are more than 5 ms.
    pub store_stalls: Vec<Stall>,
    /// The worst lateness of a time-out that was passed to the node, in microseconds.
    pub worst_late_us: u64,
    /// Frames that it received at each of its interfaces, by the interface's name; `host` is its own stack.
    pub received: BTreeMap<String, u64>,
    /// Datagrams that were passed to its own stack.
    pub given_to_kernel: u64,
    /// Interfaces that went down or were removed.
    pub lost_interfaces: Vec<String>,
    /// Queueing disciplines and filters on its interfaces, or between its kernel and its node: interface and kind.
    pub queues: Vec<(String, String)>,
    /// Frames that the kernel dropped before they were read.
    pub capture_drops: u64,
    /// Whether the wall clock was set during the run.
    pub wall_clock_stepped: bool,
    /// Number of lines in its file of records.
    pub records: u64,
}

/// A stall: the time for which a process did not run though its timer had fired.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Its length, in microseconds.
    pub us: u64,
    /// When it ended, in microseconds of the run.
    pub until_us: u64,
}

impl Stall {
    fn new(late: Duration, until: Instant) -> Self {
        Self { us: late.as_micros() as u64, until_us: until.since(Instant::ZERO).as_micros() as u64 }
    }
}

/// A summary of waiting times.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ages {
    /// Number of waiting times.
    pub count: u64,
    /// The median, in microseconds; at most 1/16 above the true value.
    pub median_us: f64,
    /// The 99th percentile, in microseconds; at most 1/16 above the true value.
    pub p99_us: f64,
    /// The longest, in microseconds.
    pub worst_us: f64,
}

/// A histogram of waiting times, with classes whose width is 1/16 of their value. Its memory does not grow with their
/// number.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    classes: Vec<u64>,
    count: u64,
    worst: u64,
}

/// Classes per octave.
const PER_OCTAVE: u64 = 16;

impl Default for Waits {
    fn default() -> Self {
        Self { classes: vec![0; 64 * PER_OCTAVE as usize], count: 0, worst: 0 }
    }
}

impl Waits {
    pub(crate) fn add(&mut self, wait: Duration) {
        let nanos = wire::nanos_of(wait);
        if let Some(class) = self.classes.get_mut(class_of(nanos)) {
            *class += 1;
        }
        self.count += 1;
        self.worst = self.worst.max(nanos);
    }

    pub(crate) fn summary(&self) -> Ages {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Ages {
            count: self.count,
            median_us: micros(self.at_rank(self.count.div_ceil(2))),
            p99_us: micros(self.at_rank(self.count - self.count / 100)),
            worst_us: micros(self.worst),
        }
    }

    /// Returns the upper bound of the class that contains the value of this rank, from 1.
    fn at_rank(&self, rank: u64) -> u64 {
        let mut below = 0;
        let class = self.classes.iter().position(|count| {
            below += count;
            below >= rank
        });
        class.map_or(0, upper_of).min(self.worst)
    }
}

/// Returns the class of a value. Below 16 each value is a class; above, the four bits after the leading one select
/// the class in its octave.
fn class_of(nanos: u64) -> usize {
    if nanos < PER_OCTAVE {
        return nanos as usize;
    }
    let shift = u64::from(nanos.ilog2()) - 4;
    (shift * PER_OCTAVE + (nanos >> shift)) as usize
}

/// Returns the largest value of a class.
const fn upper_of(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * PER_OCTAVE {
        return class;
    }
    let shift = class / PER_OCTAVE - 1;
    let low = (class % PER_OCTAVE + PER_OCTAVE) << shift;
    low + ((1 << shift) - 1)
}

/// Detects stalls by a periodic timer: a process that notices the timer late did not run, whatever the cause.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    next: Instant,
    end: Instant,
    worst: Stall,
    stalls: Stalls,
    /// When the last stall of more than [`STALL_BOUND`] ended.
    last_long: Option<Instant>,
}

/// Interval of beats. A stall that begins right after a beat is measured too short by up to this.
pub(crate) const BEAT: Duration = Duration::from_millis(5);

/// The shortest stall that is kept. If one process measures a stall of the machine of more than [`STALL_BOUND`],
/// every other process measures one longer than this.
const NOTED: Duration = Duration::from_millis(5);
const _: () = assert!(NOTED.as_millis() + BEAT.as_millis() <= STALL_BOUND.as_millis());

/// Number of stalls that are kept.
const KEPT: usize = 1000;

/// Stalls of more than [`NOTED`], in order of time. If there are more than [`KEPT`], the shortest are left out. So
/// only longer stalls can displace a stall that is reported as a doubt; earlier ones cannot.
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
    /// Starts at the clock's zero, even if this process first runs later: then it was stalled. What happens after
    /// `end` does not count.
    pub(crate) fn new(end: Instant) -> Self {
        Self::since(Instant::ZERO, end)
    }

    /// Starts at `begin`, for a process that starts later: a daemon that restarts after a crash.
    pub(crate) fn since(begin: Instant, end: Instant) -> Self {
        let (worst, stalls) = (Stall::default(), Stalls::default());
        Self { next: begin + BEAT, end, worst, stalls, last_long: None }
    }

    /// Returns when the process must run again.
    pub(crate) const fn due(&self) -> Instant {
        self.next
    }

    /// Records that the process runs.
    pub(crate) fn beat(&mut self, now: Instant) {
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

    pub(crate) const fn worst(&self) -> Stall {
        self.worst
    }

    pub(crate) fn stalls(&self) -> &[Stall] {
        &self.stalls.0
    }

    pub(crate) fn into_stalls(self) -> Vec<Stall> {
        self.stalls.into_vec()
    }

    /// Returns whether what was due then had to wait for the end of a stall that is reported as a doubt.
    pub(crate) fn explains(&self, due: Instant) -> bool {
        self.last_long.is_some_and(|until| due <= until)
    }
}

/// What a daemon measures about itself while it runs.
#[derive(Debug)]
pub(crate) struct Vitals {
    pub(crate) read: Waits,
    pub(crate) handled: Waits,
    /// Only a lab's daemon has one, because it knows the end of its run. Elsewhere a wake-up every 5 ms would be
    /// useless.
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) received: Vec<u64>,
    pub(crate) given_to_kernel: u64,
    pub(crate) lost_interfaces: Vec<String>,
    /// The end of the run.
    pub(crate) end: Instant,
    /// When the daemon received the command to begin.
    pub(crate) since: Instant,
}

impl Vitals {
    /// Creates the counters for this number of interfaces, including the host's own stack.
    pub(crate) fn new(interfaces: usize) -> Self {
        Self {
            read: Waits::default(),
            handled: Waits::default(),
            heartbeat: None,
            received: vec![0; interfaces],
            given_to_kernel: 0,
            lost_interfaces: Vec::new(),
            end: Instant::NEVER,
            since: Instant::ZERO,
        }
    }

    /// Starts the heartbeat, if the end of the run is known.
    pub(crate) fn begin(&mut self) {
        self.heartbeat = (self.end != Instant::NEVER).then(|| Heartbeat::since(self.since, self.end));
    }

    /// Records that a frame was read, and how long it had waited. The wait of a frame from before the begin is not
    /// counted.
    pub(crate) fn took(&mut self, clock: Clock, interface: usize, stamp: Instant) {
        if let Some(count) = self.received.get_mut(interface) {
            *count += 1;
        }
        if let Some(wait) = self.since(clock, stamp) {
            self.read.add(wait);
        }
    }

    /// Records that a frame was handled, and the time since it arrived.
    pub(crate) fn finished(&mut self, clock: Clock, stamp: Instant) {
        self.beat(clock.now());
        let is_explained = self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.explains(stamp));
        if let Some(wait) = self.since(clock, stamp).filter(|_| !is_explained) {
            self.handled.add(wait);
        }
    }

    /// Returns the time since `stamp`, up to the end of the run; `None` if `stamp` is outside the run.
    fn since(&self, clock: Clock, stamp: Instant) -> Option<Duration> {
        let is_of_run = stamp > self.since && stamp < self.end;
        is_of_run.then(|| clock.now().min(self.end).since(stamp))
    }

    pub(crate) fn beat(&mut self, now: Instant) {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.beat(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_class_that_is_at_most_a_sixteenth_wide() {
        let mut last = 0;
        for nanos in (0..5000).chain((12..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 7])) {
            let class = class_of(nanos);
            assert!(class >= last || nanos < 5000, "{nanos}");
            last = class;
            let upper = upper_of(class);
            assert!(upper >= nanos && upper - nanos <= nanos / 16, "{nanos}: {upper}");
        }
    }

    #[test]
    fn the_99th_percentile_is_that_of_99_in_100() {
        let mut waits = Waits::default();
        for _ in 0..990 {
            waits.add(Duration::from_micros(50));
        }
        for _ in 0..10 {
            waits.add(Duration::from_millis(300));
        }
        let ages = waits.summary();
        assert!((50.0..54.0).contains(&ages.p99_us), "{ages:?}");
        assert_eq!((ages.count, ages.worst_us), (1000, 300_000.0));
        assert!((50.0..54.0).contains(&ages.median_us), "{ages:?}");
        waits.add(Duration::from_millis(3));
        let ages = waits.summary();
        assert!((3000.0..3200.0).contains(&ages.p99_us), "{ages:?}");
        assert_eq!(Waits::default().summary(), Ages::default());
    }

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
        let mut vitals = Vitals { end: Instant::from_millis(500), ..Vitals::new(1) };
        vitals.begin();
        vitals.beat(Instant::from_millis(305));
        assert_eq!(vitals.heartbeat.unwrap().worst(), Stall { us: 300_000, until_us: 305_000 });
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

    #[test]
    fn a_summary_without_one_of_its_fields_is_none() {
        let whole = serde_json::to_value(DaemonSummary::default()).unwrap();
        assert!(serde_json::from_value::<DaemonSummary>(whole.clone()).is_ok());
        let names: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
        for name in names {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(&name);
            let why = serde_json::from_value::<DaemonSummary>(less);
            // An absent field of type `serde_json::Value` must be an error too, and must not read as null.
            assert!(why.is_err(), "{name} may be missing");
        }
    }
}
