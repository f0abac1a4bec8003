//! What is wrong with a scenario, and where: file, line, key, what is allowed.

use std::fmt;

/// A scenario that cannot be run. Nothing has been started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    file: String,
    /// The line from 1, and its text.
    line: Option<(usize, String)>,
    problem: String,
}

impl ScenarioError {
    pub(crate) fn new(file: &str, problem: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, problem: problem.into() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Some((number, text)) => {
                let margin = number.to_string().len();
                write!(
                    f,
                    "{}, line {number}: {}\n {number} | {text}\n {:margin$} |",
                    self.file, self.problem, ""
                )
            }
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// The file that is being read.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// An error that belongs to no line.
    pub(crate) fn whole(&self, problem: impl Into<String>) -> ScenarioError {
        ScenarioError::new(self.file, problem)
    }

    /// Not TOML at all.
    pub(crate) fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let at = error.span().map_or(0, |span| span.start);
        let number = self.text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        self.on_line(number, error.message().to_owned())
    }

    /// A value at a path such as `host.b1.role[0].delay_device` is wrong.
    pub(crate) fn at_path(&self, path: &str, problem: &str) -> ScenarioError {
        // An unknown key is named by the message, its place by the path of the table around it.
        let unknown = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let full = match unknown {
            Some(key) if path == "." => key.to_owned(),
            Some(key) if !path.ends_with(key) => format!("{path}.{key}"),
            _ => path.to_owned(),
        };
        let problem = format!("`{full}`: {}", problem.replace(", expected one of ", "; allowed: "));
        match locate(self.text, &full) {
            Some(number) => self.on_line(number, problem),
            None => self.whole(problem),
        }
    }

    fn on_line(&self, number: usize, problem: String) -> ScenarioError {
        let line = self.text.lines().nth(number - 1).unwrap_or_default().trim_end().to_owned();
        ScenarioError { file: self.file.to_owned(), line: Some((number, line)), problem }
    }
}

/// The line, from 1, where the last key of a path stands: looked for below the line of the key before it, so that the
/// same key in another table is not mistaken for it.
fn locate(text: &str, path: &str) -> Option<usize> {
    let steps: Vec<(String, Option<usize>)> =
        path.split('.').filter(|step| !step.is_empty()).map(step).collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    let mut found = None;
    let mut depth = 0;
    while depth < steps.len() {
        // A header such as [host.b1] stands for several steps at once; take the longest that fits.
        let header = (depth + 1..=steps.len()).rev().find_map(|end| {
            let name =
                steps.get(depth..end)?.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(".");
            let line = find_from(&lines, at, |line| {
                depth == 0 && (line == format!("[{name}]") || line == format!("[[{name}]]"))
            })?;
            Some((line, end))
        });
        let (key, index) = steps.get(depth)?;
        let (line, next) = match header {
            Some(header) => header,
            None => (find_key(&lines, at, key, *index)?, depth + 1),
        };
        (at, found, depth) = (line, Some(line + 1), next);
    }
    found
}

/// `role[2]` is the third of `role`.
fn step(text: &str) -> (String, Option<usize>) {
    let (key, index) = text.split_once('[').unwrap_or((text, ""));
    (key.to_owned(), index.trim_end_matches(']').parse().ok())
}

fn find_from(lines: &[&str], from: usize, wanted: impl Fn(&str) -> bool) -> Option<usize> {
    (from..lines.len()).find(|index| lines.get(*index).is_some_and(|line| wanted(line.trim())))
}

/// A line that sets `key`, at its begin or within braces; of a list of tables, the line of the `index`-th one.
fn find_key(lines: &[&str], from: usize, key: &str, index: Option<usize>) -> Option<usize> {
    let sets = |line: &str| {
        line.match_indices(key).any(|(at, _)| {
            let before = line.get(..at).unwrap_or_default().trim_end();
            let after = line.get(at + key.len()..).unwrap_or_default().trim_start();
            (before.is_empty() || before.ends_with(['{', ',', '[', '.'])) && after.starts_with(['=', '.'])
        })
    };
    let first = find_from(lines, from, sets)?;
    let Some(index) = index else { return Some(first) };
    if index == 0 && lines.get(first).is_some_and(|line| line.contains('{')) {
        return Some(first);
    }
    let opens = |at: &usize| lines.get(*at).is_some_and(|line| line.trim().starts_with('{'));
    Some((first..lines.len()).filter(opens).nth(index).unwrap_or(first))
}
