//! The request client: it sends a question, waits for the answer, and sends the next question at the next multiple of
//! the interval.

use super::{HEAD, Head, LONGEST};
use crate::bulk::Carrier;
use crate::client::{Client, STREAM, State};
use node::config::{ConfigError, span, text};
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Duration, Instant};

/// The configuration of a request client. It connects once, and sends requests one after the other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestClientConfig {
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
    /// The length of a request in bytes, 16 to 1048576; default 100.
    #[serde(default = "question")]
    pub question: u32,
    /// The length of an answer in bytes, 1 to 1048576; default 1000, so that one segment carries it.
    #[serde(default = "answer")]
    pub answer: u32,
    /// The interval of requests; default `50ms`. After an answer, the next request is sent at the next multiple of the
    /// interval, counted from `start`.
    #[serde(default = "every", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub every: Duration,
    /// The number of answers after which the client finishes, at least 1. If absent, the client sends requests until
    /// the end of the run.
    pub exchanges: Option<u64>,
}

const fn question() -> u32 {
    100
}
const fn answer() -> u32 {
    1000
}
const fn every() -> Duration {
    Duration::from_millis(50)
}

/// The role of a request client. It sets a mark `answered` for each answer. The field `number` of the mark is the
/// number of the question, from 1. The field `latency_ns` is the time in nanoseconds from the question to the last byte
/// of the answer. If the question waits for credit, this wait is included.
#[derive(Debug)]
pub struct RequestClient {
    config: RequestClientConfig,
    client: Client<Turn>,
    credit: usize,
    answered: u64,
}

/// What the client does while it is connected.
#[derive(Debug)]
enum Turn {
    /// A question waits for credit, or its answer is not complete.
    Asks(Exchange),
    /// The next question is due at this time.
    Rests(Instant),
    /// The client has finished its stream: no more questions follow.
    Finishing,
}

#[derive(Debug)]
struct Exchange {
    head: Head,
    asked: Instant,
    /// The part of the question that waits for credit.
    rest: Vec<u8>,
    /// The number of bytes of the answer that have arrived.
    come: u32,
}

const NAME: &str = "request-client";

impl RequestClient {
    /// Creates the role with this configuration. Fails if a length, the interval or the number of exchanges is out of
    /// range.
    pub fn new(config: RequestClientConfig) -> Result<Self, ConfigError> {
        if !(HEAD..=LONGEST).contains(&config.question) {
            return Err(ConfigError::new(
                "question",
                format!("must be from {HEAD} bytes (the length of the head) to {LONGEST} bytes"),
            ));
        }
        if !(1..=LONGEST).contains(&config.answer) {
            return Err(ConfigError::new("answer", format!("must be 1 to {LONGEST} bytes")));
        }
        if config.every.is_zero() {
            return Err(ConfigError::new("every", "must be greater than zero, for example `50ms`"));
        }
        if config.exchanges == Some(0) {
            return Err(ConfigError::new("exchanges", "must be at least 1"));
        }
        let client = Client::new(NAME, config.to, config.transport, config.start);
        Ok(Self { config, client, credit: 0, answered: 0 })
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        self.client.timeout(now, out);
        if let State::Connected(Turn::Rests(until)) = self.client.state
            && until <= now
        {
            self.ask(now, out);
        }
    }

    /// Returns the first instant after `now` that is a multiple of the interval after the start of the client.
    fn next_beat(&self, now: Instant) -> Instant {
        let start = Instant::ZERO + self.config.start;
        let beats = now.since(start).as_nanos() / self.config.every.as_nanos() + 1;
        let next = u64::try_from(beats * self.config.every.as_nanos()).unwrap_or(u64::MAX);
        start + Duration::from_nanos(next)
    }

    fn ask(&mut self, now: Instant, out: &mut Outbox) {
        let (question, answer) = (self.config.question, self.config.answer);
        let head = Head { number: self.answered + 1, question, answer };
        let exchange = Exchange { head, asked: now, rest: head.emit(), come: 0 };
        self.client.state = State::Connected(Turn::Asks(exchange));
        self.write(out);
        out.stream(STREAM, StreamOp::Read(answer as usize));
    }

