//! A handoff in several runs side by side, with the same scales: for example the same scenario on both backends.

use super::panel::{caption, legend, title};
use super::sequence::{RIGHT, SequenceFigure, WIDTH};
use super::steps;
use super::zoom::{Zoom, zooms};
use crate::csv::Csv;
use crate::svg::{Anchor, Svg, Text};
use wire::Duration;

/// The largest number of runs beside each other.
const COLUMNS: usize = 2;
const GUTTER: f64 = 20.0;
/// The text below the figure that explains the marks.
const READING: &str = "A ring is a packet that was sent, a dot is its arrival, and a red cross is its loss. Later data are further up. \
     The strip above each panel is the outage, and each colour in it is a cause. All panels have the same scales.";

/// One handoff in several runs, with the most affected flow of each run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SideBySideFigure {
    /// The title above the figure.
    pub title: String,
    /// The runs: the name, for example `simulator`, and the figure of the run.
    pub runs: Vec<(String, SequenceFigure)>,
    /// The number of the handoff in the tables of each run, from 1.
    pub handoff: usize,
    /// The text below the figure.
    pub caption: String,
}

impl SideBySideFigure {
    /// Returns the numbers as CSV: one header, and the rows of each run's CSV with the name of the run as the first
    /// field.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for (index, (name, run)) in self.runs.iter().enumerate() {
            let mut field = Csv::default();
            field.row([name.as_str()]);
            let name = field.finish();
            let name = name.trim_end_matches('\n');
            for (line, numbers) in run.csv().lines().enumerate() {
                if line > 0 || index == 0 {
                    let first = if line == 0 { "run" } else { name };
                    text.extend([first, ",", numbers, "\n"]);
                }
            }
        }
        text
    }

    /// Returns the drawing as SVG. For each run it shows the flow with the longest outage. All panels have the same
    /// time axis and the same height of the y axis.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH);
        let runs: Vec<SequenceFigure> = self.runs.iter().map(|(_, run)| run.sorted()).collect();
        let panels: Vec<Option<Zoom<'_>>> =
            runs.iter().map(|run| super::zoom::worst(zooms(run), self.handoff)).collect();
        let reach = panels.iter().flatten().map(Zoom::reach);
        let reach = reach.fold((Duration::ZERO, Duration::ZERO), |a, b| (a.0.max(b.0), a.1.max(b.1)));
        let panels: Vec<Option<Zoom<'_>>> =
            panels.into_iter().map(|zoom| zoom.map(|zoom| zoom.reaching(reach).explained())).collect();
        let tall = panels.iter().flatten().map(Zoom::tallness).fold(0.0, f64::max);

        let top = title(&mut svg, &self.title, 20.0, RIGHT - 20.0);
        let mut entries = Vec::new();
        for entry in runs.iter().flat_map(SequenceFigure::legend) {
            if !entries.iter().any(|(_, text)| *text == entry.1) {
                entries.push(entry);
            }
        }
        let mut y = legend(&mut svg, &entries, [20.0, RIGHT], top) + 8.0;
        let left = runs.iter().map(SequenceFigure::left).fold(0.0, f64::max);
        let width = (WIDTH - 2.0 * left - GUTTER - 20.0) / 2.0;
        let both: Vec<(&String, Option<Zoom<'_>>)> =
            self.runs.iter().map(|(name, _)| name).zip(panels).collect();
        for row in both.chunks(COLUMNS) {
            let heads = row.iter().filter_map(|(_, zoom)| Some(zoom.as_ref()?.head(width)));
            let head = heads.fold(0.0, f64::max);
            let mut bottom = y;
            for (column, (name, zoom)) in row.iter().enumerate() {
                let place = left + column as f64 * (width + left + GUTTER);
                svg.text([place, y + 15.0], Text::new(15.0, Anchor::Start).bold(), name);
                bottom = bottom.max(match zoom {
                    Some(zoom) => zoom.clone().tall(tall).draw(&mut svg, [place, width], y + 20.0, head),
                    None => {
                        let text = format!("handoff {} concerns no flow of this run", self.handoff);
                        svg.text([place, y + 40.0], Text::new(12.0, Anchor::Start), &text);
                        y + 60.0
                    }
                });
            }
            y = bottom + 4.0;
        }
        let of_steps = runs.iter().any(SequenceFigure::has_both_parts_and_steps).then_some(steps::READING);
        let notes = [Some(self.caption.as_str()), Some(READING), of_steps].into_iter().flatten();
        let notes = notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join("\n");
        let bottom = caption(&mut svg, &notes, [20.0, RIGHT - 20.0], y);
        let words = |(name, run): (&(String, SequenceFigure), &SequenceFigure)| {
            format!("{}: {}", name.0, run.in_words())
        };
        let words: Vec<String> = self.runs.iter().zip(&runs).map(words).collect();
        svg.finish(bottom + 14.0, &self.title, &format!("{} {}", words.join(" "), notes))
    }
}
