//! The congestion window in per-segment recovery: its use, reduction and undo.

use super::*;

/// The loss of a retransmission is a further loss. After such a loss, the window grows by no more than what arrives
/// (RFC 6937, section 3: PRR-CRB).
#[test]
fn a_lost_copy_is_a_further_loss() {
    let mut segments = crate::Segments::default();
    segments.push(Seq(0), Seq(1000), at(0));
    segments.lose(0);
    segments.lose(0);
    assert_eq!(segments.losses(), 1, "once");
    segments.edit(0, |sent| sent.resent = true);
    segments.lose(0);
    assert_eq!((segments.lost(), segments.losses()), (1, 2));
    // Seven of ten segments are lost, and the second of the first three copies is lost too. Two copies arrived, so two
    // segments are sent.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    assert_eq!(talk.hears(150, 0, &[(7, 10)]), [0, 1, 2]);
    assert_eq!(talk.hears(200, 1, &[(2, 3), (7, 10)]), [1, 3]);
    // Counter-check: all three copies arrived, so four segments are sent.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 0, &[(7, 10)]);
    assert_eq!(talk.hears(200, 3, &[(7, 10)]), [3, 4, 5, 6]);
}

/// If the window was not used up within a time-out, half of the unused part is taken away (RFC 2861, section 3.2;
/// Linux: `tcp_cwnd_application_limited`). The window does not grow in the meantime, whatever is acknowledged.
#[test]
fn a_window_that_is_not_used_shrinks_and_does_not_grow() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    assert_eq!(talk.cwnd(), 20, "all ten were used");
    talk.0.congestion.ssthresh = 1;
    let mut now = 150;
    let mut windows = Vec::new();
    for round in 11..25 {
        now += 50;
        talk.0.write(&[7; 1000]);
        assert_eq!(talk.sends(now), [round - 1]);
        now += 50;
        talk.hears(now, round, &[]);
        windows.push(talk.cwnd());
    }
    // The time-out is 250 ms, so the window shrinks at 400 ms, 700 ms, 1000 ms and 1300 ms.
    assert_eq!(windows, [20, 20, 15, 15, 15, 12, 12, 12, 11, 11, 11, 10, 10, 10]);
    assert_eq!(talk.0.congestion.ssthresh, 15_000, "three quarters of what there was");
    // Within a time-out, one burst of fifteen segments counts as the use of the window.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    talk.0.congestion.ssthresh = 1;
    talk.0.write(&[7; 15_000]);
    assert_eq!(talk.sends(250).len(), 15);
    talk.hears(300, 25, &[]);
    talk.0.write(&[7; 1000]);
    talk.sends(440);
    assert_eq!(talk.cwnd(), 17);
    // A sender whose buffer is full is not limited by its application.
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    talk.0.capacity = 1000;
    talk.0.write(&[7; 1000]);
    talk.0.last_sent = at(400); // it did not idle
    talk.sends(450);
    assert_eq!(talk.cwnd(), 20);
    talk.0.capacity = 100_000;
    // The window does not shrink while data is missing, without `idle_restart`, or if the peer's window stops the
    // sender.
    let cwnd = |change: &dyn Fn(&mut Talk)| {
        let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
        talk.hears(150, 10, &[]);
        talk.0.last_sent = at(400);
        change(&mut talk);
        talk.0.write(&[7; 1000]);
        talk.sends(450);
        talk.cwnd()
    };
    assert_eq!(cwnd(&|_| ()), 15);
    assert_eq!(cwnd(&|talk| talk.0.repair.as_mut().unwrap().standing = Standing::Disorder), 20);
    assert_eq!(cwnd(&|talk| talk.0.idle_restart = false), 20);
    assert_eq!(cwnd(&|talk| talk.0.window = 10), 20);
}

/// An idle time halves the window once for each time-out. The window is not reduced a second time because it was not
/// used (RFC 2861).
#[test]
fn an_idle_sender_begins_with_less() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 10, &[]);
    talk.0.congestion.cwnd = 64_000;
    talk.0.congestion.cubic.epoch = Some((at(100), 64_000));
    talk.0.write(&[7; 1000]);
    let idle = talk.0.rto.current() * 2 + Duration::from_millis(10);
    let now = at(100) + idle;
    assert_eq!(talk.sends(now.0 / 1_000_000), [10]);
    assert_eq!(talk.cwnd(), 16, "half for each of two time-outs, and no more");
    assert_eq!(talk.0.congestion.cubic.epoch, Some((now, 64_000)), "RFC 9438, section 5.8");
}

