//! Tests of invariants of a channel under random traffic.

use super::*;
use crate::air::tests::{BYTES, DCF, STATION, cell, fabric, mac};
use crate::fabric::tests::{flight, fly};
use crate::{Access, Air, Beacon, Contention, Landing, Listening, Offer};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Cell, Mac};

/// The air time of a frame of [`BYTES`] bytes at 2 Mb/s.
const FRAME: Duration = Duration::from_millis(6);

fn air(access: Access, contention: Option<Contention>) -> Air {
    Air { access, contention, channel: Some(6), ..Air::default() }
}

/// The observations of a run: flights in the order of their grants, the number of offers, and the number of frames that
/// were lost for each reason.
#[derive(Default)]
struct Seen {
    flights: Vec<(Instant, Flight, usize)>,
    offered: u64,
    ended: BTreeMap<&'static str, u64>,
    decided: BTreeSet<Ticket>,
    waiting: BTreeMap<Ticket, (Instant, usize)>,
}

impl Seen {
    fn end(&mut self, how: &'static str) {
        *self.ended.entry(how).or_default() += 1;
    }

    fn take(&mut self, fabric: &mut Fabric, now: Instant) {
        for decision in fabric.decide(now) {
            assert!(self.decided.insert(decision.ticket), "a frame ends once");
            let (since, bytes) = self.waiting.remove(&decision.ticket).expect("it waited");
            assert!(decision.at >= since, "no frame goes before it was offered");
            match decision.fate {
                Ok(flight) => self.flights.push((since, flight, bytes)),
                Err(reason) => self.end(reason.0),
            }
        }
    }

    fn offer(&mut self, now: Instant, offer: Result<Offer, Reason>, bytes: usize) {
        self.offered += 1;
        match offer {
            Ok(Offer::Flies(flight)) => self.flights.push((now, flight, bytes)),
            Ok(Offer::Waits(ticket)) => assert!(self.waiting.insert(ticket, (now, bytes)).is_none()),
            Err(reason) => self.end(reason.0),
        }
    }
}

/// Runs random traffic: radios 0 to 5 send, and radios 1 to 5 also visit cell 2 and change cells. Radio 0 is a station.
/// Returns the observations.
fn random(seed: u64, access: Access, contention: Option<Contention>) -> Seen {
    let mut rng = Rng::new(seed);
    let beacon = Some(Beacon { every: Duration::from_millis(100), bytes: 100 });
    let airs = [Air { beacon, ..air(access, contention) }, air(access, contention)];
    let mut fabric = fabric(airs, 5, Listening::default());
    let (mut seen, mut now) = (Seen::default(), Instant::ZERO);
    let mut tunings = BTreeMap::new();
    for _ in 0..4000 {
        now += Duration::from_micros(rng.draw() % 6000);
        while let Some(at) = fabric.next_decision().filter(|at| *at <= now) {
            seen.take(&mut fabric, at);
        }
        tunings.retain(|_, tuning: &mut crate::Tuning| {
            let due = tuning.ready <= now;
            if due {
                fabric.arrive(tuning);
            }
            !due
        });
        let port = PortId((rng.draw() % 6) as u32);
        let bytes = 40 + (rng.draw() % 1400) as usize;
        match rng.draw() % 40 {
            0 if port != STATION => {
                let to = Cell(1 + (rng.draw() % 2) as u16);
                tunings.insert(port, fabric.leave_for(now, port, to).unwrap());
            }
            1 if port != STATION => {
                let offer = fabric.visit(now, port, Cell(2), bytes);
                seen.offer(now, offer, bytes);
            }
            _ => {
                let offer = fabric.offer(now, port, bytes);
                seen.offer(now, offer, bytes);
            }
        }
    }
    while let Some(at) = fabric.next_decision() {
        seen.take(&mut fabric, at);
    }
    seen
}

fn every_kind() -> impl Iterator<Item = (u64, Access, Option<Contention>)> {
    let kinds =
        [(Access::Fair, None), (Access::Fair, Some(DCF)), (Access::Fifo, None), (Access::Fifo, Some(DCF))];
    (1..=10).flat_map(move |seed| kinds.map(|(access, contention)| (seed, access, contention)))
}

