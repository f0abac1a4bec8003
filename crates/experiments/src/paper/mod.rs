//! The experiments of papers: one folder for a paper's protocol, one module for an experiment.
//!
//! An experiment `PROTOCOL/NAME` is in `paper/PROTOCOL/NAME`, and its scenarios are in `scenarios/PROTOCOL`. One with a
//! separate scenario has it in `scenarios/PROTOCOL/NAME.toml`.

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

/// Returns the experiments that `words` name, or all if there are no words. A word is the identifier of an experiment, the
/// protocol with which identifiers begin, or the name of a paper, for example `Fikouras et al. 1999`. The first words of
/// this name are sufficient: `fikouras`. Returns an error for an unknown word.
pub fn select(words: &[String]) -> Result<Vec<&'static Experiment>, String> {
    if let Some(word) = words.iter().find(|word| !EXPERIMENTS.iter().any(|one| is_named(one, word))) {
        return Err(unknown(word));
    }
    let wanted = |one: &&Experiment| words.is_empty() || words.iter().any(|word| is_named(one, word));
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

fn is_named(experiment: &Experiment, word: &str) -> bool {
    let is_start = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    experiment.id == word
        || protocol(experiment) == word
        || experiment.paper.to_lowercase().strip_prefix(&word.to_lowercase()).is_some_and(is_start)
}

fn protocol(experiment: &Experiment) -> &'static str {
    experiment.id.split('/').next().unwrap_or_default()
}

/// Returns the error for a word that names no experiment: what is similar, and all that is allowed.
fn unknown(word: &str) -> String {
    let distinct = |of: fn(&Experiment) -> &'static str| {
        let mut all: Vec<&str> = EXPERIMENTS.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let [papers, protocols] = [distinct(|one| one.paper), distinct(protocol)];
    let ids: Vec<&str> = EXPERIMENTS.iter().map(|one| one.id).collect();
    let meant = scenario::did_you_mean(word, [&ids[..], &protocols, &papers].concat());
    format!(
        "no experiment, protocol or paper `{word}`{meant}\n  experiments: {}\n  protocols, for all their experiments: {}\n  \
         papers, or the first words of their names: {}",
        ids.join(", "),
        protocols.join(", "),
        papers.join(", ")
    )
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

    #[test]
    fn a_paper_is_selected_by_its_name_or_by_its_first_author() {
        let ids = |word: &str| -> Vec<&str> {
            select(&[word.to_owned()]).unwrap().iter().map(|experiment| experiment.id).collect()
        };
        for experiment in EXPERIMENTS {
            assert!(ids(experiment.paper).contains(&experiment.id), "{}", experiment.paper);
        }
        for word in ["Fikouras et al. 1999", "fikouras", "Fikouras et al."] {
            assert_eq!(ids(word), ["mobile-ip/triangle", "mobile-ip/movement-detection"], "{word}");
        }
        assert!(ids("johnson").contains(&"mobile-ip/registration-delay"));
    }

    #[test]
    fn an_unknown_word_is_refused_with_all_that_is_allowed() {
        for word in ["", "fik", "nonsense", "triangle", "mobile-ipp"] {
            let error = select(&[word.to_owned()]).err().unwrap();
            for allowed in
                ["mobile-ip/triangle", "cellular-ip, indirect-tcp, mobile-ip, sigma", "Fikouras et al. 1999"]
            {
                assert!(error.contains(allowed), "{word}: {error}");
            }
        }
        let error = select(&["triangle".to_owned()]).err().unwrap();
        assert!(
            error.starts_with(
                "no experiment, protocol or paper `triangle`, did you mean `mobile-ip/triangle`?\n"
            ),
            "{error}"
        );
    }
}
