//! The outages of all, by owner.

use super::carry_out::Comparison;
use super::measure::{Metric, OUTAGE, OWNERS};
use super::rows::{Row, rows};
use draw::{Bar, BarFigure, BarGroup, Owner};

/// The drawing: a group for each move and workload, a bar for each contender and world.
pub fn svg(comparison: &Comparison) -> String {
    let course = comparison.course;
    let all = rows(comparison);
    let mut groups = Vec::new();
    for each in &course.moves {
        for workload in &course.workloads {
            let here = |row: &&Row| row.r#move == each.name && row.workload == workload.name;
            let here: Vec<&Row> = all.iter().filter(here).collect();
            let bars = here.iter().filter(|row| row.metric == OUTAGE).map(|row| bar(comparison, row, &here));
            groups.push(BarGroup {
                title: format!("{}, {}: {}", each.name, workload.name, each.about),
                bars: bars.collect(),
            });
        }
    }
    let figure = BarFigure {
        title: "No bytes for the application after one move".to_owned(),
        groups,
        caption: "Medians of each part by itself, which need not sum; behind each bar the median of the whole, its 95 % interval, and n runs. Every group has a scale of its own."
            .to_owned(),
    };
    figure.svg()
}

fn bar(comparison: &Comparison, whole: &Row, here: &[&Row]) -> Bar {
    let title = comparison.course.contenders.iter().find(|contender| contender.name == whole.protocol);
    let title = title.map_or(whole.protocol.as_str(), |contender| contender.title.as_str());
    let same = |row: &&&Row| row.protocol == whole.protocol && row.world == whole.world;
    let part = |metric: &Metric| {
        let row = here.iter().filter(same).find(|row| row.metric == *metric)?;
        Some(row.median?.median)
    };
    // Both lists name the owners in the order of a handoff.
    let parts = OWNERS.iter().zip(Owner::ALL).filter_map(|(metric, owner)| Some((owner, part(metric)?)));
    let note = match whole.median.map(|median| median.median) {
        Some(value) if value.is_infinite() => "never".to_owned(),
        Some(_) => whole.median.map_or(String::new(), |median| {
            let interval = median.interval_text(1).map_or(String::new(), |interval| format!(" ({interval})"));
            format!("{:.1} ms{interval}, n {}", median.median, median.n)
        }),
        None => whole.why_not.as_ref().map_or(String::new(), |_| "cannot".to_owned()),
    };
    Bar { label: format!("{title} ({})", whole.world.name()), parts: parts.collect(), note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_metrics_name_the_same_owners() {
        let names: Vec<&str> = OWNERS.iter().map(|owner| owner.title).collect();
        assert_eq!(names, Owner::ALL.map(Owner::name));
    }
}
