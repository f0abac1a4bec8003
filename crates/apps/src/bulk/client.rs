//! The bulk client: it connects, reads to the end of the stream, and checks the data.

use super::digest::StreamDigest;
use super::{Carrier, intact};
use crate::client::{Client, STREAM, State};
use node::config::{span, text};
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Duration, Instant};

/// The configuration of a bulk client: it connects once, and reads to the end of the stream.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkClientConfig {
    /// The address and port of the server, for example `10.2.0.2:80`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub to: Addr,
    /// The transport of the stream: `tcp`, `sctp` or `indirect`; default `tcp`.
    #[serde(default)]
    pub transport: Carrier,
    /// When the client connects, counted from the start of the run; default `0s`.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub start: Duration,
    /// The interval of the marks `progress`, which have the number of bytes read so far. With the default `0s`, there
    /// are no such marks.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub progress: Duration,
    /// Whether the mark `done` or `failed` has the SHA-256 of the bytes read, as `sha256`; default `false`.
    #[serde(default)]
    pub sha256: bool,
}

/// The role of a bulk client. It sets the marks `opened`, `first_byte`, `progress`, `wrong`, and `done` or `failed`.
#[derive(Debug)]
pub struct BulkClient {
    client: Client<()>,
    progress: Duration,
    bytes: u64,
    digest: StreamDigest,
    next_mark: Option<Instant>,
}

const NAME: &str = "bulk-client";

impl BulkClient {
    /// Creates the role with this configuration.
    pub fn new(config: &BulkClientConfig) -> Self {
        let BulkClientConfig { to, transport, start, progress, sha256 } = *config;
        let client = Client::new(NAME, to, transport, start);
        Self { client, progress, bytes: 0, digest: StreamDigest::new(sha256), next_mark: None }
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        self.client.timeout(now, out);
        while let Some(at) = self.next_mark.filter(|at| *at <= now) {
            self.next_mark = Some(at + self.progress);
            out.mark(self.mark("progress"));
        }
    }

    fn opened(&mut self, now: Instant, out: &mut Outbox) {
        if self.client.opened((), out) {
            self.next_mark = (!self.progress.is_zero()).then(|| now + self.progress);
            out.stream(STREAM, StreamOp::Read(StreamOp::ALL));
        }
    }

    fn data(&mut self, bytes: &[u8], out: &mut Outbox) {
        if !matches!(self.client.state, State::Connected(())) || bytes.is_empty() {
            return;
        }
        let right = intact(self.bytes, bytes) as u64;
        if right < bytes.len() as u64 {
            self.client.wrong(self.bytes + right, out);
        }
        if self.bytes == 0 {
            out.mark(Mark::new(NAME, "first_byte"));
        }
        self.bytes += bytes.len() as u64;
        self.digest.add(bytes);
    }

    fn closed(&mut self, why: Option<&str>, out: &mut Outbox) {
        let Some(name) = self.client.closed(why) else { return };
        self.next_mark = None;
        let mark = self.digest.on(self.mark(name));
        out.mark(match why {
            None => mark,
            Some(why) => mark.with("why", why),
        });
    }

    /// Returns a mark with the number of bytes that were read, and with the offset of the first wrong byte, if any.
    fn mark(&self, name: &'static str) -> Mark {
        self.client.with_wrong(Mark::new(NAME, name).with("bytes", self.bytes))
    }
}

