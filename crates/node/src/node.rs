//! A node: the roles of one host and its forwarding table. Drivers call the node, and never a role.

pub(crate) mod data_path;
pub(crate) mod entries;
mod errors;
pub(crate) mod forward;
pub(crate) mod neighbor;
pub(crate) mod notices;
pub(crate) mod reassembly;
pub(crate) mod store_barrier;
pub(crate) mod streams;
mod tunnel_end;

use crate::input::{Boot, Command, CommandId, FailedAct, Fault, Input, Listen, Notification, Rx};
use crate::listen::Traffic;
use crate::node::neighbor::{Interface, Net};
use crate::node::streams::Streams;
use crate::{Act, Effect, Outbox, Ruleset, Transport, Tuple, Value, reason};
use std::collections::BTreeSet;
use std::fmt::Debug;
use table::{Port, PuntReason, RoleId, Route};
use wire::ipv4::Header;
use wire::{EtherType, Iface, Instant, Ipv4Addr, Mac, Packet, PacketId};

/// One protocol role of one host: a base station, a mobile host, a workload.
///
/// A role has no sockets, no clock, and no random numbers except from its [`Rng`](wire::Rng). The documentation of the
/// crate has the laws that each role keeps.
pub trait Role: Debug + Send {
    /// Returns the name of the role in records and reports.
    fn name(&self) -> &'static str;

    /// Returns the traffic for which the role listens.
    fn listens(&self) -> &[Listen] {
        &[]
    }

    /// Returns the TCP connections that the role intercepts. The role receives segments to the `local` end, and ICMP
    /// errors about segments from the `local` end. `local` may be the address of any host: the packets are taken in
    /// transit, or when they come out of a tunnel. If the role declines a segment out of a tunnel, the segment goes to
    /// the host's own stack only.
    fn intercepts(&self) -> &BTreeSet<Tuple> {
        static NONE: BTreeSet<Tuple> = BTreeSet::new();
        &NONE
    }

    /// Returns the names of the commands that the role executes.
    fn verbs(&self) -> &[&'static str] {
        &[]
    }

    /// Returns the transports that the role provides to the roles of its node, and to programs by the driver. Each is a
    /// [`crate::Transport::Role`]. If several roles provide the same transport, the first of these roles is used.
    fn serves(&self) -> &[Transport] {
        &[]
    }

    /// Returns the source address of ICMP errors for a node that has no address, or `None` if the role has no such
    /// address.
    fn reporter(&self) -> Option<Ipv4Addr> {
        None
    }

    /// Processes one input. This is the only function that changes the role's state.
    fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox);

    /// Returns when [`Input::Timeout`] is due, or `None` if no timer is set. The call changes nothing.
    fn deadline(&self) -> Option<Instant>;

    /// Returns the state of the role for an operator. The call changes nothing.
    fn status(&self) -> Value;

    /// Returns the maximum number of bytes of packets that a data path beside the node may keep for the role
    /// ([`table::Aside`]). By default, 0.
    fn room_aside(&self) -> usize {
        0
    }

    /// Returns of how many pairs of source and destination the role is notified at most in one interval ([`table::Route::notice`]).
    fn most_notices(&self) -> usize {
        notices::USUAL
    }

    /// Calls `each` with the identity of each packet that the role holds, for the ledger and for law 6. By default, a
    /// role holds no packet.
    fn holds(&self, _each: &mut dyn FnMut(PacketId)) {}

    /// Returns the number of entries that the role holds for mobile hosts, and that plain IP does not need
    /// (docs/glossary.md, state). By default, 0. The call may look at each mobile host.
    fn entries(&self) -> usize {
        0
    }
}

/// The roles of one host and its forwarding table.
#[derive(Debug)]
pub struct Node {
    pub(crate) roles: Vec<Box<dyn Role>>,
    pub(crate) rules: Ruleset,
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// The interfaces that came up, sorted by number.
    pub(crate) ifaces: Vec<Interface>,
    /// `None` until the node has an interface address, an ARP setting or a record, or sends an ICMP error. A million
    /// idle hosts have none.
    pub(crate) net: Option<Box<Net>>,
    pub(crate) streams: Streams,
}

/// The largest number of effects of one input. A node with more counts as being in an endless loop.
const EFFECTS_PER_STEP: usize = 100_000;

