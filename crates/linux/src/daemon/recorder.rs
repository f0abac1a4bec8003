//! The records of a daemon, and when they are written.
//!
//! Of a host that will be killed they are written while it runs: what has left the daemon is in the file before it leaves, so there
//! is a record of each frame that it sent. That takes time between two frames. So all others keep their records until they end.

use crate::error::{Attempt, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use trace::Record;

/// Bytes that are kept at most before they are written, of a host that will be killed.
const ROOM: usize = 64 << 10;

pub(super) struct Recorder {
    path: PathBuf,
    file: File,
    /// Not in the file yet, unless `kept` has them.
    unwritten: Vec<u8>,
    /// All records, of a host that keeps them: they grow with every packet.
    kept: Option<Vec<Record>>,
    count: u64,
    failed: Option<std::io::Error>,
}

impl Recorder {
    /// Records into a new file of this path: at once, or when the daemon ends.
    pub(super) fn create(path: &Path, at_once: bool) -> Result<Self> {
        let file = File::create(path).attempt("write", path.display())?;
        let kept = (!at_once).then(Vec::new);
        Ok(Self { path: path.to_owned(), file, unwritten: Vec::new(), kept, count: 0, failed: None })
    }

    pub(super) fn add(&mut self, record: Record) {
        self.count += 1;
        match &mut self.kept {
            Some(kept) => kept.push(record),
            None => self.write(&record),
        }
    }

    fn write(&mut self, record: &Record) {
        self.unwritten.extend_from_slice(record.to_line().as_bytes());
        self.unwritten.push(b'\n');
        if self.unwritten.len() >= ROOM {
            self.flush();
        }
    }

    /// Puts what is to be there at once into the file: the kernel keeps it when this process is killed.
    pub(super) fn flush(&mut self) {
        if self.unwritten.is_empty() || self.failed.is_some() {
            self.unwritten.clear(); // an error is reported when the daemon ends
            return;
        }
        self.failed = self.file.write_all(&self.unwritten).err();
        self.unwritten.clear();
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Writes what is left; an error if any record could not be written.
    pub(super) fn end(mut self) -> Result<()> {
        for record in self.kept.take().into_iter().flatten() {
            self.write(&record);
        }
        self.flush();
        self.failed.map_or(Ok(()), Err).attempt("write", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{HostId, What};
    use wire::{Instant, PacketId};

    #[test]
    fn what_was_flushed_is_in_the_file_though_nothing_ends_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.jsonl");
        let mut recorder = Recorder::create(&path, true).unwrap();
        let record = |n: u64| Record { at: Instant(n), host: HostId(0), what: What::AppSent(PacketId(n)) };
        for n in 0..10_000 {
            recorder.add(record(n));
            assert!(recorder.unwritten.len() < ROOM);
        }
        recorder.flush();
        assert_eq!(recorder.count(), 10_000);
        std::mem::forget(recorder);
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Record> =
            text.lines().map(|line| Record::from_line(HostId(0), line).unwrap()).collect();
        assert_eq!(read, (0..10_000).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_kept_is_in_the_file_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.jsonl");
        let mut recorder = Recorder::create(&path, false).unwrap();
        let record = |n: u64| Record { at: Instant(n), host: HostId(0), what: What::AppSent(PacketId(n)) };
        (0..3000).for_each(|n| recorder.add(record(n)));
        recorder.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        recorder.end().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3000);
    }
}
