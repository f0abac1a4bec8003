//! Guards: what a host does with received segments of connections that are being moved to or from this host. In both
//! backends, a segment passes the guards before TCP receives it.

use crate::{Guard, Tuple};
use std::collections::BTreeMap;
use wire::{PacketId, Reason};

/// The connection is frozen or guarded, because it is being moved from this host or to this host.
pub const FROZEN: Reason = Reason("frozen");
/// The guard already holds the largest number of packets.
pub const GUARD_FULL: Reason = Reason("guard_full");
/// The packet came to a guard that answers with a TCP reset. A packet that is itself a reset gets no answer.
pub const GUARD_RESET: Reason = Reason("guard_reset");

/// The largest number of guards of one host.
const MOST: usize = 4096;
/// The largest number of packets that one guard holds, even if its own limit is higher.
const MOST_HELD: usize = 1024;

/// A packet that a guard holds: its identity and the IPv4 datagram.
pub type Held = (PacketId, Vec<u8>);

/// What a guard does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The packet passes, because its tuple is not guarded.
    Pass,
    /// The guard keeps a copy of the packet.
    Held,
    /// The packet is dropped, for this reason. With [`GUARD_RESET`] the caller also answers with a TCP reset, unless
    /// the packet is itself a reset.
    Ends(Reason),
}

/// The guards of one host, by tuple, with the packets that they hold.
#[derive(Debug, Default)]
pub struct Guards(BTreeMap<Tuple, (Guard, Vec<Held>)>);

impl Guards {
    /// Returns whether no tuple is guarded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this tuple is guarded.
    pub fn has(&self, tuple: &Tuple) -> bool {
        self.0.contains_key(tuple)
    }

    /// Sets or removes (`None`) the guard of a tuple. Returns the packets that are no longer held, in the order of
    /// arrival. Returns `None`, and sets nothing, if a new guard would be the 4097th of the host.
    pub fn set(&mut self, tuple: Tuple, guard: Option<Guard>) -> Option<Vec<Held>> {
        let Some(guard) = guard else {
            return Some(self.0.remove(&tuple).map_or(Vec::new(), |(_, held)| held));
        };
        if self.0.len() >= MOST && !self.has(&tuple) {
            return None;
        }
        let before = self.0.insert(tuple, (guard, Vec::new())).map_or(Vec::new(), |(_, held)| held);
        match (guard, self.0.get_mut(&tuple)) {
            (Guard::Hold(_), Some((_, held))) => *held = before,
            _ => return Some(before),
        }
        Some(Vec::new())
    }

    /// Returns what happens to a packet of this tuple. Without a guard, the packet passes. A [`Guard::Hold`] keeps a
    /// copy of the packet, or drops the packet if it already holds its largest number of packets. The other guards drop
    /// the packet.
    pub fn check(&mut self, tuple: &Tuple, id: PacketId, bytes: &[u8]) -> Check {
        match self.0.get_mut(tuple) {
            None => Check::Pass,
            Some((Guard::Hold(most), held)) if held.len() < (*most).min(MOST_HELD) => {
                held.push((id, bytes.to_vec()));
                Check::Held
            }
            Some((Guard::Hold(_), _)) => Check::Ends(GUARD_FULL),
            Some((Guard::Drop, _)) => Check::Ends(FROZEN),
            Some((Guard::Reset, _)) => Check::Ends(GUARD_RESET),
        }
    }

    /// Calls `each` with the identity of each packet that the guards hold.
    pub fn holds(&self, each: &mut dyn FnMut(PacketId)) {
        self.0.values().flat_map(|(_, held)| held).for_each(|(id, _)| each(*id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(port: u16) -> Tuple {
        let at = |port| crate::Addr::new(wire::Ipv4Addr::new(10, 0, 0, 1), port);
        Tuple { local: at(port), remote: at(80) }
    }

    #[test]
    fn what_is_held_comes_back_in_order_and_no_more() {
        let mut guards = Guards::default();
        assert_eq!(guards.check(&tuple(1), PacketId(1), b"a"), Check::Pass);
        assert_eq!(guards.set(tuple(1), Some(Guard::Hold(2))), Some(Vec::new()));
        assert_eq!(guards.check(&tuple(1), PacketId(1), b"a"), Check::Held);
        assert_eq!(guards.check(&tuple(1), PacketId(2), b"b"), Check::Held);
        assert_eq!(guards.check(&tuple(1), PacketId(3), b"c"), Check::Ends(GUARD_FULL));
        assert_eq!(guards.check(&tuple(2), PacketId(3), b"c"), Check::Pass);
        // If the limit of a guard changes, the guard keeps the held packets. If the kind of the guard changes, the held
        // packets are returned.
        assert_eq!(guards.set(tuple(1), Some(Guard::Hold(3))), Some(Vec::new()));
        let held = vec![(PacketId(1), b"a".to_vec()), (PacketId(2), b"b".to_vec())];
        assert_eq!(guards.set(tuple(1), Some(Guard::Drop)), Some(held));
        assert_eq!(guards.check(&tuple(1), PacketId(4), b"d"), Check::Ends(FROZEN));
        assert_eq!(guards.set(tuple(1), None), Some(Vec::new()));
        assert!(guards.is_empty());
    }

    #[test]
    fn guards_are_few() {
        let mut guards = Guards::default();
        for port in 0..MOST as u16 {
            assert!(guards.set(tuple(port), Some(Guard::Drop)).is_some());
        }
        assert_eq!(guards.set(tuple(u16::MAX), Some(Guard::Drop)), None);
        assert!(guards.set(tuple(7), Some(Guard::Reset)).is_some(), "one that is there can change");
    }
}
