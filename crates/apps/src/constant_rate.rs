//! Datagrams of one size at a constant rate, with sequence numbers from 1.

use node::config::{ConfigError, span, text};
use node::{Addr, Input, Outbox, Role, SocketOption, StreamEvent, StreamId, StreamOp, Transport, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::{Duration, Instant};

/// The configuration of a sender of datagrams at a constant rate.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConstantRateConfig {
    /// The address and port of the receiver, for example `10.1.0.7:9000`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub to: Addr,
    /// The rate in datagrams per second, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub rate: u32,
    /// The payload of each datagram in bytes, 8 to 1472, or to 65507 if `dont_fragment` is false.
    /// The first eight bytes are the datagram's sequence number, from 1, big-endian.
    #[schemars(range(min = 8, max = 65_507))]
    pub size: usize,
    /// Whether datagrams are sent with DF. A datagram with DF that is larger than the path MTU is
    /// dropped. Without DF, hosts and routers cut it into fragments, and the receiver joins them. The
    /// default is true.
    #[serde(default = "dont_fragment")]
    pub dont_fragment: bool,
    /// When the first datagram is sent, counted from the start of the run.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub start: Duration,
    /// The time after which no datagram is sent, counted from the start of the run.
    #[serde(deserialize_with = "span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub stop: Duration,
}

fn dont_fragment() -> bool {
    true
}

/// The role of a sender of datagrams. The n-th datagram, counted from 0, is due at `start + n / rate`, rounded down to
/// nanoseconds. So rounding errors do not add up.
#[derive(Debug)]
pub struct ConstantRate {
    config: ConstantRateConfig,
    sent: u64,
    open: bool,
    failed: Option<String>,
}

const STREAM: StreamId = StreamId(0);
/// The largest rate in datagrams per second. At this rate, the smallest datagrams need 400 Mb/s with their Ethernet
/// headers.
const FASTEST: u32 = 1_000_000;

impl ConstantRate {
    /// Creates the role with this configuration. Fails if `rate` or `size` is out of range.
    pub fn new(config: ConstantRateConfig) -> Result<Self, ConfigError> {
        if !(1..=FASTEST).contains(&config.rate) {
            let problem = format!("must be 1 to {FASTEST} datagrams per second, but is {}", config.rate);
            return Err(ConfigError::new("rate", problem));
        }
        let (most, why) = if config.dont_fragment {
            (1472, "one packet; more with `dont_fragment = false`")
        } else {
            (65_507, "the largest datagram")
        };
        if !(8..=most).contains(&config.size) {
            let problem = format!(
                "must be from 8 bytes (the sequence number) to {most} bytes ({why}), but is {}",
                config.size
            );
            return Err(ConfigError::new("size", problem));
        }
        Ok(Self { config, sent: 0, open: false, failed: None })
    }

    fn next_at(&self) -> Option<Instant> {
        let after = u128::from(self.sent) * 1_000_000_000 / u128::from(self.config.rate);
        let at = Instant::ZERO + self.config.start + Duration::from_nanos(after as u64);
        (self.open && at <= Instant::ZERO + self.config.stop).then_some(at)
    }

    /// Returns the number of datagrams that were due before `now`, as if there were no `stop`. A host that restarts at
    /// `now` does not send these datagrams.
    fn due_before(&self, now: Instant) -> u64 {
        let late = now.since(Instant::ZERO + self.config.start.min(now.since(Instant::ZERO)));
        (late.as_nanos() * u128::from(self.config.rate)).div_ceil(1_000_000_000) as u64
    }

    fn send_due(&mut self, now: Instant, out: &mut Outbox) {
        while self.next_at().is_some_and(|at| at <= now) {
            self.sent += 1;
            let mut payload = vec![0; self.config.size];
            payload.splice(..8, self.sent.to_be_bytes());
            out.stream(STREAM, StreamOp::Write(payload));
        }
    }
}

