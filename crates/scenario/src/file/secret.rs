//! Secret keys are not copied into run directories, which other users may read. Each key is replaced by the same number
//! of hexadecimal digits, which depend on the key's digest. So the text can still be read as a scenario, and equal keys
//! have equal replacements.

use sha2::{Digest, Sha256};
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

/// The least length, in bytes, of a key that is searched in the whole text. No protocol accepts a shorter key, and a
/// shorter text may have another meaning.
const SHORTEST: usize = 8;

/// Returns whether the value of a TOML key is a secret: its name is `key` or ends with `_key`. `name`: the name or the
/// path of the key.
pub(super) fn is_secret(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last == "key" || last.ends_with("_key")
}

/// Returns the text of a scenario, in which its secret keys and the keys `more` are replaced. Keys of at least 8
/// bytes are replaced in comments and in the description as well.
pub(super) fn redacted(text: &str, more: impl IntoIterator<Item = String>) -> String {
    let mut spans = spans_of(text);
    // The last key is replaced first, so that the offsets of the others stay valid.
    spans.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut out = text.to_owned();
    for (span, key) in &spans {
        out.replace_range(span.clone(), &format!("\"{}\"", stand_in(key)));
    }
    hidden(&out, &keys_of(text, more))
}

/// Returns the secret keys of a scenario and the keys `more`, the longest first. Keys of less than 8 bytes, and
/// replacements of keys, are left out.
pub(super) fn keys_of(text: &str, more: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut keys: Vec<String> = spans_of(text).into_iter().map(|(_, key)| key).collect();
    keys.extend(more);
    keys.retain(|key| key.len() >= SHORTEST && !key.starts_with(MARK));
    keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
    keys.dedup();
    keys
}

/// Returns a text in which `keys` are replaced, in upper or lower case. A quoted key that is assigned to a name ending
/// with `key` is also replaced, for example in a comment.
pub(super) fn hidden(text: &str, keys: &[String]) -> String {
    let mut out = text.to_owned();
    for key in keys {
        let small = key.to_ascii_lowercase();
        let places: Vec<usize> = out.to_ascii_lowercase().match_indices(&small).map(|(at, _)| at).collect();
        for at in places.into_iter().rev() {
            out.replace_range(at..at + small.len(), &stand_in(key));
        }
    }
    let assigned: Vec<(Range<usize>, String)> =
        out.match_indices("key").filter_map(|(at, _)| assigned(&out, at)).collect();
    for (span, key) in assigned.into_iter().rev() {
        out.replace_range(span, &stand_in(&key));
    }
    out
}

/// Returns the quoted hexadecimal digits that are assigned to a name whose last three letters, `key`, are at the
/// offset `at`. The result has their range and their text. `None` if there are fewer than 8 digits, or other
/// characters.
fn assigned(text: &str, at: usize) -> Option<(Range<usize>, String)> {
    let rest = text.get(at..)?.strip_prefix("key")?.trim_start_matches(['"', '\'', ' ', '\t']);
    let rest = rest.strip_prefix('=')?.trim_start_matches([' ', '\t']);
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let key = rest.get(1..)?.split(quote).next()?;
    let is_key = key.len() >= SHORTEST && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    let begin = text.len() - rest.len() + 1;
    is_key.then(|| (begin..begin + key.len(), key.to_owned()))
}

/// Returns whether a line may contain a key or a part of one. Such a line has a word that ends with `key` and is not
/// the end of the line, or a word of at least 20 letters and digits with at least 4 digits.
pub(super) fn may_show_key(line: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let small = line.to_ascii_lowercase();
    let has_word = small.match_indices("key").any(|(at, word)| {
        let after = small.get(at + word.len()..).and_then(|rest| rest.chars().next());
        after.is_some_and(|after| !goes_on(after))
    });
    let is_long = |word: &str| word.len() >= 20 && word.bytes().filter(u8::is_ascii_digit).count() >= 4;
    has_word || line.split(|c: char| !c.is_ascii_alphanumeric()).any(is_long)
}

/// Returns whether a text assigns a value, by `=`, to a name that ends with `key`.
fn assigns_key(text: &str) -> bool {
    let is_name = |(at, word): (usize, &str)| {
        text.get(at + word.len()..)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ', '\t']).starts_with('='))
    };
    text.match_indices("key").any(is_name)
}

/// Returns a message about a secret value with "the value" in place of quoted parts, which may contain the secret.
pub(super) fn unquoted(problem: &str) -> String {
    let mut out = String::new();
    let mut rest = problem;
    while let Some(at) = rest.find(['`', '"']) {
        let (before, quoted) = rest.split_at(at);
        let quote = if quoted.starts_with('`') { '`' } else { '"' };
        out.push_str(before);
        // The quoted part ends at the last quote of this kind, as it may contain such quotes.
        match quoted.rfind(quote).filter(|end| *end > 0).and_then(|end| quoted.get(end + 1..)) {
            Some(after) => rest = after,
            None => rest = "",
        }
        out.push_str("the value");
    }
    out + rest
}

