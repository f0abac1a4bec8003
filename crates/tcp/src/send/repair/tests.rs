//! Tests with a sender and hand-made acknowledgments of a peer. Segments have 1000 bytes, times are in milliseconds.

use super::{Mechanisms, Standing};
use crate::send::Sender;
use crate::send::acknowledge::Ack;
use crate::{Profile, Recovery, Seq, Timer};
use wire::{Duration, Instant};

mod timers;
mod window;

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn with(does: Mechanisms) -> Profile {
    Profile {
        mss: 1000,
        timing: crate::Timing::Exact,
        recovery: Recovery::Segments(does),
        timestamps: false,
        ..Profile::linux()
    }
}

/// A sender with ten segments in flight since 100 ms, and a measured round trip of 50 ms.
struct Talk(Sender);

impl Talk {
    fn ten(does: Mechanisms, written: usize) -> Self {
        let profile = with(does);
        let mut send = Sender::new(&profile, Seq(u32::MAX)); // the first byte is number 0
        send.syn_sent(at(0));
        send.opened(at(50), &profile, true, None);
        (send.window, send.largest_window) = (1 << 20, 1 << 20);
        send.write(&vec![7; written]);
        let mut talk = Self(send);
        assert_eq!(talk.sends(100).len(), 10);
        talk
    }

    /// Returns the sequence numbers, in thousands, of the segments sent at `now`.
    fn sends(&mut self, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| self.0.next(at(now), 0)).map(|chunk| chunk.seq.0 / 1000).collect()
    }

    /// Handles an acknowledgment up to `below` with SACK `blocks`, in thousands of bytes. Returns the segments that are
    /// sent in response.
    fn hears(&mut self, now: u64, below: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        self.hears_all(now, below, blocks, None)
    }

    /// Handles an acknowledgment up to `below`, in thousands of bytes, that echoes the timestamp of the time
    /// `echoed`, in milliseconds. Returns the segments that are sent in response.
    fn hears_echo(&mut self, now: u64, below: u32, echoed: u64) -> Vec<u32> {
        self.hears_all(now, below, &[], Some(echoed))
    }

    fn hears_all(&mut self, now: u64, below: u32, blocks: &[(u32, u32)], echoed: Option<u64>) -> Vec<u32> {
        let blocks: Vec<_> = blocks.iter().map(|(from, end)| (Seq(1000 * from), Seq(1000 * end))).collect();
        let (seq, below, window) = (Seq(1), Seq(1000 * below), self.0.window);
        let ack = Ack { seq, below, window, pure: true, blocks: &blocks, echoed: echoed.map(at) };
        self.0.acknowledge(at(now), ack);
        self.sends(now)
    }

    /// Lets the timer expire, which must be equal to `timer`. Returns the segments that are sent in response.
    fn waits(&mut self, timer: Timer) -> Vec<u32> {
        assert_eq!(self.0.timer, timer);
        let when = timer.at().unwrap();
        assert!(!self.0.timeout(when));
        self.sends(when.0 / 1_000_000)
    }

    fn standing(&self) -> Standing {
        self.0.repair.as_ref().unwrap().standing
    }

    fn rack(&self) -> &super::Rack {
        &self.0.repair.as_ref().unwrap().rack
    }

    fn cwnd(&self) -> u32 {
        self.0.congestion.cwnd / 1000
    }
}

/// The last two of ten segments are lost. A probe after two round trips and 2 ms shows the loss, long before the
/// time-out (RFC 8985, section 3.2).
#[test]
fn a_lost_tail_is_repaired_without_a_time_out() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    assert_eq!(talk.hears(150, 8, &[]), [] as [u32; 0]);
    assert_eq!(talk.waits(Timer::Tail(at(252))), [9], "the last again");
    assert_eq!(talk.hears(302, 8, &[(9, 10)]), [8], "the segment before it is lost");
    assert_eq!((talk.standing(), talk.0.timeouts), (Standing::Recovery, 0));
    assert_eq!(talk.hears(352, 10, &[]), [] as [u32; 0]);
    assert_eq!((talk.standing(), talk.0.timer), (Standing::Open, Timer::Off));
    // Counter-check: without probes only the time-out finds the loss.
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 10_000);
    talk.hears(150, 8, &[]);
    assert_eq!(talk.waits(Timer::Retransmit(at(400))), [8]);
    assert_eq!(talk.0.timeouts, 1);
}

