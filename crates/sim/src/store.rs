//! Records that roles keep. In virtual time they are durable at once, unless they are made to fail; nothing reads them
//! again, as no simulated host starts twice.

use std::collections::BTreeMap;
use trace::HostId;

/// How the storage of a host fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StoreFault {
    /// Each store, as on a disk that is full or read-only.
    Always,
    /// The store of this number alone; the first is number 1.
    Nth(u32),
}

/// What the storage of each host was asked for.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    faults: BTreeMap<HostId, StoreFault>,
    stores: BTreeMap<HostId, u32>,
}

/// What the system says in that case, as the error of a write.
const WHY: &str = "No space left on device";

impl Stores {
    pub(crate) fn fail(&mut self, host: HostId, fault: StoreFault) {
        self.faults.insert(host, fault);
    }

    /// One more record; why it was not stored, if it was not.
    pub(crate) fn store(&mut self, host: HostId) -> Result<(), &'static str> {
        let number = self.stores.entry(host).or_default();
        *number += 1;
        match self.faults.get(&host) {
            Some(StoreFault::Always) => Err(WHY),
            Some(StoreFault::Nth(nth)) if nth == number => Err(WHY),
            Some(StoreFault::Nth(_)) | None => Ok(()),
        }
    }
}
