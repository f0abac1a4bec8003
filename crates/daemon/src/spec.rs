//! The configuration of a daemon.

use super::Store;
use node::Node;
use os::{Result, TcpMetrics};
use std::path::PathBuf;
use trace::HostId;
use wire::{ClockError, Ipv4Addr, Mac};

/// The configuration of a daemon: its host, its interfaces, and the paths of its sockets and files.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate key")]
pub struct Spec {
    /// The host's name.
    pub name: String,
    /// The node: the host's roles and forwarding table.
    pub node: Node,
    /// The host's own IPv4 addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// The interfaces that the daemon takes over; the first has number 1.
    pub interfaces: Vec<Interface>,
    /// Settings of the host's TCP connections.
    pub tcp: TcpMetrics,
    /// The error of the wall clock that the roles see.
    pub clock_error: ClockError,
    /// Path of the control socket; `None` if the daemon has none.
    pub control: Option<PathBuf>,
    /// Path of the socket at which programs of this host request connections through its roles; `None` if the daemon
    /// has no such socket.
    pub clients: Option<PathBuf>,
    /// Path of the socket of the lab's link emulator, and this host's id in the emulator; `None` outside a lab.
    pub radio: Option<(PathBuf, HostId)>,
    /// Path of the file for the daemon's records; `None` if the daemon writes no records.
    pub records: Option<PathBuf>,
    /// Whether each record is written at once, because the daemon will be killed. Otherwise records are written when
    /// they need 32 MiB of memory, and when the daemon ends.
    pub records_at_once: bool,
    /// Path of the database in which roles store records; `None` if nothing can be stored.
    pub store: Option<PathBuf>,
    /// Whether stored records need not survive a crash of the machine.
    pub store_without_sync: bool,
    /// Whether storing fails while the disk has no free block, even if the store has room within its file.
    pub store_needs_room: bool,
    /// Whether the kernel forwards the packets that need no decision of a role.
    pub data_path_in_kernel: bool,
    /// Whether the daemon belongs to a lab. Then its node starts only after [`crate::Ask::Begin`], and not when the
    /// interfaces are taken over.
    pub hold: bool,
}

impl Spec {
    pub(super) fn open_store(&self) -> Result<Option<Store>> {
        let Some(path) = &self.store else { return Ok(None) };
        let mut store = Store::open(path)?;
        if self.store_without_sync {
            store = store.without_syncs()?;
        }
        Ok(Some(if self.store_needs_room { store.with_room() } else { store }))
    }
}

/// An interface that the daemon takes over.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The device's name.
    pub name: String,
    /// The interface's link address.
    pub mac: Mac,
    /// The largest datagram that the interface carries, in bytes.
    pub mtu: u16,
    /// Whether the interface is a radio, which must tune to a cell before it carries frames.
    pub tunes: bool,
}
