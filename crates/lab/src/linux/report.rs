//! What pid 1 of a lab reports, and the reasons for which the run is not to be trusted.

use super::timing::RADIO;
use super::{CrashReport, ProgramReport, StopReport};
use crate::run::Outcome;
use crate::segment;
use linux::control::Control;
use linux::daemon::{Ages, DaemonSummary, Stall};
use linux::idle::Idle;
use linux::{Refusal, counters};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use trace::Doubt;
use trace::What;
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant, PacketId};

/// What is known of a run on Linux when it has ended. Pid 1 writes it and its parent reads it: a missing field is an error.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorldReport {
    /// The kernel.
    pub kernel: String,
    /// The user who ran it.
    pub uid: u32,
    /// The lines of `/proc/self/uid_map`: `0 UID 1` without root.
    pub uid_map: String,
    /// How late the radio process sent frames, in microseconds: median, 99 %, worst.
    pub lateness_us: [f64; 3],
    /// Frames that it sent.
    pub frames: u64,
    /// How long frames waited before the radio process read them.
    pub read: Ages,
    /// The longest that the radio process did not run.
    pub stall: Stall,
    /// Its 1000 longest stalls of more than 5 ms.
    pub stalls: Vec<Stall>,
    /// What a thread that only slept beside the daemons found.
    pub idle: Idle,
    /// What the wall clock said when the run began, in nanoseconds since 1970.
    pub began_ns: i64,
    /// CPU time that a hypervisor kept from this machine during the run, in milliseconds.
    pub stolen_ms: u64,
    /// Frames that the kernel dropped before the radio process read them.
    pub capture_drops: u64,
    /// Whether the wall clock was set during the run.
    pub wall_clock_stepped: bool,
    /// What the radio process counted at each interface of a host.
    pub interfaces: Vec<InterfaceReport>,
    /// The daemons.
    pub hosts: Vec<HostReport>,
    /// The programs of the scenario.
    pub programs: Vec<ProgramReport>,
    /// Runs of the same before this one, that were not kept because of their timing.
    pub repeats: Vec<Repeat>,
    /// How late this machine is without any daemon: measured once in a process, and again after a run whose timing was wrong.
    /// Nothing if it could not be measured.
    pub control: Option<Control>,
}

/// A run that was repeated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// From 1.
    pub attempt: usize,
    /// Why.
    pub reasons: Vec<Doubt>,
}

/// What the radio process counted at an interface of a host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// The host, by its place in the scenario.
    pub host: usize,
    /// The interface's number, from 1.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// Frames that came out of it.
    pub taken: u64,
    /// Frames that were put in.
    pub delivered: u64,
    /// Frames that it did not take, by what the kernel said.
    pub refused: BTreeMap<String, u64>,
    /// Whether it went down or was removed.
    pub is_lost: bool,
}

/// What is known of one daemon.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// Its host.
    pub name: String,
    /// Its process, by its number inside the lab's PID namespace.
    pub pid: u32,
    /// How it ended, in words.
    pub exit: String,
    /// Whether it ended by itself when it was told to, without an error.
    pub ended_well: bool,
    /// Crashes that the scenario ordered.
    #[serde(default)]
    pub crashes: Vec<CrashReport>,
    /// Times for which the scenario stopped it.
    #[serde(default)]
    pub stops: Vec<StopReport>,
    /// Changes of its state during the run that the scenario did not order.
    pub changes: Vec<String>,
    /// What it reported, if it did.
    pub summary: Option<DaemonSummary>,
    /// Why there is no report.
    pub why_no_summary: Option<String>,
    /// Records of it that were read.
    pub records_read: u64,
}

impl HostReport {
    /// Whether all that it recorded was read.
    fn has_records(&self) -> bool {
        if self.is_down() && self.summary.is_none() {
            return true; // what it did until it was killed
        }
        self.summary.as_ref().is_some_and(|summary| summary.records == self.records_read)
    }
}

impl HostReport {
    /// Whether it had crashed when the run ended, as the scenario says.
    fn is_down(&self) -> bool {
        self.crashes.last().is_some_and(|crash| crash.restarted_us.is_none())
    }

