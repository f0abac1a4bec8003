//! The storage requests of a home agent whose results have not arrived. Each request stores one record.

use std::collections::BTreeMap;
use wire::Ipv4Addr;

/// The storage requests for all mobile nodes. Those for one mobile node form a queue. Each request is a separate entry
/// of one map, so the length of the map is the number of all requests.
#[derive(Debug)]
pub(crate) struct UnderWay<T> {
    /// The storage requests, by mobile node, and then by their order.
    stores: BTreeMap<(Ipv4Addr, u64), T>,
    last: u64,
}

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self { stores: BTreeMap::new(), last: 0 }
    }
}

impl<T> UnderWay<T> {
    /// Returns the number of storage requests for all mobile nodes.
    pub(crate) fn len(&self) -> usize {
        self.stores.len()
    }

    /// Adds the newest storage request for a mobile node.
    pub(crate) fn push(&mut self, host: Ipv4Addr, store: T) {
        self.last += 1;
        self.stores.insert((host, self.last), store);
    }

    /// Removes and returns the oldest storage request for a mobile node; `None` if there is none.
    pub(crate) fn pop(&mut self, host: Ipv4Addr) -> Option<T> {
        let (oldest, _) = self.stores.range((host, 0)..=(host, u64::MAX)).next()?;
        let oldest = *oldest;
        self.stores.remove(&oldest)
    }

    /// Returns the storage requests for a mobile node, oldest first.
    pub(crate) fn of(&self, host: Ipv4Addr) -> impl DoubleEndedIterator<Item = &T> {
        self.stores.range((host, 0)..=(host, u64::MAX)).map(|(_, store)| store)
    }

    /// Returns whether there is a storage request for a mobile node.
    pub(crate) fn has(&self, host: Ipv4Addr) -> bool {
        self.of(host).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mobile_node_has_a_queue_and_the_number_is_that_of_all() {
        let (one, two) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut stores = UnderWay::default();
        for (host, store) in [(two, 1), (one, 2), (two, 3), (one, 4)] {
            stores.push(host, store);
        }
        assert_eq!(stores.of(one).copied().collect::<Vec<_>>(), [2, 4]);
        assert_eq!((stores.pop(two), stores.of(two).next_back(), stores.len()), (Some(1), Some(&3), 3));
        assert_eq!(
            (stores.pop(two), stores.pop(two), stores.has(two), stores.has(one)),
            (Some(3), None, false, true)
        );
        assert_eq!(stores.len(), 2);
    }
}
