//! The streams of a run that its figure shows, and where in them each packet stands.
//!
//! Of TCP, a flow is one direction of a connection. An association of SCTP is one sequence of chunks, whichever path they
//! take; what differs is the address that they go to, so that is what its flows are told apart by.

use super::figure::is_loss;
use crate::journey::{Fate, Journeys};
use crate::run::Outcome;
use crate::segment::{self, Seen};
use draw::{Mark, MarkKind};
use sctp::message::Chunk;
use std::collections::{BTreeMap, BTreeSet};
use tcp::Seq;
use trace::{Record, What};
use wire::{Iface, Ipv4Addr, Packet, PacketId, SocketAddrV4};

/// More flows than this cannot be told apart: they have no names then.
const NAMED: usize = 4;

/// A packet's flow, and its place in the stream.
#[derive(Clone, Copy)]
struct Place {
    flow: usize,
    place: u64,
}

/// The streams.
pub(super) struct Flows {
    places: BTreeMap<PacketId, Place>,
    names: Vec<String>,
    sctp: bool,
}

impl Flows {
    /// Of the hosts that moved, if any did: what others say to each other is not what the figure is about.
    pub(super) fn new(outcome: &Outcome) -> Self {
        let mut reader = Reader::new(outcome);
        for record in &outcome.records {
            reader.note(record);
        }
        reader.drop_small();
        Self {
            sctp: reader.tcp.is_empty() && !reader.paths.is_empty(),
            places: reader.places,
            names: reader.names,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What the places count.
    pub(super) const fn axis(&self) -> &'static str {
        if self.sctp { "chunk (TSN)" } else { "sequence number (kB)" }
    }

    pub(super) const fn note(&self) -> &'static str {
        if self.sctp {
            "Packets of SCTP with data, at the number of their first chunk, by the address that they go to; `sent` is \
             whenever they leave, so that a retransmission stands beside its original."
        } else {
            "Segments of TCP with data, at the place of their first byte in their stream; `sent` is whenever the \
             sender's TCP sends, so that a retransmission stands beside its original."
        }
    }

    /// The flows' names, if there are several and few enough.
    pub(super) fn names(&self) -> Vec<String> {
        if (2..=NAMED).contains(&self.names.len()) { self.names.clone() } else { Vec::new() }
    }

    /// What became of each packet that has a place.
    pub(super) fn marks(&self, outcome: &Outcome, journeys: &Journeys<'_>) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut left = BTreeSet::new();
        for record in &outcome.records {
            let (packet, kind) = match &record.what {
                What::Received(Iface::HOST, packet) => (packet, MarkKind::Sent),
                What::Sent(Iface::HOST, packet) => (packet, MarkKind::Received),
                // A role's own passes no stack: it is sent where it is first seen.
                What::Sent(_, packet) if self.sctp && left.insert(packet.id) => (packet, MarkKind::Sent),
                _ => continue,
            };
            if let Some(Place { flow, place }) = self.places.get(&packet.id) {
                marks.push(Mark { at: record.at, kind, packet: *place, flow: *flow });
            }
        }
        for (_, journey) in journeys.packets() {
            let Some(Place { flow, place }) = self.places.get(&journey.id) else { continue };
            for end in journeys.all_ends(journey) {
                let kind = match end.fate {
                    Fate::Consumed(_) if self.sctp => MarkKind::Received,
                    _ if is_loss(&end) => MarkKind::Lost,
                    _ => continue,
                };
                marks.push(Mark { at: end.at, kind, packet: *place, flow: *flow });
            }
        }
        marks
    }
}

/// The flows, while the records are read.
struct Reader {
    /// The addresses of the hosts that moved; all, if none did.
    about: Option<BTreeSet<Ipv4Addr>>,
    /// The number of a direction of a connection, and its first byte.
    tcp: BTreeMap<(SocketAddrV4, SocketAddrV4), (usize, Seq)>,
    /// The number of the path to an address.
    paths: BTreeMap<Ipv4Addr, usize>,
    /// The first chunk of each direction of an association, which its verification tag tells.
    first: BTreeMap<u32, u32>,
    names: Vec<String>,
    places: BTreeMap<PacketId, Place>,
}

