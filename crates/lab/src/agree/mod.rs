//! Whether both backends give the same results: the distributions of what applications experienced, not the messages.
//!
//! A median alone says nothing: many of these distributions have two modes. So whole distributions are compared, and their
//! means. Two samples of 40 and 12 from one distribution are at a Kolmogorov-Smirnov distance of 0.3 in two of five cases, by
//! chance alone. So the simulator also runs at the very phases of the runs on Linux that count
//! ([`crate::scenario::Repetition`]), and those are judged: what is left is the backends' difference.

mod chance;
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
use crate::compare::course;
use crate::scenario::ScenarioError;
use crate::stats::{self, Difference};

/// The largest distance of Kolmogorov and Smirnov of two distributions that agree.
pub const DISTANCE: f64 = 0.3;
/// How far means may be apart, of the larger one.
pub const SHARE: f64 = 0.2;
/// Fewer runs than this on either backend show nothing.
pub const LEAST: usize = 6;

/// A metric that is compared.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// As in [`crate::batch::METRICS`].
    pub metric: &'static str,
    /// Values that are no further apart than this are the same to the comparison: what the Linux backend can resolve.
    pub resolution: Resolution,
    /// Means no further apart than this agree, in the metric's unit.
    pub allowance: f64,
}

/// What is the same value.
#[derive(Clone, Copy, Debug)]
pub enum Resolution {
    /// In the metric's unit.
    Absolute(f64),
    /// A part of the larger median.
    Relative(f64),
}

/// What is compared. The emulator's frames are up to 2 ms late (a run with later ones is repeated), packets are counted
/// whole, and a goodput is known as well as its flow's length.
pub const COMPARED: [Compared; 4] = [
    Compared { metric: "outage_ms", resolution: Resolution::Absolute(2.0), allowance: 20.0 },
    Compared { metric: "longest_stall_ms", resolution: Resolution::Absolute(2.0), allowance: 20.0 },
    Compared { metric: "goodput_kbps", resolution: Resolution::Relative(0.01), allowance: 0.0 },
    Compared { metric: "lost_packets", resolution: Resolution::Absolute(0.0), allowance: 1.0 },
];

/// The scenarios that have to agree, before those of [`legs`].
pub const SCENARIOS: [&str; 5] =
    ["first", "mobile-ip/download", "cellular-ip/udp-loss", "sigma/handoff", "indirect-tcp/handoff-time"];

/// Every leg of `wayfare compare`.
pub fn legs() -> Result<Vec<String>, ScenarioError> {
    Ok(course()?.legs.iter().map(|leg| leg.name.clone()).collect())
}

/// What was found of a metric, or of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Agreement {
    /// Distance and means are within the limits.
    Agrees,
    /// Too few runs of one backend can be trusted.
    Inconclusive,
    /// Distance or means are not, or one backend alone has values.
    Differs,
}

impl Agreement {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Inconclusive => "inconclusive",
            Self::Differs => "differs",
        }
    }
}

/// One metric of one scenario on both backends; pairs are the simulator's and Linux's.
#[derive(Clone, Debug)]
pub struct Row {
    /// As in [`crate::batch::METRICS`], with the kind of handoff behind a dot if there are several.
    pub metric: String,
    /// Runs that count and have it.
    pub n: [usize; 2],
    /// Medians; `None` where it was not measured.
    pub medians: [Option<f64>; 2],
    /// Means at the same phases: these are judged.
    pub means: [Option<f64>; 2],
    /// Linux's median less the simulator's, with its 95 % interval.
    pub difference: Option<Difference>,
    /// Kolmogorov-Smirnov distance of all values as they are, 0 to 1.
    pub distance: Option<f64>,
    /// That at the same phases, where values within the resolution are equal: this is judged.
    pub judged_distance: Option<f64>,
    /// What it amounts to.
    pub agreement: Agreement,
    /// What one backend alone has, if so.
    pub note: Option<String>,
}

/// Both backends' results of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// Runs that were asked for: simulator, Linux.
    pub runs: [u64; 2],
    /// Runs of each that count.
    pub counted: [usize; 2],
    /// The runs of each that are not to be trusted and do not count: which, and why.
    pub untrusted: [Vec<NotCounted>; 2],
    /// A row for each metric.
    pub rows: Vec<Row>,
    /// The worst of the rows.
    pub agreement: Agreement,
    /// Why it differs, where that is known.
    pub cause: Option<&'static str>,
}

/// Judges what runs on both backends gave.
pub fn report(measured: &Measured) -> Report {
    report_of(measured.scenario(), [&measured.sim, &measured.same, &measured.linux])
}

/// The same of runs that are recorded nowhere: in the simulator, there at the phases of those on Linux, and on Linux.
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

/// What is judged: `same` is what the simulator gave at the phases of the runs on Linux that count.
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

/// What is found about one metric alone, as [`report_of`] finds it.
pub(crate) fn about(name: &str, [sim, same, linux]: [&Sample; 3]) -> Agreement {
    let samples = Samples { sim, linux, same: &same.at_the_runs_of(linux) };
    let compared = COMPARED.iter().find(|compared| compared.metric == metric(name));
    compared.map_or(Agreement::Inconclusive, |compared| verdict(compared, name, &samples).0)
}

/// What a metric amounts to, and what one backend alone has, if so.
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

/// That the parts of the runs that have a metric differ by more than a distance may be, in words.
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

/// That outages end on one backend and not on the other, in words.
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
    /// The Kolmogorov-Smirnov distance where values within the resolution are equal; `None` without values.
    fn distance(&self, a: &[f64], b: &[f64]) -> Option<f64> {
        let resolution = match self.resolution {
            Resolution::Absolute(resolution) => resolution,
            Resolution::Relative(share) => {
                share * [a, b].into_iter().filter_map(stats::median).fold(0.0, f64::max)
            }
        };
        stats::ks_distance_within(a, b, resolution)
    }

    /// Whether two samples agree.
    fn judge(&self, a: &[f64], b: &[f64]) -> Agreement {
        if a.len().min(b.len()) < LEAST {
            return Agreement::Inconclusive;
        }
        let near = stats::mean(a).zip(stats::mean(b)).is_some_and(|(a, b)| are_near([a, b], self.allowance));
        let distance = self.distance(a, b).unwrap_or(1.0);
        if distance <= DISTANCE + 1e-9 && near { Agreement::Agrees } else { Agreement::Differs }
    }
}

/// Whether means agree. Outages that never end make a mean infinite: on both backends, or on none.
fn are_near([a, b]: [f64; 2], allowance: f64) -> bool {
    if a.is_infinite() || b.is_infinite() {
        return a.is_infinite() && b.is_infinite();
    }
    let apart = (a - b).abs();
    apart <= allowance || apart <= SHARE * a.abs().max(b.abs())
}

/// Known causes of differences, by the beginning of the scenario's name.
const CAUSES: [(&str, &str); 1] = [(
    "compare/indirect-tcp/gap/bulk",
    "on Linux the relay's segments carry PSH where its source has nothing more to give at once, and the mobile host's kernel \
     acknowledges each of them (tcp_measure_rcv_mss): 2 % of the channel; the simulator acknowledges every second one",
)];

fn cause(scenario: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(name, _)| scenario.starts_with(name)).map(|(_, cause)| *cause)
}

#[cfg(test)]
mod tests;
