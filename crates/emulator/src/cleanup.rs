//! Cleans up after labs that ended without removing their processes and files.
//!
//! A lab keeps a directory with a `lock` file, which it holds locked while it lives, and a `lab.json` that names its
//! processes. The kernel releases the lock when the lab dies for any reason. So a directory whose lock can be taken
//! is a leftover.

use os::{
    Attempt, Error, Result,
    files::{boot_id, is_private_folder},
    open_pidfd,
};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Signal, geteuid, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "wayfare-lab-";
/// The prefix of the name of a lab's directory until the directory has its lock and its record.
const NEW: &str = "wayfare-new-";
const LOCK: &str = "lock";
const RECORD: &str = "lab.json";

/// A process, identified by its pid and its start time. So a later process with the same pid is not mistaken for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// The process's pid, in the PID namespace of the process that started the lab.
    pub pid: u32,
    /// When the process started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start: u64,
}

impl Process {
    /// Returns the process that has this pid now. Fails with `ENOENT` or `ESRCH` if there is none.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let line = fs::read_to_string(&path).attempt("read", &path)?;
        // The second field is the program's name in parentheses; the name may contain spaces and parentheses.
        let start = line.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse().ok());
        let start =
            start.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)).attempt("parse", path)?;
        Ok(Self { pid, start })
    }

    /// Kills the process if it still exists. Returns whether it was killed. The pidfd is opened before the check, so
    /// that the process checked is the process killed.
    fn kill(self) -> Result<bool> {
        let kill = || match open_pidfd(self.pid) {
            Ok(pidfd) if Self::of(self.pid).is_ok_and(|now| now == self) => {
                match pidfd_send_signal(&pidfd, Signal::KILL) {
                    Ok(()) => Ok(true),
                    Err(rustix::io::Errno::SRCH) => Ok(false),
                    Err(refused) => Err(refused.into()),
                }
            }
            Ok(_) => Ok(false),
            Err(gone) if gone.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(refused) => Err(refused),
        };
        kill().attempt("kill the left-over process", self.pid)
    }
}

/// The content of `lab.json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct LabRecord {
    lab: Process,
    uid: u32,
    /// The boot id: pids and start times are valid only within one boot and one PID namespace.
    boot: String,
    pid_namespace: u64,
    children: Vec<Process>,
}

/// The directory of a lab that runs. Dropping this value removes the directory with its content.
#[derive(Debug)]
pub struct LabDir {
    path: PathBuf,
    record: LabRecord,
    _lock: File,
}

impl LabDir {
    /// Creates the directory of a lab in the system's directory for temporary files, with a locked `lock` file. Fails
    /// if a file cannot be made or locked.
    pub fn create() -> Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    /// Creates the directory of a lab in `parent`, like [`LabDir::create`].
    pub(crate) fn create_in(parent: &Path) -> Result<Self> {
        // Only this user may read the directory, because the daemons' configurations contain keys.
        let private = fs::Permissions::from_mode(0o700);
        let make = || tempfile::Builder::new().prefix(NEW).permissions(private).tempdir_in(parent);
        let new = make().attempt("make a directory in", parent.display())?;
        let lock = File::create_new(new.path().join(LOCK)).attempt("make a lock in", new.path().display())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).attempt("lock", new.path().display())?;
        let (boot, pid_namespace) = era()?;
        let lab = Process::of(std::process::id())?;
        let record = LabRecord { lab, uid: geteuid().as_raw(), boot, pid_namespace, children: Vec::new() };
        write(new.path(), &record)?;
        // The directory gets its final name when it has its lock and its record.
        let name = new.path().file_name().unwrap_or_default().to_string_lossy().replace(NEW, PREFIX);
        let path = parent.join(name);
        fs::rename(new.path(), &path).attempt("rename to", path.display())?;
        let _ = new.keep();
        Ok(Self { path, record, _lock: lock })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records a child of the lab, by its pid in this process's PID namespace. Of a [`os::Sandbox`], only its keeper
    /// and its pid 1 need to be recorded: the other processes die with them. A child that has already ended is ignored,
    /// because it leaves nothing to clean up. An error would hide the reason why its sandbox failed.
    pub(crate) fn note_child(&mut self, pid: u32) -> Result<()> {
        match Process::of(pid) {
            Err(gone) if matches!(gone.errno(), Some(libc::ENOENT | libc::ESRCH)) => Ok(()),
            child => {
                self.record.children.push(child?);
                write(&self.path, &self.record)
            }
        }
    }

