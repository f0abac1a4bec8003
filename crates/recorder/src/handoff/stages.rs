//! The causes of an outage. Each stage of a handoff begins and ends at two events; the outage is divided among the
//! stages.

use super::analysis::{Boundary, HandoffAnalysis, begin, is_lost, is_refusal, named};
use super::cut::Cut;
use super::experience::{Outage, Owner};
use crate::flow::{Arrival, Flow, PacketEvent, Packets};
use node::{Span, Stage};
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Instant, PacketId};

impl<'a> HandoffAnalysis<'a> {
    /// Returns the causes of the outage from `cut` to `to`. At `to`, the arrival `next` ends the outage, or the next
    /// handoff cuts the path again.
    pub(super) fn causes(&self, host: HostId, cut: Instant, to: Instant, next: &Next<'_>) -> Vec<Owner> {
        let ends = next.arrival.at <= to;
        let (stages, switch, crossed) = self.stages(host, cut, to, !ends);
        let begun = (cut, host, "handoff".to_owned());
        let stages = if !ends {
            self.interrupted((to, host, "next_handoff".to_owned()), next, stages, named(switch))
        } else if next.flow.from.host == host {
            self.uplink(begun, switch, stages, next)
        } else if next.packets.is_stream {
            self.recovery(begun, switch, next, stages)
        } else {
            self.next_datagram(crossed, switch, next, stages)
        };
        let open = next.packets.opening.map_or(cut, |wait| wait.to);
        self.other_end(host, next.flow, opens_meanwhile(share_out(cut, to, stages), open))
    }

    /// Returns the outage from the cut until a connection opened, with the causes.
    pub(super) fn until_opened(&self, cut: &Cut<'_>, flow: &Flow, opened: Instant) -> Outage {
        let (mut stages, ..) = self.stages(cut.host, cut.at, opened, false);
        let back = latest(&stages).unwrap_or_else(|| (cut.at, cut.host, "cut".to_owned()));
        let open = (opened, flow.from.host, "connection_open".to_owned());
        add(&mut stages, Stage::Recovery, [Some(back), Some(open)]);
        let owners = opens_meanwhile(share_out(cut.at, opened, stages), opened);
        Outage { from: cut.at, to: opened, owners: self.other_end(cut.host, flow, owners) }
    }

    /// Assigns the cause link to the parts of an outage in which `host` waited while the other end of the flow had no
    /// link, and to the parts that events of the scenario explain.
    pub(super) fn other_end(&self, host: HostId, flow: &Flow, owners: Vec<Owner>) -> Vec<Owner> {
        let other = if flow.from.host == host { flow.to.host } else { flow.from.host };
        let [Some(first), Some(last)] = [owners.first(), owners.last()] else { return owners };
        let away = if other == host { Vec::new() } else { self.without_link(other, first.from, last.to) };
        let ordered = self.ordered(first.from, last.to);
        let owners = owners.into_iter().flat_map(|owner| split(owner, &away));
        // An event of the scenario explains the parts during the event that have no other cause. If packets were lost
        // by the event, it also explains the parts in which the host signalled, or an end of the flow retransmitted,
        // without success.
        let in_vain: Vec<_> =
            ordered.iter().filter(|event| self.is_in_vain(host, flow, event)).cloned().collect();
        let by_event = |owner: Owner| match owner.stage {
            None => split(owner, &ordered),
            Some(
                Stage::Detection | Stage::Address | Stage::Registration | Stage::PathSwitch | Stage::Recovery,
            ) => divide(owner, &in_vain),
            Some(_) => vec![owner],
        };
        owners.flat_map(by_event).collect()
    }

    /// Returns whether packets of this host or flow were lost during this event, for a reason that only events cause.
    fn is_in_vain(&self, host: HostId, flow: &Flow, [begun, ended]: &[Boundary; 2]) -> bool {
        let place = self.traffic.flows.iter().position(|one| std::ptr::eq(one, flow));
        let packets = place.and_then(|place| self.traffic.packets.get(place));
        let is_flows =
            |id: &PacketId| packets.is_some_and(|packets| packets.lost.iter().any(|lost| lost.packet == *id));
        self.between(begun.0, ended.0).iter().any(|record| match &record.what {
            What::Lost(_, id, why) | What::Dropped(_, id, why) => {
                scenario::is_of_event(why) && (record.host == host || is_flows(id))
            }
            _ => false,
        })
    }

