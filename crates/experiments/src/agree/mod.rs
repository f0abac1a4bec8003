//! Compares the results of both backends: the distributions of what applications experienced, not the messages.
//!
//! Many of these distributions have two modes, so medians are not enough: whole distributions and their means are
//! compared. Two random samples of 40 and 12 values from one continuous distribution have a Kolmogorov-Smirnov distance
//! of more than 0.3 in 28 % of all cases. So the simulator also runs at the phases of the Linux runs
//! ([`scenario::Repetition`]), and these simulator runs are evaluated. The remaining difference is that of the
//! backends.

mod error_rates;
mod page;
mod recorded;
mod sample;
mod text;

pub use page::{is_page, page};
pub use recorded::{Measured, Recorded};
pub use sample::{NotCounted, Repeated, Run, Sample};
pub use text::{csv, figure, json, text};
pub(crate) use text::{distance, number, rule};

use crate::batch::metric;
use crate::contest::course;
use crate::stats::{self, Difference};
use scenario::ScenarioError;

/// The largest Kolmogorov-Smirnov distance of two distributions that agree, from 0 to 1.
pub const DISTANCE: f64 = 0.3;
/// The largest difference of two means that agree, as a share of the larger mean.
pub const SHARE: f64 = 0.2;
/// The number of valid runs that each backend needs for a verdict other than [`Agreement::Inconclusive`].
pub const LEAST: usize = 6;

/// A metric that is compared between the backends, and the limits of its agreement.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// The name of the metric, as in [`crate::batch::METRICS`].
    pub metric: &'static str,
    /// The resolution of the Linux backend. Values that differ by at most the resolution are treated as equal.
    pub resolution: Resolution,
    /// The difference of two means, in the metric's unit, up to which they agree in any case.
    pub allowance: f64,
}

/// The largest difference of values that are treated as equal.
#[derive(Clone, Copy, Debug)]
pub enum Resolution {
    /// An absolute bound, in the metric's unit.
    Absolute(f64),
    /// A bound as a share of the larger one of both samples' medians, from 0 to 1.
    Relative(f64),
}

/// The compared metrics. In a valid run on Linux, at least 99 % of the emulator's frames are at most 2 ms late. Packets
/// are counted exactly. A goodput is as precise as its flow's duration.
pub const COMPARED: [Compared; 4] = [
    Compared { metric: "outage_ms", resolution: Resolution::Absolute(2.0), allowance: 20.0 },
    Compared { metric: "longest_stall_ms", resolution: Resolution::Absolute(2.0), allowance: 20.0 },
    Compared { metric: "goodput_kbps", resolution: Resolution::Relative(0.01), allowance: 0.0 },
    Compared { metric: "lost_packets", resolution: Resolution::Absolute(0.0), allowance: 1.0 },
];

/// The scenarios that `wayfare agree` compares if the command names none. The scenarios of [`legs`] follow.
pub const SCENARIOS: [&str; 5] =
    ["first", "mobile-ip/download", "cellular-ip/udp-loss", "sigma/handoff", "indirect-tcp/handoff-time"];

/// Returns the names of all legs of `wayfare compare`, or an error if the built-in benchmark is invalid.
pub fn legs() -> Result<Vec<String>, ScenarioError> {
    Ok(course()?.legs.iter().map(|leg| leg.name.clone()).collect())
}

/// The verdict on a metric, or on a scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Agreement {
    /// The distance and the means are within the limits.
    Agrees,
    /// Fewer than [`LEAST`] runs of a backend are valid. Or fewer than [`LEAST`] of its valid runs have the metric, but
    /// the shares of runs with the metric differ by at most [`DISTANCE`] between the backends.
    Inconclusive,
    /// The distance or the means are outside the limits, or the shares of runs with the metric differ by more than
    /// [`DISTANCE`].
    Differs,
}

impl Agreement {
    /// Returns the verdict as one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Inconclusive => "inconclusive",
            Self::Differs => "differs",
        }
    }
}

