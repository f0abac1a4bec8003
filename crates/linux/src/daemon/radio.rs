//! A daemon's connection to the lab's radio process: frames go by the interface, wishes go here.

use crate::error::Result;
use crate::lines::{Heard, Lines};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use trace::{HostId, hex};
use wire::{Cell, Iface, Instant};

/// What a daemon says to the radio process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wish {
    Hello { host: HostId },
    Tune { at: u64, iface: u16, cell: u16 },
    Visit { at: u64, iface: u16, cell: u16, frame: String },
}

/// What the radio process says back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Told {
    Up {
        iface: u16,
        cell: u16,
    },
    /// An interface that needs no tuning carries again, after a cut.
    Carrier {
        iface: u16,
    },
    Down {
        iface: u16,
        why: String,
    },
    /// The link takes datagrams up to this size from now on.
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
    /// Nothing more comes: the lab has ended.
    is_gone: bool,
}

impl Radio {
    pub(crate) fn connect(path: &Path, host: HostId) -> Result<Self> {
        let mut lines = Lines::connect(path)?;
        lines.send(&Wish::Hello { host })?;
        Ok(Self { lines, is_gone: false })
    }

    /// Points a radio at a cell; false when there is no radio any more.
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

    /// Whether the radio process has closed the connection, as far as that has been heard.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl AsFd for Radio {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
