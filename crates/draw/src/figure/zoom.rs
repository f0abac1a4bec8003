//! The time around a handoff, enlarged so that single packets are visible: a panel for each flow that the handoff
//! concerns, and at most [`PANELS`] panels.

use super::marks::draw_marks;
use super::panel::{Frame, Key, LABEL, SMALL, legend, upright};
use super::sequence::{
    Band, CUT, Cost, FlowTrace, HANDOFF, Handoff, Mark, MarkKind, NEVER, Noticed, RECOVERED, RIGHT,
    SequenceFigure, milliseconds,
};
use super::steps::Steps;
use crate::scale::{Range, Ticks};
use crate::svg::{Anchor, Svg, Text, fit, text_width, wrap};
use std::cmp::Reverse;
use wire::{Duration, Instant};

/// The largest number of zoom panels.
const PANELS: usize = 12;
const HEIGHT: f64 = 190.0;
/// The gap between two panels side by side in pixels, without tick labels.
const GUTTER: f64 = 24.0;
/// The height of the strip above the frame that names the owners, in pixels.
const RIBBON: f64 = 16.0;
/// The longest time that a panel shows after the cut and the outage, not counting the margin. A text names what is later: losses,
/// the recovery, and the ends of steps.
const FURTHER: Duration = Duration::from_secs(3);

/// Draws the panels from `top` down. Returns their lower end, and the number of panels for which there was no room.
pub(super) fn draw_all(svg: &mut Svg, figure: &SequenceFigure, top: f64) -> (f64, usize) {
    let all: Vec<Zoom<'_>> = zooms(figure).collect();
    let count = all.len();
    let chosen = choose(all);
    let left_out = count - chosen.len();
    let left = figure.left();
    let columns = if chosen.len() > 1 { 2 } else { 1 };
    let mut y = top;
    for row in chosen.chunks(columns) {
        let width = if columns == 1 { RIGHT - left } else { (RIGHT - left - GUTTER - left) / 2.0 };
        let head = row.iter().map(|zoom| zoom.head(width)).fold(0.0, f64::max);
        let mut bottom = y;
        for (column, zoom) in row.iter().enumerate() {
            let place = left + column as f64 * (width + GUTTER + left);
            bottom = bottom.max(zoom.draw(svg, [place, width], y, head));
        }
        y = bottom + 8.0;
    }
    (y - 8.0, left_out)
}

/// Returns a panel for each handoff and each flow that the handoff concerns, in the order of the figure's handoffs. A
/// flow that was not measured has a panel only if no flow of the handoff was measured.
pub(super) fn zooms(figure: &SequenceFigure) -> impl Iterator<Item = Zoom<'_>> {
    let shown = |handoff: &Handoff, cost: &Cost| {
        let is_idle = |cost: &Cost| cost.noticed == Noticed::NotMeasured;
        !is_idle(cost) || handoff.costs.iter().all(is_idle)
    };
    let pairs =
        figure.handoffs.iter().flat_map(|handoff| handoff.costs.iter().map(move |cost| (handoff, cost)));
    let pairs = pairs.filter(move |(handoff, cost)| shown(handoff, cost));
    pairs.filter_map(move |(handoff, cost)| Zoom::new(figure, handoff, cost))
}

/// Returns the panel of the flow with the longest outage in the handoff `number`. `None` if this handoff has no panel.
pub(super) fn worst<'a>(zooms: impl Iterator<Item = Zoom<'a>>, number: usize) -> Option<Zoom<'a>> {
    let of = zooms.filter(|zoom| zoom.handoff.number == number);
    of.reduce(|one, other| if rank(other.cost) > rank(one.cost) { other } else { one })
}

