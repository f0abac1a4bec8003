//! The signal strength of each cell over time at the radios of a mobile host.

use super::error::{ScenarioError, Source};
use super::path::{self, Propagation};
use super::{Host, Point, Scenario};
use link::SignalCourse;
use std::collections::BTreeMap;
use wire::{Cell, Instant, Rng};

/// Returns the course that a host's radios share. `None` if the host has neither a `course` nor a `path`, and so
/// hears every cell all the time.
pub(crate) fn course(
    source: &Source<'_>,
    scenario: &Scenario,
    name: &str,
    host: &Host,
    seed: u64,
) -> Result<Option<SignalCourse>, ScenarioError> {
    let (mut course, heard) = (SignalCourse::default(), heard(source, scenario, name, host, seed)?);
    for (cell, points) in &heard {
        let wrong = |problem: &str| source.at_path(&format!("host.{name}.course.{cell}"), problem);
        let number = cell.parse().ok().filter(|_| scenario.cell.contains_key(cell)).ok_or_else(|| {
            let cells: Vec<&str> = scenario.cell.keys().map(String::as_str).collect();
            wrong(&format!("there is no cell `{cell}`; there are: {}", cells.join(", ")))
        })?;
        if points.is_empty() || !points.is_sorted_by_key(|point| point.0) {
            return Err(wrong(
                "must be a list of at least one point, in the order of time, for example [[\"0s\", -60], [\"5s\", -90]]",
            ));
        }
        if points.iter().any(|point| !(-130..=0).contains(&point.1)) {
            return Err(wrong("each strength must be from -130 to 0 (dBm)"));
        }
        let points = points.iter().map(|point| (Instant::ZERO + point.0, point.1)).collect();
        course = course.with(Cell(number), points);
    }
    Ok((!heard.is_empty()).then_some(course))
}

/// Returns the key `course` of the host. If the host has a `path`, the course is computed from the path and the
/// positions of the base stations.
fn heard(
    source: &Source<'_>,
    scenario: &Scenario,
    name: &str,
    host: &Host,
    seed: u64,
) -> Result<BTreeMap<String, Vec<Point>>, ScenarioError> {
    let Some(way) = &host.path else { return Ok(host.course.clone()) };
    let wrong = |key: &str, problem: &str| source.at_path(&format!("host.{name}.{key}"), problem);
    if !host.course.is_empty() {
        return Err(wrong("path", "a host has a `path` or a `course`, not both"));
    }
    let rng = Rng::new(seed).fork(name);
    let stops = way
        .stops(scenario.duration, &rng)
        .map_err(|(key, problem)| wrong(format!("path.{key}").trim_end_matches('.'), &problem))?;
    let signal = Propagation { at_1m: scenario.radio.at_1m, exponent: scenario.radio.exponent };
    let hear = |(cell, spec): (&String, &super::Cell)| match spec.position {
        Some(station) => Ok((cell.clone(), path::course(&stops, station, signal, scenario.duration))),
        None => Err(source.at_path(
            &format!("cell.{cell}"),
            &format!("`{name}` has a `path`, so every cell needs a `position`, for example [0.0, 50.0]"),
        )),
    };
    scenario.cell.iter().map(hear).collect()
}
