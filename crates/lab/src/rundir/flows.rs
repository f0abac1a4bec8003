//! Where in its flow each packet is, and what became of it: the marks of the time-sequence.
//!
//! A packet of a protocol is of no flow: it is neither counted nor drawn.

use crate::flow::{Flow, Transport};
use crate::journey::{End, Fate, Journeys};
use crate::run::Outcome;
use crate::segment;
use draw::{Counts, FlowTrace, Mark, MarkKind};
use sctp::message::Chunk;
use std::collections::{BTreeMap, BTreeSet};
use tcp::Seq;
use trace::{HostId, Record, What};
use wire::ipv4::{self, Header};
use wire::udp::Datagram;
use wire::{Iface, Instant, Ipv4Addr, Packet, PacketId, SocketAddrV4};

/// A packet's flow, its place in it, and the path by which it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) flow: usize,
    offset: u64,
    path: usize,
    /// When it left its sender's stack, or the role that made it.
    pub(super) sent: Instant,
}

/// The packets of all flows of a run.
pub(super) struct Places {
    of: BTreeMap<PacketId, Place>,
    /// For each flow the names of its paths.
    paths: Vec<Vec<String>>,
}

impl Places {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let mut reader = Reader::new(outcome);
        outcome.records.iter().for_each(|record| reader.note(record));
        let path = |flow: &FlowPaths| flow.names.clone();
        Self { of: reader.places, paths: reader.paths.iter().map(path).collect() }
    }

    pub(super) fn get(&self, packet: PacketId) -> Option<&Place> {
        self.of.get(&packet)
    }

    /// The traces of all flows, in their order.
    pub(super) fn traces(&self, outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<FlowTrace> {
        let trace = |(flow, paths): (&Flow, &Vec<String>)| FlowTrace {
            name: name(outcome, flow),
            counts: match flow.transport {
                Transport::Udp => Counts::Datagrams,
                Transport::Tcp => Counts::Bytes,
                Transport::Sctp => Counts::Chunks,
            },
            paths: if paths.len() > 1 { paths.clone() } else { Vec::new() },
            marks: Vec::new(),
        };
        let mut traces: Vec<FlowTrace> = outcome.flows.iter().zip(&self.paths).map(trace).collect();
        let arrived: BTreeSet<PacketId> =
            outcome.flows.iter().flat_map(|flow| &flow.arrivals).map(|arrival| arrival.packet).collect();
        for (_, journey) in journeys.packets() {
            let Some(place) = self.of.get(&journey.id) else { continue };
            let Some((flow, trace)) = outcome.flows.get(place.flow).zip(traces.get_mut(place.flow)) else {
                continue;
            };
            let mut put =
                |at, kind| trace.marks.push(Mark { at, kind, place: place.offset, path: place.path });
            put(place.sent, MarkKind::Sent);
            let ends = journeys.all_ends(journey);
            let is_there = |end: &&End| matches!(end.fate, Fate::Delivered(_) | Fate::Consumed(_));
            let mut first = true;
            for end in ends.iter().filter(is_there) {
                put(end.at, if first { MarkKind::Received } else { MarkKind::Duplicate });
                first = false;
            }
            // Of a program's datagrams only the stack knows that they arrived.
            let unseen = flow.transport == Transport::Udp && arrived.contains(&journey.id);
            if first && unseen {
                let arrivals = flow.arrivals.iter().filter(|arrival| arrival.packet == journey.id);
                arrivals.for_each(|arrival| put(arrival.at, MarkKind::Received));
                continue;
            }
            let held = ends.iter().any(|end| matches!(end.fate, Fate::Held(_)));
            if let Some(end) = ends.iter().rfind(|end| is_loss(end)).filter(|_| first && !held) {
                put(end.at, MarkKind::Lost);
            }
        }
        traces
    }
}

const fn is_loss(end: &End) -> bool {
    matches!(end.fate, Fate::Lost(..) | Fate::Dropped(..) | Fate::Unseen(_))
}

/// The ends of a flow by host name and port, and its transport.
pub(super) fn name(outcome: &Outcome, flow: &Flow) -> String {
    let end = |host: HostId, at: SocketAddrV4| format!("{}:{}", outcome.plan.host_name(host), at.port());
    let (from, to) = (end(flow.from.host, flow.from.at), end(flow.to.host, flow.to.at));
    format!("{from} > {to}, {}", flow.transport.name())
}

