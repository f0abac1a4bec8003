//! Values over time from outside.

use crate::samples::ms;
use crate::svg::{assert_sound, save};
use draw::{Axis, Joined, TimeFigure, TimeLine, TimePanel};
use wire::Instant;

fn line(name: &str, joined: Joined, points: impl IntoIterator<Item = (u64, f64)>) -> TimeLine {
    let points = points.into_iter().map(|(at, value)| (ms(at), value)).collect();
    TimeLine { name: name.to_owned(), joined, points }
}

fn figure(panels: Vec<(&str, Vec<TimeLine>)>) -> TimeFigure {
    let panels = panels.into_iter().map(|(label, lines)| TimePanel {
        axis: Axis::new(label, "ms"),
        lines,
        remark: "this backend does not report it".to_owned(),
    });
    TimeFigure {
        title: "two flows".to_owned(),
        panels: panels.collect(),
        handoffs: vec![(ms(400), "1".to_owned())],
        until: ms(1000),
        caption: String::new(),
    }
}

#[test]
fn a_flow_has_one_colour_in_all_panels_and_an_empty_panel_says_why() {
    let goodput = vec![
        line("a", Joined::Steps, (0..10).map(|i| (i * 100, if i == 4 { 0.0 } else { 1000.0 }))),
        line("b", Joined::Steps, (0..10).map(|i| (i * 100, 300.0))),
    ];
    let delay = vec![line("b", Joined::Dots, (0..100).map(|i| (i * 10, 20.0 + i as f64)))];
    let svg = figure(vec![("goodput", goodput), ("delay", delay), ("window", Vec::new())]).svg();
    save("time", &svg);
    assert_sound(&svg);
    let second = "#d55e00";
    assert!(svg.contains(&format!("fill=\"none\" stroke=\"{second}\"")));
    let dots: Vec<&str> = svg.lines().filter(|line| line.contains("stroke-linecap")).collect();
    assert!(dots.len() == 1 && dots[0].contains(second) && dots[0].matches("h0").count() == 100, "{dots:?}");
    assert_eq!(svg.matches(">this backend does not report it<").count(), 1);
    assert_eq!(
        svg.matches("font-weight=\"bold\" stroke=\"#ffffff\"").count(),
        3,
        "the handoff in each panel"
    );
}

#[test]
fn odd_values_and_none_do_no_harm() {
    for value in [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0] {
        for joined in [Joined::Steps, Joined::Dots] {
            let mut figure = figure(vec![("odd", vec![line("a", joined, [(5, value), (5, value)])])]);
            figure.handoffs.push((Instant::NEVER, "2".to_owned()));
            figure.until = Instant::ZERO;
            assert_sound(&figure.svg());
        }
    }
    assert_sound(&figure(Vec::new()).svg());
}

#[test]
fn a_million_values_of_twenty_flows_are_a_small_drawing() {
    let flow = |flow: u64, joined| {
        line(&flow.to_string(), joined, (0..50_000).map(|at| (at / 50, (at * 7919 % 1000) as f64)))
    };
    let lines = |joined| (0..20).map(|number| flow(number, joined)).collect::<Vec<_>>();
    let figure = figure(vec![("steps", lines(Joined::Steps)), ("dots", lines(Joined::Dots))]);
    let svg = figure.svg();
    assert!(svg.len() < 3_000_000, "{}", svg.len());
    assert!(svg.contains("Not drawn: 14 more flows"));
    assert_eq!(figure.csv().lines().count(), 2_000_001);
}
