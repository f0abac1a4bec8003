//! A node: the roles of one host and its forwarding table. All that a driver calls.

use crate::input::{Command, CommandId, Input, Link, Listen, Proto, Rx};
use crate::{Act, Effect, Outbox, Ruleset, StreamEvent, StreamId, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use table::{Go, Hop, NextHop, Port, RoleId, Route, Why, decide};
use wire::ipv4::{self, Header};
use wire::{EtherType, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId, icmp};

/// Why a node itself ends a packet's journey; headers are refused with the reasons of `wire`.
pub mod reason {
    use wire::Reason;

    /// No route, and not addressed to this host.
    pub const NO_ROUTE: Reason = Reason("no_route");
    /// The last hop was used up.
    pub const TTL_EXPIRED: Reason = Reason("ttl_expired");
    /// The frame is addressed to another station of the link.
    pub const OTHER_STATION: Reason = Reason("other_station");
    /// The frame carries something that is not IPv4.
    pub const ETHERTYPE: Reason = Reason("ethertype");
    /// More packets failed the gate's check than its owner wants to see in a second.
    pub const PUNT_LIMIT: Reason = Reason("punt_limit");
    /// It reached the role that it was meant for: the one end that is not a loss.
    pub const CONSUMED: Reason = Reason("consumed");
}

/// One protocol role of one host: a base station, a mobile host, a workload.
///
/// No socket, no clock, no randomness of its own. The laws stand in the crate's documentation.
pub trait Role: Debug + Send {
    /// Its name in records and reports.
    fn name(&self) -> &'static str;

    /// The traffic wanted.
    fn listens(&self) -> &[Listen] {
        &[]
    }

    /// The commands understood.
    fn verbs(&self) -> &[&'static str] {
        &[]
    }

    /// Takes one input to its end. The only place where state changes.
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox);

    /// When [`Input::Timeout`] is due. Pure.
    fn deadline(&self) -> Option<Instant>;

    /// What an operator is shown. Pure.
    fn status(&self) -> Value;

    /// Names the packets it keeps: the ledger asks, and so does law 6.
    fn holds(&self, _each: &mut dyn FnMut(PacketId)) {}
}

/// The roles of one host and its forwarding table.
#[derive(Debug)]
pub struct Node {
    roles: Vec<Box<dyn Role>>,
    rules: Ruleset,
    addresses: Vec<Ipv4Addr>,
    /// Link addresses of the interfaces that came up.
    ifaces: Vec<(Iface, Mac)>,
    /// Who uses the streams that the driver numbered.
    accepted: BTreeMap<StreamId, RoleId>,
}

/// Effects that one input may cause before a node is held to be running in circles.
const EFFECTS_PER_STEP: usize = 100_000;

impl Node {
    /// A node with these roles, in the order in which they are offered packets, and these addresses of its own.
    pub fn new(roles: Vec<Box<dyn Role>>, addresses: Vec<Ipv4Addr>) -> Self {
        Self { roles, rules: Ruleset::default(), addresses, ifaces: Vec::new(), accepted: BTreeMap::new() }
    }

    /// Sets a route that no role owns: what an operator configures.
    pub fn set_route(&mut self, now: Instant, key: table::Key, route: Route) {
        self.rules.set_route(now, RoleId::NODE, key, Some(route));
    }

    /// When [`Input::Timeout`] is due. Earlier than needed at times, never later.
    pub fn deadline(&self) -> Option<Instant> {
        let roles = self.roles.iter().filter_map(|role| role.deadline()).min();
        [roles, self.rules.next_deadline()].into_iter().flatten().min()
    }

