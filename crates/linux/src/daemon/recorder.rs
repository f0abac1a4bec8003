//! Records are written while the daemon runs. What has left the daemon is in the file before it leaves, so a daemon that is killed
//! leaves a record of each frame that it sent; and the daemon needs the same memory however long it runs.

use crate::error::{Attempt, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use trace::Record;

/// Bytes that are kept at most before they are written.
const ROOM: usize = 64 << 10;

pub(super) struct Recorder {
    path: PathBuf,
    file: File,
    unwritten: Vec<u8>,
    count: u64,
    failed: Option<std::io::Error>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).attempt("write", path.display())?;
        let unwritten = Vec::with_capacity(2 * ROOM);
        Ok(Self { path: path.to_owned(), file, unwritten, count: 0, failed: None })
    }

    pub(super) fn add(&mut self, record: &Record) {
        self.unwritten.extend_from_slice(record.to_line().as_bytes());
        self.unwritten.push(b'\n');
        self.count += 1;
        if self.unwritten.len() >= ROOM {
            self.flush();
        }
    }

    /// Puts all records into the file: the kernel keeps them when this process is killed.
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
        let mut recorder = Recorder::create(&path).unwrap();
        let record = |n: u64| Record { at: Instant(n), host: HostId(0), what: What::AppSent(PacketId(n)) };
        for n in 0..10_000 {
            recorder.add(&record(n));
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
}
