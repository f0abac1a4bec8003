//! The words of the repository: phrases that readers with another first language do not understand at first sight are
//! banned from comments, messages and pages. CONTRIBUTING.md gives the rules, and this file the list.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

/// Banned phrases, each with what to write instead. In a phrase, a word that ends in `*` means all words that start with
/// the part before the `*`, and `|` is the end of a clause.
const BANNED: &[(&str, &str)] = &[
    ("longer than nothing", "greater than zero"),
    ("for who", "name the host, role or user"),
    ("nobody", "no host, no role, no process"),
    ("somebody", "name the host, role or user"),
    ("someone", "name the host, role or user"),
    ("anybody", "name the host, role or user"),
    ("anyone", "name the host, role or user"),
    ("everybody", "all hosts, all roles"),
    ("whoever", "the host that, the process that"),
    ("he", "it; software has no gender"),
    ("his", "its"),
    ("wish*", "request"),
    ("of old", "earlier"),
    ("told", "is notified, gets a report"),
    ("tell", "notify, show"),
    ("tells", "notifies, shows"),
    ("stood still", "was stalled"),
    ("handed out", "released; the release artifact"),
    ("carry out", "execute, apply"),
    ("carries out", "executes, applies"),
    ("carried out", "executed, applied"),
    ("carrying out", "executing, applying"),
    ("no reporter", "unaccounted for between A and B"),
    ("books", "ledger"),
    ("chance", "random; probability"),
    ("chances", "probabilities"),
    ("by chance", "at random"),
    ("so many", "N, this number of"),
    ("so long", "for this time"),
    ("a while", "the time, with its unit"),
    ("all the while", "meanwhile"),
    ("of its own |", "separate, dedicated"),
    ("of their own |", "separate, dedicated"),
    ("of our own |", "our; separate"),
    ("of one's own |", "separate, dedicated"),
    ("door", "listener, ingress"),
    ("doors", "listeners, ingress"),
    ("mend*", "fix, repair"),
    ("stands", "is, is defined in"),
    ("lies", "is"),
    ("the way back", "the reverse path"),
    ("stranger*", "an unauthenticated peer, an unknown host"),
    ("deaf", "not receiving; ingress blocked"),
    ("judged", "evaluated, checked"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("going on", "continuing"),
    ("becomes of", "the end of, the result of"),
    ("became of", "the end of, the result of"),
    ("in vain", "without success"),
    ("amiss", "wrong"),
    ("heed*", "uses, follows"),
    ("knob*", "parameter, option"),
    ("reckon*", "compute"),
    ("held against", "compared with"),
    ("contender*", "protocol under test"),
    ("old leg", "old path"),
    ("new leg", "new path"),
];

/// Phrases that may be written although they contain a banned word, because they are terms of the field or of the
/// project.
const ALLOWED: &[&str] = &[
    // A term of `compare`, which the glossary defines.
    "told apart",
    // The name of a user on Linux.
    "user nobody",
    // Texts of transcripts.
    "told when unused",
    "tell the program",
    // A verb of the scripts of transcripts.
    "stranger add",
    // The text of a cause that SCTP sends to its peer.
    "not go on",
];

/// Files that are not checked, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("tests/words.rs", "the list itself"),
    ("docs/core.md", "it is being rewritten"),
    // A record of measurements contains the digest of the scenario's text.
    ("scenarios/first.toml", "its text is part of a digest in docs/agreement.linux.json"),
    ("scenarios/mobile-ip/download.toml", "its text is part of a digest in docs/agreement.linux.json"),
    ("scenarios/cellular-ip/udp-loss.toml", "its text is part of a digest in docs/agreement.linux.json"),
    ("scenarios/sigma/handoff.toml", "its text is part of a digest in docs/agreement.linux.json"),
    ("scenarios/indirect-tcp/handoff-time.toml", "its text is part of a digest in docs/agreement.linux.json"),
    ("scenarios/compare/course.toml", "its text is part of a digest in docs/agreement.linux.json"),
];

/// A word in lower case without punctuation around it, and its line. `ends` is whether a clause ends after the word.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Word {
    line: usize,
    text: String,
    ends: bool,
}

/// The words of one comment, message or paragraph. Words of different pieces form no phrase.
type Piece = Vec<Word>;

