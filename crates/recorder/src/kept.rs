//! Files that commands write besides run directories: tables, figures, summaries.
//!
//! No file of the user is overwritten without `--force`. A folder has a list, `.wayfare-files`, with the digest of each
//! file that Wayfare wrote there, in the format of `sha256sum --check`. A file is replaced only if its digest is still
//! in the list, or if Wayfare recognises its contents. Any other file is replaced only with `--force`. If the name of a
//! file is known before the runs, the file is checked before them.

use crate::rundir::{Claim, claim_folder, digest};
pub use crate::unfinished::refuse_file;
use crate::unfinished::{Kind, Unfinished, missing_folders, remove_stale};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const LIST: &str = ".wayfare-files";

/// The next version of the list, while a file is renamed into its place. After an interruption, the digest of the
/// file is in one of the two lists.
const NEXT: &str = ".wayfare-files-next";

const PART: &str = ".wayfare-part";

/// A folder in which a command keeps files. It is locked against other processes while this value exists.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// For each file name, the digests of the contents that Wayfare wrote or recognises.
    listed: BTreeMap<String, BTreeSet<String>>,
    force: bool,
    _claim: Claim,
}

impl Folder {
    /// Locks a folder, creates it if it is missing, and checks that the files `names` may and can be written in it.
    ///
    /// # Errors
    ///
    /// The error's kind is `AlreadyExists` if a file of `names` may not be replaced, `WouldBlock` if another process
    /// holds the lock, and `NotADirectory` if the folder is a file. Any other kind is an error of a file operation.
    pub fn open<'a>(
        folder: &Path,
        names: impl IntoIterator<Item = &'a str>,
        force: bool,
    ) -> io::Result<Self> {
        let claim = claim_folder(folder)?;
        Self::claimed(folder, claim, names, force)
    }

    /// Opens a folder whose lock is `claim`, and checks the files `names` as [`Folder::open`] does.
    pub fn claimed<'a>(
        folder: &Path,
        claim: Claim,
        names: impl IntoIterator<Item = &'a str>,
        force: bool,
    ) -> io::Result<Self> {
        remove_stale(folder, PART);
        let this = Self { path: folder.to_owned(), listed: listed(folder), force, _claim: claim };
        let mut folders = BTreeSet::new();
        for name in names {
            this.check(name)?;
            folders.extend(this.path.join(name).parent().map(Path::to_path_buf));
        }
        folders.remove(folder); // the lock is in it, so it can be written
        folders.iter().try_for_each(|folder| check_writable(folder, PART))?;
        Ok(this)
    }

    /// Returns the first of `runs/BASE`, `runs/BASE.2` and so on in which the files `names` may be written.
    pub fn default(base: &str, names: &[&str]) -> PathBuf {
        let mut folder = Path::new("runs").join(base);
        let mut number = 2_u64;
        while is_taken(&folder, names) {
            folder = Path::new("runs").join(format!("{base}.{number}"));
            number += 1;
        }
        folder
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Permits replacing the file `name` if `is_ours` returns true for the contents, although `.wayfare-files` may not
    /// list the file. Returns an error if the file may still not be replaced.
    pub fn accept(&mut self, name: &str, is_ours: impl FnOnce(&str) -> bool) -> io::Result<()> {
        let path = self.path.join(name);
        if fs::read_to_string(&path).is_ok_and(|text| is_ours(&text)) {
            self.listed.entry(name.to_owned()).or_default().insert(digest(&path)?);
        }
        self.check(name)
    }

    /// Returns an error if an existing file may not be replaced: Wayfare did not write it, it was changed later, or it
    /// cannot be read. With `force`, the only error is that a directory, a device or a pipe has this name.
    pub fn check(&self, name: &str) -> io::Result<()> {
        if self.force {
            return refuse_no_file(&self.path.join(name));
        }
        check(&self.path, &self.listed, name)
    }

    /// Writes a file atomically and returns its path. Returns an error if an existing file may not be replaced, or if
    /// the file cannot be written.
    pub fn keep(&mut self, name: &str, text: &str) -> io::Result<PathBuf> {
        self.check(name)?;
        let path = self.path.join(name);
        let part = self.path.join(format!("{PART}-{}", std::process::id()));
        let part = Unfinished::new(part, Kind::Part);
        fs::write(part.path(), text)?;
        fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
        let new = digest(part.path())?;
        let old = self.listed.insert(name.to_owned(), BTreeSet::from([new]));
        let written = self.put_in_place(part, &path);
        if written.is_err() {
            match old {
                Some(old) => self.listed.insert(name.to_owned(), old),
                None => self.listed.remove(name),
            };
        }
        written.map(|()| path)
    }

    fn put_in_place(&self, part: Unfinished, path: &Path) -> io::Result<()> {
        let next = Unfinished::new(self.path.join(NEXT), Kind::Part);
        let mut list = String::new();
        for (name, digests) in &self.listed {
            for digest in digests {
                let _ = writeln!(list, "{digest}  {name}");
            }
        }
        fs::write(next.path(), list)?;
        part.finish(|part| fs::rename(part, path))?;
        next.finish(|next| fs::rename(next, self.path.join(LIST)))
    }
}

