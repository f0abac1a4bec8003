//! The wires, cells and radios of a scenario, and the path of a frame through them.

pub(crate) mod change;
pub(crate) mod drain;
pub(crate) mod grant;
mod lane;
mod overlap;

use crate::air::Access;
use crate::cell::Airspace;
use crate::channel::{Channel, Limit, Waiting};
use crate::fabric::change::Cuts;
use crate::fabric::drain::Drains;
use crate::fabric::grant::Decision;
use crate::flight::{Flight, FlightPath, Ticket};
use crate::medium::{CellSpec, Character, Medium, Queue, WireSpec};
use crate::radio::{Heard, Hears, Radio, RadioSpec, Radios, Tuning};
use crate::sender::Sender;
use crate::{PortId, SignalCourse, reason};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::Rng;
use wire::{Cell, Duration, Instant, Mac, Reason, ethernet};

/// The receivers of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Landing {
    /// These ports receive the frame.
    At(Vec<PortId>),
    /// No port receives the frame, for this reason.
    Lost(Reason),
}

/// The state of a frame that a link has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// The frame is under way.
    Flies(Flight),
    /// The frame waits in the queue of its radio. [`Fabric::decide`] returns the result.
    Waits(Ticket),
}

/// The result of a change of cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// The radio is in the new cell.
    Here,
    /// The tuning is obsolete: the radio was tuned again, or lost its cell, after this tuning began.
    Elsewhere,
    /// The radio is in no cell: it does not hear the new cell.
    OutOfRange,
    /// The radio is in no cell: the new cell is full duplex, and is cut.
    NoCarrier,
}

/// What a radio with a [`SignalCourse`] hears at one instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The cells that the radio hears, with their strength in dBm, in the order of their numbers.
    pub heard: Vec<(Cell, i16)>,
    /// Whether the radio has lost its own cell with this sample.
    pub is_lost: bool,
    /// The cell in which the radio is from now on, if it has lost its own cell and receives data of all stations of its
    /// channel ([`crate::Hears::ChannelDataOfAll`]). Its host must be notified that the interface is up in this cell.
    pub moved_to: Option<Cell>,
}

/// All wires, cells and radios of a scenario.
///
/// The caller should number the ports from 0 on without gaps: the fabric reserves memory for each number up to the
/// largest port of a wire.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    wires: Vec<Option<WireEnd>>,
    pub(crate) cells: BTreeMap<Cell, Airspace>,
    pub(crate) channels: Vec<Channel>,
    /// The index of the channel of each sender in a full-duplex cell. Nothing else uses this channel.
    lanes: BTreeMap<(Cell, PortId), usize>,
    /// The channels that will be granted, by time.
    pub(crate) due: BTreeSet<(Instant, usize)>,
    /// Decisions that [`Fabric::decide`] has not returned yet.
    pub(crate) decided: Vec<Decision>,
    pub(crate) last_ticket: u64,
    /// The number of grants so far. The number orders the radios by their last grant.
    pub(crate) grants: u64,
    pub(crate) radios: Radios,
    /// The radios that receive more stations than that of their cell.
    pub(crate) overlapped: BTreeSet<PortId>,
    pub(crate) courses: BTreeMap<PortId, SignalCourse>,
    /// The radios of base stations, each with its cell.
    pub(crate) stations: BTreeMap<PortId, Cell>,
    pub(crate) cuts: Cuts,
    pub(crate) drains: Drains,
    /// The properties of wires, stored once for all wires of one kind. A million hosts may have wires of one kind.
    kinds: Vec<(WireSpec, [Arc<Character>; 2])>,
}

/// One end of a wire, and the direction that leads away from it.
#[derive(Clone, Debug)]
struct WireEnd {
    to: PortId,
    medium: Medium,
    queue: Queue,
}

/// The largest number of kinds of wires that are stored. A wire of a further kind does not share its properties.
const KINDS: usize = 64;

