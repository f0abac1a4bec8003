//! `wayfare list`: prints the built-in scenarios and experiments.

use crate::output::print;
use experiments::contest;
use experiments::paper::EXPERIMENTS;
use scenario::{BUILT_IN, Scenario};
use std::fmt::Write;

pub(crate) fn list() {
    let mut out = String::from("scenarios, for `wayfare run`:\n");
    for (name, text) in BUILT_IN {
        let _ = writeln!(out, "  {name:24} {}", Scenario::about(text).unwrap_or_default());
    }
    if let Ok(course) = contest::course() {
        let _ = writeln!(out, "  {:24} one leg of `wayfare compare`; PROTOCOL is one of:", contest::PATTERN);
        for contender in &course.contenders {
            let _ = writeln!(out, "    {:22} {}", contender.name, contender.about);
        }
    }
    out.push_str("experiments, for `wayfare reproduce`:\n");
    for experiment in EXPERIMENTS {
        let _ = writeln!(out, "  {:24} {}", experiment.id, experiment.about);
    }
    print(&out);
}