    /// Removes the directory, and returns an error if that fails.
    pub fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.path).attempt("remove", self.path.display())
    }
}

impl Drop for LabDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What [`look`] or [`clean`] found in one directory, and did about it.
#[derive(Debug)]
pub enum Leftover {
    /// The lab lives; nothing was touched.
    Alive(PathBuf),
    /// The entry is no directory of this user, or other users can write to it. So its record cannot be trusted, and
    /// nothing was touched.
    NotOurs(PathBuf),
    /// The lab is dead, and nothing was done about it.
    Dead(PathBuf),
    /// The lab is dead. These processes of the lab still lived and were killed; the directory is removed.
    Cleaned(PathBuf, Vec<Process>),
    /// A step failed; the steps before it are not undone.
    Failed(PathBuf, Error),
}

/// Lists the directories of labs, running or dead, in the system's directory for temporary files. Changes nothing.
/// Fails if that directory cannot be read.
pub fn look() -> Result<Vec<Leftover>> {
    look_in(&std::env::temp_dir())
}

/// Lists the directories of labs, running or dead, in `parent`. Changes nothing. Fails if `parent` cannot be read.
pub fn look_in(parent: &Path) -> Result<Vec<Leftover>> {
    let looked = |path: PathBuf| match lab_state(&path) {
        Ok(LabState::NotOurs) => Leftover::NotOurs(path),
        Ok(LabState::Alive) => Leftover::Alive(path),
        Ok(LabState::Dead(_)) => Leftover::Dead(path),
        Err(error) => Leftover::Failed(path, error),
    };
    Ok(directories(parent)?.into_iter().map(looked).collect())
}

/// Cleans up after dead labs of this user, in the system's directory for temporary files: kills their processes and
/// removes their directories. Returns a result for each directory of a lab. Fails if the directory for temporary files
/// cannot be read.
pub fn clean() -> Result<Vec<Leftover>> {
    clean_in(&std::env::temp_dir())
}

/// Cleans up after dead labs of this user in `parent`, like [`clean`].
pub fn clean_in(parent: &Path) -> Result<Vec<Leftover>> {
    let cleaned = |path: PathBuf| clean_one(&path).unwrap_or_else(|error| Leftover::Failed(path, error));
    Ok(directories(parent)?.into_iter().map(cleaned).collect())
}

