//! Computes when a flow has recovered its goodput after a cut.

use super::experience::Recovery;
use crate::flow::{Flow, FlowEnd, Packets};
use wire::{Duration, Instant};

/// The time before the cut over which the reference goodput is measured.
pub(super) const BEFORE: Duration = Duration::from_secs(1);
/// The shortest window over which a flow must have half of the reference goodput again.
pub(super) const LEAST: Duration = Duration::from_millis(100);

/// Returns the window over which a flow must have half of its goodput: one round trip as measured before this instant,
/// but at least 100 ms and at least two intervals of the flow. In a shorter time, a flow without loss may receive
/// nothing.
pub(super) fn window(packets: &Packets, before: Instant) -> Duration {
    LEAST.max(packets.round_trip(before).unwrap_or_default()).max(packets.spacing * 2)
}

/// The minimum retransmission time-out (RFC 6298, section 2, rule 2.4; RFC 9260, section 16: RTO.Min). The minimum of
/// Linux's TCP is only 200 ms.
const RTO_MIN: Duration = Duration::from_secs(1);

/// Returns whether the flow or the run ended (`end`) before the sender of a stream had to retransmit the data that
/// are due since `due`. The first time-out is three round trips (RFC 6298, section 2, rule 2.2), and at least 1 s.
/// Whether new data would have come is then unknown.
pub(super) fn ends_too_early(packets: &Packets, due: Instant, end: Instant) -> bool {
    let timeout = packets.round_trip(due).unwrap_or_default() * 3;
    packets.is_stream && end.since(due.min(end)) <= timeout.max(RTO_MIN)
}

/// The goodput of a flow, compared with the goodput before a cut.
pub(super) struct Goodput<'a> {
    flow: &'a Flow,
    cut: Instant,
    window: Duration,
    /// The bytes that arrived in the reference time before the cut. The length of this time, `before`, is 1 s, or less
    /// if the flow is younger.
    bytes_before: u64,
    before: Duration,
}

impl<'a> Goodput<'a> {
    pub(super) fn new(flow: &'a Flow, packets: &Packets, cut: Instant) -> Self {
        let begin = Instant(cut.0.saturating_sub(BEFORE.as_nanos() as u64)).max(flow.begun);
        let window = window(packets, cut);
        let bytes_before = bytes(flow, begin, cut);
        Self { flow, cut, window, bytes_before, before: cut.since(begin.min(cut)) }
    }

    /// Returns the first arrival from `resumed` on after which the flow has half of its goodput over the window. The
    /// arrival itself is not counted, because it may release much data that the receiver held already. If less than one
    /// window is left after `resumed`, a flow that completed has recovered at its end; if the run ended before the
    /// flow, the recovery is not measured.
    pub(super) fn recovery(&self, resumed: Instant) -> Recovery {
        let first = self.flow.arrivals.partition_point(|arrival| arrival.at < resumed);
        let later = self.flow.arrivals.iter().skip(first).map(|arrival| arrival.at);
        if let Some(at) = later.filter(|at| self.fits(*at)).find(|at| self.is_half(*at)) {
            return Recovery::At(at);
        }
        match (self.fits(resumed), self.flow.ended, self.flow.end) {
            // All remaining data arrived within one window.
            (false, Some(ended), FlowEnd::Completed) => Recovery::At(ended.max(resumed)),
            (false, None, _) => Recovery::NotMeasured,
            _ => Recovery::Never,
        }
    }

    /// Returns whether the flow had less than half of its goodput after the cut, or after an arrival between the cut
    /// and `resumed`.
    pub(super) fn fell(&self, resumed: Instant) -> bool {
        let times = self.flow.arrivals.iter().map(|arrival| arrival.at);
        let within = times.filter(|at| *at > self.cut && *at <= resumed);
        [self.cut].into_iter().chain(within).filter(|at| self.fits(*at)).any(|at| !self.is_half(at))
    }

    /// Returns whether the window that begins at `from` ends by the end of the flow and of the run.
    fn fits(&self, from: Instant) -> bool {
        from + self.window <= self.flow.until
    }

