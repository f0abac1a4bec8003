//! The control socket: JSON lines over a UNIX socket, one answer to each request.

use crate::error::{Attempt, Result};
use crate::lines::{Heard, Lines};
use node::Value;
use rustix::event::PollFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// A request, as one line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// Have the interfaces been taken over?
    Ready,
    /// Begin, with this zero of the clock: nanoseconds of `CLOCK_BOOTTIME`.
    Begin {
        /// The zero.
        t0: u64,
        /// When the run ends, in nanoseconds after the zero: how late the daemon is from then on matters to nothing.
        #[serde(default)]
        end: Option<u64>,
    },
    /// End, and sum up.
    Stop,
    /// A command for the node.
    Do {
        /// What.
        verb: String,
        /// How.
        #[serde(default)]
        args: serde_json::Value,
    },
}

/// An answer, as one line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It was done.
    Ok(serde_json::Value),
    /// It was not, and why.
    Error(String),
}

pub(crate) struct Request {
    pub(crate) asker: u64,
    pub(crate) ask: Ask,
}

/// Connections that may wait for an answer at the same time.
const CONNECTIONS: usize = 16;

pub(crate) struct Control {
    listener: Option<(UnixListener, PathBuf)>,
    connections: BTreeMap<u64, Lines>,
    next: u64,
    /// Who asked us to stop.
    stops: Vec<u64>,
    /// What they are answered.
    pub(crate) summary: serde_json::Value,
}

impl Control {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self> {
        let listener = path.map(listen).transpose()?;
        Ok(Self {
            listener,
            connections: BTreeMap::new(),
            next: 0,
            stops: Vec::new(),
            summary: serde_json::Value::Null,
        })
    }

    /// What to wait on, and for what.
    pub(crate) fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = self.listener.iter().map(|(listener, _)| (listener.as_fd(), PollFlags::IN));
        listener.chain(self.connections.values().map(|lines| {
            let room = if lines.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
            (lines.as_fd(), PollFlags::IN | room)
        }))
    }

    /// All requests that have come. A malformed one is answered here.
    pub(crate) fn hear(&mut self) -> Vec<Request> {
        self.accept();
        let mut requests = Vec::new();
        let mut gone = Vec::new();
        for (asker, lines) in &mut self.connections {
            if lines.flush().is_err() {
                gone.push(*asker);
                continue;
            }
            loop {
                match lines.hear() {
                    Heard::Message(ask) => requests.push(Request { asker: *asker, ask }),
                    Heard::Nonsense(problem) => {
                        let problem = format!("not a request: {problem}");
                        if lines.queue(&Answer::Error(problem)).is_err() {
                            gone.push(*asker);
                        }
                    }
                    Heard::Nothing => break,
                    Heard::Gone => {
                        gone.push(*asker);
                        break;
                    }
                }
            }
        }
        for asker in gone {
            self.connections.remove(&asker);
        }
        requests
    }

    pub(crate) fn answer(&mut self, asker: u64, answer: std::result::Result<Value, String>) {
        let answer = match answer {
            Ok(value) => Answer::Ok(trace::json_of(&value)),
            Err(problem) => Answer::Error(problem),
        };
        self.reply(asker, &answer);
    }

    fn reply(&mut self, asker: u64, answer: &Answer) {
        if self.connections.get_mut(&asker).is_some_and(|lines| lines.queue(answer).is_err()) {
            self.connections.remove(&asker);
        }
    }

    pub(crate) fn remember(&mut self, asker: u64) {
        self.stops.push(asker);
    }

    /// Answers who asked us to stop: everything has been written.
    pub(crate) fn say_goodbye(&mut self) {
        for asker in std::mem::take(&mut self.stops) {
            let summary = self.summary.clone();
            self.reply(asker, &Answer::Ok(summary));
        }
        for lines in self.connections.values_mut() {
            let _ = lines.finish(); // who does not read is not waited for
        }
    }

    fn accept(&mut self) {
        let Some((listener, _)) = &self.listener else { return };
        while let Ok((stream, _)) = listener.accept() {
            if self.connections.len() < CONNECTIONS
                && let Ok(lines) = Lines::new(stream)
            {
                self.connections.insert(self.next, lines);
                self.next += 1;
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen(path: &Path) -> Result<(UnixListener, PathBuf)> {
    // A socket that nobody answers at is what a killed daemon left behind.
    if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path).attempt("remove", path.display())?;
    }
    let listener = UnixListener::bind(path).attempt("listen at", path.display())?;
    listener.set_nonblocking(true).attempt("listen at", path.display())?;
    Ok((listener, path.to_owned()))
}
