//! The sending half of a connection: which data may be sent and resent (RFC 9293, section 3.8). Other parts of the
//! sending half are `acknowledge.rs` (acknowledgments), `timers.rs` (timers), `sack_recovery.rs` (recovery with SACK)
//! and `repair/` (recovery per segment).

pub(crate) mod acknowledge;
pub(crate) mod repair;
pub(crate) mod sack_recovery;
pub(crate) mod timers;

use crate::congestion::Congestion;
use crate::estimator::Clockwork;
use crate::scoreboard::Scoreboard;
use crate::send::timers::{Timer, patience};
use crate::{Profile, Repair, Seq, Timing, TooBig};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use wire::{Duration, Instant};

/// The state of this end's FIN (RFC 9293, section 3.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fin {
    /// The stream is open: more may be written.
    No,
    /// The FIN follows the last byte, sent or not; it is not acknowledged.
    Queued,
    /// The FIN was acknowledged.
    Acknowledged,
}

/// A segment that is to be sent before all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Errand {
    /// No segment has precedence.
    #[default]
    None,
    /// The first unacknowledged segment is to be sent again.
    Resend,
    /// A probe of a closed window is to be sent (RFC 9293, section 3.8.6.1).
    Probe,
    /// A tail loss probe is to be sent (RFC 8985, section 7.3).
    Tail,
}

/// The content of a segment to be sent.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) seq: Seq,
    /// The range of the payload in the send buffer.
    pub(crate) bytes: Range<usize>,
    pub(crate) fin: bool,
    /// Whether the segment ends the written data, or is a window probe: with payload, it gets the flag PSH.
    pub(crate) last: bool,
}

/// The sending half: data that is not acknowledged, and the state of its transmission.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each has an independent meaning")]
pub(crate) struct Sender {
    /// `SND.UNA`: the oldest sequence number that is not acknowledged.
    pub(crate) una: Seq,
    /// `SND.NXT`: the next number to be sent. Without per-segment recovery, a time-out moves it back to `una`.
    pub(crate) next: Seq,
    /// The sequence number after all that was ever sent.
    pub(crate) max: Seq,
    /// Written data from `una` on, once the SYN is acknowledged.
    pub(crate) buffer: VecDeque<u8>,
    pub(crate) fin: Fin,
    pub(crate) window: u32,
    pub(crate) largest_window: u32,
    pub(crate) wl1: Seq,
    pub(crate) wl2: Seq,
    pub(crate) scale: u8,
    /// The largest payload of a segment now, in bytes.
    pub(crate) mss: u32,
    /// The largest payload that both ends agreed on, including `overhead`, in bytes. The path may permit less.
    pub(crate) agreed_mss: u32,
    /// The options that each segment carries, in bytes; they reduce the payload (RFC 6691).
    pub(crate) overhead: u32,
    /// Whether our SYN is acknowledged.
    pub(crate) open: bool,
    pub(crate) timer: Timer,
    pub(crate) rto: Clockwork,
    pub(crate) congestion: Congestion,
    pub(crate) scoreboard: Scoreboard,
    /// Whether recovery is per segment. Then `repair` is `Some`, and data uses neither the scoreboard nor `timed`.
    pub(crate) tracked: bool,
    pub(crate) repair: Option<Box<Repair>>,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) probes_sent: u64,
    /// The segment whose round trip is measured: when it was sent, and the sequence number that acknowledges it. Data
    /// that was sent twice is not measured (Karn's algorithm).
    pub(crate) timed: Option<(Instant, Seq)>,
    pub(crate) errand: Errand,
    /// The number of probes of a closed window in a row.
    pub(crate) probes: u32,
    /// The number of time-outs and probes in a row without an answer. Time-outs that an ICMP report undid do not count,
    /// but then the number stays at least 1.
    pub(crate) unanswered: u32,
    /// When an ICMP report first undid a doubling of the time-out since the peer's last answer (RFC 6069).
    pub(crate) spared: Option<Instant>,
    pub(crate) last_sent: Instant,
    pub(crate) timing: Timing,
    pub(crate) persist: (Duration, Duration),
    pub(crate) most: u32,
    /// The time after which a silent peer is given up if ICMP reports undo its time-outs (RFC 9293, section 3.8.3: R2).
    pub(crate) patience: Duration,
    pub(crate) capacity: usize,
    pub(crate) nagle: bool,
    minshall: bool,
    /// The limit of the send buffer is rounded up to a multiple of this number, in bytes. The number does not change
    /// with the path, because an application may already count on the room.
    write_unit: usize,
    whole_writes: bool,
    /// The end of the last segment that was sent for the first time with less than a full payload; `None` if there was
    /// none (Minshall's variant of Nagle).
    pub(crate) small: Option<Seq>,
    pub(crate) idle_restart: bool,
    too_big: TooBig,
}

