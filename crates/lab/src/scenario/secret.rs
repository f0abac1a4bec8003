//! Keys are not copied into the directories of runs, which others may read: a key's place has the beginning of its digest, of
//! the same length. So the text remains a scenario that can be read again, and equal keys remain equal.

use super::Setting;
use sha2::{Digest, Sha256};
use std::ops::Range;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// Whether the value of a TOML key of this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    name == "key" || name.ends_with("_key")
}

/// The text of a scenario without its keys.
pub(crate) fn redacted(text: &str) -> String {
    let Ok(document) = DeTable::parse(text) else { return text.to_owned() };
    let mut spans = Vec::new();
    in_table(document.get_ref(), &mut spans);
    // From the end, so that what is before stays in its place.
    spans.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut out = text.to_owned();
    for (span, key) in spans {
        out.replace_range(span, &format!("\"{}\"", stand_in(&key)));
    }
    out
}

/// Whether a text has a key.
pub fn has_keys(text: &str) -> bool {
    let Ok(document) = DeTable::parse(text) else { return false };
    let mut spans = Vec::new();
    in_table(document.get_ref(), &mut spans);
    !spans.is_empty()
}

/// A setting as `run.json` has it.
pub(crate) fn redacted_setting(setting: &Setting) -> String {
    let (path, value) = setting.parts();
    if path.rsplit('.').next().is_some_and(is_secret) {
        return format!("{path}={}", Value::from(stand_in(&value)));
    }
    setting.to_string()
}

fn in_table(table: &DeTable<'_>, spans: &mut Vec<(Range<usize>, String)>) {
    for (name, value) in table {
        match value.get_ref() {
            DeValue::String(key) if is_secret(name.get_ref()) => spans.push((value.span(), key.to_string())),
            value => in_value(value, spans),
        }
    }
}

fn in_value(value: &DeValue<'_>, spans: &mut Vec<(Range<usize>, String)>) {
    match value {
        DeValue::Table(table) => in_table(table, spans),
        DeValue::Array(items) => items.iter().for_each(|item| in_value(item.get_ref(), spans)),
        _ => {}
    }
}

/// What is in the place of a key begins with these digits, so that a run that was read back is written as it was.
const MARK: &str = "d16e57ed";

/// Hexadecimal digits of the digest, as many as the key has.
fn stand_in(key: &str) -> String {
    if key.starts_with(MARK) {
        return key.to_owned();
    }
    let mut digits = MARK.to_owned();
    for block in 0_u32.. {
        if digits.len() >= key.len() {
            break;
        }
        let digest =
            Sha256::new().chain_update("wayfare key ").chain_update(block.to_be_bytes()).chain_update(key);
        digits.push_str(&trace::hex(&digest.finalize()));
    }
    digits.truncate(key.len());
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "000102030405060708090a0b0c0d0e0f";
    const B: &str = "101112131415161718191a1b1c1d1e1f";

    #[test]
    fn keys_are_replaced_wherever_they_are_and_nothing_else_is() {
        let text = format!(
            "# first\n[mobile-ip]\nkey = \"{A}\" # of all\ncellular-ip.network_key = '{A}'\n\
             [[host.mn.role]]\nlist = [{{ name = \"key\", key = \"{B}\" }}]\nkey_generation = 1\nkeys = \"x\"\n"
        );
        let [a, b] = [A, B].map(stand_in);
        let wanted = text.replace(&format!("'{A}'"), &format!("\"{A}\"")).replace(A, &a).replace(B, &b);
        assert_eq!(redacted(&text), wanted);
        assert_eq!(redacted(&wanted), wanted);
        assert!(a != b && a.len() == A.len() && a.parse::<auth::Key>().is_ok());
    }

    #[test]
    fn a_text_with_a_key_is_known_however_it_is_written() {
        assert!(has_keys("role = [{ kind = \"x\", nodes = [{ spi = 256, key = \"00\" }] }]"));
        assert!(has_keys("name = \"d#1\"\nrole = [{ \"k\\u0065y\" = \"00\" }]"));
        assert!(has_keys("network_key = \"00\""));
        assert!(!has_keys("name = \"monkey key = 1\" # key = \"00\"\nkeys = 1"));
    }

    #[test]
    fn a_key_that_is_set_is_replaced_too() {
        let set = |text: &str| redacted_setting(&text.parse().unwrap());
        assert_eq!(set(&format!("mobile.key={A}")), format!("mobile.key=\"{}\"", stand_in(A)));
        assert_eq!(set("radio.retune=5ms"), "radio.retune=\"5ms\"");
    }
}
