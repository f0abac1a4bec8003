//! Packets that ended at hosts that crashed. A killed daemon cannot report the packets that it held. The ledger finds
//! them: packets that had come to the host before the crash and have no end.
//!
//! Each such packet is recorded as in the simulator: `host_crashed` at the host that held it, or `host_down` at the
//! sender of a frame that the host had not read. This applies only to packets that were last seen less than 2 s (on a
//! link) or 10 s (at the host) before the crash. All other packets stay unaccounted for.

use super::HostReport;
use recorder::ledger;
use scenario::Plan;
use sim::reason::{CRASHED, HOST_DOWN};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant};

/// A crash counts as the cause of a frame's loss if less than this time passed from its sending until the crash. If a
/// frame was sent earlier, the host had time to read it.
const ON_ITS_WAY: Duration = Duration::from_secs(2);
/// More than the longest time that a host holds a packet. A node waits 3 s for a neighbor, and less for a record or the
/// end of a handoff; an application reads what has arrived. A packet that was last seen this time before a crash, or
/// earlier, was lost without a record.
const HELD: Duration = Duration::from_secs(10);

/// Returns records for the packets that ended with a crash.
pub(super) fn ends(plan: &Plan, hosts: &[HostReport], records: &[Record]) -> Vec<Record> {
    let crashes = crashes(plan, hosts);
    if crashes.is_empty() {
        return Vec::new();
    }
    // The keys are the ledger's names of the places where a packet can be: node, application and interfaces of a host.
    let mut at_place: BTreeMap<String, (HostId, Iface, bool)> = BTreeMap::new();
    for (host, of) in (0..).map(HostId).zip(&plan.hosts) {
        at_place.insert(format!("{}'s node", of.config.name), (host, Iface::HOST, false));
        at_place.insert(format!("{}'s application", of.config.name), (host, Iface::HOST, false));
        for (iface, port) in (1..).map(Iface).zip(&of.ports) {
            at_place.insert(format!("{}:{}", of.config.name, port.name), (host, iface, true));
        }
    }
    let crash = |host: HostId, seen: Instant| {
        let of_host = crashes.iter().filter(|(crashed, at)| *crashed == host && seen <= *at);
        of_host.map(|(_, at)| *at).min()
    };
    let mut ends = Vec::new();
    for vanished in ledger::close(plan, records).vanished {
        let (from, to) = &vanished.between;
        let (from_place, to_place) = (at_place.get(from), at_place.get(to));
        let Some((from_host, from_iface, is_link)) = from_place.copied() else { continue };
        let (packet, seen) = (vanished.packet, vanished.last_seen);
        let record = if is_link {
            let recent = |host| crash(host, seen).filter(|at| at.since(seen) < ON_ITS_WAY);
            let receiver = to_place.and_then(|(host, ..)| recent(*host));
            let (at, reason) = match (receiver, recent(from_host)) {
                (Some(at), _) => (at, HOST_DOWN),
                (None, Some(at)) => (at, CRASHED),
                (None, None) => continue,
            };
            Record { at, host: from_host, what: What::Lost(from_iface, packet, reason.0.into()) }
        } else {
            let Some(at) = crash(from_host, seen).filter(|at| at.since(seen) < HELD) else { continue };
            let reason = CRASHED.0.into();
            let what = if from == to {
                What::Dropped(Iface::HOST, packet, reason)
            } else {
                What::Lost(Iface::HOST, packet, reason)
            };
            Record { at, host: from_host, what }
        };
        ends.push(record);
    }
    ends
}

fn crashes(plan: &Plan, hosts: &[HostReport]) -> Vec<(HostId, Instant)> {
    let mut all = Vec::new();
    for (host, name) in (0..).map(HostId).zip(plan.host_names()) {
        let report = hosts.iter().find(|report| report.name == name);
        let of_host = report.into_iter().flat_map(|report| &report.crashes);
        // Reports have whole microseconds, rounded down. So this rounds up.
        all.extend(of_host.map(|crash| (host, Instant::ZERO + Duration::from_micros(crash.at_us + 1))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::CrashReport;
    use recorder::run::simulate;
    use scenario::Scenario;

    /// Returns whether a packet counts as ended by a crash of `b1`. The crash is the time `after` later than the
    /// packet's last record.
    fn ends_with_it(after: Duration) -> bool {
        let (name, text) = Scenario::find("first").unwrap();
        let outcome = simulate(Scenario::plan(&name, &text, &[], 1).unwrap()).unwrap();
        let number = outcome.plan.hosts.iter().position(|host| host.config.name == "b1").unwrap();
        let b1 = HostId(number as u32);
        let later = outcome.records.iter().position(|record| record.at >= Instant::from_millis(700)).unwrap();
        let is_data = |record: &&Record| {
            record.host == b1
                && matches!(&record.what, What::Received(iface, packet) if *iface != Iface::HOST && packet.bytes.len() > 100)
        };
        let here = later + outcome.records[later..].iter().position(|record| is_data(&record)).unwrap();
        let What::Received(_, packet) = &outcome.records[here].what else { panic!("a packet") };
        let at_us = (outcome.records[here].at + after).since(Instant::ZERO).as_micros() as u64;
        let crashes = vec![CrashReport { at_us, restarted_us: None }];
        let report = HostReport { name: "b1".to_owned(), crashes, ..HostReport::default() };
        let found = ends(&outcome.plan, &[report], &outcome.records[..=here]);
        found.iter().any(|record| matches!(&record.what, What::Dropped(_, id, _) | What::Lost(_, id, _) if *id == packet.id))
    }

    #[test]
    fn a_packet_that_vanished_long_before_a_crash_did_not_end_with_it() {
        assert!(ends_with_it(Duration::from_secs(1)) && ends_with_it(Duration::from_secs(9)));
        assert!(!ends_with_it(Duration::from_secs(11)), "it was lost before");
    }
}