impl Sender {
    pub(crate) fn new(profile: &Profile, iss: Seq) -> Self {
        let mss = u32::from(profile.mss).max(1);
        Self {
            una: iss,
            next: iss,
            max: iss,
            buffer: VecDeque::new(),
            fin: Fin::No,
            window: 0,
            largest_window: 0,
            wl1: Seq(0),
            wl2: iss,
            scale: 0,
            mss,
            agreed_mss: mss,
            overhead: 0,
            open: false,
            timer: Timer::Off,
            rto: Clockwork::new(profile),
            congestion: Congestion::new(profile, mss, iss, false),
            scoreboard: Scoreboard::default(),
            tracked: false,
            repair: None,
            retransmissions: 0,
            timeouts: 0,
            fast_retransmits: 0,
            probes_sent: 0,
            timed: None,
            errand: Errand::None,
            probes: 0,
            unanswered: 0,
            spared: None,
            last_sent: Instant::ZERO,
            timing: profile.timing,
            persist: (profile.persist_min, profile.persist_max.max(profile.persist_min)),
            most: profile.max_retransmissions,
            patience: patience(profile),
            capacity: profile.send_buffer as usize,
            nagle: profile.nagle,
            minshall: profile.minshall,
            write_unit: if profile.whole_writes { mss as usize } else { 1 },
            whole_writes: profile.whole_writes,
            small: None,
            idle_restart: profile.idle_restart,
            too_big: profile.too_big,
        }
    }

    /// Sets what the handshake agreed on: the largest payload, and the length of the options that each segment carries.
    pub(crate) fn agree(&mut self, mss: u32, overhead: u32) {
        (self.agreed_mss, self.overhead) = (mss, overhead);
        self.mss = mss.saturating_sub(overhead).max(1);
        self.write_unit = if self.whole_writes { self.mss as usize } else { 1 };
        self.congestion.resize(self.mss);
    }

    /// Sets the largest segment that the path carries, in bytes: options and payload.
    pub(crate) fn path_mss(&mut self, mss: u32) {
        let mss = mss.min(self.agreed_mss).saturating_sub(self.overhead).max(1);
        let before = std::mem::replace(&mut self.mss, mss);
        let lower = mss < before;
        if let Some(repair) = &mut self.repair {
            self.congestion.resize_in_segments(mss);
            repair.undo.resize(before, mss);
        } else {
            self.congestion.resize(mss);
        }
        if lower && self.open && self.flight() > 0 && self.too_big == TooBig::ResendAtOnce {
            if self.tracked {
                self.lose_longer(mss);
                return;
            }
            self.go_back();
            if self.congestion.by_sack() {
                self.congestion.sent_again(self.max);
            }
        }
    }

    /// Prepares to resend all unacknowledged data, as the window permits. The first of these segments restarts the
    /// timer.
    pub(crate) const fn go_back(&mut self) {
        self.next = self.una;
        self.timed = None;
        self.timer = Timer::Off;
    }

    /// Returns the number of bytes that `write` would take.
    pub(crate) fn room(&self) -> usize {
        let whole = self.capacity.next_multiple_of(self.write_unit);
        if self.fin == Fin::No { whole.saturating_sub(self.buffer.len()) } else { 0 }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        self.buffer.extend(taken);
        taken.len()
    }

