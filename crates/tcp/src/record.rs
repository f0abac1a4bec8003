//! A whole connection in any state as plain data. It can continue exactly as before, for example at another host.

use crate::congestion::Congestion;
use crate::estimator::Clockwork;
use crate::growth::Growth;
use crate::options;
use crate::receive::Receiver;
use crate::send::Sender;
use crate::{
    Challenge, Clocks, Connection, Cubic, Ended, Errand, Fin, Phase, Profile, Repair, RoundTrip, Segment,
    Seq, State, Timer,
};
use wire::{Instant, SocketAddrV4};

/// A connection as plain data. Its instants are times of the run, which all hosts share. Parameters that it does not
/// contain are those of the [`Profile`] of the host that continues. With the same profile, the connection continues
/// exactly as without a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionRecord {
    /// The address and port of this end.
    pub local: SocketAddrV4,
    /// The peer's address and port.
    pub remote: SocketAddrV4,
    /// The state of the connection (RFC 9293, section 3.3.2).
    pub state: State,
    /// Why the connection is closed; `None` while it is not.
    pub ended: Option<Ended>,
    /// The sequence number of the peer's SYN; zero before it arrives.
    pub irs: Seq,
    /// Whether both ends support selective acknowledgments; false before the peer's SYN arrives.
    pub sack: bool,
    /// The state of the timestamps; `None` if they are not used.
    pub clocks: Option<Clocks>,
    /// When TIME-WAIT ends; `None` in other states.
    pub time_wait: Option<Instant>,
    /// Whether a SYN is to be sent.
    pub syn_due: bool,
    /// The reset that is to be sent; `None` if there is none.
    pub reset: Option<Segment<'static>>,
    /// The count of challenge acknowledgments, for their limit (RFC 5961, section 7).
    pub challenge: Challenge,
    /// The sending half of the connection.
    pub send: Sending,
    /// The receiving half of the connection.
    pub receive: Receiving,
}

