//! Published numbers, and the verdicts on them.

use super::carry_out::Measured;
use super::{Metric, Point, Published, Report};
use crate::stats::{Interval, Summary, mean_interval};
use recorder::run::Backend;

/// The statistic that combines the repetitions of a metric into one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// The mean of the repetitions.
    Mean,
    /// The median of the repetitions.
    Median,
}

impl Statistic {
    /// Returns the name of the statistic in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }
}

/// The combined value of repeated runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean or the median of the values.
    pub value: f64,
    /// The 95 % confidence interval; the range from the smallest to the largest value if there are fewer than six
    /// values, or if a mean is infinite; `None` for a single value.
    pub interval: Option<Interval>,
    /// The number of values that were combined.
    pub n: usize,
}

impl Estimate {
    /// Returns the estimate from these values, or `None` if there are none.
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

/// The verdict on a published number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// The value is within the tolerance.
    Reproduced,
    /// The value is outside the tolerance, but all properties of its series hold.
    Shape,
    /// The value is outside the tolerance, and the number is part of no series, or a property of the series does not
    /// hold. Also the verdict if no valid value was measured.
    NotReproduced,
}

impl Word {
    /// All verdicts, from the best to the worst.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::Shape, Self::NotReproduced];

    /// Returns the verdict as text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Shape => "shape",
            Self::NotReproduced => "not reproduced",
        }
    }
}

/// The measured value of a published number on one backend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnBackend {
    /// The backend of the measurement.
    pub backend: Backend,
    /// The measured value. `None` if no valid run has one.
    pub estimate: Option<Estimate>,
    /// Whether the number is part of a series, and all properties of the series hold on the backend. `None` if a run
    /// that they need is invalid.
    pub has_shape: Option<bool>,
}

impl OnBackend {
    /// Returns the verdict on one backend, or `None` if the verdict needs a run that is invalid.
    pub fn word(&self, published: &Published) -> Option<Word> {
        let off = (self.estimate?.value - published.value).abs();
        if off <= published.reach() {
            return Some(Word::Reproduced);
        }
        if published.shape.is_empty() {
            return Some(Word::NotReproduced);
        }
        self.has_shape.map(|has_shape| if has_shape { Word::Shape } else { Word::NotReproduced })
    }

    /// Returns a remark if there is only one value, if the interval of a reproduced value exceeds the tolerance
    /// on both sides, or if the interval of any other value overlaps the tolerance.
    fn remark(&self, published: &Published) -> Option<String> {
        let (word, Estimate { interval, n, .. }) = (self.word(published)?, self.estimate?);
        let Some(Interval { lo, hi, .. }) = interval else {
            return Some(format!("n = {n}: no interval"));
        };
        let [from, to] = [-1.0, 1.0].map(|side: f64| side.mul_add(published.reach(), published.value));
        match word {
            Word::Reproduced if lo < from && hi > to => {
                Some(format!("weak: the interval of n = {n} exceeds the tolerance on both sides"))
            }
            Word::Reproduced => None,
            _ if lo <= to && hi >= from => {
                Some(format!("uncertain: the interval of n = {n} overlaps the tolerance"))
            }
            _ => None,
        }
    }

    /// Returns whether the value is within the tolerance, but its interval exceeds the tolerance on both sides or is
    /// missing.
    fn is_weak(&self, published: &Published) -> bool {
        self.word(published) == Some(Word::Reproduced) && self.remark(published).is_some()
    }
}

impl Published {
    /// Returns the largest permitted difference with a margin for binary fractions: 2.64 - 2.40 must not exceed 0.24.
    fn reach(&self) -> f64 {
        self.tolerance + self.tolerance.abs().mul_add(1e-9, 1e-9)
    }
}

/// A published number, the measured values, and the verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The point at which the number was measured.
    pub point: &'a Point,
    /// The metric of the published number.
    pub metric: &'static Metric,
    /// The published number with its tolerance.
    pub published: Published,
    /// The measured values, one for each backend.
    pub on: Vec<OnBackend>,
}

