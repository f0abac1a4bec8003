//! Events of a plan: what happens to a host or link, and when.

use crate::file::EventTable;
use sim::{HostEvent, Order};
use trace::HostId;
use wire::Instant;

/// An event of a plan, whose host or link is resolved to numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedEvent {
    /// When the event happens, from the begin of the run.
    pub at: Instant,
    /// The command ([`Order`]) that the simulator executes at the instant `at`.
    pub order: Order,
    /// The event as a record of the run has it.
    pub recorded: trace::Event,
    /// The event as a table of a scenario: from the scenario's file, or drawn from the seed.
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

/// Returns whether packets are lost for `reason` only because of events of the scenario, for example a crash.
pub fn is_of_event(reason: &str) -> bool {
    [sim::reason::CRASHED.0, sim::reason::HOST_DOWN.0, link::reason::CUT.0].contains(&reason)
}
