//! The names of the files in a run directory: temporary files, and files that belong to the run.

use super::meta;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The file that a process locks while it writes a directory.
pub(super) const LOCK: &str = ".wayfare-lock";

/// The files of a run in an older format. Its `run.json` has no list of files.
const FORMERLY: [&str; 7] = [
    "run.json",
    "events.jsonl",
    "packets.csv",
    "capture.pcapng",
    "records.jsonl",
    "figures/handoffs.svg",
    "figures/handoffs.csv",
];

/// The prefix of the directory in which a run is written before it replaces another one; the process id follows.
pub(super) const PART: &str = ".wayfare-part";

/// The directory of the complete new run, until its files are moved to their places.
pub(super) const NEXT: &str = ".wayfare-next";

/// Returns the paths of all files below `dir`, relative to `dir`.
pub(super) fn files_of(dir: &Path) -> io::Result<BTreeSet<String>> {
    let (mut files, mut open) = (BTreeSet::new(), vec![dir.to_owned()]);
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(&here)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(name) = path.strip_prefix(dir) {
                files.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

/// Returns the contents of the `run.json` in [`NEXT`], or else in `dir`. Returns `None` if neither belongs to a run.
pub(super) fn page(dir: &Path) -> Option<Vec<u8>> {
    let read = |dir: PathBuf| fs::read(dir.join("run.json")).ok().filter(|bytes| meta::is_run_file(bytes));
    read(dir.join(NEXT)).or_else(|| read(dir.to_owned()))
}

/// Returns whether a directory's entry with this name exists only while a run is written.
pub(super) fn is_passing(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == LOCK || name.strip_prefix(PART).is_some_and(|rest| rest.starts_with('-'))
}

/// Returns the files that the `run.json` in `dir` lists, or [`FORMERLY`] if it has no list. Returns an empty set if
/// there is no run.
pub(super) fn former_files(dir: &Path) -> BTreeSet<String> {
    let page = fs::read(dir.join("run.json")).ok().filter(|bytes| meta::is_run_file(bytes));
    let page: Option<serde_json::Value> = page.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(page) = page else { return BTreeSet::new() };
    let Some(listed) = page.get("files").and_then(serde_json::Value::as_array) else {
        return FORMERLY.map(str::to_owned).into();
    };
    // An edited `run.json` must not refer to files outside of its directory.
    let is_within =
        |name: &&str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    listed.iter().filter_map(serde_json::Value::as_str).filter(is_within).map(str::to_owned).collect()
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the parent folder of a directory, and the name of a temporary file in this folder: `.NAME.WHAT`.
pub(super) fn beside(dir: &Path, what: &str) -> io::Result<(PathBuf, String)> {
    let name = dir.file_name().ok_or_else(|| {
        io::Error::other("the path of a run directory must end with a name, not with `..` or `/`")
    })?;
    Ok((parent(dir).to_owned(), format!(".{}.{what}", name.to_string_lossy())))
}
