//! Tail loss probes (RFC 8985, section 7: TLP). If no acknowledgment comes for about two round trips, a new segment is
//! sent, or the last segment is sent again. The acknowledgment of this probe shows what is missing.

use crate::Seq;
use wire::Duration;

/// The kernel adds this to the time before a probe if several segments are in flight (`TCP_TIMEOUT_MIN_US`).
const LEAST: Duration = Duration::from_millis(2);

/// The state of the tail loss probe of a connection. At most one probe is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tail {
    /// `TLP.end_seq`: the end of the data sent when the probe was sent; `None`: no acknowledgment of a probe is
    /// awaited.
    pub end: Option<Seq>,
    /// `TLP.is_retrans`: whether the probe was a segment that was sent again.
    pub again: bool,
}

/// What an acknowledgment shows about a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Nothing: no probe is in flight, or its result is still open.
    Open,
    /// The probe repaired no loss.
    Clean,
    /// The probe repaired a loss that nothing else showed: the window is to be reduced.
    Repaired,
}

/// Returns the time before a probe (RFC 8985, section 7.2, `TLP_calc_PTO()`): twice `srtt` plus 2 ms. With one segment
/// in flight, it is twice `srtt` plus `delay`, because the acknowledgment may be delayed. Without a round-trip sample,
/// it is `initial`.
pub(crate) fn timeout(srtt: Option<Duration>, segments: u32, delay: Duration, initial: Duration) -> Duration {
    let Some(srtt) = srtt else { return initial };
    srtt * 2 + if segments == 1 { delay } else { LEAST }
}

impl Tail {
    /// Handles the cumulative acknowledgment `ack` (RFC 8985, section 7.4.2, `TLP_process_ack()`). `dsack`: the peer
    /// reports the probe as a duplicate. `pure`: the segment is a plain duplicate acknowledgment.
    pub(crate) fn judge(&mut self, ack: Seq, dsack: bool, pure: bool) -> Verdict {
        let Some(end) = self.end.filter(|end| !ack.before(*end)) else { return Verdict::Open };
        let verdict = if !self.again || dsack {
            Verdict::Clean
        } else if ack.after(end) {
            Verdict::Repaired
        } else if pure {
            Verdict::Clean // the probe was a duplicate: the original had arrived
        } else {
            return Verdict::Open;
        };
        self.end = None;
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The time before a probe is as in RFC 8985, section 7.2.
    #[test]
    fn the_time_before_a_probe() {
        let after = |srtt, segments| timeout(srtt, segments, ms(200), ms(1000));
        assert_eq!(after(Some(ms(30)), 1), ms(260), "2 SRTT and the worst delayed acknowledgment");
        assert_eq!(after(Some(ms(30)), 2), ms(62));
        assert_eq!(after(None, 2), ms(1000));
    }

    /// The acknowledgment of a probe is evaluated as in RFC 8985, section 7.4.2.
    #[test]
    fn what_its_answer_says() {
        let out = |again| Tail { end: Some(Seq(5000)), again };
        assert_eq!(out(true).judge(Seq(4000), false, true), Verdict::Open);
        assert_eq!(out(false).judge(Seq(5000), false, false), Verdict::Clean, "new data was no repetition");
        assert_eq!(out(true).judge(Seq(5000), true, false), Verdict::Clean, "both arrived");
        assert_eq!(out(true).judge(Seq(5000), false, false), Verdict::Open, "either may have");
        assert_eq!(out(true).judge(Seq(5000), false, true), Verdict::Clean, "a pure duplicate");
        let mut tail = out(true);
        assert_eq!((tail.judge(Seq(5001), false, false), tail.end), (Verdict::Repaired, None));
        assert_eq!(tail.judge(Seq(6000), false, false), Verdict::Open, "one verdict");
    }
}
