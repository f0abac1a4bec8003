//! Waiting for descriptors, with a cost that depends on the number of ready ones only (`epoll(7)`).
//!
//! A descriptor is reported at each wait while one of the events that it waits for holds. A descriptor that waits for
//! no event is reported once for each error and each hang-up. More reports of it would keep the caller awake.

use crate::error::{Attempt, Result};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::{self, Errno};
use rustix::time::Timespec;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

pub use rustix::event::epoll::EventFlags as Events;

/// Number of descriptors that one [`Epoll::wait`] returns at most. If more are ready, the kernel returns the others
/// first at the next call.
pub const BATCH: usize = 256;

/// An epoll instance: a set of descriptors, each with a token and the events that it waits for.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// A ready descriptor: the token with which it was added, and its events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// The token that was passed to [`Epoll::add`].
    pub token: u64,
    /// The events that the descriptor has now.
    pub events: Events,
}

impl Epoll {
    /// Creates an instance without descriptors. Fails if the process or the machine has no descriptor left.
    pub fn new() -> Result<Self> {
        Ok(Self { fd: epoll::create(CreateFlags::CLOEXEC).attempt("create", "an epoll instance")? })
    }

    /// Adds a descriptor that waits for these events. Fails with `EEXIST` if it was added before, `ENOSPC` if the
    /// user has too many, and `EPERM` if it is a kind of file without events. The caller removes it before it closes
    /// it: a copy in another process would keep it registered.
    pub fn add(&self, fd: &impl AsFd, token: u64, events: Events) -> io::Result<()> {
        epoll::add(&self.fd, fd, EventData::new_u64(token), flags_of(events))
    }

    /// Changes the events that a descriptor waits for. Fails with `ENOENT` if it was not added.
    pub fn modify(&self, fd: &impl AsFd, token: u64, events: Events) -> io::Result<()> {
        epoll::modify(&self.fd, fd, EventData::new_u64(token), flags_of(events))
    }

    /// Removes a descriptor. Fails with `ENOENT` if it was not added.
    pub fn remove(&self, fd: &impl AsFd) -> io::Result<()> {
        epoll::delete(&self.fd, fd)
    }

    /// Waits until a descriptor is ready, and replaces `ready` by at most [`BATCH`] ready ones, sorted by token. It is
    /// empty after `timeout`, and after a signal.
    pub fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<&Timespec>) -> Result<()> {
        ready.clear();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; BATCH];
        match epoll::wait(&self.fd, &mut events[..], timeout) {
            Ok((events, _)) => {
                ready.extend(
                    events.iter().map(|event| Ready { token: event.data.u64(), events: event.flags }),
                );
                ready.sort_unstable_by_key(|ready| ready.token);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).attempt("wait for", "events"),
        }
    }
}

/// Returns the flags for the kernel. A descriptor that waits for nothing is edge-triggered.
fn flags_of(events: Events) -> EventFlags {
    if events.is_empty() { EventFlags::ET } else { events }
}

/// A descriptor that an [`Epoll`] waits for. It is removed there before it is closed.
#[derive(Debug)]
pub struct Watched<T: AsFd> {
    source: T,
    epoll: Arc<Epoll>,
    token: u64,
    wanted: Events,
}

impl<T: AsFd> Watched<T> {
    /// Adds a descriptor that waits for these events; errors as in [`Epoll::add`].
    pub fn new(epoll: &Arc<Epoll>, source: T, token: u64, wanted: Events) -> io::Result<Self> {
        epoll.add(&source, token, wanted)?;
        Ok(Self { source, epoll: Arc::clone(epoll), token, wanted })
    }

    /// Waits for these events from now on. If it waits for them already, this does nothing and makes no system call.
    pub fn want(&mut self, events: Events) -> io::Result<()> {
        if self.wanted != events {
            self.epoll.modify(&self.source, self.token, events)?;
            self.wanted = events;
        }
        Ok(())
    }

    /// Returns the events that the descriptor waits for.
    pub const fn wanted(&self) -> Events {
        self.wanted
    }

    /// Closes the descriptor and waits for this one instead, with the same token and events. After an error the old
    /// one is kept.
    pub fn replace(&mut self, source: T) -> io::Result<()> {
        self.epoll.add(&source, self.token, self.wanted)?;
        let _ = self.epoll.remove(&self.source);
        self.source = source;
        Ok(())
    }

    /// Returns the source, to change it. Its descriptor must stay the same.
    pub const fn source_mut(&mut self) -> &mut T {
        &mut self.source
    }
}

impl<T: AsFd> Drop for Watched<T> {
    fn drop(&mut self) {
        let _ = self.epoll.remove(&self.source);
    }
}

impl<T: AsFd> std::ops::Deref for Watched<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.source
    }
}

impl<T: AsFd> AsFd for Watched<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

#[cfg(test)]
#[path = "epoll_tests.rs"]
mod tests;
