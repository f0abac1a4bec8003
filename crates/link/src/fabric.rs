//! All wires and cells of a scenario.

use crate::medium::{CellSpec, Medium, Queue, WireSpec};
use crate::radio::{Heard, Radio, RadioSpec, Tuning};
use crate::{Course, PortId, reason};
use std::collections::BTreeMap;
use wire::Seed;
use wire::{Cell, Duration, Instant, Mac, Reason, ethernet};

/// A frame on its way: plain data, kept by the caller together with the frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flight {
    /// Who sent it.
    pub from: PortId,
    /// The first bit goes out.
    pub start: Instant,
    /// The last bit is in: hand it to [`Fabric::land`] then.
    pub lands: Instant,
    /// How often it arrives.
    pub copies: u8,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Way {
    Wire(PortId),
    Air(Cell),
    /// In a cell that the sender only visits.
    Visit(Cell),
}

/// Who hears a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Landing {
    /// These ports.
    At(Vec<PortId>),
    /// Nobody.
    Lost(Reason),
}

/// A visit to another cell: the flight of its one packet, and when the radio is back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Visit {
    /// The packet's flight.
    pub flight: Flight,
    /// When the radio hears its own cell again.
    pub back: Instant,
}

/// Where a change of cells led.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// To the new cell.
    Here,
    /// Nowhere: the radio has been pointed elsewhere meanwhile.
    Elsewhere,
    /// Nowhere: the cell cannot be heard.
    OutOfRange,
}

/// What a radio that has a course hears.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Cells and their strength in dBm, in the order of their numbers.
    pub heard: Vec<(Cell, i16)>,
    /// Whether it has just lost its own.
    pub is_lost: bool,
}

/// All wires and cells of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    wires: BTreeMap<PortId, (PortId, Medium)>,
    cells: BTreeMap<Cell, Medium>,
    radios: BTreeMap<PortId, Radio>,
    courses: BTreeMap<PortId, Course>,
    queues: BTreeMap<PortId, Queue>,
}

impl Fabric {
    /// Lays a wire between two ports.
    pub fn add_wire(&mut self, ends: [PortId; 2], spec: &WireSpec, chance: &Seed) {
        let [a, b] = ends;
        self.wires.insert(a, (b, Medium::wire(spec, 0, chance.fork(&format!("wire {}", a.0)))));
        self.wires.insert(b, (a, Medium::wire(spec, 1, chance.fork(&format!("wire {}", b.0)))));
    }

    /// Opens a cell.
    pub fn add_cell(&mut self, spec: &CellSpec, chance: &Seed) {
        self.cells.insert(spec.cell, Medium::air(spec, chance.fork(&format!("cell {}", spec.cell.0))));
    }

    /// Adds a radio.
    pub fn add_radio(&mut self, port: PortId, spec: RadioSpec) {
        self.radios.insert(port, Radio::new(spec));
    }

    /// Sends the host of a radio on its way. A radio without a course hears every cell.
    pub fn add_course(&mut self, port: PortId, course: Course) {
        self.courses.insert(port, course);
    }

    /// The radios that have a course, and when [`Fabric::sample`] is due for each: from then on every [`crate::SAMPLING`].
    pub fn sampled(&self) -> impl Iterator<Item = (PortId, Instant)> {
        self.courses.iter().map(|(port, course)| (*port, course.first_sample()))
    }

    /// What a radio hears now. One that no longer hears its cell carries nothing until it is tuned again.
    pub fn sample(&mut self, now: Instant, port: PortId) -> Sample {
        let mut heard = self.courses.get(&port).map(|course| course.heard(now)).unwrap_or_default();
        let Some(radio) = self.radios.get_mut(&port) else { return Sample { heard, is_lost: false } };
        let own = radio.cell();
        let is_lost = own.is_some_and(|own| !heard.iter().any(|(cell, _)| *cell == own));
        if is_lost {
            radio.lose();
        }
        if !radio.scans(now) {
            heard.retain(|(cell, _)| Some(*cell) == own);
        }
        Sample { heard, is_lost }
    }

