//! A daemon's connection to the lab's link emulator, for requests and events. Frames cross the interface, except those
//! that are sent in a cell to which the radio is not tuned.

use os::{
    Result,
    json_lines::{Heard, Lines},
};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use trace::{HostId, hex};
use wire::{Cell, Iface, Instant};

/// A request of a daemon to the link emulator, as one line of JSON. Instants are in nanoseconds since the start of
/// the run. An interface is given by its number on the daemon's host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmulatorRequest {
    /// The first request: this host's daemon has connected.
    Hello {
        /// The id of the daemon's host.
        host: HostId,
    },
    /// Tunes a radio to a cell. [`EmulatorEvent::Up`] or [`EmulatorEvent::Down`] answers it.
    Tune {
        /// When the role requested this, in nanoseconds of the run.
        at: u64,
        /// The interface number of the radio.
        iface: u16,
        /// The number of the cell.
        cell: u16,
    },
    /// Sends one frame in a cell to which the radio is not tuned.
    Visit {
        /// When the role requested this, in nanoseconds of the run.
        at: u64,
        /// The interface number of the radio.
        iface: u16,
        /// The number of the cell.
        cell: u16,
        /// The Ethernet frame, in hexadecimal digits.
        frame: String,
    },
}

/// An event that the link emulator reports to a daemon, as one line of JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmulatorEvent {
    /// A radio is tuned to a cell.
    Up {
        /// The interface number of the radio.
        iface: u16,
        /// The number of the cell to which the radio is tuned.
        cell: u16,
    },
    /// An interface that needs no tuning carries frames again after a cut.
    Carrier {
        /// The interface number.
        iface: u16,
    },
    /// An interface carries no frames any more, or a request to tune a radio failed.
    Down {
        /// The interface number.
        iface: u16,
        /// The reason: one of the constants of [`node::Link`].
        why: String,
    },
    /// The MTU of an interface's link has changed.
    Mtu {
        /// The interface number.
        iface: u16,
        /// The new MTU, in bytes.
        mtu: u16,
    },
    /// A radio receives a cell's signal.
    Heard {
        /// The interface number of the radio.
        iface: u16,
        /// The number of the cell.
        cell: u16,
        /// The signal strength, in dBm.
        dbm: i16,
    },
}

/// A connection to the link emulator.
pub(crate) struct EmulatorClient {
    lines: Lines,
    /// Whether the link emulator has closed the connection.
    is_gone: bool,
}

impl EmulatorClient {
    pub(crate) fn connect(path: &Path, host: HostId) -> Result<Self> {
        let mut lines = Lines::connect(path)?;
        lines.send(&EmulatorRequest::Hello { host })?;
        Ok(Self { lines, is_gone: false })
    }

    /// Requests to tune a radio to a cell. Returns false if the link emulator is gone or does not read.
    pub(crate) fn tune(&mut self, now: Instant, iface: Iface, cell: Cell) -> bool {
        self.lines.send(&EmulatorRequest::Tune { at: now.0, iface: iface.0, cell: cell.0 }).is_ok()
    }

    pub(crate) fn visit(&mut self, now: Instant, iface: Iface, cell: Cell, frame: &[u8]) -> bool {
        self.lines
            .send(&EmulatorRequest::Visit { at: now.0, iface: iface.0, cell: cell.0, frame: hex(frame) })
            .is_ok()
    }

    pub(crate) fn hear(&mut self) -> Option<EmulatorEvent> {
        loop {
            match self.lines.hear() {
                Heard::Message(event) => return Some(event),
                Heard::Nonsense(_) => {}
                Heard::Nothing => return None,
                Heard::Gone => {
                    self.is_gone = true;
                    return None;
                }
            }
        }
    }

    /// Returns whether the link emulator has closed the connection, as far as [`EmulatorClient::hear`] has noticed.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl AsFd for EmulatorClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}
