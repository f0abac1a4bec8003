//! The new router's side of a handoff. It takes only what an authentic greeting has named, and says nothing on it before
//! all of it is here.

use super::greet::same;
use super::ledger::{Arrival, Arriving, Stage};
use super::{SupportRouter, Use, refusal};
use crate::mark::Event;
use crate::message::{Body, Entry, Frame, Side, SocketState, Verdict, Way};
use node::{Outbox, StreamEvent, StreamId, StreamOp};
use wire::{Instant, Ipv4Addr, Reason};

impl SupportRouter {
    /// An old router says something.
    pub(super) fn offered(
        &mut self,
        now: Instant,
        id: StreamId,
        frame: Frame,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let handoff = frame.handoff;
        if let Body::Offer { host, sequence, .. } = frame.body {
            self.note_offer(id, handoff, host)?;
            let verdict = self.judge(host, sequence);
            self.send_on(id, handoff, Body::OfferAnswer(verdict), out);
            return Ok(());
        }
        let Some(Use::Link(link)) = self.streams.get_mut(&id) else { return Ok(()) };
        let (host, current) = link.offers.get_mut(&handoff).ok_or(refusal::UNEXPECTED)?;
        let address = *host;
        match frame.body {
            Body::Entry(entry) => {
                *current = Some(entry.connection);
                self.begins(address, &entry);
            }
            Body::State(state) => {
                let number = current.ok_or(refusal::UNEXPECTED)?;
                self.import(address, number, *state, out);
            }
            Body::UserBuffer(way, bytes) => {
                let number = current.ok_or(refusal::UNEXPECTED)?;
                self.stage(address, number, way, bytes);
            }
            Body::Commit { connection } => self.commit(now, address, connection, (id, handoff), out),
            Body::Status { connection } => {
                let taken = self.hosts.get(&address).is_some_and(|host| host.taken.contains(&connection));
                let verdict = if taken { Verdict::Taken } else { Verdict::Unknown };
                self.send_on(id, handoff, Body::CommitAnswer { connection, verdict }, out);
            }
            Body::Abort { connection } => {
                let expected = |stage: &Stage| matches!(stage, Stage::Expected | Stage::Arriving(_));
                if self.connection(address, connection).is_some_and(|here| expected(&here.stage)) {
                    self.lose(now, address, &[connection], "cannot be moved", out);
                }
            }
            Body::Done => {
                link.offers.remove(&handoff);
                self.send_on(id, handoff, Body::DoneAnswer, out);
            }
            _ => return Err(refusal::UNEXPECTED),
        }
        Ok(())
    }

    fn judge(&self, address: Ipv4Addr, sequence: u64) -> Verdict {
        match self.hosts.get(&address) {
            Some(host) if host.greeted == sequence && host.way.is_some() => Verdict::Taken,
            Some(host) if host.greeted > sequence => Verdict::Moved,
            _ => Verdict::Unknown,
        }
    }

    /// The connection is one that its host has named, by the same ends.
    fn begins(&mut self, address: Ipv4Addr, entry: &Entry) {
        let Some(connection) = self.connection(address, entry.connection) else { return };
        if matches!(connection.stage, Stage::Expected) && same(&connection.entry, entry) {
            connection.stage = Stage::Arriving(Arriving::default());
        }
    }

    fn import(&mut self, address: Ipv4Addr, number: u32, state: SocketState, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        let SocketState { side, tcp } = state;
        let tuple = match side {
            Side::Near => connection.entry.near(),
            Side::Far => connection.entry.far(),
        };
        let half = arriving.of(side);
        if (tcp.local, tcp.remote) != (tuple.local, tuple.remote) || *half != Arrival::Missing {
            return; // it stays incomplete, and is refused at its commit
        }
        *half = Arrival::Importing;
        arriving.buffered += tcp.unread.len() + tcp.unacknowledged.len();
        let id = self.new_stream(Use::Half(address, number, side));
        if let Some(connection) = self.connection(address, number) {
            *connection.of(side) = Some(id);
        }
        self.set_half(id, out);
        out.stream(id, StreamOp::Import(Box::new(tcp)));
    }

