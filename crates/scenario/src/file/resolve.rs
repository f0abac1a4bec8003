//! Resolves the names of an event to hosts and links of a plan.

use super::EventTable;
use crate::event::PlannedEvent;
use link::{Change, ChangedLink, PortId};
use sim::{HostEvent, Order};
use trace::{EventKind, HostId};
use wire::{Cell, Instant};

/// A lookup of a scenario's names in a plan. Each function returns `None`, or an empty list, for an unknown name.
pub(crate) trait Places {
    /// Returns a host by its name.
    fn host(&self, name: &str) -> Option<HostId>;
    /// Returns the ports at the first and the second end of a wire.
    fn wire(&self, name: &str) -> Option<[PortId; 2]>;
    /// Returns the number that a segment has as a cell of the fabric.
    fn segment(&self, name: &str) -> Option<Cell>;
    /// Returns the host at the first end of a wire, or the first host of a segment.
    fn first_end(&self, name: &str) -> Option<HostId>;
    /// Returns the base station of a cell.
    fn station(&self, cell: u16) -> Option<HostId>;
    /// Returns the ports of a host's radios.
    fn radios(&self, host: HostId) -> Vec<PortId>;
}

/// Resolves the names of an event. `None` if a name is unknown or a value is missing; the checks of the scenario
/// refuse such an event before.
pub(crate) fn resolve(table: &EventTable, places: &impl Places) -> Option<PlannedEvent> {
    let host = || places.host(table.host.as_deref()?);
    let of_host = |event: HostEvent| Some(Order::Host(host()?, event));
    let of_link = |change: Change| link(table, places, change);
    let order = match table.kind {
        EventKind::Crash => of_host(HostEvent::Crash),
        EventKind::Restart => of_host(HostEvent::Restart),
        EventKind::Stop => of_host(HostEvent::Stop),
        EventKind::Continue => of_host(HostEvent::Continue),
        EventKind::Clock => of_host(HostEvent::Clock(table.step?.0)),
        EventKind::DiskFull => of_host(HostEvent::DiskFull),
        EventKind::DiskFree => of_host(HostEvent::DiskFree),
        EventKind::Cut => of_link(Change::Cut),
        EventKind::Restore => of_link(Change::Restore),
        EventKind::Loss => of_link(Change::Loss(table.loss?)),
        EventKind::Mtu => of_link(Change::Mtu(table.mtu?)),
    }?;
    Some(PlannedEvent {
        at: Instant::ZERO + table.at,
        order,
        recorded: table.recorded(),
        table: table.clone(),
    })
}

fn link(table: &EventTable, places: &impl Places, change: Change) -> Option<Order> {
    if let Some(wire) = table.wire.as_deref() {
        let of_segment = || places.segment(wire).map(ChangedLink::Cell);
        let place = places.wire(wire).map(ChangedLink::Wire).or_else(of_segment)?;
        return Some(Order::Link(places.first_end(wire)?, vec![place], change));
    }
    let cell = table.cell?;
    let Some(host) = table.host.as_deref() else {
        return Some(Order::Link(places.station(cell)?, vec![ChangedLink::Cell(Cell(cell))], change));
    };
    let host = places.host(host)?;
    let radios = places.radios(host).into_iter().map(|port| ChangedLink::Radio(Cell(cell), port));
    Some(Order::Link(host, radios.collect(), change))
}
