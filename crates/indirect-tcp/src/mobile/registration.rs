//! Greetings to routers, and their answers.

use super::{Connection, MobileHost, PendingGreeting, State, Timer};
use crate::mark::IndirectTcpEvent;
use crate::message::{CONNECTIONS, Entry, Greeting, GreetingReply, Lost, PORT, PREVIOUS, Signed, Welcome};
use crate::router::refusal;
use node::stream::refusal as refused;
use node::{Addr, Outbox, StreamId};
use wire::{Duration, Instant, Ipv4Addr, Mac, Packet, Reason, udp};

/// The time after which a greeting is repeated. Each further wait is twice as long, up to [`LONGEST_REPEAT`].
const FIRST_REPEAT: Duration = Duration::from_millis(250);
/// The longest time between two repetitions.
const LONGEST_REPEAT: Duration = Duration::from_secs(4);
/// The time after which a host with connections repeats its answered greeting. Only the answer shows that the router
/// still knows the connections: a router that has restarted does not know them. Its advertisements need not show the
/// restart.
const REFRESH: Duration = Duration::from_secs(3);
/// The time without an answer to a new greeting, after which a host gives up its connections.
const HOPELESS: Duration = Duration::from_mins(1);

impl MobileHost {
    /// Handles a report that `router` is the host's gateway, and greets `router`. The present router may be reported
    /// again after it has restarted and lost the host's state.
    pub(super) fn gateway(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        if self.router == Some(router) {
            return self.greet(now, router, out);
        }
        if let Some(left) = self.router.replace(router) {
            self.previous.retain(|other| *other != left);
            self.previous.push_front(left);
            // If there is no connection, only the last router may have state of this host, and must delete it.
            let any =
                !self.closing.is_empty() || self.connections.values().any(Connection::is_known_to_router);
            self.previous.truncate(if any { PREVIOUS + 1 } else { 1 });
        }
        self.greet(now, router, out);
        // A connection for which no call was sent yet is opened through this router.
        let uncalled = |connection: &Connection| {
            matches!(connection.state, State::Waiting | State::Calling { called: false, .. })
        };
        let waiting = self.connections.iter().filter(|(_, connection)| uncalled(connection));
        let waiting: Vec<StreamId> = waiting.map(|(program, _)| *program).collect();
        for program in waiting {
            self.begin(program, out);
        }
    }

    fn greet(&mut self, now: Instant, router: Ipv4Addr, out: &mut Outbox) {
        let sequence = self.next_sequence(now);
        let entries = self.connections.values_mut().filter_map(|connection| match &mut connection.state {
            State::Open(entry) => Some(*entry),
            // The called router may have connected to the peer. If so, the connection moves; if not, it is reported to
            // the host as lost.
            State::Calling { entry, called: true, .. } => {
                entry.calling &= *entry.router.ip() == router;
                Some(*entry)
            }
            _ => None,
        });
        // A greeting has room for CONNECTIONS entries: open connections first, then the latest that were closed.
        let closing = self.closing.iter().rev().map(|(entry, _)| *entry);
        let entries: Vec<Entry> = entries.chain(closing).take(CONNECTIONS).collect();
        let has_codes = !self.config.routers.is_empty();
        let room = if has_codes { Greeting::room_for_codes(entries.len()) } else { PREVIOUS };
        let others = self.previous.iter().copied().filter(|other| *other != router);
        let previous = others.take(room.min(PREVIOUS)).collect();
        let (host, again, codes) = (self.config.address, false, Vec::new());
        let greeting = Greeting { host, sequence, router, previous, entries, again, codes };
        let key_of = |router| self.config.key_of(router);
        let greeting = if has_codes { greeting.with_codes(key_of) } else { greeting };
        let greeting = Signed::new(greeting, key_of(router));
        self.greeting = Some(PendingGreeting { greeting, attempt: 0 });
        self.answered = None;
        self.timers.stop(Timer::Refresh);
        self.timers.set(Timer::Hopeless, now + HOPELESS);
        self.repeat(now, out);
    }

    /// Repeats the answered greeting, if the host has sent a call for a connection that has not ended. A router that
    /// knows the greeting answers as before. A router that has restarted asks for a later greeting, which names the
    /// present connections.
    pub(super) fn refresh(&mut self, now: Instant, out: &mut Outbox) {
        if !self.connections.values().any(Connection::is_known_to_router) {
            return;
        }
        if let Some(answered) = self.answered.take() {
            let message = Greeting { again: true, codes: Vec::new(), ..answered.message };
            let greeting = Signed::new(message, self.config.key_of(answered.message.router));
            self.greeting = Some(PendingGreeting { greeting, attempt: 0 });
            self.repeat(now, out);
        }
    }

