//! A run directory: all data of a run, as files.
//!
//! | file | what it holds |
//! |---|---|
//! | `run.json` | scenario, settings, backend, seed, fingerprint, versions, machine, daemons, doubts, failures, summary |
//! | `events.jsonl` | for readers and scripts: one record in each line, with names of hosts and interfaces and numbers of packets |
//! | `packets.csv` | a row for each packet and hop, with the packet's fate |
//! | `flows.csv` | a row for each flow, with the fields of `summary.flows` in `run.json` |
//! | `capture.pcapng` | all nodes merged, an interface block for each node's interface, fates as packet comments |
//! | `figures/handoffs.svg`, `.csv` | the time-sequence of each flow around each handoff, and the plotted numbers |
//! | `figures/flows.svg`, `.csv` | goodput, one-way delay, congestion window and round-trip time of each flow over time |
//! | `programs/HOST-N.log` | the output (stdout and stderr) of the `N`th program of a host |
//! | `SHA256SUMS` | a digest of each file, for `sha256sum --check`; [`read`] refuses a directory in which a file was changed |
//! | `records.jsonl` | for [`read`]: every complete record, with the bytes of its packet; `host` is the host's index in the scenario, from 0, and the rest of the line is [`trace::Record::to_line`] |
//!
//! A run directory appears complete or not at all (`put`). A directory without `run.json` is no run directory. Files
//! that do not belong to a run are not touched. docs/files.md describes every field. `explain` and `diff` compute
//! flows, handoffs and ledger again from `run.json` (the plan) and `records.jsonl`. The other files are not read back.

mod capture;
mod digests;
mod events;
mod figure;
mod files;
mod flows;
mod meta;
mod place;
mod put;
mod steps;
mod table;
mod time;

pub use crate::backend::{Daemon, Machine};
pub use meta::{
    EventPart, FlowSummary, HandoffSummary, LedgerSummary, OwnerSummary, RepetitionPart, RunFile,
    ScenarioPart, Summary, Versions,
};

pub use digests::{digest, digest_of};
pub(crate) use place::claim_folder;
pub use place::{Claim, check, claim, default_dir, default_folder, member};

use crate::backend::BackendReport;
use crate::decode::Numbers;
use crate::journey::Journeys;
use crate::run::Outcome;
use draw::Snap;
use scenario::{Plan, Scenario};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use trace::{Doubt, HostId, Record};

/// Options for writing a run directory.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much of each packet the capture keeps.
    pub snap: Snap,
    /// The largest number of hops for a complete `packets.csv`. With more hops, it has only packets that were lost,
    /// dropped, held or copied, and up to 200 packets around the begin of each handoff.
    pub hops: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { snap: Snap::default(), hops: 2_000_000 }
    }
}

/// The error of [`read`]: why a run directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing or cannot be read.
    #[error("{0}: {1}; give a directory that `wayfare run` wrote")]
    File(PathBuf, io::Error),
    /// `run.json` is malformed.
    #[error("{0}: {1}")]
    RunFile(PathBuf, serde_json::Error),
    /// This program does not read the format of the directory.
    #[error("{0}: the run directory has format {1}, and this program reads format {known}; run the scenario again", known = meta::FORMAT)]
    Format(PathBuf, u32),
    /// The scenario in `run.json` is not valid for this program.
    #[error("{0}")]
    Scenario(#[from] scenario::ScenarioError),
    /// A setting in `run.json` is malformed.
    #[error("{0}: setting {1}")]
    Setting(PathBuf, String),
    /// A line of `records.jsonl` is malformed: its number from 1, and the problem.
    #[error("{0}, line {1}: {2}")]
    Record(PathBuf, usize, String),
    /// A file was changed after the run was written, or has no digest.
    #[error(
        "{0}: the file was changed after the run (the digest in SHA256SUMS differs or is missing); run the scenario again"
    )]
    Changed(PathBuf),
    /// The number of records (first number) is not that in `run.json` (second number).
    #[error("{0}: the file has {1} records, and run.json requires {2}; run the scenario again")]
    Truncated(PathBuf, usize, usize),
}

