//! Records that outlive a daemon: an append-only log, rewritten when most of it is out of date.
//!
//! ```text
//! file    = magic record*
//! record  = length of body (u32) | CRC-32 of body (u32) | body      little-endian
//! body    = 0 | length of key (u32) | key | value                   put
//!         | 1 | length of key (u32) | key                           remove
//!         | 2                                                       the daemon ended in order
//! ```
//!
//! What [`Store::commit`] has answered is on the disk: `kill -9` or a power cut right after it loses nothing. A record that
//! was being written then is cut short or fails its CRC; reading ends there, and writing goes on from there.

use crate::error::{Attempt, Result};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 16] = b"wayfare store 1\n";
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
        let _ = std::fs::remove_file(beside(path)); // of a daemon that was killed while it wrote anew
        match read_file(path) {
            Ok(bytes) => Self::go_on(path, &bytes).attempt("open the store", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let records = Records::new();
                let anew = write_anew(path, &records);
                let (file, durable) = anew.attempt("write the store", path.display())?;
                sync_folder(path).attempt("write the store", path.display())?;
                Ok(Self::new(path, file, durable, records, true))
            }
            Err(error) => Err(error).attempt("read the store", path.display()),
        }
    }

    /// Goes on behind the last record that is whole, or behind the one before if that tells of an end in order.
    fn go_on(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        let Contents { records, clean, end } = read(bytes)?;
        let file = OpenOptions::new().write(true).open(path)?;
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
        let mut bytes = Vec::new();
        for (key, value) in &pending {
            put_record(&mut bytes, &body(key, value.as_deref()));
        }
        self.write(&bytes)?;
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
        let mut bytes = Vec::new();
        put_record(&mut bytes, &[ENDED]);
        self.write(&bytes).attempt("close the store", self.path.display())
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

/// A device or a pipe might be read for ever.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.is_file() {
        return std::fs::read(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file"))
}

/// A new log beside the old one, durable, then in its place: at no time is there none.
fn write_anew(path: &Path, records: &Records) -> io::Result<(File, u64)> {
    let mut bytes = MAGIC.to_vec();
    for (key, value) in records {
        put_record(&mut bytes, &body(key, Some(value)));
    }
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
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn body(key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![if value.is_some() { PUT } else { REMOVE }];
    body.extend_from_slice(&(key.len() as u32).to_le_bytes());
    body.extend_from_slice(key);
    body.extend_from_slice(value.unwrap_or_default());
    body
}

fn put_record(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32(body).to_le_bytes());
    out.extend_from_slice(body);
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a log says, up to the first record that is torn.
struct Contents {
    records: Records,
    /// Whether its last word is that the daemon ended in order.
    clean: bool,
    /// Where its records end; the word of the end is not one.
    end: u64,
}

fn read(bytes: &[u8]) -> io::Result<Contents> {
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "this file is not a store of wayfare's");
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(strange)?;
    let (mut records, mut clean, mut end) = (Records::new(), false, MAGIC.len());
    while let Some((body, behind)) = next_record(rest) {
        rest = behind;
        clean = body == [ENDED];
        if !clean {
            end = bytes.len() - rest.len();
        }
        apply(&mut records, body);
    }
    Ok(Contents { records, clean: clean && rest.is_empty(), end: end as u64 })
}

fn next_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (body, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (!body.is_empty() && crc32(body) == u32::from_le_bytes(*sum)).then_some((body, behind))
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
mod tests {
    use super::*;

    fn put(store: &mut Store, key: &str, value: &str) {
        store.append(key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
        store.commit().unwrap();
    }

    fn shown(store: &Store) -> Vec<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        store.records().into_iter().map(|(key, value)| (text(key), text(value))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_written_without_syncs_is_there_for_the_next_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut store = Store::open(&path).unwrap().without_syncs();
        put(&mut store, "a", "1");
        drop(store); // as if it was killed
        assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1")]));
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn what_was_committed_is_there_again_and_only_an_end_in_order_is_clean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        assert!(store.was_clean(), "there was none before");
        put(&mut store, "a", "1");
        put(&mut store, "b", "2");
        put(&mut store, "a", "3");
        store.append(b"lost".to_vec(), Some(b"never committed".to_vec()));
        std::mem::forget(store); // as kill -9 does: nothing runs any more

        let mut store = Store::open(&path).unwrap();
        assert!(!store.was_clean());
        assert_eq!(shown(&store), pairs(&[("a", "3"), ("b", "2")]));
        store.append(b"b".to_vec(), None);
        store.commit().unwrap();
        store.close().unwrap();

        let store = Store::open(&path).unwrap();
        assert!(store.was_clean());
        assert_eq!(shown(&store), pairs(&[("a", "3")]));
        drop(store);
        assert!(!Store::open(&path).unwrap().was_clean(), "opened and not closed");
    }

    #[test]
    fn a_torn_or_spoilt_tail_ends_the_reading_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        put(&mut store, "a", "1");
        let whole = std::fs::read(&path).unwrap().len();
        put(&mut store, "b", "2");
        let bytes = std::fs::read(&path).unwrap();
        for end in whole..bytes.len() {
            std::fs::write(&path, &bytes[..end]).unwrap();
            let mut store = Store::open(&path).unwrap();
            assert_eq!(shown(&store), pairs(&[("a", "1")]), "cut at {end}");
            put(&mut store, "c", "3");
            assert_eq!(
                shown(&Store::open(&path).unwrap()),
                pairs(&[("a", "1"), ("c", "3")]),
                "goes on at {end}"
            );
        }
        for at in whole..bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 0x10;
            std::fs::write(&path, &spoilt).unwrap();
            assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1")]), "spoilt at {at}");
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter");
        std::fs::write(&path, "Dear Sir").unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("not a store of wayfare's"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"Dear Sir");
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_read() {
        for path in ["/dev/full", "/dev"] {
            let error = Store::open(Path::new(path)).unwrap_err().to_string();
            assert!(error.starts_with("cannot read the store"), "{path}: {error}");
        }
    }

    #[test]
    fn a_full_disk_fails_the_commit_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        put(&mut store, "a", "1");
        let file =
            std::mem::replace(&mut store.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
        store.append(b"a".to_vec(), Some(b"2".to_vec()));
        assert_eq!(store.commit().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(shown(&store), pairs(&[("a", "1")]));
        // Behind half a record, as a disk leaves it that was filled by it; then there is room again.
        store.file = file;
        store.file.write_all_at(b"half a record", store.durable).unwrap();
        store.broken = None; // a device has no length to be set; a file has
        put(&mut store, "b", "2");
        assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1"), ("b", "2")]));
    }

    /// A disk that turned read-only: nothing can be written, nor taken back.
    fn turn_read_only(store: &mut Store) {
        store.file = File::open(&store.path).unwrap();
    }

    #[test]
    fn a_log_that_cannot_be_written_any_more_is_refused_until_another_can_take_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log").join("store");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut store = Store::open(&path).unwrap();
        put(&mut store, "a", "1");
        turn_read_only(&mut store);
        let away = folder.path().join("away");
        std::fs::rename(path.parent().unwrap(), &away).unwrap(); // nor can a file be made
        for _ in 0..2 {
            store.append(b"a".to_vec(), Some(b"2".to_vec()));
            store.commit().unwrap_err();
            assert_eq!(shown(&store), pairs(&[("a", "1")]));
        }
        std::fs::rename(&away, path.parent().unwrap()).unwrap();
        put(&mut store, "b", "3");
        assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1"), ("b", "3")]));
    }

    #[test]
    fn opening_a_log_takes_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        put(&mut store, "a", "1");
        let length = store.durable;
        store.close().unwrap();
        let inode = |path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
        let before = inode(&path);
        std::fs::write(beside(&path), "of a daemon that was killed").unwrap();
        let store = Store::open(&path).unwrap();
        assert!(store.was_clean());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length, "the word of the end is gone");
        assert_eq!(inode(&path), before, "and all else is where it was");
        assert!(!beside(&path).exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("store");
        assert!(Store::open(&path).unwrap_err().to_string().starts_with("cannot write the store"));
    }

    #[test]
    fn a_log_that_is_mostly_out_of_date_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        for number in 0..40u8 {
            store.append(b"key".to_vec(), Some(vec![number; 64 << 10]));
            store.commit().unwrap();
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 2 * SMALL);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.records(), [(b"key".to_vec(), vec![39; 64 << 10])]);
    }

    #[test]
    fn a_log_that_could_not_be_rewritten_is_left_in_peace_until_it_has_doubled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut store = Store::open(&path).unwrap();
        std::fs::create_dir(beside(&path)).unwrap(); // nothing can be written there
        let mut tries = Vec::new();
        for number in 0..100u8 {
            let before = store.rewrite_at;
            store.append(b"key".to_vec(), Some(vec![number; 64 << 10]));
            store.commit().unwrap();
            if store.rewrite_at != before {
                tries.push(number);
            }
        }
        assert_eq!(tries, [15, 32, 66]);
        std::fs::remove_dir(beside(&path)).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert!(store.durable < SMALL, "a log that is opened is looked at, too");
        assert_eq!(store.records(), [(b"key".to_vec(), vec![99; 64 << 10])]);
    }
}
