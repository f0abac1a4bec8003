//! The causes of an outage. Each stage of a handoff begins and ends at two events; the outage is divided among the
//! stages.

use super::analysis::{HandoffAnalysis, begin, has_switched, is_lost, named};
use super::cut::Cut;
use super::experience::{Outage, Owner};
use super::links::NOT_UP;
use super::route::{Departure, Switched};
use crate::faults::{Boundary, Fault, NOT_ENDED};
use crate::flow::{Arrival, Flow, Packets};
use node::{Span, Stage};
use std::borrow::Cow;
use std::collections::BTreeSet;
use trace::{HostId, Record, What};
use wire::{Duration, Iface, Instant, PacketId};

impl<'a> HandoffAnalysis<'a> {
    /// Returns the causes of the outage from `cut` to `to`. At `to`, the arrival `next` ends the outage, or the next
    /// handoff cuts the path again. The events of the host's later handoffs begin at `later`; they are no causes.
    pub(super) fn causes(
        &self,
        host: HostId,
        [cut, to]: [Instant; 2],
        later: Instant,
        next: &Next<'_>,
    ) -> Vec<Owner> {
        let ends = next.arrival.at <= to;
        // Events at the instant of the next handoff belong to that handoff.
        let before = Instant(later.0.saturating_sub(1));
        let departure = if ends {
            self.departure(next)
        } else {
            Some(Departure { sender: next.flow.from.host, at: before, packet: None })
        };
        let departure = departure.filter(|departure| departure.sender != host);
        let last = if ends { to.min(before) } else { to };
        let own = (next.flow, next.packets);
        let leaves = self.has_own_route(host, cut, own).then(|| {
            let until =
                if ends { self.sent(next).map_or(last, |sent| sent.0.min(last)) } else { before.min(last) };
            self.own_route(host, [cut, until], !ends, next.packets)
        });
        let (mut stages, switch, crossed) = self.stages(host, [cut, last], !ends, departure, leaves);
        if departure.is_some() {
            self.admission(host, [cut, last], ends, next.packets, &mut stages);
        }
        if next.packets.is_stream && self.has_several_interfaces(host) {
            between_changes(&mut stages);
        }
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
        let departure = Departure { sender: flow.from.host, at: opened, packet: None };
        let departure = Some(departure).filter(|departure| departure.sender != cut.host);
        let (mut stages, ..) = self.stages(cut.host, [cut.at, opened], false, departure, None);
        let back = latest(&stages).unwrap_or_else(|| (cut.at, cut.host, "cut".to_owned()));
        let open = (opened, flow.from.host, "connection_open".to_owned());
        add(&mut stages, Stage::Recovery, [Some(back), Some(open)]);
        let owners = opens_meanwhile(share_out(cut.at, opened, stages), opened);
        let owners = self.other_end(cut.host, flow, owners);
        Outage { from: cut.at, to: opened, due: cut.at, owners }
    }

