//! The location of a run directory: what may be replaced there, and the lock that gives one process exclusive access.

use super::ReadError;
use super::digests;
use super::files::{LOCK, beside, is_passing, page};
use super::meta;
use crate::run::Backend;
use crate::unfinished::{Kind, Unfinished, missing_folders, refuse_file};
use scenario::{Plan, Repetition, redacted};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace::Fingerprinter;

/// Returns the default directory of a run. It is `runs/NAME-BACKEND-SEED`, with a digest of the settings if there are
/// any. For one of several runs it is `runs/NAME-BACKEND-SEED-repetition-I-of-N`. If [`check`] refuses this directory,
/// for example because it holds another run, `.2`, `.3` and so on are appended.
pub fn default_dir(name: &str, plan: &Plan, backend: Backend) -> PathBuf {
    let Repetition { number, of, seed } = plan.repetition;
    let which =
        if of > 1 { format!("{seed}-repetition-{}-of-{of}", number + 1) } else { plan.seed.to_string() };
    let base = format!("{name}-{}-{which}{}", backend.name(), digest_of_settings(plan));
    unused(&base, |dir| check(dir, plan, backend, false))
}

/// Returns the default folder of `of` runs at different phases: `runs/NAME-BACKEND-of-N`, with the suffixes of
/// [`default_dir`]. `first` is the plan of the first run. The folder separates these runs from single runs, which have
/// the phases of the scenario file.
pub fn default_folder(name: &str, first: &Plan, backend: Backend, of: u64) -> PathBuf {
    let base = format!("{name}-{}-of-{of}{}", backend.name(), digest_of_settings(first));
    unused(&base, |folder| {
        let is_empty = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        let member = member(folder, name, backend, first.seed);
        match (is_empty, member.exists()) {
            (true, _) => Ok(()),
            (false, true) => check(&member, first, backend, false),
            (false, false) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    })
}

/// Returns the directory of one of several runs: `FOLDER/NAME-BACKEND-SEED`.
pub fn member(folder: &Path, name: &str, backend: Backend, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{}-{seed}", backend.name()))
}

fn digest_of_settings(plan: &Plan) -> String {
    if plan.settings.is_empty() {
        return String::new();
    }
    let mut digest = Fingerprinter::default();
    for setting in &plan.settings {
        digest.add(&setting.to_string());
    }
    format!("-{:08x}", digest.value() as u32)
}

/// Returns the first of `runs/BASE`, `runs/BASE.2`, `runs/BASE.3` and so on that `check` does not reject with
/// `AlreadyExists`.
fn unused(base: &str, check: impl Fn(&Path) -> io::Result<()>) -> PathBuf {
    let mut dir = Path::new("runs").join(base);
    let mut number = 2_u64;
    // Any other error is the same for every name, and is reported when the run is written.
    while check(&dir).is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        dir = Path::new("runs").join(format!("{base}.{number}"));
        number += 1;
    }
    dir
}

/// Checks whether a run may be written to `dir`. The directory may be missing or empty. It may hold a run of the same
/// scenario, settings, backend, seed and repetition, if no file of this run was changed. With `force`, it may hold any
/// run. Otherwise the error's kind is `AlreadyExists`. Any other kind is an error of a file operation.
pub fn check(dir: &Path, plan: &Plan, backend: Backend, force: bool) -> io::Result<()> {
    let refuse = |problem: &str| {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} {problem}", dir.display())))
    };
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let problem = format!("{}: {error}; name another directory", dir.display());
            return Err(io::Error::new(error.kind(), problem));
        }
        Ok(found) if found.is_symlink() => return refuse("is a symbolic link; name the directory itself"),
        Ok(found) if !found.is_dir() => {
            return refuse("exists and is not a run directory; not overwritten; name another directory");
        }
        Ok(_) => {}
    }
    let Some(page) = page(dir) else {
        match fs::read(dir.join("run.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return refuse(&format!(
                    "has a run.json that cannot be read ({error}); not overwritten; name another directory"
                ));
            }
            _ => {}
        }
        let mut entries = fs::read_dir(dir)?.flatten().filter(|entry| !is_passing(&entry.path()));
        return match entries.next() {
            None => Ok(()),
            Some(_) => refuse("exists and is not a run directory; not overwritten; name another directory"),
        };
    };
    if force {
        return Ok(());
    }
    if is_run_of(&page, plan, backend) {
        return match digests::check(dir) {
            Err(ReadError::Changed(file)) => refuse(&format!(
                "holds this run, but {} was changed after the run; name another directory, or replace the run with --force",
                file.display()
            )),
            _ => Ok(()),
        };
    }
    refuse("holds another run; name another directory, or replace that run with --force")
}

