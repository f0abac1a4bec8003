//! The faults of a run, its links, and the times in which hosts had no link. They are computed once for a run.

use crate::faults::{Boundary, Fault, NOT_ENDED, faults};
use crate::ledger::{ends, owners};
use link::{ChangedLink, PortId};
use scenario::Plan;
use sim::Order;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Cell, Iface, Instant, Mac};

/// The name of the end of a time in which a radio had no link, if it lasted until the end of the examined range of
/// time.
pub(super) const NOT_UP: &str = "not_up";

/// An interface of a host.
pub(super) type HostInterface = (HostId, Iface);

/// The links of one host over time.
#[derive(Default)]
struct OwnLinks {
    /// The radios that have a link.
    up: BTreeSet<Iface>,
    /// The times in which no radio had a link. The last one has no end if no radio got a link again.
    without: Vec<(Boundary, Option<Boundary>)>,
    /// Each change of a radio's link, and whether the radio got one.
    changes: Vec<(Instant, bool)>,
    /// When the host first had a wire.
    wired: Option<Instant>,
}

/// The faults and links of a run.
pub(super) struct Links<'a> {
    /// The faults, in the order of their begin. The second event of a fault that lasted until the run ended is
    /// [`NOT_ENDED`].
    faults: Vec<Fault<'a>>,
    hosts: BTreeMap<HostId, OwnLinks>,
    /// The cells of each radio, with the time from which the radio was in the cell or tuned to it.
    cells: BTreeMap<HostInterface, Vec<(Instant, Cell)>>,
    /// The other end of each wire.
    wires: BTreeMap<HostInterface, HostInterface>,
    /// The host of each link address.
    owners: BTreeMap<Mac, HostId>,
    /// The interfaces at the ends of each wire that an event of the scenario changes, by the name of the link in
    /// events.
    changed_wires: BTreeMap<String, BTreeSet<HostInterface>>,
    /// The cells that an event of the scenario changes, by the name of the link in events.
    changed_cells: BTreeMap<String, BTreeSet<Cell>>,
}

impl<'a> Links<'a> {
    /// `tuned` returns the radio that begins to tune to another cell with a record.
    pub(super) fn new(plan: &Plan, records: &'a [Record], tuned: impl Fn(&Record) -> Option<Iface>) -> Self {
        let places = ends(plan);
        let (changed_wires, changed_cells) = changed(plan, &places);
        let mut links = Self {
            faults: faults(records),
            hosts: BTreeMap::new(),
            cells: stations(plan),
            wires: wires(plan, &places),
            owners: owners(plan),
            changed_wires,
            changed_cells,
        };
        for record in records {
            links.note(record, tuned(record));
        }
        links
    }

    fn note(&mut self, Record { at, host, what }: &Record, tuned: Option<Iface>) {
        match what {
            What::Up(iface, Some(cell)) => {
                let own = self.hosts.entry(*host).or_default();
                own.up.insert(*iface);
                own.changes.push((*at, true));
                if let Some((_, back)) = own.without.last_mut().filter(|(_, back)| back.is_none()) {
                    *back = Some((*at, *host, "up".to_owned()));
                }
                self.cells.entry((*host, *iface)).or_default().push((*at, *cell));
            }
            What::Up(iface, None) if *iface != Iface::HOST => {
                let own = self.hosts.entry(*host).or_default();
                own.wired = own.wired.or(Some(*at));
            }
            What::Down(iface, why) if !is_refusal(why) => self.lose((*at, *host, "down".to_owned()), *iface),
            What::Tuned(_, cell) => {
                if let Some(iface) = tuned {
                    self.lose((*at, *host, "tune".to_owned()), iface);
                    self.cells.entry((*host, iface)).or_default().push((*at, *cell));
                }
            }
            _ => {}
        }
    }

    fn lose(&mut self, gone: Boundary, iface: Iface) {
        let own = self.hosts.entry(gone.1).or_default();
        own.changes.push((gone.0, false));
        if own.up.remove(&iface) && own.up.is_empty() {
            own.without.push((gone, None));
        }
    }

