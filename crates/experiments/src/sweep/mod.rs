//! Many runs of one scenario: a grid of settings, and repetitions of each of its points.
//!
//! ```toml
//! [sweep]
//! repetitions = 20
//! set."radio.retune" = ["5ms", "50ms", "500ms"]
//! ```
//!
//! The same sweep with options of the command line: `--set 'radio.retune=5ms|50ms|500ms' --runs 20`. Each repetition
//! has a separate seed and separate phases ([`scenario::Repetition`]). Seeds and phases are the same at every point.
//! [`crate::batch`] defines the metrics and the value of a run.
//!
//! Runs are parallel. Each run is written to the journal when it ends (`journal`), so that an interrupted sweep
//! continues with the missing runs. The results do not depend on the number of parallel runs.

mod figure;
mod journal;
mod table;

pub use figure::figures;
pub use journal::{Done, Journal};
pub use table::{csv, files_in, json, text};

pub use crate::batch::METRICS;

use crate::batch::{Values, measure, metric, short};
use recorder::run::Backend;
use scenario::{Plan, Repetition, Scenario, ScenarioError, Setting, SweepPart, SweepTable};
use serde::Serialize;
use std::collections::BTreeSet;
use trace::Fingerprinter;

/// The largest number of runs of a sweep. A larger number is refused, as it is probably a mistake.
const MOST: usize = 1_000_000;

/// A setting with several values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Axis {
    /// The key of the setting, as in `--set`.
    pub key: String,
    /// The values of the setting, as text.
    pub values: Vec<String>,
}

/// A sweep: the axes of a grid, and the number of runs at each point.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The name of the scenario.
    pub name: String,
    /// The axes of the grid.
    pub axes: Vec<Axis>,
    /// The number of runs at each point.
    pub repetitions: usize,
    /// The backend of the runs.
    pub backend: Backend,
    file: String,
    text: String,
    points: Vec<Point>,
    /// A digest of all inputs on which the results depend.
    digest: u64,
}

/// A point of the grid: its value on each axis, and all its settings.
#[derive(Clone, Debug)]
struct Point {
    values: Vec<String>,
    settings: Vec<Setting>,
}

impl Point {
    fn new(constant: &[Setting], varied: Vec<Setting>) -> Self {
        let values = varied.iter().map(|setting| setting.parts().1).collect();
        Self { values, settings: [constant.to_vec(), varied].concat() }
    }
}

/// One run of a sweep: its point of the grid, its seed and its phases.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The index of the run's point in the grid. From one point to the next, the value on the last axis changes first.
    pub point: usize,
    /// The random seed of the run.
    pub seed: u64,
    repetition: Repetition,
}

impl Sweep {
    /// Builds the sweep of a scenario and settings, and the list of its runs. `None` if the scenario has no `[sweep]`
    /// and no setting has several values. `runs` and `seed` are those of the command line. Returns an error if the
    /// sweep or the plan of a point is invalid.
    pub fn of(
        file: &str,
        text: &str,
        settings: &[Setting],
        runs: Option<usize>,
        seed: u64,
        backend: Backend,
    ) -> Result<Option<(Self, Vec<Job>)>, ScenarioError> {
        let part = SweepPart::read(file, text, settings)?;
        let wrong = |path: &str, problem: &str| part.wrong(path, problem);
        let alternatives = settings.iter().map(Setting::alternatives);
        let (constant, varied): (Vec<_>, Vec<_>) = alternatives.partition(|values| values.len() == 1);
        if part.table.is_none() && varied.is_empty() {
            return Ok(None);
        }
        let table = part.table.clone().unwrap_or_default();
        let constant: Vec<Setting> = constant.into_iter().flatten().collect();
        let mut choices = choices(&table, &constant, &varied)
            .map_err(|(key, problem)| wrong(&format!(".set.{key}"), &problem))?;
        choices.extend(varied);
        if let Some(twice) = varied_twice(&choices) {
            return Err(wrong(
                "",
                &format!(
                    "`{twice}` is given twice; give all values in one setting, for example `--set '{twice}=A|B'`"
                ),
            ));
        }
        if let Some((key, value)) = value_twice(&choices) {
            return Err(wrong(
                "",
                &format!(
                    "`{key}` has the value {value} twice, so two points would be the same; remove one of the two values"
                ),
            ));
        }
        let repetitions = runs.unwrap_or(table.repetitions);
        let size = choices.iter().map(Vec::len).fold(repetitions, usize::saturating_mul);
        if !(1..=MOST).contains(&size) {
            return Err(wrong(
                ".repetitions",
                &format!("the sweep must have from 1 to {MOST} runs in all, but has {size}"),
            ));
        }
        let mut sweep = Self {
            name: scenario::stem(file),
            axes: choices.iter().map(|values| axis(values)).collect(),
            repetitions,
            backend,
            file: file.to_owned(),
            text: text.to_owned(),
            points: grid(&choices).into_iter().map(|point| Point::new(&constant, point)).collect(),
            digest: 0,
        };
        let jobs = sweep.jobs(seed);
        sweep.digest = sweep.check(&jobs)?;
        Ok(Some((sweep, jobs)))
    }

    /// Returns the values of the axes at a point, in the order of the axes.
    pub fn values(&self, point: usize) -> &[String] {
        self.points.get(point).map_or(&[], |point| &point.values)
    }