fn is_run_of(page: &[u8], plan: &Plan, backend: Backend) -> bool {
    let Ok(page) = serde_json::from_slice::<serde_json::Value>(page) else { return false };
    let settings: Vec<String> = plan.settings.iter().map(ToString::to_string).collect();
    page["scenario"]["text"] == redacted(&plan.text, &plan.settings)
        && page["settings"] == serde_json::json!(settings)
        && page["backend"] == backend.name()
        && page["seed"] == plan.seed
        && page["repetition"] == serde_json::json!(meta::RepetitionPart::of(plan.repetition))
}

/// An exclusive lock on a run directory or a folder. The lock ends when this value is dropped.
#[derive(Debug)]
pub struct Claim {
    // The fields are dropped in this order.
    _lock: Unfinished,
    /// The folders that were created for the lock, the innermost first. A folder that is not empty is not removed.
    _made: Vec<Unfinished>,
    _file: File,
}

/// Locks a run directory with a lock file. The lock file is in the directory, or beside it if the directory does not
/// exist. The error's kind is `WouldBlock` if another process holds the lock.
pub fn claim(dir: &Path) -> io::Result<Claim> {
    if dir.is_dir() {
        return claim_folder(dir);
    }
    // The lock is beside the directory, so it stays in place when the run is renamed.
    let (folder, name) = beside(dir, "wayfare-lock").map_err(within(dir))?;
    lock(dir, &folder, &name)
}

/// Locks a folder for several files or runs, and creates it if it does not exist. The error's kind is `WouldBlock` if
/// another process holds the lock.
pub(crate) fn claim_folder(folder: &Path) -> io::Result<Claim> {
    lock(folder, folder, LOCK)
}

fn within(dir: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()))
}

/// Locks the file `name` in `folder`. The lock protects `dir`, and errors name `dir`, or the part of
/// its path that is a file.
fn lock(dir: &Path, folder: &Path, name: &str) -> io::Result<Claim> {
    let within = within(dir);
    refuse_file(folder)?;
    let made = missing_folders(folder);
    let lock = folder.join(name);
    loop {
        fs::create_dir_all(folder).map_err(&within)?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = match opened {
            // Another process created the folder, did not use it, and has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => continue,
            opened => opened.map_err(&within)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = format!(
                    "{}: another process is writing this directory; wait for its end, or name another directory",
                    dir.display()
                );
                return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
            }
            Err(TryLockError::Error(error)) => return Err(within(error)),
        }
        // The last holder may have removed the file after it was opened here and before it was locked.
        let ours = file.metadata().map_err(&within)?;
        if fs::metadata(&lock).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Claim { _lock: Unfinished::new(lock, Kind::Part), _made: made, _file: file });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::files_of;
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        files_of(dir).unwrap().into_iter().collect()
    }

    #[test]
    fn a_directory_is_claimed_once_whether_it_is_there_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        for dir in [folder.path(), &new] {
            let claimed = claim(dir).unwrap();
            assert_eq!(claim(dir).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            drop(claimed);
            drop(claim(dir).unwrap());
        }
        assert!(names(folder.path()).is_empty(), "no lock stays");
    }
    #[test]
    fn a_claim_that_is_not_used_leaves_no_folder_and_removes_none_in_which_something_is() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs/deep/new");
        drop(claim(&dir).unwrap());
        assert!(names(folder.path()).is_empty());
        let claimed = claim(&dir).unwrap();
        fs::write(folder.path().join("runs/other"), "a user's").unwrap();
        drop(claimed);
        assert_eq!(names(&folder.path().join("runs")), ["other"]);
    }
}
