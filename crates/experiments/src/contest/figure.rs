//! The figure of the median outages, divided by cause.

use super::carry_out::Comparison;
use super::measure::{Metric, OUTAGE, OWNERS};
use super::rows::{Row, rows};
use super::runs::runs;
use crate::drawn::whisker;
use crate::reproduce::Measured;
use draw::{Axis, Bar, BarFigure, BarGroup, Owner};

const CAPTION: &str = "A bar and its dot show the median outage of n runs, each at a different phase. The colors show the \
     parts of the outage by owner, in the order of a handoff. The parts are those of the run with the median outage; for an even \
     n, the means of the two middle runs. The text at the right is the median, the 95 % interval or range, and n. All groups of \
     one move have the same scale.";

/// Returns the figure as SVG: a group for each move and workload, and in it a bar for each protocol under test and
/// backend.
pub fn svg(comparison: &Comparison) -> String {
    figure(comparison).svg()
}

fn figure(comparison: &Comparison) -> BarFigure {
    let course = comparison.course;
    let all = rows(comparison);
    let mut groups = Vec::new();
    for (scale, each) in course.moves.iter().enumerate() {
        for workload in &course.workloads {
            let here = |row: &&Row| row.r#move == each.name && row.workload == workload.name;
            let bars = all.iter().filter(here).filter(|row| row.metric == OUTAGE);
            groups.push(BarGroup {
                title: format!("{}, {}: {}", each.name, workload.name, each.about),
                scale,
                bars: bars.map(|row| bar(comparison, row)).collect(),
            });
        }
    }
    BarFigure {
        title: "Outage of the application after one move".to_owned(),
        axis: Axis::new("outage", "ms"),
        groups,
        caption: CAPTION.to_owned(),
    }
}

fn bar(comparison: &Comparison, row: &Row) -> Bar {
    let title = comparison.course.contenders.iter().find(|contender| contender.name == row.protocol);
    let title = title.map_or(row.protocol.as_str(), |contender| contender.title.as_str());
    let note = match row.median {
        Some(summary) if summary.median.is_infinite() => format!("never, n {}", summary.n),
        Some(summary) => {
            let interval =
                summary.interval_text(1).map_or(String::new(), |interval| format!(" ({interval})"));
            format!("{:.1} ms{interval}, n {}", summary.median, summary.n)
        }
        None => row.absent().to_owned(),
    };
    let finite = row.median.filter(|summary| summary.median.is_finite());
    Bar {
        label: format!("{title} ({})", row.backend.title()),
        parts: finite.map_or(Vec::new(), |_| parts(comparison, row)),
        whisker: finite.and_then(|summary| summary.interval).map(whisker),
        note,
    }
}

/// Returns the parts of the median outage: those of the run with the median outage, or the means of the two middle
/// runs. The sum of these parts is the median outage; the medians of the parts have another sum in general.
fn parts(comparison: &Comparison, row: &Row) -> Vec<(Owner, f64)> {
    let course = comparison.course;
    let leg = course.legs.iter().find(|leg| {
        let [contender, each, workload] = [
            course.contenders.get(leg.contender).map(|contender| &contender.name),
            course.moves.get(leg.r#move).map(|each| &each.name),
            course.workloads.get(leg.workload).map(|workload| &workload.name),
        ];
        [contender, each, workload] == [Some(&row.protocol), Some(&row.r#move), Some(&row.workload)]
    });
    let results = comparison.backends.iter().find(|results| results.backend == row.backend);
    let Some((leg, results)) = leg.zip(results) else { return Vec::new() };
    let value = |run: &Measured, metric: &Metric| run.samples.get(metric.name)?.first().copied();
    let valid = runs(results, leg).filter(|run| run.is_valid());
    let mut sorted: Vec<(f64, &Measured)> =
        valid.filter_map(|run| Some((value(run, &OUTAGE)?, run))).collect();
    sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let middle = [sorted.len().saturating_sub(1) / 2, sorted.len() / 2].map(|place| sorted.get(place));
    let [Some((_, lower)), Some((_, upper))] = middle else { return Vec::new() };
    // `OWNERS` and `Owner::ALL` have the causes in the same order.
    let parts = OWNERS.iter().zip(Owner::ALL).map(|(metric, owner)| {
        let [lower, upper] = [lower, upper].map(|run| value(run, metric).unwrap_or_default());
        (owner, f64::midpoint(lower, upper))
    });
    parts.filter(|(_, part)| *part > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_metrics_name_the_same_owners() {
        let names: Vec<&str> = OWNERS.iter().map(|owner| owner.title).collect();
        assert_eq!(names, Owner::ALL.map(Owner::name));
    }

    #[test]
    fn the_parts_of_a_bar_sum_to_the_median_and_the_workloads_of_a_move_share_a_scale() {
        use super::super::{Repeat, compare, course, select};
        let course = course().unwrap();
        let wanted = select(course, &["mobile-ip".to_owned()]).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let how = crate::reproduce::How {
            jobs: 2,
            linux: None,
            stop: &stop,
            progress: &|_| (),
            repeated: &|_, _| (),
        };
        let comparison =
            compare(course, &wanted, Repeat::Fixed(6), &[recorder::run::Backend::Sim], &how).unwrap();
        let figure = figure(&comparison);
        for (row, bar) in rows(&comparison)
            .iter()
            .filter(|row| row.metric == OUTAGE)
            .zip(figure.groups.iter().flat_map(|g| &g.bars))
        {
            let (median, sum) = (row.median.unwrap(), bar.parts.iter().map(|(_, part)| part).sum::<f64>());
            assert!((sum - median.median).abs() < 1e-6, "{sum} and {median:?}");
            assert!(bar.parts.is_sorted_by_key(|(owner, _)| *owner), "in the order of a handoff");
            assert!(bar.whisker.is_some_and(|whisker| whisker.is_range), "six runs: {bar:?}");
            assert!(bar.note.contains(", n 6"));
        }
        let scales: Vec<usize> = figure.groups.iter().map(|group| group.scale).collect();
        assert_eq!(scales, [0, 0, 1, 1]);
    }
}
