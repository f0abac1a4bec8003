//! Product code: the text of a file without comments, string literals, and items under `#[cfg(test)]`.

use std::iter::Peekable;
use std::str::Chars;

/// Returns the product code of a file. Test items are removed with their lines, so line numbers are not those of the
/// file.
pub(crate) fn product(text: &str) -> String {
    without_tests(&code(text))
}

/// Returns the number of lines with product code.
pub(crate) fn product_lines(text: &str) -> usize {
    product(text).lines().filter(|line| !line.trim().is_empty()).count()
}

/// Returns whether a path is that of a test.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("testing.rs") || path.contains("/tests/")
}

/// Returns the text without comments and without the contents of string literals.
fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => skip_line(&mut rest),
            '"' => {
                let hashes = out.chars().rev().take_while(|c| *c == '#').count();
                let is_raw = out.trim_end_matches('#').ends_with('r');
                skip_string(&mut rest, is_raw.then_some(hashes));
                out.push_str("\"\"");
            }
            // A character literal may be a quotation mark. A lifetime is copied like any other text.
            '\'' => {
                out.push(c);
                skip_character(&mut rest);
            }
            _ => out.push(c),
        }
    }
    out
}

fn skip_line(rest: &mut Peekable<Chars<'_>>) {
    while rest.peek().is_some_and(|c| *c != '\n') {
        rest.next();
    }
}

/// Skips the rest of a string literal after its first quotation mark. `hashes` is the number of `#` of a raw string.
fn skip_string(rest: &mut Peekable<Chars<'_>>, hashes: Option<usize>) {
    while let Some(c) = rest.next() {
        match (c, hashes) {
            ('\\', None) => _ = rest.next(),
            ('"', None) => return,
            ('"', Some(hashes)) => {
                let mut ahead = rest.clone();
                if (0..hashes).all(|_| ahead.next() == Some('#')) {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Skips `"'` and `\"'` after a first apostrophe.
fn skip_character(rest: &mut Peekable<Chars<'_>>) {
    let ahead: String = rest.clone().take(3).collect();
    for literal in ["\"'", "\\\"'", "\\''"] {
        if ahead.starts_with(literal) {
            literal.chars().for_each(|_| _ = rest.next());
            return;
        }
    }
}

/// Returns the text without items under `#[cfg(test)]`. An item ends at its own indentation: with `;`, or with `}`.
fn without_tests(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let depth = indentation(line);
        for line in lines.by_ref() {
            let is_last = line.ends_with(';') || line.ends_with('}');
            if is_last && indentation(line) == depth {
                break;
            }
        }
    }
    out
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[test]
fn comments_strings_and_tests_are_no_product_code() {
    let text = concat!(
        "use a::b; // not::this\n",
        "const QUOTE: char = '\"';\n",
        "const TEXT: &str = \"crate::x // y\\\" z\";\n",
        "const RAW: &str = r#\"an \"inner\" text\"#;\n",
        "#[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod tests;\n",
        "    #[cfg(test)]\n    fn only_for_tests() {\n        a();\n    }\n",
        "\nfn product<'a>() {}\n",
        "#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n",
    );
    let lines = [
        "use a::b; ",
        "const QUOTE: char = ';",
        "const TEXT: &str = \"\";",
        "const RAW: &str = r#\"\"#;",
        "",
        "fn product<'a>() {}",
    ];
    assert_eq!(product(text).lines().collect::<Vec<_>>(), lines);
    assert_eq!(product_lines(text), 5);
}