    /// Returns the faults that overlap this range, in the order of their begin. If a fault lasted until the end of
    /// the range, its second event is [`NOT_ENDED`].
    pub(super) fn faults(&self, from: Instant, to: Instant) -> Vec<Fault<'a>> {
        let until = |fault: &Fault<'a>| {
            let mut fault = fault.clone();
            if fault.ended() > to {
                fault.edges[1] = (to, fault.host(), NOT_ENDED.to_owned());
            }
            fault
        };
        let begun = self.faults.partition_point(|fault| fault.begun() <= to);
        let faults = self.faults.get(..begun).unwrap_or_default().iter().map(until);
        faults.filter(|fault| fault.ended() > from).collect()
    }

    /// Returns the times in which no radio of a host had a link, and which overlap this range, in the order of time.
    /// Such a time begins when the last link is lost, even if the loss is before `from`.
    pub(super) fn without_link(&self, host: HostId, from: Instant, to: Instant) -> Vec<[Boundary; 2]> {
        let all = self.hosts.get(&host).map_or(&[][..], |own| own.without.as_slice());
        let begun = all.partition_point(|(gone, _)| gone.0 <= to);
        let within = all.get(..begun).unwrap_or_default().iter().filter_map(|(gone, back)| {
            match back.as_ref().filter(|back| back.0 <= to) {
                Some(back) => (back.0 > from).then(|| [gone.clone(), back.clone()]),
                None => Some([gone.clone(), (to, host, NOT_UP.to_owned())]),
            }
        });
        within.collect()
    }

    /// Returns the times in which a host had no link at all, and got one again later. Empty for a host with a wire.
    pub(super) fn own_link_lost(&self, host: HostId, from: Instant, to: Instant) -> Vec<[Boundary; 2]> {
        let Some(own) = self.hosts.get(&host) else { return Vec::new() };
        // The next change is that a radio gets a link.
        let comes_up = |at: Instant| {
            let next = own.changes.partition_point(|(change, _)| *change < at);
            own.changes.get(next).is_some_and(|(_, is_up)| *is_up)
        };
        let mut lost = self.without_link(host, from, to);
        lost.retain(|[_, back]| back.0 < to || comes_up(back.0));
        if own.wired.is_some_and(|wired| wired <= to) {
            lost.clear();
        }
        lost
    }

    /// Returns the interfaces at the ends of the wires that a fault cuts; `None` if it cuts no wire.
    pub(super) fn cut_wire(&self, fault: &Fault<'_>) -> Option<&BTreeSet<HostInterface>> {
        self.changed_wires.get(fault.target).filter(|ends| fault.is_cut() && !ends.is_empty())
    }

    /// Returns whether an interface was a radio or a base station in a cell that this fault cuts, or tuned to such a
    /// cell.
    pub(super) fn is_in_cut_cell(&self, place: HostInterface, fault: &Fault<'_>, at: Instant) -> bool {
        let cells = self.changed_cells.get(fault.target).filter(|_| fault.is_cut());
        cells.is_some_and(|cells| self.cell_of(place, at).is_some_and(|cell| cells.contains(&cell)))
    }

    /// Returns whether a radio of a host was in a cell that this fault cuts, or tuned to such a cell.
    pub(super) fn has_radio_in_cut_cell(&self, host: HostId, fault: &Fault<'_>, at: Instant) -> bool {
        let mut radios = self.cells.range((host, Iface::HOST)..=(host, Iface(u16::MAX)));
        radios.any(|(radio, _)| self.is_in_cut_cell(*radio, fault, at))
    }

    /// Returns the host with this link address; `None` if there is none, for example for a broadcast.
    pub(super) fn owner(&self, address: Mac) -> Option<HostId> {
        self.owners.get(&address).copied()
    }

    /// Returns whether this interface is an end of a wire to a host.
    pub(super) fn is_wired_to(&self, place: HostInterface, host: HostId) -> bool {
        self.wires.get(&place).is_some_and(|(other, _)| *other == host)
    }

    /// Returns whether a frame that this interface sends can reach a host: by a wire, or in a cell.
    pub(super) fn leads_to(&self, place: HostInterface, host: HostId, at: Instant) -> bool {
        let cell = || self.cell_of(place, at);
        let mut radios =
            self.cells.range((host, Iface::HOST)..=(host, Iface(u16::MAX))).map(|(radio, _)| *radio);
        self.is_wired_to(place, host)
            || cell().is_some_and(|cell| radios.any(|radio| self.cell_of(radio, at) == Some(cell)))
    }

    /// Returns whether a packet waits because of a fault: at its host, at a link to this host, or at an end of a cut
    /// link. Without an interface, the packet is in the node, for example because ARP has no answer.
    pub(super) fn waits_at(
        &self,
        (host, iface): (HostId, Option<Iface>),
        fault: &Fault<'_>,
        at: Instant,
    ) -> bool {
        let waits = |place: HostInterface| match self.cut_wire(fault) {
            Some(ends) => ends.contains(&place),
            None if fault.is_cut() => self.is_in_cut_cell(place, fault, at),
            None => self.leads_to(place, fault.host(), at),
        };
        let own = || self.wires.keys().chain(self.cells.keys()).filter(|place| place.0 == host);
        let is_at_host = host == fault.host() && !fault.is_cut();
        is_at_host || iface.map_or_else(|| own().any(|place| waits(*place)), |iface| waits((host, iface)))
    }

    fn cell_of(&self, place: HostInterface, at: Instant) -> Option<Cell> {
        let cells = self.cells.get(&place)?;
        cells.get(cells.partition_point(|(since, _)| *since <= at).checked_sub(1)?).map(|(_, cell)| *cell)
    }
}

