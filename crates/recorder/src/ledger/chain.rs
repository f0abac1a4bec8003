//! The fast path for a packet whose steps form one unbroken chain. Such a packet has one copy at any time, each link
//! delivers or loses this copy, and the copy ends once. Nearly all packets are chains. Their counters balance, so they
//! need not be computed.

use super::Places;
use super::step::{End, Kind, Step};
use trace::HostId;

/// The location of the only copy of a packet. The steps are a chain if the packet never had a second copy and no step
/// is missing.
///
/// The counters (`books.rs`) of a packet that ends as a chain balance. One node originated the packet, each node sent
/// or ended the copy that it received, and each link delivered or lost the copy that entered it.
#[derive(Clone, Copy, Default)]
pub(super) enum Chain {
    #[default]
    Nowhere,
    /// An application gave the packet to the host's stack.
    Above(HostId),
    Node(HostId),
    /// On a link. The packet entered the link at this end.
    Link(End),
    /// In the host's stack, which will give the packet to an application.
    Below(HostId),
    Ended {
        delivered: bool,
    },
    /// The steps are no chain, so the packet is counted place by place.
    Broken,
}

impl Chain {
    /// Returns how often the packet was delivered (0 or 1), or `None` while the chain has not ended or is broken.
    pub(super) fn delivered(self) -> Option<u64> {
        match self {
            Self::Ended { delivered } => Some(u64::from(delivered)),
            _ => None,
        }
    }

    /// Returns the chain extended by a step.
    #[expect(clippy::inline_always, reason = "as that which adds the step")]
    #[inline(always)]
    pub(super) fn after(self, step: &Step, places: &Places) -> Self {
        let host = step.host;
        match (step.kind, self) {
            (Kind::FromLink, Self::Link(from)) if places.are_joined(from, step.end()) => Self::Node(host),
            (Kind::FromHost, Self::Nowhere) => Self::Node(host),
            (Kind::FromHost, Self::Above(from)) if from == host => Self::Node(host),
            (Kind::AppSent, Self::Nowhere) => Self::Above(host),
            (Kind::AppReceived, Self::Below(at)) if at == host => Self::Ended { delivered: true },
            (Kind::LostByLink, Self::Link(from)) if from == step.end() => Self::Ended { delivered: false },
            // The first record of a packet that a role makes is that the packet leaves the node or ends in the node.
            (_, Self::Nowhere) => Self::out_of_node(step),
            (_, Self::Node(at)) if at == host => Self::out_of_node(step),
            _ => Self::Broken,
        }
    }

    const fn out_of_node(step: &Step) -> Self {
        match step.kind {
            Kind::ToLink => Self::Link(step.end()),
            Kind::ToHost => Self::Below(step.host),
            Kind::ToStack | Kind::Consumed => Self::Ended { delivered: true },
            Kind::Dropped => Self::Ended { delivered: false },
            _ => Self::Broken,
        }
    }
}