    /// When the daemon began whose summary this is.
    fn began(&self) -> Instant {
        let restarted = self.crashes.last().and_then(|crash| crash.restarted_us);
        Instant::ZERO + Duration::from_micros(restarted.unwrap_or_default())
    }

    /// Whether the scenario had stopped it during that stall.
    pub(super) fn was_to_stall(&self, stall: Stall) -> bool {
        let from = stall.until_us.saturating_sub(stall.us);
        self.stops.iter().any(|stop| {
            let until = stop.continued_us.map_or(u64::MAX, |at| at + SETTLES_US);
            from + SETTLES_US >= stop.at_us && stall.until_us <= until
        })
    }
}

/// A stall begins at the last beat before the signal, and ends when the process runs again.
const SETTLES_US: u64 = 15_000;

impl WorldReport {
    /// Hosts of which no records are known: their packets cannot be followed.
    pub fn hosts_without_records(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter(|host| !host.has_records()).map(|host| host.name.as_str())
    }

    /// The programs of the scenario that failed, each by name: results that can be trusted, and do not hold.
    pub(super) fn failed_programs(&self) -> impl Iterator<Item = String> {
        self.programs.iter().filter_map(|program| {
            let ProgramReport { host, number, command, trouble, .. } = program;
            let what = trouble.as_ref()?;
            Some(format!("{host}: program {number} (`{command}`) {what}"))
        })
    }

