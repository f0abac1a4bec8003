//! The simulator's TCP compared with the kernel's Reno, by the same scenarios on both backends: the speed, and the
//! times of retransmissions. `docs/evidence.md` has the results.

use crate::common::*;
use recorder::run::Outcome;
use std::path::Path;
use tcp::{PROTOCOL, Segment, Wheel};
use trace::{HostId, What};
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant};

/// Runs a scenario on a backend, with these settings.
fn one(scenario: &str, backend: &str, settings: &[&str], out: &Path) -> Outcome {
    let mut words = vec!["run", scenario, "--on", backend, "--out", backend];
    words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let dir = out.join(backend);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    held_or_late(&run(&words, out), &format!(" on {backend}, "));
    emulator::run::read_run(&dir).unwrap()
}

/// Runs a scenario on both backends, with these settings. The settings `on_linux` are only for Linux.
fn both(scenario: &str, settings: &[&str], on_linux: &[&str], out: &Path) -> [Outcome; 2] {
    let for_linux: Vec<&str> = settings.iter().chain(on_linux).copied().collect();
    [one(scenario, "sim", settings, out), one(scenario, "linux", &for_linux, out)]
}

// --- speed -----------------------------------------------------------------------------------------------------------

/// Returns the time from the client's connection to the end of the transfer.
fn transfer(outcome: &Outcome) -> Option<Duration> {
    let at = |name: &str| {
        let mut marks = outcome.records.iter().rev().filter_map(|record| match &record.what {
            What::Marked(mark) if mark.role == "bulk-client" && mark.name == name => Some(record.at),
            _ => None,
        });
        marks.next()
    };
    Some(at("done")?.since(at("opened")?))
}

