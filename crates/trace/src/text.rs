//! Conversion of bytes and values to text and back.

use node::Value;
use std::borrow::Cow;

/// A name or short text in a record: a constant in the process that writes it, an owned string in the process that
/// reads it.
pub type Trail = Cow<'static, str>;

/// Returns bytes as lower-case hexadecimal, two digits for each byte. It does not use a formatter, because a formatter
/// is slower.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Returns the bytes of a hexadecimal text, in lower or upper case. `None` if a character is not a hexadecimal digit,
/// or if the number of digits is odd.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Returns a value as JSON. [`Value::None`] becomes `null`.
pub fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::None => serde_json::Value::Null,
        Value::Int(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(entries) => serde_json::Value::Object(
            entries.iter().map(|(name, value)| (name.clone(), json_of(value))).collect(),
        ),
    }
}

/// Returns JSON as a value. A fraction, a boolean, or an integer that does not fit into `i64` becomes text.
pub fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::None,
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value_of).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(name, json)| (name.clone(), value_of(json))).collect())
        }
        other => other.as_i64().map_or_else(|| Value::Text(other.to_string()), Value::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_both_ways() {
        assert_eq!(hex(&[0, 0x7f, 0xff]), "007fff");
        assert_eq!(unhex("007fFF"), Some(vec![0, 0x7f, 0xff]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
    }
}
