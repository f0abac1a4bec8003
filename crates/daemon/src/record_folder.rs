//! The folder for the records of what daemons change, and for the locks of their namespaces.

use os::{Attempt, Result, files::is_private_folder, namespace::outer_uid};
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Returns the folder, and creates it if necessary. It is in `/run`, in memory like the namespaces, if this user may
/// create it there, as root may. Otherwise it is in this user's folder of `/run/user`, or in the directory for
/// temporary files. Users are distinguished by their uids in the parent user namespace, because `unshare -r` maps every
/// user to root.
pub(super) fn folder() -> Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for path in places() {
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => last = error,
            _ if is_private_folder(&path).attempt("read the metadata of", path.display())? => {
                return Ok(path);
            }
            // The folder belongs to another user. Its content cannot be trusted, and that user can change what is
            // written there.
            _ => {
                let why =
                    format!("{} must belong to this user, and no other user may write to it", path.display());
                last = io::Error::new(io::ErrorKind::PermissionDenied, why);
            }
        }
    }
    Err(last).attempt("make a folder for", "the record of a daemon's changes")
}

/// Returns the paths where this user's folder may be, in the order in which they are tried.
fn places() -> [PathBuf; 3] {
    let user = outer_uid();
    [
        PathBuf::from(ROOTS),
        Path::new(USERS).join(user.to_string()).join(NAME),
        std::env::temp_dir().join(format!("{IN_TEMPORARY}{user}")),
    ]
}

const ROOTS: &str = "/run/wayfare";
/// The directory that has a folder for each user, named by uid.
const USERS: &str = "/run/user";
const NAME: &str = "wayfare";
/// Prefix of a folder's name in the directory for temporary files.
const IN_TEMPORARY: &str = "wayfare-of-";

/// Prefix of the name of each file in the folder. The cookie of the namespace follows.
pub(super) const PREFIX: &str = "namespace-";
/// The extension of the record of what a daemon changes.
pub(super) const RECORD: &str = "json";
/// The extension of a record that is not complete yet. A namespace has at most one.
pub(super) const UNFINISHED: &str = "new";
/// The extension of the lock of a namespace's daemon.
pub(super) const LOCK: &str = "lock";

/// Returns the existing folders of this user. Nothing is created.
pub(super) fn ours() -> Vec<PathBuf> {
    places().into_iter().filter(|path| is_private_folder(path).unwrap_or(false)).collect()
}

/// Returns the existing folders of other users, with the uid of each.
pub(super) fn of_others() -> Vec<(PathBuf, u32)> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let temporary = std::env::temp_dir();
    let in_temporary = entries(&temporary)
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(IN_TEMPORARY.as_bytes()));
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
