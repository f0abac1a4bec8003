//! The path of a mobile host in metres, and the signal strength of each cell along it.
//!
//! A path is a list of positions, each with a time. Between two positions, the host moves at constant speed. The path
//! is given in the scenario, drawn at random (random waypoints), or read from a file: a movement trace of ns-2
//! (`setdest`), or a CSV with the columns time, x, y in seconds and metres.
//!
//! The signal strength of a base station at distance `d` is `at_1m - 10 * exponent * log10(d / 1 m)`: the log-distance
//! model (Rappaport, Wireless Communications, 4.9.1) without shadowing. A distance below 1 m counts as 1 m. The result
//! is rounded to whole decibels, so that a run does not depend on the floating-point rounding of a machine.

use super::Point;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Deserialize;
use std::path::Path as File;
use toml::{Table, Value};
use wire::{Duration, Rng};

/// The interval between samples of the signal along a path. Radios sample at the same interval.
const STEP: Duration = link::SAMPLING;

/// A position in metres, as x and y.
pub(crate) type Position = [f64; 2];

/// The path of a host. Exactly one of the keys must be given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = as_written)]
pub(crate) struct HostPath {
    /// Positions at given times. Before the first point and after the last one, the host does not move.
    pub(crate) points: Option<Vec<Stop>>,
    /// A path over random waypoints, drawn from the seed of the run.
    pub(crate) random: Option<Random>,
    /// A file beside the scenario: a movement trace of ns-2, or a CSV file with the columns time, x, y in seconds and
    /// metres. The copy of the scenario in the run directory contains its points.
    pub(crate) file: Option<String>,
}

/// Adds to the schema what the Rust type does not show: exactly one of the keys is given, and `node` selects a node
/// of a trace.
fn as_written(schema: &mut Schema) {
    let node = json_schema!({
        "description": "The number of the node in an ns-2 trace [default: 0].", "type": "integer", "minimum": 0, "maximum": u32::MAX,
    });
    if let Some(keys) = schema.pointer_mut("/properties").and_then(|keys| keys.as_object_mut()) {
        keys.insert("node".to_owned(), node.into());
    }
    let one = ["points", "random", "file"].map(|key| serde_json::json!({ "required": [key] }));
    schema.insert("oneOf".to_owned(), one.to_vec().into());
}

/// A time, and a position in metres.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct Stop(
    #[schemars(schema_with = "node::config::schema::span")]
    #[serde(deserialize_with = "node::config::span")]
    pub(crate) Duration,
    pub(crate) f64,
    pub(crate) f64,
);

/// Random waypoints (Johnson and Maltz, "Dynamic source routing in ad hoc wireless networks", 1996). The host moves
/// to a random point of the area at constant speed, pauses, and moves to the next point.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Random {
    /// The width and the height of the area, in metres. One corner is at [0, 0].
    pub(crate) area: Position,
    /// The lowest and the highest speed, in metres per second. The lowest speed must be above zero. Otherwise the
    /// average speed falls over time (Yoon, Liu and Noble, "Random waypoint considered harmful", 2003).
    pub(crate) speed: [f64; 2],
    /// The time that the host pauses at each point.
    #[serde(default, deserialize_with = "node::config::span")]
    #[schemars(schema_with = "node::config::schema::span")]
    pub(crate) pause: Duration,
}

/// The log-distance model of propagation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Propagation {
    /// The signal strength of a base station at a distance of one metre, in dBm.
    pub(crate) at_1m: f64,
    /// The path loss exponent: 2 in free space, up to 6 within buildings.
    pub(crate) exponent: f64,
}

impl Propagation {
    fn strength(self, a: Position, b: Position) -> i16 {
        let distance = libm::hypot(a[0] - b[0], a[1] - b[1]).max(1.0);
        libm::round(self.at_1m - 10.0 * self.exponent * libm::log10(distance)) as i16
    }
}

impl HostPath {
    /// Returns the stops of the path for a run that lasts `duration`. An error has the key and the problem.
    pub(crate) fn stops(&self, duration: Duration, rng: &Rng) -> Result<Vec<Stop>, (&'static str, String)> {
        match (&self.points, &self.random, &self.file) {
            (Some(points), None, None) => {
                let in_order = points.is_sorted_by_key(|stop| stop.0);
                if points.is_empty() || !in_order {
                    let problem = "must be a list of at least one point, in the order of time, for example [[\"0s\", 0.0, 0.0], [\"9s\", 120.0, 0.0]]";
                    return Err(("points", problem.to_owned()));
                }
                if !points.iter().all(|stop| stop.1.is_finite() && stop.2.is_finite()) {
                    return Err((
                        "points",
                        "both coordinates of each point must be finite numbers, in metres".to_owned(),
                    ));
                }
                Ok(points.clone())
            }
            (None, Some(random), None) => {
                random.stops(duration, rng.fork("way")).map_err(|why| ("random", why))
            }
            _ => Err(("", "give exactly one of `points`, `random` and `file`".to_owned())),
        }
    }
}