/// Splits text into words. Code spans and placeholders of formats are not words.
fn words(text: &str, first_line: usize) -> Piece {
    let mut piece = Piece::new();
    for (line, text) in (first_line..).zip(text.lines()) {
        let marks = ["///", "//!", "//", "#"];
        let start = text.trim_start();
        let start = marks.iter().find_map(|mark| start.strip_prefix(mark)).unwrap_or(start);
        for word in prose(start).split_whitespace() {
            let is_part = |c: char| c.is_alphanumeric() || "'-_/.".contains(c);
            let end = word.trim_end_matches(['*', '_', '"', '\'', ')']);
            let ends = end.ends_with(['.', ',', ';', ':', '?', '!']);
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !word.is_empty() && word.chars().all(is_part) {
                piece.push(Word { line, text: word.to_lowercase(), ends });
            } else if let Some(last) = piece.last_mut() {
                last.ends = true;
            }
        }
    }
    if let Some(last) = piece.last_mut() {
        last.ends = true;
    }
    piece
}

/// Returns a line without code spans, placeholders and escapes.
fn prose(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let until = match c {
            '`' if chars.clone().any(|c| c == '`') => '`',
            '{' if chars.clone().any(|c| c == '}') => '}',
            '\\' => {
                chars.next();
                out.push(' ');
                continue;
            }
            _ => {
                out.push(c);
                continue;
            }
        };
        chars.by_ref().find(|c| *c == until);
        out.push('\u{1}');
    }
    out
}

/// Returns the comments and the messages of Rust source. A string without a space is a name, not a message.
fn pieces_of_rust(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut comment: Option<(usize, String)> = None;
    let (mut chars, mut line) = (text.chars().peekable(), 1);
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '/' if chars.peek() == Some(&'/') => {
                let rest = format!("/{}", rest_of_line(&mut chars));
                match &mut comment {
                    Some((_, text)) => {
                        text.push('\n');
                        text.push_str(&rest);
                    }
                    None => comment = Some((line, rest)),
                }
                continue;
            }
            '"' => {
                let string = string(&mut chars, |before, c| c == '"' && !before);
                push_string(&mut pieces, &string, line);
                line += string.matches('\n').count();
            }
            'r' if matches!(chars.peek(), Some('"' | '#')) => {
                let Some(string) = raw_string(&mut chars) else { continue };
                push_string(&mut pieces, &string, line);
                line += string.matches('\n').count();
            }
            '\'' => character(&mut chars),
            c if c.is_alphanumeric() || c == '_' => {
                while chars.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {}
            }
            c if c.is_whitespace() => continue,
            _ => {}
        }
        if let Some((line, text)) = comment.take_if(|_| c != '\n') {
            pieces.push(words(&text, line));
        }
    }
    pieces.extend(comment.map(|(line, text)| words(&text, line)));
    pieces
}

fn rest_of_line(chars: &mut Peekable<Chars<'_>>) -> String {
    std::iter::from_fn(|| chars.next_if(|c| *c != '\n')).collect()
}

/// Reads characters until `is_end` is true. Its first argument is whether a backslash before the character escapes it.
fn string(chars: &mut Peekable<Chars<'_>>, is_end: impl Fn(bool, char) -> bool) -> String {
    let (mut text, mut escaped) = (String::new(), false);
    for c in chars.by_ref() {
        if is_end(escaped, c) {
            break;
        }
        escaped = c == '\\' && !escaped;
        text.push(c);
    }
    text
}

