//! Checks that no files of a crate refer to each other in a circle.
//!
//! A file refers to another one by a path: `crate::a::B`, `super::c()`, or `c::d` for a submodule. A path that
//! leads through a re-export counts as a reference to the file that has the item. A re-export itself is no
//! reference, so a `mod.rs` that only declares and re-exports is in no circle.
//!
//! A reference from a file to a module that contains it does not count. So a folder may divide one type's methods
//! between files.

use super::source::{is_test, product};
use super::{crates, files, has_extension, none, read, root};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Module = Vec<String>;

/// The modules of one crate, with their code and re-exports.
struct Graph {
    /// The path of each module's file, relative to the crate's `src`.
    files: BTreeMap<Module, String>,
    /// The product code of each module.
    code: BTreeMap<Module, String>,
    /// For each module, its re-exports: the name, and the path to which it refers.
    exports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

impl Graph {
    /// Reads the files of a crate, each with its path below `src`.
    fn new(sources: &[(String, String)]) -> Self {
        let mut graph = Self { files: BTreeMap::new(), code: BTreeMap::new(), exports: BTreeMap::new() };
        for (path, text) in sources.iter().filter(|(path, _)| !is_test(path)) {
            let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
                module.pop();
            }
            let code = product(text);
            let exports = uses(&code).into_iter().filter(|(is_public, _)| *is_public);
            let named = exports.filter_map(|(_, path)| Some((path.last()?.clone(), path)));
            graph.exports.insert(module.clone(), named.collect());
            graph.files.insert(module.clone(), path.clone());
            graph.code.insert(module, code);
        }
        graph
    }

    /// Returns the module to whose file a path in this module leads; `None` if it leads out of the crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Module::new(),
            "self" => from.clone(),
            "super" => {
                let mut module = from.clone();
                module.pop()?;
                while let Some(("super", behind)) =
                    rest.split_first().map(|(next, rest)| (next.as_str(), rest))
                {
                    module.pop()?;
                    rest = behind;
                }
                module
            }
            own => {
                let mut module = from.clone();
                module.push(own.to_owned());
                self.files.contains_key(&module).then_some(module)?
            }
        };
        while let Some((next, behind)) = rest.split_first() {
            module.push(next.clone());
            if !self.files.contains_key(&module) {
                module.pop();
                break;
            }
            rest = behind;
        }
        let export = rest.first().and_then(|name| self.exports.get(&module)?.get(name));
        let behind = export.filter(|_| depth < 8).and_then(|path| self.resolve(&module, path, depth + 1));
        behind.or_else(|| self.files.contains_key(&module).then_some(module))
    }

    /// Returns the modules to which each module refers.
    fn references(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let mut found: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
        for (from, code) in &self.code {
            for path in paths(code) {
                let Some(to) = self.resolve(from, &path, 0) else { continue };
                let Some((to, _)) = self.files.get_key_value(&to) else { continue };
                if !from.starts_with(to) {
                    found.entry(from).or_default().insert(to);
                }
            }
        }
        found
    }

    /// Returns the number of files that are in a circle, and the shortest circle of each group of files that refer to
    /// one another.
    fn circles(&self) -> (usize, Vec<String>) {
        let references = self.references();
        let mut rest: BTreeSet<&Module> = references.keys().copied().collect();
        let (mut count, mut circles) = (0, Vec::new());
        while let Some(module) = rest.pop_first() {
            let Some(mut shortest) = way_back(&references, module) else { continue };
            let behind = reached(&references, module);
            let group: Vec<&Module> =
                behind.into_iter().filter(|other| reached(&references, other).contains(module)).collect();
            count += group.len();
            for other in group {
                rest.remove(other);
                let way = way_back(&references, other).into_iter();
                shortest = [shortest].into_iter().chain(way).min_by_key(Vec::len).unwrap_or_default();
            }
            let names: Vec<&str> = shortest.iter().map(|module| self.files[*module].as_str()).collect();
            circles.push(names.join(" -> "));
        }
        (count, circles)
    }
}

type References<'a> = BTreeMap<&'a Module, BTreeSet<&'a Module>>;

/// Returns the modules to which a module refers, directly or through other modules.
fn reached<'a>(references: &References<'a>, from: &Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = references.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(references.get(module).into_iter().flatten());
        }
    }
    found
}

/// Returns the shortest circle of references from a module to itself, with the module at both ends. `None` if there is
/// none.
fn way_back<'a>(references: &References<'a>, from: &'a Module) -> Option<Vec<&'a Module>> {
    let mut before: BTreeMap<&Module, &'a Module> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(module) = next.pop_front() {
        for to in references.get(module).into_iter().flatten() {
            if *to == from {
                let mut way = vec![from, module];
                while let Some(earlier) =
                    before.get(way[way.len() - 1]).filter(|_| way[way.len() - 1] != from)
                {
                    way.push(earlier);
                }
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(to) {
                before.insert(to, module);
                next.push_back(to);
            }
        }
    }
    None
}

