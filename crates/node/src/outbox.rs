//! The queues of effects and of acts between nodes and their driver.

use crate::stream::OwnedStreamEvent;
use crate::{
    Act, CommandId, Effect, IngressPolicy, Mark, Neighbor, Notification, Port, RoleId, Route, RouteKey, Rx,
    StreamId, StreamOp, Value,
};
use std::collections::VecDeque;
use wire::{Cell, Iface, Instant, InterfaceAddress, Ipv4Addr, Packet, Reason};

/// The effects that a node has not resolved, and the acts that the driver has not taken, each in the order requested.
/// The driver owns both queues, so that a node needs no buffer.
#[derive(Debug)]
pub struct Outbox {
    acts: VecDeque<(RoleId, Act)>,
    /// The effects that are not resolved yet, each with its role and the number of its step. A step is one input to one
    /// role.
    asks: VecDeque<(RoleId, u32, Effect)>,
    /// The role whose effects are added now.
    role: RoleId,
    /// The number of the current step.
    step: u32,
    /// The largest number of effects and acts in the queues at one time.
    peak: usize,
    /// The role of the first effect beyond the limit of one input.
    runaway: Option<RoleId>,
    /// The time of the last call of a node.
    now: Instant,
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
            now: Instant::ZERO,
        }
    }
}

impl Outbox {
    /// Returns the next act and the role that requested the act, or `None` if there is no act. The act stays in the
    /// queue.
    pub fn first_act(&self) -> Option<(RoleId, &Act)> {
        self.acts.front().map(|(role, act)| (*role, act))
    }

    /// Takes the next act, and returns it with the role that requested it. Returns `None` if there is no act.
    pub fn next_act(&mut self) -> Option<(RoleId, Act)> {
        self.acts.pop_front()
    }

    /// Sends a packet by an interface, to the link address in the packet's header ([`Effect::Send`]).
    pub fn send(&mut self, iface: Iface, packet: Packet) {
        self.ask(Effect::Send(Some(iface), packet));
    }

    /// Sends a packet as the table of this host decides.
    pub fn send_routed(&mut self, packet: Packet) {
        self.ask(Effect::Send(None, packet));
    }

    /// Drops a packet that arrived on `iface`, for this reason.
    pub fn discard(&mut self, iface: Iface, packet: Packet, reason: Reason) {
        self.ask(Effect::Discard(iface, packet, reason));
    }

    /// Declines a packet; the node handles it as [`Effect::Pass`] describes.
    pub fn pass(&mut self, rx: Rx, packet: Packet) {
        self.ask(Effect::Pass(rx, packet));
    }

    /// Requests an operation on a stream.
    pub fn stream(&mut self, id: StreamId, op: StreamOp) {
        self.ask(Effect::Stream(id, op));
    }

    /// Notifies the user of a stream that this role provides.
    pub fn served(&mut self, event: OwnedStreamEvent) {
        self.ask(Effect::Served(event));
    }

    /// Notifies the other roles of this node.
    pub fn notify(&mut self, notification: Notification) {
        self.ask(Effect::Notify(notification));
    }

    /// Sets or removes (`None`) a route.
    pub fn route(&mut self, key: RouteKey, route: impl Into<Option<Route>>) {
        self.ask(Effect::Do(Act::Route(key, route.into())));
    }

    /// Sets or removes (`None`) the ingress policy of a port.
    pub fn ingress_policy(&mut self, port: Port, policy: impl Into<Option<IngressPolicy>>) {
        self.ask(Effect::Do(Act::IngressPolicy(port, policy.into())));
    }

    /// Requests that the radio of an interface tunes to a cell.
    pub fn tune(&mut self, iface: Iface, cell: Cell) {
        self.ask(Effect::Do(Act::Tune(iface, cell)));
    }

    /// Sends one packet in another cell, after which the radio tunes back ([`Act::SendInCell`]).
    pub fn send_in_cell(&mut self, iface: Iface, cell: Cell, packet: Packet) {
        self.ask(Effect::Do(Act::SendInCell(iface, cell, packet)));
    }

