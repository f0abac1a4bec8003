//! One handoff: its cut, the return of the host, and the cost for each flow.

use super::analysis::{HandoffAnalysis, is_lost, text};
use super::cut::Cut;
use super::experience::{FlowCost, Handoff};
use super::moves::{How, Move};
use crate::flow::PacketEvent;
use node::{Span, Stage};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::Instant;

/// Returns the losses that a handoff is charged with, each with the index of its flow.
fn losses(handoff: &Handoff) -> impl Iterator<Item = (usize, &PacketEvent)> {
    handoff.flows.iter().flat_map(|cost| cost.losses.iter().map(|lost| (cost.flow, lost)))
}

impl HandoffAnalysis<'_> {
    /// Returns the handoff that `one` begins, or `None` if no record shows a cut. `later` are the later handoffs of all
    /// hosts, the last one first.
    pub(super) fn handoff(&self, one: &Move<'_>, later: &[Handoff]) -> Option<Handoff> {
        let (record, host) = (one.record, one.record.host);
        let next = later.iter().rfind(|later| later.host == host);
        let until = next.map_or(Instant::NEVER, |next| next.begun);
        let cut = self.cut(one, until)?;
        let begun = record.at.min(cut);
        let back = self.back(one, cut, until);
        let ready = back.map_or(until, |back| self.ready(host, [cut, back, until]));
        let back = back.unwrap_or(cut);
        let by = if let How::Agent(agent) = one.how { agent.by } else { None };
        let place = Cut { host, begun, at: cut, back, ready, by, later };
        let fails = |r: &Record| {
            r.host == host && matches!(&r.what, What::Marked(mark) if mark.name == node::HANDOFF_FAILED)
        };
        let failed = self.first(record.at, until, fails).is_some();
        let flows = (0..).zip(&self.traffic.flows).filter_map(|(index, _)| self.cost(&place, index));
        Some(Handoff {
            host,
            kind: one.kind.clone(),
            from: one.from.clone(),
            to: one.to.clone(),
            failed,
            begun,
            cut,
            flows: flows.collect::<Vec<FlowCost>>(),
            // A path switch after a failed handoff leads to the station that the host left, so its latency is not
            // measured.
            latency: self.latency(host, cut, until).filter(|_| !failed),
            round_trip: self.round_trip(host, cut, until).filter(|_| !failed),
            denied: self.denied(host, begun, until),
        })
    }

    /// Returns the code of the last denied registration of the host in this time, or `None` if a later one was accepted
    /// or none was denied.
    fn denied(&self, host: HostId, from: Instant, until: Instant) -> Option<String> {
        let own = self.between(from, until).iter().rev().filter(|r| r.host == host);
        let marks = own.filter_map(|r| match &r.what {
            What::Marked(mark) if mark.role == mobile_ip::mark::MOBILE_NODE => Some(mark),
            _ => None,
        });
        let mut ends = marks.filter(|mark| ["registered", "denied"].contains(&mark.name));
        ends.next()
            .filter(|last| last.name == "denied")
            .and_then(|last| text(last, "code"))
            .map(str::to_owned)
    }

    /// Assigns each loss to one handoff only. If both ends of a flow move, several handoffs may be charged with one
    /// loss. The handoff of the host that lost the packet keeps the loss. If there is no such handoff, the earliest one
    /// keeps it.
    pub(super) fn charge_once(&self, handoffs: &mut [Handoff]) {
        let mut charged: BTreeMap<(usize, PacketEvent), usize> = BTreeMap::new();
        for (index, handoff) in handoffs.iter().enumerate() {
            for (flow, lost) in losses(handoff) {
                let is_of_host = self.lost_at(lost).is_some_and(|record| record.host == handoff.host);
                let owner = charged.entry((flow, *lost)).or_insert(index);
                if is_of_host {
                    *owner = index;
                }
            }
        }
        for (index, handoff) in handoffs.iter_mut().enumerate() {
            for cost in &mut handoff.flows {
                let flow = cost.flow;
                cost.keep(|lost| charged.get(&(flow, *lost)) == Some(&index));
            }
        }
    }

    /// Returns when the path was cut, or `None` if no record shows a cut. A switch between two usable paths cuts the
    /// old path at the decision. If the radio moved, the cut is the loss of the link, if the link was lost before the
    /// decision, or else the tuning of the radio.
    fn cut(&self, one: &Move<'_>, until: Instant) -> Option<Instant> {
        let record = one.record;
        match one.how {
            How::Switch => return Some(record.at),
            How::Agent(agent) => return Some(agent.cut),
            How::Radio => {}
        }
        let here = |r: &&Record| r.host == record.host;
        let before = self.between(Instant::ZERO, record.at).iter().rev().filter(here);
        let since_up = before.take_while(|r| !matches!(r.what, What::Up(_, Some(_))));
        let lost = since_up.filter(|r| is_lost(r)).last().map(|r| r.at);
        let tuned = || self.first(record.at, until, |r| here(&r) && self.tuned(r).is_some());
        lost.or_else(|| Some(tuned()?.at))
    }

    /// Returns whether the cut of the handoff `later` is a loss of the link at or before the decision for `one`. Then
    /// `one` is no separate handoff.
    pub(super) fn is_same_loss(&self, one: &Move<'_>, later: &Handoff) -> bool {
        let is_cut = |r: &Record| r.host == later.host && is_lost(r);
        let is_agents = matches!(one.how, How::Agent(_));
        !is_agents && later.cut <= one.record.at && self.first(later.cut, later.cut, is_cut).is_some()
    }

    /// Returns the first instant after the cut at which packets can reach the host again: when the radio came up in a
    /// cell. A tuning radio receives nothing. Frames that the kernel processes while the radio tunes arrived before
    /// the tuning. Returns the cut if the host can be reached on both paths, and `None` if no record shows that the
    /// radio came up.
    fn back(&self, one: &Move<'_>, cut: Instant, until: Instant) -> Option<Instant> {
        if one.how != How::Radio {
            return Some(cut);
        }
        let up = |r: &Record| r.host == one.record.host && matches!(r.what, What::Up(_, Some(_)));
        self.first(cut, until, up).map(|up| up.at)
    }

    /// Returns when the handoff had ended: the host had a link (`back`), and the nodes that switch the path had the
    /// new path. Returns `until` if it did not end until then.
    fn ready(&self, host: HostId, [cut, back, until]: [Instant; 3]) -> Instant {
        let registered = || self.edge(host, cut, until, Span::Ends(Stage::Registration), false);
        let switched = self.path_since(host, cut, until).or_else(|| registered().map(|record| record.at));
        let begins = |stage| self.edge(host, cut, until, Span::Begins(stage), false).is_some();
        match switched {
            Some(switched) => switched.max(back).min(until),
            None if [Stage::Detection, Stage::Address, Stage::Registration].into_iter().any(begins) => until,
            None => back,
        }
    }
}
