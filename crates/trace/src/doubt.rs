//! Why the result of a run is not to be trusted: one list of causes, for the processes that find them and for reports.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use wire::Duration;

/// If a process of a lab does not run for longer than this, an event may move beyond the tolerance of a comparison.
pub const STALL_BOUND: Duration = Duration::from_millis(10);
/// At most 1 % of the frames may be handled later than this.
pub const LATENESS_BOUND: Duration = Duration::from_millis(2);

/// One reason why a run is not to be trusted. On Linux it names the host or the process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    /// A process did not run for longer than [`STALL_BOUND`]: it was frozen or traced, or other processes had the CPU.
    Stalled {
        /// The host of the daemon, or the link emulator.
        process: String,
        /// The end of the stall, in seconds of the run.
        until_s: f64,
        /// The length of the stall, in milliseconds.
        stall_ms: f64,
        /// The part of the stall in which an idle thread of the lab did not run either, in milliseconds.
        idle_ms: f64,
        /// The largest lateness of this machine in the control run, without any daemon, in microseconds; `None` if it
        /// was not measured.
        alone_us: Option<f64>,
    },
    /// Processes did not run for longer than [`STALL_BOUND`], and an idle thread did not run at that time either: the
    /// whole machine was stalled.
    MachineStalled {
        /// The end of the longest such stall, in seconds of the run.
        until_s: f64,
        /// The length of that stall, in milliseconds.
        stall_ms: f64,
        /// The number of processes that were stalled at that time.
        stalled: usize,
        /// The number of all processes.
        processes: usize,
        /// The part of that stall in which the idle thread did not run, in milliseconds.
        idle_ms: f64,
    },
    /// More than 1 % of the frames were handled later than [`LATENESS_BOUND`], though the process was not stalled meanwhile.
    Late {
        /// The host of the daemon, or the link emulator.
        process: String,
        /// The 99th percentile of the lateness of its frames, in microseconds.
        p99_us: f64,
        /// The same in the control run, without any daemon; `None` if it was not measured.
        alone_us: Option<f64>,
    },
    /// The same of several processes, on a machine that was as late in the control run without any daemon. So the
    /// machine is the cause.
    MachineLate {
        /// The number of late processes.
        late: usize,
        /// The number of all processes.
        processes: usize,
        /// The largest 99th percentile, in microseconds.
        p99_us: f64,
        /// The same in the control run, in microseconds.
        alone_us: f64,
    },
    /// A daemon was stopped, continued or killed, or it ended.
    Changed {
        /// Its host.
        host: String,
        /// What happened: `was stopped`, `was killed by signal 9`.
        what: String,
    },
    /// A daemon did not report at the end, or its report is incomplete.
    NoSummary {
        /// Its host.
        host: String,
        /// What is wrong with the report.
        why: String,
    },
    /// A daemon reported at the end of the run, but did not exit cleanly.
    BadEnd {
        /// Its host.
        host: String,
        /// How it ended, for example `signal: 9 (SIGKILL)`.
        exit: String,
    },
    /// The number of records that were read is not the number that the daemon wrote.
    RecordsLost {
        /// Its host.
        host: String,
        /// Records that the daemon reported.
        written: u64,
        /// Records that were read.
        read: u64,
    },
    /// The kernel of a host discarded packets that no link and no node dropped.
    Discarded {
        /// The host.
        host: String,
        /// The kernel's counter, for example `Tcp.InCsumErrors`.
        counter: String,
        /// The number of packets.
        packets: u64,
    },
    /// The records of a daemon are missing, so it is not known what it did with packets.
    NoRecords {
        /// Its host.
        host: String,
    },
    /// The wall clock was set, and with it the kernel's timestamps of frames.
    WallClockSet {
        /// The host of the daemon, or the link emulator.
        process: String,
    },
    /// The kernel dropped frames before the process read them.
    CaptureDrops {
        /// The host of the daemon, or the link emulator.
        process: String,
        /// The number of frames.
        frames: u64,
    },
    /// An interface or a socket of a host refused packets that were sent on it.
    Refused {
        /// The host.
        host: String,
        /// The interface, or `host` for the host's own stack.
        interface: String,
        /// The direction, and the kernel's error.
        reason: String,
        /// The number of packets.
        packets: u64,
    },
    /// An interface of a host went down, or was removed.
    InterfaceLost {
        /// The host.
        host: String,
        /// The interface.
        interface: String,
    },
    /// The kernel of a host counted a different number than the node or its applications.
    Counts {
        /// The host.
        host: String,
        /// The kernel's counter.
        counter: String,
        /// The kernel's number.
        kernel: u64,
        /// The source of the other number, for example `the application sent`.
        whose: String,
        /// The other number.
        other: u64,
    },
    /// A counter of a host's kernel or daemon is missing, so the numbers cannot be compared.
    NoCount {
        /// The host.
        host: String,
        /// The counter.
        counter: String,
    },
    /// Between the kernel of a host and its node, packets were lost or added.
    Stack {
        /// Packets were lost or added between the kernel of a host and its node.
        host: String,
        /// True: from the node to the kernel. False: from the kernel to the node.
        to_kernel: bool,
        /// The number of packets that were sent.
        sent: u64,
        /// The number of packets that arrived.
        came: u64,
    },
    /// A queueing discipline or a filter that the lab did not set was on an interface of a host: packets may have
    /// waited there.
    Queue {
        /// The host.
        host: String,
        /// The interface: `wf-host` and `wf-node` are between the host's kernel and its node.
        interface: String,
        /// Its kind, for example `netem`.
        kind: String,
    },
    /// The number of frames that left an interface of a host is not the number that its node sent.
    FramesOut {
        /// The host.
        host: String,
        /// The interface.
        interface: String,
        /// The number of frames that left it.
        left: u64,
        /// The number of frames that the node sent.
        sent: u64,
    },
    /// The number of frames that arrived at an interface of a host is not the number that the links delivered.
    FramesIn {
        /// The host.
        host: String,
        /// The interface.
        interface: String,
        /// The number of frames that the node received.
        came: u64,
        /// The number of frames that the links delivered, copies included.
        delivered: u64,
    },
    /// Copies of packets were lost between two places, and no drop was recorded.
    Unaccounted {
        /// The two places.
        between: [String; 2],
        /// The number of packets.
        packets: u64,
        /// When the first of them was last seen, in seconds of the run.
        first_s: f64,
    },
    /// Packets left a place without having entered it.
    Appeared {
        /// The place.
        place: String,
        /// The number of packets.
        packets: u64,
    },
    /// The number of sent and copied packets is not the number of delivered, dropped and held ones.
    Unbalanced,
    /// A part of an outage has no cause.
    Unexplained {
        /// The number of the handoff, from 1; `None` for a hole.
        handoff: Option<usize>,
        /// The number of the flow, from 1.
        flow: usize,
        /// The begin of the outage, in seconds of the run.
        from_s: f64,
        /// The length of that part, in milliseconds.
        part_ms: f64,
        /// The length of the outage, in milliseconds.
        outage_ms: f64,
    },
    /// A handoff began and the radio moved, but the path was never cut.
    Uncut {
        /// The begin of the handoff, in seconds of the run.
        begun_s: f64,
    },
    /// A role of a simulated host did not come to rest: it caused further input to itself without end.
    Restless {
        /// The host.
        host: String,
        /// The role.
        role: String,
        /// When the run was ended because of that, in seconds of the run.
        at_s: f64,
    },
    /// The runs of a point gave fewer values than there are repetitions.
    Short {
        /// The metric.
        metric: String,
        /// The number of values.
        values: usize,
        /// The number of repetitions, each of which gives one value.
        repetitions: usize,
    },
    /// The run does not contain what it was to measure.
    NotMeasured {
        /// Why.
        why: String,
    },
    /// A daemon ended before it was ready, or was not ready in time although the lab's own process ran: there is no
    /// result.
    NotReady {
        /// Its host.
        host: String,
        /// What happened to it, and its last output.
        why: String,
    },
    /// There is no result at all.
    NoResult {
        /// Why.
        why: String,
    },
}

