//! Errors of a scenario: what is wrong, where (file, line, column, key), and what is allowed.

use super::nearest::did_you_mean;
use super::secret;
use std::fmt::{self, Write};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error of a scenario, or of a host's configuration: the file, the position if it is known, and the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    file: String,
    place: Option<ErrorPosition>,
    problem: String,
}

/// An error that has no position yet: the path of the key, and the problem.
pub(super) type Wrong = (String, String);

/// The position of an error: in the file, or in a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ErrorPosition {
    /// Line and column from 1, the number of marked characters, and the text of the line.
    Line { line: usize, column: usize, length: usize, text: String },
    /// Line and column from 1, of a line that may contain a secret key or a part of it. The line is not shown.
    Hidden { line: usize, column: usize },
    /// The text of a setting that changed a value of the file.
    Setting(String),
}

impl ScenarioError {
    /// Creates an error without a position, about the whole file `file`.
    pub fn new(file: &str, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), place: None, problem: problem.into() }
    }

    /// Returns the error with the points of a grid at which it applies, for example `radio.retune=5ms`.
    #[must_use]
    pub fn at_points(mut self, points: &str) -> Self {
        let _ = write!(self.problem, " (at {points})");
        self
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place, problem } = self;
        match place {
            Some(ErrorPosition::Line { line, column, length, text }) => {
                let margin = line.to_string().len();
                // Tabs are kept, so that the mark is below the marked text.
                let before: String =
                    text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
                write!(f, "{file}, line {line}, column {column}: {problem}\n {line} | {text}\n")?;
                write!(f, " {:margin$} | {before}{}", "", "^".repeat(*length))
            }
            Some(ErrorPosition::Hidden { line, column }) => {
                write!(f, "{file}, line {line}, column {column}: {problem}")
            }
            Some(ErrorPosition::Setting(setting)) => write!(f, "{file}, with {setting}: {problem}"),
            None => write!(f, "{file}: {problem}"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// The file that is being read: its name, its text, and the settings that changed its values.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// The paths of values that settings changed, each with the text of the setting.
    changed: Vec<(String, String)>,
}

impl<'a> Source<'a> {
    pub(crate) const fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, changed: Vec::new() }
    }

    pub(crate) const fn file(&self) -> &'a str {
        self.file
    }

    pub(crate) const fn text(&self) -> &'a str {
        self.text
    }

    /// Notes that `setting` changed the value at `path`.
    pub(crate) fn changed(&mut self, path: String, setting: String) {
        self.changed.push((path, setting));
    }

    /// Returns an error about the whole file, without a line.
    pub(crate) fn whole(&self, problem: impl Into<String>) -> ScenarioError {
        ScenarioError::new(self.file, problem)
    }

    /// Returns the error of a text that is not TOML.
    pub(crate) fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or_default();
        let meant = self.text.get(span.clone()).unwrap_or_default();
        let problem = match error.message() {
            "duplicate key" => {
                let before = self.text.get(..span.start).unwrap_or_default();
                let first = first_of(before, self.line_of(&span), meant);
                let first = first.map_or(String::new(), |line| format!("; the first is in line {line}"));
                format!("duplicate key `{meant}`{first}")
            }
            large if large.contains(" as i128") => {
                let key = self.text.get(..span.start).and_then(key_before);
                let meant = if key.is_some_and(secret::is_secret) { "the value" } else { meant };
                let key = key.map_or(String::new(), |key| format!("`{key}`: "));
                format!("{key}{meant} is too large a number; allowed: {} to {}", i64::MIN, i64::MAX)
            }
            other => other.to_owned(),
        };
        self.at(&span, problem)
    }

    fn line_of(&self, span: &Range<usize>) -> &str {
        let begin = self.text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        self.text.get(begin..).and_then(|rest| rest.lines().next()).unwrap_or_default()
    }

    /// Returns an error about the table at `path`. If the problem has the form "`key`: problem", the error is at this
    /// key of the table.
    pub(crate) fn at_key(&self, path: &str, problem: &str) -> ScenarioError {
        let named = problem.strip_prefix('`').and_then(|rest| rest.split_once("`: "));
        match named.filter(|(key, _)| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))) {
            Some((key, problem)) => self.at_path(&format!("{path}.{key}"), problem),
            None => self.at_path(path, problem),
        }
    }

    /// Returns an error about the value at a path such as `host.b1.role[0].delay_device`.
    pub(crate) fn at_path(&self, path: &str, problem: &str) -> ScenarioError {
        // The message names an unknown key; the path is that of the table around it.
        let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let full = match unknown {
            Some(key) if path == "." => key.to_owned(),
            Some(key) if !path.ends_with(key) => format!("{path}.{key}"),
            _ => path.to_owned(),
        };
        let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let full = match missing {
            Some(key) if path == "." => key.to_owned(),
            Some(key) => format!("{}.{key}", path.trim_end_matches('.')),
            None => full,
        };
        let mut problem = if missing.is_some() { "is missing".to_owned() } else { plain(problem) };
        let names_key = unknown.is_some() || missing.is_some();
        if !names_key
            && secret::is_secret(full.trim_end_matches(|c: char| c.is_ascii_digit() || "[]".contains(c)))
        {
            problem = secret::unquoted(&problem);
        }
        if full.rsplit('.').next() == Some("mtu") {
            // The least MTU of IPv4 is 68 bytes (RFC 791, section 3.2).
            problem = problem.replace("a whole number from 0 to 65535", "a whole number from 68 to 65535");
        }
        if let Some((length, _)) = problem
            .strip_prefix("invalid length ")
            .and_then(|rest| rest.split_once(", expected fewer elements in array"))
        {
            let wanted =
                if full.rsplit('.').next() == Some("ends") { "a list of 2 values" } else { "a shorter list" };
            problem = format!("must be {wanted}; it has {length} values");
        }
        let problem = format!("`{full}`: {problem}");
        // If several settings change the same value, the last one is named, as it applies.
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let mut changed = self.changed.iter().rev();
        if let Some((_, setting)) = changed.clone().find(|(path, _)| within(&full, path)) {
            let place = Some(ErrorPosition::Setting(setting.clone()));
            return ScenarioError { file: self.file.to_owned(), place, problem };
        }
        let problem = match changed.find(|(path, _)| within(path, &full)) {
            Some((_, setting)) => format!("{problem} (with {setting})"),
            None => problem,
        };
        match locate(self.text, &full) {
            Some(span) => self.at(&span, problem),
            None => self.whole(problem),
        }
    }

    /// Returns an error at the bytes `span` of the text. If `span` has several lines, the part in the first line is
    /// marked.
    fn at(&self, span: &Range<usize>, problem: String) -> ScenarioError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(begin..).unwrap_or_default().chars().count() + 1;
        let text = self
            .text
            .get(begin..)
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned();
        let meant = self.text.get(span.clone()).unwrap_or_default();
        let meant = meant.lines().next().unwrap_or_default().trim_end().chars().count();
        let length = meant.min((text.chars().count() + 1).saturating_sub(column)).max(1);
        let line = before.matches('\n').count() + 1;
        let place = if secret::may_show_key(&text) {
            ErrorPosition::Hidden { line, column }
        } else {
            ErrorPosition::Line { line, column, length, text }
        };
        let place = Some(place);
        ScenarioError { file: self.file.to_owned(), place, problem }
    }
}

