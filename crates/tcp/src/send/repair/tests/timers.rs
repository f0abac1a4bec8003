//! The timers of per-segment recovery: round trips, probes and time-outs.

use super::*;
use crate::Fin;

/// `RACK.min_RTT` is the minimum of all round trips, including the handshake (RFC 8985, section 6.2, step 1). Otherwise
/// an acknowledgment 55 ms after the probe would count as an acknowledgment of the original segment.
#[test]
fn the_round_trip_of_the_handshake_counts() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(160, 8, &[]);
    let Timer::Tail(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    talk.0.timeout(when);
    let probe = when.0 / 1_000_000;
    assert_eq!(talk.sends(probe), [9]);
    assert_eq!(talk.hears(probe + 55, 8, &[(9, 10)]), [8]);
}

/// Linux probes the tail only in the states Open and CWR (`tcp_schedule_loss_probe`). So a probe is scheduled after a
/// time-out that was found to be spurious, but not while the state is Loss.
#[test]
fn a_probe_comes_after_a_spurious_time_out_and_not_after_a_loss() {
    let timed_out = || {
        let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
        assert_eq!(talk.waits(Timer::Tail(at(202))), [9]);
        let Timer::Retransmit(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
        assert_eq!(talk.waits(Timer::Retransmit(when)), [0]);
        (talk, when.0 / 1_000_000)
    };
    // If only the segment that was sent again has arrived, the state stays Loss.
    let (mut talk, when) = timed_out();
    talk.hears(when + 50, 1, &[]);
    assert!(matches!((talk.standing(), talk.0.timer), (Standing::Loss, Timer::Retransmit(_))));
    // If an echo shows that the first copies had arrived, the time-out was spurious, and a probe is scheduled.
    let (mut talk, when) = timed_out();
    assert_eq!(talk.hears_echo(when + 50, 2, 100), [] as [u32; 0]);
    assert!(matches!((talk.standing(), talk.0.timer), (Standing::Open, Timer::Tail(_))));
}

/// A round trip that timestamps give counts for `RACK.min_RTT` (Linux: `tcp_ack_update_rtt`). It is at least one tick.
#[test]
fn the_round_trip_of_a_timestamp_counts() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 10_000);
    talk.waits(Timer::Retransmit(at(350)));
    talk.hears_echo(380, 1, 350);
    assert_eq!(talk.rack().min_rtt, Some(Duration::from_millis(30)));
    talk.sends(390);
    talk.hears_echo(390, 2, 390);
    assert_eq!(talk.rack().min_rtt, Some(Duration::from_millis(1)));
}

/// A FIN takes a sequence number, but no byte. So a full segment with a FIN is sent again in one piece.
#[test]
fn a_fin_does_not_cut_the_last_segment() {
    let ended = |does| {
        let mut talk = Talk::ten(does, 10_000);
        talk.0.write(&[7; 1000]);
        talk.0.fin = Fin::Queued;
        assert_eq!(talk.hears(150, 10, &[]), [10]);
        let when = talk.0.timer.at().unwrap();
        talk.0.timeout(when);
        let chunk = talk.0.next(when, 0).unwrap();
        let segments = talk.0.repair.as_ref().unwrap().segments.len();
        (chunk.seq.0, chunk.bytes.len(), chunk.fin, segments)
    };
    assert_eq!(ended(Mechanisms::ALL), (10_000, 1000, true, 1), "a probe");
    assert_eq!(ended(Mechanisms { tlp: false, ..Mechanisms::ALL }), (10_000, 1000, true, 1), "a time-out");
}

/// If the path carries 500 bytes, a segment of 500 bytes with a FIN is not too long, because a FIN takes no byte.
#[test]
fn a_fin_is_not_too_long_for_a_path() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.write(&[7; 500]);
    talk.0.fin = Fin::Queued;
    assert_eq!(talk.hears(150, 10, &[]), [10]);
    talk.0.path_mss(500);
    assert_eq!((talk.sends(160), talk.0.retransmissions), (vec![], 0));
    // With a limit of zero, every segment is declared lost, even a FIN alone.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    talk.0.fin = Fin::Queued;
    assert_eq!(talk.sends(150), [10]);
    talk.0.lose_longer(0);
    assert_eq!(talk.0.repair.as_ref().unwrap().segments.lost(), 1);
}

