//! What the experiments with a satellite have in common: the moves, the points, the evaluation of a run, and its figure.
//!
//! The scenario is `mobile-ip/satellite`: networks A and B are joined by a satellite, and the correspondent is in B. The
//! mobile node notices a move by the silence of its agent. In the words of the paper (Johnson and Bennington, section 4.1):
//! it discards its agent (Dump Reg), sends a request (Start Reg), and gets the home agent's reply (Finish Reg).

pub(super) mod drawing;
pub(super) mod run;

use crate::reproduce::{Check, Kind, Measure, Point, SIM, Trace, settings, stratified};
use recorder::run::Backend;
use wire::Duration;

/// The paper of all experiments with a satellite.
pub(super) const PAPER: &str = "Johnson and Bennington 2000";

/// The names of parameters of points.
pub(super) const MOVE: &str = "move";
pub(super) const VARIATION: &str = "variation";

/// The delay of the satellite link each way, in milliseconds.
pub(super) const SATELLITE_MS: f64 = 256.0;
/// The permitted time beside the satellite link, in milliseconds.
pub(super) const BESIDE_MS: f64 = 100.0;

/// The interval of the agents' advertisements in the scenario.
const INTERVAL: Duration = Duration::from_secs(1);
/// When the move is at the earliest. The download fills its window by then.
const EARLIEST: Duration = Duration::from_millis(4_250);
/// A download whose path has no satellite before the move. It begins later, because it needs less time to fill its window. It
/// is longer, because it is faster.
pub(super) const NEAR: [&str; 2] = ["bulk-client.start=4100ms", "bulk-server.bytes=1600000"];

/// A move of the mobile node from one network to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SatelliteWay {
    /// The name of the move in the labels of points.
    pub(super) name: &'static str,
    /// The host of the agent before the move, and that of the agent after it.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    /// The address of the agent before the move, and that of the agent after it.
    pub(super) previous: &'static str,
    pub(super) agent: &'static str,
}

/// From a foreign network of A to one of B, across the satellite: the paper's main move.
pub(super) const ACROSS: SatelliteWay =
    SatelliteWay { name: "across", from: "a1", to: "b1", previous: "10.2.0.1", agent: "10.3.0.1" };
/// Between two foreign networks of B.
pub(super) const SAME_SIDE: SatelliteWay =
    SatelliteWay { name: "same side", from: "b1", to: "b2", previous: "10.3.0.1", agent: "10.4.0.1" };
/// From the home network in A to a foreign network of B.
pub(super) const LEAVES_HOME: SatelliteWay =
    SatelliteWay { name: "from home", from: "home", to: "b1", previous: "10.1.0.1", agent: "10.3.0.1" };
/// From a foreign network of B to the home network in A.
pub(super) const COMES_HOME: SatelliteWay =
    SatelliteWay { name: "to home", from: "b1", to: "home", previous: "10.3.0.1", agent: "10.1.0.1" };

impl SatelliteWay {
    /// Returns the move of a point.
    pub(super) fn of(point: &Point) -> Option<Self> {
        [ACROSS, SAME_SIDE, LEAVES_HOME, COMES_HOME].into_iter().find(|way| point.has(MOVE, way.name))
    }

    /// Returns whether the path before the move has the satellite.
    const fn begins_far(self) -> bool {
        matches!(self.from.as_bytes(), b"a1" | b"home")
    }
}

/// What the runs of a point have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) way: SatelliteWay,
    /// When the move is at the earliest.
    pub(super) earliest: Duration,
    /// The part of the advertisement interval over which the moves are spread, from its begin.
    pub(super) spread: Duration,
    /// The time from the earliest move to the end of a run.
    pub(super) watched: Duration,
    pub(super) n: usize,
    pub(super) measure: Measure,
    pub(super) trace: Option<Trace>,
}

impl Case {
    /// Returns a point with this label. All points of a name of phases have the same phases, on both backends.
    pub(super) fn point(self, label: &str, kind: Kind, backends: &'static [Backend], set: &[&str]) -> Point {
        let Self { way, earliest, spread, watched, n, measure, trace } = self;
        let mut overrides = settings([
            format!("roam.start={}", way.from),
            format!("duration={}ms", (earliest + watched).as_millis()),
        ]);
        if !way.begins_far() {
            overrides.extend(settings(NEAR));
        }
        overrides.extend(settings(set.iter().copied()));
        let moves = stratified("satellite", n, spread).into_iter().map(|phase| {
            let at = (earliest + phase).as_nanos();
            settings([
                format!("roam.moves=[{{ at = \"{at}ns\", to = \"{}\" }}]", way.to),
                "phase=0s".to_owned(),
            ])
        });
        Point {
            label: label.to_owned(),
            setting: vec![(MOVE, way.name.into())],
            kind,
            backends,
            scenario: "mobile-ip/satellite",
            overrides,
            runs: moves.collect(),
            phases: false,
            n,
            load: 10_000_000,
            published: Vec::new(),
            formula: Vec::new(),
            base: None,
            measure,
            combine: None,
            trace,
        }
    }

    /// Returns a case whose moves are spread over a whole interval of advertisements.
    pub(super) const fn whole(way: SatelliteWay, n: usize, measure: Measure) -> Self {
        let watched = Duration::from_millis(6_750);
        Self { way, earliest: EARLIEST, spread: INTERVAL, watched, n, measure, trace: None }
    }

    /// Returns a variation in the simulator, named after a parameter.
    pub(super) fn varied(self, of: &str, name: &'static str, set: &[&str]) -> Point {
        let mut point = self.point(&format!("{of}, {name}"), Kind::Sensitivity, SIM, set);
        point.setting.push((VARIATION, name.into()));
        point
    }
}

/// Checks that each value is in this range. The value of the check is the one that is farthest from the middle.
pub(super) fn within(values: impl Iterator<Item = f64>, range: std::ops::RangeInclusive<f64>) -> Check {
    let middle = f64::midpoint(*range.start(), *range.end());
    let far = |value: &f64| (value - middle).abs();
    Check::within(values.max_by(|one, other| far(one).total_cmp(&far(other))), range)
}
