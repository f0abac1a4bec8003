//! The effect of the events of a scenario, and of links that are down, on the packets of a flow.

use super::analysis::{Boundary, HandoffAnalysis};
use super::hole::limit;
use super::stages::Next;
use trace::{EventKind, Record, What};
use wire::{Instant, PacketId};

impl HandoffAnalysis<'_> {
    /// Returns whether this event caused the loss in a record. A reason that only events cause needs no more than the time of
    /// the event. At an end of a cut wire, ARP finds no neighbor any more, and the packets are lost before the wire.
    pub(super) fn is_lost_by(&self, lost: &Record, [begun, ended]: &[Boundary; 2]) -> bool {
        let (What::Lost(_, _, why) | What::Dropped(_, _, why)) = &lost.what else { return false };
        let is_cut_off = || {
            let target =
                begun.2.strip_prefix(EventKind::Cut.name()).and_then(|text| text.strip_prefix(" of "));
            let ends = target.and_then(|target| self.ends.get(target));
            *why == node::reason::NO_NEIGHBOR.0 && ends.is_some_and(|ends| ends.contains(&lost.host))
        };
        begun.0 <= lost.at && lost.at <= ended.0 && (scenario::is_of_event(why) || is_cut_off())
    }

    /// Returns whether a host on the path of the flow was stopped, or a link on it was down, in a gap between two arrivals
    /// from `last` to `end`, and data of the flow waited for its return.
    pub(super) fn is_delayed(&self, next: &Next<'_>, [last, end]: [Instant; 2]) -> bool {
        // The silence since the fault must be longer than the pace of the flow explains.
        let limit = limit(next.packets, last);
        if end.since(last.min(end)) <= limit {
            return false;
        }
        let is_silent = |[begun, _]: &[Boundary; 2]| end.since(begun.0.max(last).min(end)) > limit;
        let is_late = |id: PacketId, back: Instant| {
            self.traffic.reached(id, next.flow.to.host, last).is_some_and(|at| at >= back)
        };
        // A radio without a link, for example out of reach of its cell.
        let waits = |away: &[Boundary; 2]| {
            let back = away[1].0;
            is_silent(away) && self.due(next, last, back).is_some_and(|id| is_late(id, back))
        };
        self.ordered(last, end).iter().any(|event| is_silent(event) && self.waits_for(next, last, event))
            || [next.flow.from.host, next.flow.to.host]
                .into_iter()
                .any(|host| self.without_link(host, last, end).iter().any(waits))
    }

    /// Returns whether data of the flow were sent before the end of this event, and passed the event's host after it. A source
    /// that is stopped has no data that are due. `last` is the last arrival before the data that end the gap.
    pub(super) fn waits_for(&self, next: &Next<'_>, last: Instant, [begun, ended]: &[Boundary; 2]) -> bool {
        let is_cut = begun.2.starts_with(EventKind::Cut.name());
        if ended.0 >= next.arrival.at || (begun.1 == next.flow.from.host && !is_cut) {
            return false;
        }
        self.due(next, last, ended.0).is_some_and(|id| {
            let is_it = |r: &Record| {
                r.host == begun.1
                    && matches!(&r.what, What::Received(_, one) | What::Sent(_, one) if one.id == id)
            };
            self.first(ended.0, Instant::NEVER, is_it).is_some()
        })
    }

    /// Returns the first packet with data that were sent before `until`, and that the receiver did not have at `last`: for a
    /// stream the packet that ends the gap. Data that a link or an agent kept can arrive after later data.
    fn due(&self, next: &Next<'_>, last: Instant, until: Instant) -> Option<PacketId> {
        let (packets, ending) = (next.packets, next.arrival.packet);
        if packets.is_stream {
            return packets.first_sent(next.place).filter(|sent| *sent < until).map(|_| ending);
        }
        let ends = self.traffic.origin(ending, next.arrival.at).filter(|(sent, _)| *sent < until);
        ends.map(|_| ending).or_else(|| {
            let [from, to] =
                [last, until].map(|at| packets.sendings.partition_point(|sending| sending.at < at));
            let mut within = packets.sendings.get(from..to)?.iter();
            let arrives = |id| self.traffic.reached(id, next.flow.to.host, next.arrival.at).is_some();
            within.find(|sending| arrives(sending.packet)).map(|sending| sending.packet)
        })
    }
}
