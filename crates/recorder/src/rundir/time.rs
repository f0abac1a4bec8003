//! `figures/flows`: goodput, one-way delay, congestion window and round-trip time of each flow over the time of the run.

use super::figure::title;
use super::flows::{Places, name};
use super::steps::EVENTS;
use crate::flow::{Flow, Transport};
use crate::handoff::Handoff;
use crate::journey::{Fate, Journeys};
use crate::run::{Backend, Outcome};
use draw::{Axis, Joined, TimeFigure, TimeLine, TimePanel, TimeWindow};
use node::{Mark, Value};
use std::collections::BTreeMap;
use trace::{HostId, Record, What};
use wire::{Duration, Instant, SocketAddrV4};

/// Widths of goodput bins, in milliseconds. The first width that divides the run into at most [`BINS`] bins is used.
/// Shorter bins would show only the interference of packet intervals and bins.
const WIDTHS: [u64; 6] = [100, 200, 500, 1_000, 5_000, 10_000];
const BINS: u64 = 250;
/// A window of the figure begins this time before the decision for its handoff. It ends this time after the last outage
/// and recovery, if [`FURTHER`] does not shorten it.
const MARGIN: Duration = Duration::from_millis(500);
/// The longest time, without [`MARGIN`], for which a window shows the recovery after the end of the last outage.
const FURTHER: Duration = Duration::from_secs(3);

/// Returns the figure of a run's flows.
pub(super) fn flows(outcome: &Outcome, journeys: &Journeys<'_>, places: &Places) -> TimeFigure {
    let end = outcome.plan.end();
    let width = bin(end.since(Instant::ZERO));
    let goodput = goodputs(outcome, [Instant::ZERO, end], width);
    let mut panels = vec![
        TimePanel { cuts_peaks: true, ..panel("goodput", "kb/s", goodput, "no flow") },
        panel(
            "one-way delay of packets",
            "ms",
            delays(outcome, journeys, places),
            "no packet with data arrived",
        ),
    ];
    let have_windows = outcome.flows.iter().any(|flow| flow.transport != Transport::Udp);
    if have_windows {
        let why_not = match outcome.backend {
            Backend::Sim => "no value: only TCP reports this value",
            Backend::Linux => "no sample: only TCP sockets of roles are sampled, not SCTP and not programs",
        };
        panels.push(panel("congestion window", "kB", marked(outcome, "cwnd", "bytes", 1e3), why_not));
        panels.push(panel("smoothed round-trip time", "ms", marked(outcome, "srtt", "ns", 1e6), why_not));
    }
    let about_windows = if have_windows { source(outcome.backend) } else { "" };
    let several =
        outcome.handoffs.iter().any(|one| Some(one.host) != outcome.handoffs.first().map(|one| one.host));
    let label = |(number, one): (usize, &Handoff)| {
        let host = if several { format!(" {}", outcome.plan.host_name(one.host)) } else { String::new() };
        (one.begun, format!("{number}{host}"))
    };
    let (windows, shorter) = enlarged(outcome, width);
    let (events, about_events) = events(outcome);
    TimeFigure {
        title: format!("{}: flows over time", title(outcome)),
        panels,
        handoffs: (1..).zip(&outcome.handoffs).map(label).chain(events).collect(),
        until: outcome.plan.end(),
        windows,
        caption: format!(
            "Goodput: new bytes for the receiving application, in bins of {} ms{shorter}. Delay: the time of each packet with \
             data from the stack of its sender to the stack of its receiver. A retransmission counts as a separate packet, with its \
             own time of sending. `app delay ms` in the table of flows \
             ends when the application receives the data.{about_windows}{about_events}",
            width.as_millis(),
        ),
    }
}

/// Returns the scenario's events with their labels, and the caption's text about them.
fn events(outcome: &Outcome) -> (Vec<(Instant, String)>, String) {
    let event = |record: &Record| match &record.what {
        What::Ordered(event) => Some((record.at, event.to_string())),
        _ => None,
    };
    let mut all: Vec<_> = outcome.records.iter().filter_map(event).collect();
    let about = match all.len() {
        0 => String::new(),
        1..=EVENTS => {
            " Lines with a number are handoffs; lines with words are events of the scenario.".to_owned()
        }
        more => {
            format!(" The {more} events of the scenario are too many to be drawn; the report lists them.")
        }
    };
    all.truncate(if all.len() > EVENTS { 0 } else { EVENTS });
    (all, about)
}

