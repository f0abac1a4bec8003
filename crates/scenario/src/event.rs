//! Events of a plan: what happens to a host or link, and when.

use crate::file::EventTable;
use sim::{HostEvent, Order};
use trace::HostId;
use wire::Instant;

/// An event whose names are all resolved.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedEvent {
    /// When the event happens.
    pub at: Instant,
    /// What the simulator is to do.
    pub order: Order,
    /// The event as it is recorded.
    pub recorded: trace::Event,
    /// The table of the event: from the scenario's file, or drawn from the seed.
    pub table: EventTable,
}

impl PlannedEvent {
    /// Returns the host that restarts at this event, if any.
    pub const fn restarts(&self) -> Option<HostId> {
        match self.order {
            Order::Host(host, HostEvent::Restart) => Some(host),
            _ => None,
        }
    }
}

/// Returns whether this reason for a loss occurs only with events of the scenario.
pub fn is_of_event(reason: &str) -> bool {
    [sim::reason::CRASHED.0, sim::reason::HOST_DOWN.0, link::reason::CUT.0].contains(&reason)
}