    /// Returns the times in which no radio of a host had a link, and which overlap this range, in the order of time.
    /// Such a time begins when the last link is lost, even if the loss is before `from`.
    fn without_link(&self, host: HostId, from: Instant, to: Instant) -> Vec<[Boundary; 2]> {
        let mut up = BTreeSet::new();
        let mut gone: Option<Boundary> = None;
        let mut all = Vec::new();
        for record in self.between(Instant::ZERO, to).iter().filter(|record| record.host == host) {
            let (iface, name) = match &record.what {
                What::Up(iface, Some(_)) => {
                    up.insert(*iface);
                    let gone = gone.take().filter(|_| record.at > from);
                    all.extend(gone.map(|gone| [gone, (record.at, host, "up".to_owned())]));
                    continue;
                }
                What::Down(iface, why) if !is_refusal(why) => (*iface, "down"),
                _ => match self.tuned(record) {
                    Some(iface) => (iface, "tune"),
                    None => continue,
                },
            };
            if up.remove(&iface) && up.is_empty() {
                gone = Some((record.at, host, name.to_owned()));
            }
        }
        all.extend(gone.map(|gone| [gone, (to, host, "not_up".to_owned())]));
        all
    }

    /// Assigns the time from the end of the last stage, or from `switch` if there is no stage, until `end`, where a
    /// handoff begins or cuts the path. The cause is the recovery of the transport, the source, or a link that lost
    /// datagrams.
    pub(super) fn interrupted(
        &self,
        end: Boundary,
        next: &Next<'_>,
        mut stages: Vec<Owner>,
        switch: Option<Boundary>,
    ) -> Vec<Owner> {
        let Some(back) = latest(&stages).or(switch).filter(|back| back.0 < end.0) else { return stages };
        let is_sent = next.packets.first_sent(next.place).is_some_and(|sent| sent < end.0);
        if next.packets.is_stream && is_sent {
            add(&mut stages, Stage::Recovery, [Some(back), Some(end)]);
        } else {
            self.source(back, end, next, &mut stages);
        }
        stages
    }

    /// Assigns the time from `begin` until `end`, in which no data came from the source. If datagrams of the source
    /// were lost in this time, the link is the cause until the last loss, and the source is the cause of the rest.
    fn source(&self, mut begin: Boundary, end: Boundary, next: &Next<'_>, stages: &mut Vec<Owner>) {
        let passed = |lost: &&PacketEvent| {
            let came = |r: &Record| matches!(&r.what, What::Received(_, packet) if packet.id == lost.packet);
            let is_later = lost.at > begin.0 && lost.at <= end.0;
            is_later
                && (lost.sent >= begin.0
                    || self.first(begin.0, lost.at, |r| r.host == begin.1 && came(r)).is_some())
        };
        let lost = next.packets.lost.iter().rfind(passed).filter(|_| !next.packets.is_stream);
        if let Some(lost) = lost {
            let lost = self.last_loss(lost, next.flow.to.host);
            add(stages, Stage::Link, [Some(begin), Some(lost.clone())]);
            begin = lost;
        }
        add(stages, Stage::Traffic, [Some(begin), Some(end)]);
    }

