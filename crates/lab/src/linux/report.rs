//! What pid 1 of a lab's world sums up, and which doubts it casts on the run.

use super::ProgramReport;
use crate::run::Outcome;
use crate::segment;
use node::guard::GUARD_RESET;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trace::What;
use wire::{Iface, PacketId};

/// What is known of a world when it has ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorldReport {
    /// The kernel.
    pub kernel: String,
    /// The user who ran it, and the uid map of the world: `0 UID 1` without root.
    pub uid: u32,
    /// The lines of `/proc/self/uid_map`.
    pub uid_map: String,
    /// How late the radio process sent frames, in microseconds: median, 99 %, worst.
    pub lateness_us: [f64; 3],
    /// Frames that it sent.
    pub frames: u64,
    /// What the wall clock said when the run began, in nanoseconds since 1970.
    #[serde(default)]
    pub began_ns: i64,
    /// Processor time that a hypervisor kept from this machine during the run, in milliseconds.
    #[serde(default)]
    pub stolen_ms: u64,
    /// Frames that the kernel dropped before the radio process or a daemon read them.
    pub capture_drops: u64,
    /// Whether the wall clock was set during the run.
    pub wall_clock_stepped: bool,
    /// Frames that the radio process took from each host's interface, by `host:number`.
    pub taken: BTreeMap<String, u64>,
    /// The daemons.
    pub hosts: Vec<HostReport>,
    /// What ran beside them.
    #[serde(default)]
    pub programs: Vec<ProgramReport>,
}

/// What is known of one daemon.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HostReport {
    /// Its host.
    pub name: String,
    /// Its process, by its number inside the world.
    pub pid: u32,
    /// How it ended.
    pub exit: String,
    /// The latest that it handed a time-out on, in microseconds.
    #[serde(default)]
    pub worst_late_us: u64,
    /// What went wrong with it, if anything did.
    pub trouble: Vec<String>,
    /// What its namespace's kernel counted during the run.
    pub counters: BTreeMap<String, u64>,
    /// What its roles showed at the end.
    pub status: serde_json::Value,
    /// What its kernel said of each TCP socket: congestion control, retransmits, times, sizes.
    #[serde(default)]
    pub tcp: serde_json::Value,
}

/// How a doubt about the time of links begins.
pub(crate) const TIMING: &str = "timing:";

/// Later than this at 99 %, the links were not what the scenario says.
const LATENESS_BOUND_US: f64 = 2000.0;

/// A lab that stood still for so long may have moved an event past the tolerance of a comparison.
const STOOD_STILL_US: f64 = 10_000.0;

impl WorldReport {
    /// Whether the machine had the lab stand still, and for how long. The run may be valid all the same.
    pub fn disturbance(&self) -> Option<String> {
        let daemons = self.hosts.iter().map(|host| (host.worst_late_us as f64, host.name.as_str()));
        let [.., radio] = self.lateness_us;
        let (worst, who) = daemons.fold((radio, "the radio process"), |a, b| if b.0 > a.0 { b } else { a });
        (worst > STOOD_STILL_US)
            .then(|| format!("{who} stood still for {:.1} ms{}", worst / 1e3, self.theft()))
    }

    /// Whose fault it may be that the lab stood still.
    fn theft(&self) -> String {
        match self.stolen_ms {
            0 => String::new(),
            stolen => format!("; the hypervisor kept {stolen} ms of processor time for others"),
        }
    }

    /// Why the run is not to be trusted, as far as the world knows.
    pub fn doubts(&self, outcome: &Outcome) -> Vec<String> {
        let mut doubts = Vec::new();
        for host in &self.hosts {
            doubts.extend(host.trouble.iter().map(|trouble| format!("{}: {trouble}", host.name)));
        }
        for ProgramReport { host, number, command, trouble, .. } in &self.programs {
            let named = |trouble| format!("{host}: program {number} (`{command}`) {trouble}");
            doubts.extend(trouble.as_ref().map(named));
        }
        let [_, p99, _] = self.lateness_us;
        if p99 > LATENESS_BOUND_US {
            doubts.push(format!(
                "{TIMING} 1 % of frames were sent more than {p99:.0} us late (allowed: {LATENESS_BOUND_US}){}",
                self.theft()
            ));
        }
        if self.capture_drops > 0 {
            doubts.push(format!("the kernel dropped {} frames before they were read", self.capture_drops));
        }
        if self.wall_clock_stepped {
            doubts.push("the wall clock was set during the run".to_owned());
        }
        doubts.extend(self.kernel_doubts(outcome));
        doubts.extend(self.frame_doubts(outcome));
        doubts
    }

