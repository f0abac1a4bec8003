//! Loss recovery by selective acknowledgments (RFC 6675, section 5, steps C.1 to C.5).

use crate::send::{Chunk, Sender};
use crate::{Phase, Seq};
use wire::Instant;

impl Sender {
    /// The next segment of a recovery: `NextSeg()`, while the pipe has room for a whole segment.
    pub(crate) fn next_in_recovery(&mut self, now: Instant, limit: u32) -> Option<Chunk> {
        let (una, max) = (self.una, self.max);
        let lost = self.lost_below();
        let pipe = self.scoreboard.pipe(una, max, lost);
        let room = self.congestion.cwnd.checked_sub(pipe).filter(|room| *room >= self.mss)?;
        // Rule 1: what is lost.
        if let Some(from) = lost.and_then(|lost| self.scoreboard.next_gap(una, Some(lost))) {
            return Some(self.resend(now, from, max, limit));
        }
        // Rule 2: what was never sent.
        if let Some(len) = self.sendable(limit, room) {
            return Some(self.cut(now, self.next, len));
        }
        // Rule 3: what is missing and not known to be lost.
        if let Some(from) = self.scoreboard.next_gap(una, None) {
            return Some(self.resend(now, from, max, limit));
        }
        self.rescue(now, limit)
    }

    /// Rule 4: resends the last missing range, once in a recovery. Otherwise only the timer would find the loss of it.
    fn rescue(&mut self, now: Instant, limit: u32) -> Option<Chunk> {
        if self.scoreboard.rescued.is_some_and(|rescued| !self.una.after(rescued)) {
            return None;
        }
        let (from, end) = self.scoreboard.last_gap(self.una, self.max)?;
        self.scoreboard.rescued = Some(self.congestion.recover);
        let len = end.since(from).min(limit);
        Some(self.cut(now, end.minus(len), len as usize))
    }

    /// Below the returned number, everything that was not received is lost.
    pub(crate) fn lost_below(&self) -> Option<Seq> {
        self.scoreboard.lost_below(self.congestion.threshold(), self.mss)
    }

    /// Starts a recovery: the first segment is sent at once, whatever the pipe (RFC 6675, section 5, step 4.3).
    pub(crate) fn begin_sack_recovery(&mut self) {
        if self.congestion.by_sack() && self.congestion.phase == Phase::Begun {
            self.scoreboard.begin();
            self.next = self.max;
        }
    }
}
