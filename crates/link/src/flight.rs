//! Frames under way.

use crate::PortId;
use wire::{Cell, Instant};

/// The path and the times of a frame that is under way on a link: plain data, which the caller keeps with the frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flight {
    /// The port of the sender.
    pub from: PortId,
    /// When the first bit is sent.
    pub start: Instant,
    /// When the last bit arrives. The caller then calls [`crate::Fabric::land`].
    pub lands: Instant,
    /// The number of copies that arrive: 1, or 2 if the link duplicates the frame. [`crate::Fabric::split`] separates a
    /// duplicate that arrives later.
    pub copies: u8,
    pub(crate) way: FlightPath,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FlightPath {
    Wire(PortId),
    Air(Cell),
    /// The path leads through the air of a cell that the sender only visits.
    Visit(Cell),
    /// The path leads through a wire to this port. The wire was cut and restored this number of times before.
    Rejoined(PortId, u32),
}

impl Flight {
    /// Returns three numbers that identify the path of the flight: the kind of the path, the number of the port or
    /// cell, and the number of cuts of the wire before the flight. The numbers serve only to compare runs.
    pub const fn way(&self) -> (u8, u32, u32) {
        match self.way {
            FlightPath::Wire(to) => (0, to.0, 0),
            FlightPath::Air(cell) => (1, cell.0 as u32, 0),
            FlightPath::Visit(cell) => (2, cell.0 as u32, 0),
            FlightPath::Rejoined(to, cuts) => (3, to.0, cuts),
        }
    }

    /// Returns the port at the far end of a flight through a wire. The flight arrives at this port unless the wire is
    /// cut in the meantime ([`crate::Fabric::is_whole`]). Returns `None` for a flight through the air.
    pub const fn far_end(&self) -> Option<PortId> {
        match self.way {
            FlightPath::Wire(to) | FlightPath::Rejoined(to, _) => Some(to),
            FlightPath::Air(_) | FlightPath::Visit(_) => None,
        }
    }
}

/// The number of a frame that waits for its channel. Only frames that wait are numbered, in the order of their offers,
/// from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);