#[test]
fn every_frame_ends_once_and_no_two_are_on_a_channel_at_one_time() {
    let mut ends = BTreeSet::new();
    for (seed, access, contention) in every_kind() {
        let seen = random(seed, access, contention);
        assert!(seen.waiting.is_empty(), "nothing waits when the channel has come to rest");
        let ended: u64 = seen.ended.values().sum();
        assert_eq!(seen.flights.len() as u64 + ended, seen.offered);
        let mut flights: Vec<&Flight> = seen.flights.iter().map(|(_, flight, _)| flight).collect();
        flights.sort_by_key(|flight| flight.start);
        for pair in flights.windows(2) {
            assert!(pair[0].lands <= pair[1].start, "{access:?} {contention:?}: {pair:?}");
        }
        ends.extend(seen.ended.into_keys());
    }
    let named = ["queue_full", "radio_retuning", "sender_left_cell"];
    assert!(named.iter().all(|reason| ends.contains(reason)), "the traffic has met all of it: {ends:?}");
}

#[test]
fn a_radio_sends_its_frames_in_the_order_of_their_offers() {
    for (seed, access, contention) in every_kind() {
        let mut last: BTreeMap<(PortId, bool), (Instant, Instant)> = BTreeMap::new();
        for (since, flight, _) in random(seed, access, contention).flights {
            let queue = (flight.from, matches!(flight.way, FlightPath::Visit(_)));
            if let Some((before, start)) = last.insert(queue, (since, flight.start)) {
                assert!(before <= since && start < flight.start, "{access:?} {contention:?}: {flight:?}");
            }
        }
    }
}

/// If there are no beacons and no contention, and no radio is away, the channel is never idle while a frame waits.
#[test]
fn the_channel_does_not_rest_while_a_frame_waits() {
    for access in [Access::Fair, Access::Fifo] {
        let mut fabric = fabric([air(access, None); 2], 5, Listening::default());
        let (mut rng, mut seen, mut now) = (Rng::new(3), Seen::default(), Instant::ZERO);
        for _ in 0..4000 {
            now += Duration::from_micros(rng.draw() % 12_000);
            while let Some(at) = fabric.next_decision().filter(|at| *at <= now) {
                seen.take(&mut fabric, at);
            }
            let port = PortId((rng.draw() % 6) as u32);
            let offer = fabric.offer(now, port, BYTES);
            seen.offer(now, offer, BYTES);
        }
        let (mut free, mut waited) = (Instant::ZERO, 0);
        for (since, flight, _) in &seen.flights {
            assert_eq!(flight.start, free.max(flight.start.min(*since)).max(free), "{flight:?}");
            assert!(flight.start == free || flight.start == *since, "{flight:?}, free since {free:?}");
            waited += u32::from(flight.start > *since);
            free = flight.lands;
        }
        assert!(waited > 1000, "{waited} frames had to wait");
    }
}

/// Returns Jain's index of the numbers of frames that eight radios send. One radio has a queue of 64 frames; each other
/// radio has a queue of one frame.
fn shares(access: Access, contention: Option<Contention>) -> f64 {
    let mut fabric = Fabric::default();
    fabric.add_cell(&cell(1, air(access, contention)), &Rng::new(1));
    let ports: Vec<PortId> = (0..8).map(PortId).collect();
    for port in &ports {
        let queue = if *port == STATION { 64 } else { 1 };
        fabric.add_radio(*port, radio(*port, Cell(1), queue));
    }
    let mut sent = [0.0; 8];
    let mut now = Instant::ZERO;
    while now < Instant::from_millis(60_000) {
        for port in &ports {
            while let Ok(Offer::Waits(_) | Offer::Flies(_)) = fabric.offer(now, *port, BYTES) {}
        }
        now = fabric.next_decision().unwrap();
        for decision in fabric.decide(now) {
            sent[decision.from.0 as usize] += f64::from(u8::from(decision.fate.is_ok()));
        }
    }
    jain(&sent)
}

