//! Tests of when and where frames arrive, and of the reasons for which they are lost.

use super::*;
use crate::air::tests::cell;
use crate::medium::Faults;
use crate::{Air, Listening};
use wire::Duration;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const STATION: Mac = Mac([2, 0, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const MOBILE: Mac = Mac([2, 0, 0, 0, 0, 7]);
pub(crate) const S: PortId = PortId(1);
pub(crate) const O: PortId = PortId(2);
pub(crate) const M: PortId = PortId(7);
/// The length of a datagram in bytes. With the Ethernet header it takes exactly 1 ms at 2 Mb/s.
pub(crate) const BYTES: usize = 250 - ethernet::HEADER;

fn wire(faults: Faults) -> Fabric {
    let mut fabric = Fabric::default();
    let spec = WireSpec { rate: 2_000_000, delay: [MS * 3, MS * 5], queue: 2, mtu: 1500, faults };
    fabric.add_wire([S, O], &spec, &Rng::new(1));
    fabric
}

/// Returns a fabric with two cells. Each has a station, and a mobile host is in the first cell.
fn air(excursion: Duration) -> Fabric {
    air_of(excursion, Listening::default())
}

/// Returns a fabric like [`air`], with radios that change cells as `listening` defines.
pub(crate) fn air_of(excursion: Duration, listening: Listening) -> Fabric {
    let mut fabric = Fabric::default();
    for number in [1, 2] {
        fabric.add_cell(&cell(number, Air::default()), &Rng::new(1));
    }
    let radio = |mac, cell| RadioSpec {
        mac,
        cell: Some(Cell(cell)),
        retune: MS * 5,
        attach: MS,
        excursion,
        listening,
        queue: None,
    };
    fabric.add_radio(S, radio(STATION, 1));
    fabric.add_radio(O, radio(OTHER, 2));
    fabric.add_radio(M, radio(MOBILE, 1));
    fabric
}

/// Offers a frame and grants channels until the frame flies. Returns the flight.
pub(crate) fn fly(fabric: &mut Fabric, now: Instant, port: PortId, bytes: usize) -> Flight {
    let offer = fabric.offer(now, port, bytes).unwrap();
    flight(fabric, offer).unwrap()
}

/// Grants channels until the frame is decided. Returns its flight, or why it is lost.
pub(crate) fn flight(fabric: &mut Fabric, offer: Offer) -> Result<Flight, Reason> {
    let ticket = match offer {
        Offer::Flies(flight) => return Ok(flight),
        Offer::Waits(ticket) => ticket,
    };
    loop {
        let at = fabric.next_decision().expect("a frame that waits is decided on");
        if let Some(own) = fabric.decide(at).iter().find(|decision| decision.ticket == ticket) {
            return own.fate;
        }
    }
}

#[test]
fn a_wire_delays_each_way_by_its_own_and_frames_queue() {
    let mut fabric = wire(Faults::default());
    let first = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let second = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let back = fly(&mut fabric, Instant::ZERO, O, BYTES);
    assert_eq!(first.lands, Instant::from_millis(4));
    assert_eq!(second.lands, Instant::from_millis(5));
    assert_eq!(back.lands, Instant::from_millis(6), "full duplex: the other way is free");
    assert_eq!(fabric.land(&first, OTHER), Landing::At(vec![O]));
}

#[test]
fn a_full_queue_refuses_and_drains_with_time() {
    let mut fabric = wire(Faults::default());
    for _ in 0..3 {
        fly(&mut fabric, Instant::ZERO, S, BYTES);
    }
    assert_eq!(fabric.offer(Instant::ZERO, S, BYTES), Err(reason::QUEUE_FULL));
    assert!(fabric.offer(Instant::from_millis(1), S, BYTES).is_ok());
    assert_eq!(fabric.offer(Instant::from_millis(9), S, 1501), Err(reason::MTU));
}

#[test]
fn chance_loses_and_doubles() {
    let mut lossy = wire(Faults { loss: 1.0, ..Faults::default() });
    assert_eq!(lossy.offer(Instant::ZERO, S, BYTES), Err(reason::LINK_ERROR));
    let mut doubling = wire(Faults { duplicate: 1.0, ..Faults::default() });
    assert_eq!(fly(&mut doubling, Instant::ZERO, S, BYTES).copies, 2);
}

/// The second copy arrives later than the first one.
#[test]
fn a_duplicate_may_be_late() {
    let delay = Duration::from_millis(50);
    let late = Faults { duplicate: 1.0, duplicate_delay: delay, ..Faults::default() };
    let mut fabric = wire(late);
    let both = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let (first, later) = fabric.split(both);
    let later = later.unwrap();
    assert_eq!((first.copies, later.copies), (1, 1));
    assert_eq!((first.lands, later.lands), (both.lands, both.lands + delay));
    assert_eq!(fabric.split(later), (later, None));
    assert_eq!(fabric.land(&later, OTHER), Landing::At(vec![O]));
    for faults in [Faults { duplicate: 0.0, ..late }, Faults { duplicate_delay: Duration::ZERO, ..late }] {
        let mut fabric = wire(faults);
        let flight = fly(&mut fabric, Instant::ZERO, S, BYTES);
        assert_eq!(fabric.split(flight), (flight, None));
    }
}

#[test]
fn a_cell_is_half_duplex() {
    let mut fabric = air(Duration::ZERO);
    let down = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let up = fly(&mut fabric, Instant::ZERO, M, BYTES);
    assert_eq!((down.lands, up.lands), (Instant::from_millis(1), Instant::from_millis(2)));
    assert_eq!(fabric.land(&down, MOBILE), Landing::At(vec![M]));
    assert_eq!(fabric.land(&up, Mac::BROADCAST), Landing::At(vec![S]), "not beyond the cell");
}

#[test]
fn who_leaves_during_a_frame_has_not_heard_it() {
    let mut fabric = air(Duration::ZERO);
    let down = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let tuning = fabric.leave_for(Instant(500_000), M, Cell(2)).unwrap();
    assert_eq!(tuning.ready, Instant(5_500_000));
    assert_eq!(fabric.land(&down, MOBILE), Landing::Lost(reason::RECEIVER_LEFT));
    assert_eq!(fabric.offer(Instant(600_000), M, BYTES), Err(reason::RETUNING));
    let early = fly(&mut fabric, Instant::from_millis(5), O, BYTES);
    assert_eq!(fabric.arrive(&tuning), Arrived::Here);
    assert_eq!(fabric.land(&early, MOBILE), Landing::Lost(reason::RECEIVER_LEFT), "came in the middle of it");
    let next = fly(&mut fabric, Instant::from_millis(6), O, BYTES);
    assert_eq!(fabric.land(&next, MOBILE), Landing::At(vec![M]));
}

/// If a radio leaves, its frame on the air continues, but is not received. Its waiting frames are lost at once, and
/// take no air time.
#[test]
fn who_leaves_loses_what_it_sends_and_what_waits_at_it() {
    let mut fabric = air(Duration::ZERO);
    let up = fly(&mut fabric, Instant::ZERO, M, BYTES);
    let Offer::Waits(ticket) = fabric.offer(Instant::ZERO, M, BYTES).unwrap() else {
        panic!("the air is busy")
    };
    let left = Instant(500_000);
    fabric.leave_for(left, M, Cell(2)).unwrap();
    assert_eq!(fabric.next_decision(), Some(left));
    let lost = Decision { ticket, from: M, at: left, fate: Err(reason::SENDER_LEFT) };
    assert_eq!(fabric.decide(left), [lost]);
    assert_eq!(fabric.land(&up, STATION), Landing::Lost(reason::SENDER_LEFT));
    let down = fly(&mut fabric, left, S, BYTES);
    assert_eq!(down.start, Instant::from_millis(1), "only what was on the air has to be waited for");
}

#[test]
fn the_last_tune_counts() {
    let mut fabric = air(Duration::ZERO);
    let first = fabric.leave_for(Instant::ZERO, M, Cell(2)).unwrap();
    let second = fabric.leave_for(Instant(1), M, Cell(1)).unwrap();
    assert_eq!(fabric.arrive(&first), Arrived::Elsewhere);
    assert_eq!(fabric.arrive(&second), Arrived::Here);
    assert_eq!(fabric.leave_for(Instant(2), M, Cell(9)), None, "no such cell");
}

#[test]
fn a_visit_of_no_time_disturbs_nothing() {
    let mut fabric = air(Duration::ZERO);
    let down = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let visit = fabric.visit(Instant::ZERO, M, Cell(2), BYTES).unwrap();
    let visit = flight(&mut fabric, visit).unwrap();
    assert_eq!(fabric.land(&visit, OTHER), Landing::At(vec![O]));
    assert_eq!(fabric.land(&down, MOBILE), Landing::At(vec![M]));
}

#[test]
fn a_visit_that_takes_time_is_deaf_meanwhile() {
    let mut fabric = air(MS * 4);
    let down = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let visit = fabric.visit(Instant::ZERO, M, Cell(2), BYTES).unwrap();
    assert_eq!(flight(&mut fabric, visit).unwrap().start, Instant::from_millis(2));
    let own = fly(&mut fabric, Instant::from_millis(3), M, BYTES);
    assert_eq!(own.start, Instant::from_millis(4), "it is back then");
    assert_eq!(fabric.land(&down, MOBILE), Landing::Lost(reason::RECEIVER_AWAY));
    let after = fly(&mut fabric, Instant::from_millis(5), S, BYTES);
    assert_eq!(fabric.land(&after, MOBILE), Landing::At(vec![M]));
}

/// The air of the visited cell is busy until 6 ms. The radio stays there until its packet is sent, and its frames for
/// its own cell wait.
#[test]
fn a_visit_waits_for_the_air_that_it_visits() {
    let mut fabric = air(MS * 4);
    for _ in 0..6 {
        fly(&mut fabric, Instant::ZERO, O, BYTES);
    }
    let visit = fabric.visit(Instant::ZERO, M, Cell(2), BYTES).unwrap();
    let own = fabric.offer(Instant::from_millis(1), M, BYTES).unwrap();
    assert!(matches!((visit, own), (Offer::Waits(_), Offer::Waits(_))));
    let decided = [6, 7].map(|at| {
        assert_eq!(fabric.next_decision(), Some(Instant::from_millis(at)));
        fabric.decide(Instant::from_millis(at)).first().unwrap().fate.unwrap()
    });
    assert_eq!(decided.map(|flight| flight.start), [6, 7].map(Instant::from_millis));
    assert_eq!(fabric.land(&decided[0], OTHER), Landing::At(vec![O]));
}

#[test]
fn a_radio_that_is_switched_on_hears_sooner_than_one_that_changes_cells() {
    let mut fabric = air(Duration::ZERO);
    let new = PortId(99);
    let spec = RadioSpec {
        mac: MOBILE,
        cell: None,
        retune: MS * 50,
        attach: MS * 2,
        excursion: Duration::ZERO,
        listening: Listening::default(),
        queue: None,
    };
    fabric.add_radio(new, spec);
    let first = fabric.leave_for(Instant::ZERO, new, Cell(1)).unwrap();
    assert_eq!(first.ready, Instant::from_millis(2));
    assert_eq!(fabric.arrive(&first), Arrived::Here);
    assert_eq!(fabric.leave_for(first.ready, new, Cell(2)).unwrap().ready, Instant::from_millis(52));
}

#[test]
fn a_radio_that_goes_out_of_range_loses_its_cell_and_cannot_come_back() {
    let mut fabric = air(Duration::ZERO);
    let fades = SignalCourse::default()
        .with(
            Cell(1),
            vec![(Instant::ZERO, -60), (Instant::from_millis(200), -60), (Instant::from_millis(300), -120)],
        )
        .with(Cell(2), vec![(Instant::ZERO, -70)]);
    fabric.add_course(M, fades);
    assert_eq!(fabric.sampled().collect::<Vec<_>>(), [(M, Instant::ZERO)], "stations stay where they are");
    let near = fabric.sample(Instant::from_millis(200), M);
    assert_eq!(near, Sample { heard: vec![(Cell(1), -60), (Cell(2), -70)], is_lost: false, moved_to: None });
    let down = fly(&mut fabric, Instant::from_millis(299), S, BYTES);
    let far = fabric.sample(Instant::from_millis(300), M);
    assert_eq!(far, Sample { heard: vec![(Cell(2), -70)], is_lost: true, moved_to: None });
    assert_eq!(fabric.land(&down, MOBILE), Landing::Lost(reason::RECEIVER_LEFT));
    assert_eq!(fabric.offer(Instant::from_millis(300), M, BYTES), Err(reason::OUT_OF_RANGE));
    assert!(!fabric.sample(Instant::from_millis(400), M).is_lost, "it is reported once");
    let back = fabric.leave_for(Instant::from_millis(400), M, Cell(1)).unwrap();
    assert_eq!(fabric.arrive(&back), Arrived::OutOfRange);
    let other = fabric.leave_for(Instant::from_millis(500), M, Cell(2)).unwrap();
    assert_eq!(fabric.arrive(&other), Arrived::Here);
}

#[test]
#[should_panic(expected = "lands, but this fabric cannot have returned it")]
fn a_flight_of_another_fabric_does_not_land() {
    let flight = fly(&mut air(Duration::ZERO), Instant::ZERO, M, BYTES);
    wire(Faults::default()).land(&flight, STATION);
}

#[test]
#[should_panic(expected = "lands, but this fabric cannot have returned it")]
fn a_flight_does_not_end_before_it_begins() {
    let mut fabric = wire(Faults::default());
    let flight = fly(&mut fabric, Instant::from_millis(9), S, BYTES);
    fabric.land(&Flight { lands: Instant::from_millis(8), ..flight }, OTHER);
}

#[test]
#[should_panic(expected = "a frame ends before it begins")]
fn a_frame_is_not_sent_before_it_begins() {
    let mut fabric = wire(Faults::default());
    let medium = fabric.medium_of(S).unwrap();
    let _ = super::fly(medium, S, FlightPath::Wire(O), (Instant(2), Instant(1)));
}

#[test]
#[should_panic(expected = "no frame was offered with this ticket")]
fn a_decision_is_about_a_frame_that_was_offered() {
    let mut fabric = air(Duration::ZERO);
    let fate = Err(reason::COLLISIONS);
    fabric.decided.push(Decision { ticket: Ticket(1), from: M, at: Instant::ZERO, fate });
    fabric.decide(Instant::ZERO);
}

#[test]
#[should_panic(expected = "channel 0 has another time in the list of due channels")]
fn a_channel_is_granted_when_it_is_due() {
    let mut fabric = air(Duration::ZERO);
    fabric.due.insert((Instant(5), 0));
    fabric.decide(Instant(5));
}
