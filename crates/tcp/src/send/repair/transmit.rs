//! Per-segment recovery: what is sent next (Linux: `tcp_xmit_retransmit_queue`, `tcp_write_xmit`,
//! `tcp_send_loss_probe`).

use super::f_rto::FRto;
use super::{Repair, Sent, Standing};
use crate::Seq;
use crate::send::timers::Timer;
use crate::send::{Chunk, Errand, Sender};
use wire::Instant;

impl Sender {
    /// Returns the next segment: a tail loss probe if `errand` requests it. Otherwise it is a lost segment, or new
    /// data, if the window has room for it.
    pub(crate) fn transmit(&mut self, now: Instant, limit: u32, errand: Errand) -> Option<Chunk> {
        let mut repair = self.repair.take()?;
        let chunk = match errand {
            Errand::Tail => self.send_probe(now, limit, &mut repair),
            _ => self.transmitted(now, limit, &mut repair),
        };
        self.repair = Some(repair);
        chunk
    }

    fn transmitted(&mut self, now: Instant, limit: u32, repair: &mut Repair) -> Option<Chunk> {
        let (cwnd, flying) = (self.congestion.cwnd / self.mss.max(1), repair.segments.flying());
        let retransmits = repair.forward != FRto::NewData && flying < cwnd;
        if let Some(at) = retransmits.then(|| first_lost(repair)).flatten() {
            return Some(self.send_again(now, at, limit, repair));
        }
        if flying == 0 && repair.segments.len() == 0 && now.since(self.last_sent) > self.rto.current() {
            self.restart(now, repair);
        }
        let room = cwnd.saturating_sub(flying) * self.mss;
        if let Some(len) = self.sendable(limit, room) {
            return Some(self.send_new(now, len, repair));
        }
        let full = flying >= cwnd;
        if full || self.last_sent == now {
            self.use_of_window(now, repair, full);
        }
        if repair.forward == FRto::NewData && !self.max.after(repair.high) {
            repair.forward = FRto::Off; // nothing new could be sent
            return self.transmitted(now, limit, repair);
        }
        None
    }

    fn restart(&mut self, now: Instant, repair: &mut Repair) {
        if self.idle_restart {
            self.congestion.restart(now.since(self.last_sent), self.rto.current());
            (repair.used, repair.used_up) = (0, now);
        }
    }

    fn send_new(&mut self, now: Instant, len: usize, repair: &mut Repair) -> Chunk {
        if repair.segments.len() == 0 {
            self.congestion.cubic.idle(now, now.since(self.last_sent));
        }
        let chunk = self.cut(now, self.next, len);
        let end = ending(&chunk);
        let first = repair.segments.len() == 0;
        repair.segments.push(chunk.seq, end, now);
        repair.prr.out += 1;
        if first || matches!(self.timer, Timer::Tail(_)) {
            self.rearm(now, repair);
        }
        self.watch_tail(now, repair, false);
        chunk
    }

    fn send_again(&mut self, now: Instant, at: usize, limit: u32, repair: &mut Repair) -> Chunk {
        let chunk = self.again(now, at, limit, repair);
        repair.segments.edit(at, |sent| sent.resent = true);
        repair.undo.resent(now);
        repair.prr.out += 1;
        let waits = matches!(self.timer, Timer::Reorder(_));
        if (at == 0 && !waits) || self.timer == Timer::Off {
            self.timer = self.retransmit_after(now);
        }
        chunk
    }

    /// Returns the content of the segment at index `at` of the list, and notes that it is sent again. A segment with
    /// more than `limit` bytes is split.
    fn again(&mut self, now: Instant, at: usize, limit: u32, repair: &mut Repair) -> Chunk {
        let (from, end) = repair.segments.get(at).map_or((self.una, self.una), |sent| (sent.from, sent.end));
        let data = self.data_end(end).since(from);
        let len = data.min(limit);
        if data > limit {
            repair.segments.split(at, from.plus(len));
        }
        let mut chunk = self.cut(now, from, len as usize);
        let last = at + 1 == repair.segments.len() as usize;
        // A FIN that the peer has reported is not sent again with the data before it. Otherwise the peer would report it
        // as a duplicate, and this report would count as one of the data.
        chunk.fin &= last || !repair.segments.last().is_some_and(|fin| fin.sacked);
        let end = ending(&chunk);
        repair.segments.edit(at, |sent| {
            (sent.at, sent.ever_resent) = (now, true);
            if last {
                sent.end = sent.end.latest(end); // the FIN was queued later
            }
        });
        chunk
    }

