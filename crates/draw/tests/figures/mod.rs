//! Tests of figures: their CSV equals committed text, and their drawings are well-formed, stable and finite.

mod distribution;
mod samples;
mod sequence;
mod svg;
mod time;

use draw::{Axis, Point, PointFigure, Series, Style, Whisker};
use svg::{assert_sound, save};

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
                    Point { x: 3.0, y: 0.125, whisker: None },
                    Point { x: f64::NAN, y: 1.0, whisker: None },
                ],
            },
            Series {
                name: "hard".into(),
                style: Style::Linux,
                points: vec![Point {
                    x: 3.0,
                    y: 0.1,
                    whisker: Some(Whisker { lo: 0.05, hi: 0.2, is_range: false }),
                }],
            },
        ],
        ..empty_points()
    };
    let expected = "\
series,source,\"RTT, path (ms)\",loss,low,high,kind of low and high
hard,published,3,0.125,,,
hard,linux,3,0.1,0.05,0.2,interval
";
    assert_eq!(figure.csv(), expected);
    assert_sound(&figure.svg());
}

fn series(name: &str, style: Style, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let points = points.into_iter().map(|(x, y)| Point { x, y, whisker: None }).collect();
    Series { name: name.into(), style, points }
}

fn attribute(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// Two series with the same points: the markers of one series must be larger, so that the other does not hide them.
#[test]
fn of_series_that_coincide_the_lower_is_larger_and_no_point_leaves_its_x() {
    let figure = |second: f64| {
        let one = |name: &str, y: f64| series(name, Style::Simulator, [0.0, 50.0].map(|x| (x, y + x)));
        PointFigure { series: vec![one("20ms", 10.0), one("100ms", second)], ..empty_points() }.svg()
    };
    let (same, apart) = (figure(10.0), figure(90.0));
    let of = |svg: &str, colour: &str| {
        let circles = svg.lines().filter(|line| line.starts_with("<circle") && line.contains(colour));
        let places = circles.map(|line| (attribute(line, "cx"), attribute(line, "r")));
        places.skip(1).collect::<Vec<_>>() // the first is the legend's
    };
    for (svg, radius) in [(&same, 7.0), (&apart, 4.0)] {
        let (below, above) = (of(svg, "#0072b2"), of(svg, "#d55e00"));
        assert_eq!(below.len(), 2);
        let same = |one: f64, other: f64| (one - other).abs() < 1e-6;
        let nested =
            |(a, b): (&(f64, f64), &(f64, f64))| same(a.0, b.0) && same(a.1, radius) && same(b.1, 4.0);
        assert!(below.iter().zip(&above).all(nested), "{svg}");
    }
    assert!(same.contains("Larger markers belong to a series") && !apart.contains("Larger markers"));
    assert_sound(&same);
}

/// Of two coinciding published lines, one has its dashes in the gaps of the other. The dashes in the legend are
/// visible.
#[test]
fn published_lines_that_coincide_are_both_seen() {
    let zero = |name| series(name, Style::Published, [(0.0, 0.0), (9.0, 0.0)]);
    let svg = PointFigure { series: vec![zero("25/s"), zero("50/s")], ..empty_points() }.svg();
    let lines = |start: &str| {
        let dashed =
            svg.lines().filter(|line| line.starts_with(start) && line.contains("stroke-dasharray=\"5 5\""));
        dashed.map(str::to_owned).collect::<Vec<_>>()
    };
    let paths = lines("<path");
    assert!(paths.len() == 2 && !paths[0].contains("dashoffset") && paths[1].contains("dashoffset=\"5\""));
    for key in lines("<line") {
        let (from, to) = (attribute(&key, "x1"), attribute(&key, "x2"));
        assert!(to - from > 2.0 * (5.0 + 10.0), "a dash and a gap on both sides of the ring: {key}");
    }
}

#[test]
fn a_range_is_dotted_and_says_so() {
    let svg = |is_range| {
        let whisker = Some(Whisker { lo: 1.0, hi: 3.0, is_range });
        let points = vec![Point { x: 0.0, y: 2.0, whisker }];
        let series = vec![Series { name: "a".into(), style: Style::Simulator, points }];
        PointFigure { series, ..empty_points() }.svg()
    };
    let [range, interval] = [true, false].map(svg);
    let words = "too few values for an interval";
    assert!(range.contains("stroke-dasharray=\"1.5 2.5\"") && range.contains(words));
    assert!(!interval.contains("stroke-dasharray=\"1.5 2.5\"") && !interval.contains(words));
}

/// Bars that are shorter than the markers cannot be seen, so the figure does not explain them.
#[test]
fn a_range_below_a_marker_is_not_explained_as_a_bar() {
    let point = |x, y| {
        let whisker = Some(Whisker { lo: y - 0.1, hi: y, is_range: true });
        Point { x, y, whisker }
    };
    let points = vec![point(0.0, 20.0), point(1.0, 70.0)];
    let series = vec![Series { name: "a".into(), style: Style::Simulator, points }];
    let svg = PointFigure { series, ..empty_points() }.svg();
    assert!(
        !svg.contains("dotted bar") && svg.contains("differ by less than the size of its marker"),
        "{svg}"
    );
}

#[test]
fn categories_are_named_below_the_axis() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let series = vec![series("a", Style::Simulator, [(0.0, 3.0), (2.0, 5.0)])];
    let x = Axis::of_names("movement", names(&["lcs", "ecs", "pm-eager"]));
    let figure = PointFigure { x, series, ..empty_points() };
    let svg = figure.svg();
    save("categories", &svg);
    assert_sound(&svg);
    for name in ["lcs", "ecs", "pm-eager"] {
        assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 1, "{name}");
    }
    assert!(!svg.contains(">0.5</text>") && svg.contains(">movement</text>"));
    assert!(figure.csv().contains("a,simulator,pm-eager,5"), "{}", figure.csv());
    // Long names are in two rows, and are cut there.
    let long = |number: usize| format!("{number} {}", "a long value of a key ".repeat(3));
    let x = Axis::of_names("key", (0..8).map(long).collect());
    let svg = PointFigure { x, ..figure }.svg();
    save("long-categories", &svg);
    assert!(svg.contains("...</text>") || svg.contains("…</text>"), "{svg}");
}

