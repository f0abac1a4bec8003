//! What applications sent and were handed: the traffic by which an outage is measured.
//!
//! A datagram counts when an application is handed it. Of TCP a segment counts when the host's stack is handed it, and
//! what the application notices is the bytes that it reads.

use crate::Plan;
use crate::control::Control;
use crate::segment;
use std::collections::{BTreeMap, BTreeSet};
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant, Packet, PacketId};

/// A moment at which an application was handed something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    /// The packet that made it possible.
    pub(super) packet: PacketId,
    /// Bytes of a stream, whose sender repeats what was lost.
    pub(super) stream: bool,
}

/// The traffic of a run.
#[derive(Default)]
pub(super) struct Traffic {
    /// When each packet left its origin's application or stack, and where.
    sent: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    /// When each was handed to an application or, of TCP, to a stack, and where.
    received: BTreeMap<PacketId, Vec<(Instant, HostId)>>,
    arrivals: BTreeMap<HostId, Vec<Arrival>>,
    /// Copies that an application was handed beyond the first.
    doubles: Vec<(Instant, HostId)>,
    /// What was lost, by the host that it was for: when a datagram that reached nobody was last heard of, and when a
    /// segment was dropped.
    lost: Vec<(Instant, HostId)>,
    /// When a segment that reached nobody was dropped, by the host that it was from.
    failed: Vec<(Instant, HostId)>,
    /// The usual spacing of what each host is handed.
    spacing: BTreeMap<HostId, Duration>,
}

impl Traffic {
    pub(super) fn new(plan: &Plan, records: &[Record]) -> Self {
        let mut index = Index::new(plan);
        for record in records {
            index.note(record);
        }
        index.close()
    }

    /// How much was lost for this host within a time.
    pub(super) fn lost(&self, host: HostId, within: impl Fn(Instant) -> bool) -> u64 {
        count(&self.lost, host, within)
    }

    /// Whether anything to or from this host was lost within a time.
    pub(super) fn stuck(&self, host: HostId, within: impl Fn(Instant) -> bool) -> bool {
        count(&self.lost, host, &within) + count(&self.failed, host, &within) > 0
    }

    /// How many copies this host's applications were handed beyond the first.
    pub(super) fn doubles(&self, host: HostId, within: impl Fn(Instant) -> bool) -> u64 {
        count(&self.doubles, host, within)
    }

    /// All that this host's applications were handed, in the order of time.
    pub(super) fn arrivals(&self, host: HostId) -> &[Arrival] {
        self.arrivals.get(&host).map_or(&[], Vec::as_slice)
    }

    /// The usual spacing of what a host is handed.
    pub(super) fn spacing(&self, host: HostId) -> Duration {
        self.spacing.get(&host).copied().unwrap_or_default()
    }

    /// When a packet reached this host at or after `from`.
    pub(super) fn reached(&self, packet: PacketId, host: HostId, from: Instant) -> Option<Instant> {
        let times = self.received.get(&packet)?;
        times.iter().find(|(at, on)| *on == host && *at >= from).map(|(at, _)| *at)
    }

    /// When and where a packet last left its origin before `until`.
    pub(super) fn origin(&self, packet: PacketId, until: Instant) -> Option<(Instant, HostId)> {
        self.sent.get(&packet)?.iter().rev().find(|(at, _)| *at <= until).copied()
    }
}

fn count(all: &[(Instant, HostId)], host: HostId, within: impl Fn(Instant) -> bool) -> u64 {
    all.iter().filter(|(at, to)| *to == host && within(*at)).count() as u64
}

/// The traffic, while the records are read.
struct Index {
    owners: BTreeMap<wire::Ipv4Addr, HostId>,
    traffic: Traffic,
    datagrams: BTreeSet<PacketId>,
    /// Messages of protocols, which a role may send as an application would.
    control: BTreeSet<PacketId>,
    segments: BTreeSet<PacketId>,
    /// When a packet was last said to be dropped.
    last: BTreeMap<PacketId, Instant>,
    addressee: BTreeMap<PacketId, HostId>,
    held: BTreeSet<PacketId>,
    /// When a segment, or the first of its copies, was dropped.
    dropped: BTreeMap<PacketId, Instant>,
    /// The last segment that each host's stack was handed.
    latest: BTreeMap<HostId, PacketId>,
}