/// Returns Jain's index of fairness: 1 for equal shares, 1/8 if one of the eight radios sends all frames.
fn jain(shares: &[f64; 8]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (8.0 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn every_radio_has_the_same_share_however_long_its_queue_is() {
    for contention in [None, Some(DCF)] {
        let (fair, fifo) = (shares(Access::Fair, contention), shares(Access::Fifo, contention));
        assert!(fair > 0.99, "{contention:?}: {fair}");
        assert!(
            fifo < 0.3,
            "with one queue, the radio that fills it gets the channel: {contention:?}, {fifo}"
        );
    }
}

/// Returns the longest time from the offer of an uplink frame to its first bit. The station always has frames to send.
fn uplink(access: Access) -> Duration {
    let mut fabric = fabric([air(access, None); 2], 1, Listening::default());
    let (mut rng, mut now, mut worst) = (Rng::new(5), Instant::ZERO, Duration::ZERO);
    for _ in 0..500 {
        let next = now + FRAME + Duration::from_micros(rng.draw() % 20_000);
        while now < next {
            while fabric.offer(now, STATION, BYTES).is_ok() {}
            now = fabric.next_decision().unwrap().min(next);
            fabric.decide(now);
        }
        let offer = fabric.offer(now, PortId(1), 40).unwrap();
        let since = now;
        let Offer::Waits(ticket) = offer else { panic!("the station's frame is on the air") };
        loop {
            now = fabric.next_decision().unwrap();
            let decided = fabric.decide(now);
            while fabric.offer(now, STATION, BYTES).is_ok() {}
            if let Some(own) = decided.iter().find(|decision| decision.ticket == ticket) {
                worst = worst.max(own.fate.unwrap().start.since(since));
                break;
            }
        }
    }
    worst
}

#[test]
fn an_acknowledgment_waits_for_one_frame_and_not_for_the_stations_queue() {
    let (fair, fifo) = (uplink(Access::Fair), uplink(Access::Fifo));
    assert!(fair <= FRAME, "{fair:?}");
    assert!(fifo >= FRAME * 8, "in one queue for all it waits behind all of it: {fifo:?}");
}

/// In the simulator, a frame lands, the channel is granted again, and the answer is offered, all at one instant. On
/// Linux, the answer comes later. In both cases, the answer must wait for the same frame.
#[test]
fn an_answer_at_the_instant_of_a_grant_waits_as_long_as_one_shortly_after_it() {
    let waits = |contention, late: u64| {
        let mut fabric = fabric([air(Access::Fair, contention); 2], 1, Listening::default());
        let first = fly(&mut fabric, Instant::ZERO, STATION, BYTES);
        let second = fabric.offer(Instant::ZERO, STATION, BYTES).unwrap();
        let at = first.lands + Duration::from_nanos(late);
        let mut answer = (late == 0).then(|| fabric.offer(at, PortId(1), 40).unwrap());
        let second = flight(&mut fabric, second).unwrap();
        let answer = *answer.get_or_insert_with(|| fabric.offer(at, PortId(1), 40).unwrap());
        let answer = flight(&mut fabric, answer).unwrap();
        assert!(second.start >= first.lands && answer.start >= second.lands);
        (second.start, answer.start)
    };
    for contention in [None, Some(DCF)] {
        assert_eq!(waits(contention, 0), waits(contention, 1));
    }
}

#[test]
fn a_full_queue_refuses_the_newest_and_names_it_and_others_have_room() {
    let mut fabric = fabric([air(Access::Fair, None); 2], 1, Listening::default());
    let most = cell(1, Air::default()).queue;
    fly(&mut fabric, Instant::ZERO, STATION, BYTES);
    let waiting: Vec<Offer> =
        (0..most).map(|_| fabric.offer(Instant::ZERO, STATION, BYTES).unwrap()).collect();
    assert_eq!(fabric.offer(Instant::ZERO, STATION, BYTES), Err(reason::QUEUE_FULL));
    assert!(fabric.offer(Instant::ZERO, PortId(1), BYTES).is_ok());
    let mut went = BTreeSet::new();
    while let Some(at) = fabric.next_decision() {
        went.extend(fabric.decide(at).into_iter().filter(|one| one.fate.is_ok()).map(|one| one.ticket));
    }
    let all = waiting.iter().all(|offer| matches!(offer, Offer::Waits(ticket) if went.contains(ticket)));
    assert!(all, "none of those that had room was put out for it");
}

#[test]
fn what_a_grant_says_lands_as_any_other_frame() {
    let mut fabric = fabric([air(Access::Fair, Some(DCF)); 2], 1, Listening::default());
    fly(&mut fabric, Instant::ZERO, STATION, BYTES);
    let up = fly(&mut fabric, Instant::ZERO, PortId(1), BYTES);
    assert_eq!(fabric.land(&up, Mac::BROADCAST), Landing::At(vec![STATION]));
}

/// Returns the number of frames of each of eight radios in one minute. The radios are alternately in cells 1 and 2,
/// which use `channels`.
fn sent_in_two_cells(channels: [u16; 2], contention: Option<Contention>) -> [u64; 8] {
    let mut fabric = Fabric::default();
    for (number, channel) in (1..).zip(channels) {
        let air = Air { channel: Some(channel), ..air(Access::Fair, contention) };
        fabric.add_cell(&cell(number, air), &Rng::new(1));
    }
    for port in (0..8).map(PortId) {
        fabric.add_radio(port, radio(port, Cell(1 + (port.0 % 2) as u16), 2));
    }
    let (mut sent, mut now) = ([0; 8], Instant::ZERO);
    while now < Instant::from_millis(60_000) {
        for port in (0..8).map(PortId) {
            while fabric.offer(now, port, BYTES).is_ok() {}
        }
        now = fabric.next_decision().unwrap();
        for decision in fabric.decide(now) {
            sent[decision.from.0 as usize] += u64::from(decision.fate.is_ok());
        }
    }
    sent
}

#[test]
fn radios_of_several_cells_share_their_channel_equally() {
    for contention in [None, Some(DCF)] {
        let [shared, apart] = [[6, 6], [1, 11]].map(|channels| sent_in_two_cells(channels, contention));
        let index = jain(&shared.map(|frames| frames as f64));
        assert!(index > 0.99, "{contention:?}: {index} {shared:?}");
        let total = |sent: [u64; 8]| sent.iter().sum::<u64>();
        let gain = total(apart) as f64 / total(shared) as f64;
        assert!(gain > 1.9, "{contention:?}: two channels carry {gain} times as much");
    }
}

fn radio(port: PortId, cell: Cell, queue: u32) -> crate::RadioSpec {
    let none = Duration::ZERO;
    crate::RadioSpec {
        mac: mac(port),
        cell: Some(cell),
        retune: Duration::from_millis(5),
        attach: none,
        excursion: none,
        listening: Listening::default(),
        queue: Some(queue),
    }
}

/// Runs 30 radios that change cells every 100 ms, each at another time. Each offers a frame every 20 ms, so the two
/// channels are overloaded. One frame in ten is lost on the air. Returns the observations, and the number of accepted
/// frames of each radio.
fn ping_pong(access: Access, contention: Option<Contention>) -> (Seen, BTreeMap<PortId, u32>) {
    let mut fabric = Fabric::default();
    for number in [1, 2] {
        let mut spec = cell(number, Air { channel: Some(number), ..air(access, contention) });
        spec.faults.loss = 0.1;
        fabric.add_cell(&spec, &Rng::new(7));
    }
    let ports: Vec<PortId> = (0..30).map(PortId).collect();
    for port in &ports {
        fabric.add_radio(*port, radio(*port, Cell(1), 8));
    }
    let (mut seen, mut taken) = (Seen::default(), BTreeMap::new());
    let mut tunings: Vec<crate::Tuning> = Vec::new();
    for milli in 0..20_000 {
        let now = Instant::from_millis(milli);
        while let Some(at) = fabric.next_decision().filter(|at| *at <= now) {
            seen.take(&mut fabric, at);
        }
        tunings.retain(|tuning| tuning.ready > now || !matches!(fabric.arrive(tuning), crate::Arrived::Here));
        for port in &ports {
            let own = milli + u64::from(port.0) * 3;
            if own % 100 == 0 {
                let to = Cell(1 + (own / 100 % 2) as u16);
                tunings.push(fabric.leave_for(now, *port, to).unwrap());
            }
            if own % 20 == 10 {
                let offer = fabric.offer(now, *port, BYTES);
                *taken.entry(*port).or_default() += u32::from(offer.is_ok());
                seen.offer(now, offer, BYTES);
            }
        }
    }
    while let Some(at) = fabric.next_decision() {
        seen.take(&mut fabric, at);
    }
    (seen, taken)
}

#[test]
fn thirty_radios_that_change_cells_all_the_time_lose_no_frame_without_a_cause() {
    for access in [Access::Fair, Access::Fifo] {
        for contention in [None, Some(DCF)] {
            let (seen, taken) = ping_pong(access, contention);
            assert!(
                seen.waiting.is_empty(),
                "{access:?} {contention:?}: {} wait for ever",
                seen.waiting.len()
            );
            let ended: u64 = seen.ended.values().sum();
            assert_eq!(seen.flights.len() as u64 + ended, seen.offered);
            let named = ["sender_left_cell", "link_error"];
            assert!(named.iter().all(|cause| seen.ended.contains_key(cause)), "{:?}", seen.ended);
            let radios: BTreeSet<PortId> = seen.flights.iter().map(|(_, flight, _)| flight.from).collect();
            assert_eq!((radios.len(), taken.len()), (30, 30), "each comes back and sends");
            let last = seen.flights.iter().map(|(_, flight, _)| flight.start).max().unwrap();
            assert!(last > Instant::from_millis(19_800), "both channels work to the end: {last:?}");
        }
    }
}
