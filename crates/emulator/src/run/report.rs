//! The report of pid 1 of a lab, and the reasons for which a run is not valid.

use super::ProgramReport;
use crate::control_run::Control;
use crate::idle::Idle;
use daemon::Refusal;
use daemon::{Ages, DaemonSummary, Stall};
use os::counters;
use recorder::run::Outcome;
use recorder::segment;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use trace::Doubt;
use trace::What;
use wire::ipv4::Header;
use wire::{Duration, Iface, Instant, PacketId};

/// The name of the process that emulates the links.
pub(super) const RADIO: &str = "the link emulator";

/// The report of a run on Linux. Pid 1 writes it and its parent reads it; a missing field is an error.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LinuxReport {
    /// The kernel's release, for example `6.18.0`.
    pub kernel: String,
    /// The id of the user who started the run, outside the user namespace.
    pub uid: u32,
    /// The content of `/proc/self/uid_map`. Without root, it is `0 UID 1`.
    pub uid_map: String,
    /// How late the link emulator sent frames, in microseconds: median, 99th percentile, worst. Only the worst includes
    /// frames that were due before the end of a long stall of the link emulator.
    pub lateness_us: [f64; 3],
    /// Number of frames that reached the end of their link in the link emulator.
    pub frames: u64,
    /// How long frames waited before the link emulator read them.
    pub read: Ages,
    /// The longest stall of the link emulator.
    pub stall: Stall,
    /// The stalls of the link emulator of more than 5 ms, at most the 1000 longest.
    pub stalls: Vec<Stall>,
    /// The lateness and the stalls of a thread of the link emulator that only slept.
    pub idle: Idle,
    /// The wall-clock time at which the run began, in nanoseconds since 1970.
    pub began_ns: i64,
    /// Steal time of this machine during the run, in milliseconds.
    pub stolen_ms: u64,
    /// Number of frames that the kernel dropped before the link emulator read them.
    pub capture_drops: u64,
    /// Whether the wall clock was set by more than 1 ms during the run.
    pub wall_clock_stepped: bool,
    /// The counters of the link emulator at each interface of a host.
    pub interfaces: Vec<InterfaceReport>,
    /// The reports about the daemons, in the order of the scenario's hosts.
    pub hosts: Vec<HostReport>,
    /// The results of the scenario's programs.
    pub programs: Vec<ProgramReport>,
    /// Earlier runs of the same plan that were discarded because of their timing.
    pub repeats: Vec<Repeat>,
    /// The lateness of this machine without daemons. It is measured once per process, and again after a run with
    /// doubts about timing. `None` if it could not be measured.
    pub control: Option<Control>,
}

/// A run that was discarded and repeated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// The number of the attempt, from 1.
    pub attempt: usize,
    /// The doubts for which the attempt was discarded.
    pub reasons: Vec<Doubt>,
}

/// The counters of the link emulator at an interface of a host.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// The index of the host in the scenario, from 0.
    pub host: usize,
    /// The interface's number at its host, from 1.
    pub number: u16,
    /// The interface's name.
    pub name: String,
    /// Number of frames that the link emulator read from the interface.
    pub taken: u64,
    /// Number of frames that the link emulator sent to the interface, since the host's last daemon connected.
    pub delivered: u64,
    /// Number of frames to the interface that the kernel refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Whether the link emulator's end of the interface went down or was removed during the run.
    pub is_lost: bool,
}

/// A crash of a host that the scenario ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashReport {
    /// Time of the crash, in microseconds of the run: of the kill, or of the daemon's last record if that is later.
    pub at_us: u64,
    /// When the host's next daemon was requested to begin, in microseconds of the run. `None` if the host had no next
    /// daemon before the run ended.
    pub restarted_us: Option<u64>,
}

/// A period for which the scenario stopped a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopReport {
    /// When the daemon was stopped, in microseconds of the run.
    pub at_us: u64,
    /// When the daemon was continued, in microseconds of the run; `None` if it was still stopped at the end.
    pub continued_us: Option<u64>,
}