/// The probe is new data if there is any (RFC 8985, section 7.3). The acknowledgment of the probe alone shows no loss
/// (section 7.4).
#[test]
fn a_probe_is_new_data_if_there_is_any() {
    let mut talk = Talk::ten(Mechanisms::ALL, 11_000);
    assert_eq!(talk.waits(Timer::Tail(at(202))), [10], "although the window is used up");
    assert_eq!(talk.0.timer, Timer::Retransmit(at(452)));
    assert_eq!(talk.hears(252, 11, &[]), [] as [u32; 0]);
    assert_eq!((talk.standing(), talk.cwnd() >= 10), (Standing::Open, true));
}

/// If the probe repaired the loss of the last segment, the window is reduced (RFC 8985, section 7.4.2).
#[test]
fn a_loss_that_the_probe_repaired_reduces_the_window() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 9, &[]);
    let window = talk.cwnd();
    // One segment is in flight, and its acknowledgment may be delayed by 200 ms. So the time before a probe would be
    // longer than the time-out, and is limited to the time-out.
    assert_eq!(talk.waits(Timer::Tail(at(400))), [9]);
    talk.0.write(&[7; 2000]);
    assert_eq!(talk.sends(401), [10, 11]);
    talk.hears(451, 12, &[]);
    assert_eq!(talk.cwnd(), window / 2);
}

/// An overtaken segment may be late by a quarter of a round trip before it is lost (RFC 8985, section 6.2, step 5).
#[test]
fn what_is_late_is_waited_for() {
    let mut talk = Talk::ten(Mechanisms::ALL, 40_000);
    assert_eq!(talk.hears(150, 0, &[(1, 2)]), [10]);
    assert_eq!(talk.standing(), Standing::Disorder);
    // The segment was sent at 100 ms. With a round trip of 50 ms, a window of 12.5 ms and the 2 ms that Linux adds, the
    // wait ends at 164.5 ms.
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    assert_eq!(when.0, 164_500_000);
    let mut lost = Talk(talk.0.clone());
    assert_eq!(talk.hears(160, 2, &[])[0], 11, "it came");
    assert_eq!((talk.standing(), talk.0.retransmissions), (Standing::Open, 0));
    lost.0.timeout(when);
    assert_eq!(lost.sends(165)[0], 0, "it did not");
    assert_eq!(lost.standing(), Standing::Recovery);
}

/// Without RACK, three segments above a missing one indicate a loss (RFC 6675).
#[test]
fn without_rack_three_segments_above_mean_a_loss() {
    let mut talk = Talk::ten(Mechanisms { rack: false, ..Mechanisms::ALL }, 40_000);
    talk.hears(150, 0, &[(1, 3)]);
    assert_eq!((talk.standing(), talk.0.retransmissions), (Standing::Disorder, 0));
    assert_eq!(talk.hears(151, 0, &[(1, 4)])[0], 0);
    assert_eq!(talk.standing(), Standing::Recovery);
}

/// With PRR, the window decreases as segments arrive, until it equals the threshold (RFC 6937). Without PRR, nothing
/// but the retransmission is sent until fewer segments are in flight than the threshold.
#[test]
fn the_rate_is_reduced_in_proportion() {
    let sent = |does| {
        let mut talk = Talk::ten(does, 90_000);
        let mut sent: Vec<usize> = vec![talk.hears(150, 0, &[(1, 4)]).len()];
        sent.extend((5..=10).map(|end| talk.hears(151, 0, &[(1, end)]).len()));
        (sent, talk.cwnd())
    };
    let (proportional, window) = sent(Mechanisms::ALL);
    assert_eq!((proportional, window), (vec![2, 0, 1, 0, 0, 1, 1], 5));
    let (at_once, window) = sent(Mechanisms { prr: false, ..Mechanisms::ALL });
    assert_eq!((at_once, window), (vec![1, 0, 0, 1, 1, 1, 1], 5));
}