    /// Returns whether the rate in the window is at least half of the reference rate.
    fn is_half(&self, from: Instant) -> bool {
        let now = u128::from(bytes(self.flow, from, from + self.window)) * self.before.as_nanos();
        now * 2 >= u128::from(self.bytes_before) * self.window.as_nanos()
    }
}

/// Returns the bytes that the application received after `from`, up to and including `to`.
fn bytes(flow: &Flow, from: Instant, to: Instant) -> u64 {
    let index = |at: Instant| flow.arrivals.partition_point(|arrival| arrival.at <= at);
    let range = index(from)..index(to).max(index(from));
    flow.arrivals.get(range).unwrap_or_default().iter().map(|arrival| arrival.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Arrival, End, Transport};
    use trace::HostId;
    use wire::{Ipv4Addr, PacketId, SocketAddrV4};

    const CUT: Instant = Instant::from_millis(1_000);

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Returns a flow that begins with the run and has these arrivals (milliseconds, bytes).
    fn flow(arrivals: &[(u64, u64)], ended: Option<u64>, until: u64) -> Flow {
        let end = End { host: HostId(0), at: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1) };
        let arrival =
            |(at, bytes): &(u64, u64)| Arrival { at: ms(*at), bytes: *bytes, packet: PacketId::NEW };
        Flow {
            from: end,
            to: end,
            transport: Transport::Udp,
            begun: Instant::ZERO,
            ended: ended.map(ms),
            until: ms(until),
            bytes: 0,
            end: FlowEnd::Completed,
            delay: None,
            longest_stall: Duration::ZERO,
            lost: 0,
            retransmissions: 0,
            arrivals: arrivals.iter().map(arrival).collect(),
        }
    }

    fn every(step: usize, from: u64, to: u64, bytes: u64) -> Vec<(u64, u64)> {
        (from..=to).step_by(step).map(|at| (at, bytes)).collect()
    }

    fn packets(spacing: u64, round_trip: Option<u64>) -> Packets {
        let round_trips = round_trip.map(|span| vec![(ms(990), Duration::from_millis(span))]);
        Packets {
            spacing: Duration::from_millis(spacing),
            round_trips: round_trips.into_iter().collect(),
            ..Packets::default()
        }
    }

    #[test]
    fn the_window_is_a_round_trip_from_before_the_cut() {
        let window = |packets: &Packets| window(packets, CUT).as_millis();
        assert_eq!(window(&packets(20, None)), 100);
        assert_eq!(window(&packets(20, Some(40))), 100);
        assert_eq!(window(&packets(20, Some(250))), 250);
        assert_eq!(window(&packets(80, None)), 160);
        let sample = |at: u64, span: u64| (ms(at), Duration::from_millis(span));
        let of = |round_trips: Vec<Vec<(Instant, Duration)>>| Packets { round_trips, ..packets(20, None) };
        assert_eq!(window(&of(vec![vec![sample(500, 300), sample(999, 200), sample(1_001, 900)]])), 200);
        assert_eq!(
            window(&of(vec![vec![sample(900, 150)], vec![sample(950, 60)]])),
            210,
            "one behind the other"
        );
        let late = window_at(&of(vec![vec![sample(900, 150)]]), 2_000);
        assert_eq!(late, 100, "what was measured more than a second before says nothing");
    }

    fn window_at(packets: &Packets, at: u64) -> u64 {
        window(packets, ms(at)).as_millis() as u64
    }

    /// 100 bytes arrive every 20 ms, so 4 900 bytes in the second before the cut. Half of this rate is 245 bytes in 100
    /// ms. The five arrivals after the first new one have 500 bytes.
    #[test]
    fn a_constant_rate_recovers_where_its_outage_ends() {
        let arrivals = [every(20, 20, 980, 100), every(20, 1_062, 3_000, 100)].concat();
        let (flow, packets) = (flow(&arrivals, None, 3_000), packets(20, None));
        assert_eq!(Goodput::new(&flow, &packets, CUT).recovery(ms(1_062)), Recovery::At(ms(1_062)));
    }

    /// 10 kB arrive every 10 ms before the cut, and the round trip is 200 ms. Half of this rate is 100 kB in 200 ms.
    /// 150 kB that the receiver held end the outage. Then windows of 10, 20, 40, 80 and 160 kB come each 200 ms. The
    /// window after 2 300 ms is the first one with at least 100 kB.
    #[test]
    fn a_slow_restart_recovers_when_its_window_is_large_enough() {
        let slow =
            [(1_500, 150), (1_700, 10), (1_900, 20), (2_100, 40), (2_300, 80), (2_500, 160), (2_700, 200)];
        let slow = slow.map(|(at, kilobytes)| (at, kilobytes * 1_000));
        let arrivals = [every(10, 10, 1_000, 10_000), slow.to_vec()].concat();
        let (flow, packets) = (flow(&arrivals, None, 4_000), packets(10, Some(200)));
        assert_eq!(Goodput::new(&flow, &packets, CUT).recovery(ms(1_500)), Recovery::At(ms(2_300)));
    }

    /// 100 bytes arrive every 10 ms, every 22 ms after the cut, and every 10 ms again from 1 406 ms on. Half of the
    /// rate is 500 bytes in 100 ms, so four arrivals are too few. The window after 1 308 ms has five: at 1 330, 1 352,
    /// 1 374, 1 396 and 1 406 ms.
    #[test]
    fn a_dip_without_an_outage_recovers_too() {
        let arrivals =
            [every(10, 10, 1_000, 100), every(22, 1_022, 1_396, 100), every(10, 1_406, 3_000, 100)].concat();
        let (flow, packets) = (flow(&arrivals, None, 3_000), packets(10, None));
        let goodput = Goodput::new(&flow, &packets, CUT);
        assert!(goodput.fell(ms(1_022)));
        assert_eq!(goodput.recovery(ms(1_022)), Recovery::At(ms(1_308)));
    }

    #[test]
    fn a_flow_that_continues_needs_no_recovery() {
        let (flow, packets) = (flow(&every(10, 10, 3_000, 100), None, 3_000), packets(10, None));
        assert!(!Goodput::new(&flow, &packets, CUT).fell(ms(1_040)));
    }

    /// A flow with a tenth of its goodput until the run ends has not recovered. If the run ends within the window, the
    /// recovery is not measured.
    #[test]
    fn what_stays_slow_never_recovers() {
        let arrivals = [every(10, 10, 1_000, 100), every(100, 1_500, 5_000, 100)].concat();
        let slow = flow(&arrivals, None, 5_000);
        assert_eq!(Goodput::new(&slow, &packets(10, None), CUT).recovery(ms(1_500)), Recovery::Never);
        let short = flow(&arrivals[..101], None, 1_590);
        assert_eq!(Goodput::new(&short, &packets(10, None), CUT).recovery(ms(1_500)), Recovery::NotMeasured);
    }

    /// If all remaining data arrives within one window, the flow has recovered at its end. A flow with a tenth of its
    /// goodput has not recovered, although its last bytes are close together.
    #[test]
    fn a_flow_that_completes_at_once_has_recovered() {
        let arrivals = [every(10, 10, 1_000, 100), vec![(1_500, 100), (1_540, 100)]].concat();
        let at_once = flow(&arrivals, Some(1_540), 1_540);
        assert_eq!(
            Goodput::new(&at_once, &packets(10, None), CUT).recovery(ms(1_500)),
            Recovery::At(ms(1_540))
        );
        let arrivals =
            [every(10, 10, 1_000, 100), every(100, 1_500, 5_000, 100), vec![(5_001, 100)]].concat();
        let slow = flow(&arrivals, Some(5_001), 5_001);
        assert_eq!(Goodput::new(&slow, &packets(10, None), CUT).recovery(ms(1_500)), Recovery::Never);
    }
}
