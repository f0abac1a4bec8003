//! `wayfare list`

use lab::Scenario;
use lab::scenario::BUILT_IN;

pub(crate) fn list() {
    for (name, text) in BUILT_IN {
        println!("{name:24} {}", Scenario::about(text).unwrap_or_default());
    }
}
