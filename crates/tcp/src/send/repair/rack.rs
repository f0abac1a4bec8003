//! Losses by time (RFC 8985, sections 5 and 6: RACK): a segment is lost when a segment that was sent later has arrived,
//! and a reordering window has passed.

use super::segments::{Segments, Sent};
use crate::Seq;
use wire::{Duration, Instant};

/// The number of recoveries for which duplicates keep the reordering window wide (RFC 8985, section 6.2, step 4: 16).
const PERSIST: u32 = 16;
/// The largest reordering window, in quarters of the minimum round trip. The smoothed round trip also limits the
/// window.
const MOST_STEPS: u32 = 255;

/// The state of RACK (RFC 8985, section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rack {
    /// `RACK.xmit_ts`: the latest transmission time of all segments that are known to have arrived; `None` before the
    /// first.
    pub sent: Option<Instant>,
    /// `RACK.end_seq`: the end of the segment that was sent at `sent`.
    pub end: Seq,
    /// `RACK.rtt`: the round trip of the segment that was last noted as arrived; zero before the first.
    pub rtt: Duration,
    /// `RACK.min_RTT`: the shortest round trip of the whole connection; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// `RACK.reordering_seen`: whether the network has reordered segments of this connection.
    pub reordered: bool,
    /// `RACK.reo_wnd_mult`: the reordering window in quarters of the minimum round trip, from 1 to 255.
    pub steps: u32,
    /// `RACK.reo_wnd_persist`: the number of recoveries until the reordering window becomes narrow again.
    pub persist: u32,
    /// `RACK.dsack_round`: until this sequence number is acknowledged, duplicates do not widen the window further.
    /// `None`: the next duplicate widens it.
    pub round: Option<Seq>,
    /// Whether losses are to be searched for: a segment has arrived since the last search, the reordering timer
    /// expired, or a reduction was undone.
    pub advanced: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: None,
            end: Seq(0),
            rtt: Duration::ZERO,
            min_rtt: None,
            reordered: false,
            steps: 1,
            persist: 0,
            round: None,
            advanced: false,
        }
    }
}

/// Returns whether the segment `one` was sent after the segment `other`. Each is given by its transmission time and its
/// end. If the times are equal, the segment with the higher numbers counts as sent later (RFC 8985, section 6.2, step
/// 2).
fn sent_after(one: (Instant, Seq), other: (Instant, Seq)) -> bool {
    one.0 > other.0 || (one.0 == other.0 && one.1.after(other.1))
}

