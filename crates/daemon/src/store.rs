//! Records that outlive a daemon, in an embedded database (redb).
//!
//! Once [`Store::commit`] has succeeded, its records are on the disk: neither `kill -9` nor a power cut loses them
//! (unless syncs are disabled). A file is read and its checksums are verified before anything is written to it; a
//! damaged file is refused and left unchanged. The exception is the last commit: damage to it cannot be distinguished
//! from an interrupted commit, unless the daemon ended cleanly. Opening an existing store allocates no disk space, so
//! it works on a full disk. One daemon uses a store at a time: the file is locked (`flock`), and the kernel unlocks it
//! when the daemon ends.

use os::{Attempt, Result};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableTable, StorageBackend, Table, TableDefinition};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The first bytes of every redb file.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
/// The first bytes of stores of older versions, which were not databases.
const OLDER: &[u8] = b"wayfare store ";
/// The records that roles have stored.
const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// The daemon's own entries, by name: [`FORM`] and [`ENDED`].
const DAEMON: TableDefinition<'_, &str, u64> = TableDefinition::new("daemon");
/// The name of the entry with the store's format version.
const FORM: &str = "form";
const THIS_FORM: u64 = 3;
/// The name of an entry that a new store has, and a store whose last daemon ended cleanly. The first change of a record
/// removes the entry.
const ENDED: &str = "ended";
/// Bytes of the file that are cached in memory: more than the store of a home agent with ten thousand bindings.
const CACHE: usize = 16 << 20;

type StoreResult<T> = std::result::Result<T, redb::Error>;
/// A record to be put, or removed if the value is `None`: key and value.
type Change = (Vec<u8>, Option<Vec<u8>>);
/// A stored record: key and value.
type StoredRecord = (Vec<u8>, Vec<u8>);

/// A database in which roles store records that outlive the daemon.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// The device number and the inode number of the store's file.
    file: (u64, u64),
    /// `None` after a failed commit: it is unknown how much of the commit is on the disk.
    database: Option<Database>,
    /// The records at the time when the store was opened.
    records: Vec<StoredRecord>,
    clean: bool,
    /// The changes since the last commit.
    pending: Vec<Change>,
    /// The changes that undo failed commits. They are applied before the next commit's changes.
    undo: Vec<Change>,
    /// Whether written data must survive a crash of the machine, and not only of the daemon.
    syncs: bool,
    /// Whether a commit needs a free block on the disk, even if the file has room.
    needs_room: bool,
}

