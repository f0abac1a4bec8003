//! The file of a UNIX socket that a daemon listens at.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of a socket that this process has bound. Dropping it removes the file, if it is still that one.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Of a socket that was bound to this path just now.
    pub(super) fn bound(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Removes the socket that a killed daemon left behind: one at which `connect` is refused. What is no socket is not touched, and is an
/// error; so is a socket that somebody listens at.
pub(super) fn clear(path: &Path, connect: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let file = match fs::symlink_metadata(path) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !file.file_type().is_socket() {
        let why = "there is a file which is no socket, and which is not replaced; choose another path, or remove it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    match connect() {
        Err(refused) if refused.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
    }
}
