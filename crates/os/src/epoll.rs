//! Waits for events of descriptors. The cost depends only on the number of ready descriptors (`epoll(7)`).
//!
//! As long as a descriptor has an event that it waits for, each wait reports the descriptor. A descriptor that waits
//! for no event is reported once for each error and each hang-up. If it were reported again and again, the caller would
//! never sleep.

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
    /// The token from the last [`Epoll::add`] or [`Epoll::modify`] of the descriptor.
    pub token: u64,
    /// The events that the descriptor has now.
    pub events: Events,
}

impl Epoll {
    /// Creates an instance without descriptors. Fails if the process or the machine has no descriptor left.
    pub fn new() -> Result<Self> {
        Ok(Self { fd: epoll::create(CreateFlags::CLOEXEC).attempt("create", "an epoll instance")? })
    }

    /// Adds a descriptor that waits for these events. Fails with `EEXIST` if the descriptor was added before. Fails
    /// with `ENOSPC` if the user waits for too many descriptors, and with `EPERM` if files of this kind have no events.
    /// The caller must remove the descriptor before closing it: a copy in another process would keep it registered.
    pub fn add(&self, fd: &impl AsFd, token: u64, events: Events) -> io::Result<()> {
        epoll::add(&self.fd, fd, EventData::new_u64(token), flags_of(events))
    }

    /// Replaces the token of a descriptor, and the events that it waits for. Fails with `ENOENT` if it was not added.
    pub fn modify(&self, fd: &impl AsFd, token: u64, events: Events) -> io::Result<()> {
        epoll::modify(&self.fd, fd, EventData::new_u64(token), flags_of(events))
    }

    /// Removes a descriptor. Fails with `ENOENT` if it was not added.
    pub fn remove(&self, fd: &impl AsFd) -> io::Result<()> {
        epoll::delete(&self.fd, fd)
    }

    /// Waits until a descriptor is ready, at most for `timeout`; `None` is no limit. Replaces the content of `ready` by
    /// at most [`BATCH`] ready descriptors, sorted by token. After the time-out or a signal, `ready` is empty.
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

/// Returns the kernel's flags for these events. A descriptor that waits for no event is edge-triggered.
fn flags_of(events: Events) -> EventFlags {
    if events.is_empty() { EventFlags::ET } else { events }
}

/// A source of events whose descriptor is registered with an [`Epoll`]. Dropping this value removes the descriptor from
/// the [`Epoll`] and then drops the source.
#[derive(Debug)]
pub struct Watched<T: AsFd> {
    source: T,
    epoll: Arc<Epoll>,
    token: u64,
    wanted: Events,
}

impl<T: AsFd> Watched<T> {
    /// Adds the descriptor of `source` to `epoll`, with the token `token` and the events `wanted`. Fails as
    /// [`Epoll::add`] does, and then drops `source`.
    pub fn new(epoll: &Arc<Epoll>, source: T, token: u64, wanted: Events) -> io::Result<Self> {
        epoll.add(&source, token, wanted)?;
        Ok(Self { source, epoll: Arc::clone(epoll), token, wanted })
    }

    /// Makes the descriptor wait for `events` instead of its present events. If both are equal, makes no system call.
    /// Fails as [`Epoll::modify`] does.
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

    /// Waits for `source` instead of the present source, with the same token and events. The present source is removed
    /// and dropped. After an error it is kept.
    pub fn replace(&mut self, source: T) -> io::Result<()> {
        self.epoll.add(&source, self.token, self.wanted)?;
        let _ = self.epoll.remove(&self.source);
        self.source = source;
        Ok(())
    }

    /// Returns the source, to change it. The source must keep its descriptor.
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
