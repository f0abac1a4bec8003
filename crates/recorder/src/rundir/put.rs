//! Writes a run directory atomically, as a new directory or in place of an older run.

use super::digests;
use super::files::{NEXT, PART, beside, files_of, former_files};
use crate::unfinished::{Kind, Unfinished, remove_stale};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Writes a run directory with `fill`, and moves it to its place when it is complete. `page` receives the list of the
/// run's files and returns the contents of `run.json`. A new directory appears by one rename. In an existing directory,
/// only the files of the older run are replaced. The new run is written beside them, and one rename to [`NEXT`] makes
/// it the directory's run. From then on, [`complete`] can finish the replacement, even in a later process. Before this
/// rename, the older run is not changed.
pub(super) fn put<T>(
    dir: &Path,
    fill: impl FnOnce(&Path) -> io::Result<T>,
    page: impl FnOnce(&mut T, Vec<String>) -> io::Result<String>,
) -> io::Result<T> {
    complete(dir)?;
    let number = std::process::id();
    let exists = dir.is_dir();
    let part = if exists {
        remove_stale(dir, PART);
        dir.join(format!("{PART}-{number}"))
    } else {
        let (folder, name) = beside(dir, "part")?;
        remove_stale(&folder, &name);
        folder.join(format!("{name}-{number}"))
    };
    let part = Unfinished::new(part, Kind::Part);
    fs::create_dir_all(part.path())?;
    let mut value = fill(part.path())?;
    let mut files = files_of(part.path())?;
    files.extend(["run.json", digests::NAME].map(str::to_owned));
    fs::write(part.path().join("run.json"), page(&mut value, files.iter().cloned().collect())?)?;
    digests::write(part.path())?;
    if exists {
        check_names(dir, &files)?;
    }
    part.finish(|part| {
        if !exists {
            return fs::rename(part, dir);
        }
        fs::rename(part, dir.join(NEXT))?;
        complete(dir)
    })?;
    Ok(value)
}

/// Returns an error if a user's file has a name that the new run needs. The file is kept.
fn check_names(dir: &Path, files: &BTreeSet<String>) -> io::Result<()> {
    let old = former_files(dir);
    match files.difference(&old).map(|name| dir.join(name)).find(|mine| fs::symlink_metadata(mine).is_ok()) {
        None => Ok(()),
        Some(mine) => {
            let problem = format!(
                "{} is not a file of a run; not overwritten; move it, or name another directory",
                mine.display()
            );
            Err(io::Error::new(io::ErrorKind::AlreadyExists, problem))
        }
    }
}

/// Ignores the error that a file does not exist: then it was moved or removed before.
fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Moves the files of a complete run from [`NEXT`] to their places, `run.json` last, and removes files that only the
/// older run has. Continues an interrupted move.
pub(super) fn complete(dir: &Path) -> io::Result<()> {
    let next = dir.join(NEXT);
    if !next.is_dir() {
        return Ok(());
    }
    if next.join("run.json").exists() {
        let new = former_files(&next);
        for name in former_files(dir).difference(&new) {
            unless_gone(fs::remove_file(dir.join(name)))?;
        }
        for name in files_of(&next)?.iter().filter(|name| *name != "run.json") {
            let to = dir.join(name);
            fs::create_dir_all(to.parent().unwrap_or(dir))?;
            unless_gone(fs::rename(next.join(name), to))?;
        }
        unless_gone(fs::rename(next.join("run.json"), dir.join("run.json")))?;
    }
    unless_gone(fs::remove_dir_all(next))
}

#[cfg(test)]
mod tests {
    use super::super::files::{is_passing, page};
    use super::*;
    use std::path::PathBuf;

    fn write(dir: &Path, names: &[&str]) -> io::Result<()> {
        let fill = |part: &Path| {
            fs::create_dir_all(part.join("figures"))?;
            names.iter().try_for_each(|name| fs::write(part.join(name), "new"))
        };
        let page = |(): &mut (), files: Vec<String>| {
            Ok(serde_json::json!({ "format": 1, "scenario": {}, "backend": "sim", "files": files })
                .to_string())
        };
        put(dir, fill, page)
    }