/// The probe is new data if the peer's window has room for it, however short the data is (RFC 8985, section 7.3; Linux:
/// `TCP_NAGLE_OFF`).
#[test]
fn a_probe_does_not_wait_for_a_whole_segment() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.write(&[7; 100]);
    talk.hears(150, 8, &[]);
    talk.0.write(&[7; 100]);
    assert_eq!(talk.sends(151), [] as [u32; 0], "the one before is small and not acknowledged");
    let Timer::Tail(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    talk.0.timeout(when);
    let chunk = talk.0.next(when, 0).unwrap();
    assert_eq!((chunk.seq.0, chunk.bytes.len()), (10_100, 100));
}

/// A loss that is found by time begins a recovery (Linux: `tcp_rack_reo_timeout`). During a recovery, such a loss does
/// not open the window, because nothing arrived.
#[test]
fn time_alone_lets_nothing_out_in_a_recovery() {
    let mut talk = Talk::ten(Mechanisms::ALL, 40_000);
    talk.0.repair.as_mut().unwrap().rack.reordered = true;
    talk.hears(150, 0, &[(1, 2)]);
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    talk.0.timeout(when);
    talk.sends(165);
    assert_eq!(talk.standing(), Standing::Recovery);
    talk.hears(170, 0, &[(1, 2), (4, 5)]);
    let (cwnd, delivered) = (talk.cwnd(), talk.0.repair.as_ref().unwrap().prr.delivered);
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    talk.0.timeout(when);
    assert_eq!((talk.cwnd(), talk.0.repair.as_ref().unwrap().prr.delivered), (cwnd, delivered));
    assert!(talk.0.repair.as_ref().unwrap().segments.lost() > 1, "the second and the third are lost too");
}

/// After a peer discards data that it had reported, a time-out declares all unacknowledged data lost, however recent
/// (RFC 2018, section 8).
#[test]
fn after_reneging_all_is_lost() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 11_000);
    talk.hears(150, 1, &[]); // the eleventh is sent
    talk.0.repair.as_mut().unwrap().segments.edit(0, |sent| sent.sacked = true);
    talk.0.timer = Timer::Retransmit(at(180));
    talk.0.timeout(at(180));
    let segments = &talk.0.repair.as_ref().unwrap().segments;
    assert_eq!((segments.sacked(), segments.lost(), segments.len()), (0, 10, 10));
}

/// At most one probe is in flight (RFC 8985, section 7.3). If the timer of a probe expires while a probe is in flight,
/// the retransmission timer starts, counted from when the first segment was sent (Linux: `tcp_rearm_rto`).
#[test]
fn a_second_probe_waits_for_the_answer_to_the_first() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 7, &[]);
    assert_eq!(talk.waits(Timer::Tail(at(252))), [9]);
    talk.hears(260, 8, &[]);
    let Timer::Tail(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    assert_eq!(talk.waits(Timer::Tail(when)), [] as [u32; 0]);
    let overdue = at(when.0 / 1_000_000) + Duration::from_micros(1);
    assert_eq!(talk.0.timer, Timer::Retransmit(overdue), "it left longer than a time-out ago");
}

/// If no new data can be sent, F-RTO ends, and lost segments are sent again (RFC 5682, section 3.1, step 2b).
#[test]
fn without_new_data_a_time_out_is_repaired() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 40_000);
    talk.waits(Timer::Retransmit(at(350)));
    talk.0.window = 9010; // room for ten bytes: too little for a segment
    assert_eq!(talk.hears(360, 1, &[]), [1, 2]);
}

/// After a timer of reordering or of a probe, the time-out counts from when the first segment was sent (Linux:
/// `tcp_rearm_rto`).
#[test]
fn a_time_out_counts_from_the_first_segment_after_another_timer() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.0.repair.as_mut().unwrap().rack.reordered = true;
    talk.hears(150, 1, &[(2, 3)]);
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    let rto = talk.0.rto.current();
    let repair = talk.0.repair.take().unwrap();
    talk.0.rearm(at(160), &repair);
    assert_eq!(talk.0.timer, Timer::Retransmit(at(100) + rto));
    talk.0.timer = Timer::Tail(when);
    talk.0.rearm(at(160), &repair);
    assert_eq!(talk.0.timer, Timer::Retransmit(at(100) + rto));
    talk.0.rearm(at(160), &repair);
    assert_eq!(talk.0.timer, Timer::Retransmit(at(160) + rto), "and afresh after none");
    talk.0.timer = Timer::Tail(when);
    talk.0.rearm(at(9000), &repair);
    assert_eq!(talk.0.timer, Timer::Retransmit(at(9000) + Duration::from_micros(1)), "it is overdue");
}

