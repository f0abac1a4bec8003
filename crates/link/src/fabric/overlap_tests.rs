//! Tests of radios that receive several stations of their channel.

use crate::air::tests::cell;
use crate::fabric::tests::{BYTES, M, MS, O, S, STATION, flight, fly};
use crate::{
    Air, Arrived, Change, ChangedLink, Consequence, Fabric, Flight, Hears, InterfaceState, Landing,
    Listening, Offer, PortId, RadioSpec, Sample, SignalCourse, Tune, Tuning, reason,
};
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant, Mac, Rng};

const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const MOBILE: Mac = Mac([2, 0, 0, 0, 0, 7]);
/// The station of cell 3, which has another channel.
const FAR: PortId = PortId(3);

/// Returns a fabric with cells 1 and 2 on one channel and cell 3 on another, each with a station, and a mobile host in
/// cell 1.
fn channel(hears: Hears) -> Fabric {
    let mut fabric = Fabric::default();
    for (number, channel) in [(1, 6), (2, 6), (3, 11)] {
        fabric.add_cell(&cell(number, Air { channel: Some(channel), ..Air::default() }), &Rng::new(1));
    }
    let radio = |number, cell| RadioSpec {
        mac: Mac([2, 0, 0, 0, 0, number]),
        cell,
        retune: MS * 5,
        attach: Duration::ZERO,
        excursion: MS * 4,
        listening: Listening { hears, ..Listening::default() },
        queue: None,
    };
    for (port, number) in [(S, 1), (O, 2), (FAR, 3)] {
        let spec = radio(number, Some(Cell(number.into())));
        fabric.add_radio(port, RadioSpec { listening: Listening::default(), ..spec });
    }
    fabric.add_radio(M, radio(7, None));
    let tuning = fabric.leave_for(Instant::ZERO, M, Cell(1)).unwrap();
    assert_eq!(fabric.arrive(&tuning), Arrived::Here);
    fabric
}

/// Sends a frame, and returns where it lands. The channel is free at `now`.
fn sent(fabric: &mut Fabric, now: u64, from: PortId, dst: Mac) -> Landing {
    let flight = fly(fabric, Instant::from_millis(now), from, BYTES);
    fabric.land(&flight, dst)
}

fn at(ports: &[PortId]) -> Landing {
    Landing::At(ports.to_vec())
}

const NOT_THERE: Landing = Landing::Lost(reason::RECEIVER_LEFT);

#[test]
fn a_radio_hears_the_stations_of_its_channel_that_it_is_configured_to_hear() {
    for (hears, data, group) in [
        (Hears::Cell, NOT_THERE, NOT_THERE),
        (Hears::ChannelDataOfOne, NOT_THERE, at(&[M])),
        (Hears::ChannelDataOfAll, at(&[M]), at(&[M])),
    ] {
        let mut fabric = channel(hears);
        assert_eq!(sent(&mut fabric, 10, S, MOBILE), at(&[M]), "{hears:?}: its own station");
        assert_eq!(sent(&mut fabric, 20, O, MOBILE), data, "{hears:?}");
        assert_eq!(sent(&mut fabric, 30, O, Mac::BROADCAST), group, "{hears:?}");
        assert_eq!(sent(&mut fabric, 40, FAR, MOBILE), NOT_THERE, "another channel");
        assert_eq!(sent(&mut fabric, 50, FAR, Mac::BROADCAST), NOT_THERE, "another channel");
    }
}

#[test]
fn the_addressed_station_receives_what_the_radio_sends() {
    for (hears, other, group) in [
        (Hears::Cell, NOT_THERE, at(&[S])),
        (Hears::ChannelDataOfOne, at(&[O]), at(&[S, O])),
        (Hears::ChannelDataOfAll, at(&[O]), at(&[S, O])),
    ] {
        let mut fabric = channel(hears);
        assert_eq!(sent(&mut fabric, 10, M, STATION), at(&[S]), "{hears:?}");
        assert_eq!(sent(&mut fabric, 20, M, OTHER), other, "{hears:?}");
        assert_eq!(sent(&mut fabric, 30, M, Mac::BROADCAST), group, "{hears:?}");
        assert_eq!(sent(&mut fabric, 40, M, Mac([2, 0, 0, 0, 0, 3])), NOT_THERE, "another channel");
    }
}

