//! Where a radio is, and since when.

use crate::PortId;
use std::collections::BTreeSet;
use wire::{Cell, Duration, Instant, Mac, nanos_of};

/// A radio.
#[derive(Clone, Copy, Debug)]
pub struct RadioSpec {
    /// Its link address.
    pub mac: Mac,
    /// The cell it is in from the start, as a base station's; `None` for one that has to tune first.
    pub cell: Option<Cell>,
    /// How long it hears nothing when it changes cells.
    pub retune: Duration,
    /// How long until it hears anything when it is switched on.
    pub attach: Duration,
    /// How long it hears nothing when it visits another cell for one packet.
    pub excursion: Duration,
    /// How it comes into a cell, and how it learns of others.
    pub listening: Listening,
    /// Frames that may wait at it; `None` for as many as its cell says.
    pub queue: Option<u32>,
}

/// How a radio comes into a cell and leaves it, and how it learns of others. By default at once, and all the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Listening {
    /// How long it takes to associate, once the cell is heard.
    pub association: Duration,
    /// It hears of other cells when it goes there to listen.
    pub scan: Option<Scan>,
    /// How long it stays in its cell at most to send what waits at it, when it is to leave.
    pub drain: Duration,
}

/// Excursions to listen elsewhere: the radio leaves its channel and comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scan {
    /// From one to the next.
    pub every: Duration,
    /// How long it is away.
    pub away: Duration,
}

/// A change of cells under way. The caller hands it back when it is `ready`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuning {
    /// Whose.
    pub port: PortId,
    /// Where to.
    pub cell: Cell,
    /// When the radio hears the new cell.
    pub ready: Instant,
    pub(crate) turn: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Radio {
    retune: Span,
    attach: Span,
    excursion: Span,
    /// Where it is, and since when; `None` on its way, or out of range.
    at: Option<(Cell, Instant)>,
    /// It has lost its cell, and was not tuned since.
    deaf: bool,
    turn: u32,
    /// Frames that may wait at it.
    pub(crate) queue: Option<u32>,
    /// The number of the last grant that it had.
    pub(crate) served: u64,
    /// Most radios never are elsewhere, and associate at once.
    elsewhere: Option<Box<Elsewhere>>,
}

/// A span of time in half the room of a [`Duration`].
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

/// What is known of a radio that goes away and comes back, or has to associate.
#[derive(Clone, Default, Debug)]
struct Elsewhere {
    listening: Listening,
    /// The last interval in which the radio was on another channel, to send or to listen.
    away: Option<(Instant, Instant)>,
    /// When it next listens on another channel.
    next_scan: Instant,
    /// When the last frame that it has sent is heard.
    landed: Instant,
}

/// All radios; found by port, by link address, and by the cell that they are in.
#[derive(Clone, Default, Debug)]
pub(crate) struct Radios {
    /// In the order of their ports, one behind the other: there may be a million.
    by_port: Vec<(PortId, Radio)>,
    by_mac: BTreeSet<(Mac, PortId)>,
    /// Who is in which cell: who is on the way to one is in none.
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

    /// For all but what changes its cell.
    pub(crate) fn get_mut(&mut self, port: PortId) -> Option<&mut Radio> {
        let place = self.place(port).ok()?;
        self.by_port.get_mut(place).map(|(_, radio)| radio)
    }

    /// The radios in a cell that a frame to `dst` is for, in the order of their ports.
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

    /// The radios in a cell, in the order of their ports.
    pub(crate) fn in_cell(&self, cell: Cell) -> impl Iterator<Item = PortId> {
        self.present.range((cell, PortId(0))..=(cell, PortId(u32::MAX))).map(|(_, port)| *port)
    }

    /// Leaves for a cell, to be there when it is `ready`.
    pub(crate) fn leave(&mut self, ready: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        self.change(port, |radio| radio.leave(ready, port, cell))
    }

    /// It hears its cell no longer, and carries nothing until it is tuned again.
    pub(crate) fn lose(&mut self, port: PortId) {
        self.change(port, Radio::lose);
    }

    /// Is in this cell from now on, as a base station's that is on again.
    pub(crate) fn settle(&mut self, now: Instant, port: PortId, cell: Cell) {
        self.change(port, |radio| (radio.at, radio.deaf) = (Some((cell, now)), false));
    }

    /// All radios, in the order of their ports.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortId> {
        self.by_port.iter().map(|(port, _)| *port)
    }

    /// Arrives, unless it has been told otherwise meanwhile.
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

/// Whether a radio heard a frame.
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

    /// How long it hears nothing when it goes to a cell; on the channel that it is on nothing has to be tuned.
    pub(crate) fn retuning(&self, same_channel: bool) -> Duration {
        match self.at {
            None if self.turn == 0 => self.attach.into(),
            Some(_) if same_channel => Duration::ZERO,
            _ => self.retune.into(),
        }
    }

    /// How long it hears nothing when it visits another cell.
    pub(crate) fn excursion(&self) -> Duration {
        self.excursion.into()
    }

    /// How long it takes to associate, once it hears a cell.
    pub(crate) fn association(&self) -> Duration {
        self.elsewhere.as_ref().map(|elsewhere| elsewhere.listening.association).unwrap_or_default()
    }

    /// How long it stays at most to send what waits at it.
    pub(crate) fn drain(&self) -> Duration {
        self.elsewhere.as_ref().map(|elsewhere| elsewhere.listening.drain).unwrap_or_default()
    }

    /// It sends a frame that is heard at `lands`.
    pub(crate) fn sends(&mut self, lands: Instant) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.landed = lands;
        }
    }

    /// When the last frame that it has sent is heard, of a radio that drains.
    pub(crate) fn landed(&self) -> Instant {
        self.elsewhere.as_ref().map_or(Instant::ZERO, |elsewhere| elsewhere.landed)
    }

    fn leave(&mut self, ready: Instant, port: PortId, cell: Cell) -> Tuning {
        self.go(false);
        Tuning { port, cell, ready, turn: self.turn }
    }

    fn lose(&mut self) {
        self.go(true);
    }

    /// Is in no cell any more.
    fn go(&mut self, deaf: bool) {
        (self.at, self.deaf) = (None, deaf);
        self.turn += 1;
    }

    pub(crate) const fn is_deaf(&self) -> bool {
        self.deaf
    }

    fn arrive(&mut self, tuning: &Tuning) -> bool {
        let current = tuning.turn == self.turn && self.at.is_none();
        if current {
            self.at = Some((tuning.cell, tuning.ready));
        }
        current
    }

    /// Goes to listen elsewhere, if it is time: whether it hears of other cells now. Who is in no cell has nothing to leave.
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

    /// When it can send in its own cell: it may be away.
    pub(crate) fn back(&self, now: Instant) -> Instant {
        let away = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.away);
        away.filter(|(from, to)| *from <= now && now < *to).map_or(now, |(_, to)| to)
    }

    pub(crate) fn be_away(&mut self, from: Instant, to: Instant) {
        self.elsewhere.get_or_insert_default().away = Some((from, to));
    }

    /// Whether it was in `cell`, undisturbed, from `start` to `end`.
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

    /// A million hosts have a radio each; what few of them need is behind a pointer.
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
