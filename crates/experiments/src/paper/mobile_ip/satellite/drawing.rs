//! The figure of a run, as figures 3 to 5 of the paper: segments and acknowledgments, and the steps of the registration.

use super::run::Run;
use crate::reproduce::figure::Drawn;
use crate::reproduce::{Report, Results, TimeSeries};
use draw::{Axis, Joined, TimeFigure, TimeLine, TimePanel, TimeWindow};
use recorder::run::Outcome;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The names of the lines of a figure.
const LOST: &str = "segment, lost";
const OLD: &str = "segment, by the old path";
const NEW: &str = "segment, by the new path";
const ACKNOWLEDGED: &str = "acknowledgment";
const LINES: [&str; 4] = [OLD, NEW, LOST, ACKNOWLEDGED];
/// The names of the events of a figure; the last four are not in the paper's figures.
const DUMP: &str = "Dump Reg";
const START: &str = "Start Reg";
const FINISH: &str = "Finish Reg";
const MOVED: &str = "moved";
const LEARNT: &str = "update at correspondent";
const KEPT: &str = "kept packet sent";
const RESUMED: &str = "first data";

/// The time before the move that the window of the figure shows.
const BEFORE: Duration = Duration::from_millis(800);
/// The time after the last event at which the figure ends: the label of this event has room. The download is fast then, and would hide
/// what was before if the figure were longer.
const AFTER: Duration = Duration::from_millis(450);

/// Takes from a run what its figure shows. A segment is on the new path if the first agent that could deliver it is the new one:
/// the correspondent sent it after it learnt the new care-of address. The numbers are in kB, counted from the last segment before
/// the move.
pub(in super::super) fn trace(outcome: &Outcome) -> TimeSeries {
    let Ok(run) = Run::of(outcome) else { return TimeSeries::default() };
    let base = run.sent.iter().take_while(|sent| sent.at < run.moved).last().map_or(0, |sent| sent.first);
    let place = |number: u64| (number as f64 - base as f64) / 1e3;
    let mut lines: BTreeMap<&'static str, Vec<(Instant, f64)>> = BTreeMap::new();
    for sent in &run.sent {
        let is_new = run.learnt.is_some_and(|learnt| sent.at > learnt);
        let name = match (run.arrival(sent.packet), is_new) {
            (None, _) => LOST,
            (Some(_), true) => NEW,
            (Some(_), false) => OLD,
        };
        lines.entry(name).or_default().push((sent.at, place(sent.first)));
    }
    let acknowledged = run.acknowledged.iter().map(|(at, _, next)| (*at, place(*next)));
    lines.insert(ACKNOWLEDGED, acknowledged.collect());
    let events = [
        (Some(run.moved), MOVED),
        (run.dumped, DUMP),
        (Some(run.started), START),
        (run.kept.map(|(at, _)| at), KEPT),
        (Some(run.finished), FINISH),
        (run.learnt, LEARNT),
        (run.halt().map(|(_, first, _)| first), RESUMED),
    ];
    let mut events: Vec<_> = events.into_iter().filter_map(|(at, name)| Some((at?, name))).collect();
    events.sort();
    TimeSeries { lines, events }
}

/// Returns, for each backend, the figure of the first run of a point.
pub(in super::super) fn packets(report: &Report, label: &str, title: &str) -> Vec<Drawn> {
    report.backends.iter().filter_map(|results| figure(results, label, title)).map(Drawn::Time).collect()
}

fn figure(results: &Results, label: &str, title: &str) -> Option<TimeFigure> {
    let series = results.named(label)?.series.first()?;
    let moved = series.at(MOVED)?;
    let (last, _) = series.events.last()?;
    let until = *last + AFTER;
    let line = |name: &'static str| {
        let points = series.lines.get(name).into_iter().flatten().copied();
        let points = points.filter(|(at, _)| *at <= until).collect();
        TimeLine { name: name.to_owned(), flow: 0, joined: Joined::Dots, points }
    };
    // The colours and dots show these two. Their lines are so near to Finish Reg that its label would have no room.
    let shown = series.events.iter().filter(|(_, name)| ![LEARNT, RESUMED].contains(name));
    let handoffs: Vec<(Instant, String)> = shown.map(|(at, name)| (*at, (*name).to_owned())).collect();
    let start = handoffs.iter().position(|(_, name)| name == START)?;
    Some(TimeFigure {
        title: format!("Mobile IP: packets of a download {title}, {}", results.backend.name()),
        panels: vec![TimePanel {
            axis: Axis::new("first byte; acknowledgments: next byte", "kB since the move"),
            lines: LINES.into_iter().map(line).collect(),
            remark: "no packet".to_owned(),
            cuts_peaks: false,
        }],
        windows: vec![TimeWindow {
            title: "from the move until the download has continued".to_owned(),
            from: moved - BEFORE,
            until,
            flows: vec![0],
            finer: BTreeMap::new(),
            handoff: start,
        }],
        handoffs,
        until,
        caption: "Segments at the instant at which the correspondent sends them, acknowledgments at the instant at which the mobile node sends \
                  them. Dump Reg: the mobile node discards its agent. Start Reg: it sends a request by the new agent. Finish Reg: it has \
                  the home agent's reply. Old path: the correspondent sends to the old agent, or has not learnt the new care-of address. \
                  One run."
            .to_owned(),
    })
}