    /// Assigns the cause link to the parts of an outage in which `host` waited while the other end of the flow had no
    /// link, to those in which the host itself had none and that have no cause or count as detection, and to the parts that
    /// events of the scenario explain.
    pub(super) fn other_end(&self, host: HostId, flow: &Flow, owners: Vec<Owner>) -> Vec<Owner> {
        let other = if flow.from.host == host { flow.to.host } else { flow.from.host };
        let [Some(first), Some(last)] = [owners.first(), owners.last()] else { return owners };
        // A radio can tune in no time, and a fault can end when it begins.
        let lasts = |[begun, ended]: &[Boundary; 2]| begun.0 < ended.0;
        let mut away =
            if other == host { Vec::new() } else { self.links.without_link(other, first.from, last.to) };
        away.retain(lasts);
        let mut faults = self.links.faults(first.from, last.to);
        faults.retain(|fault| lasts(&fault.edges));
        let ordered: Vec<_> = faults.iter().map(|fault| fault.edges.clone()).collect();
        let can_be_own = |owner: &Owner| matches!(owner.stage, None | Some(Stage::Detection));
        let mut own = self.links.own_link_lost(host, first.from, last.to);
        own.retain(lasts);
        // A packet that was sent after the host had lost its link waited for it.
        let before = |at: Instant| own.iter().filter(|[gone, _]| gone.0 < at).cloned().collect::<Vec<_>>();
        let by_own = |owner: Owner| match owner.stage {
            Some(Stage::FirstByte) => divide(owner.clone(), &before(owner.from)),
            _ if can_be_own(&owner) => divide(owner, &own),
            _ => vec![owner],
        };
        // An event of the scenario explains the parts during the event that have no other cause. It also explains the parts
        // in which the host signalled, or the sender of the flow retransmitted, and the event lost or delayed these packets.
        let hindered: Vec<_> = faults.iter().map(|fault| (fault, self.hindered_by(fault))).collect();
        let hinders = |host: HostId, owner: &Owner| -> Vec<[Boundary; 2]> {
            let its = hindered.iter().filter(|(_, packets)| self.is_in_vain((host, flow), owner, packets));
            its.map(|(fault, _)| fault.edges.clone()).collect()
        };
        let in_vain = |owner: &Owner| hinders(host, owner);
        // The host also waits while an event delays the detection at the other end.
        let detection =
            if hindered.is_empty() { Vec::new() } else { self.detection(other, [first.from, last.to]) };
        let in_switch = |owner: Owner| self.in_switch((host, flow), owner, &hindered);
        let delays = |owner: Owner| divide(owner.clone(), &hinders(other, &owner));
        let delayed: Vec<_> = detection.into_iter().flat_map(delays).filter_map(link_edges).collect();
        let owners = owners.into_iter().flat_map(|owner| split(owner, &away));
        let owners = owners.flat_map(|owner| split(owner, &delayed)).flat_map(by_own);
        let by_event = |owner: Owner| match owner.stage {
            None => split(owner, &ordered),
            Some(
                Stage::Detection
                | Stage::Address
                | Stage::Registration
                | Stage::PathSwitch
                | Stage::Recovery
                | Stage::Traffic
                | Stage::FirstByte,
            ) => {
                let in_vain = in_vain(&owner);
                divide(owner, &in_vain).into_iter().flat_map(in_switch).collect()
            }
            Some(_) => vec![owner],
        };
        join_links(owners.flat_map(by_event))
    }

    /// Divides a switch of the path: the times in which the sender had switched, and waited because of faults that lost or
    /// delayed packets, become separate parts.
    fn in_switch(
        &self,
        (host, flow): (HostId, &Flow),
        owner: Owner,
        hindered: &[(&Fault<'_>, Cow<'_, BTreeSet<PacketId>>)],
    ) -> Vec<Owner> {
        if owner.stage != Some(Stage::PathSwitch) {
            return vec![owner];
        }
        let holds =
            |(fault, packets): &_| self.held_in_switch((host, flow), &owner, (*fault, Cow::as_ref(packets)));
        let held: Vec<_> = hindered.iter().filter_map(holds).collect();
        let mut parts = divide(owner, &held);
        // The fault can have begun before the sender waited for its packets.
        let is_earlier = |part: &Owner| {
            let begins = |fault: &Fault<'_>| fault.edges[0].2 == part.ends && fault.begun() < part.to;
            part.stage == Some(Stage::PathSwitch) && hindered.iter().any(|(fault, _)| begins(fault))
        };
        for part in parts.iter_mut().filter(|part| is_earlier(part)) {
            let is_switched = self.first(part.to, part.to, |r| has_switched(r, flow.from.host)).is_some();
            (if is_switched { "switched" } else { "segment_sent" }).clone_into(&mut part.ends);
            part.hosts = part.hosts.map(|(here, _)| (here, flow.from.host));
        }
        parts
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
        let waits =
            || next.packets.waited([back.0, end.0], None).is_some_and(|wait| wait.span() > Duration::ZERO);
        if let Some(asked) = self.question_awaited((next.flow, next.packets), end.0) {
            if asked.0 > back.0 {
                add(&mut stages, Stage::Traffic, [Some(back.clone()), Some(asked.clone())]);
            }
            let begin = if asked.0 > back.0 { asked } else { back };
            add(&mut stages, Stage::Recovery, [Some(begin), Some(end)]);
        } else if next.packets.is_stream && (is_sent || waits() || self.has_full_window(next, end.0)) {
            add(&mut stages, Stage::Recovery, [Some(back), Some(end)]);
        } else {
            let limit = end.0;
            self.source(back, end, limit, next, &mut stages);
        }
        stages
    }

