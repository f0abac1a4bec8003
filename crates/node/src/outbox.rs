//! Where effects go: one queue per driver, in the order asked.

use crate::{Act, CommandId, Effect, Gate, Key, Mark, Port, RoleId, Route, StreamId, StreamOp, Value};
use std::collections::VecDeque;
use wire::{Cell, Iface, Packet, Reason};

/// The effects of a step, in the order asked. The driver owns it, so that none can be forgotten and a node carries no
/// scratch of its own.
#[derive(Debug)]
pub struct Outbox {
    acts: VecDeque<(RoleId, Act)>,
    asks: VecDeque<(RoleId, Effect)>,
    /// On whose behalf effects are pushed now.
    role: RoleId,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { acts: VecDeque::new(), asks: VecDeque::new(), role: RoleId::NODE }
    }
}

impl Outbox {
    /// Takes the next act that a driver is to carry out, and who asked for it.
    pub fn next_act(&mut self) -> Option<(RoleId, Act)> {
        self.acts.pop_front()
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

    /// Asks for an operation on a stream.
    pub fn stream(&mut self, id: StreamId, op: StreamOp) {
        self.ask(Effect::Stream(id, op));
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

    fn ask(&mut self, effect: Effect) {
        self.asks.push_back((self.role, effect));
    }

    pub(crate) const fn speak_for(&mut self, role: RoleId) {
        self.role = role;
    }

    pub(crate) fn act(&mut self, role: RoleId, act: Act) {
        self.acts.push_back((role, act));
    }

    pub(crate) fn next_effect(&mut self) -> Option<(RoleId, Effect)> {
        self.asks.pop_front()
    }
}