/// Returns the text in quotation marks that a message has as the wrong value.
fn quoted(before: &str) -> Option<&str> {
    before
        .rsplit_once("string ")
        .map(|(_, text)| text.trim_end_matches(", "))
        .filter(|text| text.starts_with('"'))
}

/// Rewrites an error of the TOML reader in terms of TOML instead of Rust, with a suggestion for a misspelt name.
fn plain(problem: &str) -> String {
    const WHOLE: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    let mut text = problem.replace("floating point `", "number `");
    text = text.replace(
        "invalid type: unit variant, expected string only",
        "expected a word in quotation marks, not a list or a table",
    );
    for (theirs, ours) in [("invalid type: map,", "a table,"), ("invalid type: sequence,", "a list,")] {
        text = text.replace(theirs, &format!("invalid type: {ours}"));
    }
    if let Some((before, wanted)) = text.rsplit_once("expected ") {
        let words = match wanted {
            "f32" | "f64" => Some("a number".to_owned()),
            "a boolean" => Some("true or false".to_owned()),
            unsigned @ ("u8" | "u16" | "u32") => {
                let bits = unsigned.trim_start_matches('u').parse().unwrap_or(32_u32);
                Some(format!("a whole number from 0 to {}", (1_u64 << bits) - 1))
            }
            "u64" | "usize" => Some("a whole number, 0 or greater".to_owned()),
            whole if WHOLE.contains(&whole) => Some("a whole number".to_owned()),
            // A table in place of a list is, for example, `[event]` in place of `[[event]]`.
            "a sequence" if before.contains("a table") => {
                Some("a list: [ ... ], or a header in double brackets, [[ ]], for each entry".to_owned())
            }
            "a sequence" => Some(match quoted(before) {
                Some(text) => format!("a list, for example [{text}]"),
                None => "a list, for example [ ... ]".to_owned(),
            }),
            "a map" => Some("a table, for example { key = value }".to_owned()),
            named if named.starts_with("struct ") => Some("a table, for example { key = value }".to_owned()),
            _ => None,
        };
        if let Some(words) = words {
            text = format!("{before}expected {words}");
        }
    }
    for kind in ["field", "variant"] {
        let unknown = text.strip_prefix(&format!("unknown {kind} `")).and_then(|rest| rest.split_once('`'));
        if let Some((word, rest)) = unknown {
            let known = rest.split('`').skip(1).step_by(2);
            let meant = did_you_mean(word, known);
            text = format!("unknown {kind} `{word}`{meant}{rest}");
            break;
        }
    }
    if let Some(length) = text.strip_prefix("invalid length ")
        && let Some((length, wanted)) = length.split_once(", expected an array of length ")
    {
        text = format!("must be a list of {wanted} values; it has {length}");
    }
    text = text.replace(
        "invalid IPv4 address syntax",
        "not an IPv4 address; write four numbers from 0 to 255, for example 10.1.0.7",
    );
    text.replace(", expected one of ", "; allowed: ")
}

