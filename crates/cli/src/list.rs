//! `wayfare list`: prints the built-in scenarios and experiments.

use crate::output::print;
use experiments::contest;
use experiments::paper::EXPERIMENTS;
use scenario::{BUILT_IN, Scenario};
use std::fmt::Write;

/// The width of the column of names that fits the names of nearly all scenarios and experiments.
const WIDTH: usize = 32;

pub(crate) fn list() {
    let mut out = String::from("scenarios, for `wayfare run`:\n");
    for (name, text) in BUILT_IN {
        let _ = writeln!(out, "  {name:WIDTH$} {}", Scenario::about(text).unwrap_or_default());
    }
    if let Ok(course) = contest::course() {
        let pattern = contest::PATTERN;
        let _ = writeln!(out, "  {pattern:WIDTH$} one leg of `wayfare compare`; PROTOCOL is one of:");
        for contender in &course.contenders {
            let width = WIDTH - 2;
            let _ = writeln!(out, "    {:width$} {}", contender.name, contender.about);
        }
    }
    out.push_str("experiments, for `wayfare reproduce`, with their papers:\n");
    for experiment in EXPERIMENTS {
        let _ = writeln!(out, "  {:WIDTH$} {} ({})", experiment.id, experiment.about, experiment.paper);
    }
    print(&out);
}