impl Store {
    /// Opens the store at this path, or creates one. Fails if the file is not a store, is damaged or is in use, or if
    /// the path cannot be written. So these errors are found before the first record is stored.
    pub fn open(path: &Path) -> Result<Self> {
        match std::fs::metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(path).attempt("write the store", path.display())?;
            }
            Err(error) => return Err(error).attempt("open the store", path.display()),
        }
        Self::go_on(path).attempt("open the store", path.display())
    }

    fn go_on(path: &Path) -> io::Result<Self> {
        let file = lock_file(path)?;
        let (records, clean) = verified(&file)?;
        let number = identity(&file.metadata()?);
        let database = Some(database(Disk { file, syncs: true })?);
        let (path, pending, undo) = (path.to_owned(), Vec::new(), Vec::new());
        Ok(Self {
            path,
            file: number,
            database,
            records,
            clean,
            pending,
            undo,
            syncs: true,
            needs_room: false,
        })
    }

    /// Disables syncs: written data survives any end of the daemon, but may be lost if the machine crashes. This is for
    /// a daemon in a lab, which must not wait for other writes to the machine's disk. Fails if the store cannot be
    /// opened again.
    pub(crate) fn without_syncs(mut self) -> Result<Self> {
        self.syncs = false;
        self.reopen().attempt("open the store", self.path.display())?;
        Ok(self)
    }

    /// Makes each commit fail while the disk has no free block. It is for a lab, whose full disk must be full for
    /// every program: a database finds room for some records within its file.
    #[must_use]
    pub(crate) const fn with_room(mut self) -> Self {
        self.needs_room = true;
        self
    }

    /// Returns all records at the time when the store was opened, in the order of their keys.
    pub fn records(&self) -> Vec<StoredRecord> {
        self.records.clone()
    }

    /// Returns whether the last daemon that stored something ended cleanly, or nothing was stored yet.
    pub(crate) const fn was_clean(&self) -> bool {
        self.clean
    }

    /// Requests a change for the next commit: the record of `key` becomes `value`, or is removed if `value` is `None`.
    pub fn append(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.pending.push((key, value));
    }

    /// Writes all appended changes in one transaction, durably unless syncs are disabled. If that fails, these changes
    /// are dropped. Those that reached the disk nevertheless are undone in the next commit.
    pub fn commit(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.look_for_file()?;
        if self.needs_room {
            find_room(&self.path)?;
        }
        if self.database.is_none() {
            self.reopen()?;
        }
        let mut before = Vec::with_capacity(pending.len());
        let Some(database) = &self.database else { return Ok(()) };
        let done = change(database, &self.undo, pending, &mut before);
        match done {
            Ok(()) => {
                self.undo.clear();
                Ok(())
            }
            Err(error) => {
                before.reverse(); // of several changes of one key, the first has the value before the commit
                self.undo.append(&mut before);
                self.database = None;
                Err(io_error(error))
            }
        }
    }

    /// Marks a clean end of the daemon, and closes the store. Fails if the file was removed or replaced, or cannot be
    /// written.
    pub fn close(mut self) -> Result<()> {
        let end = |database: Database| -> StoreResult<()> {
            let transaction = database.begin_write()?;
            transaction.open_table(DAEMON)?.insert(ENDED, 1)?;
            transaction.commit()?;
            database.close()?;
            Ok(())
        };
        let ended = self.look_for_file();
        let ended = ended.and_then(|()| if self.undo.is_empty() { Ok(()) } else { self.commit() });
        let ended = ended.and_then(|()| if self.database.is_none() { self.reopen() } else { Ok(()) });
        let ended = ended.and_then(|()| self.database.take().map_or(Ok(()), |d| end(d).map_err(io_error)));
        ended.attempt("close the store", self.path.display())
    }

    /// Checks that the file at the path is still the one that is open. The next daemon reads the file at this path.
    /// What is written to a removed or replaced file is lost.
    fn look_for_file(&self) -> io::Result<()> {
        match std::fs::metadata(&self.path) {
            Ok(there) if identity(&there) == self.file => Ok(()),
            Ok(_) => Err(io::Error::other("another file has replaced the store; start the daemon again")),
            Err(none) if none.kind() == io::ErrorKind::NotFound => {
                Err(io::Error::new(none.kind(), "the file of the store was removed; start the daemon again"))
            }
            Err(error) => Err(error),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.database = None; // it has the lock
        self.database = Some(database(Disk { file: lock_file(&self.path)?, syncs: self.syncs })?);
        Ok(())
    }
}

/// Undoes failed commits and makes these changes, in one transaction. `before` gets the values that they replaced.
fn change(
    database: &Database,
    undo: &[Change],
    changes: Vec<Change>,
    before: &mut Vec<Change>,
) -> StoreResult<()> {
    let transaction = database.begin_write()?;
    {
        transaction.open_table(DAEMON)?.remove(ENDED)?;
        let mut records = transaction.open_table(RECORDS)?;
        for (key, value) in undo {
            put(&mut records, key, value.as_deref())?;
        }
        for (key, value) in changes {
            let old = put(&mut records, &key, value.as_deref())?;
            before.push((key, old));
        }
    }
    Ok(transaction.commit()?)
}

/// Puts or removes a record. Returns its former value.
fn put(
    records: &mut Table<'_, &'static [u8], &'static [u8]>,
    key: &[u8],
    value: Option<&[u8]>,
) -> StoreResult<Option<Vec<u8>>> {
    let old = match value {
        Some(value) => records.insert(key, value)?,
        None => records.remove(key)?,
    };
    Ok(old.map(|old| old.value().to_vec()))
}

