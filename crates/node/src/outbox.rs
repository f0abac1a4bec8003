//! Where effects go: one queue per driver, in the order asked.

use crate::node::reason;
use crate::stream::Told;
use crate::{
    Act, CommandId, Effect, Gate, Key, Mark, Neighbor, Port, RoleId, Route, Rx, StreamId, StreamOp, Value,
};
use std::collections::VecDeque;
use wire::{Cell, Iface, InterfaceAddress, Ipv4Addr, Packet, PacketId, Reason};

/// The effects of a step, in the order asked. The driver owns it, so that none can be forgotten and a node carries no
/// scratch of its own.
#[derive(Debug)]
pub struct Outbox {
    acts: VecDeque<Asked>,
    asks: VecDeque<(RoleId, Effect)>,
    /// On whose behalf effects are pushed now.
    role: RoleId,
    /// Whose effect is resolved now.
    cause: RoleId,
    /// The most that was in here at one time.
    peak: usize,
}

/// An act, and who is behind it.
#[derive(Debug)]
struct Asked {
    /// Who asked for it; the node itself for what it made of an effect.
    by: RoleId,
    /// Whose effect it comes from; the node itself for a packet that is forwarded.
    cause: RoleId,
    act: Act,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            acts: VecDeque::new(),
            asks: VecDeque::new(),
            role: RoleId::NODE,
            cause: RoleId::NODE,
            peak: 0,
        }
    }
}

impl Outbox {
    /// Takes the next act that a driver is to carry out, and who asked for it.
    pub fn next_act(&mut self) -> Option<(RoleId, Act)> {
        self.acts.pop_front().map(|asked| (asked.by, asked.act))
    }

    /// Whether the next act is a [`Act::Store`]: a driver makes those that follow each other durable together.
    pub fn next_is_store(&self) -> bool {
        matches!(self.acts.front(), Some(Asked { act: Act::Store(..), .. }))
    }

    /// Takes back what a role asked for and nobody has carried out yet, because a record of it could not be stored:
    /// packets are dropped, commands answered with the error, marks forgotten. What only mirrors the node's own state
    /// stands.
    pub fn withdraw(&mut self, role: RoleId, why: &str) {
        for asked in std::mem::take(&mut self.acts) {
            if asked.cause != role {
                self.acts.push_back(asked);
                continue;
            }
            let act = match asked.act {
                Act::Transmit(iface, packet) | Act::Visit(iface, _, packet) if packet.id != PacketId::NEW => {
                    Act::Drop(iface, packet, reason::NOT_STORED)
                }
                Act::Answer(id, _) => Act::Answer(id, Err(format!("not stored: {why}"))),
                // A packet that never left was never there.
                Act::Transmit(..) | Act::Visit(..) | Act::Store(..) | Act::Mark(_) => continue,
                act @ (Act::Drop(..)
                | Act::Route(..)
                | Act::Gate(..)
                | Act::Tune(..)
                | Act::Stream(..)
                | Act::Neighbor(..)
                | Act::Address(..)) => act,
            };
            self.acts.push_back(Asked { act, ..asked });
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

    pub(crate) fn act(&mut self, by: RoleId, act: Act) {
        self.acts.push_back(Asked { by, cause: self.cause, act });
        self.measure();
    }

    /// The next effect to resolve; what comes of it is its role's.
    pub(crate) fn next_effect(&mut self) -> Option<(RoleId, Effect)> {
        let effect = self.asks.pop_front();
        self.cause = effect.as_ref().map_or(RoleId::NODE, |(role, _)| *role);
        effect
    }
}
