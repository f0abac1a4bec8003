//! The air of a cell: a medium that beacons and contention take of as well.

use crate::air::{Access, Air, Counters};
use crate::medium::{CellSpec, Character, Medium};
use crate::{PortId, reason};
use std::sync::Arc;
use wire::Seed;
use wire::{Duration, Instant, Reason, nanos_of};

/// Apart from [`Medium`], because there are few cells, and two media for every wire.
#[derive(Clone, Debug)]
pub(crate) struct Airspace {
    pub(crate) medium: Medium,
    pub(crate) air: Air,
    next_beacon: Instant,
    counters: Counters,
}

impl Airspace {
    pub(crate) fn new(spec: &CellSpec, chance: Seed) -> Self {
        // Base stations are not in step.
        let phase = |every: Duration| chance.fork("beacon").draw() % nanos_of(every).max(1);
        let next_beacon = spec.air.beacon.map_or(Instant::NEVER, |beacon| Instant(phase(beacon.every)));
        let medium = Medium::new(Arc::new(Character::air(spec)), chance);
        Self { medium, air: spec.air, next_beacon, counters: Counters::default() }
    }

    /// Beacons that are due before a frame which is offered now can begin. One that the air is not free for waits until it is.
    pub(crate) fn send_beacons(&mut self, now: Instant) {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return };
        let (every, airtime) = (nanos_of(beacon.every), self.medium.airtime(beacon.bytes));
        // Those of times when nobody sent are of no account.
        let missed = now.0.saturating_sub(self.next_beacon.0) / every;
        self.next_beacon.0 += missed.saturating_sub(1) * every;
        while self.next_beacon <= now.max(self.medium.busy_until) {
            self.medium.busy_until = self.next_beacon.max(self.medium.busy_until) + airtime;
            self.next_beacon.0 += every;
        }
    }

    /// When a radio that listens from `from` on has heard a beacon; at once where there are none.
    pub(crate) fn beacon_after(&self, from: Instant) -> Instant {
        let Some(beacon) = self.air.beacon.filter(|beacon| !beacon.every.is_zero()) else { return from };
        let every = nanos_of(beacon.every);
        let phase = self.next_beacon.0 % every;
        let next = from.0.saturating_sub(phase).div_ceil(every) * every + phase;
        Instant(next) + self.medium.airtime(beacon.bytes)
    }

    /// Contends for the air, if there is somebody or something to contend with. An error when the frame is lost by it.
    pub(crate) fn contend(
        &mut self,
        now: Instant,
        bytes: usize,
        own: PortId,
        rivals: &[PortId],
    ) -> Result<(), Reason> {
        let Some(contention) = self.air.contention else { return Ok(()) };
        let medium = &mut self.medium;
        if medium.busy_until <= now && rivals.is_empty() {
            return Ok(());
        }
        let Access { idle, collisions, lost } =
            contention.access(own, rivals, &mut self.counters, &mut medium.chance);
        let spent = contention.slot * idle + medium.airtime(bytes) * collisions;
        medium.busy_until = medium.busy_until.max(now) + spent;
        if lost { Err(reason::COLLISIONS) } else { Ok(()) }
    }
}
