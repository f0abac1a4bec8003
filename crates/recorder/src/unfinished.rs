//! Incomplete files of this process: locks, and files that will be renamed into their place. They are removed when
//! their `Unfinished` is dropped, or by [`remove_all`] when a signal ends the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The registered paths, in the order of their registration.
static UNFINISHED: Mutex<Vec<(PathBuf, Kind)>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<(PathBuf, Kind)>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A file, or a directory with its contents.
    Part,
    /// A directory that is removed only if it is empty.
    Folder,
}

impl Kind {
    fn remove(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Folder => fs::remove_dir(path),
            Self::Part if fs::symlink_metadata(path)?.is_dir() => fs::remove_dir_all(path),
            Self::Part => fs::remove_file(path),
        }
    }
}

/// A path that is removed when this value is dropped, or when a signal ends the process.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    kind: Kind,
}

impl Unfinished {
    /// Registers a path, which need not exist yet.
    pub(crate) fn new(path: PathBuf, kind: Kind) -> Self {
        unfinished().push((path.clone(), kind));
        Self { path, kind }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `put`, which moves the complete file into its place. A signal ends the process before or after this
    /// call, not during it.
    pub(crate) fn finish(self, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let _all = unfinished();
        put(&self.path)
        // `self` is dropped after the guard. If `put` moved the path away, the drop removes nothing.
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|(path, _)| *path != self.path);
        let _ = self.kind.remove(&self.path);
    }
}

/// Registers the folders of a path that do not exist, and returns them, the innermost first. The caller creates them. They are
/// removed in this order when the list is dropped, and a folder that is not empty stays.
pub(crate) fn missing_folders(path: &Path) -> Vec<Unfinished> {
    let missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    // The outermost folder is registered first, so that it is removed last.
    let made = missing.iter().rev().map(|folder| Unfinished::new(folder.to_path_buf(), Kind::Folder));
    let mut made: Vec<Unfinished> = made.collect();
    made.reverse();
    made
}

/// Returns an error of the kind `NotADirectory` if `folder`, or a part of its path, exists and is not a directory.
pub fn refuse_file(folder: &Path) -> io::Result<()> {
    let exists = |path: &&Path| !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_ok();
    match folder.ancestors().find(exists) {
        Some(found) if !found.is_dir() => {
            let problem = format!(
                "cannot write {}: {} is not a directory; name another directory",
                folder.display(),
                found.display()
            );
            Err(io::Error::new(io::ErrorKind::NotADirectory, problem))
        }
        _ => Ok(()),
    }
}

/// Removes all incomplete files and lock files of this process. Call this function just before the process exits: after
/// it, any thread that begins or completes a file waits forever.
pub fn remove_all() {
    let all = unfinished();
    for (path, kind) in all.iter().rev() {
        // Retry: another thread may still be writing in the directory.
        for _ in 0..100 {
            match kind.remove(path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && *kind == Kind::Part => {}
                _ => break,
            }
        }
    }
    std::mem::forget(all);
}

/// Removes the files `PREFIX-PID` in `folder` that killed processes left: those whose process does not exist.
pub(crate) fn remove_stale(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_prefix('-')?.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new("/proc").join(number.to_string()).exists()) {
            let _ = Kind::Part.remove(&entry.path());
        }
    }
}