/// The sending half of a connection. Names are those of RFC 9293, section 3.3.1, RFC 5681 and RFC 6675.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sending {
    /// Whether this end's SYN is acknowledged.
    pub open: bool,
    /// `SND.UNA`: the oldest sequence number that is not acknowledged. Once the SYN is acknowledged, it is the number
    /// of the first of `bytes`.
    pub una: Seq,
    /// `SND.NXT`: the next sequence number to be sent. Without per-segment recovery, a time-out moves it back to `una`.
    pub next: Seq,
    /// The sequence number after all that was ever sent, with SYN, FIN and probes (`HighData` of RFC 6675, plus one).
    pub max: Seq,
    /// Bytes that were written and are not acknowledged: first those that were sent, then the unsent ones.
    pub bytes: Vec<u8>,
    /// The size of the send buffer, in bytes.
    pub capacity: u64,
    /// Whether small segments wait while data is unacknowledged (Nagle). With the profile's `minshall`, they wait only
    /// while another small segment is unacknowledged.
    pub nagle: bool,
    /// The end of the last segment that was sent for the first time with less than a full payload; `None` if there was
    /// none. Minshall's variant of Nagle uses it.
    pub small: Option<Seq>,
    /// Whether this end has finished, and whether its FIN was acknowledged.
    pub fin: Fin,
    /// `SND.WND`: the window that the peer announced last, in bytes.
    pub window: u32,
    /// The largest value that `window` ever had, in bytes.
    pub largest_window: u32,
    /// `SND.WL1`: the sequence number of the segment that announced `window`.
    pub window_seq: Seq,
    /// `SND.WL2`: the acknowledgment number of the segment that announced `window`.
    pub window_ack: Seq,
    /// The window shift of the peer, from 0 to 14: the number of bits by which its window fields are shifted left.
    pub scale: u8,
    /// The largest payload that both ends agreed on, in bytes. The options that each segment carries are not
    /// subtracted.
    pub agreed_mss: u32,
    /// The largest payload now, in bytes, without the options that each segment carries. The path may permit less than
    /// both ends agreed on.
    pub mss: u32,
    /// The timer of the sending half that runs now.
    pub timer: Timer,
    /// The state of the round-trip estimator.
    pub round_trip: RoundTrip,
    /// The segment whose round trip is measured: when it was sent, and the sequence number that acknowledges it. `None`
    /// if no round trip is measured.
    pub timed: Option<(Instant, Seq)>,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The initial window, in bytes. With the profile's `idle_restart`, a long idle time reduces a larger window
    /// towards it.
    pub initial_window: u32,
    /// The slow start threshold, in bytes.
    pub ssthresh: u32,
    /// The number of duplicate acknowledgments in a row. Per-segment recovery counts none.
    pub duplicates: u32,
    /// The phase of fast recovery.
    pub phase: Phase,
    /// The end of the data sent when the last recovery or time-out began (`RecoveryPoint` of RFC 6675). With
    /// [`Recovery::Sack`](crate::Recovery::Sack), also when data was sent again for a smaller path MTU. At first it is
    /// the sequence number of this end's SYN. Recovery per segment does not change it.
    pub recover: Seq,
    /// The scoreboard: the ranges that the peer received beyond gaps, half-open and ascending.
    pub received: Vec<(Seq, Seq)>,
    /// The end of the last retransmission of this recovery, other than the rescue retransmission (`HighRxt` of RFC
    /// 6675); `None` before the first retransmission.
    pub resent: Option<Seq>,
    /// The recovery point when the rescue retransmission was sent (`RescueRxt` of RFC 6675); `None` before.
    pub rescued: Option<Seq>,
    /// The state of per-segment recovery; `None` if recovery is not per segment.
    pub repair: Option<Box<Repair>>,
    /// The state of CUBIC.
    pub cubic: Cubic,
    /// Per-segment recovery: the number of acknowledged segments that have not raised the window yet. Otherwise zero.
    pub counted: u32,
    /// The segment that is to be sent before all others.
    pub errand: Errand,
    /// The number of probes of a closed window in a row.
    pub probes: u32,
    /// The number of time-outs and probes in a row without an answer. Time-outs that an ICMP report undid do not count,
    /// but then the number stays at least 1.
    pub unanswered: u32,
    /// When an ICMP report first undid a doubling of the time-out since the peer's last answer (RFC 6069). `None` if no
    /// report did.
    pub spared: Option<Instant>,
    /// When a SYN, data or a FIN was last sent, without window probes.
    pub last_sent: Instant,
    /// Four counters: segments sent again, time-outs, fast retransmits, window probes.
    pub counts: [u64; 4],
}

/// The receiving half of a connection: received data, the announced window, and the acknowledgments that are due.
/// Names are those of RFC 9293, section 3.3.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiving {
    /// `RCV.NXT`: the next sequence number expected.
    pub next: Seq,
    /// The end of the window that was announced: `RCV.NXT` + `RCV.WND`.
    pub edge: Seq,
    /// The window shift of this end, from 0 to 14: the number of bits by which its window fields are shifted right.
    pub scale: u8,
    /// Bytes that arrived in order and were not read.
    pub unread: Vec<u8>,
    /// The size of the receive buffer, in bytes.
    pub capacity: u32,
    /// The state of the window's growth; `None`: the window does not grow.
    pub growth: Option<Growth>,
    /// Whether everything up to the peer's FIN has arrived.
    pub finished: bool,
    /// The sequence number of the peer's FIN; `None` if it is not known.
    pub fin: Option<Seq>,
    /// Pieces of data beyond gaps, each with the sequence number of its first byte.
    pub beyond: Vec<(Seq, Vec<u8>)>,
    /// The sequence numbers at which data beyond gaps last arrived, the most recent first.
    pub recent: Vec<Seq>,
    /// The number of data segments that arrived in order, and for which no acknowledgment was sent.
    pub waiting: u32,
    /// How many of the next data segments are to be acknowledged at once.
    pub quick: u32,
    /// When data last arrived in order; `None` if none has.
    pub last: Option<Instant>,
    /// Whether an acknowledgment is due.
    pub due: bool,
    /// The number of acknowledgments due that must be segments without data.
    pub duplicates: u32,
    /// When the delayed acknowledgment is to be sent; `None` if none waits.
    pub delayed: Option<Instant>,
    /// The range of data that arrived twice and is not reported yet (RFC 2883). `None` if there is none, or without the
    /// profile's `dsack`.
    pub duplicate: Option<(Seq, Seq)>,
}

