//! Radios: the cell of each radio, and the instant from which the radio is in this cell.

use crate::PortId;
use std::collections::BTreeSet;
use wire::{Cell, Duration, Instant, Mac, nanos_of};

/// The parameters of a radio.
#[derive(Clone, Copy, Debug)]
pub struct RadioSpec {
    /// The link address of the radio.
    pub mac: Mac,
    /// The cell in which the radio is from the start, as the radio of a base station. `None`: the radio must tune
    /// first.
    pub cell: Option<Cell>,
    /// The time in which the radio receives nothing when it tunes to a cell; zero between two cells on one channel.
    pub retune: Duration,
    /// The time in which the radio receives nothing when it tunes to its first cell after it is switched on.
    pub attach: Duration,
    /// The time in which the radio receives nothing when it visits a cell on another channel to send one packet.
    pub excursion: Duration,
    /// How the radio enters and leaves a cell, and how it finds other cells.
    pub listening: Listening,
    /// The number of frames that may wait at the radio. `None`: the limit of its cell ([`crate::CellSpec::queue`]). With
    /// [`crate::Access::Fair`], the limit of the cell applies at a base station to the frames for each receiver, as in the
    /// access points of today: a burst to many hosts does not fill the queue of one.
    pub queue: Option<u32>,
}

/// How a radio enters and leaves a cell, and how it finds other cells. By default, the radio enters and leaves at once,
/// and always hears all cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Listening {
    /// The time to associate after the radio hears the cell.
    pub association: Duration,
    /// The excursions on which the radio hears other cells. `None`: the radio always hears other cells.
    pub scan: Option<Scan>,
    /// The longest time for which the radio stays in its cell to send waiting frames before it leaves.
    pub drain: Duration,
    /// The base stations whose frames the radio receives.
    pub hears: Hears,
}

/// The base stations whose frames a radio receives. A frame of the radio reaches the addressed one of these stations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hears {
    /// That of the radio's own cell.
    #[default]
    Cell,
    /// All stations in reach whose cell has the same [`crate::Air::channel`] as the radio's own cell. Frames to this
    /// radio alone are received from the own station only.
    ChannelDataOfOne,
    /// All stations in reach whose cell has the same [`crate::Air::channel`] as the radio's own cell. The radio changes
    /// between these cells without an interruption, and loses its link when none of them is in reach.
    ChannelDataOfAll,
}

/// Excursions to listen on other channels: the radio leaves its channel and comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scan {
    /// The time between the begins of two excursions.
    pub every: Duration,
    /// The duration of one excursion.
    pub away: Duration,
}

/// A change of cells in progress. The caller passes it to [`crate::Fabric::arrive`] at the instant `ready`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuning {
    /// The port of the radio.
    pub port: PortId,
    /// The new cell.
    pub cell: Cell,
    /// The instant from which the radio is in the new cell. Before this instant, the radio has received a beacon (if
    /// the cell has beacons), and has associated.
    pub ready: Instant,
    /// Whether the radio has left a full-duplex cell. Then the caller notifies its host that the link is down, because
    /// a cable was unplugged.
    pub unplugs: bool,
    /// Whether the radio stays in its present cell until it arrives in the new one.
    pub(crate) stays: bool,
    pub(crate) turn: u32,
}

impl Tuning {
    /// Returns the number of times that the radio was tuned or lost its cell, up to and including this tuning. The
    /// number serves only to compare runs.
    pub const fn turn(&self) -> u32 {
        self.turn
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Radio {
    retune: Span,
    attach: Span,
    excursion: Span,
    /// The cell of the radio, and the instant from which the radio is in this cell. `None` before the radio is first
    /// tuned, while it changes cells, and while it is out of range.
    at: Option<(Cell, Instant)>,
    /// Whether the radio has lost its cell, or did not hear the cell to which it tuned, and was not tuned since then.
    deaf: bool,
    turn: u32,
    /// The number of frames that may wait at the radio. `None`: the limit of its cell.
    pub(crate) queue: Option<u32>,
    /// The number of the last grant to this radio. Grants are numbered over all channels, from 1; 0 means no grant yet.
    pub(crate) served: u64,
    /// `None` for most radios: they have not visited another cell, do not scan or drain, and associate at once.
    elsewhere: Option<Box<Elsewhere>>,
}

/// A duration in 8 bytes, half the size of a [`Duration`].
#[derive(Clone, Copy, Debug)]
struct Span(u64);

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(nanos_of(span))
    }
}

impl From<Span> for Duration {
    fn from(Span(nanos): Span) -> Self {
        Self::from_nanos(nanos)
    }
}

/// The state of a radio that visits other cells, scans, drains, or has to associate.
#[derive(Clone, Default, Debug)]
struct Elsewhere {
    listening: Listening,
    /// The last interval in which the radio was on another channel, to send or to listen.
    away: Option<(Instant, Instant)>,
    /// When the radio next listens on another channel.
    next_scan: Instant,
    /// When the last frame of the radio lands.
    landed: Instant,
}

