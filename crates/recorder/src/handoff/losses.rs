//! The parts of an outage in which datagrams were lost, by what lost them.

use super::analysis::HandoffAnalysis;
use super::experience::Owner;
use super::stages::{Next, add, divide};
use crate::faults::{Boundary, Fault, NOT_ENDED};
use crate::flow::PacketEvent;
use node::Stage;
use trace::{HostId, Record, What};
use wire::Instant;

/// The reasons for which an agent of Mobile IP drops a packet of a mobile node that is not registered where the packet is, or
/// the node itself does.
const UNKNOWN_TO_AGENT: [&str; 7] = [
    "not_a_visitor",
    "not_registered",
    "not_the_previous_agent",
    "registration_not_accepted",
    "early_packet_limit",
    "forwarding_loop",
    "returned_by_care_of_address",
];

impl<'a> HandoffAnalysis<'a> {
    /// Assigns the time from `begin` until the last of these losses of datagrams that were sent before `end`; the outage ends at
    /// `limit`. Losses in a row with one cause are one part: the registration if an agent did not know it, otherwise the link. Returns the
    /// end of the last part as the begin of the next one, or `begin` without losses.
    pub(super) fn losses(
        &self,
        mut begin: Boundary,
        [end, limit]: [Instant; 2],
        mut lost: Vec<&PacketEvent>,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) -> Boundary {
        lost.sort_by_key(|lost| lost.recorded);
        let by_cause: Vec<_> = lost.into_iter().map(|lost| (self.is_unknown_to_agent(lost), lost)).collect();
        let mut rows = by_cause.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(row) = rows.next() {
            let [.., (is_unknown, last)] = row else { continue };
            let last = self.last_loss(last, next.flow.to.host);
            if *is_unknown {
                add(stages, Stage::Registration, [Some(begin), Some(last.clone())]);
                begin = last;
                continue;
            }
            // A loss that is recorded late can belong to the time of an earlier row.
            let lost: Vec<&PacketEvent> =
                row.iter().map(|(_, lost)| *lost).filter(|lost| lost.at > begin.0).collect();
            if lost.is_empty() {
                continue;
            }
            let until = rows.peek().and_then(|row| row.first()).map_or(end, |(_, lost)| lost.at);
            begin = self.lost_on_links(begin, &last, [until, limit], &lost, next, stages);
        }
        begin
    }

    /// Assigns the time from `begin` until the last of these losses on links and at nodes. If crashes, stops or cuts caused some of
    /// them, the time of these events has their names, also until they end, but not after `until`: afterwards, the flow may use a path
    /// that the event does not change. Around them, the source may have had nothing to send. Returns the end of the last part.
    fn lost_on_links(
        &self,
        begin: Boundary,
        last: &Boundary,
        [until, limit]: [Instant; 2],
        lost: &[&PacketEvent],
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) -> Boundary {
        let records: Vec<&Record> = lost.iter().filter_map(|lost| self.lost_at(lost)).collect();
        let mut faults = self.links.faults(begin.0, limit);
        faults.retain(|fault| {
            fault.begun() < limit && records.iter().any(|record| self.is_lost_by(record, fault))
        });
        let is_over = |fault: &&Fault<'_>| !fault.lasts() && fault.ended() <= until.max(last.0);
        let events: Vec<[Boundary; 2]> = faults
            .iter()
            .map(|fault| {
                let [gone, ended] = fault.edges.clone();
                let not_over = || {
                    if last.0 <= limit { last.clone() } else { (until, ended.1, NOT_ENDED.to_owned()) }
                };
                [gone, if is_over(&fault) { ended } else { not_over() }]
            })
            .collect();
        let end = events.iter().map(|[_, ended]| ended).max_by_key(|ended| ended.0);
        let end = end.filter(|ended| ended.0 >= last.0).unwrap_or(last).clone();
        let mut whole = Vec::new();
        add(&mut whole, Stage::Link, [Some(begin), Some(end.clone())]);
        let mut parts: Vec<Owner> = whole.into_iter().flat_map(|link| divide(link, &events)).collect();
        if events.is_empty() {
            stages.extend(parts);
            return end;
        }
        let is_event =
            |part: &Owner| events.iter().any(|[gone, ended]| gone.0 <= part.from && part.to <= ended.0);
        let first_sent = |part: &Owner| {
            let on_way = lost.iter().filter(|lost| lost.sent < part.to && lost.at >= part.from);
            on_way.map(|lost| lost.sent).min()
        };
        // A loss is recorded late if the packet waited for a neighbor. After the last event, nothing more was lost then.
        let tail = parts.pop_if(|part| !is_event(part) && first_sent(part).is_none());
        let ends = tail.and_then(|tail| Some((tail.from, tail.hosts?.0, tail.begins))).unwrap_or(end);
        let own = self.sent(next).map(|sent| sent.0);
        for part in parts {
            let sent = first_sent(&part).into_iter().chain(own.filter(|sent| *sent < part.to)).min();
            let sender = next.flow.from.host;
            stages.extend(if is_event(&part) { vec![part] } else { until_sent(part, sent, sender) });
        }
        ends
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

    /// Returns whether an agent of Mobile IP dropped the packet, because it did not know the registration of the mobile node, or
    /// the mobile node did.
    pub(super) fn is_unknown_to_agent(&self, lost: &PacketEvent) -> bool {
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

/// Divides a part with the cause link: until the first datagram was sent that was on its way in this part, the source had nothing to send.
fn until_sent(part: Owner, sent: Option<Instant>, sender: HostId) -> Vec<Owner> {
    let Some(sent) = sent else { return vec![Owner { stage: Some(Stage::Traffic), ..part }] };
    if sent <= part.from {
        return vec![part];
    }
    let hosts = |edges: [HostId; 2]| Some(edges.into());
    let Some((here, there)) = part.hosts else { return vec![part] };
    let name = "app_sent".to_owned();
    let idle = Owner {
        stage: Some(Stage::Traffic),
        to: sent,
        ends: name.clone(),
        hosts: hosts([here, sender]),
        ..part.clone()
    };
    vec![idle, Owner { from: sent, begins: name, hosts: hosts([sender, there]), ..part }]
}
