//! Greetings of hosts that arrive, and forward pointers about hosts that have left.

use super::connection::{Connection, Stage};
use super::host::Host;
use super::{SupportRouter, Timer, refusal, routed};
use crate::mark::IndirectTcpEvent;
use crate::message::{
    ConnectionId, ForwardPointer, ForwardReply, Greeting, GreetingReply, Lost, PORT, Signed, Verdict, Welcome,
};
use node::{Action, Addr, Class, Guard, Hop, Lifetime, MigrateOp, Outbox, Route, RouteKey, StreamOp};
use std::collections::BTreeMap;
use wire::{Duration, Iface, Instant, Ipv4Addr, Mac, Packet, Prefix, Reason, udp};

/// The time after which a forward pointer is repeated. Each further wait is twice as long.
const FIRST_REPEAT: Duration = Duration::from_millis(250);
/// The number of times that a forward pointer is sent in all.
const ATTEMPTS: u32 = 6;
/// A call that a greeting names may come until this time after the greeting. In this time TCP can retransmit a call
/// that was lost on the radio link.
const CALLED: Duration = Duration::from_secs(1);

impl SupportRouter {
    /// Handles a greeting: a mobile host is at this router now.
    pub(super) fn greeted(
        &mut self,
        now: Instant,
        way: (Iface, Mac),
        greeting: Signed<Greeting>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let message = &greeting.message;
        let address = message.host;
        let host = self.hosts.get_mut(&address).ok_or(refusal::STRANGER)?;
        if !greeting.is_by(&host.key) {
            return Err(refusal::FORGED);
        }
        if message.router != self.config.address {
            return Err(refusal::MISDIRECTED);
        }
        if message.again {
            return self.greeted_again(way, message, out);
        }
        let again = host.greeting.as_ref() == Some(&greeting);
        if message.sequence <= host.greeted && !again {
            // The host's clock may have gone back, so the answer has the sequence that the host has to exceed.
            let reply = GreetingReply { sequence: host.greeted, ..answer(message, Welcome::Stale) };
            Self::welcome(&Signed::new(reply, &host.key), way, out);
            return Err(refusal::STALE);
        }
        if !again {
            host.greets(message.sequence);
            host.way = Some(way);
            let departure = host.departure.take();
            let action = Action::Forward(Hop::mac(way.0, way.1));
            out.route(near_way(address), Route::new(action, Lifetime::Permanent));
            self.welcome_connections(now, &greeting, out);
            if let Some(departure) = departure {
                self.channel_rests(departure.to);
            }
        }
        let Some(host) = self.hosts.get_mut(&address) else { return Ok(()) };
        Self::welcome(&Signed::new(answer(&greeting.message, Welcome::Ready), &host.key), way, out);
        if !again {
            host.pointers = BTreeMap::new();
            let previous = greeting.message.previous.clone();
            host.greeting = Some(greeting);
            for old in previous {
                self.point(now, address, old, out);
            }
        }
        Ok(())
    }

    /// Handles the repetition of an answered greeting, by which a host asks whether this router still knows the
    /// greeting. If so, the reports of the host's lost connections are repeated too, as a report may have been lost. If
    /// not, for example after a restart of this router, the host has to send a new greeting.
    fn greeted_again(
        &mut self,
        way: (Iface, Mac),
        greeting: &Greeting,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let Some(host) = self.hosts.get_mut(&greeting.host) else { return Err(refusal::STRANGER) };
        let known = host.greeting.as_ref().is_some_and(|known| known.message.sequence == greeting.sequence);
        if !known {
            let sequence = host.greeted.max(greeting.sequence);
            let reply = GreetingReply { sequence, ..answer(greeting, Welcome::Stale) };
            Self::welcome(&Signed::new(reply, &host.key), way, out);
            return Err(refusal::STALE);
        }
        Self::welcome(&Signed::new(answer(greeting, Welcome::Ready), &host.key), way, out);
        let lost = host.lost_again();
        if !lost.is_empty() {
            self.say_lost(greeting.host, lost, out);
        }
        Ok(())
    }