    /// Sends new data as a tail loss probe, if the peer's window has room, whatever the congestion window. Otherwise
    /// the last segment is sent again (RFC 8985, section 7.3). Returns `None` if a probe is in flight, or nothing is
    /// unacknowledged.
    fn send_probe(&mut self, now: Instant, limit: u32, repair: &mut Repair) -> Option<Chunk> {
        if repair.tail.end.is_some() || repair.segments.len() == 0 {
            self.rearm_from_head(now, repair);
            return None;
        }
        let chunk = if let Some(len) = self.sendable_if(limit, limit, false) {
            repair.tail.again = false;
            let chunk = self.cut(now, self.next, len);
            repair.segments.push(chunk.seq, ending(&chunk), now);
            chunk
        } else {
            let mut last = repair.segments.len() as usize - 1;
            let (from, end) =
                repair.segments.get(last).map_or((self.una, self.una), |sent| (sent.from, sent.end));
            let data = self.data_end(end);
            if data.since(from) > limit {
                repair.segments.split(last, data.minus(limit));
                last += 1;
            }
            repair.tail.again = true;
            self.again(now, last, limit, repair)
        };
        repair.tail.end = Some(self.max);
        self.timer = self.retransmit_after(now);
        Some(chunk)
    }

    /// Returns the end of the data of a segment that ends at `end`. A FIN takes a sequence number, but no byte.
    fn data_end(&self, end: Seq) -> Seq {
        let written = self.una.plus(self.buffer.len() as u32);
        if end.after(written) { written } else { end }
    }

    /// Notes how much of the window is used, when nothing more may be sent. If the window did not limit the sender for
    /// the length of a time-out, it may shrink. `full`: the window has no room for more (Linux: `tcp_cwnd_validate`).
    fn use_of_window(&mut self, now: Instant, repair: &mut Repair, full: bool) {
        let out = repair.segments.len();
        if !self.una.before(repair.usage) || full || (!repair.limited && out > repair.most_out) {
            (repair.limited, repair.most_out, repair.usage) = (full, out, self.max);
        }
        if self.is_limited(repair) {
            (repair.used, repair.used_up) = (0, now);
            return;
        }
        repair.used = repair.used.max(out);
        if self.idle_restart && now.since(repair.used_up) >= self.rto.current() {
            // A sender whose buffer is full is not limited by the application.
            if repair.standing == Standing::Open && self.buffer.len() < self.capacity {
                self.congestion.not_used(repair.used);
            }
            (repair.used, repair.used_up) = (0, now);
        }
    }

    /// Declares lost the segments that are longer than `than` bytes, and enters the state Loss if any segment is lost.
    /// Data that was sent before this sender tracked segments counts as one segment.
    pub(crate) fn lose_longer(&mut self, than: u32) {
        let Some(mut repair) = self.repair.take() else { return };
        let known = repair.segments.last().map_or(self.una, |sent| sent.end);
        if known.before(self.max) {
            repair.segments.push(known, self.max, self.last_sent);
        }
        for at in 0..repair.segments.len() as usize {
            // A FIN alone counts as one byte, so it fits every path. It is declared lost only if `than` is 0.
            let len = |sent: &Sent| self.data_end(sent.end).since(sent.from).max(1);
            if repair.segments.get(at).is_some_and(|sent| len(sent) > than) {
                repair.segments.lose(at);
            }
        }
        if repair.segments.lost() > 0 && repair.standing != Standing::Loss {
            repair.standing = Standing::Loss;
            repair.high = self.max;
            repair.undo.marker = None;
            self.congestion.ssthresh = self.congestion.current_threshold();
        }
        self.next = self.next.latest(self.max);
        self.repair = Some(repair);
    }

    /// Marks all segments as sent again, because another host sent them, and it is not known when and how often. So
    /// their acknowledgments give no round-trip time, unless a timestamp does (Karn's algorithm; RFC 7323, section 4).
    pub(crate) fn forget_when_sent(&mut self) {
        let Some(repair) = &mut self.repair else { return };
        for at in 0..repair.segments.len() as usize {
            repair.segments.edit(at, |sent| sent.ever_resent = true);
        }
    }
}

/// Returns the index of the first segment that is lost and whose retransmission is not in flight.
fn first_lost(repair: &Repair) -> Option<usize> {
    if repair.segments.lost() == repair.segments.resent() {
        return None;
    }
    repair.segments.iter().position(|sent| sent.lost && !sent.resent)
}

const fn ending(chunk: &Chunk) -> Seq {
    chunk.seq.plus(chunk.bytes.end as u32 - chunk.bytes.start as u32 + chunk.fin as u32)
}
