//! What a daemon measures about itself: how long frames waited for it, how long it did not run, and how many frames
//! it handled.

use super::heartbeat::{Heartbeat, Stall};
use super::waits::{Ages, Waits};
use os::{Clock, counters::Counters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The report of a daemon at its end. The lab reads this report, and every field is required.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonSummary {
    /// The host's name.
    pub name: String,
    /// The status of the node's roles at the end: a JSON object with one entry for each role, by the role's name. The
    /// protocol of a role defines the content of its entry.
    pub status: serde_json::Value,
    /// The kernel's values for the last 1024 closed TCP sockets of the daemon, and then for each open one: a JSON list
    /// of objects. Each object has the fields `stream`, `local`, `remote` and `congestion` (the congestion control). If
    /// the kernel reports them, it also has `retransmits`, `rto_us`, `rtt_us`, `cwnd` and `ssthresh` (in segments), and
    /// `mss` and `pmtu` (in bytes).
    pub tcp: serde_json::Value,
    /// The settings of TCP in the host's namespace, and of the route of its stack (`congctl`, `rto_min`, `window`), as
    /// the kernel had them at the end; by name and value.
    pub tcp_settings: BTreeMap<String, String>,
    /// The increase of the kernel's counters in the host's namespace since the daemon took over the interfaces; empty
    /// if they could not be read.
    pub counters: Counters,
    /// How long frames of the run waited until the daemon read them, from the kernel's receive stamp.
    pub read: Ages,
    /// How long frames of the run waited until the daemon had handled them, from the kernel's receive stamp. A frame is
    /// not counted if it arrived before the end of a stall of more than [`trace::doubt::STALL_BOUND`] and was handled
    /// after the stall: the stall is reported as a doubt.
    pub handled: Ages,
    /// The daemon's longest stall; zero if it had none, or if the end of the run was not known, as outside a lab.
    pub stall: Stall,
    /// The daemon's stalls of more than 5 ms, at most the 1000 longest. The lab compares them with the stalls of other
    /// processes, to find those that the machine caused.
    pub stalls: Vec<Stall>,
    /// Times from each request to store a record until its commit ended. Requests after the end of the run are left
    /// out.
    pub stored: Ages,
    /// Those times in `stored` that are more than 5 ms, at most the 1000 longest.
    pub store_stalls: Vec<Stall>,
    /// The worst lateness of a time-out that was passed to the node, in microseconds.
    pub worst_late_us: u64,
    /// Number of frames that the daemon received at each interface, by the interface's name; `host` is the host's own
    /// stack.
    pub received: BTreeMap<String, u64>,
    /// Number of datagrams that were passed to the host's own stack.
    pub given_to_kernel: u64,
    /// Names of the interfaces that went down, lost their carrier or were removed, including those between the host's
    /// kernel and its node.
    pub lost_interfaces: Vec<String>,
    /// Queueing disciplines, classes and filters that existed, were set or were removed on the host's interfaces or
    /// between its kernel and its node. Each entry has the interface's name and the kind. Empty outside a lab.
    pub queues: Vec<(String, String)>,
    /// Number of frames that the kernel dropped before the daemon read them.
    pub capture_drops: u64,
    /// Whether the wall clock was set by more than 1 ms during the run.
    pub wall_clock_stepped: bool,
    /// Number of records that the daemon made for its file; 0 without a file.
    pub records: u64,
}

/// What a daemon measures about itself while it runs.
#[derive(Debug)]
pub(crate) struct Measurements {
    pub(crate) read: Waits,
    pub(crate) handled: Waits,
    /// `None` before the begin and outside a lab: without a known end of the run, a wake-up every 5 ms would have no
    /// use.
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) received: Vec<u64>,
    pub(crate) given_to_kernel: u64,
    pub(crate) lost_interfaces: Vec<String>,
    /// The end of the run; [`Instant::NEVER`] if it is not known.
    pub(crate) end: Instant,
    /// The instant of the run at which the daemon was to begin: later than zero after a crash.
    pub(crate) since: Instant,
}

impl Measurements {
    /// Creates the counters for this number of interfaces, including the host's own stack.
    pub(crate) fn new(interfaces: usize) -> Self {
        Self {
            read: Waits::default(),
            handled: Waits::default(),
            heartbeat: None,
            received: vec![0; interfaces],
            given_to_kernel: 0,
            lost_interfaces: Vec::new(),
            end: Instant::NEVER,
            since: Instant::ZERO,
        }
    }

    /// Starts the heartbeat, if the end of the run is known.
    pub(crate) fn begin(&mut self) {
        self.heartbeat = (self.end != Instant::NEVER).then(|| Heartbeat::since(self.since, self.end));
    }

    /// Counts a frame that was read. Records how long it had waited, if it arrived during the run.
    pub(crate) fn took(&mut self, clock: Clock, interface: usize, stamp: Instant) {
        if let Some(count) = self.received.get_mut(interface) {
            *count += 1;
        }
        if let Some(wait) = self.since(clock, stamp) {
            self.read.add(wait);
        }
    }

    /// Records the time from a frame's arrival until it was handled, if it arrived during the run and no long stall
    /// explains the time. Also records that the daemon runs.
    pub(crate) fn finished(&mut self, clock: Clock, stamp: Instant) {
        self.beat(clock.now());
        let is_explained = self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.explains(stamp));
        if let Some(wait) = self.since(clock, stamp).filter(|_| !is_explained) {
            self.handled.add(wait);
        }
    }

    /// Returns the time since `stamp`, up to the end of the run; `None` if `stamp` is outside the run.
    fn since(&self, clock: Clock, stamp: Instant) -> Option<Duration> {
        let is_of_run = stamp > self.since && stamp < self.end;
        is_of_run.then(|| clock.now().min(self.end).since(stamp))
    }

    pub(crate) fn beat(&mut self, now: Instant) {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.beat(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_first_runs_after_the_clocks_zero_was_stalled() {
        let mut measurements = Measurements { end: Instant::from_millis(500), ..Measurements::new(1) };
        measurements.begin();
        measurements.beat(Instant::from_millis(305));
        assert_eq!(measurements.heartbeat.unwrap().worst(), Stall { us: 300_000, until_us: 305_000 });
    }

    #[test]
    fn a_summary_without_one_of_its_fields_is_none() {
        let whole = serde_json::to_value(DaemonSummary::default()).unwrap();
        assert!(serde_json::from_value::<DaemonSummary>(whole.clone()).is_ok());
        let names: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
        for name in names {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(&name);
            let why = serde_json::from_value::<DaemonSummary>(less);
            // An absent field of type `serde_json::Value` must be an error too, and must not read as null.
            assert!(why.is_err(), "{name} may be missing");
        }
    }
}