impl Node {
    /// Returns a node with these roles and these addresses of the host. Packets are offered to the roles in this order.
    pub fn new(roles: Vec<Box<dyn Role>>, addresses: Vec<Ipv4Addr>) -> Self {
        let (rules, ifaces, streams) = (Ruleset::default(), Vec::new(), Streams::default());
        Self { roles, rules, addresses, ifaces, net: None, streams }
    }

    /// Sets a route that no role owns, from the configuration.
    pub fn set_route(&mut self, now: Instant, key: table::RouteKey, route: Route) {
        self.rules.set_route(now, RoleId::NODE, key, Some(route));
    }

    /// Returns whether an address belongs to this host.
    pub fn has_address(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address)
    }

    /// Returns when [`Input::Timeout`] is due, or `None` if no timer is set. The instant may be too early, never too
    /// late.
    pub fn deadline(&self) -> Option<Instant> {
        let net = self.net.as_ref();
        let net = net.and_then(|net| Instant::sooner(net.arp.deadline(), net.fragments.deadline()));
        let own = Instant::sooner(self.rules.next_deadline(), net);
        self.roles.iter().fold(own, |first, role| Instant::sooner(first, role.deadline()))
    }

    /// Returns the first role whose deadline is at `now` or before, or `None` if there is no such role. So a driver can
    /// name a role that breaks law 2 of this crate.
    pub fn overdue(&self, now: Instant) -> Option<RoleId> {
        let mut deadlines = self.roles.iter().map(|role| role.deadline());
        let index = deadlines.position(|deadline| deadline.is_some_and(|due| due <= now))?;
        Some(RoleId(index as u8))
    }

    /// Calls `each` with the identity of each packet that a role holds, or that waits for a neighbor, for a record, or for
    /// the other fragments of its datagram.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        if let Some(net) = &self.net {
            net.arp.holds(each);
            net.fragments.holds(&mut |(_, packet)| each(*packet));
        }
        self.holds_for_records(each);
        for role in &self.roles {
            role.holds(each);
        }
    }

    /// Returns the status of each role, by name.
    pub fn status(&self) -> Value {
        Value::Map(self.roles.iter().map(|role| (role.name().to_owned(), role.status())).collect())
    }

    /// Returns the name of a role of this node; `node` for the node itself.
    pub fn role_name(&self, role: RoleId) -> &'static str {
        self.roles.get(usize::from(role.0)).map_or("node", |role| role.name())
    }

    /// Processes a received packet. A packet from [`Iface::HOST`] was sent by this host.
    pub fn receive(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        out.begin(now);
        self.admit(now, iface, packet, out);
        self.settle(now, out);
    }

    /// Processes one input. Ignores [`Input::Stored`], [`Input::Notification`] and [`Input::Notice`], which come only from
    /// the node itself.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox) {
        out.begin(now);
        match input {
            Input::Timeout => self.timeout(now, out),
            Input::Packet(rx, packet) => self.admit(now, rx.iface, packet, out),
            Input::Link(iface, link) => self.link(now, iface, link, out),
            Input::Stream(id, event) => self.stream(now, id, event, out),
            Input::Command(id, command) => self.command(now, id, command, out),
            Input::Start(boot) => self.start(now, boot, out),
            Input::Failed(fault) => self.failed(now, fault, out),
            Input::Idle(..) | Input::Wall(_) => self.notify_all(now, &input, out),
            // A driver can request streams of roles. A driver reports durable records by `resume`, not by an input.
            // Only roles send notifications, and only the node sends notices.
            Input::Serve(id, op) => self.operate(now, RoleId::NODE, id, op, out),
            Input::Stored(_) | Input::Notification(_) | Input::Notice(_) => {}
        }
        self.settle(now, out);
    }

    fn admit(&mut self, now: Instant, iface: Iface, packet: Packet, out: &mut Outbox) {
        if packet.link.kind == EtherType::ARP && self.hears_arp(iface) {
            return self.hear_arp(now, iface, packet, out);
        }
        if packet.link.kind != EtherType::IPV4 {
            return drop(out, iface, packet, reason::ETHERTYPE);
        }
        if iface != Iface::HOST && !self.is_for_us(iface, packet.link.dst) {
            return drop(out, iface, packet, reason::OTHER_STATION);
        }
        let (header, payload) = match Header::parse(&packet.bytes) {
            Ok(parsed) => parsed,
            Err(malformed) => return drop(out, iface, packet, malformed.into()),
        };
        if iface == Iface::HOST {
            return self.forward(now, Port { iface, from: None }, &header, packet, out);
        }
        if self.reassembles(&header) {
            if let Some(whole) = self.reassemble(now, iface, packet, out) {
                self.admit(now, iface, whole, out);
            }
            return;
        }
        match self.listener(iface, &header, payload, 0) {
            Some(role) => {
                self.give(now, role, Input::Packet(Rx::new(iface, PuntReason::Listen, header), packet), out);
            }
            None => self.unheard(now, iface, &header, packet, out),
        }
    }

    /// Handles a packet from a link for which no role listens. A packet to a group, or a broadcast of the link, is
    /// dropped, unless its destination is an address of this host. There is no multicast routing, and each station of
    /// the link would forward a copy of a broadcast (RFC 1812, section 5.3.4).
    fn unheard(&mut self, now: Instant, iface: Iface, header: &Header, packet: Packet, out: &mut Outbox) {
        let is_own = self.addresses.contains(&header.dst);
        if !is_own && (packet.link.dst.is_group() || self.is_for_many(iface, header.dst)) {
            return drop(out, iface, packet, reason::NO_LISTENER);
        }
        let port = Port { iface, from: Some(packet.link.src) };
        self.forward(now, port, header, packet, out);
    }

    /// Handles a packet that a role received and declined.
    fn pass(&mut self, now: Instant, role: RoleId, rx: Rx, packet: Packet, out: &mut Outbox) {
        let (header, payload) = (rx.header, rx.payload(&packet));
        if rx.why != PuntReason::Listen || rx.tunnel.is_some() {
            return self.give_to_host(now, rx.iface, &header, packet, out);
        }
        match self.listener(rx.iface, &header, payload, usize::from(role.0) + 1) {
            Some(next) => self.give(now, next, Input::Packet(rx, packet), out),
            None if rx.iface == Iface::HOST => self.give_to_host(now, rx.iface, &header, packet, out),
            None => self.unheard(now, rx.iface, &header, packet, out),
        }
    }

    fn is_for_us(&self, iface: Iface, dst: Mac) -> bool {
        dst.is_group() || Interface::find(&self.ifaces, iface).is_some_and(|own| own.mac == dst)
    }

    /// Returns the first role, from index `from` on, that listens for this packet or intercepts its connection. On most
    /// hosts no role listens, so the packet is classified only if one does.
    pub(crate) fn listener(
        &self,
        iface: Iface,
        header: &Header,
        payload: &[u8],
        from: usize,
    ) -> Option<RoleId> {
        let wants_some = |role: &dyn Role| !role.listens().is_empty() || !role.intercepts().is_empty();
        let first = self.roles.iter().skip(from).position(|role| wants_some(&**role))?;
        self.listener_of(iface, header, Traffic::of(header, payload), from + first)
    }

    fn listener_of(&self, iface: Iface, header: &Header, traffic: Traffic, from: usize) -> Option<RoleId> {
        let local = self.addresses.contains(&header.dst);
        let wants = |listen: &Listen| traffic.is_wanted(listen, iface, header, local);
        let connection = traffic.connection(header);
        let is_for = |role: &dyn Role| {
            role.listens().iter().any(wants) || connection.is_some_and(|it| role.intercepts().contains(&it))
        };
        let mut roles = self.roles.iter().enumerate().skip(from);
        let (index, _) = roles.find(|(_, role)| is_for(&***role))?;
        Some(RoleId(index as u8))
    }

    /// Returns the role that intercepts the TCP connection of a packet, from whichever interface or tunnel the packet
    /// came.
    pub(crate) fn interceptor(&self, header: &Header, payload: &[u8]) -> Option<RoleId> {
        let is_intercepted = self.roles.iter().any(|role| !role.intercepts().is_empty());
        let connection = is_intercepted.then(|| Traffic::of(header, payload).connection(header))??;
        let index = self.roles.iter().position(|role| role.intercepts().contains(&connection))?;
        Some(RoleId(index as u8))
    }

    /// Starts each role, with the records that the role has stored.
    fn start(&mut self, now: Instant, boot: &Boot, out: &mut Outbox) {
        for index in 0..self.roles.len() {
            let id = RoleId(index as u8);
            let scope = self.scope(id);
            let own = boot.stored.iter().filter_map(|(key, value)| {
                Some((key.strip_prefix(scope.as_slice())?.to_vec(), value.clone()))
            });
            let own = Boot { stored: own.collect(), ..*boot };
            self.give(now, id, Input::Start(&own), out);
        }
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
        self.seek_neighbors(now, out);
        self.time_out_fragments(now, out);
    }

    /// Notifies a role of a failed act. An address that the host's own stack refused is removed from the node:
    /// otherwise the node would take packets that nothing receives.
    fn failed(&mut self, now: Instant, fault: &Fault, out: &mut Outbox) {
        if let FailedAct::Address(iface, address, true) = fault.act {
            self.remove_address(now, iface, address);
        }
        self.give(now, fault.role, Input::Failed(fault), out);
    }

    /// Returns whether the node or one of its roles has this command.
    pub fn has_command(&self, verb: &str) -> bool {
        verb == "status" || self.role_with(verb).is_some()
    }

    /// Returns the index of the first role that has this command; `None` if no role has it.
    fn role_with(&self, verb: &str) -> Option<usize> {
        self.roles.iter().position(|role| role.verbs().contains(&verb))
    }

    fn command(&mut self, now: Instant, id: CommandId, command: &Command, out: &mut Outbox) {
        if command.verb == "status" {
            return out.act(RoleId::NODE, Act::Answer(id, Ok(self.status())));
        }
        match self.role_with(&command.verb) {
            Some(index) => self.give(now, RoleId(index as u8), Input::Command(id, command), out),
            None => {
                let verbs = self.roles.iter().flat_map(|role| role.verbs());
                let (verb, known) = (&command.verb, verbs.fold("status".to_owned(), |a, b| a + ", " + b));
                let error = format!("no role of this host has the command `{verb}`; known: {known}");
                out.act(RoleId::NODE, Act::Answer(id, Err(error)));
            }
        }
    }

    pub(crate) fn notify_all(&mut self, now: Instant, input: &Input<'_>, out: &mut Outbox) {
        for index in 0..self.roles.len() {
            self.give(now, RoleId(index as u8), input.clone(), out);
        }
    }

    fn notify_others(&mut self, now: Instant, by: RoleId, notification: Notification, out: &mut Outbox) {
        for index in (0..self.roles.len()).filter(|index| *index != usize::from(by.0)) {
            self.give(now, RoleId(index as u8), Input::Notification(&notification), out);
        }
    }

    pub(crate) fn give(&mut self, now: Instant, id: RoleId, input: Input<'_>, out: &mut Outbox) {
        if let Some(role) = self.roles.get_mut(usize::from(id.0)) {
            out.set_current_role(id);
            role.handle(now, input, out);
        }
    }

    /// Resolves the effects of roles, except the effects that wait for a record.
    pub(crate) fn settle(&mut self, now: Instant, out: &mut Outbox) {
        if out.has_effects() {
            self.resolve_all(now, out);
        }
        self.record_entries(out);
        debug_assert!(self.rules.is_mirrored(), "the mirror and the rules have different numbers of entries");
    }

    /// Resolves effects. The function is separate and not inlined, so that `settle` is fast for forwarded packets,
    /// which cause no effects.
    #[inline(never)]
    fn resolve_all(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..EFFECTS_PER_STEP {
            let Some((role, step, effect)) = out.next_effect() else { return self.end_step() };
            if self.concerns_records(&effect) {
                self.resolve_or_hold(now, role, step, effect, out);
            } else {
                self.resolve(now, role, effect, out);
            }
        }
        out.stop_runaway();
    }

    pub(crate) fn resolve(&mut self, now: Instant, role: RoleId, effect: Effect, out: &mut Outbox) {
        match effect {
            Effect::Send(Some(iface), packet) => self.send_by(now, iface, packet, out),
            Effect::Send(None, packet) => self.send_routed(now, packet, out),
            Effect::Pass(rx, packet) => self.pass(now, role, rx, packet, out),
            Effect::Discard(iface, packet, reason) => out.act(role, Act::Drop(iface, packet, reason)),
            Effect::Stream(id, op) => self.operate(now, role, id, op, out),
            Effect::Served(event) => self.served(now, role, &event, out),
            Effect::Notify(notification) => self.notify_others(now, role, notification, out),
            Effect::Do(act) => {
                self.apply(now, role, &act);
                out.act(role, act);
            }
        }
    }
}

pub(crate) fn drop(out: &mut Outbox, iface: Iface, packet: Packet, reason: wire::Reason) {
    out.act(RoleId::NODE, Act::Drop(iface, packet, reason));
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
