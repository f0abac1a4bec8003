//! The end of packets at hosts that crashed. A daemon that is killed cannot say what it held; the ledger finds it: what had come
//! to the host before the crash and has no end.
//!
//! Each such packet is recorded as the simulator does: `host_crashed` at the host that held it, `host_down` at the sender of a
//! frame that the host had not taken. Only what was seen last before the crash ends with it: all else stays lost without a reporter.

use super::HostReport;
use crate::Plan;
use crate::ledger::{self, Places};
use sim::reason::{CRASHED, HOST_DOWN};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant};

/// A frame that was sent, or was due, so long before the crash has been taken by the daemon, or waits in its socket.
const ON_ITS_WAY: Duration = Duration::from_secs(2);

/// The records of packets that ended with a crash.
pub(super) fn ends(plan: &Plan, hosts: &[HostReport], records: &[Record]) -> Vec<Record> {
    let crashes = crashes(plan, hosts);
    if crashes.is_empty() {
        return Vec::new();
    }
    let places = Places::new(plan);
    let mut at_place: BTreeMap<String, (HostId, Iface, bool)> = BTreeMap::new();
    for (host, of) in (0..).map(HostId).zip(&plan.hosts) {
        at_place.insert(format!("{}'s node", of.config.name), (host, Iface::HOST, false));
        at_place.insert(format!("{}'s application", of.config.name), (host, Iface::HOST, false));
        for iface in (1..=of.ports.len() as u16).map(Iface) {
            at_place.insert(places.interface(host, iface), (host, iface, true));
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
            let Some(at) = crash(from_host, seen) else { continue };
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
        // The microsecond in which it is reported.
        all.extend(of_host.map(|crash| (host, Instant::ZERO + Duration::from_micros(crash.at_us + 1))));
    }
    all
}
