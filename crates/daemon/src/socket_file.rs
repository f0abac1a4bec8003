//! The file of a UNIX socket on which a daemon listens.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file of a socket that this process has bound. Dropping it removes the file, if it is still the same file.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    /// Returns the file of a socket that has just been bound to this path.
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

/// Removes a socket file that a killed daemon left: one at which `connect` is refused. `connect` must not block. Does
/// nothing if there is no file. Fails if the file is no socket, if a process listens on it, or if `connect` fails in
/// another way. Then the file is not touched.
pub(super) fn clear(path: &Path, connect: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let file = match fs::symlink_metadata(path) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !file.file_type().is_socket() {
        let why = "there is a file that is not a socket, and is not replaced; choose another path, or remove that file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    let Err(refused) = connect() else { return Err(in_use()) };
    match refused.raw_os_error() {
        Some(libc::ECONNREFUSED) => fs::remove_file(path),
        // The queue of the socket is full, or the socket is of another kind. So a process listens.
        Some(libc::EAGAIN | libc::EPROTOTYPE) => Err(in_use()),
        _ => {
            let why = format!(
                "there is a socket of user {}, and it is not known whether a process listens on it ({refused}); choose \
                 another path, or remove that socket",
                file.uid()
            );
            Err(io::Error::new(refused.kind(), why))
        }
    }
}

fn in_use() -> io::Error {
    let why = "another process listens there; end that process first, or choose another path";
    io::Error::new(io::ErrorKind::AddrInUse, why)
}

/// Connects to the UNIX socket of this kind without blocking. Succeeds if a process listens on it and its queue has
/// room.
pub(super) fn knock(path: &Path, kind: SocketType) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let probe = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    Ok(rustix::net::connect(&probe, &SocketAddrUnix::new(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_own_process;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_that_a_killed_daemon_left_is_removed_and_no_other() {
        in_own_process(|| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("daemon.sock");
            let cleared = || clear(&path, || knock(&path, SocketType::STREAM));
            assert!(cleared().is_ok(), "there is none");
            // The file stays when its process is killed. It also stays when the listener is dropped, as here.
            drop(UnixListener::bind(&path).unwrap());
            assert!(path.exists());
            cleared().unwrap();
            assert!(!path.exists());

            let listener = UnixListener::bind(&path).unwrap();
            let said = cleared().unwrap_err().to_string();
            assert!(said.starts_with("another process listens there"), "{said}");
            let other_kind = clear(&path, || knock(&path, SocketType::SEQPACKET)).unwrap_err().to_string();
            assert!(other_kind.starts_with("another process listens there"), "{other_kind}");
            // A socket whose queue is full because its process is stopped: `knock` does not block.
            let mut knocks = 0;
            while knock(&path, SocketType::STREAM).is_ok() {
                knocks += 1;
                assert!(knocks < 10_000, "the queue has no end");
            }
            assert_eq!(cleared().unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);

            fs::remove_file(&path).unwrap();
            fs::write(&path, "mine").unwrap();
            assert!(cleared().unwrap_err().to_string().contains("not a socket"));
            assert_eq!(fs::read(&path).unwrap(), b"mine");
        });
    }

    #[test]
    fn a_socket_that_cannot_be_asked_is_named_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.sock");
        drop(UnixListener::bind(&path).unwrap());
        let denied = || Err(io::Error::from_raw_os_error(libc::EACCES));
        let said = clear(&path, denied).unwrap_err().to_string();
        let user = rustix::process::geteuid().as_raw();
        assert!(
            said.contains(&format!("a socket of user {user}")) && said.contains("Permission denied"),
            "{said}"
        );
        assert!(path.exists());
    }
}
