//! The old router's side of a handoff. It begins it, and owns each connection until the new one has said that it took it.

use super::ledger::{Connection, Leaving, Stage};
use super::{Due, SupportRouter, refusal};
use crate::mark::Event;
use crate::message::{Body, CODE, Frame, Side, SocketState, Verdict, Way};
use node::{Guard, Outbox, StreamEvent, StreamOp};
use wire::{Instant, Ipv4Addr, Reason};

impl SupportRouter {
    /// Offers a host's connections to where the host is, or first opens the way.
    pub(super) fn depart(&mut self, _now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(to) = self.departure(address).map(|departure| departure.to) else { return };
        if !self.link_to(to, out) {
            return;
        }
        let Some(handoff) = self.next_handoff(to) else { return };
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let connections = host.connections.len() as u16;
        let Some(departure) = &mut host.departure else { return };
        departure.handoff = Some(handoff);
        let offer = Body::Offer { host: address, sequence: departure.sequence, connections };
        let bytes = self.send_to(to, handoff, offer, out);
        out.mark(Event::Offered { host: address, bytes, codes: CODE }.into());
    }

    fn departure(&self, address: Ipv4Addr) -> Option<&super::ledger::Departure> {
        self.hosts.get(&address)?.departure.as_ref()
    }

    /// The new router says something.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        router: Ipv4Addr,
        frame: &Frame,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let of = |host: &super::ledger::Host| {
            host.departure.as_ref().is_some_and(|d| d.to == router && d.handoff == Some(frame.handoff))
        };
        // An answer to what was given up meanwhile is no fault of the other end's.
        let Some(address) = self.hosts.iter().find(|(_, host)| of(host)).map(|(address, _)| *address) else {
            return Ok(());
        };
        match frame.body {
            Body::OfferAnswer(Verdict::Taken) => self.next_to_leave(now, address, out),
            Body::OfferAnswer(_) => self.not_wanted(address, out),
            Body::CommitAnswer { connection, verdict } => {
                self.commit_answered(now, address, connection, verdict, out);
            }
            Body::DoneAnswer => {
                if let Some(host) = self.hosts.get_mut(&address) {
                    host.departure = None;
                }
            }
            _ => return Err(refusal::UNEXPECTED),
        }
        Ok(())
    }

    /// One connection after the other: first those of which nobody here knows whose they are.
    fn next_to_leave(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let Some(departure) = &host.departure else { return };
        let (to, Some(handoff)) = (departure.to, departure.handoff) else { return };
        let committed =
            |here: &Connection| matches!(&here.stage, Stage::Leaving(leaving) if leaving.committed);
        let unsure = host.connections.iter().find(|(_, here)| committed(here));
        if let Some(connection) = unsure.map(|(number, _)| *number) {
            self.send_to(to, handoff, Body::Status { connection }, out);
            return;
        }
        if host.way.is_some() {
            self.send_to(to, handoff, Body::Done, out);
            return;
        }
        // One that stood still when the connection between the routers broke goes on from there.
        let leaving = |here: &Connection| matches!(here.stage, Stage::Leaving(_));
        if let Some(number) =
            host.connections.iter().find(|(_, here)| leaving(here)).map(|(number, _)| *number)
        {
            return self.ship(address, number, out);
        }
        let serving = |here: &Connection| matches!(here.stage, Stage::Serving);
        match host.connections.iter().find(|(_, here)| serving(here)).map(|(number, _)| *number) {
            Some(number) => self.freeze(now, address, number, out),
            None => {
                out.mark(Event::HandedOver { host: address }.into());
                self.send_to(to, handoff, Body::Done, out);
            }
        }
    }

    fn freeze(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        connection.stage = Stage::Leaving(Leaving::default());
        let halves = (connection.near, connection.far);
        self.listen();
        let (Some(near), Some(far)) = halves else {
            // One half has ended in order, so both ways have: what the other still has to say takes its routed way.
            self.ended(now, address, number);
            return self.next_to_leave(now, address, out);
        };
        out.mark(Event::Frozen { host: address, connection: number }.into());
        out.stream(near, StreamOp::Freeze);
        out.stream(far, StreamOp::Freeze);
        out.stream(near, StreamOp::Part);
    }

    /// Something happened to a half that stands still: what was asked for, step by step.
    pub(super) fn leaving(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        number: u32,
        side: Side,
        event: StreamEvent<'_>,
        out: &mut Outbox,
    ) {
        let moves_unread = self.config.moves_unread;
        let Some(connection) = self.connection(address, number) else { return };
        let (near, far) = (connection.near, connection.far);
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        match event {
            StreamEvent::Parted(staged) => {
                leaving.staged =
                    Some(if moves_unread { staged.map(<[u8]>::to_vec) } else { Default::default() });
                if let Some(near) = near {
                    out.stream(near, StreamOp::Export);
                }
            }
            StreamEvent::Exported(state) => {
                let mut state = state.clone();
                if !moves_unread {
                    state.unread.clear();
                }
                leaving.states.push(SocketState::new(side, state));
                match (side, far) {
                    (Side::Near, Some(far)) => out.stream(far, StreamOp::Export),
                    _ => self.ship(address, number, out),
                }
            }
            StreamEvent::Refused(_) | StreamEvent::Closed(_) => self.cannot_leave(now, address, number, out),
            _ => {}
        }
    }

    /// Sends all of it, in the paper's order.
    fn ship(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(departure) = self.departure(address) else { return };
        let (to, Some(handoff)) = (departure.to, departure.handoff) else { return };
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        let ([near, far], Some([up, down])) = (leaving.states.as_slice(), &leaving.staged) else {
            return; // it is not all here yet
        };
        let state = |state: &SocketState| Body::State(Box::new(state.clone()));
        let mut frames = vec![Body::Entry(connection.entry), state(near), state(far)];
        let buffers = [(Way::Up, up), (Way::Down, down)].into_iter().filter(|(_, bytes)| !bytes.is_empty());
        frames.extend(buffers.map(|(way, bytes)| Body::UserBuffer(way, bytes.clone())));
        frames.push(Body::Commit { connection: number });
        leaving.committed = true;
        let codes = frames.len() * CODE;
        let bytes = frames.into_iter().map(|body| self.send_to(to, handoff, body, out)).sum();
        out.mark(Event::Shipped { host: address, connection: number, bytes, codes }.into());
    }

    fn commit_answered(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        number: u32,
        verdict: Verdict,
        out: &mut Outbox,
    ) {
        let Some(Connection { stage: Stage::Leaving(leaving), .. }) = self.connection(address, number) else {
            return;
        };
        leaving.committed = false;
        let back = self.hosts.get(&address).is_some_and(|host| host.way.is_some());
        match verdict {
            Verdict::Taken if back => self.expect_again(now, address, number, out),
            Verdict::Taken => self.handed_over(now, address, number, out),
            // It never came, and the host is here again.
            Verdict::Unknown if back => self.resume(address, number, out),
            // It never came: once more, in the same words.
            Verdict::Unknown => return self.ship(address, number, out),
            Verdict::Moved => return self.not_wanted(address, out),
            Verdict::Failed => return self.cannot_leave(now, address, number, out),
        }
        self.next_to_leave(now, address, out);
    }

    /// The new router owns it: here it ends without a word, and stays silent.
    fn handed_over(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.forget(address, number) else { return };
        if *connection.entry.router.ip() == self.config.address {
            self.silence(now, connection.entry.near(), Guard::Drop, out);
        }
        for id in [connection.near, connection.far].into_iter().flatten() {
            out.stream(id, StreamOp::Forget);
        }
        out.mark(Event::Forgotten { host: address, connection: number }.into());
    }

    /// It went, and its host came back meanwhile: the other router has heard, and hands it back.
    fn expect_again(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(entry) = self.connection(address, number).map(|here| here.entry) else { return };
        self.handed_over(now, address, number, out);
        let connection = Connection { entry, near: None, far: None, stage: Stage::Expected };
        if let Some(host) = self.hosts.get_mut(&address) {
            host.connections.insert(number, connection);
        }
        self.hold(&entry, out);
        self.listen();
        self.due.set(Due::Patience(address), now + self.config.patience);
    }

    /// The new router does not want them: the host is elsewhere again, and whoever has it will say so. Until then they go on
    /// here.
    fn not_wanted(&mut self, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        host.departure = None;
        let numbers: Vec<u32> = host.connections.keys().copied().collect();
        for number in numbers {
            self.resume(address, number, out);
        }
    }

    /// A connection that stands still goes on where it is, as if nothing had been; not if another may have it already.
    pub(super) fn resume(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        if leaving.committed {
            return;
        }
        let staged = leaving.staged.take();
        let (Some(near), Some(far)) = (connection.near, connection.far) else { return };
        connection.stage = Stage::Serving;
        if let Some(staged) = staged {
            out.stream(near, StreamOp::Join(far, staged));
        }
        out.stream(near, StreamOp::Thaw);
        out.stream(far, StreamOp::Thaw);
        self.listen();
        out.mark(Event::Resumed { host: address, connection: number }.into());
    }

    /// It cannot be moved: both its ends hear of that, and the new router.
    fn cannot_leave(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        self.reset(address, number, "cannot be moved", out);
        if let Some(departure) = self.departure(address)
            && let Some(handoff) = departure.handoff
        {
            let to = departure.to;
            self.send_to(to, handoff, Body::Abort { connection: number }, out);
        }
        self.next_to_leave(now, address, out);
    }

    fn reset(&mut self, address: Ipv4Addr, number: u32, why: &'static str, out: &mut Outbox) {
        let Some(connection) = self.forget(address, number) else { return };
        for id in [connection.near, connection.far].into_iter().flatten() {
            // What is frozen has not even a reset to say.
            out.stream(id, StreamOp::Thaw);
            out.stream(id, StreamOp::Abort);
        }
        out.mark(Event::Lost { host: address, connection: number, why }.into());
    }

    /// The new router cannot be reached. Of what was shipped nobody knows whose it is, so it ends here without a word: if it
    /// was taken, it goes on there. Unless its host is here again: then nobody else will ever serve it, and both ends are
    /// told. All else is reset.
    pub(super) fn give_up(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        host.departure = None;
        let is_here = host.way.is_some();
        let committed =
            |here: &Connection| matches!(&here.stage, Stage::Leaving(leaving) if leaving.committed);
        let all: Vec<(u32, bool)> =
            host.connections.iter().map(|(number, here)| (*number, committed(here))).collect();
        for (number, unsure) in all {
            if !unsure {
                self.reset(address, number, "router unreachable", out);
            } else if is_here {
                self.lose(now, address, &[number], "unknown whose", out);
            } else if let Some(connection) = self.forget(address, number) {
                for id in [connection.near, connection.far].into_iter().flatten() {
                    out.stream(id, StreamOp::Forget);
                }
                out.mark(Event::Lost { host: address, connection: number, why: "unknown whose" }.into());
            }
        }
    }
}
