//! Tests of beacons and contention, and of the frames that a radio does not receive while it listens elsewhere.

use super::*;
use crate::fabric::tests::{flight, fly};
use crate::{
    Arrived, CellSpec, Fabric, Faults, Landing, Listening, Offer, PortId, RadioSpec, Scan, SignalCourse,
    reason,
};
use wire::{Cell, Instant, Mac};

#[path = "../../../tests/support/bianchi.rs"]
mod bianchi;

const MS: Duration = Duration::from_millis(1);
pub(crate) const STATION: PortId = PortId(0);
/// The length of a datagram in bytes. With the Ethernet header it takes 6 ms at 2 Mb/s.
pub(crate) const BYTES: usize = 1486;

/// Returns the parameters of a cell with 2 Mb/s and no delay.
pub(crate) fn cell(number: u16, air: Air) -> CellSpec {
    CellSpec {
        cell: Cell(number),
        rate: 2_000_000,
        per_frame: Duration::ZERO,
        delay: Duration::ZERO,
        queue: 8,
        mtu: 1500,
        faults: Faults::default(),
        air,
    }
}

pub(crate) fn mac(port: PortId) -> Mac {
    Mac([2, 0, 0, 0, 0, port.0 as u8])
}

/// Returns a fabric with cells 1 and 2, which use their air as `airs` defines. A station and `radios` more radios are
/// in cell 1.
pub(crate) fn fabric(airs: [Air; 2], radios: u32, listening: Listening) -> Fabric {
    let mut fabric = Fabric::default();
    for (number, air) in (1..).zip(airs) {
        fabric.add_cell(&cell(number, air), &Rng::new(1));
    }
    for port in (0..=radios).map(PortId) {
        let cell = Some(Cell(1));
        let (retune, attach, excursion) = (MS * 5, MS, MS * 4);
        fabric.add_radio(
            port,
            RadioSpec { mac: mac(port), cell, retune, attach, excursion, listening, queue: None },
        );
    }
    fabric
}

fn alone(radios: u32) -> Fabric {
    fabric([Air::default(); 2], radios, Listening::default())
}

// --- contention ------------------------------------------------------------------------------------------------------

pub(crate) const DCF: Contention = Contention { slot: Duration::from_micros(20), window: 32, most: 1024 };

/// Returns the number of frames of each sender that arrive in one minute, if `senders` senders always have a frame to
/// send.
fn saturated(contention: Option<Contention>, senders: u32) -> Vec<u32> {
    let fabric = fabric([Air { contention, ..Air::default() }; 2], senders, Listening::default());
    sent_by(fabric, &(1..=senders).collect::<Vec<_>>())
}

/// Returns the number of frames from each of these ports that arrive in one minute, if the ports always have a frame to
/// send.
fn sent_by(fabric: Fabric, ports: &[u32]) -> Vec<u32> {
    sent_within(fabric, ports, Instant::from_millis(60_000))
}

fn sent_within(mut fabric: Fabric, ports: &[u32], end: Instant) -> Vec<u32> {
    let mut arrived = vec![0; ports.len()];
    for port in ports.iter().chain(ports) {
        // Each port offers two frames, so that one frame waits while the other is on the air.
        fabric.offer(Instant::ZERO, PortId(*port), BYTES).unwrap();
    }
    while let Some(now) = fabric.next_decision().filter(|now| *now < end) {
        for decision in fabric.decide(now) {
            let place = ports.iter().position(|own| PortId(*own) == decision.from).unwrap();
            arrived[place] += u32::from(decision.fate.is_ok());
            // A sender whose frame was sent or lost offers the next one at once.
            fabric.offer(now, decision.from, BYTES).unwrap();
        }
    }
    arrived
}

/// Returns the throughput of `senders` senders that always have a frame to send, in frames per second, by Bianchi's
/// model.
fn bianchi(senders: u32) -> f64 {
    bianchi::frames_a_second(senders, f64::from(DCF.window), DCF.slot.as_secs_f64(), 6.0e-3)
}

#[test]
fn contention_costs_what_bianchis_model_says() {
    for senders in [2, 5, 10, 20] {
        let ours = f64::from(saturated(Some(DCF), senders).iter().sum::<u32>()) / 60.0;
        let model = bianchi(senders);
        assert!(
            (ours / model - 1.0).abs() < 0.05,
            "{senders} senders: {ours:.1} frames a second, not {model:.1}"
        );
    }
    let (few, many) = (bianchi(2), bianchi(20));
    assert!(many < 0.85 * few, "the model has something to say: {few:.1}, {many:.1}");
}

