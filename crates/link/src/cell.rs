//! The air of a cell: a medium that also carries beacons.

use crate::air::Air;
use crate::medium::{CellSpec, Character, Medium};
use std::sync::Arc;
use wire::Rng;
use wire::{Duration, Instant, nanos_of};

/// The medium of a cell, and its beacons. The beacons are not part of [`Medium`], because there are few cells, but two
/// media for every wire.
#[derive(Clone, Debug)]
pub(crate) struct Airspace {
    pub(crate) medium: Medium,
    pub(crate) air: Air,
    /// The index of the cell's channel in the fabric.
    pub(crate) channel: usize,
    next_beacon: Instant,
}

impl Airspace {
    pub(crate) fn new(spec: &CellSpec, channel: usize, rng: Rng) -> Self {
        // Each base station sends its beacons at a random phase.
        let phase = |every: Duration| rng.fork("beacon").draw() % nanos_of(every).max(1);
        let next_beacon = spec.air.beacon.map_or(Instant::NEVER, |beacon| Instant(phase(beacon.every)));
        let medium = Medium::new(Arc::new(Character::air(spec)), rng);
        Self { medium, air: spec.air, channel, next_beacon }
    }

    /// Sends the beacons that are due before a frame can begin, on a channel that is busy until `busy`. Returns the
    /// instant until which the channel is busy afterwards. A beacon waits until the channel is free.
    pub(crate) fn send_beacons(&mut self, now: Instant, mut busy: Instant) -> Instant {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return busy };
        let (every, airtime) = (nanos_of(beacon.every), self.medium.airtime(beacon.bytes));
        // Only the last two missed beacons can still be on the air. Earlier beacons ended while no frame was sent, and
        // are skipped.
        let missed = now.0.saturating_sub(self.next_beacon.0) / every;
        self.next_beacon.0 += missed.saturating_sub(1) * every;
        while self.next_beacon <= now.max(busy) {
            busy = self.next_beacon.max(busy) + airtime;
            self.next_beacon.0 += every;
        }
        busy
    }

    /// Returns when a radio that listens from `from` on has received a whole beacon, or `from` if there are no beacons.
    /// The result does not include the time for which a frame on the channel delays the beacon.
    pub(crate) fn beacon_after(&self, from: Instant) -> Instant {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return from };
        let every = nanos_of(beacon.every);
        let phase = self.next_beacon.0 % every;
        let next = from.0.saturating_sub(phase).div_ceil(every) * every + phase;
        Instant(next) + self.medium.airtime(beacon.bytes)
    }
}
