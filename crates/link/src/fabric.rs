//! All wires and cells of a scenario.

use crate::cell::Airspace;
use crate::medium::{CellSpec, Character, Medium, Queue, WireSpec};
use crate::radio::{Heard, Radio, RadioSpec, Radios, Tuning};
use crate::{Course, PortId, reason};
use std::collections::BTreeMap;
use std::sync::Arc;
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

impl Flight {
    /// Where a flight through a wire ends, in any case: nothing happens to a frame any more that is in a wire.
    pub const fn far_end(&self) -> Option<PortId> {
        match self.way {
            Way::Wire(to) => Some(to),
            Way::Air(_) | Way::Visit(_) => None,
        }
    }
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
///
/// Ports are numbered from near zero on, without large gaps: what is known of a port stands at its number.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    wires: Vec<Option<WireEnd>>,
    cells: BTreeMap<Cell, Airspace>,
    radios: Radios,
    courses: BTreeMap<PortId, Course>,
    /// What wires of a kind share; a million hosts hang on wires of one kind.
    kinds: Vec<(WireSpec, [Arc<Character>; 2])>,
}

/// One end of a wire, and the direction that leads away from it.
#[derive(Clone, Debug)]
struct WireEnd {
    to: PortId,
    medium: Medium,
    queue: Queue,
}

/// Kinds of wires that are remembered; a wire of a kind beyond that is one of its own.
const KINDS: usize = 64;

impl Fabric {
    /// Lays a wire between two ports.
    pub fn add_wire(&mut self, ends: [PortId; 2], spec: &WireSpec, chance: &Seed) {
        let [a, b] = ends;
        let [there, back] = self.characters(spec);
        for (from, to, character) in [(a, b, there), (b, a, back)] {
            let medium = Medium::new(character, chance.fork(&format!("wire {}", from.0)));
            let index = from.0 as usize;
            if index >= self.wires.len() {
                self.wires.resize_with(index + 1, || None);
            }
            if let Some(place) = self.wires.get_mut(index) {
                *place = Some(WireEnd { to, medium, queue: Queue::default() });
            }
        }
    }

    fn characters(&mut self, spec: &WireSpec) -> [Arc<Character>; 2] {
        if let Some((_, known)) = self.kinds.iter().find(|(kind, _)| kind == spec) {
            return known.clone();
        }
        let fresh = [0, 1].map(|direction| Arc::new(Character::wire(spec, direction)));
        if self.kinds.len() < KINDS {
            self.kinds.push((spec.clone(), fresh.clone()));
        }
        fresh
    }

    /// Gives back the room that was made for more wires and radios.
    pub fn shrink_to_fit(&mut self) {
        self.wires.shrink_to_fit();
        self.radios.shrink_to_fit();
    }

    /// Opens a cell.
    pub fn add_cell(&mut self, spec: &CellSpec, chance: &Seed) {
        let chance = chance.fork(&format!("cell {}", spec.cell.0));
        self.cells.insert(spec.cell, Airspace::new(spec, chance));
    }

    /// Adds a radio.
    pub fn add_radio(&mut self, port: PortId, spec: RadioSpec) {
        self.radios.add(port, spec);
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
        let own = self.radios.get(port).and_then(Radio::cell);
        let is_lost = own.is_some_and(|own| !heard.iter().any(|(cell, _)| *cell == own));
        if is_lost {
            self.radios.lose(port);
        }
        if self.radios.get_mut(port).is_some_and(|radio| !radio.scans(now)) {
            heard.retain(|(cell, _)| Some(*cell) == own);
        }
        Sample { heard, is_lost }
    }

    /// Offers a datagram of `bytes` to the link at `port`.
    pub fn offer(&mut self, now: Instant, port: PortId, bytes: usize) -> Result<Flight, Reason> {
        let wire = self.wires.get_mut(port.0 as usize).and_then(Option::as_mut);
        let Some(WireEnd { to, medium, queue }) = wire else { return self.offer_to_air(now, port, bytes) };
        medium.character.admits(now, queue, bytes)?;
        let taken = medium.occupy(now, bytes + ethernet::HEADER);
        queue.push(now, taken.1);
        fly(medium, port, Way::Wire(*to), taken)
    }

    fn offer_to_air(&mut self, now: Instant, port: PortId, bytes: usize) -> Result<Flight, Reason> {
        let radio = self.radios.get_mut(port).ok_or(reason::NO_CARRIER)?;
        let nowhere = if radio.is_deaf() { reason::OUT_OF_RANGE } else { reason::RETUNING };
        let (cell, back) = (radio.cell().ok_or(nowhere)?, radio.back(now));
        let own = self.cells.get(&cell).ok_or(reason::NO_CARRIER)?;
        own.medium.character.admits(now, &mut radio.queue, bytes)?;
        let taken = self.take_air(now, cell, port, bytes + ethernet::HEADER)?;
        let radio = self.radios.get_mut(port).ok_or(reason::NO_CARRIER)?;
        let taken = radio.keep(back, taken);
        radio.queue.push(now, taken.1);
        let own = self.cells.get_mut(&cell).ok_or(reason::NO_CARRIER)?;
        fly(&mut own.medium, port, Way::Air(cell), taken)
    }