    /// Why the run is not to be trusted, as far as this machine is the cause.
    pub fn find_doubts(&self, outcome: &Outcome) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        for host in &self.hosts {
            host_doubts(host, &mut doubts);
        }
        doubts.extend(self.timing_doubts());
        self.radio_doubts(&mut doubts);
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(summary) = host.summary.as_ref().filter(|_| host.has_records()) {
                self.kernel_doubts(outcome, index, summary, &mut doubts);
                refusals(outcome, index, summary, &mut doubts);
            }
        }
        self.interface_doubts(outcome, &mut doubts);
        doubts
    }

    fn radio_doubts(&self, doubts: &mut Vec<Doubt>) {
        let process = || RADIO.to_owned();
        if self.capture_drops > 0 {
            doubts.push(Doubt::CaptureDrops { process: process(), frames: self.capture_drops });
        }
        if self.wall_clock_stepped {
            doubts.push(Doubt::WallClockSet { process: process() });
        }
    }

    /// Each kernel's counts are those of its applications and of its node.
    fn kernel_doubts(
        &self,
        outcome: &Outcome,
        index: usize,
        summary: &DaemonSummary,
        doubts: &mut Vec<Doubt>,
    ) {
        let host = &summary.name;
        // Each daemon counts from its begin, and what came before the last one has ended.
        let began = self.hosts.get(index).map_or(Instant::ZERO, HostReport::began);
        let count = |wanted: fn(&What) -> bool| {
            let here = |r: &&trace::Record| r.host.index() == index && r.at >= began && wanted(&r.what);
            outcome.records.iter().filter(here).count() as u64
        };
        let pairs = [
            ("Udp.OutDatagrams", "the application sent", count(|what| matches!(what, What::AppSent(_)))),
            ("Tcp.InSegs", "the node gave it", segments_given(outcome, index, began)),
        ];
        // What a program does in this namespace, the kernel alone counts.
        let has_programs = self.programs.iter().any(|program| program.host == *host);
        for (counter, whose, other) in pairs {
            let Some(kernel) = counted(host, counters::value(&summary.counters, counter), doubts) else {
                continue;
            };
            if kernel < other || (kernel > other && !has_programs) {
                let (host, counter, whose) = (host.clone(), counter.to_owned(), whose.to_owned());
                doubts.push(Doubt::Counts { host, counter, kernel, whose, other });
            }
        }
        let read = counters::value(&summary.counters, "Udp.InDatagrams");
        let refused = counters::value(&summary.counters, "Udp.NoPorts");
        if let (Some(read), Some(refused)) = (counted(host, read, doubts), counted(host, refused, doubts)) {
            let received = count(|what| matches!(what, What::AppReceived(_)));
            let other = received + datagrams_ended(outcome, index, began);
            let kernel = read + refused;
            if kernel < other || (kernel > other && !has_programs) {
                let (host, counter) = (host.clone(), "Udp.InDatagrams".to_owned());
                let whose = "the application received".to_owned();
                doubts.push(Doubt::Counts { host, counter, kernel, whose, other });
            }
        }
        let received = summary.received.get("host").copied().ok_or("received.host");
        let to_node = (counters::sent_to_node(&summary.counters), received);
        let to_kernel = (Ok(summary.given_to_kernel), counters::taken_from_node(&summary.counters));
        for (is_to_kernel, (sent, came)) in [(false, to_node), (true, to_kernel)] {
            let both = (counted(host, sent, doubts), counted(host, came, doubts));
            let (Some(sent), Some(came)) = both else { continue };
            // Over the loopback, a program's packets may be counted more often than they are sent.
            let may_be_more =
                has_programs && summary.counters.get("link.lo.tx_packets").is_some_and(|count| *count > 0);
            if came < sent || (came > sent && !may_be_more) {
                doubts.push(Doubt::Stack { host: host.clone(), to_kernel: is_to_kernel, sent, came });
            }
        }
        let discarded = discarded(outcome, (index, began), summary, doubts);
        doubts.extend(discarded.into_iter().map(|(counter, packets)| Doubt::Discarded {
            host: host.clone(),
            counter: counter.to_owned(),
            packets,
        }));
    }

    /// No frame leaves or comes in that the node and the links do not know of.
    fn interface_doubts(&self, outcome: &Outcome, doubts: &mut Vec<Doubt>) {
        let sent = frames_sent(outcome);
        for interface in &self.interfaces {
            let Some(host) = self.hosts.get(interface.host) else { continue };
            let (name, host_name) = (interface.name.clone(), host.name.clone());
            for (reason, packets) in &interface.refused {
                doubts.push(Doubt::Refused {
                    host: host_name.clone(),
                    interface: name.clone(),
                    reason: format!("arriving, {reason}"),
                    packets: *packets,
                });
            }
            let Some(summary) = &host.summary else { continue };
            if interface.is_lost || summary.lost_interfaces.contains(&name) {
                doubts.push(Doubt::InterfaceLost { host: host_name.clone(), interface: name.clone() });
            }
            let sent = sent.get(&(interface.host, interface.number)).copied().unwrap_or_default();
            if host.has_records() && i64::try_from(interface.taken) != Ok(sent) {
                let (host, interface, left) = (host_name.clone(), name.clone(), interface.taken);
                doubts.push(Doubt::FramesOut { host, interface, left, sent: sent.max(0) as u64 });
            }
            let came = summary.received.get(&name).copied().ok_or_else(|| format!("received.{name}"));
            let Some(came) = counted(&host_name, came.as_ref().copied().map_err(String::as_str), doubts)
            else {
                continue;
            };
            if came != interface.delivered {
                let delivered = interface.delivered;
                doubts.push(Doubt::FramesIn { host: host_name, interface: name, came, delivered });
            }
        }
    }
}

/// A count, or a doubt that names the counter that is missing.
fn counted(host: &str, count: Result<u64, &str>, doubts: &mut Vec<Doubt>) -> Option<u64> {
    let missing = |counter: &str| Doubt::NoCount { host: host.to_owned(), counter: counter.to_owned() };
    count
        .map_err(|counter| {
            let doubt = missing(counter);
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        })
        .ok()
}

/// What a daemon reported of itself, or why it did not.
fn host_doubts(host: &HostReport, doubts: &mut Vec<Doubt>) {
    let name = &host.name;
    doubts.extend(host.changes.iter().map(|what| Doubt::Changed { host: name.clone(), what: what.clone() }));
    let Some(summary) = &host.summary else {
        if host.is_down() {
            return;
        }
        let why = host.why_no_summary.clone();
        doubts.extend(why.map(|why| Doubt::NoSummary { host: name.clone(), why }));
        doubts.push(Doubt::NoRecords { host: name.clone() });
        return;
    };
    if !host.ended_well {
        doubts.push(Doubt::BadEnd { host: name.clone(), exit: host.exit.clone() });
    }
    let (host, written, read) = (name.clone(), summary.records, host.records_read);
    if written != read {
        doubts.push(Doubt::RecordsLost { host, written, read });
    }
    if summary.capture_drops > 0 {
        doubts.push(Doubt::CaptureDrops { process: name.clone(), frames: summary.capture_drops });
    }
    doubts.extend(summary.queues.iter().map(|(interface, kind)| Doubt::Queue {
        host: name.clone(),
        interface: interface.clone(),
        kind: kind.clone(),
    }));
    if summary.wall_clock_stepped {
        doubts.push(Doubt::WallClockSet { process: name.clone() });
    }
}

