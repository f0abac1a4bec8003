//! The request server: it answers each question.

use super::{HEAD, Head};
use crate::bulk::Carrier;
use crate::client_limit::{ClientActivity, gives_way};
use node::config::text;
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamId, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr};

/// The configuration of a request server: where it accepts connections. The requests give the lengths of the answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestServerConfig {
    /// The address and port at which the server accepts connections, for example `10.2.0.2:80`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub at: Addr,
    /// The transport of the streams: `tcp`, `sctp` or `indirect`; default `tcp`.
    #[serde(default)]
    pub transport: Carrier,
}

/// The role of a request server. It reads the next question of a client only after it has written the whole answer to
/// the question before.
#[derive(Debug)]
pub struct RequestServer {
    config: RequestServerConfig,
    clients: BTreeMap<StreamId, Client>,
    answered: u64,
    /// The number of clients that were disconnected because new ones connected.
    gave_way: u64,
    failed: Option<String>,
}

#[derive(Debug)]
struct Client {
    /// `served`: a question of the client was answered. `active`: when the client last sent data or gave credit, or
    /// connected.
    standing: ClientActivity,
    credit: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The part of a question's head that has arrived.
    Head(Vec<u8>),
    /// The number of bytes of the question that are still missing; their content is ignored.
    Body(Head, usize),
    /// The number of bytes of the answer that are written.
    Answers(Head, u32),
}

const NAME: &str = "request-server";
const LISTENER: StreamId = StreamId(0);

impl RequestServer {
    /// Creates the role with this configuration.
    pub const fn new(config: RequestServerConfig) -> Self {
        Self { config, clients: BTreeMap::new(), answered: 0, gave_way: 0, failed: None }
    }

    fn accept(&mut self, now: Instant, id: StreamId, host: Ipv4Addr, out: &mut Outbox) {
        let others = self.clients.iter().map(|(id, other)| (*id, &other.standing));
        if let Some(silent) = gives_way(others, host) {
            self.clients.remove(&silent);
            self.gave_way += 1;
            out.stream(silent, StreamOp::Abort);
        }
        let state = State::Head(Vec::new());
        self.clients.insert(id, Client { standing: ClientActivity::new(now, host), credit: 0, state });
        out.stream(id, StreamOp::Read(HEAD as usize));
    }

    fn data(&mut self, now: Instant, id: StreamId, bytes: &[u8], out: &mut Outbox) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.standing.active = now;
        match &mut client.state {
            State::Head(have) => {
                have.extend_from_slice(bytes);
                let Some(bytes) = have.first_chunk() else {
                    return out.stream(id, StreamOp::Read(HEAD as usize - have.len()));
                };
                let Some(head) = Head::parse(bytes) else {
                    out.mark(Mark::new(NAME, "bad_question"));
                    return out.stream(id, StreamOp::Abort);
                };
                client.state = State::Body(head, (head.question - HEAD) as usize);
            }
            State::Body(_, left) => *left = left.saturating_sub(bytes.len()),
            State::Answers(..) => return, // data without a read request
        }
        if let State::Body(head, left) = client.state {
            if left > 0 {
                return out.stream(id, StreamOp::Read(left));
            }
            client.state = State::Answers(head, 0);
            self.write(id, out);
        }
    }

    /// Writes as much of the answer as there is credit for.
    fn write(&mut self, id: StreamId, out: &mut Outbox) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let State::Answers(head, written) = &mut client.state else { return };
        let now = client.credit.min((head.answer - *written) as usize);
        if now > 0 {
            let bytes = head.answer(*written, now);
            client.credit -= now;
            *written += now as u32; // at most the answer
            out.stream(id, StreamOp::Write(bytes));
        }
        if *written == head.answer {
            client.state = State::Head(Vec::new());
            client.standing.served = true;
            self.answered += 1;
            out.stream(id, StreamOp::Read(HEAD as usize));
        }
    }

    fn closed(&mut self, id: StreamId, why: Option<&str>, out: &mut Outbox) {
        if id == LISTENER {
            self.failed = why.map(str::to_owned);
        } else if self.clients.remove(&id).is_none() {
            // The server has already disconnected the client, to accept a new one.
        } else if let Some(why) = why {
            out.mark(Mark::new(NAME, "client_lost").with("why", why));
        }
    }
}

