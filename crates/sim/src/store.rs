//! Records that roles keep. They are durable at once unless a host's disk is slow, or made to fail. They are kept for a host
//! that restarts in this run; of all others nothing reads them again.
//!
//! A disk makes durable, with one sync, all that was asked for when the sync begins, as a daemon's does. Where one record
//! fails, all behind it that have been asked for by then fail with it.

use std::collections::{BTreeMap, VecDeque};
use trace::HostId;
use wire::{Duration, Instant};

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
    /// An event of the scenario has filled it.
    is_full: bool,
    /// How long a sync takes.
    latency: Duration,
    asked: u32,
    decided: u32,
    /// The last record that goes with the sync under way.
    syncing: Option<u32>,
    /// When that sync ends.
    ends: Instant,
    /// What the host finds when it restarts, if it does.
    kept: Option<Kept>,
}

/// The records of a host that restarts.
#[derive(Debug, Default)]
struct Kept {
    durable: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Asked for, and not decided yet; in the order asked.
    asked: VecDeque<(Vec<u8>, Option<Vec<u8>>)>,
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

    /// Keeps the records of a host that will restart.
    pub(crate) fn keep(&mut self, host: HostId) {
        self.disk(host).kept.get_or_insert_default();
    }

    /// Makes every store of a host fail from now on, or no longer.
    pub(crate) fn fill(&mut self, host: HostId, is_full: bool) {
        self.disk(host).is_full = is_full;
    }

    /// The host has crashed: what was not durable never will be.
    pub(crate) fn crash(&mut self, host: HostId) {
        let Some(disk) = self.disks.get_mut(&host) else { return };
        (disk.decided, disk.syncing) = (disk.asked, None);
        if let Some(kept) = &mut disk.kept {
            kept.asked.clear();
        }
    }

    /// What a host finds when it restarts, in the order of the keys.
    pub(crate) fn stored(&self, host: HostId) -> Vec<(Vec<u8>, Vec<u8>)> {
        let kept = self.disks.get(&host).and_then(|disk| disk.kept.as_ref());
        kept.into_iter().flat_map(|kept| kept.durable.clone()).collect()
    }

    /// One more record.
    pub(crate) fn ask(&mut self, host: HostId, key: Vec<u8>, value: Option<Vec<u8>>) {
        let disk = self.disk(host);
        disk.asked += 1;
        if let Some(kept) = &mut disk.kept {
            kept.asked.push_back((key, value));
        }
    }

    /// Begins a sync, if there is anything to be made durable and none is under way. Says how long it takes.
    pub(crate) fn begin(&mut self, now: Instant, host: HostId) -> Option<Duration> {
        let disk = self.disks.get_mut(&host).filter(|disk| disk.asked > disk.decided)?;
        if disk.syncing.is_some() {
            return None;
        }
        disk.syncing = Some(disk.asked);
        disk.ends = now + disk.latency;
        Some(disk.latency)
    }

    /// Whether the sync that is under way ends now. One of a host that crashed meanwhile ends never.
    pub(crate) fn ends(&self, now: Instant, host: HostId) -> bool {
        self.disks.get(&host).is_some_and(|disk| disk.syncing.is_some() && disk.ends == now)
    }

    /// The sync is over: how many records it made durable, and why the one behind them could not be.
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

    /// All that has been asked for by now has failed.
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
    /// The first record that was asked for is durable.
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