/// The overlap lasts from 100 ms to 200 ms.
fn course() -> SignalCourse {
    let at = Instant::from_millis;
    SignalCourse::default()
        .with(Cell(1), vec![(at(0), -60), (at(200), -60), (at(200), -120)])
        .with(Cell(2), vec![(at(0), -120), (at(100), -120), (at(100), -60), (at(400), -60), (at(400), -120)])
}

/// With data of all stations the radio changes the cell without a loss, and loses its link when it hears no station. With
/// data of one it loses its link with its cell.
#[test]
fn a_radio_on_a_course_hears_both_stations_in_the_overlap() {
    for (hears, both, later) in
        [(Hears::ChannelDataOfOne, NOT_THERE, NOT_THERE), (Hears::ChannelDataOfAll, at(&[M]), at(&[M]))]
    {
        let mut fabric = channel(hears);
        fabric.add_course(M, course());
        assert_eq!(sent(&mut fabric, 50, O, Mac::BROADCAST), NOT_THERE, "not in reach yet");
        assert_eq!(sent(&mut fabric, 60, M, OTHER), NOT_THERE, "not in reach yet");
        let early = fly(&mut fabric, Instant(99_500_000), O, BYTES);
        assert_eq!(fabric.land(&early, Mac::BROADCAST), NOT_THERE, "not in reach at its first bit");
        assert_eq!(sent(&mut fabric, 110, O, Mac::BROADCAST), at(&[M]));
        assert_eq!(sent(&mut fabric, 120, O, MOBILE), both);
        assert_eq!(sent(&mut fabric, 130, S, MOBILE), at(&[M]));
        assert_eq!(sent(&mut fabric, 140, M, OTHER), at(&[O]));
        let Sample { is_lost, moved_to, .. } = fabric.sample(Instant::from_millis(200), M);
        assert_eq!(is_lost, hears == Hears::ChannelDataOfOne);
        assert_eq!(moved_to, (!is_lost).then_some(Cell(2)), "its host gets an event");
        assert_eq!(sent(&mut fabric, 210, O, MOBILE), later);
        if is_lost {
            continue;
        }
        assert_eq!(sent(&mut fabric, 220, M, OTHER), at(&[O]));
        assert_eq!(sent(&mut fabric, 230, M, STATION), NOT_THERE, "out of reach of its first cell");
        assert!(fabric.sample(Instant::from_millis(400), M).is_lost, "it hears no station");
        assert_eq!(fabric.offer(Instant::from_millis(400), M, BYTES), Err(reason::OUT_OF_RANGE));
    }
}

/// Frames that are on the air or wait when the radio changes its cell still arrive.
#[test]
fn a_change_within_the_channel_loses_nothing() {
    let mut fabric = channel(Hears::ChannelDataOfAll);
    let up = fly(&mut fabric, Instant::from_millis(10), M, BYTES);
    let waits = fabric.offer(Instant::from_millis(10), M, BYTES).unwrap();
    assert!(matches!(waits, Offer::Waits(_)));
    let left = Instant(10_500_000);
    let Some(Tune::Leaves(tuning)) = fabric.tune(left, M, Cell(2)) else { panic!("it leaves at once") };
    assert_eq!((tuning.ready, fabric.arrive(&tuning)), (left, Arrived::Here));
    assert_eq!(fabric.land(&up, STATION), at(&[S]));
    let waited = flight(&mut fabric, waits).unwrap();
    assert_eq!(fabric.land(&waited, STATION), at(&[S]));
    let down = fly(&mut fabric, waited.lands, S, BYTES);
    assert_eq!(fabric.land(&down, MOBILE), at(&[M]));
    let away = fabric.leave_for(Instant::from_millis(20), M, Cell(3)).unwrap();
    assert_eq!(away.ready, Instant::from_millis(25), "another channel takes the time to retune");
    assert_eq!(sent(&mut fabric, 21, S, MOBILE), NOT_THERE);
}

#[test]
fn the_last_tune_counts_within_a_channel_too() {
    let mut fabric = channel(Hears::ChannelDataOfAll);
    let first = fabric.leave_for(Instant::from_millis(10), M, Cell(2)).unwrap();
    let second = fabric.leave_for(Instant::from_millis(10), M, Cell(3)).unwrap();
    assert_eq!(fabric.arrive(&first), Arrived::Elsewhere);
    assert_eq!(fabric.arrive(&second), Arrived::Here);
}