/// The comparison of one metric of one scenario. In each array, the first value is the simulator's, the second Linux's.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the metric, as in [`crate::batch::METRICS`]. If the scenario has several kinds of handoffs, the kind
    /// follows after a dot.
    pub metric: String,
    /// The numbers of valid runs with this metric: simulator, Linux.
    pub n: [usize; 2],
    /// The medians of the valid runs, in the metric's unit: simulator, Linux. `None` if not measured.
    pub medians: [Option<f64>; 2],
    /// The means on which the verdict depends: the simulator at the phases of the valid Linux runs, then Linux. In the
    /// metric's unit; `None` if not measured.
    pub means: [Option<f64>; 2],
    /// Linux's median minus the simulator's, with its 95 % confidence interval. `None` if a backend has fewer than six
    /// values.
    pub difference: Option<Difference>,
    /// The Kolmogorov-Smirnov distance of all valid runs, from 0 to 1. `None` unless both backends have the metric.
    pub distance: Option<f64>,
    /// The Kolmogorov-Smirnov distance on which the verdict depends, from 0 to 1. The simulator has the phases of the
    /// valid Linux runs, and values within the resolution are treated as equal. `None` unless both have the metric.
    pub judged_distance: Option<f64>,
    /// The verdict on this metric.
    pub agreement: Agreement,
    /// With [`Agreement::Differs`], a note if the shares of runs with the metric differ by more than [`DISTANCE`], or
    /// if the numbers of infinite outages differ. Otherwise `None`.
    pub note: Option<String>,
}

/// The results of both backends for a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the scenario.
    pub scenario: String,
    /// The numbers of requested runs: simulator, Linux.
    pub runs: [u64; 2],
    /// The numbers of valid runs: simulator, Linux.
    pub counted: [usize; 2],
    /// The invalid runs in the simulator and on Linux, with the reasons.
    pub untrusted: [Vec<NotCounted>; 2],
    /// A row for each compared metric that a backend has measured.
    pub rows: Vec<Row>,
    /// The worst verdict of the rows, or [`Agreement::Inconclusive`] if there is no row.
    pub agreement: Agreement,
    /// The cause of the difference between the backends. `None` if there is no difference, or if the cause is not
    /// known.
    pub cause: Option<&'static str>,
}

/// Evaluates the runs of a scenario on both backends.
pub fn report(measured: &Measured) -> Report {
    report_of(measured.scenario(), [&measured.sim, &measured.same, &measured.linux])
}

/// Evaluates three samples of a scenario: of the simulator, of the simulator at the phases of the Linux runs, and of
/// Linux.
pub(crate) fn report_of(scenario: &str, [sim, same, linux]: [&Sample; 3]) -> Report {
    let samples = Samples { sim, linux, same: &same.at_the_runs_of(linux) };
    let mut names = sim.names();
    names.extend(linux.names().into_iter().filter(|name| !sim.names().contains(name)));
    let compared = |name: &str| COMPARED.iter().find(|compared| compared.metric == metric(name));
    let rows: Vec<Row> =
        names.into_iter().filter_map(|name| Some(row(compared(name)?, name, &samples))).collect();
    let agreement = rows.iter().map(|row| row.agreement).max().unwrap_or(Agreement::Inconclusive);
    Report {
        scenario: scenario.to_owned(),
        runs: [sim.of, linux.of],
        counted: [sim.counted(), linux.counted()],
        untrusted: [sim.untrusted(), linux.untrusted()],
        rows,
        agreement,
        cause: (agreement == Agreement::Differs).then(|| cause(scenario)).flatten(),
    }
}

/// The evaluated samples. `same`: the simulator at the phases of the valid Linux runs.
struct Samples<'a> {
    sim: &'a Sample,
    linux: &'a Sample,
    same: &'a Sample,
}

fn row(compared: &Compared, name: &str, samples: &Samples<'_>) -> Row {
    let [sim, linux, same] = [samples.sim, samples.linux, samples.same].map(|sample| sample.values(name));
    let all = [&sim, &linux];
    let (agreement, note) = verdict(compared, name, samples);
    Row {
        metric: name.to_owned(),
        n: all.map(Vec::len),
        medians: all.map(|values| stats::median(values)),
        means: [&same, &linux].map(|values| stats::mean(values)),
        difference: stats::median_difference(&linux, &sim),
        distance: stats::ks_distance(&sim, &linux),
        judged_distance: compared.distance(&same, &linux),
        agreement,
        note,
    }
}

/// Returns the verdict on the metric `name` of the samples in the order of [`report_of`]. A metric that is not compared
/// is inconclusive.
pub(crate) fn about(name: &str, [sim, same, linux]: [&Sample; 3]) -> Agreement {
    let samples = Samples { sim, linux, same: &same.at_the_runs_of(linux) };
    let compared = COMPARED.iter().find(|compared| compared.metric == metric(name));
    compared.map_or(Agreement::Inconclusive, |compared| verdict(compared, name, &samples).0)
}

