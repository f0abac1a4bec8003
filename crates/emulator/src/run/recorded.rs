//! The report of a run on Linux in its run directory: the field `linux` of `run.json`.

use super::LinuxReport;
use recorder::backend::{BackendReport, Daemon, Machine, ProgramOutput};
use recorder::run::Outcome;
use recorder::rundir::{self, ReadError};
use std::path::Path;
use trace::Doubt;
use wire::WallTime;

impl LinuxReport {
    /// Converts the report to plain data for the run directory.
    pub(super) fn to_data(&self) -> serde_json::Result<BackendReport> {
        let daemons = self.hosts.iter().map(|host| Daemon {
            host: host.name.clone(),
            pid: host.pid,
            exit: host.exit.clone(),
        });
        let programs = self
            .programs
            .iter()
            .map(|program| ProgramOutput { file: program.log(), output: program.output.clone() });
        Ok(BackendReport {
            began: WallTime(self.began_ns),
            machine: Machine { kernel: self.kernel.clone(), uid: self.uid },
            daemons: daemons.collect(),
            hosts_without_records: self.hosts_without_records().map(str::to_owned).collect(),
            programs: programs.collect(),
            details: serde_json::to_value(self)?,
        })
    }
}

/// Returns the Linux report of a run; `None` if the run was not on Linux.
pub fn report_of(outcome: &Outcome) -> Option<LinuxReport> {
    serde_json::from_value(outcome.report.as_ref()?.details.clone()).ok()
}

/// Reads a run directory. The report of a run on Linux is evaluated again, so the outcome has all its doubts.
///
/// # Errors
///
/// Fails as [`rundir::read`] does.
pub fn read_run(dir: &Path) -> Result<Outcome, ReadError> {
    rundir::read(dir, evaluate)
}

/// Evaluates the report in a run directory, as [`rundir::Evaluate`] says.
fn evaluate(
    details: serde_json::Value,
    outcome: &Outcome,
) -> serde_json::Result<(BackendReport, Vec<Doubt>)> {
    let report: LinuxReport = serde_json::from_value(details)?;
    let found = report.find_doubts(outcome);
    Ok((report.to_data()?, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::HostReport;
    use recorder::run::{Backend, simulate};
    use scenario::Scenario;

    fn first() -> Outcome {
        let (file, text) = Scenario::find("first").unwrap();
        simulate(Scenario::plan(&file, &text, &[], 7).unwrap()).unwrap()
    }

    #[test]
    fn facts_and_doubts_of_a_linux_run_survive() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let dead = HostReport {
            name: "b1".to_owned(),
            pid: 42,
            exit: "signal 9".to_owned(),
            ..HostReport::default()
        };
        let report = LinuxReport {
            kernel: "6.18".to_owned(),
            began_ns: 7,
            hosts: vec![dead],
            ..LinuxReport::default()
        };
        let Outcome { plan, records, .. } = first();
        let mut outcome = Outcome::new(plan, Backend::Linux, records, None);
        outcome.report = Some(report.to_data().unwrap());
        let doubt = trace::Doubt::NoRecords { host: "b1".to_owned() };
        outcome.doubts.push(doubt.clone());
        let file = rundir::write(&outcome, &dir, &rundir::Options::default()).unwrap();
        assert_eq!(file.daemons, [Daemon { host: "b1".to_owned(), pid: 42, exit: "signal 9".to_owned() }]);
        let back = read_run(&dir).unwrap();
        assert_eq!((back.backend, back.fingerprint, report_of(&back)), (Backend::Linux, None, Some(report)));
        assert_eq!(back.doubts, std::slice::from_ref(&doubt));
        assert_eq!(back.epoch().0, 7, "when it began");
        // Doubts that follow from the records are found again, even if the file does not list them.
        outcome.doubts.clear();
        let dir = folder.path().join("without");
        rundir::write(&outcome, &dir, &rundir::Options::default()).unwrap();
        assert_eq!(read_run(&dir).unwrap().doubts, [doubt]);
    }
}
