//! Where a run directory goes: what may be replaced there, that only one run writes it, and how it appears.

use super::{digests, meta};
use crate::Plan;
use crate::run::OnWorld;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trace::Fingerprint;

/// What directories of an older form have, which have no list of their files.
const FORMERLY: [&str; 7] = [
    "run.json",
    "events.jsonl",
    "packets.csv",
    "capture.pcapng",
    "records.jsonl",
    "figures/handoffs.svg",
    "figures/handoffs.csv",
];

/// The directory in which a run is kept if none is named: `runs/NAME-BACKEND-SEED`, with a digest of the settings if there
/// are any. Where that holds a run of another text of the scenario, `.2`, `.3` and so on follow.
pub fn default_dir(name: &str, plan: &Plan, world: OnWorld) -> PathBuf {
    let base = format!("{name}-{}-{}{}", world.name(), plan.seed, digest_of_settings(plan));
    unused(&base, |dir| check(dir, plan, world, false))
}

/// The folder of `of` runs at other phases if none is named: `runs/NAME-BACKEND-of-N`, and so on as [`default_dir`]. `first`
/// is the plan of the first of them. They do not lie among single runs, whose phases are those of the file.
pub fn default_folder(name: &str, first: &Plan, world: OnWorld, of: u64) -> PathBuf {
    let base = format!("{name}-{}-of-{of}{}", world.name(), digest_of_settings(first));
    unused(&base, |folder| {
        let is_empty = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        let member = member(folder, name, world, first.seed);
        match (is_empty, member.exists()) {
            (true, _) => Ok(()),
            (false, true) => check(&member, first, world, false),
            (false, false) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    })
}

/// The directory of one of several runs.
pub fn member(folder: &Path, name: &str, world: OnWorld, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{}-{seed}", world.name()))
}

fn digest_of_settings(plan: &Plan) -> String {
    if plan.settings.is_empty() {
        return String::new();
    }
    let mut digest = Fingerprint::default();
    for setting in &plan.settings {
        digest.add(&setting.to_string());
    }
    format!("-{:08x}", digest.value() as u32)
}

/// The first of `runs/BASE`, `runs/BASE.2`, `runs/BASE.3` that holds nothing else.
fn unused(base: &str, check: impl Fn(&Path) -> io::Result<()>) -> PathBuf {
    let mut dir = Path::new("runs").join(base);
    let mut number = 2_u64;
    // Any other error is the same for every name, and is told when the run is written.
    while check(&dir).is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
        dir = Path::new("runs").join(format!("{base}.{number}"));
        number += 1;
    }
    dir
}

/// Whether a run may be written there: nothing is there, or an empty directory, or this very run, of the same scenario,
/// settings, backend and seed. With `force` any other run may be replaced too, and nothing else. Of the kind
/// `AlreadyExists` if it may not.
pub fn check(dir: &Path, plan: &Plan, world: OnWorld, force: bool) -> io::Result<()> {
    let refuse = |problem: &str| {
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} {problem}", dir.display())))
    };
    match fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", dir.display()))),
        Ok(found) if !found.is_dir() => return refuse("exists and is not a run directory; not overwritten"),
        Ok(_) => {}
    }
    let page = fs::read(dir.join("run.json")).ok().filter(|bytes| meta::is_run_file(bytes));
    let Some(page) = page else {
        let mut entries = fs::read_dir(dir)?.flatten().filter(|entry| !is_lock(&entry.path()));
        return match entries.next() {
            None => Ok(()),
            Some(_) => refuse("exists and is not a run directory; not overwritten"),
        };
    };
    if force || is_run_of(&page, plan, world) {
        return Ok(());
    }
    refuse("holds another run; name another directory, or replace it with --force")
}

fn is_run_of(page: &[u8], plan: &Plan, world: OnWorld) -> bool {
    let Ok(page) = serde_json::from_slice::<serde_json::Value>(page) else { return false };
    let settings: Vec<String> = plan.settings.iter().map(ToString::to_string).collect();
    page["scenario"]["text"] == plan.text.as_str()
        && page["settings"] == serde_json::json!(settings)
        && page["world"] == world.name()
        && page["seed"] == plan.seed
}

/// The right to write a run directory. While it is held, no other process has it.
#[derive(Debug)]
pub struct Claim {
    lock: PathBuf,
    /// The folders that were made for the lock, the innermost first.
    made: Vec<PathBuf>,
    _file: File,
}

/// Claims a run directory, which shows too whether it can be written. Of the kind `WouldBlock` if another process has it.
pub fn claim(dir: &Path) -> io::Result<Claim> {
    let within = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    let lock = if dir.is_dir() { dir.join(".wayfare-lock") } else { beside(dir, "wayfare-lock")? };
    let made: Vec<PathBuf> = parent(dir)
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_path_buf)
        .collect();
    loop {
        fs::create_dir_all(parent(dir)).map_err(within)?;
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
        let file = match opened {
            // Another process made the folder, did not use it, and has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !parent(dir).exists() => continue,
            opened => opened.map_err(within)?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = format!("{}: another run is writing it", dir.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
            }
            Err(TryLockError::Error(error)) => return Err(within(error)),
        }
        // Its last holder may have removed the file between our opening and locking it.
        let ours = file.metadata().map_err(within)?;
        if fs::metadata(&lock).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Claim { lock, made, _file: file });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // When the run has been renamed into its place, the lock beside it is still where it was.
        let _ = fs::remove_file(&self.lock);
        // A run that could not be kept, or not be started, leaves nothing. A folder with something in it is not removed.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".wayfare-lock")
}

