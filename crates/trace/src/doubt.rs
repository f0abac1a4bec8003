//! Why the result of a run cannot be trusted: one list of causes, for the processes that find them and for reports.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use wire::Duration;

/// The longest allowed stall of a process of a lab, or of the thread that writes a store. A longer stall gives a doubt.
pub const STALL_BOUND: Duration = Duration::from_millis(10);
/// The largest allowed lateness of a process: at most 1 % of its frames may be later than this.
pub const LATENESS_BOUND: Duration = Duration::from_millis(2);

/// One reason why a run cannot be trusted. `docs/trust.md` explains the doubts about runs on Linux.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    /// A process, or the thread of a daemon that writes its store, was stalled for longer than [`STALL_BOUND`]. The
    /// stall is not part of a [`Doubt::MachineStalled`].
    Stalled {
        /// The host of the daemon, `the store of HOST`, or the link emulator.
        process: String,
        /// The end of the longest reported stall of the process, in seconds of the run.
        until_s: f64,
        /// The length of the longest reported stall of the process, in milliseconds.
        stall_ms: f64,
        /// The time in the longest reported stall in which an idle thread of the lab was stalled too, in milliseconds.
        idle_ms: f64,
        /// The largest lateness of this machine in the control run, without any daemon, in microseconds. `None` if
        /// there was no control run after this run.
        alone_us: Option<f64>,
    },
    /// The machine caused a stall of a process for longer than [`STALL_BOUND`]: at nearly the same time, an idle thread
    /// and at least half of the processes were stalled.
    MachineStalled {
        /// The end of the longest stall that the machine caused, in seconds of the run.
        until_s: f64,
        /// The length of the longest stall that the machine caused, in milliseconds.
        stall_ms: f64,
        /// The number of processes that were stalled for at least a part of this longest stall.
        stalled: usize,
        /// The number of processes of the lab: daemons that reported, and the link emulator.
        processes: usize,
        /// The time in the longest stall that the machine caused in which the idle thread was stalled, in milliseconds.
        idle_ms: f64,
    },
    /// A process was later than [`LATENESS_BOUND`] for more than 1 % of its frames. A daemon does not count frames that
    /// arrived during a stall beyond [`STALL_BOUND`].
    Late {
        /// The host of the daemon, or the link emulator.
        process: String,
        /// The 99th percentile of the lateness of the process's frames, in microseconds.
        p99_us: f64,
        /// The 99th percentile of the lateness in the control run, without any daemon, in microseconds. `None` if there
        /// was no control run after this run.
        alone_us: Option<f64>,
    },
    /// At least one process was late, and the machine was later than [`LATENESS_BOUND`] in the control run, without any
    /// daemon. So the machine is the cause.
    MachineLate {
        /// The number of late processes.
        late: usize,
        /// The number of processes of the lab: daemons that reported, and the link emulator.
        processes: usize,
        /// The 99th percentile of the lateness of the latest process, in microseconds.
        p99_us: f64,
        /// The 99th percentile of the lateness in the control run, in microseconds.
        alone_us: f64,
    },
    /// A daemon was stopped, continued or killed, or it ended.
    Changed {
        /// The host of the daemon.
        host: String,
        /// The change, for example `was stopped` or `was killed by signal 9`.
        what: String,
    },
    /// A daemon did not report at the end of the run, or its report is incomplete.
    NoSummary {
        /// The host of the daemon.
        host: String,
        /// What is wrong with the report.
        why: String,
    },
    /// A daemon reported at the end of the run, but did not exit cleanly.
    BadEnd {
        /// The host of the daemon.
        host: String,
        /// How the daemon ended, for example `signal: 9 (SIGKILL)`.
        exit: String,
    },
    /// The number of records that were read is not the number that the daemon wrote.
    RecordsLost {
        /// The host of the daemon.
        host: String,
        /// The number of records that the daemon reported.
        written: u64,
        /// The number of records that were read.
        read: u64,
    },
    /// The kernel of a host discarded packets, for example because of a wrong checksum.
    Discarded {
        /// The name of the host.
        host: String,
        /// The kernel's counter, for example `Tcp.InCsumErrors`.
        counter: String,
        /// The number of discarded packets.
        packets: u64,
    },
    /// The records of a daemon are missing, so no packet at its host can be followed.
    NoRecords {
        /// The host of the daemon.
        host: String,
    },
    /// The wall clock was set during the run, and thereby the kernel's timestamps of frames.
    WallClockSet {
        /// The host of the daemon, or the link emulator.
        process: String,
    },
    /// The kernel dropped frames before the process read them.
    CaptureDrops {
        /// The host of the daemon, or the link emulator.
        process: String,
        /// The number of dropped frames.
        frames: u64,
    },
    /// An interface or a socket of a host refused packets.
    Refused {
        /// The name of the host.
        host: String,
        /// The name of the interface, or `host` for the host's own stack.
        interface: String,
        /// The error. It begins with `arriving, ` if the packets came from a link.
        reason: String,
        /// The number of refused packets.
        packets: u64,
    },
    /// An interface of a host went down, or was removed.
    InterfaceLost {
        /// The name of the host.
        host: String,
        /// The name of the interface.
        interface: String,
    },
    /// A counter of a host's kernel does not agree with the records of the host's node or applications.
    Counts {
        /// The name of the host.
        host: String,
        /// The name of the kernel's counter.
        counter: String,
        /// The value of the kernel's counter.
        kernel: u64,
        /// What the kernel's counter is compared with, for example `the application sent`.
        whose: String,
        /// The number that was counted in the records.
        other: u64,
    },
    /// A counter of a host's kernel or daemon is missing, so the numbers cannot be compared.
    NoCount {
        /// The name of the host.
        host: String,
        /// The name of the counter.
        counter: String,
    },
    /// Between the kernel of a host and its node, packets were lost or added.
    Stack {
        /// The name of the host.
        host: String,
        /// The direction: true from the node to the kernel, false from the kernel to the node.
        to_kernel: bool,
        /// The number of packets that were sent.
        sent: u64,
        /// The number of packets that arrived.
        came: u64,
    },
    /// A queueing discipline or a filter that the lab did not set was on an interface of a host: packets may have
    /// waited there.
    Queue {
        /// The name of the host.
        host: String,
        /// The name of the interface. `wf-host` and `wf-node` are between the host's kernel and its node.
        interface: String,
        /// The kind of the queueing discipline or filter, for example `netem`.
        kind: String,
    },
    /// The number of frames that left an interface of a host is not the number that its node sent.
    FramesOut {
        /// The name of the host.
        host: String,
        /// The name of the interface.
        interface: String,
        /// The number of frames that left the interface.
        left: u64,
        /// The number of frames that the node sent.
        sent: u64,
    },
    /// The number of frames that arrived at an interface of a host is not the number that the links delivered.
    FramesIn {
        /// The name of the host.
        host: String,
        /// The name of the interface.
        interface: String,
        /// The number of frames that the node received.
        came: u64,
        /// The number of frames that the links delivered, including copies.
        delivered: u64,
    },
    /// Packets disappeared between two places, and no record contains the reason.
    Unaccounted {
        /// The place where the packets were last seen, and the next place where they should have been seen. Examples of
        /// places: `mobile:air`, `mobile's node`, `mobile's application`.
        between: [String; 2],
        /// The number of packets, including copies.
        packets: u64,
        /// The earliest time at which one of the missing packets was last seen, in seconds of the run.
        first_s: f64,
    },
    /// Packets appeared at a place, and no record shows that they were sent to it.
    Appeared {
        /// The place, for example `mobile:air`.
        place: String,
        /// The number of packets.
        packets: u64,
    },
    /// The ledger does not balance: sent and copied packets are not as many as delivered, dropped and held packets.
    Unbalanced,
    /// No record explains a part of an outage.
    Unexplained {
        /// The number of the handoff, from 1; `None` for a hole.
        handoff: Option<usize>,
        /// The number of the flow, from 1.
        flow: usize,
        /// The start of the outage, in seconds of the run.
        from_s: f64,
        /// The length of the unexplained part, in milliseconds.
        part_ms: f64,
        /// The length of the whole outage, in milliseconds.
        outage_ms: f64,
    },
    /// A handoff began and the radio came up in another cell, but no record shows that the path was cut.
    Uncut {
        /// The start of the handoff, in seconds of the run.
        begun_s: f64,
    },
    /// A simulated host caused further work for itself at one instant without end, so the run was stopped.
    Restless {
        /// The name of the host.
        host: String,
        /// The name of the role that did not come to rest; `node` if it was the node itself.
        role: String,
        /// The time at which the run was stopped, in seconds of the run.
        at_s: f64,
    },
    /// The repetitions of one point of an experiment gave more or fewer values of a metric than one for each
    /// repetition.
    Short {
        /// The name of the metric.
        metric: String,
        /// The number of values.
        values: usize,
        /// The number of repetitions.
        repetitions: usize,
    },
    /// The run does not contain what an experiment or a comparison measures.
    NotMeasured {
        /// What is missing in the run, as text.
        why: String,
    },
    /// A daemon was not ready in time although the link emulator ran, or the daemon ended or reported an error before
    /// it was ready. The run has no result.
    NotReady {
        /// The host of the daemon.
        host: String,
        /// What happened to the daemon, and its last output.
        why: String,
    },
    /// The run has no result, for a reason that no other doubt describes.
    NoResult {
        /// The reason, as text.
        why: String,
    },
}

