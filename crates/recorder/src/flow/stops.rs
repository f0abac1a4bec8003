//! The packets that waited for stopped hosts. A stopped host loses nothing: it takes what reached it when it continues.

use crate::faults::faults;
use crate::ledger::{ends, owners};
use scenario::Plan;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Cell, Duration, EtherType, Iface, Instant, Mac, Packet, PacketId};

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

/// An ARP request of a host that waited for a stop.
struct Asked {
    of: HostId,
    stop: [Instant; 2],
    /// When the answer reached the host that had asked.
    answered: Option<Instant>,
}

/// Follows each copy of a packet from the interface that sends it to the host that receives it.
struct Follower {
    times: BTreeMap<HostId, Vec<[Instant; 2]>>,
    /// The host of each link address.
    owners: BTreeMap<Mac, HostId>,
    cells: BTreeMap<Cell, Duration>,
    /// The propagation delay of the wire or cell of each interface.
    delays: BTreeMap<(HostId, Iface), Duration>,
    /// When the last frame with a packet from a link address reaches the other end of the link.
    sent: BTreeMap<(PacketId, Mac), Instant>,
    /// When each host last received a packet.
    received: BTreeMap<(PacketId, HostId), Instant>,
    /// The ARP requests of each host that waited for stops.
    asked: BTreeMap<HostId, Vec<Asked>>,
    stops: Stops,
}

impl Follower {
    fn new(plan: &Plan, times: BTreeMap<HostId, Vec<[Instant; 2]>>) -> Self {
        let cells = plan.cells.iter().map(|spec| (spec.cell, spec.delay)).collect();
        Self {
            times,
            owners: owners(plan),
            delays: delays(plan, &cells),
            cells,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            asked: BTreeMap::new(),
            stops: Stops::default(),
        }
    }

    fn note(&mut self, Record { at, host, what }: &Record) {
        match what {
            What::Up(iface, Some(cell)) => {
                let delay = self.cells.get(cell).copied().unwrap_or_default();
                self.delays.insert((*host, *iface), delay);
            }
            What::Sent(iface, packet) if *iface != Iface::HOST => {
                self.resolve((*at, *host), packet);
                let delay = self.delays.get(&(*host, *iface)).copied().unwrap_or_default();
                self.sent.insert((packet.id, packet.link.src), *at + delay);
            }
            What::Received(iface, packet) => {
                if *iface != Iface::HOST {
                    self.receive((*at, *host), packet);
                }
                self.received.insert((packet.id, *host), *at);
            }
            _ => {}
        }
    }

    /// Handles a packet that a host receives from a link. It waited if it had reached the host before a stop ended.
    fn receive(&mut self, (at, host): (Instant, HostId), packet: &Packet) {
        let Some(from) = self.owners.get(&packet.link.src).copied() else { return };
        let is_arp = packet.link.kind == EtherType::ARP;
        if is_arp && let Some(asked) = self.asked.get_mut(&host) {
            for asked in asked.iter_mut().filter(|asked| asked.of == from) {
                asked.answered.get_or_insert(at);
            }
        }
        let Some(reached) = self.sent.get(&(packet.id, packet.link.src)).copied() else { return };
        let waits =
            |[_, ended]: &&[Instant; 2]| reached < *ended && *ended <= at && at.since(*ended) <= CATCH_UP;
        let Some(stop) = self.times.get(&host).and_then(|all| all.iter().find(waits)).copied() else {
            return;
        };
        self.stops.add(packet.id, reached, (host, stop));
        if is_arp {
            self.asked.entry(from).or_default().push(Asked { of: host, stop, answered: None });
        }
    }

    /// Handles a packet that a host sends. If the host received it during a stop, and could send it only with the address
    /// of the stopped host, it waited with the ARP request.
    fn resolve(&mut self, (at, host): (Instant, HostId), packet: &Packet) {
        let to = self.owners.get(&packet.link.dst);
        let received = self.received.get(&(packet.id, host));
        let (Some(all), Some(to), Some(received)) = (self.asked.get(&host), to, received) else { return };
        let resolves = |asked: &&Asked| {
            let is_next = asked.answered.is_some_and(|answered| at.since(answered) <= CATCH_UP);
            asked.of == *to && is_next && (asked.stop[0]..asked.stop[1]).contains(received)
        };
        if let Some(Asked { of, stop, .. }) = all.iter().find(resolves) {
            self.stops.add(packet.id, *received, (*of, *stop));
        }
    }
}

impl Stops {
    pub(super) fn new(plan: &Plan, records: &[Record]) -> Self {
        let times = times(records);
        if times.is_empty() {
            return Self::default();
        }
        let mut follower = Follower::new(plan, times);
        for record in records {
            follower.note(record);
        }
        follower.stops
    }

    /// Adds a packet that reached a host during a stop, or before it.
    fn add(&mut self, packet: PacketId, reached: Instant, (host, [begun, _]): (HostId, [Instant; 2])) {
        self.reached.entry(packet).or_default().push(reached.max(begun));
        self.waited.entry((host, begun)).or_default().insert(packet);
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

/// Returns the propagation delay of each wire, by the interface that sends, and of the cell of each base station and of
/// each interface at a segment.
fn delays(plan: &Plan, cells: &BTreeMap<Cell, Duration>) -> BTreeMap<(HostId, Iface), Duration> {
    let places = ends(plan);
    let sides = plan.wires.iter().flat_map(|(ports, spec)| ports.iter().zip(spec.delay));
    let wires = sides.filter_map(|(port, delay)| Some((*places.get(port)?, delay)));
    let ports = plan.hosts.iter().flat_map(|host| &host.ports);
    let radios = ports.filter_map(|port| {
        let cell = port.radio.as_ref()?.cell?;
        Some((*places.get(&port.port)?, *cells.get(&cell)?))
    });
    wires.chain(radios).collect()
}
