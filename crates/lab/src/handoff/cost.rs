//! What a cut cost one flow.

use super::stages::{Next, Story, share_out};
use super::{Experience, FlowCost, Handoff, Outage, Owner};
use crate::flow::{Arrival, Flow, Packets};
use trace::HostId;
use wire::{Duration, Instant};

/// The goodput that a flow must reach again is taken over this time before the cut.
const BEFORE: Duration = Duration::from_secs(1);
/// The least time over which a flow must have half of it again.
const SUSTAINED: Duration = Duration::from_millis(100);

/// Where a host's path was cut.
pub(super) struct Cut<'a> {
    pub(super) host: HostId,
    /// When it was decided.
    pub(super) begun: Instant,
    pub(super) at: Instant,
    /// From when on anything may reach the host again.
    pub(super) back: Instant,
    /// The host's next handoff.
    pub(super) next: Option<&'a Handoff>,
}

impl Story<'_> {
    /// What the handoff cost a flow; `None` if the flow is not the host's, or was not there when the path was cut.
    pub(super) fn cost(&self, cut: &Cut<'_>, index: usize) -> Option<FlowCost> {
        let (flow, packets) = (self.traffic.flows.get(index)?, self.traffic.packets.get(index)?);
        let is_his = flow.from.host == cut.host || flow.to.host == cut.host;
        let is_there = flow.begun <= cut.at && flow.ended.is_none_or(|ended| ended > cut.at);
        if !is_his || !is_there {
            return None;
        }
        let next = self.next(cut, flow, packets);
        let resumed = next.and_then(|next| flow.arrivals.get(next)).map(|arrival| arrival.at);
        let recovered = resumed.and_then(|resumed| self.recovered(cut.at, resumed, flow, packets));
        let until = cut.next.map_or(Instant::NEVER, |next| next.begun);
        let charged = |at: &&Instant| {
            **at >= cut.begun && **at < until && recovered.is_none_or(|recovered| **at <= recovered)
        };
        let lost = packets.lost.iter().map(|(at, _)| at).filter(charged).count() as u64;
        let experience = self.experience(cut, index, (flow, packets), next, lost);
        Some(FlowCost {
            flow: index,
            recovered: recovered.filter(|_| !matches!(experience, Experience::NotMeasured)),
            lost,
            duplicates: packets.doubles.iter().filter(charged).count() as u64,
            experience,
        })
    }

    fn experience(
        &self,
        cut: &Cut<'_>,
        index: usize,
        (flow, packets): (&Flow, &Packets),
        next: Option<usize>,
        lost: u64,
    ) -> Experience {
        let limit = packets.spacing * 2 + packets.spacing / 8;
        let Some(next) = next else {
            let tried = lost > 0 || self.end.since(cut.at) > limit.max(sustained(flow, packets));
            let pending = if packets.is_stream {
                packets.first_sent(flow.bytes).is_some()
            } else {
                packets.sendings.iter().any(|sending| sending.at >= cut.at) || lost > 0
            };
            let never = Experience::Never { from: cut.at };
            return if tried && pending { never } else { Experience::NotMeasured };
        };
        let (Some(arrival), before) = (
            flow.arrivals.get(next).copied(),
            next.checked_sub(1)
                .and_then(|before| flow.arrivals.get(before))
                .map_or(flow.begun, |before| before.at),
        ) else {
            return Experience::NotMeasured;
        };
        let is_lossless = lost == 0;
        let place: u64 = flow.arrivals.iter().take(next).map(|arrival| arrival.bytes).sum();
        let was_pending = packets.first_sent(place).is_some_and(|sent| sent <= cut.at);
        if is_lossless && before + BEFORE < cut.at && !(packets.is_stream && was_pending) {
            return Experience::NotMeasured; // idle
        }
        // Two spacings exactly are no gap, and on a real clock they are never exactly two.
        if is_lossless && arrival.at.since(before) <= limit {
            return Experience::None;
        }
        let ending = Next { flow, packets, arrival, place, is_up: flow.from.host == cut.host };
        Experience::Outage(Outage { from: cut.at, to: arrival.at, owners: self.owners(cut, index, &ending) })
    }

    /// The causes of an outage. What of it lies after the host's next cut has the causes of the next handoff's.
    fn owners(&self, cut: &Cut<'_>, index: usize, ending: &Next<'_>) -> Vec<Owner> {
        let to = ending.arrival.at;
        let later = cut.next.filter(|next| next.cut < to);
        let Some(later) = later else { return self.causes(cut.host, cut.at, to, Some(ending)) };
        let mut owners = self.causes(cut.host, cut.at, later.cut, None);
        let cost = later.flows.iter().find(|cost| cost.flow == index);
        let theirs = cost.and_then(|cost| cost.experience.outage()).map(|outage| outage.owners.clone());
        owners.extend(share_out(later.cut, to, theirs.unwrap_or_default()));
        owners.retain(|owner| owner.to > owner.from || owner.stage.is_some());
        owners
    }

    /// The first arrival by the new path: what reached the host since it is back, or left it since. What its stack had
    /// before, and the application only then, came by the old path.
    fn next(&self, cut: &Cut<'_>, flow: &Flow, packets: &Packets) -> Option<usize> {
        let came = |arrival: &Arrival| {
            if flow.to.host == cut.host {
                let reached = self.traffic.reached(arrival.packet, cut.host, cut.back);
                return reached.is_some_and(|at| at <= arrival.at);
            }
            let mut left = packets.sendings.iter().filter(|sending| sending.packet == arrival.packet);
            let is_known = left.clone().next().is_some();
            !is_known || left.any(|sending| sending.at >= cut.back && sending.at <= arrival.at)
        };
        let after = flow.arrivals.partition_point(|arrival| arrival.at <= cut.back);
        Some(after + flow.arrivals.get(after..)?.iter().position(came)?)
    }

    /// The first instant from `resumed` on by which the flow had half of the goodput before the cut, over that time.
    fn recovered(&self, cut: Instant, resumed: Instant, flow: &Flow, packets: &Packets) -> Option<Instant> {
        let begin = Instant(cut.0.saturating_sub(BEFORE.as_nanos() as u64)).max(flow.begun);
        let index = |at: Instant| flow.arrivals.partition_point(|arrival| arrival.at <= at);
        let bytes = |from: Instant, to: Instant| -> u64 {
            let range = index(from)..index(to).max(index(from));
            flow.arrivals.get(range).unwrap_or_default().iter().map(|arrival| arrival.bytes).sum()
        };
        let before = cut.since(begin).as_secs_f64();
        let window = sustained(flow, packets);
        let rate = if before > 0.0 { bytes(begin, cut) as f64 / before } else { 0.0 };
        let wanted = rate * window.as_secs_f64() / 2.0;
        let later = flow.arrivals.iter().skip(flow.arrivals.partition_point(|arrival| arrival.at < resumed));
        for arrival in later {
            let end = arrival.at + window;
            if flow.ended.is_some_and(|ended| ended <= end) {
                return flow.ended; // all that there was to be given was given
            }
            if end > self.end {
                return None;
            }
            if bytes(arrival.at, end) as f64 >= wanted {
                return Some(end);
            }
        }
        None
    }
}

/// Over which time a flow must have half of its goodput again: a round trip, 100 ms, or two of its own intervals.
pub(super) fn sustained(flow: &Flow, packets: &Packets) -> Duration {
    let round_trip = flow.delay.map_or(Duration::ZERO, |delay| delay.p50 * 2);
    SUSTAINED.max(round_trip).max(packets.spacing * 2)
}
