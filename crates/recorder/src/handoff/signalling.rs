//! The signalling of Mobile IP in an outage without a handoff: an agent lost its state of the mobile node, or the lifetime
//! of a registration ended, and the mobile node registers again.

use super::analysis::{Boundary, HandoffAnalysis, named};
use super::experience::Owner;
use super::stages::add;
use crate::flow::Flow;
use mobile_ip::mark::{FOREIGN_AGENT, HOME_AGENT, MOBILE_NODE};
use node::{Mark, Span, Stage};
use trace::{HostId, Record, What};
use wire::Instant;

impl HandoffAnalysis<'_> {
    /// Returns the stages in which an end of the flow had no path, because an agent had no state of it, until the agent
    /// had this state again: detection until the mobile node signals, then registration. `begin` is the begin of the
    /// outage, or the end of an earlier stage. The flow first lost a packet at `lost`. Returns no stage if no agent got
    /// its state back between `lost` and `end`.
    pub(super) fn signalled(&self, flow: &Flow, begin: &Boundary, lost: Instant, end: Instant) -> Vec<Owner> {
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
