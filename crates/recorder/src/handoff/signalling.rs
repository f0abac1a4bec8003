//! The signalling of Mobile IP in an outage without a handoff: an agent lost its state of the mobile node, or the lifetime
//! of a registration ended, and the mobile node registers again. Or the entry of a binding cache was not that of the mobile
//! node's present place.

use super::analysis::{HandoffAnalysis, is_registered, named};
use super::experience::Owner;
use super::stages::{Next, add, latest};
use crate::faults::Boundary;
use crate::flow::{Flow, PacketEvent, Packets};
use mobile_ip::foreign_agent::NOT_A_VISITOR;
use mobile_ip::mark::{FOREIGN_AGENT, HOME_AGENT, MOBILE_NODE};
use node::{Mark, Span, Stage};
use trace::{HostId, Record, What};
use wire::Instant;

impl HandoffAnalysis<'_> {
    /// Returns the stages in which an end of the flow had no path, because an agent had no state of it, until the agent
    /// had this state again: detection until the mobile node signals, then registration. `begin` is the begin of the
    /// outage, or the end of an earlier stage. The flow first lost a packet at `lost`. If the binding cache of the sender
    /// changed later, the registration lasts until then. Returns no stage if none of this happened between `lost` and `end`.
    pub(super) fn signalled(
        &self,
        flow: &Flow,
        begin: &Boundary,
        [lost, end]: [Instant; 2],
        next: Option<&Next<'_>>,
    ) -> Vec<Owner> {
        let mut stages = self.agents_signalled(flow, begin, [lost, end]);
        let since = next.and_then(|next| self.route_since(next)).filter(|since| !is_registered(since));
        let since = since.filter(|since| since.at > begin.0.max(lost) && since.at <= end);
        if let Some(since) = named(since) {
            let from = latest(&stages).unwrap_or_else(|| begin.clone());
            add(&mut stages, Stage::Registration, [Some(from), Some(since)]);
        }
        stages
    }

    fn agents_signalled(&self, flow: &Flow, begin: &Boundary, [lost, end]: [Instant; 2]) -> Vec<Owner> {
        let ends = [flow.to.host, flow.from.host];
        let all = ends.into_iter().find_map(|host| {
            let back = self.between(begin.0.max(lost), end).iter().rev().find(|r| self.is_bound(r, host))?;
            Some((host, back))
        });
        let mut stages = Vec::new();
        let Some((host, back)) = all else { return stages };
        let back = named(Some(back));
        if self.awaits_reply(host, begin.0) {
            add(&mut stages, Stage::Registration, [Some(begin.clone()), back]);
            return stages;
        }
        let until = back.as_ref().map_or(end, |back| back.0);
        let Some(asked) = named(self.edge(host, begin.0, until, Span::Begins(Stage::Registration), false))
        else {
            return stages;
        };
        add(&mut stages, Stage::Detection, [Some(begin.clone()), Some(asked.clone())]);
        add(&mut stages, Stage::Registration, [Some(asked), back]);
        stages
    }

    /// Adds the rest of the registration, if packets for the mobile node reached the agent of its new place before the agent had
    /// the reply that accepts the visit: until the visit begins. If it does not begin until `to`, and a handoff interrupts the
    /// outage there (`ends` is false), until then.
    pub(super) fn admission(
        &self,
        host: HostId,
        [cut, to]: [Instant; 2],
        ends: bool,
        packets: &Packets,
        stages: &mut Vec<Owner>,
    ) {
        let Some(ready) = latest(stages) else { return };
        let place = self.place(host, cut, to, None).flatten();
        let Some(agent) = place.and_then(|care_of| self.owners.get(&care_of)).copied() else { return };
        let is_refused = |lost: &&PacketEvent| {
            let refused = |r: &Record| {
                let is_one = matches!(&r.what, What::Dropped(_, _, why) if *why == NOT_A_VISITOR.0);
                r.host == agent && is_one
            };
            lost.at > ready.0 && lost.at <= to && self.lost_at(lost).is_some_and(refused)
        };
        let Some(refused) = packets.lost.iter().rfind(is_refused) else { return };
        let arrives = |r: &Record| {
            let is_it = |mark: &Mark| mark.name == "visitor_arrived" && self.is_about(mark, "host", host);
            r.host == agent && matches!(&r.what, What::Marked(mark) if is_it(mark))
        };
        let arrived = named(self.first(refused.at, to, arrives));
        let last = (!ends).then(|| (to, host, "next_handoff".to_owned()));
        add(stages, Stage::Registration, [Some(ready), arrived.or(last)]);
    }

    /// Returns whether the record shows that an agent began to forward packets to a mobile node.
    fn is_bound(&self, record: &Record, host: HostId) -> bool {
        let What::Marked(mark) = &record.what else { return false };
        let is_agents = match mark.role {
            HOME_AGENT => mark.span == Some(Span::Ends(Stage::Registration)),
            FOREIGN_AGENT => mark.name == "visitor_arrived",
            _ => false,
        };
        is_agents && self.is_about(mark, "host", host)
    }

    /// Returns whether a mobile node waited for the answer to a request at this instant.
    pub(super) fn awaits_reply(&self, host: HostId, at: Instant) -> bool {
        let is_signalling =
            |mark: &&Mark| mark.span == Some(Span::Begins(Stage::Registration)) || mark.name == "registered";
        let before = self.between(Instant::ZERO, at).iter().rev().filter(|r| r.host == host && r.at < at);
        let marks = before.filter_map(|r| match &r.what {
            What::Marked(mark) if mark.role == MOBILE_NODE => Some(mark),
            _ => None,
        });
        marks.into_iter().find(is_signalling).is_some_and(|last| last.name != "registered")
    }
}
