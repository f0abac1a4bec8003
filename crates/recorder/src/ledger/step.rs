//! One recorded step of a packet.

use crate::segment;
use trace::{HostId, What};
use wire::{Iface, Instant, Mac, Packet, PacketId};

/// One end of a link: a host and its interface.
pub(super) type End = (HostId, Iface);

/// One recorded event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) host: HostId,
    pub(super) iface: Iface,
    pub(super) kind: Kind,
    /// For a frame from a link, the sender's link address; for a frame to a link, the destination's.
    pub(super) mac: Mac,
}

/// The kind of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    FromLink,
    ToLink,
    /// From the host's stack to the node.
    FromHost,
    /// From the node to the host's stack: a datagram, which an application will report as received.
    ToHost,
    /// From the node to the host's stack, which is the final receiver: applications do not report TCP segments or
    /// ICMP packets.
    ToStack,
    Dropped,
    Consumed,
    /// A fragment that has arrived and does not continue: its datagram continues in place of another fragment.
    Joined,
    LostByLink,
    LostByStack,
    HeldByLink,
    HeldByStack,
    HeldByRole,
    AppSent,
    AppReceived,
}

impl Kind {
    /// Returns whether a copy leaves the node, ends in it or is held by it.
    pub(super) const fn is_out_of_node(self) -> bool {
        matches!(
            self,
            Self::ToLink
                | Self::ToHost
                | Self::ToStack
                | Self::Dropped
                | Self::Consumed
                | Self::Joined
                | Self::HeldByRole
        )
    }
}

impl Step {
    pub(super) fn received(at: Instant, host: HostId, iface: Iface, packet: &Packet) -> Self {
        let kind = if iface == Iface::HOST { Kind::FromHost } else { Kind::FromLink };
        Self { at, host, iface, kind, mac: packet.link.src }
    }

    pub(super) fn sent(at: Instant, host: HostId, iface: Iface, packet: &Packet) -> Self {
        let kind = match iface {
            Iface::HOST if segment::is_datagram(packet) => Kind::ToHost,
            Iface::HOST => Kind::ToStack,
            _ => Kind::ToLink,
        };
        Self { at, host, iface, kind, mac: packet.link.dst }
    }

    /// Returns the packet and the step of a record, or `None` if the record is not about a packet.
    pub(super) fn of(at: Instant, host: HostId, what: &What) -> Option<(PacketId, Self)> {
        let (packet, iface, kind) = match what {
            What::Received(iface, packet) => {
                return Some((packet.id, Self::received(at, host, *iface, packet)));
            }
            What::Sent(iface, packet) => return Some((packet.id, Self::sent(at, host, *iface, packet))),
            What::Dropped(iface, id, reason) if is_consumed(reason) => (*id, *iface, Kind::Consumed),
            What::Dropped(iface, id, reason) if is_joined(reason) => (*id, *iface, Kind::Joined),
            What::Dropped(iface, id, _) => (*id, *iface, Kind::Dropped),
            What::Lost(Iface::HOST, id, _) => (*id, Iface::HOST, Kind::LostByStack),
            What::Lost(iface, id, _) => (*id, *iface, Kind::LostByLink),
            What::Held(Some(Iface::HOST), id) => (*id, Iface::HOST, Kind::HeldByStack),
            What::Held(Some(iface), id) => (*id, *iface, Kind::HeldByLink),
            What::Held(None, id) => (*id, Iface::HOST, Kind::HeldByRole),
            What::AppSent(id) => (*id, Iface::HOST, Kind::AppSent),
            What::AppReceived(id) => (*id, Iface::HOST, Kind::AppReceived),
            _ => return None,
        };
        Some((packet, Self { at, host, iface, kind, mac: Mac::ZERO }))
    }

    /// Returns the host and the interface of the step.
    pub(super) const fn end(&self) -> End {
        (self.host, self.iface)
    }
}

fn is_consumed(reason: &str) -> bool {
    reason == node::reason::CONSUMED.0
}

/// Returns whether the drop of a fragment is no loss: its datagram is whole, or the fragment is a copy.
fn is_joined(reason: &str) -> bool {
    [node::reason::REASSEMBLED.0, node::reason::FRAGMENT_COPY.0].contains(&reason)
}

/// Returns the interface, the packet and the reason, if the record is a drop or a loss.
pub(super) fn loss(what: &What) -> Option<(Iface, PacketId, &str)> {
    match what {
        What::Dropped(_, _, reason) if is_consumed(reason) || is_joined(reason) => None,
        What::Dropped(iface, packet, reason) | What::Lost(iface, packet, reason) => {
            Some((*iface, *packet, reason))
        }
        _ => None,
    }
}
