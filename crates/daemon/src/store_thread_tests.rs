//! Tests of the thread with a disk. The test decides when a sync of this disk ends, and with which result.

use super::*;
use crate::testing::readable;
use std::sync::mpsc::{Receiver, Sender, channel};

type Verdict = io::Result<()>;

/// Reports which records each commit would make durable, and waits until the test sets the result of the commit.
struct Disk {
    pending: Vec<u8>,
    begun: Sender<Vec<u8>>,
    verdicts: Receiver<Verdict>,
}

impl Log for Disk {
    fn append(&mut self, key: Vec<u8>, _: Option<Vec<u8>>) {
        self.pending.extend(key);
    }
    fn commit(&mut self) -> Verdict {
        self.begun.send(std::mem::take(&mut self.pending)).unwrap();
        self.verdicts.recv().unwrap()
    }
}

struct Stage {
    storage: StoreThread<Disk>,
    clock: Clock,
    begun: Receiver<Vec<u8>>,
    verdicts: Sender<Verdict>,
}

impl Stage {
    fn new() -> Self {
        let ((begins, begun), (verdicts, decided)) = (channel(), channel());
        let disk = Disk { pending: Vec::new(), begun: begins, verdicts: decided };
        Self { storage: StoreThread::start(disk).unwrap(), clock: Clock::start(), begun, verdicts }
    }

    fn ask(&mut self, keys: &[u8]) {
        for key in keys {
            self.storage.ask((self.clock, Instant::NEVER), vec![*key], None);
        }
    }

    /// Returns the records of the sync that runs now.
    fn syncing(&self) -> Vec<u8> {
        self.begun.recv().unwrap()
    }

    fn ends(&self, verdict: Verdict) {
        self.verdicts.send(verdict).unwrap();
        assert!(readable(&self.storage, 10_000), "the daemon is notified");
    }

    /// Clears the descriptor but leaves the results, so that it becomes readable when the next sync has ended.
    fn hush(&self) {
        self.storage.shared.lock().has_told = false;
        assert_eq!(rustix::io::read(&self.storage.shared.told, &mut [0; 8]).unwrap(), 8);
    }
}

fn full() -> Verdict {
    Err(io::Error::from_raw_os_error(libc::ENOSPC))
}

#[test]
fn nothing_is_durable_before_its_sync_has_ended_and_what_gathers_goes_with_the_next() {
    let mut stage = Stage::new();
    stage.ask(b"a");
    assert_eq!(stage.syncing(), b"a");
    stage.ask(b"bcd");
    assert!(!readable(&stage.storage, 50), "the sync runs");
    assert_eq!((stage.storage.durable(9), stage.storage.failure()), (0, None));
    stage.ends(Ok(()));
    assert_eq!((stage.storage.durable(9), stage.storage.durable(9)), (1, 0));
    assert!(!readable(&stage.storage, 0), "heard");
    assert_eq!(stage.syncing(), b"bcd");
    assert_eq!(stage.storage.durable(9), 0);
    stage.ends(Ok(()));
    assert_eq!(stage.storage.durable(2), 2);
    assert!(stage.storage.has_more() && stage.storage.is_busy());
    assert_eq!(stage.storage.durable(2), 1);
    assert!(!stage.storage.has_more() && !stage.storage.is_busy());
}

#[test]
fn a_failure_takes_all_with_it_that_was_asked_for_before_it_is_heard() {
    let mut stage = Stage::new();
    stage.ask(b"a");
    assert_eq!(stage.syncing(), b"a");
    stage.ask(b"bc");
    stage.verdicts.send(Ok(())).unwrap();
    assert_eq!(stage.syncing(), b"bc");
    stage.ask(b"d");
    stage.hush();
    stage.ends(full());
    stage.ask(b"e");
    assert_eq!(stage.storage.failure(), None, "what is durable comes first");
    assert_eq!(stage.storage.durable(9), 1);
    stage.ask(b"f");
    let why = stage.storage.failure().unwrap();
    assert!(why.contains("No space left on device"), "{why}");
    assert!(!stage.storage.is_busy());
    stage.ask(b"g");
    assert_eq!(stage.syncing(), b"g", "d, e and f were never written");
    stage.ends(Ok(()));
    assert_eq!((stage.storage.durable(9), stage.storage.failure()), (1, None));
}

#[test]
fn an_end_in_order_waits_for_the_last_sync() {
    let mut stage = Stage::new();
    stage.ask(b"a");
    assert_eq!(stage.syncing(), b"a");
    stage.ask(b"b");
    for _ in 0..2 {
        stage.verdicts.send(Ok(())).unwrap();
    }
    assert!(stage.storage.end().is_some());
    assert_eq!(stage.begun.recv().unwrap(), b"b");
}

/// If the thread or the disk is slow, a role sends its reply late. This time is reported as a stall of the store,
/// because the protocol is not the cause.
#[test]
fn a_request_that_takes_long_is_a_stall_of_the_store() {
    let mut stage = Stage::new();
    stage.ask(b"a");
    assert_eq!(stage.syncing(), b"a");
    os::pause(wire::Duration::from_millis(30));
    stage.ends(Ok(()));
    let (ages, stalls) = stage.storage.waits();
    assert_eq!((ages.count, stalls.len()), (1, 1));
    assert!(ages.worst_us >= 30_000.0 && stalls[0].us >= 30_000, "{ages:?} {stalls:?}");
}