    /// Names the packets that roles keep.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        for role in &self.roles {
            role.holds(each);
        }
    }

    /// What each role shows of itself, by name.
    pub fn status(&self) -> Value {
        Value::Map(self.roles.iter().map(|role| (role.name().to_owned(), role.status())).collect())
    }

    /// A packet came in; from [`Iface::HOST`] it is this host's own.
    pub fn receive(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        self.admit(now, iface, packet, out);
        self.settle(now, out);
    }

    /// Anything else happened.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.admit(now, rx.iface, packet, out),
            Input::Link(iface, link) => self.link(now, iface, link, out),
            Input::Stream(id, event) => self.stream(now, id, event, out),
            Input::Command(id, command) => self.command(now, id, command, out),
            Input::Start(_) | Input::Idle(..) => self.tell_all(now, &input, out),
        }
        self.settle(now, out);
    }

    fn admit(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        if packet.link.kind != EtherType::IPV4 {
            return drop(out, iface, packet, reason::ETHERTYPE);
        }
        if iface != Iface::HOST && !self.is_for_us(iface, packet.link.dst) {
            return drop(out, iface, packet, reason::OTHER_STATION);
        }
        let (header, listener) = match Header::parse(&packet.bytes) {
            Ok((header, payload)) => (header, self.listener(&header, payload)),
            Err(malformed) => return drop(out, iface, packet, malformed.into()),
        };
        let from = (iface != Iface::HOST).then_some(packet.link.src);
        match listener.filter(|_| iface != Iface::HOST) {
            Some(role) => self.give(now, role, Input::Packet(Rx { iface, why: Why::Listen }, packet), out),
            None => self.forward(now, Port { iface, from }, &header, packet, out),
        }
    }

    fn forward(&mut self, now: Instant, port: Port, header: &Header, mut packet: Packet, out: &mut Outbox) {
        let verdict = decide(&self.rules, now, port, header.src, header.dst);
        for entry in verdict.used.into_iter().flatten() {
            self.rules.used(entry, now);
        }
        match verdict.go {
            Go::Host if self.addresses.contains(&header.dst) => self.transmit(Iface::HOST, packet, out),
            Go::Host => drop(out, port.iface, packet, reason::NO_ROUTE),
            Go::Out(_) if verdict.ttl && !ipv4::decrement_ttl(&mut packet.bytes) => {
                drop(out, port.iface, packet, reason::TTL_EXPIRED);
            }
            Go::Out(Hop { iface, to: NextHop::Mac(mac) }) => {
                packet.link.dst = mac;
                self.transmit(iface, packet, out);
            }
            Go::Punt(_, Why::Check) if !self.rules.may_punt(now, port) => {
                drop(out, port.iface, packet, reason::PUNT_LIMIT);
            }
            Go::Punt(role, why) => {
                self.give(now, role, Input::Packet(Rx { iface: port.iface, why }, packet), out);
            }
            Go::Drop(reason) => drop(out, port.iface, packet, reason),
        }
    }

    /// Hands a packet to the driver, with our own link address on it.
    fn transmit(&self, iface: Iface, mut packet: Packet, out: &mut Outbox) {
        if let Some((_, mac)) = self.ifaces.iter().find(|(other, _)| *other == iface) {
            packet.link.src = *mac;
        }
        out.act(RoleId::NODE, Act::Transmit(iface, packet));
    }

    fn is_for_us(&self, iface: Iface, dst: Mac) -> bool {
        dst == Mac::BROADCAST || self.ifaces.contains(&(iface, dst))
    }

    fn listener(&self, header: &Header, payload: &[u8]) -> Option<RoleId> {
        let proto = match header.protocol {
            ipv4::ICMP => icmp_kind(payload).map(Proto::Icmp)?,
            _ => return None,
        };
        let local = self.addresses.contains(&header.dst);
        let wants = |listen: &Listen| match listen {
            Listen::Local(p) => local && *p == proto,
            Listen::Transit(p, prefix) => *p == proto && prefix.contains(header.dst),
        };
        let index = self.roles.iter().position(|role| role.listens().iter().any(wants))?;
        Some(RoleId(index as u8))
    }

    fn timeout(&mut self, now: Instant, out: &mut Outbox) {
        for index in 0..self.roles.len() {
            let due = self.roles.get(index).and_then(|role| role.deadline());
            if due.is_some_and(|due| due <= now) {
                self.give(now, RoleId(index as u8), Input::Timeout, out);
            }
        }
        while let Some((owner, key, used)) = self.rules.pop_idle(now) {
            self.give(now, owner, Input::Idle(key, used), out);
        }
    }

    fn link(&mut self, now: Instant, iface: Iface, link: Link<'_>, out: &mut Outbox) {
        if let Link::Up { mac, .. } = link {
            self.ifaces.retain(|(other, _)| *other != iface);
            self.ifaces.reserve_exact(usize::from(self.ifaces.is_empty()));
            self.ifaces.push((iface, mac));
        }
        self.tell_all(now, &Input::Link(iface, link), out);
    }

    fn command(&mut self, now: Instant, id: CommandId, command: &Command, out: &mut Outbox) {
        if command.verb == "status" {
            return out.act(RoleId::NODE, Act::Answer(id, Ok(self.status())));
        }
        match self.roles.iter().position(|role| role.verbs().contains(&command.verb.as_str())) {
            Some(index) => self.give(now, RoleId(index as u8), Input::Command(id, command), out),
            None => {
                let verbs = self.roles.iter().flat_map(|role| role.verbs()).copied();
                let known: Vec<&str> = std::iter::once("status").chain(verbs).collect();
                let error =
                    format!("no role of this host knows `{}`; known: {}", command.verb, known.join(", "));
                out.act(RoleId::NODE, Act::Answer(id, Err(error)));
            }
        }
    }

    fn stream(&mut self, now: Instant, id: StreamId, event: StreamEvent<'_>, out: &mut Outbox) {
        let Some(user) = self.user_of(id) else { return };
        if let StreamEvent::Accepted(new, ..) = event {
            self.accepted.insert(new, user);
        }
        let local = if id.0 >= StreamId::DRIVER { id } else { StreamId(id.0 & 0xffff) };
        self.give(now, user, Input::Stream(local, event), out);
        if matches!(event, StreamEvent::Closed(_)) {
            self.accepted.remove(&id);
        }
    }

    fn user_of(&self, id: StreamId) -> Option<RoleId> {
        if id.0 >= StreamId::DRIVER {
            return self.accepted.get(&id).copied();
        }
        (id.0 >> 16).checked_sub(1).map(|index| RoleId(index as u8))
    }

    fn tell_all(&mut self, now: Instant, input: &Input<'_>, out: &mut Outbox) {
        for index in 0..self.roles.len() {
            self.give(now, RoleId(index as u8), input.clone(), out);
        }
    }

    fn give(&mut self, now: Instant, id: RoleId, input: Input<'_>, out: &mut Outbox) {
        if let Some(role) = self.roles.get_mut(usize::from(id.0)) {
            out.speak_for(id);
            role.handle(now, input, out);
        }
    }

    /// Resolves what roles asked for, until all is quiet.
    fn settle(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..EFFECTS_PER_STEP {
            let Some((role, effect)) = out.next_effect() else { return };
            match effect {
                Effect::Send(Some(iface), packet) => self.transmit(iface, packet, out),
                Effect::Send(None, packet) => self.send_routed(now, packet, out),
                Effect::Discard(iface, packet, reason) => out.act(role, Act::Drop(iface, packet, reason)),
                Effect::Stream(id, op) => {
                    let own = StreamId(id.0 & 0xffff | (u32::from(role.0) + 1) << 16);
                    out.act(role, Act::Stream(if id.0 >= StreamId::DRIVER { id } else { own }, op));
                }
                Effect::Do(act) => {
                    match &act {
                        Act::Route(key, route) => self.rules.set_route(now, role, *key, *route),
                        Act::Gate(port, gate) => self.rules.set_gate(role, *port, *gate),
                        _ => {}
                    }
                    out.act(role, act);
                }
            }
        }
        debug_assert!(out.next_effect().is_none(), "roles do not come to rest");
    }

    fn send_routed(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        match Header::parse(&packet.bytes) {
            Ok((header, _)) => {
                self.forward(now, Port { iface: Iface::HOST, from: None }, &header, packet, out);
            }
            Err(malformed) => drop(out, Iface::HOST, packet, malformed.into()),
        }
    }
}

fn drop(out: &mut Outbox, iface: Iface, packet: Packet, reason: wire::Reason) {
    out.act(RoleId::NODE, Act::Drop(iface, packet, reason));
}

/// The type of an ICMP message, whole or not: a role that listens refuses what is malformed, and says why.
fn icmp_kind(payload: &[u8]) -> Option<u8> {
    payload.get(..icmp::HEADER)?.first().copied()
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