/// Writes a run directory, and replaces an older run there ([`check`] tests whether that is permitted). Returns the
/// contents of `run.json`, or an error if a file cannot be written.
pub fn write(outcome: &Outcome, dir: &Path, options: &Options) -> io::Result<RunFile> {
    let page = |file: &mut RunFile, files| {
        file.files = files;
        file.to_json()
    };
    put::put(dir, |part| fill(outcome, part, options), page)
}

fn fill(outcome: &Outcome, dir: &Path, options: &Options) -> io::Result<RunFile> {
    fs::create_dir_all(dir.join("figures"))?;
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    let run_file = RunFile::new(outcome, journeys.hops().len() <= options.hops);
    let file = |name: &str| File::create(dir.join(name)).map(BufWriter::new);
    records(outcome, file("records.jsonl")?)?;
    events::write(outcome, &journeys, file("events.jsonl")?)?;
    table::write(outcome, &journeys, options, file("packets.csv")?)?;
    fs::write(dir.join("flows.csv"), flows_csv(&run_file.summary.flows))?;
    fs::write(dir.join("capture.pcapng"), capture::capture(outcome, &journeys, options.snap)?)?;
    figures(outcome, &journeys, dir)?;
    for program in outcome.report.iter().flat_map(|report| &report.programs) {
        let folder = dir.join("programs");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&program.file), &program.output)?;
    }
    Ok(run_file)
}

fn figures(outcome: &Outcome, journeys: &Journeys<'_>, dir: &Path) -> io::Result<()> {
    let places = flows::Places::new(outcome);
    let handoffs = figure::handoffs(outcome, journeys, &places);
    let over_time = time::flows(outcome, journeys, &places);
    let files = [("handoffs", handoffs.svg(), handoffs.csv()), ("flows", over_time.svg(), over_time.csv())];
    for (name, svg, csv) in files {
        fs::write(dir.join("figures").join(format!("{name}.svg")), svg)?;
        fs::write(dir.join("figures").join(format!("{name}.csv")), csv)?;
    }
    Ok(())
}

/// Returns the time-sequence figure of a run, as in `figures/handoffs.svg`.
pub fn sequence(outcome: &Outcome) -> draw::SequenceFigure {
    let journeys = Journeys::new(&outcome.plan, &outcome.records);
    figure::handoffs(outcome, &journeys, &flows::Places::new(outcome))
}

fn records(outcome: &Outcome, mut to: impl Write) -> io::Result<()> {
    for record in &outcome.records {
        let line = record.to_line();
        let fields = line.strip_prefix('{').unwrap_or_default();
        writeln!(to, "{{\"host\":{},{fields}", record.host.0)?;
    }
    to.flush()
}

/// Returns `flows.csv`: a row for each flow, with the fields of `summary.flows` in `run.json`.
fn flows_csv(flows: &[FlowSummary]) -> String {
    let mut csv = draw::Csv::default();
    csv.row([
        "flow",
        "from",
        "from_address",
        "to",
        "to_address",
        "transport",
        "begun_s",
        "ended_s",
        "end",
        "bytes",
        "goodput_kbps",
        "delay_p50_ms",
        "delay_p99_ms",
        "longest_stall_ms",
        "lost",
        "retransmissions",
    ]);
    let or_empty = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for flow in flows {
        csv.row([
            flow.number.to_string(),
            flow.from.clone(),
            flow.from_address.clone(),
            flow.to.clone(),
            flow.to_address.clone(),
            flow.transport.clone(),
            flow.begun_s.to_string(),
            or_empty(flow.ended_s),
            flow.end.clone(),
            flow.bytes.to_string(),
            format!("{:.3}", flow.goodput_kbps),
            or_empty(flow.delay_p50_ms),
            or_empty(flow.delay_p99_ms),
            flow.longest_stall_ms.to_string(),
            flow.lost.to_string(),
            flow.retransmissions.to_string(),
        ]);
    }
    csv.finish()
}

/// A function that evaluates the field `linux` of `run.json`, for a run that was read again. It returns the backend's
/// report and the doubts that follow from it, or an error if the field is malformed.
pub type Evaluate = fn(serde_json::Value, &Outcome) -> serde_json::Result<(BackendReport, Vec<Doubt>)>;