/// If no segment was lost, but all were late, the time-out is undone (RFC 5682, section 3.1, with selective
/// acknowledgments).
#[test]
fn a_spurious_time_out_is_taken_back() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 40_000);
    assert_eq!(talk.waits(Timer::Retransmit(at(350))), [0], "step 1");
    assert_eq!((talk.standing(), talk.cwnd()), (Standing::Loss, 1));
    assert_eq!(talk.hears(360, 1, &[]), [10, 11], "step 2b: new data, not what seems lost");
    talk.hears(361, 2, &[]);
    assert_eq!((talk.standing(), talk.cwnd() >= 10), (Standing::Open, true), "step 3b");
    assert_eq!(talk.0.retransmissions, 1);
    // Counter-check: without F-RTO the second segment is sent again needlessly.
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 40_000);
    talk.waits(Timer::Retransmit(at(350)));
    assert_eq!(talk.hears(360, 1, &[]), [1, 2]);
}

/// After a time-out with a real loss, lost segments are sent again (RFC 5682, section 3.1, step 3a).
#[test]
fn a_real_time_out_is_repaired() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 40_000);
    talk.waits(Timer::Retransmit(at(350)));
    assert_eq!(talk.hears(400, 1, &[]), [10, 11]);
    assert_eq!(talk.hears(450, 1, &[(10, 11)])[..1], [1]);
    assert_eq!(talk.standing(), Standing::Loss);
}

/// A time-out of the first segment does not mean that recently sent segments are lost (RFC 8985, section 6.3).
#[test]
fn what_left_a_moment_ago_is_not_lost_with_the_first() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 10_000);
    talk.0.write(&[7; 1000]);
    talk.hears(150, 1, &[]); // the eleventh is sent
    talk.0.timer = Timer::Retransmit(at(180));
    talk.0.timeout(at(180));
    let lost: Vec<_> = talk.0.repair.as_ref().unwrap().segments.iter().map(|sent| sent.lost).collect();
    assert_eq!(lost.iter().filter(|lost| **lost).count(), 9);
    assert_eq!(lost.last(), Some(&false));
}

/// If the peer already had everything that was sent again, the recovery is undone (RFC 2883, RFC 3708).
#[test]
fn duplicates_take_a_recovery_back() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    assert_eq!(talk.hears(150, 0, &[(1, 5)]), [0]);
    assert_eq!(talk.standing(), Standing::Recovery);
    talk.hears(152, 5, &[]); // it was only late
    talk.hears(200, 5, &[(0, 1)]);
    assert_eq!((talk.standing(), talk.cwnd()), (Standing::Open, 10));
    // A report of a duplicate of data that was sent once has no effect, because the network made the copy.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 5, &[(0, 1)]);
    assert_eq!((talk.standing(), talk.rack().steps, talk.cwnd()), (Standing::Open, 1, 15));
}

/// One acknowledgment reports data in order and the first block beyond a gap, because the acknowledgment before it was
/// lost. That is no sign of reordering (RFC 8985, section 6.2, step 3). So the third duplicate indicates a loss.
#[test]
fn data_in_order_beside_a_block_is_not_reordered() {
    let mut talk = Talk::ten(Mechanisms::ALL, 40_000);
    talk.hears(150, 2, &[(3, 4)]);
    assert!(!talk.rack().reordered);
    talk.hears(151, 2, &[(3, 5)]);
    assert_eq!(talk.hears(152, 2, &[(3, 6)])[0], 2);
    assert_eq!(talk.standing(), Standing::Recovery);
    // One acknowledgment reports two ranges of data for the first time, the higher before the lower.
    let mut talk = Talk::ten(Mechanisms::ALL, 40_000);
    talk.hears(150, 0, &[(5, 6), (2, 3)]);
    assert!(!talk.rack().reordered);
    assert_eq!(talk.hears(151, 0, &[(5, 7), (2, 3)])[0], 0);
    // Counter-check: a segment arrives after one that was sent later.
    talk.hears(152, 0, &[(1, 3), (5, 7)]);
    assert!(talk.rack().reordered);
}

/// An acknowledgment of the original gives no round trip of the copy (RFC 8985, section 6.2, step 2). So segments that
/// were sent between the original and the copy are not declared lost. With RFC 3522, a spurious time-out costs one
/// retransmission.
#[test]
fn an_answer_older_than_the_copy_loses_nothing() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 10_000);
    assert_eq!(talk.waits(Timer::Retransmit(at(350))), [0]);
    assert_eq!(talk.hears_echo(410, 1, 100), [] as [u32; 0]);
    assert_eq!((talk.standing(), talk.cwnd() >= 10, talk.0.retransmissions), (Standing::Open, true, 1));
}