    /// Writes as much of the question as there is credit for.
    fn write(&mut self, out: &mut Outbox) {
        let State::Connected(Turn::Asks(exchange)) = &mut self.client.state else { return };
        let now = self.credit.min(exchange.rest.len());
        if now > 0 {
            let rest = exchange.rest.split_off(now);
            self.credit -= now;
            out.stream(STREAM, StreamOp::Write(std::mem::replace(&mut exchange.rest, rest)));
        }
    }

    fn data(&mut self, now: Instant, bytes: &[u8], out: &mut Outbox) {
        let State::Connected(Turn::Asks(exchange)) = &mut self.client.state else { return };
        let (head, asked) = (exchange.head, exchange.asked);
        let is_right = head.is_answer(exchange.come, bytes);
        exchange.come = exchange.come.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let left = head.answer.saturating_sub(exchange.come) as usize;
        if !is_right {
            self.client.wrong(head.number, out);
        }
        if left > 0 {
            return out.stream(STREAM, StreamOp::Read(left));
        }
        let took = now.since(asked).as_nanos() as u64;
        self.answered += 1;
        out.mark(self.mark("answered").with("number", head.number).with("latency_ns", took));
        if self.config.exchanges == Some(self.answered) {
            self.client.state = State::Connected(Turn::Finishing);
            // The client reads once more, to be notified of the end of the stream.
            out.stream(STREAM, StreamOp::Finish);
            out.stream(STREAM, StreamOp::Read(1));
        } else {
            self.client.state = State::Connected(Turn::Rests(self.next_beat(now)));
        }
    }

    fn closed(&mut self, why: Option<&str>, out: &mut Outbox) {
        let Some(name) = self.client.closed(why) else { return };
        let mark = self.mark(name).with("answered", self.answered);
        out.mark(match why {
            None => mark,
            Some(why) => mark.with("why", why),
        });
    }

    /// Returns a mark with the number of the first request that got a wrong answer, if any.
    fn mark(&self, name: &'static str) -> Mark {
        self.client.with_wrong(Mark::new(NAME, name))
    }
}