    /// Returns a range of the send buffer. The bytes are copied only if the range crosses the end of the ring buffer.
    pub(crate) fn bytes(&self, Range { start, end }: Range<usize>) -> Cow<'_, [u8]> {
        let (head, tail) = self.buffer.as_slices();
        let behind = |at: usize| at.checked_sub(head.len());
        let within = match (behind(start), behind(end)) {
            (Some(start), Some(end)) => tail.get(start..end),
            _ => head.get(start..end),
        };
        within.map_or_else(|| copied(&self.buffer, start, end).into(), Cow::Borrowed)
    }

    pub(crate) const fn flight(&self) -> u32 {
        self.max.since(self.una)
    }

    /// Checks that the sequence numbers are in order, and that all data in flight is held.
    ///
    /// # Panics
    ///
    /// If they are not in order, or data in flight is not held.
    pub(crate) fn check(&self) {
        let Self { una, next, max, .. } = *self;
        assert!(
            !una.after(next) && !next.after(max),
            "not in order: una {una:?}, next {next:?}, max {max:?}"
        );
        // A SYN or a FIN takes a number without a byte.
        let (flight, held) = (self.flight(), self.buffer.len() + 1);
        assert!(
            flight as usize <= held,
            "{flight} sequence numbers are in flight, but at most {held} can be"
        );
    }

    // --- the handshake ---------------------------------------------------------------------------------------------

    /// Notes that the SYN is sent, for the first time or again.
    pub(crate) fn syn_sent(&mut self, now: Instant) {
        let again = self.max != self.una;
        self.next = self.una.plus(1);
        self.max = self.next;
        self.timed = if again { None } else { Some((now, self.max)) };
        self.retransmissions += u64::from(again);
        self.last_sent = now;
        self.timer = self.retransmit_after(now);
    }

    /// Prepares to send data after the SYN is acknowledged. The SYN does not grow the congestion window (RFC 5681,
    /// section 3.1).
    pub(crate) fn opened(&mut self, now: Instant, profile: &Profile, sack: bool, echoed: Option<Instant>) {
        self.open = true;
        self.congestion = Congestion::new(profile, self.mss, self.una, sack);
        self.una = self.una.plus(1);
        self.repair = Repair::new(profile, self.una).filter(|_| sack);
        self.tracked = self.repair.is_some();
        self.next = self.una;
        self.max = self.una;
        self.timer = Timer::Off;
        if self.unanswered > 0 {
            self.rto.lost_syn();
            if self.unanswered >= profile.lost_syns {
                self.congestion.lost_syn();
            }
        }
        self.unanswered = 0;
        let rtt = self.measure(now, echoed);
        if let Some((repair, rtt)) = self.repair.as_mut().zip(rtt) {
            repair.measured(rtt);
        }
    }

    // --- sending ---------------------------------------------------------------------------------------------------

    /// Returns how many sequence numbers the written data takes from `una` on, including an unacknowledged FIN.
    pub(crate) fn total(&self) -> usize {
        self.buffer.len() + usize::from(self.fin == Fin::Queued)
    }

    /// Returns the content of the next segment, which counts as sent from then on. Returns `None` if there is nothing
    /// to send, or if it may not be sent now. `options` is the length, in bytes, of the options that only some segments
    /// carry.
    pub(crate) fn next(&mut self, now: Instant, options: u32) -> Option<Chunk> {
        if !self.open || self.total() == 0 {
            return None;
        }
        let limit = self.mss.saturating_sub(options).max(1);
        let before = self.max;
        let chunk = self.choose(now, limit)?;
        let len = chunk.bytes.len() as u32;
        if chunk.seq == before && len < limit {
            self.small = Some(before.plus(len));
        }
        Some(chunk)
    }

    fn choose(&mut self, now: Instant, limit: u32) -> Option<Chunk> {
        match std::mem::take(&mut self.errand) {
            Errand::Resend if self.flight() > 0 => return Some(self.resend(now, self.una, self.max, limit)),
            Errand::Probe if self.next == self.una => return Some(self.probe(now)),
            errand if self.tracked => return self.transmit(now, limit, errand),
            _ => {}
        }
        if self.congestion.by_sack() && self.congestion.recovering() {
            return self.next_in_recovery(now, limit);
        }
        let idle = self.flight() == 0 && now.since(self.last_sent) > self.rto.current();
        if self.idle_restart && idle {
            self.congestion.idle(now, now.since(self.last_sent));
        }
        self.next = self.scoreboard.skip(self.next);
        let len = self.sendable(limit, self.allowed())?;
        Some(self.cut(now, self.next, len))
    }

    /// Returns the room in the congestion window, in bytes.
    fn allowed(&self) -> u32 {
        let again = self.next.before(self.max);
        let extra = if again || self.congestion.by_sack() { 0 } else { self.congestion.allowance() };
        // The peer may hold data beyond a gap. In a retransmission, such data is not in flight (RFC 6675, section 5.1).
        // Before a retransmission, it counts as in flight, unless limited transmit lets new segments be sent.
        let there =
            if again || self.congestion.allowance() > 0 { self.scoreboard.below(self.next) } else { 0 };
        let out = self.next.since(self.una) - there;
        self.congestion.cwnd.saturating_add(extra).saturating_sub(out)
    }

    /// Returns the number of bytes that may be sent from `next` on, at most `limit`, if the congestion window has room
    /// for `allowed`. `Some(0)` is a FIN alone, and `None` means that nothing may be sent. The rules are sender SWS
    /// avoidance and Nagle (RFC 9293, sections 3.8.6.2.1 and 3.7.4). If these rules make data wait while nothing is in
    /// flight, the persist timer overrides them.
    pub(crate) fn sendable(&self, limit: u32, allowed: u32) -> Option<usize> {
        let waits = self.nagle && (!self.minshall || self.small.is_some_and(|end| end.after(self.una)));
        self.sendable_if(limit, allowed, waits)
    }

    /// Returns the same number as [`Self::sendable`]. `waits`: a small segment waits while data is unacknowledged.
    pub(crate) fn sendable_if(&self, limit: u32, allowed: u32, waits: bool) -> Option<usize> {
        let sent = self.next.since(self.una);
        let room = allowed.min(self.window.saturating_sub(sent)) as usize;
        let left = self.buffer.len().saturating_sub(sent as usize);
        let again = self.next.before(self.max);
        let gap = self.scoreboard.gap(self.next, self.una.plus(self.total() as u32)) as usize;
        let len = left.min(room).min(limit as usize).min(gap);
        let fin = self.fin == Fin::Queued && sent as usize + len == self.buffer.len() && room > len;
        let quiet = self.next == self.una || again || !waits || self.fin == Fin::Queued;
        let whole = len == left || (again && len == gap);
        let full = len == limit as usize;
        let worth = full || (whole && quiet) || len >= (self.largest_window / 2).max(1) as usize;
        (fin || (len > 0 && worth)).then_some(len)
    }

    /// Resends at most `limit` sequence numbers from `seq` on: no data that the peer has, and no data from `end` on.
    pub(crate) fn resend(&mut self, now: Instant, seq: Seq, end: Seq, limit: u32) -> Chunk {
        let len = self.scoreboard.gap(seq, end).min(limit);
        let chunk = self.cut(now, seq, len as usize);
        if self.congestion.by_sack() {
            self.scoreboard.resent = Some(seq.plus(len));
        }
        chunk
    }

    /// Makes the segment of `len` bytes from `seq` on, and notes it as sent. The segment has the FIN if it reaches the
    /// end of the data.
    pub(crate) fn cut(&mut self, now: Instant, seq: Seq, len: usize) -> Chunk {
        let from = seq.since(self.una) as usize;
        let to = self.buffer.len().min(from + len);
        let bytes = from.min(to)..to;
        let fin = self.fin == Fin::Queued && to == self.buffer.len() && bytes.len() <= len;
        let end = seq.plus(bytes.len() as u32 + u32::from(fin));
        if seq.before(self.max) {
            self.retransmissions += 1;
            self.timed = None;
        } else if !self.tracked {
            self.timed.get_or_insert((now, end));
        }
        self.next = self.next.latest(end);
        self.max = self.max.latest(end);
        self.last_sent = now;
        self.probes = 0;
        if !self.tracked && !matches!(self.timer, Timer::Retransmit(_)) {
            self.timer = self.retransmit_after(now);
        }
        Chunk { seq, bytes, fin, last: end.since(self.una) as usize == self.total() }
    }

    /// Sends a probe: one byte if the peer's window is closed, or the data that a small window takes (RFC 9293, section
    /// 3.8.6.1). Without data, it sends the FIN.
    fn probe(&mut self, now: Instant) -> Chunk {
        let len = (self.window.max(1) as usize).min(self.mss as usize).min(self.buffer.len());
        let bytes = 0..len;
        let fin = bytes.is_empty();
        // The peer may accept and acknowledge the probe, so `max` includes its data. `next` does not, so the data
        // counts as not sent.
        self.max = self.max.latest(self.una.plus(bytes.len() as u32 + u32::from(fin)));
        self.timed = None;
        self.probes_sent += 1;
        self.timer = self.persist_after(now);
        Chunk { seq: self.una, bytes, fin, last: true }
    }

    /// Returns the sequence number of a segment without data. It must be in the peer's window. Otherwise the peer would
    /// ignore the acknowledgment.
    pub(crate) fn bare(&self) -> Seq {
        if self.open { self.una.plus(self.flight().min(self.window)) } else { self.max }
    }
}

pub(crate) fn copied(buffer: &VecDeque<u8>, from: usize, to: usize) -> Vec<u8> {
    let (head, tail) = buffer.as_slices();
    let mut bytes = Vec::with_capacity(to.saturating_sub(from));
    bytes.extend_from_slice(head.get(from..to.min(head.len())).unwrap_or_default());
    let from = from.saturating_sub(head.len());
    bytes.extend_from_slice(tail.get(from..to.saturating_sub(head.len())).unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "una Seq(9), next Seq(8), max Seq(9)")]
    fn the_numbers_are_in_order() {
        let mut sender = Sender::new(&Profile::rfc6298_reno(), Seq(9));
        sender.next = Seq(8);
        sender.check();
    }

    #[test]
    #[should_panic(expected = "3 sequence numbers are in flight, but at most 2 can be")]
    fn what_is_in_flight_is_held() {
        let mut sender = Sender::new(&Profile::rfc6298_reno(), Seq(9));
        sender.write(b"a");
        (sender.next, sender.max) = (Seq(12), Seq(12));
        sender.check();
    }
}
