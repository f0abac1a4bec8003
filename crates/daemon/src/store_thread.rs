//! The thread that writes the store, so that the daemon waits for the disk only at its end. Records that are requested
//! during one commit are written with the next, so the rate of syncs does not limit the rate of registrations.
//!
//! Requests are completed in order. When a commit fails, its requests fail, and so do all later ones, up to the moment
//! at which the daemon reads the failure. The reason: a later request of a role may depend on an earlier one.

use super::{Ages, Stall, Stalls, Waits};
use crate::Store;
use os::{Attempt, Clock, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wire::Instant;

/// Where records are kept: [`Store`], except in tests.
pub(crate) trait Log: Send + 'static {
    /// Puts or removes a record at the next commit.
    fn append(&mut self, key: Vec<u8>, value: Option<Vec<u8>>);
    /// Writes all appended changes. If that fails, the records are unchanged.
    fn commit(&mut self) -> io::Result<()>;
}

impl Log for Store {
    fn append(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.append(key, value);
    }
    fn commit(&mut self) -> io::Result<()> {
        self.commit()
    }
}

/// A log, and the thread that writes it. The descriptor of this value becomes readable when a commit has ended.
pub(crate) struct StoreThread<L> {
    shared: Arc<Shared>,
    thread: JoinHandle<L>,
    /// Number of requests whose result has not been returned yet.
    under_way: usize,
    /// Number of those requests in `under_way` whose record is known to be durable.
    durable: usize,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the thread when there is work for it, or when it must end.
    work: Condvar,
    told: OwnedFd,
}

/// A record to be put, or removed if the value is `None`: key and value.
type Change = (Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
struct State {
    /// Requests that the thread has not taken yet, each with the time of the request.
    asked: Vec<(Instant, Change)>,
    /// The daemon's clock, and the end of the run, as of the last request.
    watched: Option<(Clock, Instant)>,
    /// Times from each request until its commit ended, with or without success. Requests after the end of the run are
    /// left out.
    waits: Waits,
    stalls: Stalls,
    /// Number of records made durable since the daemon last looked.
    durable: usize,
    /// Why the requests behind the durable ones failed; `None` without a failure. Until the daemon has read this,
    /// nothing more is written.
    failure: Option<String>,
    /// Whether the descriptor has been made readable.
    has_told: bool,
    is_idle: bool,
    ends: bool,
}

impl<L: Log> StoreThread<L> {
    /// Starts the thread that writes `log`.
    pub(crate) fn start(log: L) -> Result<Self> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let told = told.attempt("create", "an event descriptor")?;
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new(), told });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || theirs.run(log));
        let thread = thread.attempt("start", "the thread of the store")?;
        Ok(Self { shared, thread, under_way: 0, durable: 0 })
    }

    /// Requests that a record be put or removed (`None`). `clock` measures how long that takes, until the run's `end`.
    pub(crate) fn ask(&mut self, (clock, end): (Clock, Instant), key: Vec<u8>, value: Option<Vec<u8>>) {
        self.under_way += 1;
        let mut state = self.shared.lock();
        state.watched = Some((clock, end));
        state.asked.push((clock.now(), (key, value)));
        if state.is_idle {
            self.shared.work.notify_one();
        }
    }

    /// Completes the requests whose records have become durable, at most `most` of them, and returns their number. If
    /// it returns `most`, there may be more.
    pub(crate) fn durable(&mut self, most: usize) -> usize {
        self.durable += self.shared.hear();
        let taken = self.durable.min(most);
        self.durable -= taken;
        self.under_way -= taken;
        taken
    }

    /// Returns a summary of the times from requests until their commits ended, and those times that are stalls.
    pub(crate) fn waits(&self) -> (Ages, Vec<Stall>) {
        let state = self.shared.lock();
        (state.waits.summary(), state.stalls.clone().into_vec())
    }

    /// Returns why the last commit failed, and drops all pending requests. Returns `None` without a failure, and until
    /// [`StoreThread::durable`] has returned all durable records.
    pub(crate) fn failure(&mut self) -> Option<String> {
        if self.durable > 0 {
            return None;
        }
        let mut state = self.shared.lock();
        if state.durable > 0 {
            return None;
        }
        let why = state.failure.take()?;
        state.asked.clear();
        self.under_way = 0;
        Some(why)
    }

    /// Returns whether durable records can be returned although the descriptor may not be readable.
    pub(crate) const fn has_more(&self) -> bool {
        self.durable > 0
    }

    /// Returns whether the result of any request has not been returned yet.
    pub(crate) const fn is_busy(&self) -> bool {
        self.under_way > 0
    }

    /// Ends the thread, and waits for it. The thread first writes the pending requests, unless a failure has not been
    /// read. Returns the log, or `None` if the thread panicked.
    pub(crate) fn end(self) -> Option<L> {
        self.shared.lock().ends = true;
        self.shared.work.notify_one();
        self.thread.join().ok()
    }
}

impl<L> AsFd for StoreThread<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.told.as_fd()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<L: Log>(&self, mut log: L) -> L {
        os::set_realtime(); // replies wait for this thread
        while let Some(records) = self.next() {
            let mut asked = Vec::with_capacity(records.len());
            for (at, (key, value)) in records {
                asked.push(at);
                log.append(key, value);
            }
            self.tell(&asked, log.commit());
        }
        log
    }

    /// Waits for requests and takes all of them. Returns `None` when the thread must end.
    fn next(&self) -> Option<Vec<(Instant, Change)>> {
        let mut state = self.lock();
        loop {
            if state.failure.is_none() && !state.asked.is_empty() {
                return Some(std::mem::take(&mut state.asked));
            }
            if state.ends {
                return None;
            }
            state.is_idle = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_idle = false;
        }
    }

    fn tell(&self, asked: &[Instant], committed: io::Result<()>) {
        let mut state = self.lock();
        if let Some((clock, end)) = state.watched {
            let now = clock.now().min(end);
            for at in asked.iter().filter(|at| **at < end) {
                let wait = now.since(*at);
                state.waits.add(wait);
                state.stalls.note(wait, now);
            }
        }
        match committed {
            Ok(()) => state.durable += asked.len(),
            Err(error) => state.failure = Some(error.to_string()),
        }
        if !state.has_told {
            state.has_told = true;
            let _ = rustix::io::write(&self.told, &1u64.to_ne_bytes()); // a counter of one cannot overflow
        }
    }

    /// Returns the number of records made durable since the last call, and clears the descriptor.
    fn hear(&self) -> usize {
        let mut state = self.lock();
        if std::mem::take(&mut state.has_told) {
            let _ = rustix::io::read(&self.told, &mut [0; 8]);
        }
        std::mem::take(&mut state.durable)
    }
}

#[cfg(test)]
#[path = "store_thread_tests.rs"]
mod tests;