/// Returns the figure's windows, with goodput in shorter bins if they are much shorter than the run. `width` is that of
/// the bins of the run. Also returns the caption's text about the shorter bins.
fn enlarged(outcome: &Outcome, width: Duration) -> (Vec<TimeWindow>, String) {
    let windows = (1..).zip(&outcome.handoffs);
    let mut windows: Vec<TimeWindow> =
        windows.filter_map(|(number, one)| window(outcome, number, one)).collect();
    // All windows have the same bins, so that their values can be compared.
    let longest = windows.iter().map(|window| window.until.since(window.from)).max().unwrap_or_default();
    let shorter = bin(longest);
    if windows.is_empty() || shorter >= width {
        return (windows, String::new());
    }
    for window in &mut windows {
        // The bins at both ends of the window are whole.
        let from = window.from - shorter;
        window.finer.insert(0, goodputs(outcome, [from, window.until + shorter], shorter));
    }
    (windows, format!(", around handoffs of {} ms", shorter.as_millis()))
}

/// Returns the figure's window of a handoff, with the flows that have a cost of the handoff. Returns `None` if there
/// are no such flows.
fn window(outcome: &Outcome, number: usize, handoff: &Handoff) -> Option<TimeWindow> {
    let outages = handoff.flows.iter().filter_map(|cost| cost.experience.outage());
    let end = outages.map(|outage| outage.to).fold(handoff.cut, Instant::max);
    let recovered = handoff.flows.iter().filter_map(|cost| cost.recovery.at()).fold(end, Instant::max);
    let flows: Vec<usize> = handoff.flows.iter().map(|cost| cost.flow).collect();
    (!flows.is_empty()).then(|| TimeWindow {
        title: format!(
            "{number} {} {} {}->{} at {:.3} s",
            outcome.plan.host_name(handoff.host),
            handoff.kind,
            handoff.from,
            handoff.to,
            handoff.begun.as_secs_f64()
        ),
        from: handoff.begun - MARGIN,
        until: (recovered.min(end + FURTHER) + MARGIN).min(outcome.plan.end()),
        flows,
        finer: BTreeMap::new(),
        handoff: number - 1,
    })
}

const fn source(backend: Backend) -> &'static str {
    match backend {
        Backend::Sim => {
            " Window and round-trip time are the values of the sender's transport, at each change."
        }
        Backend::Linux => {
            " Window and round-trip time are the values that the sender's kernel reports (TCP_INFO), at each change. The \
             daemon reads these values when it runs, at most once in 20 ms, so a change can be drawn late."
        }
    }
}

fn panel(label: &str, unit: &str, lines: Vec<TimeLine>, remark: &str) -> TimePanel {
    TimePanel { axis: Axis::new(label, unit), lines, remark: remark.to_owned(), cuts_peaks: false }
}

fn line(
    outcome: &Outcome,
    flow: &Flow,
    index: usize,
    joined: Joined,
    points: Vec<(Instant, f64)>,
) -> TimeLine {
    TimeLine { name: name(outcome, flow), flow: index, joined, points }
}

/// Returns the width of the bins for this part of a run.
fn bin(span: Duration) -> Duration {
    let span = span.as_millis() as u64;
    let width = WIDTHS.into_iter().find(|width| span / width <= BINS);
    Duration::from_millis(width.unwrap_or(span / BINS))
}

/// Returns the goodput of each flow in a part of the run.
fn goodputs(outcome: &Outcome, part: [Instant; 2], width: Duration) -> Vec<TimeLine> {
    let flows = outcome.flows.iter().enumerate();
    let of = |(index, flow)| line(outcome, flow, index, Joined::Steps, goodput(flow, part, width));
    flows.map(of).collect()
}

/// Returns the goodput of a flow in each bin of a part of the run, in kbit/s at the bin's begin. The first and the last bin
/// of the flow may be shorter.
fn goodput(flow: &Flow, [from, until]: [Instant; 2], width: Duration) -> Vec<(Instant, f64)> {
    let step = width.as_secs_f64();
    let index = |at: Instant| (at.as_secs_f64() / step) as usize;
    if until < flow.begun || flow.until < from {
        return Vec::new();
    }
    let (first, last) = (index(flow.begun.max(from)), index(flow.until.min(until)));
    let mut bytes = vec![0u64; (last + 1).saturating_sub(first)];
    let begin = flow.arrivals.partition_point(|arrival| index(arrival.at) < first);
    for arrival in flow.arrivals.iter().skip(begin).take_while(|arrival| index(arrival.at) <= last) {
        if let Some(bin) = index(arrival.at).checked_sub(first).and_then(|bin| bytes.get_mut(bin)) {
            *bin += arrival.bytes;
        }
    }
    let points = bytes.iter().enumerate().map(|(bin, bytes)| {
        let begin = (first + bin) as f64 * step;
        let (from, to) = (begin.max(flow.begun.as_secs_f64()), (begin + step).min(flow.until.as_secs_f64()));
        // A bin of at most half the width counts with the whole width. With its real width, its rate would be a
        // misleading peak.
        let span = if to - from > step / 2.0 { to - from } else { step };
        (Instant((from * 1e9) as u64), *bytes as f64 * 8.0 / span / 1e3)
    });
    let mut points: Vec<(Instant, f64)> = points.collect();
    if let Some((_, rate)) = points.last().copied() {
        points.push((flow.until.min(until), rate));
    }
    points
}

