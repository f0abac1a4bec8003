//! Tests what a store keeps, what it refuses, and how it detects damage.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

fn put(store: &mut Store, key: &str, value: &str) {
    store.append(key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
    store.commit().unwrap();
}

fn shown(path: &Path) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let records = Store::open(path).unwrap().records();
    records.into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Returns a copy of the file as it is: what a daemon would leave if it were killed now.
fn killed(path: &Path) -> PathBuf {
    let left = path.with_extension("left");
    std::fs::copy(path, &left).unwrap();
    left
}

fn refusal(path: &Path) -> String {
    Store::open(path).unwrap_err().to_string()
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
    let left = killed(&path);
    assert_eq!(shown(&left), pairs(&[("a", "3"), ("b", "2")]));
    assert!(!Store::open(&left).unwrap().was_clean());

    let mut store = Store::open(&left).unwrap();
    store.append(b"b".to_vec(), None);
    store.commit().unwrap();
    store.close().unwrap();
    assert_eq!(shown(&left), pairs(&[("a", "3")]));
    let mut store = Store::open(&left).unwrap();
    assert!(store.was_clean());
    put(&mut store, "c", "4");
    drop(store);
    assert!(!Store::open(&left).unwrap().was_clean(), "it stored something, and did not end in order");
}

#[test]
fn what_is_written_without_syncs_is_there_for_the_next_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap().without_syncs().unwrap();
    put(&mut store, "a", "1");
    assert_eq!(shown(&killed(&path)), pairs(&[("a", "1")]));
}

/// After a power cut in the middle of a commit, any of its pages may be on the disk. The store then has all records of
/// the commit or none, and all earlier records.
#[test]
fn a_commit_that_is_cut_short_is_there_or_not_and_nothing_before_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    let before = std::fs::read(&path).unwrap();
    put(&mut store, "b", "2");
    let after = std::fs::read(&path).unwrap();
    let pages: Vec<usize> = (0..after.len())
        .step_by(4096)
        .filter(|at| before.get(*at..*at + 4096) != after.get(*at..*at + 4096))
        .collect();
    assert!((2..12).contains(&pages.len()), "{pages:?}");
    let torn = folder.path().join("torn");
    for kept in 0..1 << pages.len() {
        let mut bytes = before.clone();
        for page in (0..pages.len()).filter(|page| kept >> page & 1 == 1).map(|page| pages[page]) {
            bytes[page..page + 4096].copy_from_slice(&after[page..page + 4096]);
        }
        std::fs::write(&torn, &bytes).unwrap();
        let found = shown(&torn);
        assert!(
            [pairs(&[("a", "1")]), pairs(&[("a", "1"), ("b", "2")])].contains(&found),
            "{kept:b}: {found:?}"
        );
        let mut store = Store::open(&torn).unwrap();
        put(&mut store, "c", "3");
        drop(store);
        assert!(shown(&torn).ends_with(&pairs(&[("c", "3")])), "it continues: {kept:b}");
    }
}

/// After a clean end every byte is known. A file with a changed byte is refused, or no record depends on that byte.
#[test]
fn a_changed_bit_is_refused_and_left_as_it_is_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    for key in 0..40 {
        put(&mut store, &format!("key {key}"), "value");
    }
    store.close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let expected = shown(&path);
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let (mut refused, mut same) = (0, 0);
    let step = used.len() / 300;
    for at in (0..400).chain(used.into_iter().step_by(step)) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0x10;
        std::fs::write(&path, &spoilt).unwrap();
        match Store::open(&path) {
            Ok(store) => {
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                let found: Vec<_> = store.records().into_iter().map(|(k, v)| (text(k), text(v))).collect();
                assert_eq!(found, expected, "byte {at}: a damaged record was read without an error");
                same += 1;
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("damaged") || said.contains("not a store"), "{at}: {said}");
                assert_eq!(std::fs::read(&path).unwrap(), spoilt, "{at}: it was changed");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} refused, {same} the same");
}

#[test]
fn a_file_that_is_too_short_or_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    Store::open(&path).unwrap().close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 5, 100, 4096, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let said = refusal(&path);
        assert!(said.contains("damaged") || said.contains("not a store"), "{length}: {said}");
    }
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter");
    for (content, why) in
        [("Dear Sir", "not a store of Wayfare"), ("wayfare store 2\nrecords", "another version of Wayfare")]
    {
        std::fs::write(&path, content).unwrap();
        let said = refusal(&path);
        assert!(said.contains(why), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), content.as_bytes());
    }
    let other = folder.path().join("database");
    let database = Database::create(&other).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<u8, u8>::new("theirs")).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(refusal(&other).contains("not a store of Wayfare"));
}

