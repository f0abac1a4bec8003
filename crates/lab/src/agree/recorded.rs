//! What was measured, in a file: a later call continues there, and judges what is there without a run.

use super::sample::{Key, Repeated, Sample};
use super::{SCENARIOS, legs};
use crate::rundir::digests::digest_of;
use crate::scenario::ScenarioError;
use serde::{Deserialize, Serialize};

/// What was measured of several scenarios.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The digest of what follows it in the file.
    sha256: String,
    scenarios: Vec<Measured>,
}

/// The first line of the file: the digest of the lines below.
fn head(digest: &str) -> String {
    format!("{{\"sha256\": \"{digest}\", \"scenarios\": [\n")
}

fn digest(body: &str) -> Result<String, String> {
    digest_of(&mut body.as_bytes()).map_err(|error| error.to_string())
}

/// What was measured of a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    #[serde(flatten)]
    key: Key,
    /// The kernel of the runs on Linux, as `uname -r` prints it.
    pub(super) kernel: String,
    /// The fingerprint of the simulator's first run: another one needs the simulator's runs again.
    fingerprint: String,
    /// The simulator's runs.
    pub sim: Sample,
    /// The simulator's runs at the phases of the runs on Linux.
    pub same: Sample,
    /// The runs on Linux.
    pub linux: Sample,
}

impl Measured {
    /// Of a scenario of which nothing has been run.
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

    /// The scenario's name.
    pub fn scenario(&self) -> &str {
        &self.key.scenario
    }

    /// What `old` has of the same scenario, settings and seed: runs on the same kernel, as many of them, stay; so do those in the
    /// simulator, if its first run now has the fingerprint of then.
    #[must_use]
    pub fn with_runs_of(mut self, old: Option<&Self>, fingerprint: u64) -> Self {
        self.fingerprint = format!("{fingerprint:016x}");
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

    /// The scenario, as it is now. An error says that it is another one than then.
    pub fn repeated(&self) -> Result<Repeated, String> {
        let set: Result<Vec<_>, _> = self.key.set.iter().map(|setting| setting.parse()).collect();
        let scenario =
            Repeated::of(self.scenario(), &set?, self.key.seed).map_err(|error| error.to_string())?;
        if scenario.key() == self.key {
            Ok(scenario)
        } else {
            Err(format!("{} is another scenario than the one that is recorded", self.scenario()))
        }
    }

    /// The runs on Linux alone.
    #[must_use]
    pub fn without_simulator(&self, fingerprint: u64) -> Self {
        let (sim, same) = (Sample::new(self.sim.of), Sample::new(self.same.of));
        let (linux, fingerprint) = (self.linux.clone(), format!("{fingerprint:016x}"));
        Self { key: self.key.clone(), kernel: self.kernel.clone(), fingerprint, sim, same, linux }
    }

    /// Whether the simulator's first run still is what it was.
    pub fn has_fingerprint(&self, fingerprint: u64) -> bool {
        self.fingerprint == format!("{fingerprint:016x}")
    }
}

impl Recorded {
    /// Reads what [`Recorded::json`] wrote. The error names line and column, or says that the file was changed since: no run
    /// gave what is in it then.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut recorded: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        recorded.sha256.clear();
        if head(&digest(body)?) + body != text {
            return Err("it was changed since it was written (its digest differs); measure again".to_owned());
        }
        Ok(recorded)
    }

    /// The file's text: its digest, and a line for each scenario.
    pub fn json(&self) -> std::io::Result<String> {
        let lines: Result<Vec<String>, _> = self.scenarios.iter().map(serde_json::to_string).collect();
        let body = format!("{}\n]}}\n", lines?.join(",\n"));
        Ok(head(&digest(&body).map_err(std::io::Error::other)?) + &body)
    }

    /// What there is of a scenario.
    pub fn find(&self, scenario: &str) -> Option<&Measured> {
        self.scenarios.iter().find(|measured| measured.scenario() == scenario)
    }

    /// Keeps what was measured, in the place of what was there of this scenario. Scenarios stand in the order of [`SCENARIOS`] and
    /// [`legs`], others behind them.
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

    /// All of them.
    pub fn all(&self) -> &[Measured] {
        &self.scenarios
    }
}
