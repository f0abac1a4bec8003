//! `wayfare list`

use crate::output::print;
use lab::Scenario;
use lab::scenario::BUILT_IN;
use std::fmt::Write;

/// Experiments that `reproduce` knows, with what they are about.
const EXPERIMENTS: &[(&str, &str)] = &[];

pub(crate) fn list() {
    let mut out = String::new();
    for (name, text) in BUILT_IN {
        let _ = writeln!(out, "{name:24} {}", Scenario::about(text).unwrap_or_default());
    }
    for (id, about) in EXPERIMENTS {
        let _ = writeln!(out, "{id:24} experiment: {about}");
    }
    print(&out);
}
