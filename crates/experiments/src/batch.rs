//! Many runs of one scenario: the metrics of each run, and their distribution over all runs.
//!
//! For a metric per handoff, the value of a run is the median over its handoffs of one kind. Handoffs of one run are no
//! repetitions, because they share the seed and the connections of the run. So `n` counts runs.

use crate::drawn::style;
use crate::stats::{self, Summary};
use draw::{Axis, DistributionFigure, DistributionPanel, Sample, Style, Table};
use recorder::handoff::Handoff;
use recorder::run::{Backend, Outcome};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use trace::{HostId, What};
use wire::{Iface, Rng, ipv4, udp};

/// Calls `work` for each number below `count` in `jobs` threads. Calls `done` with each result in the calling thread,
/// in the order of the numbers. If `done` breaks, all other results are discarded, and each thread ends after the
/// number that it is working on. A result is kept in memory until the results of all lower numbers were passed to
/// `done`.
pub fn each<T: Send>(
    count: u64,
    jobs: usize,
    work: impl Fn(u64) -> T + Sync,
    mut done: impl FnMut(u64, T) -> ControlFlow<()>,
) {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    // The channel is bounded: a thread waits while the channel is full.
    let (send, receive) = mpsc::sync_channel(jobs.max(1));
    let jobs = usize::try_from(count).map_or(jobs, |count| jobs.min(count)).max(1);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (send, next, stop, work) = (send.clone(), &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || send.send((number, work(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let (mut waiting, mut due) = (BTreeMap::new(), 0);
        for (number, result) in receive {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&due) {
                if done(due, result).is_break() {
                    stop.store(true, Ordering::Relaxed);
                    waiting.clear();
                    due = count;
                    break;
                }
                due += 1;
            }
            if stop.load(Ordering::Relaxed) {
                waiting.clear();
            }
        }
    });
}

/// The metrics of a handoff or of a run, each with a line of explanation. In a run with handoffs of several kinds, each
/// metric per handoff exists once for each kind, for example as `outage_ms.hard`.
pub const METRICS: [(&str, &str); 6] = [
    (
        "outage_ms",
        "time until the application received new data by the new path, per handoff; 0 if the handoff interrupted nothing",
    ),
    ("lost_packets", "lost packets with data of the host's flows, per handoff"),
    ("duplicate_packets", "copies of packets that arrived in addition to the first copy, per handoff"),
    (
        "handoff_latency_ms",
        "time from the cut of the old path until the network has the new path, plus one delay down the new path, per handoff",
    ),
    (
        "longest_stall_ms",
        "longest time in which a flow received no new data although data were due, of all flows of a run",
    ),
    (
        "goodput_kbps",
        "rate of new data for the application in the flow with the most bytes, over the duration of this flow",
    ),
];

/// Returns the metric of a name such as `outage_ms.hard`, without the kind of handoff.
pub(crate) fn metric(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The values of a run, by metric: one for each handoff in which the metric was measured, or one for the whole run. The
/// list of a metric per handoff is empty if no handoff has a value. There is no entry for a metric per run that was not
/// measured, and none for a metric per handoff if there was no handoff. An outage that never ends is infinite.
pub type Values = BTreeMap<String, Vec<f64>>;

/// Returns the values of all metrics of a run.
pub fn measure(outcome: &Outcome) -> Values {
    let kinds: BTreeSet<&str> = outcome.handoffs.iter().map(|handoff| handoff.kind.as_str()).collect();
    let mut values = Values::new();
    for handoff in &outcome.handoffs {
        for (metric, value) in of_handoff(handoff) {
            let name = if kinds.len() > 1 { format!("{metric}.{}", handoff.kind) } else { metric.to_owned() };
            values.entry(name).or_default().extend(value.map(short));
        }
    }
    let stall = outcome.flows.iter().map(|flow| flow.longest_stall).max();
    let per_run = [
        ("longest_stall_ms", stall.map(|stall| stall.as_secs_f64() * 1e3)),
        ("goodput_kbps", goodput(outcome)),
    ];
    for (metric, value) in per_run {
        values.extend(value.map(|value| (metric.to_owned(), vec![short(value)])));
    }
    values
}

/// The value of a run, by metric. `None`: the metric is per handoff, and no handoff of the run has a value. As in
/// [`Values`], some metrics have no entry.
pub type RunValues = BTreeMap<String, Option<f64>>;

/// Returns the value of a run for each metric in `values`: the median of the metric's values, or `None` if the list is
/// empty.
pub fn of_run(values: &Values) -> RunValues {
    values.iter().map(|(name, values)| (name.clone(), stats::median(values))).collect()
}

/// Returns the values of the metrics that the run has measured, without those that are `None`.
pub(crate) fn measured(values: &RunValues) -> BTreeMap<String, f64> {
    values.iter().filter_map(|(name, value)| Some((name.clone(), (*value)?))).collect()
}

/// Rounds to 6 decimals, so a value in milliseconds keeps its nanoseconds. The rounded number is read back from a file
/// unchanged.
pub(crate) fn short(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn of_handoff(handoff: &Handoff) -> [(&'static str, Option<f64>); 4] {
    let measured = |count: u64| handoff.is_measured().then_some(count as f64);
    [
        ("outage_ms", handoff.outage_ms()),
        ("lost_packets", measured(handoff.lost())),
        ("duplicate_packets", measured(handoff.duplicates())),
        ("handoff_latency_ms", handoff.latency.map(|latency| latency.as_secs_f64() * 1e3)),
    ]
}

/// Returns the goodput in kb/s of the flow with the most bytes. Without flows, returns the goodput of all hosts with
/// handoffs over the whole run, or `None` if no host moved.
fn goodput(outcome: &Outcome) -> Option<f64> {
    if let Some(flow) = outcome.flows.iter().max_by_key(|flow| flow.bytes) {
        return Some(flow.goodput() / 1e3);
    }
    let moved: BTreeSet<HostId> = outcome.handoffs.iter().map(|handoff| handoff.host).collect();
    let mut datagrams = BTreeMap::new();
    let mut bytes = 0;
    for record in outcome.records.iter().filter(|record| moved.contains(&record.host)) {
        match &record.what {
            What::App(_) => bytes += record.what.read().unwrap_or_default(),
            What::Sent(Iface::HOST, packet) => {
                let payload = packet.bytes.len().saturating_sub(ipv4::HEADER + udp::HEADER);
                datagrams.insert((record.host, packet.id), payload as u64);
            }
            What::AppReceived(packet) => bytes += datagrams.get(&(record.host, *packet)).unwrap_or(&0),
            _ => {}
        }
    }
    (!moved.is_empty()).then(|| bytes as f64 * 8.0 / outcome.plan.end().as_secs_f64() / 1e3)
}

/// The largest number of values that [`Collected`] keeps of a metric. If there are more values, it keeps a uniform
/// random sample of this size (Vitter's algorithm R).
pub const KEPT: usize = 100_000;

/// The values of many runs, by metric: at most [`KEPT`] for each metric.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    metrics: BTreeMap<String, Metric>,
}

#[derive(Clone, Debug, Default)]
struct Metric {
    /// The numbers of runs in which the metric was measured, and in which it was not.
    measured: u64,
    not_measured: u64,
    /// The kept values of the metric, at most [`KEPT`].
    kept: Vec<f64>,
}

impl Collected {
    /// Adds the values of a run. A `None` counts as a run in which the metric was not measured.
    pub fn add(&mut self, run: &RunValues) {
        for (name, value) in run {
            let metric = self.metrics.entry(name.clone()).or_default();
            match value {
                Some(value) => metric.add(name, *value),
                None => metric.not_measured += 1,
            }
        }
    }

    /// Returns the names of the metrics that were measured, ordered by metric, then by kind of handoff.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all_names().filter(|name| !self.values(name).is_empty())
    }

    /// Returns the names of all metrics, including those that no run measured, in the order of [`Self::names`].
    fn all_names(&self) -> impl Iterator<Item = &str> {
        METRICS.iter().flat_map(|(of, _)| {
            self.metrics.keys().map(String::as_str).filter(move |name| metric(name) == *of)
        })
    }

    /// Returns the kept values of a metric, at most [`KEPT`].
    pub fn values(&self, name: &str) -> &[f64] {
        self.metrics.get(name).map_or(&[], |metric| &metric.kept)
    }

    /// Returns a summary of each metric, also of those that no run measured, ordered as in [`Self::names`].
    pub fn summary(&self) -> Vec<MetricSummary> {
        let row = |name: &str| {
            let (of, kind) = name.split_once('.').unwrap_or((name, ""));
            let of = of.to_owned();
            let Metric { measured, not_measured, kept } = self.metrics.get(name)?;
            let (runs, not_measured) = (*measured, *not_measured);
            Some(MetricSummary {
                metric: of,
                kind: kind.to_owned(),
                runs,
                not_measured,
                summary: Summary::of(kept),
            })
        };
        self.all_names().filter_map(row).collect()
    }

    /// Draws the distribution of every metric that differs between runs. The caption has the values of the metrics that
    /// are equal in all runs. Returns `None` if no metric differs.
    pub fn figure(&self, name: &str, backend: Backend) -> Option<DistributionFigure> {
        let mut panels: Vec<DistributionPanel> = Vec::new();
        let mut same: Vec<String> = Vec::new();
        for of in self.names() {
            let values = self.values(of);
            if let Some(value) =
                values.first().filter(|first| values.iter().all(|value| value.total_cmp(first).is_eq()))
            {
                same.push(format!("{of} {}", stats::number(*value, 3)));
            } else {
                add(&mut panels, of, name, style(backend), values);
            }
        }
        let runs = self.metrics.values().map(|metric| metric.measured).max()?;
        let same = match same.join(", ") {
            same if same.is_empty() => same,
            same => format!(" These metrics are equal in every run, and are not drawn: {same}."),
        };
        (!panels.is_empty()).then(|| DistributionFigure {
            title: format!("{name}: {runs} runs, each at a different phase"),
            panels,
            caption: format!(
                "Each run gives one value. For a metric per handoff, this value is the median of the handoffs in the run.{same}"
            ),
        })
    }
}

impl Metric {
    fn add(&mut self, name: &str, value: f64) {
        if self.kept.len() < KEPT {
            self.kept.push(value);
        } else {
            let place = Rng::new(self.measured).fork(name).draw() % (self.measured + 1);
            if let Some(kept) = usize::try_from(place).ok().and_then(|place| self.kept.get_mut(place)) {
                *kept = value;
            }
        }
        self.measured += 1;
    }
}

/// Adds the values of a metric such as `outage_ms.hard` to the panel of that metric. The series has the name of the
/// kind of handoff, or `name` if there is none.
pub(crate) fn add(panels: &mut Vec<DistributionPanel>, of: &str, name: &str, style: Style, values: &[f64]) {
    let (metric, kind) = of.split_once('.').unwrap_or((of, ""));
    let axis = axis(metric);
    let about = METRICS.iter().find(|(of, _)| *of == metric);
    let title = about.map_or_else(|| axis.label.clone(), |(_, about)| format!("{}: {about}", axis.label));
    let sample = Sample::new(if kind.is_empty() { name } else { kind }, style, values.to_vec());
    match panels.iter_mut().find(|panel| panel.title == title) {
        Some(panel) => panel.samples.push(sample),
        None => panels.push(DistributionPanel { title, axis, samples: vec![sample] }),
    }
}

/// Returns the axis of a metric: `outage_ms` is an outage in milliseconds.
pub(crate) fn axis(metric: &str) -> Axis {
    let units = [("_ms", "ms"), ("_kbps", "kb/s")];
    let unit = units.into_iter().find_map(|(end, unit)| Some((metric.strip_suffix(end)?, unit)));
    let (of, unit) = unit.unwrap_or((metric, ""));
    Axis::new(of.replace('_', " "), unit)
}

/// The summary of a metric over many runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricSummary {
    /// The name of the metric in [`METRICS`].
    pub metric: String,
    /// The kind of handoff, as the protocol names it. Empty for a metric per run, and for runs in which all handoffs
    /// are of one kind.
    pub kind: String,
    /// The number of runs in which the metric was measured. If it is above [`KEPT`], `n` of the summary is [`KEPT`].
    pub runs: u64,
    /// The number of runs with handoffs of this kind in which the metric was not measured, for example because no flow
    /// was active. If `kind` is empty, handoffs of any kind count. 0 for a metric per run.
    pub not_measured: u64,
    /// The summary of the kept values; `None` if no run measured the metric.
    #[serde(flatten)]
    pub summary: Option<Summary>,
}

/// Returns the summaries as a table, followed by a line about each metric.
pub fn table(metrics: &[MetricSummary]) -> String {
    let mut table = Table::new(["metric", "kind", "n", "median", "95 % interval", "5 %", "95 %", "mean"]);
    for row in metrics {
        let number = |value| stats::number(value, 3);
        let Some(summary) = &row.summary else {
            let [metric, kind] = [row.metric.as_str(), row.kind.as_str()];
            table.push([metric, kind, "0", "not measured", "-", "-", "-", "-"]);
            continue;
        };
        let interval = match (summary.interval, summary.interval_text(3)) {
            (None, _) => "-".to_owned(),
            (Some(_), None) => "no width".to_owned(),
            (Some(_), Some(text)) => text,
        };
        let [median, p5, p95, mean] = [summary.median, summary.p5, summary.p95, summary.mean].map(number);
        table.push([
            row.metric.clone(),
            row.kind.clone(),
            summary.n.to_string(),
            median,
            interval,
            p5,
            p95,
            mean,
        ]);
    }
    let mut out = table.render();
    out.push_str(
        "\nn: the number of runs with the metric; 95 % interval: the confidence interval of the median, from order statistics; \
         \"range\": the smallest and the largest value; \
         \"no width\": both limits are equal; \"-\": there are fewer than 6 runs; 5 %, 95 %: percentiles\n",
    );
    for row in metrics.iter().filter(|row| row.not_measured > 0) {
        let (name, runs) = (&row.metric, row.runs + row.not_measured);
        let kind = if row.kind.is_empty() { String::new() } else { format!(" ({})", row.kind) };
        let _ = writeln!(out, "{name}{kind}: not measured in {} of {runs} runs", row.not_measured);
    }
    if metrics.iter().any(|row| row.runs > KEPT as u64) {
        let _ = writeln!(
            out,
            "there are more than {KEPT} runs: the statistics are those of a uniform random sample of {KEPT} runs"
        );
    }
    for (of, about) in METRICS.iter().filter(|(of, _)| metrics.iter().any(|row| row.metric == *of)) {
        let _ = writeln!(out, "{of:20}{about}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_once_and_comes_back_in_order() {
        for jobs in [0, 1, 3, 99] {
            let mut seen = Vec::new();
            each(
                10,
                jobs,
                |number| number * number,
                |number, square| {
                    seen.push((number, square));
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(seen, (0..10).map(|number| (number, number * number)).collect::<Vec<_>>());
        }
        each(0, 4, |_| 1, |_, _| panic!("nothing was asked for"));
    }

    #[test]
    fn a_hundred_million_runs_are_not_begun_when_the_first_fails() {
        let begun = AtomicU64::new(0);
        let mut results = 0;
        each(
            100_000_000,
            2,
            |_| begun.fetch_add(1, Ordering::Relaxed),
            |_, _| {
                results += 1;
                ControlFlow::Break(())
            },
        );
        assert_eq!(results, 1);
        assert!(begun.load(Ordering::Relaxed) < 100, "{begun:?}");
    }

    #[test]
    fn the_values_of_many_runs_take_bounded_room_and_stay_a_fair_sample() {
        let mut all = Collected::default();
        for run in 0..(3 * KEPT as u64) {
            all.add(&BTreeMap::from([("outage_ms".to_owned(), Some(run as f64))]));
        }
        let [row] = all.summary().try_into().unwrap();
        let summary = row.summary.unwrap();
        assert_eq!((row.runs, summary.n), (3 * KEPT as u64, KEPT));
        let middle = 1.5 * KEPT as f64;
        assert!((summary.median - middle).abs() < 0.02 * middle, "{row:?}");
    }

    #[test]
    fn a_table_has_a_row_for_each_metric_and_kind_and_says_what_an_interval_is() {
        let mut all = Collected::default();
        for run in 0..6 {
            let value = f64::from(run);
            all.add(&BTreeMap::from([
                ("outage_ms.hard".to_owned(), Some(value)),
                ("lost_packets".to_owned(), Some(0.0)),
            ]));
        }
        let text = table(&all.summary());
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("outage_ms").contains("range 0.000..5.000"), "{text}");
        assert!(row("lost_packets").contains("no width"), "{text}");
        let figure = all.figure("x", Backend::Sim).unwrap();
        assert_eq!(figure.panels.len(), 1, "what does not vary is not drawn");
        assert!(
            figure.panels[0].title.starts_with("outage: time until the application received new data"),
            "{}",
            figure.panels[0].title
        );
        assert!(figure.caption.contains("not drawn: lost_packets 0.000."), "{}", figure.caption);
    }

    /// If the flow ends before a move, the metrics of this handoff are not measured. They are not counted as 0.
    #[test]
    fn what_no_run_measured_is_said_to_be_so() {
        let (file, text) = scenario::Scenario::find("first").unwrap();
        let mut all = Collected::default();
        for stop in ["0.9s", "0.8s", "1.5s"] {
            let settings = [format!("constant-rate.stop={stop}").parse().unwrap()];
            let plan = scenario::Scenario::plan(&file, &text, &settings, 1).unwrap();
            all.add(&of_run(&measure(&recorder::run::simulate(plan).unwrap())));
        }
        let text = table(&all.summary());
        let row = |name: &str, kind: &str| {
            let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            text.lines()
                .map(cells)
                .find(|cells| cells.len() > 3 && cells[0] == name && cells[1] == kind)
                .unwrap()
        };
        for metric in ["outage_ms", "lost_packets", "duplicate_packets", "handoff_latency_ms"] {
            assert_eq!(row(metric, "semisoft")[2..5], ["0", "not", "measured"], "{text}");
            assert_eq!(row(metric, "hard")[2], "1", "{text}");
        }
        assert!(text.contains("lost_packets (semisoft): not measured in 3 of 3 runs"), "{text}");
        assert!(text.contains("lost_packets (hard): not measured in 2 of 3 runs"), "{text}");
    }
}
