//! Samples the congestion window and the round-trip time of the daemon's TCP sockets, for figures.
//!
//! Sockets are sampled when the daemon is awake anyway, and at most once every [`EVERY`]. No timer is set and no role
//! is notified, so sampling costs time but changes nothing else.

use super::options::{TCP_INFO, TcpInfo, get};
use super::socket::Socket;
use node::{Mark, StreamId};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The shortest time between two samples.
const EVERY: Duration = Duration::from_millis(20);
/// Largest number of sockets that are sampled, because each sample is a system call.
const SOCKETS: usize = 64;

/// The values of each socket at the last sample.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: Instant,
    /// The congestion window in bytes and the smoothed round-trip time in microseconds.
    seen: BTreeMap<StreamId, (u32, u32)>,
}

impl Watch {
    /// Returns marks for the values that have changed since the last sample. If the last sample is less than [`EVERY`]
    /// ago, takes no sample and returns no marks.
    pub(super) fn look(&mut self, now: Instant, sockets: &BTreeMap<StreamId, Socket>) -> Vec<Mark> {
        if now < self.next || sockets.is_empty() {
            return Vec::new();
        }
        self.next = now + EVERY;
        self.seen.retain(|id, _| sockets.contains_key(id));
        let mut marks = Vec::new();
        for (id, socket) in sockets.iter().take(SOCKETS) {
            let Ok(info) = get::<TcpInfo>(&socket.fd, libc::IPPROTO_TCP, TCP_INFO) else { continue };
            let is_new = (info.snd_cwnd.saturating_mul(info.snd_mss), info.rtt);
            let before = self.seen.insert(*id, is_new);
            let ends = |name| {
                let mark = Mark::new(node::mark::TCP, name);
                mark.with("local", socket.tuple.local.to_string())
                    .with("peer", socket.tuple.remote.to_string())
            };
            if before.map(|(cwnd, _)| cwnd) != Some(is_new.0) {
                marks.push(ends("cwnd").with("bytes", is_new.0));
            }
            // The round-trip time is zero until the kernel has measured it.
            if is_new.1 > 0 && before.map(|(_, rtt)| rtt) != Some(is_new.1) {
                marks.push(ends("srtt").with("ns", i64::from(is_new.1) * 1000));
            }
        }
        marks
    }
}