/// Packets that an interface or a socket refused: no scenario asks for that, so this machine lost them.
fn refusals(outcome: &Outcome, index: usize, summary: &DaemonSummary, doubts: &mut Vec<Doubt>) {
    let mut refused: BTreeMap<(Iface, Refusal), u64> = BTreeMap::new();
    for record in outcome.records.iter().filter(|record| record.host.index() == index) {
        if let What::Lost(iface, _, reason) = &record.what
            && let Some(refusal) = Refusal::named(reason)
        {
            *refused.entry((*iface, refusal)).or_default() += 1;
        }
    }
    for ((iface, refusal), packets) in refused {
        let ports = outcome.plan.hosts.get(index).map(|host| host.ports.as_slice()).unwrap_or_default();
        let port = usize::from(iface.0).checked_sub(1).and_then(|index| ports.get(index));
        let interface = port.map_or("host".to_owned(), |port| port.name.clone());
        doubts.push(Doubt::Refused {
            host: summary.name.clone(),
            interface,
            reason: refusal.name().to_owned(),
            packets,
        });
    }
}

/// Frames that the nodes put on their interfaces.
fn frames_sent(outcome: &Outcome) -> BTreeMap<(usize, u16), i64> {
    let mut sent: BTreeMap<(usize, u16), i64> = BTreeMap::new();
    for record in &outcome.records {
        let (iface, change) = match &record.what {
            What::Sent(iface, _) => (iface, 1),
            // What the kernel refused, or what went to the radio process directly, is on no interface.
            What::Lost(iface, _, reason) if Refusal::named(reason).is_some_and(Refusal::is_of_interface) => {
                (iface, -1)
            }
            What::Visited(iface, _) => (iface, -1),
            // Of a daemon that was killed in the middle of it.
            What::Lost(iface, _, reason) if reason == sim::reason::CRASHED.0 => (iface, -1),
            _ => continue,
        };
        if *iface != Iface::HOST {
            *sent.entry((record.host.index(), iface.0)).or_default() += change;
        }
    }
    sent
}

/// How promptly the daemons worked, one line for each, how late this machine is without them, and why the run was repeated.
pub fn timing(report: &WorldReport) -> String {
    let mut out = String::new();
    for summary in report.hosts.iter().filter_map(|host| host.summary.as_ref()) {
        let DaemonSummary { name, read, stall, .. } = summary;
        let _ = writeln!(
            out,
            "{name}: {} frames, read after {:.0} us (99 %), {:.0} us (worst); longest pause {} us",
            read.count, read.p99_us, read.worst_us, stall.us
        );
    }
    if let Some(Control { frames, sleeper, follows_this_run }) = &report.control {
        let _ = writeln!(
            out,
            "this machine, without any daemon: frames late by {:.0} us (median), {:.0} us (99 %), {:.0} us (worst); a sleeping thread by {:.0} us (median), {:.0} us (99 %), {:.0} us (worst){}",
            frames.median_us,
            frames.p99_us,
            frames.worst_us,
            sleeper.median_us,
            sleeper.p99_us,
            sleeper.worst_us,
            if *follows_this_run { "" } else { "; measured after an earlier run" }
        );
    }
    for Repeat { attempt, reasons } in &report.repeats {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "attempt {attempt} was not kept: {}", reasons.join("; "));
    }
    out
}

