//! What ends a daemon in order from outside, and what keeps a second daemon out.

use crate::error::{Attempt, Result, check};
use crate::peer;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT, as a descriptor to wait on. These signals no longer end the process by themselves.
#[derive(Debug)]
pub(super) struct Signals(OwnedFd);

impl Signals {
    /// For the calling thread and those that it starts from now on.
    pub(super) fn take() -> Result<Self> {
        // SAFETY: an empty set is valid, and outlives the calls; the descriptor is nobody else's.
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

/// The right to be the daemon of a network namespace. An abstract UNIX address belongs to its network namespace, and is free
/// again when its process has ended, by whatever cause.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: OwnedFd,
}

const NAME: &[u8] = b"wayfare/node";

/// The outcome of [`Claim::take`].
#[derive(Debug)]
pub(super) enum Taken {
    /// No other process had it.
    Free(Claim),
    /// This process has it; 0 if it is not visible here.
    By(i32),
}

impl Claim {
    /// Takes it, in the namespace of the calling thread.
    pub(super) fn take() -> Result<Taken> {
        let take = || -> io::Result<Taken> {
            let address = SocketAddrUnix::new_abstract_name(NAME)?;
            let socket = open()?;
            match rustix::net::bind(&socket, &address) {
                Err(Errno::ADDRINUSE) => {
                    let probe = open()?;
                    // The other one may not listen yet, or have a full queue.
                    let holder = match rustix::net::connect(&probe, &address) {
                        Ok(()) => peer::credentials(&probe)?.pid,
                        Err(_) => 0,
                    };
                    Ok(Taken::By(holder))
                }
                bound => {
                    bound.and_then(|()| rustix::net::listen(&socket, 1))?;
                    Ok(Taken::Free(Self { _socket: socket }))
                }
            }
        };
        take().attempt("be", WHAT)
    }

    /// Takes it, or says which process has it.
    pub(super) fn take_or_refuse() -> Result<Self> {
        let holder = match Self::take()? {
            Taken::Free(claim) => return Ok(claim),
            Taken::By(0) => "another process is it".to_owned(),
            Taken::By(pid) => format!("process {pid} is it"),
        };
        Err(io::Error::other(format!("{holder}; end that first"))).attempt("be", WHAT)
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