    /// Sets or removes (`None`) how this host treats ARP for an address on an interface.
    pub fn neighbor(&mut self, iface: Iface, address: Ipv4Addr, neighbor: impl Into<Option<Neighbor>>) {
        self.ask(Effect::Do(Act::Neighbor(iface, address, neighbor.into())));
    }

    /// Adds an address to an interface.
    pub fn add_address(&mut self, iface: Iface, address: InterfaceAddress) {
        self.ask(Effect::Do(Act::Address(iface, address, true)));
    }

    /// Removes an address from an interface.
    pub fn remove_address(&mut self, iface: Iface, address: InterfaceAddress) {
        self.ask(Effect::Do(Act::Address(iface, address, false)));
    }

    /// Stores a record, or removes it (`None`). What the role requests later for the same input waits until the record
    /// is durable. Then the role receives [`crate::Input::Stored`], or [`crate::Input::Failed`] if the record cannot be
    /// stored.
    pub fn store(&mut self, key: Vec<u8>, value: impl Into<Option<Vec<u8>>>) {
        self.ask(Effect::Do(Act::Store(key, value.into())));
    }

    /// Records an event for measurements.
    pub fn mark(&mut self, mark: Mark) {
        self.ask(Effect::Do(Act::Mark(mark)));
    }

    /// Answers a command with a value, or with the text of an error.
    pub fn answer(&mut self, id: CommandId, answer: Result<Value, String>) {
        self.ask(Effect::Do(Act::Answer(id, answer)));
    }

    /// Takes the effects that a role requested, to test the role without a node.
    pub fn drain_effects(&mut self) -> impl Iterator<Item = Effect> {
        self.asks.drain(..).map(|(_, _, effect)| effect)
    }

    /// Returns the largest number of effects and acts that were in the queues at one time.
    pub const fn peak(&self) -> usize {
        self.peak
    }

    /// Returns, once, the role of the first effect beyond the limit of one input, or `None` if the limit was not
    /// exceeded. The effects beyond the limit were removed, and the driver must not run this node again.
    pub const fn take_runaway(&mut self) -> Option<RoleId> {
        self.runaway.take()
    }

    /// Ends an input that exceeds the limit of effects. The remaining effects must be removed: the next node that uses
    /// this outbox would resolve them as effects of its own roles.
    pub(crate) fn stop_runaway(&mut self) {
        self.runaway = self.asks.front().map(|(role, ..)| *role);
        self.asks.clear();
    }

    /// Begins a call of a node. Panics if an effect of an earlier call is left, because the effect would be resolved as
    /// an effect of this node's roles. In debug builds, also panics if time runs backwards, because timers would be
    /// wrong.
    pub(crate) fn begin(&mut self, now: Instant) {
        assert!(
            self.asks.is_empty(),
            "an effect of an earlier call is not resolved: {:?}",
            self.asks.front()
        );
        debug_assert!(self.now <= now, "time runs backwards: {now} s after {} s", self.now);
        self.now = now;
    }

    fn measure(&mut self) {
        self.peak = self.peak.max(self.acts.len() + self.asks.len());
    }

    fn ask(&mut self, effect: Effect) {
        self.asks.push_back((self.role, self.step, effect));
        self.measure();
    }

    pub(crate) const fn set_current_role(&mut self, role: RoleId) {
        self.role = role;
        self.step = self.step.wrapping_add(1);
    }

    pub(crate) fn act(&mut self, by: RoleId, act: Act) {
        self.acts.push_back((by, act));
        self.measure();
    }

    /// Returns whether any effect is not resolved yet.
    pub(crate) fn has_effects(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Takes the next effect to resolve, with its role and the number of its step.
    pub(crate) fn next_effect(&mut self) -> Option<(RoleId, u32, Effect)> {
        self.asks.pop_front()
    }

    /// Returns whether an act that stores a record still waits for the driver.
    pub(crate) fn has_records(&self) -> bool {
        self.acts.iter().any(|(_, act)| matches!(act, Act::Store(..)))
    }
}
