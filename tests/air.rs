//! Compares the throughput of shared cells with Bianchi's model. The scenario is `air/walk`, with two access points and
//! a neighbour that always sends.

use recorder::run::Outcome;
use scenario::{Scenario, Setting};
use trace::{HostId, What};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant};

#[path = "support/bianchi.rs"]
mod bianchi;

fn run(settings: &[&str]) -> Outcome {
    let (file, text) = Scenario::find("air/walk").unwrap();
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let plan = Scenario::plan(&file, &text, &settings, 1).unwrap();
    let outcome = recorder::run::simulate(plan).unwrap();
    assert!(outcome.doubts.is_empty(), "{:?}", outcome.doubts);
    outcome
}

fn host(outcome: &Outcome, name: &str) -> HostId {
    HostId(outcome.plan.hosts.iter().position(|host| host.config.name == name).unwrap() as u32)
}

/// The bytes of payload in a frame. The frame also has UDP, IP and Ethernet headers.
const PAYLOAD: usize = 1400;
const FRAME: f64 = (PAYLOAD + 8 + 20 + 14) as f64 * 8.0 / 2e6;
/// The length of a slot in seconds. The defaults are those of 802.11b: slots of 20 us, and a first contention window of
/// 32 slots that is doubled five times.
const SLOT: f64 = 20e-6;
/// The share of the time that the beacons of one base station use: 100 bytes every 102.4 ms.
const BEACON: f64 = 100.0 * 8.0 / 2e6 / 0.1024;

/// Returns the frames per second of `senders` that always have a frame, on a channel with beacons of `beacons` base
/// stations.
fn bianchi(senders: u32, beacons: f64) -> f64 {
    (1.0 - beacons * BEACON) * bianchi::frames_a_second(senders, 32.0, SLOT, FRAME)
}

/// Returns the data frames per second that arrived at `name` by its radio, between two times in seconds.
fn arrived(outcome: &Outcome, name: &str, from: u64, to: u64) -> f64 {
    let (host, span) =
        (host(outcome, name), Instant::from_millis(from * 1000)..Instant::from_millis(to * 1000));
    // The caller's radio is its only interface. A base station's radio is its second interface, after its wire.
    let air = Iface(if name == "caller" { 1 } else { 2 });
    let data = outcome.records.iter().filter(|record| match &record.what {
        What::Received(iface, packet) => {
            let large = Header::parse(&packet.bytes).is_ok_and(|(_, payload)| payload.len() >= PAYLOAD);
            record.host == host && *iface == air && large && span.contains(&record.at)
        }
        _ => false,
    });
    data.count() as f64 / (to - from) as f64
}

/// Returns the data frames per second that arrive at `home` and at `caller` when all senders have more to send than the
/// air carries. No host scans other channels or moves. The caller is in the cell of the given base station.
fn saturated(caller: &str, channel: u16) -> [f64; 2] {
    let moves = format!(
        "host.caller.role=[{{ kind = 'mobile-ip/mobile-node' }}, {{ kind = 'apps/roam', start = '{caller}' }}]"
    );
    let channel = format!("cell.2.channel={channel}");
    let rates =
        ["constant-rate.rate=400", "constant-rate.size=1400", "radio.scan.every=60min", "duration=10s"];
    let settings: Vec<&str> = rates.into_iter().chain([moves.as_str(), channel.as_str()]).collect();
    let outcome = run(&settings);
    [arrived(&outcome, "home", 2, 9), arrived(&outcome, "caller", 2, 9)]
}

fn near(seen: f64, model: f64) -> bool {
    (seen / model - 1.0).abs() < 0.05
}

/// Two senders on one channel must have the throughput of Bianchi's model, whether their receivers are in one cell or
/// in two. On two channels, each sender has the throughput of a lone sender.
#[test]
fn who_contends_gets_what_bianchis_model_says_in_one_cell_or_two() {
    let model = bianchi(2, 2.0);
    for caller in ["home", "foreign"] {
        let [up, down] = saturated(caller, 6);
        assert!(
            near(up + down, model),
            "caller at {caller}: {up:.1} and {down:.1} a second, together not {model:.1}"
        );
        assert!(near(up, down), "radios that always send have equal shares: {up:.1} and {down:.1}");
    }
    let alone = bianchi(1, 1.0);
    for seen in saturated("foreign", 11) {
        assert!(near(seen, alone), "{seen:.1} frames a second, and not {alone:.1}");
    }
    assert!(alone > 1.7 * model / 2.0, "the model has something to say: {alone:.1}, {model:.1}");
}

#[test]
fn an_excursion_to_listen_costs_a_datagram_or_two() {
    let away = |settings: &[&str]| {
        let outcome = run(settings);
        assert_eq!(outcome.handoffs.len(), 1, "the caller moves once, to the stronger cell");
        outcome.ledger.dropped.get("receiver_away").copied().unwrap_or(0)
    };
    // A datagram is sent every 20 ms. The caller is away for 30 ms in each of 19 seconds. In the last of these seconds,
    // it does not return.
    let excursions = 18;
    let lost = away(&[]);
    assert!((excursions..=2 * excursions).contains(&lost), "{lost}");
    let twice = away(&["radio.scan.away=60ms"]);
    assert!(
        (2 * excursions..=4 * excursions).contains(&twice),
        "60 ms are three, and one less or more: {twice}"
    );
    assert!(twice > lost, "{lost}, {twice}");
}

/// A caller that arrives waits for a beacon and associates. On a new channel it tunes before that.
#[test]
fn who_arrives_waits_for_a_beacon_and_associates() {
    let waited = |settings: &[&str]| {
        let outcome = run(settings);
        let handoff = &outcome.handoffs[0];
        let parts = &handoff.outage().unwrap().owners;
        let link = parts.iter().find(|part| part.stage == Some(node::Stage::Link)).unwrap();
        link.to.since(link.from)
    };
    let (association, beacon) = (Duration::from_millis(20), Duration::from_micros(102_400 + 400));
    let seen = waited(&[]);
    assert!((association..=association + beacon).contains(&seen), "{seen:?}");
    let (longer, association) = (waited(&["radio.association=200ms"]), Duration::from_millis(200));
    assert!((association..=association + beacon).contains(&longer), "{longer:?}");
    let tuned = waited(&["cell.2.channel=11", "radio.retune=110ms"]);
    assert!(tuned >= Duration::from_millis(130), "a new channel is tuned to: {tuned:?}");
    assert!(seen < Duration::from_millis(130), "the same one is not: {seen:?}");
}