    /// Offers a datagram of `bytes` to the link at `port`.
    pub fn offer(&mut self, now: Instant, port: PortId, bytes: usize) -> Result<Flight, Reason> {
        let (way, back) = if let Some((to, _)) = self.wires.get(&port) {
            (Way::Wire(*to), now)
        } else {
            let radio = self.radios.get(&port).ok_or(reason::NO_CARRIER)?;
            let nowhere = if radio.is_deaf() { reason::OUT_OF_RANGE } else { reason::RETUNING };
            (Way::Air(radio.cell().ok_or(nowhere)?), radio.back(now))
        };
        let medium = match way {
            Way::Wire(_) => self.wires.get_mut(&port).map(|(_, medium)| medium),
            Way::Air(cell) | Way::Visit(cell) => self.cells.get_mut(&cell),
        };
        let medium = medium.ok_or(reason::NO_CARRIER)?;
        if bytes > usize::from(medium.mtu) {
            return Err(reason::MTU);
        }
        // One frame is on the medium, the others wait.
        if self.queues.entry(port).or_default().waiting(now) > medium.queue {
            return Err(reason::QUEUE_FULL);
        }
        let (start, out) = match way {
            Way::Wire(_) => medium.occupy(now, bytes + ethernet::HEADER),
            Way::Air(cell) | Way::Visit(cell) => {
                let taken = self.take_air(now, cell, port, bytes + ethernet::HEADER)?;
                self.keep(port, back, taken)
            }
        };
        self.queues.entry(port).or_default().push(out);
        self.fly(port, way, start, out)
    }

    /// When a frame goes out whose radio is `back` only then. Others do not wait for it: the air that it takes is counted when
    /// its turn comes, as if it were sent at once.
    fn keep(&mut self, port: PortId, back: Instant, (start, out): (Instant, Instant)) -> (Instant, Instant) {
        let later = back.since(start);
        if let Some(radio) = self.radios.get_mut(&port).filter(|_| !later.is_zero()) {
            radio.sends_kept(out + later);
        }
        (start + later, out + later)
    }

    /// Sends one datagram in another cell, and comes back.
    pub fn visit(&mut self, now: Instant, port: PortId, cell: Cell, bytes: usize) -> Result<Visit, Reason> {
        let radio = self.radios.get(&port).ok_or(reason::NO_CARRIER)?;
        if !self.cells.contains_key(&cell) {
            return Err(reason::NO_CARRIER);
        }
        let stays = radio.cell().is_some_and(|own| self.share_air(own, cell));
        let excursion = if stays { Duration::ZERO } else { radio.spec.excursion };
        let taken = self.take_air(now + excursion / 2, cell, port, bytes + ethernet::HEADER);
        let out = taken.map_or(now, |(_, out)| out);
        let back = if excursion.is_zero() { now } else { out.max(now + excursion) };
        if let Some(radio) = self.radios.get_mut(&port).filter(|_| !excursion.is_zero()) {
            radio.be_away(now, back);
        }
        let (start, out) = taken?;
        let flight = self.fly(port, Way::Visit(cell), start, out)?;
        Ok(Visit { flight, back })
    }

    /// A frame that goes out: whether it arrives, and how often.
    fn fly(&mut self, from: PortId, way: Way, start: Instant, out: Instant) -> Result<Flight, Reason> {
        let medium = match way {
            Way::Wire(_) => self.wires.get_mut(&from).map(|(_, medium)| medium),
            Way::Air(cell) | Way::Visit(cell) => self.cells.get_mut(&cell),
        };
        let medium = medium.ok_or(reason::NO_CARRIER)?;
        let copies = medium.luck()?;
        Ok(Flight { from, start, lands: out + medium.delay, copies, way })
    }

    /// Takes the air of a cell for a frame: behind what was offered before, behind beacons, and against who else wants it.
    fn take_air(
        &mut self,
        now: Instant,
        cell: Cell,
        port: PortId,
        bytes: usize,
    ) -> Result<(Instant, Instant), Reason> {
        let rivals = self.rivals(now, cell, port);
        let channel = self.cells.get(&cell).and_then(|medium| medium.air.channel);
        let shared = |other: Cell, medium: &Medium| {
            other == cell || channel.is_some() && medium.air.channel == channel
        };
        let mut busy = Instant::ZERO;
        if channel.is_some() {
            for (_, medium) in self.cells.iter_mut().filter(|(other, medium)| shared(**other, medium)) {
                medium.busy_until = medium.busy_until.max(busy);
                medium.send_beacons(now);
                busy = medium.busy_until;
            }
        }
        let own = self.cells.get_mut(&cell).ok_or(reason::NO_CARRIER)?;
        own.busy_until = own.busy_until.max(busy);
        own.send_beacons(now);
        let contended = own.contend(now, bytes, port, &rivals);
        let taken = contended.map(|()| own.occupy(now, bytes));
        let busy = own.busy_until;
        if channel.is_some() {
            for (_, medium) in self.cells.iter_mut().filter(|(other, medium)| shared(**other, medium)) {
                medium.busy_until = busy;
            }
        }
        taken
    }