impl Doubt {
    /// Whether the load of this machine alone may be the cause, so that a repeated run may be valid.
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
                "timing: {process} was stalled for {stall_ms:.1} ms, until {until_s:.3} s (allowed: {} ms); an idle thread {}{}",
                STALL_BOUND.as_millis(),
                if *idle_ms > 0.0 {
                    format!("was stalled for {idle_ms:.1} ms of them")
                } else {
                    "ran meanwhile".to_owned()
                },
                alone(*alone_us, "at most")
            ),
            Self::MachineStalled { until_s, stall_ms, stalled, processes, idle_ms } => {
                write!(
                    f,
                    "timing: the machine was stalled for {stall_ms:.1} ms, until {until_s:.3} s, with {stalled} of {processes} processes; an idle thread was stalled for {idle_ms:.1} ms of them (allowed: {} ms)",
                    STALL_BOUND.as_millis()
                )
            }
            Self::Late { process, p99_us, alone_us } => write!(
                f,
                "timing: 1 % of frames were handled more than {p99_us:.0} us late by {process} (allowed: {}){}",
                LATENESS_BOUND.as_micros(),
                alone(*alone_us, "(99 %)")
            ),
            Self::MachineLate { late, processes, p99_us, alone_us } => write!(
                f,
                "timing: the machine was late: {late} of {processes} processes handled 1 % of frames up to {p99_us:.0} us late (allowed: {}){}",
                LATENESS_BOUND.as_micros(),
                alone(Some(*alone_us), "(99 %)")
            ),
            Self::Changed { host, what } => write!(f, "{host}: the daemon {what} during the run"),
            Self::NoSummary { host, why } => {
                write!(f, "{host}: the daemon did not report at the end of the run: {why}")
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
    /// Formats the kinds that compare two numbers.
    fn fmt_counts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts { host, counter, kernel, whose, other } => {
                write!(f, "{host}: {counter} is {kernel} in the kernel, {whose} {other}")
            }
            Self::RecordsLost { host, written, read } => {
                write!(
                    f,
                    "{host}: the daemon wrote {written} records, {read} were read, so no packet can be followed; there are no tables"
                )
            }
            Self::Discarded { host, counter, packets } => {
                write!(f, "{host}: its kernel discarded {packets} packets ({counter})")
            }
            Self::NoCount { host, counter } => {
                write!(
                    f,
                    "{host}: its counter {counter} is missing, so packets between its kernel and its node cannot be checked"
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
                write!(f, "{host}: {left} frames left its interface {interface}, its node sent {sent}")
            }
            Self::FramesIn { host, interface, came, delivered } => {
                let (how, many) = apart(*delivered, *came);
                write!(
                    f,
                    "{host}: {many} frames were {how} at its interface {interface}: the links delivered {delivered}, its node received {came}"
                )
            }
            _ => self.fmt_accounts(f),
        }
    }

    /// Formats the kinds that follow from the records, also in the simulator, and those of several runs.
    fn fmt_accounts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unaccounted { between: [a, b], packets, first_s } => write!(
                f,
                "{packets} unaccounted for between {a} and {b} (the first was last seen at {first_s:.6} s)"
            ),
            Self::Appeared { place, packets } => {
                write!(f, "{packets} appeared at {place}, and no record shows that they were sent")
            }
            Self::Unbalanced => write!(f, "the ledger does not balance"),
            Self::Unexplained { handoff, flow, from_s, part_ms, outage_ms } => {
                match handoff {
                    Some(handoff) => write!(f, "handoff {handoff}, flow {flow}")?,
                    None => write!(f, "hole at {from_s:.6} s, flow {flow}")?,
                }
                write!(f, ": {part_ms:.3} ms of {outage_ms:.3} ms unexplained")
            }
            Self::Uncut { begun_s } => {
                write!(
                    f,
                    "handoff at {begun_s:.6} s: the radio changed its cell, but no record shows that the path was cut"
                )
            }
            Self::Restless { host, role, at_s } => {
                write!(f, "{host}: role `{role}` did not come to rest at {at_s} s; the run ended there")
            }
            Self::Short { metric, values, repetitions } => {
                write!(f, "{metric}: {values} of {repetitions} repetitions")
            }
            Self::NotReady { host, why } => write!(f, "{host}: {why}"),
            Self::NotMeasured { why } | Self::NoResult { why } => write!(f, "{why}"),
            _ => Ok(()),
        }
    }
}

