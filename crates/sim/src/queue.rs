//! The queue of events.

use link::{Flight, Tuning};
use node::Command;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use trace::{Fingerprinter, Fold, HostId};
use wire::{Instant, Packet};

/// A future event. Simultaneous events happen in the order in which they were scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FutureEvent {
    Due(HostId),
    Land(Flight, Packet),
    Tuned(Tuning),
    Command(HostId, Command),
    Synced(HostId),
    Sample(link::PortId),
    /// The fabric may grant a channel to a waiting frame now.
    Grant,
    /// An event of the scenario, by its number.
    Ordered(u32),
}

/// Of a packet in flight, only the id is added to the fingerprint. The bytes of the packet were added with the act that
/// sent the packet, and a link does not change them.
impl Fold for FutureEvent {
    fn fold(&self, into: &mut Fingerprinter) {
        match self {
            Self::Due(host) => (0u64, host).fold(into),
            Self::Land(flight, packet) => {
                let Flight { from, start, lands, copies, .. } = flight;
                (1u64, from.0, start, lands, copies).fold(into);
                (flight.way(), packet.id).fold(into);
            }
            Self::Tuned(tuning) => {
                let Tuning { port, cell, ready, .. } = tuning;
                (2u64, port.0, cell, ready, tuning.turn()).fold(into);
            }
            Self::Command(host, command) => (3u64, host, command).fold(into),
            Self::Synced(host) => (4u64, host).fold(into),
            Self::Sample(port) => (5u64, port.0).fold(into),
            Self::Grant => into.word(6),
            Self::Ordered(number) => (7u64, number).fold(into),
        }
    }
}

/// Future events by time, and simultaneous events in the order of their scheduling.
///
/// Each of a million hosts can wait with an alarm, so an alarm is stored in the heap itself and takes 24 bytes. Other
/// events are larger, and are stored in `beside`.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    beside: Vec<Option<FutureEvent>>,
    free: Vec<u32>,
    scheduled: u64,
}

/// An entry of the heap: its time, its number in the order of scheduling, and where the event is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    at: Instant,
    number: u64,
    ticket: Ticket,
}

impl Entry {
    /// Returns the position in the order as one number, which differs for each entry.
    const fn place(&self) -> u128 {
        (self.at.0 as u128) << 64 | self.number as u128
    }
}

impl Ord for Entry {
    /// Compares in reverse order: the heap returns its greatest entry first, which must be the earliest one.
    fn cmp(&self, other: &Self) -> Ordering {
        other.place().cmp(&self.place())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Where an event is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ticket {
    Due(HostId),
    Beside(u32),
}

impl Queue {
    pub(crate) fn schedule(&mut self, at: Instant, event: FutureEvent) {
        self.scheduled += 1;
        let ticket = match event {
            FutureEvent::Due(host) => Ticket::Due(host),
            event => Ticket::Beside(self.put(event)),
        };
        self.heap.push(Entry { at, number: self.scheduled, ticket });
    }

    /// Removes and returns the next event. `None` if no event is due at `end` or before.
    pub(crate) fn next(&mut self, end: Instant) -> Option<(Instant, FutureEvent)> {
        if self.heap.peek()?.at > end {
            return None;
        }
        let Entry { at, ticket, .. } = self.heap.pop()?;
        match ticket {
            Ticket::Due(host) => Some((at, FutureEvent::Due(host))),
            Ticket::Beside(slot) => {
                self.free.push(slot);
                Some((at, self.beside.get_mut(slot as usize)?.take()?))
            }
        }
    }

    /// Returns the events that wait, except alarms, in the order in which they would happen.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &FutureEvent> {
        let slot = |entry: &Entry| match entry.ticket {
            Ticket::Due(_) => None,
            Ticket::Beside(slot) => Some((entry.at, entry.number, slot)),
        };
        let mut slots: Vec<(Instant, u64, u32)> = self.heap.iter().filter_map(slot).collect();
        slots.sort_unstable();
        slots.into_iter().filter_map(|(_, _, slot)| self.beside.get(slot as usize)?.as_ref())
    }

    fn put(&mut self, event: FutureEvent) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.beside.push(None);
            self.beside.len() as u32 - 1
        });
        if let Some(place) = self.beside.get_mut(slot as usize) {
            *place = Some(event);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn synced(host: u32) -> FutureEvent {
        FutureEvent::Synced(HostId(host))
    }

    #[test]
    fn the_earliest_comes_first_then_the_first_scheduled() {
        let mut queue = Queue::default();
        for (at, host) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            queue.schedule(Instant(at), synced(host));
        }
        queue.schedule(Instant(3), FutureEvent::Due(HostId(5)));
        queue.schedule(Instant(9), synced(6));
        let taken: Vec<_> = std::iter::from_fn(|| queue.next(Instant(5))).map(|(_, event)| event).collect();
        assert_eq!(taken, [synced(2), synced(4), FutureEvent::Due(HostId(5)), synced(1), synced(3)]);
        assert_eq!(queue.waiting().collect::<Vec<_>>(), [&synced(6)], "behind the end");
        assert_eq!(queue.beside.len(), 5, "and room was made for five");
        queue.schedule(Instant(4), synced(7));
        assert_eq!((queue.waiting().next(), queue.beside.len()), (Some(&synced(7)), 5), "room is used again");
    }

    #[test]
    fn an_alarm_takes_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }
}
