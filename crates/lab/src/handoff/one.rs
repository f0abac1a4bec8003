//! One handoff: what cut the path, from when on the host is back, and what it cost each flow.

use super::cost::Cut;
use super::experience::{FlowCost, Handoff};
use super::story::{Story, is_lost, is_switch, text};
use crate::flow::PacketEvent;
use node::Mark;
use std::collections::BTreeMap;
use trace::{Record, What};
use wire::Instant;

/// The losses that a handoff is charged with, with their flows.
fn losses(handoff: &Handoff) -> impl Iterator<Item = (usize, &PacketEvent)> {
    handoff.flows.iter().flat_map(|cost| cost.losses.iter().map(|lost| (cost.flow, lost)))
}

impl Story<'_> {
    /// The handoff that this mark begins; `later` are those that are known already, of all hosts, the last one first.
    pub(super) fn handoff(&self, record: &Record, mark: &Mark, later: &[Handoff]) -> Option<Handoff> {
        let host = record.host;
        let next = later.iter().rfind(|later| later.host == host);
        let field = |name: &str| text(mark, name).unwrap_or_default().to_owned();
        let until = next.map_or(Instant::NEVER, |next| next.begun);
        let cut = self.cut(record, mark, until)?;
        let begun = record.at.min(cut);
        let back = self.back(record, mark, cut, until);
        let place = Cut { host, begun, at: cut, back, later };
        let fails = |r: &Record| {
            r.host == host && matches!(&r.what, What::Marked(mark) if mark.name == node::HANDOFF_FAILED)
        };
        let failed = self.first(record.at, until, fails).is_some();
        let flows = (0..).zip(&self.traffic.flows).filter_map(|(index, _)| self.cost(&place, index));
        Some(Handoff {
            host,
            kind: field("kind"),
            from: field("from"),
            to: field("to"),
            failed,
            begun,
            cut,
            flows: flows.collect::<Vec<FlowCost>>(),
            // What is switched after that is switched to where the host was.
            latency: self.latency(host, cut, until).filter(|_| !failed),
            round_trip: self.round_trip(host, cut, until).filter(|_| !failed),
        })
    }

    /// If both ends of a flow move, each loss belongs to one handoff: to the one whose host lost the packet, else to the
    /// earlier one.
    pub(super) fn charge_once(&self, handoffs: &mut [Handoff]) {
        let mut charged: BTreeMap<(usize, PacketEvent), usize> = BTreeMap::new();
        for (index, handoff) in handoffs.iter().enumerate() {
            for (flow, lost) in losses(handoff) {
                let is_his = self.lost_at(lost).is_some_and(|record| record.host == handoff.host);
                let owner = charged.entry((flow, *lost)).or_insert(index);
                if is_his {
                    *owner = index;
                }
            }
        }
        for (index, handoff) in handoffs.iter_mut().enumerate() {
            for cost in &mut handoff.flows {
                let flow = cost.flow;
                cost.losses.retain(|lost| charged.get(&(flow, *lost)) == Some(&index));
            }
        }
    }

    /// What cut the path: that the link was lost, if it was before anything was decided; the radio that was pointed elsewhere;
    /// or the decision, if the host can be reached both ways: the radio has nothing to do with that.
    fn cut(&self, record: &Record, mark: &Mark, until: Instant) -> Option<Instant> {
        let here = |r: &&Record| r.host == record.host;
        if is_switch(mark) {
            return Some(record.at);
        }
        let before = self.between(Instant::ZERO, record.at).iter().rev().filter(here);
        let since_up = before.take_while(|r| !matches!(r.what, What::Up(_, Some(_))));
        let lost = since_up.filter(|r| is_lost(r)).last().map(|r| r.at);
        let tuned = || self.first(record.at, until, |r| here(&r) && matches!(r.what, What::Tuned(..)));
        lost.or_else(|| Some(tuned()?.at))
    }

    /// Whether the loss of the link that cut the path of a later handoff came before this mark, too.
    pub(super) fn is_same_loss(&self, record: &Record, later: &Handoff) -> bool {
        let is_cut = |r: &Record| r.host == later.host && is_lost(r);
        later.cut <= record.at && self.first(later.cut, later.cut, is_cut).is_some()
    }

    /// From when on anything may reach the host again: a radio on its way hears nothing, and what a kernel hands over
    /// meanwhile it had before. The cut, if the host can be reached both ways, or if no record says that the radio came up.
    fn back(&self, record: &Record, mark: &Mark, cut: Instant, until: Instant) -> Instant {
        if is_switch(mark) {
            return cut;
        }
        let up = |r: &Record| r.host == record.host && matches!(r.what, What::Up(_, Some(_)));
        self.first(cut, until, up).map_or(cut, |up| up.at)
    }
}
