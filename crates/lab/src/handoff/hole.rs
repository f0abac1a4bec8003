//! Outages without a handoff: a link that goes and comes back in the same cell, or loses packets in a row.

use super::cost::sustained;
use super::stages::{Next, Story, add, share_out};
use super::{Experience, Handoff, Outage};
use crate::flow::{Flow, Packets};
use node::Stage;
use trace::{HostId, What};
use wire::Instant;

/// A time in which a flow was given nothing new because packets were lost, and no handoff was the reason.
#[derive(Clone, PartialEq, Debug)]
pub struct Hole {
    /// The host whose link was down; else the receiver.
    pub host: HostId,
    /// The flow's place in [`crate::run::Outcome::flows`].
    pub flow: usize,
    /// When it began: the link went down, or the last new data before it arrived.
    pub from: Instant,
    /// An outage, or never.
    pub experience: Experience,
    /// Packets with data that were lost in it.
    pub lost: u64,
}

impl Story<'_> {
    /// All holes of all flows, in the order of time.
    pub(super) fn holes(&self, handoffs: &[Handoff]) -> Vec<Hole> {
        let flows = self.traffic.flows.iter().zip(&self.traffic.packets).enumerate();
        let mut holes: Vec<Hole> = flows
            .flat_map(|(index, (flow, packets))| self.holes_of(handoffs, index, flow, packets))
            .collect();
        holes.sort_by_key(|hole| (hole.from, hole.flow));
        holes
    }

    fn holes_of(&self, handoffs: &[Handoff], index: usize, flow: &Flow, packets: &Packets) -> Vec<Hole> {
        // A transport that repeats at once what was lost needs a round trip for it: that alone is no hole.
        let sustained = sustained(flow, packets);
        let limit = if packets.is_stream { sustained * 2 } else { sustained };
        let mut holes = Vec::new();
        let mut place = 0;
        let arrivals = flow.arrivals.iter().copied().map(Some).chain([None]);
        let mut before: Option<Instant> = None;
        for arrival in arrivals {
            let last = before.unwrap_or(flow.begun);
            let end = arrival.map_or(flow.until, |arrival| arrival.at);
            let is_over = arrival.is_none() && (flow.ended.is_some() || !is_pending(flow, packets, last));
            let margin = Instant(last.0.saturating_sub(sustained.as_nanos() as u64));
            let lost = packets.lost.iter().filter(|(at, _)| *at >= margin && *at <= end).count() as u64;
            let ours = !handoffs.iter().any(|handoff| is_of(handoff, index, flow, last, end));
            if end.since(last.min(end)) > limit && lost > 0 && ours && !is_over {
                let next = arrival.map(|arrival| Next { flow, packets, arrival, place, is_up: false });
                holes.push(self.hole(index, flow, packets, [last, end], lost, next.as_ref()));
            }
            place += arrival.map_or(0, |arrival| arrival.bytes);
            before = Some(end);
        }
        holes
    }

    fn hole(
        &self,
        index: usize,
        flow: &Flow,
        packets: &Packets,
        [last, end]: [Instant; 2],
        lost: u64,
        next: Option<&Next<'_>>,
    ) -> Hole {
        let is_end = |host: HostId| host == flow.from.host || host == flow.to.host;
        let down = self.first(last, end, |r| is_end(r.host) && matches!(r.what, What::Down(..)));
        let from = down.map_or(last, |down| down.at);
        let host = down.map_or(flow.to.host, |down| down.host);
        let Some(next) = next else {
            return Hole { host, flow: index, from, experience: Experience::Never { from }, lost };
        };
        let mut stages = Vec::new();
        let up = down.and_then(|down| {
            self.first(from, end, |r| r.host == down.host && matches!(r.what, What::Up(..)))
        });
        if let (Some(down), Some(up)) = (down, up) {
            let edges = [(down.at, down.host, "down".to_owned()), (up.at, up.host, "up".to_owned())];
            add(&mut stages, Stage::Link, edges.map(Some));
        } else if !packets.is_stream {
            // The link was there, and lost one after the other.
            let last_lost =
                packets.lost.iter().rfind(|(at, _)| *at <= end).map_or(from, |(at, _)| *at).max(from);
            let edges = [(from, host, "last_arrival".to_owned()), (last_lost, host, "last_loss".to_owned())];
            add(&mut stages, Stage::Link, edges.map(Some));
        } else {
            let begin = (from, flow.to.host, "last_arrival".to_owned());
            add(&mut stages, Stage::Recovery, [Some(begin.clone()), Some(begin)]);
        }
        let owners = share_out(from, end, self.resumed(next, stages));
        let experience = Experience::Outage(Outage { from, to: end, owners });
        Hole { host, flow: index, from, experience, lost }
    }
}

/// Whether a handoff is the reason for what a flow missed in this time.
fn is_of(handoff: &Handoff, index: usize, flow: &Flow, from: Instant, to: Instant) -> bool {
    let is_his = flow.from.host == handoff.host || flow.to.host == handoff.host;
    let cost = handoff.flows.iter().find(|cost| cost.flow == index);
    let until = match cost.map(|cost| (&cost.experience, cost.recovered)) {
        Some((Experience::NotMeasured, _)) | None => handoff.cut,
        Some((_, Some(recovered))) => recovered,
        Some((_, None)) => Instant::NEVER,
    };
    is_his && from <= until && to >= handoff.begun
}

/// Whether something that was sent has not arrived at the end.
fn is_pending(flow: &Flow, packets: &Packets, last: Instant) -> bool {
    if packets.is_stream {
        return packets.first_sent(flow.bytes).is_some();
    }
    packets.lost.iter().any(|(at, _)| *at > last)
}
