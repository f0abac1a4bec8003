//! The disk has a thread of its own: the daemon's never waits for it. What has gathered while one sync ran goes with the
//! next, so that the disk's rate is not the registrations'.
//!
//! Records are decided in the order asked. When a commit fails, all that has been asked for behind it fails with it, up to
//! the moment at which the daemon hears of that: what a role asks for may build on what it asked for before.

use super::{Ages, Stall, Stalls, Waits};
use crate::error::{Attempt, Result};
use crate::{Clock, Store};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wire::Instant;

/// What records are kept in: [`Store`], but for tests.
pub(crate) trait Log: Send + 'static {
    /// Puts or removes a record at the next commit.
    fn append(&mut self, key: Vec<u8>, value: Option<Vec<u8>>);
    /// Makes all that was appended durable. If that fails, the records are as they were.
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

/// A log, and the thread that writes it. Its descriptor is readable when there is something to hear.
pub(crate) struct Storage<L> {
    shared: Arc<Shared>,
    thread: JoinHandle<L>,
    /// Records asked for of whose end nobody has been told.
    under_way: usize,
    /// Those of them that are durable.
    durable: usize,
}

struct Shared {
    state: Mutex<State>,
    /// There is work for the thread, or its end has come.
    work: Condvar,
    told: OwnedFd,
}

/// A record to be put or removed: its key, and its value.
type Change = (Vec<u8>, Option<Vec<u8>>);

#[derive(Default)]
struct State {
    /// Not taken up by the thread yet, each with the time of its request.
    asked: Vec<(Instant, Change)>,
    /// The daemon's clock, and when the run ends, as of the last request.
    watched: Option<(Clock, Instant)>,
    /// From each request until the record was durable.
    waits: Waits,
    stalls: Stalls,
    /// Records made durable since the daemon looked last.
    durable: usize,
    /// Why those behind them were not. Until the daemon has heard that, nothing more is written.
    failure: Option<String>,
    /// Whether the daemon has been told that there is something to hear.
    has_told: bool,
    is_idle: bool,
    ends: bool,
}

impl<L: Log> Storage<L> {
    /// Hands a log to a thread of its own.
    pub(crate) fn start(log: L) -> Result<Self> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let told = told.attempt("create", "an event descriptor")?;
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new(), told });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || theirs.run(log));
        let thread = thread.attempt("start", "the thread of the store")?;
        Ok(Self { shared, thread, under_way: 0, durable: 0 })
    }

    /// Asks for a record to be put or removed. How long that takes is measured by `clock`, until the run's `end`.
    pub(crate) fn ask(&mut self, (clock, end): (Clock, Instant), key: Vec<u8>, value: Option<Vec<u8>>) {
        self.under_way += 1;
        let mut state = self.shared.lock();
        state.watched = Some((clock, end));
        state.asked.push((clock.now(), (key, value)));
        if state.is_idle {
            self.shared.work.notify_one();
        }
    }

    /// So many records more are durable, at most `most`; there may be more to hear then.
    pub(crate) fn durable(&mut self, most: usize) -> usize {
        self.durable += self.shared.hear();
        let taken = self.durable.min(most);
        self.durable -= taken;
        self.under_way -= taken;
        taken
    }

    /// How long records took from their request until they were durable, and which of these times were long.
    pub(crate) fn waits(&self) -> (Ages, Vec<Stall>) {
        let state = self.shared.lock();
        (state.waits.summary(), state.stalls.clone().into_vec())
    }

    /// Why all that is under way now could not be stored, if so. Those that are durable are told of first.
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

    /// Whether there is something to hear at once, though the descriptor may be quiet.
    pub(crate) const fn has_more(&self) -> bool {
        self.durable > 0
    }

    /// Whether anything that was asked for has not been told of yet.
    pub(crate) const fn is_busy(&self) -> bool {
        self.under_way > 0
    }

    /// Ends the thread, when all that was asked for is decided; gives the log back.
    pub(crate) fn end(self) -> Option<L> {
        self.shared.lock().ends = true;
        self.shared.work.notify_one();
        self.thread.join().ok()
    }
}

impl<L> AsFd for Storage<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.told.as_fd()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run<L: Log>(&self, mut log: L) -> L {
        crate::set_realtime(); // replies wait for this thread
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

    /// All that has gathered.
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
            let _ = rustix::io::write(&self.told, &1u64.to_ne_bytes()); // of one it cannot be too much
        }
    }

    /// Records made durable since this was asked last; the descriptor is quiet then.
    fn hear(&self) -> usize {
        let mut state = self.lock();
        if std::mem::take(&mut state.has_told) {
            let _ = rustix::io::read(&self.told, &mut [0; 8]);
        }
        std::mem::take(&mut state.durable)
    }
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
