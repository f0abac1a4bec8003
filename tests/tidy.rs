//! Checks of style and structure of the repository that need no human reader.

#![cfg(test)]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/source.rs"]
mod source;
#[path = "tools.rs"]
mod tools;
#[path = "words.rs"]
mod words;

use house_tests::source::{heeded, matches, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest length of a file without its tests, in lines. The aim is 500.
const LINES: usize = 800;
const LINES_OF_ARCHITECTURE: usize = 180;

/// Crates without dependencies on an operating system. Each has at most two external dependencies.
const PURE: &[&str] = &[
    "wire",
    "auth",
    "tcp",
    "sctp",
    "table",
    "node",
    "stack",
    "link",
    "cellular-ip",
    "mobile-ip",
    "dhcp",
    "indirect-tcp",
    "sigma",
    "apps",
];
/// Exceptions to the limit of two external dependencies. `auth` has six: three hashes, HMAC, HKDF, and a comparison in
/// constant time. None of them should be implemented here. `dhcp` has a codec of its options besides the two that all
/// configurations need, and `apps` a hash of what its streams carry.
const OUTSIDE: &[(&str, usize)] = &[("apps", 3), ("auth", 6), ("dhcp", 3)];
const OPERATING_SYSTEM: &[&str] = &[
    "os",
    "data-path",
    "daemon",
    "emulator",
    "aya",
    "libc",
    "rustix",
    "mio",
    "nix",
    "signal-hook",
    "netlink-sys",
    "netlink-packet-core",
    "tokio",
];

/// The allowed dependencies of each crate, which may only be on crates above it in this list. A new one needs a design
/// decision.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("auth", &["wire"]),
    ("tcp", &["wire"]),
    ("sctp", &["wire", "auth"]),
    ("table", &["wire"]),
    ("node", &["wire", "table"]),
    ("stack", &["wire", "tcp", "node"]),
    ("link", &["wire"]),
    ("trace", &["wire", "node"]),
    ("draw", &["wire"]),
    ("cellular-ip", &["wire", "auth", "table", "node"]),
    ("mobile-ip", &["wire", "auth", "node"]),
    ("dhcp", &["wire", "node"]),
    ("indirect-tcp", &["wire", "auth", "node"]),
    ("sigma", &["wire", "auth", "sctp", "node"]),
    ("apps", &["wire", "node"]),
    (
        "roles",
        &[
            "wire",
            "table",
            "tcp",
            "node",
            "cellular-ip",
            "mobile-ip",
            "dhcp",
            "indirect-tcp",
            "sigma",
            "apps",
        ],
    ),
    ("sim", &["wire", "table", "tcp", "node", "stack", "link", "trace"]),
    ("client", &["wire"]),
    ("shim", &["wire", "client"]),
    ("os", &["wire"]),
    ("data-path", &["wire", "table", "node", "os"]),
    ("daemon", &["wire", "tcp", "node", "trace", "client", "os", "data-path"]),
    (
        "scenario",
        &[
            "wire",
            "auth",
            "tcp",
            "node",
            "link",
            "trace",
            "cellular-ip",
            "mobile-ip",
            "indirect-tcp",
            "sigma",
            "apps",
            "roles",
            "sim",
        ],
    ),
    (
        "recorder",
        &[
            "wire",
            "tcp",
            "node",
            "link",
            "trace",
            "cellular-ip",
            "mobile-ip",
            "dhcp",
            "indirect-tcp",
            "sctp",
            "sigma",
            "roles",
            "sim",
            "draw",
            "scenario",
        ],
    ),
    ("emulator", &["wire", "node", "link", "trace", "roles", "sim", "os", "daemon", "scenario", "recorder"]),
    ("experiments", &["wire", "node", "sctp", "trace", "draw", "scenario", "recorder", "emulator"]),
    ("hunt", &["wire", "node", "link", "sctp", "mobile-ip", "trace", "scenario", "recorder", "experiments"]),
    (
        "cli",
        &[
            "wire",
            "trace",
            "roles",
            "client",
            "node",
            "shim",
            "os",
            "daemon",
            "draw",
            "scenario",
            "recorder",
            "emulator",
            "experiments",
            "hunt",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files below a folder of the repository, without build output and records.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let built = ["target", "runs", "corpus", "artifacts"].contains(&name);
        if built || name == ".git" || path.is_symlink() {
            continue;
        }
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

fn sources() -> Vec<(String, String)> {
    let paths = files(&root()).into_iter().filter(|path| has_extension(path, &["rs"]));
    paths.map(|path| (path.strip_prefix(root()).unwrap().display().to_string(), read(&path))).collect()
}

/// Returns the text files. Seeds and captures are binary.
fn texts() -> Vec<(String, String)> {
    let texts = ["rs", "toml", "md", "txt", "sh", "py", "lua", "yml", "c", "h"];
    let wanted = |path: &PathBuf| has_extension(path, &texts) || path.extension().is_none();
    let paths = files(&root()).into_iter().filter(wanted);
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path.strip_prefix(root()).unwrap().display().to_string(), text))
    };
    paths.filter_map(text).collect()
}

