//! The end of a run: the packets that queues still hold, the kernel's counters, the summary, the records.

use super::recorder::Recorder;
use super::store_thread::StoreThread;
use super::{Daemon, DaemonSummary, Heartbeat, RESERVE, SETTLING};
use os::{Attempt, Offset, QueueWatch, Result, counters};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::Write;
use trace::What;
use wire::{Duration, Iface, Instant, PacketId};

/// Largest number of batches of frames that are read from an interface at the end.
const ROUNDS: usize = 1024;
/// Time after which no further batch is read. Without this limit a flood could delay the end, because handling a frame
/// takes longer than sending it.
const DRAINING: Duration = Duration::from_secs(1);

impl Daemon {
    /// Reads what the kernel still has, records what the node and the sockets hold, and prepares the summary for the
    /// clients that sent `stop`.
    pub(super) fn finish(&mut self, name: &str, before: &counters::Counters, offset: Offset) -> Result<()> {
        self.reserve.spend(RESERVE);
        // A daemon that did not run until now was stalled, even if no frame waits for it.
        self.measurements.beat(self.clock.now());
        let until = self.clock.now() + DRAINING;
        for iface in 0..=self.ports.len() {
            self.drain(Iface(iface as u16), until)?;
        }
        self.receive_datagrams(&self.sockets.all());
        while let Some(storage) = self.store.as_ref().filter(|storage| storage.is_busy()) {
            if !storage.has_more() {
                poll(&mut [PollFd::new(storage, PollFlags::IN)], None).attempt("wait on", "the store")?;
            }
            self.handle_stored();
        }
        let now = self.clock.now();
        let mut held: Vec<(Option<Iface>, PacketId)> = Vec::new();
        self.node.holds(&mut |packet| held.push((None, packet)));
        self.sockets.holds(&mut |packet| held.push((Some(Iface::HOST), packet)));
        for (iface, packet) in held {
            self.record(now, What::Held(iface, packet));
        }
        let mut drops = u64::from(self.host.socket.statistics()?.drops);
        for port in &self.ports {
            drops += u64::from(port.socket.statistics().map_or(0, |statistics| statistics.drops));
        }
        let counters = self.settled_counters(before);
        let mut summary = self.summary(name, counters, drops, offset);
        summary.queues = self.queues.as_mut().map(QueueWatch::found).unwrap_or_default();
        self.control.summary =
            serde_json::to_value(summary).map_err(std::io::Error::from).attempt("write", "the summary")?;
        Ok(())
    }

    /// Reads the frames that have arrived on an interface: at most [`ROUNDS`] batches, and at most one batch after
    /// `until`.
    fn drain(&mut self, iface: Iface, until: Instant) -> Result<()> {
        for _ in 0..ROUNDS {
            if !self.receive(iface)? || self.clock.now() >= until {
                break;
            }
        }
        Ok(())
    }

    /// Returns the increase of the kernel's counters since `before`. First reads the frames of the host's own stack
    /// until the node has received all packets that the kernel sent, because the last ones may still be on their path.
    /// Stops reading after [`SETTLING`] attempts or after [`DRAINING`].
    pub(super) fn settled_counters(&mut self, before: &counters::Counters) -> counters::Counters {
        let until = self.clock.now() + DRAINING;
        for _ in 0..SETTLING {
            let counted = counted_since(before);
            let taken = self.measurements.received.first().copied().unwrap_or_default();
            // A counter that is missing now stays missing, so waiting does not help. The lab reports a missing counter.
            if counters::sent_to_node(&counted).map_or(true, |sent| sent <= taken) {
                return counted;
            }
            os::pause(Duration::from_millis(1));
            if self.drain(Iface::HOST, until).is_err() || self.clock.now() >= until {
                break;
            }
        }
        counted_since(before)
    }

    pub(super) fn summary(
        &self,
        name: &str,
        counters: counters::Counters,
        capture_drops: u64,
        offset: Offset,
    ) -> DaemonSummary {
        let names = std::iter::once("host").chain(self.ports.iter().map(|port| port.spec.name.as_str()));
        let heartbeat = self.measurements.heartbeat.as_ref();
        let (stored, store_stalls) = self.store.as_ref().map(StoreThread::waits).unwrap_or_default();
        let received = names.map(str::to_owned).zip(self.measurements.received.iter().copied());
        DaemonSummary {
            name: name.to_owned(),
            status: trace::json_of(&self.node.status()),
            tcp: trace::json_of(&self.sockets.accounts()),
            tcp_settings: self.host.tcp_settings(),
            counters,
            read: self.measurements.read.summary(),
            handled: self.measurements.handled.summary(),
            stall: heartbeat.map(Heartbeat::worst).unwrap_or_default(),
            stalls: heartbeat.map(|heartbeat| heartbeat.stalls().to_vec()).unwrap_or_default(),
            stored,
            store_stalls,
            worst_late_us: self.worst_late.as_micros() as u64,
            received: received.collect(),
            given_to_kernel: self.measurements.given_to_kernel,
            lost_interfaces: self.measurements.lost_interfaces.clone(),
            queues: Vec::new(), // filled in later, because it is read last
            capture_drops,
            wall_clock_stepped: Offset::sample().stepped_since(offset),
            records: self.records.as_ref().map_or(0, Recorder::count),
        }
    }
}

/// Returns the increase of the kernel's counters since `before`. It is empty if they cannot be read: the lab reports
/// each missing counter as a doubt, and the records are written all the same.
fn counted_since(before: &counters::Counters) -> counters::Counters {
    let missing = |error| {
        let _ = writeln!(std::io::stderr(), "{error}");
        counters::Counters::new()
    };
    counters::here().map_or_else(missing, |now| counters::since(before, &now))
}
