//! `figures/flows`: goodput, one-way delay, congestion window and round-trip time of each flow over the time of the run.

use super::figure::title;
use super::flows::{Places, name};
use crate::flow::Flow;
use crate::journey::{Fate, Journeys};
use crate::run::{OnWorld, Outcome};
use draw::{Axis, Joined, TimeFigure, TimeLine, TimePanel};
use node::{Mark, Value};
use std::collections::BTreeMap;
use trace::{HostId, What};
use wire::{Duration, Instant, SocketAddrV4};

/// Bins of goodput, in milliseconds: the first that makes at most [`BINS`] of the run.
const WIDTHS: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000];
const BINS: u64 = 250;

/// The figure of a run's flows.
pub(super) fn flows(outcome: &Outcome, journeys: &Journeys<'_>, places: &Places) -> TimeFigure {
    let width = bin(outcome.plan.end());
    let goodput = |flow: &Flow| line(outcome, flow, Joined::Steps, goodput(flow, width));
    let panels = vec![
        panel("goodput", "kb/s", outcome.flows.iter().map(goodput).collect(), "no flow"),
        panel(
            "one-way delay of packets",
            "ms",
            delays(outcome, journeys, places),
            "no packet with data arrived",
        ),
        panel("congestion window", "kB", marked(outcome, "cwnd", "bytes", 1e3), why_not(outcome)),
        panel("smoothed round-trip time", "ms", marked(outcome, "srtt", "ns", 1e6), why_not(outcome)),
    ];
    let handoffs =
        (1..).zip(&outcome.handoffs).map(|(number, one): (usize, _)| (one.begun, number.to_string()));
    TimeFigure {
        title: title(outcome),
        panels,
        handoffs: handoffs.collect(),
        until: outcome.plan.end(),
        caption: format!(
            "Goodput: new bytes for the receiving application, in bins of {} ms. Delay: of each packet with data, from the \
             stack of its sender to the stack of its receiver; a retransmission is a packet. Window and round-trip time: {}",
            width.as_millis(),
            source(outcome.world)
        ),
    }
}

const fn source(world: OnWorld) -> &'static str {
    match world {
        OnWorld::Sim => "as the sender's transport has them, at each change.",
        OnWorld::Linux => {
            "as the sender's kernel reports them (TCP_INFO), sampled every 20 ms where they changed."
        }
    }
}

fn why_not(outcome: &Outcome) -> &'static str {
    use crate::flow::Transport::Udp;
    if outcome.flows.iter().all(|flow| flow.transport == Udp) {
        "datagrams have none"
    } else {
        "not reported in this run"
    }
}

fn panel(label: &str, unit: &str, lines: Vec<TimeLine>, remark: &str) -> TimePanel {
    TimePanel { axis: Axis::new(label, unit), lines, remark: remark.to_owned() }
}

fn line(outcome: &Outcome, flow: &Flow, joined: Joined, points: Vec<(Instant, f64)>) -> TimeLine {
    TimeLine { name: name(outcome, flow), joined, points }
}

fn bin(end: Instant) -> Duration {
    let run = end.0 / 1_000_000;
    let width = WIDTHS.into_iter().find(|width| run / width <= BINS);
    Duration::from_millis(width.unwrap_or(run / BINS))
}

/// New bytes in each bin of a flow's life, in kb/s at the bin's begin; the last bin counts for as long as it is.
fn goodput(flow: &Flow, width: Duration) -> Vec<(Instant, f64)> {
    let step = width.as_secs_f64();
    let index = |at: Instant| (at.as_secs_f64() / step) as usize;
    let (first, last) = (index(flow.begun), index(flow.until));
    let mut bytes = vec![0u64; (last + 1).saturating_sub(first)];
    for arrival in &flow.arrivals {
        if let Some(bin) = index(arrival.at).checked_sub(first).and_then(|bin| bytes.get_mut(bin)) {
            *bin += arrival.bytes;
        }
    }
    let points = bytes.iter().enumerate().map(|(bin, bytes)| {
        let begin = (first + bin) as f64 * step;
        let (from, to) = (begin.max(flow.begun.as_secs_f64()), (begin + step).min(flow.until.as_secs_f64()));
        // A sliver of a bin at either end would be a peak that nothing stands behind.
        let span = if to - from > step / 2.0 { to - from } else { step };
        (Instant((from * 1e9) as u64), *bytes as f64 * 8.0 / span / 1e3)
    });
    let mut points: Vec<(Instant, f64)> = points.collect();
    if let Some((_, rate)) = points.last().copied() {
        points.push((flow.until, rate));
    }
    points
}

/// For each flow the delay of each packet with data whose first copy arrived, at the time of its arrival.
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
    let all = outcome.flows.iter().zip(points);
    all.map(|(flow, points)| line(outcome, flow, Joined::Dots, sort(points))).collect()
}

/// What senders marked under this name, divided by `per`: a line for each flow, and for each half of a split connection.
fn marked(outcome: &Outcome, what: &str, field: &str, per: f64) -> Vec<TimeLine> {
    let mut lines: BTreeMap<(HostId, String, String), Vec<(Instant, f64)>> = BTreeMap::new();
    for record in &outcome.records {
        let What::Marked(mark) = &record.what else { continue };
        if mark.name != what {
            continue;
        }
        let (Some(Value::Int(value)), Some(local), Some(peer)) =
            (value(mark, field), text(mark, "local"), text(mark, "peer"))
        else {
            continue;
        };
        let points = lines.entry((record.host, local.to_owned(), peer.to_owned())).or_default();
        points.push((record.at, *value as f64 / per));
    }
    let owners = outcome.plan.owners();
    let ends = lines.into_iter().filter_map(|((host, local, peer), points)| {
        let (local, peer): (SocketAddrV4, SocketAddrV4) = (local.parse().ok()?, peer.parse().ok()?);
        let far = owners.get(peer.ip()).copied();
        let is = |flow: &&Flow| {
            let from = flow.from.host == host && flow.from.at.port() == local.port();
            from && flow.to.at.port() == peer.port() && Some(flow.to.host) == far
        };
        let flow = outcome.flows.iter().find(is);
        // Only who sends data has a window worth a line.
        let half = |flow: &&Flow| {
            let from = flow.from.host == host && flow.from.at.port() == local.port();
            from || (Some(flow.to.host) == far && flow.to.at.port() == peer.port())
        };
        let name = match flow {
            Some(flow) => name(outcome, flow),
            None => {
                outcome.flows.iter().find(half)?;
                let far =
                    far.map_or_else(|| peer.ip().to_string(), |far| outcome.plan.host_name(far).to_string());
                format!("{}:{} > {far}:{}", outcome.plan.host_name(host), local.port(), peer.port())
            }
        };
        Some((name, points))
    });
    let mut joined: BTreeMap<String, Vec<(Instant, f64)>> = BTreeMap::new();
    for (name, points) in ends {
        joined.entry(name).or_default().extend(points);
    }
    let sorted = joined.into_iter().map(|(name, mut points)| {
        points.sort_by_key(|(at, _)| *at);
        TimeLine { name, joined: Joined::Steps, points }
    });
    sorted.collect()
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