    /// Returns the stages of one handoff in their order, the record that switched the path, and whether there is a
    /// crossover. If `open` is true, a stage that has begun and has not ended lasts until `to`. `departure` is that of data
    /// that another host sends to `host`, and `leaves` the route of data that `host` itself sends, if it is known.
    fn stages(
        &self,
        host: HostId,
        [cut, to]: [Instant; 2],
        open: bool,
        departure: Option<Departure>,
        leaves: Option<Switched<'a>>,
    ) -> (Vec<Owner>, Option<&'a Record>, bool) {
        let mut stages = Vec::new();
        let last = || open.then(|| (to, host, "next_handoff".to_owned()));
        // Events at the instant of the next handoff belong to that handoff.
        let until = if open { Instant(to.0.saturating_sub(1)) } else { to };
        let (gone, up) = self.without_link(host, [cut, to, until]);
        let why = |r: &Record| if is_lost(r) { "down" } else { "tune" };
        let to = until;
        let linked = up.map(|r| r.at);
        let up = up.map(|r| (r.at, r.host, "up".into()));
        add(&mut stages, Stage::Link, [gone.map(|r| (r.at, r.host, why(r).into())), up.or_else(last)]);
        let switched = leaves.unwrap_or_else(|| self.switched(host, [cut, to], departure));
        let ready = switched.ready().unwrap_or(to);
        // What the host had begun for the network that its radio left does not count if it begins again.
        let left = gone.filter(|gone| gone.at == cut).and(linked);
        for stage in [Stage::Detection, Stage::Address] {
            let times = self.times(host, [cut, to, ready], left, stage);
            for [begin, end] in times {
                add(&mut stages, stage, [named(begin), named(end).or_else(last)]);
            }
        }
        if !matches!(switched, Switched::Earlier) {
            let mut registration = Vec::new();
            // A host that loses its link again has to begin again.
            let mut lost = self.links.own_link_lost(host, linked.unwrap_or(cut), ready);
            lost.retain(|[gone, back]| linked.is_some_and(|linked| gone.0 >= linked) && back.2 != NOT_UP);
            // It may come back to its old network, and not need the registration that it had begun.
            let ends = last().or_else(|| lost.last().map(|[gone, _]| gone.clone()));
            self.register(host, [cut, to], left, &switched, ends, (&stages, &mut registration));
            let parts = registration.into_iter().flat_map(|owner| divide(owner, &lost));
            let parts: Vec<_> = parts.map(|part| self.again(host, part, (&stages, &lost))).collect();
            stages.extend(parts);
        }
        match switched {
            Switched::Agent { switch, is_crossed, .. } => (stages, switch, is_crossed),
            Switched::Earlier | Switched::Sender { .. } | Switched::Own { .. } => (stages, None, false),
        }
    }

