//! The document of a scenario: its TOML with settings applied.

use super::Setting;
use super::error::{ScenarioError, Source};
use toml::Table;

/// Parses the TOML of a scenario and applies settings. Fails if the text is not TOML, or if a setting names an
/// unknown table or role.
pub(crate) fn read<'a, 's>(
    file: &'a str,
    text: &'a str,
    settings: impl Iterator<Item = &'s Setting>,
) -> Result<(Source<'a>, Table), ScenarioError> {
    let mut source = Source::new(file, text);
    let mut document: Table = toml::from_str(text).map_err(|error| source.toml(&error))?;
    for setting in settings {
        let changed = setting.apply(&mut document).map_err(|problem| source.whole(problem))?;
        for path in changed {
            source.changed(path, setting.to_string());
        }
    }
    Ok((source, document))
}

/// Returns an error with the position of the key `path` in a scenario that was read before.
pub(crate) fn at_path(
    file: &str,
    text: &str,
    settings: &[Setting],
    path: &str,
    problem: &str,
) -> ScenarioError {
    match read(file, text, settings.iter()) {
        Ok((source, _)) => source.at_path(path, problem),
        Err(error) => error,
    }
}