/// Reads a raw string after its `r`; `None` if it is a raw identifier.
fn raw_string(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let hashes = std::iter::from_fn(|| chars.next_if_eq(&'#')).count();
    chars.next_if_eq(&'"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let mut text = String::new();
    while !text.ends_with(&end) {
        text.push(chars.next()?);
    }
    text.truncate(text.len() - end.len());
    Some(text)
}

/// Skips the rest of a character literal after its first quote, or the quote of a lifetime.
fn character(chars: &mut Peekable<Chars<'_>>) {
    let mut ahead = chars.clone();
    let length = match ahead.next() {
        Some('\\') => ahead.position(|c| c == '\'').map(|at| at + 2),
        Some(_) => (ahead.next() == Some('\'')).then_some(2),
        None => None,
    };
    for _ in 0..length.unwrap_or(0) {
        chars.next();
    }
}

fn push_string(pieces: &mut Vec<Piece>, string: &str, line: usize) {
    if string.contains(' ') {
        pieces.push(words(string, line));
    }
}

/// Returns the comments and strings of a script. A string without a space is a name.
fn pieces_of_python(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut chars, mut line) = (text.chars().peekable(), 1);
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '#' => pieces.push(words(&rest_of_line(&mut chars), line)),
            '"' | '\'' => {
                let mut ahead = chars.clone();
                let string = if ahead.next() == Some(c) && ahead.next() == Some(c) {
                    let end = String::from_iter([c; 3]);
                    let mut text = String::new();
                    chars.by_ref().nth(1);
                    while !text.ends_with(&end) {
                        let Some(c) = chars.next() else { break };
                        text.push(c);
                    }
                    text
                } else {
                    string(&mut chars, |escaped, end| end == c && !escaped)
                };
                push_string(&mut pieces, &string, line);
                line += string.matches('\n').count();
            }
            _ => {}
        }
    }
    pieces
}

/// Returns the paragraphs and cells of any other file. In the tables of docs/findings.md, the third column has the
/// subjects of commits, which cannot change.
fn pieces_of_text(path: &str, text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut paragraph = (1, String::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('|') {
            let cells = line.split('|').skip(1);
            let is_subject = |at: usize| path == "docs/findings.md" && at >= 2;
            pieces.extend(
                cells.enumerate().filter(|(at, _)| !is_subject(*at)).map(|(_, cell)| words(cell, number)),
            );
        }
        if line.trim().is_empty() || line.starts_with('|') {
            pieces.push(words(&paragraph.1, paragraph.0));
            paragraph = (number + 1, String::new());
        } else {
            paragraph.1.push_str(line);
            paragraph.1.push('\n');
        }
    }
    pieces.push(words(&paragraph.1, paragraph.0));
    pieces
}

fn pieces(path: &str, text: &str) -> Vec<Piece> {
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("rs") => pieces_of_rust(text),
        Some("py") => pieces_of_python(text),
        _ => pieces_of_text(path, text),
    }
}

fn is_phrase(words: &[Word], phrase: &str) -> bool {
    let mut at = words.iter();
    let mut last: Option<&Word> = None;
    phrase.split(' ').all(|part| {
        if part == "|" {
            return last.is_some_and(|word| word.ends);
        }
        if last.is_some_and(|word| word.ends) {
            return false;
        }
        last = at.next();
        last.is_some_and(|word| match part.strip_suffix('*') {
            Some(begin) => word.text.starts_with(begin),
            None => word.text == part,
        })
    })
}

/// Returns the banned phrases of a file, with their lines.
fn banned(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in pieces(path, text) {
        for at in 0..piece.len() {
            let rest = piece.get(at..).unwrap_or_default();
            let before = piece.get(at.saturating_sub(1)..).unwrap_or_default();
            if ALLOWED.iter().any(|phrase| is_phrase(rest, phrase) || is_phrase(before, phrase)) {
                continue;
            }
            let here = BANNED.iter().find(|(phrase, _)| is_phrase(rest, phrase));
            if let (Some((phrase, instead)), Some(word)) = (here, piece.get(at)) {
                found.push(format!(
                    "{path}:{}: `{}`; write: {instead}",
                    word.line,
                    phrase.trim_end_matches(" |")
                ));
            }
        }
    }
    found
}

#[test]
fn words_are_those_of_the_field() {
    let is_checked = |path: &str| {
        let extensions = ["rs", "md", "toml", "sh", "py", "c"];
        let is_text = super::has_extension(Path::new(path), &extensions)
            || path.ends_with("Makefile")
            || path == ".ci/run";
        is_text && !EXEMPT.iter().any(|(exempt, _)| *exempt == path)
    };
    let texts = super::texts().into_iter().filter(|(path, _)| is_checked(path));
    let found: Vec<String> = texts.flat_map(|(path, text)| banned(&path, &text)).collect();
    super::none("phrases that are not plain technical English", &found);
}