/// The report about the daemon of one host, and about its crashes and stops.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// The name of the daemon's host.
    pub name: String,
    /// The pid of the host's last daemon, in the lab's PID namespace.
    pub pid: u32,
    /// How the daemon ended, in words.
    pub exit: String,
    /// Whether the daemon ended when requested, with exit status 0.
    pub ended_well: bool,
    /// Crashes that the scenario ordered.
    #[serde(default)]
    pub crashes: Vec<CrashReport>,
    /// The periods for which the scenario stopped the daemon.
    #[serde(default)]
    pub stops: Vec<StopReport>,
    /// Changes of the daemon's process state during the run that the scenario did not order, in words.
    pub changes: Vec<String>,
    /// The daemon's summary; `None` if the daemon gave none.
    pub summary: Option<DaemonSummary>,
    /// Why there is no summary; `None` if there is one, or if the daemon ended before the end of the run.
    pub why_no_summary: Option<String>,
    /// Number of records that were read from the file of the host's last daemon.
    pub records_read: u64,
}

impl HostReport {
    /// Returns whether all records of the daemon were read. If the scenario killed the daemon and it was not restarted,
    /// its file has all its records.
    fn has_records(&self) -> bool {
        if self.is_down() && self.summary.is_none() {
            return true; // the file has the records until the daemon was killed
        }
        self.summary.as_ref().is_some_and(|summary| summary.records == self.records_read)
    }
}

impl HostReport {
    /// Returns whether the host was down at the end of the run, after a crash that the scenario ordered.
    fn is_down(&self) -> bool {
        self.crashes.last().is_some_and(|crash| crash.restarted_us.is_none())
    }

    /// Returns when the host's last daemon began: at its last restart, or at zero if the host did not crash. Returns
    /// zero also for a host that is down.
    fn began(&self) -> Instant {
        let restarted = self.crashes.last().and_then(|crash| crash.restarted_us);
        Instant::ZERO + Duration::from_micros(restarted.unwrap_or_default())
    }

    /// Returns whether the scenario had stopped the host during the whole of this stall, within a tolerance of
    /// [`SETTLES_US`].
    pub(super) fn was_to_stall(&self, stall: Stall) -> bool {
        let from = stall.until_us.saturating_sub(stall.us);
        self.stops.iter().any(|stop| {
            let until = stop.continued_us.map_or(u64::MAX, |at| at + SETTLES_US);
            from + SETTLES_US >= stop.at_us && stall.until_us <= until
        })
    }
}

/// Tolerance in microseconds. A stall begins when the process last looked at the clock, which is before the stop. It
/// ends when the process runs again, which is after the daemon was continued.
const SETTLES_US: u64 = 15_000;

impl LinuxReport {
    /// Returns the names of the hosts whose records are missing or incomplete, so that their packets cannot be
    /// followed.
    pub fn hosts_without_records(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().filter(|host| !host.has_records()).map(|host| host.name.as_str())
    }

    /// Returns a text for each program of the scenario that failed. The run is valid, but exits with 1.
    pub(super) fn failed_programs(&self) -> impl Iterator<Item = String> {
        self.programs.iter().filter_map(|program| {
            let ProgramReport { host, number, command, trouble, .. } = program;
            let what = trouble.as_ref()?;
            Some(format!("{host}: program {number} (`{command}`) {what}"))
        })
    }

