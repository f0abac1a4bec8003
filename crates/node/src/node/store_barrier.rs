//! The barrier behind [`Act::Store`]: effects wait until records are durable.
//!
//! A record goes to the driver at once, so that records which collect while the disk is busy become durable with one
//! sync. What the role requests later in the same step (for the same input) is held here, unresolved. Otherwise a
//! packet that waits for ARP would be sent even if the record failed. The role continues to receive inputs. The effects
//! of later inputs wait behind the held effects of the same role, so that their order is kept. Other roles, the table
//! and ARP do not wait.

use crate::reason;
use crate::{Act, Effect, FailedAct, Fault, Input, Node, Outbox, RoleId};
use std::collections::{BTreeMap, VecDeque};
use wire::{Iface, Instant, PacketId};

/// Pending records, and the effects that wait for them.
#[derive(Debug, Default)]
pub(crate) struct StoreBarrier {
    /// The pending records: the role and the key of each, in the order requested. Drivers report on them in this order.
    under_way: VecDeque<(RoleId, Vec<u8>)>,
    /// The number of records that are durable or have failed. The first pending record has the next number.
    decided: u64,
    /// The record that was requested last: its step, and the number of the record.
    last: Option<(u32, u64)>,
    waiting: BTreeMap<RoleId, VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    effect: Effect,
    /// The number of the record that must be durable, or have failed, before the effect is resolved. The numbers never
    /// decrease from the front of a queue to its back.
    until: u64,
    /// Whether the effect is withdrawn if the record `until` cannot be stored: the same step requested the record
    /// first. Otherwise the effect only keeps its place in the order.
    is_bound: bool,
}

impl StoreBarrier {
    /// Adds a pending record.
    fn ask(&mut self, role: RoleId, step: u32, key: Vec<u8>) {
        self.under_way.push_back((role, key));
        self.last = Some((step, self.decided + self.under_way.len() as u64));
    }

    /// Keeps the effect if it must wait for a record, otherwise returns it.
    fn hold(&mut self, role: RoleId, step: u32, effect: Effect) -> Option<Effect> {
        let behind = self.last.filter(|(of, number)| *of == step && *number > self.decided);
        let before = self.waiting.get(&role).and_then(VecDeque::back);
        let until = match (behind, before) {
            (Some((_, number)), _) => number,
            (None, Some(before)) => before.until,
            (None, None) => return Some(effect),
        };
        let waiting = Waiting { effect, until, is_bound: behind.is_some() };
        self.waiting.entry(role).or_default().push_back(waiting);
        None
    }

    /// Removes the first pending record, which is durable. Returns its role and key, or `None` if none is pending.
    fn decide(&mut self) -> Option<(RoleId, Vec<u8>)> {
        let first = self.under_way.pop_front()?;
        self.decided += 1;
        Some(first)
    }

    /// Takes the next effect of this role. Returns `None` if no effect waits, or if the next effect must still wait.
    fn release(&mut self, role: RoleId) -> Option<Effect> {
        let queue = self.waiting.get_mut(&role)?;
        let decided = self.decided;
        let released = queue.pop_front_if(|waiting| waiting.until <= decided)?;
        if queue.is_empty() {
            self.waiting.remove(&role);
        }
        Some(released.effect)
    }
}

impl Node {
    /// Returns the prefix of the keys of a role's records: its name, and the number of earlier roles with the same
    /// name. So the role finds its records again when another role is added to the host.
    pub(crate) fn scope(&self, role: RoleId) -> Vec<u8> {
        let at = usize::from(role.0);
        let name = self.roles.get(at).map_or("", |role| role.name());
        let before = self.roles.iter().take(at).filter(|other| other.name() == name).count();
        let mut scope = name.as_bytes().to_vec();
        scope.extend_from_slice(&[0, before as u8]);
        scope
    }

    /// Reports that the first `durable` pending records are durable, in the order of their [`Act::Store`]. For each
    /// record, the effects that waited for it are resolved, and then its role receives [`Input::Stored`].
    pub fn resume(&mut self, now: Instant, durable: usize, out: &mut Outbox) {
        out.begin(now);
        for _ in 0..durable {
            let Some((role, key)) = self.net().records.decide() else { return };
            while let Some(effect) = self.net().records.release(role) {
                self.resolve(now, role, effect, out);
            }
            self.give(now, role, Input::Stored(&key), out);
            self.settle(now, out);
        }
    }