/// Chooses the panels with the longest outages, and keeps their order. An outage that never ended is the longest.
fn choose(all: Vec<Zoom<'_>>) -> Vec<Zoom<'_>> {
    let mut chosen: Vec<(usize, Zoom<'_>)> = all.into_iter().enumerate().collect();
    // The sort is stable: of equal outages, the earlier is chosen.
    chosen.sort_by_key(|(_, zoom)| Reverse(rank(zoom.cost)));
    chosen.truncate(PANELS);
    chosen.sort_by_key(|(place, _)| *place);
    chosen.into_iter().map(|(_, zoom)| zoom).collect()
}

fn rank(cost: &Cost) -> (u8, Duration) {
    match cost.noticed {
        Noticed::Never => (3, Duration::ZERO),
        Noticed::Outage => (2, cost.outage()),
        Noticed::Nothing => (1, Duration::ZERO),
        Noticed::NotMeasured => (0, Duration::ZERO),
    }
}

/// The panel of one handoff and one flow.
#[derive(Clone)]
pub(super) struct Zoom<'a> {
    figure: &'a SequenceFigure,
    flow: &'a FlowTrace,
    handoff: &'a Handoff,
    cost: &'a Cost,
    /// The parts of the outage in the order of time. Adjacent parts with the same owner are merged.
    parts: Vec<Band>,
    from: Instant,
    to: Instant,
    /// The minimum height of the y axis, in the unit of the flow's places.
    height: f64,
    /// The height of the frame, in pixels.
    tall: f64,
    /// Whether texts explain the losses and the end of the outage.
    explained: bool,
}

impl<'a> Zoom<'a> {
    fn new(figure: &'a SequenceFigure, handoff: &'a Handoff, cost: &'a Cost) -> Option<Self> {
        let flow = figure.flows.get(cost.flow)?;
        let (begin, mut end) = handoff.span(cost);
        let limit = end + FURTHER;
        if cost.noticed == Noticed::Never {
            // After an outage without end, the panel shows the next packets, for at most `FURTHER`.
            let last = flow.marks.last().map_or(end, |mark| mark.at);
            end = end.max(last).min(limit);
        }
        end = end.max(cost.recovered.unwrap_or(end).min(limit));
        // The panel also shows later losses that belong to the handoff, for at most `FURTHER`.
        end = end.max(cost.lost.iter().max().copied().unwrap_or(end).min(limit));
        // A step that begins in the panel, for example a registration, also ends in it. So do the steps that follow it, until the
        // next handoff of the host.
        let next = figure.next_after(handoff);
        for step in &figure.steps {
            let is_own = step.host == handoff.host && step.to >= begin && step.from < next;
            if is_own && step.from <= end + figure.margin {
                end = end.max(step.to.min(limit));
            }
        }
        Some(Self {
            figure,
            flow,
            handoff,
            cost,
            parts: merged(&cost.outage),
            from: begin - figure.margin,
            to: end + figure.margin,
            height: 0.0,
            tall: HEIGHT,
            explained: false,
        })
    }

    /// Returns this panel, taller, and with texts that explain it.
    pub(super) const fn explained(mut self) -> Self {
        (self.explained, self.tall) = (true, HEIGHT * 1.5);
        self
    }

    /// Returns the times that the panel shows before and after the handoff.
    pub(super) fn reach(&self) -> (Duration, Duration) {
        (self.handoff.at.since(self.from), self.to.since(self.handoff.at))
    }

    /// Returns this panel, which then shows the times `before` and `after` the handoff.
    pub(super) fn reaching(mut self, (before, after): (Duration, Duration)) -> Self {
        (self.from, self.to) = (self.handoff.at - before, self.handoff.at + after);
        self
    }

    /// Returns this panel with a y axis of at least `height`, a value of [`Self::tallness`].
    pub(super) const fn tall(mut self, height: f64) -> Self {
        self.height = height;
        self
    }

    /// Returns the difference of the largest and the smallest place in the panel, in the unit of the flow's places.
    pub(super) fn tallness(&self) -> f64 {
        let places = || self.marks().map(|mark| mark.place);
        places().max().unwrap_or(0).abs_diff(places().min().unwrap_or(0)) as f64
    }

    fn marks(&self) -> impl Iterator<Item = &'a Mark> {
        self.flow.marks.iter().filter(|mark| (self.from..=self.to).contains(&mark.at))
    }

    /// Returns the time after the handoff in milliseconds; negative before it.
    fn ms(&self, at: Instant) -> f64 {
        let zero = self.handoff.at;
        at.since(zero).as_secs_f64() * 1e3 - zero.since(at).as_secs_f64() * 1e3
    }

    /// Draws the panel from `top` down, with `head` of room for its heading, and returns its lower end.
    pub(super) fn draw(&self, svg: &mut Svg, [left, width]: [f64; 2], top: f64, head: f64) -> f64 {
        let x = Range::of([self.ms(self.from), self.ms(self.to)]);
        let scale = self.flow.scale();
        let places = self.marks().map(|mark| mark.place as f64 / scale);
        let tight = Range::of_places(places);
        let short = (self.height / scale - (tight.hi - tight.lo)).max(0.0);
        let y = if self.marks().next().is_none() {
            tight
        } else {
            Range { hi: tight.hi + short, ..tight }.padded(0.06)
        };
        let frame = Frame { left, top: top + head + RIBBON, width, height: self.tall, x, y };
        self.headline(svg, [left, width], top);
        for band in &self.parts {
            let (name, span) = (band.owner.name(), milliseconds(band.to.since(band.from)));
            self.band(
                svg,
                &frame,
                *band,
                [band.owner.colour(), band.owner.ink()],
                &[format!("{name} {span}"), span.replace(" ms", "")],
            );
        }
        if self.cost.noticed == Noticed::Never {
            let whole = Band { owner: super::Owner::Unexplained, from: self.handoff.cut, to: self.to };
            let texts = ["no new data until the flow or the run ended".to_owned(), "never".to_owned()];
            self.band(svg, &frame, whole, [NEVER, "#111111"], &texts);
        }
        let (x_ticks, y_ticks) = (Ticks::new(x, if width > 600.0 { 12 } else { 7 }), Ticks::whole(y, 5));
        frame.grid(svg, &x_ticks, &y_ticks);
        frame.y_ticks(svg, &y_ticks);
        frame.y_label(svg, self.flow.axis(), self.flow.label_room());
        let steps = self.steps();
        let below = steps.draw(svg, &frame, &x_ticks, |at| self.ms(at));
        below.x_ticks(svg, &x_ticks);
        below.x_label(svg, "time after the handoff (ms)");
        self.lines(svg, &frame);
        if self.marks().next().is_none() {
            frame.remark(svg, "no packets of this flow");
        }
        for kind in MarkKind::ALL {
            let marks = self.marks().filter(|mark| mark.kind == kind);
            draw_marks(svg, self.flow, &frame, marks.map(|mark| (self.ms(mark.at), mark)), 1.0);
        }
        if self.explained {
            self.explain(svg, &frame);
        }
        let later = self.later(&steps);
        if !later.is_empty() {
            let style = Text::new(SMALL, Anchor::End).halo().colour("#222222");
            let text = fit(&format!("later: {}", later.join(", ")), SMALL, width - 8.0);
            svg.text([frame.right() - 4.0, frame.top + 26.0], style, &text);
        }
        below.bottom() + 46.0
    }

    /// Returns the steps of this panel's host, and the events of the scenario, that are in the panel.
    fn steps(&self) -> Steps<'a> {
        Steps::of(self.figure, |step| {
            let is_here = step.host.is_empty() || step.host == self.handoff.host;
            is_here && step.to >= self.from && step.from <= self.to
        })
    }

    /// Returns what belongs to the handoff and is later than the panel, as texts with times after the handoff.
    fn later(&self, steps: &Steps<'_>) -> Vec<String> {
        let late = |at: Instant| (at > self.to).then(|| format!("{:.0} ms", self.ms(at)));
        let next = self.figure.next_after(self.handoff);
        let own = steps.all().filter(|step| step.host == self.handoff.host && step.from < next);
        let ends = own.filter_map(|step| Some(format!("end of {} at {}", step.name, late(step.to)?)));
        let recovered = self.cost.recovered.and_then(late).map(|at| format!("recovery at {at}"));
        let lost = match self.cost.lost.iter().filter(|at| **at > self.to).count() {
            0 => None,
            1 => Some("1 lost packet".to_owned()),
            more => Some(format!("{more} lost packets")),
        };
        ends.chain(recovered).chain(lost).collect()
    }

    /// Draws texts about the losses and the first new data, each with a line to the marks. The texts are at the lower
    /// right, where few marks are: later data are further up.
    fn explain(&self, svg: &mut Svg, frame: &Frame) {
        let place =
            |mark: &Mark| [frame.px(self.ms(mark.at)), frame.py(mark.place as f64 / self.flow.scale())];
        let line = r##"stroke="#222222" stroke-width="0.9""##;
        let text = Text::new(LABEL, Anchor::End).halo();
        let right = frame.right() - 6.0;
        let lost: Vec<&Mark> = self.marks().filter(|mark| mark.kind == MarkKind::Lost).collect();
        let all = self.cost.lost.len();
        if let Some(middle) = lost.get(lost.len() / 2).filter(|_| all > 0) {
            let what = if all == 1 { "packet" } else { "packets" };
            let words = format!("{all} {what} lost");
            let from = [right, frame.bottom() - 28.0];
            svg.line([right - text_width(&words, LABEL) / 2.0, from[1] - 12.0], place(middle), line);
            svg.text(from, text, &words);
        }
        let Some(end) = self.parts.last().map(|band| band.to) else { return };
        let arrived = self.marks().filter(|mark| mark.kind == MarkKind::Received && mark.at <= end);
        if let Some(first) = arrived.last() {
            let [x, y] = place(first);
            let after = milliseconds(self.cost.outage());
            let words = format!("new data again, {after} after the cut");
            let from = [right, frame.bottom() - 10.0];
            svg.line([right - text_width(&words, LABEL) - 3.0, from[1] - 4.0], [x, y], line);
            svg.text(from, text, &words);
        }
    }

    /// Returns the height of the heading in a panel of this width.
    pub(super) fn head(&self, width: f64) -> f64 {
        self.headline(&mut Svg::new(0.0), [0.0, width], 0.0)
    }

    /// Draws the heading: the handoff with its host and time, and the effect on the flow. Below are the name of the
    /// flow, if the figure has several, and the parts of the outage. Returns the lower end of the heading.
    fn headline(&self, svg: &mut Svg, [left, width]: [f64; 2], top: f64) -> f64 {
        let mut y = top;
        let mut lines = |text: &str, style: Text, estimate: f64, height: f64| {
            for line in wrap(text, estimate, width) {
                y += height;
                svg.text([left, y], style, &line);
            }
        };
        // Bold text is wider than the estimate for regular text.
        let text = format!("{}: {}", self.handoff.name(), self.cost.text());
        lines(&text, Text::new(LABEL, Anchor::Start).bold(), LABEL * 1.08, LABEL + 3.0);
        if self.figure.flows.len() > 1 {
            let style = Text::new(SMALL, Anchor::Start).colour("#555555");
            lines(&self.flow.name, style, SMALL, SMALL + 4.0);
        }
        let part = |band: &Band| {
            let span = milliseconds(band.to.since(band.from));
            (Key::Band(band.owner.colour()), format!("{} {span}", band.owner.name()))
        };
        let parts: Vec<(Key, String)> = self.parts.iter().map(part).collect();
        legend(svg, &parts, [left, left + width], y + 3.0) + 5.0
    }

    /// Draws a band: a strip above the frame, with the first of `texts` that fits, and a light shade within the frame.
    fn band(
        &self,
        svg: &mut Svg,
        frame: &Frame,
        band: Band,
        [colour, ink]: [&'static str; 2],
        texts: &[String],
    ) {
        let (from, to) = (band.from.max(self.from), band.to.min(self.to));
        if from >= to {
            return;
        }
        let (left, right) = (frame.px(self.ms(from)), frame.px(self.ms(to)));
        let (width, ribbon) = (right - left, frame.top - RIBBON);
        svg.rect([left, frame.top, width, frame.height], &format!(r#"fill="{colour}" fill-opacity="0.22""#));
        let rim = r##"stroke="#ffffff" stroke-width="0.8""##;
        svg.rect([left, ribbon, width, RIBBON], &format!(r#"fill="{colour}" {rim}"#));
        if let Some(text) = texts.iter().find(|text| text_width(text, SMALL) + 4.0 <= width) {
            let place = [left + width / 2.0, ribbon + 12.0];
            svg.text(place, Text::new(SMALL, Anchor::Middle).colour(ink), text);
        }
    }

    /// Draws a line with a label for each handoff of this panel's host, and for its cut if the cut is later.
    /// Draws a line where the flow recovered from this panel's handoff.
    fn lines(&self, svg: &mut Svg, frame: &Frame) {
        let mut line = |at: Instant, colour: &'static str, text: &str| {
            let x = self.ms(at);
            if frame.x.contains(x) {
                let x = frame.px(x);
                svg.line([x, frame.top - RIBBON], [x, frame.bottom()], &upright(colour));
                let style = Text::new(SMALL, Anchor::End).bold().halo().colour(colour);
                svg.text([x - 3.0, frame.top + 12.0], style, text);
            }
        };
        let same_host = |other: &&Handoff| other.host == self.handoff.host;
        for other in self.figure.handoffs.iter().filter(same_host) {
            let is_this = self.explained && other.number == self.handoff.number;
            let name = if is_this { "handoff".to_owned() } else { other.number.to_string() };
            line(other.at, HANDOFF, &name);
            if other.cut > other.at {
                line(other.cut, CUT, "cut");
            }
        }
        if let Some(at) = self.cost.recovered {
            line(at, RECOVERED, "");
        }
    }
}

/// Returns the parts of an outage. Adjacent parts with the same owner are merged.
fn merged(bands: &[Band]) -> Vec<Band> {
    let mut parts: Vec<Band> = Vec::new();
    for band in bands {
        match parts.last_mut() {
            Some(last) if last.owner == band.owner && last.to == band.from => last.to = band.to,
            _ => parts.push(*band),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Counts, Owner, Step};

    fn handoff(number: usize, at: u64, outage: u64) -> Handoff {
        let (from, to) = (Instant::from_millis(at), Instant::from_millis(at + outage));
        let outage = vec![Band { owner: Owner::Link, from, to }];
        let cost = Cost { flow: 0, noticed: Noticed::Outage, outage, recovered: None, lost: Vec::new() };
        Handoff { number, host: "m".into(), at: from, cut: from, label: "hard".into(), costs: vec![cost] }
    }

    fn figure(handoffs: Vec<Handoff>, marks: Vec<Mark>) -> SequenceFigure {
        let flow = FlowTrace { name: String::new(), counts: Counts::Datagrams, paths: Vec::new(), marks };
        SequenceFigure { handoffs, flows: vec![flow], ..SequenceFigure::new("") }
    }

    fn step(name: &str, host: &str, from: u64, to: u64) -> Step {
        let [from, to] = [from, to].map(Instant::from_millis);
        Step { from, to, host: host.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn the_longest_outages_are_enlarged_in_the_order_of_time() {
        let handoffs = (0..18u8).map(|i| handoff(i.into(), u64::from(i) * 1000, u64::from(i % 4))).collect();
        let figure = figure(handoffs, Vec::new());
        let numbers = |zooms: Vec<Zoom<'_>>| zooms.iter().map(|zoom| zoom.handoff.number).collect::<Vec<_>>();
        assert_eq!(numbers(choose(zooms(&figure).collect())), [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15]);
        assert!(choose(Vec::new()).is_empty());
    }

    #[test]
    fn times_count_from_the_handoff_in_both_directions() {
        let figure = figure(vec![handoff(1, 100, 50)], Vec::new());
        let zoom = zooms(&figure).next().unwrap();
        assert_eq!((zoom.ms(zoom.from), zoom.ms(zoom.to)), (-100.0, 200.0)); // no time before the run
    }

    #[test]
    fn a_mark_is_at_its_time() {
        let mark = Mark { at: Instant::from_millis(250), kind: MarkKind::Received, place: 1, path: 0 };
        let figure = figure(vec![handoff(1, 200, 100)], vec![mark]);
        let mut svg = Svg::new(500.0);
        zooms(&figure).next().unwrap().draw(&mut svg, [50.0, 400.0], 0.0, 30.0); // from 50 ms to 450 ms: a pixel each
        assert!(svg.finish(300.0, "", "").contains(r#"<circle cx="250""#));
    }

    #[test]
    fn a_panel_reaches_to_the_last_packet_that_the_handoff_lost() {
        let mut handoff = handoff(1, 1000, 100);
        handoff.costs[0].lost = [1010, 1400].map(Instant::from_millis).to_vec();
        let figure = figure(vec![handoff], Vec::new());
        assert_eq!(zooms(&figure).next().map(|zoom| zoom.to), Some(Instant::from_millis(1550)));
    }

    #[test]
    fn a_panel_reaches_to_the_recovery_but_not_for_ever() {
        let end = |recovered: u64| {
            let mut handoff = handoff(1, 1000, 100);
            handoff.costs[0].recovered = Some(Instant::from_millis(recovered));
            let figure = figure(vec![handoff], Vec::new());
            zooms(&figure).next().map(|zoom| zoom.to).unwrap()
        };
        assert_eq!(end(1500), Instant::from_millis(1650));
        assert_eq!(end(60_000), Instant::from_millis(4250));
    }

    /// The outage ends after 100 ms. The discovery, and the registration that follows it, last longer. The renewal is later.
    #[test]
    fn a_panel_reaches_to_the_end_of_a_registration_and_names_a_later_end() {
        let panel = |registered: u64| {
            let mut figure = figure(vec![handoff(1, 1000, 100)], Vec::new());
            figure.steps = vec![
                step("discovery", "m", 1005, 1600),
                step("cut", "", 1100, 9000),
                step("registration", "other", 1100, 9000),
                step("registration", "m", 1600, registered),
                step("registration", "m", registered + 1000, registered + 1100),
            ];
            let zoom = zooms(&figure).next().unwrap();
            let mut svg = Svg::new(700.0);
            zoom.draw(&mut svg, [50.0, 600.0], 0.0, 30.0);
            (zoom.to.0 / 1_000_000, svg.finish(400.0, "", ""))
        };
        let (to, text) = panel(1900);
        assert_eq!(to, 2050, "the whole registration, and the margin");
        assert!(text.contains(">300 ms<") && !text.contains("later:"), "{text}");
        let (to, text) = panel(60_000);
        assert_eq!(to, 4250, "the limit, and the margin");
        assert!(text.contains("later: end of registration at 59000 ms<"), "{text}");
    }

    /// The host moves each second. Each registration ends shortly before the next handoff, whose own registration begins soon.
    #[test]
    fn a_panel_leaves_the_steps_of_the_next_handoff_to_its_panel() {
        let handoffs = [1, 2, 3, 4, 5].map(|number| handoff(number, number as u64 * 1000, 16));
        let mut figure = figure(handoffs.to_vec(), Vec::new());
        figure.handoffs[1].host = "other".into();
        figure.steps =
            [1, 3, 4, 5].map(|at| step("registration", "m", at * 1000 + 10, at * 1000 + 915)).to_vec();
        figure.steps[2].to = Instant::from_millis(60_000);
        let panels: Vec<(u64, String)> = zooms(&figure)
            .map(|zoom| {
                let mut svg = Svg::new(700.0);
                zoom.draw(&mut svg, [50.0, 600.0], 0.0, 30.0);
                (zoom.to.0 / 1_000_000, svg.finish(400.0, "", ""))
            })
            .collect();
        assert_eq!((panels[0].0, panels[2].0), (2065, 4065), "the own registration, and the margin");
        assert!(
            !panels[0].1.contains("later:") && !panels[2].1.contains("later:"),
            "the longest step is of 4"
        );
        assert_eq!(panels[3].0, 7166, "the limit, and the margin");
        assert!(panels[3].1.contains("later: end of registration at 56000 ms<"), "{}", panels[3].1);
    }
}
