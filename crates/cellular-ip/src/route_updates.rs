//! The route-updates of a mobile host: when they are repeated, and which clocks give their timestamps.

use crate::config::{MobileConfig, Station};
use crate::message::{Authentication, RouteUpdate, Skipped};
use node::Rng;
use std::num::NonZeroU64;
use wire::{Duration, Instant, Packet, WallTime, ntp_distance};

/// Two clocks count as the same if they differ by at most this number of nanoseconds. It is below the default
/// `replay_window` of 5 s.
const SAME_CLOCK: i64 = 1_000_000_000;
/// The maximum number of former clocks that are remembered. When there are more, the oldest is forgotten.
const FORMER_CLOCKS: usize = 8;
/// How long a former clock is remembered. A node accepts no timestamp that is more than a `replay_window` (5 s by
/// default) ahead of the node's time. So after a `replay_window`, the node's time has passed all accepted timestamps.
/// If a `replay_window` is longer than this lifetime, a host can still be locked out.
const FORMER_CLOCK_LIFETIME: Duration = Duration::from_mins(1);

/// The configured repetitions of one route-update.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    since: Instant,
    sent: usize,
}

impl Repeats {
    /// Starts the repetitions of a route-update that was sent. Returns when the first is due; `None` if none is
    /// configured.
    pub(crate) fn begin(&mut self, now: Instant, configured: &[Duration]) -> Option<Instant> {
        *self = Self { since: now, sent: 0 };
        self.next(configured)
    }

    /// Counts a repetition that was sent. Returns when the next is due; `None` after the last.
    pub(crate) fn repeated(&mut self, configured: &[Duration]) -> Option<Instant> {
        self.sent += 1;
        self.next(configured)
    }

    /// Ends the repetitions, because a route-update was sent that is not repeated.
    pub(crate) const fn end(&mut self, now: Instant) {
        *self = Self { since: now, sent: usize::MAX };
    }

    /// Returns when repetitions were last started or ended.
    pub(crate) const fn since(&self) -> Instant {
        self.since
    }

    fn next(&self, configured: &[Duration]) -> Option<Instant> {
        configured.get(self.sent).map(|after| self.since + *after)
    }
}

/// A clock and the last timestamp that was made from it.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// The wall time at [`Instant::ZERO`].
    wall: WallTime,
    last: u64,
    /// The timestamp of this clock in the route-update with which the host attached; `None` if the clock made none.
    since: Option<NonZeroU64>,
}

impl Clock {
    /// Makes the next timestamp, which is later than the last. If the clock has passed the last timestamp, the two
    /// lowest bits are random (draft-ietf-mobileip-cellularip-00, section 3.3.2): a clock in nanoseconds leaves these
    /// bits unused.
    fn stamp(&mut self, now: Instant, rng: &mut Rng) {
        let fresh = self.wall.plus(now.since(Instant::ZERO)).to_ntp() & !3 | rng.draw() & 3;
        let next = self.last.wrapping_add(1);
        self.last = if ntp_distance(fresh, next) >= 0 || self.last == 0 { fresh } else { next };
    }

    /// Returns the last timestamp, and the timestamp with which the host attached; `None` if this clock made none then.
    fn last_and_first(&self) -> (u64, Option<u64>) {
        (self.last, self.since.map(NonZeroU64::get))
    }

    const fn attached(&mut self) {
        self.since = NonZeroU64::new(self.last);
    }

    const fn is_as(self, wall: WallTime) -> bool {
        self.wall.0.abs_diff(wall.0) <= SAME_CLOCK.unsigned_abs()
    }
}

/// The host's clock, and the clocks that it had before the clock was set.
///
/// Nodes refuse a timestamp that is too far from their own time. When a host's clock is set, the host cannot know which
/// is right, the former clock or the present one. So it sends a copy of each route-update with the timestamp of each of
/// the two. Nodes accept the copy of the clock that is right.
///
/// Nodes also refuse a timestamp below the last accepted one. A clock may be set forward, and later back. In between,
/// nodes may have accepted timestamps that are now in the future. So the host also continues from those timestamps,
/// until its clock has passed them.
#[derive(Debug)]
pub(crate) struct Clocks {
    clock: Clock,
    /// Boxed, because few hosts have former clocks.
    before: Option<Box<Before>>,
    rng: Rng,
}

/// The clocks that a host had before its present clock.
#[derive(Debug, Default)]
struct Before {
    /// The clock before the first change. It becomes `None` when the clock is set back to it; the next change makes a
    /// new one.
    former: Option<Clock>,
    /// The former clocks after `former` that made a timestamp, the oldest first. Each has the time when it is
    /// forgotten.
    left: Vec<(Clock, Instant)>,
}

