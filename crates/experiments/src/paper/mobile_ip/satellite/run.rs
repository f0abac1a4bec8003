//! What one run shows about a move: the steps of the registration, and the packets of the download.

use super::SatelliteWay;
use crate::paper::records::{CORRESPONDENT, MOBILE, arrivals, asked, departures, is, marks, millis, number};
use recorder::run::Outcome;
use recorder::segment::{self, Seen};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use trace::What;
use wire::{Instant, Packet, PacketId, tunnel};

/// The routers at both ends of the satellite link.
const ROUTERS: [&str; 2] = ["west", "east"];

/// The port of the server of the download.
const PORT: u16 = 9000;

/// A data segment that the correspondent sent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sent {
    pub(in super::super) at: Instant,
    pub(in super::super) packet: PacketId,
    /// The number of the first byte, counted from the first byte of the download.
    pub(in super::super) first: u64,
    /// Whether the segment begins below the largest byte that was sent before.
    pub(in super::super) is_resent: bool,
}

/// One move of a run.
#[derive(Debug)]
pub(in super::super) struct Run<'a> {
    outcome: &'a Outcome,
    way: SatelliteWay,
    /// When the mobile node left its network.
    pub(in super::super) moved: Instant,
    /// Dump Reg: when the mobile node discarded its agent; `None` if it did not, because it heard its home agent.
    pub(in super::super) dumped: Option<Instant>,
    /// Start Reg: when the mobile node sent its first request by the new agent.
    pub(in super::super) started: Instant,
    /// Finish Reg: when the mobile node had the home agent's reply.
    pub(in super::super) finished: Instant,
    /// When the previous agent accepted the Binding Update; `None` if it did not.
    pub(in super::super) departed: Option<Instant>,
    /// When the correspondent first learnt a binding or forgot it after the request; `None` if it did not.
    pub(in super::super) learnt: Option<Instant>,
    /// How often the correspondent learnt a binding or forgot it after the request.
    pub(in super::super) learnings: usize,
    /// When the previous agent sent the packets that it had kept, and the number of the packets; `None` if it kept none.
    pub(in super::super) kept: Option<(Instant, i64)>,
    /// The data segments of the correspondent, in the order of time.
    pub(in super::super) sent: Vec<Sent>,
    /// The first arrival of each packet with data at the mobile node, in the order of time.
    pub(in super::super) arrived: Vec<(Instant, PacketId)>,
    /// The acknowledgments that the mobile node sent, each with the number of the next byte.
    pub(in super::super) acknowledged: Vec<(Instant, PacketId, u64)>,
}

