//! Where a radio is, and since when.

use crate::PortId;
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
    /// How it comes into a cell, and how it learns of others.
    pub listening: Listening,
}

/// How a radio comes into a cell, and how it learns of others. By default at once, and all the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Listening {
    /// How long it takes to associate, once the cell is heard.
    pub association: Duration,
    /// It hears of other cells when it goes there to listen.
    pub scan: Option<Scan>,
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
    pub(crate) spec: RadioSpec,
    /// Where it is, and since when; `None` on its way, or out of range.
    at: Option<(Cell, Instant)>,
    /// It has lost its cell, and was not tuned since.
    deaf: bool,
    /// The last time it was away on a visit.
    away: Option<(Instant, Instant)>,
    /// When the frames are out that it kept while it was away.
    kept: Instant,
    /// When it goes to listen elsewhere next.
    next_scan: Instant,
    turn: u32,
}

/// Whether a radio heard a frame.
pub(crate) enum Heard {
    Yes,
    Away,
    Elsewhere,
}

impl Radio {
    pub(crate) fn new(spec: RadioSpec) -> Self {
        let at = spec.cell.map(|cell| (cell, Instant::ZERO));
        Self { spec, at, deaf: false, away: None, kept: Instant::ZERO, next_scan: Instant::ZERO, turn: 0 }
    }

    pub(crate) fn cell(&self) -> Option<Cell> {
        self.at.map(|(cell, _)| cell)
    }

    /// How long it hears nothing when it goes to a cell; on the channel that it is on nothing has to be tuned.
    pub(crate) fn retuning(&self, same_channel: bool) -> Duration {
        match self.at {
            None if self.turn == 0 => self.spec.attach,
            Some(_) if same_channel => Duration::ZERO,
            _ => self.spec.retune,
        }
    }

    /// Leaves for a cell, to be there when it is `ready`.
    pub(crate) fn leave(&mut self, ready: Instant, port: PortId, cell: Cell) -> Tuning {
        (self.at, self.deaf, self.kept) = (None, false, Instant::ZERO);
        self.turn += 1;
        Tuning { port, cell, ready, turn: self.turn }
    }

    /// It hears its cell no longer, and carries nothing until it is tuned again.
    pub(crate) fn lose(&mut self) {
        (self.at, self.deaf, self.kept) = (None, true, Instant::ZERO);
        self.turn += 1;
    }

    pub(crate) const fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Arrives, unless it has been told otherwise meanwhile.
    pub(crate) fn arrive(&mut self, tuning: &Tuning) -> bool {
        let current = tuning.turn == self.turn && self.at.is_none();
        if current {
            self.at = Some((tuning.cell, tuning.ready));
        }
        current
    }

    /// Goes to listen elsewhere, if it is time: whether it hears of other cells now. Who is in no cell has nothing to leave.
    pub(crate) fn scans(&mut self, now: Instant) -> bool {
        let Some(Scan { every, away }) = self.spec.listening.scan else { return true };
        if self.at.is_none() {
            return true;
        }
        let due = self.next_scan <= now;
        if due {
            self.next_scan = now + every;
            self.be_away(now, now + away);
        }
        due
    }

    /// When it can send: it may be away, or have frames to send that it kept meanwhile.
    pub(crate) fn back(&self, now: Instant) -> Instant {
        self.away.filter(|(from, to)| *from <= now && now < *to).map_or(now, |(_, to)| to).max(self.kept)
    }

    /// It sends what it kept until then.
    pub(crate) fn sends_kept(&mut self, until: Instant) {
        self.kept = until;
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
