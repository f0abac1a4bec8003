//! One live TCP connection moves between two hosts under two-way load, with the same operations in both worlds: every
//! byte arrives, nobody resets, and until the old host forgets, each step can be taken back.

#![cfg(test)]

#[path = "moves/cast.rs"]
mod cast;
#[path = "moves/judge.rs"]
mod judge;
#[path = "moves/script.rs"]
mod script;
#[path = "moves/scripted.rs"]
mod scripted;
#[path = "moves/virtual_time.rs"]
mod virtual_time;
#[path = "moves/voice.rs"]
mod voice;

/// In `make test`; `make moves` makes a thousand of them.
const FEW: usize = 50;
const MANY: usize = 1000;

fn in_the_simulator(number: usize) {
    let verdict = virtual_time::moves(number);
    assert_eq!((verdict.silent.len(), verdict.attempts), (number, 2 * number));
    println!("{}", verdict.text("simulator"));
}

#[test]
fn a_connection_moves_in_the_simulator() {
    in_the_simulator(FEW);
}

#[test]
#[ignore = "a minute: `make moves`"]
fn a_connection_moves_a_thousand_times_in_the_simulator() {
    in_the_simulator(MANY);
}
