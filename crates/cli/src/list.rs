//! `wayfare list`

use crate::output::print;
use lab::Scenario;
use lab::reproduce::EXPERIMENTS;
use lab::scenario::BUILT_IN;
use std::fmt::Write;

pub(crate) fn list() {
    let mut out = String::from("scenarios, for `wayfare run`:\n");
    for (name, text) in BUILT_IN {
        let _ = writeln!(out, "  {name:24} {}", Scenario::about(text).unwrap_or_default());
    }
    out.push_str("experiments, for `wayfare reproduce`:\n");
    for experiment in EXPERIMENTS {
        let _ = writeln!(out, "  {:24} {}", experiment.id, experiment.about);
    }
    print(&out);
}