impl Judged<'_> {
    /// Returns the worst verdict of all backends that have one, or `NotReproduced` if none has.
    pub fn word(&self) -> Word {
        let words = self.on.iter().filter_map(|on| on.word(&self.published));
        words.max().unwrap_or(Word::NotReproduced)
    }

    /// Returns whether the verdict is `reproduced`, but the interval of a backend exceeds the tolerance on both sides
    /// or is missing.
    pub(crate) fn is_weak(&self) -> bool {
        self.word() == Word::Reproduced && self.on.iter().any(|on| on.is_weak(&self.published))
    }

    /// Returns the verdict as text, followed by `, weak` if [`Self::is_weak`].
    pub fn verdict(&self) -> String {
        format!("{}{}", self.word().name(), if self.is_weak() { ", weak" } else { "" })
    }

    /// Returns the remarks on the verdict: the reason if it is not `reproduced`, backends with another verdict or
    /// none, and the remarks on confidence intervals. `None` if there are no remarks.
    pub fn why(&self) -> Option<String> {
        let word = self.word();
        let mut parts = Vec::new();
        if self.on.is_empty() {
            parts.push("not measured".to_owned());
        }
        for on in &self.on {
            match on.word(&self.published) {
                None => parts.push(format!("{}: not evaluated, a run was invalid", on.backend.name())),
                Some(other) if other != word => {
                    parts.push(format!("{}: {}", on.backend.name(), other.name()));
                }
                Some(_) => {}
            }
        }
        parts.extend(self.remarks());
        if word != Word::Reproduced {
            parts.push(self.published.why.to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns the remarks on the confidence intervals; only one if they are equal on all backends.
    fn remarks(&self) -> Vec<String> {
        let all: Vec<(Backend, String)> =
            self.on.iter().filter_map(|on| Some((on.backend, on.remark(&self.published)?))).collect();
        match all.as_slice() {
            [(_, first), rest @ ..]
                if all.len() == self.on.len() && rest.iter().all(|(_, other)| other == first) =>
            {
                vec![first.clone()]
            }
            all => all.iter().map(|(backend, remark)| format!("{}: {remark}", backend.name())).collect(),
        }
    }
}

/// Returns every published number of a report, in the order of its table.
pub fn judged(report: &Report) -> Vec<Judged<'_>> {
    let verdicts = report.verdicts();
    let mut all = Vec::new();
    for metric in report.experiment.metrics {
        for point in &report.points {
            let Some(published) = point.published(metric.name) else { continue };
            let on = report.backends.iter().filter(|results| point.backends.contains(&results.backend));
            let on = on.map(|results| {
                let measured = results.named(&point.label).filter(|measured| measured.is_valid());
                let shape: Vec<_> = verdicts
                    .iter()
                    .filter(|verdict| {
                        let must_hold = verdict.must_hold;
                        verdict.backend == results.backend && published.shape.contains(&must_hold.text)
                    })
                    .collect();
                let is_open = shape.iter().any(|verdict| verdict.invalid);
                let has_shape = !shape.is_empty() && shape.iter().all(|verdict| verdict.holds());
                OnBackend {
                    backend: results.backend,
                    estimate: measured.and_then(|measured| measured.estimate(metric)),
                    has_shape: (!is_open).then_some(has_shape),
                }
            });
            all.push(Judged { point, metric, published: *published, on: on.collect() });
        }
    }
    all
}

/// Counts the verdicts, and how many of the reproduced numbers are weak.
pub fn counts<'a>(judged: impl IntoIterator<Item = &'a Judged<'a>>) -> Counts {
    let mut counts = Counts::default();
    for judged in judged {
        counts.weak += usize::from(judged.is_weak());
        let word = judged.word();
        if let Some(count) =
            Word::ALL.iter().position(|each| *each == word).and_then(|at| counts.words.get_mut(at))
        {
            *count += 1;
        }
    }
    counts
}

/// The numbers of verdicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// The number of each verdict, in the order of [`Word::ALL`].
    pub words: [usize; 3],
    /// The number of reproduced numbers that are weak.
    pub weak: usize,
}

impl Counts {
    /// Returns each verdict with its count.
    pub fn each(&self) -> impl Iterator<Item = (Word, usize)> {
        Word::ALL.into_iter().zip(self.words)
    }
}