impl Role for RequestClient {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Stream(STREAM, StreamEvent::Opened(_)) => {
                let first = Turn::Rests(self.next_beat(now));
                self.client.opened(first, out);
            }
            Input::Stream(STREAM, StreamEvent::Room(credit)) => {
                self.credit = self.credit.saturating_add(credit);
                self.write(out);
            }
            Input::Stream(STREAM, StreamEvent::Data(bytes)) => self.data(now, bytes, out),
            // The server has ended the stream, so no more answers will come.
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
        match self.client.state {
            State::Connected(Turn::Rests(until)) => Some(until),
            _ => self.client.connects_at(),
        }
    }

    fn status(&self) -> Value {
        let turn = |turn: &Turn| match turn {
            Turn::Asks(_) => "asks",
            Turn::Rests(_) => "rests",
            Turn::Finishing => "finishing",
        };
        self.client.status(turn, ("answered", self.answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Act, Effect};

    fn config() -> RequestClientConfig {
        RequestClientConfig {
            to: "10.2.0.2:80".parse().unwrap(),
            transport: Carrier::Tcp,
            start: Duration::from_millis(10),
            question: 20,
            answer: 50,
            every: Duration::from_millis(10),
            exchanges: Some(2),
        }
    }

    fn said(client: &mut RequestClient, at: u64, input: Input<'_>) -> (Vec<StreamOp>, Vec<Mark>) {
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

    fn told(client: &mut RequestClient, at: u64, event: StreamEvent<'_>) -> (Vec<StreamOp>, Vec<Mark>) {
        said(client, at, Input::Stream(STREAM, event))
    }

    /// Returns a client that is connected at 15 ms, and asks its first question at 20 ms.
    fn asking() -> RequestClient {
        let mut client = RequestClient::new(config()).unwrap();
        assert_eq!(client.deadline(), Some(Instant::from_millis(10)));
        assert_eq!(said(&mut client, 9, Input::Timeout).0, [], "not before its time");
        said(&mut client, 10, Input::Timeout);
        told(&mut client, 15, StreamEvent::Opened(config().to));
        assert_eq!(client.deadline(), Some(Instant::from_millis(20)), "the next beat");
        assert_eq!(said(&mut client, 20, Input::Timeout).0, [StreamOp::Read(50)], "no credit yet");
        client
    }

    fn head(number: u64) -> Head {
        Head { number, question: 20, answer: 50 }
    }

    fn answer_to(number: u64) -> Vec<u8> {
        head(number).answer(0, 50)
    }

    #[test]
    fn a_question_waits_for_credit_and_an_answer_is_timed_whole() {
        let mut client = asking();
        let question = head(1).emit();
        let write = |bytes: &[u8]| vec![StreamOp::Write(bytes.to_vec())];
        assert_eq!(told(&mut client, 20, StreamEvent::Room(12)).0, write(&question[..12]));
        assert_eq!(told(&mut client, 21, StreamEvent::Room(100)).0, write(&question[12..]));
        let answer = answer_to(1);
        assert_eq!(
            told(&mut client, 30, StreamEvent::Data(&answer[..30])),
            (vec![StreamOp::Read(20)], vec![])
        );
        let (_, marks) = told(&mut client, 32, StreamEvent::Data(&answer[30..]));
        let took = Mark::new(NAME, "answered").with("number", 1u64).with("latency_ns", 12_000_000u64);
        assert_eq!(marks, [took]);
        // The credit that is left is used for the next question.
        assert_eq!(client.deadline(), Some(Instant::from_millis(40)));
        let (ops, _) = said(&mut client, 40, Input::Timeout);
        assert_eq!(ops, [StreamOp::Write(head(2).emit()), StreamOp::Read(50)]);
        let (ops, marks) = told(&mut client, 45, StreamEvent::Data(&answer_to(2)));
        assert_eq!((ops, marks.len()), (vec![StreamOp::Finish, StreamOp::Read(1)], 1));
        assert_eq!(told(&mut client, 46, StreamEvent::Closed(None)).1[0].name, "done");
        assert_eq!(client.deadline(), None);
    }

    #[test]
    fn it_opens_by_the_transport_that_it_is_told() {
        let transport = Carrier::Indirect;
        let mut client = RequestClient::new(RequestClientConfig { transport, ..config() }).unwrap();
        let (ops, _) = said(&mut client, 10, Input::Timeout);
        assert!(matches!(ops[..], [StreamOp::Open { by: node::Transport::Role("indirect"), .. }]), "{ops:?}");
    }

    #[test]
    fn a_wrong_answer_is_told_with_its_number() {
        let mut client = asking();
        told(&mut client, 20, StreamEvent::Room(100));
        let (_, marks) = told(&mut client, 30, StreamEvent::Data(&answer_to(2)));
        let wrong = Mark::new(NAME, "wrong").with("wrong_at", 1u64).with("peer", "10.2.0.2:80");
        assert_eq!(marks.first(), Some(&wrong), "{marks:?}");
        let (_, marks) = told(&mut client, 31, StreamEvent::Closed(Some("connection reset by the peer")));
        assert_eq!(marks[0].name, "failed");
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let refused = |config| RequestClient::new(config).unwrap_err().key;
        assert_eq!(refused(RequestClientConfig { question: 15, ..config() }), "question");
        assert_eq!(refused(RequestClientConfig { answer: 0, ..config() }), "answer");
        assert_eq!(refused(RequestClientConfig { every: Duration::ZERO, ..config() }), "every");
        assert_eq!(refused(RequestClientConfig { exchanges: Some(0), ..config() }), "exchanges");
    }
}