    /// Returns a name for a run: the values of its point, and its seed.
    pub fn name_of(&self, job: &Job) -> String {
        let keys = self.axes.iter().map(|axis| &axis.key);
        let values = keys.zip(self.values(job.point)).map(|(key, value)| format!("{key}={value}, "));
        format!("{}seed {}", values.collect::<String>(), job.seed)
    }

    /// Returns the number of points of the grid.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns whether the grid has no point. A sweep from [`Self::of`] has at least one.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the plan of a run, or an error if the scenario with its settings is invalid.
    pub fn plan(&self, job: &Job) -> Result<Plan, ScenarioError> {
        let settings = self.points.get(job.point).map_or(&[][..], |point| &point.settings);
        Scenario::repetition(&self.file, &self.text, settings, job.seed, job.repetition)
    }

    /// Returns the warnings about the scenario at all points of the grid, each once: see [`scenario::warnings`]. A warning that does
    /// not apply to all points names those that it applies to.
    pub fn warnings(&self) -> Result<Vec<ScenarioError>, ScenarioError> {
        let mut found: Vec<(ScenarioError, Vec<usize>)> = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for warning in scenario::warnings(&self.file, &self.text, &point.settings)? {
                match found.iter_mut().find(|(known, _)| *known == warning) {
                    Some((_, points)) => points.push(number),
                    None => found.push((warning, vec![number])),
                }
            }
        }
        let named = |(warning, points): (ScenarioError, Vec<usize>)| {
            if points.len() == self.points.len() {
                warning
            } else {
                warning.at_points(&self.names_of(&points))
            }
        };
        Ok(found.into_iter().map(named).collect())
    }

    /// Returns the values of at most three of these points, as text, and the number of the others.
    fn names_of(&self, points: &[usize]) -> String {
        const MOST: usize = 3;
        let name = |point: &usize| {
            let keys = self.axes.iter().map(|axis| &axis.key);
            let values = keys.zip(self.values(*point)).map(|(key, value)| format!("{key}={value}"));
            values.collect::<Vec<_>>().join(" ")
        };
        let names: Vec<String> = points.iter().take(MOST).map(name).collect();
        let others = points.len() - names.len();
        let others = if others == 0 { String::new() } else { format!(", and {others} others") };
        format!("{}{others}", names.join(", "))
    }

    /// Lists the runs. Each point has the same phases, so that points differ by their settings only.
    fn jobs(&self, seed: u64) -> Vec<Job> {
        let of = self.repetitions as u64;
        let run = move |point, number| Job {
            point,
            seed: seed.wrapping_add(number),
            repetition: Repetition { number, of, seed },
        };
        (0..self.points.len()).flat_map(|point| (0..of).map(move |number| run(point, number))).collect()
    }

    /// Checks that each point has a plan, before any run starts. Returns the digest of the sweep.
    fn check(&self, jobs: &[Job]) -> Result<u64, ScenarioError> {
        let mut fold = Fingerprinter::default();
        let mut take = |text: &str| fold.add(&text);
        take(&format!("{} {} {}", env!("CARGO_PKG_VERSION"), self.repetitions, self.backend.name()));
        for first in jobs.chunks(self.repetitions).filter_map(<[Job]>::first) {
            let plan = self.plan(first)?;
            if self.backend == Backend::Sim {
                plan.world()?;
            }
            // The document also contains the contents of files that the scenario names.
            take(&format!("\n{}\n{}", plan.seed, plan.document));
        }
        Ok(fold.value())
    }
}

/// Returns the axes of the scenario's `[sweep]`. A key that the command line sets is left out: the value or values of
/// the command line apply.
fn choices(
    table: &SweepTable,
    constant: &[Setting],
    varied: &[Vec<Setting>],
) -> Result<Vec<Vec<Setting>>, (String, String)> {
    let mut choices = Vec::new();
    for (key, values) in &table.set {
        let values = values.as_array().filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| {
            (key.clone(), "must be a list of values, for example [\"5ms\", \"50ms\"]".to_owned())
        })?;
        if !constant.iter().chain(varied.iter().flatten()).any(|setting| setting.parts().0 == *key) {
            choices.push(values.iter().map(|value| Setting::new(key, value.clone())).collect());
        }
    }
    Ok(choices)
}

fn varied_twice(choices: &[Vec<Setting>]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut keys = choices.iter().filter_map(|values| values.first()).map(|setting| setting.parts().0);
    keys.find(|key| !seen.insert(key.clone()))
}

fn value_twice(choices: &[Vec<Setting>]) -> Option<(String, String)> {
    let mut seen = BTreeSet::new();
    let mut parts = choices.iter().flatten().map(Setting::parts);
    parts.find(|part| !seen.insert(part.clone()))
}

fn axis(values: &[Setting]) -> Axis {
    let parts: Vec<(String, String)> = values.iter().map(Setting::parts).collect();
    let key = parts.first().map(|(key, _)| key.clone()).unwrap_or_default();
    Axis { key, values: parts.into_iter().map(|(_, value)| value).collect() }
}

/// Returns all combinations of one setting of each axis. The last axis changes first.
pub fn grid(axes: &[Vec<Setting>]) -> Vec<Vec<Setting>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let with_each = |point: &Vec<Setting>| {
            axis.iter().map(|setting| point.iter().chain([setting]).cloned().collect()).collect::<Vec<_>>()
        };
        points.iter().flat_map(with_each).collect()
    })
}

#[cfg(test)]
mod tests;
