//! The journal of a sweep, `runs.jsonl`: one line for each run, written when the run ends.

use super::{Job, Sweep, Values, measure};
use recorder::run::{Backend, Outcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use trace::{Doubt, Fingerprint, Fingerprinter};

/// The result of one run of a sweep, as one line of the journal has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// The index of the run in the sweep's list of jobs.
    pub job: usize,
    /// The index of the run's point in the grid.
    pub point: usize,
    /// The random seed of the run.
    pub seed: u64,
    /// The fingerprint of a simulated run; `None` on Linux.
    pub fingerprint: Option<String>,
    /// The reasons why the run is not valid; empty if it is valid.
    pub doubts: Vec<Doubt>,
    /// Failures of the run, such as an outage without end or a program that failed.
    #[serde(default)]
    pub failures: Vec<String>,
    /// The measured values of the run by metric. An infinite value is written as null.
    #[serde(serialize_with = "finite", deserialize_with = "endless")]
    pub values: Values,
}

impl Done {
    /// Returns the result of a run that has ended. `number` is the index of `job` in the sweep's list of jobs.
    pub fn of(number: usize, job: &Job, outcome: &Outcome) -> Self {
        Self {
            job: number,
            point: job.point,
            seed: job.seed,
            fingerprint: outcome.fingerprint.map(|fingerprint| fingerprint.to_string()),
            doubts: outcome.doubts.clone(),
            failures: outcome.failures.clone(),
            values: measure(outcome),
        }
    }
}

/// The text between the fields of a run and the digest of its line.
const SUM: &str = ",\"sha256\":\"";

/// Returns the line of a run. The line ends with a digest over the sweep's digest and the text of the run. The digest
/// detects changes by mistake, and is no signature.
fn line_of(sweep: &str, run: &Done) -> serde_json::Result<String> {
    let text = serde_json::to_string(run)?;
    let open = text.strip_suffix('}').unwrap_or(&text);
    Ok(format!("{open}{SUM}{}\"}}\n", sum(sweep, open)))
}

/// Parses the line of a run. The error describes what is wrong in the line.
fn run_of(sweep: &str, line: &str) -> Result<Done, String> {
    let (open, digest) = line.rsplit_once(SUM).ok_or("must end with the digest `sha256`")?;
    if digest.strip_suffix("\"}") != Some(&sum(sweep, open)) {
        return Err("was changed after the sweep wrote it: the digest does not match".to_owned());
    }
    serde_json::from_str(&format!("{open}}}")).map_err(|error| error.to_string())
}

fn sum(sweep: &str, open: &str) -> String {
    trace::hex(&Sha256::new().chain_update(sweep).chain_update("\n").chain_update(open).finalize())
}

/// The first line of a journal, which identifies the sweep.
#[derive(Serialize, Deserialize)]
struct Head {
    sweep: String,
    digest: String,
}

/// The journal of a sweep, open and locked.
#[derive(Debug)]
pub struct Journal {
    file: Mutex<File>,
    /// The sweep's digest.
    sweep: String,
    done: BTreeMap<usize, Done>,
}

impl Sweep {
    /// Returns the sweep's digest, as in the first line of its journal.
    fn digest(&self) -> String {
        format!("{:016x}", self.digest)
    }

    /// Returns the default folder of a sweep: `runs/NAME-BACKEND-sweep`. If this folder has other files or another
    /// sweep, the name ends in `.2`, `.3` and so on.
    pub fn default_folder(&self, backend: Backend) -> PathBuf {
        let base = format!("{}-{}-sweep", self.name, backend.name());
        let mut folder = Path::new("runs").join(&base);
        let mut number = 2_u64;
        while is_taken(&folder, self).is_some() {
            folder = Path::new("runs").join(format!("{base}.{number}"));
            number += 1;
        }
        folder
    }
}

