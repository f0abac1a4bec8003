//! The claim that excludes a second daemon of a network namespace.

use super::record_folder::{LOCK, PREFIX, UNFINISHED, folder};
use os::{Attempt, Result, namespace, peer};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wire::Duration;

/// The right to be the daemon of a network namespace. It has two parts: a bound abstract UNIX address, and a locked
/// file. The abstract address belongs to the network namespace, and the kernel frees it when the process that bound it
/// ends. Every user may bind the address. So a process that has bound it counts as the daemon only if its user may run
/// the daemon of this namespace. The locked file in a user's folder excludes other daemons of the same user.
#[derive(Debug)]
pub(super) struct Claim {
    /// `None` if a process that cannot be the daemon has bound the address.
    _socket: Option<OwnedFd>,
    /// `None` in a lab, which leaves no files outside its folder.
    _lock: Option<Lock>,
}

const NAME: &[u8] = b"wayfare/node";

/// The outcome of [`Claim::take`].
#[derive(Debug)]
pub(super) enum Taken {
    /// No other process had the claim; this process has it now.
    Free(Claim),
    /// Another process has the claim. The value is its pid, or 0 if the pid is not known.
    By(i32),
}

impl Claim {
    /// Takes the claim for the namespace of the calling thread.
    pub(super) fn take() -> Result<Taken> {
        Self::take_with(Lock::take)
    }

    /// Takes the claim for a daemon in a lab: without the lock, because a lab leaves no files outside its folder.
    fn take_in_lab() -> Result<Taken> {
        Self::take_with(|| Ok(Locked::Free(None)))
    }

    fn take_with(lock: impl FnOnce() -> Result<Locked>) -> Result<Taken> {
        let (socket, holder) = Self::take_address().attempt("be", WHAT)?;
        if let Some(pid) = holder {
            return Ok(Taken::By(pid));
        }
        match lock()? {
            Locked::Free(lock) => Ok(Taken::Free(Self { _socket: socket, _lock: lock })),
            Locked::ByAnother => Ok(Taken::By(0)),
        }
    }

    /// Binds the address. If it is in use, returns the pid of the process that bound it, or no pid if that process
    /// cannot be a daemon.
    fn take_address() -> io::Result<(Option<OwnedFd>, Option<i32>)> {
        let address = SocketAddrUnix::new_abstract_name(NAME)?;
        let socket = open()?;
        match rustix::net::bind(&socket, &address) {
            Err(Errno::ADDRINUSE) => {
                let probe = open()?;
                match rustix::net::connect(&probe, &address) {
                    Ok(()) | Err(Errno::AGAIN) => {
                        let holder = peer::credentials(&probe).ok();
                        let daemon = holder.filter(|holder| may_be_daemon(holder.uid));
                        Ok((None, daemon.map(|holder| holder.pid)))
                    }
                    // The process that bound the address does not listen, so it is no daemon: a daemon listens as soon
                    // as it has bound the address.
                    Err(_) => Ok((None, None)),
                }
            }
            bound => {
                bound.and_then(|()| rustix::net::listen(&socket, 64))?;
                Ok((Some(socket), None))
            }
        }
    }

    /// Takes the claim, or returns an error that names the process that has it.
    pub(super) fn take_or_refuse(in_lab: bool) -> Result<Self> {
        let holder = match if in_lab { Self::take_in_lab()? } else { Self::take()? } {
            Taken::Free(claim) => return Ok(claim),
            Taken::By(0) => "another process is its daemon".to_owned(),
            Taken::By(pid) => format!("process {pid} is its daemon"),
        };
        Err(io::Error::other(format!("{holder}; end that process first"))).attempt("be", WHAT)
    }
}

/// Returns whether a process of this user may be the daemon of this network namespace: root, this process's user, or
/// the owner of the namespace.
fn may_be_daemon(user: u32) -> bool {
    user == 0
        || user == rustix::process::geteuid().as_raw()
        || namespace::owner().is_some_and(|owner| owner == user)
}

/// A lock among the daemons of one user, for the namespace of the thread that took it.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

enum Locked {
    Free(Option<Lock>),
    ByAnother,
}

impl Lock {
    fn take() -> Result<Locked> {
        let path = folder()?.join(format!("{PREFIX}{}.{LOCK}", namespace::cookie()?));
        // `wayfare doctor` may hold the lock for some microseconds, while it checks whether a daemon holds it.
        let mut tries = 0;
        loop {
            let open = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = open.attempt("open the lock", path.display())?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if tries < TRIES => {
                    tries += 1;
                    os::pause(PAUSE);
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Ok(Locked::ByAnother),
                other => other.attempt("lock", path.display())?,
            }
            // Between `open` and `flock`, the former holder of the lock may have removed the file. The lock on a
            // removed file excludes no other process. So the lock is then taken again, on a new file.
            if is_file_at(&file, &path)? {
                return Ok(Locked::Free(Some(Self { path, _file: file })));
            }
        }
    }
}

/// Number of further attempts to lock, each after `PAUSE`, before the lock counts as another process's.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

fn is_file_at(file: &File, path: &Path) -> Result<bool> {
    let ours = file.metadata().attempt("read the metadata of", path.display())?;
    Ok(fs::symlink_metadata(path).is_ok_and(|there| there.ino() == ours.ino()))
}

/// Takes the lock at this path, if the file exists and no process holds its lock. The lock is held until the returned
/// file is dropped.
pub(super) fn unheld_lock(path: &Path) -> Result<Option<File>> {
    let file = match File::options().write(true).open(path) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.attempt("open the lock", path.display())?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        other => other.attempt("lock", path.display()).map(|()| Some(file)),
    }
}

/// Removes a lock that no process holds, and the unfinished record of its daemon. Returns whether the lock was removed.
/// A daemon that has opened the lock meanwhile sees that the file is gone, and creates another.
pub(super) fn remove_unheld(path: &Path) -> Result<bool> {
    let Some(file) = unheld_lock(path)? else { return Ok(false) };
    let is_there = is_file_at(&file, path)?;
    if is_there {
        let _ = fs::remove_file(path.with_extension(UNFINISHED)); // usually there is none
        fs::remove_file(path).attempt("remove", path.display())?;
    }
    Ok(is_there)
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

const WHAT: &str = "the daemon of this network namespace";

fn open() -> rustix::io::Result<OwnedFd> {
    socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}
