//! Sends to everybody who connects.

use super::{Carrier, pattern};
use node::config::{ConfigError, some_span, text};
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamId, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// A server: how much it sends is a number of bytes or a span of time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkServerConfig {
    /// Where it waits.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub at: Addr,
    /// What carries the bytes.
    #[serde(default)]
    pub transport: Carrier,
    /// Bytes to each client: 1 or more.
    #[schemars(range(min = 1))]
    pub bytes: Option<u64>,
    /// So long to each client, from when it connects.
    #[serde(default, deserialize_with = "some_span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub duration: Option<Duration>,
}

/// The server.
#[derive(Debug)]
pub struct BulkServer {
    config: BulkServerConfig,
    clients: BTreeMap<StreamId, Client>,
    served: u64,
    sent: u64,
    failed: Option<String>,
}

#[derive(Debug)]
struct Client {
    sent: u64,
    until: Option<Instant>,
    finished: bool,
}

const NAME: &str = "bulk-server";
const LISTENER: StreamId = StreamId(0);
/// Clients at a time; more are sent away.
const CLIENTS: usize = 1024;
/// Bytes written at once, so that a large credit is not one large copy.
const CHUNK: usize = 64 * 1024;

impl BulkServer {
    /// A server with this configuration.
    pub fn new(config: BulkServerConfig) -> Result<Self, ConfigError> {
        if config.bytes.is_some() == config.duration.is_some() {
            return Err(ConfigError::new("bytes", "give either `bytes` or `duration`"));
        }
        if config.bytes == Some(0) {
            return Err(ConfigError::new("bytes", "allowed: 1 or more; with 0 nothing is sent"));
        }
        Ok(Self { config, clients: BTreeMap::new(), served: 0, sent: 0, failed: None })
    }

    fn accept(&mut self, now: Instant, id: StreamId, out: &mut Outbox) {
        if self.clients.len() >= CLIENTS {
            return out.stream(id, StreamOp::Abort);
        }
        let until = self.config.duration.map(|span| now + span);
        self.clients.insert(id, Client { sent: 0, until, finished: false });
        // Nothing is expected but the end.
        out.stream(id, StreamOp::Read(1));
    }

    fn send(&mut self, id: StreamId, credit: usize, out: &mut Outbox) {
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.finished) else { return };
        let left = self.config.bytes.map_or(u64::MAX, |bytes| bytes - client.sent);
        let mut now = left.min(credit as u64);
        while now > 0 {
            let bytes = pattern(client.sent, now.min(CHUNK as u64) as usize);
            now -= bytes.len() as u64;
            client.sent += bytes.len() as u64;
            self.sent += bytes.len() as u64;
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
    }

    fn closed(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        let Some(client) = self.clients.remove(&id) else {
            self.failed = why.map(str::to_owned);
            return;
        };
        self.served += u64::from(why.is_none());
        let mark = Mark::new(NAME, if why.is_none() { "served" } else { "client_lost" });
        let mark = mark.with("bytes", client.sent);
        out.mark(match why {
            Some(why) => mark.with("why", why),
            None => mark,
        });
    }
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
            Input::Stream(_, StreamEvent::Accepted(new, ..)) => self.accept(now, new, out),
            Input::Stream(id, StreamEvent::Room(credit)) => self.send(id, credit, out),
            // What a client says is not asked for; what ends is its own affair.
            Input::Stream(id, StreamEvent::Data(_)) => out.stream(id, StreamOp::Read(1)),
            Input::Stream(id, StreamEvent::Closed(why)) => self.closed(id, why, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.clients.values().filter_map(|client| client.until).min()
    }

    fn status(&self) -> Value {
        let failed = self.failed.clone().map_or(Value::None, Value::from);
        Value::map([
            ("clients", Value::from(self.clients.len() as u64)),
            ("served", Value::from(self.served)),
            ("sent", Value::from(self.sent)),
            ("failed", failed),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::Effect;

    const CLIENT: StreamId = StreamId(StreamId::DRIVER);

    fn server(bytes: Option<u64>, duration: Option<Duration>) -> BulkServer {
        let at = "10.1.0.7:80".parse().unwrap();
        BulkServer::new(BulkServerConfig { at, transport: Carrier::Tcp, bytes, duration }).unwrap()
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

    #[test]
    fn time_is_up_once() {
        let mut server = server(None, Some(Duration::from_secs(2)));
        let at = "10.1.0.7:80".parse().unwrap();
        told(&mut server, 500, LISTENER, StreamEvent::Accepted(CLIENT, at, at));
        assert_eq!(server.deadline(), Some(Instant::from_millis(2500)));
        let mut out = Outbox::default();
        server.handle(Instant::from_millis(2500), Input::Timeout, &mut out);
        let effects: Vec<_> = out.drain_effects().collect();
        assert_eq!((effects, server.deadline()), (vec![Effect::Stream(CLIENT, StreamOp::Finish)], None));
        assert_eq!(told(&mut server, 2600, CLIENT, StreamEvent::Room(60)), []);
    }

    #[test]
    fn both_or_neither_is_refused() {
        let at = "10.1.0.7:80".parse().unwrap();
        for (bytes, duration) in [(None, None), (Some(1), Some(Duration::ZERO))] {
            let refused = BulkServer::new(BulkServerConfig { at, transport: Carrier::Tcp, bytes, duration })
                .unwrap_err();
            assert_eq!(refused.key, "bytes");
        }
    }
}