#[test]
fn both_backends_are_beside_their_x_and_one_alone_is_at_it() {
    let of = |styles: &[Style]| {
        let series = styles.iter().map(|style| series("a", *style, [(0.0, 0.0), (1.0, 1.0)])).collect();
        let svg = PointFigure { series, ..empty_points() }.svg();
        let dots = svg.lines().filter(|line| line.starts_with("<circle") && line.contains("r=\"4\""));
        dots.map(|line| attribute(line, "cx")).nth(1).unwrap()
    };
    let (alone, beside) = (of(&[Style::Simulator]), of(&[Style::Simulator, Style::Linux]));
    assert!((alone - beside - 4.0).abs() < 0.01, "{alone} and {beside}");
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
            let points = vec![
                Point { x, y, whisker: Some(Whisker { lo: y, hi: x, is_range: true }) },
                Point { x: y, y: x, whisker: None },
            ];
            let series = [Style::Simulator, Style::Linux, Style::Published];
            let series = series.map(|style| Series { name: "odd".into(), style, points: points.clone() });
            assert_sound(&PointFigure { series: series.to_vec(), ..empty_points() }.svg());
        }
    }
}

#[test]
fn on_an_axis_of_decades_each_power_of_ten_has_the_same_room() {
    let points =
        [(100.0, 0.5), (1_000.0, 50.0), (10_000.0, 5_000.0)].map(|(x, y)| Point { x, y, whisker: None });
    let series = vec![Series { name: "speed".into(), style: Style::Simulator, points: points.to_vec() }];
    let axis = |label: &str| Axis::new(label, "").in_decades();
    let figure = PointFigure { x: axis("hosts"), y: axis("speed"), series, ..empty_points() };
    let svg = figure.svg();
    assert_sound(&svg);
    let circles = svg.lines().filter(|line| line.contains("<circle") && line.contains("r=\"4\""));
    let at = |line: &str, key: &str| -> f64 {
        line.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    // The first circle belongs to the legend.
    let places: Vec<[f64; 2]> = circles.map(|line| ["cx", "cy"].map(|key| at(line, key))).skip(1).collect();
    assert_eq!(places.len(), 3, "{svg}");
    for axis in 0..2 {
        let gaps = [places[1][axis] - places[0][axis], places[2][axis] - places[1][axis]];
        assert!(gaps[0].abs() > 50.0 && (gaps[0] - gaps[1]).abs() < 0.5, "{places:?}");
    }
    assert!(svg.contains(">1\u{202f}000<"), "{svg}");
    assert!(figure.csv().contains("speed,simulator,10000,5000,,,"), "the numbers stay what they are");
}
