//! The sending half: what may be sent, and again (RFC 9293, section 3.8).

use crate::congestion::Advice;
use crate::{Congestion, Profile, Rto, Seq};
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// RFC 6298, 5.7: the time-out after a handshake whose SYN was lost.
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// The one timer of the sending half: both are never wanted at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// Nothing is waited for.
    Off,
    /// For an acknowledgment (RFC 6298, section 5).
    Retransmit(Instant),
    /// For the window to open (RFC 9293, section 3.8.6.1).
    Persist(Instant),
}

/// Our FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fin {
    /// More may be written.
    No,
    /// It stands after the last byte.
    Queued,
    /// It was acknowledged.
    Acknowledged,
}

/// One segment that goes before all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errand {
    None,
    /// The oldest, again.
    Resend,
    /// A byte beyond the window.
    Probe,
}

/// What a segment is to carry.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) seq: Seq,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fin: bool,
    /// Nothing is left to be sent behind it.
    pub(crate) last: bool,
}

/// Data that is not acknowledged, and the clockwork that gets it to the peer.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// The oldest number that is not acknowledged.
    pub(crate) una: Seq,
    /// What is sent next; a time-out moves it back.
    pub(crate) next: Seq,
    /// The end of all that was ever sent.
    pub(crate) max: Seq,
    /// From `una` on, once the SYN is acknowledged.
    pub(crate) buffer: VecDeque<u8>,
    pub(crate) fin: Fin,
    pub(crate) window: u32,
    pub(crate) largest_window: u32,
    pub(crate) wl1: Seq,
    pub(crate) wl2: Seq,
    pub(crate) scale: u8,
    pub(crate) mss: u32,
    /// What the peer and we agreed on; the path may carry less.
    pub(crate) agreed_mss: u32,
    /// Our SYN is acknowledged.
    pub(crate) open: bool,
    pub(crate) timer: Timer,
    pub(crate) rto: Rto,
    pub(crate) congestion: Congestion,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) capacity: usize,
    pub(crate) nagle: bool,
    idle_restart: bool,
    most: u32,
    /// When something new left, and the number that acknowledges it. Never of what was sent twice (Karn).
    timed: Option<(Instant, Seq)>,
    errand: Errand,
    probes: u32,
    unanswered: u32,
    last_sent: Instant,
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
            open: false,
            timer: Timer::Off,
            rto: Rto::new(profile.rto_bounds()),
            congestion: Congestion::new(profile, mss, iss),
            retransmissions: 0,
            timeouts: 0,
            fast_retransmits: 0,
            capacity: profile.send_buffer as usize,
            nagle: profile.nagle,
            idle_restart: profile.idle_restart,
            most: profile.max_retransmissions,
            timed: None,
            errand: Errand::None,
            probes: 0,
            unanswered: 0,
            last_sent: Instant::ZERO,
        }
    }

    /// Sets the largest payload, as the path has it.
    pub(crate) fn path_mss(&mut self, mss: u32) {
        let mss = mss.min(self.agreed_mss).max(1);
        let lower = mss < std::mem::replace(&mut self.mss, mss);
        self.congestion.resize(mss);
        if lower && self.open && self.flight() > 0 {
            self.next = self.una;
            self.timed = None;
            self.timer = Timer::Off; // sending starts it anew
        }
    }

    /// Bytes that `write` would take.
    pub(crate) fn room(&self) -> usize {
        if self.fin == Fin::No { self.capacity.saturating_sub(self.buffer.len()) } else { 0 }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.get(..self.room()).unwrap_or(bytes);
        self.buffer.extend(taken);
        taken.len()
    }

    pub(crate) const fn flight(&self) -> u32 {
        self.max.since(self.una)
    }

    // --- the handshake ---------------------------------------------------------------------------------------------

    /// The SYN leaves, for the first time or again.
    pub(crate) fn syn_sent(&mut self, now: Instant) {
        let again = self.max != self.una;
        self.next = self.una.plus(1);
        self.max = self.next;
        self.timed = if again { None } else { Some((now, self.max)) };
        self.retransmissions += u64::from(again);
        self.last_sent = now;
        self.timer = Timer::Retransmit(now + self.rto.current());
    }

    /// The SYN is acknowledged. It does not open the congestion window (RFC 5681, section 3.1).
    pub(crate) fn opened(&mut self, now: Instant, profile: &Profile) {
        self.open = true;
        self.congestion = Congestion::new(profile, self.mss, self.una);
        self.una = self.una.plus(1);
        self.next = self.una;
        self.max = self.una;
        self.timer = Timer::Off;
        if self.unanswered > 0 {
            self.rto.at_least(AFTER_LOST_SYN);
            self.congestion.lost_syn();
        }
        self.unanswered = 0;
        self.measure(now);
    }

    fn measure(&mut self, now: Instant) {
        if let Some((sent, _)) = self.timed.take_if(|(_, end)| !end.after(self.una)) {
            self.rto.sample(now.since(sent));
        }
    }

    // --- acknowledgments -------------------------------------------------------------------------------------------

    /// The peer acknowledges all below `ack`, which lies in `una..=max`, and has room for `window` bytes. `pure` says
    /// that the segment carried nothing.
    pub(crate) fn acknowledge(&mut self, now: Instant, seq: Seq, ack: Seq, window: u32, pure: bool) {
        self.unanswered = 0;
        let same_window = window == self.window;
        // RFC 9293, section 3.10.7.4: not from a segment older than the one before.
        if self.wl1.before(seq) || (self.wl1 == seq && !ack.before(self.wl2)) {
            (self.window, self.wl1, self.wl2) = (window, seq, ack);
            self.largest_window = self.largest_window.max(window);
        }
        if ack.after(self.una) {
            self.advance(now, ack);
        } else if pure && same_window && self.flight() > 0 && !matches!(self.timer, Timer::Persist(_)) {
            // RFC 5681, section 2: the five conditions of a duplicate. An answer to a probe looks the same.
            let advice = self.congestion.duplicate(self.una, self.max, self.window);
            self.fast_retransmits += u64::from(advice == Advice::Resend);
            self.follow(advice);
        }
    }

    fn advance(&mut self, now: Instant, ack: Seq) {
        let acked = ack.since(self.una);
        let data = self.buffer.len().min(acked as usize);
        self.buffer.drain(..data);
        if acked as usize > data && self.fin == Fin::Queued {
            self.fin = Fin::Acknowledged;
        }
        self.una = ack;
        self.next = self.next.latest(ack);
        self.probes = 0;
        self.measure(now);
        let advice = self.congestion.new_ack(ack, acked, self.flight());
        // RFC 6298, 5.2 and 5.3.
        if self.flight() == 0 {
            self.timer = Timer::Off;
        } else if advice != Advice::ResendOnly {
            self.timer = Timer::Retransmit(now + self.rto.current());
        }
        self.follow(advice);
    }

    fn follow(&mut self, advice: Advice) {
        match advice {
            Advice::Continue => {}
            Advice::Resend => {
                self.errand = Errand::Resend;
                self.timer = Timer::Off; // sending starts it anew
            }
            Advice::ResendOnly => self.errand = Errand::Resend,
        }
    }

    // --- timers ----------------------------------------------------------------------------------------------------

    /// The timer went off, if it was due. Says whether the peer has been silent for too long.
    pub(crate) fn timeout(&mut self, now: Instant) -> bool {
        match self.timer {
            Timer::Retransmit(at) if at <= now => {
                let first = self.unanswered == 0;
                if self.open {
                    self.congestion.timeout(self.una, self.max, self.window, first);
                    self.next = self.una; // all again, as slow start permits
                }
                self.rto.back_off();
                self.timeouts += 1;
                self.timed = None;
                self.errand = Errand::None;
            }
            Timer::Persist(at) if at <= now => {
                self.errand = Errand::Probe;
                self.probes += 1;
            }
            _ => return false,
        }
        self.timer = Timer::Off;
        self.unanswered += 1;
        self.unanswered > self.most
    }

    /// After all that could be sent was sent: if data waits for the window alone, probe it some day.
    pub(crate) fn watch_window(&mut self, now: Instant) {
        if self.open && self.timer == Timer::Off && self.next == self.una && self.total() > 0 {
            self.timer = Timer::Persist(now + self.persist());
        }
    }

    /// Each probe waits twice as long as the one before (RFC 9293, section 3.8.6.1).
    fn persist(&self) -> Duration {
        self.rto.after(self.probes)
    }

    // --- sending ---------------------------------------------------------------------------------------------------

    /// Numbers from `una` to the end of what was written, the FIN included.
    fn total(&self) -> usize {
        self.buffer.len() + usize::from(self.fin == Fin::Queued)
    }

    /// What to send next; `None` when there is nothing, or it may not be sent.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Chunk> {
        if !self.open || self.total() == 0 {
            return None;
        }
        match std::mem::replace(&mut self.errand, Errand::None) {
            Errand::Resend if self.flight() > 0 => {
                let sent = self.flight().min(self.mss);
                return Some(self.cut(now, self.una, sent as usize));
            }
            Errand::Probe if self.next == self.una => return Some(self.probe(now)),
            _ => {}
        }
        let idle = self.flight() == 0 && now.since(self.last_sent) > self.rto.current();
        if self.idle_restart && idle {
            self.congestion.idle();
        }
        let len = self.sendable()?;
        Some(self.cut(now, self.next, len))
    }

    /// How many bytes may go from `next` on; a FIN alone is `Some(0)`. Sender SWS avoidance and Nagle: RFC 9293,
    /// sections 3.8.6.2.1 and 3.7.4.
    fn sendable(&self) -> Option<usize> {
        let sent = self.next.since(self.una);
        let room = self.congestion.cwnd().min(self.window).saturating_sub(sent) as usize;
        let left = self.buffer.len().saturating_sub(sent as usize);
        let len = left.min(room).min(self.mss as usize);
        let fin = self.fin == Fin::Queued && sent as usize + len == self.buffer.len() && room > len;
        let again = self.next.before(self.max);
        let quiet = self.next == self.una || again || !self.nagle || self.fin == Fin::Queued;
        let full = len == self.mss as usize;
        let worth = full || (len == left && quiet) || len >= (self.largest_window / 2).max(1) as usize;
        (fin || (len > 0 && worth)).then_some(len)
    }

    /// The segment from `seq` on, with the FIN if it ends there.
    fn cut(&mut self, now: Instant, seq: Seq, len: usize) -> Chunk {
        let from = seq.since(self.una) as usize;
        let to = self.buffer.len().min(from + len);
        let bytes = copied(&self.buffer, from, to);
        let fin = self.fin == Fin::Queued && to == self.buffer.len() && bytes.len() <= len;
        let end = seq.plus(bytes.len() as u32 + u32::from(fin));
        if seq.before(self.max) {
            self.retransmissions += 1;
            self.timed = None;
        } else {
            self.timed.get_or_insert((now, end));
        }
        self.next = self.next.latest(end);
        self.max = self.max.latest(end);
        self.last_sent = now;
        self.probes = 0;
        if !matches!(self.timer, Timer::Retransmit(_)) {
            self.timer = Timer::Retransmit(now + self.rto.current());
        }
        Chunk { seq, bytes, fin, last: end.since(self.una) as usize == self.total() }
    }

    /// One byte into a closed window, or what a small one takes (RFC 9293, section 3.8.6.1).
    fn probe(&mut self, now: Instant) -> Chunk {
        let len = (self.window.max(1) as usize).min(self.mss as usize).min(self.buffer.len());
        let bytes = copied(&self.buffer, 0, len);
        let fin = bytes.is_empty();
        // The peer may take it, and acknowledge it; until then it counts as not sent.
        self.max = self.max.latest(self.una.plus(bytes.len() as u32 + u32::from(fin)));
        self.timed = None;
        self.timer = Timer::Persist(now + self.persist());
        Chunk { seq: self.una, bytes, fin, last: true }
    }

    /// The number of a segment without data: the peer must find it in its window, or it would not read the
    /// acknowledgment.
    pub(crate) fn bare(&self) -> Seq {
        if self.open { self.una.plus(self.flight().min(self.window)) } else { self.max }
    }
}

fn copied(buffer: &VecDeque<u8>, from: usize, to: usize) -> Vec<u8> {
    let (head, tail) = buffer.as_slices();
    let mut bytes = Vec::with_capacity(to.saturating_sub(from));
    bytes.extend_from_slice(head.get(from..to.min(head.len())).unwrap_or_default());
    let from = from.saturating_sub(head.len());
    bytes.extend_from_slice(tail.get(from..to.saturating_sub(head.len())).unwrap_or_default());
    bytes
}
