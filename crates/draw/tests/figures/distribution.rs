//! Tests of distribution figures: the positions of their elements, and their texts.

use crate::figures::samples;
use crate::figures::svg::{assert_sound, save};
use draw::{Axis, DistributionFigure, DistributionPanel, Sample, Style};

fn figure(samples: Vec<Sample>) -> DistributionFigure {
    let panel = DistributionPanel { title: String::new(), axis: Axis::new("outage", "ms"), samples };
    DistributionFigure { title: String::new(), panels: vec![panel], caption: String::new() }
}

fn sim(name: &str, values: impl IntoIterator<Item = f64>) -> Sample {
    Sample::new(name, Style::Simulator, values.into_iter().collect())
}

#[test]
fn each_series_says_its_n_median_and_percentiles() {
    let figure = samples::outages();
    let svg = figure.svg();
    save("distribution", &svg);
    assert_sound(&svg);
    assert_eq!(figure.svg(), svg);
    for text in [
        ">n 40, median 217, 5–95 %: 43.5–1273<",
        ">n 12, median 540, 5–95 %: 100–never, 2 never, 1 not measured<",
        ">outage (ms)<",
        ">share of runs<",
        ">Mobile IP, Linux<",
    ] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn backends_are_told_apart_by_dashes_and_published_values_are_lines() {
    let both = |style| figure(vec![sim("a", [1.0, 2.0]), Sample::new("a", style, vec![1.5])]).svg();
    let (sim, linux, published) = (both(Style::Simulator), both(Style::Linux), both(Style::Published));
    assert!(!sim.contains("stroke-dasharray") && !sim.contains("dashed curves"));
    assert!(linux.contains(r#"stroke-dasharray="7 4""#) && linux.contains("dashed curves are runs on Linux"));
    assert!(published.contains(r#"stroke-dasharray="2 3""#) && published.contains(">a, published<"));
}

#[test]
fn a_series_below_another_can_be_seen() {
    let pale = |other: [f64; 3]| {
        figure(vec![sim("hard", [1.0, 2.0, 3.0]), sim("semisoft", other)]).svg().contains("stroke-opacity")
    };
    assert!(pale([1.0, 2.0, 3.0]) && !pale([1.0, 2.0, 9.0]));
}

/// Values that are less than a pixel apart are still steps of the curve, not one step at the end.
#[test]
fn a_dense_curve_keeps_its_slope() {
    let dense = (0..2000).map(|value| f64::from(value) * 0.01);
    let svg = figure(vec![sim("dense", dense.chain([100.0]))]).svg();
    let path = svg.lines().find(|line| line.starts_with("<path")).unwrap();
    assert!(path.matches('L').count() > 100, "{path}");
}

#[test]
fn odd_samples_do_no_harm() {
    let odd =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX, 0.0, -0.0, 1e300, f64::MIN_POSITIVE];
    let mut all: Vec<Vec<f64>> = odd.iter().map(|value| vec![*value]).collect();
    all.extend([odd.to_vec(), Vec::new(), vec![f64::INFINITY; 5], vec![5.0; 5]]);
    for values in all {
        for axis in [Axis::new("", ""), Axis::new("", "").in_decades()] {
            let mut figure = figure(vec![sim("odd", values.clone()), sim("odd", values.clone())]);
            figure.panels[0].axis = axis;
            assert_sound(&figure.svg());
        }
    }
    assert!(figure(Vec::new()).svg().contains("no data"));
    let svg = figure(vec![sim("a", [f64::NAN])]).svg();
    assert!(svg.contains("no data") && svg.contains(">n 0, 1 not measured<"), "{svg}");
}

#[test]
fn a_million_runs_are_a_small_drawing() {
    let many = (0..1_000_000u32).map(|run| f64::from(run % 99_991) * 0.01);
    let svg = figure(vec![sim("many", many)]).svg();
    assert!(svg.len() < 600_000, "{}", svg.len());
    assert!(svg.contains(">n 1000000, "));
}

#[test]
fn the_numbers_are_all_values() {
    let figure = figure(vec![sim("a", [2.0, f64::NAN, f64::INFINITY, 1.5])]);
    let expected = "\
panel,metric,series,source,value
,outage (ms),a,simulator,1.5
,outage (ms),a,simulator,2
,outage (ms),a,simulator,inf
,outage (ms),a,simulator,NaN
";
    assert_eq!(figure.csv(), expected);
}

#[test]
fn a_long_title_of_a_panel_and_a_name_of_a_series_are_not_cut() {
    let mut figure = figure(vec![sim("Mobile IP, TCP, link trigger", [1.0, 2.0])]);
    let title = "handoff latency: time from the cut of the old path until the network has the new path, plus one delay down the \
                 new path";
    title.clone_into(&mut figure.panels[0].title);
    let svg = figure.svg();
    save("long-title", &svg);
    let bold: Vec<&str> = svg.lines().filter(|line| line.contains("font-weight=\"bold\"")).collect();
    let text = |line: &&str| line.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned();
    let lines: Vec<String> = bold.iter().map(text).filter(|text| !text.is_empty()).collect();
    assert_eq!(lines.join(" "), title);
    assert!(lines.len() == 2 && lines.iter().all(|line| line.len() < 110), "{lines:?}");
    assert_eq!(svg.matches(">Mobile IP, TCP, link trigger, simulator</text>").count(), 2, "legend and strip");
}
