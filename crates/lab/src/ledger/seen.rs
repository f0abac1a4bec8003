//! What was told of one packet, in order.

use super::Places;
use super::chain::Chain;
use crate::segment;
use trace::{HostId, What};
use wire::{Iface, Instant, Mac, Packet, PacketId};

/// Where a link ends at a host.
pub(super) type End = (HostId, Iface);

/// One thing that was told of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) at: Instant,
    pub(super) host: HostId,
    pub(super) iface: Iface,
    pub(super) kind: Kind,
    /// Who sent it on the link from which it came, or whom it is for on the link to which it goes.
    pub(super) mac: Mac,
}

/// What it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    FromLink,
    ToLink,
    /// The host's stack gave it to the node.
    FromHost,
    /// The node gave it to the host's stack: a datagram, of which an application will say that it has it.
    ToHost,
    /// The same with what is the stack's own: applications see bytes of TCP, and nothing of ICMP.
    ToStack,
    Dropped,
    Consumed,
    LostByLink,
    LostByStack,
    HeldByLink,
    HeldByStack,
    HeldByRole,
    AppSent,
    AppReceived,
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

    /// What a record says of a packet, if it says anything of one.
    pub(super) fn of(at: Instant, host: HostId, what: &What) -> Option<(PacketId, Self)> {
        let (packet, iface, kind) = match what {
            What::Received(iface, packet) => {
                return Some((packet.id, Self::received(at, host, *iface, packet)));
            }
            What::Sent(iface, packet) => return Some((packet.id, Self::sent(at, host, *iface, packet))),
            What::Dropped(iface, id, reason) if is_consumed(reason) => (*id, *iface, Kind::Consumed),
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

    /// The end of the link on which it was.
    pub(super) const fn end(&self) -> End {
        (self.host, self.iface)
    }
}

fn is_consumed(reason: &str) -> bool {
    reason == node::reason::CONSUMED.0
}

/// Where, which packet and why, if a record says that a copy of one was dropped or lost.
pub(super) fn loss(what: &What) -> Option<(Iface, PacketId, &str)> {
    match what {
        What::Dropped(_, _, reason) if is_consumed(reason) => None,
        What::Dropped(iface, packet, reason) | What::Lost(iface, packet, reason) => {
            Some((*iface, *packet, reason))
        }
        _ => None,
    }
}

/// What was told of one packet.
#[derive(Default)]
pub(super) struct Seen {
    steps: Vec<Step>,
    chain: Chain,
    /// Copies that were put on links or made by them, less those that came out of one, were lost on one or are held by one.
    under_way: i32,
    /// Its books were closed before: what is seen now are copies, which a node kept and nothing told of, or one that was sent again.
    was_closed: bool,
}

impl Seen {
    #[expect(
        clippy::inline_always,
        reason = "who tells of a step knows its kind, and most of this falls away"
    )]
    #[inline(always)]
    pub(super) fn add(&mut self, step: Step, places: &Places) {
        self.under_way += match step.kind {
            Kind::ToLink => 1,
            Kind::FromLink | Kind::LostByLink | Kind::HeldByLink => -1,
            _ => 0,
        };
        self.chain = self.chain.after(&step, places);
        self.steps.push(step);
    }

    /// A link has made copies, which come out of it later.
    pub(super) fn will_come(&mut self, more: u8) {
        self.under_way += i32::from(more);
    }

    /// Whether more went in than ever came out of links: by which one needs no look.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way > 0
    }

    /// Its books were closed before.
    pub(super) fn open_again(&mut self) {
        self.was_closed = true;
    }

    /// Whether the first copy of the packet is among what was seen.
    pub(super) const fn is_first(&self) -> bool {
        !self.was_closed
    }

    /// Where it is, if it is a chain.
    pub(super) const fn chain(&self) -> Chain {
        self.chain
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Forgets everything, and keeps its room.
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.chain = Chain::Nowhere;
        self.under_way = 0;
        self.was_closed = false;
    }
}
