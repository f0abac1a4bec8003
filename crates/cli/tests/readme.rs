//! The README's numbers: its commands must print exactly the text below them in the simulator.

use crate::blocks;
use blocks::{Block, blocks, matches};
use std::path::Path;
use std::process::Command;

const WAYFARE: &str = "target/release/wayfare";

/// Returns whether all lines of a block are commands that use the simulator only. Such a block prints the same in each
/// run.
fn is_simulated(block: &Block) -> bool {
    let mut lines = block.shell.lines();
    let here =
        |line: &str| line.starts_with(WAYFARE) && !["linux", "both"].iter().any(|on| line.contains(on));
    lines.all(here)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_simulator_gives_every_number_that_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for block in blocks(&readme).iter().filter(|block| is_simulated(block)) {
        let Some(wanted) = &block.output else { continue };
        let shell = block.shell.replace(WAYFARE, env!("CARGO_BIN_EXE_wayfare"));
        let output = Command::new("sh").args(["-eu", "-c", &shell]).current_dir(&folder).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "README line {}: {}\n{said}", block.line, block.shell);
        let (wanted, got) = (lines(wanted), lines(&said));
        let missing: Vec<&String> =
            wanted.iter().filter(|line| *line != "..." && !got.contains(line)).collect();
        assert!(
            matches(&wanted, &got),
            "README line {}: {}\nnot printed: {missing:#?}\n{said}",
            block.line,
            block.shell
        );
        compared += 1;
    }
    assert!(compared >= 6, "{compared} blocks have numbers of the simulator");
}

/// The cost of a handoff is a distribution: the first numbers must be medians over at least 40 phases.
#[test]
fn the_first_numbers_are_of_forty_phases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let blocks = blocks(&readme);
    let first = blocks.iter().find_map(|block| block.output.as_ref()).unwrap();
    let rows = first.lines().filter(|line| line.starts_with("outage_ms") || line.starts_with("lost_packets"));
    let n: Vec<u32> = rows.map(|row| row.split_whitespace().nth(2).unwrap().parse().unwrap()).collect();
    assert!(!n.is_empty() && n.iter().all(|n| *n >= 40), "{first}");
}

/// The memory of a million hosts takes minutes to measure. So README must have the rounded number of docs/bench.md.
#[test]
fn the_memory_of_a_million_hosts_is_what_is_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
    let before = |text: &str, unit: &str| -> f64 {
        let text = text.split(unit).next().unwrap();
        text.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let readme = read("README.md");
    let shown = before(readme.split("runs a million hosts").nth(1).unwrap(), " GiB");
    let bench = read("docs/bench.md");
    let recorded = before(bench.split("and it takes ").nth(1).unwrap(), " MiB") / 1024.0;
    assert!((shown - recorded).abs() <= 0.05, "README: {shown} GiB, docs/bench.md: {recorded} GiB");
}
