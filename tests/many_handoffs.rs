//! Mobile IP with all that makes handoffs fast, over many handoffs in the simulator: a soak with crashing agents, and the packets
//! and times that handoffs cost in a network of 1 ms.

#[path = "support/soak_course.rs"]
mod course;
mod lan;
mod soak;
mod watch;

use std::io::Write;

/// Prints the results of a long run. The test harness does not capture text that is written directly.
fn print(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
