//! Tests of the effect of a change of a link on frames in flight, and on the interfaces of the link.

use super::*;
use crate::air::tests::cell;
use crate::medium::Faults;
use crate::{Air, Arrived, Landing, Listening, Offer, RadioSpec, WireSpec, reason};
use wire::{Duration, Mac, Rng};

const MS: Duration = Duration::from_millis(1);
const A: PortId = PortId(1);
const B: PortId = PortId(2);
const STATION: PortId = PortId(3);
const MOBILE: PortId = PortId(4);
const WIRE: ChangedLink = ChangedLink::Wire([A, B]);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn fabric() -> Fabric {
    let mut fabric = Fabric::default();
    let faults = Faults::default();
    let spec = WireSpec { rate: 2_000_000, delay: [MS * 3; 2], queue: 8, mtu: 1500, faults };
    fabric.add_wire([A, B], &spec, &Rng::new(1));
    fabric.add_cell(&cell(1, Air::default()), &Rng::new(1));
    let radio = |number, cell| RadioSpec {
        mac: Mac([2, 0, 0, 0, 0, number]),
        cell,
        retune: MS * 5,
        attach: MS,
        excursion: MS,
        listening: Listening::default(),
        queue: None,
    };
    fabric.add_radio(STATION, radio(1, Some(Cell(1))));
    fabric.add_radio(MOBILE, radio(2, None));
    let tuning = fabric.leave_for(at(0), MOBILE, Cell(1)).unwrap();
    fabric.arrive(&tuning);
    fabric
}

fn sent(fabric: &mut Fabric, now: u64) -> Flight {
    match fabric.offer(at(now), A, 236) {
        Ok(Offer::Flies(flight)) => flight,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cut_wire_loses_what_is_in_it_and_carries_what_comes_after() {
    let mut fabric = fabric();
    let (flying, queued) = (sent(&mut fabric, 10), sent(&mut fabric, 10));
    assert_eq!(
        fabric.change(at(11), WIRE, Change::Cut),
        [Consequence::At(A, InterfaceState::Down), Consequence::At(B, InterfaceState::Down)]
    );
    assert_eq!(fabric.change(at(11), WIRE, Change::Cut), [], "it is cut already");
    assert_eq!(fabric.offer(at(11), A, 100), Err(reason::CUT));
    assert_eq!(
        fabric.change(at(11), WIRE, Change::Restore),
        [Consequence::At(A, InterfaceState::Up), Consequence::At(B, InterfaceState::Up)]
    );
    let later = sent(&mut fabric, 11);
    for lost in [flying, queued] {
        assert!(!fabric.is_whole(&lost));
        assert_eq!(fabric.land(&lost, Mac::ZERO), Landing::Lost(reason::CUT));
    }
    assert!(later.start == at(11), "and waits for none of them: {later:?}");
    assert_eq!(fabric.land(&later, Mac::ZERO), Landing::At(vec![B]));
}

#[test]
fn radios_return_to_a_cell_that_is_back() {
    let mut fabric = fabric();
    let all = fabric.change(at(10), ChangedLink::Cell(Cell(1)), Change::Cut);
    assert_eq!(
        all,
        [Consequence::At(STATION, InterfaceState::Down), Consequence::At(MOBILE, InterfaceState::OutOfRange)]
    );
    for port in [STATION, MOBILE] {
        assert_eq!(fabric.offer(at(11), port, 100), Err(reason::CUT));
    }
    let back = fabric.change(at(20), ChangedLink::Cell(Cell(1)), Change::Restore);
    let [Consequence::At(STATION, InterfaceState::Up), Consequence::Returns(tuning)] = back[..] else {
        panic!("{back:?}")
    };
    assert_eq!((tuning.port, tuning.ready), (MOBILE, at(25)), "it tunes again");
    assert_eq!(fabric.arrive(&tuning), Arrived::Here);
}

#[test]
fn a_cell_may_be_cut_for_one_radio() {
    let mut fabric = fabric();
    let place = ChangedLink::Radio(Cell(1), MOBILE);
    assert_eq!(
        fabric.change(at(10), place, Change::Cut),
        [Consequence::At(MOBILE, InterfaceState::OutOfRange)]
    );
    let tuning = fabric.leave_for(at(11), MOBILE, Cell(1)).unwrap();
    assert_eq!(fabric.arrive(&tuning), Arrived::OutOfRange);
    assert!(fabric.offer(at(12), STATION, 100).is_ok(), "the base station does not notice");
    assert!(matches!(fabric.change(at(20), place, Change::Restore)[..], [Consequence::Returns(_)]));
}

#[test]
fn loss_and_mtu_change_one_link_alone() {
    let mut fabric = fabric();
    let other = [PortId(5), PortId(6)];
    let faults = Faults::default();
    let spec = WireSpec { rate: 2_000_000, delay: [MS * 3; 2], queue: 8, mtu: 1500, faults };
    fabric.add_wire(other, &spec, &Rng::new(1));
    assert_eq!(fabric.change(at(1), WIRE, Change::Loss(1.0)), []);
    assert_eq!(fabric.offer(at(1), A, 100), Err(reason::LINK_ERROR));
    let narrowed = fabric.change(at(2), WIRE, Change::Mtu(600));
    assert_eq!(
        narrowed,
        [Consequence::At(A, InterfaceState::Mtu(600)), Consequence::At(B, InterfaceState::Mtu(600))]
    );
    assert_eq!(fabric.offer(at(2), B, 601), Err(reason::MTU));
    assert!(fabric.offer(at(3), other[0], 1500).is_ok());
}