/// Returns the directories of labs, in the order of their names. A directory that does not have its final name yet is
/// included once it has its lock.
fn directories(parent: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(parent).attempt("list", parent.display())? {
        let entry = entry.attempt("list", parent.display())?;
        let (name, path) = (entry.file_name(), entry.path());
        let begins = |prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        if begins(PREFIX) || (begins(NEW) && path.join(LOCK).exists()) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Whether a directory is a private directory of this user, and whether its lab lives.
enum LabState {
    NotOurs,
    Alive,
    /// The lab is dead. The value is the locked lock file: while it is held, no other process cleans up the directory.
    /// It is `None` if there is no lock file, because the removal of the directory had begun.
    Dead(Option<OwnedFd>),
}

fn lab_state(path: &Path) -> Result<LabState> {
    if !is_private_folder(path).attempt("read the metadata of", path.display())? {
        return Ok(LabState::NotOurs);
    }
    let lock =
        rustix::fs::open(path.join(LOCK), OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    // A lab removes its directory after its children have ended. A missing lock file means that the removal had
    // begun.
    let lock = match lock {
        Err(rustix::io::Errno::NOENT) => return Ok(LabState::Dead(None)),
        other => other.attempt("open the lock of", path.display())?,
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(LabState::Alive),
        other => other.attempt("lock", path.display()).map(|()| LabState::Dead(Some(lock))),
    }
}

fn clean_one(path: &Path) -> Result<Leftover> {
    let lock = match lab_state(path)? {
        LabState::NotOurs => return Ok(Leftover::NotOurs(path.to_owned())),
        LabState::Alive => return Ok(Leftover::Alive(path.to_owned())),
        LabState::Dead(lock) => lock,
    };
    let killed = if lock.is_some() { kill_recorded(path)? } else { Vec::new() };
    fs::remove_dir_all(path).attempt("remove", path.display())?;
    Ok(Leftover::Cleaned(path.to_owned(), killed))
}

fn kill_recorded(path: &Path) -> Result<Vec<Process>> {
    let file = path.join(RECORD);
    let text = match fs::read(&file) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.attempt("read", file.display())?,
    };
    let record: LabRecord = serde_json::from_slice(&text).attempt("parse", file.display())?;
    let mut killed = Vec::new();
    if (record.boot, record.pid_namespace) == era()? {
        // The lab itself is dead, because it does not hold its lock.
        for process in record.children {
            if process.kill()? {
                killed.push(process);
            }
        }
    }
    Ok(killed)
}

/// Returns the boot id, and the inode of the caller's PID namespace.
fn era() -> Result<(String, u64)> {
    let namespace = "/proc/self/ns/pid";
    Ok((boot_id()?, fs::metadata(namespace).attempt("read the metadata of", namespace)?.ino()))
}

/// Writes the whole record, or leaves the old one.
fn write(folder: &Path, record: &LabRecord) -> Result<()> {
    let (new, file) = (folder.join("lab.json.new"), folder.join(RECORD));
    let text = serde_json::to_vec_pretty(record).attempt("write", file.display())?;
    fs::write(&new, text).attempt("write", new.display())?;
    fs::rename(&new, &file).attempt("write", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    /// A process that a record can name. It is also killed if the test fails.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(
                Command::new("sleep").arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap(),
            )
        }

        fn lives(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Cleans the labs in `parent`, none of which is alive. A child that another test has just forked still has this
    /// process's locks until it starts its program, so the cleaning is repeated for at most 5 s.
    fn clean_dead(parent: &Path) -> Vec<Leftover> {
        for _ in 0..500 {
            let found = clean_in(parent).unwrap();
            if !found.iter().any(|left| matches!(left, Leftover::Alive(_))) {
                return found;
            }
            os::pause(wire::Duration::from_millis(10));
        }
        clean_in(parent).unwrap()
    }

    /// Makes a directory as a killed lab leaves it: its lock is not held.
    fn dead_lab(parent: &Path, children: &[u32]) -> PathBuf {
        let mut lab = LabDir::create_in(parent).unwrap();
        for pid in children {
            lab.note_child(*pid).unwrap();
        }
        let path = lab.path().to_owned();
        let kept = parent.join("kept");
        fs::rename(&path, &kept).unwrap();
        drop(lab);
        fs::rename(kept, &path).unwrap();
        path
    }

    #[test]
    fn a_living_lab_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let mut child = Sleeper::start();
        let mut lab = LabDir::create_in(parent.path()).unwrap();
        assert_eq!(fs::metadata(lab.path()).unwrap().mode() & 0o777, 0o700, "it has keys");
        lab.note_child(child.0.id()).unwrap();
        let found = clean_in(parent.path()).unwrap();
        assert!(matches!(&found[..], [Leftover::Alive(path)] if path == lab.path()), "{found:?}");
        assert!(lab.path().join(RECORD).exists() && child.lives());
        lab.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_child_that_has_ended_already_need_not_be_noted() {
        let parent = tempfile::tempdir().unwrap();
        let mut child = Sleeper::start();
        let pid = child.0.id();
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let mut lab = LabDir::create_in(parent.path()).unwrap();
        lab.note_child(pid).unwrap();
        assert_eq!(lab.record.children, []);
    }

    #[test]
    fn a_dead_labs_processes_are_killed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let (mut recorded, mut reused, mut stranger) = (Sleeper::start(), Sleeper::start(), Sleeper::start());
        let path = dead_lab(parent.path(), &[recorded.0.id(), reused.0.id()]);
        // The record of the second process gets another start time. So it names an earlier process with the same pid.
        let mut record: LabRecord = serde_json::from_slice(&fs::read(path.join(RECORD)).unwrap()).unwrap();
        record.children[1].start -= 1;
        write(&path, &record).unwrap();

        let found = clean_dead(parent.path());
        let [Leftover::Cleaned(cleaned, killed)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((cleaned, &killed[..]), (&path, &record.children[..1]));
        assert!(!path.exists());
        assert_eq!(recorded.0.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(reused.lives() && stranger.lives());
        assert!(clean_dead(parent.path()).is_empty());
    }

    /// A lab that was killed is found to be dead, and its child is killed. The lab is a separate process.
    #[test]
    fn a_killed_lab_loses_its_lock() {
        if crate::testing::role().as_deref() == Some("lab") {
            let child = Sleeper::start();
            let mut lab = LabDir::create_in(Path::new(".")).unwrap();
            lab.note_child(child.0.id()).unwrap();
            println!("ready");
            // Waits until this process is killed.
            rustix::event::poll(&mut [], None).unwrap();
        }
        let parent = tempfile::tempdir().unwrap();
        let mut lab = lab_process(&|| {}, parent.path());
        assert!(matches!(&look_in(parent.path()).unwrap()[..], [Leftover::Alive(_)]));
        assert!(matches!(&clean_in(parent.path()).unwrap()[..], [Leftover::Alive(_)]));
        lab.kill().unwrap();
        lab.wait().unwrap();
        assert!(
            matches!(&look_in(parent.path()).unwrap()[..], [Leftover::Dead(_)]),
            "looking touches nothing"
        );
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::Cleaned(_, killed)] if killed.len() == 1), "{found:?}");
    }

    fn lab_process<F: FnOnce()>(_: &F, folder: &Path) -> Child {
        use std::io::{BufRead, BufReader};
        let mut command = crate::testing::again::<F>("lab");
        let mut lab = command.current_dir(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(lab.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")));
        lab
    }

    #[test]
    fn a_record_of_another_boot_kills_nobody() {
        let parent = tempfile::tempdir().unwrap();
        let mut child = Sleeper::start();
        let path = dead_lab(parent.path(), &[child.0.id()]);
        let mut record: LabRecord = serde_json::from_slice(&fs::read(path.join(RECORD)).unwrap()).unwrap();
        record.boot = "another".to_owned();
        write(&path, &record).unwrap();
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::Cleaned(_, killed)] if killed.is_empty()), "{found:?}");
        assert!(child.lives() && !path.exists());
    }

    #[test]
    fn what_others_could_have_written_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let parent = tempfile::tempdir().unwrap();
        let mut child = Sleeper::start();
        let path = dead_lab(parent.path(), &[child.0.id()]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let link = parent.path().join("wayfare-lab-zz-link");
        symlink(&path, &link).unwrap();
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::NotOurs(_), Leftover::NotOurs(_)]), "{found:?}");
        assert!(child.lives() && path.exists());
    }

    #[test]
    fn a_lab_that_was_killed_before_its_directory_was_whole_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let [locked, young] = ["wayfare-new-a", "wayfare-new-b"].map(|name| parent.path().join(name));
        for path in [&locked, &young] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        File::create(locked.join(LOCK)).unwrap();
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::Cleaned(path, _)] if *path == locked), "{found:?}");
        assert!(young.exists(), "it may be about to have its lock");
    }

    #[test]
    fn the_rest_of_an_interrupted_removal_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = dead_lab(parent.path(), &[]);
        fs::remove_file(path.join(LOCK)).unwrap();
        fs::remove_file(path.join(RECORD)).unwrap();
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::Cleaned(..)]), "{found:?}");

        let path = dead_lab(parent.path(), &[]);
        fs::write(path.join(RECORD), "{").unwrap();
        let found = clean_dead(parent.path());
        assert!(matches!(&found[..], [Leftover::Failed(..)]) && path.exists(), "{found:?}");
    }
}
