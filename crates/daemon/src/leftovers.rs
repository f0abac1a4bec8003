//! What dead daemons left: `wayfare doctor` reports it, and `wayfare doctor --clean` cleans it up.

use super::claim::{Claim, Taken, remove_unheld, unheld_lock};
use super::record_folder::{self, LOCK, PREFIX, RECORD};
use super::restore;
use os::{
    Attempt, Error, Result,
    files::boot_id,
    namespace::{self, NetNs},
};
use std::fs;
use std::path::{Path, PathBuf};

/// What a daemon left at a path (a record of changes, a lock or a folder), and what was done about it.
#[derive(Debug)]
pub enum LeftByDaemon {
    /// A process holds the lock or the claim of this namespace, so the namespace's daemon counts as alive. Nothing was
    /// changed.
    Alive,
    /// The daemon is dead, and the record of its changes is left.
    Dead,
    /// The changes have been undone: by this call, because the daemon is dead, or by the daemon when it ended.
    PutBack,
    /// The namespace was not found, so its changes do not exist any more. The record is removed.
    Gone,
    /// A lock without a record, which no process holds: of a daemon that was killed before it changed anything.
    /// [`clean`] removes the lock, and [`left_behind`] does not.
    Lock,
    /// The folder belongs to the user with this uid, and only that user can clean it up.
    OfAnother(u32),
    /// A record or lock could not be read or removed, or a change could not be undone. A record of what is left is
    /// kept.
    Failed(Error),
}

/// Undoes the changes of dead daemons of this user, and removes their locks. Returns an entry with a path for each
/// record, and for each lock that was removed or could not be removed. Also returns an entry for each folder of another
/// user that may have records or locks.
///
/// # Errors
///
/// If a folder of records, or the list of processes (`/proc`), cannot be read.
pub fn clean() -> Result<Vec<(PathBuf, LeftByDaemon)>> {
    let mut found = Vec::new();
    for folder in record_folder::ours() {
        found.extend(clean_in(&folder)?);
    }
    found.extend(of_others());
    Ok(found)
}

/// Lists the records of daemons of this user, and the locks of dead daemons that left no record. Also lists the folders
/// of other users that may have records or locks. Each entry has the path of what was found. Changes nothing.
///
/// # Errors
///
/// If a folder of records or a lock cannot be read.
pub fn left_behind() -> Result<Vec<(PathBuf, LeftByDaemon)>> {
    let mut found = Vec::new();
    for folder in record_folder::ours() {
        found.extend(look_in(&folder)?);
    }
    found.extend(of_others());
    Ok(found)
}

/// A daemon of this user that runs outside a lab.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Running {
    /// The name of the daemon's host.
    pub host: String,
    /// The absolute path of the daemon's control socket; `None` if it has none.
    pub control: Option<PathBuf>,
}

/// Returns the running daemons of this user, except those of labs, in the order of the cookies of their namespaces.
///
/// # Errors
///
/// If a folder of records, a record or a lock cannot be read.
pub fn running() -> Result<Vec<Running>> {
    let mut found = Vec::new();
    for folder in record_folder::ours() {
        found.extend(running_in(&folder)?);
    }
    Ok(found)
}

fn running_in(folder: &Path) -> Result<Vec<Running>> {
    let mut found = Vec::new();
    for (path, left) in look_in(folder)? {
        if matches!(left, LeftByDaemon::Alive)
            && let Some(before) = restore::read(&path)?
        {
            found.push(Running { host: before.host, control: before.control });
        }
    }
    Ok(found)
}

fn clean_in(folder: &Path) -> Result<Vec<(PathBuf, LeftByDaemon)>> {
    let records = files(folder, RECORD)?;
    let namespaces = if records.is_empty() { Vec::new() } else { namespace::all()? };
    let cleaned = |path: PathBuf| {
        let left = clean_one(&path, &namespaces).unwrap_or_else(LeftByDaemon::Failed);
        (path, left)
    };
    let mut found: Vec<_> = records.into_iter().map(cleaned).collect();
    // The records come first: cleaning up one of them also removes its lock.
    for path in files(folder, LOCK)? {
        match remove_unheld(&path) {
            Ok(true) => found.push((path, LeftByDaemon::Lock)),
            Ok(false) => {}
            Err(error) => found.push((path, LeftByDaemon::Failed(error))),
        }
    }
    Ok(found)
}