impl Role for BulkClient {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Stream(STREAM, StreamEvent::Opened(_)) => self.opened(now, out),
            Input::Stream(STREAM, StreamEvent::Data(bytes)) => self.data(bytes, out),
            Input::Stream(STREAM, StreamEvent::Finished) => out.stream(STREAM, StreamOp::Finish),
            Input::Stream(STREAM, StreamEvent::Closed(why)) => self.closed(why, out),
            Input::Start(_)
            | Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(..)
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.client.connects_at().or(self.next_mark)
    }

    fn status(&self) -> Value {
        self.client.status(|()| "reading", ("bytes", self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern;
    use super::*;
    use node::{Act, Effect, Transport};

    /// Returns a client that is connected and sets a mark every second.
    fn reading(sha256: bool) -> BulkClient {
        let to = "10.1.0.7:80".parse().unwrap();
        let (start, progress) = (Duration::from_secs(1), Duration::from_secs(1));
        let mut client =
            BulkClient::new(&BulkClientConfig { to, transport: Carrier::Tcp, start, progress, sha256 });
        assert_eq!(client.deadline(), Some(Instant::from_millis(1000)));
        let open = StreamOp::Open { by: Transport::Tcp, local: None, peer: to, foreign: false };
        assert_eq!(said(&mut client, 1000, Input::Timeout).0, [open]);
        assert_eq!(told(&mut client, StreamEvent::Opened(to)).0, [StreamOp::Read(StreamOp::ALL)]);
        client
    }

    fn told(client: &mut BulkClient, event: StreamEvent<'_>) -> (Vec<StreamOp>, Vec<Mark>) {
        said(client, 1100, Input::Stream(STREAM, event))
    }

    fn said(client: &mut BulkClient, at: u64, input: Input<'_>) -> (Vec<StreamOp>, Vec<Mark>) {
        let mut out = Outbox::default();
        client.handle(Instant::from_millis(at), input, &mut out);
        let (mut ops, mut marks) = (Vec::new(), Vec::new());
        for effect in out.drain_effects() {
            match effect {
                Effect::Stream(_, op) => ops.push(op),
                Effect::Do(Act::Mark(mark)) => marks.push(mark),
                other => panic!("{other:?}"),
            }
        }
        (ops, marks)
    }

    #[test]
    fn it_reads_to_the_end_and_says_what_it_read() {
        let mut client = reading(false);
        let pattern = pattern(0, 50);
        let (ops, marks) = told(&mut client, StreamEvent::Data(&pattern[..20]));
        assert_eq!((ops, marks[0].name), (vec![], "first_byte"), "all was asked for");
        assert_eq!(told(&mut client, StreamEvent::Data(&pattern[20..])).1, []);
        let progress = Mark::new(NAME, "progress").with("bytes", 50u64);
        assert_eq!(said(&mut client, 2100, Input::Timeout).1, [progress]);
        assert_eq!(told(&mut client, StreamEvent::Finished).0, [StreamOp::Finish]);
        let done = Mark::new(NAME, "done").with("bytes", 50u64);
        assert_eq!(told(&mut client, StreamEvent::Closed(None)).1, [done]);
        assert_eq!(client.deadline(), None);
    }

    #[test]
    fn the_last_mark_has_the_digest_of_the_bytes_if_it_was_requested() {
        let mut client = reading(true);
        let pattern = pattern(0, 50);
        told(&mut client, StreamEvent::Data(&pattern[..20]));
        told(&mut client, StreamEvent::Data(&pattern[20..]));
        let mut digest = StreamDigest::new(true);
        digest.add(&pattern);
        let done = digest.on(Mark::new(NAME, "done").with("bytes", 50u64));
        assert_eq!(told(&mut client, StreamEvent::Closed(None)).1, [done]);
    }

    #[test]
    fn a_wrong_byte_is_told_with_its_place() {
        let mut client = reading(false);
        let mut pattern = pattern(0, 50);
        pattern[33] ^= 4;
        let (_, marks) = told(&mut client, StreamEvent::Data(&pattern));
        let wrong = Mark::new(NAME, "wrong").with("wrong_at", 33u64).with("peer", "10.1.0.7:80");
        assert!(marks.contains(&wrong), "it is reported although the transfer may never end: {marks:?}");
        assert!(!told(&mut client, StreamEvent::Data(&pattern)).1.iter().any(|mark| mark.name == "wrong"));
        let (_, marks) = told(&mut client, StreamEvent::Closed(Some("connection reset by the peer")));
        assert!(marks[0].fields.contains(&("wrong_at", Value::Int(33))), "{marks:?}");
        assert_eq!((marks[0].name, marks.len()), ("failed", 1));
    }
}