/// Returns the paths of all `use` declarations, each with whether it is a re-export.
fn uses(code: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for statement in code.split(';') {
        let Some(begin) = statement.rfind("use ").filter(|at| is_declaration(statement, *at)) else {
            continue;
        };
        let line = statement[..begin].rsplit('\n').next().unwrap_or_default();
        let is_public = line.trim_start().starts_with("pub");
        let tree: String = statement[begin + 4..].split_whitespace().collect::<Vec<_>>().join(" ");
        found.extend(expand(&tree).into_iter().map(|path| (is_public, path)));
    }
    found
}

/// Returns whether the word `use` at this place begins its line, apart from a visibility before it.
fn is_declaration(statement: &str, at: usize) -> bool {
    let line = statement[..at].rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty()
        || (line.starts_with("pub") && !line.contains(char::is_whitespace) || line.starts_with("pub(in "))
}

/// Expands `a::{b, c::{d, e}}` to the paths `a::b`, `a::c::d` and `a::c::e`.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let (mut depth, mut branches) = (0, vec![String::new()]);
    for c in inside.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                branches.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(branch) = branches.last_mut() {
            branch.push(c);
        }
    }
    let branches = branches.iter().map(|branch| branch.trim()).filter(|branch| !branch.is_empty());
    branches.flat_map(|branch| expand(&format!("{before}{branch}"))).collect()
}

/// Returns the lines that belong to no `use` declaration.
fn without_uses(code: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    code.lines().filter(move |line| {
        let begins = line.find("use ").is_some_and(|at| is_declaration(line, at));
        let is_part = is_inside || begins;
        is_inside = is_part && !line.trim_end().ends_with(';');
        !is_part
    })
}

/// Returns all paths in product code, without re-exports. A path that begins with an imported name is given in full.
fn paths(code: &str) -> Vec<Vec<String>> {
    let uses = uses(code);
    let imports: BTreeMap<String, Vec<String>> = uses
        .iter()
        .filter(|(is_public, _)| !is_public)
        .filter_map(|(_, path)| {
            let mut path = path.clone();
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            Some((path.last()?.clone(), path))
        })
        .collect();
    let mut found: Vec<Vec<String>> = imports.values().cloned().collect();
    let globs =
        uses.iter().filter(|(is_public, path)| !is_public && path.last().is_some_and(|last| last == "*"));
    found.extend(globs.map(|(_, path)| path.clone()));
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for line in without_uses(code) {
        for word in line.split(|c| !is_part(c)).filter(|word| word.contains("::") && !word.starts_with(':')) {
            let mut path: Vec<String> = word.split("::").map(str::to_owned).collect();
            if let Some(import) = imports.get(&path[0]).filter(|import| import.len() > 1) {
                path.splice(0..1, import.iter().cloned());
            }
            found.push(path);
        }
    }
    found
}

fn sources_of(crate_name: &str) -> Vec<(String, String)> {
    let source = root().join("crates").join(crate_name).join("src");
    let paths = files(&source).into_iter().filter(|path| has_extension(path, &["rs"]));
    paths.map(|path| (path.strip_prefix(&source).unwrap().display().to_string(), read(&path))).collect()
}

#[test]
fn no_files_of_a_crate_refer_to_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    for name in crates() {
        let (_, circles) = Graph::new(&sources_of(&name)).circles();
        wrong.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    none("circles of files", &wrong);
}

#[test]
fn a_planted_circle_is_found_and_named() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let lib = file("lib.rs", "mod a;\nmod b;\npub mod c;\npub use c::{Deep, part::Part};\n");
    let below = [
        file("c/mod.rs", "mod part;\npub(crate) use part::Deep;\nuse part::Part;\n"),
        file("c/part.rs", "use super::Other;\nuse crate::a;\nfn f() { a::g() }\n"),
    ];
    let crates = |a: &str, b: &str| {
        let own = [lib.clone(), file("a.rs", a), file("b.rs", b)];
        Graph::new(&own.into_iter().chain(below.clone()).collect::<Vec<_>>()).circles()
    };
    let none = (0, Vec::new());
    assert_eq!(crates("", "use crate::{Deep, a::A};\n"), none, "a line is no circle");
    assert_eq!(
        crates("#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n", "use crate::a;\n"),
        none,
        "tests may"
    );
    let two = (2, vec!["a.rs -> b.rs -> a.rs".to_owned()]);
    assert_eq!(crates("fn g() { super::b::f() }\n", "use crate::a::{self, A};\n"), two);
    // Through the re-export of a re-export: `a.rs` refers to `c/part.rs`, which refers to `a.rs`.
    let hidden = (2, vec!["a.rs -> c/part.rs -> a.rs".to_owned()]);
    assert_eq!(crates("use crate::{Deep};\n", ""), hidden);
    let three = crates("use crate::b;\n", "fn f() -> crate::Part { crate::Part }\n");
    assert_eq!(three, (3, vec!["a.rs -> b.rs -> c/part.rs -> a.rs".to_owned()]));
}