/// Undoes the changes in this record, if its daemon is dead.
fn clean_one(path: &Path, namespaces: &[NetNs]) -> Result<LeftByDaemon> {
    let remove = || fs::remove_file(path).attempt("remove", path.display());
    // If the daemon has ended meanwhile, it has removed its record.
    let Some(before) = restore::read(path)? else { return Ok(LeftByDaemon::PutBack) };
    if before.boot == boot_id()? {
        for namespace in namespaces {
            let put_back = || {
                if namespace::cookie()? != before.namespace {
                    return Ok(None);
                }
                // The claim is held until all changes are undone, so that no daemon starts meanwhile.
                let Taken::Free(_claim) = Claim::take()? else { return Ok(Some(LeftByDaemon::Alive)) };
                Ok(Some(match before.put_back().keep(path) {
                    Ok(()) => LeftByDaemon::PutBack,
                    Err(error) => LeftByDaemon::Failed(error),
                }))
            };
            if let Some(left) = namespace.run(put_back)?? {
                return Ok(left);
            }
        }
    }
    remove()?;
    let _ = remove_unheld(&path.with_extension(LOCK)); // of a daemon that was killed
    Ok(LeftByDaemon::Gone)
}

fn look_in(folder: &Path) -> Result<Vec<(PathBuf, LeftByDaemon)>> {
    let mut found = Vec::new();
    for path in files(folder, RECORD)? {
        let lock = path.with_extension(LOCK);
        let is_held = lock.exists() && unheld_lock(&lock)?.is_none();
        found.push((path, if is_held { LeftByDaemon::Alive } else { LeftByDaemon::Dead }));
    }
    for path in files(folder, LOCK)? {
        if !path.with_extension(RECORD).exists() && unheld_lock(&path)?.is_some() {
            found.push((path, LeftByDaemon::Lock));
        }
    }
    Ok(found)
}

/// Returns the files of namespaces with this extension, in the order of their names.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).attempt("list", folder.display())? {
        let name = entry.attempt("list", folder.display())?.file_name();
        let text = name.to_string_lossy();
        if text.starts_with(PREFIX) && Path::new(&name).extension().is_some_and(|it| it == extension) {
            paths.push(folder.join(name));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the folders of other users, except those that are known to have neither a record nor a lock.
fn of_others() -> impl Iterator<Item = (PathBuf, LeftByDaemon)> {
    let may_have_some = |(path, _): &(PathBuf, u32)| {
        [RECORD, LOCK].iter().any(|extension| files(path, extension).map_or(true, |files| !files.is_empty()))
    };
    let folders = record_folder::of_others().into_iter().filter(may_have_some);
    folders.map(|(path, user)| (path, LeftByDaemon::OfAnother(user)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_own_process;
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_lock_that_nobody_holds_is_removed_whatever_else_is_there() {
        in_own_process(|| {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            // Namespace 7 had a daemon that was killed before its record was complete. The daemon of namespace 8 runs.
            for name in ["namespace-7.lock", "namespace-7.new", "namespace-8.lock", "something.lock"] {
                File::create(at(name)).unwrap();
            }
            let held = File::open(at("namespace-8.lock")).unwrap();
            flock(&held, FlockOperation::LockExclusive).unwrap();
            let found = look_in(folder.path()).unwrap();
            assert!(
                matches!(&found[..], [(path, LeftByDaemon::Lock)] if *path == at("namespace-7.lock")),
                "{found:?}"
            );
            assert_eq!(names(folder.path()).len(), 4, "looking touches nothing");
            let found = clean_in(folder.path()).unwrap();
            assert!(
                matches!(&found[..], [(path, LeftByDaemon::Lock)] if *path == at("namespace-7.lock")),
                "{found:?}"
            );
            assert_eq!(names(folder.path()), ["namespace-8.lock", "something.lock"]);
            drop(held);
            assert_eq!(clean_in(folder.path()).unwrap().len(), 1);
            assert!(clean_in(folder.path()).unwrap().is_empty());
        });
    }

    #[test]
    fn a_record_whose_lock_is_held_is_of_a_daemon_that_runs() {
        in_own_process(|| {
            let folder = tempfile::tempdir().unwrap();
            for name in ["namespace-7.lock", "namespace-7.json", "namespace-8.json"] {
                File::create(folder.path().join(name)).unwrap();
            }
            let held = File::open(folder.path().join("namespace-7.lock")).unwrap();
            flock(&held, FlockOperation::LockExclusive).unwrap();
            let found: Vec<_> = look_in(folder.path()).unwrap().into_iter().map(|(_, left)| left).collect();
            assert!(matches!(&found[..], [LeftByDaemon::Alive, LeftByDaemon::Dead]), "{found:?}");
            drop(held);
            let found: Vec<_> = look_in(folder.path()).unwrap().into_iter().map(|(_, left)| left).collect();
            assert!(matches!(&found[..], [LeftByDaemon::Dead, LeftByDaemon::Dead]), "{found:?}");
        });
    }
}
