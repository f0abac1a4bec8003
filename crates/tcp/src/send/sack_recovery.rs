//! Loss recovery by selective acknowledgments (RFC 6675, section 5, steps C.1 to C.5).

use crate::send::{Chunk, Sender};
use crate::{Phase, Seq};
use wire::Instant;

impl Sender {
    /// Returns the next segment of a recovery (RFC 6675, section 4, `NextSeg()`), if the congestion window has room for
    /// a whole segment beside the pipe.
    pub(crate) fn next_in_recovery(&mut self, now: Instant, limit: u32) -> Option<Chunk> {
        let (una, max) = (self.una, self.max);
        let lost = self.lost_below();
        let pipe = self.scoreboard.pipe(una, max, lost);
        let room = self.congestion.cwnd.checked_sub(pipe).filter(|room| *room >= self.mss)?;
        // `NextSeg()`, rule 1: data that is lost.
        if let Some(from) = lost.and_then(|lost| self.scoreboard.next_gap(una, Some(lost))) {
            return Some(self.resend(now, from, max, limit));
        }
        // `NextSeg()`, rule 2: data that was never sent.
        if let Some(len) = self.sendable(limit, room) {
            return Some(self.cut(now, self.next, len));
        }
        // `NextSeg()`, rule 3: data that is missing, but not known to be lost.
        if let Some(from) = self.scoreboard.next_gap(una, None) {
            return Some(self.resend(now, from, max, limit));
        }
        self.rescue(now, limit)
    }

    /// Resends the end of the last missing range, once in a recovery (RFC 6675, section 4, `NextSeg()`, rule 4).
    /// Otherwise only the timer would detect the loss of this range.
    fn rescue(&mut self, now: Instant, limit: u32) -> Option<Chunk> {
        if self.scoreboard.rescued.is_some_and(|rescued| !self.una.after(rescued)) {
            return None;
        }
        let (from, end) = self.scoreboard.last_gap(self.una, self.max)?;
        self.scoreboard.rescued = Some(self.congestion.recover);
        let len = end.since(from).min(limit);
        Some(self.cut(now, end.minus(len), len as usize))
    }

    /// Returns a sequence number below which all missing data is lost; `None` if too little was received above a gap.
    pub(crate) fn lost_below(&self) -> Option<Seq> {
        self.scoreboard.lost_below(self.congestion.threshold(), self.mss)
    }

    /// Prepares the scoreboard for a recovery that has just begun. The first segment is sent at once, whatever the pipe
    /// is (RFC 6675, section 5, step 4.3).
    pub(crate) fn begin_sack_recovery(&mut self) {
        if self.congestion.by_sack() && self.congestion.phase == Phase::Begun {
            self.scoreboard.begin();
            self.next = self.max;
        }
    }
}
