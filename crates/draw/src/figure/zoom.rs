//! The surroundings of a handoff, large enough to see single packets.

use super::overview::draw_marks;
use super::panel::{Frame, LABEL, SMALL, upright};
use super::sequence::{Band, HANDOFF, Handoff, Mark, MarkKind, RIGHT, SequenceFigure};
use crate::scale::{Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width};
use std::cmp::Reverse;
use wire::{Duration, Instant};

/// More panels than this nobody looks at.
const PANELS: usize = 8;
const HEIGHT: f64 = 190.0;
/// Between two panels side by side, tick labels not counted.
const GUTTER: f64 = 24.0;
/// The strip above the frame that names the owners.
const RIBBON: f64 = 16.0;

/// Draws the panels from `top` down; returns where they end and how many handoffs have none.
pub(super) fn draw_all(svg: &mut Svg, figure: &SequenceFigure, top: f64) -> (f64, usize) {
    let chosen = choose(&figure.handoffs);
    let left = figure.left();
    let columns = if chosen.len() > 1 { 2 } else { 1 };
    let mut y = top;
    for row in chosen.chunks(columns) {
        for (column, index) in row.iter().enumerate() {
            let width = if columns == 1 { RIGHT - left } else { (RIGHT - left - GUTTER - left) / 2.0 };
            let place = left + column as f64 * (width + GUTTER + left);
            Zoom::new(figure, *index).draw(svg, [place, width], y);
        }
        y += 22.0 + RIBBON + HEIGHT + 54.0;
    }
    (y - 8.0, figure.handoffs.len() - chosen.len())
}

/// The handoffs with the longest outages, in the order of time.
fn choose(handoffs: &[Handoff]) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..handoffs.len()).collect();
    chosen.sort_by_key(|index| Reverse(handoffs[*index].outage())); // stable: of equal outages, the earlier
    chosen.truncate(PANELS);
    chosen.sort_unstable();
    chosen
}

struct Zoom<'a> {
    figure: &'a SequenceFigure,
    index: usize,
    from: Instant,
    to: Instant,
    marks: Vec<Mark>,
}

impl<'a> Zoom<'a> {
    fn new(figure: &'a SequenceFigure, index: usize) -> Self {
        let (begin, end) = figure.handoffs[index].span();
        let (from, to) = (begin - figure.margin, end + figure.margin);
        let marks = figure.marks.iter().filter(|mark| (from..=to).contains(&mark.at)).copied().collect();
        Self { figure, index, from, to, marks }
    }

