//! Open findings: violations that are known and not fixed yet.

use crate::Failure;
use ::hunt::Judge;
use ::hunt::draft::Protocol;
use serde::{Deserialize, Deserializer};
use std::path::Path;
use std::str::FromStr;

/// A violation that is not fixed yet. It is expected at `found / of` of the seeds.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    #[serde(deserialize_with = "parsed")]
    protocol: Protocol,
    #[serde(deserialize_with = "parsed")]
    judge: Judge,
    /// The number of seeds at which the violation was found.
    found: u32,
    /// The number of seeds that were searched.
    of: u32,
    /// A description of the violation.
    pub(super) finding: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Known>,
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

/// The largest probability that the hunt fails although the share of a finding has not changed. The hunt fails if the
/// finding occurs at more than [`Known::most`] seeds, or at no seed although it must occur.
const BY_CHANCE: f64 = 1e-3;

impl Known {
    /// Reads the open findings from a file.
    pub(super) fn read(path: &Path) -> Result<Vec<Self>, Failure> {
        let wrong = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| {
            let path = path.display();
            Failure::Usage(format!(
                "--known: cannot read {path}: {error}; give a TOML file with `[[known]]` (see `wayfare hunt --help`)"
            ))
        })?;
        parse(&text).map_err(wrong)
    }

    /// Returns whether the finding is a violation of `judge` in scenarios of `protocol`.
    pub(super) fn is_about(&self, protocol: Protocol, judge: Judge) -> bool {
        (self.protocol, self.judge) == (protocol, judge)
    }

    /// Returns whether the finding is of this protocol, and must occur in a search of `seeds` seeds: the probability
    /// that it does not occur is below [`BY_CHANCE`].
    pub(super) fn must_appear(&self, protocol: Protocol, seeds: u64) -> bool {
        self.protocol == protocol && (-self.expected(seeds)).exp() < BY_CHANCE
    }

    pub(super) const fn judge(&self) -> Judge {
        self.judge
    }

    fn expected(&self, seeds: u64) -> f64 {
        f64::from(self.found) * seeds as f64 / f64::from(self.of)
    }

    /// Returns the largest number of seeds, of `seeds`, at which the finding may occur: a quantile of the Poisson
    /// distribution.
    pub(super) fn most(&self, seeds: u64) -> u64 {
        let mean = self.expected(seeds);
        let (mut most, mut ln_term, mut below) = (0_u64, -mean, 0.0);
        loop {
            below += ln_term.exp();
            if below >= 1.0 - BY_CHANCE || most > seeds {
                return most;
            }
            most += 1;
            ln_term += mean.ln() - (most as f64).ln();
        }
    }
}

fn parse(text: &str) -> Result<Vec<Known>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    match file.known.iter().find(|known| known.found == 0 || known.of < known.found) {
        Some(known) => Err(format!(
            "`found = {}`, `of = {}`: `found` must be from 1 to `of`, in the entry of the finding `{}`",
            known.found, known.of, known.finding
        )),
        None => Ok(file.known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(text: &str) -> Result<Vec<Known>, String> {
        parse(&format!("[[known]]\nfinding = \"it\"\n{text}"))
    }

    #[test]
    fn more_than_chance_gives_is_not_known() {
        let one = |found, of| {
            known(&format!("protocol = \"sigma\"\njudge = \"stall\"\nfound = {found}\nof = {of}"))
                .unwrap()
                .remove(0)
        };
        assert_eq!([100, 2000, 10_000].map(|seeds| one(1, 2000).most(seeds)), [2, 5, 13]);
        assert_eq!([100, 2000].map(|seeds| one(140, 2000).most(seeds)), [16, 178]);
        assert!(one(140, 2000).must_appear(Protocol::Sigma, 100));
        assert!(!one(140, 2000).must_appear(Protocol::MobileIp, 100));
        assert!(!one(1, 2000).must_appear(Protocol::Sigma, 2000));
    }

    #[test]
    fn a_wrong_entry_is_named() {
        let wrong = |text: &str, what: &str| {
            let error = known(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        wrong("protocol = \"tcp\"\njudge = \"stall\"\nfound = 1\nof = 2", "indirect-tcp");
        wrong("protocol = \"sigma\"\njudge = \"jury\"\nfound = 1\nof = 2", "unconfirmed");
        wrong("protocol = \"sigma\"\njudge = \"stall\"\nfound = 0\nof = 2", "must be from 1 to `of`");
        wrong("protocol = \"sigma\"\njudge = \"stall\"\nmost = 2", "most");
    }
}
