//! The 64-bit words that the types of the forwarding table add to a fingerprint.

use node::{
    Action, Class, Encap, Hop, IngressPolicy, Lifetime, NextHop, Port, PuntReason, RoleId, Route, RouteKey,
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
    Encap { src, dst, mtu }
    Hop { iface, to }
}

fold_enum!(Lifetime { 0 Permanent, 1 SoftState(span), 2 ReportIdle(span), 3 Until(end) });
fold_enum!(Action { 0 Forward(hop), 1 Punt, 2 Drop(reason), 3 Host, 4 Tunnel(encap), 5 Open(class) });
fold_enum!(NextHop { 0 Mac(mac), 1 Via(router), 2 OnLink });
fold_enum!(PuntReason { 0 Listen, 1 Action, 2 Check, 3 ReversePath });
