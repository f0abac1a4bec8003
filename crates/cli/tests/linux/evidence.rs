//! The simulator's TCP beside the kernel's Reno, by one scenario in both worlds: how fast, and when it is tried again.
//! `docs/evidence.md` says what was found.

use crate::common::*;
use lab::run::Outcome;
use std::path::Path;
use tcp::{PROTOCOL, Segment};
use trace::{HostId, What};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant};

/// A scenario in both worlds, with these settings and those that only a kernel understands.
fn both(scenario: &str, settings: &[&str], on_linux: &[&str], out: &Path) -> [Outcome; 2] {
    [("sim", &[][..]), ("linux", on_linux)].map(|(world, more)| {
        let mut words = vec!["run", scenario, "--on", world, "--out", world];
        words.extend(settings.iter().chain(more).flat_map(|setting| ["--set", setting]));
        assert_held(&run(&words, out), &format!(" on {world}, "));
        lab::rundir::read(&out.join(world)).unwrap()
    })
}

// --- how fast ----------------------------------------------------------------------------------------------------------

/// When the client was connected, and when it had all.
fn transfer(outcome: &Outcome) -> Duration {
    let at = |name: &str| {
        let mut marks = outcome.records.iter().rev().filter_map(|record| match &record.what {
            What::Marked(mark) if mark.role == "bulk-client" && mark.name == name => Some(record.at),
            _ => None,
        });
        marks.next().unwrap_or_else(|| panic!("the client never was {name}"))
    };
    at("done").since(at("opened"))
}

fn agrees_in_goodput(settings: &[&str]) {
    let out = tempfile::tempdir().unwrap();
    let worlds = both("evidence/kernel", settings, &[], out.path());
    let report = std::fs::read_to_string(out.path().join("linux/run.json")).unwrap();
    assert!(report.contains("\"congestion\": \"reno\""), "{report}");
    // The queue must have overflowed, or all stacks are alike.
    let dropped = worlds.each_ref().map(|world| world.ledger.dropped.get("queue_full").copied().unwrap_or(0));
    assert!(dropped.iter().all(|dropped| *dropped > 5), "{dropped:?}");
    let [ours, kernel] = worlds.each_ref().map(|world| transfer(world).as_secs_f64());
    let off = kernel / ours - 1.0;
    println!("goodput: {ours:.3} s in the simulator, {kernel:.3} s on the kernel: {:+.2} %", off * 100.0);
    println!("  lost to the queue: {dropped:?}");
    assert!(off.abs() < 0.03, "{ours} s and {kernel} s");
}

#[test]
fn the_kernels_reno_is_as_fast() {
    let _turn = alone();
    agrees_in_goodput(&[]);
}

#[test]
#[ignore = "70 s of real time: `make evidence`"]
fn the_kernels_reno_is_as_fast_over_sixteen_mebibytes() {
    let _turn = alone();
    agrees_in_goodput(&["bulk-server.bytes=16777216", "duration=76s"]);
}

// --- when it is tried again --------------------------------------------------------------------------------------------

/// The bound, beside a tick.
const TOLERANCE: Duration = Duration::from_millis(20);
/// A host that does not probe the tail of what it sent (RFC 8985, section 7), as the RFCs before had it.
const WITHOUT_PROBES: &str =
    "host.client.program=[{ command = 'echo 0 > /proc/sys/net/ipv4/tcp_early_retrans' }]";

/// After what spans the client's TCP sent the question again that the outage swallowed.
fn again(outcome: &Outcome) -> Vec<Duration> {
    let client = outcome.plan.hosts.iter().position(|host| host.config.name == "client").unwrap();
    let mut said: Vec<(u32, Instant)> = Vec::new();
    let mut spans = Vec::new();
    for record in &outcome.records {
        let What::Received(Iface::HOST, packet) = &record.what else { continue };
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { continue };
        if record.host != HostId(client as u16) || header.protocol != PROTOCOL {
            continue;
        }
        let segment = Segment::parse(payload, header.src, header.dst).unwrap();
        if segment.payload.is_empty() {
            continue;
        }
        match said.iter().find(|(seq, _)| *seq == segment.seq.0) {
            Some((_, first)) => spans.push(record.at.since(*first)),
            None => said.push((segment.seq.0, record.at)),
        }
    }
    spans
}

