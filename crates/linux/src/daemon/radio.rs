//! A daemon's connection to the lab's radio process: frames go by the interface, wishes go here.

use crate::error::Result;
use crate::lines::{Heard, Lines};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use trace::{HostId, hex};
use wire::{Cell, Iface, Instant};

/// The one radio of a host.
pub(crate) const IFACE: Iface = Iface(1);

/// What a daemon says to the radio process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wish {
    Hello { host: HostId },
    Tune { at: u64, cell: u16 },
    Visit { at: u64, cell: u16, frame: String },
}

/// What the radio process says back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Told {
    Up { cell: u16 },
    Down { why: String },
}

pub(crate) struct Radio {
    lines: Lines,
}

impl Radio {
    pub(crate) fn connect(path: &Path, host: HostId) -> Result<Self> {
        let mut lines = Lines::connect(path)?;
        lines.send(&Wish::Hello { host })?;
        Ok(Self { lines })
    }

    /// Points the radio at a cell; false when there is no radio any more.
    pub(crate) fn tune(&mut self, now: Instant, cell: Cell) -> bool {
        self.lines.send(&Wish::Tune { at: now.0, cell: cell.0 }).is_ok()
    }

    pub(crate) fn visit(&mut self, now: Instant, cell: Cell, frame: &[u8]) -> bool {
        self.lines.send(&Wish::Visit { at: now.0, cell: cell.0, frame: hex(frame) }).is_ok()
    }

    pub(crate) fn hear(&mut self) -> Option<Told> {
        loop {
            match self.lines.hear() {
                Heard::Message(told) => return Some(told),
                Heard::Nonsense(_) => {}
                Heard::Nothing | Heard::Gone => return None,
            }
        }
    }
}

impl AsFd for Radio {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
