//! The bulk server: it sends data to each client that connects.

use super::digest::StreamDigest;
use super::{Carrier, pattern};
use crate::client_limit::{ClientActivity, gives_way};
use node::config::{ConfigError, some_span, text};
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamId, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::{Duration, Instant, Ipv4Addr};

/// The configuration of a bulk server. Either `bytes` or `duration` must be given, and not both.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkServerConfig {
    /// The address and port at which the server accepts connections, for example `10.2.0.2:80`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub at: Addr,
    /// The transport of the streams: `tcp`, `sctp` or `indirect`; default `tcp`.
    #[serde(default)]
    pub transport: Carrier,
    /// The number of bytes that the server sends to each client, at least 1. Absent if `duration` is given.
    #[schemars(range(min = 1))]
    pub bytes: Option<u64>,
    /// The time for which the server sends to each client, counted from the client's connection. Absent if `bytes` is
    /// given.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub duration: Option<Duration>,
    /// Whether the mark `served` has the SHA-256 of the bytes that were sent to the client, as `sha256`; default `false`.
    #[serde(default)]
    pub sha256: bool,
}

/// The role of a bulk server. It sends the same pattern to each client.
#[derive(Debug)]
pub struct BulkServer {
    config: BulkServerConfig,
    clients: BTreeMap<StreamId, Client>,
    served: u64,
    sent: u64,
    /// The number of clients that were disconnected because new ones connected.
    gave_way: u64,
    /// The number of clients that were disconnected because they gave no new credit for 10 minutes.
    stalled: u64,
    failed: Option<String>,
}

#[derive(Debug)]
struct Client {
    /// `served`: the client has acknowledged data. `active`: when the client last gave credit, or connected.
    standing: ClientActivity,
    sent: u64,
    digest: StreamDigest,
    until: Option<Instant>,
    finished: bool,
}

const NAME: &str = "bulk-server";
const LISTENER: StreamId = StreamId(0);
/// A client that gives no new credit for this time is disconnected, because the data written for it take memory. The
/// value is a choice of this project.
const PATIENCE: Duration = Duration::from_mins(10);
/// The largest write in bytes, so that a large credit is not one large copy.
const CHUNK: usize = 64 * 1024;

impl BulkServer {
    /// Creates the role with this configuration. Fails if both or none of `bytes` and `duration` are given, or if
    /// `bytes` is 0.
    pub fn new(config: BulkServerConfig) -> Result<Self, ConfigError> {
        if config.bytes.is_some() == config.duration.is_some() {
            return Err(ConfigError::new(
                "bytes",
                "give either `bytes`, for example 1000000, or `duration`, for example `10s`",
            ));
        }
        if config.bytes == Some(0) {
            return Err(ConfigError::new("bytes", "must be at least 1"));
        }
        Ok(Self {
            config,
            clients: BTreeMap::new(),
            served: 0,
            sent: 0,
            gave_way: 0,
            stalled: 0,
            failed: None,
        })
    }

    fn accept(&mut self, now: Instant, id: StreamId, host: Ipv4Addr, out: &mut Outbox) {
        let others = self.clients.iter().map(|(id, other)| (*id, &other.standing));
        if let Some(slowest) = gives_way(others, host) {
            self.clients.remove(&slowest);
            self.gave_way += 1;
            out.stream(slowest, StreamOp::Abort);
        }
        let until = self.config.duration.map(|span| now + span);
        let (standing, digest) = (ClientActivity::new(now, host), StreamDigest::new(self.config.sha256));
        self.clients.insert(id, Client { standing, sent: 0, digest, until, finished: false });
        // The client is expected to send nothing but the end of its stream.
        out.stream(id, StreamOp::Read(1));
    }

    fn send(&mut self, now: Instant, id: StreamId, credit: usize, out: &mut Outbox) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        // More credit after a first write means that the client has acknowledged data.
        client.standing.served |= client.sent > 0;
        client.standing.active = now;
        if client.finished {
            return;
        }
        let left = self.config.bytes.map_or(u64::MAX, |bytes| bytes - client.sent);
        let mut room = left.min(credit as u64);
        while room > 0 {
            let bytes = pattern(client.sent, room.min(CHUNK as u64) as usize);
            room -= bytes.len() as u64;
            client.sent += bytes.len() as u64;
            self.sent += bytes.len() as u64;
            client.digest.add(&bytes);
            out.stream(id, StreamOp::Write(bytes));
        }
        if self.config.bytes.is_some_and(|bytes| bytes == client.sent) {
            client.finished = true;
            out.stream(id, StreamOp::Finish);
        }
    }

    fn time_is_up(&mut self, now: Instant, out: &mut Outbox) {
        for (id, client) in &mut self.clients {
            if client.until.is_some_and(|until| until <= now) {
                client.until = None;
                client.finished = true;
                out.stream(*id, StreamOp::Finish);
            }
        }
        let stalled = self.clients.extract_if(.., |_, client| client.standing.active + PATIENCE <= now);
        for (id, client) in stalled {
            self.stalled += 1;
            out.mark(lost(&client, "the client has not read for 10 minutes"));
            out.stream(id, StreamOp::Abort);
        }
    }

    fn closed(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        if id == LISTENER {
            self.failed = why.map(str::to_owned);
            return;
        }
        // A client that the server has disconnected was removed before.
        let Some(client) = self.clients.remove(&id) else { return };
        self.served += u64::from(why.is_none());
        out.mark(match why {
            Some(why) => lost(&client, why),
            None => client.digest.on(Mark::new(NAME, "served").with("bytes", client.sent)),
        });
    }
}