/// The paths of a flow, while the records are read.
#[derive(Default)]
struct FlowPaths {
    names: Vec<String>,
    /// The path of a connection, or of the packets to an address.
    by_ends: BTreeMap<(Option<SocketAddrV4>, Ipv4Addr), usize>,
    /// Of datagrams: how many were sent.
    count: u64,
    /// The first number of each path of a stream, and how far it has come; one for an association.
    base: BTreeMap<usize, (u32, u64)>,
}

struct Reader<'a> {
    outcome: &'a Outcome,
    owners: BTreeMap<Ipv4Addr, HostId>,
    flows: BTreeMap<(Transport, SocketAddrV4, SocketAddrV4), Option<usize>>,
    paths: Vec<FlowPaths>,
    places: BTreeMap<PacketId, Place>,
}

impl<'a> Reader<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        Self {
            outcome,
            owners: outcome.plan.owners(),
            flows: BTreeMap::new(),
            paths: outcome.flows.iter().map(|_| FlowPaths::default()).collect(),
            places: BTreeMap::new(),
        }
    }

    fn note(&mut self, record: &Record) {
        match &record.what {
            What::Received(Iface::HOST, packet) => match ipv4::protocol(&packet.bytes) {
                Some(ipv4::UDP) => self.datagram(record.at, packet),
                Some(tcp::PROTOCOL) => self.segment(record.at, packet),
                _ => {}
            },
            // A role's own packet passes no stack: it is sent where it is first seen.
            What::Sent(iface, packet) if *iface != Iface::HOST => self.chunk(record.at, packet),
            _ => {}
        }
    }

    fn datagram(&mut self, at: Instant, packet: &Packet) {
        let Ok((header, payload)) = Header::parse(&packet.bytes) else { return };
        let Ok(datagram) = Datagram::parse(payload, header.src, header.dst) else { return };
        let from = SocketAddrV4::new(header.src, datagram.src_port);
        let to = SocketAddrV4::new(header.dst, datagram.dst_port);
        let Some(flow) = self.flow(Transport::Udp, from, to, at) else { return };
        let Some(paths) = self.paths.get_mut(flow) else { return };
        if let std::collections::btree_map::Entry::Vacant(entry) = self.places.entry(packet.id) {
            paths.count += 1;
            entry.insert(Place { flow, offset: paths.count, path: 0, sent: at });
        }
    }

    fn segment(&mut self, at: Instant, packet: &Packet) {
        let Some(seen) = segment::of(packet).filter(|seen| !seen.segment.payload.is_empty()) else { return };
        let Some(flow) = self.flow(Transport::Tcp, seen.from, seen.to, at) else { return };
        let label = |at: SocketAddrV4| match self.owners.get(at.ip()) {
            Some(host) => self.outcome.plan.host_name(*host).to_string(),
            None => at.ip().to_string(),
        };
        let label = format!("{} > {}", label(seen.from), label(seen.to));
        let Some(paths) = self.paths.get_mut(flow) else { return };
        let path = paths.path((Some(seen.from), *seen.to.ip()), label);
        let offset = paths.place(path, seen.segment.seq);
        self.places.entry(packet.id).or_insert(Place { flow, offset, path, sent: at });
    }

    fn chunk(&mut self, at: Instant, packet: &Packet) {
        if self.places.contains_key(&packet.id) {
            return;
        }
        let Some(sctp) = segment::sctp_of(packet) else { return };
        let Some((src, dst)) = wire::ipv4::addresses(&packet.bytes) else { return };
        let first = sctp.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        let Some(tsn) = first else { return };
        let (from, to) = (SocketAddrV4::new(src, sctp.src_port), SocketAddrV4::new(dst, sctp.dst_port));
        let Some(flow) = self.flow(Transport::Sctp, from, to, at) else { return };
        let Some(paths) = self.paths.get_mut(flow) else { return };
        let path = paths.path((None, dst), format!("to {dst}"));
        // One sequence for the association, whichever paths it takes.
        let offset = paths.place(0, Seq(tsn));
        self.places.insert(packet.id, Place { flow, offset, path, sent: at });
    }

    /// The flow of a packet between these two sockets.
    fn flow(&mut self, by: Transport, from: SocketAddrV4, to: SocketAddrV4, at: Instant) -> Option<usize> {
        let key = (by, from, to);
        if let Some(Some(flow)) = self.flows.get(&key) {
            // Connections between the same ports, one after the other, are flows of their own.
            let until = self.outcome.flows.get(*flow).map_or(Instant::NEVER, |flow| flow.until);
            if at <= until {
                return Some(*flow);
            }
        } else if self.flows.contains_key(&key) {
            return None;
        }
        let found = self.find(by, from, to, at);
        self.flows.insert(key, found);
        found
    }

    fn find(&self, by: Transport, from: SocketAddrV4, to: SocketAddrV4, at: Instant) -> Option<usize> {
        let is = |end: &crate::flow::End, socket: SocketAddrV4| {
            end.at.port() == socket.port()
                && (end.at == socket || self.owners.get(socket.ip()) == Some(&end.host))
        };
        let all = || self.outcome.flows.iter().enumerate().filter(|(_, flow)| flow.transport == by);
        let exact: Vec<(usize, &Flow)> =
            all().filter(|(_, flow)| is(&flow.from, from) && is(&flow.to, to)).collect();
        let live = exact.iter().rfind(|(_, flow)| flow.begun <= at);
        if let Some((index, _)) = live.or_else(|| exact.first()) {
            return Some(*index);
        }
        // One half of a connection that a support router splits; of two candidates neither is sure.
        let half = |(_, flow): &(usize, &Flow)| is(&flow.from, from) || is(&flow.to, to);
        let mut halves = all().filter(|_| by == Transport::Tcp).filter(half);
        halves.next().filter(|_| halves.next().is_none()).map(|(index, _)| index)
    }
}

