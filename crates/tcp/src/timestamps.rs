//! Timestamps of a connection whose ends agreed on them: our clock, the peer's last value, and the check for old
//! segments (RFC 7323, sections 3 to 5).

use crate::{Profile, Segment, Seq, Timestamps};
use wire::{Duration, Instant, nanos_of};

/// After this time without a segment the peer's clock may have wrapped half, so its last value is invalid (RFC 7323,
/// section 5.5).
const OUTDATED: Duration = Duration::from_hours(24 * 24);

/// The state of both clocks, as plain data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Clocks {
    /// The value of our clock at the start of the run.
    pub offset: u32,
    /// `TS.Recent`: the value that is echoed.
    pub recent: u32,
    /// When it arrived; `None`: the peer sent none yet, and `recent` is invalid.
    pub recent_at: Option<Instant>,
    /// `Last.ACK.sent`: the acknowledgment number of the last segment that was sent.
    pub last_ack: Seq,
    /// The tick of our clock.
    pub tick: Duration,
}

impl Clocks {
    /// Our clock, before the peer has sent anything. It starts at a random value, which is `iss` (RFC 7323, section
    /// 7.1).
    pub(crate) const fn new(profile: &Profile, iss: Seq) -> Self {
        Self { offset: iss.0, recent: 0, recent_at: None, last_ack: Seq(0), tick: profile.timestamp_tick }
    }

    /// Our clock, set so that it has `value` now, for a peer whose next segment is expected to have the number `next`.
    pub(crate) fn moved(now: Instant, profile: &Profile, value: u32, next: Seq) -> Self {
        let mut clocks = Self { last_ack: next, ..Self::new(profile, Seq(0)) };
        clocks.offset = value.wrapping_sub(clocks.value(now));
        clocks
    }

    /// Adds the clock of the peer, whose SYN had `value` and whose next number is `next`.
    pub(crate) const fn met(self, now: Instant, value: u32, next: Seq) -> Self {
        Self { recent: value, recent_at: Some(now), last_ack: next, ..self }
    }

    /// Whether the peer's last value is still valid.
    fn is_valid(&self, now: Instant) -> bool {
        self.recent_at.is_some_and(|at| now.since(at) < OUTDATED)
    }

    /// Returns the value of our clock at `now`.
    pub fn value(&self, now: Instant) -> u32 {
        self.offset.wrapping_add((now.0 / self.nanos()) as u32)
    }

    /// At least 1: callers divide by it.
    fn nanos(&self) -> u64 {
        nanos_of(self.tick).max(1)
    }

    /// The option of a segment that acknowledges `ack` and is sent now.
    pub(crate) fn stamp(&mut self, now: Instant, ack: Seq) -> Timestamps {
        self.last_ack = ack;
        Timestamps { value: self.value(now), echo: self.recent }
    }

    /// PAWS (RFC 7323, section 5.3, R1): whether a segment is older than one that has arrived.
    pub(crate) fn is_old(&self, now: Instant, theirs: Timestamps) -> bool {
        self.is_valid(now) && Seq(theirs.value).before(Seq(self.recent))
    }

    /// Chooses the timestamp to echo (RFC 7323, section 4.3): that of the first segment that is not acknowledged, not
    /// of one beyond a gap. `segment` must be acceptable.
    pub(crate) fn note(&mut self, now: Instant, segment: &Segment<'_>, theirs: Timestamps) {
        if !self.is_old(now, theirs) && !segment.seq.after(self.last_ack) {
            (self.recent, self.recent_at) = (theirs.value, Some(now));
        }
    }

    /// When our segment was sent whose timestamp is echoed, in whole ticks. `None` if we never sent that timestamp, or
    /// if it is zero: then the peer had none to echo.
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

    /// RFC 7323, section 5.3 and 5.5.
    #[test]
    fn what_is_old_is_old_for_24_days() {
        let clocks = clocks();
        let later = Instant::ZERO + OUTDATED;
        assert!(clocks.is_old(Instant::ZERO, stamps(999, 0)) && !clocks.is_old(later, stamps(999, 0)));
        assert!(
            !clocks.is_old(Instant::ZERO, stamps(1000, 0)) && !clocks.is_old(Instant::ZERO, stamps(1001, 0))
        );
    }

    /// RFC 7323, section 4.3: the timestamp of a segment that fills a hole is echoed, that of a segment beyond it is
    /// not.
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
