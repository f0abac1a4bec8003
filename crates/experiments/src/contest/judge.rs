//! The properties that must hold in a comparison, and the changes of settings with which they must fail.

use super::agreement::{Both, Claim};
use super::carry_out::{Comparison, points, repetitions};
use super::course::{Contender, Course, Leg};
use super::measure::OUTAGE;
use super::runs::{runs, values};
use crate::reproduce::{self, Check, How, NotRun, Results, Scale};
use recorder::run::Backend;
use scenario::Setting;

/// A property that must hold in a comparison.
#[derive(Debug)]
pub struct MustHold {
    /// The property as text.
    pub text: &'static str,
    /// The description of the value that decides whether the property holds.
    pub value: &'static str,
    /// Selects the protocols whose runs are evaluated.
    of: fn(&Contender) -> bool,
    check: Asks,
    breaker: Breaker,
}

#[derive(Debug)]
enum Asks {
    /// The property is evaluated for each backend separately.
    Each(fn(&[&Leg], &Results) -> Check),
    /// The property is evaluated for both backends together.
    Both(fn(&[&Leg], &Both<'_>) -> Check),
}

/// Settings for the runs of one protocol, or of all protocols that the property evaluates.
#[derive(Debug)]
struct Breaker {
    who: Option<&'static str>,
    set: &'static [&'static str],
}

pub(super) const MUST_HOLD: &[MustHold] = &[
    MustHold {
        text: "without a mobility protocol, the application receives no new data after the move",
        value: "number of runs with new data after the move",
        of: |contender| contender.never.is_some(),
        check: Asks::Each(|legs, results| none(count(legs, results, f64::is_finite))),
        // With this setting the host does not leave its network, so the flow recovers.
        breaker: Breaker { who: None, set: &["roam.moves.to=west"] },
    },
    MustHold {
        text: "with each mobility protocol (not its variants), the application receives new data after each move that the protocol supports",
        value: "number of runs without new data after the move",
        // A variant can need longer than a move is watched: without a link trigger, a mobile node waits for an advertisement
        // for up to 1 s, and then the sender waits for a time-out. Its rows show that.
        of: |contender| contender.never.is_none() && !contender.variant,
        check: Asks::Each(|legs, results| none(count(legs, results, f64::is_infinite))),
        breaker: Breaker { who: None, set: &["cell.2.loss=1.0"] },
    },
    MustHold {
        text: "if two protocols are told apart on a backend (by 30 ms and 15 %), and the backends agree about both outages: both backends have the same order of the two protocols",
        value: "of the pairs that are told apart on a backend, the share (0 to 1) with agreement about both outages and the same order; the lines `pairs` name all pairs",
        of: |_| true,
        check: Asks::Both(order),
        // In the runs that take the place of Linux, the new cell loses all frames, and no host has a second radio in
        // the old cell.
        breaker: Breaker { who: None, set: &["cell.2.loss=1.0", "host.mobile.radios=1"] },
    },
];

/// The verdict on one property that must hold.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The property that was evaluated.
    pub must_hold: &'static MustHold,
    /// The backend whose runs were evaluated; `None` for a property of both backends.
    pub backend: Option<Backend>,
    /// The value that decides whether the property holds; `None` if there was nothing to evaluate.
    pub value: Option<f64>,
    /// Whether a run that the property needs is invalid.
    pub invalid: bool,
    holds: bool,
}

impl Verdict {
    fn new(must_hold: &'static MustHold, backend: Option<Backend>, check: Check, invalid: bool) -> Self {
        Self { must_hold, backend, value: check.value, invalid, holds: check.holds }
    }

    /// Returns whether the property holds, and all runs that it needs are valid.
    pub const fn holds(&self) -> bool {
        self.holds && !self.invalid
    }

    /// Returns the name of the backend, or `both`.
    pub fn backends(&self) -> &'static str {
        self.backend.map_or("both", Backend::name)
    }

    /// Returns the verdict as one to three words.
    pub const fn word(&self) -> &'static str {
        match (self.invalid, self.holds, self.value) {
            (true, ..) => "INVALID",
            (false, true, _) => "holds",
            (false, false, Some(_)) => "DOES NOT HOLD",
            (false, false, None) => "NOT EVALUATED",
        }
    }
}

/// Returns the verdicts on the properties for which the comparison has legs. A property of both backends needs the
/// results of both, and a pair of legs with the same move and workload.
pub fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for must_hold in MUST_HOLD {
        let legs = must_hold.legs(comparison.course, |leg| comparison.wanted.contains(&leg.contender));
        let doubtful = |results: &Results| {
            legs.iter().any(|leg| runs(results, leg).any(|measured| !measured.is_valid()))
        };
        match (&must_hold.check, Both::of(comparison)) {
            _ if legs.is_empty() => {}
            (Asks::Each(check), _) => verdicts.extend(comparison.backends.iter().map(|results| {
                Verdict::new(must_hold, Some(results.backend), check(&legs, results), doubtful(results))
            })),
            (Asks::Both(check), Some(both)) if has_pairs(&legs) => {
                let invalid = doubtful(both.sim) || doubtful(both.linux);
                verdicts.push(Verdict::new(must_hold, None, check(&legs, &both), invalid));
            }
            (Asks::Both(_), _) => {}
        }
    }
    verdicts
}

