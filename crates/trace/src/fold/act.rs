//! The 64-bit words that acts and marks add to a fingerprint.

use node::{Act, Mark, Neighbor, Span, Stage};

fold_struct! {
    Mark { role, name, span, packet, fields }
}

fold_enum!(Act {
    0 Transmit(iface, packet),
    1 Drop(iface, packet, reason),
    2 Route(key, route),
    3 IngressPolicy(port, policy),
    4 Tune(iface, cell),
    5 SendInCell(iface, cell, packet),
    6 Stream(stream, op),
    7 Mark(mark),
    8 Answer(id, answer),
    9 Neighbor(iface, address, neighbor),
    10 Address(iface, address, added),
    11 Store(key, value),
    12 Served(event),
    13 Delivered(event),
});
fold_enum!(Neighbor { 0 At(mac), 1 Proxy, 2 Mute, 3 Watched });
fold_enum!(Span { 0 Begins(stage), 1 Ends(stage) });
fold_enum!(Stage {
    0 Link,
    1 Detection,
    2 Address,
    3 Registration,
    4 PathSwitch,
    5 FirstByte,
    6 Recovery,
    7 Traffic,
});
