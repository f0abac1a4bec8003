//! Tests of full-duplex cells: separate rates, no waiting for other senders, and cables that are unplugged.

use crate::air::tests::cell;
use crate::fabric::tests::{BYTES, M, MS, O, S, STATION, flight, fly};
use crate::{
    Air, Arrived, CellSpec, Change, ChangedLink, Consequence, Duplex, Fabric, Flight, InterfaceState,
    Landing, Listening, Offer, PortId, RadioSpec, Tune, Tuning, reason,
};
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant, Mac, Reason, Rng};

const HOST: Mac = Mac([2, 0, 0, 0, 0, 7]);
/// A second mobile host.
const N: PortId = PortId(8);
const SECOND: Mac = Mac([2, 0, 0, 0, 0, 8]);

/// Returns a fabric with two cells of 2 Mb/s, each with a station. Two mobile hosts have tuned to cell 1, and send at
/// 1 Mb/s in a full-duplex cell.
fn switches(duplex: Duplex, drain: Duration) -> Fabric {
    let mut fabric = Fabric::default();
    for number in [1, 2] {
        fabric.add_cell(&CellSpec { duplex, ..cell(number, Air::default()) }, &Rng::new(1));
    }
    let radio = |mac, cell| RadioSpec {
        mac,
        cell,
        retune: MS * 5,
        attach: Duration::ZERO,
        excursion: MS * 4,
        listening: Listening { drain, ..Listening::default() },
        queue: None,
    };
    fabric.add_radio(S, radio(STATION, Some(Cell(1))));
    fabric.add_radio(O, radio(Mac([2, 0, 0, 0, 0, 2]), Some(Cell(2))));
    for (port, mac) in [(M, HOST), (N, SECOND)] {
        fabric.add_radio(port, radio(mac, None));
        let tuning = fabric.leave_for(Instant::ZERO, port, Cell(1)).unwrap();
        assert!(!tuning.unplugs, "it was in no cell");
        assert_eq!(fabric.arrive(&tuning), Arrived::Here);
    }
    fabric
}

fn full(drain: Duration) -> Fabric {
    switches(Duplex::Full { uplink: 1_000_000 }, drain)
}

fn leave(fabric: &mut Fabric, now: Instant, port: PortId, cell: u16) -> Tuning {
    let Some(Tune::Leaves(tuning)) = fabric.tune(now, port, Cell(cell)) else { panic!("it leaves at once") };
    tuning
}

/// The host sends at half the rate of the station, and no sender waits for another one.
#[test]
fn each_sender_has_its_own_rate_and_waits_for_no_other() {
    let mut fabric = full(Duration::ZERO);
    let ms = Instant::from_millis;
    let down = [1, 2].map(|at| (fly(&mut fabric, Instant::ZERO, S, BYTES), ms(at)));
    let up = [2, 4].map(|at| (fly(&mut fabric, Instant::ZERO, M, BYTES), ms(at)));
    let second = (fly(&mut fabric, Instant::ZERO, N, BYTES), ms(2));
    for (flight, lands) in down.into_iter().chain(up).chain([second]) {
        assert_eq!(flight.lands, lands, "{flight:?}");
    }
    assert_eq!(fabric.land(&down[0].0, HOST), Landing::At(vec![M]));
    assert_eq!(fabric.land(&up[0].0, STATION), Landing::At(vec![S]));
    assert_eq!(fabric.land(&down[1].0, Mac::BROADCAST), Landing::At(vec![M, N]));
}

/// Returns the bytes per second that arrive in each direction if both ends always have frames to send.
fn saturated(duplex: Duplex) -> [u64; 2] {
    let (mut fabric, mut bytes) = (switches(duplex, Duration::ZERO), [0; 2]);
    let mut waits = BTreeMap::new();
    let end = Instant::from_millis(1000);
    let mut flights = Vec::new();
    for at in (0..1000).map(Instant::from_millis) {
        for (direction, port) in [S, M].into_iter().enumerate() {
            match fabric.offer(at, port, BYTES) {
                Ok(Offer::Flies(flight)) => flights.push((direction, flight)),
                Ok(Offer::Waits(ticket)) => drop(waits.insert(ticket, direction)),
                Err(why) => assert_eq!(why, reason::QUEUE_FULL),
            }
        }
        while let Some(due) = fabric.next_decision().filter(|due| *due <= at) {
            for decision in fabric.decide(due) {
                let direction = waits.remove(&decision.ticket).unwrap();
                flights.push((direction, decision.fate.unwrap()));
            }
        }
    }
    for (direction, flight) in flights.into_iter().filter(|(_, flight)| flight.lands <= end) {
        bytes[direction] += 250;
        let to = [HOST, STATION][direction];
        assert!(matches!(fabric.land(&flight, to), Landing::At(_)));
    }
    bytes
}