    /// Returns the record of a loss, or `None` if there is none.
    pub(super) fn lost_at(&self, lost: &PacketEvent) -> Option<&'a Record> {
        self.first(lost.at, lost.at, |r| match &r.what {
            What::Lost(_, id, _) | What::Dropped(_, id, _) => *id == lost.packet,
            _ => false,
        })
    }

    /// Returns a loss as the end event of a stage, at the host that lost the packet if that is known. The event is
    /// named `too_big` if the packet was too big for a link, otherwise `last_loss`.
    pub(super) fn last_loss(&self, lost: &PacketEvent, host: HostId) -> Boundary {
        let record = self.lost_at(lost);
        let is_too_big =
            record.is_some_and(|r| matches!(&r.what, What::Dropped(_, _, why) if why == "too_big"));
        let name = if is_too_big { "too_big" } else { "last_loss" };
        (lost.at, record.map_or(host, |r| r.host), name.to_owned())
    }

    /// Returns the stages of one handoff in their order, the record that switched the path, and whether there is a
    /// crossover. If `open` is true, a stage that has begun and has not ended lasts until `to`.
    fn stages(
        &self,
        host: HostId,
        cut: Instant,
        to: Instant,
        open: bool,
    ) -> (Vec<Owner>, Option<&'a Record>, bool) {
        let mut stages = Vec::new();
        let here = |r: &Record| r.host == host;
        let last = || open.then(|| (to, host, "next_handoff".to_owned()));
        // Events at the instant of the next handoff belong to that handoff.
        let until = if open { Instant(to.0.saturating_sub(1)) } else { to };
        let gone = self.first(cut, until, |r| here(r) && (is_lost(r) || self.tuned(r).is_some()));
        let up = self.first(cut, to, |r| here(r) && matches!(r.what, What::Up(_, Some(_))));
        let why = |r: &Record| if is_lost(r) { "down" } else { "tune" };
        let to = until;
        let up = up.map(|r| (r.at, r.host, "up".into()));
        add(&mut stages, Stage::Link, [gone.map(|r| (r.at, r.host, why(r).into())), up.or_else(last)]);
        for stage in [Stage::Detection, Stage::Address] {
            let begin = self.begin(host, cut, to, stage);
            let end = self.edge(host, cut, to, Span::Ends(stage), true);
            add(&mut stages, stage, [named(begin), named(end).or_else(last)]);
        }
        let announced = self.begin(host, cut, to, Stage::Registration);
        let mapped = self.edge(host, cut, to, Span::Ends(Stage::Registration), true);
        let switch = self.edge(host, cut, to, Span::Begins(Stage::PathSwitch), true);
        // Nodes below the crossover make the same marks slightly earlier. They are not used instead of a missing mark
        // of the crossover, because then the missing mark would not be noticed.
        let crossover = mapped.into_iter().chain(switch).max_by_key(|record| record.at).map(|r| r.host);
        let at_crossover = |record: &&Record| Some(record.host) == crossover;
        let mapped = named(mapped.filter(at_crossover));
        let begins = self.registration_begins(host, latest(&stages), named(announced));
        add(&mut stages, Stage::Registration, [begins, mapped.or_else(last)]);
        (stages, switch.filter(at_crossover), crossover.is_some())
    }

    /// Returns the record that begins a stage. If the first event of the stage after the cut is an end at the host
    /// itself, the stage began before the cut: a host may prepare for a network while it still has the old network.
    fn begin(&self, host: HostId, cut: Instant, to: Instant, stage: Stage) -> Option<&'a Record> {
        let begin = self.edge(host, cut, to, Span::Begins(stage), false);
        let end = self.edge(host, cut, to, Span::Ends(stage), false);
        let ends_first =
            end.is_some_and(|end| end.host == host && begin.is_none_or(|begin| end.at < begin.at));
        if !ends_first {
            return begin;
        }
        let before = self.edge(host, Instant::ZERO, cut, Span::Begins(stage), true);
        let lasts = |before: &&Record| self.edge(host, before.at, cut, Span::Ends(stage), true).is_none();
        before.filter(lasts).or(begin)
    }

    /// Returns the begin of the registration after a cut: `announced`, or `ready`, the end of the stages before. At `ready`,
    /// the host may still wait for the reply to a request that it sent before the cut, for example to a home agent that
    /// does not answer. It hears the agent of this request again, so it sends its next request only when this wait ends.
    fn registration_begins(
        &self,
        host: HostId,
        ready: Option<Boundary>,
        announced: Option<Boundary>,
    ) -> Option<Boundary> {
        let (Some(ready), Some(begins)) = (ready, &announced) else { return announced };
        if ready.0 < begins.0 && self.awaits_reply(host, ready.0) { Some(ready) } else { announced }
    }

    /// Assigns the causes if the packet that ends the outage was sent by the host itself. Stages that began after this
    /// packet was sent are left out: the packet did not depend on them. If the host itself requested the `switch`, the
    /// host waited for the answer before it sent the packet.
    fn uplink(
        &self,
        begun: Boundary,
        switch: Option<&Record>,
        mut stages: Vec<Owner>,
        next: &Next<'_>,
    ) -> Vec<Owner> {
        let Some(sent) = self.sent(next) else { return stages };
        if let Some(switch) = switch.filter(|switch| switch.host == begun.1) {
            let end = self.edge(begun.1, switch.at, next.arrival.at, Span::Ends(Stage::PathSwitch), true);
            add(
                &mut stages,
                Stage::PathSwitch,
                [named(Some(switch)), named(end).or_else(|| Some(sent.clone()))],
            );
        }
        let is_before = |owner: &Owner| owner.from < sent.0;
        let mut stages: Vec<Owner> = stages.into_iter().filter(is_before).collect();
        for owner in &mut stages {
            owner.to = owner.to.min(sent.0);
        }
        // If another host switched the path at the cut itself, the new path was there at once.
        let ready = named(switch.filter(|switch| switch.at == begun.0));
        let back = latest(&stages).or(ready).or_else(|| next.packets.is_stream.then_some(begun));
        self.wait(back, &sent, next, &mut stages);
        first_byte(sent, next, &mut stages);
        stages
    }

    /// Assigns the causes if a datagram ends the outage: the crossover sends the datagram on the new path, and the
    /// datagram travels to the host.
    fn next_datagram(
        &self,
        crossed: bool,
        switch: Option<&Record>,
        next: &Next<'_>,
        mut stages: Vec<Owner>,
    ) -> Vec<Owner> {
        let id = next.arrival.packet;
        let sent = |switch: &Record| {
            let sends = |r: &Record| matches!(&r.what, What::Sent(_, sent) if sent.id == id);
            let before = self.between(Instant::ZERO, next.arrival.at);
            let out = before.iter().rfind(|r| r.host == switch.host && sends(r))?;
            Some((out.at, out.host, "sent".to_owned()))
        };
        let passes = |switch: &Record| {
            let is_it = |r: &Record| {
                r.host == switch.host
                    && matches!(&r.what, What::Sent(_, one) | What::Received(_, one) if one.id == id)
            };
            self.between(Instant::ZERO, next.arrival.at).iter().any(is_it)
        };
        let out: Option<Boundary> = switch.and_then(sent);
        if let (Some(switch), Some(out)) = (switch, &out)
            && out.0 >= switch.at
        {
            // The crossover had nothing to send until it received the datagram.
            let came = self.between(switch.at, out.0).iter().find(|r| {
                r.host == switch.host && matches!(&r.what, What::Received(_, packet) if packet.id == id)
            });
            let came = came.map(|r| (r.at, r.host, "next_datagram".to_owned()));
            if let (Some(switch), Some(came)) = (named(Some(switch)), came.clone()) {
                self.source(switch, came, next, &mut stages);
            }
            let begin = came.or_else(|| named(Some(switch)));
            let is_instant = begin.as_ref().is_some_and(|begin| begin.0 == out.0);
            add(&mut stages, Stage::PathSwitch, [begin.filter(|_| !is_instant), Some(out.clone())]);
        }
        // If there was no switch, or if the packet did not pass the crossover, the packet used a path that existed
        // before the cut. For example, two mobile nodes at home are on one link.
        let crossed = crossed && switch.is_none_or(passes);
        let left = if crossed { out } else { self.sent(next) };
        if let Some(left) = left.as_ref().filter(|_| !crossed) {
            self.wait(latest(&stages), left, next, &mut stages);
        }
        if let Some(left) = left {
            first_byte(left, next, &mut stages);
        }
        stages
    }

    /// Assigns the causes if a segment ends the outage: the path is ready, the transport waits until it retransmits,
    /// and the segment travels. If a host keeps another link and changes only its address, there may be no stage before
    /// the wait.
    fn recovery(
        &self,
        begun: Boundary,
        switch: Option<&Record>,
        next: &Next<'_>,
        mut stages: Vec<Owner>,
    ) -> Vec<Owner> {
        let sent = self.sent(next);
        if let Some(switch) = switch {
            let begins = begin(switch);
            let end = self.edge(begun.1, switch.at, next.arrival.at, Span::Ends(Stage::PathSwitch), true);
            // A host with two paths may receive data on the old path while the switch is under way.
            let end = named(end).or_else(|| sent.clone().filter(|_| begins.is_some()));
            add(&mut stages, Stage::PathSwitch, [named(Some(switch)), end.filter(|end| end.0 >= switch.at)]);
        }
        let Some(sent) = sent else { return stages };
        self.wait(latest(&stages).or(Some(begun)), &sent, next, &mut stages);
        first_byte(sent, next, &mut stages);
        stages
    }

    /// Assigns the causes of a hole after its first stages: the wait of the sender, and the transit of the packet that
    /// ends the hole. If this packet was `delayed`, its transit begins when the last stage has ended.
    pub(super) fn resumed(&self, next: &Next<'_>, mut stages: Vec<Owner>, delayed: bool) -> Vec<Owner> {
        let Some(sent) = self.sent(next) else { return stages };
        let back = latest(&stages);
        self.wait(back.clone(), &sent, next, &mut stages);
        let begin = back.filter(|back| delayed && back.0 > sent.0).unwrap_or(sent);
        first_byte(begin, next, &mut stages);
        stages.retain(|owner| owner.to > owner.from);
        stages
    }

    /// Assigns the time from the end of the last stage until the sender sends the packet that ends the outage. The
    /// cause is the transport's recovery, or a source that had nothing to send.
    fn wait(&self, back: Option<Boundary>, sent: &Boundary, next: &Next<'_>, stages: &mut Vec<Owner>) {
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
        if next.waits_for_source(back.0, sent.0) {
            self.source(back, sent.clone(), next, stages);
        } else {
            add(stages, Stage::Recovery, [Some(back), Some(sent.clone())]);
        }
    }

    /// Returns when the sender of an answer received the question, if the question had to be retransmitted and the
    /// sender waited for it. Returns `None` otherwise.
    fn asked_again(&self, next: &Next<'_>, back: Instant, sent: Instant) -> Option<Boundary> {
        if !next.waits_for_source(back, sent) {
            return None;
        }
        let (ours, flows) = (next.flow, self.traffic.flows.iter().zip(&self.traffic.packets));
        let is_reverse = |flow: &Flow| {
            let ports = |end: crate::flow::End| (end.host, end.at.port());
            flow.transport == ours.transport
                && ports(flow.from) == ports(ours.to)
                && ports(flow.to) == ports(ours.from)
        };
        let (reverse, packets) =
            flows.into_iter().find(|(flow, packets)| packets.is_stream && is_reverse(flow))?;
        let arrival = reverse.arrivals.iter().rfind(|arrival| arrival.at > back && arrival.at <= sent)?;
        let (left, _) = self.traffic.origin(arrival.packet, arrival.at)?;
        let repeats =
            |sending: &crate::flow::Sending| !sending.is_new && sending.at <= left && sending.at >= back;
        let is_again = packets.sendings.iter().any(repeats);
        is_again.then(|| (arrival.at, reverse.to.host, "question_arrived".to_owned()))
    }

    /// Returns when and from which host the packet that ends the outage left its origin.
    fn sent(&self, next: &Next<'_>) -> Option<Boundary> {
        let (at, on) = self.traffic.origin(next.arrival.packet, next.arrival.at)?;
        let name = if next.packets.is_stream { "segment_sent" } else { "app_sent" };
        Some((at, on, name.to_owned()))
    }
}

