//! The position and the fate of each packet in its flow: the marks of the time-sequence figure.
//!
//! Signalling packets of protocols belong to no flow: they are neither counted nor drawn.

use crate::flow::{Flow, Packets, Sending, Transport};
use crate::journey::{End, Fate, Journeys};
use crate::run::Outcome;
use draw::{Counts, FlowTrace, Mark, MarkKind};
use std::collections::{BTreeMap, BTreeSet};
use trace::HostId;
use wire::{Instant, PacketId, SocketAddrV4};

/// A packet's flow, its position in the flow, and the index of its leg.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowPosition {
    pub(super) flow: usize,
    offset: u64,
    path: usize,
    /// When the packet first left the sender's stack, or the role that made the packet.
    pub(super) sent: Instant,
}

/// The positions of the packets of all flows of a run, by packet id.
pub(super) struct Places(BTreeMap<PacketId, FlowPosition>);

impl Places {
    pub(super) fn new(outcome: &Outcome) -> Self {
        let mut places = BTreeMap::new();
        for (flow, packets) in outcome.packets.iter().enumerate() {
            for Sending { at, packet, place, leg, .. } in &packets.sendings {
                let place = FlowPosition { flow, offset: *place, path: *leg, sent: *at };
                places.entry(*packet).or_insert(place);
            }
        }
        Self(places)
    }

    pub(super) fn get(&self, packet: PacketId) -> Option<&FlowPosition> {
        self.0.get(&packet)
    }

    /// Returns one trace for each flow, in the order of `outcome.flows`.
    pub(super) fn traces(&self, outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<FlowTrace> {
        let trace = |(flow, packets): (&Flow, &Packets)| FlowTrace {
            name: name(outcome, flow),
            counts: match flow.transport {
                Transport::Udp => Counts::Datagrams,
                Transport::Tcp => Counts::Bytes,
                Transport::Sctp => Counts::Chunks,
            },
            paths: if packets.legs.len() > 1 { packets.legs.clone() } else { Vec::new() },
            marks: Vec::new(),
        };
        let mut traces: Vec<FlowTrace> = outcome.flows.iter().zip(&outcome.packets).map(trace).collect();
        let lost: BTreeMap<PacketId, Instant> = outcome
            .packets
            .iter()
            .filter(|packets| !packets.is_stream)
            .flat_map(|packets| packets.lost.iter().map(|lost| (lost.packet, lost.recorded)))
            .collect();
        let arrived: BTreeSet<PacketId> =
            outcome.flows.iter().flat_map(|flow| &flow.arrivals).map(|arrival| arrival.packet).collect();
        for (_, journey) in journeys.packets() {
            let Some(place) = self.0.get(&journey.id) else { continue };
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
            // A program reports no arrivals, so the arrival of its datagram is that at the stack.
            let unseen = flow.transport == Transport::Udp && arrived.contains(&journey.id);
            if first && unseen {
                let arrivals = flow.arrivals.iter().filter(|arrival| arrival.packet == journey.id);
                arrivals.for_each(|arrival| put(arrival.at, MarkKind::Received));
                continue;
            }
            if flow.transport == Transport::Udp {
                if let Some(at) = lost.get(&journey.id).filter(|_| first) {
                    put(*at, MarkKind::Lost);
                }
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

/// Returns the ends of a flow by host name and port, and its transport.
pub(super) fn name(outcome: &Outcome, flow: &Flow) -> String {
    let end = |host: HostId, at: SocketAddrV4| format!("{}:{}", outcome.plan.host_name(host), at.port());
    let (from, to) = (end(flow.from.host, flow.from.at), end(flow.to.host, flow.to.at));
    format!("{from} > {to}, {}", flow.transport.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use scenario::Scenario;

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
    fn a_split_connection_is_one_flow_with_a_path_for_each_sender() {
        let traces = traces("indirect-tcp/handoff-time");
        assert_eq!(traces.len(), 1, "what routers say to each other is no flow");
        let trace = &traces[0];
        let path = |name: &str| trace.paths.iter().position(|path| path == name).unwrap();
        let [fixed, left, right] = ["fixed > mobile", "left > mobile", "right > mobile"].map(path);
        assert!([fixed, left, right].iter().all(|path| count(trace, *path, MarkKind::Sent) > 100));
        // The host is at `right` from 2.3 s to 4.3 s. Packets that `right` sends count for `right`, although the moved
        // connection keeps the address of `left`.
        let sent =
            |path| trace.marks.iter().filter(move |mark| mark.path == path && mark.kind == MarkKind::Sent);
        let within = |mark: &&Mark| (2_500..4_300).contains(&(mark.at.0 / 1_000_000));
        assert_eq!((sent(left).filter(within).count(), sent(right).filter(within).count() > 100), (0, true));
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
}