impl Doubt {
    /// Returns whether the load of this machine alone may be the cause, so that a repeated run may be valid.
    pub const fn is_timing(&self) -> bool {
        matches!(
            self,
            Self::Stalled { .. } | Self::MachineStalled { .. } | Self::Late { .. } | Self::MachineLate { .. }
        )
    }
}

impl Display for Doubt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled { process, until_s, stall_ms, idle_ms, alone_us } => write!(
                f,
                "timing: {process} was stalled for {stall_ms:.1} ms, until {until_s:.3} s (allowed: {} ms); an idle thread of the lab {}{}",
                STALL_BOUND.as_millis(),
                if *idle_ms > 0.0 {
                    format!("was stalled for {idle_ms:.1} ms of this time")
                } else {
                    "was not stalled".to_owned()
                },
                alone(*alone_us, "(worst)")
            ),
            Self::MachineStalled { until_s, stall_ms, stalled, processes, idle_ms } => {
                write!(
                    f,
                    "timing: the machine was stalled for {stall_ms:.1} ms, until {until_s:.3} s (allowed: {} ms): {stalled} of {processes} processes were stalled, and an idle thread was stalled for {idle_ms:.1} ms of this time",
                    STALL_BOUND.as_millis()
                )
            }
            Self::Late { process, p99_us, alone_us } => write!(
                f,
                "timing: {process} handled 1 % of its frames more than {p99_us:.0} us late (allowed: {} us){}",
                LATENESS_BOUND.as_micros(),
                alone(*alone_us, "(99 %)")
            ),
            Self::MachineLate { late, processes, p99_us, alone_us } => write!(
                f,
                "timing: the machine was late: {late} of {processes} processes were late, and the worst of these processes handled 1 % of its frames more than {p99_us:.0} us late (allowed: {} us){}",
                LATENESS_BOUND.as_micros(),
                alone(Some(*alone_us), "(99 %)")
            ),
            Self::Changed { host, what } => write!(f, "{host}: the daemon {what} during the run"),
            Self::NoSummary { host, why } => {
                write!(f, "{host}: the daemon sent no complete report at the end of the run: {why}")
            }
            Self::BadEnd { host, exit } => {
                write!(f, "{host}: the daemon reported at the end of the run, and then ended with {exit}")
            }
            Self::NoRecords { host } => {
                write!(
                    f,
                    "{host}: its records are missing, so no packet can be followed; there are no tables"
                )
            }
            Self::WallClockSet { process } => write!(f, "{process}: the wall clock was set during the run"),
            Self::CaptureDrops { process, frames } => {
                write!(f, "{process}: the kernel dropped {frames} frames before they were read")
            }
            Self::Refused { host, interface, reason, packets } => {
                write!(f, "{host}: {packets} packets were refused at {host}:{interface}: {reason}")
            }
            Self::InterfaceLost { host, interface } => {
                write!(f, "{host}: its interface {interface} went down or was removed during the run")
            }
            Self::Queue { host, interface, kind } => write!(
                f,
                "{host}: traffic control ({kind}) was set on its interface {interface}, where packets may wait without a record"
            ),
            _ => self.fmt_counts(f),
        }
    }
}

