//! The channels of senders: one for all senders of a half-duplex cell, and one for each sender of a full-duplex cell.

use crate::air::Access;
use crate::cell::Airspace;
use crate::channel::Channel;
use crate::{Fabric, PortId};
use wire::Cell;

impl Fabric {
    /// Returns whether each sender of a cell has a separate medium. False if there is no such cell.
    pub(crate) fn is_full_duplex(&self, cell: Cell) -> bool {
        self.cells.get(&cell).is_some_and(Airspace::is_full_duplex)
    }

    /// Returns whether a port is the base station of this cell.
    pub(crate) fn is_station_of(&self, port: PortId, cell: Cell) -> bool {
        self.stations.get(&port) == Some(&cell)
    }

    /// Returns the index of the channel on which a radio sends in a cell. Each sender of a full-duplex cell has a
    /// separate channel, and all senders of another cell share one. Returns `None` if there is no such cell, or if the
    /// radio has not sent in a full-duplex cell yet.
    pub(crate) fn channel_for(&self, cell: Cell, port: PortId) -> Option<usize> {
        let own = self.cells.get(&cell)?;
        if own.is_full_duplex() { self.lanes.get(&(cell, port)).copied() } else { Some(own.channel) }
    }

    /// Returns the index that [`Self::channel_for`] returns, and adds the channel of a sender in a full-duplex cell if
    /// it is missing. Returns `None` if there is no such cell.
    pub(crate) fn lane(&mut self, cell: Cell, port: PortId) -> Option<usize> {
        if let Some(place) = self.channel_for(cell, port) {
            return Some(place);
        }
        let rng = self.cells.get(&cell)?.medium.rng.fork(&format!("lane {}", port.0));
        self.channels.push(Channel::new(Access::Fair, rng));
        self.lanes.insert((cell, port), self.channels.len() - 1);
        self.lanes.get(&(cell, port)).copied()
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