/// A doubt of one of several runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedDoubt {
    /// The name of the run; empty if there is only one.
    pub of: String,
    /// The doubt.
    #[serde(flatten)]
    pub doubt: Doubt,
}

impl NamedDoubt {
    /// Returns all doubts of this run.
    pub fn all(of: &str, doubts: &[Doubt]) -> Vec<Self> {
        doubts.iter().map(|doubt| Self { of: of.to_owned(), doubt: doubt.clone() }).collect()
    }

    /// Returns one line of JSON. `timing` is [`Doubt::is_timing`].
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

/// A doubt of the only run.
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

/// Returns several doubts in one line.
pub fn joined(doubts: &[Doubt]) -> String {
    doubts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns the result of the control run as text; empty if there is none.
fn alone(late_us: Option<f64>, which: &str) -> String {
    late_us.map_or_else(String::new, |late_us| {
        format!(
            "; this machine was late by {:.1} ms {which} without any daemon, in the 0.2 s after the run",
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
        let bare = "timing: 1 % of frames were handled more than 3100 us late by b1 (allowed: 2000)";
        assert_eq!(late(None), bare);
        let machine =
            "; this machine was late by 0.2 ms (99 %) without any daemon, in the 0.2 s after the run";
        assert_eq!(late(Some(160.0)), format!("{bare}{machine}"));
        let (process, until_s, stall_ms, idle_ms) = ("b1".to_owned(), 1.5, 12.0, 0.0);
        let stalled = Doubt::Stalled { process, until_s, stall_ms, idle_ms, alone_us: Some(40_000.0) };
        assert_eq!(
            stalled.to_string(),
            "timing: b1 was stalled for 12.0 ms, until 1.500 s (allowed: 10 ms); an idle thread ran meanwhile; this machine was late by 40.0 ms at most without any daemon, in the 0.2 s after the run"
        );
    }
}