/// Returns for each flow the delay of each packet with data that arrived, in milliseconds, at the time at which its
/// first copy arrived.
fn delays(outcome: &Outcome, journeys: &Journeys<'_>, places: &Places) -> Vec<TimeLine> {
    let mut points: Vec<Vec<(Instant, f64)>> = vec![Vec::new(); outcome.flows.len()];
    for (_, journey) in journeys.packets() {
        let Some(place) = places.get(journey.id) else { continue };
        let ends = journeys.all_ends(journey);
        let first = ends.iter().find(|end| matches!(end.fate, Fate::Delivered(_) | Fate::Consumed(_)));
        if let Some((end, points)) = first.zip(points.get_mut(place.flow)) {
            points.push((end.at, end.at.since(place.sent).as_secs_f64() * 1e3));
        }
    }
    let sort = |mut points: Vec<(Instant, f64)>| {
        points.sort_by_key(|(at, _)| *at);
        points
    };
    let all = outcome.flows.iter().zip(points).enumerate();
    all.map(|(index, (flow, points))| line(outcome, flow, index, Joined::Dots, sort(points))).collect()
}

/// A value that the sender on a host marked: time, host, value.
type Sample = (Instant, HostId, f64);

/// Returns the values of `field` in the marks with the name `what`, divided by `per`. There is one line for each
/// connection that carries a flow, alone or as one of the two connections that a support router joins.
fn marked(outcome: &Outcome, what: &str, field: &str, per: f64) -> Vec<TimeLine> {
    let mut connections: BTreeMap<(SocketAddrV4, SocketAddrV4), Vec<Sample>> = BTreeMap::new();
    for record in &outcome.records {
        let What::Marked(mark) = &record.what else { continue };
        if mark.name != what {
            continue;
        }
        let end = |field: &str| text(mark, field)?.parse::<SocketAddrV4>().ok();
        let (Some(Value::Int(value)), Some(local), Some(peer)) =
            (value(mark, field), end("local"), end("peer"))
        else {
            continue;
        };
        connections.entry((local, peer)).or_default().push((record.at, record.host, *value as f64 / per));
    }
    let owners = outcome.plan.owners();
    let mut lines: BTreeMap<String, TimeLine> = BTreeMap::new();
    for ((local, peer), mut points) in connections {
        points.sort_by_key(|(at, ..)| *at);
        for (host, points) in by_host(&points) {
            let Some((flow, name)) = flow_of(outcome, host, [local, peer], owners.get(peer.ip()).copied())
            else {
                continue;
            };
            let line = || TimeLine { name: name.clone(), flow, joined: Joined::Steps, points: Vec::new() };
            let line = lines.entry(name.clone()).or_insert_with(line);
            // The last value holds until the flow ends.
            let end = outcome.flows.get(flow).map(|flow| flow.until);
            let held = points.last().zip(end).filter(|((at, value), end)| at < end && !value.is_nan());
            let held = held.map(|((_, value), end)| (end, *value));
            line.points.extend(points.into_iter().chain(held));
        }
    }
    let sorted = lines.into_values().map(|mut line| {
        line.points.sort_by_key(|(at, _)| *at);
        line
    });
    sorted.collect()
}

/// Returns the values of a connection by host. If a connection moves to another router, the line of the former router
/// ends at the first value of the new one.
fn by_host(points: &[(Instant, HostId, f64)]) -> BTreeMap<HostId, Vec<(Instant, f64)>> {
    let mut hosts: BTreeMap<HostId, Vec<(Instant, f64)>> = BTreeMap::new();
    let mut last: Option<(HostId, f64)> = None;
    for (at, host, value) in points {
        if let Some((former, held)) = last.filter(|(former, _)| former != host) {
            hosts.entry(former).or_default().extend([(*at, held), (*at, f64::NAN)]);
        }
        hosts.entry(*host).or_default().push((*at, *value));
        last = Some((*host, *value));
    }
    hosts
}

/// Returns the index of the flow that a connection of `host` carries, alone or as one of the two connections that a
/// support router joins. Also returns the name of the line of this connection. `far` is the host of the peer. Returns
/// `None` for the other direction: only the sender of data has a relevant window.
fn flow_of(
    outcome: &Outcome,
    host: HostId,
    [local, peer]: [SocketAddrV4; 2],
    far: Option<HostId>,
) -> Option<(usize, String)> {
    let from = |flow: &Flow| flow.from.host == host && flow.from.at.port() == local.port();
    let to = |flow: &Flow| Some(flow.to.host) == far && flow.to.at.port() == peer.port();
    let flows = || outcome.flows.iter().enumerate();
    if let Some((index, flow)) = flows().find(|(_, flow)| from(flow) && to(flow)) {
        return Some((index, name(outcome, flow)));
    }
    let (index, _) = flows().find(|(_, flow)| from(flow) || to(flow))?;
    let far = far.map_or_else(|| peer.ip().to_string(), |far| outcome.plan.host_name(far).to_string());
    Some((index, format!("{}:{} > {far}:{}", outcome.plan.host_name(host), local.port(), peer.port())))
}