    /// Sends one datagram in another cell, and comes back.
    pub fn visit(&mut self, now: Instant, port: PortId, cell: Cell, bytes: usize) -> Result<Visit, Reason> {
        let radio = self.radios.get(port).ok_or(reason::NO_CARRIER)?;
        if !self.cells.contains_key(&cell) {
            return Err(reason::NO_CARRIER);
        }
        let stays = radio.cell().is_some_and(|own| self.share_air(own, cell));
        let excursion = if stays { Duration::ZERO } else { radio.excursion() };
        let taken = self.take_air(now + excursion / 2, cell, port, bytes + ethernet::HEADER);
        let out = taken.map_or(now, |(_, out)| out);
        let back = if excursion.is_zero() { now } else { out.max(now + excursion) };
        if let Some(radio) = self.radios.get_mut(port).filter(|_| !excursion.is_zero()) {
            radio.be_away(now, back);
        }
        let visited = self.cells.get_mut(&cell).ok_or(reason::NO_CARRIER)?;
        let flight = fly(&mut visited.medium, port, Way::Visit(cell), taken?)?;
        Ok(Visit { flight, back })
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
        let channel = self.cells.get(&cell).and_then(|own| own.air.channel);
        let mut busy = Instant::ZERO;
        for other in on_channel(&mut self.cells, channel) {
            other.medium.busy_until = other.medium.busy_until.max(busy);
            other.send_beacons(now);
            busy = other.medium.busy_until;
        }
        let own = self.cells.get_mut(&cell).ok_or(reason::NO_CARRIER)?;
        own.medium.busy_until = own.medium.busy_until.max(busy);
        own.send_beacons(now);
        let contended = own.contend(now, bytes, port, &rivals);
        let taken = contended.map(|()| own.medium.occupy(now, bytes));
        let busy = own.medium.busy_until;
        for other in on_channel(&mut self.cells, channel) {
            other.medium.busy_until = busy;
        }
        taken
    }

    /// Who else has frames to send on the air of this cell, if it matters; in the order of their ports, in which they draw.
    fn rivals(&self, now: Instant, cell: Cell, port: PortId) -> Vec<PortId> {
        if self.cells.get(&cell).is_none_or(|own| own.air.contention.is_none()) {
            return Vec::new();
        }
        let waits = |other: &PortId| {
            *other != port && self.radios.get(*other).is_some_and(|radio| radio.queue.is_busy(now))
        };
        let near = self.cells.keys().filter(|other| **other == cell || self.share_air(**other, cell));
        let mut rivals: Vec<PortId> =
            near.flat_map(|near| self.radios.in_cell(*near)).filter(waits).collect();
        rivals.sort_unstable();
        rivals
    }

    /// Whether two cells are on one channel, by what is said of them.
    fn share_air(&self, a: Cell, b: Cell) -> bool {
        let channel = |cell: Cell| self.cells.get(&cell).and_then(|of| of.air.channel);
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
        if !visiting && !self.radios.get(flight.from).is_some_and(stayed) {
            return Landing::Lost(reason::SENDER_LEFT);
        }
        let mut lost = reason::RECEIVER_LEFT;
        let mut at = Vec::new();
        self.radios.each_in_reach(cell, dst, |port, radio| {
            if port == flight.from {
                return;
            }
            match radio.heard(cell, flight.start, flight.lands) {
                Heard::Yes => at.push(port),
                Heard::Away => lost = reason::RECEIVER_AWAY,
                Heard::Elsewhere => {}
            }
        });
        if at.is_empty() { Landing::Lost(lost) } else { Landing::At(at) }
    }

    /// Points a radio at a cell; `None` when that port has no radio or there is no such cell. It is there when it has heard a
    /// beacon, if there are any, and has associated.
    pub fn tune(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        let radio = self.radios.get(port)?;
        let same_channel = radio.cell().is_some_and(|own| self.share_air(own, cell));
        let listens = now + radio.retuning(same_channel);
        let ready = self.cells.get(&cell)?.beacon_after(listens) + radio.association();
        self.radios.leave(ready, port, cell)
    }

    /// Completes a tuning.
    pub fn arrive(&mut self, tuning: &Tuning) -> Arrived {
        let course = self.courses.get(&tuning.port);
        let in_range = course.is_none_or(|course| course.strength(tuning.cell, tuning.ready).is_some());
        if !self.radios.arrive(tuning) {
            return Arrived::Elsewhere;
        }
        if in_range {
            return Arrived::Here;
        }
        self.radios.lose(tuning.port);
        Arrived::OutOfRange
    }

    /// When the last bit leaves the sender's antenna.
    fn end_of_air(&self, flight: &Flight, cell: Cell) -> Instant {
        let delay = self.cells.get(&cell).map(|own| own.medium.character.delay).unwrap_or_default();
        flight.lands - delay
    }
}

/// The cells of a channel; none, if there is no channel that they could share.
fn on_channel(
    cells: &mut BTreeMap<Cell, Airspace>,
    channel: Option<u16>,
) -> impl Iterator<Item = &mut Airspace> {
    let cells = channel.is_some().then(|| cells.values_mut());
    cells.into_iter().flatten().filter(move |cell| cell.air.channel == channel)
}

/// A frame that goes out: whether it arrives, and how often.
fn fly(
    medium: &mut Medium,
    from: PortId,
    way: Way,
    (start, out): (Instant, Instant),
) -> Result<Flight, Reason> {
    let copies = medium.luck()?;
    Ok(Flight { from, start, lands: out + medium.character.delay, copies, way })
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod tests;
