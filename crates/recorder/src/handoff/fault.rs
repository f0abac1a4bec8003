//! The effect of the events of a scenario, and of links that are down, on the packets of a flow.

use super::analysis::{HandoffAnalysis, has_switched};
use super::experience::Owner;
use super::hole::{Gap, limit};
use super::links::NOT_UP;
use super::stages::Next;
use crate::decode::Control;
use crate::faults::{Boundary, Fault, NOT_ENDED};
use crate::flow::{Flow, PacketEvent, Packets, is_kept, stopped};
use node::Stage;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use trace::{EventKind, HostId, Record, What};
use wire::{Duration, EtherType, Iface, Instant, Ipv4Addr, Packet, PacketId};

/// The longest time for which a packet waits for an answer to ARP.
const ARP: Duration = Duration::from_secs(4);

/// The mark of a previous agent that has been notified of the new path.
const NOTIFIED: &str = "care_of_learnt";

/// Data for which the receiver waited: a packet, and when the data were first sent.
struct Due {
    sent: Instant,
    packet: PacketId,
}

impl HandoffAnalysis<'_> {
    /// Returns whether this fault caused the loss in a record: it happened during the fault, at its place. At a cut
    /// link, and at a wire to a host that is down or stopped, ARP finds no neighbor any more, and packets are lost before
    /// the link. A stopped host loses nothing, but a packet that waited for it can be lost later.
    pub(super) fn is_lost_by(&self, lost: &Record, fault: &Fault<'_>) -> bool {
        let (What::Lost(iface, id, why) | What::Dropped(iface, id, why)) = &lost.what else { return false };
        if fault.is_stop() && self.traffic.stops.is_waiting(*id, fault.host(), fault.begun()) {
            return true;
        }
        let place = (lost.host, *iface);
        let has_no_neighbor = *why == node::reason::NO_NEIGHBOR.0;
        let is_cut = *why == link::reason::CUT.0 || has_no_neighbor;
        let is_its_neighbor = has_no_neighbor && self.links.is_wired_to(place, fault.host());
        let is_cause = match (fault.kind, self.links.cut_wire(fault)) {
            (EventKind::Stop, _) => is_its_neighbor,
            (EventKind::Crash, _) => {
                let is_down = *why == sim::reason::HOST_DOWN.0;
                (*why == sim::reason::CRASHED.0 && lost.host == fault.host())
                    || (is_down && self.is_for(lost, *id, fault.host()))
                    || is_its_neighbor
            }
            (_, Some(ends)) => is_cut && ends.contains(&place),
            _ if is_kept(why) => {
                self.links.has_radio_in_cut_cell(lost.host, fault, lost.at) && self.is_kept_unsent(lost, *id)
            }
            _ => is_cut && self.links.is_in_cut_cell(place, fault, lost.at),
        };
        if !is_cause || lost.at < fault.begun() {
            return false;
        }
        (fault.begun()..=fault.ended()).contains(&self.stopped(lost))
    }

    /// Returns whether an agent kept a packet, and dropped it with this record, without sending it: its link was down.
    fn is_kept_unsent(&self, lost: &Record, id: PacketId) -> bool {
        let is_it = |record: &Record| {
            record.host == lost.host && matches!(&record.what, What::Sent(_, packet) if packet.id == id)
        };
        self.first(self.stopped(lost), lost.at, is_it).is_none()
    }

    /// Returns whether a lost frame was for this host, or for all hosts that it could reach on its link.
    fn is_for(&self, lost: &Record, id: PacketId, host: HostId) -> bool {
        let (What::Lost(iface, ..) | What::Dropped(iface, ..)) = lost.what else { return false };
        let since = Instant(lost.at.0.saturating_sub(ARP.as_nanos() as u64));
        let sent = self.between(since, lost.at).iter().rev().find_map(|record| match &record.what {
            What::Sent(out, packet) if packet.id == id && *out == iface && record.host == lost.host => {
                self.links.owner(packet.link.dst)
            }
            _ => None,
        });
        sent.map_or_else(|| self.links.leads_to((lost.host, iface), host, lost.at), |to| to == host)
    }

    /// Returns when a packet reached the node or the link that lost it.
    fn stopped(&self, lost: &Record) -> Instant {
        stopped(lost, self.between(Instant::ZERO, lost.at))
    }

    /// Returns the packets that were lost by a fault, also if a node reports their losses only after the fault, and the
    /// packets that waited for a stopped host.
    pub(super) fn hindered_by(&self, fault: &Fault<'_>) -> Cow<'_, BTreeSet<PacketId>> {
        if fault.is_stop() {
            let waiting = self.traffic.stops.waiting(fault.host(), fault.begun());
            return waiting.map_or_else(Cow::default, Cow::Borrowed);
        }
        let until = fault.ended() + ARP;
        let lost = self.between(fault.begun(), until).iter().filter(|record| self.is_lost_by(record, fault));
        let id = |record: &Record| match &record.what {
            What::Lost(_, id, _) | What::Dropped(_, id, _) => Some(*id),
            _ => None,
        };
        Cow::Owned(lost.filter_map(id).collect())
    }

    /// Returns the packets of a flow, and of the questions that it answers, that waited for one of these faults when the run
    /// ended: for a stopped host, or behind a cut link. The fault did not end in the range in which it was searched. The packets
    /// waited since `from` or later.
    pub(super) fn held_by_faults(
        &self,
        (flow, packets): (&Flow, &Packets),
        from: Instant,
        mut open: Vec<Fault<'_>>,
    ) -> Vec<PacketEvent> {
        let questions = self.questions(flow, packets).into_iter().flat_map(|questions| &questions.held);
        let held: Vec<&PacketEvent> = packets.held.iter().chain(questions).collect();
        open.retain(Fault::lasts);
        if open.is_empty() || held.is_empty() {
            return Vec::new();
        }
        let ids: BTreeSet<PacketId> = held.iter().map(|held| held.packet).collect();
        let first = held.iter().map(|held| held.sent).min().unwrap_or(from);
        // The host can have left the cell in which it sent the packet.
        let mut sent = BTreeMap::new();
        let waits = |record: &Record| match &record.what {
            What::Sent(iface, packet) if ids.contains(&packet.id) => {
                sent.insert((record.host, Some(*iface), packet.id), record.at);
                None
            }
            What::Held(iface, id) if ids.contains(id) => {
                let at = sent.get(&(record.host, *iface, *id)).copied().unwrap_or(record.at);
                let is_for = |fault: &Fault<'_>| self.links.waits_at((record.host, *iface), fault, at);
                open.iter().any(is_for).then_some(*id)
            }
            _ => None,
        };
        let waiting: BTreeSet<PacketId> =
            self.between(first.min(from), Instant::NEVER).iter().filter_map(waits).collect();
        held.into_iter().filter(|held| waiting.contains(&held.packet)).copied().collect()
    }

    /// Returns whether a part of an outage belongs to a fault that lost or delayed the packets `hindered`: this host
    /// signalled, or the sender of the flow retransmitted, without success; or the flow waited for a question, or for the
    /// packet that ends the part.
    pub(super) fn is_in_vain(
        &self,
        (host, flow): (HostId, &Flow),
        part: &Owner,
        hindered: &BTreeSet<PacketId>,
    ) -> bool {
        if hindered.is_empty() {
            return false;
        }
        let packets = || self.packets_of(flow);
        let is_hindered =
            |(sent, packet)| (part.from..=part.to).contains(&sent) && hindered.contains(&packet);
        let sent = |packets: &Packets| {
            packets.sendings.iter().map(|sending| (sending.at, sending.packet)).any(is_hindered)
        };
        match part.stage {
            Some(Stage::FirstByte) => {
                let before = flow.arrivals.partition_point(|arrival| arrival.at < part.to);
                let ending = flow.arrivals.iter().skip(before).take_while(|arrival| arrival.at == part.to);
                ending.into_iter().any(|arrival| hindered.contains(&arrival.packet))
            }
            Some(Stage::Recovery) => packets().is_some_and(|packets| {
                let acks = packets.lost_acks.iter().map(|ack| (ack.sent, ack.packet));
                // The question may arrive at the end of this part.
                let until = Instant(part.to.0.saturating_sub(1));
                let asks = || {
                    let questions = self.questions(flow, packets).filter(|questions| sent(questions));
                    questions.and_then(|_| self.question_awaited((flow, packets), until)).is_some()
                };
                sent(packets) || asks() || acks.chain(packets.opened_by.iter().copied()).any(is_hindered)
            }),
            Some(Stage::Traffic) => {
                packets().and_then(|packets| self.questions(flow, packets)).is_some_and(sent)
            }
            _ => self.signals_in_vain((host, flow), part, hindered),
        }
    }

    fn packets_of(&self, flow: &Flow) -> Option<&Packets> {
        let place = self.traffic.flows.iter().position(|one| std::ptr::eq(one, flow))?;
        self.traffic.packets.get(place)
    }

    /// Returns the time in a switch of the path in which the sender of a stream had switched, and waited because of a fault that
    /// lost or delayed the packets `hindered`. The sender waits for the acknowledgment of data that it sent before, until it
    /// sends more data. Then these data can be hindered too.
    pub(super) fn held_in_switch(
        &self,
        (host, flow): (HostId, &Flow),
        part: &Owner,
        (fault, hindered): (&Fault<'_>, &BTreeSet<PacketId>),
    ) -> Option<[Boundary; 2]> {
        let packets = self.packets_of(flow).filter(|packets| packets.is_stream && !hindered.is_empty())?;
        let sender = flow.from.host;
        let switches = self.first(part.from, part.to, |r| has_switched(r, sender));
        let switched = if sender == host { part.from } else { switches?.at };
        let arrives = |packet, since| self.traffic.reached(packet, flow.to.host, since);
        let (before, after) =
            packets.sendings.split_at(packets.sendings.partition_point(|sending| sending.at < switched));
        let sent = after.first().map_or(part.to, |first| first.at.min(part.to));
        let is_missing = |id| arrives(id, Instant::ZERO).is_none_or(|at| at > switched);
        let waits = before.iter().any(|one| hindered.contains(&one.packet) && is_missing(one.packet));
        // Later data do not delay those that end the part.
        let newest = after.iter().rfind(|one| arrives(one.packet, part.to) == Some(part.to));
        let newest = newest.map_or(part.to, |newest| newest.at);
        let is_late = |id| arrives(id, Instant::ZERO).is_none_or(|at| at >= part.to);
        let mut further = after.iter().take_while(|one| one.at <= newest);
        let is_hindered = further.any(|one| hindered.contains(&one.packet) && is_late(one.packet));
        let from = if waits { switched } else { sent };
        let to = if is_hindered { part.to } else { sent };
        let [gone, ended] = fault.edges.clone();
        let last = if to < part.to {
            (to, sender, "segment_sent".to_owned())
        } else {
            (to, ended.1, NOT_ENDED.to_owned())
        };
        let ended = if ended.0 > to { last } else { ended };
        let gone = (gone.0.max(from), gone.1, gone.2);
        (gone.0 < ended.0).then_some([gone, ended])
    }

    fn signals_in_vain(
        &self,
        (host, flow): (HostId, &Flow),
        part: &Owner,
        hindered: &BTreeSet<PacketId>,
    ) -> bool {
        // Agents notify each other and the sender of the flow of a new path. Only the sender has to know it, and the agent
        // whose knowledge ends this part.
        let knowing = [Some(flow.from.host), Some(flow.to.host), part.hosts.map(|(_, last)| last)];
        // A previous agent learns the new path from the agent of the new place. It does not need the home agent.
        let unneeded = part
            .hosts
            .filter(|_| part.ends == NOTIFIED)
            .and_then(|(_, last)| self.home_agent(host).filter(|home| *home != last));
        let is_needed = |end: Ipv4Addr| unneeded.is_none() || self.owners.get(&end).copied() != unneeded;
        let is_signal = |packet: &Packet| {
            Control::of(packet, &self.numbers).is_some_and(|control| {
                let is_for = || knowing.contains(&self.owners.get(&control.dst).copied());
                self.owners.get(&control.about) == Some(&host)
                    && is_needed(control.src)
                    && is_needed(control.dst)
                    && (!control.is_of_route_optimization()
                        || (self.owners.contains_key(&control.dst) && is_for()))
            })
        };
        // A node that has a signal to forward may have to ask for the address of its neighbor first.
        let mut nodes = BTreeSet::from([host]);
        let asks = |packet: &Packet| {
            let message = wire::arp::Message::parse(&packet.bytes);
            packet.link.kind == EtherType::ARP && message.is_ok_and(|asks| is_needed(asks.target))
        };
        self.between(part.from, part.to).iter().any(|record| match &record.what {
            What::Received(iface, packet) if *iface != Iface::HOST && is_signal(packet) => {
                nodes.insert(record.host);
                false
            }
            What::Sent(iface, packet) if *iface != Iface::HOST && hindered.contains(&packet.id) => {
                is_signal(packet) || (nodes.contains(&record.host) && asks(packet))
            }
            _ => false,
        })
    }

    /// Returns whether a host on the path of the flow was stopped, or a link on it was down, in a gap between two
    /// arrivals, and data of the flow waited for its return for longer than the pace of the flow explains.
    pub(super) fn is_delayed(&self, next: &Next<'_>, gap: Gap) -> bool {
        let Gap { last, end, .. } = gap;
        let limit = limit(next.packets, last);
        let is_long = |begun: Instant, sent: Instant| end.since(begun.max(sent).max(last).min(end)) > limit;
        // A host without any link, for example a radio out of reach of its cell.
        let waits = |[gone, back]: &[Boundary; 2]| {
            let is_late = |due: Due| {
                let reached = self.traffic.reached(due.packet, next.flow.to.host, last);
                is_long(gone.0, due.sent) && reached.is_some_and(|at| at >= back.0)
            };
            (back.2 != NOT_UP || back.0 < next.arrival.at)
                && self.due(next, last, back.0).is_some_and(is_late)
        };
        let is_longer = |fault: &Fault<'_>| {
            let sent = self.waits_for(next, gap, fault);
            sent.is_some_and(|sent| is_long(fault.begun(), sent))
        };
        self.links.faults(last, end).iter().any(is_longer)
            || [next.flow.from.host, next.flow.to.host]
                .into_iter()
                .any(|host| self.links.own_link_lost(host, last, end).iter().any(waits))
    }

    /// Returns when data of the flow were first sent that waited in this gap for the end of a fault: for a stopped host,
    /// for an answer to ARP of a host that was down, or behind a cut link until they passed an end of its wire, or a radio
    /// in its cell.
    pub(super) fn waits_for(&self, next: &Next<'_>, gap: Gap, fault: &Fault<'_>) -> Option<Instant> {
        if fault.is_stop() {
            return self.waits_for_stop(next, gap, fault);
        }
        if fault.lasts() || fault.ended() > next.arrival.at {
            return None;
        }
        let due = self.due(next, gap.last, fault.ended())?;
        let ends = self.links.cut_wire(fault);
        let is_there = |r: &Record, iface: Iface| match ends {
            Some(ends) => ends.contains(&(r.host, iface)),
            None => self.links.is_in_cut_cell((r.host, iface), fault, r.at),
        };
        let had = |host: HostId| {
            let is_it = |r: &Record| {
                r.host == host && matches!(&r.what, What::Received(_, one) if one.id == due.packet)
            };
            self.first(due.sent, fault.ended(), is_it).is_some()
        };
        let is_it = |r: &Record| match &r.what {
            // The neighbor of a host that is down waits for its answer to ARP.
            What::Sent(_, one) if one.id == due.packet && fault.is_crash() => {
                self.links.owner(one.link.dst) == Some(fault.host()) && had(r.host)
            }
            What::Received(iface, one) | What::Sent(iface, one) => {
                one.id == due.packet && is_there(r, *iface)
            }
            _ => false,
        };
        self.first(fault.ended(), next.arrival.at, is_it).map(|_| due.sent)
    }

    /// Returns when the first packet was sent that the flow needed in this gap and that waited for a stopped host: a packet
    /// with its data, with a question that the data answer, one that opens the connection, or an acknowledgment. Such a
    /// packet can be lost later, or arrive after the gap.
    fn waits_for_stop(&self, next: &Next<'_>, gap: Gap, fault: &Fault<'_>) -> Option<Instant> {
        let waiting = self.traffic.stops.waiting(fault.host(), fault.begun())?;
        let [since, until] = [gap.sent[0], gap.end];
        let first = |packets: &Packets| {
            let from = packets.sendings.partition_point(|sending| sending.at < since);
            let within = packets.sendings.iter().skip(from).take_while(|sending| sending.at < until);
            // Of a stream, later data do not delay those that end the gap.
            let is_own = std::ptr::eq(packets, next.packets) && packets.is_stream;
            let mut due = within.filter(|sending| !is_own || sending.place <= next.place);
            due.find(|sending| waiting.contains(&sending.packet)).map(|sending| sending.at)
        };
        let asked = self.questions(next.flow, next.packets).and_then(first);
        let further = next.packets.opened_by.iter().chain(&next.packets.waiting_acks);
        let further =
            further.filter(|(sent, packet)| (since..until).contains(sent) && waiting.contains(packet));
        let further = further.map(|(sent, _)| *sent).min();
        [first(next.packets), asked, further].into_iter().flatten().min()
    }

    /// Returns the first packet with data that were sent before `until`, and that the receiver did not have at
    /// `last`: for a stream the packet that ends the gap. Data that a link or an agent kept can arrive after later
    /// data.
    fn due(&self, next: &Next<'_>, last: Instant, until: Instant) -> Option<Due> {
        let (packets, ending) = (next.packets, next.arrival.packet);
        if packets.is_stream {
            let sent = packets.first_sent(next.place).filter(|sent| *sent < until);
            return sent.map(|sent| Due { sent, packet: ending });
        }
        let [from, to] = [last, until].map(|at| packets.sendings.partition_point(|sending| sending.at < at));
        let mut within = packets.sendings.get(from..to.max(from))?.iter();
        let arrives = |id| self.traffic.reached(id, next.flow.to.host, next.arrival.at).is_some();
        let first = within.find(|sending| arrives(sending.packet));
        let first = first.map(|sending| Due { sent: sending.at, packet: sending.packet });
        // The first of them can have been on its way at `last`.
        let origin = self.traffic.origin(ending, next.arrival.at).filter(|(sent, _)| *sent < until);
        let ends = origin.map(|(sent, _)| Due { sent, packet: ending });
        first.or(ends)
    }
}