/// Joins the parts of a word that this file itself must not contain.
fn word(parts: &[&str]) -> String {
    parts.concat()
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// Returns the lines that contain one of these words, each with its file and line number.
fn lines_with(texts: &[(String, String)], words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in texts {
        for (number, line) in (1..).zip(text.lines()) {
            if words.iter().any(|word| line.contains(word.as_str())) {
                found.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    found
}

// --- files
// -------------------------------------------------------------------------------------------------------------

fn product_lines(text: &str) -> usize {
    without_tests(text).lines().count()
}

#[test]
fn no_file_is_longer_than_a_reader_can_hold() {
    let long = sources().into_iter().map(|(path, text)| (product_lines(&text), path));
    let long: Vec<String> =
        long.filter(|(lines, _)| *lines > LINES).map(|(lines, path)| format!("{path}: {lines}")).collect();
    none("longer than 800 lines", &long);
    assert!(sources().len() > 80, "the sources are not where they were");
}

#[test]
fn nothing_is_left_for_later() {
    let words = [word(&["TO", "DO"]), word(&["FIX", "ME"]), word(&["XX", "X"])];
    none("left for later", &lines_with(&texts(), &words));
}

#[test]
fn lints_are_expected_and_never_allowed() {
    let words = [word(&["#[", "allow("]), word(&["#![", "allow("])];
    none("write expect, and a reason", &lines_with(&sources(), &words));
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    let words = [word(&["/", "home/"]), word(&["/", "work/"]), word(&["/", "Users/"]), word(&["/", "root/"])];
    none("a path of some machine", &lines_with(&texts(), &words));
}

#[test]
fn the_words_that_are_looked_for_are_found_where_they_stand() {
    let (allowed, later) = (word(&["#[", "allow(dead_code)]"]), word(&["// TO", "DO later"]));
    let planted = ("a.rs".to_owned(), format!("fine\n{allowed}\n  {later}\n"));
    let words = [word(&["#[", "allow("]), word(&["TO", "DO"])];
    assert_eq!(lines_with(&[planted], &words), [format!("a.rs:2: {allowed}"), format!("a.rs:3: {later}")]);
}

// --- crates
// ------------------------------------------------------------------------------------------------------------

fn manifest(crate_name: &str) -> toml::Table {
    read(&root().join("crates").join(crate_name).join("Cargo.toml")).parse().unwrap()
}

/// Returns the dependencies of a crate on all platforms, without those of tests and build scripts.
fn dependencies(crate_name: &str) -> BTreeSet<String> {
    let manifest = manifest(crate_name);
    let mut tables = vec![manifest.get("dependencies")];
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    tables.extend(targets.map(|(_, target)| target.get("dependencies")));
    let names = tables.into_iter().flatten().filter_map(toml::Value::as_table).flat_map(toml::Table::keys);
    names.cloned().collect()
}

fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    folders.map(|name| name.into_string().unwrap()).collect()
}

/// Returns the dependencies of a crate that are not allowed.
fn wrong_arrows(name: &str, dependencies: &BTreeSet<String>, crates: &BTreeSet<String>) -> Vec<String> {
    let allowed = ARROWS.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
    let inside = dependencies.intersection(crates);
    inside.filter(|to| !allowed.contains(&to.as_str())).map(|to| format!("{name} -> {to}")).collect()
}

#[test]
fn dependency_arrows_point_down() {
    let crates = crates();
    let listed: BTreeSet<String> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed, crates, "the table of arrows has every crate");
    let wrong: Vec<String> =
        crates.iter().flat_map(|name| wrong_arrows(name, &dependencies(name), &crates)).collect();
    none("not in the table of arrows", &wrong);
    let upward = BTreeSet::from(["scenario".to_owned()]);
    assert_eq!(wrong_arrows("node", &upward, &crates), ["node -> scenario"]);
}

/// The table itself has no cycle: a crate's allowed dependencies are above it.
#[test]
fn the_table_of_arrows_has_no_circle() {
    let place: BTreeMap<&str, usize> = ARROWS.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    for (name, to) in ARROWS {
        for other in *to {
            assert!(place[other] < place[name], "{name} -> {other}");
        }
    }
}

/// The tests of a crate may use any crate above it in the table, and none below: a crate is tested without what is
/// built on it.
#[test]
fn tests_depend_on_crates_above_too() {
    let place: BTreeMap<&str, usize> = ARROWS.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let downward = |name: &str, tests: &toml::Table| -> Vec<String> {
        let inside = tests.keys().filter_map(|to| Some((to, place.get(to.as_str())?)));
        inside.filter(|(_, at)| **at >= place[name]).map(|(to, _)| format!("{name} -> {to}")).collect()
    };
    for name in crates() {
        let manifest = manifest(&name);
        let tests = manifest.get("dev-dependencies").and_then(toml::Value::as_table);
        none("tests depend on a crate below", &tests.map_or(Vec::new(), |tests| downward(&name, tests)));
    }
    let planted: toml::Table = "experiments.workspace = true\nlink.workspace = true".parse().unwrap();
    assert_eq!(downward("recorder", &planted), ["recorder -> experiments"]);
}

#[test]
fn pure_crates_know_no_operating_system_and_little_else() {
    let crates = crates();
    for name in PURE {
        let dependencies = dependencies(name);
        let outside: Vec<&String> = dependencies.difference(&crates).collect();
        let most = OUTSIDE.iter().find(|(other, _)| other == name).map_or(2, |(_, most)| *most);
        assert!(outside.len() <= most, "{name} has more than {most}: {outside:?}");
        for system in OPERATING_SYSTEM {
            assert!(!dependencies.contains(*system), "{name} -> {system}");
        }
    }
}

// --- what belongs together
// ---------------------------------------------------------------------------------------------

#[test]
fn every_scenario_is_compiled_in() {
    let scenarios = root().join("scenarios");
    let mut compiled: BTreeMap<_, _> = scenario::BUILT_IN.iter().copied().collect();
    // `course.toml` has many scenarios. `experiments::contest` contains its text, and its own tests read it.
    let is_course = |path: &PathBuf| path.ends_with("compare/course.toml");
    let all = files(&scenarios).into_iter().filter(|path| has_extension(path, &["toml"]) && !is_course(path));
    for path in all {
        let name = path.strip_prefix(&scenarios).unwrap().with_extension("").display().to_string();
        let text = compiled.remove(name.as_str()).unwrap_or_else(|| panic!("{name} is not compiled in"));
        assert_eq!(text, read(&path), "{name} is compiled in from elsewhere");
    }
    assert!(compiled.is_empty(), "compiled in under a name that is no file's: {:?}", compiled.keys());
}

/// Each folder of seeds belongs to a fuzz target. Each `message.rs` must be used by at least one target.
#[test]
fn every_message_has_a_fuzz_target() {
    let fuzz = root().join("fuzz");
    let mut read_by_targets = String::new();
    for folder in fs::read_dir(fuzz.join("seeds")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        read_by_targets.push_str(&read(&fuzz.join("targets").join(format!("{name}.rs"))));
    }
    let mut messages = 0;
    for name in crates() {
        let source = root().join("crates").join(&name).join("src");
        let is_message = |path: &&PathBuf| path.ends_with("message.rs") || path.ends_with("message/mod.rs");
        for _ in files(&source).iter().filter(is_message) {
            messages += 1;
            let module = format!("{}::message", name.replace('-', "_"));
            assert!(read_by_targets.contains(&module), "no fuzz target reads {module}");
        }
    }
    assert!(messages > 0);
}

#[test]
fn every_fuzz_target_has_seeds() {
    let fuzz = root().join("fuzz");
    for path in files(&fuzz.join("targets")) {
        let seeds = fuzz.join("seeds").join(path.file_stem().unwrap());
        assert!(seeds.is_dir() && !files(&seeds).is_empty(), "{} has no seeds", path.display());
    }
}

#[test]
fn architecture_fits_on_three_pages() {
    let path = root().join("ARCHITECTURE.md");
    if path.exists() {
        let lines = read(&path).lines().count();
        assert!(lines <= LINES_OF_ARCHITECTURE, "{lines} lines");
    }
}

/// The repository must have its licenses and its main pages.
#[test]
fn the_house_has_its_papers() {
    let missing = |names: &[&str]| -> Vec<String> {
        let absent = names.iter().filter(|name| !root().join(name).is_file());
        absent.map(|name| (*name).to_owned()).collect()
    };
    none("missing", &missing(&["LICENSE-MIT", "LICENSE-APACHE"]));
    let papers = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let absent = missing(&papers);
    if absent.len() < papers.len() {
        none("missing beside the other papers", &absent);
    }
}

/// Returns the names in the first column of a section's table, in order.
fn rows_of(page: &str, section: &str) -> Vec<String> {
    let begin = page.find(&format!("## `{section}`")).unwrap_or_else(|| panic!("a section of `{section}`"));
    let lines = page[begin..].lines().skip(1).take_while(|line| !line.starts_with("## "));
    lines.filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

/// Returns the variants of a section's table, each with the second column.
fn users_in(page: &str, section: &str) -> Vec<(String, String)> {
    let begin = page.find(&format!("## `{section}`")).unwrap_or_else(|| panic!("a section of `{section}`"));
    let lines = page[begin..].lines().skip(1).take_while(|line| !line.starts_with("## "));
    let row = |line: &str| {
        let (variant, rest) = line.strip_prefix("| `")?.split_once('`')?;
        let users = rest.split('|').nth(1)?;
        Some((variant.to_owned(), users.trim().to_owned()))
    };
    lines.filter_map(row).collect()
}

/// Returns the variants of an enum, in order.
fn variants_of(source: &str, name: &str) -> Vec<String> {
    let begin = source.find(&format!("pub enum {name}")).unwrap_or_else(|| panic!("an enum `{name}`"));
    let body = source[begin..].split("\n}\n").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names.map(|line| line.split([' ', '(', ',', '{']).next().unwrap().to_owned()).collect()
}

/// The enums of the core, and the file of each.
const CORE: [(&str, &str); 8] = [
    ("Input", "input.rs"),
    ("Effect", "act.rs"),
    ("Act", "act.rs"),
    ("MirrorAct", "mirror.rs"),
    ("StreamOp", "stream.rs"),
    ("MigrateOp", "stream.rs"),
    ("StreamEvent", "stream.rs"),
    ("MigrateEvent", "stream.rs"),
];

/// The tables of `docs/core.md` must have exactly one row for each variant of these enums. The row names the protocol
/// rule that needs the variant.
#[test]
fn every_variant_of_the_core_has_its_row() {
    let page = read(&root().join("docs/core.md"));
    for (name, file) in CORE {
        let source = read(&root().join("crates/node/src").join(file));
        assert_eq!(
            variants_of(&source, name),
            rows_of(&page, name),
            "`{name}` in {file} and in docs/core.md"
        );
    }
}

/// The crates of roles, by their code in `docs/core.md`.
const ROLES: [(&str, &str); 6] = [
    ("CIP", "cellular-ip"),
    ("MIP", "mobile-ip"),
    ("DHCP", "dhcp"),
    ("SIG", "sigma"),
    ("ITCP", "indirect-tcp"),
    ("APP", "apps"),
];

/// The functions of `Outbox` by which a role requests an effect or an act.
const REQUESTS: [(&str, &[&str]); 21] = [
    ("Effect::Send", &["out.send(", "out.send_routed("]),
    ("Effect::Discard", &["out.discard(", "refused.end("]),
    ("Effect::Stream", &["out.stream("]),
    ("Effect::Pass", &["out.pass("]),
    ("Effect::Served", &["out.served("]),
    ("Effect::Notify", &["out.notify("]),
    ("Effect::Do", &["out.mark(", "out.route("]),
    ("Act::Route", &["out.route("]),
    ("Act::IngressPolicy", &["out.ingress_policy("]),
    ("Act::Tune", &["out.tune("]),
    ("Act::SendInCell", &["out.send_in_cell("]),
    ("Act::Stream", &["out.stream("]),
    ("Act::Mark", &["out.mark("]),
    ("Act::Answer", &["out.answer("]),
    ("Act::Neighbor", &["out.neighbor("]),
    ("Act::Address", &["out.add_address(", "out.remove_address("]),
    ("Act::Store", &["out.store("]),
    ("Act::Transmit", &[]),
    ("Act::Drop", &[]),
    ("Act::Served", &[]),
    ("Act::Delivered", &[]),
];

/// Returns whether a text contains `name`, and not only as a part of a longer name.
fn names(text: &str, name: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(is_inside);
        let after = text[at + name.len()..].chars().next().is_some_and(is_inside);
        !before && (name.ends_with('(') || !after)
    })
}

/// The column *used by* of `docs/core.md` must name the crates that use each variant.
#[test]
fn the_users_of_each_variant_are_those_that_the_page_names() {
    let page = read(&root().join("docs/core.md"));
    let is_product =
        |path: &str, name: &str| path.starts_with(&format!("crates/{name}/src/")) && !source::is_test(path);
    let all = sources();
    let text_of = |name: &str| -> String {
        let own = all.iter().filter(|(path, _)| is_product(path, name));
        own.map(|(_, text)| heeded(&without_tests(text))).collect()
    };
    let crates = ROLES.map(|(code, name)| (code, text_of(name)));
    let mut wrong = Vec::new();
    for (name, _) in CORE {
        for (variant, said) in users_in(&page, name) {
            let full = format!("{name}::{variant}");
            let request = REQUESTS.iter().find(|(of, _)| *of == full).map(|(_, calls)| *calls);
            let uses = |text: &str| match request {
                Some(calls) => calls.iter().any(|call| names(text, call)),
                None => {
                    names(text, &full) || (name == "MigrateEvent" && names(text, &format!("Owned{full}")))
                }
            };
            let users: Vec<&str> =
                crates.iter().filter(|(_, text)| uses(text)).map(|(code, _)| *code).collect();
            let found = if users.is_empty() { "-".to_owned() } else { users.join(" ") };
            if found != said {
                wrong.push(format!("{full}: the page says {said}, and it is used by {found}"));
            }
        }
    }
    none("wrong users in docs/core.md", &wrong);
}

/// A new variant of the core's enums must not be missed, so each `match` of such an enum names every variant.
#[test]
fn the_enums_of_the_core_are_matched_without_a_wildcard() {
    let enums = [
        "Input::",
        "Effect::",
        "Act::",
        "MirrorAct::",
        "StreamEvent::",
        "OwnedStreamEvent::",
        "MigrateEvent::",
    ];
    let is_of_core = |arm: &String| {
        let words = || arm.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        words().any(|word| enums.iter().any(|name| word.starts_with(name)))
    };
    let product =
        |path: &str| path.starts_with("crates/") && path.contains("/src/") && !source::is_test(path);
    let mut found = Vec::new();
    let mut of_core = 0;
    for (path, text) in sources().into_iter().filter(|(path, _)| product(path)) {
        for arms in matches(&without_tests(&text)).into_iter().filter(|arms| arms.iter().any(is_of_core)) {
            of_core += 1;
            if arms.iter().any(|arm| arm == "_" || arm.starts_with("_ if ")) {
                found.push(format!("{path}: {}", arms.join(" / ")));
            }
        }
    }
    assert!(of_core > 30, "{of_core} matches: the search no longer finds them");
    none("matches with a wildcard", &found);
}

/// Returns the drop reasons of all product files, with their files.
fn reasons() -> Vec<(String, String)> {
    let opening = word(&["Reason", "(\""]);
    let mut found = Vec::new();
    for (path, text) in sources() {
        if path.contains("test") || path.contains("fuzz") {
            continue;
        }
        for rest in without_tests(&text).split(&opening).skip(1) {
            found.push((path.clone(), rest.split('"').next().unwrap_or_default().to_owned()));
        }
    }
    found
}

/// A reader of a table must find each drop reason in the glossary, except those that begin with `sctp_`.
#[test]
fn every_reason_of_a_drop_is_in_the_glossary() {
    let glossary = read(&root().join("docs/glossary.md"));
    let is_missing =
        |reason: &str| !reason.starts_with("sctp_") && !glossary.contains(&format!("`{reason}`"));
    let missing: BTreeSet<String> = reasons()
        .into_iter()
        .filter(|(_, reason)| is_missing(reason))
        .map(|(path, reason)| format!("{path}: {reason}"))
        .collect();
    none("reasons that docs/glossary.md does not have", &missing.into_iter().collect::<Vec<_>>());
}

/// Returns the reasons that have the same number as another reason.
fn with_equal_numbers<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut known, mut equal) = (BTreeMap::new(), Vec::new());
    for reason in reasons {
        let number = wire::Reason(reason.to_owned().leak()).code();
        if known.insert(number, reason).is_some_and(|other| other != reason) {
            equal.push(format!("{reason}: {number}"));
        }
    }
    equal
}