/// When the wait for reordering ends, losses are searched for, even if nothing has arrived (RFC 8985, section 6.2, step
/// 5).
#[test]
fn time_alone_finds_losses() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 0, &[(1, 2)]);
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    assert!(!talk.rack().advanced);
    talk.0.timeout(when);
    let repair = talk.0.repair.as_ref().unwrap();
    assert_eq!((repair.standing, repair.segments.lost(), repair.prr.delivered), (Standing::Recovery, 1, 1));
}

/// A block that reports a duplicate above the acknowledgment is within the second block (RFC 2883, section 4). The
/// duplicate counts for the undo. It is a sign of reordering if more data has arrived above it.
#[test]
fn a_duplicate_above_the_acknowledgment() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 0, &[(3, 7)]);
    assert_eq!(talk.standing(), Standing::Recovery);
    let copies = talk.0.repair.as_ref().unwrap().undo.resent;
    talk.hears(151, 0, &[(2, 7)]);
    assert!(copies > 0 && talk.0.retransmissions > 0);
    talk.0.repair.as_mut().unwrap().segments.edit(2, |sent| sent.ever_resent = true);
    talk.0.repair.as_mut().unwrap().rack.reordered = false;
    talk.hears(200, 0, &[(2, 3), (2, 7)]);
    let repair = talk.0.repair.as_ref().unwrap();
    assert_eq!((repair.duplicates, repair.undo.resent, repair.rack.reordered), (1, copies - 1, true));
    // Segment 4 was sent only once, so the network made the copy.
    let resent = repair.undo.resent;
    talk.hears(201, 0, &[(4, 5), (2, 7)]);
    let repair = talk.0.repair.as_ref().unwrap();
    assert_eq!((repair.duplicates, repair.undo.resent), (2, resent));
    // A block that no other block covers reports no duplicate.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 0, &[(3, 7)]);
    talk.hears(200, 0, &[(8, 9), (3, 7)]);
    assert_eq!(talk.0.repair.as_ref().unwrap().duplicates, 0);
}

/// The peer has the first segment, but its acknowledgment was lost, and all other segments were lost. The answer to the
/// copy echoes the timestamp of the original, and reports the copy as a duplicate. As in Linux (`tcp_may_undo`), the
/// time-out is undone. RFC 3522, section 3.2, step 5, keeps it because of the duplicate. If the segments in flight fill
/// the window, only the probe shows their loss. It leaves after two smoothed round trips, which contain the outage.
#[test]
fn a_lost_acknowledgment_undoes_a_real_time_out_until_the_probe() {
    let outage = || {
        let mut talk = Talk::ten(Mechanisms::ALL, 40_000);
        talk.0.congestion.ssthresh = 8000;
        assert_eq!(talk.waits(Timer::Tail(at(202))), [10], "beyond the window");
        assert_eq!(talk.waits(Timer::Retransmit(at(452))), [0]);
        assert_eq!(talk.waits(Timer::Retransmit(at(952))), [0]);
        talk
    };
    let mut talk = outage();
    assert_eq!(talk.hears_all(1002, 1, &[(0, 1)], Some(100)), [] as [u32; 0]);
    assert_eq!((talk.standing(), talk.cwnd()), (Standing::Open, 10));
    assert_eq!(talk.waits(Timer::Tail(at(1317))), [11], "2 (7/8 50 + 1/8 902) + 2");
    assert_eq!(talk.hears(1367, 1, &[(11, 12)]), [1]);
    assert_eq!(talk.standing(), Standing::Recovery);
    // Counter-check: the peer has two segments, so the window has room, and a new segment shows the loss.
    let mut talk = outage();
    assert_eq!(talk.hears_all(1002, 2, &[(0, 1)], Some(100)), [11]);
    assert_eq!(talk.hears(1052, 2, &[(11, 12)]), [2]);
}
