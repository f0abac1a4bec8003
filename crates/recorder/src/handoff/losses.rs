//! The parts of an outage in which datagrams were lost, by what lost them.

use super::analysis::HandoffAnalysis;
use super::experience::Owner;
use super::stages::{Next, add};
use crate::faults::{Boundary, Fault};
use crate::flow::PacketEvent;
use node::Stage;
use trace::{HostId, Record, What};
use wire::Instant;

/// The reasons for which an agent of Mobile IP drops a packet of a mobile node that is not registered where the packet is.
const UNKNOWN_TO_AGENT: [&str; 6] = [
    "not_a_visitor",
    "not_the_previous_agent",
    "registration_not_accepted",
    "early_packet_limit",
    "forwarding_loop",
    "returned_by_care_of_address",
];

/// What lost a datagram.
#[derive(Clone, Copy)]
enum Loser<'f> {
    /// An agent of Mobile IP that did not know the registration of the destination.
    Agent,
    /// An event of the scenario.
    Fault(&'f Fault<'f>),
    /// A link or a node, for another reason.
    Link,
}

impl Loser<'_> {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Agent, Self::Agent) | (Self::Link, Self::Link) => true,
            (Self::Fault(one), Self::Fault(other)) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }
}

impl<'a> HandoffAnalysis<'a> {
    /// Assigns the time from `begin` until the last of these losses of datagrams that were sent before `end`. Losses in a row with one
    /// cause are one part: the registration if an agent did not know it, otherwise the link, with the event of the scenario that lost
    /// them. Returns the end of the last part as the begin of the next one, or `begin` without losses.
    pub(super) fn losses(
        &self,
        mut begin: Boundary,
        end: Instant,
        mut lost: Vec<&PacketEvent>,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) -> Boundary {
        lost.sort_by_key(|lost| lost.recorded);
        let faults = if lost.is_empty() { Vec::new() } else { self.links.faults(begin.0, Instant::NEVER) };
        let by_loser: Vec<_> = lost.into_iter().map(|lost| (self.lost_by(lost, &faults), lost)).collect();
        let mut rows = by_loser.chunk_by(|(one, _), (other, _)| one.is(other)).peekable();
        while let Some(row) = rows.next() {
            let ([(loser, first), ..], [.., (_, last)]) = (row, row) else { continue };
            let until = rows.peek().and_then(|row| row.first()).map_or(end, |(_, lost)| lost.at);
            let last = self.last_loss(last, next.flow.to.host);
            begin = match loser {
                Loser::Agent => part(Stage::Registration, [begin, last], stages),
                Loser::Link => part(Stage::Link, [begin, last], stages),
                Loser::Fault(fault) => {
                    // Afterwards the flow may use a path that the event does not change.
                    let ended = Some(&fault.edges[1]).filter(|ended| ended.0 <= until.max(last.0));
                    let sent = (first.sent, next.flow.from.host, "app_sent".to_owned());
                    let begin = until_event([begin, sent], &fault.edges[0], stages);
                    part(Stage::Link, [begin, ended.cloned().unwrap_or(last)], stages)
                }
            };
        }
        begin
    }

    /// Returns what lost a datagram. Of several events, it is the first one.
    fn lost_by<'f>(&self, lost: &PacketEvent, faults: &'f [Fault<'f>]) -> Loser<'f> {
        if self.is_unknown_to_agent(lost) {
            return Loser::Agent;
        }
        let by = |record: &Record| faults.iter().find(|fault| self.is_lost_by(record, fault));
        self.lost_at(lost).and_then(by).map_or(Loser::Link, Loser::Fault)
    }

    /// Returns the losses of datagrams until `limit`. Each datagram was sent after `begin`, or passed the host of `begin` after it:
    /// one that was still on the earlier path says nothing about the path since `begin`. If it was lost after `end`, it was sent
    /// before `end`. Returns none for streams.
    pub(super) fn lost_between<'p>(
        &self,
        begin: &Boundary,
        end: Instant,
        limit: Instant,
        next: &Next<'p>,
    ) -> Vec<&'p PacketEvent> {
        let passed = |lost: &&PacketEvent| {
            let came = |r: &Record| matches!(&r.what, What::Received(_, packet) if packet.id == lost.packet);
            let is_later = lost.at > begin.0 && lost.at <= limit && (lost.at <= end || lost.sent < end);
            is_later
                && (lost.sent >= begin.0
                    || self.first(begin.0, lost.at, |r| r.host == begin.1 && came(r)).is_some())
        };
        if next.packets.is_stream { Vec::new() } else { next.packets.lost.iter().filter(passed).collect() }
    }

    /// Returns the record of a loss, or `None` if there is none.
    pub(super) fn lost_at(&self, lost: &PacketEvent) -> Option<&'a Record> {
        self.first(lost.recorded, lost.recorded, |r| match &r.what {
            What::Lost(_, id, _) | What::Dropped(_, id, _) => *id == lost.packet,
            _ => false,
        })
    }

    /// Returns whether an agent of Mobile IP dropped the packet, because it did not know the registration of its destination.
    fn is_unknown_to_agent(&self, lost: &PacketEvent) -> bool {
        let record = self.lost_at(lost);
        record.is_some_and(
            |r| matches!(&r.what, What::Dropped(_, _, why) if UNKNOWN_TO_AGENT.contains(&&**why)),
        )
    }

    /// Returns a loss as the end event of a stage, at the host that lost the packet if that is known. The event is
    /// named `too_big` if the packet was too big for a link, otherwise `last_loss`.
    pub(super) fn last_loss(&self, lost: &PacketEvent, host: HostId) -> Boundary {
        let record = self.lost_at(lost);
        let is_too_big =
            record.is_some_and(|r| matches!(&r.what, What::Dropped(_, _, why) if why == "too_big"));
        let name = if is_too_big { "too_big" } else { "last_loss" };
        (lost.recorded, record.map_or(host, |r| r.host), name.to_owned())
    }
}

/// Adds the time from `begin` until an event that lost a datagram: the source had nothing to send until it sent this datagram at
/// `sent`, and then the datagram travelled. Returns the begin of the next part: the event, or `begin` if the event was earlier.
fn until_event([begin, sent]: [Boundary; 2], event: &Boundary, stages: &mut Vec<Owner>) -> Boundary {
    if event.0 <= begin.0 {
        return (begin.0, event.1, event.2.clone());
    }
    let sent = if sent.0 < event.0 { sent } else { event.clone() };
    let begin = if sent.0 > begin.0 { part(Stage::Traffic, [begin, sent], stages) } else { begin };
    part(Stage::FirstByte, [begin, event.clone()], stages)
}

/// Adds a part, and returns its end.
fn part(stage: Stage, [begin, end]: [Boundary; 2], stages: &mut Vec<Owner>) -> Boundary {
    add(stages, stage, [Some(begin), Some(end.clone())]);
    end
}
