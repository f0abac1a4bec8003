//! Changes of a link during a run: cut, restore, loss, MTU.
//!
//! The caller decides when a change happens. The fabric returns the consequences for the interfaces of the link, and
//! the caller notifies the hosts.

use crate::flight::FlightPath;
use crate::medium::Medium;
use crate::{Fabric, Flight, PortId, Tuning};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Cell, Instant};

/// The link that a change applies to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChangedLink {
    /// The wire between two ports, in both directions.
    Wire([PortId; 2]),
    /// A cell, for every radio in it: its base station is switched off or on.
    Cell(Cell),
    /// A cell, for one radio only: the radio and the others in the cell do not hear each other. A change of loss or MTU
    /// applies to the whole cell.
    Radio(Cell, PortId),
}

/// What changes at a link: whether it carries frames, or one of its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// The link carries nothing. Frames in flight on it are lost.
    Cut,
    /// The link carries frames that are offered from now on.
    Restore,
    /// A frame is lost with this probability (0 to 1) from now on. With bursts, it is the probability between bursts.
    Loss(f64),
    /// The largest datagram that the link accepts from now on, in bytes.
    Mtu(u16),
}

/// What a change of a link means for an interface, and what the caller must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consequence {
    /// The host of this port must be notified that the interface has this state from now on.
    At(PortId, InterfaceState),
    /// The radio returns to the cell that it lost. The caller passes the tuning to [`Fabric::arrive`] when the tuning
    /// is ready.
    Returns(Tuning),
}

/// The new state of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterfaceState {
    /// The interface carries no packets: its wire is cut, the base station is switched off, or the port of a
    /// full-duplex cell is.
    Down,
    /// The interface carries packets again. The interface is an end of a wire, or the radio of a base station.
    Up,
    /// The radio no longer hears its cell.
    OutOfRange,
    /// The radio no longer hears its cell, and is in this other cell of its channel from now on, without an interruption.
    In(Cell),
    /// The largest datagram of the link has this number of bytes from now on.
    Mtu(u16),
}

/// The links that are cut. Most runs cut none.
#[derive(Clone, Default, Debug)]
pub(crate) struct Cuts {
    /// Ends of wires that were cut at least once.
    wires: BTreeMap<PortId, CutWire>,
    cells: BTreeSet<Cell>,
    radios: BTreeSet<(Cell, PortId)>,
    /// When a cell was last restored, for all radios or for one.
    restored: BTreeMap<(Cell, Option<PortId>), Instant>,
    /// The lost cell of each radio that lost its cell by a cut, or arrived in a cell that is cut. When the cut ends,
    /// the radio returns to the cell without a request of its host, unless the radio has a course.
    lost: BTreeMap<PortId, Cell>,
}

#[derive(Clone, Copy, Default, Debug)]
struct CutWire {
    is_cut: bool,
    /// The number of times that the wire was cut.
    times: u32,
}

impl Cuts {
    /// Returns whether the wire at this port is cut.
    pub(crate) fn is_cut(&self, port: PortId) -> bool {
        !self.wires.is_empty() && self.wires.get(&port).is_some_and(|wire| wire.is_cut)
    }

    /// Returns the path of a frame from port `from` through the wire to port `to`.
    pub(crate) fn way(&self, from: PortId, to: PortId) -> FlightPath {
        match self.wires.get(&from) {
            None => FlightPath::Wire(to),
            Some(wire) => FlightPath::Rejoined(to, wire.times),
        }
    }

    /// Returns whether a cut separates a radio from a cell, so that neither hears the other.
    pub(crate) fn hides(&self, cell: Cell, port: PortId) -> bool {
        self.cells.contains(&cell) || self.radios.contains(&(cell, port))
    }

    /// Returns whether a cut separated a radio from a cell at `since` or later.
    pub(crate) fn has_hidden(&self, cell: Cell, port: PortId, since: Instant) -> bool {
        let ends = [None, Some(port)].into_iter().filter_map(|port| self.restored.get(&(cell, port)));
        self.hides(cell, port) || ends.into_iter().any(|end| *end > since)
    }

    /// Returns whether the radio lost its cell by a cut, or arrived in a cell that is cut, and was not tuned since.
    pub(crate) fn has_lost(&self, port: PortId) -> bool {
        self.lost.contains_key(&port)
    }

    /// Removes the lost cell of a radio. The caller is about to tune the radio.
    pub(crate) fn forget(&mut self, port: PortId) {
        self.lost.remove(&port);
    }

    /// Notes that a radio arrived in a cell that is cut.
    pub(crate) fn misses(&mut self, port: PortId, cell: Cell) {
        self.lost.insert(port, cell);
    }
}

impl Fabric {
    /// Returns whether a flight can still arrive. A flight through a wire cannot arrive if the wire was cut after the
    /// frame was offered. For a flight through the air, the result is always true.
    pub fn is_whole(&self, flight: &Flight) -> bool {
        let cuts = &self.cuts.wires;
        let times = match flight.way {
            FlightPath::Wire(_) => 0,
            FlightPath::Rejoined(_, times) => times,
            FlightPath::Air(_) | FlightPath::Visit(_) => return true,
        };
        cuts.is_empty() || cuts.get(&flight.from).is_none_or(|wire| !wire.is_cut && wire.times == times)
    }

