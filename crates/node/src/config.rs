//! The forms of values in configuration, the same for all roles: addresses and keys as text, durations and rates with a
//! unit.

mod rate;
pub mod schema;

pub use rate::{parse_rate, rate, some_rate};

use serde::{Deserialize, Deserializer, de::Error};
use std::fmt::Display;
use std::str::FromStr;
use wire::{Duration, Iface};

/// Deserializes a value from its text form, for `#[serde(deserialize_with)]`.
pub fn text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
}

/// Deserializes a value from its text form, for an optional key. The key also needs `#[serde(default)]`.
pub fn some_text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    text(deserializer).map(Some)
}

/// Deserializes a list of values from their text forms.
pub fn texts<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let read = |text: String| text.parse().map_err(|error| D::Error::custom(format!("`{text}`: {error}")));
    texts.into_iter().map(read).collect()
}

/// Deserializes a duration such as `250us`, `5ms`, `1.5s` or `3min`, for `#[serde(deserialize_with)]`.
pub fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(SpanText)
}

/// Reads the text of a duration. The error for a number says that the unit is missing.
struct SpanText;

impl serde::de::Visitor<'_> for SpanText {
    type Value = Duration;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a time as text, for example \"5ms\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        read_span(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Duration, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Duration, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Duration, E> {
        let example = number.abs();
        Err(E::custom(format!(
            "{number} has no unit; write \"{example}ms\" or \"{example}s\", or another unit: us, ns, min"
        )))
    }
}

/// Deserializes a duration such as `5ms`, for an optional key. The key also needs `#[serde(default)]`.
pub fn some_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}

/// What is wrong with the text of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanFault {
    /// It is not a number with a unit, or it is negative where no sign is allowed.
    Form,
    /// A time with a sign is required, and the text has no sign.
    NoSign,
    /// The number has more than 9 decimals.
    Decimals,
    /// The time is longer than the largest one.
    TooLong,
}

/// Why a text is not a time. It is displayed as a sentence that says what is wrong with the text, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpanError {
    /// What is wrong.
    pub fault: SpanFault,
    problem: String,
}

impl Display for SpanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for SpanError {}

/// Reads a time with a sign such as `+5s` or `-1.5ms`, in nanoseconds: at most 9223372036 s in either direction.
pub fn read_signed_span(text: &str) -> Result<i64, SpanError> {
    let error = |fault, problem: &str| SpanError { fault, problem: format!("`{text}` {problem}") };
    let (sign, span) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(span), _) => (1, span),
        (None, Some(span)) => (-1, span),
        (None, None) => return Err(error(SpanFault::NoSign, "has no sign; write + or - before the number")),
    };
    let nanos = i64::try_from(read_span(span)?.as_nanos()).ok();
    let too_long = || error(SpanFault::TooLong, "is too long; allowed: at most 9223372036s");
    nanos.map(|nanos| sign * nanos).ok_or_else(too_long)
}

/// Deserializes a time with a sign such as `+5s` or `-1.5ms`, in nanoseconds. Fails if it is more than `most` seconds
/// in either direction.
pub fn signed_span<'de, D: Deserializer<'de>>(deserializer: D, most: i32) -> Result<i64, D::Error> {
    deserializer.deserialize_any(SignedSpanText { most: i64::from(most) })
}

/// Reads the text of a time with a sign.
struct SignedSpanText {
    most: i64,
}

impl serde::de::Visitor<'_> for SignedSpanText {
    type Value = i64;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(
            "a time with a sign: write + or -, a number and a unit, for example \"+5s\" or \"-200ms\"",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<i64, E> {
        let most = self.most;
        let too_large = || E::custom(format!("`{text}` is too large; allowed: -{most}s to +{most}s"));
        match read_signed_span(text) {
            Ok(nanos) if nanos.abs() <= most * 1_000_000_000 => Ok(nanos),
            Ok(_) | Err(SpanError { fault: SpanFault::TooLong, .. }) => Err(too_large()),
            Err(SpanError { fault: SpanFault::NoSign, .. }) => {
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            Err(error) => Err(E::custom(error)),
        }
    }
}

/// Deserializes a list of durations such as `["5ms", "1s"]`, for `#[serde(deserialize_with)]`.
pub fn spans<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
    #[derive(Deserialize)]
    struct Span(#[serde(deserialize_with = "span")] Duration);
    Ok(Vec::<Span>::deserialize(deserializer)?.into_iter().map(|Span(span)| span).collect())
}

/// Returns the duration in `text`, for example `5ms`.
pub fn read_span(text: &str) -> Result<Duration, SpanError> {
    parse_span(text).ok_or_else(|| bad_span(text))
}

fn bad_span(text: &str) -> SpanError {
    let (fault, problem) = span_problem(text);
    SpanError { fault, problem: format!("`{text}` {problem}") }
}

/// Returns what is wrong with a text that is not a time, and what is allowed.
fn span_problem(text: &str) -> (SpanFault, String) {
    if let Some(rest) = text.strip_prefix('-').filter(|rest| parse_span(rest).is_some()) {
        let problem = format!("is negative; a time must be zero or greater, for example {rest}");
        return (SpanFault::Form, problem);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let is_unit = |unit: &str| parse_span(&format!("1{unit}")).is_some();
    // A number has digits and at most one point.
    let has_form = |number: &str| number.matches('.').count() < 2 && is_number(number);
    match unit {
        "" if parse_span(&format!("{number}ms")).is_some() => {
            let problem = format!(
                "is not a time: it has no unit; write `{number}ms` or `{number}s`, or another unit: us, ns, min"
            );
            (SpanFault::Form, problem)
        }
        _ if is_number(number) && !is_unit(unit) && is_unit(&unit.to_ascii_lowercase()) => {
            let lower = text.to_ascii_lowercase();
            (SpanFault::Form, format!("is not a time: units are in lower case, for example `{lower}`"))
        }
        _ if is_unit(unit) && number.split_once('.').is_some_and(|(_, fraction)| fraction.len() > 9) => {
            (SpanFault::Decimals, "has too many decimals; allowed: at most 9".to_owned())
        }
        // The form is valid, so the number is too large.
        _ if is_unit(unit)
            && number.bytes().next().is_some_and(|c| c.is_ascii_digit())
            && has_form(number) =>
        {
            (SpanFault::TooLong, format!("is too long; allowed: at most {}s", u64::MAX / 1_000_000_000))
        }
        _ => {
            let problem = "is not a time; write a number and ns, us, ms, s or min, for example 5ms or 1.5s";
            (SpanFault::Form, problem.to_owned())
        }
    }
}

/// Returns the duration in `text`: a number and one of the units ns, us, ms, s and min. Returns `None` if the text has
/// another form, more than 9 decimals, or more than `u64::MAX` nanoseconds. A part of a nanosecond is cut off.
pub fn parse_span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    // Decimal arithmetic: 0.1s is exactly 100,000,000 ns.
    let whole = whole.parse::<u64>().ok()?.checked_mul(nanos)?;
    let scale = 10u64.pow(fraction.len() as u32);
    // The product can be nearly 6 * 10^19, more than 64 bits can hold.
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = u128::from(fraction) * u128::from(nanos) / u128::from(scale);
    whole.checked_add(u64::try_from(part).ok()?).map(Duration::from_nanos)
}

/// An error in the configuration of a role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The name of the key whose value is wrong.
    pub key: &'static str,
    /// What is wrong with the key's value, and what is allowed.
    pub problem: String,
}

