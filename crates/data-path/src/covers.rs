//! Which packets the program forwards. [`forwarded`] is not used by the product: it is the program's description, and the tests
//! compare the program with it.

use crate::rings::ROOM;
use table::{Action, Lifetime, decide, decide_opened};
use table::{Aside, Datagram, Disposition, EntryId, Hop, NextHop, Port, PuntReason, RoleId, Rules};
use wire::ipv4::{self, Header};
use wire::{EtherType, Frame, Iface, Instant, Ipv4Addr, Mac, ethernet, ipip};

/// What the program knows besides the rules.
pub trait Beside: Rules {
    /// Returns the link address of an interface whose link is up, or `None`.
    fn mac(&self, iface: Iface) -> Option<Mac>;
    /// Returns whether the lifetime of a route with [`Lifetime::ReportIdle`] has ended: the next packet goes to the node.
    fn is_idle(&self, entry: EntryId) -> bool;
    /// Returns whether a route with [`Aside`] has slots for its packets.
    fn has_ring(&self, entry: EntryId) -> bool;
}

/// What the program does with a packet that it does not pass to the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forwarded {
    /// The interface on which the packet leaves.
    pub iface: Iface,
    /// The whole frame that leaves.
    pub frame: Vec<u8>,
    /// The owner of the route, and the ends of the tunnel, if a copy of the inner datagram is kept.
    pub kept: Option<(RoleId, (Ipv4Addr, Ipv4Addr))>,
    /// The routes whose use is recorded.
    pub used: Vec<EntryId>,
}

/// Returns what the program does with a frame that arrived on `iface`, or `None` if it passes the frame to the node.
///
/// It forwards a frame with exactly one datagram of IP in IP, to the link address of the interface and to an address of this
/// host. The outer datagram has no options and is no fragment. The inner one has no options, and may be a fragment. Both
/// checksums are right. The port has no check. The route of the outer datagram opens IP in IP. The route of the inner one leads to a
/// link address by an interface that is up, or has such an [`Aside`] and a ring; then the packet has at most 2008 bytes. The inner datagram fits the MTU, has a time to
/// live of at least 2, and its route has no notice. Neither route is refreshed by packets
/// ([`Lifetime::SoftState`]): the program does not see all packets that refresh it. While such a route has expired, but is still
/// among the rules, its packets go to the node too. So do packets behind a message, until the driver has handled it: it may change the
/// rules. A message is UDP to a group, or to a port of this host that a role listens to ([`crate::DataPath::hear`]). It is also UDP to
/// this host whose port the program cannot read, because of IP options or in a fragment.
pub fn forwarded(rules: &impl Beside, now: Instant, iface: Iface, frame: &[u8]) -> Option<Forwarded> {
    let (link, bytes) = ethernet::parse(frame).ok()?;
    if link.kind != EtherType::IPV4 || Some(link.dst) != rules.mac(iface) {
        return None;
    }
    let (outer, inner) = ipip::decapsulate(bytes).ok()?;
    let (header, _) = Header::parse(inner).ok()?;
    let is_plain = |bytes: &[u8]| bytes.first() == Some(&0x45) && ipv4::total_len(bytes) == bytes.len();
    if !is_plain(bytes) || !is_plain(inner) || !rules.is_own(outer.dst) {
        return None;
    }
    let port = Port { iface, from: Some(link.src) };
    let policy = rules.ingress_policy(port).1;
    if policy.check.is_some() {
        return None;
    }
    let (opened, packet) = (Datagram::new(&outer, bytes.len()), Datagram::new(&header, inner.len()));
    let open = decide(rules, now, port, &opened);
    let Disposition::Open(class) = open.disposition else { return None };
    let verdict = decide_opened(rules, now, port, class, &packet);
    let routes = [
        rules.route(now, policy.class, outer.src, outer.dst)?,
        rules.route(now, class, header.src, header.dst)?,
    ];
    if routes.iter().any(|found| matches!(found.route.lifetime, Lifetime::SoftState(_))) {
        return None;
    }
    let [_, found] = routes;
    let (hop, kept) = match verdict.disposition {
        Disposition::Out(hop) => (hop, None),
        Disposition::Punt(owner, PuntReason::Action) if found.route.action == Action::Punt => {
            let has_ring = |aside: &Aside| aside.packets > 0 && rules.has_ring(found.entry);
            let aside = found.route.aside.filter(has_ring)?;
            (aside.hop, Some((owner, (outer.src, outer.dst))))
        }
        _ => return None,
    };
    let Hop { iface: leaves, to: NextHop::Mac(mac) } = hop else { return None };
    let fits = inner.len() <= usize::from(rules.mtu(leaves)) && verdict.cut.is_none() && header.ttl > 1;
    let used: Vec<EntryId> = [open.used[1], verdict.used[1]].into_iter().flatten().collect();
    let has_room = kept.is_none() || inner.len() <= ROOM;
    if !fits || !has_room || found.route.notice.is_some() || used.iter().any(|entry| rules.is_idle(*entry)) {
        return None;
    }
    let src = rules.mac(leaves)?;
    let mut inner = inner.to_vec();
    let has_hops = ipv4::decrement_ttl(&mut inner);
    let frame = ethernet::emit(&Frame { kind: EtherType::IPV4, src, dst: mac }, &inner);
    has_hops.then_some(Forwarded { iface: leaves, frame, kept, used })
}
