//! Records that outlive a daemon: an append-only log, rewritten when most of it is out of date.
//!
//! ```text
//! file    = magic frame*
//! frame   = marker | length of body (u32) | CRC-32 of body (u32) | body      little-endian; what one commit has written
//! body    = entry*
//! entry   = length (u32) of the rest | 0 | length of key (u32) | key | value put
//!         | length (u32) of the rest | 1 | length of key (u32) | key         remove
//!         | length (u32) of the rest | 2                                     the daemon ended in order
//! ```
//!
//! What [`Store::commit`] has answered is on the disk: `kill -9` or a power cut right after it loses nothing. A commit that
//! was being written then is cut short or fails its CRC; reading ends there, and writing goes on from there.
//!
//! Only the last frame can be torn. A frame that is not whole with a whole one behind it is damage: the file is refused and
//! left as it is. The last commit is the exception: its damage cannot be told from a tear, unless the daemon ended in order.
//!
//! One daemon has a store at a time: the file is locked (`flock`), and the kernel unlocks it when the daemon ends.

use crate::error::{Attempt, Result};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 16] = b"wayfare store 2\n";
/// What a store of another version begins with.
const ANY_VERSION: &[u8] = b"wayfare store ";
/// What each frame begins with, so that one is found behind damage.
const MARKER: &[u8; 4] = b"WFc\n";
/// Bytes of a frame before its body.
const HEAD: usize = 12;
const PUT: u8 = 0;
const REMOVE: u8 = 1;
const ENDED: u8 = 2;
/// A log is not rewritten before it has so many bytes, and [`GROWTH`] times what it had after the last time.
const SMALL: u64 = 1 << 20;
const GROWTH: u64 = 4;

/// A log and what it says.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    /// Bytes that are known to be on the disk. The file ends there, but for what was being written when a sync failed.
    durable: u64,
    /// With so many bytes it is worth a look whether most are out of date.
    rewrite_at: u64,
    records: Records,
    /// Since the last commit.
    pending: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Whether the last daemon ended in order, or there was none.
    clean: bool,
    /// Why nothing can be added to this file any more; another may take its place.
    broken: Option<String>,
    /// Whether what is written must survive the machine's end, not only the daemon's.
    syncs: bool,
}

impl Store {
    /// Opens the log of this path, or begins one. Refused are a file that is something else, and a place that cannot be
    /// written: better now than at the first record. A log that is there takes no room to be opened, so a full disk keeps
    /// nobody from what is on it.
    pub fn open(path: &Path) -> Result<Self> {
        match lock_file(path) {
            Ok(file) => Self::go_on(path, file).attempt("open the store", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let records = Records::new();
                let anew = write_anew(path, &records);
                let (file, durable) = anew.attempt("write the store", path.display())?;
                sync_folder(path).attempt("write the store", path.display())?;
                Ok(Self::new(path, file, durable, records, true))
            }
            Err(error) => Err(error).attempt("open the store", path.display()),
        }
    }

    /// Goes on behind the last record that is whole, or behind the one before if that tells of an end in order.
    fn go_on(path: &Path, mut file: File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let Contents { records, clean, end } = read(&bytes)?;
        let _ = std::fs::remove_file(beside(path)); // of a daemon that was killed while it wrote anew
        file.set_len(end)?;
        file.sync_all()?;
        let mut store = Self::new(path, file, end, records, clean);
        let live: usize = store.records.iter().map(|(key, value)| key.len() + value.len()).sum();
        store.rewrite_at = SMALL.max(GROWTH * live as u64);
        store.rewrite_if_large();
        Ok(store)
    }

    fn new(path: &Path, file: File, durable: u64, records: Records, clean: bool) -> Self {
        let (path, pending) = (path.to_owned(), Vec::new());
        Self { path, file, durable, rewrite_at: SMALL, records, pending, clean, broken: None, syncs: true }
    }

    /// The same, without syncs: what is written survives the daemon's end, however that comes, and not the machine's. For a
    /// daemon in a lab, which must not wait for what others write on the machine's disk.
    #[must_use]
    pub const fn without_syncs(mut self) -> Self {
        self.syncs = false;
        self
    }