    /// Who else has frames to send on the air of this cell, if it matters.
    fn rivals(&mut self, now: Instant, cell: Cell, port: PortId) -> Vec<PortId> {
        if self.cells.get(&cell).is_none_or(|medium| medium.air.contention.is_none()) {
            return Vec::new();
        }
        let near = |radio: &Radio| radio.cell().is_some_and(|own| own == cell || self.share_air(own, cell));
        let others: Vec<PortId> = self
            .radios
            .iter()
            .filter(|(other, radio)| **other != port && near(radio))
            .map(|(other, _)| *other)
            .collect();
        let waits = |other: &PortId| self.queues.get_mut(other).is_some_and(|queue| queue.waiting(now) > 0);
        others.into_iter().filter(waits).collect()
    }

    /// Whether two cells are on one channel, by what is said of them.
    fn share_air(&self, a: Cell, b: Cell) -> bool {
        let channel = |cell: Cell| self.cells.get(&cell).and_then(|medium| medium.air.channel);
        channel(a).is_some() && channel(a) == channel(b)
    }

    /// Whose ears a flight reaches, now that it lands.
    pub fn land(&self, flight: &Flight, dst: Mac) -> Landing {
        let (cell, visiting) = match flight.way {
            Way::Wire(to) => return Landing::At(vec![to]),
            Way::Air(cell) => (cell, false),
            Way::Visit(cell) => (cell, true),
        };
        let out = self.end_of_air(flight, cell);
        let stayed = |radio: &Radio| matches!(radio.heard(cell, flight.start, out), Heard::Yes | Heard::Away);
        if !visiting && !self.radios.get(&flight.from).is_some_and(stayed) {
            return Landing::Lost(reason::SENDER_LEFT);
        }
        let mut lost = reason::RECEIVER_LEFT;
        let mut at = Vec::new();
        for (port, radio) in &self.radios {
            if *port == flight.from || (!dst.is_group() && dst != radio.spec.mac) {
                continue;
            }
            match radio.heard(cell, flight.start, flight.lands) {
                Heard::Yes => at.push(*port),
                Heard::Away => lost = reason::RECEIVER_AWAY,
                Heard::Elsewhere => {}
            }
        }
        if at.is_empty() { Landing::Lost(lost) } else { Landing::At(at) }
    }

    /// Points a radio at a cell; `None` when that port has no radio or there is no such cell. It is there when it has heard a
    /// beacon, if there are any, and has associated.
    pub fn tune(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        let radio = self.radios.get(&port)?;
        let same_channel = radio.cell().is_some_and(|own| self.share_air(own, cell));
        let listens = now + radio.retuning(same_channel);
        let ready = self.cells.get(&cell)?.beacon_after(listens) + radio.spec.listening.association;
        Some(self.radios.get_mut(&port)?.leave(ready, port, cell))
    }

    /// Completes a tuning.
    pub fn arrive(&mut self, tuning: &Tuning) -> Arrived {
        let course = self.courses.get(&tuning.port);
        let in_range = course.is_none_or(|course| course.strength(tuning.cell, tuning.ready).is_some());
        let Some(radio) = self.radios.get_mut(&tuning.port) else { return Arrived::Elsewhere };
        if !radio.arrive(tuning) {
            return Arrived::Elsewhere;
        }
        if in_range {
            return Arrived::Here;
        }
        radio.lose();
        Arrived::OutOfRange
    }

    /// When the last bit leaves the sender's antenna.
    fn end_of_air(&self, flight: &Flight, cell: Cell) -> Instant {
        let delay = self.cells.get(&cell).map(|medium| medium.delay).unwrap_or_default();
        Instant(flight.lands.0.saturating_sub(delay.as_nanos() as u64))
    }
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod tests;
