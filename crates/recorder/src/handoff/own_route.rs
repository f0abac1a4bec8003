//! The route of a mobile node's own packets. A mobile node of Mobile IP does not wait for the registration with them: it sends
//! them to an agent from its first request to this agent on. Until then it sends them to the agent before, which is out of
//! reach after a move.

use super::analysis::{HandoffAnalysis, is_registered, text};
use super::route::Switched;
use crate::flow::{Flow, Packets};
use mobile_ip::mark::{BINDING_CACHE, FOREIGN_AGENT, MOBILE_NODE};
use node::{Mark, Span, Stage};
use trace::{HostId, Record, What};
use wire::Instant;

impl<'a> HandoffAnalysis<'a> {
    /// Returns whether the records show since when a flow's packets could leave `host` by its new route: the flow comes from a
    /// mobile node that sends by the agent with which it registers. A stream of answers also waits for the questions, a
    /// connection that opens also waits for the other end, and a connection that a router joins also waits for this router.
    /// Datagrams may also come from a mobile node that sends by the router of its network. A stream of this node waits for its
    /// acknowledgements too, which come by the home agent.
    pub(super) fn has_own_route(
        &self,
        host: HostId,
        cut: Instant,
        (flow, packets): (&Flow, &Packets),
    ) -> bool {
        let is_open = packets.opening.is_none_or(|wait| wait.to <= cut);
        let is_simple = is_open && packets.legs.len() <= 1 && self.questions(flow, packets).is_none();
        flow.from.host == host
            && if packets.is_stream {
                is_simple && self.sends_by_agent(host)
            } else {
                self.sends_by_agent(host) || self.sends_by_router(host)
            }
    }

    /// Returns how the packets of a flow from `host` that left it until `until` got their new route. The path was cut at `cut`.
    /// If `open` is true, none of them has ended the outage.
    pub(super) fn own_route(
        &self,
        host: HostId,
        [cut, until]: [Instant; 2],
        open: bool,
        packets: &Packets,
    ) -> Switched<'a> {
        // At home, such a node sends by the router of its home network. While it waits until it may register there, it does not send.
        let waits =
            |r: &Record| r.host == host && request(r).is_some_and(|mark| mark.name == "registration_waits");
        if self.sends_by_router(host) && self.first(cut, until, waits).is_none() {
            return Switched::Earlier;
        }
        let is_up = |r: &&Record| r.host == host && matches!(r.what, What::Up(_, Some(_)));
        let up = self.between(cut, until).iter().rfind(is_up).map_or(cut, |up| up.at);
        let all = |from, to| {
            let of_host = self.between(from, to).iter().filter(move |r| r.host == host);
            of_host.filter_map(|r| Some((r, request(r)?)))
        };
        let is_sent = |(_, mark): &(&Record, &Mark)| mark.name == "request_sent";
        let agent = |(_, mark): (&'a Record, &'a Mark)| text(mark, "agent");
        let before = all(Instant::ZERO, up).rev().filter(|(r, _)| r.at < up).find(is_sent).and_then(agent);
        let after: Vec<_> = all(up, until).collect();
        let last = after.iter().copied().rfind(is_sent);
        let chosen = last.or(after.last().copied()).and_then(agent);
        // The route leads to this agent already, or the packet has used another route than the one that the node waits for.
        if chosen == before || (last.is_none() && !open) {
            return Switched::Earlier;
        }
        let row = after.iter().copied().filter(is_sent).rev().take_while(|one| agent(*one) == chosen);
        let ready = row.last().map(|(request, _)| request);
        let ready = ready.map(|ready| self.accepted(host, [ready.at, until], packets).unwrap_or(ready));
        Switched::Own { ready }
    }

    /// Returns the record since when the packets of a flow from a mobile node were accepted, if some were lost after its request
    /// because the node or an agent forwards only those of a registered node. Returns `None` if none was lost for this reason.
    fn accepted(
        &self,
        host: HostId,
        [request, until]: [Instant; 2],
        packets: &Packets,
    ) -> Option<&'a Record> {
        let is_refused = |lost: &&crate::flow::PacketEvent| {
            lost.at > request && lost.at <= until && self.is_unknown_to_agent(lost)
        };
        let refused = packets.lost.iter().rfind(is_refused)?;
        let by = self.lost_at(refused)?.host;
        self.first(refused.at, until, |r| {
            let What::Marked(mark) = &r.what else { return false };
            let is_its = r.host == by && (by == host || self.is_about(mark, "host", host));
            is_its
                && match mark.role {
                    MOBILE_NODE => mark.name == "registered",
                    FOREIGN_AGENT => mark.name == "visitor_arrived",
                    BINDING_CACHE => false,
                    _ => is_registered(r),
                }
        })
    }
}

/// Returns the mark of a mobile node of Mobile IP that requests a registration, or waits until it may request one.
fn request(record: &Record) -> Option<&Mark> {
    match &record.what {
        What::Marked(mark) if mark.role == MOBILE_NODE => {
            let begins = mark.span == Some(Span::Begins(Stage::Registration));
            (begins && text(mark, "agent").is_some()).then_some(mark)
        }
        _ => None,
    }
}