impl Rack {
    /// Notes a round-trip time for the minimum (RFC 8985, section 6.2, step 1).
    pub(crate) fn measured(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// Notes that a segment has arrived (RFC 8985, section 6.2, step 2).
    pub(crate) fn arrived(&mut self, now: Instant, segment: &Sent) {
        let rtt = now.since(segment.at);
        // If less than the shortest round trip has passed since the copy was sent, the original is acknowledged.
        if segment.ever_resent && self.min_rtt.is_some_and(|least| rtt < least) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if self.sent.is_none_or(|sent| sent_after((segment.at, segment.end), (sent, self.end))) {
            (self.sent, self.end) = (Some(segment.at), segment.end);
        }
    }

    /// Adapts the reordering window (RFC 8985, section 6.2, step 4). `dsack`: the peer reported a duplicate. `una`: the
    /// first unacknowledged number. `next`: the end of the data sent.
    pub(crate) fn adapt(&mut self, dsack: bool, una: Seq, next: Seq) {
        self.round = self.round.filter(|round| una.before(*round));
        if dsack && self.round.is_none() {
            self.round = Some(next);
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Notes that everything sent again in a recovery was a duplicate. A wide window stays wide for one more recovery.
    pub(crate) fn found_early(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }

    /// Notes the end of a recovery. After `PERSIST` recoveries without a duplicate, a wide window becomes narrow again.
    pub(crate) const fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Returns the reordering window (`RACK_update_reo_wnd()`), at most the smoothed round trip `srtt`. If no
    /// reordering was seen, it is zero during a recovery (`recovering` is true), and also if at least `threshold`
    /// segments have been selectively acknowledged (`sacked`).
    pub(crate) fn window(
        &self,
        srtt: Option<Duration>,
        recovering: bool,
        sacked: u32,
        threshold: u32,
    ) -> Duration {
        if !self.reordered && (recovering || sacked >= threshold) {
            return Duration::ZERO;
        }
        let window = self.min_rtt.unwrap_or_default() / 4 * self.steps;
        srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// Marks lost segments (RFC 8985: `RACK_detect_loss()`). A segment is overtaken if a segment that was sent later
    /// has arrived. Returns the time until all overtaken segments count as lost; `None` if they are lost now, or if
    /// there are none.
    pub(crate) fn detect(
        &mut self,
        now: Instant,
        window: Duration,
        segments: &mut Segments,
    ) -> Option<Duration> {
        self.advanced = false;
        let latest = (self.sent?, self.end);
        let in_order = segments.resent() == 0;
        let mut wait: Option<Duration> = None;
        for at in 0..segments.len() as usize {
            let Some(sent) = segments.get(at).copied() else { break };
            if sent.sacked || (sent.lost && !sent.resent) {
                continue;
            }
            if !sent_after(latest, (sent.at, sent.end)) {
                if in_order && !sent.ever_resent {
                    break; // all further segments were sent even later
                }
                continue;
            }
            let late = self.remaining(now, &sent, window);
            match late {
                None => segments.lose(at),
                Some(late) => wait = wait.max(Some(late)),
            }
        }
        wait
    }

    /// Returns the time until a segment counts as lost; `None` if it is lost now.
    pub(crate) fn remaining(&self, now: Instant, sent: &Sent, window: Duration) -> Option<Duration> {
        (self.rtt + window).checked_sub(now.since(sent.at)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::repair::segments::AckSummary;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns segments of 1000 bytes that were sent at the times `at`, in milliseconds, and a state of RACK with a
    /// minimum round trip of 40 ms.
    fn flight(at: &[u64]) -> (Rack, Segments) {
        let (mut rack, mut segments) = (Rack::default(), Segments::default());
        for (i, at) in (0..).zip(at) {
            segments.push(Seq(1000 * i), Seq(1000 * (i + 1)), Instant::from_millis(*at));
        }
        rack.measured(ms(60));
        rack.measured(ms(40));
        rack.measured(ms(50));
        (rack, segments)
    }

    fn arrives(rack: &mut Rack, segments: &mut Segments, now: u64, index: u32) {
        let mut summary = AckSummary::default();
        let now = Instant::from_millis(now);
        segments.sack(Seq(1000 * index), Seq(1000 * (index + 1)), Seq(9000), &mut summary, |sent| {
            rack.arrived(now, sent);
        });
        rack.reordered |= summary.reordered;
    }

    fn lost(segments: &Segments) -> Vec<u32> {
        segments.iter().filter(|sent| sent.lost).map(|sent| sent.from.0 / 1000).collect()
    }

    /// When the third of three segments arrives, the first two are not lost at once. Each becomes lost when a round
    /// trip and a quarter of the minimum round trip have passed since it was sent (RFC 8985, section 6.2, step 5).
    #[test]
    fn lost_after_the_reordering_window() {
        let (mut rack, mut segments) = flight(&[0, 1, 2]);
        arrives(&mut rack, &mut segments, 42, 2);
        let window = rack.window(Some(ms(50)), false, 1, 3);
        assert_eq!(window, ms(10));
        let at = |ms| Instant::from_millis(ms);
        assert_eq!(rack.detect(at(42), window, &mut segments), Some(ms(9)));
        assert_eq!(lost(&segments), []);
        assert_eq!(
            rack.detect(at(50), window, &mut segments),
            Some(ms(1)),
            "the first was due at 0 + 40 + 10"
        );
        assert_eq!(lost(&segments), [0]);
        assert_eq!(rack.detect(at(51), window, &mut segments), None);
        assert_eq!(lost(&segments), [0, 1]);
    }

    /// The reordering window is as in RFC 8985, section 6.2, step 4.
    #[test]
    fn the_window_by_its_rules() {
        let mut rack = flight(&[]).0;
        assert_eq!(rack.window(Some(ms(50)), false, 2, 3), ms(10));
        assert_eq!(
            rack.window(Some(ms(50)), false, 3, 3),
            ms(0),
            "as many as the earlier threshold of duplicates"
        );
        assert_eq!(rack.window(Some(ms(50)), true, 0, 3), ms(0));
        rack.reordered = true;
        assert_eq!(rack.window(Some(ms(50)), true, 7, 3), ms(10));
        rack.adapt(true, Seq(0), Seq(5000));
        rack.adapt(true, Seq(4000), Seq(6000));
        assert_eq!(rack.window(Some(ms(50)), true, 7, 3), ms(20), "once in a round trip");
        rack.adapt(true, Seq(5000), Seq(8000));
        assert_eq!(rack.window(Some(ms(25)), true, 7, 3), ms(25), "a round trip at most");
        (0..PERSIST).for_each(|_| {
            rack.adapt(false, Seq(9000), Seq(9000));
            assert_eq!(rack.steps, 3);
            rack.recovered();
        });
        rack.adapt(false, Seq(9000), Seq(9000));
        assert_eq!(rack.steps, 1);
    }

    /// A retransmission is lost only if a segment that was sent after it has arrived.
    #[test]
    fn a_lost_retransmission_is_found() {
        let (mut rack, mut segments) = flight(&[0, 1, 2, 60]);
        arrives(&mut rack, &mut segments, 42, 2);
        let at = |ms| Instant::from_millis(ms);
        rack.detect(at(60), ms(0), &mut segments);
        assert_eq!(lost(&segments), [0, 1]);
        segments.edit(0, |sent| (sent.at, sent.resent, sent.ever_resent) = (at(59), true, true));
        segments.edit(1, |sent| (sent.at, sent.resent, sent.ever_resent) = (at(61), true, true));
        arrives(&mut rack, &mut segments, 101, 3);
        rack.detect(at(101), ms(0), &mut segments);
        assert_eq!(
            (segments.resent(), segments.flying()),
            (1, 1),
            "the copy of 0 is lost, that of 1 was sent later"
        );
    }

    /// If an acknowledgment arrives sooner after a retransmission than the minimum round trip, it is an acknowledgment
    /// of the original (RFC 8985, section 6.2, step 2).
    #[test]
    fn an_answer_to_the_first_copy_is_not_one_to_the_second() {
        let (mut rack, mut segments) = flight(&[0, 1]);
        segments.edit(0, |sent| (sent.at, sent.ever_resent) = (Instant::from_millis(50), true));
        arrives(&mut rack, &mut segments, 80, 0);
        assert_eq!((rack.sent, rack.advanced), (None, false));
        arrives(&mut rack, &mut segments, 81, 1);
        assert!(rack.advanced);
    }
}
