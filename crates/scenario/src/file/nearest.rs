//! Suggestions for an unknown name: "did you mean".

/// The least Jaro-Winkler similarity of two names, from 0 to 1, for a suggestion.
const ALIKE: f64 = 0.8;

/// Returns `, did you mean `x`?` with the known name that is most similar to `word`. Empty if none is similar. A word
/// that is the last part of a name is as similar as the name: `download` of `mobile-ip/download`.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |name: &&'a str| match name.rsplit_once('/') {
        Some((_, last)) if last == word => 1.0,
        _ => strsim::jaro_winkler(word, name),
    };
    let best = known.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|name| likeness(name) >= ALIKE)
        .map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let known = ["first", "bulk", "mobile-ip/download"];
        assert_eq!(did_you_mean("firs", known), ", did you mean `first`?");
        assert_eq!(did_you_mean("mobile-ip/downlaod", known), ", did you mean `mobile-ip/download`?");
        assert_eq!(did_you_mean("download", known), ", did you mean `mobile-ip/download`?");
        assert_eq!(did_you_mean("semisoft", known), "");
        assert_eq!(did_you_mean("x", []), "");
    }
}