impl Random {
    fn stops(&self, duration: Duration, mut rng: Rng) -> Result<Vec<Stop>, String> {
        let [slowest, fastest] = self.speed;
        if !(slowest > 0.0 && fastest >= slowest && fastest.is_finite()) {
            return Err(
                "`speed`: must be [lowest, highest] in metres per second, both greater than 0".to_owned()
            );
        }
        if !self.area.iter().all(|side| *side > 0.0 && side.is_finite()) {
            return Err("`area`: must be [width, height] in metres, both greater than 0".to_owned());
        }
        let mut share = || (rng.draw() >> 11) as f64 / (1u64 << 53) as f64;
        let mut at = Duration::ZERO;
        let mut here = [share() * self.area[0], share() * self.area[1]];
        let mut stops = vec![Stop(at, here[0], here[1])];
        while at < duration {
            let next = [share() * self.area[0], share() * self.area[1]];
            let speed = slowest + share() * (fastest - slowest);
            let way = libm::hypot(next[0] - here[0], next[1] - here[1]);
            at += Duration::from_secs_f64((way / speed).min(1e9));
            here = next;
            stops.push(Stop(at, here[0], here[1]));
            if !self.pause.is_zero() {
                at += self.pause;
                stops.push(Stop(at, here[0], here[1]));
            }
        }
        Ok(stops)
    }
}

/// Returns the position at the time `at`. Before the first stop and after the last one, the host does not move.
pub(crate) fn place(stops: &[Stop], at: Duration) -> Position {
    let after = stops.partition_point(|stop| stop.0 <= at);
    let before = after.checked_sub(1).and_then(|index| stops.get(index));
    match (before, stops.get(after)) {
        (Some(a), Some(b)) => {
            let [passed, span] = [at, b.0].map(|until| until.saturating_sub(a.0).as_secs_f64());
            let share = passed / span;
            [a.1 + (b.1 - a.1) * share, a.2 + (b.2 - a.2) * share]
        }
        (Some(only), None) | (None, Some(only)) => [only.1, only.2],
        (None, None) => [0.0, 0.0],
    }
}

/// Returns samples of the signal strength of a base station along a path. Of equal samples in a row, only the first
/// and the last are kept.
pub(crate) fn course(
    stops: &[Stop],
    station: Position,
    signal: Propagation,
    duration: Duration,
) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut at = Duration::ZERO;
    loop {
        let strength = signal.strength(place(stops, at), station);
        let same = |point: &Point| point.1 == strength;
        // The first and the last of several equal samples are kept, as a course is interpolated between its points.
        match points.as_mut_slice() {
            [.., before, last] if same(before) && same(last) => last.0 = at,
            _ => points.push(Point(at, strength)),
        }
        if at >= duration {
            return points;
        }
        at += STEP;
    }
}

// --- files ---------------------------------------------------------------------------------------------------------

/// Replaces each `file` of a path by the points in this file, so that the scenario is complete. File names are
/// relative to `folder`, the folder of the scenario. Returns whether a `file` was replaced. An error has the path of
/// the key, and the problem.
pub(crate) fn inline(document: &mut Table, folder: &File) -> Result<bool, (String, String)> {
    let mut any = false;
    let hosts = document.get_mut("host").and_then(Value::as_table_mut);
    for (name, host) in hosts.into_iter().flat_map(Table::iter_mut) {
        let Some(way) = host.get_mut("path").and_then(Value::as_table_mut) else { continue };
        let Some(file) = way.get("file").and_then(Value::as_str).map(str::to_owned) else { continue };
        let wrong = |problem: String| (format!("host.{name}.path.file"), problem);
        let node =
            match way.get("node").map(|node| node.as_integer().and_then(|node| u32::try_from(node).ok())) {
                None => 0,
                Some(Some(node)) => node,
                Some(None) => {
                    return Err((
                        format!("host.{name}.path.node"),
                        "must be the number of a node in the trace, from 0 to 4294967295".to_owned(),
                    ));
                }
            };
        let text =
            std::fs::read_to_string(folder.join(&file)).map_err(|error| wrong(format!("{file}: {error}")))?;
        let is_csv = File::new(&file).extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let stops = if is_csv { csv(&text) } else { ns2(&text, node) };
        let stops = stops.map_err(|problem| wrong(format!("{file}: {problem}")))?;
        way.retain(|key, _| key != "file" && key != "node");
        way.insert("points".to_owned(), stops.iter().map(written).collect::<Vec<_>>().into());
        any = true;
    }
    Ok(any)
}

