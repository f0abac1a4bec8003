//! `wayfare list`

use lab::Scenario;
use lab::reproduce::EXPERIMENTS;
use lab::scenario::BUILT_IN;

pub(crate) fn list() {
    println!("scenarios, for `wayfare run`:");
    for (name, text) in BUILT_IN {
        println!("  {name:24} {}", Scenario::about(text).unwrap_or_default());
    }
    println!("experiments, for `wayfare reproduce`:");
    for experiment in EXPERIMENTS {
        println!("  {:24} {}", experiment.id, experiment.about);
    }
}