    fn names(dir: &Path) -> Vec<String> {
        files_of(dir).unwrap().into_iter().collect()
    }

    #[test]
    fn only_the_files_of_the_older_run_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        write(&dir, &["a.csv", "figures/old.svg"]).unwrap();
        fs::write(dir.join("mynotes.txt"), "mine").unwrap();
        fs::write(dir.join("figures/mine.svg"), "mine").unwrap();
        write(&dir, &["a.csv", "b.csv"]).unwrap();
        assert_eq!(
            names(&dir),
            ["SHA256SUMS", "a.csv", "b.csv", "figures/mine.svg", "mynotes.txt", "run.json"]
        );
        // If a user's file has a name that the new run needs, the run is rejected and nothing changes.
        let refused = write(&dir, &["a.csv", "mynotes.txt"]).unwrap_err();
        assert!(refused.to_string().contains("mynotes.txt is not a file of a run"), "{refused}");
        assert_eq!(fs::read_to_string(dir.join("mynotes.txt")).unwrap(), "mine");
        assert_eq!(
            names(&dir),
            ["SHA256SUMS", "a.csv", "b.csv", "figures/mine.svg", "mynotes.txt", "run.json"]
        );
    }

    #[test]
    fn a_run_that_could_not_be_written_leaves_nothing_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let broken = |dir: &Path| {
            let fill = |part: &Path| {
                fs::write(part.join("a.csv"), "half")?;
                Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
            };
            put(dir, fill, |(), _| Ok(String::new())).unwrap_err()
        };
        assert_eq!(broken(&dir).kind(), io::ErrorKind::StorageFull);
        assert!(names(folder.path()).is_empty());
        write(&dir, &["a.csv"]).unwrap();
        broken(&dir);
        assert_eq!(names(&dir), ["SHA256SUMS", "a.csv", "run.json"]);
        assert_eq!(fs::read_to_string(dir.join("a.csv")).unwrap(), "new");
    }

    /// Creates a directory with a run of `a.csv` and `c.csv` and a user's notes. Its [`NEXT`] has a complete new run of
    /// `a.csv` and `b.csv`.
    fn half_replaced(folder: &Path) -> PathBuf {
        let (dir, new) = (folder.join("run"), folder.join("new"));
        write(&dir, &["a.csv", "c.csv"]).unwrap();
        fs::write(dir.join("a.csv"), "old").unwrap();
        fs::write(dir.join("mynotes.txt"), "mine").unwrap();
        write(&new, &["a.csv", "b.csv"]).unwrap();
        fs::rename(new, dir.join(NEXT)).unwrap();
        dir
    }

    #[test]
    fn a_replacement_that_was_interrupted_is_completed() {
        let whole = ["SHA256SUMS", "a.csv", "b.csv", "mynotes.txt", "run.json"];
        // The replacement is interrupted after 0, 1, 2 or all moves.
        for moved in [&[][..], &["a.csv"], &["a.csv", "b.csv"], &["a.csv", "b.csv", "SHA256SUMS", "run.json"]]
        {
            let folder = tempfile::tempdir().unwrap();
            let dir = half_replaced(folder.path());
            if moved.len() == 4 {
                fs::remove_file(dir.join("c.csv")).unwrap();
            }
            for name in moved {
                fs::rename(dir.join(NEXT).join(name), dir.join(name)).unwrap();
            }
            assert!(page(&dir).is_some(), "it holds a run");
            complete(&dir).unwrap();
            assert_eq!(names(&dir), whole);
            assert_eq!(fs::read_to_string(dir.join("a.csv")).unwrap(), "new");
        }
    }

    #[test]
    fn a_part_that_a_killed_process_left_is_removed_and_hides_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let beside = folder.path().join(format!(".run.part-{}", u32::MAX));
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("a.csv"), "half").unwrap();
        write(&dir, &["a.csv"]).unwrap();
        assert!(!beside.exists());
        let within = dir.join(format!("{PART}-{}", u32::MAX));
        fs::create_dir(&within).unwrap();
        assert!(is_passing(&within) && !is_passing(&dir.join("mynotes.txt")));
        write(&dir, &["a.csv"]).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 4, "a.csv, figures, run.json and SHA256SUMS");
    }
}