impl Before {
    fn leave(&mut self, now: Instant, clock: Clock) {
        if clock.last == 0 {
            return;
        }
        if self.left.len() >= FORMER_CLOCKS {
            self.left.remove(0);
        }
        self.left.push((clock, now + FORMER_CLOCK_LIFETIME));
    }

    /// Returns the latest clock of `left` that agrees with `wall`; `None` if there is none. The clock also stays in the
    /// list: nodes may have accepted its timestamps, and may later find the clock too far ahead again.
    fn returned(&self, wall: WallTime) -> Option<Clock> {
        let same = |(clock, _): &&(Clock, Instant)| clock.is_as(wall);
        self.left.iter().rfind(same).map(|(clock, _)| *clock)
    }
}

impl Clocks {
    pub(crate) fn new(rng: Rng) -> Self {
        Self { clock: Clock::default(), before: None, rng }
    }

    /// Sets the clock at the start of the host.
    pub(crate) fn start(&mut self, wall: WallTime) {
        self.clock.wall = wall;
    }

    /// Sets the clock. Returns whether it changed by more than `SAME_CLOCK`.
    pub(crate) fn set(&mut self, now: Instant, wall: WallTime) -> bool {
        if self.clock.is_as(wall) {
            self.clock.wall = wall;
            return false;
        }
        let before = self.before.get_or_insert_with(Box::default);
        let former = before.former.take();
        let (same, other): (Option<Clock>, _) = match former {
            Some(former) if former.is_as(wall) => (Some(former), None),
            other => (before.returned(wall), other),
        };
        let left = std::mem::replace(&mut self.clock, Clock { wall, ..same.unwrap_or_default() });
        if former.is_some() {
            before.former = other;
            before.leave(now, left);
        } else {
            before.former = Some(left);
        }
        true
    }

    /// Returns the timestamps of one route-update, each for a separate copy. The second value of a pair is the
    /// timestamp that the same clock made when the host attached; `None` if it made none.
    pub(crate) fn stamps(&mut self, now: Instant) -> Vec<(u64, Option<u64>)> {
        let mut stamps = Vec::with_capacity(1);
        let former = self.before.as_mut().and_then(|before| before.former.as_mut());
        for clock in former.into_iter().chain([&mut self.clock]) {
            clock.stamp(now, &mut self.rng);
            stamps.push(clock.last_and_first());
        }
        let Some(before) = &mut self.before else { return stamps };
        // A clock in `left` is forgotten when its lifetime is over, or when all timestamps in `stamps` are later than
        // the last timestamp of the clock.
        let is_ahead = |last: u64| stamps.iter().any(|(stamp, _)| ntp_distance(last, *stamp) >= 0);
        before.left.retain(|(clock, until)| now < *until && is_ahead(clock.last));
        for (clock, _) in &mut before.left {
            clock.last = clock.last.wrapping_add(1);
            // A clock to which the host returned continues from the same timestamp as its entry in the list. Nodes
            // would refuse a second copy with this timestamp as a replay.
            if stamps.iter().all(|(stamp, _)| *stamp != clock.last) {
                stamps.push(clock.last_and_first());
            }
        }
        stamps
    }

    /// Stores the last timestamp of each clock as the one with which the host attached.
    pub(crate) fn attached(&mut self) {
        self.clock.attached();
        let Some(before) = &mut self.before else { return };
        before
            .former
            .iter_mut()
            .chain(before.left.iter_mut().map(|(clock, _)| clock))
            .for_each(Clock::attached);
    }
}

