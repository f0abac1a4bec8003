//! Law 8: the events of streams that a role serves, and small roles that keep or violate this law.

use crate::laws::player::{Post, Step, Talk, rx};
use node::stream::OwnedStreamEvent;
use node::{Effect, Input, Outbox, PuntReason, Role, StreamEvent, StreamId, StreamOp, Transport, Value};
use std::collections::BTreeMap;
use wire::{Instant, Mac, PacketId};

/// The open streams that a role serves. Each has the number of bytes that its last `Read` still requests; 0 means none.
#[derive(Debug, Default)]
pub(crate) struct Served {
    open: BTreeMap<StreamId, usize>,
}

impl Served {
    /// Returns an error if an event is not allowed.
    pub(crate) fn judge(&mut self, step: &Step, effects: &[Effect]) -> Result<(), String> {
        match step {
            Step::Serve(id, StreamOp::Open { .. } | StreamOp::Listen { .. }) => {
                self.open.insert(*id, 0);
            }
            Step::Serve(id, StreamOp::Read(count)) => {
                self.open.entry(*id).and_modify(|wanted| *wanted = *count);
            }
            _ => {}
        }
        for effect in effects {
            if let Effect::Served(told) = effect {
                self.said(told)?;
            }
        }
        Ok(())
    }

    fn said(&mut self, told: &OwnedStreamEvent) -> Result<(), String> {
        let (id, event) = told.event();
        let Some(wanted) = self.open.get_mut(&id) else { return Err(format!("{told:?}: not open")) };
        match event {
            StreamEvent::Data(bytes) if *wanted == 0 || bytes.len() > *wanted => {
                return Err(format!("{told:?}: not asked for"));
            }
            StreamEvent::Data(_) => *wanted = StreamOp::left_to_read(*wanted),
            StreamEvent::Accepted(new, ..) => {
                self.open.insert(new, 0);
            }
            StreamEvent::Closed(_) => {
                self.open.remove(&id);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The behavior of a [`Server`]: it keeps law 8, or violates it in one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    Good,
    OfStrangers,
    AfterTheEnd,
    Unasked,
    TooMuch,
}

/// An echo server that accepts one stream for each listener.
#[derive(Debug)]
pub(crate) struct Server {
    manner: Manner,
    /// For each stream, the bytes that were written and not read, and the number of bytes that a `Read` requests.
    streams: BTreeMap<StreamId, (Vec<u8>, Option<usize>)>,
    accepted: u32,
}

const ECHO: Transport = Transport::Role("echo");

impl Server {
    pub(crate) const fn new(manner: Manner) -> Self {
        Self { manner, streams: BTreeMap::new(), accepted: 0 }
    }

    pub(crate) fn talk() -> Talk {
        Talk {
            interfaces: vec!["eth".to_owned()],
            tunes: false,
            commands: Vec::new(),
            packet: |_, _| Post { rx: rx(1, PuntReason::Action), from: Mac([2; 6]), bytes: Vec::new() },
            takes_packets: false,
            datagram: None,
            hears: false,
            serves: Some(ECHO),
            answer: None,
            news: &[],
        }
    }

    fn serve(&mut self, id: StreamId, op: StreamOp, out: &mut Outbox) {
        match op {
            StreamOp::Open { peer, .. } => {
                self.streams.insert(id, (Vec::new(), None));
                out.served(OwnedStreamEvent::Opened(id, peer));
            }
            StreamOp::Listen { local, .. } => {
                self.streams.insert(id, (Vec::new(), None));
                let new = StreamId(StreamId::SERVED + self.accepted);
                self.accepted += 1;
                self.streams.insert(new, (Vec::new(), None));
                out.served(OwnedStreamEvent::Accepted { listener: id, new, local, peer: local });
            }
            op => self.go_on(id, op, out),
        }
    }

    fn go_on(&mut self, id: StreamId, op: StreamOp, out: &mut Outbox) {
        let Some((kept, wanted)) = self.streams.get_mut(&id) else {
            if self.manner == Manner::OfStrangers {
                out.served(OwnedStreamEvent::Room(id, 1));
            }
            return;
        };
        match op {
            StreamOp::Write(bytes) => kept.extend(bytes.into_iter().take(1000)),
            StreamOp::Read(count) => *wanted = Some(count),
            _ => {
                self.streams.remove(&id);
                out.served(OwnedStreamEvent::Closed(id, None));
                if self.manner == Manner::AfterTheEnd {
                    out.served(OwnedStreamEvent::Room(id, 1));
                }
                return;
            }
        }
        let count = match self.manner {
            Manner::Unasked => Some(usize::MAX),
            Manner::TooMuch => wanted.map(|count| count.saturating_add(1)),
            _ => *wanted,
        };
        if let Some(count) = count.filter(|_| !kept.is_empty()) {
            *wanted = None;
            let bytes = kept.drain(..count.min(kept.len())).collect();
            out.served(OwnedStreamEvent::Data(id, PacketId::NEW, bytes));
        }
    }
}

impl Role for Server {
    fn name(&self) -> &'static str {
        "server"
    }

    fn serves(&self) -> &[Transport] {
        &[ECHO]
    }

    fn handle(&mut self, _now: Instant, input: Input<'_>, out: &mut Outbox) {
        if let Input::Serve(id, op) = input {
            self.serve(id, op, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn status(&self) -> Value {
        Value::from(self.streams.len() as u64)
    }
}