    /// Returns the record of the loss of the link from `cut` to `until`, and the record of the link that the host got from
    /// `cut` to `to`.
    fn without_link(
        &self,
        host: HostId,
        [cut, to, until]: [Instant; 3],
    ) -> (Option<&'a Record>, Option<&'a Record>) {
        let here = |r: &Record| r.host == host;
        let iface = |r: &Record| match r.what {
            What::Up(iface, _) | What::Down(iface, _) | What::Tuned(iface, _) => Some(iface),
            _ => None,
        };
        let is_up =
            |r: &Record| here(r) && matches!(r.what, What::Up(_, Some(_))) && self.is_of_interface_in_use(r);
        let up = self.first(cut, to, is_up);
        // With several interfaces, one that is not in use can lose its link too.
        let counts =
            |r: &Record| !self.has_several_interfaces(host) || up.is_some_and(|up| iface(up) == iface(r));
        let gone =
            self.first(cut, until, |r| here(r) && counts(r) && (is_lost(r) || self.tuned(r).is_some()));
        // At the instant of the cut, the radio may have come up for the handoff before.
        let after = |gone: &Record| {
            let later = self.between(cut, to).iter().skip_while(|r| !std::ptr::eq(*r, gone));
            later.into_iter().find(|r| is_up(r))
        };
        let up = gone.filter(|gone| gone.at == cut).map_or(up, after);
        (gone, up)
    }

    /// Adds the registration after the stages `before`: until an agent has the new path, and then until the sender has it. A
    /// part without an end lasts until `last`. If the radio left its network at the cut, the host had a link again at `left`.
    fn register(
        &self,
        host: HostId,
        [cut, to]: [Instant; 2],
        left: Option<Instant>,
        switched: &Switched<'_>,
        last: Option<Boundary>,
        (before, stages): (&[Owner], &mut Vec<Owner>),
    ) {
        // A request before that can be for an address of the network that the host left.
        let address = before.iter().find(|owner| owner.stage == Some(Stage::Address)).map(|owner| owner.to);
        let since = left.into_iter().chain(address).max().filter(|_| left.is_some());
        let until = switched.ready().unwrap_or(to);
        let asked =
            since.and_then(|since| self.edge(host, since, until, Span::Begins(Stage::Registration), false));
        let announced = asked.or_else(|| self.begin(host, cut, to, Stage::Registration));
        let is_own = matches!(switched, Switched::Own { .. });
        // The wait for a reply does not hold the node's own packets.
        let begins = named(announced);
        let begins = if is_own { begins } else { self.registration_begins(host, latest(before), begins) };
        let (agent, sender) = match switched {
            Switched::Agent { mapped, .. } => (named(*mapped).or(last), None),
            Switched::Sender { mapped, ready } => (named(*mapped), named(*ready).or(last)),
            Switched::Own { ready } => (named(*ready).or(last), None),
            Switched::Earlier => (None, None),
        };
        add(stages, Stage::Registration, [begins.clone(), agent.clone()]);
        let waits = agent.or(begins).or_else(|| latest(before)).unwrap_or((cut, host, "cut".to_owned()));
        add(stages, Stage::Registration, [Some(waits), sender]);
    }

    /// Returns a part of the registration without the stages `before` that follow a loss of the link: the part begins with the
    /// request that ends them.
    fn again(&self, host: HostId, mut part: Owner, (before, lost): (&[Owner], &[[Boundary; 2]])) -> Owner {
        if part.stage != Some(Stage::Registration) || lost.iter().all(|[_, back]| back.0 != part.from) {
            return part;
        }
        let within = before.iter().filter(|owner| owner.to > part.from && owner.to < part.to);
        let Some(end) = latest(&within.cloned().collect::<Vec<_>>()) else { return part };
        let asked = named(self.edge(host, end.0, end.0, Span::Begins(Stage::Registration), false));
        let (from, here, begins) = asked.unwrap_or(end);
        (part.from, part.begins) = (from, begins);
        part.hosts = part.hosts.map(|(_, there)| (here, there));
        part
    }

