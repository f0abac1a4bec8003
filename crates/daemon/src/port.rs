//! The interfaces of a daemon.

use super::{Interface, host_link};
use os::{Netlink, Options, PacketSocket, Result, ethtool};
use wire::Cell;

/// The state of an interface: of its device, its radio and its wire.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the device, the radio and the scenario each decide one of them"
)]
pub(super) struct LinkState {
    /// The device's index.
    pub(super) index: u32,
    /// The device's MTU, in bytes.
    pub(super) mtu: u32,
    /// Whether the device carries frames.
    pub(super) carries: bool,
    /// The cell that the radio is tuned to; `None` without a radio or a cell.
    pub(super) cell: Option<Cell>,
    /// Whether the radio was requested to tune to a cell, and the link emulator has not answered yet.
    pub(super) tuning: bool,
    /// Whether an event of the scenario has cut the wire.
    pub(super) is_cut: bool,
    /// Whether the link is up in the last notification to the roles.
    pub(super) is_up: bool,
}

/// An interface that the daemon has taken over.
pub(super) struct Port {
    pub(super) socket: PacketSocket,
    pub(super) spec: Interface,
    pub(super) state: LinkState,
}

impl Port {
    /// Returns the length of the largest datagram that is sent on this interface, in bytes: the configured size, or the
    /// device's MTU if that is smaller.
    pub(super) fn mtu(&self) -> u16 {
        self.spec.mtu.min(u16::try_from(self.state.mtu).unwrap_or(u16::MAX))
    }
}

/// Switches a device's offloads, IPv6 and reverse path filter off, sets the device up, and opens a packet socket on it.
pub(super) fn open_port(device: &str) -> Result<PacketSocket> {
    ethtool::offloads_off(device)?;
    host_link::disable_autoconf(device);
    Netlink::open()?.set_up(device, true)?;
    PacketSocket::open(device, &Options { bypass_qdisc: true, unfinished: true, ..Options::default() })
}
