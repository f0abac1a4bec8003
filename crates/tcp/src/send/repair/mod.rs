//! Per-segment loss recovery, as in Linux ([`Recovery::Segments`]): losses by time, tail loss probes, proportional rate
//! reduction, detection of spurious time-outs, undo of reductions.
//!
//! | what | by | where |
//! |---|---|---|
//! | the state of each segment | RFC 6675; RFC 8985, section 5.2 | `segments.rs` |
//! | losses by time | RFC 8985, sections 5, 6 | `rack.rs` |
//! | tail loss probes | RFC 8985, section 7 | `tail.rs` |
//! | the amount sent in a recovery | RFC 6937 | `prr.rs` |
//! | spurious time-outs | RFC 5682 | `f_rto.rs` |
//! | undo of reductions | RFC 3522, RFC 3708 | `undo.rs` |
//! | the handling of acknowledgments, states, timers and sending | | `on_ack.rs states.rs timers.rs transmit.rs` |
//!
//! [`Recovery::Segments`]: crate::Recovery::Segments

mod f_rto;
mod on_ack;
mod prr;
mod rack;
mod segments;
mod states;
mod tail;
mod timers;
mod transmit;
mod undo;

pub use f_rto::FRto;
pub use prr::Prr;
pub use rack::Rack;
pub use segments::{Segments, Sent};
pub use tail::Tail;
pub use undo::Undo;

use crate::{Mechanisms, Profile, Recovery, Seq};
use wire::{Duration, Instant};

/// The recovery state of a sender (Linux: `tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Standing {
    /// No data is known to be missing.
    #[default]
    Open,
    /// Data is missing, but may only be late; or a retransmission is not acknowledged yet.
    Disorder,
    /// Lost segments are sent again, and the window is reduced.
    Recovery,
    /// A time-out occurred, and lost segments are sent again in slow start. A path with a smaller MTU, or a move to
    /// this host, also leads to this state.
    Loss,
}

/// The state of per-segment recovery of one sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// The mechanisms that this sender uses.
    pub does: Mechanisms,
    /// The list of unacknowledged segments.
    pub segments: Segments,
    /// The state of loss detection by time (RACK).
    pub rack: Rack,
    /// The state of the tail loss probe.
    pub tail: Tail,
    /// The counters of proportional rate reduction.
    pub prr: Prr,
    /// The step in the detection of a spurious time-out.
    pub forward: FRto,
    /// The state before the last reduction, to undo it.
    pub undo: Undo,
    /// The recovery state: whether losses are known or repaired.
    pub standing: Standing,
    /// The end of the data sent when `standing` last changed, a reduction or a time-out last occurred, or F-RTO last
    /// requested new data (`RecoveryPoint`).
    pub high: Seq,
    /// Whether the window limited the sender when the current period began. `usage` describes the period.
    pub limited: bool,
    /// The number of segments in flight when the current period began. `usage` describes the period.
    pub most_out: u32,
    /// The end of the data sent when the current period began. A new period begins when this sequence number is
    /// acknowledged, or when the window limits the sender. If `limited` is false, a new period also begins when more
    /// segments than `most_out` are in flight (Linux: `cwnd_usage_seq`).
    pub usage: Seq,
    /// The latest time of three events: the window limited the sender, the use of the window was checked, or the sender
    /// restarted after an idle time (RFC 2861).
    pub used_up: Instant,
    /// The largest number of segments in flight since `used_up`.
    pub used: u32,
    /// The number of segments that the peer reported as duplicates (RFC 2883).
    pub duplicates: u64,
    /// The time by which the acknowledgment of a single segment may be delayed: the profile's `rto_min`. It is added to
    /// the time before a probe if one segment is in flight.
    delay: Duration,
    /// The time before a tail loss probe, as long as there is no round-trip sample.
    initial: Duration,
    /// The tick of the timestamp clock.
    tick: Duration,
    threshold: u32,
}

impl Repair {
    /// Returns the state of a connection whose first unacknowledged number is `una`. Returns `None` if the profile has
    /// another recovery.
    pub(crate) fn new(profile: &Profile, una: Seq) -> Option<Box<Self>> {
        let Recovery::Segments(does) = profile.recovery else { return None };
        Some(Box::new(Self {
            does,
            segments: Segments::default(),
            rack: Rack::default(),
            tail: Tail::default(),
            prr: Prr::default(),
            forward: FRto::Off,
            undo: Undo::default(),
            standing: Standing::Open,
            high: una,
            limited: false,
            most_out: 0,
            usage: una,
            used_up: Instant::ZERO,
            used: 0,
            duplicates: 0,
            delay: profile.rto_min,
            initial: profile.rto_initial,
            tick: profile.timestamp_tick,
            threshold: profile.duplicates.max(1),
        }))
    }

    /// Notes a round-trip time for the minimum of RACK. A time of zero counts as one tick of the timestamp clock.
    pub(crate) fn measured(&mut self, rtt: Duration) {
        self.rack.measured(if rtt.is_zero() { self.tick } else { rtt });
    }

    /// Returns whether a retransmission is in flight, or the first segment was ever sent again (Linux:
    /// `tcp_any_retrans_done`).
    fn any_resent(&self) -> bool {
        self.segments.resent() > 0 || self.segments.first().is_some_and(|sent| sent.ever_resent)
    }

    /// Returns the reordering window in the current state (RFC 8985, section 6.2, step 4: `RACK_update_reo_wnd()`).
    fn late(&self, srtt: Option<Duration>) -> Duration {
        let recovering = matches!(self.standing, Standing::Recovery | Standing::Loss);
        self.rack.window(srtt, recovering, self.segments.sacked(), self.threshold)
    }

    /// Marks lost segments. With RACK, it does so only if `rack.advanced`. Returns the time until more segments may be
    /// lost; `None` if there is nothing to wait for.
    fn look(&mut self, now: Instant, srtt: Option<Duration>) -> Option<Duration> {
        if self.does.rack {
            let window = self.late(srtt);
            return self.rack.advanced.then(|| self.rack.detect(now, window, &mut self.segments)).flatten();
        }
        // `IsLost()` of RFC 6675, section 4, which here counts segments instead of ranges and bytes.
        let mut above = self.segments.sacked();
        for at in 0..self.segments.len() as usize {
            let Some(sent) = self.segments.get(at).copied() else { break };
            above -= u32::from(sent.sacked);
            if above < self.threshold {
                break;
            }
            if !sent.sacked && !sent.lost && !sent.ever_resent {
                self.segments.lose(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
