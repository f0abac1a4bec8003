//! The report of pid 1 at the end of a run: the counters of the link emulator, and its records.

use super::report::{HostReport, InterfaceReport, LinuxReport};
use super::{LinuxError, write};
use crate::link_emulator::Report;
use scenario::Plan;
use std::fmt::Write as _;
use std::path::Path;
use trace::HostId;
use wire::Iface;

pub(super) fn sum_up(plan: &Plan, carried: &Report, hosts: Vec<HostReport>) -> LinuxReport {
    let worst = carried.lateness.iter().chain(&carried.stalled).max().copied().unwrap_or_default();
    let micros = |thousandths| carried.lateness_at(thousandths).as_secs_f64() * 1e6;
    let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    LinuxReport {
        kernel: line("/proc/sys/kernel/osrelease"),
        uid: os::namespace::outer_uid(),
        uid_map: line("/proc/self/uid_map"),
        lateness_us: [micros(500), micros(990), worst.as_secs_f64() * 1e6],
        frames: (carried.lateness.len() + carried.stalled.len()) as u64,
        read: carried.read,
        stall: carried.stall,
        stalls: carried.stalls.clone(),
        capture_drops: carried.capture_drops,
        wall_clock_stepped: carried.wall_clock_stepped,
        interfaces: interfaces(plan, carried),
        hosts,
        ..LinuxReport::default()
    }
}

/// Returns the counters of the link emulator at every interface of the plan.
fn interfaces(plan: &Plan, carried: &Report) -> Vec<InterfaceReport> {
    let mut all = Vec::new();
    for (host, spec) in (0..).map(HostId).zip(&plan.hosts) {
        for (iface, port) in (1..).map(Iface).zip(&spec.ports) {
            let at = (host, iface);
            let refused = carried.refused.iter().filter(|((to, on, _), _)| (*to, *on) == at);
            all.push(InterfaceReport {
                host: host.index(),
                number: iface.0,
                name: port.name.clone(),
                taken: carried.taken.get(&at).copied().unwrap_or_default(),
                delivered: carried.delivered.get(&at).copied().unwrap_or_default(),
                refused: refused.map(|((.., reason), count)| (reason.name().to_owned(), *count)).collect(),
                is_lost: carried.lost_interfaces.contains(&at),
            });
        }
    }
    all
}

pub(super) fn write_radio(path: &Path, carried: &Report) -> Result<(), LinuxError> {
    let mut text = String::new();
    for record in &carried.records {
        let _ = writeln!(text, "{} {}", record.host.0, record.to_line());
    }
    write(path, &text)
}
