//! What a role refuses, counted by reason.

use crate::{Outbox, Value, reason};
use std::collections::BTreeMap;
use wire::{Iface, Packet, Reason};

/// The number of packets and messages that a role has refused since it started, by reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Refusals(BTreeMap<Reason, u64>);

impl Refusals {
    /// Counts a refusal.
    pub fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Discards a packet that the role has handled and that arrived on `iface`: as [`reason::CONSUMED`], or for the
    /// reason for which it was refused. A refusal is counted.
    pub fn end(&mut self, iface: Iface, packet: Packet, verdict: Result<(), Reason>, out: &mut Outbox) {
        if let Err(reason) = verdict {
            self.count(reason);
        }
        out.discard(iface, packet, verdict.err().unwrap_or(reason::CONSUMED));
    }

    /// Returns the counts by the names of the reasons, for the role's status.
    pub fn status(&self) -> Value {
        Value::Map(self.0.iter().map(|(reason, count)| (reason.0.to_owned(), Value::from(*count))).collect())
    }
}