impl Reader {
    fn new(outcome: &Outcome) -> Self {
        let moved: BTreeSet<_> = outcome.handoffs.iter().map(|handoff| handoff.host).collect();
        let owners = outcome.plan.owners();
        let theirs = owners.into_iter().filter(|(_, host)| moved.contains(host)).map(|(address, _)| address);
        let about = (!moved.is_empty()).then(|| theirs.collect());
        Self {
            about,
            tcp: BTreeMap::new(),
            paths: BTreeMap::new(),
            first: BTreeMap::new(),
            names: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    fn note(&mut self, record: &Record) {
        match &record.what {
            What::Received(Iface::HOST, packet) => {
                let seen = segment::of(packet).filter(|seen| !seen.segment.payload.is_empty());
                if let Some(seen) =
                    seen.filter(|seen| self.is_about(*seen.from.ip()) || self.is_about(*seen.to.ip()))
                {
                    self.segment(packet.id, &seen);
                }
            }
            What::Sent(iface, packet) if *iface != Iface::HOST && self.tcp.is_empty() => self.chunk(packet),
            _ => {}
        }
    }

    /// A flow of less than a hundredth of all packets is a name in the legend and nothing to see.
    fn drop_small(&mut self) {
        let size = |flow: usize| self.places.values().filter(|place| place.flow == flow).count();
        let shown: Vec<usize> =
            (0..self.names.len()).filter(|flow| size(*flow) * 100 >= self.places.len()).collect();
        self.names = shown.iter().filter_map(|flow| self.names.get(*flow).cloned()).collect();
        self.places.retain(|_, place| {
            let number = shown.iter().position(|flow| *flow == place.flow);
            place.flow = number.unwrap_or_default();
            number.is_some()
        });
    }

    fn is_about(&self, address: Ipv4Addr) -> bool {
        self.about.as_ref().is_none_or(|about| about.contains(&address))
    }

    fn segment(&mut self, packet: PacketId, seen: &Seen<'_>) {
        let next = self.names.len();
        let names = &mut self.names;
        // The first segment with data is the stream's begin: the connection was made within the run.
        let (flow, begin) = *self.tcp.entry((seen.from, seen.to)).or_insert_with(|| {
            names.push(format!("{} > {}", seen.from, seen.to));
            (next, seen.segment.seq)
        });
        let place = u64::from(seen.segment.seq.since(begin)) / 1000;
        self.places.entry(packet).or_insert(Place { flow, place });
    }

    fn chunk(&mut self, packet: &Packet) {
        if self.places.contains_key(&packet.id) {
            return;
        }
        let Some((_, to)) = wire::ipv4::addresses(&packet.bytes) else { return };
        let Some(sctp) = segment::sctp_of(packet) else { return };
        let first = sctp.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        });
        let Some(tsn) = first else { return };
        let next = self.names.len();
        let names = &mut self.names;
        let flow = *self.paths.entry(to).or_insert_with(|| {
            names.push(format!("to {to}"));
            next
        });
        let place = u64::from(tsn.wrapping_sub(*self.first.entry(sctp.tag).or_insert(tsn)));
        self.places.insert(packet.id, Place { flow, place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, run};

    fn read(name: &str) -> (Flows, Vec<Mark>) {
        let (file, text) = Scenario::find(name).unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let journeys = Journeys::new(&outcome.plan, &outcome.records);
        let flows = Flows::new(&outcome);
        let marks = flows.marks(&outcome, &journeys);
        (flows, marks)
    }

    /// How many marks of a kind a flow has.
    fn count(marks: &[Mark], flow: usize, kind: MarkKind) -> usize {
        marks.iter().filter(|mark| mark.flow == flow && mark.kind == kind).count()
    }

    #[test]
    fn an_association_goes_by_two_paths() {
        let (flows, marks) = read("sigma/handoff");
        assert_eq!(flows.names(), ["to 10.1.8.100", "to 10.1.6.100"]);
        for flow in [0, 1] {
            let [sent, received] = [MarkKind::Sent, MarkKind::Received].map(|kind| count(&marks, flow, kind));
            assert!(sent > 100 && sent == received, "{flow}: {sent} and {received}");
        }
        let places = |flow| marks.iter().filter(move |mark| mark.flow == flow).map(|mark| mark.packet);
        assert!(places(0).max() < places(1).max(), "chunks are counted through, whichever path they take");
    }

    #[test]
    fn what_routers_say_to_each_other_is_not_shown() {
        let (flows, marks) = read("indirect-tcp/handoff-time");
        let names = flows.names();
        // Both halves of one download, each with the host at one end.
        assert_eq!(names.len(), 2, "{names:?}");
        assert!((0..2).all(|flow| count(&marks, flow, MarkKind::Sent) > 100));
        assert!(count(&marks, 0, MarkKind::Lost) + count(&marks, 1, MarkKind::Lost) > 0);
    }
}
