//! The claims of the paper about several points, computed for each repetition from the values of the points.

use super::{
    COMPLETION, EFFICIENCY, HOPS, LOST_PER_HOP, LOST_POINTS, MORE_DELAY, SERIES, SHARED, SHARED_LINKS,
};
use super::{VARIATION, WINDOW};
use crate::reproduce::{Point, Samples};
use crate::stats::slope as slope_of;

/// The valid points of an experiment with their values.
type Valid<'a> = &'a [(&'a Point, &'a Samples)];

/// Returns by how many points the efficiency falls per hop: the least-squares slope over the measured hops from 1 to 3,
/// with the opposite sign. The point has the series, and for a variation its name.
pub(super) fn slope(point: &Point, valid: Valid<'_>) -> Result<Samples, String> {
    let metric = if point.has(SERIES, SHARED_LINKS) { SHARED } else { EFFICIENCY };
    let hops: Vec<f64> = valid
        .iter()
        .filter(|(other, _)| is_alike(other, point))
        .filter_map(|(other, _)| other.number(HOPS))
        .filter(|hops| (1.0..=3.0).contains(hops))
        .collect();
    if hops.len() < if is_variation(point) { 2 } else { 3 } {
        return Err("the slope needs valid values of 1, 2 and 3 hops (a variation: of 1 and 3)".to_owned());
    }
    let all: Result<Vec<&[f64]>, String> =
        hops.iter().map(|hops| values(point, valid, *hops, metric)).collect();
    let all = all?;
    let slopes = (0..point.n).filter_map(|run| {
        let line: Vec<(f64, f64)> =
            hops.iter().zip(&all).filter_map(|(hops, values)| Some((*hops, *values.get(run)?))).collect();
        slope_of(&line).map(|slope| -slope)
    });
    Ok(Samples::from([(LOST_PER_HOP, slopes.collect())]))
}

/// Returns by how many points the efficiency of the point's hops is below that without Mobile IP.
pub(super) fn lost_points(point: &Point, valid: Valid<'_>) -> Result<Samples, String> {
    let hops = point.number(HOPS).unwrap_or_default();
    let [none, there] = [0.0, hops].map(|hops| values(point, valid, hops, EFFICIENCY));
    let lost = none?.iter().zip(there?).map(|(none, there)| none - there);
    Ok(Samples::from([(LOST_POINTS, lost.collect())]))
}

/// Returns by how many percent the download takes longer with the point's hops than without Mobile IP.
pub(super) fn more_delay(point: &Point, valid: Valid<'_>) -> Result<Samples, String> {
    let hops = point.number(HOPS).unwrap_or_default();
    let [none, there] = [0.0, hops].map(|hops| values(point, valid, hops, COMPLETION));
    let more = none?.iter().zip(there?).map(|(none, there)| (there / none - 1.0) * 100.0);
    Ok(Samples::from([(MORE_DELAY, more.collect())]))
}

/// Returns by how many percent a download takes longer whose efficiency is 20 points below that of 1 hop.
pub(super) fn lower(point: &Point, valid: Valid<'_>) -> Result<Samples, String> {
    let one = values(point, valid, 1.0, WINDOW)?;
    let more = one.iter().map(|one| (one / (one - 20.0) - 1.0) * 100.0);
    Ok(Samples::from([(MORE_DELAY, more.collect())]))
}

/// Returns the values of a metric at the point of the same series and variation with these hops.
fn values<'a>(point: &Point, valid: Valid<'a>, hops: f64, metric: &'static str) -> Result<&'a [f64], String> {
    let mut alike = valid.iter().filter(|(other, _)| is_alike(other, point) && other.has(HOPS, hops));
    let values = alike.next().and_then(|(_, samples)| samples.get(metric));
    values.map(Vec::as_slice).ok_or_else(|| format!("there are no valid values of {hops} hops"))
}

/// Returns whether `other` was measured in the series and the variation of `point`.
fn is_alike(other: &Point, point: &Point) -> bool {
    let variation = |point: &Point| point.setting.iter().find(|(name, _)| *name == VARIATION).copied();
    let series = |point: &Point| point.setting.iter().find(|(name, _)| *name == SERIES).copied();
    other.combine.is_none() && series(other) == series(point) && variation(other) == variation(point)
}

fn is_variation(point: &Point) -> bool {
    point.setting.iter().any(|(name, _)| *name == VARIATION)
}
