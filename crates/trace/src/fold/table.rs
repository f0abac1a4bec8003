//! The 64-bit words that the types of the forwarding table add to a fingerprint.

use crate::{Fingerprinter, Fold};
use node::{
    Action, Class, Encap, Hop, IngressPolicy, Lifetime, NextHop, Port, PuntReason, RoleId, Route, RouteKey,
    TunnelKind,
};

fold_newtype! {
    RoleId(number)
    Class(number)
}

fold_struct! {
    Port { iface, from }
    IngressPolicy { class, check, ttl, icmp, punts }
    RouteKey { class, src, dst }
    Route { action, lifetime }
    Hop { iface, to }
}

/// Adds one word each for both ends, and one word for the MTU, the kind and whether the tunnel is failing. The word of an
/// IP in IP tunnel that does not fail is the MTU.
impl Fold for Encap {
    fn fold(&self, into: &mut Fingerprinter) {
        let Self { src, dst, mtu, kind, is_failing } = self;
        let kind = match kind {
            TunnelKind::IpInIp => 0u64,
            TunnelKind::Minimal => 1,
            TunnelKind::Gre => 2,
        };
        (src, dst, u64::from(*mtu) | kind << 16 | u64::from(*is_failing) << 24).fold(into);
    }
}

fold_enum!(Lifetime { 0 Permanent, 1 SoftState(span), 2 ReportIdle(span), 3 Until(end) });
fold_enum!(Action { 0 Forward(hop), 1 Punt, 2 Drop(reason), 3 Host, 4 Tunnel(encap), 5 Open(class) });
fold_enum!(NextHop { 0 Mac(mac), 1 Via(router), 2 OnLink });
fold_enum!(PuntReason { 0 Listen, 1 Action, 2 Check, 3 ReversePath });