/// Returns the verdict on a metric, and the note of [`Row::note`].
fn verdict(compared: &Compared, name: &str, samples: &Samples<'_>) -> (Agreement, Option<String>) {
    let all = [samples.sim, samples.linux, samples.same];
    if all.iter().any(|sample| sample.counted() < LEAST) {
        return (Agreement::Inconclusive, None);
    }
    let [same, linux] = [samples.same, samples.linux].map(|sample| sample.values(name));
    if let Some(alone) = only_one_has(samples, [&same, &linux]) {
        return (Agreement::Differs, Some(alone));
    }
    let agreement = compared.judge(&same, &linux);
    (agreement, never(&same, &linux).filter(|_| agreement == Agreement::Differs))
}

/// Returns a note if the shares of runs that have the metric differ by more than [`DISTANCE`].
fn only_one_has(samples: &Samples<'_>, values: [&Vec<f64>; 2]) -> Option<String> {
    let of = [samples.same, samples.linux].map(Sample::counted);
    let [same, linux] = values.map(Vec::len);
    let shares = [same as f64 / of[0] as f64, linux as f64 / of[1] as f64];
    match (same, linux) {
        _ if (shares[0] - shares[1]).abs() <= DISTANCE => None,
        (0, _) => Some("not measured in the simulator".to_owned()),
        (_, 0) => Some("not measured on Linux".to_owned()),
        _ => Some(format!(
            "measured in {same} of {} runs in the simulator, in {linux} of {} on Linux",
            of[0], of[1]
        )),
    }
}

/// Returns a note if the numbers of infinite values differ.
fn never(same: &[f64], linux: &[f64]) -> Option<String> {
    let without_end = |values: &[f64]| values.iter().filter(|value| value.is_infinite()).count();
    match (without_end(same), without_end(linux)) {
        (a, b) if a == b => None,
        (0, all) if all == linux.len() => Some("never on Linux".to_owned()),
        (all, 0) if all == same.len() => Some("never in the simulator".to_owned()),
        (a, b) => Some(format!(
            "never in {a} of {} runs in the simulator, in {b} of {} on Linux",
            same.len(),
            linux.len()
        )),
    }
}

impl Compared {
    /// Returns the Kolmogorov-Smirnov distance with values within the resolution treated as equal, or `None` if a
    /// sample is empty.
    fn distance(&self, a: &[f64], b: &[f64]) -> Option<f64> {
        let resolution = match self.resolution {
            Resolution::Absolute(resolution) => resolution,
            Resolution::Relative(share) => {
                share * [a, b].into_iter().filter_map(stats::median).fold(0.0, f64::max)
            }
        };
        stats::ks_distance_within(a, b, resolution)
    }

    /// Returns the verdict on two samples.
    fn judge(&self, a: &[f64], b: &[f64]) -> Agreement {
        if a.len().min(b.len()) < LEAST {
            return Agreement::Inconclusive;
        }
        let near = stats::mean(a).zip(stats::mean(b)).is_some_and(|(a, b)| are_near([a, b], self.allowance));
        let distance = self.distance(a, b).unwrap_or(1.0);
        if distance <= DISTANCE + 1e-9 && near { Agreement::Agrees } else { Agreement::Differs }
    }
}

/// Returns whether two means agree. An infinite mean (of values with an infinite outage) agrees only with an infinite
/// mean.
fn are_near([a, b]: [f64; 2], allowance: f64) -> bool {
    if a.is_infinite() || b.is_infinite() {
        return a.is_infinite() && b.is_infinite();
    }
    let apart = (a - b).abs();
    apart <= allowance || apart <= SHARE * a.abs().max(b.abs())
}

/// Known causes of differences, by the start of the scenario's name.
const CAUSES: [(&str, &str); 1] = [(
    "compare/indirect-tcp/gap/bulk",
    "on Linux a segment of the relay has PSH if the relay has no more data at that time; the mobile host's kernel \
     acknowledges each segment with PSH (tcp_measure_rcv_mss), and these acknowledgments take 2 % of the channel; in the \
     simulator the mobile host acknowledges every second segment",
)];

fn cause(scenario: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(name, _)| scenario.starts_with(name)).map(|(_, cause)| *cause)
}

#[cfg(test)]
mod tests;
