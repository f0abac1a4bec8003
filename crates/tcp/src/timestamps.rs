//! Timestamps of a connection whose ends agreed on them: our clock, the peer's last value, and the check for old
//! segments (RFC 7323, sections 3 to 5).

use crate::{Profile, Segment, Seq, Timestamps};
use wire::{Duration, Instant, nanos_of};

/// After this time without a segment, the peer's clock may have advanced by half of its range. So its last value is
/// invalid (RFC 7323, section 5.5).
const OUTDATED: Duration = Duration::from_hours(24 * 24);

/// The state of the timestamps of a connection, as plain data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Clocks {
    /// The value of this end's timestamp clock at the start of the run.
    pub offset: u32,
    /// `TS.Recent`: the peer's timestamp that is echoed.
    pub recent: u32,
    /// When `recent` arrived. `None`: no timestamp of the peer has arrived yet, and `recent` is invalid.
    pub recent_at: Option<Instant>,
    /// `Last.ACK.sent`: the acknowledgment number of the last segment that was sent.
    pub last_ack: Seq,
    /// The tick of this end's timestamp clock.
    pub tick: Duration,
}

impl Clocks {
    /// Returns the state before the peer has sent anything. Our clock starts at a random value, for which `iss` is used
    /// (RFC 7323, section 7.1).
    pub(crate) const fn new(profile: &Profile, iss: Seq) -> Self {
        Self { offset: iss.0, recent: 0, recent_at: None, last_ack: Seq(0), tick: profile.timestamp_tick }
    }

    /// Returns a state in which our clock has `value` at `now`. The peer's next segment is expected to have the number
    /// `next`.
    pub(crate) fn moved(now: Instant, profile: &Profile, value: u32, next: Seq) -> Self {
        let mut clocks = Self { last_ack: next, ..Self::new(profile, Seq(0)) };
        clocks.offset = value.wrapping_sub(clocks.value(now));
        clocks
    }

    /// Adds the peer's clock. The peer's SYN had the timestamp `value`, and its next sequence number is `next`.
    pub(crate) const fn met(self, now: Instant, value: u32, next: Seq) -> Self {
        Self { recent: value, recent_at: Some(now), last_ack: next, ..self }
    }

    /// Returns whether the peer's last timestamp is still valid.
    fn is_valid(&self, now: Instant) -> bool {
        self.recent_at.is_some_and(|at| now.since(at) < OUTDATED)
    }

    /// Returns the value of this end's timestamp clock at `now`.
    pub fn value(&self, now: Instant) -> u32 {
        self.offset.wrapping_add((now.0 / self.nanos()) as u32)
    }

    /// Returns the tick in nanoseconds, at least 1, because callers divide by it.
    fn nanos(&self) -> u64 {
        nanos_of(self.tick).max(1)
    }

    /// Returns the timestamps option of a segment that acknowledges `ack` and is sent at `now`. Stores `ack` in
    /// `last_ack`.
    pub(crate) fn stamp(&mut self, now: Instant, ack: Seq) -> Timestamps {
        self.last_ack = ack;
        Timestamps { value: self.value(now), echo: self.recent }
    }

    /// Returns whether a segment is older than one that has arrived (PAWS: RFC 7323, section 5.3, R1).
    pub(crate) fn is_old(&self, now: Instant, theirs: Timestamps) -> bool {
        self.is_valid(now) && Seq(theirs.value).before(Seq(self.recent))
    }

    /// Stores the timestamp of `segment` for the next echoes, if it is not old, and if `segment` begins at or below the
    /// last acknowledgment sent (RFC 7323, section 4.3). So a segment beyond a gap is not echoed. `segment` must be
    /// acceptable, or end at or above the last acknowledgment sent.
    pub(crate) fn note(&mut self, now: Instant, segment: &Segment<'_>, theirs: Timestamps) {
        if !self.is_old(now, theirs) && !segment.seq.after(self.last_ack) {
            (self.recent, self.recent_at) = (theirs.value, Some(now));
        }
    }

    /// Returns when the segment was sent whose timestamp is echoed, in whole ticks. Returns `None` if this end never
    /// sent that timestamp, or if the echo is zero: then the peer had no timestamp to echo.
    pub(crate) fn left(&self, now: Instant, theirs: Timestamps) -> Option<Instant> {
        let age = self.value(now).wrapping_sub(theirs.echo);
        let nanos = u64::from(age).saturating_mul(self.nanos());
        (age.cast_signed() >= 0 && theirs.echo != 0).then(|| now.0.checked_sub(nanos)).flatten().map(Instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks() -> Clocks {
        Clocks::new(&Profile::linux(), Seq(u32::MAX - 5)).met(Instant::ZERO, 1000, Seq(50))
    }

    const fn stamps(value: u32, echo: u32) -> Timestamps {
        Timestamps { value, echo }
    }

    #[test]
    fn our_clock_ticks_across_its_end_and_tells_when_what_left() {
        let clocks = clocks();
        let now = Instant::from_millis(10);
        assert_eq!((clocks.value(now), clocks.value(Instant(999_999))), (4, u32::MAX - 5));
        assert_eq!(clocks.left(now, stamps(0, u32::MAX)), Some(Instant::from_millis(5)));
        assert_eq!((clocks.left(now, stamps(0, 5)), clocks.left(now, stamps(0, 1 << 30))), (None, None));
    }

    /// A smaller timestamp than the last one is old, but not after 24 days without a segment (RFC 7323, sections 5.3
    /// and 5.5).
    #[test]
    fn what_is_old_is_old_for_24_days() {
        let clocks = clocks();
        let later = Instant::ZERO + OUTDATED;
        assert!(clocks.is_old(Instant::ZERO, stamps(999, 0)) && !clocks.is_old(later, stamps(999, 0)));
        assert!(
            !clocks.is_old(Instant::ZERO, stamps(1000, 0)) && !clocks.is_old(Instant::ZERO, stamps(1001, 0))
        );
    }

    /// The timestamp of a segment that fills a gap is echoed, and that of a segment beyond the gap is not (RFC 7323,
    /// section 4.3).
    #[test]
    fn which_is_echoed() {
        let mut clocks = clocks();
        let segment = |seq| Segment { seq: Seq(seq), ..Segment::default() };
        clocks.note(Instant::ZERO, &segment(60), stamps(1001, 0));
        assert_eq!(clocks.recent, 1000);
        clocks.note(Instant::ZERO, &segment(50), stamps(1002, 0));
        assert_eq!(clocks.stamp(Instant::ZERO, Seq(60)).echo, 1002);
        clocks.note(Instant::ZERO, &segment(60), stamps(900, 0));
        assert_eq!((clocks.recent, clocks.last_ack), (1002, Seq(60)));
    }

    #[test]
    fn a_clock_that_goes_on_elsewhere() {
        let now = Instant::from_millis(777);
        let moved = Clocks::moved(now, &Profile::linux(), 5, Seq(2));
        assert_eq!((moved.value(now), moved.value(Instant::from_millis(780))), (5, 8));
        assert!(!moved.is_old(now, stamps(0, 0)), "nothing is known of the peer's");
    }
}
