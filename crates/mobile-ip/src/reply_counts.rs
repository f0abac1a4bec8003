//! Counts of replies by code, for the operator.

use crate::message::Code;
use node::Value;
use std::collections::BTreeMap;

/// Number of replies by code number: at most 256 entries.
#[derive(Debug, Default)]
pub(crate) struct ReplyCounts(BTreeMap<u8, u64>);

impl ReplyCounts {
    /// Counts one reply with this code.
    pub(crate) fn count(&mut self, code: Code) {
        *self.0.entry(code.number()).or_default() += 1;
    }

    /// Returns the counts, with the number of the code as the key, for the role's status.
    pub(crate) fn status(&self) -> Value {
        Value::Map(self.0.iter().map(|(code, count)| (code.to_string(), Value::from(*count))).collect())
    }
}
