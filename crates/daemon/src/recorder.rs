//! The records of a daemon, and when they are written.
//!
//! For a host that will be killed, records are written while the daemon runs. Each record is in the file before its
//! frame leaves, so every sent frame has a record. These writes take time between two frames. So daemons of other hosts
//! keep their records in memory until they end, up to a limit. When the limit is reached, a thread of the lowest
//! priority writes the kept records.

use super::record_file;
use os::{Attempt, Result, set_ordinary};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem::size_of;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use trace::{Record, What};

/// Bytes of lines that are collected before they are written to the file.
const ROOM: usize = 64 << 10;
/// Bytes of records that are kept before the thread must write them. Runs of a few seconds, in which every millisecond
/// counts, stay below this. About three times this size is in memory at most: the kept records, the records that wait
/// for the thread, and the records that the thread writes.
const CHUNK: usize = 32 << 20;
/// The lowest priority (`setpriority(2)`).
const LAST: i32 = 19;

pub(super) struct Recorder {
    path: PathBuf,
    count: u64,
    to: Destination,
    /// Whether `new_failure` has returned why records cannot be written.
    is_reported: bool,
}

enum Destination {
    /// A line is in the file before its frame leaves.
    AtOnce(RecordLines),
    /// Records are kept, and written when the daemon ends or the limit is reached.
    Kept(Kept),
}

/// A file, and the lines that are not in it yet.
struct RecordLines {
    file: File,
    unwritten: Vec<u8>,
    failed: Option<io::Error>,
}

impl RecordLines {
    fn add(&mut self, record: &Record) {
        self.unwritten.extend_from_slice(record.to_line().as_bytes());
        self.unwritten.push(b'\n');
        if self.unwritten.len() >= ROOM {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.unwritten.is_empty() || self.failed.is_some() {
            self.unwritten.clear(); // an error is reported when the daemon ends
            return;
        }
        self.failed = self.file.write_all(&self.unwritten).err();
        self.unwritten.clear();
    }

    fn end(mut self) -> io::Result<()> {
        self.flush();
        self.failed.map_or(Ok(()), Err)
    }
}

struct Kept {
    records: Vec<Record>,
    /// The size of the kept records in memory, in bytes.
    bytes: usize,
    chunk: usize,
    writer: Writer,
}

/// What writes the kept records: the daemon itself at its end, or a thread once there were too many.
enum Writer {
    None(RecordLines),
    Thread(SyncSender<Vec<Record>>, JoinHandle<RecordLines>),
    /// The thread has ended, or could not start.
    Lost(io::Error),
}

impl Kept {
    fn new(lines: RecordLines, chunk: usize) -> Self {
        Self { records: Vec::new(), bytes: 0, chunk, writer: Writer::None(lines) }
    }

    fn add(&mut self, record: Record) {
        self.bytes += size_of::<Record>() + payload(&record.what);
        self.records.push(record);
        if self.bytes >= self.chunk {
            self.bytes = 0;
            let records = std::mem::take(&mut self.records);
            self.give(records);
        }
    }

    /// Passes a chunk to the thread. Blocks if the thread has not begun the previous chunk: the daemon is late then,
    /// but memory is bounded.
    fn give(&mut self, records: Vec<Record>) {
        let writer = std::mem::replace(&mut self.writer, Writer::Lost(ErrorKind::BrokenPipe.into()));
        self.writer = match writer {
            Writer::None(lines) => begin(lines).map_or_else(Writer::Lost, |(to, thread)| {
                let _ = to.send(records);
                Writer::Thread(to, thread)
            }),
            Writer::Thread(to, thread) => {
                let _ = to.send(records); // the reason is reported when the daemon ends
                Writer::Thread(to, thread)
            }
            lost @ Writer::Lost(_) => lost,
        };
    }

    fn end(self) -> io::Result<()> {
        let mut lines = match self.writer {
            Writer::None(lines) => lines,
            Writer::Thread(to, thread) => {
                drop(to);
                thread.join().map_err(|_| io::Error::other("the thread that writes records panicked"))?
            }
            Writer::Lost(why) => return Err(why),
        };
        self.records.iter().for_each(|record| lines.add(record));
        lines.end()
    }
}

fn begin(lines: RecordLines) -> io::Result<(SyncSender<Vec<Record>>, JoinHandle<RecordLines>)> {
    let (to, from) = sync_channel(1);
    let thread = std::thread::Builder::new().name("records".to_owned());
    Ok((to, thread.spawn(move || write_all(lines, &from))?))
}

fn write_all(mut lines: RecordLines, chunks: &Receiver<Vec<Record>>) -> RecordLines {
    set_ordinary();
    let _ = rustix::process::setpriority_process(None, LAST);
    for record in chunks.iter().flatten() {
        lines.add(&record);
    }
    lines
}

/// Returns the size of a record's packet in memory, in bytes; 0 if the record has no packet. The packet is not part of
/// the struct.
fn payload(what: &What) -> usize {
    match what {
        What::Received(_, packet) | What::Sent(_, packet) => packet.bytes.capacity(),
        _ => 0,
    }
}

impl Recorder {
    /// Creates a recorder that empties the file at this path. With `at_once`, records are written while the daemon
    /// runs, before their frames leave. Otherwise they are kept in memory first.
    pub(super) fn create(path: &Path, at_once: bool) -> Result<Self> {
        let file = record_file::open(path)?;
        let lines = RecordLines { file, unwritten: Vec::new(), failed: None };
        let to =
            if at_once { Destination::AtOnce(lines) } else { Destination::Kept(Kept::new(lines, CHUNK)) };
        Ok(Self { path: path.to_owned(), count: 0, to, is_reported: false })
    }