/// Where a kernel counts what it discards though its node and the links are not the cause. Counters of what a scenario itself may
/// bring about are not among them: segments that fit no connection, fragments that lack a part, closed ports.
const DISCARDS: [&str; 8] = [
    "Ip.InHdrErrors",
    "Ip.InAddrErrors",
    "Ip.InUnknownProtos",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.OutNoRoutes",
    "Tcp.InCsumErrors",
    "Udp.InErrors",
];

/// What a host's kernel discarded, by its counters. What it received and gave to no protocol is `Ip.InReceives` without
/// `Ip.InDelivers`: the loopback is in both, so it hides nothing.
fn discarded(
    outcome: &Outcome,
    (index, began): (usize, Instant),
    summary: &DaemonSummary,
    doubts: &mut Vec<Doubt>,
) -> Vec<(&'static str, u64)> {
    let mut of = |counter| counted(&summary.name, counters::value(&summary.counters, counter), doubts);
    let mut found: Vec<(&str, u64)> =
        DISCARDS.iter().filter_map(|counter| Some((*counter, of(counter)?))).collect();
    let of_ip = found.iter().filter(|(counter, _)| counter.starts_with("Ip.In"));
    let named: u64 = of_ip.map(|(_, packets)| packets).sum();
    let others =
        ["Ip.InReceives", "Ip.InDelivers", "Ip.ForwDatagrams", "Ip.ReasmReqds", "Ip.ReasmOKs"].map(of);
    if let [Some(received), Some(delivered), Some(forwarded), Some(parts), Some(whole)] = others {
        let known = delivered + forwarded + parts.saturating_sub(whole) + named;
        let packets = received.saturating_sub(known + from_itself(outcome, index, began));
        found.push(("Ip.InReceives without Ip.InDelivers", packets));
    }
    found.retain(|(_, packets)| *packets > 0);
    found
}

/// Packets that a node gave its kernel with an address of the host's own as their source, such as its errors about what the kernel
/// sent: no kernel takes them.
fn from_itself(outcome: &Outcome, host: usize, began: Instant) -> u64 {
    let own = outcome.plan.hosts.get(host).map(|host| host.config.all_addresses()).unwrap_or_default();
    let own = |record: &&trace::Record| {
        matches!(&record.what, What::Sent(Iface::HOST, packet)
            if Header::parse(&packet.bytes).is_ok_and(|(header, _)| own.contains(&header.src)))
    };
    let here = outcome.records.iter().filter(|record| record.host.index() == host && record.at >= began);
    here.filter(own).count() as u64
}

/// Datagrams that a host's kernel was given and that no application received: no socket had their port, or their socket was closed
/// (the daemon reads what it has left), or they are read and nobody has asked for them yet.
fn datagrams_ended(outcome: &Outcome, host: usize, began: Instant) -> u64 {
    let here = outcome.records.iter().filter(|record| record.host.index() == host && record.at >= began);
    let mut given: BTreeSet<PacketId> = BTreeSet::new();
    let mut ended = 0;
    for record in here {
        match &record.what {
            What::Sent(Iface::HOST, packet) if segment::is_datagram(packet) => _ = given.insert(packet.id),
            // What the interface to the kernel refused, the kernel never had.
            What::Lost(Iface::HOST, _, reason) if Refusal::named(reason).is_some() => {}
            What::Lost(Iface::HOST, id, _) | What::Held(Some(Iface::HOST), id) => {
                ended += u64::from(given.contains(id));
            }
            _ => {}
        }
    }
    ended
}

/// Segments that a host's kernel was given: not those that ended at its door, or are held there.
fn segments_given(outcome: &Outcome, host: usize, began: Instant) -> u64 {
    let here = outcome.records.iter().filter(|record| record.host.index() == host && record.at >= began);
    let mut given: BTreeMap<PacketId, u64> = BTreeMap::new();
    for record in here {
        match &record.what {
            What::Sent(Iface::HOST, packet) if segment::is_segment(packet) => {
                *given.entry(packet.id).or_default() += 1;
            }
            What::Lost(Iface::HOST, id, _) | What::Held(Some(Iface::HOST), id) => {
                if let Some(count) = given.get_mut(id) {
                    *count = count.saturating_sub(1);
                }
            }
            _ => {}
        }
    }
    given.values().sum()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