/// Returns the number, from 1, of the line in `before` that has the same table heading or key as `line`. A key is
/// searched from the last heading on.
fn first_of(before: &str, line: &str, key: &str) -> Option<usize> {
    let is_heading = line.trim_start().starts_with('[');
    let heading = |line: &str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let lines: Vec<&str> = before.lines().collect();
    let begin = lines.iter().rposition(|line| line.trim_start().starts_with('[')).filter(|_| !is_heading);
    let is_first = |other: &&str| {
        if is_heading {
            return heading(other) == heading(line);
        }
        other.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let begin = begin.unwrap_or(0);
    lines.iter().skip(begin).position(is_first).map(|at| begin + at + 1)
}

/// Returns the key whose value begins at the end of `text`, or `None`.
fn key_before(text: &str) -> Option<&str> {
    let text = text.trim_end().strip_suffix('=')?.trim_end();
    let begin = text.rfind(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).map_or(0, |at| at + 1);
    text.get(begin..).filter(|key| !key.is_empty())
}

/// Returns the range of bytes of the value at a path, or of the nearest parent that exists. For a table it is the
/// range of the table's key.
fn locate(text: &str, path: &str) -> Option<Range<usize>> {
    let document = DeTable::parse(text).ok()?;
    let steps: Vec<&str> = path.split(['.', '[']).map(|step| step.trim_end_matches(']')).collect();
    let mut steps = steps.as_slice();
    let mut table = Some(document.get_ref());
    let mut list: Option<&[Spanned<DeValue<'_>>]> = None;
    let mut found = None;
    while !steps.is_empty() {
        let (key, value, taken) = if let Some(table) = table {
            let Some((key, value, taken)) = entry(table, steps) else { break };
            (Some(key), value, taken)
        } else {
            let item = steps.first().and_then(|step| step.parse::<usize>().ok());
            let Some(value) = item.and_then(|item| list?.get(item)) else { break };
            (None, value, 1)
        };
        table = value.get_ref().as_table();
        list = value.get_ref().as_array().map(|items| &**items);
        found = Some(key.filter(|_| table.is_some()).unwrap_or_else(|| value.span()));
        steps = steps.get(taken..).unwrap_or_default();
    }
    found
}

/// Finds the entry of `table` whose key is one or more of the next `steps`, joined by dots. Returns the range of the
/// key, the value, and the number of steps.
fn entry<'t, 'i>(
    table: &'t DeTable<'i>,
    steps: &[&str],
) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>, usize)> {
    (1..=steps.len()).find_map(|taken| {
        let name = steps.get(..taken)?.join(".");
        let (key, value) = table.iter().find(|(key, _)| key.get_ref().as_ref() == name)?;
        Some((key.span(), value, taken))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[wire.a]\nrate = \"1Mb/s\"\nends = [\"x\",\n  \"y\"]\n\n[host.x]\nrole = [\n    { kind = \"a\" },\n    \
                        { kind = \"b\", rate = 5 },\n]\n\n[[host.y.role]]\nkind = \"c\"\n[sweep.set]\n\"radio.retune\" = 3\n";

    fn found(path: &str) -> &str {
        locate(TEXT, path).map_or("", |span| &TEXT[span])
    }

    #[test]
    fn a_path_leads_to_its_bytes() {
        for (path, bytes) in [
            ("wire.a.rate", "\"1Mb/s\""),
            ("wire.a.ends[1]", "\"y\""),
            ("wire.a.delay", "a"),
            ("host.x.role[1].rate", "5"),
            ("host.x.role[1].speed", "{ kind = \"b\", rate = 5 }"),
            ("host.y.role[0].kind", "\"c\""),
            ("sweep.set.radio.retune", "3"),
            ("nothing", ""),
        ] {
            assert_eq!(found(path), bytes, "{path}");
        }
    }

    #[test]
    fn the_mark_stands_below_what_is_meant() {
        let error = Source::new("f.toml", TEXT).at_path("host.x.role[1].rate", "too much").to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines[0], "f.toml, line 9, column 26: `host.x.role[1].rate`: too much");
        assert_eq!(lines[1].find("5 }"), lines[2].find('^'), "{error}");
        let list = Source::new("f.toml", TEXT).at_path("wire.a.ends", "two").to_string();
        assert!(
            list.contains("line 3, column 8") && list.ends_with("       ^^^^^"),
            "of a list its first line: {list}"
        );
    }

    #[test]
    fn what_was_changed_from_outside_is_not_blamed_on_the_file() {
        let mut source = Source::new("f.toml", TEXT);
        source.changed("wire.a.rate".to_owned(), "wire.a.rate=0".to_owned());
        let error = source.at_path("wire.a.rate", "must be more").to_string();
        assert_eq!(error, "f.toml, with wire.a.rate=0: `wire.a.rate`: must be more");
        let around = source.at_path("wire.a", "does not fit").to_string();
        assert!(
            around.starts_with("f.toml, line 1, column 7: `wire.a`: does not fit (with wire.a.rate=0)\n")
        );
        assert!(source.at_path("wire.a.ratio", "?").to_string().starts_with("f.toml, line 1"));
    }

    #[test]
    fn a_key_is_not_quoted_whatever_is_wrong_with_it() {
        let digits = "000102030405060708090a0b0c0d0e0";
        for (text, says) in [
            (format!("[mobile-ip]\nkey = \"{digits}x\"\n"), "line 2, column 7"),
            (format!("[mobile-ip]\nkey = \"{digits}\"\n"), "line 2, column 7"),
            (format!("[mobile-ip]\nkey = {digits}1\n"), "line 2"),
            (format!("[mobile-ip]\nkey = 1{}\n", "1".repeat(30)), "line 2"),
            (format!("[mobile-ip]\nkey = 1{}\n", "1".repeat(10)), "line 2"),
            (format!("[mobile-ip]\nkey = \"{digits}\n"), "line 2"),
            (format!("[mobile-ip]\nkye \"{digits}1\"\n"), "line 2"),
            (format!("mobile-ip = {{ key = \"{digits}1\", spi = }}\n"), "line 1"),
        ] {
            let error = crate::Scenario::plan("f.toml", &text, &[], 1).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(!error.contains(&digits[..8]) && !error.contains("1111"), "{error}");
        }
        let set = |text: &str| {
            let first = include_str!("../../../../scenarios/mobile-ip/download.toml");
            crate::Scenario::plan("f.toml", first, &[text.parse().unwrap()], 1).unwrap_err().to_string()
        };
        let wrong = set(&format!("mobile-ip.key={digits}x"));
        assert!(wrong.contains("character 32 of this text") && !wrong.contains(digits), "{wrong}");
        let odd = set(&format!("mobile-ip.key={digits}"));
        assert!(odd.contains("31 digits, an odd number") && !odd.contains(digits), "{odd}");
    }
}