impl Connection {
    /// Returns the whole connection as plain data. If another host continues it, the caller must not poll `self`
    /// afterwards. Otherwise two hosts would send for one connection.
    pub fn record(&self) -> ConnectionRecord {
        ConnectionRecord {
            local: self.local,
            remote: self.remote,
            state: self.state,
            ended: self.ended,
            irs: self.irs,
            sack: self.sack,
            clocks: self.clocks,
            time_wait: self.time_wait,
            syn_due: self.syn_due,
            reset: self.reset.clone(),
            challenge: self.challenge,
            send: self.send.record(),
            receive: self.receive.record(),
        }
    }

    /// Continues a recorded connection with the parameters of `profile`. Returns `None` if the record contradicts
    /// itself, as one from a network may.
    pub fn resume(record: ConnectionRecord, profile: &Profile) -> Option<Self> {
        if !record.is_consistent() {
            return None;
        }
        let mut connection = Self::new(record.local, record.remote, record.send.una, profile);
        connection.state = record.state;
        connection.ended = record.ended;
        connection.irs = record.irs;
        connection.sack = record.sack;
        connection.clocks = record.clocks;
        connection.time_wait = record.time_wait;
        connection.syn_due = record.syn_due;
        connection.reset = record.reset;
        connection.challenge = record.challenge;
        connection.receive = Receiver::resume(record.receive, profile);
        let overhead = if record.clocks.is_some() { options::TIMESTAMPS } else { 0 };
        connection.send.resume(record.send, profile, record.sack, overhead);
        Some(connection)
    }
}

impl ConnectionRecord {
    /// Returns whether the sequence numbers are in order and fit the lengths of the data between them, and whether the
    /// window, the shifts and the segment sizes are in their ranges.
    fn is_consistent(&self) -> bool {
        let Sending { una, next, max, bytes, scale, agreed_mss, mss, .. } = &self.send;
        let extra = 1; // a SYN or a FIN
        let sent = next.since(*una) <= max.since(*una) && max.since(*una) as usize <= bytes.len() + extra;
        let receive = &self.receive;
        let window = receive.edge.since(receive.next) <= 1 << 30;
        let inside = |(from, bytes): &(Seq, Vec<u8>)| {
            from.after(receive.next) && bytes.len() <= receive.edge.since(*from) as usize
        };
        let scales = *scale <= 14 && receive.scale <= 14;
        sent && window && scales && *agreed_mss > 0 && *mss > 0 && receive.beyond.iter().all(inside)
    }
}

