//! The resolver: asks the location manager for the address of a peer that may have moved at the same time as this host.
//! Without the resolver, each of the two hosts could know only a lost address of its peer. The SIGMA report uses the
//! location manager only to open associations (TR-OU-TNRL-04-105, section II.D).
//!
//! An answer is not authenticated. SCTP sends HEARTBEATs and one outstanding request to the address in the answer, but
//! no data. So the question needs no signature. The message number and the port of the question are random.

use crate::message::{
    Header, Message, Name, PORT, Question, Rcode, Received, ResourceRecord, class, kind, opcode,
};
use crate::request_limits::{LONGEST, PAUSES, STREAMS, port};
use node::{Addr, Outbox, Rng, StreamEvent, StreamId, StreamOp, Transport};
use std::collections::BTreeMap;
use wire::{Instant, Ipv4Addr};

/// The maximum number of questions at a time. It is less than [`STREAMS`], so that a new question rarely gets the
/// stream of a pending one.
const QUESTIONS: usize = 32;
/// A question without an answer.
#[derive(Debug)]
struct Pending {
    stream: StreamId,
    id: u16,
    attempts: usize,
    due: Instant,
    /// Whether the stream is open.
    open: bool,
}

/// Asks the location manager for the addresses of peers by their names.
#[derive(Debug)]
pub(crate) struct Resolver {
    manager: Ipv4Addr,
    /// The number of the first of the resolver's [`STREAMS`] streams.
    first: u32,
    streams: u32,
    rng: Rng,
    pending: BTreeMap<Name, Pending>,
}

impl Resolver {
    pub(crate) const fn new(manager: Ipv4Addr, first: u32, rng: Rng) -> Self {
        Self { manager, first, streams: 0, rng, pending: BTreeMap::new() }
    }

    /// Returns whether the number of a stream is one of the resolver's.
    pub(crate) fn has(&self, id: StreamId) -> bool {
        (self.first..self.first + STREAMS).contains(&id.0)
    }

    /// Returns when [`Resolver::timeout`] is due; `None` if no question waits for an answer.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.due).min()
    }

    /// Asks from `local` for the address of `name`. An earlier question for the same name is dropped: its answer may be
    /// out of date, and this host may have lost the source address of the question. If [`QUESTIONS`] questions for
    /// other names are pending, no question is sent.
    pub(crate) fn ask(&mut self, now: Instant, name: &Name, local: Ipv4Addr, out: &mut Outbox) {
        self.give_up(name, out);
        if self.pending.len() >= QUESTIONS {
            return;
        }
        let stream = StreamId(self.first + self.streams % STREAMS);
        self.streams = self.streams.wrapping_add(1);
        let id = self.rng.draw() as u16;
        let (local, peer) = (Some(Addr::new(local, port(&mut self.rng))), Addr::new(self.manager, PORT));
        out.stream(stream, StreamOp::Open { by: Transport::Udp, local, peer, foreign: false });
        let pending = Pending { stream, id, attempts: 0, due: now + PAUSES[0], open: false };
        self.pending.insert(name.clone(), pending);
    }

    /// Drops the question for `name`, if there is one.
    pub(crate) fn give_up(&mut self, name: &Name, out: &mut Outbox) {
        if let Some(old) = self.pending.remove(name) {
            out.stream(old.stream, StreamOp::Finish);
        }
    }

    /// Repeats questions that were not answered in time. Drops a question after its last attempt, or if its stream did
    /// not open.
    pub(crate) fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        let due = self.pending.iter().filter(|(_, pending)| pending.due <= now);
        let due: Vec<Name> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(pending) = self.pending.get_mut(&name) else { continue };
            match PAUSES.get(pending.attempts).filter(|_| pending.open) {
                Some(pause) => {
                    pending.due = now + *pause;
                    pending.send(&name, out);
                }
                None => self.give_up(&name, out),
            }
        }
    }

    /// Handles an event of one of the resolver's streams. If the event is an answer with addresses, returns the name
    /// and its primary address, and otherwise `None`.
    pub(crate) fn stream(
        &mut self,
        id: StreamId,
        event: &StreamEvent<'_>,
        out: &mut Outbox,
    ) -> Option<(Name, Ipv4Addr)> {
        let (name, pending) = self.pending.iter_mut().find(|(_, pending)| pending.stream == id)?;
        let name = name.clone();
        match event {
            StreamEvent::Opened(_) if !pending.open => {
                pending.open = true;
                out.stream(id, StreamOp::Read(LONGEST));
                pending.send(&name, out);
                None
            }
            StreamEvent::Data(bytes) => {
                let Some(addresses) = addresses(&name, pending.id, bytes) else {
                    out.stream(id, StreamOp::Read(LONGEST));
                    return None;
                };
                self.give_up(&name, out);
                addresses.first().map(|address| (name, *address))
            }
            // The port is in use, or the host does not have the source address any more.
            StreamEvent::Closed(_) => {
                self.pending.remove(&name);
                None
            }
            StreamEvent::Opened(_)
            | StreamEvent::Accepted(..)
            | StreamEvent::Room(_)
            | StreamEvent::Finished
            | StreamEvent::Migrate(_) => None,
        }
    }
}

impl Pending {
    fn send(&mut self, name: &Name, out: &mut Outbox) {
        self.attempts += 1;
        let header = Header { id: self.id, opcode: opcode::QUERY, ..Header::default() };
        let questions = vec![Question { name: name.clone(), kind: kind::A, class: class::IN }];
        let message = Message { header, questions, ..Message::default() };
        out.stream(self.stream, StreamOp::Write(message.emit()));
    }
}

/// Returns the addresses in the answer to the question with number `id`, the primary address first. Returns `None` if
/// the message does not answer this question, or if the location manager failed and may answer a repetition.
fn addresses(name: &Name, id: u16, bytes: &[u8]) -> Option<Vec<Ipv4Addr>> {
    let Received { message: Message { header, questions, answers, .. }, .. } = Received::parse(bytes).ok()?;
    let asked = questions.first().is_some_and(|question| question.name == *name);
    if !header.is_response || header.id != id || header.opcode != opcode::QUERY || !asked {
        return None;
    }
    if header.rcode == Rcode::ServFail as u8 {
        return None;
    }
    let own = answers.iter().filter(|record| record.name == *name);
    Some(own.filter_map(ResourceRecord::as_address).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_question_counts() {
        let name: Name = "bob.sigma.example".parse().unwrap();
        let at = Ipv4Addr::new(10, 1, 4, 100);
        let message = |id, name: &Name, of: &Name| Message {
            header: Header { id, ..Header::default() }.answer(Rcode::NoError),
            questions: vec![Question { name: name.clone(), kind: kind::A, class: class::IN }],
            answers: vec![ResourceRecord::address(of.clone(), 5, at)],
            ..Message::default()
        };
        let read = |message: Message| addresses(&name, 7, &message.emit());
        let other: Name = "eve.sigma.example".parse().unwrap();
        assert_eq!(read(message(7, &name, &name)), Some(vec![at]));
        assert_eq!(read(message(8, &name, &name)), None, "another number");
        assert_eq!(read(message(7, &other, &name)), None, "another question");
        assert_eq!(read(message(7, &name, &other)), Some(Vec::new()), "of another");
        assert_eq!(addresses(&name, 7, b"no message"), None);
        let mut query = message(7, &name, &name);
        query.header.is_response = false;
        assert_eq!(read(query), None, "no answer");
        let mut failure = message(7, &name, &name);
        failure.header = failure.header.answer(Rcode::ServFail);
        assert_eq!(read(failure), None, "it cannot answer now");
    }
}