    /// Compares the connections here with those that the greeting names. Connections that only the greeting names are
    /// expected. If their call may still come to this router, the call is awaited instead. Connections that only this
    /// router has are ended, unless the host called for them after the greeting. Leaving connections are resumed,
    /// unless another router may have taken them.
    fn welcome_connections(&mut self, now: Instant, greeting: &Signed<Greeting>, out: &mut Outbox) {
        let Greeting { host: address, ref entries, .. } = greeting.message;
        self.end_unlisted(greeting, out);
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let mut expected = Vec::new();
        let mut leaving = Vec::new();
        for entry in entries {
            match host.connections.get(&entry.id.number) {
                None if entry.calling => _ = host.awaited.insert(entry.id),
                None => {
                    host.connections.insert(entry.id.number, Connection::expected(*entry));
                    expected.push(*entry);
                }
                Some(here) if matches!(here.stage, Stage::Leaving(_)) => leaving.push(entry.id.number),
                Some(_) => {}
            }
        }
        for entry in &expected {
            self.hold(entry, out);
        }
        for number in leaving {
            self.resume(address, number, out);
        }
        self.listen();
        let awaits = self.hosts.get(&address).is_some_and(|host| !host.awaited.is_empty());
        if awaits {
            self.timers.set(Timer::Called(address), now + CALLED);
        }
        if !expected.is_empty() {
            self.timers.set(Timer::Patience(address), now + self.config.patience);
        }
        let connections = expected.iter().filter(|entry| !entry.closing).count();
        out.mark(IndirectTcpEvent::Greeted { host: address, connections }.into());
    }

    fn welcome(reply: &Signed<GreetingReply>, (iface, mac): (Iface, Mac), out: &mut Outbox) {
        let (from, to) = (Addr::new(reply.message.router, PORT), Addr::new(reply.message.host, PORT));
        // The answer is sent to the host's link address, as the host may not be registered with Mobile IP yet.
        out.send(iface, Packet::new(mac, udp::packet(from, to, &reply.emit())));
    }

    /// Sends a forward pointer to an earlier router, unless that router has answered or the pointer was sent
    /// [`ATTEMPTS`] times. Sets the timer of the repetition.
    pub(super) fn point(&mut self, now: Instant, address: Ipv4Addr, old: Ipv4Addr, out: &mut Outbox) {
        let own = self.config.address;
        let Some((host, key)) = self.hosts.get_mut(&address).zip(self.routers.get(&old)) else { return };
        let Some(greeting) = host.greeting.as_ref().and_then(|greeting| greeting.shown_to(old)) else {
            return;
        };
        let told = host.pointers.entry(old).or_default();
        if told.sent >= ATTEMPTS || told.answer.is_some() {
            return;
        }
        let pause = FIRST_REPEAT * (1 << told.sent);
        told.sent += 1;
        let pointer = Signed::new(ForwardPointer { new: own, old, greeting }, key);
        out.mark(IndirectTcpEvent::Pointed { host: address, to: old }.into());
        out.send_routed(routed(own, old, &pointer.emit()));
        self.timers.set(Timer::Pointer(address, old), now + pause);
    }

    /// Handles the answer to a forward pointer. If no earlier router has a connection, the expected ones are lost.
    pub(super) fn pointer_answered(
        &mut self,
        now: Instant,
        reply: &Signed<ForwardReply>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let ForwardReply { old, host: address, sequence, connections } = reply.message;
        let key = self.routers.get(&old).ok_or(refusal::STRANGER)?;
        if !reply.is_by(key) {
            return Err(refusal::FORGED);
        }
        let host = self.hosts.get_mut(&address).ok_or(refusal::STRANGER)?;
        let pointer = host.pointers.get_mut(&old);
        let Some(pointer) = pointer.filter(|_| host.greeted == sequence) else { return Err(refusal::STALE) };
        if pointer.answer.is_some() {
            return Err(refusal::STALE); // a repeated answer gives no more time
        }
        pointer.answer = Some(connections);
        self.timers.stop(Timer::Pointer(address, old));
        if connections > 0 {
            self.still_comes(now, address, Verdict::Taken);
        }
        self.lose_what_nobody_has(now, address, out);
        Ok(())
    }

    /// Notes that an earlier router has handed over all its connections of a host.
    pub(super) fn all_came_from(
        &mut self,
        now: Instant,
        old: Ipv4Addr,
        (address, sequence): (Ipv4Addr, u64),
        out: &mut Outbox,
    ) {
        let Some(host) = self.hosts.get_mut(&address).filter(|host| host.greeted == sequence) else { return };
        let Some(pointer) = host.pointers.get_mut(&old) else { return };
        pointer.answer = Some(0);
        self.timers.stop(Timer::Pointer(address, old));
        self.lose_what_nobody_has(now, address, out);
    }

