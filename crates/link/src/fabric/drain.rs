//! Draining: a radio that is tuned to another cell first sends the frames that wait at it, for at most
//! [`crate::Listening::drain`]. Until then the radio stays in its own cell, and accepts further frames of its host.

use crate::radio::{Radio, Tuning};
use crate::sender::Sender;
use crate::{Fabric, PortId};
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant};

/// Whether a radio that is tuned to a cell leaves its own cell immediately, or first sends the frames that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tune {
    /// The radio has left its cell.
    Leaves(Tuning),
    /// The radio first sends the frames that wait at it. [`Fabric::left`] returns the radio after it has left.
    Drains,
}

/// The radios that still send in their own cell before they leave.
#[derive(Clone, Default, Debug)]
pub(crate) struct Drains {
    leaving: BTreeMap<PortId, Leaving>,
    /// The radios that have left since the last call of [`Fabric::left`].
    left: Vec<Tuning>,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    to: Cell,
    /// The time at which the radio leaves even if frames still wait.
    latest: Instant,
}

impl Fabric {
    /// Tunes a radio to a cell. Returns `None` if the port has no radio or the cell does not exist. The radio is in the
    /// cell when it has retuned, received a beacon (if the cell has beacons), and associated. Frames that wait at the
    /// radio are lost, unless the radio drains first ([`crate::Listening::drain`]).
    pub fn tune(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tune> {
        let span = self.radios.get(port).map(Radio::drain).filter(|span| !span.is_zero());
        let busy = self.cells.get(&cell).is_some_and(|cell| !cell.is_segment)
            && self.empty_from(port).is_none_or(|empty| empty > now);
        match span.filter(|_| busy) {
            Some(span) => {
                let latest = self.drains.leaving.get(&port).map_or(now + span, |leaving| leaving.latest);
                self.drains.leaving.insert(port, Leaving { to: cell, latest });
                Some(Tune::Drains)
            }
            None => {
                self.drains.leaving.remove(&port);
                self.leave_for(now, port, cell).map(Tune::Leaves)
            }
        }
    }

    /// Returns the radios that have left their cells after draining, since the last call of this function.
    pub fn left(&mut self) -> Vec<Tuning> {
        std::mem::take(&mut self.drains.left)
    }

    /// Returns when the next draining radio leaves, or `None` if no radio drains. For a radio with waiting frames, the
    /// result is the latest time at which it leaves.
    pub(crate) fn next_to_leave(&self) -> Option<Instant> {
        self.drains.leaving.iter().map(|(port, leaving)| self.leaves_at(*port, leaving)).min()
    }

    /// Lets each draining radio leave its cell if no frame waits at the radio, or if its time to drain has ended.
    pub(crate) fn leave(&mut self, now: Instant) {
        while let Some((port, Leaving { to, .. })) = self.first_to_leave(now) {
            self.drains.leaving.remove(&port);
            let tuning = self.leave_for(now, port, to);
            self.drains.left.extend(tuning);
        }
    }

    fn first_to_leave(&self, now: Instant) -> Option<(PortId, Leaving)> {
        let mut all = self.drains.leaving.iter().map(|(port, leaving)| (*port, *leaving));
        all.find(|(port, leaving)| self.leaves_at(*port, leaving) <= now)
    }

    fn leaves_at(&self, port: PortId, leaving: &Leaving) -> Instant {
        self.empty_from(port).map_or(leaving.latest, |empty| empty.min(leaving.latest))
    }

    /// Returns the time from which on no frame of this radio waits or is on the air; `None` while a frame waits. The
    /// time is one nanosecond after the last landing, because a frame that lands when the radio leaves would be lost.
    fn empty_from(&self, port: PortId) -> Option<Instant> {
        let radio = self.radios.get(port)?;
        let place = radio.cell().and_then(|own| self.channel_for(own, port));
        let channel = place.and_then(|place| self.channels.get(place));
        let waits = channel.is_some_and(|channel| channel.head(Sender { port, visits: false }).is_some());
        (!waits).then(|| radio.landed() + Duration::from_nanos(1))
    }
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
