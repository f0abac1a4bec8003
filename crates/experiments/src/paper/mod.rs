//! The experiments of papers: one folder for a paper's protocol, one module for an experiment.
//!
//! An experiment `PAPER/NAME` is in `paper/PAPER/NAME`, and its scenarios are in `scenarios/PAPER`. One with a scenario of its
//! own has it in `scenarios/PAPER/NAME.toml`.

mod cellular_ip;
mod indirect_tcp;
mod mobile_ip;
mod records;
mod sigma;

use crate::reproduce::Experiment;

/// All experiments of papers that `wayfare reproduce` has.
pub const EXPERIMENTS: &[Experiment] = &[
    cellular_ip::udp_loss::EXPERIMENT,
    sigma::handoff::EXPERIMENT,
    sigma::mobile_ip::EXPERIMENT,
    indirect_tcp::handoff_time::EXPERIMENT,
    mobile_ip::triangle::EXPERIMENT,
    mobile_ip::movement_detection::EXPERIMENT,
    mobile_ip::registration_delay::EXPERIMENT,
    mobile_ip::satellite_registration::EXPERIMENT,
    mobile_ip::satellite_smooth::EXPERIMENT,
    mobile_ip::satellite_single_buffer::EXPERIMENT,
    mobile_ip::satellite_buffer::EXPERIMENT,
];

/// Returns the experiments that `words` name, or all if there are no words. A word is the identifier of an experiment
/// (`PAPER/NAME`), or `PAPER` for all experiments of the paper. Returns an error for an unknown word.
pub fn select(words: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let named = |experiment: &Experiment, word: &str| {
        experiment.id == word || experiment.id.split('/').next() == Some(word)
    };
    for word in words {
        if !EXPERIMENTS.iter().any(|experiment| named(experiment, word)) {
            let ids: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
            let meant = scenario::did_you_mean(word, ids.iter().copied());
            return Err(format!("no paper and no experiment `{word}`{meant}; there are: {}", ids.join(", ")));
        }
    }
    let wanted = |experiment: &&Experiment| words.is_empty() || words.iter().any(|w| named(experiment, w));
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Scale;
    use std::path::Path;

    #[test]
    fn an_experiment_and_its_scenario_are_found_by_its_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for Experiment { id, points, .. } in EXPERIMENTS {
            let module = root.join("crates/experiments/src/paper").join(id.replace('-', "_")).join("mod.rs");
            assert!(std::fs::read_to_string(&module).unwrap().contains(&format!("id: \"{id}\"")), "{id}");
            let paper = id.split('/').next().unwrap();
            for point in points(Scale::Quick) {
                assert!(root.join(format!("scenarios/{}.toml", point.scenario)).is_file(), "{id}");
                assert_eq!(point.scenario.split('/').next(), Some(paper), "{id}");
            }
        }
    }
}