/// All radios, indexed by port, by link address, and by cell.
#[derive(Clone, Default, Debug)]
pub(crate) struct Radios {
    /// The radios in one vector, sorted by port. There may be a million radios.
    by_port: Vec<(PortId, Radio)>,
    by_mac: BTreeSet<(Mac, PortId)>,
    /// The radios in each cell. A radio that changes cells is in none.
    present: BTreeSet<(Cell, PortId)>,
}

impl Radios {
    pub(crate) fn add(&mut self, port: PortId, spec: RadioSpec) {
        self.by_mac.insert((spec.mac, port));
        self.present.extend(spec.cell.map(|cell| (cell, port)));
        let radio = (port, Radio::new(spec));
        match self.place(port) {
            Ok(place) => self.by_port[place] = radio,
            Err(place) => self.by_port.insert(place, radio),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.by_port.shrink_to_fit();
    }

    fn place(&self, port: PortId) -> Result<usize, usize> {
        self.by_port.binary_search_by_key(&port, |(port, _)| *port)
    }

    pub(crate) fn get(&self, port: PortId) -> Option<&Radio> {
        self.by_port.get(self.place(port).ok()?).map(|(_, radio)| radio)
    }

    /// Returns a radio, for changes of other properties than its cell. [`Self::change`] changes the cell.
    pub(crate) fn get_mut(&mut self, port: PortId) -> Option<&mut Radio> {
        let place = self.place(port).ok()?;
        self.by_port.get_mut(place).map(|(_, radio)| radio)
    }

    /// Calls `each` for the radios to which a frame with the destination `dst` is addressed, in the order of their
    /// ports. If `dst` is a group address, these are all radios in `cell`. If `dst` is a unicast address, these are the
    /// radios with this link address, in any cell.
    pub(crate) fn each_in_reach(&self, cell: Cell, dst: Mac, mut each: impl FnMut(PortId, &Radio)) {
        let mut tell = |port: PortId| {
            if let Some(radio) = self.get(port) {
                each(port, radio);
            }
        };
        if dst.is_group() {
            self.in_cell(cell).for_each(tell);
        } else {
            let (first, last) = (PortId(0), PortId(u32::MAX));
            self.by_mac.range((dst, first)..=(dst, last)).for_each(|(_, port)| tell(*port));
        }
    }

    /// Returns the radios in a cell, in the order of their ports.
    pub(crate) fn in_cell(&self, cell: Cell) -> impl Iterator<Item = PortId> {
        self.present.range((cell, PortId(0))..=(cell, PortId(u32::MAX))).map(|(_, port)| *port)
    }

    /// Lets a radio leave its cell. From `ready` on, the radio is in the cell `cell`. Returns `None` if the port has no
    /// radio.
    pub(crate) fn leave(&mut self, ready: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        self.change(port, |radio| radio.leave(ready, port, cell))
    }

    /// Notes that a radio does not hear its cell. The radio is in no cell from now on.
    pub(crate) fn lose(&mut self, port: PortId) {
        self.change(port, Radio::lose);
    }

    /// Moves a radio to another cell of its channel, without an interruption.
    pub(crate) fn move_within_channel(&mut self, port: PortId, cell: Cell) {
        self.change(port, |radio| radio.at = radio.at.map(|(_, since)| (cell, since)));
    }

    /// Puts a radio into a cell without tuning, for example the radio of a base station that is switched on again.
    pub(crate) fn settle(&mut self, now: Instant, port: PortId, cell: Cell) {
        self.change(port, |radio| (radio.at, radio.deaf) = (Some((cell, now)), false));
    }

    /// Returns all radios, in the order of their ports.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortId> {
        self.by_port.iter().map(|(port, _)| *port)
    }

    /// Completes a tuning. Returns false if the radio was tuned again or lost its cell in the meantime.
    pub(crate) fn arrive(&mut self, tuning: &Tuning) -> bool {
        self.change(tuning.port, |radio| radio.arrive(tuning)).unwrap_or(false)
    }

    fn change<T>(&mut self, port: PortId, change: impl FnOnce(&mut Radio) -> T) -> Option<T> {
        let place = self.place(port).ok()?;
        let (_, radio) = self.by_port.get_mut(place)?;
        if let Some(cell) = radio.cell() {
            self.present.remove(&(cell, port));
        }
        let done = change(radio);
        self.present.extend(radio.cell().map(|cell| (cell, port)));
        Some(done)
    }
}

/// Whether a radio could hear a frame. If not, it was away on an excursion, or in another cell or none.
pub(crate) enum Heard {
    Yes,
    Away,
    Elsewhere,
}

impl Radio {
    fn new(spec: RadioSpec) -> Self {
        let RadioSpec { mac: _, cell, retune, attach, excursion, listening, queue } = spec;
        let at = cell.map(|cell| (cell, Instant::ZERO));
        let elsewhere = (listening != Listening::default())
            .then(|| Box::new(Elsewhere { listening, ..Elsewhere::default() }));
        let [retune, attach, excursion] = [retune, attach, excursion].map(Span::from);
        Self { retune, attach, excursion, at, deaf: false, turn: 0, queue, served: 0, elsewhere }
    }