    fn handoff(&self) -> &'a Handoff {
        &self.figure.handoffs[self.index]
    }

    /// Milliseconds after the handoff.
    fn ms(&self, at: Instant) -> f64 {
        let zero = self.handoff().at;
        at.since(zero).as_secs_f64() * 1e3 - zero.since(at).as_secs_f64() * 1e3
    }

    fn draw(&self, svg: &mut Svg, [left, width]: [f64; 2], top: f64) {
        let x = Range::of([self.ms(self.from), self.ms(self.to)]);
        let packets = Range::of(self.marks.iter().map(|mark| mark.packet as f64));
        let y = if self.marks.is_empty() { packets } else { packets.padded(0.06) };
        let frame = Frame { left, top: top + 22.0 + RIBBON, width, height: HEIGHT, x, y };
        self.headline(svg, &frame, top);
        for band in self.figure.handoffs.iter().flat_map(|handoff| &handoff.outage) {
            self.band(svg, &frame, *band);
        }
        let y_ticks = Ticks::whole(y, 5);
        frame.axes(svg, &Ticks::new(x, if width > 600.0 { 12 } else { 7 }), &y_ticks);
        frame.labels(svg, "time after the handoff (ms)", &self.figure.axis, self.figure.label_room());
        self.lines(svg, &frame);
        if self.marks.is_empty() {
            frame.remark(svg, "no packets");
        }
        for kind in MarkKind::ALL {
            let marks = self.marks.iter().filter(|mark| mark.kind == kind);
            draw_marks(svg, self.figure, &frame, marks.map(|mark| (self.ms(mark.at), mark)), 1.0);
        }
    }

    /// Which handoff, when, and for how long nothing came; shortened by its own label when the panel is too narrow.
    fn headline(&self, svg: &mut Svg, frame: &Frame, top: f64) {
        let handoff = self.handoff();
        let outage = match handoff.outage() {
            Duration::ZERO => "no outage".to_owned(),
            span => format!("outage {}", milliseconds(span)),
        };
        let rest = format!(" at {:.3} s: {outage}", handoff.at.as_secs_f64());
        let head = format!("{} {}", self.index + 1, handoff.label);
        // Bold runs wider than the estimate's regular.
        let head = fit(&head, LABEL * 1.08, frame.width - text_width(&rest, LABEL * 1.08));
        let place = [frame.left, top + 14.0];
        svg.text(place, Text::new(LABEL, Anchor::Start).bold(), &format!("{head}{rest}"));
    }

    /// A band's strip above the frame with its owner's name, and its light shade within.
    fn band(&self, svg: &mut Svg, frame: &Frame, band: Band) {
        let (from, to) = (band.from.max(self.from), band.to.min(self.to));
        if from >= to {
            return;
        }
        let (left, right) = (frame.px(self.ms(from)), frame.px(self.ms(to)));
        let (colour, width, ribbon) = (band.owner.colour(), right - left, frame.top - RIBBON);
        svg.rect([left, frame.top, width, HEIGHT], &format!(r#"fill="{colour}" fill-opacity="0.22""#));
        let rim = r##"stroke="#ffffff" stroke-width="0.8""##;
        svg.rect([left, ribbon, width, RIBBON], &format!(r#"fill="{colour}" {rim}"#));
        let (name, span) = (band.owner.name(), milliseconds(band.to.since(band.from)));
        let texts = [format!("{name} {span}"), span.replace(" ms", ""), String::new()];
        let text = texts.iter().find(|text| text_width(text, SMALL) + 4.0 <= width);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let place = [left + width / 2.0, ribbon + 12.0];
            svg.text(place, Text::new(SMALL, Anchor::Middle).colour(band.owner.ink()), text);
        }
    }

    /// This handoff's line, and those of others that fall within the panel, each with its number.
    fn lines(&self, svg: &mut Svg, frame: &Frame) {
        for (number, handoff) in (1..).zip(&self.figure.handoffs) {
            let x = self.ms(handoff.at);
            if frame.x.contains(x) {
                let x = frame.px(x);
                svg.line([x, frame.top - RIBBON], [x, frame.bottom()], &upright(HANDOFF));
                let number: String = usize::to_string(&number);
                svg.text([x - 3.0, frame.top + 12.0], Text::new(SMALL, Anchor::End).bold().halo(), &number);
            }
        }
    }
}

/// A span for a narrow place: whole milliseconds, or a decimal where that matters.
fn milliseconds(span: Duration) -> String {
    let ms = span.as_secs_f64() * 1e3;
    if ms < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Owner;

    fn handoff(at: u64, outage: u64) -> Handoff {
        let (from, to) = (Instant::from_millis(at), Instant::from_millis(at + outage));
        Handoff { at: from, label: "hard".into(), outage: vec![Band { owner: Owner::Link, from, to }] }
    }

    #[test]
    fn the_longest_outages_are_enlarged_in_the_order_of_time() {
        let handoffs: Vec<Handoff> = (0..12).map(|index| handoff(index * 1000, index % 4)).collect();
        assert_eq!(choose(&handoffs), [1, 2, 3, 5, 6, 7, 10, 11]);
        assert!(choose(&[]).is_empty());
    }

    #[test]
    fn times_count_from_the_handoff_in_both_directions() {
        let mut figure = SequenceFigure::new("");
        figure.handoffs = vec![handoff(100, 50)];
        let zoom = Zoom::new(&figure, 0);
        assert_eq!((zoom.ms(zoom.from), zoom.ms(zoom.to)), (-100.0, 200.0)); // no time before the run
    }

    #[test]
    fn a_mark_stands_at_its_time() {
        let mut figure = SequenceFigure::new("");
        figure.handoffs = vec![handoff(200, 100)];
        figure.marks =
            vec![Mark { at: Instant::from_millis(250), kind: MarkKind::Received, packet: 1, flow: 0 }];
        let mut svg = Svg::new(500.0);
        Zoom::new(&figure, 0).draw(&mut svg, [50.0, 400.0], 0.0); // from 50 ms to 450 ms: a pixel each
        assert!(svg.finish(300.0, "").contains(r#"<circle cx="250""#));
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(milliseconds(Duration::from_micros(4_250)), "4.2 ms");
        assert_eq!(milliseconds(Duration::from_micros(9_960)), "10 ms");
    }
}
