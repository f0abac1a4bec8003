//! The rules of one node: routes, ingress policies, and the lifetimes of routes.

use crate::mirror::Mirror;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use table::{Class, EntryId, Found, IngressPolicy, Port, RoleId, Route, RouteKey, Rules};
use wire::{Instant, Ipv4Addr, Prefix};

/// The routes and ingress policies of a node. Whatever the number of routes, a look-up needs at most one probe for each
/// *shape* of key in use. A shape is the length of the source prefix, the length of the destination prefix, and whether
/// a class is given.
#[derive(Debug, Default)]
pub struct Ruleset {
    pub(crate) entries: Vec<Option<Entry>>,
    /// `None` until there are more than [`FEW`] entries. Without an index, the entries are searched one by one.
    index: Option<Box<Index>>,
    /// The shapes in use, most specific first, and the number of keys of each.
    shapes: Vec<(Shape, u32)>,
    pub(crate) policies: Vec<PolicyEntry>,
    /// The instants at which lifetimes may end. An entry that was used in the meantime is queued again. Of the items of
    /// one entry, only the item at the instant `Entry::queued` is valid.
    pub(crate) due: BinaryHeap<Reverse<(Instant, RouteKey)>>,
    /// The changes for a data path with its own copy of the rules, or `None` without such a data path.
    pub(crate) mirror: Option<Box<Mirror>>,
}

/// The index of a table with more than [`FEW`] entries.
#[derive(Debug, Default)]
struct Index {
    /// The number of each entry, by the key of the entry. The map is never iterated.
    ids: HashMap<PackedKey, EntryId, BuildHasherDefault<PackedKeyHasher>>,
    /// The numbers of removed entries, which are used again.
    free: Vec<EntryId>,
}

/// The largest number of entries for which no index is created.
const FEW: usize = 4;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: RouteKey,
    route: Route,
    owner: RoleId,
    pub(crate) used: Instant,
    pub(crate) queued: Instant,
    reported: bool,
}

impl Entry {
    /// Returns when the lifetime of the entry ends if the entry is not used again, or `None` if the lifetime does not
    /// end.
    fn end(&self) -> Option<Instant> {
        self.route.lifetime.end(self.used)
    }

    /// Returns whether the entry has expired and its owner was notified. Look-ups do not find such an entry. The entry
    /// remains until it is set again or removed.
    pub(crate) const fn is_gone(&self) -> bool {
        self.reported && self.route.lifetime.expires()
    }
}

/// The lengths of a key's prefixes, and whether the key has a class. The greatest shape is the most specific one.
type Shape = (u8, u8, bool);

#[derive(Debug)]
pub(crate) struct PolicyEntry {
    pub(crate) port: Port,
    pub(crate) owner: RoleId,
    pub(crate) policy: IngressPolicy,
    /// The second of the run in which `punted` packets failed the check.
    second: u64,
    punted: u16,
}

impl Ruleset {
    /// Sets or removes (`None`) a route. A route that is set counts as used at `now`.
    pub fn set_route(&mut self, now: Instant, owner: RoleId, key: RouteKey, route: Option<Route>) {
        let Some(route) = route else { return self.remove(key) };
        let known = self.id_of(key);
        let is_new = known.and_then(|id| self.entry(id)).is_none_or(Entry::is_gone);
        let id = known.unwrap_or_else(|| self.insert(key));
        let queued = self.entry(id).map_or(Instant::NEVER, |old| old.queued);
        let mut entry = Entry { key, route, owner, used: now, queued, reported: false };
        Self::queue(&mut self.due, &mut entry);
        if let Some(mirror) = &mut self.mirror {
            mirror.set_route(key, found((id, &entry)), now, is_new);
        }
        if let Some(slot) = self.entries.get_mut(id.0 as usize) {
            *slot = Some(entry);
        }
    }

    /// Sets or removes (`None`) the ingress policy of a port.
    pub fn set_ingress_policy(&mut self, owner: RoleId, port: Port, policy: Option<IngressPolicy>) {
        let before = self.policies.len();
        self.policies.retain(|entry| entry.port != port);
        let is_new = self.policies.len() == before;
        if let Some(mirror) = &mut self.mirror {
            match policy {
                Some(policy) => mirror.set_policy(port, owner, policy, is_new),
                None if is_new => {}
                None => mirror.remove_policy(port),
            }
        }
        if let Some(policy) = policy {
            self.policies.push(PolicyEntry { port, owner, policy, second: 0, punted: 0 });
        }
    }