    /// Returns the times of detection of a host.
    fn detection(&self, host: HostId, [from, to]: [Instant; 2]) -> Vec<Owner> {
        let mut all = Vec::new();
        for [begin, end] in self.times(host, [from, to, to], None, Stage::Detection) {
            let end = named(end).unwrap_or_else(|| (to, host, "next_handoff".to_owned()));
            add(&mut all, Stage::Detection, [named(begin), Some(end)]);
        }
        all
    }

    /// Returns the records that begin and end each time of a stage that began until `ready`, when the path was switched. The
    /// path did not need a later time, for example after the host lost its link again. The last time may have no end. If the
    /// radio left its network at the cut, and the host had a link again at `left`, a time that began before the cut and ended
    /// until `left` was for the earlier network: it counts only if no other follows.
    fn times(
        &self,
        host: HostId,
        [cut, to, ready]: [Instant; 3],
        left: Option<Instant>,
        stage: Stage,
    ) -> Vec<[Option<&'a Record>; 2]> {
        let mut times = Vec::new();
        let Some(mut begin) = self.begin(host, cut, to, stage) else { return times };
        let mut end = None;
        for record in self.between(begin.at.max(cut), to) {
            let What::Marked(mark) = &record.what else { continue };
            if record.host != host && !self.is_about(mark, "host", host) {
                continue;
            }
            let is_earlier = |end: Option<&Record>| {
                let ends = |left: Instant| end.is_none_or(|end| end.at <= left);
                begin.at <= cut && left.is_some_and(ends)
            };
            if mark.span == Some(Span::Ends(stage)) {
                end = Some(record);
            } else if mark.span == Some(Span::Begins(stage)) && (end.is_some() || is_earlier(end)) {
                if record.at > ready {
                    break;
                }
                if !is_earlier(end) {
                    times.push([Some(begin), end]);
                }
                (begin, end) = (record, None);
            }
        }
        times.push([Some(begin), end]);
        times
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
        for owner in stages.iter_mut().filter(|owner| owner.to > sent.0) {
            // A packet that left while the registration was under way has not waited for it.
            let needs_it = owner.stage != Some(Stage::Registration);
            (owner.to, owner.ends) =
                if needs_it { (sent.0, sent.2.clone()) } else { (owner.from, owner.begins.clone()) };
            owner.hosts = owner.hosts.map(|(here, _)| (here, if needs_it { sent.1 } else { here }));
        }
        // If another host switched the path at the cut itself, the new path was there at once.
        let at_cut = || self.edge(begun.1, begun.0, begun.0, Span::Begins(Stage::PathSwitch), true);
        let ready = named(switch.or_else(at_cut).filter(|switch| switch.at == begun.0));
        let back = latest(&stages).or(ready).or_else(|| next.packets.is_stream.then_some(begun));
        let back = self.wait_for_route(back, &sent, next, &mut stages);
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
        let switched = named(switch).zip(out.clone()).filter(|(switch, out)| out.0 >= switch.0);
        if let Some((switch, out)) = switched {
            // The crossover had nothing to send until it received the datagram.
            let came = self.between(switch.0, out.0).iter().find(|r| {
                r.host == switch.1 && matches!(&r.what, What::Received(_, packet) if packet.id == id)
            });
            let came = came.map(|r| (r.at, r.host, "next_datagram".to_owned()));
            if came.as_ref().is_some_and(|came| came.0 == out.0) {
                let Some(left) = self.sent(next) else { return stages };
                self.wait(Some(switch.clone()), &left, next, &mut stages);
                first_byte(if left.0 < switch.0 { switch } else { left }, next, &mut stages);
                return stages;
            }
            if let Some(came) = came.clone() {
                self.source(switch.clone(), came, next.arrival.at, next, &mut stages);
            }
            let begin = came.unwrap_or(switch);
            let is_instant = begin.0 == out.0;
            add(&mut stages, Stage::PathSwitch, [Some(begin).filter(|_| !is_instant), Some(out)]);
        }
        // If there was no switch, or if the packet did not pass the crossover, the packet used a path that existed
        // before the cut. For example, two mobile nodes at home are on one link.
        let crossed = crossed && switch.is_none_or(passes);
        let left = if crossed { out } else { self.sent(next) };
        let Some(left) = left else { return stages };
        if crossed {
            first_byte(left, next, &mut stages);
            return stages;
        }
        self.wait(latest(&stages), &left, next, &mut stages);
        let kept = self.kept(latest(&stages), &left, next, &mut stages);
        first_byte(kept.unwrap_or(left), next, &mut stages);
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
        // A segment that was sent before the path was ready has waited for it in the buffer of a node.
        let is_between = |ready: &Boundary| ready.0 > sent.0 && ready.0 < next.arrival.at;
        let ready = latest(&stages).filter(is_between);
        let begin = match (ready, switch) {
            (Some(ready), Some(switch)) if self.left_after(switch, next) => ready,
            (ready, None) => self.kept(ready, &sent, next, &mut stages).unwrap_or(sent),
            _ => sent,
        };
        first_byte(begin, next, &mut stages);
        stages
    }

