//! Rates as text.

use serde::Deserializer;
use serde::de::{Error, Visitor};
use std::fmt::Formatter;

/// Deserializes a rate in bit/s, such as `2Mb/s`, `64kb/s` or `1Gb/s`, for `#[serde(deserialize_with)]`.
pub fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(RateText)
}

/// Reads a rate. A number without a unit gets the same error as a malformed text.
struct RateText;

impl Visitor<'_> for RateText {
    type Value = u64;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a rate, for example \"2Mb/s\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        parse_rate(text).ok_or_else(|| {
            E::custom(if is_too_fast(text) {
                format!("`{text}` is too fast; allowed: at most {}Gb/s", u64::MAX / 1_000_000_000)
            } else {
                format!(
                    "`{text}` is not a rate; write a whole number above 0 and b/s, kb/s, Mb/s or Gb/s, for example \"2Mb/s\""
                )
            })
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        self.visit_str(&number.to_string())
    }
}

/// Deserializes a rate as [`rate`] does, for an optional key. The key also needs `#[serde(default)]`.
pub fn some_rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    rate(deserializer).map(Some)
}

/// Reads a rate as text, for example `2Mb/s`. Returns it in bit/s, or `None` if the text is malformed, zero or too
/// large.
pub fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit: u64 = match unit {
        "b/s" => 1,
        "kb/s" => 1_000,
        "Mb/s" => 1_000_000,
        "Gb/s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|rate| *rate > 0)
}

/// Returns whether a text is a rate whose number is too large.
fn is_too_fast(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_above_0 = text.bytes().take_while(u8::is_ascii_digit).any(|digit| digit != b'0');
    is_above_0 && parse_rate(&format!("1{unit}")).is_some() && parse_rate(text).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        assert_eq!(parse_rate("2Mb/s"), Some(2_000_000));
        assert_eq!(parse_rate("100kb/s"), Some(100_000));
        for bad in ["", "2", "2 Mb/s", "2MB/s", "0Mb/s", "-1Mb/s", "1.5Mb/s", "99999999999999Gb/s"] {
            assert_eq!(parse_rate(bad), None, "{bad}");
            assert_eq!(is_too_fast(bad), bad.ends_with("9Gb/s"), "{bad}");
        }
    }
}