/// Reads the digests of the files that Wayfare wrote in a folder.
fn listed(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::<String, BTreeSet<String>>::new();
    for list in [LIST, NEXT] {
        let text = fs::read_to_string(folder.join(list)).unwrap_or_default();
        for (digest, name) in text.lines().filter_map(|line| line.split_once("  ")) {
            all.entry(name.to_owned()).or_default().insert(digest.to_owned());
        }
    }
    all
}

fn is_taken(folder: &Path, names: &[&str]) -> bool {
    let is_folder = fs::symlink_metadata(folder).map_or(true, |found| found.is_dir());
    let listed = listed(folder);
    let is_refused = |error: io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    !is_folder || names.iter().any(|name| check(folder, &listed, name).is_err_and(is_refused))
}

fn check(folder: &Path, listed: &BTreeMap<String, BTreeSet<String>>, name: &str) -> io::Result<()> {
    let path = folder.join(name);
    let within = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(within(error)),
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(not_ours(&path)),
    }
    let found = digest(&path).map_err(within)?;
    if listed.get(name).is_some_and(|digests| digests.contains(&found)) {
        Ok(())
    } else {
        Err(not_ours(&path))
    }
}

fn not_ours(path: &Path) -> io::Error {
    let problem = format!(
        "{} exists, and its contents are not those that Wayfare wrote; name another folder, or replace the file with --force",
        path.display()
    );
    io::Error::new(io::ErrorKind::AlreadyExists, problem)
}

/// Returns an error of the kind `AlreadyExists` if the path leads to a directory, a device or a pipe.
fn refuse_no_file(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() { "a directory" } else { "not a regular file" };
    let problem = format!("{} is {what}, and is not replaced; name another file", path.display());
    Err(io::Error::new(io::ErrorKind::AlreadyExists, problem))
}

