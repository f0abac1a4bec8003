//! Where effects go: one queue per driver, in the order asked.

use crate::stream::Told;
use crate::{
    Act, CommandId, Effect, Gate, Key, Mark, Neighbor, News, Port, RoleId, Route, Rx, StreamId, StreamOp,
    Value,
};
use std::collections::VecDeque;
use wire::{Cell, Iface, InterfaceAddress, Ipv4Addr, Packet, Reason};

/// The effects of a step, in the order asked. The driver owns it, so that none can be forgotten and a node carries no
/// scratch of its own.
#[derive(Debug)]
pub struct Outbox {
    acts: VecDeque<(RoleId, Act)>,
    /// Who asked, and in which step: one input to one role.
    asks: VecDeque<(RoleId, u32, Effect)>,
    /// On whose behalf effects are pushed now.
    role: RoleId,
    /// The number of this step.
    step: u32,
    /// The most that was in here at one time.
    peak: usize,
    /// The role whose effects did not end within one step.
    runaway: Option<RoleId>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            acts: VecDeque::new(),
            asks: VecDeque::new(),
            role: RoleId::NODE,
            step: 0,
            peak: 0,
            runaway: None,
        }
    }
}

impl Outbox {
    /// The next act, and who asked for it: for who wants to look before it is taken.
    pub fn first_act(&self) -> Option<(RoleId, &Act)> {
        self.acts.front().map(|(role, act)| (*role, act))
    }

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

    /// Keeps a record, or removes it. What the role asks for after this in the same step waits until it is durable; then
    /// the role hears [`crate::Input::Stored`], or else [`crate::Input::Failed`].
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
        self.asks.drain(..).map(|(_, _, effect)| effect)
    }

    /// The most effects and acts that were in here at one time: how far roles ran ahead of who carries out.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// Takes the role whose effects caused further effects without end, if one did in the last step. What it had asked
    /// for is gone; a driver must not run this node any further.
    pub const fn take_runaway(&mut self) -> Option<RoleId> {
        self.runaway.take()
    }

    /// Ends a step that does not end by itself. Effects that are left would otherwise be resolved by the next node that
    /// uses this outbox, as if its own roles had asked for them.
    pub(crate) fn stop_runaway(&mut self) {
        self.runaway = self.asks.front().map(|(role, ..)| *role);
        self.asks.clear();
    }

    fn measure(&mut self) {
        self.peak = self.peak.max(self.acts.len() + self.asks.len());
    }

    fn ask(&mut self, effect: Effect) {
        self.asks.push_back((self.role, self.step, effect));
        self.measure();
    }

    pub(crate) const fn speak_for(&mut self, role: RoleId) {
        self.role = role;
        self.step = self.step.wrapping_add(1);
    }

    pub(crate) fn act(&mut self, by: RoleId, act: Act) {
        self.acts.push_back((by, act));
        self.measure();
    }

    /// Whether anything is left to be resolved.
    pub(crate) fn has_effects(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The next effect to resolve.
    pub(crate) fn next_effect(&mut self) -> Option<(RoleId, u32, Effect)> {
        self.asks.pop_front()
    }

    /// Whether a driver has not seen all records yet.
    pub(crate) fn has_records(&self) -> bool {
        self.acts.iter().any(|(_, act)| matches!(act, Act::Store(..)))
    }
}