impl FlowPaths {
    fn path(&mut self, ends: (Option<SocketAddrV4>, Ipv4Addr), name: String) -> usize {
        let next = self.names.len();
        let names = &mut self.names;
        *self.by_ends.entry(ends).or_insert_with(|| {
            names.push(name);
            next
        })
    }

    /// The place of a sequence number, which may wrap around. The first number seen is the begin of the stream.
    fn place(&mut self, path: usize, number: Seq) -> u64 {
        let (base, high) = self.base.entry(path).or_insert((number.0, 0));
        let ahead = number.0.wrapping_sub(*base).wrapping_sub(*high as u32).cast_signed();
        let place = high.saturating_add_signed(i64::from(ahead));
        *high = place.max(*high);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, run};

    fn traces(name: &str) -> Vec<FlowTrace> {
        let (file, text) = Scenario::find(name).unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let journeys = Journeys::new(&outcome.plan, &outcome.records);
        Places::new(&outcome).traces(&outcome, &journeys)
    }

    fn count(trace: &FlowTrace, path: usize, kind: MarkKind) -> usize {
        trace.marks.iter().filter(|mark| mark.path == path && mark.kind == kind).count()
    }

    #[test]
    fn an_association_goes_by_two_paths() {
        let traces = traces("sigma/handoff");
        let trace = traces.iter().max_by_key(|trace| trace.marks.len()).unwrap();
        assert_eq!(trace.paths, ["to 10.1.8.100", "to 10.1.6.100"]);
        for path in [0, 1] {
            let [sent, received] = [MarkKind::Sent, MarkKind::Received].map(|kind| count(trace, path, kind));
            assert!(sent > 100 && sent == received, "{path}: {sent} and {received}");
        }
        let places = |path| trace.marks.iter().filter(move |mark| mark.path == path).map(|mark| mark.place);
        assert!(places(0).max() < places(1).max(), "chunks are counted through, whichever path they take");
    }

    #[test]
    fn a_split_connection_is_one_flow_with_two_paths() {
        let traces = traces("indirect-tcp/handoff-time");
        assert_eq!(traces.len(), 1, "what routers say to each other is no flow");
        let trace = &traces[0];
        assert!(trace.paths.len() >= 2, "{:?}", trace.paths);
        assert!((0..2).all(|path| count(trace, path, MarkKind::Sent) > 100));
    }

    #[test]
    fn datagrams_are_counted_without_control_messages() {
        let traces = traces("first");
        let places: Vec<u64> = traces[0]
            .marks
            .iter()
            .filter(|mark| mark.kind == MarkKind::Sent)
            .map(|mark| mark.place)
            .collect();
        assert_eq!(traces.len(), 1);
        let all: Vec<u64> = (1..=places.len() as u64).collect();
        assert_eq!(places, all, "one line without steps");
    }

    #[test]
    fn a_place_outlives_the_wrap_of_its_number() {
        let mut paths = FlowPaths::default();
        let places = [u32::MAX - 99, 0, 900, 400, u32::MAX].map(|number| paths.place(0, Seq(number)));
        assert_eq!(places, [0, 100, 1000, 500, 99]);
    }
}