fn agrees_in_goodput(settings: &[&str]) {
    let out = tempfile::tempdir().unwrap();
    let runs = both("evidence/kernel", settings, &[], out.path());
    let report = std::fs::read_to_string(out.path().join("linux/run.json")).unwrap();
    assert!(report.contains("\"congestion\": \"reno\""), "{report}");
    // The queue must have overflowed, otherwise all stacks would behave alike.
    let dropped =
        runs.each_ref().map(|backend| backend.ledger.dropped.get("queue_full").copied().unwrap_or(0));
    let overflowed = dropped.iter().all(|dropped| *dropped > 5);
    let [ours, kernel] =
        runs.each_ref().map(|backend| transfer(backend).map_or(f64::INFINITY, |span| span.as_secs_f64()));
    let off = kernel / ours - 1.0;
    println!("goodput: {ours:.3} s in the simulator, {kernel:.3} s on the kernel: {:+.2} %", off * 100.0);
    println!("  lost to the queue: {dropped:?}");
    let agrees = overflowed && off.abs() < 0.03;
    if !agrees && !runs[1].doubts.is_empty() {
        return inconclusive(&trace::doubt::joined(&runs[1].doubts));
    }
    assert!(agrees, "{ours} s and {kernel} s; lost to the queue: {dropped:?}");
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

// --- retransmissions -------------------------------------------------------------------------------------------------

/// The largest permitted difference between the times on both backends. The length of a kernel tick is added to it.
const TOLERANCE: Duration = Duration::from_millis(20);
/// The largest number of tries of the same outage.
const TRIES: i32 = 3;
/// The loss recovery of the client's TCP: the kernel's default, and the same without tail loss probes (RFC 8985,
/// section 7).
const BY_ITSELF: &str = "host.client.tcp.recovery=['rack', 'tlp', 'prr', 'frto']";
const WITHOUT_PROBES: &str = "host.client.tcp.recovery=['rack', 'prr', 'frto']";

/// Returns the instants at which the client's TCP sent the request that was lost in the outage: the first transmission
/// and the repetitions. Returns `None` unless exactly one request was repeated: on a stalled machine there may be more.
fn attempts(outcome: &Outcome) -> Option<Vec<Instant>> {
    let client = outcome.plan.hosts.iter().position(|host| host.config.name == "client").unwrap();
    let mut said: Vec<(u32, Vec<Instant>)> = Vec::new();
    for record in &outcome.records {
        let What::Received(Iface::HOST, packet) = &record.what else { continue };
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { continue };
        if record.host != HostId(client as u32) || header.protocol != PROTOCOL {
            continue;
        }
        let segment = Segment::parse(payload, header.src, header.dst).unwrap();
        if segment.payload.is_empty() {
            continue;
        }
        match said.iter_mut().find(|(seq, _)| *seq == segment.seq.0) {
            Some((_, times)) => times.push(record.at),
            None => said.push((segment.seq.0, vec![record.at])),
        }
    }
    said.retain(|(_, times)| times.len() > 1);
    (said.len() == 1).then(|| said.remove(0).1)
}

/// Returns the times from the first transmission to each repetition, or `None` if [`attempts`] returns `None`.
fn again(outcome: &Outcome) -> Option<Vec<Duration>> {
    let attempts = attempts(outcome)?;
    Some(attempts[1..].iter().map(|at| at.since(attempts[0])).collect())
}

/// Returns the length of a tick of the kernel.
fn tick() -> Duration {
    let tick = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(tick.tv_sec.cast_unsigned(), u32::try_from(tick.tv_nsec).unwrap())
}

/// Returns the largest time by which a kernel timer is late, if it is set to expire after `ahead`
/// (`kernel/time/timer.c`). The first level of the timer wheel has 64 slots of a tick, and each further level has slots
/// eight times as long.
fn slot(ahead: Duration, tick: Duration) -> Duration {
    let mut slot = tick;
    while ahead >= slot * 64 {
        slot *= 8;
    }
    slot
}

/// Returns the phase of the kernel's timer wheel at the begin of a run, as the simulator defines it. `None` if the
/// kernel does not show how many ticks it has counted.
fn phase(outcome: &Outcome, wheel: Wheel) -> Option<Duration> {
    let turn = wheel.turn().as_nanos().cast_signed();
    let tick = wheel.tick.as_nanos().cast_signed();
    // If a tick comes between the two lines that are read, the count is one too high.
    let since_boot = (0..5).filter_map(|_| ticks_at_boot(tick)).min()?;
    let boot = i128::from(os::Clock::wall().0) - monotonic();
    let begun = i128::from(outcome.epoch().0) - boot;
    let turned = (begun + since_boot * tick).rem_euclid(turn);
    Some(Duration::from_nanos((turn - turned) as u64))
}

/// Returns the number of ticks (`jiffies`) that the kernel would have had when `CLOCK_MONOTONIC` was zero: ticks come
/// at multiples of their length.
fn ticks_at_boot(tick: i128) -> Option<i128> {
    let text = std::fs::read_to_string("/proc/timer_list").ok()?;
    let number = |before: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(before))?;
        rest.split_whitespace().next()?.parse::<i128>().ok()
    };
    Some(number("jiffies: ")? - number("now at ")? / tick)
}

fn monotonic() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Returns the times between successive attempts. `spans` has the time from the first attempt to each later attempt.
fn steps(spans: &[Duration]) -> Vec<Duration> {
    let before = std::iter::once(Duration::ZERO).chain(spans.iter().copied());
    spans.iter().zip(before).map(|(span, before)| span.saturating_sub(before)).collect()
}

/// Runs a scenario with an outage of the duration `outage` on both backends, and returns both outcomes. When the
/// request leaves, the simulator's timer wheel has the same phase as the kernel's wheel. The first outcome is `None` if
/// [`attempts`] finds no request.
fn outages(
    outage: &str,
    duration: &str,
    recovery: &str,
    wheel: Wheel,
    out: &Path,
) -> (Option<Outcome>, Outcome) {
    let settings = [format!("radio.retune={outage}"), format!("duration={duration}")];
    let mut settings: Vec<&str> = settings.iter().map(String::as_str).chain([recovery]).collect();
    let [pilot, kernel] = both("evidence/outage", &settings, &[], out);
    let phase = phase(&kernel, wheel).expect("a kernel that says how many ticks it counted");
    let [Some(ours), Some(theirs)] = [&pilot, &kernel].map(|backend| Some(attempts(backend)?[0].0)) else {
        return (None, kernel);
    };
    let turn = wheel.turn().as_nanos() as u64;
    let phase = (phase.as_nanos() as u64 + turn + ours % turn - theirs % turn) % turn;
    let (tick, phase) = (wheel.tick.as_nanos(), format!("host.client.tcp.tick_phase={phase}ns"));
    let tick = format!("host.client.tcp.tick={tick}ns");
    settings.extend([tick.as_str(), phase.as_str()]);
    (Some(one("evidence/outage", "sim", &settings, out)), kernel)
}