#[test]
fn every_exempt_file_is_there() {
    for (path, reason) in EXEMPT {
        assert!(super::root().join(path).is_file() && !reason.is_empty(), "{path}");
    }
}

/// Each phrase is found in a comment, in a message, in a script and on a page.
#[test]
fn each_banned_phrase_is_found() {
    for (phrase, instead) in BANNED {
        let text = phrase.trim_end_matches(" |").replace('*', "ed");
        let places = [
            ("a.rs", format!("fn f() {{}}\n/// The role {text}.\nstruct S;\n")),
            ("a.rs", format!("fn f() {{\n    panic!(\"the role {text}: {{why}}\");\n}}\n")),
            ("a.rs", format!("const A: &str = r#\"\nthe role {text}\"#;\n")),
            ("a.py", format!("import os\ndef f():\n    \"\"\"The role {text}.\"\"\"\n")),
            ("a.sh", format!("#!/bin/sh\n# The role {text}.\n")),
            ("a.toml", format!("[a]\n# The role {text}.\n")),
            ("a.md", format!("# Title\n\n| a | The role {text} |\n")),
        ];
        for (path, source) in places {
            let found = banned(path, &source);
            assert!(found.iter().any(|line| line.contains(instead)), "`{text}` in {source}: {found:?}");
        }
    }
}

#[test]
fn a_phrase_over_two_lines_is_found_and_a_name_is_none() {
    let two_lines = "/// A queue of its\n/// own, with a limit.\nfn wished() {}\n";
    assert_eq!(banned("a.rs", two_lines), ["a.rs:1: `of its own`; write: separate, dedicated"]);
    for fine in [
        "/// Effects of its own roles: see [`Wished`] and `told`.\nfn told(door: &str) {}\n",
        "fn f() { call(\"nobody\"); let lies = 'd'; let a: &'a str = \"a {told} b\"; }\n",
        "/// Two protocols that are not told apart.\n",
    ] {
        assert_eq!(banned("a.rs", fine), [""; 0], "{fine}");
    }
    assert_eq!(banned("docs/findings.md", "| D1 | a reset | sctp: heed an ABORT | test |\n"), [""; 0]);
}

// --- one noun, one type ------------------------------------------------------------------------------------------------

/// Nouns that may name only one type each. Each has the crate that defines the type. A noun without a crate may name no
/// type, because several types had this name.
///
/// `Message` is an exception: each protocol and format may have its own one.
const NOUNS: &[(&str, Option<&str>)] = &[
    ("Place", None),
    ("Record", Some("trace")),
    ("Event", Some("trace")),
    ("Course", Some("experiments")),
    ("News", None),
    ("Outcome", Some("recorder")),
    ("Way", None),
    ("World", Some("sim")),
];

/// Returns the name of the type that a line defines, also of an alias.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let is_type = matches!(words.next(), Some("struct" | "enum" | "type"));
    let name = words.next().filter(|_| is_type)?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// Returns all definitions of the nouns, except the first definition in the crate of a noun. Definitions in tests count
/// as well.
fn clashes(sources: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (noun, home) in NOUNS {
        let mut home = home.map(|name| format!("crates/{name}/src/"));
        for (path, text) in sources {
            for _ in text.lines().filter(|line| defined(line) == Some(noun)) {
                match home.take_if(|home| path.starts_with(home.as_str())) {
                    Some(_) => {}
                    None => found.push(format!("{noun} in {path}")),
                }
            }
        }
    }
    found
}

#[test]
fn one_noun_names_one_type() {
    super::none("another type has this name; choose a second word", &clashes(&super::sources()));
    let planted = |path: &str| (path.to_owned(), "pub(crate) enum Event {\n".to_owned());
    let two = [planted("crates/trace/src/event.rs"), planted("crates/wire/src/event.rs")];
    assert_eq!(clashes(&two), ["Event in crates/wire/src/event.rs"]);
    let test = ("tests/moves.rs".to_owned(), "type Way = u32;\n".to_owned());
    assert_eq!(clashes(&[test]), ["Way in tests/moves.rs"]);
    assert_eq!(defined("    pub struct World<W = Vec<Record>> {"), Some("World"));
    assert_eq!(defined("// an enum Event"), None);
}