impl std::fmt::Display for Counts {
    /// Writes, for example, `11 reproduced (2 of them weak), 1 shape, 0 not reproduced`.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let weak = if self.weak > 0 { format!(" ({} of them weak)", self.weak) } else { String::new() };
        let [reproduced, shape, not] = self.words;
        write!(to, "{reproduced} reproduced{weak}, {shape} shape, {not} not reproduced")
    }
}

impl Measured {
    /// Returns the combined value of a metric over the repetitions, with its interval. `None` if there are no values.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        Estimate::of(self.samples.get(metric.name)?, metric.statistic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(value: f64, has_shape: Option<bool>) -> OnBackend {
        let estimate = Some(Estimate { value, interval: None, n: 1 });
        OnBackend { backend: Backend::Sim, estimate, has_shape }
    }

    const PUBLISHED: Published = Published {
        metric: "m",
        figure: "1",
        value: 2.64,
        tolerance: 0.24,
        tolerance_from: "",
        why: "",
        shape: &["line"],
    };

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
    fn one_number_has_no_shape_however_much_holds() {
        let one = Published { shape: &[], ..PUBLISHED };
        assert_eq!(on(26.4, Some(true)).word(&one), Some(Word::NotReproduced));
        assert_eq!(on(26.4, None).word(&one), Some(Word::NotReproduced), "no must-hold could change it");
        assert_eq!(on(2.40, Some(true)).word(&one), Some(Word::Reproduced));
    }

    #[test]
    fn a_wide_interval_makes_a_verdict_weak_and_one_that_reaches_the_number_unsure() {
        let remark = |value, (lo, hi)| {
            let interval = Some(Interval { lo, hi, is_range: false });
            let on = OnBackend { estimate: Some(Estimate { value, interval, n: 10 }), ..on(0.0, Some(true)) };
            (on.remark(&PUBLISHED).unwrap_or_default(), on.is_weak(&PUBLISHED))
        };
        let weak = "weak: the interval of n = 10 exceeds the tolerance on both sides";
        assert_eq!(remark(2.6, (2.3, 2.9)), (weak.to_owned(), true));
        assert_eq!(remark(2.6, (2.3, 2.8)), (String::new(), false), "on one side alone");
        assert_eq!(remark(2.6, (2.4, 2.88)), (String::new(), false));
        let unsure = "uncertain: the interval of n = 10 overlaps the tolerance";
        assert_eq!(remark(2.0, (1.0, 2.4)), (unsure.to_owned(), false));
        assert_eq!(remark(2.0, (1.0, 2.3)), (String::new(), false));
        assert_eq!(on(2.6, None).remark(&PUBLISHED), Some("n = 1: no interval".to_owned()));
    }

    #[test]
    fn the_verdict_is_the_worse_of_two_backends() {
        let point = &(crate::paper::EXPERIMENTS[0].points)(crate::reproduce::Scale::Quick)[0];
        let metric = &crate::paper::EXPERIMENTS[0].metrics[0];
        let word = |sim: OnBackend, linux: OnBackend| {
            let linux = OnBackend { backend: Backend::Linux, ..linux };
            let judged = Judged { point, metric, published: PUBLISHED, on: vec![sim, linux] };
            (judged.word(), judged.why().unwrap_or_default())
        };
        let (good, shape, bad, open) =
            (on(2.6, Some(true)), on(9.0, Some(true)), on(9.0, Some(false)), on(9.0, None));
        assert_eq!(word(good, good).0, Word::Reproduced);
        for (sim, linux, worse) in [
            (good, shape, Word::Shape),
            (shape, good, Word::Shape),
            (good, bad, Word::NotReproduced),
            (bad, good, Word::NotReproduced),
            (shape, bad, Word::NotReproduced),
            (bad, shape, Word::NotReproduced),
            (open, open, Word::NotReproduced),
        ] {
            assert_eq!(word(sim, linux).0, worse, "{sim:?} {linux:?}");
        }
        assert!(word(bad, good).1.contains("linux: reproduced"), "{}", word(bad, good).1);
        assert!(word(good, open).1.contains("linux: not evaluated"), "{}", word(good, open).1);
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
