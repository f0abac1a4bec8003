//! Overlap: radios that receive several base stations of their channel at the same time ([`Hears`]).

use crate::radio::{Heard, Hears, Radio};
use crate::{Fabric, Flight, PortId};
use wire::{Cell, Instant, Mac};

impl Fabric {
    /// Returns whether a radio was in reach of a cell from `start` to `end`: no cut separated them, and the radio's
    /// course had the cell at both instants. A radio without a course is in reach of every cell.
    fn was_in_reach(&self, port: PortId, cell: Cell, start: Instant, end: Instant) -> bool {
        let course = self.courses.get(&port);
        let is_heard = |at| course.is_none_or(|course| course.strength(cell, at).is_some());
        !self.cuts.has_hidden(cell, port, start) && is_heard(start) && is_heard(end)
    }

    /// Returns whether a radio receives a frame that was sent in `cell`. A mobile radio and a station of the same channel
    /// hear each other if the mobile radio hears its whole channel, and is in reach of the station's cell.
    pub(crate) fn receives(
        &self,
        flight: &Flight,
        cell: Cell,
        dst: Mac,
        (port, radio): (PortId, &Radio),
    ) -> Heard {
        let (start, end) = (flight.start, flight.lands);
        let is_overlapped = |port: PortId| self.overlapped.contains(&port);
        if !is_overlapped(port) && !is_overlapped(flight.from) {
            return radio.heard(cell, start, end);
        }
        let Some(own) = radio.cell().filter(|own| *own == cell || self.share_air(*own, cell)) else {
            return Heard::Elsewhere;
        };
        let is_reached = match (self.is_station(port), self.is_station(flight.from)) {
            (true, false) if is_overlapped(flight.from) => self.was_in_reach(flight.from, own, start, end),
            (false, true) if is_overlapped(port) => {
                let is_taken = own == cell || dst.is_group() || radio.hears() == Hears::ChannelDataOfAll;
                is_taken && self.was_in_reach(port, cell, start, end)
            }
            _ => own == cell,
        };
        if is_reached { radio.heard(own, start, end) } else { Heard::Elsewhere }
    }

    /// Adds the radios in other cells of the channel that receive a frame to a group, and restores the order of ports.
    pub(crate) fn extend_over_channel(&self, flight: &Flight, cell: Cell, dst: Mac, at: &mut Vec<PortId>) {
        if self.overlapped.is_empty() || !dst.is_group() {
            return;
        }
        let channel = self.cells.get(&cell).and_then(|own| self.channels.get(own.channel));
        let others = channel.into_iter().flat_map(|channel| &channel.cells).filter(|other| **other != cell);
        let known = at.len();
        for port in others.flat_map(|other| self.radios.in_cell(*other)).filter(|port| *port != flight.from) {
            let radio = self.radios.get(port);
            if radio
                .is_some_and(|radio| matches!(self.receives(flight, cell, dst, (port, radio)), Heard::Yes))
            {
                at.push(port);
            }
        }
        if at.len() > known {
            at.sort_unstable();
        }
    }

    /// Returns whether a sender that receives data of all stations of its channel stayed on this channel while it sent.
    pub(crate) fn stayed_on_channel(&self, radio: &Radio, flight: &Flight, cell: Cell, out: Instant) -> bool {
        let own = radio.cell().filter(|own| self.share_air(*own, cell));
        own.filter(|_| radio.hears() == Hears::ChannelDataOfAll)
            .is_some_and(|own| matches!(radio.heard(own, flight.start, out), Heard::Yes | Heard::Away))
    }

    /// Moves a radio that is about to lose its cell to the strongest other cell of its channel that it hears. Returns the
    /// cell; `None` if there is none, or if the radio does not receive data of all stations of the channel.
    pub(crate) fn move_on_channel(&mut self, now: Instant, port: PortId) -> Option<Cell> {
        let next = self.other_of_channel(now, port)?;
        self.radios.move_within_channel(port, next);
        Some(next)
    }

    fn other_of_channel(&self, now: Instant, port: PortId) -> Option<Cell> {
        let radio = self.radios.get(port).filter(|radio| radio.hears() == Hears::ChannelDataOfAll)?;
        let own = radio.cell()?;
        let course = self.courses.get(&port);
        let strength = |cell: Cell| course.map_or(Some(0), |course| course.strength(cell, now));
        let others = self.cells.keys().copied().filter(|cell| *cell != own && self.share_air(own, *cell));
        let heard = others.filter(|cell| !self.cuts.hides(*cell, port));
        // Of two equally strong cells, the one with the lower number is chosen.
        heard
            .filter_map(|cell| Some((strength(cell)?, std::cmp::Reverse(cell))))
            .max()
            .map(|(_, cell)| cell.0)
    }
}

#[cfg(test)]
#[path = "overlap_tests.rs"]
mod tests;
