//! The README is correct: every shell block runs in a copy of the sources, and prints the text below it.

use crate::blocks::{Block, blocks, matches};
use crate::common::{alone, ended, late, text, wayfare};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Masks numbers and the space that aligns them: they may differ between runs and machines.
fn masked(text: &str) -> Vec<String> {
    let mask = |line: &str| {
        let mut out = String::new();
        for word in line.split_whitespace() {
            let numeric = word.contains(|c: char| c.is_ascii_digit())
                && word.chars().all(|c| c.is_ascii_hexdigit() || ".,:+-~()%>".contains(c));
            out.push_str(if numeric { "#" } else { word });
            out.push(' ');
        }
        out.trim_end().replace(['─', '-'], "")
    };
    text.lines().map(mask).filter(|line| !line.is_empty()).collect()
}

fn run(block: &Block, place: &Path) {
    let target = place.join("target");
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", &block.shell]).current_dir(place).env("CARGO_TARGET_DIR", &target);
    // A block runs as for a reader, without the variables of the `make` that may have started this test.
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        command.env_remove(variable);
    }
    command.env("CARGO", place.join("target/cargo"));
    let output = ended(&mut command);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    let shell = &block.shell;
    if output.was_only_late() {
        return late(&output);
    }
    assert!(output.status.success(), "README line {}: {shell}\n{said}\n{complained}", block.line);
    if let Some(wanted) = &block.output {
        let (wanted, got) = (masked(wanted), masked(&said));
        assert!(
            matches(&wanted, &got),
            "README line {}: {shell}\nwanted {wanted:#?}\ngot {got:#?}",
            block.line
        );
    }
}

/// Copies the sources, except what `.gitignore` names, and keeps each file's time, so that built files need not be
/// built again. A bare machine has no git, so this is not a clone. CI checks in a clean clone that everything is
/// committed.
fn copy_sources(from: &Path, to: &Path, ignored: &[PathBuf]) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (here, there) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == ".git" || ignored.contains(&here) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy_sources(&here, &there, ignored);
        } else {
            std::fs::copy(&here, &there).unwrap();
            let time = std::fs::metadata(&here).and_then(|file| file.modified()).unwrap();
            std::fs::File::options().write(true).open(&there).unwrap().set_modified(time).unwrap();
        }
    }
}

/// Copies the command of this build, and its library, to the folder where README's commands expect the release. Also
/// writes a `cargo` that builds nothing: `make run` would take minutes to build the release.
fn put_build(target: &Path) {
    let release = target.join("release");
    let library = Path::new("deps/libwayfare_shim.so");
    std::fs::create_dir_all(release.join("deps")).unwrap();
    std::fs::copy(wayfare(), release.join("wayfare")).unwrap();
    std::fs::copy(wayfare().with_file_name("").join(library), release.join(library)).unwrap();
    let cargo = target.join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\n[ \"$1\" = build ] || exec cargo \"$@\"\n").unwrap();
    std::fs::set_permissions(&cargo, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn every_shell_block_does_what_is_printed_below_it() {
    let root = root();
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("wayfare");
    let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap();
    let ignored: Vec<PathBuf> = ignored.lines().map(|line| root.join(line.trim_matches('/'))).collect();
    copy_sources(&root, &place, &ignored);
    put_build(&place.join("target"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 4, "a README shows how it is used");
    // `make test` would run this test again.
    for block in blocks.iter().filter(|block| block.shell.trim() != "make test") {
        run(block, &place);
    }
}

#[test]
fn another_word_or_a_missing_line_is_not_the_same() {
    let wanted = masked("a 1.5 ms\n...\nlast 3\n");
    assert!(matches(&wanted, &masked("a   22.75 ms\nx\ny\nlast 4")));
    assert!(!matches(&wanted, &masked("a 1 s\nlast 4")));
    assert!(!matches(&wanted, &masked("a 1 ms\nx")));
}