/// Reads a run directory, and computes its flows, handoffs and ledger again from the records. `evaluate` reads the
/// report of the backend.
///
/// # Errors
///
/// Returns an error if a needed file is missing, or if a file is malformed, was changed or has another format.
pub fn read(dir: &Path, evaluate: Evaluate) -> Result<Outcome, ReadError> {
    put::complete(dir).map_err(|error| ReadError::File(dir.to_owned(), error))?;
    let path = dir.join("run.json");
    let text = fs::read_to_string(&path).map_err(|error| ReadError::File(path.clone(), error))?;
    let file = read_run_file(&path, &text)?;
    digests::check(dir)?;
    let plan = plan(&path, &file)?;
    let records = read_records(&dir.join("records.jsonl"), file.records)?;
    let mut outcome = Outcome::new(plan, file.backend, records, file.fingerprint());
    if let Some(details) = file.linux {
        let (report, found) = evaluate(details, &outcome).map_err(|error| ReadError::RunFile(path, error))?;
        outcome.set_report(report, found);
    }
    // Some doubts follow neither from the records nor from the counts, so they are taken from the file. They are
    // compared as text, because the last digit of a time may have been rounded.
    let known: BTreeSet<String> = outcome.doubts.iter().map(ToString::to_string).collect();
    outcome.doubts.extend(file.doubts.into_iter().filter(|doubt| !known.contains(&doubt.to_string())));
    Ok(outcome)
}

/// Returns the numbers of the messages of Mobile IP in a file of a run directory, for example its capture. Returns `None`
/// if the file is in no run directory.
///
/// # Errors
///
/// Returns an error if the `run.json` beside the file is that of a run, but cannot be read.
pub fn numbers_beside(file: &Path) -> Result<Option<Numbers>, ReadError> {
    let path = file.with_file_name("run.json");
    match fs::read(&path) {
        Ok(bytes) if meta::is_run_file(&bytes) => {
            let file = read_run_file(&path, &String::from_utf8_lossy(&bytes))?;
            Ok(Some(plan(&path, &file)?.numbers()))
        }
        _ => Ok(None),
    }
}

fn read_run_file(path: &Path, text: &str) -> Result<RunFile, ReadError> {
    // The format is checked first, because another format has other keys.
    let format = serde_json::from_str(text).map_err(|error| ReadError::RunFile(path.to_owned(), error))?;
    let meta::FormatOnly { format } = format;
    if format != meta::FORMAT {
        return Err(ReadError::Format(path.to_owned(), format));
    }
    serde_json::from_str(text).map_err(|error| ReadError::RunFile(path.to_owned(), error))
}

/// Returns the plan of the run whose `run.json` is `file`.
fn plan(path: &Path, file: &RunFile) -> Result<Plan, ReadError> {
    let settings: Result<Vec<scenario::Setting>, String> =
        file.settings.iter().map(|text| text.parse()).collect();
    let settings = settings.map_err(|problem| ReadError::Setting(path.to_owned(), problem))?;
    let repetition =
        file.repetition.map_or(scenario::Repetition::only(file.seed), meta::RepetitionPart::repetition);
    let name = path.display().to_string();
    let mut plan = Scenario::repetition(&name, &file.scenario.text, &settings, file.seed, repetition)?;
    plan.name.clone_from(&file.scenario.name);
    Ok(plan)
}

fn read_records(path: &Path, count: usize) -> Result<Vec<Record>, ReadError> {
    let lost = |error| ReadError::File(path.to_owned(), error);
    let mut records = Vec::with_capacity(count.min(1 << 20));
    for (number, line) in (1..).zip(BufReader::new(File::open(path).map_err(lost)?).lines()) {
        let line = line.map_err(lost)?;
        let record = record(&line).map_err(|problem| ReadError::Record(path.to_owned(), number, problem))?;
        records.push(record);
    }
    if records.len() != count {
        return Err(ReadError::Truncated(path.to_owned(), records.len(), count));
    }
    Ok(records)
}

fn record(line: &str) -> Result<Record, String> {
    let host = || line.strip_prefix("{\"host\":")?.split_once(',');
    let (host, fields) =
        host().ok_or("the line must begin with the field `host`, for example `{\"host\":0,`")?;
    let host = host.parse().map_err(|_| format!("`host` must be the number of a host, not `{host}`"))?;
    Record::from_line(HostId(host), &format!("{{{fields}"))
}

#[cfg(test)]
mod tests;