/// Asserts that the attempts in an outage come at the same instants on both backends, within 20 ms and a tick. A busy
/// machine may notice a timer late, which no model covers. So the outage is tried up to [`TRIES`] times, each time with
/// another phase of the wheel; an error of the model would appear each time. If each run on Linux has doubts, the test
/// counts as inconclusive.
fn agrees_in_retransmissions(outage: &str, duration: &str, recovery: &str) {
    let wheel = Wheel { tick: tick(), phase: None };
    let tick = wheel.tick;
    println!(
        "an outage of {outage}, {recovery}: the same segment again, ms after it was sent; a tick is {tick:?}"
    );
    let mut measured = false;
    for _ in 0..TRIES {
        let out = tempfile::tempdir().unwrap();
        let (ours, kernel) = outages(outage, duration, recovery, wheel, out.path());
        let spans = ours.as_ref().and_then(|ours| Some([again(ours)?, again(&kernel)?]));
        if spans.is_some_and(|[ours, kernel]| instants_agree(&ours, &kernel, TOLERANCE + tick)) {
            return;
        }
        measured |= kernel.doubts.is_empty();
    }
    assert!(!measured, "not in one of {TRIES} outages");
    inconclusive("the machine was too busy in every outage");
}

fn instants_agree(ours: &[Duration], kernel: &[Duration], bound: Duration) -> bool {
    println!("{:>10} {:>10} {:>10}   within 20 ms and a tick", "simulator", "kernel", "apart");
    let mut all = ours.len() >= 3 && ours.len() == kernel.len();
    for (ours, kernel) in ours.iter().zip(kernel) {
        let apart = ours.abs_diff(*kernel);
        let holds = apart <= bound;
        let verdict = if holds { "holds" } else { "does not hold" };
        println!("{:>10.1} {:>10.1} {:>10.1}   {verdict}", ms(*ours), ms(*kernel), ms(apart));
        all &= holds;
    }
    all
}

fn can_see_ticks() -> bool {
    need("root, to read how many ticks the kernel has counted", ticks_at_boot(1).is_some())
}

#[test]
fn the_kernel_tries_again_at_the_same_instants() {
    let _turn = alone();
    if can_see_ticks() {
        agrees_in_retransmissions("2s", "7.5s", WITHOUT_PROBES);
        agrees_in_retransmissions("2s", "7.5s", BY_ITSELF);
    }
}

#[test]
#[ignore = "half a minute of real time: `make evidence`"]
fn the_kernel_tries_again_at_the_same_instants_after_other_outages() {
    let _turn = alone();
    if can_see_ticks() {
        agrees_in_retransmissions("1s", "6s", WITHOUT_PROBES);
        agrees_in_retransmissions("1s", "6s", BY_ITSELF);
        agrees_in_retransmissions("4s", "12s", WITHOUT_PROBES);
    }
}

/// With the kernel's defaults, the first attempt is a tail loss probe and does not back off. So the second attempt
/// comes one time-out later and not two, because the probe restarts the timer (RFC 8985, section 7.3).
#[test]
fn a_kernel_that_probes_is_one_attempt_ahead() {
    let _turn = alone();
    let out = tempfile::tempdir().unwrap();
    let settings = ["radio.retune=1s", "duration=6s"];
    let runs = both("evidence/outage", &settings, &[], out.path());
    let [ours, kernel] = runs.each_ref().map(again);
    println!("with probes of the tail: {kernel:?}, and the simulator {ours:?}");
    if !runs[1].doubts.is_empty() {
        return inconclusive(&trace::doubt::joined(&runs[1].doubts));
    }
    for spans in [ours.unwrap(), kernel.unwrap()] {
        let [probe, first, second] = steps(&spans)[..3] else { panic!("{spans:?}") };
        let bound = |span| slot(span, tick()) + TOLERANCE + tick() * 3;
        assert!(first.abs_diff(probe) <= bound(probe), "{spans:?}");
        assert!(second.abs_diff(probe * 2) <= bound(probe * 2), "{spans:?}");
    }
}
