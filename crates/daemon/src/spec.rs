//! The configuration of a daemon.

use super::Store;
use node::Node;
use os::{Result, TcpMetrics};
use std::path::PathBuf;
use trace::HostId;
use wire::{Ipv4Addr, Mac};

/// The configuration of a daemon.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate key")]
pub struct Spec {
    /// The host's name.
    pub name: String,
    /// Its roles and table.
    pub node: Node,
    /// Its own addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// Its interfaces; number 1 is the first.
    pub interfaces: Vec<Interface>,
    /// Settings of its TCP connections.
    pub tcp: TcpMetrics,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// Path of the socket where programs of this host request connections through its roles.
    pub clients: Option<PathBuf>,
    /// The socket of the lab's link emulator, and this host's id there.
    pub radio: Option<(PathBuf, HostId)>,
    /// Path of the file for its records.
    pub records: Option<PathBuf>,
    /// Whether records are written while the daemon runs, because it will be killed; otherwise they are written when
    /// it ends.
    pub records_at_once: bool,
    /// Path of the database in which roles store records.
    pub store: Option<PathBuf>,
    /// Whether stored records need not survive a crash of the machine.
    pub store_without_sync: bool,
    /// Whether storing fails while the disk has no free block, even if the store has room within its file.
    pub store_needs_room: bool,
    /// Whether to wait for the command `begin` before anything happens.
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
    /// Its link address.
    pub mac: Mac,
    /// The largest datagram that it carries, in bytes.
    pub mtu: u16,
    /// Whether it is a radio, which must tune to a cell before it carries frames.
    pub tunes: bool,
}
