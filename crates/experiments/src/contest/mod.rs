//! The comparison of all protocols under test in one benchmark scenario, on one backend or both.
//!
//! ```text
//! course.toml ─> legs: protocol x move x workload ─>  points: n repetitions, each at its phase ─> a backend
//!                                                                                                     │
//!      table, CSV, JSON, figure <─ rows: median and 95 % interval of every metric <─ measure <────────┘
//!                                   └─> what must hold, and breakers with which it must fail
//! ```
//!
//! A leg that a protocol cannot make also has rows, with the reason.

mod agreement;
mod carry_out;
mod course;
mod figure;
mod json;
mod judge;
mod measure;
mod order;
mod pairs;
mod rows;
mod runs;
mod text;

pub use carry_out::{Comparison, Repeat, Rival, compare, plan, repetitions, select, span, values_of_run};
pub use course::{Contender, Course, Leg, Move, Mover, PATTERN, Workload, course};
pub use figure::svg;
pub use json::json;
pub use judge::{Broken, MustHold, Verdict, self_test, verdicts};
pub use measure::{METRICS, Metric, OWNERS};
pub use rows::{Row, csv, rows};
pub use text::{self_test_text, text};

#[cfg(test)]
pub(crate) use carry_out::points;
pub(crate) use course::scenario;

#[cfg(test)]
mod handoff_tests;
#[cfg(test)]
mod tests;
