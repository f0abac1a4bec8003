//! What waits for records: the barrier behind [`Act::Store`].
//!
//! A record goes to the driver as soon as it is asked for, so that all that gather while the disk is busy are made
//! durable with one sync. What its role asks for behind it, in the same step, waits here and is not resolved: a packet
//! that waits for ARP inside the node would otherwise leave after its record had failed. Later steps of that role go on,
//! and wait only where something of that role waits before them; so each role is obeyed in the order in which it asked.
//! Other roles, the table and ARP wait for nothing.

use crate::node::reason;
use crate::{Act, Effect, Fault, Input, Node, Outbox, RoleId, Undone};
use std::collections::{BTreeMap, VecDeque};
use wire::{Iface, Instant, PacketId};

/// Records that are under way, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Who asked, and under which key of its own; in the order asked. All drivers decide in this order.
    under_way: VecDeque<(RoleId, Vec<u8>)>,
    /// How many records were decided: the first under way has the next number.
    decided: u64,
    /// The record that the step now being resolved asked for last: the step, and its number.
    last: Option<(u32, u64)>,
    waiting: BTreeMap<RoleId, VecDeque<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    effect: Effect,
    /// The number of the record that has to be decided first. Never falls within a queue.
    until: u64,
    /// Whether it was asked for behind that record, and goes with it; or else it only keeps its place.
    is_bound: bool,
}

impl Records {
    /// One more record.
    fn ask(&mut self, role: RoleId, step: u32, key: Vec<u8>) {
        self.under_way.push_back((role, key));
        self.last = Some((step, self.decided + self.under_way.len() as u64));
    }

    /// Keeps an effect that has to wait; gives back one that has not.
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

    /// The first record is durable: whose it was, and its key.
    fn decide(&mut self) -> Option<(RoleId, Vec<u8>)> {
        let first = self.under_way.pop_front()?;
        self.decided += 1;
        Some(first)
    }

    /// The next effect of this role that waits no longer.
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
    /// The first `durable` of the records that are under way are durable: who asked for them hears [`Input::Stored`],
    /// behind what has waited for them. For drivers; records are decided in the order of their [`Act::Store`].
    pub fn resume(&mut self, now: Instant, durable: usize, out: &mut Outbox) {
        for _ in 0..durable {
            let Some((role, key)) = self.net().records.decide() else { return };
            while let Some(effect) = self.net().records.release(role) {
                self.resolve(now, role, effect, out);
            }
            self.give(now, role, Input::Stored(&key), out);
            self.settle(now, out);
        }
    }

    /// None of the records that are under way could be stored, for this reason. What was asked for behind each of them in
    /// its step is taken back: packets are dropped, commands answered with the error, all else is as if it had never been
    /// asked for. Then who asked for them hears [`Input::Failed`], in the order asked. For drivers, when no act is left to
    /// be carried out: a record that has been asked for by then fails with the others, so that a role may build on what it
    /// has asked for before.
    pub fn withdraw(&mut self, now: Instant, why: &str, out: &mut Outbox) {
        debug_assert!(!out.has_records(), "a record that the driver does not know of would fail unheard");
        let records = &mut self.net().records;
        let failed = std::mem::take(&mut records.under_way);
        records.decided += failed.len() as u64;
        for (role, queue) in std::mem::take(&mut records.waiting) {
            for Waiting { effect, is_bound, .. } in queue {
                match effect {
                    Effect::Discard(..) | Effect::Pass(..) => self.resolve(now, role, effect, out),
                    _ if is_bound => take_back(role, effect, why, out),
                    _ => self.resolve(now, role, effect, out),
                }
            }
        }
        for (role, key) in failed {
            let fault = Fault { role, undone: Undone::Store(key), why: why.to_owned() };
            self.give(now, role, Input::Failed(&fault), out);
            self.settle(now, out);
        }
    }

    /// Records that are neither durable nor refused yet.
    pub fn records_under_way(&self) -> usize {
        self.net.as_ref().map_or(0, |net| net.records.under_way.len())
    }

    /// Hands a record to the driver. Its key begins with the role's name there, so that roles cannot meet.
    fn store(&mut self, role: RoleId, step: u32, key: Vec<u8>, value: Option<Vec<u8>>, out: &mut Outbox) {
        let mut scoped = self.scope(role);
        scoped.extend_from_slice(&key);
        self.net().records.ask(role, step, key);
        out.act(role, Act::Store(scoped, value));
    }

    /// Whether an effect is to keep a record, or may have to wait for one: few nodes have any.
    pub(crate) fn concerns_records(&self, effect: &Effect) -> bool {
        let some = self.net.as_ref().is_some_and(|net| !net.records.under_way.is_empty());
        some || matches!(effect, Effect::Do(Act::Store(..)))
    }

    /// Keeps a record, or what has to wait for one.
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

    /// Gives an effect back that waits for no record.
    fn hold(&mut self, role: RoleId, step: u32, effect: Effect) -> Option<Effect> {
        match &mut self.net {
            Some(net) if !net.records.under_way.is_empty() => net.records.hold(role, step, effect),
            _ => Some(effect),
        }
    }

    /// All that was asked for has been resolved: what comes now is another step.
    pub(crate) fn end_step(&mut self) {
        if let Some(net) = &mut self.net {
            net.records.last = None;
        }
    }

    /// Names the packets that wait for a record.
    pub(crate) fn holds_for_records(&self, each: &mut dyn FnMut(PacketId)) {
        let queues = self.net.iter().flat_map(|net| net.records.waiting.values());
        for waiting in queues.flatten() {
            match &waiting.effect {
                Effect::Send(_, packet)
                | Effect::Discard(_, packet, _)
                | Effect::Pass(_, packet)
                | Effect::Do(Act::Visit(_, _, packet))
                    if packet.id != PacketId::NEW =>
                {
                    each(packet.id);
                }
                _ => {}
            }
        }
    }
}

/// What becomes of an effect whose record was not stored. A packet that never left was never there.
fn take_back(role: RoleId, effect: Effect, why: &str, out: &mut Outbox) {
    match effect {
        Effect::Send(iface, packet) if packet.id != PacketId::NEW => {
            out.act(role, Act::Drop(iface.unwrap_or(Iface::HOST), packet, reason::NOT_STORED));
        }
        Effect::Do(Act::Visit(iface, _, packet)) if packet.id != PacketId::NEW => {
            out.act(role, Act::Drop(iface, packet, reason::NOT_STORED));
        }
        Effect::Do(Act::Answer(id, _)) => {
            out.act(role, Act::Answer(id, Err(format!("not stored: {why}"))));
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