/// The arrival that ends an outage.
pub(super) struct Next<'a> {
    pub(super) flow: &'a Flow,
    pub(super) packets: &'a Packets,
    pub(super) arrival: Arrival,
    /// The position of the arrival's first byte in the flow.
    pub(super) place: u64,
}

impl Next<'_> {
    /// Returns whether the source had nothing to send from `back` until it sent the packet at `sent`: the data was new,
    /// and nothing was retransmitted in between. Always true for datagrams.
    fn waits_for_source(&self, back: Instant, sent: Instant) -> bool {
        if !self.packets.is_stream {
            return true;
        }
        let is_first = self.packets.first_sent(self.place).is_some_and(|first| first >= back);
        let repeats =
            |sending: &&crate::flow::Sending| !sending.is_new && sending.at >= back && sending.at <= sent;
        is_first && !self.packets.sendings.iter().any(|sending| repeats(&sending))
    }
}

/// Assigns to recovery the time in which a connection that opens at `open` waits for a retransmission or an answer.
/// This is the time without a cause between two stages, and between the cut and the first stage. A gap that ends after
/// `open` stays without a cause.
pub(super) fn opens_meanwhile(mut owners: Vec<Owner>, open: Instant) -> Vec<Owner> {
    for at in 1..owners.len() {
        let (before, rest) = owners.split_at_mut(at - 1);
        let [gap, after, ..] = rest else { continue };
        let Some((there, _)) = after.hosts.filter(|_| gap.stage.is_none() && gap.to <= open) else {
            continue;
        };
        let (here, begins) = match before.last() {
            Some(Owner { hosts: Some((_, here)), ends, .. }) => (*here, ends.clone()),
            Some(_) => continue,
            None => (there, "cut".to_owned()),
        };
        gap.stage = Some(Stage::Recovery);
        (gap.begins, gap.ends, gap.hosts) = (begins, after.begins.clone(), Some((here, there)));
    }
    owners
}

