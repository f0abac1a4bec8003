//! A live TCP connection moves between two hosts under load in both directions, with the same operations in the
//! simulator and on Linux. Every byte arrives, and no host sends a reset. Until the old host deletes its state, each
//! step can be reverted.

#[path = "moves/cast.rs"]
mod cast;
#[path = "moves/judge.rs"]
mod judge;
#[path = "moves/real_time.rs"]
mod real_time;
#[path = "moves/sandbox.rs"]
mod sandbox;
#[path = "moves/script.rs"]
mod script;
#[path = "moves/scripted.rs"]
mod scripted;
#[path = "moves/virtual_time.rs"]
mod virtual_time;
#[path = "moves/voice.rs"]
mod voice;

use judge::Verdict;
use std::io::Write;
use wire::Duration;

/// The number of moves in `make test`. `make moves` makes `MANY` moves.
const FEW: usize = 50;
const MANY: usize = 1000;

/// Checks the numbers of moves, attempts and bytes. Prints the results of a long run.
fn check(verdict: &Verdict, number: usize, on: &str) {
    assert_eq!((verdict.silent.len(), verdict.attempts), (number, 2 * number));
    // In the simulator, the next attempt to move does not wait until the new host has received a byte. So some moves
    // have no first byte: the peer's retransmission timer expires only after the next attempt.
    assert!(verdict.deaf.len() * 4 > number * 3, "{verdict:?}");
    // There was load in both directions, at times with bytes in every queue.
    let least = 10_000 * i64::try_from(number).unwrap();
    assert!(verdict.up.0 > least && verdict.down.0 > least, "{verdict:?}");
    assert!(verdict.full > 0, "{verdict:?}");
    if number == MANY {
        // The test harness does not capture text that is written directly.
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
    sandbox::in_sandbox(Duration::from_mins(3), || check(&real_time::moves(FEW), FEW, "Linux"));
}

#[test]
fn a_connection_moves_between_kernels_without_any_rights() {
    sandbox::in_sandbox_of_nobody(Duration::from_mins(3), || {
        check(&real_time::moves(FEW), FEW, "Linux, as the user nobody");
    });
}

#[test]
#[ignore = "ten minutes: `make moves-linux`"]
fn a_connection_moves_a_thousand_times_between_kernels() {
    sandbox::in_sandbox(Duration::from_mins(30), || check(&real_time::moves(MANY), MANY, "Linux"));
}
