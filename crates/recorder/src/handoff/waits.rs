//! The parts of an outage in which data could reach the host: a sender waits for its source, for its transport, or for
//! the route to the other end of the flow, or a node keeps the data until the host asks for them.

use super::analysis::{HandoffAnalysis, is_registered, named, text};
use super::experience::Owner;
use super::route::Route;
use super::stages::{Next, add};
use crate::faults::Boundary;
use crate::flow::{Arrival, End, Flow, Packets};
use mobile_ip::mark::FOREIGN_AGENT;
use node::{Span, Stage};
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Instant, Packet};

impl<'a> HandoffAnalysis<'a> {
    /// Adds the part in which the sender of a flow waited for the route to the other end, a mobile node that moved
    /// too: it lasts until the packet that ends the outage could take the route. Returns the end of this part, or
    /// `back` if the route was ready at `back` already.
    pub(super) fn wait_for_route(
        &self,
        back: Option<Boundary>,
        sent: &Boundary,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) -> Option<Boundary> {
        let receiver = next.flow.to.host;
        let Some(mut begin) = back.clone().filter(|back| back.0 < sent.0) else { return back };
        let Some(by) = self.route_since(next).filter(|by| by.at > begin.0) else { return back };
        // Before its registration, the other end had no link, or did not know its network.
        let mapped = self.routes_to(receiver, begin.0, by.at).find(|record| is_registered(record));
        let asked = mapped.and_then(|mapped| {
            self.edge(receiver, begin.0, mapped.at, Span::Begins(Stage::Registration), false)
        });
        if let Some(asked) = named(asked) {
            self.wait(Some(begin), &asked, next, stages);
            begin = asked;
        }
        let ready = named(Some(by));
        add(stages, Stage::Registration, [Some(begin), ready.clone()]);
        ready
    }

    /// Returns the record since which the route of the packet that ends the outage leads to its receiver. Returns
    /// `None` if the receiver is no mobile node, or if no record shows that.
    pub(super) fn route_since(&self, next: &Next<'_>) -> Option<&Record> {
        let departure = self.departure(next)?;
        match self.route(next.flow.to.host, Instant::ZERO, next.arrival.at, &departure) {
            Route::Since(by) => Some(by),
            Route::Unknown | Route::Earlier | Route::Missing => None,
        }
    }

    /// Assigns the time from the end of the last stage until the sender sends the packet that ends the outage. The
    /// cause is the transport's recovery, or a source that had nothing to send.
    pub(super) fn wait(
        &self,
        back: Option<Boundary>,
        sent: &Boundary,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) {
        let Some(mut back) = back.filter(|back| back.0 < sent.0) else { return };
        // A connection that is not open at both ends waits for a retransmission of its handshake.
        let opening = next.packets.opening.filter(|wait| (wait.from..wait.to).contains(&back.0));
        if let Some(opened) = opening.map(|wait| wait.to).filter(|opened| *opened <= sent.0) {
            let opened = (opened, sent.1, "connection_open".to_owned());
            add(stages, Stage::Recovery, [Some(back), Some(opened.clone())]);
            back = opened;
        }
        if let Some(asked) = self.asked_again(next, back.0, sent.0) {
            add(stages, Stage::Recovery, [Some(back), Some(asked.clone())]);
            back = asked;
        }
        if next.waits_for_source(back.0, sent.0) && !self.has_full_window(next, sent.0) {
            self.source(back, sent.clone(), next.arrival.at, next, stages);
        } else {
            add(stages, Stage::Recovery, [Some(back), Some(sent.clone())]);
        }
    }

    /// Returns whether the congestion window of a stream's sender was full before `at`, so that the next data had to wait for an
    /// acknowledgment or a timer. Returns false if the records do not show the window.
    pub(super) fn has_full_window(&self, next: &Next<'_>, at: Instant) -> bool {
        let [local, peer] = [next.flow.from.at, next.flow.to.at].map(|at| at.to_string());
        let window = |r: &Record| match &r.what {
            What::Marked(mark)
                if r.host == next.flow.from.host && (mark.role, mark.name) == ("tcp", "cwnd") =>
            {
                let is_its = |(field, at): (&str, &String)| text(mark, field) == Some(at.as_str());
                let bytes = mark.fields.iter().find(|(key, _)| *key == "bytes");
                let is_own = [("local", &local), ("peer", &peer)].into_iter().all(is_its);
                bytes.filter(|_| is_own).and_then(|(_, bytes)| bytes.as_int())
            }
            _ => None,
        };
        let Some([in_flight, piece]) = next.packets.in_flight(at, next.place) else { return false };
        let mut earlier = self.between(Instant::ZERO, at).iter().rev().filter(|r| r.at < at);
        let window = earlier.find_map(window);
        window.is_some_and(|window| in_flight > 0 && i128::from(in_flight + piece) > i128::from(window))
    }