#[test]
fn who_always_sends_has_the_same_share_as_any_other() {
    let shares = saturated(None, 8);
    assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1, "in turn: {shares:?}");
    // In one minute, the random shares have a standard deviation of 3 %, and collisions add to it. So the test
    // simulates ten minutes.
    let fabric = fabric([Air { contention: Some(DCF), ..Air::default() }; 2], 8, Listening::default());
    let shares = sent_within(fabric, &[1, 2, 3, 4, 5, 6, 7, 8], Instant::from_millis(600_000));
    let mean = f64::from(shares.iter().sum::<u32>()) / 8.0;
    assert!(shares.iter().all(|share| (f64::from(*share) / mean - 1.0).abs() < 0.1), "{shares:?}");
    let frames: u32 = saturated(None, 8).iter().sum();
    assert!((9990..=10_010).contains(&frames), "without contention the air is full: {frames} of 10000");
}

#[test]
fn who_finds_the_air_free_does_not_wait() {
    let mut fabric = fabric([Air { contention: Some(DCF), ..Air::default() }; 2], 1, Listening::default());
    assert_eq!(fly(&mut fabric, Instant::ZERO, STATION, BYTES).start, Instant::ZERO);
    let second = fly(&mut fabric, Instant::ZERO, PortId(1), BYTES);
    assert!(second.start >= Instant::from_millis(6));
}

// --- beacons ---------------------------------------------------------------------------------------------------------

/// At 2 Mb/s, a beacon of 250 bytes takes 1 ms of every 10 ms.
const BEACON: Beacon = Beacon { every: Duration::from_millis(10), bytes: 250 };

fn with_beacons(listening: Listening) -> Fabric {
    fabric([Air::default(), Air { beacon: Some(BEACON), ..Air::default() }], 2, listening)
}

#[test]
fn beacons_take_their_share_of_the_air() {
    let beacons = Air { beacon: Some(BEACON), ..Air::default() };
    let mut fabric = fabric([beacons; 2], 1, Listening::default());
    let (mut now, mut frames) = (Instant::ZERO, 0);
    while now < Instant::from_millis(60_000) {
        now = fly(&mut fabric, now, STATION, BYTES).lands;
        frames += 1;
    }
    // Beacons leave 54 of 60 s for frames of 6 ms.
    assert!((8995..=9005).contains(&frames), "{frames}");
    let idle = fly(&mut fabric, Instant::from_millis(10_000_000), STATION, BYTES);
    assert!(idle.start < Instant::from_millis(10_000_001), "those of idle times are over: {:?}", idle.start);
}

#[test]
fn who_comes_to_a_cell_waits_for_its_beacon_and_associates() {
    let listening = Listening { association: MS * 3, ..Listening::default() };
    let mut fabric = with_beacons(listening);
    let first = fabric.leave_for(Instant::from_millis(100), PortId(1), Cell(2)).unwrap().ready;
    // The radio needs 5 ms to retune, up to 10 ms until a beacon begins, 1 ms for the beacon, and 3 ms to associate.
    let waited = first.since(Instant::from_millis(100));
    assert!((MS * 9..=MS * 19).contains(&waited), "{waited:?}");
    let later = fabric.leave_for(Instant::from_millis(1104), PortId(2), Cell(2)).unwrap().ready;
    let apart = later.since(first).as_nanos() % BEACON.every.as_nanos();
    assert_eq!(apart, 0, "both have heard a beacon, which come every 10 ms");
    let back = fabric.leave_for(Instant::from_millis(2000), PortId(1), Cell(1)).unwrap();
    assert_eq!(back.ready, Instant::from_millis(2008), "without beacons, no radio waits for one");
}

// --- channels --------------------------------------------------------------------------------------------------------

fn on_channels(channels: [u16; 2], contention: Option<Contention>) -> Fabric {
    let airs = channels.map(|channel| Air { channel: Some(channel), contention, ..Air::default() });
    let mut fabric = fabric(airs, 1, Listening::default());
    let radio = RadioSpec {
        mac: mac(PortId(9)),
        cell: Some(Cell(2)),
        retune: MS * 5,
        attach: MS,
        excursion: MS * 4,
        listening: Listening::default(),
        queue: None,
    };
    fabric.add_radio(PortId(9), radio);
    fabric
}

#[test]
fn cells_of_one_channel_share_the_air() {
    for (channels, second) in [([6, 6], 6), ([1, 6], 0)] {
        let mut fabric = on_channels(channels, None);
        fly(&mut fabric, Instant::ZERO, STATION, BYTES);
        let other = fly(&mut fabric, Instant::ZERO, PortId(9), BYTES);
        assert_eq!(other.start, Instant::from_millis(second), "{channels:?}");
    }
}