impl ConfigError {
    /// Returns an error about the key `key`, with the text `problem`.
    pub fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

/// Checks the key `moves`: the times and destinations of a host's moves. It is an error if a destination is not in
/// `known`, or if a time is earlier than the time before it. `what` is the kind of destination in the text of the
/// error, for example `station`.
pub fn check_moves<'a>(
    what: &str,
    known: &[&str],
    moves: impl Iterator<Item = (Duration, &'a str)> + Clone,
) -> Result<(), ConfigError> {
    if let Some((_, to)) = moves.clone().find(|(_, to)| !known.contains(to)) {
        return Err(ConfigError::new("moves", format!("no {what} `{to}`; known: {}", known.join(", "))));
    }
    if !moves.map(|(at, _)| at).is_sorted() {
        return Err(ConfigError::new("moves", "must be in ascending order of `at`"));
    }
    Ok(())
}

impl Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.key, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// The names of a host's interfaces. Interface number N has index N - 1.
#[derive(Clone, Copy, Debug)]
pub struct Interfaces<'a>(pub &'a [String]);

impl Interfaces<'_> {
    /// Returns the number of the interface `name`. If the host does not have it, the error names `key` and lists the
    /// interfaces of the host.
    pub fn number(&self, key: &'static str, name: &str) -> Result<Iface, ConfigError> {
        let index = self.0.iter().position(|other| other == name);
        index.map(|index| Iface(index as u16 + 1)).ok_or_else(|| {
            ConfigError::new(
                key,
                format!("this host has no interface `{name}`; it has: {}", self.0.join(", ")),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_exact() {
        let nanos = |text| parse_span(text).map(|span| span.as_nanos());
        assert_eq!(nanos("250us"), Some(250_000));
        assert_eq!(nanos("1.5s"), Some(1_500_000_000));
        assert_eq!(nanos("0.1s"), Some(100_000_000));
        assert_eq!(nanos("3min"), Some(180_000_000_000));
        assert_eq!(nanos("0.999999999min"), Some(59_999_999_940));
        for bad in [
            "",
            "5",
            "ms",
            "-1s",
            "1,5s",
            "1.5.5s",
            "5 ms",
            "5h",
            ".5s",
            "99999999999999999999s",
            "999999999999s",
        ] {
            assert_eq!(nanos(bad), None, "{bad}");
        }
        for (bad, says) in [
            ("-1s", "is negative"),
            ("0.5", "it has no unit; write `0.5ms` or `0.5s`"),
            ("0.5MS", "lower case, for example `0.5ms`"),
            ("999999999999s", "allowed: at most 18446744073s"),
            ("5h", "write a number and ns, us, ms, s or min"),
            ("1.2345678901s", "allowed: at most 9"),
            ("999999999999.5s", "allowed: at most 18446744073s"),
            (".5", "write a number and ns, us, ms, s or min"),
            ("1.5.5", "write a number and ns, us, ms, s or min"),
            (".", "write a number and ns, us, ms, s or min"),
        ] {
            assert!(read_span(bad).unwrap_err().to_string().contains(says), "{bad}: {:?}", read_span(bad));
        }
        for (text, read) in [
            ("+5s", Ok(5_000_000_000)),
            ("-1.5ms", Ok(-1_500_000)),
            ("5s", Err(SpanFault::NoSign)),
            ("+9223372037s", Err(SpanFault::TooLong)),
            ("+99999999999s", Err(SpanFault::TooLong)),
            ("+1.2345678901s", Err(SpanFault::Decimals)),
            ("+-5s", Err(SpanFault::Form)),
            ("+5 is too long", Err(SpanFault::Form)),
        ] {
            assert_eq!(read_signed_span(text).map_err(|error| error.fault), read, "{text}");
        }
    }
}
