//! Breakers: settings with which a property must fail. A property that holds anyway proves nothing.

use super::carry_out::measure_all;
use super::{Check, Experiment, MustHold, Point, Scale};
use crate::execute::{How, NotRun};
use recorder::run::Backend;
use scenario::Setting;

/// The effect of a breaker on a property.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// The property that should fail.
    pub must_hold: &'static MustHold,
    /// The settings of the breaker.
    pub breaker: &'static [&'static str],
    /// The backend on which the breaker was tested.
    pub backend: Backend,
    /// The result of the check without the breaker.
    pub whole: Check,
    /// The result of the check with the breaker.
    pub check: Check,
}

impl Broken {
    /// Returns whether the property held without the breaker and failed with it. Returns `false` if no value could be
    /// measured with the breaker.
    pub const fn broke(&self) -> bool {
        self.whole.holds && !self.check.holds && self.check.value.is_some()
    }
}

/// Executes the breakers of an experiment at the quick scale: all of them in the simulator, only the first on Linux.
/// Returns an error if a run fails.
pub fn self_test(
    experiment: &'static Experiment,
    backend: Backend,
    how: &How<'_>,
) -> Result<Vec<Broken>, NotRun> {
    let points = (experiment.points)(Scale::Quick);
    let limit = if backend == Backend::Linux { 1 } else { usize::MAX };
    let mut all = Vec::new();
    for must_hold in experiment.must_hold.iter().filter(|must_hold| must_hold.backends.contains(&backend)) {
        if all.len() >= limit {
            break;
        }
        let needed: Vec<Point> = points.iter().filter(|point| (must_hold.needs)(point)).cloned().collect();
        let check = |overrides: &[Setting]| {
            let results = measure_all(&needed, backend, overrides, how)?;
            Ok((must_hold.check)(&results))
        };
        let whole = check(&[])?;
        for breaker in must_hold.breakers.iter().take(limit) {
            let overrides: Result<Vec<Setting>, String> = breaker.iter().map(|text| text.parse()).collect();
            let check = check(&overrides.map_err(NotRun::Broken)?)?;
            all.push(Broken { must_hold, breaker, backend, whole, check });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_hold_before_cannot_be_broken() {
        let must_hold = &crate::paper::EXPERIMENTS[0].must_hold[0];
        let check = |holds, value| Check { value, holds };
        let broken = |whole, check| Broken { must_hold, breaker: &[], backend: Backend::Sim, whole, check };
        let [holds, fails, nothing] = [check(true, Some(1.0)), check(false, Some(1.0)), check(false, None)];
        assert!(broken(holds, fails).broke());
        assert!(!broken(fails, fails).broke(), "it never holds");
        assert!(!broken(holds, holds).broke() && !broken(holds, nothing).broke());
    }

    /// A table without rows would look as if the breakers were forgotten.
    #[test]
    fn an_experiment_without_breakers_on_a_backend_says_so() {
        let text = super::super::self_test_text(&crate::paper::EXPERIMENTS[0], &[]);
        assert!(
            text.ends_with("no must-hold statement with a breaker is checked on this backend\n"),
            "{text}"
        );
    }
}