    pub(crate) fn cell(&self) -> Option<Cell> {
        self.at.map(|(cell, _)| cell)
    }

    /// Returns the time in which the radio receives nothing when it changes cells. The time is zero if the old and the
    /// new cell have the same channel.
    pub(crate) fn retuning(&self, same_channel: bool) -> Duration {
        match self.at {
            None if self.turn == 0 => self.attach.into(),
            Some(_) if same_channel => Duration::ZERO,
            _ => self.retune.into(),
        }
    }

    /// Returns the time in which the radio receives nothing when it visits another cell.
    pub(crate) fn excursion(&self) -> Duration {
        self.excursion.into()
    }

    /// Returns the time to associate after the radio hears a cell.
    pub(crate) fn association(&self) -> Duration {
        self.elsewhere.as_ref().map(|elsewhere| elsewhere.listening.association).unwrap_or_default()
    }

    /// Returns the longest time for which the radio stays in its cell to send waiting frames.
    pub(crate) fn drain(&self) -> Duration {
        self.elsewhere.as_ref().map(|elsewhere| elsewhere.listening.drain).unwrap_or_default()
    }

    /// Notes that the radio sends a frame that lands at `lands`.
    pub(crate) fn sends(&mut self, lands: Instant) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.landed = lands;
        }
    }

    /// Returns when the radio's last frame lands, or [`Instant::ZERO`] for a radio without [`Elsewhere`]. Each radio
    /// that drains has [`Elsewhere`].
    pub(crate) fn landed(&self) -> Instant {
        self.elsewhere.as_ref().map_or(Instant::ZERO, |elsewhere| elsewhere.landed)
    }

    fn leave(&mut self, ready: Instant, port: PortId, cell: Cell) -> Tuning {
        self.go(false);
        Tuning { port, cell, ready, unplugs: false, stays: false, turn: self.turn }
    }

    /// Begins a change to another cell of the channel, during which the radio receives as before.
    pub(crate) fn stay(&mut self, ready: Instant, port: PortId, cell: Cell) -> Tuning {
        self.turn += 1;
        Tuning { port, cell, ready, unplugs: false, stays: true, turn: self.turn }
    }

    fn lose(&mut self) {
        self.go(true);
    }

    /// Removes the radio from its cell.
    fn go(&mut self, deaf: bool) {
        (self.at, self.deaf) = (None, deaf);
        self.turn += 1;
    }

    pub(crate) const fn is_deaf(&self) -> bool {
        self.deaf
    }

    fn arrive(&mut self, tuning: &Tuning) -> bool {
        match self.at {
            _ if tuning.turn != self.turn => return false,
            Some((_, since)) if tuning.stays => self.at = Some((tuning.cell, since)),
            None if !tuning.stays => self.at = Some((tuning.cell, tuning.ready)),
            _ => return false,
        }
        true
    }

    /// Returns the base stations whose frames the radio receives.
    pub(crate) fn hears(&self) -> Hears {
        self.elsewhere.as_ref().map(|elsewhere| elsewhere.listening.hears).unwrap_or_default()
    }

    /// Starts an excursion to listen, if one is due. Returns whether the radio hears other cells now. A radio in no
    /// cell, or without [`Scan`], always hears other cells.
    pub(crate) fn scans(&mut self, now: Instant) -> bool {
        let Some(elsewhere) = self.elsewhere.as_mut().filter(|_| self.at.is_some()) else { return true };
        let Some(Scan { every, away }) = elsewhere.listening.scan else { return true };
        let due = elsewhere.next_scan <= now;
        if due {
            elsewhere.next_scan = now + every;
            elsewhere.away = Some((now, now + away));
        }
        due
    }

    /// Returns when the radio can send in its own cell: `now`, or the end of an excursion.
    pub(crate) fn back(&self, now: Instant) -> Instant {
        let away = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.away);
        away.filter(|(from, to)| *from <= now && now < *to).map_or(now, |(_, to)| to)
    }

    pub(crate) fn be_away(&mut self, from: Instant, to: Instant) {
        self.elsewhere.get_or_insert_default().away = Some((from, to));
    }

    /// Returns whether the radio was in `cell` from `start` to `end`, and was not away on an excursion. A radio that
    /// receives data of all stations of a channel was in its present cell since it came to this channel.
    pub(crate) fn heard(&self, cell: Cell, start: Instant, end: Instant) -> Heard {
        match self.at {
            Some((here, since)) if here == cell && since <= start => {
                let away = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.away);
                let away = away.is_some_and(|(from, to)| from < end && to > start);
                if away { Heard::Away } else { Heard::Yes }
            }
            _ => Heard::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest size of a radio in bytes. A million hosts have a radio each, so the state that few radios need is
    /// behind a pointer.
    const MOST: usize = 88;

    #[test]
    fn a_radio_stays_small() {
        println!(
            "{} bytes for a radio, {} more for one that scans",
            size_of::<Radio>(),
            size_of::<Elsewhere>()
        );
        assert!(size_of::<Radio>() <= MOST, "{} bytes, {MOST} are its budget", size_of::<Radio>());
    }
}