impl Fabric {
    /// Adds a wire between two ports. `rng` is the root of the wire's random numbers.
    pub fn add_wire(&mut self, ends: [PortId; 2], spec: &WireSpec, rng: &Rng) {
        let [a, b] = ends;
        let [there, back] = self.characters(spec);
        for (from, to, character) in [(a, b, there), (b, a, back)] {
            let medium = Medium::new(character, rng.fork(&format!("wire {}", from.0)));
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

    /// Frees memory that was reserved for more wires and radios.
    pub fn shrink_to_fit(&mut self) {
        self.wires.shrink_to_fit();
        self.radios.shrink_to_fit();
    }

    /// Adds a cell. `rng` is the root of the cell's random numbers. A cell with the same number is replaced.
    pub fn add_cell(&mut self, spec: &CellSpec, rng: &Rng) {
        let rng = rng.fork(&format!("cell {}", spec.cell.0));
        let channel = self.channel_of(spec, &rng);
        self.cells.insert(spec.cell, Airspace::new(spec, channel, rng));
    }

    /// Adds a radio at a port, in the cell that `spec` names. If `spec` names none, the radio must tune first.
    pub fn add_radio(&mut self, port: PortId, spec: RadioSpec) {
        self.stations.extend(spec.cell.map(|cell| (port, cell)));
        if spec.listening.hears != Hears::Cell {
            self.overlapped.insert(port);
        }
        self.radios.add(port, spec);
    }

    /// Adds the signal course of a radio. A radio without a course is in reach of every cell.
    pub fn add_course(&mut self, port: PortId, course: SignalCourse) {
        self.courses.insert(port, course);
    }

    pub(crate) fn has_course(&self, port: PortId) -> bool {
        self.courses.contains_key(&port)
    }

    /// Returns the radios that have a course, each with the instant of its first [`Fabric::sample`]. Further samples
    /// are due every [`crate::SAMPLING`].
    pub fn sampled(&self) -> impl Iterator<Item = (PortId, Instant)> {
        self.courses.iter().map(|(port, course)| (*port, course.first_sample()))
    }

    /// Takes a sample of a radio with a course. The radio hears all cells in reach if it is in no cell, if it scans
    /// now, or if it has no [`crate::Scan`]. Otherwise it hears only its own cell. A radio that no longer hears its own
    /// cell loses it, and must be tuned again. A radio that receives data of all stations of its channel moves to another
    /// cell of the channel instead, if it hears one.
    pub fn sample(&mut self, now: Instant, port: PortId) -> Sample {
        let mut heard = self.courses.get(&port).map(|course| course.heard(now)).unwrap_or_default();
        heard.retain(|(cell, _)| !self.cuts.hides(*cell, port));
        let own = self.radios.get(port).and_then(Radio::cell);
        let loses = own.is_some_and(|own| !heard.iter().any(|(cell, _)| *cell == own));
        let moved_to = if loses { self.move_on_channel(now, port) } else { None };
        let is_lost = loses && moved_to.is_none();
        if is_lost {
            self.drop_waiting(now, port);
            self.radios.lose(port);
        }
        if self.radios.get_mut(port).is_some_and(|radio| !radio.scans(now)) {
            heard.retain(|(cell, _)| Some(*cell) == own);
        }
        Sample { heard, is_lost, moved_to }
    }

    /// Offers a datagram for all receivers, as [`Fabric::offer_to`] does.
    pub fn offer(&mut self, now: Instant, port: PortId, bytes: usize) -> Result<Offer, Reason> {
        self.offer_to(now, port, Mac::BROADCAST, bytes)
    }

    /// Offers a datagram of `bytes` bytes, without the Ethernet header, to the link at `port`. `dst` is the destination
    /// link address. The error is the reason why the link loses the datagram at once.
    pub fn offer_to(&mut self, now: Instant, port: PortId, dst: Mac, bytes: usize) -> Result<Offer, Reason> {
        let wire = self.wires.get_mut(port.0 as usize).and_then(Option::as_mut);
        let Some(WireEnd { to, medium, queue }) = wire else {
            return self.offer_to_air(now, port, dst, bytes);
        };
        if self.cuts.is_cut(port) {
            return Err(reason::CUT);
        }
        medium.character.admits(now, queue, bytes)?;
        let taken = medium.occupy(now, bytes + ethernet::HEADER);
        queue.push(now, taken.1);
        fly(medium, port, self.cuts.way(port, *to), taken).map(Offer::Flies)
    }

    /// Returns whether the wire at this port is cut now, or the radio at this port is in no cell because of a cut.
    pub fn is_cut(&self, port: PortId) -> bool {
        self.cuts.is_cut(port) || self.cuts.has_lost(port)
    }

    pub(crate) fn medium_of(&mut self, port: PortId) -> Option<&mut Medium> {
        self.wires.get_mut(port.0 as usize)?.as_mut().map(|wire| &mut wire.medium)
    }

    /// Empties the queue at this end of a wire, because a cut has lost the frames.
    pub(crate) fn clear_wire(&mut self, now: Instant, port: PortId) {
        if let Some(wire) = self.wires.get_mut(port.0 as usize).and_then(Option::as_mut) {
            wire.medium.busy_until = now;
            wire.queue = Queue::default();
        }
    }

    fn offer_to_air(&mut self, now: Instant, port: PortId, dst: Mac, bytes: usize) -> Result<Offer, Reason> {
        let radio = self.radios.get(port).ok_or(reason::NO_CARRIER)?;
        let nowhere = if !radio.is_deaf() {
            reason::RETUNING
        } else if self.cuts.has_lost(port) {
            reason::CUT
        } else {
            reason::OUT_OF_RANGE
        };
        let (cell, ready) = (radio.cell().ok_or(nowhere)?, radio.back(now));
        self.want(now, Sender { port, visits: false }, cell, (dst, bytes), ready)
    }

    /// Sends one datagram of `bytes` bytes in another cell. If the radio must change its channel, it makes an
    /// excursion: it is away until the frame is sent, and at least for the time of the excursion. The frame can be sent
    /// after half of the time of the excursion. The error is the reason why the frame is lost at once. A full-duplex
    /// cell cannot be visited, because a cable has one end.
    pub fn visit(&mut self, now: Instant, port: PortId, cell: Cell, bytes: usize) -> Result<Offer, Reason> {
        let radio = self.radios.get(port).ok_or(reason::NO_CARRIER)?;
        if !self.cells.contains_key(&cell) {
            return Err(reason::NO_CARRIER);
        }
        if self.is_full_duplex(cell) || radio.cell().is_some_and(|own| self.is_full_duplex(own)) {
            return Err(reason::NO_CARRIER);
        }
        if self.cuts.hides(cell, port) {
            return Err(reason::CUT);
        }
        let excursion = self.excursion(radio, cell);
        let offer = self.want(
            now,
            Sender { port, visits: true },
            cell,
            (Mac::BROADCAST, bytes),
            now + excursion.saturating_sub(excursion / 2),
        );
        if let Some(radio) = self.radios.get_mut(port).filter(|_| !excursion.is_zero()) {
            // It is not known yet when the channel is granted to the frame, so the end of the excursion is open.
            let back = if offer.is_ok() { Instant::NEVER } else { now + excursion };
            radio.be_away(now, back);
        }
        offer
    }

    /// Returns the length of an excursion to a cell; zero if the radio need not be retuned.
    pub(crate) fn excursion(&self, radio: &Radio, cell: Cell) -> Duration {
        let stays = radio.cell().is_some_and(|own| self.share_air(own, cell));
        if stays { Duration::ZERO } else { radio.excursion() }
    }

    /// Sends a frame in a cell, at `ready` or later, or puts it into the queue of its sender.
    fn want(
        &mut self,
        now: Instant,
        sender: Sender,
        cell: Cell,
        (dst, bytes): (Mac, usize),
        ready: Instant,
    ) -> Result<Offer, Reason> {
        let place = self.lane(cell, sender.port).ok_or(reason::NO_CARRIER)?;
        let is_station = self.is_station_of(sender.port, cell);
        let own = self.cells.get(&cell).ok_or(reason::NO_CARRIER)?;
        let character = own.medium_from(is_station).character.clone();
        if bytes > usize::from(character.mtu) {
            return Err(reason::MTU);
        }
        let frame = Waiting {
            ticket: Ticket(self.last_ticket + 1),
            cell,
            dst,
            bytes: bytes + ethernet::HEADER,
            since: now,
            ready,
        };
        let is_base_station = is_station && !own.is_segment;
        let is_idle = self.channels.get(place).is_some_and(|channel| channel.is_idle(now));
        if is_idle && ready <= now && self.send_beacons(now, place) <= now {
            return self.send(now, sender, &frame).map(Offer::Flies);
        }
        let configured = self.radios.get(sender.port).and_then(|radio| radio.queue);
        let channel = self.channels.get_mut(place).ok_or(reason::NO_CARRIER)?;
        let limit = match configured {
            Some(most) => Limit::Frames(most as usize),
            None if is_base_station && channel.access == Access::Fair => {
                Limit::ForEachReceiver(character.queue)
            }
            None => Limit::Frames(character.queue),
        };
        channel.push(sender, frame, limit)?;
        let at = ready.max(channel.busy_until);
        self.last_ticket += 1;
        self.arm(place, at);
        Ok(Offer::Waits(frame.ticket))
    }

    /// Returns whether two cells are configured on one channel.
    pub(crate) fn share_air(&self, a: Cell, b: Cell) -> bool {
        let channel = |cell: Cell| self.cells.get(&cell).and_then(|of| of.air.channel);
        channel(a).is_some() && channel(a) == channel(b)
    }

    /// Returns the ports that receive a flight that lands now, or why no port does. `dst` is the destination link
    /// address of the frame.
    ///
    /// # Panics
    ///
    /// Panics if the flight cannot be one of this fabric: it ends before it begins, or its sender has no link of this
    /// kind.
    pub fn land(&self, flight: &Flight, dst: Mac) -> Landing {
        assert!(self.could_send(flight), "{flight:?} lands, but this fabric cannot have returned it");
        let (cell, visiting) = match flight.way {
            FlightPath::Wire(_) | FlightPath::Rejoined(..) if !self.is_whole(flight) => {
                return Landing::Lost(reason::CUT);
            }
            FlightPath::Wire(to) | FlightPath::Rejoined(to, _) => return Landing::At(vec![to]),
            FlightPath::Air(cell) => (cell, false),
            FlightPath::Visit(cell) => (cell, true),
        };
        let out = self.end_of_air(flight, cell);
        let stayed = |radio: &Radio| matches!(radio.heard(cell, flight.start, out), Heard::Yes | Heard::Away);
        let stayed = |radio: &Radio| stayed(radio) || self.stayed_on_channel(radio, flight, cell, out);
        if !visiting && !self.radios.get(flight.from).is_some_and(stayed) {
            let is_cut = self.cuts.hides(cell, flight.from);
            return Landing::Lost(if is_cut { reason::CUT } else { reason::SENDER_LEFT });
        }
        let mut lost = reason::RECEIVER_LEFT;
        let mut at = Vec::new();
        self.radios.each_in_reach(cell, dst, |port, radio| {
            if port == flight.from {
                return;
            }
            match self.receives(flight, cell, dst, (port, radio)) {
                Heard::Yes => at.push(port),
                Heard::Away => lost = reason::RECEIVER_AWAY,
                Heard::Elsewhere if self.cuts.hides(cell, port) => lost = reason::CUT,
                Heard::Elsewhere => {}
            }
        });
        self.extend_over_channel(flight, cell, dst, &mut at);
        if at.is_empty() { Landing::Lost(lost) } else { Landing::At(at) }
    }

    /// Returns whether a flight can be one that this fabric has returned.
    fn could_send(&self, flight: &Flight) -> bool {
        let wire = self.wires.get(flight.from.0 as usize).and_then(Option::as_ref);
        let has_link = match flight.far_end() {
            Some(to) => wire.is_some_and(|wire| wire.to == to),
            None => wire.is_none() && self.radios.get(flight.from).is_some(),
        };
        has_link && flight.start <= flight.lands && flight.copies > 0
    }

    /// Lets a radio leave its cell for another one. Returns `None` if the port has no radio, or if the cell does not
    /// exist or is a segment.
    /// Frames that wait at the radio are lost.
    pub(crate) fn leave_for(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        let radio = self.radios.get(port)?;
        let unplugs = radio.cell().is_some_and(|own| self.is_full_duplex(own));
        let same_channel = radio.cell().is_some_and(|own| self.share_air(own, cell));
        let listens = now + radio.retuning(same_channel);
        let to = self.cells.get(&cell).filter(|cell| !cell.is_segment)?;
        if same_channel && radio.hears() == Hears::ChannelDataOfAll {
            let ready = now + radio.association();
            self.cuts.forget(port);
            return self.radios.get_mut(port).map(|radio| radio.stay(ready, port, cell));
        }
        let ready = to.beacon_after(listens) + radio.association();
        self.drop_waiting(now, port);
        self.cuts.forget(port);
        self.radios.leave(ready, port, cell).map(|tuning| Tuning { unplugs, ..tuning })
    }

    /// Separates the duplicate of a frame if it arrives later than the frame. Returns the flight of the frame, and that of
    /// the duplicate. A duplicate in a cell is received as if its sender sent it later: it is lost if the sender has left the cell.
    /// One on a wire is lost if the wire was cut in the meantime. The caller calls this before it schedules a flight.
    pub fn split(&self, flight: Flight) -> (Flight, Option<Flight>) {
        if flight.copies < 2 {
            return (flight, None);
        }
        let delay = match flight.way {
            FlightPath::Wire(_) | FlightPath::Rejoined(..) => {
                let wire = self.wires.get(flight.from.0 as usize).and_then(Option::as_ref);
                wire.map(|wire| wire.medium.character.duplicate_delay())
            }
            FlightPath::Air(cell) | FlightPath::Visit(cell) => {
                self.cells.get(&cell).map(|own| own.medium.character.duplicate_delay())
            }
        };
        let Some(delay) = delay.filter(|delay| *delay > Duration::ZERO) else {
            return (flight, None);
        };
        let later = Flight {
            start: flight.start + delay,
            lands: flight.lands + delay,
            copies: flight.copies - 1,
            ..flight
        };
        (Flight { copies: 1, ..flight }, Some(later))
    }

    /// Completes a tuning. The caller calls the function at [`Tuning::ready`]. Returns whether the radio is now in the
    /// new cell; if it is not, the result shows why.
    pub fn arrive(&mut self, tuning: &Tuning) -> Arrived {
        let course = self.courses.get(&tuning.port);
        let in_range = course.is_none_or(|course| course.strength(tuning.cell, tuning.ready).is_some());
        if !self.radios.arrive(tuning) {
            return Arrived::Elsewhere;
        }
        let is_cut = self.cuts.hides(tuning.cell, tuning.port);
        if in_range && !is_cut {
            return Arrived::Here;
        }
        if is_cut {
            self.cuts.misses(tuning.port, tuning.cell);
        }
        self.radios.lose(tuning.port);
        if self.is_full_duplex(tuning.cell) { Arrived::NoCarrier } else { Arrived::OutOfRange }
    }

    /// Returns when the last bit of a frame leaves the sender's antenna.
    fn end_of_air(&self, flight: &Flight, cell: Cell) -> Instant {
        let delay = self.cells.get(&cell).map(|own| own.medium.character.delay).unwrap_or_default();
        flight.lands - delay
    }
}

/// Returns the flight of a frame that is sent from `start` to `out`, with a random number of copies. The error is the
/// reason why the frame is lost.
pub(crate) fn fly(
    medium: &mut Medium,
    from: PortId,
    way: FlightPath,
    (start, out): (Instant, Instant),
) -> Result<Flight, Reason> {
    assert!(start <= out, "a frame ends before it begins: it begins at {start} s and ends at {out} s");
    let copies = medium.luck()?;
    Ok(Flight { from, start, lands: out + medium.character.delay, copies, way })
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
pub(crate) mod tests;