/// Each reason needs a different number, because a kernel map has only the number (`wire::Reason::code`).
#[test]
fn each_reason_of_a_drop_has_its_own_number() {
    let all = reasons();
    let names: BTreeSet<&str> = all.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(names.len() > 100, "{} reasons: they are not where they were", names.len());
    none("reasons with the number of another", &with_equal_numbers(names.into_iter()));
    let collision = ["costarring", "liquid"]; // a known one of 32-bit FNV-1a
    assert_eq!(with_equal_numbers(collision.into_iter()).len(), 1);
}

/// Returns the tests named in a row: `path::test`, or `::test` for another one in the same file.
fn named_tests(row: &str) -> Vec<(String, Option<String>)> {
    let mut file = String::new();
    let mut named = Vec::new();
    for word in row.split([' ', ',', ';', '`']) {
        let (path, name) = word.split_once("::").map_or((word, None), |(path, name)| (path, Some(name)));
        let is_path = ["crates/", "tests/"].iter().any(|folder| path.starts_with(folder));
        if is_path && has_extension(Path::new(path), &["rs", "txt", "py"]) {
            path.clone_into(&mut file);
        } else if !(path.is_empty() && name.is_some() && !file.is_empty()) {
            continue;
        }
        named.push((file.clone(), name.map(str::to_owned)));
    }
    named
}

