//! Hosts that are stopped when the run ends. After the end, their daemons are continued so that they write their
//! records. The daemons then also read the packets that have waited for them, although the run is over. A packet that
//! an application would receive in this time is recorded as held, as in the simulator.

use super::HostReport;
use scenario::Plan;
use trace::{HostId, Record, What};
use wire::Iface;

/// Changes the records of hosts that are stopped at the end of the run. In records after the end, a packet that an
/// application received becomes held, and other events of applications are removed.
pub(super) fn end_with_the_run(plan: &Plan, hosts: &[HostReport], records: &mut Vec<Record>) {
    let names = plan.host_names();
    let is_stopped = |host: HostId| {
        let report = names.get(host.index()).and_then(|name| hosts.iter().find(|host| host.name == *name));
        report.is_some_and(|report| report.stops.last().is_some_and(|stop| stop.continued_us.is_none()))
    };
    let stopped: Vec<HostId> = (0..names.len() as u32).map(HostId).filter(|host| is_stopped(*host)).collect();
    let end = plan.end();
    let is_late = |record: &Record| record.at > end && stopped.contains(&record.host);
    records.retain(|record| !(is_late(record) && matches!(record.what, What::App(_))));
    for record in records.iter_mut().filter(|record| is_late(record)) {
        if let What::AppReceived(id) = &record.what {
            record.what = What::Held(Some(Iface::HOST), *id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::StopReport;
    use recorder::run::simulate;
    use scenario::Scenario;

    /// What a stopped host receives after the end of the run is held. Here, a run of 6 s is evaluated as a run of 3 s
    /// in which `mobile` was stopped.
    #[test]
    fn what_a_stopped_host_reads_after_the_end_is_held() {
        let (name, text) = Scenario::find("first").unwrap();
        let outcome = simulate(Scenario::plan(&name, &text, &[], 1).unwrap()).unwrap();
        let duration = wire::Duration::from_secs(3);
        let plan = Plan { duration, ..outcome.plan.clone() };
        let given = |records: &[Record]| {
            let late = records.iter().filter(|r| r.at > plan.end() && matches!(r.what, What::AppReceived(_)));
            late.count()
        };
        let held = |records: &[Record]| records.iter().filter(|r| matches!(r.what, What::Held(..))).count();
        let stop = |continued_us| {
            let stops = vec![StopReport { at_us: 2_000_000, continued_us }];
            [HostReport { name: "mobile".to_owned(), stops, ..HostReport::default() }]
        };
        let (all, before) = (given(&outcome.records), held(&outcome.records));
        assert!(all > 50);
        let mut records = outcome.records.clone();
        end_with_the_run(&plan, &stop(Some(2_500_000)), &mut records);
        assert_eq!(records, outcome.records, "it continued in time");
        end_with_the_run(&plan, &stop(None), &mut records);
        assert_eq!((given(&records), held(&records)), (0, before + all));
    }
}
