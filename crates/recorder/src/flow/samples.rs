//! Short forms of times, transmissions and arrivals for tests.

use super::Arrival;
use super::path::Sending;
use wire::{Duration, Instant, PacketId};

pub(super) fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(super) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Returns the datagram with this number, sent at `at` milliseconds.
pub(super) fn sending(packet: u64, at: u64) -> Sending {
    Sending { at: ms(at), packet: PacketId(packet), is_new: true, place: packet, leg: 0 }
}

/// Returns the arrival of 100 bytes with a packet at `at` milliseconds.
pub(super) fn arrival(packet: u64, at: u64) -> Arrival {
    Arrival { at: ms(at), bytes: 100, packet: PacketId(packet) }
}