impl Doubt {
    /// Formats the kinds about counters.
    fn fmt_counts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts { host, counter, kernel, whose, other } => {
                write!(f, "{host}: {counter} is {kernel} in the kernel, but {whose} {other}")
            }
            Self::RecordsLost { host, written, read } => {
                write!(
                    f,
                    "{host}: the daemon wrote {written} records, but {read} were read, so no packet can be followed; there are no tables"
                )
            }
            Self::Discarded { host, counter, packets } => {
                write!(f, "{host}: its kernel discarded {packets} packets ({counter})")
            }
            Self::NoCount { host, counter } => {
                write!(
                    f,
                    "{host}: its counter {counter} is missing, so the counts of its packets cannot be compared"
                )
            }
            Self::Stack { host, to_kernel, sent, came } => {
                let (from, to) = if *to_kernel { ("node", "kernel") } else { ("kernel", "node") };
                let (how, many) = apart(*sent, *came);
                write!(
                    f,
                    "{host}: {many} packets were {how} between its {from}, which sent {sent}, and its {to}, which received {came}"
                )
            }
            Self::FramesOut { host, interface, left, sent } => {
                write!(f, "{host}: {left} frames left its interface {interface}, but its node sent {sent}")
            }
            Self::FramesIn { host, interface, came, delivered } => {
                let (how, many) = apart(*delivered, *came);
                write!(
                    f,
                    "{host}: {many} frames were {how} at its interface {interface}: the links delivered {delivered}, and its node received {came}"
                )
            }
            _ => self.fmt_accounts(f),
        }
    }

    /// Formats the kinds about the ledger, outages and roles, and those of runs or points without a result.
    fn fmt_accounts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaccounted { between: [a, b], packets, first_s } => write!(
                f,
                "{packets} packets unaccounted for between {a} and {b} (the first was last seen at {first_s:.6} s)"
            ),
            Self::Appeared { place, packets } => {
                write!(f, "{packets} packets appeared at {place}, and no record shows that they were sent")
            }
            Self::Unbalanced => write!(f, "the ledger does not balance"),
            Self::Unexplained { handoff, flow, from_s, part_ms, outage_ms } => {
                match handoff {
                    Some(handoff) => write!(f, "handoff {handoff}, flow {flow}")?,
                    None => write!(f, "hole at {from_s:.6} s, flow {flow}")?,
                }
                write!(f, ": {part_ms:.3} ms of the outage of {outage_ms:.3} ms are unexplained")
            }
            Self::Uncut { begun_s } => {
                write!(
                    f,
                    "handoff at {begun_s:.6} s: the radio changed its cell, but no record shows that the path was cut"
                )
            }
            Self::Restless { host, role, at_s } => {
                write!(
                    f,
                    "{host}: role `{role}` requested work without end at {at_s} s, so the run was stopped at this time"
                )
            }
            Self::Short { metric, values, repetitions } => {
                write!(
                    f,
                    "{metric}: {values} values from {repetitions} repetitions; each repetition must give one value"
                )
            }
            Self::NotReady { host, why } => write!(f, "{host}: {why}"),
            Self::NotMeasured { why } | Self::NoResult { why } => write!(f, "{why}"),
            _ => Ok(()),
        }
    }
}

