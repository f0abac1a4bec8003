//! Counts of replies by code, for the operator.

use crate::message::Code;
use node::Value;
use std::collections::BTreeMap;

/// Number of replies by code number: at most 256 entries.
#[derive(Debug, Default)]
pub(crate) struct ReplyCounts(BTreeMap<u8, u64>);

impl ReplyCounts {
    /// Counts a reply.
    pub(crate) fn count(&mut self, code: Code) {
        *self.0.entry(code.number()).or_default() += 1;
    }

    /// The counts, by the code's number.
    pub(crate) fn status(&self) -> Value {
        Value::Map(self.0.iter().map(|(code, count)| (code.to_string(), Value::from(*count))).collect())
    }
}
