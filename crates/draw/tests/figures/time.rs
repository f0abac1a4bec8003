//! Tests of figures with values over time.

use crate::figures::samples::ms;
use crate::figures::svg::{assert_sound, save};
use draw::{Axis, Joined, TimeFigure, TimeLine, TimePanel, TimeWindow};
use std::collections::BTreeMap;
use wire::Instant;

fn line(name: &str, joined: Joined, points: impl IntoIterator<Item = (u64, f64)>) -> TimeLine {
    let points = points.into_iter().map(|(at, value)| (ms(at), value)).collect();
    TimeLine { name: name.to_owned(), flow: 0, joined, points }
}

fn figure(panels: Vec<(&str, Vec<TimeLine>)>) -> TimeFigure {
    let panels = panels.into_iter().map(|(label, lines)| TimePanel {
        axis: Axis::new(label, "ms"),
        lines,
        remark: "this backend does not report it".to_owned(),
        cuts_peaks: false,
    });
    TimeFigure {
        title: "two flows".to_owned(),
        panels: panels.collect(),
        handoffs: vec![(ms(400), "1".to_owned())],
        until: ms(1000),
        windows: Vec::new(),
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
        1,
        "the handoff above the uppermost panel"
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
    assert!(svg.contains("not drawn, but are in the CSV file: 14."));
    assert_eq!(figure.csv().lines().count(), 2_000_001);
}

#[test]
fn one_peak_does_not_flatten_all_else() {
    let values = (0..100).map(|i| (i * 10, if i == 42 { 9000.0 } else { 500.0 }));
    let height = |cuts_peaks: bool| {
        let mut figure = figure(vec![("goodput", vec![line("a", Joined::Steps, values.clone())])]);
        figure.panels[0].cuts_peaks = cuts_peaks;
        let svg = figure.svg();
        assert_sound(&svg);
        assert_eq!(svg.contains(">9000<") && svg.contains("a peak that is cut off"), cuts_peaks, "{svg}");
        let path = svg.lines().find(|line| line.starts_with("<path d=\"M")).unwrap().to_owned();
        let first = path.split(['M', 'L']).nth(1).unwrap().split(' ').nth(1).unwrap().to_owned();
        let frame = svg.lines().find(|line| line.contains("stroke=\"#444444\"")).unwrap();
        let attribute = |name: &str| -> f64 {
            frame.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        (attribute("y") + attribute("height") - first.parse::<f64>().unwrap()) / attribute("height")
    };
    assert!(height(false) < 0.06, "{}", height(false));
    assert!((height(true) - 0.5).abs() < 0.01, "what is common is half of the panel high: {}", height(true));
}

#[test]
fn a_window_has_the_flows_that_it_is_about_alone() {
    let lines = |joined| {
        let mut lines =
            vec![line("a", joined, (0..100).map(|i| (i * 10, 5.0))), line("b", joined, [(0, 9.0)])];
        lines[1].flow = 1;
        lines
    };
    let mut figure = figure(vec![("goodput", lines(Joined::Steps)), ("window", vec![])]);
    let window = TimeWindow {
        title: "2 other".into(),
        from: ms(300),
        until: ms(500),
        flows: vec![0],
        finer: BTreeMap::new(),
        handoff: 0,
    };
    figure.windows = vec![window];
    let svg = figure.svg();
    assert_sound(&svg);
    let (whole, part) = svg.split_once(">2 other<").unwrap();
    let drawn =
        |part: &str, colour: &str| part.matches(&format!("fill=\"none\" stroke=\"{colour}\"")).count();
    assert_eq!([drawn(whole, "#0072b2"), drawn(whole, "#d55e00")], [1, 1]);
    assert_eq!([drawn(part, "#0072b2"), drawn(part, "#d55e00")], [1, 0]);
    assert!(part.contains(">goodput (ms)<") && !part.contains(">window (ms)<"), "no panel without its flow");
    assert!(
        part.contains(">0.30<") && part.contains(">0.50<") && !part.contains(">0.6<"),
        "its own axis of time: {part}"
    );
    // A line is interrupted at `NaN`, without any mark.
    figure.panels[0].lines[0].points.push((ms(995), f64::NAN));
    assert!(!figure.svg().contains("NaN"));
    assert!(whole.contains(">8<") && !part.contains(">8<"), "its own height: {part}");
}

/// Three handoffs of different hosts at nearly the same time, and one at the end of a window.
#[test]
fn a_window_names_its_own_handoff_and_no_label_covers_data_or_leaves_the_frame() {
    let mut figure =
        figure(vec![("goodput", vec![line("a", Joined::Steps, (0..100).map(|i| (i * 10, 5.0)))])]);
    let handoffs = [(300, "1 mobile"), (305, "2 other"), (310, "3 third"), (498, "4 other")];
    figure.handoffs = handoffs.iter().map(|(at, name)| (ms(*at), (*name).to_owned())).collect();
    let window = |handoff| TimeWindow {
        title: "w".into(),
        from: ms(200),
        until: ms(500),
        flows: vec![0],
        finer: BTreeMap::new(),
        handoff,
    };
    figure.windows = (0..4).map(window).collect();
    let svg = figure.svg();
    assert_sound(&svg);
    for (_, name) in handoffs {
        assert_eq!(svg.matches(&format!(">{name}<")).count(), 5, "{name}: in the whole and in each window");
    }
    let attribute = |line: &str, name: &str| -> f64 {
        line.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    let is_label = |line: &&str| handoffs.iter().any(|(_, name)| line.contains(&format!(">{name}<")));
    let frames: Vec<[f64; 2]> = svg
        .lines()
        .filter(|line| line.contains("stroke=\"#444444\""))
        .map(|line| [attribute(line, "y"), attribute(line, "y") + attribute(line, "height")])
        .collect();
    for line in svg.lines().filter(is_label) {
        let y = attribute(line, "y");
        assert!(frames.iter().all(|[top, bottom]| y < *top || *bottom < y), "covers data: {line}");
        assert!(attribute(line, "x") + 55.0 < 1000.0 || line.contains("text-anchor=\"end\""), "{line}");
    }
}

/// Returns the numbers that are written left of the panels from the first occurrence of `from` on.
fn ticks_after(svg: &str, from: &str) -> Vec<String> {
    let at = svg.find(from).unwrap();
    let lines = svg[at..].lines().filter(|line| line.contains("text-anchor=\"end\""));
    lines.map(|line| line.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()).collect()
}

#[test]
fn an_enlarged_panel_of_dots_is_around_the_dots() {
    let places = line("a", Joined::Dots, (0..100).map(|i| (i * 10, 2000.0 + i as f64)));
    let mut figure = figure(vec![("place", vec![places])]);
    let window = TimeWindow {
        title: "near".into(),
        from: ms(400),
        until: ms(500),
        flows: vec![0],
        finer: BTreeMap::new(),
        handoff: 0,
    };
    figure.windows = vec![window];
    let svg = figure.svg();
    save("near", &svg);
    let ticks = ticks_after(&svg, ">near<");
    assert!(ticks.contains(&"2046".to_owned()) && !ticks.contains(&"0".to_owned()), "{ticks:?}");
    assert!(ticks_after(&svg, ">place (ms)<").contains(&"0".to_owned()), "the whole run begins at zero");
}

#[test]
fn counts_have_whole_ticks_and_negative_values_have_a_tick_below_zero() {
    let mut counts =
        figure(vec![("time-outs", vec![line("a", Joined::Steps, [(0, 0.0), (500, 2.0), (900, 2.0)])])]);
    counts.panels[0].axis = Axis::new("time-outs", "");
    let ticks = ticks_after(&counts.svg(), ">time-outs<");
    assert_eq!(ticks, ["0", "1", "2"]);
    let before = line("a", Joined::Dots, (0..100).map(|i| (i * 10, i as f64 * 30.0 - 899.0)));
    let svg = figure(vec![("place", vec![before])]).svg();
    let ticks = ticks_after(&svg, ">place (ms)<");
    assert_eq!(ticks, ["−1000", "0", "1000", "2000"], "the smallest value is above the lower edge");
}

#[test]
fn a_window_draws_its_own_lines_and_the_csv_has_them() {
    let coarse = line("a", Joined::Steps, [(0, 40.0), (5_000, 30.0), (10_000, 40.0)]);
    let mut figure = figure(vec![("goodput", vec![coarse])]);
    let fine = line("a", Joined::Steps, [(5_400, 40.0), (5_500, 7.0), (5_600, 40.0), (5_700, 40.0)]);
    let (title, finer) = ("1 hard".to_owned(), BTreeMap::from([(0, vec![fine])]));
    let window = TimeWindow { title, from: ms(5_400), until: ms(5_700), flows: vec![0], finer, handoff: 0 };
    figure.windows = vec![window];
    let svg = figure.svg();
    assert_sound(&svg);
    let (whole, part) = svg.split_once(">1 hard<").unwrap();
    let corners =
        |part: &str| part.split(" d=\"").nth(1).unwrap().split('"').next().unwrap().matches('L').count();
    assert!(corners(part) > corners(whole), "the window has the shorter bins: {part}");
    let csv = figure.csv();
    assert!(csv.contains("\ngoodput (ms),a,5.000000000,30\n"), "{csv}");
    assert!(csv.contains("\n\"goodput (ms), 1 hard\",a,5.500000000,7\n"), "{csv}");
}