/// A doubt with the name of its run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedDoubt {
    /// The name of the run; empty if there is only one run.
    pub of: String,
    /// The doubt about this run.
    #[serde(flatten)]
    pub doubt: Doubt,
}

impl NamedDoubt {
    /// Returns a named doubt for each of the `doubts` of one run; `of` is the name of the run.
    pub fn all(of: &str, doubts: &[Doubt]) -> Vec<Self> {
        doubts.iter().map(|doubt| Self { of: of.to_owned(), doubt: doubt.clone() }).collect()
    }

    /// Returns the doubt as one line of JSON. Its field `timing` is the value of [`Doubt::is_timing`].
    pub fn to_line(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            timing: bool,
            #[serde(flatten)]
            named: &'a NamedDoubt,
        }
        serde_json::to_string(&Line { timing: self.doubt.is_timing(), named: self }).unwrap_or_default()
    }
}

/// Creates a doubt without the name of a run, because there is only one run.
impl From<Doubt> for NamedDoubt {
    fn from(doubt: Doubt) -> Self {
        Self { of: String::new(), doubt }
    }
}

impl Display for NamedDoubt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.of.as_str() {
            "" => write!(f, "{}", self.doubt),
            of => write!(f, "{of}: {}", self.doubt),
        }
    }
}

/// Returns the texts of several doubts in one line, separated by `; `.
pub fn joined(doubts: &[Doubt]) -> String {
    doubts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the lateness in the control run as text, or an empty string if there was no control run.
fn alone(late_us: Option<f64>, which: &str) -> String {
    late_us.map_or_else(String::new, |late_us| {
        format!(
            "; in a control run without daemons, after the run, this machine was late by {:.1} ms {which}",
            late_us / 1e3
        )
    })
}

fn apart(sent: u64, came: u64) -> (&'static str, u64) {
    (if came < sent { "lost" } else { "added" }, sent.abs_diff(came))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_about_time_tells_the_lateness_of_the_machine_from_that_of_a_process() {
        let late = |alone_us| Doubt::Late { process: "b1".to_owned(), p99_us: 3100.0, alone_us }.to_string();
        let bare = "timing: b1 handled 1 % of its frames more than 3100 us late (allowed: 2000 us)";
        assert_eq!(late(None), bare);
        let machine =
            "; in a control run without daemons, after the run, this machine was late by 0.2 ms (99 %)";
        assert_eq!(late(Some(160.0)), format!("{bare}{machine}"));
        let (process, until_s, stall_ms, idle_ms) = ("b1".to_owned(), 1.5, 12.0, 0.0);
        let stalled = Doubt::Stalled { process, until_s, stall_ms, idle_ms, alone_us: Some(40_000.0) };
        assert_eq!(
            stalled.to_string(),
            "timing: b1 was stalled for 12.0 ms, until 1.500 s (allowed: 10 ms); an idle thread of the lab was not stalled; in a control run without daemons, after the run, this machine was late by 40.0 ms (worst)"
        );
    }
}