    /// Records that a packet used or refreshed the entry `id` at `now`.
    pub fn used(&mut self, id: EntryId, now: Instant) {
        let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else { return };
        entry.used = entry.used.max(now);
        if entry.reported {
            entry.reported = false;
            Self::queue(&mut self.due, entry);
            // A data path gives the first packets of an idle route to the node, until it knows of this use.
            if let Some(mirror) = &mut self.mirror {
                mirror.set_route(entry.key, found((id, entry)), entry.used, false);
            }
        }
    }

    /// Counts a packet of this port that failed its check. Returns whether the packet may go to the owner of the
    /// policy: false for packets beyond the policy's limit in this second. Returns true if the port has no policy.
    pub(crate) fn may_punt(&mut self, now: Instant, port: Port) -> bool {
        let Some(index) = self.policy_index(port) else { return true };
        let Some(entry) = self.policies.get_mut(index) else { return true };
        let second = now.0 / 1_000_000_000;
        if entry.second != second {
            (entry.second, entry.punted) = (second, 0);
        }
        entry.punted = entry.punted.saturating_add(1);
        entry.punted <= entry.policy.punts
    }

    /// Returns when the lifetime of a route may end next, or `None` if no lifetime can end. The instant may be too
    /// early, because a use in the meantime postpones the end. A time-out at this instant then has no effect.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a route whose lifetime has ended by `now`, once: its owner, key and last use. Returns `None` if there is
    /// no such route. An expired route is not found by look-ups, but remains until it is set again or removed.
    pub(crate) fn pop_idle(&mut self, now: Instant) -> Option<(RoleId, RouteKey, Instant)> {
        while let Some(Reverse((at, key))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.due.pop();
            let Some(id) = self.id_of(key) else { continue };
            let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else { continue };
            if entry.queued != at {
                continue; // another item is valid for this entry
            }
            entry.queued = Instant::NEVER;
            match entry.end() {
                Some(end) if end <= now && !entry.reported => {
                    entry.reported = true;
                    if let Some(mirror) = self.mirror.as_mut().filter(|_| entry.is_gone()) {
                        mirror.remove_route(key);
                    }
                    return Some((entry.owner, key, entry.used));
                }
                Some(end) if end > now => Self::queue(&mut self.due, entry),
                _ => {}
            }
        }
        None
    }

    pub(crate) fn queue(due: &mut BinaryHeap<Reverse<(Instant, RouteKey)>>, entry: &mut Entry) {
        let Some(end) = entry.end() else { return };
        if end < entry.queued {
            entry.queued = end;
            due.reserve_exact(usize::from(due.is_empty()));
            due.push(Reverse((end, entry.key)));
        }
    }

