//! The old router's side of a handoff. The old router starts the transfer. It keeps each connection until the new
//! router has answered that it took the connection.

use super::connection::{Commit, Connection, Leaving, Stage};
use super::host::{Departure, Host};
use super::{SupportRouter, Timer, refusal};
use crate::mark::IndirectTcpEvent;
use crate::message::{Body, CODE, ConnectionId, Direction, Entry, Frame, Halves, Side, SocketState, Verdict};
use node::{Guard, MigrateOp, Outbox, StreamOp};
use wire::{Duration, Instant, Ipv4Addr, Reason};

/// The time without a sign of the new router after which the handoff of a host's connections is given up. The
/// connection between the routers may be silent without being broken.
const GIVE_UP: Duration = Duration::from_secs(30);

impl SupportRouter {
    /// Offers a host's connections to the host's new router. If the connection to that router is not open, only opens
    /// the connection. The offer follows when both hellos have come.
    pub(super) fn depart(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(to) = self.departure(address).map(|departure| departure.to) else { return };
        if !self.open_channel(now, to, out) {
            return;
        }
        let Some(handoff) = self.next_handoff(to) else { return };
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let Some(departure) = &mut host.departure else { return };
        let leaves = |here: &&Connection| !here.is_called_after(departure.sequence);
        let connections = host.connections.values().filter(leaves).count() as u16;
        departure.handoff = Some(handoff);
        let offer = Body::Offer { host: address, sequence: departure.sequence, connections };
        let bytes = self.send_to(to, handoff, offer, out);
        out.mark(IndirectTcpEvent::Offered { host: address, bytes, codes: CODE }.into());
    }

    fn departure(&self, address: Ipv4Addr) -> Option<&Departure> {
        self.hosts.get(&address)?.departure.as_ref()
    }

