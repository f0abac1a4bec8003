//! Records that roles store durably. A record is durable immediately, unless the host's disk is slow or is made to
//! fail. The contents are kept only for hosts that restart in this run, because no other host reads them again.
//!
//! As in a daemon, one sync makes durable all records that were requested before it begins. If one record fails, all
//! later records that are already requested fail with it.

use std::collections::{BTreeMap, VecDeque};
use trace::HostId;
use wire::{Duration, Instant};

/// A failure of a host's storage of durable records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StoreFault {
    /// Every request to store a record fails, as on a disk that is full or read-only.
    Always,
    /// The request with this number to store a record fails, and with it all later requests that were already made. The
    /// first request has number 1.
    Nth(u32),
}

/// The disks of the hosts that store records.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    disks: BTreeMap<HostId, Disk>,
}

/// The disk of one host. The requests to store a record are numbered from 1.
#[derive(Debug, Default)]
struct Disk {
    fault: Option<StoreFault>,
    /// Whether an event of the scenario has filled the disk.
    is_full: bool,
    /// The duration of one sync.
    latency: Duration,
    asked: u32,
    decided: u32,
    /// The number of the last request that the current sync makes durable; `None` if there is no sync.
    syncing: Option<u32>,
    /// The instant at which the current sync ends.
    ends: Instant,
    /// The contents of the records, if the host restarts in this run.
    kept: Option<Kept>,
}

/// The records of a host that restarts.
#[derive(Debug, Default)]
struct Kept {
    durable: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The requested records that are neither durable nor failed yet, in the order of the requests.
    asked: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The operating system's text for a write to a full disk (`ENOSPC`).
const WHY: &str = "No space left on device";

impl Stores {
    pub(crate) fn fail(&mut self, host: HostId, fault: StoreFault) {
        self.disk(host).fault = Some(fault);
    }

    pub(crate) fn slow_down(&mut self, host: HostId, latency: Duration) {
        self.disk(host).latency = latency;
    }

    /// Keeps the contents of a host's records from now on, because the host will restart.
    pub(crate) fn keep(&mut self, host: HostId) {
        self.disk(host).kept.get_or_insert_default();
    }

    /// Fills the disk of a host, so that every record fails from now on, or frees it.
    pub(crate) fn fill(&mut self, host: HostId, is_full: bool) {
        self.disk(host).is_full = is_full;
    }

    /// Drops the records that are not durable, because the host has crashed.
    pub(crate) fn crash(&mut self, host: HostId) {
        let Some(disk) = self.disks.get_mut(&host) else { return };
        (disk.decided, disk.syncing) = (disk.asked, None);
        if let Some(kept) = &mut disk.kept {
            kept.asked.clear();
        }
    }

    /// Returns the durable records that a host reads when it restarts, in the order of the keys.
    pub(crate) fn stored(&self, host: HostId) -> Vec<(Vec<u8>, Vec<u8>)> {
        let kept = self.disks.get(&host).and_then(|disk| disk.kept.as_ref());
        kept.into_iter().flat_map(|kept| kept.durable.clone()).collect()
    }

    /// Requests that a record is stored, or removed if `value` is `None`.
    pub(crate) fn ask(&mut self, host: HostId, key: Vec<u8>, value: Option<Vec<u8>>) {
        let disk = self.disk(host);
        disk.asked += 1;
        if let Some(kept) = &mut disk.kept {
            kept.asked.push_back((key, value));
        }
    }

    /// Begins a sync, and returns its duration. `None` if there is nothing to make durable, or a sync is in progress.
    pub(crate) fn begin(&mut self, now: Instant, host: HostId) -> Option<Duration> {
        let disk = self.disks.get_mut(&host).filter(|disk| disk.asked > disk.decided)?;
        if disk.syncing.is_some() {
            return None;
        }
        disk.syncing = Some(disk.asked);
        disk.ends = now + disk.latency;
        Some(disk.latency)
    }

    /// Returns whether the current sync of a host ends now. A crash cancels the host's current sync.
    pub(crate) fn ends(&self, now: Instant, host: HostId) -> bool {
        self.disks.get(&host).is_some_and(|disk| disk.syncing.is_some() && disk.ends == now)
    }

    /// Ends the sync. Returns the number of records that the sync made durable. If the next record failed, returns why.
    pub(crate) fn end(&mut self, host: HostId) -> (usize, Option<&'static str>) {
        let disk = self.disk(host);
        let end = disk.syncing.take().unwrap_or(disk.decided);
        let before = disk.decided;
        while disk.decided < end && !disk.refuses(disk.decided + 1) {
            disk.decided += 1;
            if let Some(kept) = &mut disk.kept {
                kept.decide();
            }
        }
        ((disk.decided - before) as usize, (disk.decided < end).then_some(WHY))
    }

    /// Makes all requested records fail that are not durable yet.
    pub(crate) fn give_up(&mut self, host: HostId) {
        let disk = self.disk(host);
        disk.decided = disk.asked;
        if let Some(kept) = &mut disk.kept {
            kept.asked.clear();
        }
    }

    fn disk(&mut self, host: HostId) -> &mut Disk {
        self.disks.entry(host).or_default()
    }
}

impl Kept {
    /// Makes the first requested record durable.
    fn decide(&mut self) {
        match self.asked.pop_front() {
            Some((key, Some(value))) => drop(self.durable.insert(key, value)),
            Some((key, None)) => drop(self.durable.remove(&key)),
            None => {}
        }
    }
}

impl Disk {
    fn refuses(&self, number: u32) -> bool {
        match self.fault {
            _ if self.is_full => true,
            Some(StoreFault::Always) => true,
            Some(StoreFault::Nth(nth)) => nth == number,
            None => false,
        }
    }
}