    /// No frame leaves that the node did not send: the kernel is not beside it on the wire.
    fn frame_doubts(&self, outcome: &Outcome) -> Vec<String> {
        let mut sent: BTreeMap<String, i64> = BTreeMap::new();
        for record in &outcome.records {
            let (iface, change) = match &record.what {
                What::Sent(iface, _) => (iface, 1),
                // What the kernel refused, or what went by the radio's own door, is on no interface.
                What::Lost(iface, _, reason) if reason.starts_with("send_") => (iface, -1),
                What::Visited(iface, _) => (iface, -1),
                _ => continue,
            };
            if *iface != Iface::HOST {
                *sent.entry(format!("{}:{}", record.host.0, iface.0)).or_default() += change;
            }
        }
        let mut doubts = Vec::new();
        for (interface, taken) in &self.taken {
            let (host, iface) = interface.split_once(':').unwrap_or_default();
            let ours = sent.get(interface).copied().unwrap_or_default();
            let host = host.parse().ok().and_then(|index: usize| self.hosts.get(index));
            if let Some(host) = host.filter(|host| host.trouble.is_empty())
                && i64::try_from(*taken) != Ok(ours)
            {
                let name = &host.name;
                doubts
                    .push(format!("{name}: {taken} frames left its interface {iface}, its node sent {ours}"));
            }
        }
        doubts
    }

    /// Linux is Linux: what each kernel counted is what its applications did, and what its node gave to it.
    fn kernel_doubts(&self, outcome: &Outcome) -> Vec<String> {
        let mut doubts = Vec::new();
        for (index, host) in self.hosts.iter().enumerate().filter(|(_, host)| host.trouble.is_empty()) {
            let count = |wanted: fn(&What) -> bool| {
                let here = |r: &&trace::Record| r.host.index() == index && wanted(&r.what);
                outcome.records.iter().filter(here).count() as u64
            };
            let kernel = |name: &str| host.counters.get(name).copied().unwrap_or_default();
            let pairs = [
                ("Udp.OutDatagrams", "the application sent", count(|what| matches!(what, What::AppSent(_)))),
                (
                    "Udp.InDatagrams",
                    "the application received",
                    count(|what| matches!(what, What::AppReceived(_))),
                ),
                ("Tcp.InSegs", "the node gave it", segments_given(outcome, index)),
            ];
            // A program's own traffic is the kernel's alone to count.
            let more_is_fine = self.programs.iter().any(|program| program.host == host.name);
            for (name, who, ours) in pairs {
                let theirs = kernel(name);
                if theirs == ours || (theirs > ours && more_is_fine) {
                    continue;
                }
                doubts.push(format!("{}: {name} is {theirs} in the kernel, {who} {ours}", host.name));
            }
            // A kernel may send a last segment when nobody listens any more; but none comes that it did not send.
            let came = count(
                |what| matches!(what, What::Received(Iface::HOST, packet) if segment::is_segment(packet)),
            );
            let at_the_door =
                count(|what| matches!(what, What::Lost(Iface::HOST, _, reason) if *reason == GUARD_RESET.0));
            let sent = kernel("Tcp.OutSegs") + kernel("Tcp.RetransSegs") + at_the_door;
            if came > sent {
                doubts.push(format!("{}: {came} segments came from a kernel that sent {sent}", host.name));
            }
        }
        doubts
    }
}

/// Segments that a host's kernel was given: not those that ended at its door, or are held there.
fn segments_given(outcome: &Outcome, host: usize) -> u64 {
    let here = outcome.records.iter().filter(|record| record.host.index() == host);
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
