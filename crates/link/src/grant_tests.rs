//! Laws of the channel, under random traffic.

use super::*;
use crate::air::tests::{BYTES, DCF, STATION, cell, fabric, mac};
use crate::fabric::tests::fly;
use crate::{Access, Air, Beacon, Contention, Landing, Listening, Offer};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Cell, Mac};

/// A frame of [`BYTES`] at 2 Mb/s.
const FRAME: Duration = Duration::from_millis(6);

fn air(access: Access, contention: Option<Contention>) -> Air {
    Air { access, contention, channel: Some(6), ..Air::default() }
}

/// What was seen of a run: flights in the order of their grants, when each was offered, and how frames ended.
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

/// Radios 0 to 5 send, visit cell 2 and change cells at random; the first is a station and stays.
fn random(seed: u64, access: Access, contention: Option<Contention>) -> Seen {
    let mut chance = Seed::new(seed);
    let beacon = Some(Beacon { every: Duration::from_millis(100), bytes: 100 });
    let airs = [Air { beacon, ..air(access, contention) }, air(access, contention)];
    let mut fabric = fabric(airs, 5, Listening::default());
    let (mut seen, mut now) = (Seen::default(), Instant::ZERO);
    let mut tunings = BTreeMap::new();
    for _ in 0..4000 {
        now += Duration::from_micros(chance.draw() % 6000);
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
        let port = PortId((chance.draw() % 6) as u32);
        let bytes = 40 + (chance.draw() % 1400) as usize;
        match chance.draw() % 40 {
            0 if port != STATION => {
                let to = Cell(1 + (chance.draw() % 2) as u16);
                tunings.insert(port, fabric.tune(now, port, to).unwrap());
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
            let queue = (flight.from, matches!(flight.way, Way::Visit(_)));
            if let Some((before, start)) = last.insert(queue, (since, flight.start)) {
                assert!(before <= since && start < flight.start, "{access:?} {contention:?}: {flight:?}");
            }
        }
    }
}

/// Without beacons, contention and absences the channel never rests while a frame waits.
#[test]
fn the_channel_does_not_rest_while_a_frame_waits() {
    for access in [Access::Fair, Access::Fifo] {
        let mut fabric = fabric([air(access, None); 2], 5, Listening::default());
        let (mut chance, mut seen, mut now) = (Seed::new(3), Seen::default(), Instant::ZERO);
        for _ in 0..4000 {
            now += Duration::from_micros(chance.draw() % 12_000);
            while let Some(at) = fabric.next_decision().filter(|at| *at <= now) {
                seen.take(&mut fabric, at);
            }
            let port = PortId((chance.draw() % 6) as u32);
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

/// Jain's index of the frames that each of eight radios sends, where one has a queue of 64 and the others of one.
fn shares(access: Access, contention: Option<Contention>) -> f64 {
    let mut fabric = Fabric::default();
    fabric.add_cell(&cell(1, air(access, contention)), &Seed::new(1));
    let ports: Vec<PortId> = (0..8).map(PortId).collect();
    for port in &ports {
        let queue = Some(if *port == STATION { 64 } else { 1 });
        let none = Duration::ZERO;
        let spec = crate::RadioSpec {
            mac: mac(*port),
            cell: Some(Cell(1)),
            retune: none,
            attach: none,
            excursion: none,
            listening: Listening::default(),
            queue,
        };
        fabric.add_radio(*port, spec);
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
    let sum: f64 = sent.iter().sum();
    sum * sum / (8.0 * sent.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn every_radio_has_the_same_share_however_long_its_queue_is() {
    for contention in [None, Some(DCF)] {
        let (fair, fifo) = (shares(Access::Fair, contention), shares(Access::Fifo, contention));
        assert!(fair > 0.99, "{contention:?}: {fair}");
        assert!(fifo < 0.3, "one queue for all gives the air to who fills it: {contention:?}, {fifo}");
    }
}

/// The longest that an uplink frame waits for its first bit while the station always has 64 frames.
fn uplink(access: Access) -> Duration {
    let mut fabric = fabric([air(access, None); 2], 1, Listening::default());
    let (mut chance, mut now, mut worst) = (Seed::new(5), Instant::ZERO, Duration::ZERO);
    for _ in 0..500 {
        let next = now + FRAME + Duration::from_micros(chance.draw() % 20_000);
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