impl Role for ConstantRate {
    fn name(&self) -> &'static str {
        "constant-rate"
    }

    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                self.sent = self.due_before(now);
                out.stream(
                    STREAM,
                    StreamOp::Open { by: Transport::Udp, local: None, peer: self.config.to, foreign: false },
                );
            }
            Input::Stream(_, StreamEvent::Opened(_)) => {
                self.open = true;
                if !self.config.dont_fragment {
                    out.stream(STREAM, StreamOp::Set(SocketOption::DontFragment(false)));
                }
            }
            Input::Stream(_, StreamEvent::Closed(why)) => {
                self.open = false;
                self.failed = why.map(str::to_owned);
            }
            Input::Timeout => self.send_due(now, out),
            Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(
                _,
                StreamEvent::Accepted(..)
                | StreamEvent::Data(_)
                | StreamEvent::Room(_)
                | StreamEvent::Finished
                | StreamEvent::Migrate(_),
            )
            | Input::Command(..)
            | Input::Failed(_)
            | Input::Wall(_)
            | Input::Serve(..)
            | Input::Stored(_)
            | Input::Notification(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_at()
    }

    fn status(&self) -> Value {
        let failed = self.failed.clone().map_or(Value::None, Value::from);
        Value::map([("sent", Value::from(self.sent)), ("failed", failed)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Boot, Effect};

    fn config() -> ConstantRateConfig {
        ConstantRateConfig {
            to: "10.1.0.7:9000".parse().unwrap(),
            rate: 3,
            size: 100,
            dont_fragment: true,
            start: Duration::from_secs(1),
            stop: Duration::from_secs(2),
        }
    }

    /// Returns the sequence number of a datagram, which is in the first eight bytes of its payload.
    fn number_of(payload: &[u8]) -> Option<u64> {
        payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    #[test]
    fn it_sends_on_the_beat_and_stops() {
        let (mut role, mut out) = (ConstantRate::new(config()).unwrap(), Outbox::default());
        role.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
        assert_eq!(role.deadline(), None, "not before the stream is open");
        role.handle(Instant::ZERO, Input::Stream(STREAM, StreamEvent::Opened(config().to)), &mut out);
        let mut sent = Vec::new();
        while let Some(at) = role.deadline() {
            out.drain_effects().for_each(drop);
            role.handle(at, Input::Timeout, &mut out);
            for effect in out.drain_effects() {
                let Effect::Stream(_, StreamOp::Write(payload)) = effect else { panic!("{effect:?}") };
                sent.push((at.0 / 1_000_000, payload.len(), number_of(&payload)));
            }
        }
        assert_eq!(
            sent,
            [(1000, 100, Some(1)), (1333, 100, Some(2)), (1666, 100, Some(3)), (2000, 100, Some(4))]
        );
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for rate in [0, FASTEST + 1, u32::MAX] {
            assert_eq!(ConstantRate::new(ConstantRateConfig { rate, ..config() }).unwrap_err().key, "rate");
        }
        for (size, dont_fragment) in [(7, true), (1473, true), (7, false), (65_508, false)] {
            let refused = ConstantRate::new(ConstantRateConfig { size, dont_fragment, ..config() });
            assert_eq!(refused.unwrap_err().key, "size");
        }
        ConstantRate::new(ConstantRateConfig { size: 65_507, dont_fragment: false, ..config() }).unwrap();
    }

    #[test]
    fn datagrams_may_be_cut_if_that_is_requested() {
        for dont_fragment in [true, false] {
            let mut role = ConstantRate::new(ConstantRateConfig { dont_fragment, ..config() }).unwrap();
            let mut out = Outbox::default();
            role.handle(Instant::ZERO, Input::Stream(STREAM, StreamEvent::Opened(config().to)), &mut out);
            let set = Effect::Stream(STREAM, StreamOp::Set(SocketOption::DontFragment(false)));
            assert_eq!(out.drain_effects().any(|effect| effect == set), !dont_fragment);
        }
    }
}
