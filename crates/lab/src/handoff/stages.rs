//! The story of one handoff: its stages, each from its own two events, shared out over the outage.

use super::traffic::{Arrival, Traffic};
use super::{Experience, FlowCost, Handoff, Outage, Owner};
use crate::Plan;
use node::{Mark, Span, Stage, Value};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Duration, Instant, Ipv4Addr};

/// An event that a stage begins or ends with.
type Event = (Instant, HostId, String);

/// The records of a run, sorted for looking things up.
pub(super) struct Story<'a> {
    /// In the order of time.
    records: &'a [Record],
    traffic: Traffic,
    owners: BTreeMap<Ipv4Addr, HostId>,
}

impl<'a> Story<'a> {
    pub(super) fn new(plan: &Plan, records: &'a [Record]) -> Self {
        Self { records, traffic: Traffic::new(plan, records), owners: plan.owners() }
    }

    pub(super) fn handoff(&self, record: &Record, mark: &Mark, until: Instant) -> Option<Handoff> {
        let host = record.host;
        let field = |name: &str| {
            let value = mark.fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
            value.and_then(Value::as_text).unwrap_or_default().to_owned()
        };
        let cut = self.cut(record, mark, until)?;
        let begun = record.at.min(cut);
        let back = self.back(record, mark, cut, until);
        let within = |at: Instant| at >= begun && at < until;
        let lost = self.traffic.lost(host, within);
        let times = self.times(host, cut, until);
        Some(Handoff {
            host,
            kind: field("kind"),
            from: field("from"),
            to: field("to"),
            begun,
            cut,
            flows: vec![FlowCost {
                flow: 0,
                experience: match self.outage(host, [cut, back], until, lost) {
                    Some(outage) => Experience::Outage(outage),
                    None if self.endless(host, [cut, back], until) => Experience::Never { from: cut },
                    None if self.next(host, back, until).is_none() => Experience::NotMeasured,
                    None => Experience::None,
                },
                recovered: None,
                lost,
                duplicates: self.traffic.doubles(host, within),
            }],
            latency: times.map(|(_, mapped, down)| mapped.since(cut) + down),
            round_trip: times.map(|(sent, mapped, down)| mapped.since(sent) + down),
        })
    }

    /// What cut the path: that the link was lost, if it was before anything was decided; the radio that was pointed elsewhere;
    /// or his own decision, of one who can be reached both ways: the radio has nothing to do with that.
    fn cut(&self, record: &Record, mark: &Mark, until: Instant) -> Option<Instant> {
        let here = |r: &&Record| r.host == record.host;
        if mark.span == Some(Span::Begins(Stage::PathSwitch)) {
            return Some(record.at);
        }
        let before = self.between(Instant::ZERO, record.at).iter().rev().filter(here);
        let since_up = before.take_while(|r| !matches!(r.what, What::Up(_, Some(_))));
        let lost = since_up.filter(|r| is_lost(r)).last().map(|r| r.at);
        let tuned = || self.first(record.at, until, |r| here(&r) && matches!(r.what, What::Tuned(..)));
        lost.or_else(|| Some(tuned()?.at))
    }

    /// From when on anything may reach the host again: a radio on its way hears nothing, and what a kernel hands over
    /// meanwhile it had before. The cut, of one who can be reached both ways, and where nobody saw it come up.
    fn back(&self, record: &Record, mark: &Mark, cut: Instant, until: Instant) -> Instant {
        if mark.span == Some(Span::Begins(Stage::PathSwitch)) {
            return cut;
        }
        let up = |r: &Record| r.host == record.host && matches!(r.what, What::Up(_, Some(_)));
        self.first(cut, until, up).map_or(cut, |up| up.at)
    }

    /// When the route-update left that the crossover took, when it took it, and the downlink time of the new leg.
    fn times(&self, host: HostId, cut: Instant, until: Instant) -> Option<(Instant, Instant, Duration)> {
        let first = self.edge(host, cut, until, Span::Begins(Stage::Registration), false)?.at;
        let mapped = self.edge(host, cut, until, Span::Ends(Stage::Registration), true)?;
        let sent = self.sent_up(host, cut, mapped).unwrap_or(first);
        let out = self.between(mapped.at, until).iter();
        let out = out.filter(|r| r.host == mapped.host && r.at > mapped.at && r.at < until);
        let down = out.filter_map(|r| match &r.what {
            What::Sent(_, packet) => Some(self.traffic.reached(packet.id, host, r.at)?.since(r.at)),
            _ => None,
        });
        Some((sent, mapped.at, down.into_iter().next()?))
    }

