//! Figures from outside: their numbers as committed text, their drawings as well-formed, stable and finite.

#![cfg(test)]

mod distribution;
mod samples;
mod sequence;
mod svg;
mod time;

use draw::{Axis, Point, PointFigure, Series, Style};
use svg::assert_sound;

fn empty_points() -> PointFigure {
    let axis = || Axis::new("", "");
    PointFigure { title: String::new(), x: axis(), y: axis(), series: Vec::new(), caption: String::new() }
}

#[test]
fn the_numbers_of_points() {
    let figure = PointFigure {
        x: Axis::new("RTT, path", "ms"),
        y: Axis::new("loss", ""),
        series: vec![
            Series {
                name: "hard".into(),
                style: Style::Published,
                points: vec![
                    Point { x: 3.0, y: 0.125, error: None },
                    Point { x: f64::NAN, y: 1.0, error: None },
                ],
            },
            Series {
                name: "hard".into(),
                style: Style::Linux,
                points: vec![Point { x: 3.0, y: 0.1, error: Some((0.05, 0.2)) }],
            },
        ],
        ..empty_points()
    };
    let expected = "\
series,source,\"RTT, path (ms)\",loss,low,high
hard,published,3,0.125,,
hard,linux,3,0.1,0.05,0.2
";
    assert_eq!(figure.csv(), expected);
    assert_sound(&figure.svg());
}

/// What a sweep over two values gives where only one of them matters: one series would hide the other.
#[test]
fn series_that_coincide_stand_side_by_side() {
    let figure = |second: f64| {
        let one = |name: &str, y: f64| Series {
            name: name.into(),
            style: Style::Simulator,
            points: [0.0, 50.0].map(|x| Point { x, y: y + x, error: None }).to_vec(),
        };
        PointFigure { series: vec![one("20ms", 10.0), one("100ms", second)], ..empty_points() }.svg()
    };
    let side_by_side = |svg: &str| svg.contains("side by side");
    let columns = |svg: &str| {
        let places = svg.split("cx=\"").skip(1).filter_map(|rest| rest.split('"').next());
        places.collect::<std::collections::BTreeSet<_>>().len()
    };
    let (same, apart) = (figure(10.0), figure(90.0));
    assert!(side_by_side(&same) && !side_by_side(&apart));
    assert_eq!(columns(&same), columns(&apart) + 2, "two values of x, and two series at each");
    assert_sound(&same);
}

#[test]
fn drawings_are_stable() {
    let losses = samples::losses();
    assert_sound(&losses.svg());
    assert_eq!(losses.svg(), losses.svg());
}

#[test]
fn nothing_to_draw_is_drawn_as_such() {
    let svg = empty_points().svg();
    assert_sound(&svg);
    assert!(svg.contains("no data"));
}

#[test]
fn odd_numbers_do_no_harm() {
    let values = [f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, -0.0, f64::MIN_POSITIVE, 1e300];
    for x in values {
        for y in values {
            let points = vec![Point { x, y, error: Some((y, x)) }, Point { x: y, y: x, error: None }];
            let series = [Style::Simulator, Style::Linux, Style::Published];
            let series = series.map(|style| Series { name: "odd".into(), style, points: points.clone() });
            assert_sound(&PointFigure { series: series.to_vec(), ..empty_points() }.svg());
        }
    }
}

#[test]
fn on_an_axis_of_decades_each_power_of_ten_has_the_same_room() {
    let points =
        [(100.0, 0.5), (1_000.0, 50.0), (10_000.0, 5_000.0)].map(|(x, y)| Point { x, y, error: None });
    let series = vec![Series { name: "speed".into(), style: Style::Simulator, points: points.to_vec() }];
    let axis = |label: &str| Axis::new(label, "").in_decades();
    let figure = PointFigure { x: axis("hosts"), y: axis("speed"), series, ..empty_points() };
    let svg = figure.svg();
    assert_sound(&svg);
    let circles = svg.lines().filter(|line| line.contains("<circle") && line.contains("r=\"4\""));
    let at = |line: &str, key: &str| -> f64 {
        line.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    // The first is the legend's.
    let places: Vec<[f64; 2]> = circles.map(|line| ["cx", "cy"].map(|key| at(line, key))).skip(1).collect();
    assert_eq!(places.len(), 3, "{svg}");
    for axis in 0..2 {
        let gaps = [places[1][axis] - places[0][axis], places[2][axis] - places[1][axis]];
        assert!(gaps[0].abs() > 50.0 && (gaps[0] - gaps[1]).abs() < 0.5, "{places:?}");
    }
    assert!(svg.contains(">1\u{202f}000<"), "{svg}");
    assert!(figure.csv().contains("speed,simulator,10000,5000,,"), "the numbers stay what they are");
}