/// Returns whether the reason of a [`What::Down`] is that the radio cannot tune to the requested cell. Then the link is
/// as before.
pub(super) fn is_refusal(why: &str) -> bool {
    why == node::Link::UNSUPPORTED
}

/// Returns the cells of the base stations.
fn stations(plan: &Plan) -> BTreeMap<HostInterface, Vec<(Instant, Cell)>> {
    let hosts = (0..).map(HostId).zip(&plan.hosts);
    let of_host = |(id, host): (HostId, &'_ scenario::HostPlan)| -> Vec<_> {
        let cells = host.ports.iter().map(|port| port.radio.as_ref().and_then(|radio| radio.cell));
        let cells = (1..).map(Iface).zip(cells);
        cells.filter_map(|(iface, cell)| Some(((id, iface), vec![(Instant::ZERO, cell?)]))).collect()
    };
    hosts.flat_map(of_host).collect()
}

/// Returns the other end of each wire.
fn wires(plan: &Plan, places: &BTreeMap<PortId, HostInterface>) -> BTreeMap<HostInterface, HostInterface> {
    let ends =
        plan.wires.iter().filter_map(|([one, other], _)| Some((*places.get(one)?, *places.get(other)?)));
    ends.flat_map(|(one, other)| [(one, other), (other, one)]).collect()
}

/// Returns the ends of the wires, and the cells, that an event of the scenario changes, by the name of the link in
/// events.
fn changed(
    plan: &Plan,
    places: &BTreeMap<PortId, HostInterface>,
) -> (BTreeMap<String, BTreeSet<HostInterface>>, BTreeMap<String, BTreeSet<Cell>>) {
    let (mut wires, mut cells) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for event in &plan.events {
        let Order::Link(_, links, _) = &event.order else { continue };
        let name = event.recorded.target.to_string();
        for link in links {
            match link {
                ChangedLink::Wire(ends) => {
                    let ends = ends.iter().filter_map(|end| places.get(end).copied());
                    wires.entry(name.clone()).or_default().extend(ends);
                }
                ChangedLink::Cell(cell) | ChangedLink::Radio(cell, _) => {
                    _ = cells.entry(name.clone()).or_default().insert(*cell);
                }
            }
        }
    }
    (wires, cells)
}