fn written(stop: &Stop) -> Value {
    let at = Value::from(format!("{}ns", stop.0.as_nanos()));
    Value::from(vec![at, Value::from(stop.1), Value::from(stop.2)])
}

/// Reads a CSV with the columns time (in seconds), x and y (in metres). The first line may be a heading. Further
/// columns are ignored.
fn csv(text: &str) -> Result<Vec<Stop>, String> {
    let mut stops: Vec<Stop> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let numbers: Vec<Option<f64>> = line.split(',').map(|field| field.trim().parse().ok()).collect();
        match numbers.as_slice() {
            [Some(at), Some(x), Some(y), ..] => stops.push(Stop(seconds(*at, number)?, *x, *y)),
            _ if stops.is_empty() && number == 1 => {}
            _ => {
                return Err(format!(
                    "line {number}: write time, x and y, for example 1.5,20,30; not `{line}`"
                ));
            }
        }
    }
    in_order(stops)
}

/// Reads the movements of one node in an ns-2 movement trace: the initial position, and each `setdest` of the node.
fn ns2(text: &str, node: u32) -> Result<Vec<Stop>, String> {
    let named = format!("$node_({node})");
    let (mut begin, mut orders) = ([0.0, 0.0], Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.contains(&named)) {
        let line = line.replace(['"', ';'], " ");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number_in = |word: &str| -> Result<f64, String> {
            let value: Option<f64> = word.parse().ok().filter(|value: &f64| value.is_finite());
            value.ok_or_else(|| {
                format!("line {number}: `{word}` is not a finite number; write, for example, 12.5")
            })
        };
        match words.as_slice() {
            [_, "set", "X_", x] => begin[0] = number_in(x)?,
            [_, "set", "Y_", y] => begin[1] = number_in(y)?,
            [_, "set", "Z_", _] => {}
            [_, "at", at, _, "setdest", x, y, speed] => {
                orders.push((
                    seconds(number_in(at)?, number)?,
                    [number_in(x)?, number_in(y)?],
                    number_in(speed)?,
                ));
            }
            _ => {
                return Err(format!(
                    "line {number}: allowed: `set` of X_, Y_ or Z_, and `setdest` with x, y and speed; not `{}`",
                    line.trim()
                ));
            }
        }
    }
    if !text.contains(&named) {
        return Err(format!(
            "there is no line about {named}; `node` must be the number of a node in the trace"
        ));
    }
    orders.sort_by_key(|(at, ..)| *at);
    let mut stops = vec![Stop(Duration::ZERO, begin[0], begin[1])];
    for (at, to, speed) in orders {
        // A `setdest` during a movement ends that movement at the current position.
        let here = place(&stops, at);
        stops.retain(|stop| stop.0 <= at);
        stops.push(Stop(at, here[0], here[1]));
        if speed > 0.0 {
            let way = libm::hypot(to[0] - here[0], to[1] - here[1]);
            stops.push(Stop(at + Duration::from_secs_f64((way / speed).min(1e9)), to[0], to[1]));
        }
    }
    in_order(stops)
}

fn seconds(number: f64, line: usize) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| format!("line {line}: `{number}` is not a time in seconds, 0 or greater"))
}

