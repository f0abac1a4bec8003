//! The congestion window and the round-trip time of the daemon's TCP sockets over time, for figures.
//!
//! Sockets are looked at when the daemon is awake anyway, and never more often than every [`EVERY`]: no timer is set and no
//! role is notified, so that looking changes nothing but the time it takes.

use super::options::{TCP_INFO, TcpInfo, get};
use super::socket::Socket;
use node::{Mark, StreamId};
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// At least this long between two looks.
const EVERY: Duration = Duration::from_millis(20);
/// Of more sockets than this only the first are looked at: each look is a call of the system.
const SOCKETS: usize = 64;

/// What was seen of each socket at the last look.
#[derive(Debug, Default)]
pub(super) struct Watch {
    next: Instant,
    /// The congestion window in bytes and the smoothed round-trip time in microseconds.
    seen: BTreeMap<StreamId, (u32, u32)>,
}

impl Watch {
    /// Marks what has changed since the last look, if that is long enough ago.
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
            // Zero: no segment has been acknowledged yet.
            if is_new.1 > 0 && before.map(|(_, rtt)| rtt) != Some(is_new.1) {
                marks.push(ends("srtt").with("ns", i64::from(is_new.1) * 1000));
            }
        }
        marks
    }
}
