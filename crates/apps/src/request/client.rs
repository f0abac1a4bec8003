//! The client: it asks, waits for the answer, and asks again at the next beat.

use super::{HEAD, Head, LONGEST};
use crate::bulk::Carrier;
use node::config::{ConfigError, span, text};
use node::{Addr, Input, Mark, Outbox, Role, StreamEvent, StreamId, StreamOp, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Duration, Instant};

/// A client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestClientConfig {
    /// The server.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub to: Addr,
    /// The transport.
    #[serde(default)]
    pub transport: Carrier,
    /// The time at which it connects.
    #[serde(default, deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub start: Duration,
    /// The length of a request, in bytes [default: 100].
    #[serde(default = "question")]
    pub question: u32,
    /// The length of an answer, in bytes [default: 1000, which fits one segment].
    #[serde(default = "answer")]
    pub answer: u32,
    /// The interval of requests, counted from `start` [default: 50 ms]. A request waits for the next interval, and for
    /// the answer to the last request.
    #[serde(default = "every", deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub every: Duration,
    /// The number of answers after which it finishes [default: it never finishes].
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

/// The client. Its mark `answered` has the fields `number` and `latency_ns`: the time from writing the question's first
/// byte to reading the answer's last one, in nanoseconds.
#[derive(Debug)]
pub struct RequestClient {
    config: RequestClientConfig,
    state: State,
    credit: usize,
    answered: u64,
    /// The number of the first question with a wrong answer.
    wrong_at: Option<u64>,
    failed: Option<String>,
}

#[derive(Debug)]
enum State {
    /// It has not connected yet.
    Waits,
    Connecting,
    /// A question is written, at least in part, and its answer is not complete.
    Asks(Exchange),
    /// The next question is due at this time.
    Rests(Instant),
    /// It has finished its stream: no more questions follow.
    Finishing,
    Done,
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
const STREAM: StreamId = StreamId(0);

impl RequestClient {
    /// Returns a client with this configuration. Fails if a length, the interval or the number of exchanges is out of
    /// range.
    pub fn new(config: RequestClientConfig) -> Result<Self, ConfigError> {
        if !(HEAD..=LONGEST).contains(&config.question) {
            return Err(ConfigError::new(
                "question",
                format!("allowed: {HEAD} bytes (its head) to {LONGEST} bytes"),
            ));
        }
        if !(1..=LONGEST).contains(&config.answer) {
            return Err(ConfigError::new("answer", format!("must be 1 to {LONGEST} bytes")));
        }
        if config.every.is_zero() {
            return Err(ConfigError::new("every", "must be greater than zero"));
        }
        if config.exchanges == Some(0) {
            return Err(ConfigError::new("exchanges", "must be at least 1"));
        }
        Ok(Self { config, state: State::Waits, credit: 0, answered: 0, wrong_at: None, failed: None })
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        if self.deadline().is_none_or(|due| due > now) {
            return;
        }
        match self.state {
            State::Waits => {
                self.state = State::Connecting;
                let RequestClientConfig { to: peer, transport, .. } = self.config;
                out.stream(
                    STREAM,
                    StreamOp::Open { by: transport.into(), local: None, peer, foreign: false },
                );
            }
            State::Rests(_) => self.ask(now, out),
            _ => {}
        }
    }

    /// Waits for the next beat.
    fn rest(&mut self, now: Instant) {
        let start = Instant::ZERO + self.config.start;
        let beats = now.since(start).as_nanos() / self.config.every.as_nanos() + 1;
        let next = u64::try_from(beats * self.config.every.as_nanos()).unwrap_or(u64::MAX);
        self.state = State::Rests(start + Duration::from_nanos(next));
    }

    fn ask(&mut self, now: Instant, out: &mut Outbox) {
        let (question, answer) = (self.config.question, self.config.answer);
        let head = Head { number: self.answered + 1, question, answer };
        self.state = State::Asks(Exchange { head, asked: now, rest: head.emit(), come: 0 });
        self.write(out);
        out.stream(STREAM, StreamOp::Read(answer as usize));
    }