/// Returns a signed route-update for a base station. If it is semisoft, it contains `since`: the timestamp of the
/// route-update with which the host attached to the old base station.
pub(crate) fn signed(
    config: &MobileConfig,
    station: &Station,
    (timestamp, since): (u64, Option<u64>),
    semisoft: bool,
) -> Packet {
    let since = since.filter(|_| semisoft);
    let mut update = RouteUpdate {
        mobile: config.address,
        gateway: config.gateway,
        timestamp,
        semisoft,
        auth: Authentication::unsigned(config.key_generation, config.r_mh.to_be_bytes()),
        serving_bs: Some(station.id),
        skipped: since.map(Skipped::attached_since).unwrap_or_default(),
    };
    update.sign(&config.session_key);
    Packet::new(station.mac, update.emit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::ReplayWindow;
    use std::collections::BTreeSet;

    /// The right time at the start of a test: 2000-01-01 00:00 UTC.
    const RIGHT: WallTime = WallTime(946_684_800_000_000_000);

    /// Returns a clock that is `ms` milliseconds ahead of the right one.
    fn ahead(ms: i64) -> WallTime {
        WallTime(RIGHT.0 + ms * 1_000_000)
    }

    fn clocks(seed: u64) -> Clocks {
        let mut clocks = Clocks::new(Rng::new(seed));
        clocks.start(RIGHT);
        clocks
    }

    /// A node whose clock is right, and the last timestamp that it has accepted.
    #[derive(Default)]
    struct Node(Option<u64>);

    impl Node {
        /// Receives all copies of a route-update in turn. Returns whether any is accepted.
        fn accepts(&mut self, now: Instant, clocks: &mut Clocks) -> bool {
            let window = ReplayWindow::new(Duration::from_secs(5));
            let time = RIGHT.plus(now.since(Instant::ZERO)).to_ntp();
            let mut any = false;
            for (stamp, _) in clocks.stamps(now) {
                if window.check(time, self.0, stamp).is_ok() {
                    self.0 = Some(stamp);
                    any = true;
                }
            }
            any
        }
    }

    /// If a clock is set forward and back, a node still accepts route-updates. The steps are less than the node's
    /// window of 5 s, so that the node has accepted timestamps of the clock that was ahead.
    #[test]
    fn two_steps_that_cancel_each_other_lock_no_host_out() {
        for step in [4000, 4900] {
            let (mut clocks, mut node) = (clocks(1), Node::default());
            let at = Instant::from_millis;
            assert!(node.accepts(at(1000), &mut clocks));
            clocks.set(at(3000), ahead(step));
            assert!(node.accepts(at(3000), &mut clocks));
            clocks.set(at(3500), RIGHT);
            for ms in (3500..10_000).step_by(100) {
                assert!(node.accepts(at(ms), &mut clocks), "{step} ms, at {ms} ms");
            }
            assert_eq!(clocks.stamps(at(10_000)).len(), 1, "the clock has come as far");
        }
    }

    /// A node always accepts one copy of a route-update. The first clock is right, but the host cannot know that.
    #[test]
    fn whatever_steps_a_clock_makes_one_of_its_timestamps_is_accepted() {
        for seed in 0..300 {
            let (mut clocks, mut node, mut rng) = (clocks(seed), Node::default(), Rng::new(seed));
            let mut now = Instant::ZERO;
            for turn in 0..60 {
                now += Duration::from_millis(1 + rng.draw() % 700);
                if rng.draw().is_multiple_of(3) {
                    let step = i64::try_from(rng.draw() % 9).unwrap();
                    clocks.set(now, ahead(2000 * step - 8000));
                }
                assert!(node.accepts(now, &mut clocks), "seed {seed}, turn {turn}");
            }
        }
    }

    /// The clock is set back to a value just before the one at which it was left. Then the clock and its entry in the
    /// list would continue from the same timestamp.
    #[test]
    fn a_clock_that_returned_is_in_no_second_copy() {
        let mut clocks = clocks(1);
        let at = Instant::from_millis;
        for (ms, wall) in [(2000, ahead(4000)), (2400, RIGHT), (2500, ahead(3600))] {
            clocks.stamps(at(ms));
            clocks.set(at(ms), wall);
        }
        for ms in (2500..4000).step_by(100) {
            let stamps: Vec<u64> = clocks.stamps(at(ms)).iter().map(|(stamp, _)| *stamp).collect();
            let distinct: BTreeSet<u64> = stamps.iter().copied().collect();
            assert_eq!(stamps.len(), distinct.len(), "{stamps:?} at {ms} ms");
        }
    }

    /// A clock jumps ahead, back, and ahead again. Nodes refuse its new timestamps, which are too far in the future.
    /// They accept timestamps that continue from those that it signed before.
    #[test]
    fn a_clock_that_returned_goes_on_from_its_former_timestamps_too() {
        let (mut clocks, mut node) = (clocks(1), Node::default());
        let at = Instant::from_millis;
        for (from, to, wall) in [(1000, 3000, RIGHT), (3000, 4000, ahead(8000)), (4000, 8000, RIGHT)] {
            clocks.set(at(from), wall);
            for ms in (from..to).step_by(100) {
                assert!(node.accepts(at(ms), &mut clocks), "at {ms} ms");
            }
        }
        clocks.set(at(8000), ahead(8000));
        for ms in (8000..15_000).step_by(100) {
            assert!(node.accepts(at(ms), &mut clocks), "at {ms} ms");
        }
    }

    #[test]
    fn clocks_that_were_left_are_bounded_in_number_and_time() {
        let mut clocks = clocks(1);
        let at = Instant::from_millis;
        for hour in 0..20 {
            clocks.set(at(1000), ahead(3_600_000 * hour));
            assert!(clocks.stamps(at(1000)).len() <= FORMER_CLOCKS + 2);
        }
        assert_eq!(clocks.stamps(at(60_999)).len(), FORMER_CLOCKS + 2);
        assert_eq!(clocks.stamps(at(61_000)).len(), 2);
    }
}
