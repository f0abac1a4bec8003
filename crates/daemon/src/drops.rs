//! Counters of dropped packets by reason. `status` shows them without any records.

use node::Value;
use std::collections::BTreeMap;
use wire::Reason;

/// The reason of a drop: the kernel had no room for a datagram in the receive buffer of a socket.
const SOCKET_RECEIVE_FULL: &str = "socket_receive_full";

/// Number of packets by reason. Reasons are constants of this program, so their number is bounded.
#[derive(Debug, Default)]
pub(super) struct Drops(BTreeMap<&'static str, u64>);

impl Drops {
    /// Counts a dropped packet. A packet that its role consumed ([`node::reason::CONSUMED`]) is not a drop.
    pub(super) fn count(&mut self, reason: Reason) {
        if ![node::reason::CONSUMED, node::reason::REASSEMBLED].contains(&reason) {
            *self.0.entry(reason.0).or_default() += 1;
        }
    }

    /// Adds the counts to a status, under `drops`. The kernel dropped `overflowed` datagrams because the buffer of
    /// their socket was full.
    pub(super) fn add_to(&self, status: Value, overflowed: u64) -> Value {
        let count = |(reason, count): (&str, &u64)| (reason.to_owned(), Value::Int(count.cast_signed()));
        let overflowed = Some((SOCKET_RECEIVE_FULL, &overflowed)).filter(|(_, count)| **count > 0);
        let counts = self.0.iter().map(|(reason, count)| (*reason, count)).chain(overflowed);
        match status {
            Value::Map(mut status) => {
                status.push(("drops".to_owned(), Value::Map(counts.map(count).collect())));
                Value::Map(status)
            }
            other => other,
        }
    }
}
