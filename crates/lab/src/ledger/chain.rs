//! The short way to close a packet's books. Nearly every packet is one unbroken chain of steps: there was one copy of it at
//! any time, each link brought it to its other end, and it ended once. Then all books are even, and none has to be opened.

use super::Places;
use super::seen::{End, Kind, Step};
use trace::HostId;

/// Where the only copy of a packet is.
#[derive(Clone, Copy)]
enum Place {
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
}

/// How often a packet was delivered that was such a chain. `None` if it was none, or has not ended: then the books say.
///
/// What this accepts has even books (`books.rs`): it came to each node as often as it left it or ended there, began at one, and
/// each link brought it out as often as it went in.
pub(super) fn delivered(steps: &[Step], places: &Places) -> Option<u64> {
    let mut place = Place::Nowhere;
    for step in steps {
        place = place.after(step, places)?;
    }
    match place {
        Place::Ended { delivered } => Some(u64::from(delivered)),
        _ => None,
    }
}

impl Place {
    fn after(self, step: &Step, places: &Places) -> Option<Self> {
        let host = step.host;
        match (self, step.kind) {
            (Self::Nowhere, Kind::AppSent) => Some(Self::Above(host)),
            (Self::Nowhere, Kind::FromHost) => Some(Self::Node(host)),
            (Self::Above(from), Kind::FromHost) if from == host => Some(Self::Node(host)),
            (Self::Link(from), Kind::FromLink) if places.are_joined(from, step.end()) => {
                Some(Self::Node(host))
            }
            (Self::Link(from), Kind::LostByLink) if from == step.end() => {
                Some(Self::Ended { delivered: false })
            }
            (Self::Below(at), Kind::AppReceived) if at == host => Some(Self::Ended { delivered: true }),
            // A packet that a role has made is first seen where it leaves the node, or ends there.
            (Self::Nowhere, _) => Self::out_of_node(step),
            (Self::Node(at), _) if at == host => Self::out_of_node(step),
            _ => None,
        }
    }

    const fn out_of_node(step: &Step) -> Option<Self> {
        match step.kind {
            Kind::ToLink => Some(Self::Link(step.end())),
            Kind::ToHost => Some(Self::Below(step.host)),
            Kind::ToStack | Kind::Consumed => Some(Self::Ended { delivered: true }),
            Kind::Dropped => Some(Self::Ended { delivered: false }),
            _ => None,
        }
    }
}
