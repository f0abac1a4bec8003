//! Counters of the packets and messages that a role refuses.

use crate::{Outbox, Value, reason};
use std::collections::BTreeMap;
use wire::{Iface, Packet, Reason};

/// The number of packets and messages that a role has refused since it started, by reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Refusals(BTreeMap<Reason, u64>);

impl Refusals {
    /// Counts one refusal for this reason.
    pub fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Discards a packet that arrived on `iface` and that the role has handled. If `verdict` is an error, its reason is
    /// counted, and is the drop reason. Otherwise the drop reason is [`reason::CONSUMED`].
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
