//! A published number, and the verdict on it.

use super::carry_out::Measured;
use super::{Metric, Point, Report};
use crate::run::OnWorld;
use crate::stats::{Interval, Summary, mean_interval};

/// A number that a paper prints, and how near a value must be to reproduce it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// The metric.
    pub metric: &'static str,
    /// The figure, table or section of the paper.
    pub figure: &'static str,
    /// The number, in the metric's unit.
    pub value: f64,
    /// How far a value may be from it, in the same unit. It is fixed before the first run.
    pub tolerance: f64,
    /// Where the tolerance comes from.
    pub tolerance_from: &'static str,
    /// What differs from the paper's set-up, in a line: why a value may be another.
    pub why: &'static str,
}

/// How a metric's repetitions become one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
}

impl Statistic {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

/// One value of repeated runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean or the median.
    pub value: f64,
    /// Its 95 % confidence interval; the smallest and largest value of fewer than six; `None` of one.
    pub interval: Option<Interval>,
    /// How many values it is made of.
    pub n: usize,
}

impl Estimate {
    /// That of these values; `None` of none.
    pub(crate) fn of(values: &[f64], statistic: Statistic) -> Option<Self> {
        let summary = Summary::of(values)?;
        let (value, interval) = match statistic {
            Statistic::Mean => (summary.mean, mean_interval(values)),
            Statistic::Median => (summary.median, summary.interval),
        };
        let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
        let range = ends.filter(|_| values.len() > 1).map(|(lo, hi)| Interval { lo, hi, is_range: true });
        Some(Self { value, interval: interval.or(range), n: values.len() })
    }
}

/// What became of a published number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// The value is within the tolerance.
    Reproduced,
    /// The value is another, and all that must hold of it holds.
    Shape,
    /// Neither.
    NotReproduced,
}

impl Word {
    /// All, from the best to the worst.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::Shape, Self::NotReproduced];

    /// The word itself.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Shape => "shape",
            Self::NotReproduced => "not reproduced",
        }
    }
}

/// A published number on one backend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnBackend {
    /// The backend.
    pub world: OnWorld,
    /// The value; `None` if no valid run gave one.
    pub estimate: Option<Estimate>,
    /// Whether there is something that must hold of it there, and all of it holds; `None` if a run that this needs is invalid.
    pub has_shape: Option<bool>,
}

impl OnBackend {
    /// The verdict on one backend; `None` if invalid runs leave it open.
    pub fn word(&self, published: &Published) -> Option<Word> {
        // What binary fractions lose is no difference: 2.64 - 2.40 is not above 0.24.
        let slack = published.tolerance.abs().mul_add(1e-9, 1e-9);
        let off = (self.estimate?.value - published.value).abs();
        if off <= published.tolerance + slack {
            return Some(Word::Reproduced);
        }
        self.has_shape.map(|has_shape| if has_shape { Word::Shape } else { Word::NotReproduced })
    }
}

/// A published number, what was measured, and the verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The point.
    pub point: &'a Point,
    /// The metric.
    pub metric: &'static Metric,
    /// What is published.
    pub published: Published,
    /// What the backends gave.
    pub on: Vec<OnBackend>,
}