    pub(crate) fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn id_of(&self, key: RouteKey) -> Option<EntryId> {
        if let Some(index) = &self.index {
            return index.ids.get(&PackedKey::of(key)).copied();
        }
        let is_meant = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.key == key);
        Some(EntryId(self.entries.iter().position(is_meant)? as u32))
    }

    fn insert(&mut self, key: RouteKey) -> EntryId {
        let id = self.free_place().unwrap_or_else(|| {
            // The vector grows by a quarter. By default it would start with four entries and then double. That would
            // waste memory on a million idle hosts with one route each, and on routers with a million routes.
            if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact(1 + self.entries.len() / 4);
            }
            self.entries.push(None);
            EntryId(self.entries.len() as u32 - 1)
        });
        if self.entries.len() > FEW {
            self.index().ids.insert(PackedKey::of(key), id);
        }
        let shape = shape(key);
        match self.shapes.binary_search_by(|(other, _)| shape.cmp(other)) {
            Ok(at) => {
                if let Some((_, count)) = self.shapes.get_mut(at) {
                    *count += 1;
                }
            }
            Err(at) => {
                self.shapes.reserve_exact(usize::from(self.shapes.is_empty()));
                self.shapes.insert(at, (shape, 1));
            }
        }
        id
    }

    fn free_place(&mut self) -> Option<EntryId> {
        match &mut self.index {
            Some(index) => index.free.pop(),
            None => Some(EntryId(self.entries.iter().position(Option::is_none)? as u32)),
        }
    }

    /// Returns the index. The first call creates the index from the entries, at a time when no number is free.
    fn index(&mut self) -> &mut Index {
        let known = self.entries.iter().zip(0..);
        let known = known.filter_map(|(entry, id)| Some((PackedKey::of(entry.as_ref()?.key), EntryId(id))));
        self.index.get_or_insert_with(|| Box::new(Index { ids: known.collect(), free: Vec::new() }))
    }

    fn remove(&mut self, key: RouteKey) {
        let Some(id) = self.id_of(key) else { return };
        let is_gone = self.entry(id).is_some_and(Entry::is_gone);
        if let Some(mirror) = self.mirror.as_mut().filter(|_| !is_gone) {
            mirror.remove_route(key);
        }
        if let Some(index) = &mut self.index {
            index.ids.remove(&PackedKey::of(key));
            index.free.push(id);
        }
        if let Some(slot) = self.entries.get_mut(id.0 as usize) {
            *slot = None;
        }
        let shape = shape(key);
        for (other, count) in &mut self.shapes {
            *count -= u32::from(*other == shape);
        }
        self.shapes.retain(|(_, count)| *count > 0);
    }

    fn policy_index(&self, port: Port) -> Option<usize> {
        let exact = self.policies.iter().position(|entry| entry.port == port);
        exact.or_else(|| {
            self.policies.iter().position(|e| e.port.iface == port.iface && e.port.from.is_none())
        })
    }

    fn find(&self, now: Instant, key: RouteKey) -> Option<(EntryId, &Entry)> {
        let id = self.id_of(key)?;
        Some((id, self.entry(id).filter(|entry| !entry.route.lifetime.has_expired(entry.used, now))?))
    }
}

impl Ruleset {
    /// Returns the most specific valid route, or `None` if there is none. To an address of this host (`is_own`), only a
    /// route to exactly this address applies: a default route must not forward packets that have arrived. For a closed
    /// class only the routes of this class apply.
    pub(crate) fn find_route(
        &self,
        now: Instant,
        class: Class,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        is_own: bool,
    ) -> Option<Found> {
        let counts = |dst_len: u8, named: bool| (!is_own || dst_len == 32) && (named || !class.is_closed());
        let mut shapes = self.shapes.iter().filter(|((_, dst_len, named), _)| counts(*dst_len, *named));
        let live = shapes.find_map(|((src_len, dst_len, named), _)| {
            let class = named.then_some(class);
            let (src, dst) = (Prefix::new(src, *src_len), Prefix::new(dst, *dst_len));
            self.find(now, RouteKey { class, src, dst })
        });
        live.map(found)
    }
}

impl Rules for Ruleset {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        match self.policy_index(port).and_then(|index| self.policies.get(index)) {
            Some(entry) => (entry.owner, entry.policy),
            None => (RoleId::NODE, IngressPolicy::default_of(port)),
        }
    }

    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        self.find_route(now, class, src, dst, false)
    }

    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        self.find(now, RouteKey::to(class, host)).map(found)
    }
}

pub(crate) const fn found((id, entry): (EntryId, &Entry)) -> Found {
    Found { entry: id, owner: entry.owner, route: entry.route }
}

const fn shape(key: RouteKey) -> Shape {
    (key.src.len(), key.dst.len(), key.class.is_some())
}

/// A key as three numbers of 32 bits: the source, the destination, and the class with both prefix lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PackedKey([u32; 3]);

impl PackedKey {
    fn of(key: RouteKey) -> Self {
        let class = key.class.map_or(0, |class| u32::from(class.0) + 1);
        let shape = class << 16 | u32::from(key.src.len()) << 8 | u32::from(key.dst.len());
        Self([key.src.address().to_bits(), key.dst.address().to_bits(), shape])
    }
}

impl Hash for PackedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [src, dst, shape] = self.0;
        state.write_u64(u64::from(src) << 32 | u64::from(dst));
        state.write_u64(u64::from(shape));
    }
}

/// A multiplicative hash of a key. Data packets never add a key, so the hash need not resist flooding. The map is never
/// iterated, so its order does not matter.
#[derive(Default)]
struct PackedKeyHasher(u64);

impl Hasher for PackedKeyHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
#[path = "ruleset_tests.rs"]
mod tests;
