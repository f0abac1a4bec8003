//! Where effects go: one queue per driver, in the order asked.

use crate::node::reason;
use crate::stream::Told;
use crate::{
    Act, CommandId, Effect, Gate, Key, Mark, Neighbor, News, Port, RoleId, Route, Rx, StreamId, StreamOp,
    Value,
};
use std::collections::VecDeque;
use wire::{Cell, Iface, InterfaceAddress, Ipv4Addr, Packet, PacketId, Reason};

/// The effects of a step, in the order asked. The driver owns it, so that none can be forgotten and a node carries no
/// scratch of its own.
#[derive(Debug)]
pub struct Outbox {
    acts: VecDeque<(RoleId, Act)>,
    asks: VecDeque<(RoleId, Effect)>,
    /// On whose behalf effects are pushed now.
    role: RoleId,
    /// Whether a record has to be durable before anything else that was asked for is resolved.
    barred: bool,
    /// The most that was in here at one time.
    peak: usize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { acts: VecDeque::new(), asks: VecDeque::new(), role: RoleId::NODE, barred: false, peak: 0 }
    }
}

impl Outbox {
    /// Takes the next act that a driver is to carry out, and who asked for it.
    pub fn next_act(&mut self) -> Option<(RoleId, Act)> {
        self.acts.pop_front()
    }

    /// Takes back what a role has asked for behind a record that could not be stored: packets are dropped, commands
    /// answered with the error, all else is as if it had never been asked for. For drivers, before [`crate::Node::resume`].
    pub fn withdraw(&mut self, role: RoleId, why: &str) {
        for (by, effect) in std::mem::take(&mut self.asks) {
            match effect {
                effect if by != role => self.asks.push_back((by, effect)),
                Effect::Discard(..) | Effect::Pass(..) => self.asks.push_back((by, effect)),
                // A packet that never left was never there.
                Effect::Send(iface, packet) if packet.id != PacketId::NEW => {
                    self.act(by, Act::Drop(iface.unwrap_or(Iface::HOST), packet, reason::NOT_STORED));
                }
                Effect::Do(Act::Visit(iface, _, packet)) if packet.id != PacketId::NEW => {
                    self.act(by, Act::Drop(iface, packet, reason::NOT_STORED));
                }
                Effect::Do(Act::Answer(id, _)) => {
                    self.act(by, Act::Answer(id, Err(format!("not stored: {why}"))));
                }
                Effect::Send(..)
                | Effect::Stream(..)
                | Effect::Served(_)
                | Effect::Tell(_)
                | Effect::Do(_) => {}
            }
        }
    }

    /// Sends a packet out by an interface, addressed as it is.
    pub fn send(&mut self, iface: Iface, packet: Packet) {
        self.ask(Effect::Send(Some(iface), packet));
    }

    /// Sends a packet as this host's table decides.
    pub fn send_routed(&mut self, packet: Packet) {
        self.ask(Effect::Send(None, packet));
    }

    /// Ends a packet's journey.
    pub fn discard(&mut self, iface: Iface, packet: Packet, reason: Reason) {
        self.ask(Effect::Discard(iface, packet, reason));
    }

    /// Passes a packet on, as it was received.
    pub fn pass(&mut self, rx: Rx, packet: Packet) {
        self.ask(Effect::Pass(rx, packet));
    }

    /// Asks for an operation on a stream.
    pub fn stream(&mut self, id: StreamId, op: StreamOp) {
        self.ask(Effect::Stream(id, op));
    }

    /// Tells the user of a stream that this role provides.
    pub fn served(&mut self, told: Told) {
        self.ask(Effect::Served(told));
    }

    /// Tells the other roles of this node.
    pub fn tell(&mut self, news: News) {
        self.ask(Effect::Tell(news));
    }

    /// Sets or removes a route.
    pub fn route(&mut self, key: Key, route: impl Into<Option<Route>>) {
        self.ask(Effect::Do(Act::Route(key, route.into())));
    }

    /// Sets or removes a gate.
    pub fn gate(&mut self, port: Port, gate: impl Into<Option<Gate>>) {
        self.ask(Effect::Do(Act::Gate(port, gate.into())));
    }

    /// Points a radio at a cell.
    pub fn tune(&mut self, iface: Iface, cell: Cell) {
        self.ask(Effect::Do(Act::Tune(iface, cell)));
    }

    /// Sends one packet in another cell.
    pub fn visit(&mut self, iface: Iface, cell: Cell, packet: Packet) {
        self.ask(Effect::Do(Act::Visit(iface, cell, packet)));
    }

    /// Sets or removes how ARP about an address is met.
    pub fn neighbor(&mut self, iface: Iface, address: Ipv4Addr, neighbor: impl Into<Option<Neighbor>>) {
        self.ask(Effect::Do(Act::Neighbor(iface, address, neighbor.into())));
    }

    /// Gives an interface an address.
    pub fn add_address(&mut self, iface: Iface, address: InterfaceAddress) {
        self.ask(Effect::Do(Act::Address(iface, address, true)));
    }

    /// Takes an address from an interface.
    pub fn remove_address(&mut self, iface: Iface, address: InterfaceAddress) {
        self.ask(Effect::Do(Act::Address(iface, address, false)));
    }

    /// Keeps a record, or removes it. What the role asks for after this waits until it is durable.
    pub fn store(&mut self, key: Vec<u8>, value: impl Into<Option<Vec<u8>>>) {
        self.ask(Effect::Do(Act::Store(key, value.into())));
    }

    /// Leaves a mark.
    pub fn mark(&mut self, mark: Mark) {
        self.ask(Effect::Do(Act::Mark(mark)));
    }

    /// Answers a command.
    pub fn answer(&mut self, id: CommandId, answer: Result<Value, String>) {
        self.ask(Effect::Do(Act::Answer(id, answer)));
    }

    /// Takes the effects that a role asked for: for who drives a role without a node, as the laws do.
    pub fn drain_effects(&mut self) -> impl Iterator<Item = Effect> {
        self.asks.drain(..).map(|(_, effect)| effect)
    }

    /// The most effects and acts that were in here at one time: how far roles ran ahead of who carries out.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    fn measure(&mut self) {
        self.peak = self.peak.max(self.acts.len() + self.asks.len());
    }

    fn ask(&mut self, effect: Effect) {
        self.asks.push_back((self.role, effect));
        self.measure();
    }

    pub(crate) const fn speak_for(&mut self, role: RoleId) {
        self.role = role;
    }

    /// Records that follow each other are made durable together; what comes behind them waits.
    pub(crate) fn act(&mut self, by: RoleId, act: Act) {
        let is_store = matches!(act, Act::Store(..));
        self.barred |= is_store && !matches!(self.asks.front(), Some((_, Effect::Do(Act::Store(..)))));
        self.acts.push_back((by, act));
        self.measure();
    }

    /// The next effect to resolve; none while records wait to be durable.
    pub(crate) fn next_effect(&mut self) -> Option<(RoleId, Effect)> {
        if self.barred { None } else { self.asks.pop_front() }
    }

    /// The records are durable, or were withdrawn. Says whether anything waited for that.
    pub(crate) fn lift(&mut self) -> bool {
        std::mem::take(&mut self.barred)
    }
}