/// Creates an empty store. It appears at `path` only when it is complete.
fn create(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    let file = tempfile::NamedTempFile::new_in(folder)?;
    let begin = || -> StoreResult<()> {
        let database = builder().create_with_backend(Disk { file: file.reopen()?, syncs: true })?;
        let transaction = database.begin_write()?;
        transaction.open_table(RECORDS)?;
        let mut own = transaction.open_table(DAEMON)?;
        own.insert(FORM, THIS_FORM)?;
        own.insert(ENDED, 1)?;
        drop(own);
        transaction.commit()?;
        Ok(database.close()?)
    };
    begin().map_err(io_error)?;
    file.persist_noclobber(path)?;
    File::open(folder)?.sync_all()
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Allocates a disk block temporarily; fails if there is none.
fn find_room(path: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder_of(path))?;
    file.write_all(&[0; 4096])
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens the file of a store and locks it for one daemon. A device or a pipe is refused, because reading it might
/// never end.
fn lock_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{FlockOperation, flock};
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the store must be a regular file"));
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let in_use = || {
        let why = "another daemon uses this store; end that daemon, or choose another path for the store";
        io::Error::new(io::ErrorKind::ResourceBusy, why)
    };
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => in_use(),
        other => other.into(),
    })?;
    // Meanwhile another daemon may have replaced the file by a new one.
    if std::fs::metadata(path)?.ino() != file.metadata()?.ino() {
        return Err(in_use());
    }
    Ok(file)
}

/// Returns the records of a file, and whether its daemon ended cleanly. It reads from a copy in memory, of which all
/// checksums are verified.
fn verified(file: &File) -> io::Result<(Vec<StoredRecord>, bool)> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    if !bytes.starts_with(MAGIC) {
        return Err(damaged(if bytes.starts_with(OLDER) {
            "this store was written by another version of Wayfare, and cannot be read; remove the store to begin without records"
        } else {
            "this file is not a store of Wayfare, and is not replaced; choose another path for the store"
        }));
    }
    let read = || -> StoreResult<_> {
        let copy = InMemoryBackend::new();
        copy.set_len(bytes.len() as u64)?;
        copy.write(0, &bytes)?;
        let database = builder().set_check_integrity_on_open(true).create_with_backend(copy)?;
        let transaction = database.begin_write()?; // it opens a missing table as an empty one
        let own = transaction.open_table(DAEMON)?;
        let [form, ended] =
            [FORM, ENDED].map(|name| own.get(name).map(|found| found.map(|word| word.value())));
        let mut records = Vec::new();
        for record in transaction.open_table(RECORDS)?.iter()? {
            let (key, value) = record?;
            records.push((key.value().to_vec(), value.value().to_vec()));
        }
        Ok((form?, ended?.is_some(), records))
    };
    match read() {
        Ok((Some(THIS_FORM), ended, records)) => Ok((records, ended)),
        Ok((None, ..)) | Err(redb::Error::TableTypeMismatch { .. }) => Err(damaged(
            "this database is not a store of Wayfare, and is not replaced; choose another path for the store",
        )),
        Ok((Some(form), ..)) => Err(damaged(&format!(
            "this store has format {form}; this version of Wayfare reads format {THIS_FORM}; remove the store to begin without records"
        ))),
        Err(error) => Err(damaged(&format!(
            "the file is damaged ({error}); restore a copy, or remove the file to begin without records"
        ))),
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

fn database(disk: impl StorageBackend) -> io::Result<Database> {
    builder().create_with_backend(disk).map_err(|error| io_error(error.into()))
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn io_error(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// The file of a store. It is used instead of redb's own backend, which always syncs.
#[derive(Debug)]
struct Disk {
    file: File,
    syncs: bool,
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.syncs { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