/// Returns an error of the kind `InvalidInput` if the path does not end with the name of a file, or leads back by `..` from a folder that
/// does not exist.
fn refuse_no_name(path: &Path) -> io::Result<()> {
    let end = path.as_os_str().as_encoded_bytes();
    let is_back = |part: &Path| part.ends_with("..") && fs::symlink_metadata(part).is_err();
    let problem = if path.file_name().is_none_or(|name| !end.ends_with(name.as_encoded_bytes())) {
        "the name of a file is missing at its end"
    } else if path.ancestors().any(is_back) {
        "the folder before `..` does not exist"
    } else {
        return Ok(());
    };
    let problem = format!("cannot write `{}`: {problem}", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// Checks that a file can be created in a folder: creates the folder if it is missing, and a file `PREFIX-PID`, and removes what it
/// has created.
fn check_writable(folder: &Path, prefix: &str) -> io::Result<()> {
    let made = missing_folders(folder);
    let part = Unfinished::new(folder.join(format!("{prefix}-{}", std::process::id())), Kind::Part);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(part.path(), ""));
    drop(part);
    drop(made);
    written.map_err(|error| {
        let problem =
            format!("{}: {error}; name another directory, in which you can write", folder.display());
        io::Error::new(error.kind(), problem)
    })
}

/// A single file that the user names. An existing file is replaced only if Wayfare recognises the contents, or with
/// `--force`.
#[derive(Debug)]
pub struct SingleFile(PathBuf);

impl SingleFile {
    /// Checks whether the file may and can be written, and leaves no file and no folder yet. Returns an error if `path`
    /// is a directory, a device or a pipe, or ends with `/`, or if no file can be created in its folder. Also returns an error if the
    /// file exists, `is_ours` returns false for the contents, and `force` is false.
    pub fn new(path: &Path, is_ours: impl FnOnce(&str) -> bool, force: bool) -> io::Result<Self> {
        refuse_no_file(path)?;
        refuse_no_name(path)?;
        let this = Self(path.to_owned());
        refuse_file(this.folder())?;
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            Ok(_) if force || fs::read_to_string(path).is_ok_and(|text| is_ours(&text)) => {}
            Ok(_) => {
                let problem =
                    format!("{} exists; name another file, or replace it with --force", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
            }
        }
        check_writable(this.folder(), &this.prefix()).map(|()| this)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn folder(&self) -> &Path {
        self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Returns the beginning of the name of the temporary file.
    fn prefix(&self) -> String {
        format!(".{}.part", self.0.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Writes the file atomically, and creates its folder if it is missing. Returns an error if the file cannot be
    /// written.
    pub fn put(&self, text: &str) -> io::Result<()> {
        let (path, folder, prefix) = (&self.0, self.folder(), self.prefix());
        fs::create_dir_all(folder)?;
        remove_stale(folder, &prefix);
        let part = folder.join(format!("{prefix}-{}", std::process::id()));
        let part = Unfinished::new(part, Kind::Part);
        fs::write(part.path(), text)?;
        part.finish(|part| fs::rename(part, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn refused(result: io::Result<impl std::fmt::Debug>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        error.to_string()
    }

    #[test]
    fn what_was_written_is_replaced_and_what_was_not_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let open = |force| Folder::open(folder, ["a.csv", "sub/b.svg"], force);
        let mut kept = open(false).unwrap();
        assert_eq!(open(false).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        kept.keep("a.csv", "one").unwrap();
        kept.keep("sub/b.svg", "one").unwrap();
        drop(kept);
        assert_eq!(names(folder), [LIST, "a.csv", "sub"]);
        open(false).unwrap().keep("a.csv", "two").unwrap();
        // The user edits `b.svg`, and creates `c.csv`.
        fs::write(folder.join("sub/b.svg"), "mine").unwrap();
        assert!(
            refused(open(false))
                .contains("sub/b.svg exists, and its contents are not those that Wayfare wrote")
        );
        fs::write(folder.join("c.csv"), "mine").unwrap();
        let mut kept = Folder::open(folder, [], false).unwrap();
        refused(kept.keep("c.csv", "three"));
        drop(kept);
        assert_eq!(fs::read_to_string(folder.join("c.csv")).unwrap(), "mine");
        open(true).unwrap().keep("sub/b.svg", "three").unwrap();
        open(false).unwrap();
    }

    #[test]
    fn an_interruption_while_a_file_is_replaced_makes_it_no_users_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let open = || Folder::open(folder, ["a.csv"], false);
        open().unwrap().keep("a.csv", "one").unwrap();
        // An interruption between the two renames leaves this state.
        let list = fs::read_to_string(folder.join(LIST)).unwrap();
        let mut kept = open().unwrap();
        kept.keep("a.csv", "two").unwrap();
        drop(kept);
        fs::rename(folder.join(LIST), folder.join(NEXT)).unwrap();
        fs::write(folder.join(LIST), &list).unwrap();
        drop(open().unwrap());
        fs::write(folder.join("a.csv"), "one").unwrap();
        drop(open().unwrap());
        // A temporary file is removed if the process whose number is in its name does not exist.
        let stale = folder.join(format!("{PART}-{}", u32::MAX));
        let alive = folder.join(format!("{PART}-{}", std::process::id()));
        fs::write(&stale, "half").unwrap();
        fs::write(&alive, "half").unwrap();
        drop(open().unwrap());
        assert!(!stale.exists() && alive.exists());
    }

    #[test]
    fn a_single_file_is_replaced_only_if_it_is_known_or_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/table.md");
        let file = |force| SingleFile::new(&path, |text| text.starts_with("# Ours"), force);
        file(false).unwrap().put("# Ours").unwrap();
        file(false).unwrap().put("mine").unwrap();
        assert!(
            refused(file(false)).contains("table.md exists; name another file, or replace it with --force")
        );
        file(true).unwrap().put("# Ours").unwrap();
        refused(SingleFile::new(folder.path(), |_| true, true));
        assert_eq!(names(&folder.path().join("new")), ["table.md"]);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at =
            |path: &str| SingleFile::new(&folder.path().join(path), |_| true, false).map_err(|e| e.kind());
        fs::write(folder.path().join("file"), "mine").unwrap();
        // No process can create a file in /proc.
        std::os::unix::fs::symlink("/proc", folder.path().join("proc")).unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join("null")).unwrap();
        for (path, kind) in [
            ("file/table.md", io::ErrorKind::NotADirectory),
            ("file/deep/table.md", io::ErrorKind::NotADirectory),
            ("new/", io::ErrorKind::InvalidInput),
            ("new/.", io::ErrorKind::InvalidInput),
            ("new/../table.md", io::ErrorKind::InvalidInput),
            ("null", io::ErrorKind::AlreadyExists),
        ] {
            assert_eq!(at(path).unwrap_err(), kind, "{path}");
        }
        assert_eq!(
            SingleFile::new(Path::new(""), |_| true, true).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        at("proc/table.md").unwrap_err();
        at("proc/new/table.md").unwrap_err();
        at("new/deep/table.md").unwrap();
        assert_eq!(names(folder.path()), ["file", "null", "proc"], "nothing is left");

        let open = |names: &[&str]| Folder::open(folder.path(), names.iter().copied(), true).map(drop);
        open(&["a.csv", "sub/b.svg"]).unwrap();
        assert!(open(&["proc/a.csv"]).unwrap_err().to_string().contains("proc: "));
        let in_file = Folder::open(&folder.path().join("file"), [], true).unwrap_err();
        assert_eq!(in_file.kind(), io::ErrorKind::NotADirectory);
        assert!(
            in_file.to_string().ends_with("file is not a directory; name another directory"),
            "{in_file}"
        );
        assert_eq!(names(folder.path()), ["file", "null", "proc"], "nothing is left");
    }
}
