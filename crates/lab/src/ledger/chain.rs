//! The short way to close a packet's books. Nearly every packet is one unbroken chain of steps: there was one copy of it at
//! any time, each link brought it to its other end, and it ended once. Then all books are even, and none has to be opened.

use super::Places;
use super::seen::{End, Kind, Step};
use trace::HostId;

/// Where the only copy of a packet is, while there was never more than one, and nothing is missing.
///
/// A packet that ends as such has even books (`books.rs`): it came to each node as often as it left it or ended there, began
/// at one, and each link brought it out as often as it went in.
#[derive(Clone, Copy, Default)]
pub(super) enum Chain {
    #[default]
    Nowhere,
    /// An application has given it to the host's stack.
    Above(HostId),
    Node(HostId),
    /// On a link since it left this end.
    Link(End),
    /// With the host's stack, which has an application to give it to.
    Below(HostId),
    Ended {
        delivered: bool,
    },
    /// It is none: the books have to say.
    Broken,
}

impl Chain {
    /// How often the packet was delivered, if it has come to its end.
    pub(super) fn delivered(self) -> Option<u64> {
        match self {
            Self::Ended { delivered } => Some(u64::from(delivered)),
            _ => None,
        }
    }

    /// With one step more.
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
            // What a role has made is first seen where it leaves the node, or ends there.
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
