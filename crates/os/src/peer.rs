//! The process at the other end of a UNIX socket.

use crate::error::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns the credentials that the peer had when it connected or began to listen (`SO_PEERCRED`). `pid` is 0 if the
/// peer is not visible in the caller's PID namespace.
pub fn credentials(socket: &impl AsFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `peer` and `len` outlive the call, and `len` is the size of `peer`.
    check(unsafe {
        let peer = (&raw mut peer).cast();
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, peer, &raw mut len)
    })?;
    Ok(peer)
}

/// Returns whether the peer may control this process: the peer's user must be this process's effective user or root.
pub fn may_order(socket: &impl AsFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    credentials(socket).is_ok_and(|peer| peer.uid == own || peer.uid == 0)
}
