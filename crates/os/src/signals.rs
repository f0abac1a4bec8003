//! The signals that end a process, as a descriptor for event loops.

use crate::error::{Attempt, Result, check};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT, as a descriptor to wait on. They no longer end the process by default.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals for the calling thread and the threads that it starts later, and opens the descriptor. The
    /// descriptor is readable while a blocked signal is pending.
    pub fn take() -> Result<Self> {
        // SAFETY: an empty set is valid, and outlives the calls; nothing else owns the descriptor.
        let fd = unsafe {
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            check(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))
                .map(|fd| OwnedFd::from_raw_fd(fd))
        };
        Ok(Self(fd.attempt("wait for", "signals")?))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
