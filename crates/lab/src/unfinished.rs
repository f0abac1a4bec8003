//! What this process has on disk that is not complete: locks, and files that will be renamed into their place. A signal that
//! ends the process removes them ([`remove_all`]); so do their owners otherwise.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In the order in which they were made.
static UNFINISHED: Mutex<Vec<(PathBuf, Kind)>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<(PathBuf, Kind)>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A file, or a directory with all that is in it.
    Part,
    /// A directory that is removed if nothing is in it.
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

/// A path that is removed when this is dropped, or when a signal ends the process.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    kind: Kind,
}

impl Unfinished {
    /// It need not exist yet.
    pub(crate) fn new(path: PathBuf, kind: Kind) -> Self {
        unfinished().push((path.clone(), kind));
        Self { path, kind }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts what is complete into its place. A signal ends the process before or after this, not meanwhile.
    pub(crate) fn finish(self, put: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let _all = unfinished();
        put(&self.path)
        // Dropped after the guard: what is not there any more is not removed.
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|(path, _)| *path != self.path);
        let _ = self.kind.remove(&self.path);
    }
}

/// Removes all of it, for a process that ends now: nothing can be begun or completed after this.
pub fn remove_all() {
    let all = unfinished();
    for (path, kind) in all.iter().rev() {
        // Another thread may still be writing there.
        for _ in 0..100 {
            match kind.remove(path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && *kind == Kind::Part => {}
                _ => break,
            }
        }
    }
    std::mem::forget(all);
}

/// Removes the parts that processes left behind which were killed: `PREFIX-PID` in `folder`, if no process has this number.
/// The caller holds the right to write there, so no living process of another machine or container has one.
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