    /// Gives up the expected connections of a host, if each earlier router has answered that it has no connection, or
    /// has handed over all its connections.
    fn lose_what_nobody_has(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let previous = host.greeting.as_ref().map_or(&[][..], |greeting| &greeting.message.previous);
        let answer = |old: &Ipv4Addr| host.pointers.get(old).and_then(|pointer| pointer.answer);
        if previous.iter().all(|old| answer(old) == Some(0)) {
            let missing = |here: &Connection| matches!(here.stage, Stage::Expected);
            let missing = host.connections.iter().filter(|(_, here)| missing(here));
            let numbers: Vec<u32> = missing.map(|(number, _)| *number).collect();
            self.lose(now, address, &numbers, "no earlier router has the connection", out);
        }
    }

    /// Handles a forward pointer: a host is at another router now.
    pub(super) fn forwarded(
        &mut self,
        now: Instant,
        pointer: &Signed<ForwardPointer>,
        out: &mut Outbox,
    ) -> Result<(), Reason> {
        let ForwardPointer { new, old, ref greeting } = pointer.message;
        let key = self.routers.get(&new).cloned().ok_or(refusal::STRANGER)?;
        if !pointer.is_by(&key) {
            return Err(refusal::FORGED);
        }
        let message = &greeting.message;
        let host = self.hosts.get_mut(&message.host).ok_or(refusal::STRANGER)?;
        if !greeting.is_by(&host.key) {
            return Err(refusal::FORGED);
        }
        let own = self.config.address;
        if old != own || message.router != new || !message.previous.contains(&own) || message.again {
            return Err(refusal::MISDIRECTED);
        }
        if message.sequence < host.greeted || (message.sequence == host.greeted && host.way.is_some()) {
            return Err(refusal::STALE);
        }
        // The host has called here after that greeting. So the host is here again, and its next greeting will follow.
        if host.last_call().is_some_and(|called| called > message.sequence) {
            return Err(refusal::STALE);
        }
        let fresh = message.sequence > host.greeted;
        if fresh {
            Self::left(host, message, out);
            self.timers.stop(Timer::Patience(message.host));
            self.end_unlisted(greeting, out);
            self.drop_expected(now, message.host, out);
            self.drop_connecting(now, message.host, out);
        }
        let Some(host) = self.hosts.get_mut(&message.host) else { return Ok(()) };
        let connections = host.connections.len();
        let reply = ForwardReply {
            old,
            host: message.host,
            sequence: message.sequence,
            connections: connections as u16,
        };
        out.send_routed(routed(own, new, &Signed::new(reply, &key).emit()));
        if fresh {
            out.mark(IndirectTcpEvent::Forwarded { host: message.host, to: new, connections }.into());
        }
        if fresh && connections > 0 {
            self.begin_departure(now, message.host, (new, message.sequence), out);
        }
        Ok(())
    }

    fn left(host: &mut Host, message: &Greeting, out: &mut Outbox) {
        host.greets(message.sequence);
        (host.way, host.greeting, host.departure) = (None, None, None);
        host.pointers.clear();
        out.route(near_way(message.host), None);
    }

    /// Ends the connections that the greeting does not name, except connections that the host called for after the
    /// greeting.
    fn end_unlisted(&mut self, greeting: &Signed<Greeting>, out: &mut Outbox) {
        let Greeting { host: address, ref entries, .. } = greeting.message;
        let Some(host) = self.hosts.get(&address) else { return };
        let listed = |here: &Connection| {
            here.is_called_after(greeting.message.sequence)
                || entries.iter().any(|entry| same(entry, &here.entry))
        };
        let ended: Vec<u32> =
            host.connections.iter().filter(|(_, here)| !listed(here)).map(|(number, _)| *number).collect();
        for number in ended {
            self.answer_commit(address, number, Verdict::Failed, out);
            let Some(connection) = self.forget(address, number) else { continue };
            for (_, id) in connection.halves() {
                // A frozen socket would send no reset, and its peer has to be notified.
                out.stream(id, StreamOp::Migrate(MigrateOp::Thaw));
                out.stream(id, StreamOp::Abort);
            }
            if matches!(connection.stage, Stage::Expected | Stage::Arriving(_)) {
                Self::guard(connection.entry.near(), None, out);
                Self::guard(connection.entry.far(), None, out);
            }
        }
    }