    /// Returns when the sender of an answer received the question, if the question had to be retransmitted and the
    /// sender waited for it. Returns `None` otherwise.
    fn asked_again(&self, next: &Next<'_>, back: Instant, sent: Instant) -> Option<Boundary> {
        if !next.waits_for_source(back, sent) {
            return None;
        }
        let (reverse, packets) = self.reverse(next.flow)?;
        let arrival = reverse.arrivals.iter().rfind(|arrival| arrival.at > back && arrival.at <= sent)?;
        let (left, _) = self.traffic.origin(arrival.packet, arrival.at)?;
        let repeats =
            |sending: &crate::flow::Sending| !sending.is_new && sending.at <= left && sending.at >= back;
        let is_again = packets.sendings.iter().any(repeats);
        is_again.then(|| (arrival.at, reverse.to.host, "question_arrived".to_owned()))
    }

    /// Returns when the question was sent for which the sender of an answer waited at `end`, if it had to be retransmitted.
    pub(super) fn question_awaited(
        &self,
        (flow, packets): (&Flow, &Packets),
        end: Instant,
    ) -> Option<Boundary> {
        self.questions(flow, packets)?;
        let (reverse, packets) = self.reverse(flow)?;
        let (earlier, later) =
            reverse.arrivals.split_at(reverse.arrivals.partition_point(|one| one.at <= end));
        let place = earlier.iter().map(|arrival| arrival.bytes).sum();
        let asked = packets.first_sent(place).filter(|asked| *asked <= end)?;
        let until = later.first().map_or(Instant::NEVER, |arrival| arrival.at);
        let repeats =
            |sending: &crate::flow::Sending| !sending.is_new && (asked..=until).contains(&sending.at);
        let is_again = packets.sendings.iter().any(repeats);
        is_again.then(|| (asked, reverse.from.host, "question_sent".to_owned()))
    }

    /// Returns the stream in the reverse direction of the same connection, or `None` if there is none.
    pub(super) fn reverse(&self, flow: &Flow) -> Option<(&Flow, &Packets)> {
        let ports = |end: End| (end.host, end.at.port());
        let is_it = |(other, packets): &(&Flow, &Packets)| {
            packets.is_stream
                && other.transport == flow.transport
                && ports(other.from) == ports(flow.to)
                && ports(other.to) == ports(flow.from)
        };
        self.traffic.flows.iter().zip(&self.traffic.packets).find(is_it)
    }

    /// Assigns the time from `begin` until `end`, in which no data came from the source. If datagrams of the source
    /// that were sent before `end` were lost until `limit`, the cause until the last loss is what lost them. For the rest, the source is
    /// the cause until it sends a datagram that is on its way at `end`.
    pub(super) fn source(
        &self,
        mut begin: Boundary,
        end: Boundary,
        limit: Instant,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) {
        let lost = self.lost_between(&begin, end.0, limit, next);
        begin = self.losses(begin, [end.0, limit], lost, next, stages);
        if begin.0 > end.0 {
            return;
        }
        let sent = self.under_way(next, begin.0, end.0);
        let sent = sent.map(|sent| (sent, next.flow.from.host, "app_sent".to_owned()));
        let until = sent.clone().unwrap_or_else(|| end.clone());
        if sent.is_none() || until.0 > begin.0 {
            add(stages, Stage::Traffic, [Some(begin.clone()), Some(until.clone())]);
            begin = until;
        }
        if sent.is_some() {
            add(stages, Stage::FirstByte, [Some(begin), Some(end)]);
        }
    }

