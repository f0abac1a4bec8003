//! The folder of the records that daemons keep of what they change, and of the locks of their namespaces.

use crate::error::{Attempt, Result};
use crate::leftover::is_ours;
use crate::namespace::outer_uid;
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where records are: in memory, as the namespaces are, where root writes them; in a folder of another user. A user is whom the
/// parent user namespace knows: `unshare -r` calls everybody root.
pub(super) fn folder() -> Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for path in places() {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => last = error,
            _ if is_ours(&path).attempt("look at", path.display())? => return Ok(path),
            // Another user's: what it says cannot be relied on, and what is written there can be changed.
            _ => {
                let why = format!("{} is another user's, or others can write to it", path.display());
                last = io::Error::new(io::ErrorKind::PermissionDenied, why);
            }
        }
    }
    Err(last).attempt("make a folder for", "the record of what a daemon changes")
}

/// Where this user's folder may be, in the order in which the places are tried.
fn places() -> [PathBuf; 3] {
    let user = outer_uid();
    [
        PathBuf::from(ROOTS),
        Path::new(USERS).join(user.to_string()).join(NAME),
        std::env::temp_dir().join(format!("{PREFIX}{user}")),
    ]
}

const ROOTS: &str = "/run/wayfare";
/// Each user has a folder here, by number.
const USERS: &str = "/run/user";
const NAME: &str = "wayfare";
/// How the name of a folder begins that is everybody's place for temporary files.
const PREFIX: &str = "wayfare-of-";

/// The folders of this user that there are. Nothing is made.
pub(super) fn ours() -> Vec<PathBuf> {
    places().into_iter().filter(|path| is_ours(path).unwrap_or(false)).collect()
}

/// The folders of other users, with the number of each.
pub(super) fn of_others() -> Vec<(PathBuf, u32)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let temporary = std::env::temp_dir();
    let in_temporary = entries(&temporary)
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let mut paths = vec![PathBuf::from(ROOTS)];
    paths.extend(entries(Path::new(USERS)).map(|entry| entry.path().join(NAME)));
    paths.extend(in_temporary.map(|entry| entry.path()));
    paths.sort();
    let of = |path: PathBuf| {
        let seen = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_dir)?;
        (seen.uid() != geteuid().as_raw()).then(|| (path, seen.uid()))
    };
    paths.into_iter().filter_map(of).collect()
}