#[test]
fn a_full_duplex_port_carries_both_rates_and_a_half_duplex_cell_shares_one() {
    let [down, up] = saturated(Duplex::Full { uplink: 1_000_000 });
    assert!((249_000..=250_000).contains(&down), "2 Mb/s: {down}");
    assert!((124_000..=125_000).contains(&up), "1 Mb/s: {up}");
    let [down, up] = saturated(Duplex::Half);
    assert!((249_000..=250_000).contains(&(down + up)), "2 Mb/s for both: {down} {up}");
    assert!(down.abs_diff(up) <= 500, "equal shares: {down} {up}");
}

/// What is on the cable when it is unplugged is lost, and what waits at its host is lost at once. Its host is notified,
/// and other hosts are not disturbed.
#[test]
fn a_cable_that_is_unplugged_loses_what_it_carries() {
    let mut fabric = full(Duration::ZERO);
    let down = fly(&mut fabric, Instant::ZERO, S, BYTES);
    let other = fly(&mut fabric, Instant::ZERO, N, BYTES);
    let up = fly(&mut fabric, Instant::ZERO, M, BYTES);
    let Offer::Waits(ticket) = fabric.offer(Instant::ZERO, M, BYTES).unwrap() else { panic!("it is busy") };
    let left = Instant(500_000);
    let tuning = leave(&mut fabric, left, M, 2);
    assert!(tuning.unplugs && tuning.ready == Instant(5_500_000));
    let decided = fabric.decide(left);
    let fates: Vec<_> = decided.iter().map(|decision| (decision.ticket, decision.fate)).collect();
    assert_eq!(fates, [(ticket, Err(reason::SENDER_LEFT))]);
    assert_eq!(fabric.land(&down, HOST), Landing::Lost(reason::RECEIVER_LEFT));
    assert_eq!(fabric.land(&up, STATION), Landing::Lost(reason::SENDER_LEFT));
    assert_eq!(fabric.land(&other, STATION), Landing::At(vec![S]));
    assert_eq!(fabric.offer(left, M, BYTES), Err(reason::RETUNING));
    assert_eq!(fabric.arrive(&tuning), Arrived::Here);
    let up = fly(&mut fabric, tuning.ready, M, BYTES);
    assert_eq!((up.start, fabric.land(&up, Mac::BROADCAST)), (tuning.ready, Landing::At(vec![O])));
}

#[test]
fn a_cable_can_send_what_waits_before_it_is_unplugged() {
    let mut fabric = full(MS * 50);
    let first = fabric.offer(Instant::from_millis(1), M, BYTES).unwrap();
    let second = fabric.offer(Instant::from_millis(1), M, BYTES).unwrap();
    assert_eq!(fabric.tune(Instant::from_millis(1), M, Cell(2)), Some(Tune::Drains));
    let Offer::Flies(first) = first else { panic!("it is idle") };
    let second = flight(&mut fabric, second).unwrap();
    for flight in [first, second] {
        assert_eq!(fabric.land(&flight, STATION), Landing::At(vec![S]));
    }
    let leaves = fabric.next_decision().unwrap();
    fabric.decide(leaves);
    let left = fabric.left();
    assert!(leaves > Instant::from_millis(5) && left.iter().all(|tuning| tuning.unplugs), "{left:?}");
    assert_eq!(left.len(), 1);
}

#[test]
fn a_cable_that_is_cut_has_no_carrier() {
    let mut fabric = full(Duration::ZERO);
    let (place, at) = (ChangedLink::Radio(Cell(1), M), Instant::from_millis);
    let cut = fabric.change(at(1), place, Change::Cut);
    assert_eq!(cut, [Consequence::At(M, InterfaceState::Down)]);
    let tuning = leave(&mut fabric, at(2), M, 1);
    assert_eq!(fabric.arrive(&tuning), Arrived::NoCarrier);
    let back = fabric.change(at(20), place, Change::Restore);
    let [Consequence::Returns(tuning)] = back[..] else { panic!("{back:?}") };
    assert_eq!(fabric.arrive(&tuning), Arrived::Here);
}

