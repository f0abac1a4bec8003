//! A transport implemented by a role. Bytes must arrive in order and unchanged, whatever the link and however slow the
//! reader, and all queues must stay bounded. Each of three faulty transports breaks one promise, and the checks must
//! detect that.
//!
//! `cargo test -p sim --test simulator -- --nocapture served::` prints the measurements.

mod push;
mod users;

use link::{Fabric, Faults, PortId, WireSpec};
use node::{Action, Command, Hop, Lifetime, Node, Rng, Role, Route, RouteKey, Value};
use push::{Fault, Push, RECEIVE_BUFFER, SEND_BUFFER};
use sim::{HostSpec, InterfaceSpec, World};
use std::sync::Arc;
use trace::{HostId, What};
use users::{CHUNK, Reader, Writer};
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Prefix, SocketAddrV4, WallTime};

const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
const MACS: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
const MIB: u64 = 1024 * 1024;

/// The largest number of effects and acts that may wait at one time. At most 17 were seen: an acknowledgment that
/// frees the whole send buffer, four writes, and the segments that each write sends.
const OUTBOX: usize = 24;

/// The parameters of a trial.
#[derive(Clone, Copy)]
struct Trial {
    rate: u64,
    delay: Duration,
    queue: usize,
    loss: f64,
    bytes: u64,
    /// The number of bytes of one read. `rest` is the pause between two reads.
    size: usize,
    rest: Duration,
    end: Instant,
}

const fn slow_link() -> Trial {
    Trial {
        rate: 2_000_000,
        delay: Duration::from_millis(10),
        queue: 32,
        loss: 0.0,
        bytes: 4 * MIB,
        size: 64 * 1024,
        rest: Duration::ZERO,
        end: Instant(60_000_000_000),
    }
}

const fn fast_link() -> Trial {
    Trial { rate: 1_000_000_000, delay: Duration::from_micros(100), queue: 1000, ..slow_link() }
}

/// Returns the trial with a reader that takes 200 kB/s, less than either link carries.
const fn slow_reader(trial: Trial) -> Trial {
    Trial { size: 4000, rest: Duration::from_millis(20), ..trial }
}

/// The results of a trial.
#[derive(Debug)]
struct Served {
    reader: Value,
    writer: Value,
    peaks: [usize; 2],
    refused: i64,
    outbox: usize,
    queue_full: usize,
    link_error: usize,
}

fn host(number: usize, roles: Vec<Box<dyn Role>>, mtu: u16) -> HostSpec {
    let mut node = Node::new(roles, vec![ADDRESSES[number]]);
    let key = RouteKey { class: None, src: Prefix::ANY, dst: Prefix::host(ADDRESSES[1 - number]) };
    let action = Action::Forward(Hop::mac(Iface(1), MACS[1 - number]));
    node.set_route(Instant::ZERO, key, Route::new(action, Lifetime::Permanent));
    let port = PortId(number as u32);
    HostSpec {
        name: format!("host{number}"),
        node,
        addresses: vec![ADDRESSES[number]],
        interfaces: vec![InterfaceSpec { name: "eth".into(), mac: MACS[number], mtu, port, tunes: false }],
        wall: WallTime::default(),
        clock_error: wire::ClockError::NONE,
        tcp: Arc::new(tcp::Profile::rfc6298_reno()),
        rng: Rng::new(1),
    }
}

fn run(trial: &Trial, fault: Fault) -> Served {
    let mut fabric = Fabric::default();
    let Trial { rate, delay, queue, loss, .. } = *trial;
    let faults = Faults { loss, ..Faults::default() };
    let spec = WireSpec { rate, delay: [delay; 2], queue, mtu: 1500, faults };
    fabric.add_wire([PortId(0), PortId(1)], &spec, &Rng::new(7));
    let at = SocketAddrV4::new(ADDRESSES[1], 80);
    let writer = Writer::new(at, trial.bytes);
    let reader = Reader::new(at, trial.size, trial.rest);
    let hosts = vec![
        host(0, vec![Box::new(writer), Box::new(Push::new(ADDRESSES[0], fault))], 1500),
        host(1, vec![Box::new(reader), Box::new(Push::new(ADDRESSES[1], fault))], 1500),
    ];
    let mut world = World::new(fabric, hosts);
    let status = Command { verb: "status".to_owned(), args: Value::None };
    for number in 0..2 {
        world.command(trial.end, HostId(number), status.clone());
    }
    let run = world.run(trial.end);
    let answers = run.records.iter().filter_map(|record| match &record.what {
        What::Answered(Ok(answer)) => Some(answer.clone()),
        _ => None,
    });
    let answers: Vec<Value> = answers.collect();
    let of = |host: usize, role: &str| answers[host].get(role).unwrap().clone();
    let number = |host, name| of(host, "push").get(name).and_then(Value::as_int).unwrap();
    let lost = |why: &str| {
        let is_lost = |what: &What| matches!(what, What::Lost(_, _, reason) if reason == why);
        run.records.iter().filter(|record| is_lost(&record.what)).count()
    };
    Served {
        reader: of(1, "reader"),
        writer: of(0, "writer"),
        peaks: [number(0, "peak") as usize, number(1, "peak") as usize],
        refused: number(1, "refused"),
        outbox: run.largest_outbox,
        queue_full: lost("queue_full"),
        link_error: lost("link_error"),
    }
}