#[test]
fn what_is_no_file_is_refused_and_not_read() {
    for path in ["/dev/full", "/dev"] {
        let said = refusal(Path::new(path));
        assert!(said.starts_with("cannot open the store"), "{path}: {said}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("store");
    assert!(refusal(&path).starts_with("cannot write the store"));
}

#[test]
fn only_its_owner_reads_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(Store::open(&path).unwrap());
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn opening_a_store_takes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    store.close().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    for _ in 0..3 {
        assert!(Store::open(&path).unwrap().was_clean(), "nothing was stored in between");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// A disk that becomes full after `room` writes, syncs and changes of the file's length.
#[derive(Debug)]
struct Filling {
    disk: Disk,
    room: AtomicUsize,
}

impl Filling {
    fn take(&self) -> io::Result<()> {
        let taken = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(1));
        taken.map(drop).map_err(|_| io::Error::from_raw_os_error(libc::ENOSPC))
    }
}

impl StorageBackend for Filling {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.take().and_then(|()| self.disk.set_len(len))
    }
    fn sync_data(&self) -> io::Result<()> {
        self.take().and_then(|()| self.disk.sync_data())
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.take().and_then(|()| self.disk.write(offset, data))
    }
}

#[test]
fn a_commit_that_fails_wherever_it_does_changes_nothing_and_the_next_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut failed = 0;
    for room in 0..40 {
        let path = folder.path().join(format!("store {room}"));
        let mut store = Store::open(&path).unwrap();
        put(&mut store, "a", "1");
        store.database = None;
        let disk = Disk { file: lock_file(&path).unwrap(), syncs: true };
        let Ok(opened) = database(Filling { disk, room: AtomicUsize::new(room) }) else { continue };
        store.database = Some(opened);
        store.append(b"a".to_vec(), Some(b"2".to_vec()));
        store.append(b"b".to_vec(), Some(b"2".to_vec()));
        store.append(b"b".to_vec(), Some(b"3".to_vec()));
        let expected = match store.commit() {
            Ok(()) => {
                store.reopen().unwrap(); // with room
                pairs(&[("a", "2"), ("b", "3"), ("c", "4")])
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{error}");
                pairs(&[("a", "1"), ("c", "4")])
            }
        };
        put(&mut store, "c", "4");
        drop(store);
        assert_eq!(shown(&path), expected, "room for {room}");
    }
    assert!(failed > 2, "{failed}");
}

#[test]
fn a_record_that_changes_for_ever_keeps_its_file_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap().without_syncs().unwrap();
    let begun = std::fs::metadata(&path).unwrap().len();
    for number in 0..3000_u32 {
        store.append(b"key".to_vec(), Some(vec![number as u8; 1000]));
        store.commit().unwrap();
    }
    let length = std::fs::metadata(&path).unwrap().len();
    assert!(length <= 2 * begun, "{begun} bytes became {length}");
}

#[test]
fn a_second_daemon_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    let said = refusal(&path);
    assert!(said.starts_with("cannot open the store") && said.contains("another daemon uses"), "{said}");
    put(&mut store, "b", "2");
    drop(store);
    assert_eq!(shown(&path), pairs(&[("b", "2")]));
}

#[test]
fn a_file_that_is_no_longer_at_its_path_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("store"), folder.path().join("aside"));
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    std::fs::rename(&path, &aside).unwrap();
    store.append(b"b".to_vec(), Some(b"2".to_vec()));
    assert!(store.commit().unwrap_err().to_string().contains("was removed"));
    std::fs::copy(&aside, &path).unwrap();
    store.append(b"c".to_vec(), Some(b"3".to_vec()));
    assert!(store.commit().unwrap_err().to_string().contains("another file"));
    // The file is put back: it does not have the records that were refused meanwhile.
    std::fs::rename(&aside, &path).unwrap();
    put(&mut store, "d", "4");
    store.close().unwrap();
    assert_eq!(shown(&path), pairs(&[("a", "1"), ("d", "4")]));
    let store = Store::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(store.close().unwrap_err().to_string().contains("was removed"));
}