    /// Sets the timer of [`Self::refresh`], unless this timer is set, or a greeting waits for its answer.
    pub(super) fn refresh_later(&mut self, now: Instant) {
        if self.answered.is_some() && self.timers.due(Timer::Refresh).is_none() {
            self.timers.set(Timer::Refresh, now + REFRESH);
        }
    }

    /// Sends the greeting, and sets the timer for its repetition.
    pub(super) fn repeat(&mut self, now: Instant, out: &mut Outbox) {
        let Some(PendingGreeting { greeting, attempt }) = &mut self.greeting else { return };
        let pause = (FIRST_REPEAT * (1 << (*attempt).min(6))).min(LONGEST_REPEAT);
        *attempt += 1;
        let router = greeting.message.router;
        let connections = greeting.message.entries.iter().filter(|entry| !entry.closing).count();
        if greeting.message.again {
            out.mark(IndirectTcpEvent::Refresh { router, attempt: *attempt }.into());
        } else {
            out.mark(IndirectTcpEvent::Greeting { router, connections, attempt: *attempt }.into());
        }
        let [from, to] = [self.config.address, router].map(|at| Addr::new(at, PORT));
        out.send_routed(Packet::new(Mac::ZERO, udp::packet(from, to, &greeting.emit())));
        self.timers.set(Timer::Repeat, now + pause);
    }

    pub(super) fn welcomed(
        &mut self,
        now: Instant,
        reply: &Signed<GreetingReply>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let GreetingReply { host, sequence, router, welcome } = reply.message;
        if !reply.is_by(self.config.key_of(router)) {
            return Err(refusal::FORGED);
        }
        let PendingGreeting { greeting, .. } = self.greeting.as_ref().ok_or(refusal::STALE)?;
        if host != self.config.address || router != greeting.message.router {
            return Err(refusal::MISDIRECTED);
        }
        match welcome {
            Welcome::Ready if sequence == greeting.message.sequence => {
                if !greeting.message.again {
                    out.mark(IndirectTcpEvent::Welcomed { router }.into());
                }
                self.answered = self.greeting.take().map(|said| said.greeting);
                self.timers.stop(Timer::Repeat);
                self.timers.stop(Timer::Hopeless);
                self.refresh_later(now);
            }
            // The greeting is stale, because this host's clock went back or the router has restarted. The host greets
            // again with a higher sequence.
            Welcome::Stale if sequence >= greeting.message.sequence => {
                self.sequence = self.sequence.max(sequence);
                out.mark(IndirectTcpEvent::NotWelcome { router, why: "stale" }.into());
                self.greet(now, router, out);
            }
            Welcome::Ready | Welcome::Stale => return Err(refusal::STALE),
        }
        Ok(())
    }

    /// Handles a report of lost connections from the present or an earlier router.
    pub(super) fn lost(&mut self, lost: &Signed<Lost>, out: &mut Outbox) -> Result<(), Reason> {
        let router = lost.message.router;
        if !lost.is_by(self.config.key_of(router)) {
            return Err(refusal::FORGED);
        }
        let was_there = self.router == Some(router) || self.previous.contains(&router);
        if lost.message.host != self.config.address || !was_there {
            return Err(refusal::MISDIRECTED);
        }
        let named = |connection: &Connection| {
            connection.id().is_some_and(|id| lost.message.connections.contains(&id))
        };
        let programs = self.connections.iter().filter(|(_, connection)| named(connection));
        let programs: Vec<StreamId> = programs.map(|(program, _)| *program).collect();
        for program in programs {
            match self.connections.get(&program).map(|connection| &connection.state) {
                // The router has not connected to the peer, or its answer was lost. So the host calls again.
                Some(State::Calling { .. }) => self.begin(program, out),
                _ => self.end(program, Some(refused::RESET), out),
            }
        }
        Ok(())
    }

    pub(super) fn despair(&mut self, out: &mut Outbox) {
        let Some(PendingGreeting { greeting, .. }) = &self.greeting else { return };
        let router = greeting.message.router;
        out.mark(IndirectTcpEvent::NotWelcome { router, why: "no answer" }.into());
        let programs = self.connections.iter().filter(|(_, connection)| connection.is_known_to_router());
        let programs: Vec<StreamId> = programs.map(|(program, _)| *program).collect();
        for program in programs {
            self.end(program, Some(refused::TIMED_OUT), out);
        }
    }
}
