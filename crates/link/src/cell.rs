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
    /// The medium of all frames. In a full-duplex cell, the medium of frames from the base station.
    pub(crate) medium: Medium,
    /// The medium of frames from mobile hosts; `None` for a half-duplex cell. Its hosts share the random errors, but
    /// not the rate.
    uplink: Option<Box<Medium>>,
    pub(crate) air: Air,
    /// Whether the cell is a wire that several hosts share.
    pub(crate) is_segment: bool,
    /// The index of the cell's channel in the fabric.
    pub(crate) channel: usize,
    next_beacon: Instant,
}

impl Airspace {
    pub(crate) fn new(spec: &CellSpec, channel: usize, rng: Rng) -> Self {
        // Each base station sends its beacons at a random phase.
        let phase = |every: Duration| rng.fork("beacon").draw() % nanos_of(every).max(1);
        let next_beacon = spec.air.beacon.map_or(Instant::NEVER, |beacon| Instant(phase(beacon.every)));
        let uplink = Character::uplink(spec)
            .map(|character| Box::new(Medium::new(Arc::new(character), rng.fork("uplink"))));
        let medium = Medium::new(Arc::new(Character::air(spec)), rng);
        Self { medium, uplink, air: spec.air, is_segment: spec.is_segment, channel, next_beacon }
    }

    /// Returns whether each sender of the cell has a separate medium.
    pub(crate) const fn is_full_duplex(&self) -> bool {
        self.uplink.is_some()
    }

    /// Returns the medium of frames from the base station, or from another host of the cell.
    pub(crate) fn medium_from(&self, station: bool) -> &Medium {
        self.uplink.as_deref().filter(|_| !station).unwrap_or(&self.medium)
    }

    /// Returns the medium of [`Self::medium_from`], for changes.
    pub(crate) fn medium_mut(&mut self, station: bool) -> &mut Medium {
        match &mut self.uplink {
            Some(uplink) if !station => uplink,
            _ => &mut self.medium,
        }
    }

    /// Calls `change` for each medium of the cell.
    pub(crate) fn each_medium(&mut self, change: impl Fn(&mut Medium)) {
        change(&mut self.medium);
        self.uplink.as_deref_mut().into_iter().for_each(change);
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