fn parent(dir: &Path) -> &Path {
    dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(dir: &Path, what: &str) -> io::Result<PathBuf> {
    let name = dir.file_name().ok_or_else(|| io::Error::other("a run directory needs a name"))?;
    Ok(parent(dir).join(format!(".{}.{what}", name.to_string_lossy())))
}

/// Has `fill` write a run directory, and puts it in its place when it is whole; the list of its files is handed to `page`,
/// which returns what is to be in `run.json`. A new directory appears by one renaming. In one that exists the files of the
/// older run are replaced, `run.json` last, and no other file is touched. After an error everything is as it was.
pub(super) fn put<T>(
    dir: &Path,
    fill: impl FnOnce(&Path) -> io::Result<T>,
    page: impl FnOnce(&mut T, Vec<String>) -> String,
) -> io::Result<T> {
    let exists = dir.is_dir();
    let part = if exists {
        dir.join(format!(".wayfare-part-{}", std::process::id()))
    } else {
        beside(dir, &format!("part-{}", std::process::id()))?
    };
    fs::create_dir_all(&part)?;
    let result = fill(&part).and_then(|mut value| {
        let mut files = files_of(&part)?;
        files.extend(["run.json", digests::NAME].map(str::to_owned));
        fs::write(part.join("run.json"), page(&mut value, files.iter().cloned().collect()))?;
        digests::write(&part)?;
        if exists {
            replace(dir, &part, &files)?;
        } else {
            fs::rename(&part, dir)?;
        }
        Ok(value)
    });
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    result
}

/// Every file below a directory, relative to it.
fn files_of(dir: &Path) -> io::Result<BTreeSet<String>> {
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

/// Moves the files of a run into a directory that has an older run, or nothing.
fn replace(dir: &Path, part: &Path, files: &BTreeSet<String>) -> io::Result<()> {
    let old = former_files(dir);
    // A file of the user's under a name that the new run uses is neither lost nor in the way.
    for name in files.difference(&old) {
        let mine = dir.join(name);
        if mine.exists() {
            let problem = format!("{} is not a file of a run; not overwritten", mine.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
    }
    // Without its page it is no run directory until all is there.
    let page = dir.join("run.json");
    if page.exists() {
        fs::remove_file(&page)?;
    }
    for name in old.iter().filter(|name| *name != "run.json") {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for name in files.iter().filter(|name| *name != "run.json") {
        let to = dir.join(name);
        fs::create_dir_all(to.parent().unwrap_or(dir))?;
        fs::rename(part.join(name), to)?;
    }
    fs::rename(part.join("run.json"), page)
}

/// The files of the run that a directory holds, as its page lists them.
fn former_files(dir: &Path) -> BTreeSet<String> {
    let page = fs::read(dir.join("run.json")).ok().filter(|bytes| meta::is_run_file(bytes));
    let page: Option<serde_json::Value> = page.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(page) = page else { return BTreeSet::new() };
    let Some(listed) = page.get("files").and_then(serde_json::Value::as_array) else {
        return FORMERLY.map(str::to_owned).into();
    };
    // A page that was edited must not lead out of its directory.
    let is_within = |name: &&str| {
        Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)))
    };
    listed.iter().filter_map(serde_json::Value::as_str).filter(is_within).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, names: &[&str]) -> io::Result<()> {
        let fill = |part: &Path| {
            fs::create_dir_all(part.join("figures"))?;
            names.iter().try_for_each(|name| fs::write(part.join(name), "new"))
        };
        let page = |(): &mut (), files: Vec<String>| {
            serde_json::json!({ "format": 1, "scenario": {}, "world": "sim", "files": files }).to_string()
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
        // A name that the new run would use, and the user's file has, is refused; all stays.
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
            put(dir, fill, |(), _| String::new()).unwrap_err()
        };
        assert_eq!(broken(&dir).kind(), io::ErrorKind::StorageFull);
        assert!(names(folder.path()).is_empty());
        write(&dir, &["a.csv"]).unwrap();
        broken(&dir);
        assert_eq!(names(&dir), ["SHA256SUMS", "a.csv", "run.json"]);
        assert_eq!(fs::read_to_string(dir.join("a.csv")).unwrap(), "new");
    }

    #[test]
    fn a_directory_is_claimed_once_whether_it_is_there_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        for dir in [folder.path(), &new] {
            let claimed = claim(dir).unwrap();
            assert_eq!(claim(dir).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            drop(claimed);
            drop(claim(dir).unwrap());
        }
        assert!(names(folder.path()).is_empty(), "no lock stays");
    }
    #[test]
    fn a_claim_that_is_not_used_leaves_no_folder_and_removes_none_in_which_something_is() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("runs/deep/new");
        drop(claim(&dir).unwrap());
        assert!(names(folder.path()).is_empty());
        let claimed = claim(&dir).unwrap();
        fs::write(folder.path().join("runs/other"), "a user's").unwrap();
        drop(claimed);
        assert_eq!(names(&folder.path().join("runs")), ["other"]);
    }
}
