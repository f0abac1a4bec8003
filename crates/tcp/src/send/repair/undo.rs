//! Undo of a spurious reduction of the window. A reduction is spurious if the peer reports everything sent again as a
//! duplicate (RFC 2883, RFC 3708). It is also spurious if an acknowledgment echoes a timestamp from before the first
//! retransmission (Eifel, RFC 3522). As in Linux (`tcp_may_undo`), step 5 of RFC 3522, section 3.2, is omitted: an
//! acknowledgment with such an echo counts even if it reports a duplicate.

use crate::Seq;
use crate::congestion::in_segments;
use wire::{Duration, Instant};

/// The state before a reduction, to undo it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Undo {
    /// The first unacknowledged number when the reduction began; `None`: there is nothing to undo.
    pub marker: Option<Seq>,
    /// The number of retransmissions for this reduction, including those in flight when it began, that the peer has not
    /// reported as duplicates.
    pub resent: u32,
    /// Whether any segment was sent again for this reduction, or a retransmission was in flight when it began.
    pub any: bool,
    /// The time of the first retransmission since the recovery state was last Open; `None` if there was none.
    pub first: Option<Instant>,
    /// The congestion window before the reduction, in bytes.
    pub cwnd: u32,
    /// The slow start threshold before the reduction, in bytes.
    pub ssthresh: u32,
}

impl Undo {
    /// Stores the state before a reduction at `una`, with `copies` retransmissions in flight.
    pub(crate) const fn begin(&mut self, una: Seq, copies: u32, cwnd: u32, ssthresh: u32) {
        (self.marker, self.resent, self.any) = (Some(una), copies, copies > 0);
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
    }

    /// Converts the stored windows to another segment size: each keeps its number of segments.
    pub(crate) fn resize(&mut self, before: u32, mss: u32) {
        for window in [&mut self.cwnd, &mut self.ssthresh] {
            *window = in_segments(*window, before, mss);
        }
    }

    /// Notes that a segment was sent again.
    pub(crate) fn resent(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        (self.resent, self.any) = (self.resent + 1, true);
    }

    /// Notes that the peer reports `segments` duplicates that end at `end`. Duplicates that end at or below the marker
    /// belong to an earlier recovery, and do not count.
    pub(crate) fn duplicate(&mut self, end: Seq, segments: u32) {
        if self.marker.is_some_and(|marker| end.after(marker)) {
            self.resent = self.resent.saturating_sub(segments);
        }
    }

    /// Returns whether an acknowledgment echoes a timestamp from before the first retransmission. Returns false if
    /// there is nothing to undo.
    pub(crate) fn is_older(&self, echoed: Option<Instant>, tick: Duration) -> bool {
        self.marker.is_some() && is_before(echoed, self.first, tick)
    }

    /// Returns whether everything sent again for the reduction was a duplicate. Returns false if nothing was sent
    /// again.
    pub(crate) const fn all_were_duplicates(&self) -> bool {
        self.marker.is_some() && self.any && self.resent == 0
    }
}

/// Returns whether an echoed timestamp is from before `other`. Both are compared in ticks of the timestamp clock.
pub(super) fn is_before(echoed: Option<Instant>, other: Option<Instant>, tick: Duration) -> bool {
    let ticks = |at: Instant| u128::from(at.0) / tick.as_nanos().max(1);
    echoed.zip(other).is_some_and(|(echoed, other)| ticks(echoed) < ticks(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_duplicates() {
        let mut undo = Undo::default();
        undo.begin(Seq(7), 0, 10_000, 20_000);
        assert!(!undo.all_were_duplicates(), "nothing was sent again");
        undo.resent(Instant::ZERO);
        undo.resent(Instant::ZERO);
        undo.duplicate(Seq(8), 1);
        undo.duplicate(Seq(7), 1);
        assert!(!undo.all_were_duplicates(), "the other is older than the recovery");
        undo.duplicate(Seq(9), 1);
        assert!(undo.all_were_duplicates());
        undo.begin(Seq(7), 1, 10_000, 20_000);
        assert!(!undo.all_were_duplicates(), "a copy is on its way already");
        undo.duplicate(Seq(8), 2);
        assert!(undo.all_were_duplicates());
    }

    #[test]
    fn by_the_age_of_the_answer() {
        let (mut undo, tick) = (Undo::default(), Duration::from_millis(1));
        let at = |us: u64| Some(Instant(us * 1000));
        undo.begin(Seq(7), 0, 10_000, 20_000);
        assert!(!undo.is_older(at(1), tick), "nothing was sent again");
        undo.resent(Instant(5_300_000));
        assert!(undo.is_older(at(4999), tick));
        assert!(!undo.is_older(at(5100), tick) && !undo.is_older(None, tick), "the same tick shows nothing");
    }
}