#[test]
fn a_cable_cannot_be_in_two_sockets() {
    let mut fabric = full(Duration::ZERO);
    assert_eq!(fabric.visit(Instant::ZERO, M, Cell(2), BYTES), Err(reason::NO_CARRIER));
    let up = fly(&mut fabric, Instant::ZERO, M, BYTES);
    assert_eq!(fabric.land(&up, STATION), Landing::At(vec![S]), "it was not away");
}

#[test]
fn a_change_of_loss_applies_to_both_directions() {
    let mut fabric = full(Duration::ZERO);
    fabric.change(Instant::ZERO, ChangedLink::Cell(Cell(1)), Change::Loss(1.0));
    for port in [S, M] {
        assert_eq!(fabric.offer(Instant::ZERO, port, BYTES), Err(reason::LINK_ERROR));
    }
    fabric.change(Instant::ZERO, ChangedLink::Cell(Cell(1)), Change::Mtu(100));
    for port in [S, M] {
        assert_eq!(fabric.offer(Instant::from_millis(9), port, 101), Err(reason::MTU));
    }
}

/// The state of a random run: the flights, the ends of frames by reason, and the cell of each host with the instant from
/// which it is plugged in.
#[derive(Default)]
struct Seen {
    flights: Vec<Flight>,
    ended: BTreeMap<&'static str, u32>,
    waits: u32,
    here: BTreeMap<PortId, (Instant, u16)>,
}

impl Seen {
    fn decided(&mut self, fate: Result<Flight, Reason>) {
        match fate {
            Ok(flight) => self.flights.push(flight),
            Err(why) => *self.ended.entry(why.0).or_default() += 1,
        }
    }

    /// Lands what is due. A host receives a frame only if it was plugged in for the whole frame, at the same switch.
    fn land(&mut self, fabric: &Fabric, now: Instant) {
        let (due, later) = self.flights.iter().partition(|flight| flight.lands <= now);
        self.flights = later;
        let due: Vec<Flight> = due;
        for flight in due {
            let end = match fabric.land(&flight, Mac::BROADCAST) {
                Landing::At(ports) => {
                    let host_of = |cell| if flight.from == S { cell == 1 } else { cell == 2 };
                    let plugged = |port| {
                        let (since, cell) = self.here[&port];
                        since <= flight.start && (host_of(cell) || flight.from == M || flight.from == N)
                    };
                    let hosts = ports.into_iter().chain([flight.from]).filter(|port| [M, N].contains(port));
                    assert!(hosts.into_iter().all(plugged), "{flight:?}");
                    "received"
                }
                Landing::Lost(why) => why.0,
            };
            *self.ended.entry(end).or_default() += 1;
        }
    }
}

/// Hosts send, unplug and plug at random. Each frame ends once.
#[test]
fn each_frame_ends_once_while_hosts_are_plugged_in_and_out() {
    for seed in 1..=10 {
        let (mut rng, mut fabric, mut now) = (Rng::new(seed), full(Duration::ZERO), Instant::ZERO);
        let (mut seen, mut offered, mut tunings) = (Seen::default(), 0, Vec::<Tuning>::new());
        seen.here = [M, N].map(|port| (port, (Instant::ZERO, 1))).into();
        for _ in 0..3000 {
            now += Duration::from_micros(rng.draw() % 1500);
            while let Some(at) = fabric.next_decision().filter(|at| *at <= now) {
                for decision in fabric.decide(at) {
                    seen.waits -= 1;
                    seen.decided(decision.fate);
                }
            }
            tunings.retain(|tuning| {
                if tuning.ready <= now && fabric.arrive(tuning) == Arrived::Here {
                    seen.here.insert(tuning.port, (tuning.ready, tuning.cell.0));
                }
                tuning.ready > now
            });
            seen.land(&fabric, now);
            let port = [S, O, M, N][(rng.draw() % 4) as usize];
            if rng.draw().is_multiple_of(20) && [M, N].contains(&port) {
                let cell = 1 + (rng.draw() % 2) as u16;
                tunings.push(leave(&mut fabric, now, port, cell));
                seen.here.remove(&port);
                continue;
            }
            offered += 1;
            match fabric.offer(now, port, BYTES) {
                Ok(Offer::Waits(_)) => seen.waits += 1,
                Ok(Offer::Flies(flight)) => seen.flights.push(flight),
                Err(why) => seen.decided(Err(why)),
            }
        }
        let Seen { flights, ended, waits, .. } = seen;
        assert_eq!(ended.values().sum::<u32>() + flights.len() as u32 + waits, offered, "{seed}: {ended:?}");
        assert!(ended.contains_key("received") && ended.contains_key("receiver_left_cell"), "{ended:?}");
    }
}
