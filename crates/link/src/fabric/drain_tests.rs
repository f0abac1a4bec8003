//! Tests of the frames that a radio sends before it leaves its cell.

use super::*;
use crate::fabric::tests::{BYTES, M, MS, O, S, STATION, air_of, flight};
use crate::{Flight, Landing, Listening, Offer, reason};
use wire::Reason;

const START: Instant = Instant::from_millis(1);

/// Returns a fabric with two cells, and three offers. The mobile host is in the first cell, and has the time `drain` to
/// send waiting frames. At [`START`] it offers three frames of 1 ms each: one is on the air, and two wait.
fn three(drain: Duration) -> (Fabric, Vec<Offer>) {
    let mut fabric = air_of(Duration::ZERO, Listening { drain, ..Listening::default() });
    let offers = (0..3).map(|_| fabric.offer(START, M, BYTES).unwrap()).collect();
    (fabric, offers)
}

/// Takes decisions until none is due. Returns the result of each offer, and the radios that have left.
fn until_rest(fabric: &mut Fabric, offers: &[Offer]) -> (Vec<Result<Flight, Reason>>, Vec<Tuning>) {
    let mut left = Vec::new();
    let mut fates = vec![None; offers.len()];
    while let Some(at) = fabric.next_decision() {
        for decision in fabric.decide(at) {
            let place = offers.iter().position(|offer| *offer == Offer::Waits(decision.ticket)).unwrap();
            fates[place] = Some(decision.fate);
        }
        left.extend(fabric.left());
    }
    let fates = offers.iter().zip(fates).map(|(offer, fate)| match offer {
        Offer::Flies(flight) => Ok(*flight),
        Offer::Waits(_) => fate.unwrap(),
    });
    (fates.collect(), left)
}

#[test]
fn what_waits_is_sent_and_then_the_radio_leaves() {
    let (mut fabric, offers) = three(MS * 50);
    assert_eq!(fabric.tune(START, M, Cell(2)), Some(Tune::Drains));
    // A draining radio still accepts frames.
    let offers: Vec<_> = offers.into_iter().chain([fabric.offer(START, M, BYTES).unwrap()]).collect();
    let mut landed = Vec::new();
    let (fates, left) = until_rest(&mut fabric, &offers);
    // Each frame lands before the radio leaves.
    let [tuning] = left[..] else { panic!("{left:?}") };
    assert_eq!((tuning.port, tuning.cell), (M, Cell(2)));
    for fate in fates {
        landed.push(fate.unwrap().lands);
    }
    assert_eq!(landed, [2, 3, 4, 5].map(Instant::from_millis));
    assert_eq!(tuning.ready, Instant::from_millis(10) + Duration::from_nanos(1));
}

#[test]
fn what_is_sent_before_the_radio_leaves_is_heard() {
    let (mut fabric, offers) = three(MS * 50);
    fabric.tune(START, M, Cell(2)).unwrap();
    for offer in offers {
        let flight = flight(&mut fabric, offer).unwrap();
        assert_eq!(fabric.land(&flight, STATION), Landing::At(vec![S]));
    }
}

#[test]
fn what_cannot_be_sent_in_time_is_lost() {
    let (mut fabric, offers) = three(MS + MS / 2);
    assert_eq!(fabric.tune(START, M, Cell(2)), Some(Tune::Drains));
    let (fates, left) = until_rest(&mut fabric, &offers);
    assert!(fates[0].is_ok() && fates[1].is_ok() && fates[2] == Err(reason::SENDER_LEFT), "{fates:?}");
    // The second frame was on the air when the radio left, so it is lost too.
    assert_eq!(fabric.land(&fates[1].unwrap(), STATION), Landing::Lost(reason::SENDER_LEFT));
    assert_eq!(left[0].ready, Instant::from_millis(7) + MS / 2);
}

#[test]
fn the_last_order_counts_and_gives_no_more_time() {
    let (mut fabric, offers) = three(MS + MS / 2);
    fabric.tune(START, M, Cell(1)).unwrap();
    assert_eq!(fabric.tune(START + MS, M, Cell(2)), Some(Tune::Drains));
    let (_, left) = until_rest(&mut fabric, &offers);
    assert_eq!((left.len(), left[0].cell, left[0].ready), (1, Cell(2), Instant::from_millis(7) + MS / 2));
}

#[test]
fn a_radio_with_nothing_to_send_leaves_at_once() {
    let mut fabric = air_of(Duration::ZERO, Listening { drain: MS * 50, ..Listening::default() });
    let leaves =
        |tune: Option<Tune>| matches!(tune, Some(Tune::Leaves(tuning)) if tuning.ready == START + MS * 5);
    assert!(leaves(fabric.tune(START, M, Cell(2))));
    assert_eq!(fabric.tune(START, O, Cell(9)), None, "no such cell");
    let (mut fabric, _) = three(Duration::ZERO);
    assert!(leaves(fabric.tune(START, M, Cell(2))), "without time for it");
}