impl Judged<'_> {
    /// The one verdict: the worst of all backends on which there is one. Without any it is not reproduced.
    pub fn word(&self) -> Word {
        let words = self.on.iter().filter_map(|on| on.word(&self.published));
        words.max().unwrap_or(Word::NotReproduced)
    }

    /// Why it is not `reproduced`, and on which backends it is open or better; `None` if there is nothing to say.
    pub fn why(&self) -> Option<String> {
        let word = self.word();
        let mut parts = Vec::new();
        if self.on.is_empty() {
            parts.push("not measured".to_owned());
        }
        for on in &self.on {
            match on.word(&self.published) {
                None => parts.push(format!("{}: not judged, a run was invalid", on.world.name())),
                Some(other) if other != word => parts.push(format!("{}: {}", on.world.name(), other.name())),
                Some(_) => {}
            }
        }
        if word != Word::Reproduced {
            parts.push(self.published.why.to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Every published number of a report, in the order of its table.
pub fn judged(report: &Report) -> Vec<Judged<'_>> {
    let verdicts = report.verdicts();
    let mut all = Vec::new();
    for metric in report.experiment.metrics {
        for point in &report.points {
            let Some(published) = point.published(metric.name) else { continue };
            let on = report.worlds.iter().filter(|results| point.worlds.contains(&results.world));
            let on = on.map(|results| {
                let measured = results.named(&point.label).filter(|measured| measured.is_valid());
                let shape: Vec<_> = verdicts
                    .iter()
                    .filter(|verdict| {
                        let must_hold = verdict.must_hold;
                        verdict.world == results.world
                            && (must_hold.needs)(point)
                            && must_hold.metrics.contains(&metric.name)
                    })
                    .collect();
                let is_open = shape.iter().any(|verdict| verdict.invalid);
                let has_shape = !shape.is_empty() && shape.iter().all(|verdict| verdict.holds());
                OnBackend {
                    world: results.world,
                    estimate: measured.and_then(|measured| measured.estimate(metric)),
                    has_shape: (!is_open).then_some(has_shape),
                }
            });
            all.push(Judged { point, metric, published: *published, on: on.collect() });
        }
    }
    all
}

/// How often each word is there.
pub fn counts<'a>(judged: impl IntoIterator<Item = &'a Judged<'a>>) -> [(Word, usize); 3] {
    let words: Vec<Word> = judged.into_iter().map(Judged::word).collect();
    Word::ALL.map(|word| (word, words.iter().filter(|each| **each == word).count()))
}

/// The counts in words: `11 reproduced, 1 shape, 0 not reproduced`.
pub fn counts_text(counts: [(Word, usize); 3]) -> String {
    counts.map(|(word, count)| format!("{count} {}", word.name())).join(", ")
}

impl Measured {
    /// The value of a metric over the repetitions, with its interval.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        Estimate::of(self.samples.get(metric.name)?, metric.statistic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(value: f64, has_shape: Option<bool>) -> OnBackend {
        let estimate = Some(Estimate { value, interval: None, n: 1 });
        OnBackend { world: OnWorld::Sim, estimate, has_shape }
    }

    const PUBLISHED: Published =
        Published { metric: "m", figure: "1", value: 2.64, tolerance: 0.24, tolerance_from: "", why: "" };

    #[test]
    fn a_number_has_one_of_three_words() {
        let word = |on: OnBackend| on.word(&PUBLISHED);
        assert_eq!(word(on(2.40, Some(false))), Some(Word::Reproduced), "the tolerance itself is within");
        assert_eq!(word(on(2.88, Some(false))), Some(Word::Reproduced));
        assert_eq!(word(on(2.39, Some(true))), Some(Word::Shape));
        assert_eq!(word(on(2.39, Some(false))), Some(Word::NotReproduced));
        assert_eq!(word(on(f64::INFINITY, Some(false))), Some(Word::NotReproduced));
        assert_eq!(word(on(2.39, None)), None, "invalid runs leave the shape open");
        assert_eq!(word(OnBackend { estimate: None, ..on(0.0, Some(true)) }), None);
    }

    #[test]
    fn an_interval_of_few_values_is_their_range() {
        let of = |values: &[f64], statistic| Estimate::of(values, statistic).unwrap();
        let few = of(&[3.0, 1.0, 2.0], Statistic::Mean);
        assert_eq!((few.value, few.interval), (2.0, Some(Interval { lo: 1.0, hi: 3.0, is_range: true })));
        assert_eq!(of(&[3.0], Statistic::Median).interval, None);
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        let many = of(&twenty, Statistic::Mean).interval.unwrap();
        assert!(
            !many.is_range && many.lo > 7.0 && many.lo < 10.5 && many.hi > 10.5 && many.hi < 14.0,
            "{many:?}"
        );
        assert_eq!(Estimate::of(&[], Statistic::Mean), None);
    }
}
