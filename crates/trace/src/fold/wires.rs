//! The 64-bit words that [`HostId`] and the types of the crate `wire` add to a fingerprint.

use crate::{Fingerprinter, Fold, HostId};
use wire::ipv4::Header;
use wire::{
    Cell, EtherType, Frame, Iface, Instant, InterfaceAddress, Mac, Packet, PacketId, Prefix, Reason,
    RoundTripTime, Seq, TcpState, WallTime,
};

fold_newtype! {
    Instant(nanoseconds)
    WallTime(nanoseconds)
    PacketId(number)
    EtherType(number)
    Iface(number)
    Cell(number)
    Reason(name)
    Seq(number)
    HostId(number)
}

fold_struct! {
    Frame { kind, src, dst }
    Packet { link, id, bytes }
    InterfaceAddress { address, link }
    RoundTripTime { smoothed, variation }
    Header { tos, id, dont_fragment, more_fragments, offset, ttl, protocol, src, dst }
    TcpState {
        local, remote, send_una, send_next, send_window, largest_window, window_seq, window_ack, send_scale,
        receive_next, receive_window, receive_scale, mss, unacknowledged, unread, finishing, finished, timestamp,
        sack_permitted, round_trip,
    }
}

impl Fold for Mac {
    fn fold(&self, into: &mut Fingerprinter) {
        let [a, b, c, d, e, f] = self.0;
        into.word(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
    }
}

impl Fold for Prefix {
    fn fold(&self, into: &mut Fingerprinter) {
        (self.address(), self.len()).fold(into);
    }
}