impl Index {
    fn new(plan: &Plan) -> Self {
        Self {
            owners: plan.owners(),
            traffic: Traffic::default(),
            datagrams: BTreeSet::new(),
            control: BTreeSet::new(),
            segments: BTreeSet::new(),
            last: BTreeMap::new(),
            addressee: BTreeMap::new(),
            held: BTreeSet::new(),
            dropped: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    fn note(&mut self, record: &Record) {
        let (at, host) = (record.at, record.host);
        match &record.what {
            What::AppSent(id) => {
                self.datagrams.insert(*id);
                self.traffic.sent.entry(*id).or_default().push((at, host));
            }
            What::AppReceived(id) if self.control.contains(id) => {}
            What::AppReceived(id) => {
                let times = self.traffic.received.entry(*id).or_default();
                times.push((at, host));
                if times.len() > 1 {
                    self.traffic.doubles.push((at, host));
                }
                self.arrival(host, Arrival { at, packet: *id, stream: false });
            }
            What::AppRead(_) => {
                if let Some(packet) = self.latest.get(&host).copied() {
                    self.arrival(host, Arrival { at, packet, stream: true });
                }
            }
            What::Dropped(_, id, reason)
                if *reason == node::reason::CONSUMED.0 && self.segments.contains(id) =>
            {
                self.handed(at, host, *id);
            }
            What::Dropped(_, _, reason) if *reason == node::reason::CONSUMED.0 => {}
            What::Dropped(_, id, _) | What::Lost(_, id, _) => {
                self.last.insert(*id, at);
                if self.segments.contains(id) {
                    self.dropped.entry(*id).or_insert(at);
                }
            }
            What::Held(_, id) => {
                self.held.insert(*id);
            }
            What::Received(iface, packet) => self.packet_in(at, host, *iface, packet),
            What::Sent(Iface::HOST, packet) if self.segments.contains(&packet.id) => {
                self.handed(at, host, packet.id);
            }
            // A role's own: it is seen first when it leaves.
            What::Sent(_, packet) if !self.addressee.contains_key(&packet.id) => {
                self.first_seen(packet);
                if segment::is_sctp_data(packet) {
                    self.segments.insert(packet.id);
                    self.traffic.sent.entry(packet.id).or_default().push((at, host));
                }
            }
            _ => {}
        }
    }

    fn packet_in(&mut self, at: Instant, host: HostId, iface: Iface, packet: &Packet) {
        self.first_seen(packet);
        if iface == Iface::HOST && Control::of(packet).is_some() {
            self.control.insert(packet.id);
        }
        if iface == Iface::HOST && segment::carries_data(packet) {
            self.segments.insert(packet.id);
            self.traffic.sent.entry(packet.id).or_default().push((at, host));
        }
    }

    /// The first sighting shows the packet as its origin made it, before any tunnel.
    fn first_seen(&mut self, packet: &Packet) {
        if let Some(to) = wire::ipv4::addresses(&packet.bytes).and_then(|(_, dst)| self.owners.get(&dst)) {
            self.addressee.entry(packet.id).or_insert(*to);
        }
    }

    /// A stack, or the role that stands for it, has a segment.
    fn handed(&mut self, at: Instant, host: HostId, packet: PacketId) {
        self.traffic.received.entry(packet).or_default().push((at, host));
        self.latest.insert(host, packet);
    }

    fn arrival(&mut self, host: HostId, arrival: Arrival) {
        self.traffic.arrivals.entry(host).or_default().push(arrival);
    }

    fn close(mut self) -> Traffic {
        self.datagrams.retain(|id| !self.control.contains(id));
        for id in &self.datagrams {
            if self.traffic.received.contains_key(id) || self.held.contains(id) {
                continue;
            }
            let sent = self.traffic.sent.get(id).and_then(|times| times.first()).map(|(at, _)| *at);
            let at = self.last.get(id).copied().or(sent);
            self.traffic.lost.extend(at.zip(self.addressee.get(id).copied()));
        }
        for (id, at) in &self.dropped {
            if self.traffic.received.contains_key(id) {
                continue; // another copy came
            }
            let from = self.traffic.sent.get(id).and_then(|times| times.last()).map(|(_, from)| *from);
            self.traffic.lost.extend(self.addressee.get(id).map(|to| (*at, *to)));
            self.traffic.failed.extend(from.map(|from| (*at, from)));
        }
        self.traffic.lost.sort_unstable();
        self.traffic.spacing = self.spacing();
        self.traffic
    }

    /// Of datagrams the usual distance at which they are sent to a host; of streams, that at which it reads.
    fn spacing(&self) -> BTreeMap<HostId, Duration> {
        let mut times: BTreeMap<HostId, Vec<Instant>> = BTreeMap::new();
        for id in &self.datagrams {
            let sent = self.traffic.sent.get(id).and_then(|times| times.first());
            if let Some(((at, _), to)) = sent.zip(self.addressee.get(id)) {
                times.entry(*to).or_default().push(*at);
            }
        }
        for (host, arrivals) in &self.traffic.arrivals {
            let reads = arrivals.iter().filter(|arrival| arrival.stream).map(|arrival| arrival.at);
            times.entry(*host).or_default().extend(reads);
        }
        times.into_iter().filter_map(|(host, times)| Some((host, median_gap(times)?))).collect()
    }
}

fn median_gap(mut times: Vec<Instant>) -> Option<Duration> {
    times.sort_unstable();
    let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).copied()
}
