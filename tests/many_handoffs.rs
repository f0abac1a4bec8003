//! Mobile IP with all that makes handoffs fast, over many handoffs in the simulator: a soak with crashing agents, and the packets
//! and times that handoffs cost in a network of 1 ms.

#[path = "many_handoffs/lan.rs"]
mod lan;
#[path = "many_handoffs/soak.rs"]
mod soak;
#[path = "many_handoffs/watch.rs"]
mod watch;

use std::io::Write;

/// Prints the results of a long run. The test harness does not capture text that is written directly.
fn print(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
