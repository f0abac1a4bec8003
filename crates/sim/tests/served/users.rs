//! The users of the transport: a writer that writes as fast as its credit allows, and a reader with a limited rate.

use crate::served::push::PUSH;
use node::{Addr, Input, Outbox, Role, StreamEvent, StreamId, StreamOp, Value};
use wire::{Duration, Instant};

const STREAM: StreamId = StreamId(0);
/// The largest number of bytes of one write.
pub(crate) const CHUNK: usize = 16 * 1024;

/// Returns the byte at an offset of the stream. It differs from its neighbors, and from bytes at distances of a power
/// of two.
const fn pattern(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Writes `bytes` bytes, as fast as its credit allows.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) to: Addr,
    pub(crate) bytes: u64,
    pub(crate) written: u64,
    pub(crate) closed: Option<String>,
}

impl Writer {
    pub(crate) const fn new(to: Addr, bytes: u64) -> Self {
        Self { to, bytes, written: 0, closed: None }
    }

    fn write(&mut self, mut room: usize, out: &mut Outbox) {
        while room > 0 && self.written < self.bytes {
            let len = room.min(CHUNK).min((self.bytes - self.written) as usize);
            out.stream(STREAM, StreamOp::Write((self.written..).take(len).map(pattern).collect()));
            (room, self.written) = (room - len, self.written + len as u64);
            if self.written == self.bytes {
                out.stream(STREAM, StreamOp::Finish);
            }
        }
    }
}

impl Role for Writer {
    fn name(&self) -> &'static str {
        "writer"
    }
    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                out.stream(STREAM, StreamOp::Open { by: PUSH, local: None, peer: self.to, foreign: false });
            }
            Input::Stream(_, StreamEvent::Opened(_)) => out.stream(STREAM, StreamOp::Read(1)),
            Input::Stream(_, StreamEvent::Room(room)) => self.write(room, out),
            Input::Stream(_, StreamEvent::Closed(why)) => {
                self.closed = Some(why.unwrap_or("in order").to_owned());
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn status(&self) -> Value {
        let closed = self.closed.clone().map_or(Value::None, Value::from);
        Value::map([("written", Value::from(self.written)), ("closed", closed)])
    }
}

/// Reads at most `size` bytes at a time, and pauses for `rest` between two reads.
#[derive(Debug)]
pub(crate) struct Reader {
    at: Addr,
    size: usize,
    rest: Duration,
    stream: Option<StreamId>,
    next: Option<Instant>,
    asked: bool,
    read: u64,
    /// The first deviation from what was expected.
    wrong: Option<String>,
    finished: Option<Instant>,
}

impl Reader {
    pub(crate) const fn new(at: Addr, size: usize, rest: Duration) -> Self {
        Self { at, size, rest, stream: None, next: None, asked: false, read: 0, wrong: None, finished: None }
    }

    fn ask(&mut self, out: &mut Outbox) {
        if let Some(stream) = self.stream {
            self.asked = true;
            out.stream(stream, StreamOp::Read(self.size));
        }
    }

    fn data(&mut self, now: Instant, bytes: &[u8]) {
        if !std::mem::take(&mut self.asked) || bytes.len() > self.size {
            self.wrong.get_or_insert(format!(
                "{} bytes at {} that were not requested",
                bytes.len(),
                self.read
            ));
        }
        if let Some(at) = (self.read..).zip(bytes).find(|(at, byte)| pattern(*at) != **byte) {
            self.wrong.get_or_insert(format!("the byte at {}", at.0));
        }
        self.read += bytes.len() as u64;
        self.next = Some(now + self.rest);
    }
}

impl Role for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                out.stream(STREAM, StreamOp::Listen { by: PUSH, local: self.at, foreign: false });
            }
            Input::Stream(_, StreamEvent::Accepted(new, ..)) => {
                self.stream = Some(new);
                self.ask(out);
            }
            Input::Stream(_, StreamEvent::Data(bytes)) => self.data(now, bytes),
            Input::Stream(id, StreamEvent::Finished) => {
                self.finished = Some(now);
                out.stream(id, StreamOp::Finish);
            }
            Input::Timeout if self.next.is_some_and(|next| next <= now) => {
                self.next = None;
                self.ask(out);
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.next
    }
    fn status(&self) -> Value {
        Value::map([
            ("read", Value::from(self.read)),
            ("wrong", self.wrong.clone().map_or(Value::None, Value::from)),
            ("finished_ms", self.finished.map_or(Value::None, |at| Value::from(at.0 / 1_000_000))),
        ])
    }
}
