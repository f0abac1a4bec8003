//! Events of a plan: what happens to a host or link, and when.

use crate::file::EventTable;
use sim::{HostEvent, Order};
use trace::HostId;
use wire::Instant;

/// An event of a plan, whose host or link is resolved to numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedEvent {
    /// The instant of the event, from the begin of the run.
    pub at: Instant,
    /// The command ([`Order`]) that the simulator executes at the instant `at`.
    pub order: Order,
    /// The event in the form of the run's records: its kind, its host or link, and its value as text.
    pub recorded: trace::Event,
    /// The event as a table of a scenario: from the scenario's file, or drawn from the seed.
    pub table: EventTable,
}

impl PlannedEvent {
    /// Returns the host that restarts at this event. `None` if the event is no restart.
    pub const fn restarts(&self) -> Option<HostId> {
        match self.order {
            Order::Host(host, HostEvent::Restart) => Some(host),
            _ => None,
        }
    }
}

/// Returns whether packets are lost for `reason` (for example `host_crashed`) only because of events of the scenario.
pub fn is_of_event(reason: &str) -> bool {
    [sim::reason::CRASHED.0, sim::reason::HOST_DOWN.0, link::reason::CUT.0].contains(&reason)
}
