//! The packets that an agent has forwarded, to find those that come back.

use std::collections::VecDeque;
use wire::{PacketId, identity};

/// The number of packets that are recognized if they come back (not from an RFC). With more packets under way, some
/// circle until their time to live ends.
const MOST: usize = 256;

/// The last packets that an agent has forwarded, the oldest first, each with its time to live; at most [`MOST`].
#[derive(Debug, Default)]
pub(crate) struct Passed(VecDeque<(PacketId, u8)>);

impl Passed {
    /// Returns whether this packet was seen before with a larger time to live, and notes the packet.
    pub(crate) fn has_come_back(&mut self, packet: &[u8], ttl: u8) -> bool {
        let id = identity(packet);
        if let Some((_, before)) = self.0.iter_mut().find(|(other, _)| *other == id) {
            *before = ttl.max(*before);
            return ttl < *before;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((id, ttl));
        false
    }
}
