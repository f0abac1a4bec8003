//! Checks of files and file systems. Also the id of this boot, which the files of a lab or daemon contain.

use crate::error::{Attempt, Result};
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns whether `path` is a directory of this user to which no other user can write. A symbolic link is not such a
/// directory. The check is needed where every user may create files, as in `/tmp`: another user's record could name any
/// process to be killed.
pub fn is_private_folder(path: &Path) -> io::Result<bool> {
    let seen = fs::symlink_metadata(path)?;
    Ok(seen.is_dir() && seen.uid() == geteuid().as_raw() && seen.mode() & 0o022 == 0)
}

/// Returns the number of bytes that an unprivileged user may still write on the file system of this path. `None` if the
/// kernel refuses this information.
pub fn room(path: &Path) -> Option<u64> {
    let there = rustix::fs::statvfs(path).ok()?;
    Some(there.f_bavail.saturating_mul(there.f_frsize))
}

/// Returns the id of this boot of the machine: a UUID as text, from `/proc/sys/kernel/random/boot_id`.
pub fn boot_id() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).attempt("read", path)?.trim().to_owned())
}