fn lost(client: &Client, why: &str) -> Mark {
    Mark::new(NAME, "client_lost").with("bytes", client.sent).with("why", why)
}

impl Role for BulkServer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                out.stream(
                    LISTENER,
                    StreamOp::Listen {
                        by: self.config.transport.into(),
                        local: self.config.at,
                        foreign: false,
                    },
                );
            }
            Input::Timeout => self.time_is_up(now, out),
            Input::Stream(_, StreamEvent::Accepted(new, _, peer)) => self.accept(now, new, *peer.ip(), out),
            Input::Stream(id, StreamEvent::Room(credit)) => self.send(now, id, credit, out),
            // The data of a client are ignored. The client ends its stream when it has read everything.
            Input::Stream(id, StreamEvent::Data(_)) => out.stream(id, StreamOp::Read(1)),
            Input::Stream(id, StreamEvent::Closed(why)) => self.closed(id, why, out),
            Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(_, StreamEvent::Opened(_) | StreamEvent::Finished | StreamEvent::Migrate(_))
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let times =
            self.clients.values().flat_map(|client| [client.until, Some(client.standing.active + PATIENCE)]);
        times.flatten().min()
    }

    fn status(&self) -> Value {
        let failed = self.failed.clone().map_or(Value::None, Value::from);
        Value::map([
            ("clients", Value::from(self.clients.len() as u64)),
            ("served", Value::from(self.served)),
            ("sent", Value::from(self.sent)),
            ("gave_way", Value::from(self.gave_way)),
            ("stalled", Value::from(self.stalled)),
            ("failed", failed),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_limit::{CLIENTS, CLIENTS_OF_ADDRESS};
    use node::Effect;

    const CLIENT: StreamId = StreamId(StreamId::DRIVER);

    fn server(bytes: Option<u64>, duration: Option<Duration>) -> BulkServer {
        let at = "10.1.0.7:80".parse().unwrap();
        BulkServer::new(BulkServerConfig { at, transport: Carrier::Tcp, bytes, duration, sha256: false })
            .unwrap()
    }

    fn told(server: &mut BulkServer, at: u64, id: StreamId, event: StreamEvent<'_>) -> Vec<StreamOp> {
        let mut out = Outbox::default();
        server.handle(Instant::from_millis(at), Input::Stream(id, event), &mut out);
        out.drain_effects()
            .filter_map(|effect| if let Effect::Stream(_, op) = effect { Some(op) } else { None })
            .collect()
    }

    #[test]
    fn it_writes_what_there_is_credit_for_and_finishes() {
        let mut server = server(Some(100), None);
        let at = "10.1.0.7:80".parse().unwrap();
        let read = told(&mut server, 0, LISTENER, StreamEvent::Accepted(CLIENT, at, at));
        assert_eq!(read, [StreamOp::Read(1)]);
        let pattern = pattern(0, 100);
        let first = told(&mut server, 1, CLIENT, StreamEvent::Room(60));
        assert_eq!(first, [StreamOp::Write(pattern[..60].to_vec())]);
        let rest = told(&mut server, 2, CLIENT, StreamEvent::Room(60));
        assert_eq!(rest, [StreamOp::Write(pattern[60..].to_vec()), StreamOp::Finish]);
        assert_eq!(told(&mut server, 3, CLIENT, StreamEvent::Room(60)), []);
        told(&mut server, 4, CLIENT, StreamEvent::Closed(None));
        assert_eq!(server.status().get("served"), Some(&Value::Int(1)));
    }

    /// The data of an ended client are known by their digest: the client reports the digest of what it has read.
    #[test]
    fn the_mark_of_a_served_client_has_the_digest_if_it_was_requested() {
        let at = "10.1.0.7:80".parse().unwrap();
        let config =
            BulkServerConfig { at, transport: Carrier::Tcp, bytes: Some(100), duration: None, sha256: true };
        let mut server = BulkServer::new(config).unwrap();
        told(&mut server, 0, LISTENER, StreamEvent::Accepted(CLIENT, at, at));
        told(&mut server, 1, CLIENT, StreamEvent::Room(60));
        told(&mut server, 2, CLIENT, StreamEvent::Room(60));
        let mut out = Outbox::default();
        let closed = Input::Stream(CLIENT, StreamEvent::Closed(None));
        server.handle(Instant::from_millis(3), closed, &mut out);
        let mut digest = StreamDigest::new(true);
        digest.add(&pattern(0, 100));
        let served = digest.on(Mark::new(NAME, "served").with("bytes", 100u64));
        assert_eq!(out.drain_effects().collect::<Vec<_>>(), [Effect::Do(node::Act::Mark(served))]);
    }

    #[test]
    fn time_is_up_once() {
        let mut server = server(None, Some(Duration::from_secs(2)));
        let at = "10.1.0.7:80".parse().unwrap();
        told(&mut server, 500, LISTENER, StreamEvent::Accepted(CLIENT, at, at));
        assert_eq!(server.deadline(), Some(Instant::from_millis(2500)));
        let mut out = Outbox::default();
        server.handle(Instant::from_millis(2500), Input::Timeout, &mut out);
        let effects: Vec<_> = out.drain_effects().collect();
        assert_eq!(effects, [Effect::Stream(CLIENT, StreamOp::Finish)]);
        assert_eq!(server.deadline(), Some(Instant::from_millis(500) + PATIENCE));
        assert_eq!(told(&mut server, 2600, CLIENT, StreamEvent::Room(60)), []);
    }

    #[test]
    fn both_or_neither_is_refused() {
        let at = "10.1.0.7:80".parse().unwrap();
        for (bytes, duration) in [(None, None), (Some(1), Some(Duration::ZERO))] {
            let refused = BulkServer::new(BulkServerConfig {
                at,
                transport: Carrier::Tcp,
                bytes,
                duration,
                sha256: false,
            })
            .unwrap_err();
            assert_eq!(refused.key, "bytes");
        }
    }

    /// Connects a client. Returns the numbers of the clients that are disconnected for it.
    fn connects(server: &mut BulkServer, ms: u64, id: u32, host: u32) -> Vec<u32> {
        let there = Addr::new(Ipv4Addr::from_bits(0x0a03_0000 + host), 5000);
        let new = StreamId(StreamId::DRIVER + id);
        let mut out = Outbox::default();
        let event = StreamEvent::Accepted(new, server.config.at, there);
        server.handle(Instant::from_millis(ms), Input::Stream(LISTENER, event), &mut out);
        server.handle(Instant::from_millis(ms), Input::Stream(new, StreamEvent::Room(100)), &mut out);
        let gone = |effect| match effect {
            Effect::Stream(id, StreamOp::Abort) => Some(id.0 - StreamId::DRIVER),
            _ => None,
        };
        out.drain_effects().filter_map(gone).collect()
    }

    fn reads(server: &mut BulkServer, ms: u64, id: u32) -> bool {
        !told(server, ms, StreamId(StreamId::DRIVER + id), StreamEvent::Room(10)).is_empty()
    }

    fn counted(server: &BulkServer, what: &str) -> Option<i64> {
        server.status().get(what)?.as_int()
    }

    #[test]
    fn clients_that_read_nothing_make_room_for_others() {
        let mut server = server(Some(1_000_000), None);
        for id in 0..CLIENTS as u32 {
            assert_eq!(connects(&mut server, id.into(), id, id / 32), [0_u32; 0]);
        }
        assert!(reads(&mut server, 2000, 0) && reads(&mut server, 2000, 1));
        assert_eq!(connects(&mut server, 2001, 5000, 200), [2], "the first that has never read");
        told(&mut server, 2001, StreamId(StreamId::DRIVER + 2), StreamEvent::Closed(Some("aborted")));
        assert!(reads(&mut server, 2002, 5000));
        for id in 0..10_000 {
            connects(&mut server, 2003, 10_000 + id, 300 + id);
        }
        assert!([0, 1, 5000].iter().all(|id| reads(&mut server, 3000, *id)));
        let counts = ["clients", "gave_way", "stalled"].map(|what| counted(&server, what));
        assert_eq!(counts, [Some(1024), Some(10_001), Some(0)]);
        assert_eq!(server.status().get("failed"), Some(&Value::None));
    }

    #[test]
    fn the_clients_of_one_address_make_room_for_each_other_only() {
        let mut server = server(Some(1_000_000), None);
        for id in 1..=CLIENTS_OF_ADDRESS as u32 {
            assert_eq!(connects(&mut server, id.into(), id, 7), [0_u32; 0]);
        }
        assert_eq!(connects(&mut server, 1000, 900, 7), [1]);
        assert_eq!(connects(&mut server, 1000, 901, 8), [0_u32; 0]);
    }

    /// A client that reads nothing for 10 minutes is disconnected, even if all data for it are written.
    #[test]
    fn a_client_that_reads_nothing_for_too_long_is_sent_away() {
        let mut server = server(Some(100), None);
        for id in [1, 2] {
            connects(&mut server, 0, id, id);
        }
        reads(&mut server, 1000, 2);
        assert_eq!(server.deadline(), Some(Instant::ZERO + PATIENCE));
        let mut out = Outbox::default();
        server.handle(Instant::ZERO + PATIENCE, Input::Timeout, &mut out);
        let gone = Effect::Stream(StreamId(StreamId::DRIVER + 1), StreamOp::Abort);
        assert!(out.drain_effects().any(|effect| effect == gone));
        assert_eq!(["clients", "stalled"].map(|what| counted(&server, what)), [Some(1), Some(1)]);
    }
}