/// The late original filled the gap after the segment was sent again (RFC 3522). That is a sign that the network
/// reorders.
#[test]
fn a_recovery_for_nothing_is_a_sign_of_reordering() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    assert_eq!(talk.hears(150, 0, &[(1, 4)]), [0]);
    talk.hears_echo(155, 4, 100);
    assert!(talk.rack().reordered);
}

/// A duplicate after reordering widens the reordering window (RFC 8985, section 6.2, step 4). A duplicate without
/// reordering, and the duplicate of a probe, do not.
#[test]
fn a_duplicate_after_reordering_widens_the_window() {
    let widened = |reordered: bool| {
        let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
        talk.0.repair.as_mut().unwrap().rack.reordered = reordered;
        talk.hears(150, 0, &[(1, 9)]);
        if let Timer::Reorder(when) = talk.0.timer {
            talk.0.timeout(when);
        }
        assert_eq!(talk.sends(165), if reordered { vec![0] } else { vec![] });
        assert_eq!(talk.0.retransmissions, 1);
        talk.hears(170, 9, &[]);
        talk.hears(220, 9, &[(0, 1)]);
        talk.rack().steps
    };
    assert_eq!((widened(true), widened(false)), (2, 1));
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.repair.as_mut().unwrap().rack.reordered = true;
    talk.hears(150, 9, &[]);
    let window = talk.cwnd();
    assert_eq!(talk.waits(Timer::Tail(at(400))), [9]);
    talk.hears(401, 10, &[]);
    talk.hears(450, 10, &[(9, 10)]);
    assert_eq!(
        (talk.rack().steps, talk.cwnd() >= window),
        (1, true),
        "RFC 8985, section 7.4.2: both arrived"
    );
}

/// An acknowledgment that a later one overtook still reports what has arrived.
#[test]
fn the_blocks_of_an_overtaken_acknowledgment_count() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 2, &[]);
    let blocks = [(Seq(3000), Seq(6000))];
    let (seq, below, window) = (Seq(1), Seq(1000), talk.0.window);
    let ack = Ack { seq, below, window, pure: true, blocks: &blocks, echoed: None };
    talk.0.answer_overtaken(at(151), &ack);
    assert_eq!((talk.sends(151), talk.standing()), (vec![2], Standing::Recovery));
}

/// If the path carries less, segments that are too long are sent again in pieces. The window keeps its number of
/// segments.
#[test]
fn what_is_too_long_for_the_path_is_cut() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.path_mss(500);
    assert_eq!(talk.sends(120), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(talk.0.congestion.cwnd, 5000);
}

/// As in Linux, which counts segments: the threshold, the windows for an undo and those of CUBIC have as many segments as before.
/// A threshold that was never set stays.
#[test]
fn all_windows_keep_their_numbers_of_segments_on_another_path() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.path_mss(500);
    let arbitrarily_high = 65_535 << 14;
    assert_eq!(talk.0.congestion.ssthresh, arbitrarily_high);
    talk.0.congestion.ssthresh = 7_000;
    talk.0.congestion.cubic.most = 9_250;
    talk.0.congestion.cubic.epoch = Some((at(1), 8_000));
    talk.0.repair.as_mut().unwrap().undo.begin(Seq(0), 0, 12_000, 20_500);
    talk.0.path_mss(1000);
    let undo = talk.0.repair.as_ref().unwrap().undo;
    assert_eq!((talk.0.congestion.ssthresh, undo.cwnd, undo.ssthresh), (14_000, 24_000, 41_000));
    let cubic = talk.0.congestion.cubic;
    assert_eq!((cubic.most, cubic.epoch), (18_500, Some((at(1), 16_000))));
}

#[test]
fn idling_lowers_the_window_by_half_for_each_time_out() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    talk.0.congestion.cwnd = 64_000;
    let rto = talk.0.rto.current();
    talk.0.congestion.restart(rto * 2 + Duration::from_millis(1), rto);
    assert_eq!(talk.cwnd(), 16);
    talk.0.congestion.restart(rto * 9, rto);
    assert_eq!(talk.cwnd(), 10, "no less than a connection begins with");
}