    /// Reports that no pending record could be stored, and why. What a role requested after such a record, for the same
    /// input, is withdrawn: packets are dropped, commands are answered with the error, and other requests are ignored.
    /// But a packet that the role discarded or declined still ends as requested. Then the roles receive
    /// [`Input::Failed`], in the order requested.
    ///
    /// A driver may call the function only when it has taken all acts. Every record that was requested before the call
    /// and is not durable has then failed.
    pub fn withdraw(&mut self, now: Instant, why: &str, out: &mut Outbox) {
        out.begin(now);
        debug_assert!(!out.has_records(), "the driver must take all acts before it withdraws the records");
        let records = &mut self.net().records;
        let failed = std::mem::take(&mut records.under_way);
        records.decided += failed.len() as u64;
        for (role, queue) in std::mem::take(&mut records.waiting) {
            for Waiting { effect, is_bound, .. } in queue {
                // A packet that the role did not keep must end, even if the record failed.
                let ends_a_packet = matches!(effect, Effect::Discard(..) | Effect::Pass(..));
                if is_bound && !ends_a_packet {
                    take_back(role, effect, why, out);
                } else {
                    self.resolve(now, role, effect, out);
                }
            }
        }
        for (role, key) in failed {
            let fault = Fault { role, act: FailedAct::Store(key), why: why.to_owned() };
            self.give(now, role, Input::Failed(&fault), out);
            self.settle(now, out);
        }
    }

    /// Returns the number of pending records.
    #[cfg(test)]
    pub(crate) fn records_under_way(&self) -> usize {
        self.net.as_ref().map_or(0, |net| net.records.under_way.len())
    }

    /// Passes a record to the driver, with the scope of the role before the key, so that keys of different roles
    /// differ.
    fn store(&mut self, role: RoleId, step: u32, key: Vec<u8>, value: Option<Vec<u8>>, out: &mut Outbox) {
        let mut scoped = self.scope(role);
        scoped.extend_from_slice(&key);
        self.net().records.ask(role, step, key);
        out.act(role, Act::Store(scoped, value));
    }

    /// Returns whether an effect stores a record, or may have to wait for one. Few nodes have records.
    pub(crate) fn concerns_records(&self, effect: &Effect) -> bool {
        let some = self.net.as_ref().is_some_and(|net| !net.records.under_way.is_empty());
        some || matches!(effect, Effect::Do(Act::Store(..)))
    }

    /// Stores a record, or resolves or holds any other effect.
    pub(crate) fn resolve_or_hold(
        &mut self,
        now: Instant,
        role: RoleId,
        step: u32,
        effect: Effect,
        out: &mut Outbox,
    ) {
        if let Effect::Do(Act::Store(key, value)) = effect {
            self.store(role, step, key, value, out);
        } else if let Some(effect) = self.hold(role, step, effect) {
            self.resolve(now, role, effect, out);
        }
    }

    /// Keeps the effect if it must wait for a record, otherwise returns it.
    fn hold(&mut self, role: RoleId, step: u32, effect: Effect) -> Option<Effect> {
        match &mut self.net {
            Some(net) if !net.records.under_way.is_empty() => net.records.hold(role, step, effect),
            _ => Some(effect),
        }
    }

    /// Notes that all effects are resolved or held. Effects of later steps are not withdrawn with the records of these
    /// steps.
    pub(crate) fn end_step(&mut self) {
        if let Some(net) = &mut self.net {
            net.records.last = None;
        }
    }

    /// Calls `each` with the identity of each packet that waits for a record. Skips packets without an identity.
    pub(crate) fn holds_for_records(&self, each: &mut dyn FnMut(PacketId)) {
        let queues = self.net.iter().flat_map(|net| net.records.waiting.values());
        for waiting in queues.flatten() {
            match &waiting.effect {
                Effect::Send(_, packet)
                | Effect::Discard(_, packet, _)
                | Effect::Pass(_, packet)
                | Effect::Do(Act::SendInCell(_, _, packet))
                    if packet.id != PacketId::NEW =>
                {
                    each(packet.id);
                }
                _ => {}
            }
        }
    }
}

/// Withdraws an effect whose record was not stored. A packet without an identity was never recorded, so it is not
/// reported as dropped.
fn take_back(role: RoleId, effect: Effect, why: &str, out: &mut Outbox) {
    match effect {
        Effect::Send(iface, packet) if packet.id != PacketId::NEW => {
            out.act(role, Act::Drop(iface.unwrap_or(Iface::HOST), packet, reason::NOT_STORED));
        }
        Effect::Do(Act::SendInCell(iface, _, packet)) if packet.id != PacketId::NEW => {
            out.act(role, Act::Drop(iface, packet, reason::NOT_STORED));
        }
        Effect::Do(Act::Answer(id, _)) => {
            out.act(role, Act::Answer(id, Err(format!("not stored: {why}"))));
        }
        Effect::Send(..)
        | Effect::Discard(..)
        | Effect::Stream(..)
        | Effect::Do(_)
        | Effect::Pass(..)
        | Effect::Served(_)
        | Effect::Notify(_) => {}
    }
}

#[cfg(test)]
#[path = "store_barrier_tests.rs"]
mod tests;