/// A time-out ends the cubic curve, and forgets `W_max` (RFC 9438, section 4.8).
#[test]
fn a_time_out_begins_a_new_curve() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 10_000);
    talk.0.congestion.cubic.most = 99_000;
    talk.0.congestion.cubic.epoch = Some((at(100), 64_000));
    talk.waits(Timer::Retransmit(at(350)));
    assert_eq!((talk.0.congestion.cubic.most, talk.0.congestion.cubic.epoch), (0, None));
}

/// After a loss that the probe repaired, the window is set to the threshold at once (RFC 8985, section 7.4.2). A later
/// duplicate undoes nothing.
#[test]
fn a_loss_that_the_probe_repaired_is_no_recovery() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 9, &[]);
    assert_eq!(talk.cwnd(), 19);
    assert_eq!(talk.waits(Timer::Tail(at(400))), [9]);
    talk.0.write(&[7; 2000]);
    assert_eq!(talk.sends(401), [10, 11]);
    talk.hears(451, 12, &[]);
    let repair = talk.0.repair.as_ref().unwrap();
    assert_eq!((repair.standing, repair.undo.marker, repair.tail.end), (Standing::Open, None, None));
    assert_eq!((talk.cwnd(), talk.0.congestion.ssthresh), (9, 9000));
}

/// The undo of a spurious time-out restores the window and the threshold. Neither becomes smaller than it is now.
#[test]
fn what_is_taken_back_is_the_window_and_the_threshold() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, frto: false, ..Mechanisms::ALL }, 10_000);
    talk.0.congestion.ssthresh = 8000;
    talk.waits(Timer::Retransmit(at(350)));
    talk.waits(Timer::Retransmit(at(850)));
    assert_eq!((talk.cwnd(), talk.0.congestion.ssthresh, talk.0.unanswered), (1, 5000, 2));
    talk.hears_echo(910, 1, 100);
    assert_eq!((talk.cwnd(), talk.0.congestion.ssthresh, talk.0.unanswered), (10, 8000, 0));
    assert_eq!(talk.0.repair.as_ref().unwrap().undo.marker, None, "once");
    let mut more = talk.0.congestion.clone();
    more.restore_window(1000, 1000);
    assert_eq!((more.cwnd, more.ssthresh), (10_000, 8000));
}

/// A block can show that a time-out was spurious before anything is acknowledged. The peer has answered, so the next
/// time-out is a first one again. In Linux, `tcp_try_undo_loss` resets `icsk_retransmits`.
#[test]
fn a_time_out_that_is_taken_back_does_not_count_as_unanswered() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 10_000);
    talk.waits(Timer::Retransmit(at(350)));
    assert_eq!((talk.standing(), talk.0.unanswered), (Standing::Loss, 1));
    talk.hears(400, 0, &[(3, 4)]);
    assert_ne!(talk.standing(), Standing::Loss, "nothing was lost but time");
    assert_eq!(talk.0.unanswered, 0);
}

/// One loss lowers the threshold once, however often the timer expires (RFC 5681, section 3.1).
#[test]
fn a_second_time_out_of_the_same_segment_does_not_lower_the_threshold() {
    let mut talk = Talk::ten(Mechanisms { tlp: false, ..Mechanisms::ALL }, 10_000);
    talk.waits(Timer::Retransmit(at(350)));
    assert_eq!(talk.0.congestion.ssthresh, 5000);
    talk.waits(Timer::Retransmit(at(850)));
    assert_eq!(talk.0.congestion.ssthresh, 5000);
    // After the copy is acknowledged, the next time-out is another loss.
    talk.hears(900, 1, &[]);
    talk.0.congestion.cwnd = 4000;
    let when = talk.0.timer.at().unwrap();
    talk.0.timeout(when);
    assert_eq!(talk.0.congestion.ssthresh, 2000);
}

/// After an undo, losses are searched for anew, and segments that are too late are declared lost again (Linux:
/// `tcp_try_undo_partial`, `tcp_undo_cwnd_reduction`).
#[test]
fn losses_are_looked_for_anew_after_a_reduction_was_taken_back() {
    let mut talk = Talk::ten(Mechanisms::ALL, 10_000);
    talk.hears(150, 0, &[(5, 7)]);
    let Timer::Reorder(when) = talk.0.timer else { panic!("{:?}", talk.0.timer) };
    talk.0.timeout(when);
    assert_eq!(talk.sends(165), [0]);
    let sent = talk.hears_echo(170, 1, 100);
    let lost = talk.0.repair.as_ref().unwrap().segments.lost();
    assert_eq!((talk.standing(), lost, sent.first()), (Standing::Recovery, 4, Some(&1)));
}