    /// Returns whether a record must be in the file before its frame leaves.
    pub(super) const fn is_at_once(&self) -> bool {
        matches!(self.to, Destination::AtOnce(_))
    }

    pub(super) fn add(&mut self, record: Record) {
        self.count += 1;
        match &mut self.to {
            Destination::Kept(kept) => kept.add(record),
            Destination::AtOnce(lines) => lines.add(&record),
        }
    }

    /// Writes the lines that must be in the file at once. The kernel keeps them when this process is killed.
    pub(super) fn flush(&mut self) {
        if let Destination::AtOnce(lines) = &mut self.to {
            lines.flush();
        }
    }

    /// Returns why records cannot be written, if a write has failed. An error of the thread is known only when the
    /// daemon ends.
    pub(super) const fn failure(&self) -> Option<&io::Error> {
        match &self.to {
            Destination::AtOnce(lines) | Destination::Kept(Kept { writer: Writer::None(lines), .. }) => {
                lines.failed.as_ref()
            }
            Destination::Kept(Kept { writer: Writer::Lost(why), .. }) => Some(why),
            Destination::Kept(Kept { writer: Writer::Thread(..), .. }) => None,
        }
    }

    /// Returns the failure the first time, then `None`.
    pub(super) fn new_failure(&mut self) -> Option<&io::Error> {
        let is_new = !self.is_reported && self.failure().is_some();
        self.is_reported |= is_new;
        if is_new { self.failure() } else { None }
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Writes what is left. Returns an error if any record could not be written.
    pub(super) fn end(self) -> Result<()> {
        let ended = match self.to {
            Destination::Kept(kept) => kept.end(),
            Destination::AtOnce(lines) => lines.end(),
        };
        ended.attempt("write", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::HostId;
    use wire::{Iface, Instant, Mac, Packet, PacketId};

    fn record(n: u64) -> Record {
        Record { at: Instant(n), host: HostId(0), what: What::AppSent(PacketId(n)) }
    }

    fn read(path: &Path) -> Vec<Record> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| Record::from_line(HostId(0), line).unwrap()).collect()
    }

    #[test]
    fn what_was_flushed_is_in_the_file_though_nothing_ends_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.jsonl");
        let mut recorder = Recorder::create(&path, true).unwrap();
        for n in 0..10_000 {
            recorder.add(record(n));
            let Destination::AtOnce(lines) = &recorder.to else { panic!("at once") };
            assert!(lines.unwritten.len() < ROOM);
        }
        recorder.flush();
        assert_eq!(recorder.count(), 10_000);
        std::mem::forget(recorder);
        assert_eq!(read(&path), (0..10_000).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_kept_is_in_the_file_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.jsonl");
        let mut recorder = Recorder::create(&path, false).unwrap();
        (0..3000).for_each(|n| recorder.add(record(n)));
        recorder.flush();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        recorder.end().unwrap();
        assert_eq!(read(&path).len(), 3000);
    }

    /// Records of packets of 1500 bytes: at most one chunk of them is kept, and all are in the file in order.
    #[test]
    fn what_does_not_fit_is_written_while_the_daemon_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.jsonl");
        let mut recorder = Recorder::create(&path, false).unwrap();
        let Destination::Kept(kept) = &mut recorder.to else { panic!("kept") };
        kept.chunk = 256 << 10;
        let sent = |n: u64| {
            let packet = Packet { id: PacketId(n), ..Packet::new(Mac::ZERO, vec![n as u8; 1500]) };
            Record { at: Instant(n), host: HostId(0), what: What::Sent(Iface(1), packet) }
        };
        for n in 0..3000 {
            recorder.add(sent(n));
            let Destination::Kept(kept) = &recorder.to else { panic!("kept") };
            let held: usize =
                kept.records.iter().map(|record| size_of::<Record>() + payload(&record.what)).sum();
            assert!(held < kept.chunk && kept.records.len() < 175, "{n}: {held}");
        }
        recorder.end().unwrap();
        assert_eq!(read(&path), (0..3000).map(sent).collect::<Vec<_>>());
    }
}
