//! Cleaning up after a lab that could not do so itself.
//!
//! A lab keeps a directory with a `lock` file, locked as long as it lives, and a `lab.json` that names its processes.
//! The kernel drops the lock when the lab dies, by whatever cause; so a directory whose lock can be had is a leftover.

use crate::error::{Attempt, Error, Result};
use crate::world::open_pidfd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Signal, geteuid, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "wayfare-lab-";
/// How the name of a lab's directory begins until all is in it.
const NEW: &str = "wayfare-new-";
const LOCK: &str = "lock";
const RECORD: &str = "lab.json";

/// A process, so that another one which later got its number is not taken for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its number, in the lab's PID namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start: u64,
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let line = fs::read_to_string(&path).attempt("read", &path)?;
        // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
        let start = line.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse().ok());
        let start =
            start.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)).attempt("understand", path)?;
        Ok(Self { pid, start })
    }

    /// Kills it if it still lives; whether it did. The descriptor is taken first, so that what is checked is what is
    /// killed.
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

/// What `lab.json` holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Record {
    lab: Process,
    uid: u32,
    /// Numbers and start times mean something within one boot and one PID namespace only.
    boot: String,
    pid_namespace: u64,
    children: Vec<Process>,
}

/// A living lab's directory. Dropping it removes it; what is in it then is lost.
#[derive(Debug)]
pub struct LabDir {
    path: PathBuf,
    record: Record,
    _lock: File,
}

impl LabDir {
    /// Makes one in the system's directory for temporary files.
    pub fn create() -> Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    /// Makes one in `parent`.
    pub fn create_in(parent: &Path) -> Result<Self> {
        // The configuration of the daemons has keys.
        let private = fs::Permissions::from_mode(0o700);
        let make = || tempfile::Builder::new().prefix(NEW).permissions(private).tempdir_in(parent);
        let new = make().attempt("make a directory in", parent.display())?;
        let lock = File::create_new(new.path().join(LOCK)).attempt("make a lock in", new.path().display())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).attempt("lock", new.path().display())?;
        let (boot, pid_namespace) = era()?;
        let lab = Process::of(std::process::id())?;
        let record = Record { lab, uid: geteuid().as_raw(), boot, pid_namespace, children: Vec::new() };
        write(new.path(), &record)?;
        // Only now does it get the name that `clean` looks for: nobody sees it without its lock.
        let name = new.path().file_name().unwrap_or_default().to_string_lossy().replace(NEW, PREFIX);
        let path = parent.join(name);
        fs::rename(new.path(), &path).attempt("rename to", path.display())?;
        let _ = new.keep();
        Ok(Self { path, record, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a child of the lab. Those of a [`crate::World`] need not be noted one by one: its keeper and its pid 1 are
    /// enough, for the rest dies with them. One that has ended already leaves nothing to clean up: a world that finds at
    /// once that it cannot be says why, and that must not be hidden.
    pub fn note_child(&mut self, pid: u32) -> Result<()> {
        match Process::of(pid) {
            Err(gone) if matches!(gone.errno(), Some(libc::ENOENT | libc::ESRCH)) => Ok(()),
            child => {
                self.record.children.push(child?);
                write(&self.path, &self.record)
            }
        }
    }

    /// Removes the directory, and says if that fails.
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
    /// It belongs to another user, or others can write to it: what it says cannot be relied on. Nothing was touched.
    NotOurs(PathBuf),
    /// The lab is dead, and nothing was done about it.
    Dead(PathBuf),
    /// The lab is dead. These processes of its still lived, and were killed; the directory is gone.
    Cleaned(PathBuf, Vec<Process>),
    /// Something could not be done; what was done stays done.
    Failed(PathBuf, Error),
}

/// What labs left behind in the system's directory for temporary files, without doing anything about it.
pub fn look() -> Result<Vec<Leftover>> {
    look_in(&std::env::temp_dir())
}

/// The same in `parent`.
pub fn look_in(parent: &Path) -> Result<Vec<Leftover>> {
    let looked = |path: PathBuf| match standing(&path) {
        Ok(Standing::NotOurs) => Leftover::NotOurs(path),
        Ok(Standing::Alive) => Leftover::Alive(path),
        Ok(Standing::Dead(_)) => Leftover::Dead(path),
        Err(error) => Leftover::Failed(path, error),
    };
    Ok(directories(parent)?.into_iter().map(looked).collect())
}

/// Cleans up after dead labs of this user, in the system's directory for temporary files.
pub fn clean() -> Result<Vec<Leftover>> {
    clean_in(&std::env::temp_dir())
}

/// Cleans up after dead labs of this user in `parent`.
pub fn clean_in(parent: &Path) -> Result<Vec<Leftover>> {
    let cleaned = |path: PathBuf| clean_one(&path).unwrap_or_else(|error| Leftover::Failed(path, error));
    Ok(directories(parent)?.into_iter().map(cleaned).collect())
}

/// The directories of labs, in the order of their names. One that has not its name yet counts from when it has its lock.
fn directories(parent: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(parent).attempt("look into", parent.display())? {
        let entry = entry.attempt("look into", parent.display())?;
        let (name, path) = (entry.file_name(), entry.path());
        let begins = |prefix: &str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        if begins(PREFIX) || (begins(NEW) && path.join(LOCK).exists()) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Whose a directory is, and whether its lab lives.
enum Standing {
    NotOurs,
    Alive,
    /// With its lock, which keeps other cleaners out; without one, its removal was begun.
    Dead(Option<OwnedFd>),
}

fn standing(path: &Path) -> Result<Standing> {
    if !is_ours(path).attempt("look at", path.display())? {
        return Ok(Standing::NotOurs);
    }
    let lock =
        rustix::fs::open(path.join(LOCK), OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    // A lab removes its directory when its children are gone already. Without a lock file, that was begun.
    let lock = match lock {
        Err(rustix::io::Errno::NOENT) => return Ok(Standing::Dead(None)),
        other => other.attempt("open the lock of", path.display())?,
    };
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Standing::Alive),
        other => other.attempt("lock", path.display()).map(|()| Standing::Dead(Some(lock))),
    }
}

fn clean_one(path: &Path) -> Result<Leftover> {
    let lock = match standing(path)? {
        Standing::NotOurs => return Ok(Leftover::NotOurs(path.to_owned())),
        Standing::Alive => return Ok(Leftover::Alive(path.to_owned())),
        Standing::Dead(lock) => lock,
    };
    let killed = if lock.is_some() { kill_recorded(path)? } else { Vec::new() };
    fs::remove_dir_all(path).attempt("remove", path.display())?;
    Ok(Leftover::Cleaned(path.to_owned(), killed))
}

/// A directory for temporary files is everybody's: somebody else's record could name any process.
pub(crate) fn is_ours(path: &Path) -> io::Result<bool> {
    let seen = fs::symlink_metadata(path)?;
    Ok(seen.is_dir() && seen.uid() == geteuid().as_raw() && seen.mode() & 0o022 == 0)
}

fn kill_recorded(path: &Path) -> Result<Vec<Process>> {
    let file = path.join(RECORD);
    let text = match fs::read(&file) {
        Err(none) if none.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.attempt("read", file.display())?,
    };
    let record: Record = serde_json::from_slice(&text).attempt("understand", file.display())?;
    let mut killed = Vec::new();
    if (record.boot, record.pid_namespace) == era()? {
        // The lab itself is dead: it does not hold its lock.
        for process in record.children {
            if process.kill()? {
                killed.push(process);
            }
        }
    }
    Ok(killed)
}

/// The boot, and the PID namespace of the caller.
fn era() -> Result<(String, u64)> {
    let namespace = "/proc/self/ns/pid";
    Ok((boot()?, fs::metadata(namespace).attempt("look at", namespace)?.ino()))
}

/// The identity of this boot of the machine.
pub(crate) fn boot() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).attempt("read", path)?.trim().to_owned())
}