/// How long a tick of the kernel is.
fn tick() -> Duration {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(tick.tv_sec.cast_unsigned(), u32::try_from(tick.tv_nsec).unwrap())
}

/// How late the kernel's timers may be that are set so far ahead (`kernel/time/timer.c`): a wheel's first level has 64 slots
/// of a tick, and each further level slots that are eight times as long.
fn slot(ahead: Duration, tick: Duration) -> Duration {
    let mut slot = tick;
    while ahead >= slot * 64 {
        slot *= 8;
    }
    slot
}

/// What the kernel makes of a time-out: ticks, rounded up (`usecs_to_jiffies`).
fn in_ticks(span: Duration, tick: Duration) -> Duration {
    tick * u32::try_from(span.as_nanos().div_ceil(tick.as_nanos())).unwrap()
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The spans from one attempt to the next.
fn steps(spans: &[Duration]) -> Vec<Duration> {
    let before = std::iter::once(Duration::ZERO).chain(spans.iter().copied());
    spans.iter().zip(before).map(|(span, before)| span.saturating_sub(before)).collect()
}

/// The kernel doubles a time-out that it has rounded up to ticks, and its timers are late by a slot of its wheel. Beside
/// these, the steps agree within 20 ms and a tick; where the instants themselves do, is printed.
fn agrees_in_retransmissions(outage: &str, duration: &str) {
    let out = tempfile::tempdir().unwrap();
    let (retune, duration) = (format!("radio.retune={outage}"), format!("duration={duration}"));
    let worlds = both("evidence/outage", &[&retune, &duration], &[WITHOUT_PROBES], out.path());
    let [ours, kernel] = worlds.each_ref().map(again);
    assert!(ours.len() >= 3 && ours.len() == kernel.len(), "{ours:?} and {kernel:?}");
    let tick = tick();
    let (first, bound) = (in_ticks(ours[0], tick), TOLERANCE + tick);
    println!("an outage of {outage}: the same segment again, ms after it was sent; a tick is {tick:?}");
    println!("{:>10} {:>10} {:>10}   within 20 ms and a tick", "simulator", "kernel", "slot");
    let all = ours.iter().zip(&kernel).zip(steps(&kernel)).enumerate();
    for (number, ((ours, kernel), step)) in all {
        let told = first * (1 << number);
        let slot = slot(told, tick);
        let holds = ours.abs_diff(*kernel) <= bound;
        let verdict = if holds { "holds" } else { "does not hold" };
        println!("{:>10.1} {:>10.1} {:>10.1}   {verdict}", ms(*ours), ms(*kernel), ms(slot));
        let (least, most) = (told.saturating_sub(bound), told + slot + bound);
        assert!((least..=most).contains(&step), "step {number}: {step:?}, and not {least:?} to {most:?}");
    }
    assert!(ours[0].abs_diff(kernel[0]) <= bound, "{ours:?} and {kernel:?}");
}

#[test]
fn the_kernel_tries_again_at_the_same_instants() {
    let _turn = alone();
    agrees_in_retransmissions("2s", "7.5s");
}

#[test]
#[ignore = "half a minute of real time: `make evidence`"]
fn the_kernel_tries_again_at_the_same_instants_after_other_outages() {
    let _turn = alone();
    agrees_in_retransmissions("1s", "6s");
    agrees_in_retransmissions("4s", "12s");
}

/// As Linux is by itself: the first attempt is a probe of the tail (RFC 8985, section 7.2) and does not back off, so that the
/// second comes a time-out later and not two (section 7.3: the time-out is armed anew).
#[test]
fn a_kernel_that_probes_is_one_attempt_ahead() {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let settings = ["radio.retune=1s", "duration=6s"];
    let worlds = both("evidence/outage", &settings, &[], out.path());
    let [ours, kernel] = worlds.each_ref().map(again);
    println!("with probes of the tail: {kernel:?}, and the simulator {ours:?}");
    let [probe, first, second] = steps(&kernel)[..3] else { panic!("{kernel:?}") };
    let bound = |span| slot(span, tick()) + TOLERANCE + tick() * 3;
    assert!(first.abs_diff(probe) <= bound(probe), "{kernel:?}");
    assert!(second.abs_diff(probe * 2) <= bound(probe * 2), "{kernel:?}");
}
