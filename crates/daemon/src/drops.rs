//! Counters of dropped packets by reason. `status` shows them without any records.

use node::Value;
use std::collections::BTreeMap;
use wire::Reason;

/// Number of packets by reason. Reasons are constants of this program, so their number is bounded.
#[derive(Debug, Default)]
pub(super) struct Drops(BTreeMap<&'static str, u64>);

impl Drops {
    /// Counts a dropped packet. A packet that its role consumed ([`node::reason::CONSUMED`]) is not a drop.
    pub(super) fn count(&mut self, reason: Reason) {
        if reason != node::reason::CONSUMED {
            *self.0.entry(reason.0).or_default() += 1;
        }
    }

    /// Adds the counts to a status, under `drops`.
    pub(super) fn add_to(&self, status: Value) -> Value {
        let count = |(reason, count): (&&str, &u64)| ((*reason).to_owned(), Value::Int(count.cast_signed()));
        match status {
            Value::Map(mut status) => {
                status.push(("drops".to_owned(), Value::Map(self.0.iter().map(count).collect())));
                Value::Map(status)
            }
            other => other,
        }
    }
}