fn in_order(stops: Vec<Stop>) -> Result<Vec<Stop>, String> {
    if stops.is_sorted_by_key(|stop| stop.0) && !stops.is_empty() {
        Ok(stops)
    } else {
        Err("must have at least one position, and all positions in the order of time".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_way_is_walked_evenly_and_stays_at_its_ends() {
        let stops = [Stop(s(1.0), 0.0, 0.0), Stop(s(3.0), 10.0, 20.0)];
        let at = |seconds| place(&stops, s(seconds));
        assert_eq!([at(0.0), at(1.0), at(2.0), at(9.0)], [[0.0, 0.0], [0.0, 0.0], [5.0, 10.0], [10.0, 20.0]]);
    }

    #[test]
    fn strength_falls_by_ten_times_the_exponent_for_every_tenfold_distance() {
        let signal = Propagation { at_1m: -25.0, exponent: 3.0 };
        let heard = |x| signal.strength([0.0, 0.0], [x, 0.0]);
        assert_eq!([heard(0.0), heard(1.0), heard(10.0), heard(100.0)], [-25, -25, -55, -85]);
        assert_eq!(heard(200.0), -94, "the last that a radio makes anything of");
    }

    #[test]
    fn a_course_says_only_what_changes() {
        let stops = [Stop(s(0.0), 1.0, 0.0), Stop(s(2.0), 1.0, 0.0), Stop(s(3.0), 10.0, 0.0)];
        let signal = Propagation { at_1m: -25.0, exponent: 3.0 };
        let points = course(&stops, [0.0, 0.0], signal, s(6.0));
        let first: Vec<_> = points.iter().take(3).map(|point| (point.0, point.1)).collect();
        assert_eq!(first[..2], [(s(0.0), -25), (s(2.0), -25)]);
        assert!(first[2].1 < -25 && points.len() < 16, "{points:?}");
        assert_eq!(points.last().map(|point| (point.0, point.1)), Some((s(6.0), -55)));
    }

    #[test]
    fn random_ways_stay_in_their_area_and_keep_their_speed() {
        let random = Random { area: [100.0, 50.0], speed: [1.0, 5.0], pause: s(2.0) };
        let stops = random.stops(s(600.0), Rng::new(3)).unwrap();
        assert!(stops.iter().all(|stop| (0.0..=100.0).contains(&stop.1) && (0.0..=50.0).contains(&stop.2)));
        for pair in stops.windows(2) {
            let way = libm::hypot(pair[1].1 - pair[0].1, pair[1].2 - pair[0].2);
            let speed = way / pair[1].0.saturating_sub(pair[0].0).as_secs_f64();
            assert!(way < 1e-9 || (0.999..=5.001).contains(&speed), "{speed}");
        }
        let others = random.stops(s(600.0), Rng::new(4)).unwrap();
        assert_ne!(stops[0].1.to_bits(), others[0].1.to_bits(), "another seed, another way");
        let still = Random { speed: [0.0, 1.0], ..random };
        assert!(still.stops(s(1.0), Rng::new(3)).is_err());
    }

    #[test]
    fn a_trace_of_ns_2_is_read_for_one_of_its_nodes() {
        let trace = "$node_(0) set X_ 10.0\n$node_(0) set Y_ 0.0\n$node_(0) set Z_ 0.0\n$node_(1) set X_ 99\n\
                     $ns_ at 2.0 \"$node_(0) setdest 30.0 0.0 10.0\"\n$ns_ at 3.0 \"$node_(0) setdest 20.0 40.0 20.0\";\n";
        let stops = ns2(trace, 0).unwrap();
        let at = |seconds| place(&stops, s(seconds));
        assert_eq!([at(0.0), at(2.5), at(3.0)], [[10.0, 0.0], [15.0, 0.0], [20.0, 0.0]]);
        assert_eq!(
            [at(4.0), at(5.0), at(50.0)],
            [[20.0, 20.0], [20.0, 40.0], [20.0, 40.0]],
            "the second order in midway"
        );
        assert_eq!(
            ns2(trace, 7).unwrap_err(),
            "there is no line about $node_(7); `node` must be the number of a node in the trace"
        );
        assert!(ns2("$node_(0) jumps", 0).unwrap_err().starts_with("line 1: "));
        assert!(ns2("$ns_ at -1 \"$node_(0) setdest 1 1 1\"", 0).unwrap_err().contains("not a time"));
    }

    #[test]
    fn a_csv_may_have_a_heading_and_nothing_else_that_is_no_number() {
        let stops = csv("time,x,y\n0, 1, 2\n\n1.5,3,4\n").unwrap();
        assert_eq!(place(&stops, s(0.75)).map(f64::to_bits), [2.0_f64, 3.0].map(f64::to_bits));
        assert_eq!(
            csv("time,x,y\n0,1,2\n1,a,b\n").unwrap_err(),
            "line 3: write time, x and y, for example 1.5,20,30; not `1,a,b`"
        );
        assert!(csv("1,0,0\n0,0,0\n").unwrap_err().contains("order of time") && csv("").is_err());
    }
}