impl Role for RequestServer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                let RequestServerConfig { at, transport } = self.config;
                out.stream(LISTENER, StreamOp::Listen { by: transport.into(), local: at, foreign: false });
            }
            Input::Stream(_, StreamEvent::Accepted(new, _, peer)) => self.accept(now, new, *peer.ip(), out),
            Input::Stream(id, StreamEvent::Room(credit)) => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.standing.active = now;
                    client.credit = client.credit.saturating_add(credit);
                }
                self.write(id, out);
            }
            Input::Stream(id, StreamEvent::Data(bytes)) => self.data(now, id, bytes, out),
            Input::Stream(id, StreamEvent::Finished) => out.stream(id, StreamOp::Finish),
            Input::Stream(id, StreamEvent::Closed(why)) => self.closed(id, why, out),
            Input::Timeout
            | Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(_, StreamEvent::Opened(_) | StreamEvent::Migrate(_))
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn status(&self) -> Value {
        Value::map([
            ("clients", Value::from(self.clients.len() as u64)),
            ("answered", Value::from(self.answered)),
            ("gave_way", Value::from(self.gave_way)),
            ("failed", self.failed.clone().map_or(Value::None, Value::from)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_limit::{CLIENTS, CLIENTS_OF_ADDRESS};
    use node::Effect;

    const CLIENT: StreamId = StreamId(StreamId::DRIVER);

    fn told(server: &mut RequestServer, event: StreamEvent<'_>) -> Vec<StreamOp> {
        let mut out = Outbox::default();
        let id = if matches!(event, StreamEvent::Accepted(..)) { LISTENER } else { CLIENT };
        server.handle(Instant::ZERO, Input::Stream(id, event), &mut out);
        let op = |effect| if let Effect::Stream(_, op) = effect { Some(op) } else { None };
        out.drain_effects().filter_map(op).collect()
    }

    fn server() -> RequestServer {
        let at = "10.2.0.2:80".parse().unwrap();
        let mut server = RequestServer::new(RequestServerConfig { at, transport: Carrier::Tcp });
        assert_eq!(told(&mut server, StreamEvent::Accepted(CLIENT, at, at)), [StreamOp::Read(16)]);
        server
    }

    #[test]
    fn a_question_in_pieces_is_answered_as_credit_allows() {
        let mut server = server();
        let head = Head { number: 3, question: 30, answer: 40 };
        let question = head.emit();
        assert_eq!(told(&mut server, StreamEvent::Data(&question[..5])), [StreamOp::Read(11)]);
        assert_eq!(told(&mut server, StreamEvent::Data(&question[5..16])), [StreamOp::Read(14)]);
        assert_eq!(told(&mut server, StreamEvent::Data(&question[16..20])), [StreamOp::Read(10)]);
        assert_eq!(told(&mut server, StreamEvent::Data(&question[20..])), [], "no credit yet");
        let answer = head.answer(0, 40);
        assert_eq!(told(&mut server, StreamEvent::Room(15)), [StreamOp::Write(answer[..15].to_vec())]);
        let rest = StreamOp::Write(answer[15..].to_vec());
        assert_eq!(told(&mut server, StreamEvent::Room(25)), [rest, StreamOp::Read(16)]);
        assert_eq!(server.status().get("answered"), Some(&Value::Int(1)));
    }

    #[test]
    fn who_asks_for_what_cannot_be_is_sent_away() {
        let mut server = server();
        assert_eq!(told(&mut server, StreamEvent::Data(&[0xff; 16])), [StreamOp::Abort]);
        assert_eq!(told(&mut server, StreamEvent::Closed(None)), []);
        assert_eq!(server.status().get("clients"), Some(&Value::Int(0)));
    }

    fn at(server: &mut RequestServer, ms: u64, id: u32, event: StreamEvent<'_>) -> Vec<Effect> {
        let mut out = Outbox::default();
        let id = StreamId(StreamId::DRIVER + id);
        server.handle(Instant::from_millis(ms), Input::Stream(id, event), &mut out);
        out.drain_effects().collect()
    }

    /// Connects a client. Returns the numbers of the clients that are disconnected for it.
    fn connects(server: &mut RequestServer, ms: u64, id: u32, host: u32) -> Vec<u32> {
        let there = Addr::new(Ipv4Addr::from_bits(0x0a03_0000 + host), 5000);
        let mut out = Outbox::default();
        let new = StreamId(StreamId::DRIVER + id);
        let event = StreamEvent::Accepted(new, server.config.at, there);
        server.handle(Instant::from_millis(ms), Input::Stream(LISTENER, event), &mut out);
        let gone = |effect| match effect {
            Effect::Stream(id, StreamOp::Abort) => Some(id.0 - StreamId::DRIVER),
            _ => None,
        };
        out.drain_effects().filter_map(gone).collect()
    }

    fn asks(server: &mut RequestServer, ms: u64, id: u32) {
        at(server, ms, id, StreamEvent::Room(100));
        let question = Head { number: 1, question: 16, answer: 8 }.emit();
        let effects = at(server, ms, id, StreamEvent::Data(&question));
        assert!(matches!(effects[..], [Effect::Stream(_, StreamOp::Write(_)), ..]), "{effects:?}");
    }

    #[test]
    fn clients_that_say_nothing_make_room_for_others() {
        let mut server = server();
        asks(&mut server, 0, 0);
        for id in 1..CLIENTS as u32 {
            assert_eq!(connects(&mut server, id.into(), id, id / 32), vec![0_u32; 0]);
        }
        asks(&mut server, 2000, 1);
        assert_eq!(connects(&mut server, 2001, 5000, 200), [2], "the longest silent one that had no answer");
        asks(&mut server, 2002, 5000);
        at(&mut server, 2002, 2, StreamEvent::Closed(None));
        for id in 0..10_000 {
            connects(&mut server, 2003, 10_000 + id, id);
        }
        for id in [0, 1, 5000] {
            asks(&mut server, 3000, id);
        }
        assert_eq!(server.status().get("clients"), Some(&Value::Int(1024)));
        assert_eq!(server.status().get("gave_way"), Some(&Value::Int(10_001)));
        assert_eq!(server.status().get("failed"), Some(&Value::None));
    }

    #[test]
    fn the_clients_of_one_address_make_room_for_each_other_only() {
        let mut server = server();
        for id in 1..=CLIENTS_OF_ADDRESS as u32 {
            assert_eq!(connects(&mut server, id.into(), id, 7), vec![0_u32; 0]);
        }
        assert_eq!(connects(&mut server, 1000, 900, 7), [1]);
        assert_eq!(connects(&mut server, 1000, 901, 8), vec![0_u32; 0]);
    }
}