fn value<'a>(mark: &'a Mark, field: &str) -> Option<&'a Value> {
    mark.fields.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
}

fn text<'a>(mark: &'a Mark, field: &str) -> Option<&'a str> {
    match value(mark, field)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use scenario::Scenario;

    fn figure(name: &str) -> TimeFigure {
        let (file, text) = Scenario::find(name).unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let journeys = Journeys::new(&outcome.plan, &outcome.records);
        flows(&outcome, &journeys, &Places::new(&outcome))
    }

    #[test]
    fn datagrams_have_no_panel_for_a_window_and_a_steady_flow_is_steady() {
        let figure = figure("first");
        assert_eq!(figure.panels.len(), 2);
        let goodput = &figure.panels[0].lines[0].points;
        let steady = goodput.iter().filter(|(_, rate)| (*rate - 40.0).abs() < 0.01).count();
        assert!(
            steady > goodput.len() - 12,
            "5 datagrams of 100 bytes in each bin but at moves: {goodput:?}"
        );
        let titles: Vec<&str> = figure.windows.iter().map(|window| window.title.as_str()).collect();
        assert_eq!(titles[1], "2 mobile semisoft b3->b2 at 2.000 s");
        assert!(figure.windows.len() == 4 && figure.windows.iter().all(|window| window.flows == [0]));
    }

    /// The bins of the run are longer than the outage of the handoff, but not those around the handoff.
    #[test]
    fn around_a_handoff_the_bins_are_shorter_than_in_a_long_run() {
        let (file, text) = Scenario::find("first").unwrap();
        let long = "duration=60s".parse().unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[long], 1).unwrap()).unwrap();
        let journeys = Journeys::new(&outcome.plan, &outcome.records);
        let figure = flows(&outcome, &journeys, &Places::new(&outcome));
        assert!(
            figure.caption.contains(", in bins of 500 ms, around handoffs of 100 ms. "),
            "{}",
            figure.caption
        );
        let apart = |points: &[(Instant, f64)]| points[2].0.since(points[1].0);
        assert_eq!(apart(&figure.panels[0].lines[0].points), Duration::from_millis(500));
        for window in &figure.windows {
            let lines = window.finer[&0].iter().filter(|line| window.flows.contains(&line.flow));
            for line in lines {
                assert_eq!(apart(&line.points), Duration::from_millis(100));
                let within = line.points.iter().filter(|(at, _)| (window.from..=window.until).contains(at));
                let bins = window.until.since(window.from).as_millis() as usize / 100;
                assert!(within.count() >= bins, "all of the window: {window:?}");
            }
        }
    }

    #[test]
    fn a_window_is_about_the_flows_that_a_handoff_concerns() {
        let figure = figure("air/walk");
        let [window] = figure.windows.try_into().unwrap();
        assert_eq!(window.flows, [0], "the neighbour's flow is another");
        assert_eq!(window.from.0 / 1_000_000, 11_600);
    }

    #[test]
    fn a_window_that_does_not_change_any_more_is_drawn_to_the_end_of_its_flow() {
        let (file, text) = Scenario::find("evidence/outage").unwrap();
        let outcome = run::simulate(Scenario::plan(&file, &text, &[], 1).unwrap()).unwrap();
        let ends: Vec<Instant> = outcome.flows.iter().map(|flow| flow.until).collect();
        let figure = figure("evidence/outage");
        let lines = &figure.panels[2].lines;
        let last = lines.iter().map(|line| (line.flow, line.points.last().unwrap().0));
        assert!(
            !lines.is_empty() && last.clone().all(|(flow, at)| at == ends[flow]),
            "{:?}",
            last.collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_router_that_gave_its_connection_away_has_no_window_any_more() {
        let figure = figure("indirect-tcp/handoff-time");
        let lines = &figure.panels[2].lines;
        let left = lines.iter().find(|line| line.name.starts_with("left:")).unwrap();
        let breaks: Vec<u64> =
            left.points.iter().filter(|(_, value)| value.is_nan()).map(|(at, _)| at.0 / 1_000_000).collect();
        assert!(
            matches!(breaks[..], [first, second] if (2_300..2_500).contains(&first) && second > 6_300),
            "{breaks:?}"
        );
        assert!(lines.iter().all(|line| line.flow == 0), "halves of one flow");
    }
}