#[test]
fn every_finding_names_tests_that_are_there() {
    let page = read(&root().join("docs/findings.md"));
    let named: Vec<_> = page.lines().filter(|line| line.starts_with('|')).flat_map(named_tests).collect();
    assert!(named.len() > 80, "{} tests: the table is not where it was", named.len());
    let is_there = |(file, name): &(String, Option<String>)| {
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        // The test of a transcript is `name: "file"` in a list.
        let of = |name: &String| text.contains(&format!("fn {name}")) || text.contains(&format!("{name}:"));
        !text.is_empty() && name.as_ref().is_none_or(of)
    };
    let missing: Vec<String> =
        named.into_iter().filter(|test| !is_there(test)).map(|test| format!("{test:?}")).collect();
    none("a test that docs/findings.md names is not there", &missing);
    let gone = named_tests("| D1 | it was wrong | this | tests/tidy.rs::root, ::not_there |");
    assert_eq!(gone.iter().map(is_there).collect::<Vec<_>>(), [true, false]);
}

// --- history
// -----------------------------------------------------------------------------------------------------------

/// Returns whether the subject of a commit is `area: imperative`, for example `sctp: refuse an INIT with tag 0`.
fn has_an_area(subject: &str) -> bool {
    let is_area = |c: char| c.is_ascii_alphanumeric() || ", /*._-".contains(c);
    let Some((area, what)) = subject.split_once(": ") else { return false };
    !area.is_empty() && area.chars().all(is_area) && what.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The subjects of the last commits name an area and what is done there. In a copy without a history, they are not
/// checked.
#[test]
fn subjects_of_commits_name_their_area() {
    let mut git = std::process::Command::new("git");
    let log = git.args(["log", "--no-merges", "-n", "20", "--format=%s"]).current_dir(root()).output();
    let Some(log) = log.ok().filter(|log| log.status.success()) else { return };
    let subjects = String::from_utf8_lossy(&log.stdout).into_owned();
    let wrong: Vec<String> =
        subjects.lines().filter(|subject| !has_an_area(subject)).map(str::to_owned).collect();
    none("write `area: imperative`", &wrong);
    assert!(
        has_an_area("sctp, sigma: refuse an INIT with tag 0") && has_an_area("docs/hunt.md: name each judge")
    );
    for wrong in ["Who never has too much asks once", "sctp: Refuse an INIT", ": refuse", "sctp:refuse it"] {
        assert!(!has_an_area(wrong), "{wrong}");
    }
}
