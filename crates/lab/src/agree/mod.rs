//! Whether both backends give the same results: the distributions of what applications experienced, not the messages.
//!
//! A median alone says nothing: many of these distributions have two modes. So whole distributions are compared, and their
//! means. Two samples of 40 and 12 from one distribution are at a Kolmogorov-Smirnov distance of 0.3 in two of five cases, by
//! chance alone. So the simulator also runs at the very phases of the runs on Linux that count
//! ([`crate::scenario::Repetition`]), and those are judged: what is left is the backends' difference.

mod text;

pub use text::{csv, figure, text};

use crate::batch::{Collected, metric};
use crate::compare::course;
use crate::scenario::ScenarioError;
use crate::stats::{self, Difference};
use serde::Serialize;

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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// Distance and means are within the limits.
    Agrees,
    /// Too few runs of one backend can be trusted.
    Inconclusive,
    /// Distance or means are not.
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
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// As in [`crate::batch::METRICS`], with the kind of handoff behind a dot if there are several.
    pub metric: String,
    /// Runs that count.
    pub n: [usize; 2],
    /// Medians.
    pub medians: [f64; 2],
    /// Means at the same phases: these are judged.
    pub means: [f64; 2],
    /// Linux's median less the simulator's, with its 95 % interval.
    pub difference: Option<Difference>,
    /// Kolmogorov-Smirnov distance of all values as they are, 0 to 1.
    pub distance: f64,
    /// That at the same phases, where values within the resolution are equal: this is judged.
    pub judged_distance: f64,
    /// What it amounts to.
    pub agreement: Agreement,
}

/// A run that is not to be trusted.
#[derive(Clone, Debug, Serialize)]
pub struct NotCounted {
    /// Its backend and seed.
    pub run: String,
    /// Why, one by one.
    pub doubts: Vec<trace::Doubt>,
}

/// Both backends' results of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// Runs that were asked for: simulator, Linux.
    pub runs: [u64; 2],
    /// The runs of each that are not to be trusted and do not count: which, and why.
    pub untrusted: [Vec<NotCounted>; 2],
    /// A row for each metric.
    pub rows: Vec<Row>,
    /// The worst of the rows.
    pub agreement: Agreement,
    /// Why it differs, where that is known.
    pub cause: Option<&'static str>,
}

/// Compares what runs on both backends gave. `same` is what the simulator gave at the phases of the runs on Linux.
pub fn report(
    scenario: &str,
    runs: [u64; 2],
    untrusted: [Vec<NotCounted>; 2],
    results: [&Collected; 2],
    same: &Collected,
) -> Report {
    let mut names: Vec<String> = Vec::new();
    for name in results.iter().flat_map(|results| results.names()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let compared = |name: &String| COMPARED.iter().find(|compared| compared.metric == metric(name));
    let rows: Vec<Row> = names
        .iter()
        .filter_map(|name| {
            let values = results.map(|results| results.values(name));
            Some(row(compared(name)?, name, values, same.values(name)))
        })
        .collect();
    let agreement = rows.iter().map(|row| row.agreement).max().unwrap_or(Agreement::Inconclusive);
    let cause = (agreement == Agreement::Differs).then(|| cause(scenario)).flatten();
    Report { scenario: scenario.to_owned(), runs, untrusted, rows, agreement, cause }
}

fn row(compared: &Compared, name: &str, values: [&[f64]; 2], same: &[f64]) -> Row {
    let [sim, linux] = values;
    let medians = values.map(|values| stats::median(values).unwrap_or(f64::NAN));
    let means = [same, linux].map(|values| stats::mean(values).unwrap_or(f64::NAN));
    let resolution = match compared.resolution {
        Resolution::Absolute(resolution) => resolution,
        Resolution::Relative(share) => share * medians.into_iter().fold(0.0, f64::max),
    };
    let distance = |sim, resolution| stats::ks_distance_within(sim, linux, resolution).unwrap_or(1.0);
    let judged_distance = distance(same, resolution);
    let agreement = if [sim, linux, same].iter().any(|values| values.len() < LEAST) {
        Agreement::Inconclusive
    } else if judged_distance <= DISTANCE && are_near(means, compared.allowance) {
        Agreement::Agrees
    } else {
        Agreement::Differs
    };
    Row {
        metric: name.to_owned(),
        n: values.map(<[f64]>::len),
        medians,
        means,
        difference: stats::median_difference(linux, sim),
        distance: distance(sim, 0.0),
        judged_distance,
        agreement,
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
    "indirect-tcp/handoff-time",
    "on Linux the pipe of a relay holds a page of 4096 bytes beside what its sockets hold, which moves with the connection, \
     and each exchange with a router takes 1 ms longer through the daemons on its way",
)];

fn cause(scenario: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(name, _)| scenario.starts_with(name)).map(|(_, cause)| *cause)
}

#[cfg(test)]
mod tests;
