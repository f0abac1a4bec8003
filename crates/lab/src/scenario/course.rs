//! The way of a mobile host, as its radios notice it: how strong each cell is, and when.

use super::error::{ScenarioError, Source};
use super::{Host, Scenario};
use link::Course;
use wire::{Cell, Instant};

/// The course that a host's radios share; `None` for one that hears every cell all the time.
pub(crate) fn course(
    source: &Source<'_>,
    scenario: &Scenario,
    name: &str,
    host: &Host,
) -> Result<Option<Course>, ScenarioError> {
    let mut course = Course::default();
    for (cell, points) in &host.course {
        let wrong = |problem: &str| source.at_path(&format!("host.{name}.course.{cell}"), problem);
        let number = cell.parse().ok().filter(|_| scenario.cell.contains_key(cell)).ok_or_else(|| {
            let cells: Vec<&str> = scenario.cell.keys().map(String::as_str).collect();
            wrong(&format!("no cell `{cell}`; there are: {}", cells.join(", ")))
        })?;
        if points.is_empty() || !points.is_sorted_by_key(|point| point.0) {
            return Err(wrong("give points in the order of time, as [[\"0s\", -60], [\"5s\", -90]]"));
        }
        if points.iter().any(|point| !(-130..=0).contains(&point.1)) {
            return Err(wrong("a strength is a number of dBm, from -130 to 0"));
        }
        let points = points.iter().map(|point| (Instant::ZERO + point.0, point.1)).collect();
        course = course.with(Cell(number), points);
    }
    Ok((!host.course.is_empty()).then_some(course))
}