    /// Returns the doubts that only a run on Linux can have: about daemons, timing, the kernel's counters and the
    /// interfaces.
    pub(crate) fn find_doubts(&self, outcome: &Outcome) -> Vec<Doubt> {
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

    /// Adds doubts about the kernel of a host: counters that differ from the records of the host or from the daemon's
    /// counts of packets, missing counters, and packets that the kernel discarded.
    fn kernel_doubts(
        &self,
        outcome: &Outcome,
        index: usize,
        summary: &DaemonSummary,
        doubts: &mut Vec<Doubt>,
    ) {
        let host = &summary.name;
        // The counters in the summary start when the host's last daemon begins. So earlier records are not counted.
        let began = self.hosts.get(index).map_or(Instant::ZERO, HostReport::began);
        let count = |wanted: fn(&What) -> bool| {
            let here = |r: &&trace::Record| r.host.index() == index && r.at >= began && wanted(&r.what);
            outcome.records.iter().filter(here).count() as u64
        };
        let pairs = [
            ("Udp.OutDatagrams", "the application sent", count(|what| matches!(what, What::AppSent(_)))),
            ("Tcp.InSegs", "the node gave the kernel", segments_given(outcome, index, began)),
        ];
        // The kernel also counts the packets of programs in this namespace, which the records do not contain.
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
            // Packets of a program on the loopback may be counted more often than they are sent.
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

    /// Adds doubts about interfaces: frames that an interface refused, interfaces that were down, and counts of the
    /// link emulator that differ from those of the node.
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

/// Returns a count. If it is missing, adds a doubt that names the counter, and returns `None`.
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

/// Adds the doubts about a daemon's summary, or about its absence.
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

/// Adds a doubt for packets that an interface or a socket of a host refused. No event of a scenario causes that, so
/// this machine lost them.
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

/// Counts the frames that the nodes put on their interfaces, by host index and interface number.
fn frames_sent(outcome: &Outcome) -> BTreeMap<(usize, u16), i64> {
    let mut sent: BTreeMap<(usize, u16), i64> = BTreeMap::new();
    for record in &outcome.records {
        let (iface, change) = match &record.what {
            What::Sent(iface, _) => (iface, 1),
            // Frames that the kernel refused, and frames that went to the link emulator directly, did not pass the
            // interface.
            What::Lost(iface, _, reason) if Refusal::named(reason).is_some_and(Refusal::is_of_interface) => {
                (iface, -1)
            }
            What::Visited(iface, _) => (iface, -1),
            // The daemon recorded the frame, and was killed before it had sent the frame.
            What::Lost(iface, _, reason) if reason == sim::reason::CRASHED.0 => (iface, -1),
            _ => continue,
        };
        if *iface != Iface::HOST {
            *sent.entry((record.host.index(), iface.0)).or_default() += change;
        }
    }
    sent
}

/// Formats the timing of a run: a line for each daemon, the lateness of this machine without daemons, and the reasons
/// for repetitions.
pub fn timing(report: &LinuxReport) -> String {
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
        let _ = writeln!(out, "attempt {attempt} was discarded: {}", reasons.join("; "));
    }
    out
}

/// Counters of packets that a kernel discards for reasons other than the node and the links. Counters that a scenario
/// itself may raise are not included: segments without a connection, incomplete fragments, closed ports.
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

/// Returns the non-zero counters of packets that a host's kernel discarded. The last counter is computed: packets in
/// `Ip.InReceives` that were not delivered, forwarded or reassembled, and that no other counter explains. Loopback
/// packets are in `Ip.InReceives` and in `Ip.InDelivers`, so they do not change the difference.
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

/// Counts packets from the node to its kernel whose source is one of the host's own addresses. Examples are ICMP errors
/// about packets of the kernel. The kernel drops such a packet, and only `Ip.InReceives` counts it.
fn from_itself(outcome: &Outcome, host: usize, began: Instant) -> u64 {
    let own = outcome.plan.hosts.get(host).map(|host| host.config.all_addresses()).unwrap_or_default();
    let own = |record: &&trace::Record| {
        matches!(&record.what, What::Sent(Iface::HOST, packet)
            if Header::parse(&packet.bytes).is_ok_and(|(header, _)| own.contains(&header.src)))
    };
    let here = outcome.records.iter().filter(|record| record.host.index() == host && record.at >= began);
    here.filter(own).count() as u64
}

/// Counts datagrams that a host's kernel received from the node and that no application received, because the records
/// contain another end of the datagram. Examples: no socket had the port, or the socket was closed before the datagram
/// was read.
fn datagrams_ended(outcome: &Outcome, host: usize, began: Instant) -> u64 {
    let here = outcome.records.iter().filter(|record| record.host.index() == host && record.at >= began);
    let mut given: BTreeSet<PacketId> = BTreeSet::new();
    let mut ended = 0;
    for record in here {
        match &record.what {
            What::Sent(Iface::HOST, packet) if segment::is_datagram(packet) => _ = given.insert(packet.id),
            // The kernel never received a packet that its interface refused.
            What::Lost(Iface::HOST, _, reason) if Refusal::named(reason).is_some() => {}
            What::Lost(Iface::HOST, id, _) | What::Held(Some(Iface::HOST), id) => {
                ended += u64::from(given.contains(id));
            }
            _ => {}
        }
    }
    ended
}

/// Counts segments that a host's kernel received, without those that ended at its interface or are held there.
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