impl<'a> Run<'a> {
    /// Evaluates a run. Fails if a step of the registration is missing.
    pub(in super::super) fn of(outcome: &'a Outcome) -> Result<Self, String> {
        let moved = outcome.handoffs.first().ok_or("the run has no handoff, so nothing was measured")?.begun;
        let way = way(outcome).ok_or("the scenario has no known move")?;
        let started = asked(outcome, way.agent, moved).ok_or("no request was sent by the new agent")?;
        let mobile = |name: &'static str, from: Instant| {
            marks(outcome, MOBILE).find(move |(at, mark)| *at >= from && mark.name == name).map(|(at, _)| at)
        };
        let finished = mobile("registered", started).ok_or("no request by the new agent was accepted")?;
        let dumped = mobile("agent_lost", moved).filter(|at| *at <= started);
        let departed = marks(outcome, way.from)
            .find(|(at, mark)| *at >= moved && ["forwarding_begun", "visitor_departed"].contains(&mark.name));
        let kept = marks(outcome, way.from).find(|(at, mark)| *at >= moved && mark.name == "kept_sent");
        let kept = kept.map(|(at, mark)| (at, number(mark, "packets").unwrap_or_default()));
        let learnings = marks(outcome, CORRESPONDENT).filter(|(at, mark)| {
            *at >= started && ["binding_learnt", "binding_forgotten"].contains(&mark.name)
        });
        let learnings: Vec<Instant> = learnings.map(|(at, _)| at).collect();
        let (base, sent) = sent(outcome)?;
        let mut seen = BTreeSet::new();
        let data = arrivals(outcome, MOBILE).filter(|(_, packet)| segment::carries_data(packet));
        let arrived =
            data.filter(|(_, packet)| seen.insert(packet.id)).map(|(at, packet)| (at, packet.id)).collect();
        let acknowledged = departures(outcome, MOBILE).filter_map(|(at, packet)| {
            let seen = segment::of(packet).filter(|seen| seen.to.port() == PORT && seen.acknowledges())?;
            let next = u64::from(seen.segment.ack.0.wrapping_sub(base));
            // An acknowledgment of the handshake is of no data.
            (next < 1 << 31).then_some((at, packet.id, next))
        });
        Ok(Self {
            outcome,
            way,
            moved,
            dumped,
            started,
            finished,
            departed: departed.map(|(at, _)| at),
            learnt: learnings.first().copied(),
            learnings: learnings.len(),
            kept,
            sent,
            arrived,
            acknowledged: acknowledged.collect(),
        })
    }

    /// Returns the time from Start Reg to Finish Reg, in milliseconds.
    pub(in super::super) fn registration_ms(&self) -> f64 {
        millis(self.finished.since(self.started))
    }

    /// Returns, for each packet, how often it crossed the satellite link: a router at one end sent it, and the router at the
    /// other end received it next.
    pub(in super::super) fn crossings(&self) -> BTreeMap<PacketId, u32> {
        let mut last: BTreeMap<PacketId, (bool, bool)> = BTreeMap::new();
        let mut all: BTreeMap<PacketId, u32> = BTreeMap::new();
        for record in &self.outcome.records {
            let host = self.outcome.host(record.host);
            let Some(router) = ROUTERS.iter().position(|name| *name == host) else { continue };
            let is_east = router == 1;
            match &record.what {
                What::Sent(_, packet) => _ = last.insert(packet.id, (is_east, true)),
                What::Received(_, packet)
                    if last.insert(packet.id, (is_east, false)) == Some((!is_east, true)) =>
                {
                    *all.entry(packet.id).or_default() += 1;
                }
                _ => {}
            }
        }
        all
    }

    /// Returns when a packet first arrived at the mobile node.
    pub(in super::super) fn arrival(&self, packet: PacketId) -> Option<Instant> {
        self.arrived.iter().find(|(_, arrived)| *arrived == packet).map(|(at, _)| *at)
    }

    /// Returns the first acknowledgment that the mobile node sent at `from` or later.
    pub(in super::super) fn next_acknowledgment(&self, from: Instant) -> Option<(Instant, PacketId)> {
        self.acknowledged.iter().find(|(at, ..)| *at >= from).map(|(at, packet, _)| (*at, *packet))
    }

    /// Returns when the correspondent received a packet.
    pub(in super::super) fn received(&self, packet: PacketId) -> Option<Instant> {
        arrivals(self.outcome, CORRESPONDENT).find(|(_, arrived)| arrived.id == packet).map(|(at, _)| at)
    }

    /// Returns the data segments that the correspondent sent after the move, with their arrivals.
    pub(in super::super) fn after_move(&self) -> impl Iterator<Item = (&Sent, Option<Instant>)> {
        let sent = self.sent.iter().filter(|sent| sent.at >= self.moved);
        sent.map(|sent| (sent, self.arrival(sent.packet)))
    }

    /// Returns the last arrival of data by the old network, and the first one by the new network with its packet: the halt
    /// of the download.
    pub(in super::super) fn halt(&self) -> Option<(Instant, Instant, PacketId)> {
        let (before, after): (Vec<_>, Vec<_>) =
            self.arrived.iter().copied().partition(|(at, _)| *at < self.started);
        let ((last, _), (first, packet)) = before.last().copied().zip(after.first().copied())?;
        Some((last, first, packet))
    }

    /// Returns the length of the halt in seconds; infinite if it does not end.
    pub(in super::super) fn halt_s(&self) -> f64 {
        self.halt().map_or(f64::INFINITY, |(last, first, _)| between_ms(last, first) / 1e3)
    }

    /// Returns the time from Finish Reg to the end of the halt in seconds; 0 if the halt has ended before, infinite if it does
    /// not end.
    pub(in super::super) fn stall_s(&self) -> f64 {
        self.halt().map_or(f64::INFINITY, |(_, first, _)| between_ms(self.finished, first).max(0.0) / 1e3)
    }

    /// Returns when the kept packet arrived at the mobile node, and when other data arrived first after the request.
    pub(in super::super) fn resumed(&self) -> [Option<Instant>; 2] {
        let kept = self.kept_packet();
        let data = arrivals(self.outcome, MOBILE)
            .filter(|(at, packet)| *at >= self.started && segment::carries_data(packet));
        let (mut first, mut other) = (None, None);
        for (at, packet) in data {
            let place = if Some(packet.id) == kept { &mut first } else { &mut other };
            place.get_or_insert(at);
        }
        [first, other]
    }

    /// Returns the first packet with data that the previous agent sent when it sent what it had kept.
    fn kept_packet(&self) -> Option<PacketId> {
        let (from, _) = self.kept?;
        let mut data =
            departures(self.outcome, self.way.from).filter(|(at, packet)| *at >= from && is_data(packet));
        data.next().map(|(_, packet)| packet.id)
    }

    /// Returns the segment of a packet that the correspondent sent.
    pub(in super::super) fn segment(&self, packet: PacketId) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.packet == packet)
    }

    /// Returns when the correspondent sent each of the packets that never arrived, of those that it sent before the halt ended.
    pub(in super::super) fn lost(&self) -> Vec<Instant> {
        let until = self.halt().map_or(self.finished, |(_, first, _)| first);
        let lost = self.sent.iter().filter(|sent| sent.at <= until && self.arrival(sent.packet).is_none());
        lost.map(|sent| sent.at).collect()
    }
}

