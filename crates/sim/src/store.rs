//! Records that roles keep. They are durable at once unless a host's disk is slow, or made to fail; nothing reads them
//! again, as no simulated host starts twice.
//!
//! A disk makes durable, with one sync, all that was asked for when the sync begins, as a daemon's does. Where one record
//! fails, all behind it that have been asked for by then fail with it.

use std::collections::BTreeMap;
use trace::HostId;
use wire::Duration;

/// How the storage of a host fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StoreFault {
    /// Each store, as on a disk that is full or read-only.
    Always,
    /// The store of this number alone; the first is number 1.
    Nth(u32),
}

/// The disk of each host that stores.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    disks: BTreeMap<HostId, Disk>,
}

/// Records have numbers: the first is number 1.
#[derive(Debug, Default)]
struct Disk {
    fault: Option<StoreFault>,
    /// How long a sync takes.
    latency: Duration,
    asked: u32,
    decided: u32,
    /// The last record that goes with the sync under way.
    syncing: Option<u32>,
}

/// What the system says in that case, as the error of a write.
const WHY: &str = "No space left on device";

impl Stores {
    pub(crate) fn fail(&mut self, host: HostId, fault: StoreFault) {
        self.disk(host).fault = Some(fault);
    }

    pub(crate) fn slow_down(&mut self, host: HostId, latency: Duration) {
        self.disk(host).latency = latency;
    }

    /// One more record.
    pub(crate) fn ask(&mut self, host: HostId) {
        self.disk(host).asked += 1;
    }

    /// Begins a sync, if there is anything to be made durable and none is under way. Says how long it takes.
    pub(crate) fn begin(&mut self, host: HostId) -> Option<Duration> {
        let disk = self.disks.get_mut(&host).filter(|disk| disk.asked > disk.decided)?;
        if disk.syncing.is_some() {
            return None;
        }
        disk.syncing = Some(disk.asked);
        Some(disk.latency)
    }

    /// The sync is over: how many records it made durable, and why the one behind them could not be.
    pub(crate) fn end(&mut self, host: HostId) -> (usize, Option<&'static str>) {
        let disk = self.disk(host);
        let end = disk.syncing.take().unwrap_or(disk.decided);
        let before = disk.decided;
        while disk.decided < end && !disk.refuses(disk.decided + 1) {
            disk.decided += 1;
        }
        ((disk.decided - before) as usize, (disk.decided < end).then_some(WHY))
    }

    /// All that has been asked for by now has failed.
    pub(crate) fn give_up(&mut self, host: HostId) {
        let disk = self.disk(host);
        disk.decided = disk.asked;
    }

    fn disk(&mut self, host: HostId) -> &mut Disk {
        self.disks.entry(host).or_default()
    }
}

impl Disk {
    fn refuses(&self, number: u32) -> bool {
        match self.fault {
            Some(StoreFault::Always) => true,
            Some(StoreFault::Nth(nth)) => nth == number,
            None => false,
        }
    }
}
