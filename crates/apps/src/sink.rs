//! A role that receives datagrams.

use node::config::text;
use node::{Addr, Input, Outbox, Role, StreamEvent, StreamId, StreamOp, Transport, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use wire::Instant;

/// The configuration of a receiver of datagrams.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// The address and port at which the role receives, for example `10.1.0.7:9000`.
    #[serde(deserialize_with = "text")]
    #[schemars(schema_with = "node::config::schema::text")]
    pub at: Addr,
}

/// The role of a receiver of datagrams. It reads the datagrams of all senders, and counts datagrams and bytes.
#[derive(Debug)]
pub struct Sink {
    config: SinkConfig,
    received: u64,
    bytes: u64,
    failed: Option<String>,
}

const LISTENER: StreamId = StreamId(0);
/// The size of each read in bytes, which is enough for any datagram.
const ANY: usize = 65_535;

impl Sink {
    /// Creates the role with this configuration.
    pub const fn new(config: SinkConfig) -> Self {
        Self { config, received: 0, bytes: 0, failed: None }
    }
}

impl Role for Sink {
    fn name(&self) -> &'static str {
        "sink"
    }

    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Start(_) => {
                out.stream(
                    LISTENER,
                    StreamOp::Listen { by: Transport::Udp, local: self.config.at, foreign: false },
                );
            }
            Input::Stream(_, StreamEvent::Accepted(new, ..)) => out.stream(new, StreamOp::Read(ANY)),
            Input::Stream(id, StreamEvent::Data(bytes)) => {
                self.received += 1;
                self.bytes += bytes.len() as u64;
                out.stream(id, StreamOp::Read(ANY));
            }
            Input::Stream(_, StreamEvent::Closed(why)) => self.failed = why.map(str::to_owned),
            Input::Timeout
            | Input::Packet(..)
            | Input::Link(..)
            | Input::Idle(..)
            | Input::Notice(_)
            | Input::Stream(
                _,
                StreamEvent::Opened(_)
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
        None
    }

    fn status(&self) -> Value {
        let failed = self.failed.clone().map_or(Value::None, Value::from);
        Value::map([
            ("received", Value::from(self.received)),
            ("bytes", Value::from(self.bytes)),
            ("failed", failed),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Boot, Effect};

    #[test]
    fn it_asks_for_the_next_from_every_peer() {
        let at: Addr = "10.1.0.7:9000".parse().unwrap();
        let (mut role, mut out) = (Sink::new(SinkConfig { at }), Outbox::default());
        role.handle(Instant::ZERO, Input::Start(&Boot::default()), &mut out);
        let listen = StreamOp::Listen { by: Transport::Udp, local: at, foreign: false };
        assert_eq!(out.drain_effects().collect::<Vec<_>>(), [Effect::Stream(LISTENER, listen)]);
        let new = StreamId(StreamId::DRIVER);
        role.handle(Instant::ZERO, Input::Stream(LISTENER, StreamEvent::Accepted(new, at, at)), &mut out);
        role.handle(Instant::ZERO, Input::Stream(new, StreamEvent::Data(b"12345678")), &mut out);
        assert_eq!(
            out.drain_effects().collect::<Vec<_>>(),
            vec![Effect::Stream(new, StreamOp::Read(ANY)); 2]
        );
        assert_eq!(role.status().get("bytes"), Some(&Value::Int(8)));
    }
}
