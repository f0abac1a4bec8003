//! A radio that is pointed at another cell, and sends what waits at it before it leaves its own. It is in its cell until then, and
//! takes what its host sends meanwhile, too.

use crate::channel::Sender;
use crate::radio::{Radio, Tuning};
use crate::{Fabric, PortId};
use std::collections::BTreeMap;
use wire::{Cell, Duration, Instant};

/// What follows from pointing a radio at a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tune {
    /// It has left its own.
    Leaves(Tuning),
    /// It sends first what waits at it: [`Fabric::left`] says when it has left, after a decision.
    Drains,
}

/// Radios that still send in their own cells.
#[derive(Clone, Default, Debug)]
pub(crate) struct Drains {
    leaving: BTreeMap<PortId, Leaving>,
    /// They have left since that was asked.
    left: Vec<Tuning>,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    to: Cell,
    /// It leaves then, whatever waits.
    latest: Instant,
}

impl Fabric {
    /// Points a radio at a cell; `None` when that port has no radio or there is no such cell. It is there when it has heard a
    /// beacon, if there are any, and has associated. Frames that wait at it are lost, unless it has time to send them.
    pub fn tune(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tune> {
        let span = self.radios.get(port).map(Radio::drain).filter(|span| !span.is_zero());
        let busy = self.cells.contains_key(&cell) && self.empty_from(port).is_none_or(|empty| empty > now);
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

    /// Radios that have left their cells after they had sent what waited.
    pub fn left(&mut self) -> Vec<Tuning> {
        std::mem::take(&mut self.drains.left)
    }

    /// When the next radio leaves, as far as that is known.
    pub(crate) fn next_to_leave(&self) -> Option<Instant> {
        self.drains.leaving.iter().map(|(port, leaving)| self.leaves_at(*port, leaving)).min()
    }

    /// Has those radios leave that have nothing to send any more, or no more time.
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

    /// From when on nothing of this radio's waits or is on the air; `None` while that is not known. What lands in the instant in which
    /// the radio leaves would be lost.
    fn empty_from(&self, port: PortId) -> Option<Instant> {
        let radio = self.radios.get(port)?;
        let channel = radio.cell().and_then(|own| self.cells.get(&own)).map(|own| own.channel);
        let channel = channel.and_then(|place| self.channels.get(place));
        let waits = channel.is_some_and(|channel| channel.head(Sender { port, visits: false }).is_some());
        (!waits).then(|| radio.landed() + Duration::from_nanos(1))
    }
}

#[cfg(test)]
#[path = "drain_tests.rs"]
mod tests;
