//! One live TCP connection moves between two hosts under two-way load, with the same operations in both worlds: every
//! byte arrives, nobody resets, and until the old host forgets, each step can be taken back.

#![cfg(test)]

#[path = "moves/cast.rs"]
mod cast;
#[path = "moves/judge.rs"]
mod judge;
#[path = "moves/real_time.rs"]
mod real_time;
#[path = "moves/script.rs"]
mod script;
#[path = "moves/scripted.rs"]
mod scripted;
#[path = "moves/virtual_time.rs"]
mod virtual_time;
#[path = "moves/voice.rs"]
mod voice;
#[path = "moves/world.rs"]
mod world;

use judge::Verdict;
use std::io::Write;
use wire::Duration;

/// In `make test`; `make moves` makes a thousand of them.
const FEW: usize = 50;
const MANY: usize = 1000;

/// Each attempt that was given up, and each move that was not; what it came to, for whoever asked for many.
fn check(verdict: &Verdict, number: usize, on: &str) {
    assert_eq!((verdict.silent.len(), verdict.attempts), (number, 2 * number));
    // In virtual time the next attempt does not wait: now and then it comes before the peer's time-out.
    assert!(verdict.deaf.len() * 4 > number * 3, "{verdict:?}");
    // Under load in both directions, at times with bytes in every queue.
    let least = 10_000 * i64::try_from(number).unwrap();
    assert!(verdict.up.0 > least && verdict.down.0 > least, "{verdict:?}");
    assert!(verdict.full > 0, "{verdict:?}");
    if number == MANY {
        // Past the harness's capture.
        let _ = writeln!(std::io::stderr(), "{}", verdict.text(on));
    }
}

#[test]
fn a_connection_moves_in_the_simulator() {
    check(&virtual_time::moves(FEW), FEW, "simulator");
}

#[test]
#[ignore = "a minute: `make moves`"]
fn a_connection_moves_a_thousand_times_in_the_simulator() {
    check(&virtual_time::moves(MANY), MANY, "simulator");
}

#[test]
fn a_connection_moves_between_kernels() {
    world::in_world(Duration::from_mins(3), || check(&real_time::moves(FEW), FEW, "Linux"));
}

#[test]
fn a_connection_moves_between_kernels_without_any_rights() {
    world::in_world_of_nobody(Duration::from_mins(3), || {
        check(&real_time::moves(FEW), FEW, "Linux, as nobody");
    });
}

#[test]
#[ignore = "ten minutes: `make moves-linux`"]
fn a_connection_moves_a_thousand_times_between_kernels() {
    world::in_world(Duration::from_mins(30), || check(&real_time::moves(MANY), MANY, "Linux"));
}
