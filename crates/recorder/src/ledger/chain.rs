//! The fast path for a packet whose steps form one unbroken chain: there is one copy at any time, each link brings it
//! to its other end, and it ends once. Nearly every packet does. Its counters balance, so they need not be computed.

use super::Places;
use super::step::{End, Kind, Step};
use trace::HostId;

/// The location of a packet's only copy, while there was never more than one and no step is missing.
///
/// The counters (`books.rs`) of a packet that ends as a chain balance. One node originated it, each node sent or ended
/// all copies that it received, and each link delivered all copies that it took.
#[derive(Clone, Copy, Default)]
pub(super) enum Chain {
    #[default]
    Nowhere,
    /// An application gave it to the host's stack.
    Above(HostId),
    Node(HostId),
    /// On the link that it entered at this end.
    Link(End),
    /// In the host's stack, which will give it to an application.
    Below(HostId),
    Ended {
        delivered: bool,
    },
    /// The steps are no chain; the counters decide.
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
            // A packet that a role makes is first recorded where it leaves the node or ends in it.
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
