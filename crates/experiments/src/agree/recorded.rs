//! Measurements in a file. A later `wayfare agree` makes only the missing runs, or evaluates the file without new runs.

use super::sample::{Key, Repeated, Sample};
use super::{SCENARIOS, legs};
use recorder::rundir::digest_of;
use scenario::ScenarioError;
use serde::{Deserialize, Serialize};
use trace::Fingerprint;

/// The measurements of several scenarios.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The SHA-256 of the file without its first line, in hexadecimal.
    sha256: String,
    scenarios: Vec<Measured>,
}

/// Returns the first line of the file, with the digest of all other lines.
fn head(digest: &str) -> String {
    format!("{{\"sha256\": \"{digest}\", \"scenarios\": [\n")
}

fn digest(body: &str) -> Result<String, String> {
    digest_of(&mut body.as_bytes()).map_err(|error| error.to_string())
}

/// The measurements of one scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    #[serde(flatten)]
    key: Key,
    /// The kernel of the runs on Linux, as `uname -r` prints it.
    pub(super) kernel: String,
    /// The fingerprint of the simulator's first run. If it changes, the simulator's runs have to be repeated.
    fingerprint: String,
    /// The simulator's runs. Their phases depend on the number of requested runs.
    pub sim: Sample,
    /// The simulator's runs at the phases of the runs on Linux.
    pub same: Sample,
    /// The runs on Linux, valid and invalid ones.
    pub linux: Sample,
}

impl Measured {
    /// Returns measurements without results, for these numbers of requested runs (simulator, Linux). `kernel`: the
    /// output of `uname -r`.
    pub fn new(of: &Repeated, [sim, linux]: [u64; 2], kernel: &str) -> Self {
        Self {
            key: of.key(),
            kernel: kernel.trim().to_owned(),
            fingerprint: String::new(),
            sim: Sample::new(sim),
            same: Sample::new(linux),
            linux: Sample::new(linux),
        }
    }

    /// Returns the scenario's name.
    pub fn scenario(&self) -> &str {
        &self.key.scenario
    }

    /// Sets the fingerprint of the simulator's first run, and copies the runs of `old`. Copies nothing unless the
    /// scenario's text, the settings, the seed and the number of requested runs are the same. Linux runs are copied
    /// only if the kernel is the same, and simulator runs only if the fingerprint is the same.
    #[must_use]
    pub fn with_runs_of(mut self, old: Option<&Self>, fingerprint: Fingerprint) -> Self {
        self.fingerprint = fingerprint.to_string();
        let Some(old) = old.filter(|old| old.key == self.key) else { return self };
        if old.kernel == self.kernel && old.linux.of == self.linux.of {
            self.linux = old.linux.clone();
        }
        if old.fingerprint == self.fingerprint {
            for (own, old) in [(&mut self.sim, &old.sim), (&mut self.same, &old.same)] {
                if own.of == old.of {
                    *own = old.clone();
                }
            }
        }
        self
    }

    /// Returns the scenario as it is now. Returns an error if the scenario has changed after the measurement, or cannot
    /// be read.
    pub fn repeated(&self) -> Result<Repeated, String> {
        let set: Result<Vec<_>, _> = self.key.set.iter().map(|setting| setting.parse()).collect();
        let scenario =
            Repeated::of(self.scenario(), &set?, self.key.seed).map_err(|error| error.to_string())?;
        if scenario.key() == self.key {
            Ok(scenario)
        } else {
            Err(format!("the text of `{}` has changed since the measurement; measure again", self.scenario()))
        }
    }

    /// Returns a copy with only the Linux runs. `fingerprint` is that of the simulator's first run at present.
    #[must_use]
    pub fn without_simulator(&self, fingerprint: Fingerprint) -> Self {
        let (sim, same) = (Sample::new(self.sim.of), Sample::new(self.same.of));
        let (linux, fingerprint) = (self.linux.clone(), fingerprint.to_string());
        Self { key: self.key.clone(), kernel: self.kernel.clone(), fingerprint, sim, same, linux }
    }

    /// Returns whether the recorded first run of the simulator has this fingerprint.
    #[cfg(test)]
    pub(crate) fn has_fingerprint(&self, fingerprint: Fingerprint) -> bool {
        self.fingerprint == fingerprint.to_string()
    }
}

impl Recorded {
    /// Reads the output of [`Recorded::json`]. Returns an error with line and column if the text is malformed, or an
    /// error if the text was changed after [`Recorded::json`] wrote it.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut recorded: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        recorded.sha256.clear();
        if head(&digest(body)?) + body != text {
            return Err(
                "the file was changed since it was written (its digest differs); measure again".to_owned()
            );
        }
        Ok(recorded)
    }

    /// Returns the text of the file. The first line has the digest of the other lines: one for each scenario, then
    /// `]}`. Returns an error if a value cannot be encoded.
    pub fn json(&self) -> std::io::Result<String> {
        let lines: Result<Vec<String>, _> = self.scenarios.iter().map(serde_json::to_string).collect();
        let body = format!("{}\n]}}\n", lines?.join(",\n"));
        Ok(head(&digest(&body).map_err(std::io::Error::other)?) + &body)
    }

    /// Returns the measurements of the scenario with this name, or `None` if there are none.
    pub fn find(&self, scenario: &str) -> Option<&Measured> {
        self.scenarios.iter().find(|measured| measured.scenario() == scenario)
    }

    /// Stores measurements, and replaces earlier ones of the same scenario. Scenarios are in the order of [`SCENARIOS`]
    /// and [`legs`], followed by others. Returns an error if the built-in benchmark is invalid.
    pub fn keep(&mut self, measured: Measured) -> Result<(), ScenarioError> {
        match self.scenarios.iter_mut().find(|old| old.scenario() == measured.scenario()) {
            Some(old) => *old = measured,
            None => self.scenarios.push(measured),
        }
        let order: Vec<String> = SCENARIOS.map(str::to_owned).into_iter().chain(legs()?).collect();
        let place = |measured: &Measured| {
            order.iter().position(|name| name == measured.scenario()).unwrap_or(order.len())
        };
        self.scenarios.sort_by_key(place);
        Ok(())
    }

    /// Returns the measurements of all scenarios, in the order of [`Self::keep`].
    pub fn all(&self) -> &[Measured] {
        &self.scenarios
    }
}