/// Returns the time between two instants in milliseconds; negative if the second is earlier.
pub(in super::super) fn between_ms(from: Instant, to: Instant) -> f64 {
    (to.as_secs_f64() - from.as_secs_f64()) * 1e3
}

/// Returns the move of a run, by the hosts of its timetable.
fn way(outcome: &Outcome) -> Option<SatelliteWay> {
    let first = marks(outcome, MOBILE).find(|(_, mark)| mark.name == node::HANDOFF)?.1;
    let to = |way: &SatelliteWay| is(first, "to", way.to) && is(first, "from", way.from);
    [super::ACROSS, super::SAME_SIDE, super::LEAVES_HOME, super::COMES_HOME].into_iter().find(to)
}

/// Returns the sequence number of the first byte of data, and the data segments that the correspondent sent, in the order
/// of time.
fn sent(outcome: &Outcome) -> Result<(u32, Vec<Sent>), String> {
    let mut all: Vec<Sent> = Vec::new();
    let (mut base, mut top) = (None, 0);
    for (at, packet) in departures(outcome, CORRESPONDENT) {
        // A correspondent that knows the care-of address sends its segments in a tunnel.
        let packet = opened(packet);
        // The request before the download has another connection, with other sequence numbers.
        let is_of_download = |seen: &Seen<'_>| seen.from.port() == PORT && !seen.segment.payload.is_empty();
        let Some(seen) = segment::of(&packet).filter(is_of_download) else { continue };
        let base = *base.get_or_insert(seen.segment.seq.0);
        let first = u64::from(seen.segment.seq.0.wrapping_sub(base));
        let end = first + seen.segment.payload.len() as u64;
        all.push(Sent { at, packet: packet.id, first, is_resent: first < top });
        top = top.max(end);
    }
    let base = base.ok_or("the correspondent sent no data, so nothing was measured")?;
    Ok((base, all))
}

/// Returns a packet without the outer header of its tunnel.
fn opened(packet: &Packet) -> Cow<'_, Packet> {
    match tunnel::decapsulate(&packet.bytes) {
        Ok((_, inner)) => Cow::Owned(Packet { bytes: inner.into_owned(), ..packet.clone() }),
        Err(_) => Cow::Borrowed(packet),
    }
}

fn is_data(packet: &Packet) -> bool {
    segment::carries_data(&opened(packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use recorder::run::simulate;
    use scenario::Scenario;

    /// Figures 3 to 5 have the events of a registration, and segments of both paths.
    #[test]
    fn a_figure_has_the_events_of_the_registration_and_both_paths() {
        let (_, text) = Scenario::find("mobile-ip/satellite").unwrap();
        let outcome = simulate(Scenario::plan("satellite.toml", &text, &[], 1).unwrap()).unwrap();
        let run = Run::of(&outcome).unwrap();
        let series = super::super::drawing::trace(&outcome);
        let names: Vec<&str> = series.events.iter().map(|(_, name)| *name).collect();
        let at = |name: &str| names.iter().position(|other| *other == name);
        let places = ["Dump Reg", "Start Reg", "Finish Reg"].map(at);
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{names:?}");
        let lines: Vec<(&str, usize)> =
            series.lines.iter().map(|(name, points)| (*name, points.len())).collect();
        assert!(lines.len() >= 3 && lines.iter().all(|(_, points)| *points > 2), "{lines:?}");
        let segments =
            |name: &str| lines.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
        let all: usize =
            lines.iter().filter(|(name, _)| *name != "acknowledgment").map(|(_, count)| count).sum();
        assert_eq!(all, run.sent.len(), "each segment has one mark: {lines:?}");
        assert_eq!(segments("acknowledgment"), run.acknowledged.len());
    }

    /// Initial sequence numbers differ from run to run, and the request before the download has other ones.
    #[test]
    fn the_bytes_of_the_download_are_counted_from_its_first_one() {
        let (_, text) = Scenario::find("mobile-ip/satellite").unwrap();
        for seed in 1..=6 {
            let outcome = simulate(Scenario::plan("satellite.toml", &text, &[], seed).unwrap()).unwrap();
            let run = Run::of(&outcome).unwrap();
            let last = run.sent.iter().map(|sent| sent.first).max();
            assert_eq!(run.sent.first().map(|sent| sent.first), Some(0), "seed {seed}");
            assert!(last.is_some_and(|last| last < 1_000_000), "seed {seed}: {last:?}");
            let acknowledged: Vec<u64> = run.acknowledged.iter().map(|(_, _, next)| *next).collect();
            assert!(acknowledged.len() > 20 && acknowledged.is_sorted(), "seed {seed}: {acknowledged:?}");
            // The end of the stream has a number too.
            assert!(acknowledged.iter().all(|next| *next <= 1_000_001), "seed {seed}");
        }
    }
}