    /// Changes a link, and returns the consequences. The list is empty if no interface is concerned, for example if the
    /// link is cut already.
    pub fn change(&mut self, now: Instant, place: ChangedLink, change: Change) -> Vec<Consequence> {
        match (place, change) {
            (ChangedLink::Wire(ends), Change::Cut) => self.cut_wire(now, ends),
            (ChangedLink::Wire(ends), Change::Restore) => self.restore_wire(ends),
            (ChangedLink::Cell(cell), Change::Cut) => {
                if !self.cuts.cells.insert(cell) {
                    return Vec::new();
                }
                let inside: Vec<PortId> = self.radios.in_cell(cell).collect();
                inside.into_iter().map(|port| self.lose(now, cell, port)).collect()
            }
            (ChangedLink::Radio(cell, port), Change::Cut) => {
                let is_inside = self.radios.get(port).is_some_and(|radio| radio.cell() == Some(cell));
                let is_new = self.cuts.radios.insert((cell, port));
                let follows = (is_new && is_inside).then(|| self.lose(now, cell, port));
                follows.into_iter().collect()
            }
            (ChangedLink::Cell(cell), Change::Restore) => {
                self.cuts.cells.remove(&cell);
                self.cuts.restored.insert((cell, None), now);
                self.return_to(now, cell)
            }
            (ChangedLink::Radio(cell, port), Change::Restore) => {
                self.cuts.radios.remove(&(cell, port));
                self.cuts.restored.insert((cell, Some(port)), now);
                self.return_to(now, cell)
            }
            (place, Change::Loss(loss)) => {
                self.each_medium(place, |medium| medium.set_loss(loss));
                Vec::new()
            }
            (place, Change::Mtu(mtu)) => {
                self.each_medium(place, |medium| medium.set_mtu(mtu));
                self.narrowed(place, mtu)
            }
        }
    }

    fn cut_wire(&mut self, now: Instant, ends: [PortId; 2]) -> Vec<Consequence> {
        let mut follows = Vec::new();
        for port in ends {
            let wire = self.cuts.wires.entry(port).or_default();
            if !std::mem::replace(&mut wire.is_cut, true) {
                wire.times += 1;
                follows.push(Consequence::At(port, InterfaceState::Down));
            }
            self.clear_wire(now, port);
        }
        follows
    }

    fn restore_wire(&mut self, ends: [PortId; 2]) -> Vec<Consequence> {
        let mut follows = Vec::new();
        for port in ends {
            let wire = self.cuts.wires.get_mut(&port).filter(|wire| wire.is_cut);
            if let Some(wire) = wire {
                wire.is_cut = false;
                follows.push(Consequence::At(port, InterfaceState::Up));
            }
        }
        follows
    }

    /// Removes a radio from the cell that it is in, because of a cut. Returns the consequence for the radio. It may be in
    /// another cell of its channel from now on.
    fn lose(&mut self, now: Instant, cell: Cell, port: PortId) -> Consequence {
        if let Some(next) = self.move_on_channel(now, port) {
            return Consequence::At(port, InterfaceState::In(next));
        }
        self.drop_waiting(now, port);
        self.radios.lose(port);
        self.cuts.lost.insert(port, cell);
        let has_carrier = !self.is_station(port) && !self.is_full_duplex(cell);
        let state = if has_carrier { InterfaceState::OutOfRange } else { InterfaceState::Down };
        Consequence::At(port, state)
    }

    /// Lets the base station and the radios return to a cell that they lost, after a cut has ended. A radio stays
    /// outside if another cut hides the cell from it. A radio with a course does not return: it hears the cell in its
    /// next sample, and its host decides whether to tune to the cell.
    fn return_to(&mut self, now: Instant, cell: Cell) -> Vec<Consequence> {
        let lost = self.cuts.lost.iter().filter(|(_, of)| **of == cell).map(|(port, _)| *port);
        let lost: Vec<PortId> = lost.filter(|port| !self.cuts.hides(cell, *port)).collect();
        let mut follows = Vec::new();
        for port in lost {
            self.cuts.lost.remove(&port);
            if self.is_station(port) {
                self.radios.settle(now, port, cell);
                follows.push(Consequence::At(port, InterfaceState::Up));
            } else if !self.has_course(port) {
                follows.extend(self.leave_for(now, port, cell).map(Consequence::Returns));
            }
        }
        follows
    }

    fn each_medium(&mut self, place: ChangedLink, change: impl Fn(&mut Medium)) {
        match place {
            ChangedLink::Wire(ends) => {
                for port in ends {
                    self.medium_of(port).into_iter().for_each(&change);
                }
            }
            ChangedLink::Cell(cell) | ChangedLink::Radio(cell, _) => {
                self.cells.get_mut(&cell).into_iter().for_each(|own| own.each_medium(&change));
            }
        }
    }

    /// Returns the consequences of a new MTU. The radio of a base station has the MTU of its cell. A mobile radio has
    /// the smallest MTU of all cells. A segment has no mobile radio.
    fn narrowed(&self, place: ChangedLink, mtu: u16) -> Vec<Consequence> {
        match place {
            ChangedLink::Wire(ends) => {
                ends.map(|port| Consequence::At(port, InterfaceState::Mtu(mtu))).to_vec()
            }
            ChangedLink::Cell(cell) | ChangedLink::Radio(cell, _) => {
                let radio = self.cells.values().filter(|own| !own.is_segment);
                let least = radio.map(|own| own.medium.character.mtu).min().unwrap_or(mtu);
                let is_segment = self.cells.get(&cell).is_some_and(|own| own.is_segment);
                let stations = self.stations.iter().filter(|(_, of)| **of == cell);
                let stations = stations.map(|(port, _)| Consequence::At(*port, InterfaceState::Mtu(mtu)));
                let moving = self.radios.ports().filter(|port| !is_segment && !self.is_station(*port));
                stations.chain(moving.map(|port| Consequence::At(port, InterfaceState::Mtu(least)))).collect()
            }
        }
    }

    pub(crate) fn is_station(&self, port: PortId) -> bool {
        self.stations.contains_key(&port)
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
