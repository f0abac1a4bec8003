//! A daemon's connection to the lab's link emulator. It carries requests and events; frames cross the interface.

use crate::error::Result;
use crate::lines::{Heard, Lines};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use trace::{HostId, hex};
use wire::{Cell, Iface, Instant};

/// A request of a daemon to the link emulator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wish {
    Hello { host: HostId },
    Tune { at: u64, iface: u16, cell: u16 },
    Visit { at: u64, iface: u16, cell: u16, frame: String },
}

/// An event that the link emulator reports to a daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Told {
    Up {
        iface: u16,
        cell: u16,
    },
    /// An interface that needs no tuning carries frames again after a cut.
    Carrier {
        iface: u16,
    },
    Down {
        iface: u16,
        why: String,
    },
    /// The link's MTU has changed, in bytes.
    Mtu {
        iface: u16,
        mtu: u16,
    },
    Heard {
        iface: u16,
        cell: u16,
        dbm: i16,
    },
}

pub(crate) struct Radio {
    lines: Lines,
    /// The lab has ended: nothing more arrives.
    is_gone: bool,
}

impl Radio {
    pub(crate) fn connect(path: &Path, host: HostId) -> Result<Self> {
        let mut lines = Lines::connect(path)?;
        lines.send(&Wish::Hello { host })?;
        Ok(Self { lines, is_gone: false })
    }

    /// Tunes a radio to a cell. Returns false if the link emulator is gone.
    pub(crate) fn tune(&mut self, now: Instant, iface: Iface, cell: Cell) -> bool {
        self.lines.send(&Wish::Tune { at: now.0, iface: iface.0, cell: cell.0 }).is_ok()
    }

    pub(crate) fn visit(&mut self, now: Instant, iface: Iface, cell: Cell, frame: &[u8]) -> bool {
        self.lines.send(&Wish::Visit { at: now.0, iface: iface.0, cell: cell.0, frame: hex(frame) }).is_ok()
    }

    pub(crate) fn hear(&mut self) -> Option<Told> {
        loop {
            match self.lines.hear() {
                Heard::Message(told) => return Some(told),
                Heard::Nonsense(_) => {}
                Heard::Nothing => return None,
                Heard::Gone => {
                    self.is_gone = true;
                    return None;
                }
            }
        }
    }

    /// Returns whether the link emulator has closed the connection, as far as [`Radio::hear`] has noticed.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl AsFd for Radio {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