/// Returns whether a TOML text assigns a string to a secret key. `false` if the text is not TOML.
pub fn has_keys(text: &str) -> bool {
    !spans_of(text).is_empty()
}

/// Returns the secret keys in a value at a path, including the alternatives of a value `A|B`.
pub(super) fn keys_in(path: &str, value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if is_secret(path) => {
            text.split('|').chain([text.as_str()]).map(str::to_owned).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| keys_in(path, item)).collect(),
        Value::Table(table) => table.iter().flat_map(|(name, value)| keys_in(name, value)).collect(),
        _ => Vec::new(),
    }
}

/// Returns a value at a path in which secret keys are replaced.
pub(super) fn without_keys(path: &str, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without_keys(path, item)).collect::<Vec<_>>().into(),
        Value::Table(table) => {
            let hidden = |(name, value): (&String, &Value)| (name.clone(), without_keys(name, value));
            Value::Table(table.iter().map(hidden).collect())
        }
        // A value of a setting that is not valid TOML is a string, for example `{key=00}`. It may contain an assignment
        // to a secret key.
        Value::String(text) if is_secret(path) || assigns_key(text) => stand_in(text).into(),
        Value::Integer(_) | Value::Float(_) if is_secret(path) => stand_in(&value.to_string()).into(),
        other => other.clone(),
    }
}

fn spans_of(text: &str) -> Vec<(Range<usize>, String)> {
    let mut spans = Vec::new();
    if let Ok(document) = DeTable::parse(text) {
        in_table(document.get_ref(), &mut spans);
    }
    spans
}

fn in_table(table: &DeTable<'_>, spans: &mut Vec<(Range<usize>, String)>) {
    for (name, value) in table {
        in_value(name.get_ref(), value, spans);
    }
}

fn in_value(name: &str, value: &Spanned<DeValue<'_>>, spans: &mut Vec<(Range<usize>, String)>) {
    match value.get_ref() {
        DeValue::String(key) if is_secret(name) => spans.push((value.span(), key.to_string())),
        DeValue::Table(table) => in_table(table, spans),
        DeValue::Array(items) => items.iter().for_each(|item| in_value(name, item, spans)),
        _ => {}
    }
}

/// The digits with which a replacement begins. A text that begins with them is not replaced again, so the files of a
/// run that is read back are written unchanged.
const MARK: &str = "d16e57ed";

/// Returns the replacement of a key: [`MARK`] and then hexadecimal digits of the key's digest, cut to the length of
/// the key. A text that begins with [`MARK`] is returned unchanged.
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
    use super::super::settings::{Setting, redacted};
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
        assert_eq!(redacted(&text, &[]), wanted);
        assert_eq!(redacted(&wanted, &[]), wanted);
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
        let set = |text: &str| text.parse::<Setting>().unwrap().to_string();
        assert_eq!(set(&format!("mobile.key={A}")), format!("mobile.key=\"{}\"", stand_in(A)));
        assert_eq!(set("radio.retune=5ms"), "radio.retune=\"5ms\"");
    }

    #[test]
    fn a_key_in_a_table_that_is_set_is_replaced_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, format!("{{key = \"{A}\", spi = 300}}\n")).unwrap();
        for text in [
            format!("mobile-ip=@{}", file.display()),
            format!("mobile-ip={{key=\"{A}\"}}"),
            format!("mobile-ip={{key={A}}}"),
            format!("sigma={{list=[{{deep={{network_key='{A}'}}}}]}}"),
            format!("mobile-ip.key={A}|{B}"),
        ] {
            let shown = text.parse::<Setting>().unwrap().to_string();
            assert!(!shown.contains(A) && !shown.contains(B), "{shown}");
        }
        let set: Setting = format!("mobile-ip=@{}", file.display()).parse().unwrap();
        assert!(set.to_string().contains(&stand_in(A)) && set.to_string().contains("300"), "{set}");
        assert_eq!(set.to_string().parse::<Setting>().unwrap().to_string(), set.to_string());
    }

    #[test]
    fn a_key_in_a_comment_or_in_what_it_is_about_is_replaced() {
        let old = "202122232425262728292a2b2c2d2e2f";
        let text = format!(
            "about = \"with {A}\"\n# key = \"{A}\", {}\n#key='{old}'\nmobile-ip.key = \"{A}\"\n\
             sweep.set.\"mobile-ip.key\" = [\"{B}\"]\n",
            A.to_uppercase()
        );
        let out = redacted(&text, &[]);
        assert!(!out.to_lowercase().contains(A) && !out.contains(B) && !out.contains(old), "{out}");
        assert_eq!(redacted(&out, &[]), out);
        let set: Setting = format!("mobile-ip.key={B}").parse().unwrap();
        assert_eq!(redacted(&format!("# {B}\n"), &[set]), format!("# {}\n", stand_in(B)));
        // A value that is too short for a key is replaced only where it is assigned.
        assert_eq!(redacted("# 00\nkey = \"00\"\n", &[]), format!("# 00\nkey = \"{}\"\n", stand_in("00")));
    }
}
