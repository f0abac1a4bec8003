//! The packets that waited for stopped hosts. A stopped host loses nothing: it takes what reached it when it continues.

use crate::faults::faults;
use crate::ledger::ends;
use scenario::Plan;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Duration, EtherType, Iface, Instant, PacketId};

/// The longest time in which a host takes what has waited, when it continues. What comes later was still in the queue of a link.
const CATCH_UP: Duration = Duration::from_millis(50);

/// A stop of a host, by the host and the begin of the stop.
type Stop = (HostId, Instant);

/// The packets of a run that waited for stopped hosts.
#[derive(Default)]
pub(crate) struct Stops {
    /// When each packet reached stopped hosts, in the order of time.
    reached: BTreeMap<PacketId, Vec<Instant>>,
    waited: BTreeMap<Stop, BTreeSet<PacketId>>,
}

impl Stops {
    pub(super) fn new(plan: &Plan, records: &[Record]) -> Self {
        let times = times(records);
        let mut stops = Self::default();
        if times.is_empty() {
            return stops;
        }
        let delays = delays(plan);
        // The host that last had each packet, and when the packet left it and reached the next host.
        let mut last: BTreeMap<PacketId, (HostId, Instant)> = BTreeMap::new();
        // The stops for which ARP requests of each host waited.
        let mut asked: BTreeMap<HostId, Vec<(HostId, [Instant; 2])>> = BTreeMap::new();
        for record in records {
            let Some((id, sent_by)) = packet(record) else { continue };
            let (host, at) = (record.host, record.at);
            if let Some((before, reached)) = last.get(&id).copied() {
                // What the host had already at the begin of the stop is kept there for another reason.
                let waits = |[begun, ended]: &&[Instant; 2]| {
                    let is_next = *ended <= at && at.since(*ended) <= CATCH_UP;
                    reached < *ended && is_next && (reached >= *begun || before != host)
                };
                let stop = times.get(&host).and_then(|all| all.iter().find(waits)).copied();
                if let Some(stop) = stop.filter(|_| is_arp(record)) {
                    asked.entry(before).or_default().push((host, stop));
                }
                // A packet whose sender waits for an answer to ARP waits with the request.
                let resolves = |(_, [begun, ended]): &&(HostId, [Instant; 2])| {
                    sent_by.is_some() && before == host && (*begun..*ended).contains(&reached) && *ended <= at
                };
                let resolved = || asked.get(&host)?.iter().find(resolves).copied();
                if let Some((of, [begun, _])) = stop.map(|stop| (host, stop)).or_else(resolved) {
                    stops.reached.entry(id).or_default().push(reached.max(begun));
                    stops.waited.entry((of, begun)).or_default().insert(id);
                }
            }
            let delay = sent_by.and_then(|iface| delays.get(&(host, iface))).copied().unwrap_or_default();
            last.insert(id, (host, at + delay));
        }
        stops
    }

    /// Returns all packets that waited for a stopped host.
    pub(super) fn packets(&self) -> impl Iterator<Item = &PacketId> {
        self.reached.keys()
    }

    /// Returns whether a packet waited for the stop of this host that began at `begun`.
    pub(crate) fn is_waiting(&self, packet: PacketId, host: HostId, begun: Instant) -> bool {
        self.waiting(host, begun).is_some_and(|all| all.contains(&packet))
    }

    /// Returns the packets that waited for the stop of this host that began at `begun`; `None` if there are none.
    pub(crate) fn waiting(&self, host: HostId, begun: Instant) -> Option<&BTreeSet<PacketId>> {
        self.waited.get(&(host, begun))
    }

    /// Returns when a packet that was lost first waited for a stopped host, between `from` and `until`. Returns `until`
    /// if it did not wait.
    pub(super) fn since(&self, packet: PacketId, [from, until]: [Instant; 2]) -> Instant {
        let reached = self.reached.get(&packet).into_iter().flatten();
        reached.copied().find(|at| (from..until).contains(at)).unwrap_or(until)
    }
}

/// Returns the begin and the end of each stop of each host.
fn times(records: &[Record]) -> BTreeMap<HostId, Vec<[Instant; 2]>> {
    let mut times: BTreeMap<HostId, Vec<[Instant; 2]>> = BTreeMap::new();
    for stop in faults(records).iter().filter(|fault| fault.is_stop()) {
        times.entry(stop.host()).or_default().push([stop.begun(), stop.ended()]);
    }
    times
}

/// Returns whether the packet of a record is an ARP message.
fn is_arp(record: &Record) -> bool {
    matches!(&record.what, What::Received(_, packet) if packet.link.kind == EtherType::ARP)
}

/// Returns the packet of a record, and the link by which it left the host.
fn packet(record: &Record) -> Option<(PacketId, Option<Iface>)> {
    match &record.what {
        What::Sent(iface, packet) => Some((packet.id, Some(*iface))),
        What::Received(_, packet) => Some((packet.id, None)),
        What::Dropped(_, id, _) | What::Lost(_, id, _) | What::AppReceived(id) => Some((*id, None)),
        _ => None,
    }
}

/// Returns the propagation delay of each wire, by the interface that sends.
fn delays(plan: &Plan) -> BTreeMap<(HostId, Iface), Duration> {
    let places = ends(plan);
    let sides = plan.wires.iter().flat_map(|(ports, spec)| ports.iter().zip(spec.delay));
    sides.filter_map(|(port, delay)| Some((*places.get(port)?, delay))).collect()
}
