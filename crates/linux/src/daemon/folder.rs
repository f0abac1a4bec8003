//! The folder of the records that daemons keep of what they change, and of the locks of their namespaces.

use crate::error::{Attempt, Result};
use crate::leftover::is_ours;
use crate::namespace::outer_uid;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Where records are: in memory, as the namespaces are, where root writes them; in a folder of another user. A user is whom the
/// parent user namespace knows: `unshare -r` calls everybody root.
pub(super) fn folder() -> Result<PathBuf> {
    let user = outer_uid();
    let places = [
        PathBuf::from("/run/wayfare"),
        PathBuf::from(format!("/run/user/{user}/wayfare")),
        std::env::temp_dir().join(format!("wayfare-of-{user}")),
    ];
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for path in places {
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
