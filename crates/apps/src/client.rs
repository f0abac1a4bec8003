//! What all clients over a byte stream share: when they connect, the state of the stream, and how it ended.

use crate::bulk::Carrier;
use node::{Addr, Mark, Outbox, StreamId, StreamOp, Value};
use wire::{Duration, Instant};

/// The only stream of a client.
pub(crate) const STREAM: StreamId = StreamId(0);

/// The state of a client. `S` says what the client does while it is connected.
#[derive(Debug)]
pub(crate) enum State<S> {
    /// The client has not connected yet.
    Waits,
    Connecting,
    Connected(S),
    /// The stream is closed.
    Done,
}

/// A client's connection to its server.
#[derive(Debug)]
pub(crate) struct Client<S> {
    /// The name of the role.
    name: &'static str,
    server: Addr,
    transport: Carrier,
    start: Duration,
    pub(crate) state: State<S>,
    /// Where the first wrong bytes were: an offset in the stream, or the number of a request.
    wrong_at: Option<u64>,
    /// Why the stream was closed, unless it ended cleanly.
    failed: Option<String>,
}

impl<S> Client<S> {
    /// Returns a client that connects to `server` at `start`, counted from the start of the run.
    pub(crate) const fn new(name: &'static str, server: Addr, transport: Carrier, start: Duration) -> Self {
        Self { name, server, transport, start, state: State::Waits, wrong_at: None, failed: None }
    }

    /// Returns the instant at which the client connects; `None` if it has tried already.
    pub(crate) fn connects_at(&self) -> Option<Instant> {
        matches!(self.state, State::Waits).then(|| Instant::ZERO + self.start)
    }

    /// Connects if the start of the client has come.
    pub(crate) fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        if self.connects_at().is_some_and(|start| start <= now) {
            self.state = State::Connecting;
            let (by, peer) = (self.transport.into(), self.server);
            out.stream(STREAM, StreamOp::Open { by, local: None, peer, foreign: false });
        }
    }

    /// Records that the stream is open, and sets the mark `opened`. Returns false, without any effect, if the client
    /// was not connecting.
    pub(crate) fn opened(&mut self, connected: S, out: &mut Outbox) -> bool {
        let waited = matches!(self.state, State::Connecting);
        if waited {
            self.state = State::Connected(connected);
            out.mark(Mark::new(self.name, "opened"));
        }
        waited
    }

    /// Records wrong bytes. The first ones set the mark `wrong`. It is set immediately, because a stream that never
    /// ends does not set the mark `done` or `failed`.
    pub(crate) fn wrong(&mut self, at: u64, out: &mut Outbox) {
        if self.wrong_at.is_none() {
            self.wrong_at = Some(at);
            let mark = Mark::new(self.name, "wrong").with("wrong_at", at);
            out.mark(mark.with("peer", self.server.to_string()));
        }
    }

    /// Records that the stream is closed, and why. Returns the name of the mark to set: `done` or `failed`. `None` if
    /// the stream was closed before.
    pub(crate) fn closed(&mut self, why: Option<&str>) -> Option<&'static str> {
        if matches!(std::mem::replace(&mut self.state, State::Done), State::Done) {
            return None;
        }
        self.failed = why.map(str::to_owned);
        Some(if why.is_none() { "done" } else { "failed" })
    }

    /// Adds to a mark where the first wrong bytes were, if there were any.
    pub(crate) fn with_wrong(&self, mark: Mark) -> Mark {
        match self.wrong_at {
            Some(at) => mark.with("wrong_at", at),
            None => mark,
        }
    }

    /// Returns the status: the state, a count, the first wrong bytes, and why the stream was closed. `connected` names
    /// what the client does while it is connected.
    pub(crate) fn status(&self, connected: impl Fn(&S) -> &'static str, count: (&str, u64)) -> Value {
        let state = match &self.state {
            State::Waits => "waits",
            State::Connecting => "connecting",
            State::Connected(state) => connected(state),
            State::Done => "done",
        };
        Value::map([
            ("state", Value::from(state)),
            (count.0, Value::from(count.1)),
            ("wrong_at", self.wrong_at.map_or(Value::None, Value::from)),
            ("failed", self.failed.clone().map_or(Value::None, Value::from)),
        ])
    }
}