/// Returns why a folder cannot be used for this sweep: it is no folder, has files and no journal, or has the journal of
/// another sweep. `None` if it can be used, or if its journal cannot be read.
fn is_taken(folder: &Path, sweep: &Sweep) -> Option<&'static str> {
    let Ok(mut entries) = fs::read_dir(folder) else {
        return fs::symlink_metadata(folder)
            .is_ok()
            .then_some("the parent of this file is not a folder; choose another folder with --out");
    };
    match fs::read_to_string(folder.join("runs.jsonl")) {
        Ok(text) => {
            let head: Option<Head> = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
            let other = head.is_some_and(|head| head.digest != sweep.digest());
            other.then_some("has another sweep; choose another folder with --out, or remove the whole folder")
        }
        // A journal that cannot be read is reported by `Journal::open`.
        Err(error) if error.kind() != io::ErrorKind::NotFound => None,
        Err(_) => entries
            .next()
            .map(|_| "is missing, but the folder has other files; choose another folder with --out"),
    }
}

impl Journal {
    /// Opens the journal of a sweep in this folder and reads the completed runs. A run that was not valid does not
    /// count as completed.
    ///
    /// # Errors
    ///
    /// The folder has other files and no journal, or the journal of another sweep. Another process writes the journal.
    /// Or the journal cannot be read or written, or has a damaged line.
    pub fn open(folder: &Path, sweep: &Sweep) -> io::Result<Self> {
        let path = folder.join("runs.jsonl");
        recorder::kept::refuse_file(folder)?;
        if let Some(problem) = is_taken(folder, sweep) {
            let problem = format!("{}: {problem}", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        let within = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::create_dir_all(folder).map_err(within)?;
        let digest = sweep.digest();
        let bad = |problem: String| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {problem}", path.display()))
        };
        let unreadable = |error: io::Error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
        };
        if let Err(error) = File::open(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(unreadable(error));
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(within)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            let problem = format!(
                "{}: another sweep is writing this file; wait until that sweep ends, or choose another folder with --out",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        // An interrupted write leaves a last line without an end of line. The journal is cut before this line.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text.get(..whole).unwrap_or_default().lines();
        let mut done = BTreeMap::new();
        if let Some(head) = lines.next() {
            let head: Head = serde_json::from_str(head).map_err(|error| bad(error.to_string()))?;
            debug_assert_eq!(head.digest, digest);
            for (number, line) in (2..).zip(lines) {
                let run = run_of(&digest, line).map_err(|problem| {
                    bad(format!("line {number}: {problem}; choose another folder with --out, or remove the whole folder"))
                })?;
                if run.doubts.is_empty() {
                    done.insert(run.job, run);
                }
            }
        }
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        if whole == 0 {
            let head = serde_json::to_string(&Head { sweep: sweep.name.clone(), digest: digest.clone() })?;
            writeln!(file, "{head}").map_err(within)?;
        }
        Ok(Self { file: Mutex::new(file), sweep: digest, done })
    }

    /// Returns whether the run of a job was completed when the journal was opened. `job` is an index in the sweep's
    /// list of jobs.
    pub fn has(&self, job: usize) -> bool {
        self.done.contains_key(&job)
    }

    /// Returns how many runs were completed when the journal was opened.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Returns whether no run was completed when the journal was opened.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// Appends a run that has ended. Returns an error if its line cannot be written.
    pub fn note(&self, run: &Done) -> io::Result<()> {
        let line = line_of(&self.sweep, run)?;
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }

    /// Returns the runs in the order of their jobs: those that were completed when the journal was opened, and `more`.
    /// A run of `more` replaces another run of the same job.
    pub fn all(self, more: impl IntoIterator<Item = Done>) -> Vec<Done> {
        let mut done = self.done;
        done.extend(more.into_iter().map(|run| (run.job, run)));
        done.into_values().collect()
    }
}

/// Returns the fingerprint of a whole sweep in the simulator.
pub(super) fn fingerprint(runs: &[Done]) -> Fingerprint {
    let mut fold = Fingerprinter::default();
    for run in runs {
        fold.add(&(run.job, &run.fingerprint));
    }
    fold.fingerprint()
}

fn finite<S: serde::Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
    let some = |values: &Vec<f64>| {
        values.iter().map(|value| value.is_finite().then_some(*value)).collect::<Vec<_>>()
    };
    serializer.collect_map(values.iter().map(|(name, values)| (name, some(values))))
}

fn endless<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
    let values = BTreeMap::<String, Vec<Option<f64>>>::deserialize(deserializer)?;
    let all =
        |values: Vec<Option<f64>>| values.into_iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
    Ok(values.into_iter().map(|(name, values)| (name, all(values))).collect())
}