/// Returns the end of the stage that ends last.
fn latest(stages: &[Owner]) -> Option<Boundary> {
    let owner = stages.iter().max_by_key(|owner| owner.to)?;
    Some((owner.to, owner.hosts?.1, owner.ends.clone()))
}

/// Adds a stage, if both of its events are known.
pub(super) fn add(stages: &mut Vec<Owner>, stage: Stage, edges: [Option<Boundary>; 2]) {
    if let [Some((from, here, begins)), Some((to, there, ends))] = edges {
        stages.push(Owner { stage: Some(stage), from, to, begins, ends, hosts: Some((here, there)) });
    }
}

/// Divides the time from `from` to `to` among `stages`, without overlap. Marks the parts outside of all stages as
/// unexplained.
pub(super) fn share_out(from: Instant, to: Instant, stages: Vec<Owner>) -> Vec<Owner> {
    let nobody =
        |from, to| Owner { stage: None, from, to, begins: String::new(), ends: String::new(), hosts: None };
    let mut owners = Vec::new();
    let mut at = from;
    // Of two stages that overlap, the one that began first has the time that they share.
    let mut stages = stages;
    stages.sort_by_key(|owner| owner.from);
    for mut owner in stages {
        owner.from = owner.from.max(at);
        owner.to = owner.to.min(to);
        if owner.to < owner.from {
            continue;
        }
        if owner.from > at {
            owners.push(nobody(at, owner.from));
        }
        at = owner.to;
        owners.push(owner);
    }
    if at < to {
        owners.push(nobody(at, to));
    }
    owners
}

