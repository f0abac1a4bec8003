//! Checks the sizes of the crates, and that ARCHITECTURE.md shows the crates and their dependencies.

use super::source::{is_test, product_lines};
use super::{crates, dependencies, files, has_extension, none, read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The largest part of all product lines that one crate may have, in per cent.
const LARGEST: f64 = 12.0;

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Returns the dependencies of each crate on other crates of the workspace.
fn arrows() -> Arrows {
    let crates = crates();
    let of = |name: &String| dependencies(name).intersection(&crates).cloned().collect();
    crates.iter().map(|name| (name.clone(), of(name))).collect()
}

/// Returns the arrows of each crate, without arrows to crates that its other arrows reach indirectly.
fn drawn(arrows: &Arrows) -> Arrows {
    let nothing = BTreeSet::new();
    let direct = |name: &String| arrows.get(name).unwrap_or(&nothing);
    let reached = |name: &String| {
        let (mut found, mut next) = (BTreeSet::new(), vec![name]);
        while let Some(name) = next.pop() {
            next.extend(direct(name).iter().filter(|other| found.insert((*other).clone())));
        }
        found
    };
    let of = |to: &BTreeSet<String>| {
        let indirect: BTreeSet<String> = to.iter().flat_map(reached).collect();
        to.difference(&indirect).cloned().collect()
    };
    arrows.iter().map(|(name, to)| (name.clone(), of(to))).collect()
}

/// Returns the layer of each crate: one above the highest crate to which it has an arrow, from 0.
fn layers(arrows: &Arrows) -> BTreeMap<String, usize> {
    fn layer(arrows: &Arrows, name: &String) -> usize {
        arrows.get(name).into_iter().flatten().map(|to| layer(arrows, to) + 1).max().unwrap_or(0)
    }
    arrows.keys().map(|name| (name.clone(), layer(arrows, name))).collect()
}

/// Draws the crates in layers, the highest first.
fn picture(arrows: &Arrows) -> String {
    let (layers, drawn) = (layers(arrows), drawn(arrows));
    let mut out = String::new();
    for number in (0..=layers.values().copied().max().unwrap_or(0)).rev() {
        let mut label = number.to_string();
        for (name, to) in drawn.iter().filter(|(name, _)| layers.get(*name) == Some(&number)) {
            let to: Vec<&str> = to.iter().map(String::as_str).collect();
            let line = format!("    {label:>2} │ {name:13} ──> {}", to.join(", "));
            let _ = writeln!(out, "{}", line.trim_end_matches(" ──> ").trim_end());
            label.clear();
        }
    }
    out
}

/// Returns the crates and dependencies in the table of the page.
fn table(page: &str) -> Arrows {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let row = |row: &str| {
        let (name, rest) = row.split_once('`')?;
        let to = rest.rsplit('|').next()?.split([',', ' ']).filter(|to| !to.is_empty() && *to != "nothing");
        Some((name.to_owned(), to.map(str::to_owned).collect()))
    };
    rows.filter_map(row).collect()
}

#[test]
fn the_page_shows_the_crates_and_arrows_that_exist() {
    let (page, arrows) = (read(&root().join("ARCHITECTURE.md")), arrows());
    let shown = table(&page);
    let text = |of: &Arrows, name: &String| {
        of.get(name).map(|to| to.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    let names: BTreeSet<&String> = shown.keys().chain(arrows.keys()).collect();
    let differs = names.into_iter().filter(|name| text(&shown, name) != text(&arrows, name));
    let wrong: Vec<String> = differs
        .map(|name| format!("`{name}`: shown {:?}, is {:?}", text(&shown, name), text(&arrows, name)))
        .collect();
    none("the table of ARCHITECTURE.md", &wrong);
    let picture = picture(&arrows);
    assert!(page.contains(&picture), "the picture of ARCHITECTURE.md is not this one:\n{picture}");
}

#[test]
fn a_picture_has_each_crate_above_all_that_it_needs() {
    let arrows: Arrows = [("a", &["b", "c"][..]), ("b", &["c"]), ("c", &[]), ("d", &[])]
        .map(|(name, to)| (name.to_owned(), to.iter().map(|to| (*to).to_owned()).collect()))
        .into();
    let lines = ["     2 │ a             ──> b", "     1 │ b             ──> c", "     0 │ c", "       │ d", ""];
    assert_eq!(picture(&arrows), lines.join("\n"));
    assert_eq!(table("| `a` | what it is | b, c |\n| `b` | x | c |\n| `c` | x | nothing |\n| `d` | x | nothing |\n"), arrows);
}

#[test]
fn no_crate_is_most_of_the_product() {
    let lines = |name: &String| {
        let paths = files(&root().join("crates").join(name).join("src"));
        let paths = paths.iter().filter(|path| has_extension(path, &["rs"]) && !is_test(&path.display().to_string()));
        paths.map(|path| product_lines(&read(path))).sum::<usize>()
    };
    let mut sizes: Vec<(usize, String)> = crates().iter().map(|name| (lines(name), name.clone())).collect();
    sizes.sort_by(|one, other| other.cmp(one));
    let all: usize = sizes.iter().map(|(lines, _)| lines).sum();
    let share = |lines: usize| lines as f64 * 100.0 / all as f64;
    let largest = sizes.iter().take(5).map(|(lines, name)| format!("{name} {lines} ({:.1} %)", share(*lines)));
    let largest = largest.collect::<Vec<_>>().join(", ");
    println!("{all} product lines; the largest crates: {largest}");
    assert!(sizes.first().is_some_and(|(lines, _)| share(*lines) <= LARGEST), "{largest}");
}