/// Returns the promises that did not hold.
fn broken(trial: &Trial, outcome: &Served) -> Vec<String> {
    let mut broken = Vec::new();
    let mut must = |holds: bool, what: String| broken.extend((!holds).then_some(what));
    let Served { reader, writer, peaks, outbox, .. } = outcome;
    must(reader.get("wrong") == Some(&Value::None), format!("read wrong: {reader:?}"));
    must(reader.get("read") == Some(&Value::from(trial.bytes)), format!("not all was read: {reader:?}"));
    must(writer.get("closed") == Some(&Value::from("in order")), format!("the end: {writer:?}"));
    must(peaks[0] <= SEND_BUFFER, format!("{} bytes in the sender", peaks[0]));
    must(peaks[1] <= RECEIVE_BUFFER, format!("{} bytes in the receiver", peaks[1]));
    must(*outbox <= OUTBOX, format!("{outbox} in the outbox"));
    broken
}

/// Returns the throughput as a share of what the slower one of the link and the reader allows.
fn share(trial: &Trial, outcome: &Served) -> f64 {
    let millis = outcome.reader.get("finished_ms").and_then(Value::as_int).unwrap();
    let link = trial.rate as f64 / 8.0 * 1400.0 / 1459.0;
    let reader = trial.size as f64 / trial.rest.as_secs_f64().max(1e-9);
    trial.bytes as f64 / (millis as f64 / 1000.0) / link.min(reader)
}

#[track_caller]
fn holds(name: &str, trial: &Trial) -> Served {
    let outcome = run(trial, Fault::None);
    println!(
        "{name}: {:.0} % of what is possible, largest outbox {} (at most {} bytes), kept {:?} bytes, {} not taken in, \
         {} by a full queue",
        100.0 * share(trial, &outcome),
        outcome.outbox,
        outcome.outbox * CHUNK,
        outcome.peaks,
        outcome.refused,
        outcome.queue_full,
    );
    assert_eq!(broken(trial, &outcome), [""; 0]);
    assert!(share(trial, &outcome) >= 0.5, "{outcome:?}");
    outcome
}

#[test]
fn a_slow_link_with_a_short_queue() {
    let outcome = holds("2 Mb/s, queue 32", &slow_link());
    assert!(outcome.queue_full > 0, "the queue was short enough to matter");
}

#[test]
fn a_fast_link() {
    holds("1 Gb/s", &Trial { bytes: 16 * MIB, ..fast_link() });
}

#[test]
fn a_slow_reader_on_a_slow_link() {
    holds("2 Mb/s, slow reader", &slow_reader(slow_link()));
}

#[test]
fn a_slow_reader_on_a_fast_link() {
    let outcome = holds("1 Gb/s, slow reader", &slow_reader(fast_link()));
    assert_eq!(outcome.peaks, [SEND_BUFFER, RECEIVE_BUFFER], "all the room there is was needed");
}

#[test]
fn a_link_that_loses() {
    let trial = Trial { loss: 0.01, delay: Duration::from_millis(1), bytes: MIB, ..slow_link() };
    let outcome = run(&trial, Fault::None);
    assert_eq!(broken(&trial, &outcome), [""; 0]);
    assert!(outcome.link_error > 10, "{outcome:?}");
}

// --- transports that break a promise
// -----------------------------------------------------------------------------------

#[track_caller]
fn breaks(fault: Fault, word: &str) {
    let trial = slow_reader(fast_link());
    let outcome = run(&trial, fault);
    let broken = broken(&trial, &outcome);
    println!("{fault:?}: {broken:?}");
    assert!(broken.iter().any(|what| what.contains(word)), "{fault:?}: {outcome:?}");
}

#[test]
fn a_transport_that_lets_its_users_write_for_ever_is_caught() {
    breaks(Fault::EndlessRoom, "bytes in the sender");
}

#[test]
fn a_transport_that_ignores_the_receivers_credit_is_caught() {
    breaks(Fault::NoCredit, "bytes in the receiver");
}

#[test]
fn a_transport_that_hands_over_what_nobody_asked_for_is_caught() {
    breaks(Fault::Unasked, "that were not requested");
}