    /// Returns whether the host that switched the path sent the packet that ends the outage after the switch.
    fn left_after(&self, switch: &Record, next: &Next<'_>) -> bool {
        let id = next.arrival.packet;
        let sends =
            |r: &Record| r.host == switch.host && matches!(&r.what, What::Sent(_, packet) if packet.id == id);
        self.first(switch.at, next.arrival.at, sends).is_some()
    }

    /// Assigns the causes of a hole after its first stages: the wait of the sender, and the transit of the packet that
    /// ends the hole. If this packet was `delayed`, its transit begins when the last stage has ended.
    pub(super) fn resumed(&self, next: &Next<'_>, mut stages: Vec<Owner>, delayed: bool) -> Vec<Owner> {
        let Some(sent) = self.sent(next) else { return stages };
        let back = self.wait_for_route(latest(&stages), &sent, next, &mut stages);
        self.wait(back.clone(), &sent, next, &mut stages);
        let begin = back.filter(|back| delayed && back.0 > sent.0).unwrap_or(sent);
        first_byte(begin, next, &mut stages);
        stages
    }

    /// Returns when and from which host the packet that ends the outage left its origin.
    pub(super) fn sent(&self, next: &Next<'_>) -> Option<Boundary> {
        let (at, on) = self.traffic.origin(next.arrival.packet, next.arrival.at)?;
        let name = if next.packets.is_stream { "segment_sent" } else { "app_sent" };
        Some((at, on, name.to_owned()))
    }