    /// When the host sent what the crossover acted upon: of a route-update's repetitions, the one that came there.
    fn sent_up(&self, host: HostId, cut: Instant, mapped: &Record) -> Option<Instant> {
        let within = self.between(cut, mapped.at);
        within.iter().rev().filter(|r| r.host == mapped.host).find_map(|r| {
            let What::Received(_, taken) = &r.what else { return None };
            let sends = |r: &&Record| matches!(&r.what, What::Sent(_, sent) if sent.id == taken.id);
            Some(within.iter().find(|r| r.host == host && sends(r))?.at)
        })
    }

    fn outage(&self, host: HostId, [cut, back]: [Instant; 2], until: Instant, lost: u64) -> Option<Outage> {
        let all = self.traffic.arrivals(host);
        let index = self.next(host, back, until)?;
        let (next, before) = (all.get(index)?, all.get(index.checked_sub(1)?)?.at);
        let spacing = self.traffic.spacing(host);
        // Two spacings exactly are no gap, and on a real clock they are never exactly two.
        if lost == 0 && next.at.since(before) <= spacing * 2 + spacing / 8 {
            return None;
        }
        let mut outage = Outage { from: cut, to: next.at, owners: Vec::new() };
        outage.owners = share_out(cut, next.at, self.stages(host, cut, next));
        Some(outage)
    }

    /// The first that the application was handed of what reached the host since it is back. What its stack had before,
    /// and the application only then, came by the old path.
    fn next(&self, host: HostId, back: Instant, until: Instant) -> Option<usize> {
        let came = |arrival: &Arrival| {
            self.traffic.reached(arrival.packet, host, back).is_some_and(|at| at <= arrival.at)
        };
        let after = |arrival: &Arrival| arrival.at > back && arrival.at < until && came(arrival);
        self.traffic.arrivals(host).iter().position(after)
    }

    fn endless(&self, host: HostId, [cut, back]: [Instant; 2], until: Instant) -> bool {
        let had = self.traffic.arrivals(host).iter().any(|arrival| arrival.at <= cut);
        had && self.next(host, back, until).is_none()
            && self.traffic.stuck(host, |at| at >= cut && at < until)
    }

    /// The stages of one handoff, each from its own two events, in their order.
    fn stages(&self, host: HostId, cut: Instant, next: &Arrival) -> Vec<Owner> {
        let to = next.at;
        let mut stages = Vec::new();
        let here = |r: &Record| r.host == host;
        let gone = self.first(cut, to, |r| here(r) && (is_lost(r) || matches!(r.what, What::Tuned(..))));
        let up = self.first(cut, to, |r| here(r) && matches!(r.what, What::Up(_, Some(_))));
        let why = |r: &Record| if is_lost(r) { "down" } else { "tune" };
        let edges = [gone.map(|r| (r.at, r.host, why(r).into())), up.map(|r| (r.at, r.host, "up".into()))];
        add(&mut stages, Stage::Link, edges);
        for stage in [Stage::Detection, Stage::Address] {
            let begin = self.edge(host, cut, to, Span::Begins(stage), false);
            let end = self.edge(host, cut, to, Span::Ends(stage), true);
            add(&mut stages, stage, [named(begin), named(end)]);
        }
        let announced = self.edge(host, cut, to, Span::Begins(Stage::Registration), false);
        let mapped = self.edge(host, cut, to, Span::Ends(Stage::Registration), true);
        let switch = self.edge(host, cut, to, Span::Begins(Stage::PathSwitch), true);
        // Nodes below the crossover leave the same marks a little earlier. Were one of its own missing, theirs would
        // take its place, and nothing would show.
        let crossover = mapped.into_iter().chain(switch).max_by_key(|record| record.at).map(|r| r.host);
        let at_crossover = |record: &&Record| Some(record.host) == crossover;
        add(&mut stages, Stage::Registration, [named(announced), named(mapped.filter(at_crossover))]);
        let switch = switch.filter(at_crossover);
        if next.stream {
            self.recovery(host, switch, next, &mut stages);
        } else {
            self.next_datagram(host, crossover.is_some(), switch, next, &mut stages);
        }
        stages
    }

