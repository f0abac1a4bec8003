//! The 64-bit words that the inputs of a node add to a fingerprint.

use node::{Boot, Command, CommandId, FailedAct, Fault, Input, Link, Notification, Rx, Value};

fold_newtype! {
    CommandId(number)
}

fold_struct! {
    Boot { wall, stored, clean }
    Command { verb, args }
    Fault { role, act, why }
    Rx { iface, why, tunnel, header }
}

fold_enum!(Input<'_> {
    0 Start(boot),
    1 Timeout,
    2 Packet(rx, packet),
    3 Link(iface, event),
    4 Idle(key, used),
    5 Stream(stream, event),
    6 Command(id, command),
    7 Failed(fault),
    8 Wall(time),
    9 Serve(stream, op),
    10 Stored(key),
    11 Notification(notification),
    12 Notice(rx),
});
fold_enum!(Notification { 0 Gateway(router), 1 AddressAcquired(iface, address, router), 2 AddressLost(iface, address),
    3 AddressInUse(iface, address, mac), 4 TunnelExit(from, to, is_open), 5 TunnelEntry(from, to, is_open) });
fold_enum!(FailedAct { 0 Store(key), 1 Address(iface, address, added) });
fold_enum!(Link<'_> { 0 Up { cell, mac, mtu, name }, 1 Down(why), 2 Heard(cell, strength) });
fold_enum!(Value { 0 None, 1 Int(number), 2 Text(text), 3 List(items), 4 Map(entries) });
