//! The 64-bit words that the types of the forwarding table add to a fingerprint.

use crate::{Fingerprinter, Fold};
use node::{
    Action, Class, Encap, Hop, IngressPolicy, Lifetime, NextHop, Port, PuntReason, RoleId, Route, RouteKey,
    TunnelKind, TunnelKinds,
};

fold_newtype! {
    RoleId(number)
    Class(number)
}

fold_struct! {
    Port { iface, from }
    IngressPolicy { class, check, ttl, icmp, punts }
    RouteKey { class, src, dst }
    Hop { iface, to }
}

/// Adds the action and the lifetime, and one word for the interval of notices if there is one. What a data path beside the
/// node may do is not added: the node does not depend on it.
impl Fold for Route {
    fn fold(&self, into: &mut Fingerprinter) {
        let Self { action, lifetime, notice, aside: _ } = self;
        (action, lifetime).fold(into);
        if let Some(interval) = notice {
            interval.fold(into);
        }
    }
}

/// Adds one word each for both ends, and one word for the MTUs, the kind and whether the tunnel is failing. The word of an
/// IP in IP tunnel about which no error was reported is the MTU.
impl Fold for Encap {
    fn fold(&self, into: &mut Fingerprinter) {
        let Self { src, dst, mtu, reported, kind, is_failing } = self;
        let kind = match kind {
            TunnelKind::IpInIp => 0u64,
            TunnelKind::Minimal => 1,
            TunnelKind::Gre => 2,
        };
        let reported = if reported == mtu { 0 } else { u64::from(*reported) + 1 };
        let rest = kind << 16 | u64::from(*is_failing) << 24 | reported << 32;
        (src, dst, u64::from(*mtu) | rest).fold(into);
    }
}

/// Adds nothing for IP in IP, and one word for other kinds.
impl Fold for TunnelKinds {
    fn fold(&self, into: &mut Fingerprinter) {
        if *self != Self::of(TunnelKind::IpInIp) {
            into.word(u64::from(self.bits()));
        }
    }
}

fold_enum!(Lifetime { 0 Permanent, 1 SoftState(span), 2 ReportIdle(span), 3 Until(end) });
fold_enum!(Action { 0 Forward(hop), 1 Punt, 2 Drop(reason), 3 Host, 4 Tunnel(encap), 5 Open(class, kinds) });
fold_enum!(NextHop { 0 Mac(mac), 1 Via(router), 2 OnLink });
fold_enum!(PuntReason { 0 Listen, 1 Action, 2 Check, 3 ReversePath, 4 Kept(at) });