    /// All records, in the order of their keys.
    pub fn records(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.records.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether the last daemon ended in order, or there was none.
    pub const fn was_clean(&self) -> bool {
        self.clean
    }

    /// Puts or removes a record at the next commit.
    pub fn append(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.pending.push((key, value));
    }

    /// Makes all that was appended durable, with one sync. If that fails, the records are as they were.
    pub fn commit(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let mut body = Vec::new();
        for (key, value) in &pending {
            put_entry(&mut body, key, value.as_deref());
        }
        self.write(&frame(&body))?;
        for (key, value) in pending {
            match value {
                Some(value) => self.records.insert(key, value),
                None => self.records.remove(&key),
            };
        }
        self.rewrite_if_large();
        Ok(())
    }

    /// The daemon ends in order.
    pub fn close(mut self) -> Result<()> {
        let body = [&1u32.to_le_bytes()[..], &[ENDED]].concat();
        self.write(&frame(&body)).attempt("close the store", self.path.display())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(why) = &self.broken {
            let why = why.clone();
            self.rewrite()
                .map_err(|error| io::Error::new(error.kind(), format!("{error}; before that: {why}")))?;
        }
        // Not where the last write ended: that may be behind half a record.
        if let Err(error) = self.file.write_all_at(bytes, self.durable) {
            if let Err(worse) = self.file.set_len(self.durable) {
                self.broken = Some(format!("{error}, and then {worse}"));
            }
            return Err(error);
        }
        if self.syncs
            && let Err(error) = self.file.sync_data()
        {
            // The kernel may have forgotten the pages, and would not fail a second time.
            self.broken = Some(format!("a sync failed: {error}"));
            let _ = self.file.set_len(self.durable); // what is refused should not be read again
            return Err(error);
        }
        self.durable += bytes.len() as u64;
        Ok(())
    }

    fn rewrite_if_large(&mut self) {
        // What is durable stays so if this fails: the old log goes on, and is not looked at before it has doubled.
        if self.durable > self.rewrite_at && self.rewrite().is_err() {
            self.rewrite_at = self.durable * 2;
        }
    }

    /// Puts a new log, with nothing in it that is out of date, in the place of this one.
    fn rewrite(&mut self) -> io::Result<()> {
        (self.file, self.durable) = write_anew(&self.path, &self.records)?;
        (self.rewrite_at, self.broken) = (SMALL.max(GROWTH * self.durable), None);
        // After a power cut the old one might be in place again, without what is written from now on.
        sync_folder(&self.path).inspect_err(|error| self.broken = Some(format!("a sync failed: {error}")))
    }
}

/// Opens the file of a store for one daemon alone. A device or a pipe might be read for ever, and is refused.
fn lock_file(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"));
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    lock(&file)?;
    keep_private(&file)?;
    // Meanwhile another daemon may have put a new file in its place.
    if std::fs::metadata(path)?.ino() != file.metadata()?.ino() {
        return Err(in_use());
    }
    Ok(file)
}

/// The mode of a store: what roles keep is for the daemon's user alone.
const PRIVATE: u32 = 0o600;

/// Takes a file that an earlier version wrote from other users. Where that is not allowed, the file is another user's anyway.
fn keep_private(file: &File) -> io::Result<()> {
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        let _ = file.set_permissions(Permissions::from_mode(PRIVATE));
    }
    Ok(())
}

fn lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => in_use(),
        other => other.into(),
    })
}

fn in_use() -> io::Error {
    let why = "another daemon uses this store; end that daemon, or give each a file of its own";
    io::Error::new(io::ErrorKind::ResourceBusy, why)
}

/// A new log beside the old one, durable, then in its place: at no time is there none.
fn write_anew(path: &Path, records: &Records) -> io::Result<(File, u64)> {
    let mut bytes = MAGIC.to_vec();
    for (key, value) in records {
        let mut body = Vec::new();
        put_entry(&mut body, key, Some(value));
        bytes.extend_from_slice(&frame(&body));
    }
    bytes.extend_from_slice(&frame(&[])); // so that damage of the last record is not taken for a tear
    let beside = beside(path);
    let written = write_durably(&beside, &bytes);
    let placed = written.and_then(|file| std::fs::rename(&beside, path).map(|()| (file, bytes.len() as u64)));
    placed.inspect_err(|_| {
        let _ = std::fs::remove_file(&beside); // half a log takes room, too
    })
}

fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(path)?;
    lock(&file)?;
    keep_private(&file)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn put_entry(body: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    let length = 1 + 4 + key.len() + value.map_or(0, <[u8]>::len);
    body.extend_from_slice(&(length as u32).to_le_bytes());
    body.push(if value.is_some() { PUT } else { REMOVE });
    body.extend_from_slice(&(key.len() as u32).to_le_bytes());
    body.extend_from_slice(key);
    body.extend_from_slice(value.unwrap_or_default());
}

fn frame(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_le_bytes();
    [MARKER, &length[..], &crc32(body).to_le_bytes()[..], body].concat()
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a log says, up to the commit that is torn, if one is.
struct Contents {
    records: Records,
    /// Whether its last word is that the daemon ended in order.
    clean: bool,
    /// Where its records end; the word of the end is not one.
    end: u64,
}

fn read(bytes: &[u8]) -> io::Result<Contents> {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        let why = if bytes.starts_with(ANY_VERSION) {
            "this store is of another version of wayfare, which this one does not read; remove it to begin without records"
        } else {
            "this file is not a store of wayfare's"
        };
        return Err(damaged(why));
    };
    let (mut records, mut clean, mut end) = (Records::new(), false, MAGIC.len());
    while let Some((body, behind)) = whole_frame(rest) {
        (rest, clean) = (behind, false);
        let mut entries = body;
        while let Some((entry, behind)) = next_entry(entries) {
            entries = behind;
            clean = entry == [ENDED];
            apply(&mut records, entry);
        }
        if !entries.is_empty() {
            return Err(damaged("a record has no known form"));
        }
        if !clean {
            end = bytes.len() - rest.len();
        }
    }
    if has_whole_frame(rest.get(1..).unwrap_or_default()) {
        let at = bytes.len() - rest.len();
        return Err(damaged(&format!(
            "damaged at byte {at}, with intact records behind it; put a copy back, or move the file away to begin without records"
        )));
    }
    Ok(Contents { records, clean: clean && rest.is_empty(), end: end as u64 })
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn whole_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(MARKER)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (body, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (crc32(body) == u32::from_le_bytes(*sum)).then_some((body, behind))
}

fn has_whole_frame(bytes: &[u8]) -> bool {
    bytes.windows(HEAD).enumerate().any(|(at, head)| {
        head.starts_with(MARKER) && bytes.get(at..).is_some_and(|rest| whole_frame(rest).is_some())
    })
}

fn next_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

fn apply(records: &mut Records, body: &[u8]) -> Option<()> {
    let (kind, rest) = body.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (key, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    match *kind {
        PUT => records.insert(key.to_vec(), value.to_vec()),
        REMOVE => records.remove(key),
        _ => None,
    };
    Some(())
}

/// The CRC of IEEE 802.3, bit by bit: records are short, and a sync takes thousands of times as long.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