/// Writes the whole record or leaves the old one.
fn write(folder: &Path, record: &Record) -> Result<()> {
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

    /// A process for a record to name; also a test that fails leaves none behind.
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

    /// A directory as a lab leaves it that was killed: nobody holds the lock.
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
        // As if the second one's number had gone to a younger process.
        let mut record: Record = serde_json::from_slice(&fs::read(path.join(RECORD)).unwrap()).unwrap();
        record.children[1].start -= 1;
        write(&path, &record).unwrap();

        let found = clean_in(parent.path()).unwrap();
        let [Leftover::Cleaned(cleaned, killed)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((cleaned, &killed[..]), (&path, &record.children[..1]));
        assert!(!path.exists());
        assert_eq!(recorded.0.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(reused.lives() && stranger.lives());
        assert!(clean_in(parent.path()).unwrap().is_empty());
    }

    /// The lab is a process of its own, which is killed without a chance to tidy up.
    #[test]
    fn a_killed_lab_loses_its_lock() {
        if crate::testing::role().as_deref() == Some("lab") {
            let child = Sleeper::start();
            let mut lab = LabDir::create_in(Path::new(".")).unwrap();
            lab.note_child(child.0.id()).unwrap();
            println!("ready");
            // Until it is killed.
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
        let found = clean_in(parent.path()).unwrap();
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
        let mut record: Record = serde_json::from_slice(&fs::read(path.join(RECORD)).unwrap()).unwrap();
        record.boot = "another".to_owned();
        write(&path, &record).unwrap();
        let found = clean_in(parent.path()).unwrap();
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
        let found = clean_in(parent.path()).unwrap();
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
        let found = clean_in(parent.path()).unwrap();
        assert!(matches!(&found[..], [Leftover::Cleaned(path, _)] if *path == locked), "{found:?}");
        assert!(young.exists(), "it may be about to have its lock");
    }

    #[test]
    fn the_rest_of_an_interrupted_removal_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = dead_lab(parent.path(), &[]);
        fs::remove_file(path.join(LOCK)).unwrap();
        fs::remove_file(path.join(RECORD)).unwrap();
        let found = clean_in(parent.path()).unwrap();
        assert!(matches!(&found[..], [Leftover::Cleaned(..)]), "{found:?}");

        let path = dead_lab(parent.path(), &[]);
        fs::write(path.join(RECORD), "{").unwrap();
        let found = clean_in(parent.path()).unwrap();
        assert!(matches!(&found[..], [Leftover::Failed(..)]) && path.exists(), "{found:?}");
    }
}