    /// Handles a frame from the new router.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        router: Ipv4Addr,
        frame: &Frame,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let of = |host: &Host| {
            host.departure.as_ref().is_some_and(|d| d.to == router && d.handoff == Some(frame.handoff))
        };
        if let Body::CommitAnswer { host, connection, attempt, verdict } = frame.body {
            self.commit_answered(now, router, (host, connection, attempt), verdict, out);
            return Ok(());
        }
        // If no host has this handoff, the frame answers a handoff that was ended or replaced meanwhile. Such an answer
        // is no error.
        let Some(address) = self.hosts.iter().find(|(_, host)| of(host)).map(|(address, _)| *address) else {
            return Ok(());
        };
        match frame.body {
            Body::OfferAnswer(Verdict::Taken) => {
                if let Some(departure) = self.hosts.get_mut(&address).and_then(|host| host.departure.as_mut())
                {
                    departure.accepted = true;
                }
                self.progress(now, address);
                self.next_to_leave(address, out);
            }
            Body::OfferAnswer(_) => self.not_wanted(address, out),
            Body::DoneAnswer => {
                if let Some(host) = self.hosts.get_mut(&address) {
                    host.departure = None;
                }
            }
            _ => return Err(refusal::UNEXPECTED),
        }
        Ok(())
    }

    /// Sets the give-up timer of a host's handoff to [`GIVE_UP`] from now: the handoff begins, or the other router has
    /// shown a sign.
    pub(super) fn progress(&mut self, now: Instant, address: Ipv4Addr) {
        self.timers.set(Timer::GiveUp(address), now + GIVE_UP);
    }

    /// On a new connection to another router, asks whether that router took the connections that were committed to it.
    pub(super) fn ask_whose(&mut self, router: Ipv4Addr, out: &mut Outbox) {
        let mut asked = Vec::new();
        for (address, host) in &self.hosts {
            let committed =
                host.connections.values().filter_map(|here| Some((here.entry.id, here.committed()?)));
            let there = committed.filter(|(_, commit)| commit.to == router);
            asked.extend(there.map(|(connection, Commit { attempt, sequence, .. })| Body::Status {
                host: *address,
                connection,
                attempt,
                sequence,
            }));
        }
        for question in asked {
            self.send_to(router, 0, question, out);
        }
    }

    /// Freezes or ships the next connection, without waiting for the answers about the previous connections. If no
    /// connection is left, and all commits are answered, sends `Done`.
    fn next_to_leave(&mut self, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let Some(departure) = &host.departure else { return };
        let (to, Some(handoff), true) = (departure.to, departure.handoff, departure.accepted) else { return };
        let first = |wanted: &dyn Fn(&Connection) -> bool| {
            host.connections.iter().find(|(_, here)| wanted(here)).map(|(number, _)| *number)
        };
        // A frozen connection without a commit is shipped first.
        let frozen =
            |here: &Connection| matches!(&here.stage, Stage::Leaving(leaving) if leaving.committed.is_none());
        if let Some(number) = first(&frozen) {
            return self.ship(address, number, out);
        }
        // If the host called for a connection after the greeting, the host is here again. The connection stays, because
        // the other router would refuse it.
        let leaves = |here: &Connection| {
            matches!(here.stage, Stage::Serving | Stage::Over) && !here.is_called_after(departure.sequence)
        };
        if let Some(number) = first(&leaves) {
            return self.freeze(address, number, out);
        }
        if first(&|here| here.committed().is_some()).is_some() {
            return; // a commit is not answered yet
        }
        out.mark(IndirectTcpEvent::HandedOver { host: address }.into());
        self.send_to(to, handoff, Body::Done, out);
    }

    fn freeze(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        // If a half has ended cleanly, there is no relay any more, and no bytes are between the halves.
        let relayed = connection.near.zip(connection.far);
        let staged = if relayed.is_none() { Some(Default::default()) } else { None };
        connection.stage = Stage::Leaving(Leaving { staged, ..Leaving::default() });
        let halves = connection.halves();
        self.listen();
        out.mark(IndirectTcpEvent::Frozen { host: address, connection: number }.into());
        halves.for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Freeze)));
        match relayed {
            Some((near, _)) => out.stream(near, StreamOp::Migrate(MigrateOp::Part)),
            None => self.export_next(address, number, out),
        }
    }

    /// Exports the state of the next half. If all states are known, ships the connection.
    pub(super) fn export_next(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Leaving(leaving) = &connection.stage else { return };
        match leaving.next(connection.halves()) {
            Some(id) => out.stream(id, StreamOp::Migrate(MigrateOp::Export)),
            None => self.ship(address, number, out),
        }
    }

    /// Sends the state of a connection and a commit, if the new router has accepted the offer and the state is
    /// complete. Then the next connection leaves.
    fn ship(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(departure) = self.departure(address).filter(|departure| departure.accepted) else { return };
        let (to, sequence, Some(handoff)) = (departure.to, departure.sequence, departure.handoff) else {
            return;
        };
        let Some(connection) = self.connection(address, number) else { return };
        let halves = connection.halves();
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        let Some(staged) = leaving.staged.as_ref() else { return };
        if leaving.next(halves).is_some() {
            return; // a half is not exported yet
        }
        let attempt = connection.attempt + 1;
        let (halves, states, buffers) = parts(&leaving.states, staged);
        let mut frames = vec![Body::Entry(connection.entry, attempt)];
        frames.extend(states.into_iter().map(|state| Body::State(Box::new(state))));
        let buffers = buffers.into_iter().filter(|(_, bytes)| !bytes.is_empty());
        frames.extend(buffers.map(|(way, bytes)| Body::UserBuffer(way, bytes)));
        frames.push(Body::Commit { number, attempt, halves });
        leaving.committed = Some(Commit { to, attempt, sequence });
        connection.attempt = attempt;
        let codes = frames.len() * CODE;
        let bytes = frames.into_iter().map(|body| self.send_to(to, handoff, body, out)).sum();
        out.mark(IndirectTcpEvent::Shipped { host: address, connection: number, to, bytes, codes }.into());
        self.next_to_leave(address, out);
    }

    /// Handles the answer to a commit. Only an answer from the router to which the connection was committed counts, and
    /// only about that attempt.
    fn commit_answered(
        &mut self,
        now: Instant,
        router: Ipv4Addr,
        (address, id, attempt): (Ipv4Addr, ConnectionId, u32),
        verdict: Verdict,
        out: &mut Outbox,
    ) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let back = host.way.is_some();
        let departure = host.departure.as_ref().map(|departure| departure.sequence);
        let number = id.number;
        let connection = host.connections.get_mut(&number).filter(|here| here.entry.id == id);
        let Some(connection) = connection else { return };
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        let Some(commit) =
            leaving.committed.filter(|commit| (commit.to, commit.attempt) == (router, attempt))
        else {
            return;
        };
        leaving.committed = None;
        let entry = connection.entry;
        self.progress(now, address);
        match verdict {
            Verdict::Taken if back => self.expect_again(now, address, number, out),
            Verdict::Taken => self.handed_over(now, address, number, out),
            Verdict::Failed => {
                self.cannot_leave(address, number, out);
                if back {
                    self.refuse_stale(now, address, &entry, out);
                }
                return;
            }
            // The other router did not take the connection. The host is here again, or the host's next router is not
            // known yet, so the connection is served here.
            Verdict::Unknown | Verdict::Moved if back => self.resume(address, number, out),
            Verdict::Moved if departure == Some(commit.sequence) => return self.not_wanted(address, out),
            Verdict::Unknown | Verdict::Moved if departure.is_none() => self.resume(address, number, out),
            // The connection stays frozen, and is shipped to the host's present router.
            Verdict::Unknown | Verdict::Moved => {}
        }
        self.next_to_leave(address, out);
    }

    /// Deletes a connection that the new router has taken.
    fn handed_over(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        if self.end_silently(now, address, number, out) {
            out.mark(IndirectTcpEvent::Forgotten { host: address, connection: number }.into());
        }
    }

    /// Deletes a connection that another router has or may have. No segment is sent, and segments that still come for
    /// the near half are dropped for the time `silence`, if the local address of the near half is this router's.
    /// Returns whether the connection existed.
    fn end_silently(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) -> bool {
        let Some(connection) = self.forget(address, number) else { return false };
        if *connection.entry.router.ip() == self.config.address {
            self.silence(now, connection.entry.near(), Guard::Drop, out);
        }
        connection.halves().for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Forget)));
        true
    }

    /// Expects a connection that another router has taken, as the host has returned meanwhile. The other router gets a
    /// forward pointer, and hands the connection back.
    pub(super) fn expect_again(&mut self, now: Instant, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(entry) = self.connection(address, number).map(|here| here.entry) else { return };
        self.handed_over(now, address, number, out);
        let connection = Connection::expected(entry);
        if let Some(host) = self.hosts.get_mut(&address) {
            host.connections.insert(number, connection);
        }
        self.hold(&entry, out);
        self.listen();
        self.timers.set(Timer::Patience(address), now + self.config.patience);
    }

    /// Ends a handoff whose offer or commit the other router refused, and serves the connections here. Connections with
    /// an unanswered commit stay frozen. If the host is at a third router, that router will send a forward pointer.
    fn not_wanted(&mut self, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        host.departure = None;
        let numbers: Vec<u32> = host.connections.keys().copied().collect();
        for number in numbers {
            self.resume(address, number, out);
        }
    }

    /// Resumes a frozen connection unchanged. A connection that was committed to another router stays frozen, as that
    /// router may have taken it.
    pub(super) fn resume(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number) else { return };
        let Stage::Leaving(leaving) = &mut connection.stage else { return };
        if leaving.committed.is_some() {
            return;
        }
        let staged = leaving.staged.take();
        let halves = connection.halves();
        let relayed = connection.near.zip(connection.far);
        connection.stage =
            if (connection.near, connection.far) == (None, None) { Stage::Over } else { Stage::Serving };
        if let (Some(staged), Some((near, far))) = (staged, relayed) {
            out.stream(near, StreamOp::Migrate(MigrateOp::Join(far, staged)));
        }
        halves.for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Thaw)));
        self.listen();
        out.mark(IndirectTcpEvent::Resumed { host: address, connection: number }.into());
    }

    /// Resets both ends of a connection that cannot be moved, and notifies the new router. Then the next connection
    /// leaves.
    pub(super) fn cannot_leave(&mut self, address: Ipv4Addr, number: u32, out: &mut Outbox) {
        let Some(connection) = self.connection(address, number).map(|here| here.entry.id) else { return };
        self.reset(address, number, "cannot be moved", out);
        if let Some(departure) = self.departure(address)
            && let Some(handoff) = departure.handoff
        {
            let to = departure.to;
            self.send_to(to, handoff, Body::Abort { connection }, out);
        }
        self.next_to_leave(address, out);
    }

    /// Notifies the host that a connection is lost, and resets both ends when they next send. The other router may have
    /// taken the connection and then restarted. Then the state here is outdated, and the ends would not accept the
    /// sequence numbers of a reset made from it.
    fn refuse_stale(&mut self, now: Instant, address: Ipv4Addr, entry: &Entry, out: &mut Outbox) {
        for tuple in [entry.near(), entry.far()] {
            self.refuse(now, tuple, out);
        }
        self.listen();
        self.tell_lost(address, vec![entry.id], out);
    }

    fn reset(&mut self, address: Ipv4Addr, number: u32, why: &'static str, out: &mut Outbox) {
        let Some(connection) = self.forget(address, number) else { return };
        for (_, id) in connection.halves() {
            // A frozen socket would send no reset.
            out.stream(id, StreamOp::Migrate(MigrateOp::Thaw));
            out.stream(id, StreamOp::Abort);
        }
        out.mark(IndirectTcpEvent::Lost { host: address, connection: number, why }.into());
    }

    /// Gives up a handoff, as the other router has not answered in time. A connection whose commit was not answered
    /// ends here without a reset, as the other router may have it. If the host is here again, no other router will
    /// serve the connection, so later segments of both ends get a reset. The other connections of the handoff are
    /// reset. Closes the connection to each router that did not answer.
    pub(super) fn give_up(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let departure = host.departure.take();
        let is_here = host.way.is_some();
        let waits = |here: &Connection| {
            let leaves =
                departure.as_ref().is_some_and(|departure| !here.is_called_after(departure.sequence));
            leaves || matches!(here.stage, Stage::Leaving(_))
        };
        let all = host.connections.iter().filter(|(_, here)| waits(here));
        let all: Vec<(u32, bool)> = all.map(|(number, here)| (*number, here.committed().is_some())).collect();
        let asked = host.connections.values().filter_map(Connection::committed).map(|commit| commit.to);
        let silent: Vec<Ipv4Addr> = departure.iter().map(|departure| departure.to).chain(asked).collect();
        for (number, unsure) in all {
            if unsure && is_here {
                self.lose(now, address, &[number], "unknown which router has the connection", out);
            } else if unsure {
                if self.end_silently(now, address, number, out) {
                    let why = "unknown which router has the connection";
                    out.mark(IndirectTcpEvent::Lost { host: address, connection: number, why }.into());
                }
            } else if self.connection(address, number).is_some_and(|here| here.is_over()) {
                self.forget(address, number);
            } else {
                // If the host is here, its greeting has ended the departure. The greeting has resumed or ended each
                // leaving connection without a commit, so none of them is frozen now.
                debug_assert!(!is_here, "a connection leaves without a commit, and its host is here");
                self.reset(address, number, "no answer from the new router", out);
            }
        }
        for router in silent {
            self.hang_up_on(router, out);
        }
    }

    /// Starts the handoff of a host's connections to router `to`, and offers the connections to it. `sequence` is the
    /// sequence of the host's greeting to `to`.
    pub(super) fn begin_departure(
        &mut self,
        now: Instant,
        address: Ipv4Addr,
        (to, sequence): (Ipv4Addr, u64),
        out: &mut Outbox,
    ) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        host.departure = Some(Departure { to, sequence, handoff: None, accepted: false });
        self.progress(now, address);
        self.depart(now, address, out);
    }
}

/// Halves, their states, and the bytes between them in each direction.
type Shipment = (Halves, Vec<SocketState>, Vec<(Direction, Vec<u8>)>);

/// Returns the state of a connection to send: which halves exist, their states, and the bytes between them. If only one
/// half is left, nothing is relayed any more. The bytes that were on their way to that half are added to its unsent
/// bytes, followed by its FIN.
fn parts(states: &[SocketState], staged: &[Vec<u8>; 2]) -> Shipment {
    let mut states = states.to_vec();
    let has = |side| states.iter().any(|state: &SocketState| state.side == side);
    let halves = Halves { near: has(Side::Near), far: has(Side::Far) };
    let [up, down] = staged;
    if let [SocketState { side, tcp }] = &mut states[..] {
        tcp.unacknowledged.extend(if *side == Side::Near { down } else { up });
        tcp.finishing = true;
        return (halves, states, Vec::new());
    }
    let between = [(Direction::Up, up.clone()), (Direction::Down, down.clone())];
    (halves, states, between.into())
}