impl Sender {
    fn record(&self) -> Sending {
        Sending {
            open: self.open,
            una: self.una,
            next: self.next,
            max: self.max,
            bytes: self.buffer.iter().copied().collect(),
            capacity: self.capacity as u64,
            nagle: self.nagle,
            small: self.small,
            fin: self.fin,
            window: self.window,
            largest_window: self.largest_window,
            window_seq: self.wl1,
            window_ack: self.wl2,
            scale: self.scale,
            agreed_mss: self.agreed_mss,
            mss: self.mss,
            timer: self.timer,
            round_trip: self.rto.export(),
            timed: self.timed,
            cwnd: self.congestion.cwnd,
            initial_window: self.congestion.initial,
            ssthresh: self.congestion.ssthresh,
            duplicates: self.congestion.duplicates,
            phase: self.congestion.phase,
            recover: self.congestion.recover,
            received: self.scoreboard.ranges().to_vec(),
            resent: self.scoreboard.resent,
            rescued: self.scoreboard.rescued,
            repair: self.repair.clone(),
            cubic: self.congestion.cubic,
            counted: self.congestion.counted,
            errand: self.errand,
            probes: self.probes,
            unanswered: self.unanswered,
            spared: self.spared,
            last_sent: self.last_sent,
            counts: [self.retransmissions, self.timeouts, self.fast_retransmits, self.probes_sent],
        }
    }

    fn resume(&mut self, from: Sending, profile: &Profile, sack: bool, overhead: u32) {
        self.open = from.open;
        self.agree(from.agreed_mss, overhead);
        self.mss = from.mss;
        self.congestion = Congestion::new(profile, from.mss, from.recover, sack && from.open);
        let congestion = &mut self.congestion;
        congestion.restore(from.cwnd, from.initial_window, from.ssthresh, from.duplicates, from.phase);
        (congestion.cubic, congestion.counted) = (from.cubic, from.counted);
        (self.una, self.next, self.max) = (from.una, from.next, from.max);
        self.scoreboard.restore(from.una, from.max, &from.received);
        (self.scoreboard.resent, self.scoreboard.rescued) = (from.resent, from.rescued);
        (self.buffer, self.fin) = (from.bytes.into(), from.fin);
        self.capacity = usize::try_from(from.capacity).unwrap_or(usize::MAX);
        (self.nagle, self.small) = (from.nagle, from.small);
        (self.window, self.largest_window) = (from.window, from.largest_window.max(from.window));
        (self.wl1, self.wl2, self.scale) = (from.window_seq, from.window_ack, from.scale);
        self.rto = Clockwork::import(profile, from.round_trip);
        (self.timer, self.timed, self.last_sent) = (from.timer, from.timed, from.last_sent);
        (self.errand, self.probes) = (from.errand, from.probes);
        (self.unanswered, self.spared) = (from.unanswered, from.spared);
        [self.retransmissions, self.timeouts, self.fast_retransmits, self.probes_sent] = from.counts;
        self.repair = from.repair;
        if self.repair.is_none() && self.open && sack {
            self.repair = Repair::new(profile, self.una);
            self.lose_longer(0); // the former host had another recovery
        }
        self.tracked = self.repair.is_some();
    }
}

impl Receiver {
    fn record(&self) -> Receiving {
        let (beyond, recent) = self.beyond.export();
        Receiving {
            next: self.next,
            edge: self.edge,
            scale: self.scale,
            unread: self.unread.iter().copied().collect(),
            capacity: self.capacity,
            growth: self.growth.clone(),
            finished: self.finished,
            fin: self.fin,
            beyond,
            recent,
            waiting: self.waiting,
            quick: self.quick,
            last: self.last,
            due: self.due,
            duplicates: self.duplicates,
            delayed: self.delayed,
            duplicate: self.duplicate,
        }
    }

    fn resume(from: Receiving, profile: &Profile) -> Self {
        let mut receiver = Self::new(profile, from.next, from.scale);
        receiver.hold(from.unread, from.finished);
        (receiver.edge, receiver.fin) = (from.edge, from.fin);
        (receiver.capacity, receiver.growth) = (from.capacity, from.growth);
        receiver.beyond.restore(&from.beyond, &from.recent);
        (receiver.waiting, receiver.quick) = (from.waiting, from.quick);
        (receiver.due, receiver.duplicates, receiver.delayed) = (from.due, from.duplicates, from.delayed);
        (receiver.duplicate, receiver.last) = (from.duplicate, from.last);
        receiver
    }
}
