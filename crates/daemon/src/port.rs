//! The interfaces of a daemon.

use super::links::LinkState;
use super::{Interface, host_link};
use os::{Netlink, Options, PacketSocket, Result, ethtool};

/// An interface that the daemon has taken over.
pub(super) struct Port {
    pub(super) socket: PacketSocket,
    pub(super) spec: Interface,
    pub(super) state: LinkState,
}

impl Port {
    /// Returns the largest datagram that is sent here, in bytes: the configured size, or the device's MTU if that is
    /// smaller.
    pub(super) fn mtu(&self) -> u16 {
        self.spec.mtu.min(u16::try_from(self.state.mtu).unwrap_or(u16::MAX))
    }
}

/// Switches a device's offloads off, sets it up, and opens a packet socket on it.
pub(super) fn open_port(device: &str) -> Result<PacketSocket> {
    ethtool::offloads_off(device)?;
    host_link::disable_autoconf(device);
    Netlink::open()?.set_up(device, true)?;
    PacketSocket::open(device, &Options { bypass_qdisc: true, unfinished: true, ..Options::default() })
}