#[test]
fn a_cut_hides_one_station_of_the_channel() {
    let mut fabric = channel(Hears::ChannelDataOfAll);
    let (one, two) = (ChangedLink::Radio(Cell(1), M), ChangedLink::Radio(Cell(2), M));
    assert_eq!(fabric.change(Instant::from_millis(10), two, Change::Cut), []);
    assert_eq!(sent(&mut fabric, 11, O, Mac::BROADCAST), NOT_THERE);
    assert_eq!(sent(&mut fabric, 13, O, MOBILE), Landing::Lost(reason::CUT));
    let early = fly(&mut fabric, Instant::from_millis(15), O, BYTES);
    assert_eq!(fabric.change(Instant(15_500_000), two, Change::Restore), []);
    assert_eq!(fabric.land(&early, MOBILE), NOT_THERE, "not heard from its first bit");
    let moved = fabric.change(Instant::from_millis(20), one, Change::Cut);
    assert_eq!(moved, [Consequence::At(M, InterfaceState::In(Cell(2)))], "it hears the other station");
    assert_eq!(sent(&mut fabric, 21, O, MOBILE), at(&[M]));
    let lost = fabric.change(Instant::from_millis(30), two, Change::Cut);
    assert_eq!(lost, [Consequence::At(M, InterfaceState::OutOfRange)]);
}

fn returns(what: Consequence) -> Option<Tuning> {
    if let Consequence::Returns(tuning) = what { Some(tuning) } else { None }
}

/// Frames at random, while cells are cut and restored for the radio and it changes between them. Each frame ends once, and
/// the radio and a station hear each other only if the radio was in reach for the whole frame.
#[test]
fn no_frame_is_received_out_of_reach() {
    let mut counts = BTreeMap::new();
    for seed in 1..=10 {
        let (mut rng, mut fabric, mut now) =
            (Rng::new(seed), channel(Hears::ChannelDataOfAll), Instant::ZERO);
        let (mut offered, mut ended, mut waits) = (0, 0, 0);
        let (mut flights, mut tunings) = (Vec::<(Flight, Mac)>::new(), Vec::<Tuning>::new());
        // For each cell: since when it is in reach, or `NEVER`.
        let mut reach = BTreeMap::from([(Cell(1), Instant::ZERO), (Cell(2), Instant::ZERO)]);
        for _ in 0..3000 {
            now += Duration::from_micros(rng.draw() % 1500);
            while let Some(due) = fabric.next_decision().filter(|due| *due <= now) {
                for decision in fabric.decide(due) {
                    waits -= 1;
                    match decision.fate {
                        Ok(flight) => flights.push((flight, Mac::BROADCAST)),
                        Err(_) => ended += 1,
                    }
                }
            }
            flights.retain(|(flight, dst)| {
                if flight.lands > now {
                    return true;
                }
                ended += 1;
                let Landing::At(ports) = fabric.land(flight, *dst) else { return false };
                for port in ports {
                    let station = if port == M { flight.from } else { port };
                    let since = reach[&Cell(if station == S { 1 } else { 2 })];
                    assert!(since <= flight.start, "{seed}: {flight:?} at {port:?}");
                    *counts.entry((flight.from, port)).or_insert(0) += 1;
                }
                false
            });
            tunings.retain(|tuning| {
                if tuning.ready <= now {
                    fabric.arrive(tuning);
                }
                tuning.ready > now
            });
            let cell = Cell(1 + (rng.draw() % 2) as u16);
            match rng.draw() % 30 {
                0 => {
                    fabric.change(now, ChangedLink::Radio(cell, M), Change::Cut);
                    reach.insert(cell, Instant::NEVER);
                }
                1 if reach[&cell] == Instant::NEVER => {
                    let follows = fabric.change(now, ChangedLink::Radio(cell, M), Change::Restore);
                    tunings.extend(follows.into_iter().filter_map(returns));
                    reach.insert(cell, now);
                }
                2 => tunings.extend(fabric.leave_for(now, M, cell)),
                _ => {
                    offered += 1;
                    let from = [S, O, M][(rng.draw() % 3) as usize];
                    let dst = if from == M { [STATION, OTHER][(rng.draw() % 2) as usize] } else { MOBILE };
                    match fabric.offer(now, from, BYTES) {
                        Ok(Offer::Flies(flight)) => flights.push((flight, dst)),
                        Ok(Offer::Waits(_)) => waits += 1,
                        Err(_) => ended += 1,
                    }
                }
            }
        }
        assert_eq!(ended + flights.len() + waits, offered, "{seed}");
    }
    assert!([(S, M), (O, M), (M, S), (M, O)].iter().all(|way| counts[way] > 500), "{counts:?}");
}
