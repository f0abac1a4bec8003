//! Where a run directory goes: what may be replaced there, and that only one process writes it.

use super::ReadError;
use super::digests;
use super::meta;
use super::put::{is_passing, page};
use crate::Plan;
use crate::run::OnWorld;
use crate::scenario::{Repetition, secret};
use crate::unfinished::{Kind, Unfinished};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace::Fingerprint;

/// The file that is locked by the process that writes a directory.
pub(super) const LOCK: &str = ".wayfare-lock";

/// The directory in which a run is kept if none is named: `runs/NAME-BACKEND-SEED`, with a digest of the settings if there
/// are any; of one of several runs `runs/NAME-BACKEND-SEED-repetition-I-of-N`. Where that holds a run of another text of the scenario, `.2`, `.3` and so on follow.
pub fn default_dir(name: &str, plan: &Plan, world: OnWorld) -> PathBuf {
    let Repetition { number, of, seed } = plan.repetition;
    let which =
        if of > 1 { format!("{seed}-repetition-{}-of-{of}", number + 1) } else { plan.seed.to_string() };
    let base = format!("{name}-{}-{which}{}", world.name(), digest_of_settings(plan));
    unused(&base, |dir| check(dir, plan, world, false))
}

/// The folder of `of` runs at other phases if none is named: `runs/NAME-BACKEND-of-N`, and so on as [`default_dir`]. `first`
/// is the plan of the first of them. They do not lie among single runs, whose phases are those of the file.
pub fn default_folder(name: &str, first: &Plan, world: OnWorld, of: u64) -> PathBuf {
    let base = format!("{name}-{}-of-{of}{}", world.name(), digest_of_settings(first));
    unused(&base, |folder| {
        let is_empty = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        let member = member(folder, name, world, first.seed);
        match (is_empty, member.exists()) {
            (true, _) => Ok(()),
            (false, true) => check(&member, first, world, false),
            (false, false) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    })
}

/// The directory of one of several runs.
pub fn member(folder: &Path, name: &str, world: OnWorld, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{}-{seed}", world.name()))
}

fn digest_of_settings(plan: &Plan) -> String {
    if plan.settings.is_empty() {
        return String::new();
    }
    let mut digest = Fingerprint::default();
    for setting in &plan.settings {
        digest.add(&setting.to_string());
    }
    format!("-{:08x}", digest.value() as u32)
}

/// The first of `runs/BASE`, `runs/BASE.2`, `runs/BASE.3` that holds nothing else.
fn unused(base: &str, check: impl Fn(&Path) -> io::Result<()>) -> PathBuf {
    let mut dir = Path::new("runs").join(base);
    let mut number = 2_u64;
    // Any other error is the same for every name, and is told when the run is written.
    while check(&dir).is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        dir = Path::new("runs").join(format!("{base}.{number}"));
        number += 1;
    }
    dir
}

/// Whether a run may be written there: nothing is there, or an empty directory, or this very run, of the same scenario,
/// settings, backend and seed. With `force` any other run may be replaced too, and nothing else. Of the kind
/// `AlreadyExists` if it may not.
pub fn check(dir: &Path, plan: &Plan, world: OnWorld, force: bool) -> io::Result<()> {
    let refuse = |problem: &str| {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} {problem}", dir.display())))
    };
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", dir.display()))),
        Ok(found) if found.is_symlink() => return refuse("is a symbolic link; name the directory itself"),
        Ok(found) if !found.is_dir() => return refuse("exists and is not a run directory; not overwritten"),
        Ok(_) => {}
    }
    let Some(page) = page(dir) else {
        match fs::read(dir.join("run.json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return refuse(&format!("has a run.json that cannot be read ({error}); not overwritten"));
            }
            _ => {}
        }
        let mut entries = fs::read_dir(dir)?.flatten().filter(|entry| !is_passing(&entry.path()));
        return match entries.next() {
            None => Ok(()),
            Some(_) => refuse("exists and is not a run directory; not overwritten"),
        };
    };
    if force {
        return Ok(());
    }
    if is_run_of(&page, plan, world) {
        return match digests::check(dir) {
            Err(ReadError::Changed(file)) => refuse(&format!(
                "holds this run, but {} was changed since; name another directory, or replace it with --force",
                file.display()
            )),
            _ => Ok(()),
        };
    }
    refuse("holds another run; name another directory, or replace it with --force")
}

fn is_run_of(page: &[u8], plan: &Plan, world: OnWorld) -> bool {
    let Ok(page) = serde_json::from_slice::<serde_json::Value>(page) else { return false };
    let settings: Vec<String> = plan.settings.iter().map(ToString::to_string).collect();
    page["scenario"]["text"] == secret::redacted(&plan.text, &plan.settings)
        && page["settings"] == serde_json::json!(settings)
        && page["world"] == world.name()
        && page["seed"] == plan.seed
        && page["repetition"] == serde_json::json!(meta::RepetitionPart::of(plan.repetition))
}

/// The right to write a run directory, or a folder. While it is held, no other process has it.
#[derive(Debug)]
pub struct Claim {
    // Removed in this order.
    _lock: Unfinished,
    /// The folders that were made for it, the innermost first. One with something in it is not removed.
    _made: Vec<Unfinished>,
    _file: File,
}

/// Claims a run directory, which shows too whether it can be written. Of the kind `WouldBlock` if another process has it.
pub fn claim(dir: &Path) -> io::Result<Claim> {
    if dir.is_dir() {
        return claim_folder(dir);
    }
    // When the run has been renamed into its place, the lock beside it is still where it was.
    let (folder, name) = beside(dir, "wayfare-lock").map_err(within(dir))?;
    lock(dir, &folder, &name)
}

/// Claims a folder for several files or runs, and makes it if it is not there.
pub fn claim_folder(folder: &Path) -> io::Result<Claim> {
    lock(folder, folder, LOCK)
}

fn within(dir: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()))
}

/// Locks the file `name` in `folder`, for `dir`.
fn lock(dir: &Path, folder: &Path, name: &str) -> io::Result<Claim> {
    let within = within(dir);
    let missing = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    // The outermost is registered first, so that it is removed last.
    let made = missing.iter().rev().map(|folder| Unfinished::new(folder.to_path_buf(), Kind::Folder));
    let mut made: Vec<Unfinished> = made.collect();
    made.reverse();
    let lock = folder.join(name);
    loop {
        fs::create_dir_all(folder).map_err(&within)?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = match opened {
            // Another process made the folder, did not use it, and has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => continue,
            opened => opened.map_err(&within)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = format!("{}: another process is writing it", dir.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
            }
            Err(TryLockError::Error(error)) => return Err(within(error)),
        }
        // Its last holder may have removed the file between our opening and locking it.
        let ours = file.metadata().map_err(&within)?;
        if fs::metadata(&lock).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Claim { _lock: Unfinished::new(lock, Kind::Part), _made: made, _file: file });
        }
    }
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The folder that holds a directory, and the name there of what stands beside it for a while.
pub(super) fn beside(dir: &Path, what: &str) -> io::Result<(PathBuf, String)> {
    let name = dir.file_name().ok_or_else(|| io::Error::other("a run directory needs a name"))?;
    Ok((parent(dir).to_owned(), format!(".{}.{what}", name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::super::put::files_of;
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