/// Radios on one channel contend as in Bianchi's model, even if they have different base stations.
#[test]
fn a_radio_in_another_cell_on_the_same_channel_is_a_rival() {
    let frames = |channels| sent_by(on_channels(channels, Some(DCF)), &[1, 9]);
    let together = f64::from(frames([6, 6]).iter().sum::<u32>()) / 60.0;
    let model = bianchi(2);
    assert!((together / model - 1.0).abs() < 0.05, "{together:.1} frames a second, not {model:.1}");
    for alone in frames([1, 6]) {
        let (alone, model) = (f64::from(alone) / 60.0, bianchi(1));
        assert!(
            (alone / model - 1.0).abs() < 0.02,
            "it only waits after its own frames: {alone:.1}, not {model:.1}"
        );
    }
}

#[test]
fn on_one_channel_nothing_has_to_be_tuned() {
    for (channels, tuned, away) in [([6, 6], 0, 0), ([1, 6], 5, 4)] {
        let mut fabric = on_channels(channels, None);
        let visit = fabric.visit(Instant::ZERO, PortId(1), Cell(2), 10).unwrap();
        flight(&mut fabric, visit).unwrap();
        let own = fly(&mut fabric, Instant(96_000), PortId(1), 10);
        assert_eq!(own.start, Instant(96_000).max(Instant::from_millis(away)), "{channels:?}");
        let tuning = fabric.leave_for(Instant::from_millis(10), PortId(1), Cell(2)).unwrap();
        assert_eq!(tuning.ready, Instant::from_millis(10 + tuned), "{channels:?}");
        assert_eq!(fabric.arrive(&tuning), Arrived::Here);
    }
}

// --- excursions ------------------------------------------------------------------------------------------------------

#[test]
fn who_is_away_keeps_its_own_frames_until_it_is_back() {
    let mut fabric = alone(2);
    let at = Instant::from_millis;
    let visit = fabric.visit(Instant::ZERO, PortId(1), Cell(2), 10).unwrap();
    let kept = fabric.offer(at(1), PortId(1), BYTES).unwrap();
    assert!(matches!(kept, Offer::Waits(_)));
    flight(&mut fabric, visit).unwrap();
    // Other radios do not wait for the radio that is away: at 2 ms the air is free for the station's frame of 6 ms.
    let other = fly(&mut fabric, at(2), STATION, BYTES);
    assert_eq!(other.start, at(2));
    let second = fabric.offer(at(5), PortId(1), BYTES).unwrap();
    let [kept, second] = [kept, second].map(|offer| flight(&mut fabric, offer).unwrap());
    assert_eq!((kept.start, second.start), (at(8), at(14)), "one radio sends one frame at a time");
    assert_eq!(fabric.land(&kept, mac(STATION)), Landing::At(vec![STATION]));
}

#[test]
fn a_radio_that_listens_elsewhere_hears_of_others_and_misses_what_is_for_it() {
    let scan = Scan { every: MS * 1000, away: MS * 30 };
    let mut fabric = fabric([Air::default(); 2], 1, Listening { scan: Some(scan), ..Listening::default() });
    let both = |course: SignalCourse, cell| course.with(Cell(cell), vec![(Instant::ZERO, -60)]);
    fabric.add_course(PortId(1), [1, 2].into_iter().fold(SignalCourse::default(), both));
    let mut heard = |ms: u64| {
        let sample = fabric.sample(Instant::from_millis(ms), PortId(1));
        (sample.heard.len(), sample.is_lost)
    };
    assert_eq!([heard(0), heard(100), heard(900)], [(2, false), (1, false), (1, false)]);
    assert_eq!(heard(1000), (2, false), "once a second");
    let missed = fly(&mut fabric, Instant::from_millis(1010), STATION, BYTES);
    assert_eq!(fabric.land(&missed, mac(PortId(1))), Landing::Lost(reason::RECEIVER_AWAY));
    let after = fly(&mut fabric, Instant::from_millis(1030), STATION, BYTES);
    assert_eq!(fabric.land(&after, mac(PortId(1))), Landing::At(vec![PortId(1)]));
}

#[test]
fn who_has_lost_its_cell_hears_all_there_is() {
    let scan = Scan { every: MS * 60_000, away: MS * 30 };
    let mut fabric = fabric([Air::default(); 2], 1, Listening { scan: Some(scan), ..Listening::default() });
    let gone =
        vec![(Instant::ZERO, -60), (Instant::from_millis(100), -60), (Instant::from_millis(100), -120)];
    let course = SignalCourse::default().with(Cell(1), gone).with(Cell(2), vec![(Instant::ZERO, -70)]);
    fabric.add_course(PortId(1), course);
    assert_eq!(fabric.sample(Instant::ZERO, PortId(1)).heard.len(), 2, "the first scan");
    let lost = fabric.sample(Instant::from_millis(200), PortId(1));
    assert!(lost.is_lost && lost.heard == [(Cell(2), -70)], "{lost:?}");
}
