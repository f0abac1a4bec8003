//! The course of the scenario `mobile-ip/soak` with more handoffs than the scenario has.

use std::fmt::Write as _;

/// The time between two moves in milliseconds, and the time of the first one.
const EVERY_MS: usize = 2000;
const FIRST_MS: usize = 4000;
/// The time between two crashes of the long run.
const CRASHES_MS: usize = 100_000;

/// Returns the settings for this number of handoffs, with a crash every 100 s: of each agent in turn, at another time after a move
/// each.
pub(crate) fn course(number: usize) -> Vec<String> {
    let stop = FIRST_MS + number * EVERY_MS - EVERY_MS / 2;
    let mut events = String::from("event=[");
    for crash in 1..=(stop / CRASHES_MS) {
        let host = ["c", "home", "a", "b"][crash % 4];
        let at = crash * CRASHES_MS + crash * 370 % EVERY_MS;
        for (kind, at) in [("crash", at), ("restart", at + 1000)] {
            let _ = write!(events, "{{ at = \"{at}ms\", kind = \"{kind}\", host = \"{host}\" }},");
        }
    }
    events.push(']');
    let moves = format!(
        "roam.moves={{ between = [\"b\", \"c\", \"a\"], every = \"{EVERY_MS}ms\", start = \"{FIRST_MS}ms\", stop = \"{stop}ms\" }}"
    );
    let sends = format!("bulk-server.duration={}ms", stop + 1000);
    vec![events, moves, sends, format!("duration={}ms", stop + 12_000)]
}