    /// Writes as much of the question as there is credit for.
    fn write(&mut self, out: &mut Outbox) {
        let State::Asks(exchange) = &mut self.state else { return };
        let now = self.credit.min(exchange.rest.len());
        if now > 0 {
            let rest = exchange.rest.split_off(now);
            self.credit -= now;
            out.stream(STREAM, StreamOp::Write(std::mem::replace(&mut exchange.rest, rest)));
        }
    }

    fn data(&mut self, now: Instant, bytes: &[u8], out: &mut Outbox) {
        let State::Asks(exchange) = &mut self.state else { return };
        let head = exchange.head;
        if !head.is_answer(exchange.come, bytes) && self.wrong_at.is_none() {
            self.wrong_at = Some(head.number);
            // The mark is set at once, because an exchange that never ends sets no other.
            let wrong = Mark::new(NAME, "wrong").with("wrong_at", head.number);
            out.mark(wrong.with("peer", self.config.to.to_string()));
        }
        exchange.come = exchange.come.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        if exchange.come < head.answer {
            let left = (head.answer - exchange.come) as usize;
            return out.stream(STREAM, StreamOp::Read(left));
        }
        let took = now.since(exchange.asked).as_nanos() as u64;
        self.answered += 1;
        out.mark(self.mark("answered").with("number", head.number).with("latency_ns", took));
        if self.config.exchanges == Some(self.answered) {
            self.state = State::Finishing;
            // The next thing to read is the end of the stream.
            out.stream(STREAM, StreamOp::Finish);
            out.stream(STREAM, StreamOp::Read(1));
        } else {
            self.rest(now);
        }
    }

    fn closed(&mut self, why: Option<&str>, out: &mut Outbox) {
        if matches!(self.state, State::Done) {
            return;
        }
        self.state = State::Done;
        self.failed = why.map(str::to_owned);
        out.mark(match why {
            None => self.mark("done").with("answered", self.answered),
            Some(why) => self.mark("failed").with("answered", self.answered).with("why", why),
        });
    }

    /// A mark, with the number of the first wrong answer, if any.
    fn mark(&self, name: &'static str) -> Mark {
        let mark = Mark::new(NAME, name);
        match self.wrong_at {
            Some(at) => mark.with("wrong_at", at),
            None => mark,
        }
    }
}

impl Role for RequestClient {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Stream(STREAM, StreamEvent::Opened(_)) if matches!(self.state, State::Connecting) => {
                out.mark(Mark::new(NAME, "opened"));
                self.rest(now);
            }
            Input::Stream(STREAM, StreamEvent::Room(credit)) => {
                self.credit = self.credit.saturating_add(credit);
                self.write(out);
            }
            Input::Stream(STREAM, StreamEvent::Data(bytes)) => self.data(now, bytes, out),
            // The server ends the stream early: no more answers will come.
            Input::Stream(STREAM, StreamEvent::Finished) => out.stream(STREAM, StreamOp::Finish),
            Input::Stream(STREAM, StreamEvent::Closed(why)) => self.closed(why, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Waits => Some(Instant::ZERO + self.config.start),
            State::Rests(until) => Some(until),
            _ => None,
        }
    }

    fn status(&self) -> Value {
        let state = match self.state {
            State::Waits => "waits",
            State::Connecting => "connecting",
            State::Asks(_) => "asks",
            State::Rests(_) => "rests",
            State::Finishing => "finishing",
            State::Done => "done",
        };
        Value::map([
            ("state", Value::from(state)),
            ("answered", Value::from(self.answered)),
            ("wrong_at", self.wrong_at.map_or(Value::None, Value::from)),
            ("failed", self.failed.clone().map_or(Value::None, Value::from)),
        ])
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

    /// A client that is connected at 15 ms and has asked its first question at the beat.
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
        // The remaining credit is used for the next question.
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