impl MustHold {
    /// Returns the legs that the property evaluates.
    fn legs<'a>(&self, course: &'a Course, wanted: impl Fn(&Leg) -> bool) -> Vec<&'a Leg> {
        let concerns = |leg: &&Leg| course.contenders.get(leg.contender).is_some_and(self.of) && wanted(leg);
        course.legs.iter().filter(concerns).collect()
    }
}

/// Returns the number of valid runs of these legs for whose outage `such` is true, or `None` if no valid run has a
/// measured outage. An outage is in milliseconds: 0 if nothing was interrupted, infinite if it did not end.
fn count(legs: &[&Leg], results: &Results, such: fn(f64) -> bool) -> Option<f64> {
    let all: Vec<f64> = legs.iter().flat_map(|leg| values(results, leg, OUTAGE.name)).collect();
    (!all.is_empty()).then(|| all.iter().filter(|outage| such(**outage)).count() as f64)
}

fn none(value: Option<f64>) -> Check {
    Check::within(value, 0.0..=0.0)
}

/// Returns every pair of legs with the same move and workload.
fn pairs<'a>(legs: &[&'a Leg]) -> impl Iterator<Item = (&'a Leg, &'a Leg)> {
    let beside = |a: &'a Leg, b: &&'a Leg| b.r#move == a.r#move && b.workload == a.workload;
    let each = |(place, a): (usize, &&'a Leg)| {
        let others = legs.iter().skip(place + 1).copied();
        others.filter(|b| beside(a, b)).map(|b| (*a, b)).collect::<Vec<_>>()
    };
    legs.iter().enumerate().flat_map(each).collect::<Vec<_>>().into_iter()
}

fn has_pairs(legs: &[&Leg]) -> bool {
    pairs(legs).next().is_some()
}

/// Returns the share of pairs that both backends rank alike, of all pairs that are told apart on a backend. A pair is
/// ranked alike only if the backends also agree about the outages of both legs. The property fails if the share is
/// zero, or if a single pair has different orders.
fn order(legs: &[&Leg], both: &Both<'_>) -> Check {
    let legs: Vec<&Leg> = legs.iter().copied().filter(|leg| both.has(leg)).collect();
    let claims: Vec<Claim> = pairs(&legs).map(|(a, b)| both.claim(a, b)).collect();
    let is = |of: fn(&Claim) -> bool| claims.iter().filter(|claim| of(claim)).count();
    let told = is(|claim| *claim != Claim::NotToldApart);
    let share = (told > 0).then(|| is(|claim| matches!(claim, Claim::Same(_))) as f64 / told as f64);
    let other = is(|claim| *claim == Claim::Other);
    Check { value: share, holds: other == 0 && share.is_some_and(|share| share > 0.0) }
}

/// The effect of a breaker on a property.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The property that should fail.
    pub must_hold: &'static MustHold,
    /// The settings of the breaker as text, separated by spaces. `PROTOCOL: ` is before them if only this protocol has
    /// them.
    pub set: String,
    /// The evaluation of the property without the breaker.
    pub whole: Check,
    /// The evaluation of the property with the breaker.
    pub check: Check,
}

impl Broken {
    /// Returns whether the property held without the breaker and failed with it. Returns `false` if no value could be
    /// measured with the breaker.
    pub const fn broke(&self) -> bool {
        self.whole.holds && !self.check.holds && self.check.value.is_some()
    }
}

/// Runs every breaker in the simulator. For properties of both backends, the runs with the breaker take the place of
/// Linux. Returns an error if a run fails.
pub fn self_test(course: &'static Course, how: &How<'_>) -> Result<Vec<Broken>, NotRun> {
    let run = |legs: &[&Leg], set: &[Setting]| {
        let wanted =
            points(course, repetitions(Scale::Default), |leg| legs.iter().any(|one| one.name == leg.name));
        reproduce::measure_all(&wanted, Backend::Sim, set, how)
    };
    let all: Vec<&Leg> = course.legs.iter().collect();
    let whole = run(&all, &[])?;
    let mut tests = Vec::new();
    for must_hold in MUST_HOLD {
        let legs = must_hold.legs(course, |_| true);
        let Breaker { who, set } = &must_hold.breaker;
        let meant = |leg: &&&Leg| {
            let name = course.contenders.get(leg.contender).map(|contender| contender.name.as_str());
            who.is_none_or(|who| name == Some(who))
        };
        let broken: Vec<&Leg> = legs.iter().filter(meant).copied().collect();
        let settings: Result<Vec<Setting>, String> = set.iter().map(|text| text.parse()).collect();
        let with = replaced(&whole, run(&broken, &settings.map_err(NotRun::Broken)?)?);
        let (before, after) = match must_hold.check {
            Asks::Each(check) => (check(&legs, &whole), check(&legs, &with)),
            Asks::Both(check) => {
                let beside = |linux| Both { sim: &whole, same: &whole, linux };
                (check(&legs, &beside(&whole)), check(&legs, &beside(&with)))
            }
        };
        let whom = who.map_or(String::new(), |who| format!("{who}: "));
        let set = format!("{whom}{}", set.join(" "));
        tests.push(Broken { must_hold, set, whole: before, check: after });
    }
    Ok(tests)
}

/// Returns the results, with the rows of `broken` in place of the rows with the same labels.
fn replaced(whole: &Results, broken: Results) -> Results {
    let mut with = whole.clone();
    for (point, measured) in broken.rows {
        if let Some(row) = with.rows.iter_mut().find(|(other, _)| other.label == point.label) {
            row.1 = measured;
        }
    }
    with
}