    /// Returns when the first datagram was sent that was on its way at `end`: the one that ends the outage, or one
    /// that was sent after `begin` and arrived or was lost after `end`. Returns `None` if there is none, and for
    /// streams.
    fn under_way(&self, next: &Next<'_>, begin: Instant, end: Instant) -> Option<Instant> {
        let (packets, receiver) = (next.packets, next.flow.to.host);
        if packets.is_stream {
            return None;
        }
        let last = packets.lost.partition_point(|lost| lost.at <= end);
        let lost_later = |id| packets.lost.iter().skip(last).any(|lost| lost.packet == id);
        let [from, to] = [begin, end].map(|at| packets.sendings.partition_point(|sending| sending.at < at));
        let sendings = packets.sendings.get(from..to).unwrap_or_default();
        let is_on_its_way = |sending: &&crate::flow::Sending| {
            let reached = self.traffic.reached(sending.packet, receiver, Instant::ZERO);
            reached.map_or_else(|| lost_later(sending.packet), |at| at > end)
        };
        let other = sendings.iter().find(is_on_its_way).map(|sending| sending.at);
        let own = self.sent(next).map(|sent| sent.0).filter(|sent| *sent < end);
        own.into_iter().chain(other).min()
    }

    /// Returns the begin of the transit of a packet that left its origin at `sent`, and that a foreign agent had kept on a path that has
    /// led to the mobile node before. At `ready`, the mobile node had a link again: the transit begins there. If the agent still kept the
    /// packet when the mobile node then asked for a registration, the packet has waited for that: until the agent changed its path, or sent
    /// the packet. Returns `None` if no agent had kept the packet.
    pub(super) fn kept(
        &self,
        ready: Option<Boundary>,
        sent: &Boundary,
        next: &Next<'_>,
        stages: &mut Vec<Owner>,
    ) -> Option<Boundary> {
        let host = next.flow.to.host;
        let ready = ready.filter(|ready| (sent.0..next.arrival.at).contains(&ready.0))?;
        // Any other node can keep a packet too, while it waits for an answer to ARP.
        let is_agents = |r: &&Record| matches!(&r.what, What::Marked(mark) if mark.role == FOREIGN_AGENT);
        let changed = self.routes_to(host, Instant::ZERO, next.arrival.at).filter(is_agents);
        let agents: BTreeSet<HostId> = changed.map(|r| r.host).collect();
        let asks = |r: &&Record| {
            let begins = Some(Span::Begins(Stage::Registration));
            r.host == host && matches!(&r.what, What::Marked(mark) if mark.span == begins)
        };
        let requests = || self.between(ready.0, next.arrival.at).iter().filter(asks);
        let left = |at| self.kept_at(at, (sent.0, &agents), next.arrival);
        let Some((request, left)) = requests().rev().find_map(|request| Some((request, left(request.at)?)))
        else {
            return left(ready.0).map(|_| ready);
        };
        let changed = self.routes_to(host, request.at, left.at).rfind(|r| r.host == left.host);
        let end = named(changed).unwrap_or((left.at, left.host, "kept_packet_sent".to_owned()));
        let begins = named(requests().next()).filter(|request| request.0 == ready.0).unwrap_or(ready);
        add(stages, Stage::Registration, [Some(begins), Some(end.clone())]);
        Some(end)
    }

    /// Returns the record with which one of these agents sent the packet of `arrival` that it had received from `since` on, and before `at`.
    fn kept_at(
        &self,
        at: Instant,
        (since, agents): (Instant, &BTreeSet<HostId>),
        arrival: Arrival,
    ) -> Option<&'a Record> {
        let is_it = |packet: &Packet| packet.id == arrival.packet;
        let is_received = |r: &&Record| {
            agents.contains(&r.host) && matches!(&r.what, What::Received(_, packet) if is_it(packet))
        };
        let before = self.between(since, at).iter().filter(|r| r.at < at);
        let mut keepers: BTreeSet<HostId> = before.filter(is_received).map(|r| r.host).collect();
        self.between(at, arrival.at).iter().find(|r| {
            // An agent that receives the packet again has not kept it.
            if is_received(r) {
                keepers.remove(&r.host);
            }
            keepers.contains(&r.host) && matches!(&r.what, What::Sent(_, packet) if is_it(packet))
        })
    }
}
