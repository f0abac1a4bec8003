//! A data path beside the node, as a kernel would have it. The data path has only the bytes of its maps, which change
//! by the acts of the mirror and by the uses of routes.

use node::MirrorAct;
use std::collections::{BTreeMap, BTreeSet};
use table::map::{MapKey, MapPolicy, MapPort, MapRoute, tag};
use table::{Class, Datagram, Found, IngressPolicy, Port, RoleId, RouteKey, Rules, Verdict};
use wire::{Duration, Iface, Instant, Ipv4Addr, Reason};

/// The data path: its rules are maps from bytes to bytes.
#[derive(Default)]
pub(crate) struct Twin {
    routes: BTreeMap<[u8; MapKey::SIZE], [u8; MapRoute::SIZE]>,
    policies: BTreeMap<[u8; MapPort::SIZE], [u8; MapPolicy::SIZE]>,
    addresses: BTreeSet<[u8; 4]>,
    mtus: BTreeMap<[u8; 2], [u8; 2]>,
    /// The drop reasons by their number. The driver has the same map, to count the drops of the data path.
    reasons: BTreeMap<u32, Reason>,
    /// The ends of the intervals in which the owners of routes were notified: by owner, interval, source and destination.
    notices: BTreeMap<(RoleId, Duration, Ipv4Addr, Ipv4Addr), Instant>,
    /// Whether the twin compares lifetimes with the clock. If not, only acts of the mirror end a route.
    reads_clock: bool,
}

impl Twin {
    pub(crate) fn new(reads_clock: bool) -> Self {
        Self { reads_clock, ..Self::default() }
    }

    /// Applies an act. Returns an error if the act removes an entry that does not exist, or adds an address that
    /// exists.
    pub(crate) fn apply(&mut self, act: MirrorAct) -> Result<(), String> {
        let is_known = match act {
            MirrorAct::Route(key, Some((found, used))) => {
                if let table::Action::Drop(reason) = found.route.action {
                    self.reasons.insert(reason.code(), reason);
                }
                let (key, route) = (MapKey::new(&key).to_bytes(), MapRoute::new(&found, used).to_bytes());
                self.routes.insert(key, route);
                true
            }
            MirrorAct::Route(key, None) => self.routes.remove(&MapKey::new(&key).to_bytes()).is_some(),
            MirrorAct::IngressPolicy(port, Some((owner, policy))) => {
                let bytes = MapPolicy::new(owner, &policy).to_bytes();
                self.policies.insert(MapPort::new(port).to_bytes(), bytes);
                true
            }
            MirrorAct::IngressPolicy(port, None) => {
                self.policies.remove(&MapPort::new(port).to_bytes()).is_some()
            }
            MirrorAct::Address(address, true) => self.addresses.insert(address.octets()),
            MirrorAct::Address(address, false) => self.addresses.remove(&address.octets()),
            MirrorAct::Mtu(iface, mtu) => {
                self.mtus.insert(iface.0.to_ne_bytes(), mtu.to_ne_bytes());
                true
            }
        };
        if is_known { Ok(()) } else { Err(format!("an act without an entry: {act:?}")) }
    }

    /// Records the uses of the routes in a verdict, as a program in a kernel does. Returns the routes whose use must be
    /// reported at once, because their owners may have been notified that the routes are idle.
    pub(crate) fn record(&mut self, now: Instant, verdict: &Verdict) -> Vec<RouteKey> {
        let mut reports = Vec::new();
        for entry in verdict.used.into_iter().flatten() {
            let is_meant =
                |(_, bytes): &(_, &mut [u8; MapRoute::SIZE])| MapRoute::from_bytes(**bytes).entry == entry.0;
            let Some((key, bytes)) = self.routes.iter_mut().find(is_meant) else { continue };
            let route = MapRoute::from_bytes(*bytes);
            if route.lifetime == tag::REPORT_IDLE && route.used.saturating_add(route.span) <= now.0 {
                reports.push(MapKey::from_bytes(*key).read().unwrap());
            }
            *bytes = MapRoute { used: route.used.max(now.0), ..route }.to_bytes();
        }
        reports
    }

    /// Returns whether the node must get this packet, because it must notify a role of it.
    pub(crate) fn is_noticed(&mut self, now: Instant, verdict: &Verdict, packet: &Datagram) -> bool {
        let Some(notice) = verdict.notice else { return false };
        let key = (notice.owner, notice.interval, packet.src, packet.dst);
        let is_due = self.notices.get(&key).is_none_or(|end| *end <= now);
        if is_due {
            self.notices.insert(key, notice.end(now));
        }
        is_due
    }

    /// Returns the last use of the route with a key, or `None` if there is no such route.
    pub(crate) fn last_use(&self, key: &RouteKey) -> Option<Instant> {
        let bytes = self.routes.get(&MapKey::new(key).to_bytes())?;
        Some(Instant(MapRoute::from_bytes(*bytes).used))
    }

    /// Returns the route with a key, expired or not.
    pub(crate) fn entry(&self, key: &RouteKey) -> Option<(Found, Instant)> {
        let bytes = self.routes.get(&MapKey::new(key).to_bytes())?;
        Some(MapRoute::from_bytes(*bytes).read(|code| self.reasons.get(&code).copied()).unwrap())
    }

    fn find(&self, now: Instant, key: &RouteKey) -> Option<Found> {
        let (found, used) = self.entry(key)?;
        let has_ended = self.reads_clock && found.route.lifetime.has_expired(used, now);
        (!has_ended).then_some(found)
    }

    /// Returns the shapes of the keys, most specific first: both prefix lengths, and whether a class is given.
    fn shapes(&self) -> Vec<(u8, u8, bool)> {
        let of = |bytes: &[u8; MapKey::SIZE]| {
            let key = MapKey::from_bytes(*bytes);
            (key.src_len, key.dst_len, key.has_class == 1)
        };
        let all: BTreeSet<_> = self.routes.keys().map(of).collect();
        all.into_iter().rev().collect()
    }
}

impl Rules for Twin {
    fn ingress_policy(&self, port: Port) -> (RoleId, IngressPolicy) {
        let of = |port| self.policies.get(&MapPort::new(port).to_bytes());
        match of(port).or_else(|| of(Port { from: None, ..port })) {
            Some(bytes) => MapPolicy::from_bytes(*bytes).read().unwrap(),
            None => (RoleId::NODE, IngressPolicy::default_of(port)),
        }
    }

    fn route(&self, now: Instant, class: Class, src: Ipv4Addr, dst: Ipv4Addr) -> Option<Found> {
        let is_own = self.is_own(dst);
        self.shapes().into_iter().find_map(|(src_len, dst_len, is_given)| {
            if (is_own && dst_len < 32) || (class.is_closed() && !is_given) {
                return None;
            }
            let (src, dst) = (wire::Prefix::new(src, src_len), wire::Prefix::new(dst, dst_len));
            self.find(now, &RouteKey { class: is_given.then_some(class), src, dst })
        })
    }

    fn reverse_path(&self, now: Instant, class: Class, host: Ipv4Addr) -> Option<Found> {
        self.find(now, &RouteKey::to(class, host))
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address.octets())
    }

    fn mtu(&self, iface: Iface) -> u16 {
        self.mtus.get(&iface.0.to_ne_bytes()).map_or(u16::MAX, |bytes| u16::from_ne_bytes(*bytes))
    }
}