    /// Removes the connections that are expected or arriving, as the host has left this router. The router that has
    /// these connections receives a forward pointer, if the host's greeting names that router.
    fn drop_expected(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let expected = |here: &Connection| matches!(here.stage, Stage::Expected | Stage::Arriving(_));
        let numbers: Vec<u32> =
            host.connections.iter().filter(|(_, here)| expected(here)).map(|(number, _)| *number).collect();
        for number in numbers {
            self.answer_commit(address, number, Verdict::Moved, out);
            let Some(connection) = self.forget(address, number) else { continue };
            connection.halves().for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Forget)));
            // The buffered packets must not be answered: the socket is at another router.
            self.silence(now, connection.entry.near(), Guard::Drop, out);
            self.silence(now, connection.entry.far(), Guard::Drop, out);
        }
    }

    /// Removes the connections without an open far half. Such connections cannot be handed over, and the peer's SYN-ACK
    /// may be routed to the host's new router, where the host calls again. The peer is in SYN-RECEIVED at most, so a
    /// reset ends its side without notifying its application (RFC 9293, section 3.10.7.4).
    fn drop_connecting(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let connecting = |here: &Connection| matches!(here.stage, Stage::Connecting);
        let numbers: Vec<u32> =
            host.connections.iter().filter(|(_, here)| connecting(here)).map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(connection) = self.forget(address, number) else { continue };
            connection.halves().for_each(|(_, id)| out.stream(id, StreamOp::Migrate(MigrateOp::Forget)));
            self.refuse(now, connection.entry.far(), out);
            out.mark(IndirectTcpEvent::Undone { host: address, connection: number }.into());
        }
        self.listen();
    }

    /// Gives up the expected and arriving connections of a host that were not handed over in time.
    pub(super) fn patience_ends(&mut self, now: Instant, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let late = |here: &Connection| matches!(here.stage, Stage::Expected | Stage::Arriving(_));
        let numbers: Vec<u32> =
            host.connections.iter().filter(|(_, here)| late(here)).map(|(number, _)| *number).collect();
        self.lose(now, address, &numbers, "not received in time", out);
    }

    /// Reports as lost the calls that a greeting names and that have not come. This router may have received them
    /// before it restarted. The host's stack only waits and sends nothing, so it would receive no reset.
    pub(super) fn not_called(&mut self, address: Ipv4Addr, out: &mut Outbox) {
        let Some(host) = self.hosts.get_mut(&address) else { return };
        let lost: Vec<ConnectionId> = std::mem::take(&mut host.awaited).into_iter().collect();
        if !lost.is_empty() {
            self.tell_lost(address, lost, out);
        }
    }

    pub(super) fn tell_lost(&mut self, address: Ipv4Addr, connections: Vec<ConnectionId>, out: &mut Outbox) {
        if let Some(host) = self.hosts.get_mut(&address) {
            host.note_lost(&connections);
        }
        self.say_lost(address, connections, out);
    }

    fn say_lost(&self, address: Ipv4Addr, connections: Vec<ConnectionId>, out: &mut Outbox) {
        let Some(host) = self.hosts.get(&address) else { return };
        let lost = Lost { host: address, router: self.config.address, connections };
        let payload = Signed::new(lost, &host.key).emit();
        let packet = routed(self.config.address, address, &payload);
        match host.way {
            Some((iface, mac)) => {
                let link = wire::Frame { dst: mac, ..packet.link };
                out.send(iface, Packet { link, ..packet });
            }
            None => out.send_routed(packet),
        }
    }
}

/// Returns whether two entries have the same identifier and end points.
pub(super) fn same(one: &crate::message::Entry, other: &crate::message::Entry) -> bool {
    let ends = |entry: &crate::message::Entry| (entry.id, entry.host, entry.router, entry.peer);
    ends(one) == ends(other)
}

fn answer(greeting: &Greeting, welcome: Welcome) -> GreetingReply {
    GreetingReply { host: greeting.host, sequence: greeting.sequence, router: greeting.router, welcome }
}

/// Returns the key of the route from this router's own sockets to a host that is here, directly over its link.
const fn near_way(host: Ipv4Addr) -> RouteKey {
    RouteKey { class: Some(Class::HOST), src: Prefix::ANY, dst: Prefix::host(host) }
}