    /// Returns when the sender's node sent the packet that ends the outage.
    pub(super) fn departure(&self, next: &Next<'_>) -> Option<Departure> {
        let (sender, id) = (next.flow.from.host, next.arrival.packet);
        let sends = |r: &&Record| {
            let is_it = matches!(&r.what, What::Sent(iface, one) if *iface != Iface::HOST && one.id == id);
            r.host == sender && is_it
        };
        let sent = self.between(Instant::ZERO, next.arrival.at).iter().rfind(sends).map(|sent| sent.at);
        let at = sent.or_else(|| Some(self.sent(next)?.0))?;
        Some(Departure { sender, at, packet: Some(id) })
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
    pub(super) fn waits_for_source(&self, back: Instant, sent: Instant) -> bool {
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
pub(super) fn latest(stages: &[Owner]) -> Option<Boundary> {
    let owner = stages.iter().max_by_key(|owner| owner.to)?;
    Some((owner.to, owner.hosts?.1, owner.ends.clone()))
}

/// Adds the recovery between a registration and a later change of the path in the same outage. With several interfaces, such a
/// change need not be a separate handoff.
fn between_changes(stages: &mut Vec<Owner>) {
    stages.sort_by_key(|owner| owner.from);
    let mut waits = Vec::new();
    for pair in stages.windows(2) {
        let [before, after] = pair else { continue };
        let edge = |hosts: Option<(HostId, HostId)>, at, name: &String| Some((at, hosts?.1, name.clone()));
        if before.stage == Some(Stage::Registration) && before.to < after.from {
            let edges =
                [edge(before.hosts, before.to, &before.ends), edge(after.hosts, after.from, &after.begins)];
            add(&mut waits, Stage::Recovery, edges);
        }
    }
    stages.extend(waits);
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
        if owner.to <= owner.from {
            continue;
        }
        if owner.from > at {
            owners.push(nobody(at, owner.from));
        }
        at = owner.to;
        match owners.last_mut() {
            // The datagram that ends an outage has overtaken another one.
            Some(Owner { stage: Some(Stage::FirstByte), to, ends, hosts: Some((_, there)), .. })
                if owner.stage == Some(Stage::FirstByte) && *to == owner.from =>
            {
                (*to, *ends) = (owner.to, owner.ends);
                *there = owner.hosts.map_or(*there, |(_, last)| last);
            }
            _ => owners.push(owner),
        }
    }
    if at < to {
        owners.push(nobody(at, to));
    }
    owners
}

/// Returns the events that begin and end a part with the cause link; `None` for any other part.
fn link_edges(owner: Owner) -> Option<[Boundary; 2]> {
    let (here, there) = owner.hosts.filter(|_| owner.stage == Some(Stage::Link))?;
    Some([(owner.from, here, owner.begins), (owner.to, there, owner.ends)])
}

/// Joins two parts in which a radio had no link: the first one ended before the radio got one.
fn join_links(owners: impl Iterator<Item = Owner>) -> Vec<Owner> {
    let mut joined: Vec<Owner> = Vec::new();
    for owner in owners {
        let is_same = |last: &&mut Owner| {
            last.ends == NOT_UP
                && owner.stage == last.stage
                && (last.to, &last.begins) == (owner.from, &owner.begins)
        };
        match joined.last_mut().filter(is_same) {
            Some(last) => {
                (last.to, last.ends) = (owner.to, owner.ends);
                last.hosts = last.hosts.zip(owner.hosts).map(|((here, _), (_, there))| (here, there));
            }
            None => joined.push(owner),
        }
    }
    joined
}

/// Divides a part in which the host only waited, or which has no cause: the times `away` become separate parts with the
/// cause link. Returns any other part unchanged.
fn split(owner: Owner, away: &[[Boundary; 2]]) -> Vec<Owner> {
    let waits = [None, Some(Stage::Recovery), Some(Stage::Traffic), Some(Stage::FirstByte)];
    if waits.contains(&owner.stage) { divide(owner, away) } else { vec![owner] }
}

/// Divides a part: each time of `away` within the part becomes a separate part with the cause link. Returns all parts
/// in the order of time.
pub(super) fn divide(owner: Owner, away: &[[Boundary; 2]]) -> Vec<Owner> {
    let mut parts = Vec::new();
    let mut rest = owner;
    for [gone, back] in away {
        if back.0 <= rest.from || gone.0 >= rest.to || rest.from >= rest.to {
            continue;
        }
        if gone.0 > rest.from {
            let hosts = rest.hosts.map(|(here, _)| (here, gone.1));
            let ends = if hosts.is_some() { gone.2.clone() } else { String::new() };
            parts.push(Owner { to: gone.0, ends, hosts, ..rest.clone() });
        }
        let from = rest.from.max(gone.0);
        let (to, ends) = match &*back.2 {
            ends if back.0 <= rest.to => (back.0, ends),
            "up" | NOT_UP => (rest.to, NOT_UP),
            _ => (rest.to, NOT_ENDED),
        };
        let edges = [(from, gone.1, gone.2.clone()), (to, back.1, ends.to_owned())];
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