/// Divides a part in which the host only waited, or which has no cause: the times `away` become separate parts with the
/// cause link. Returns any other part unchanged.
fn split(owner: Owner, away: &[[Boundary; 2]]) -> Vec<Owner> {
    let waits = [None, Some(Stage::Recovery), Some(Stage::Traffic), Some(Stage::FirstByte)];
    if waits.contains(&owner.stage) { divide(owner, away) } else { vec![owner] }
}

/// Divides a part: each time of `away` within the part becomes a separate part with the cause link. Returns all parts
/// in the order of time.
fn divide(owner: Owner, away: &[[Boundary; 2]]) -> Vec<Owner> {
    let mut parts = Vec::new();
    let mut rest = owner;
    for [gone, back] in away {
        if back.0 <= rest.from || gone.0 >= rest.to {
            continue;
        }
        if gone.0 > rest.from {
            let hosts = rest.hosts.map(|(here, _)| (here, gone.1));
            let ends = if hosts.is_some() { gone.2.clone() } else { String::new() };
            parts.push(Owner { to: gone.0, ends, hosts, ..rest.clone() });
        }
        let (from, to) = (rest.from.max(gone.0), rest.to.min(back.0));
        let edges = [(from, gone.1, gone.2.clone()), (to, back.1, back.2.clone())];
        add(&mut parts, Stage::Link, edges.map(Some));
        let begins = if rest.hosts.is_some() { back.2.clone() } else { String::new() };
        let hosts = rest.hosts.map(|(_, there)| (back.1, there));
        rest = Owner { from: to, begins, hosts, ..rest };
    }
    if parts.is_empty() || rest.to > rest.from {
        parts.push(rest);
    }
    parts
}

/// Assigns the transit of the packet that ends the outage. The time in which retransmissions of data that the receiver
/// holds arrive before this packet belongs to the recovery.
fn first_byte(sent: Boundary, next: &Next<'_>, stages: &mut Vec<Owner>) {
    let held = next.packets.deliveries.iter().rfind(|delivery| {
        let within = delivery.at > sent.0 && delivery.at < next.arrival.at;
        let by_receiver = delivery.is_held && delivery.host == next.flow.to.host;
        next.packets.is_stream && by_receiver && within
    });
    let mut begin = sent;
    if let Some(held) = held {
        let resent = (held.at, held.host, "held_data_resent".to_owned());
        add(stages, Stage::Recovery, [Some(begin), Some(resent.clone())]);
        begin = resent;
    }
    let name = if next.packets.is_stream { "app_read" } else { "app_received" };
    add(stages, Stage::FirstByte, [Some(begin), Some((next.arrival.at, next.flow.to.host, name.to_owned()))]);
}
