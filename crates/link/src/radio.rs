//! Where a radio is, and since when.

use crate::PortId;
use crate::medium::Queue;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Cell, Duration, Instant, Mac};

/// A radio.
#[derive(Clone, Debug)]
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
    pub(crate) spec: RadioSpec,
    /// Where it is, and since when; `None` on its way, or out of range.
    at: Option<(Cell, Instant)>,
    /// It has lost its cell, and was not tuned since.
    deaf: bool,
    /// The last time it was away on a visit.
    away: Option<(Instant, Instant)>,
    turn: u32,
    pub(crate) queue: Queue,
}

/// All radios; found by port, by link address, and by the cell that they are in.
#[derive(Clone, Default, Debug)]
pub(crate) struct Radios {
    by_port: BTreeMap<PortId, Radio>,
    by_mac: BTreeSet<(Mac, PortId)>,
    /// Who is in which cell: who is on the way to one is in none.
    present: BTreeSet<(Cell, PortId)>,
}

impl Radios {
    pub(crate) fn add(&mut self, port: PortId, spec: RadioSpec) {
        self.by_mac.insert((spec.mac, port));
        self.present.extend(spec.cell.map(|cell| (cell, port)));
        self.by_port.insert(port, Radio::new(spec));
    }

    pub(crate) fn get(&self, port: PortId) -> Option<&Radio> {
        self.by_port.get(&port)
    }

    /// For all but what changes its cell.
    pub(crate) fn get_mut(&mut self, port: PortId) -> Option<&mut Radio> {
        self.by_port.get_mut(&port)
    }

    /// The radios in a cell that a frame to `dst` is for, in the order of their ports.
    pub(crate) fn each_in_reach(&self, cell: Cell, dst: Mac, mut each: impl FnMut(PortId, &Radio)) {
        let mut tell = |port: PortId| {
            if let Some(radio) = self.by_port.get(&port) {
                each(port, radio);
            }
        };
        let (first, last) = (PortId(0), PortId(u32::MAX));
        if dst.is_group() {
            self.present.range((cell, first)..=(cell, last)).for_each(|(_, port)| tell(*port));
        } else {
            self.by_mac.range((dst, first)..=(dst, last)).for_each(|(_, port)| tell(*port));
        }
    }

    pub(crate) fn leave(&mut self, now: Instant, port: PortId, cell: Cell) -> Option<Tuning> {
        self.change(port, |radio| radio.leave(now, port, cell))
    }

    /// It hears its cell no longer, and carries nothing until it is tuned again.
    pub(crate) fn lose(&mut self, port: PortId) {
        self.change(port, Radio::lose);
    }

    /// Arrives, unless it has been told otherwise meanwhile.
    pub(crate) fn arrive(&mut self, tuning: &Tuning) -> bool {
        self.change(tuning.port, |radio| radio.arrive(tuning)).unwrap_or(false)
    }

    fn change<T>(&mut self, port: PortId, change: impl FnOnce(&mut Radio) -> T) -> Option<T> {
        let radio = self.by_port.get_mut(&port)?;
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
        let at = spec.cell.map(|cell| (cell, Instant::ZERO));
        Self { spec, at, deaf: false, away: None, turn: 0, queue: Queue::default() }
    }

    pub(crate) fn cell(&self) -> Option<Cell> {
        self.at.map(|(cell, _)| cell)
    }

    fn leave(&mut self, now: Instant, port: PortId, cell: Cell) -> Tuning {
        let deaf = if self.turn == 0 && self.at.is_none() { self.spec.attach } else { self.spec.retune };
        (self.at, self.deaf) = (None, false);
        self.turn += 1;
        Tuning { port, cell, ready: now + deaf, turn: self.turn }
    }

    fn lose(&mut self) {
        (self.at, self.deaf) = (None, true);
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

    pub(crate) fn be_away(&mut self, from: Instant, to: Instant) {
        self.away = Some((from, to));
    }

    /// Whether it was in `cell`, undisturbed, from `start` to `end`.
    pub(crate) fn heard(&self, cell: Cell, start: Instant, end: Instant) -> Heard {
        match self.at {
            Some((here, since)) if here == cell && since <= start => {
                let away = self.away.is_some_and(|(from, to)| from < end && to > start);
                if away { Heard::Away } else { Heard::Yes }
            }
            _ => Heard::Elsewhere,
        }
    }
}
