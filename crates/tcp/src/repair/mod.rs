//! What a sender does about losses where it keeps track of each segment, as Linux does ([`Recovery::Segments`]): losses by time,
//! probes of the tail, proportional rate reduction, spurious time-outs found out, reductions taken back.
//!
//! | what | by | where |
//! |---|---|---|
//! | each segment, when it left, what became of it | RFC 6675, RFC 8985 5.1 | `segments.rs` |
//! | losses by time | RFC 8985, sections 5, 6 | `rack.rs` |
//! | probes of the tail | RFC 8985, section 7 | `tail.rs` |
//! | how much may be sent in a recovery | RFC 6937 | `prr.rs` |
//! | spurious time-outs | RFC 5682 | `forward.rs` |
//! | reductions taken back | RFC 3522, RFC 3708 | `undo.rs` |
//! | what acknowledgments, time and sending do with it | | `answer.rs states.rs clock.rs transmit.rs` |
//!
//! [`Recovery::Segments`]: crate::Recovery::Segments

mod answer;
mod clock;
mod forward;
mod prr;
mod rack;
mod segments;
mod states;
mod tail;
mod transmit;
mod undo;

pub use forward::Forward;
pub use prr::Prr;
pub use rack::Rack;
pub use segments::{Segments, Sent};
pub use tail::Tail;
pub use undo::Undo;

use crate::{Profile, Recovery, Seq};
use wire::{Duration, Instant};

/// Which of the mechanisms a sender has; Linux has all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is switched on its own")]
pub struct Mechanisms {
    /// Losses by time (RFC 8985: RACK); else three segments above that have arrived mean a loss (RFC 6675).
    pub rack: bool,
    /// Probes of the tail (RFC 8985: TLP).
    pub tlp: bool,
    /// Proportional rate reduction (RFC 6937); else the window is the threshold at once (RFC 6675).
    pub prr: bool,
    /// Spurious time-outs are found out (RFC 5682: F-RTO).
    pub frto: bool,
}

impl Mechanisms {
    /// All of them: Linux.
    pub const ALL: Self = Self { rack: true, tlp: true, prr: true, frto: true };
    /// None of them.
    pub const NONE: Self = Self { rack: false, tlp: false, prr: false, frto: false };
}

/// Where a sender stands (Linux: `tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Standing {
    /// Nothing seems to be missing.
    #[default]
    Open,
    /// Something is missing, which may come yet.
    Disorder,
    /// What was lost is sent again, and the window is reduced.
    Recovery,
    /// After a time-out.
    Loss,
}

/// All that a sender knows for repairing losses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// What it may use.
    pub does: Mechanisms,
    /// What is not acknowledged.
    pub segments: Segments,
    /// Losses by time.
    pub rack: Rack,
    /// The probe of the tail.
    pub tail: Tail,
    /// A reduction of the window.
    pub prr: Prr,
    /// Whether the last time-out was for nothing.
    pub forward: Forward,
    /// To take a reduction back.
    pub undo: Undo,
    /// Where it stands.
    pub standing: Standing,
    /// All below was sent when it came to stand there (`RecoveryPoint`).
    pub high: Seq,
    /// The window was used up since `usage` was sent, or so many segments were out.
    pub limited: bool,
    /// Most segments that were out since then.
    pub most_out: u32,
    /// Until this is acknowledged, these two hold.
    pub usage: Seq,
    /// When the window was used up last, or judged; most segments that were out since then (RFC 2861).
    pub used_up: Instant,
    /// See `used_up`.
    pub used: u32,
    /// Segments that the peer reported to have come twice (RFC 2883).
    pub duplicates: u64,
    /// How long an acknowledgment of a single segment may be delayed: added to the time before a probe.
    delay: Duration,
    /// The time before a probe without a round trip, and the tick of timestamps.
    initial: Duration,
    tick: Duration,
    threshold: u32,
}

impl Repair {
    /// For a connection whose next number is `una`; `None` if the profile has another way.
    pub(crate) fn new(profile: &Profile, una: Seq) -> Option<Box<Self>> {
        let Recovery::Segments(does) = profile.recovery else { return None };
        Some(Box::new(Self {
            does,
            segments: Segments::default(),
            rack: Rack::default(),
            tail: Tail::default(),
            prr: Prr::default(),
            forward: Forward::Off,
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

    /// A round trip was measured. One that is shorter than the clock can tell is a tick.
    pub(crate) fn measured(&mut self, rtt: Duration) {
        self.rack.measured(if rtt.is_zero() { self.tick } else { rtt });
    }

    /// Whether a copy is on its way, or the first segment was ever sent again (Linux: `tcp_any_retrans_done`).
    fn any_resent(&self) -> bool {
        self.segments.resent() > 0 || self.segments.first().is_some_and(|sent| sent.ever_resent)
    }

    /// `RACK_update_reo_wnd()` as things stand.
    fn late(&self, srtt: Option<Duration>) -> Duration {
        let mending = matches!(self.standing, Standing::Recovery | Standing::Loss);
        self.rack.window(srtt, mending, self.segments.sacked(), self.threshold)
    }

    /// Looks for losses; says for how long to wait until there may be more.
    fn look(&mut self, now: Instant, srtt: Option<Duration>) -> Option<Duration> {
        if self.does.rack {
            let window = self.late(srtt);
            return self.rack.advanced.then(|| self.rack.detect(now, window, &mut self.segments)).flatten();
        }
        // RFC 6675, section 4, `IsLost()`, in segments.
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