    fn stage(&mut self, address: Ipv4Addr, number: u32, way: Way, bytes: Vec<u8>) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Arriving(Arriving { staged: [up, down], buffered, .. }) = &mut connection.stage else {
            return;
        };
        *buffered += bytes.len();
        match way {
            Way::Up => *up = bytes,
            Way::Down => *down = bytes,
        }
    }

    fn commit(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        number: u32,
        from: (StreamId, u64),
        out: &mut Outbox,
    ) {
        let connection = self.connection(address, number);
        let Some(Stage::Arriving(arriving)) = connection.map(|here| &mut here.stage) else {
            let refused = Body::CommitAnswer { connection: number, verdict: Verdict::Failed };
            self.send_on(from.0, from.1, refused, out);
            return;
        };
        arriving.commit = Some(from);
        if arriving.near == Arrival::Missing || arriving.far == Arrival::Missing {
            return self.cannot_come(now, address, number, out);
        }
        self.take(address, number, out);
    }

    /// Something happened to a half that has come.
    pub(super) fn arriving(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        number: u32,
        side: Side,
        event: StreamEvent<'_>,
        out: &mut Outbox,
    ) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        match event {
            StreamEvent::Imported => {
                *arriving.of(side) = Arrival::Here;
                self.take(address, number, out);
            }
            StreamEvent::Closed(_) => {
                *arriving.of(side) = Arrival::Missing;
                if arriving.commit.is_some() {
                    self.cannot_come(now, address, number, out);
                }
            }
            _ => {}
        }
    }

    /// If all of it is here it is ours: first that is said, then the connection speaks.
    fn take(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Arriving(arriving) = &mut connection.stage else { return };
        let (Arrival::Here, Arrival::Here, Some((id, handoff))) =
            (arriving.near, arriving.far, arriving.commit)
        else {
            return;
        };
        let (staged, buffered) = (std::mem::take(&mut arriving.staged), arriving.buffered);
        let (Some(near), Some(far)) = (connection.near, connection.far) else { return };
        connection.stage = Stage::Serving;
        let entry = connection.entry;
        self.send_on(id, handoff, Body::CommitAnswer { connection: number, verdict: Verdict::Taken }, out);
        if let Some(host) = self.hosts.get_mut(&address) {
            host.note_taken(number);
        }
        out.mark(Event::Taken { host: address, connection: number, buffered }.into());
        out.stream(near, StreamOp::Join(far, staged));
        for (half, tuple) in [(near, entry.near()), (far, entry.far())] {
            out.stream(half, StreamOp::Thaw);
            Self::guard(tuple, None, out);
        }
    }

    /// It came, and cannot be set up: the old router resets both ends, and the host is told.
    fn cannot_come(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        if let Stage::Arriving(Arriving { commit: Some((id, handoff)), .. }) = connection.stage {
            let body = Body::CommitAnswer { connection: number, verdict: Verdict::Failed };
            self.send_on(id, handoff, body, out);
        }
        self.lose(now, address, &[number], "cannot be set up", out);
    }

    /// The old router's connection broke: what has not been committed will come again, or never.
    pub(super) fn arrival_interrupted(&mut self, address: Ipv4Addr, id: StreamId, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let mut ended = Vec::new();
        for connection in host.connections.values_mut() {
            let Stage::Arriving(arriving) = &connection.stage else { continue };
            if arriving.commit.is_none_or(|(by, _)| by == id) {
                connection.stage = Stage::Expected;
                ended.extend([connection.near.take(), connection.far.take()].into_iter().flatten());
            }
        }
        for id in ended {
            self.streams.remove(&id);
            out.stream(id, StreamOp::Forget);
        }
    }
}