    /// A datagram ends the outage: the crossover sends it by the new path, and it travels.
    fn next_datagram(
        &self,
        host: HostId,
        crossed: bool,
        switch: Option<&Record>,
        next: &Arrival,
        stages: &mut Vec<Owner>,
    ) {
        let sent = |switch: &Record| {
            let sends = |r: &Record| matches!(&r.what, What::Sent(_, sent) if sent.id == next.packet);
            let before = self.between(Instant::ZERO, next.at);
            let out = before.iter().rfind(|r| r.host == switch.host && sends(r))?;
            Some((out.at, out.host, "sent".to_owned()))
        };
        let out: Option<Event> = switch.and_then(sent);
        if let (Some(switch), Some(out)) = (switch, &out)
            && out.0 >= switch.at
        {
            add(stages, Stage::PathSwitch, [named(Some(switch)), Some(out.clone())]);
        }
        // Without a switch the packet came by a way that was there before the cut.
        let origin =
            || self.traffic.origin(next.packet, next.at).map(|(at, on)| (at, on, "app_sent".to_owned()));
        let left = if crossed { out } else { origin() };
        add(stages, Stage::FirstByte, [left, Some((next.at, host, "app_received".to_owned()))]);
    }

    /// A segment ends the outage: the path is there, the transport waits until it sends again, and that travels.
    fn recovery(&self, host: HostId, switch: Option<&Record>, next: &Arrival, stages: &mut Vec<Owner>) {
        let origin = self.traffic.origin(next.packet, next.at);
        let sent: Option<Event> = origin.map(|(at, on)| (at, on, "segment_sent".to_owned()));
        if let Some(begin) = switch {
            let end = self.edge(host, begin.at, next.at, Span::Ends(Stage::PathSwitch), true);
            // Who can be reached both ways may be sent something by the old one while the switch is under way.
            let end = named(end).or_else(|| sent.clone().filter(|_| super::begin(begin).is_some()));
            add(stages, Stage::PathSwitch, [named(Some(begin)), end.filter(|end| end.0 >= begin.at)]);
        }
        let Some(sent) = sent else { return };
        let back = stages.iter().max_by_key(|owner| owner.to);
        let back = back.and_then(|owner| Some((owner.to, owner.hosts?.1, owner.ends.clone())));
        if let Some(back) = back.filter(|back| back.0 < sent.0) {
            add(stages, Stage::Recovery, [Some(back), Some(sent.clone())]);
        }
        add(stages, Stage::FirstByte, [Some(sent), Some((next.at, host, "app_read".to_owned()))]);
    }

    /// The records of this time, both ends included.
    fn between(&self, from: Instant, to: Instant) -> &'a [Record] {
        let begin = self.records.partition_point(|r| r.at < from);
        let end = self.records.partition_point(|r| r.at <= to);
        self.records.get(begin..end).unwrap_or_default()
    }

    fn first(&self, from: Instant, to: Instant, wanted: impl Fn(&Record) -> bool) -> Option<&'a Record> {
        self.between(from, to).iter().find(|r| wanted(r))
    }

    /// The first or the last mark of this edge that is about this host.
    fn edge(&self, host: HostId, from: Instant, to: Instant, span: Span, last: bool) -> Option<&'a Record> {
        let about = |r: &Record, mark: &Mark| {
            let named =
                mark.fields.iter().find(|(key, _)| *key == "host").and_then(|(_, value)| value.as_text());
            let named: Option<Ipv4Addr> = named.and_then(|named| named.parse().ok());
            r.host == host || named.is_some_and(|named| self.owners.get(&named) == Some(&host))
        };
        let mut matching = self.between(from, to).iter().filter(|r| match &r.what {
            What::Marked(mark) => mark.span == Some(span) && about(r, mark),
            _ => false,
        });
        if last { matching.next_back() } else { matching.next() }
    }
}

/// Whether a radio lost its cell here.
fn is_lost(record: &Record) -> bool {
    matches!(&record.what, What::Down(_, why) if **why == *node::Link::OUT_OF_RANGE)
}

/// A stage needs both of its events.
fn add(stages: &mut Vec<Owner>, stage: Stage, edges: [Option<Event>; 2]) {
    if let [Some((from, here, begins)), Some((to, there, ends))] = edges {
        stages.push(Owner { stage: Some(stage), from, to, begins, ends, hosts: Some((here, there)) });
    }
}

/// The event that a mark is.
fn named(record: Option<&Record>) -> Option<Event> {
    let record = record?;
    let name = if let What::Marked(mark) = &record.what { mark.name } else { "" };
    Some((record.at, record.host, name.to_owned()))
}

/// Gives every moment to one stage at most, and what is left to nobody.
fn share_out(from: Instant, to: Instant, stages: Vec<Owner>) -> Vec<Owner> {
    let nobody =
        |from, to| Owner { stage: None, from, to, begins: String::new(), ends: String::new(), hosts: None };
    let mut owners = Vec::new();
    let mut at = from;
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
