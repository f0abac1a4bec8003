//! What survives, what is refused, and what is damage.

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
fn a_store_is_its_users_alone_and_one_of_an_earlier_version_becomes_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    put(&mut Store::open(&path).unwrap(), "a", "1");
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let opened = wait_until_free(&path);
    assert_eq!((mode(), shown(&opened)), (0o600, pairs(&[("a", "1")])));
}

/// Opens a log of which a child of another test may have inherited the lock for a moment.
fn wait_until_free(path: &Path) -> Store {
    for _ in 0..100 {
        if let Ok(store) = Store::open(path) {
            return store;
        }
        crate::pause(wire::Duration::from_millis(10));
    }
    Store::open(path).unwrap()
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
    drop(store); // as kill -9 does: nothing is written any more

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
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    for end in whole..bytes.len() {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(shown(&store), pairs(&[("a", "1")]), "cut at {end}");
        put(&mut store, "c", "3");
        drop(store);
        assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1"), ("c", "3")]), "goes on at {end}");
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
        assert!(error.starts_with("cannot open the store"), "{path}: {error}");
    }
}

#[test]
fn a_full_disk_fails_the_commit_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    let file = std::mem::replace(&mut store.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
    store.append(b"a".to_vec(), Some(b"2".to_vec()));
    assert_eq!(store.commit().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(shown(&store), pairs(&[("a", "1")]));
    // Behind half a record, as a disk leaves it that was filled by it; then there is room again.
    store.file = file;
    store.file.write_all_at(b"half a record", store.durable).unwrap();
    store.broken = None; // a device has no length to be set; a file has
    put(&mut store, "b", "2");
    drop(store);
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
    drop(store);
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
    drop(store);
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

#[test]
fn a_flipped_bit_in_front_of_intact_records_is_damage_and_nothing_is_lost_by_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    let begin = std::fs::read(&path).unwrap().len();
    put(&mut store, "a", "1");
    let first = std::fs::read(&path).unwrap().len();
    for key in ["b", "c", "d"] {
        put(&mut store, key, "2");
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    for at in (begin..first).chain([MAGIC.len(), MAGIC.len() + 5]) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0x10;
        std::fs::write(&path, &spoilt).unwrap();
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(error.contains("damaged at byte") && error.contains("put a copy back"), "{at}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), spoilt, "{at}: it was changed");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(Store::open(&path).unwrap().records().len(), 4);
}

#[test]
fn damage_of_the_last_commit_is_seen_after_an_end_in_order_and_in_a_log_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    let end = std::fs::read(&path).unwrap().len();
    store.close().unwrap();
    let mut spoilt = std::fs::read(&path).unwrap();
    spoilt[end - 1] ^= 1;
    std::fs::write(&path, &spoilt).unwrap();
    assert!(Store::open(&path).unwrap_err().to_string().contains("damaged at byte"));
    spoilt[end - 1] ^= 1;
    std::fs::write(&path, &spoilt).unwrap();
    let mut store = Store::open(&path).unwrap();
    store.rewrite().unwrap();
    drop(store);
    let mut spoilt = std::fs::read(&path).unwrap();
    let value = spoilt.len() - HEAD - 1;
    spoilt[value] ^= 1;
    std::fs::write(&path, &spoilt).unwrap();
    assert!(Store::open(&path).unwrap_err().to_string().contains("damaged at byte"));
}

#[test]
fn a_second_daemon_is_refused_also_after_the_log_was_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut store = Store::open(&path).unwrap();
    put(&mut store, "a", "1");
    for _ in 0..2 {
        let error = Store::open(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot open the store") && error.contains("another daemon uses"),
            "{error}"
        );
        store.rewrite().unwrap();
    }
    put(&mut store, "b", "2");
    drop(store);
    assert_eq!(shown(&Store::open(&path).unwrap()), pairs(&[("a", "1"), ("b", "2")]));
}

#[test]
fn a_store_of_another_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    std::fs::write(&path, b"wayfare store 1\nrecords").unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("another version of wayfare"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"wayfare store 1\nrecords");
}
