//! Separate namespaces for a lab. When the lab ends for any reason, the kernel removes its processes, namespaces and
//! mounts.
//!
//! The program that runs in a sandbox is pid 1 of a new PID namespace. When it dies, the kernel kills every process in
//! that namespace. The network namespaces disappear with their last process and descriptor. Mounts stay inside. A user
//! who is not root becomes root of a new user namespace, with rights over this sandbox only.

use crate::error::{Attempt, Error, Result, check};
use crate::namespace::{die_with_parent, unshare};
use crate::process::open_pidfd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use rustix::time::Timespec;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use wire::Duration;

/// Time for the processes of a sandbox to end after they were killed. If a process exists longer, the kernel cannot end
/// it, for example because its control group is frozen.
const LAST: Duration = Duration::from_secs(5);

/// A running sandbox. Dropping this value ends the sandbox.
///
/// Between the caller and pid 1 is the keeper, a process that only waits. It ends the sandbox when the caller dies, and
/// passes on pid 1's exit status.
#[derive(Debug)]
pub struct Sandbox {
    keeper: Child,
    init: u32,
    pidfd: OwnedFd,
    /// The keeper ends the sandbox when this pipe closes. The end of the caller's process also closes the pipe.
    lifeline: Option<OwnedFd>,
}

impl Sandbox {
    /// Starts `command` as pid 1 of a new sandbox. The sandbox has network, mount and PID namespaces, and its own
    /// `/proc`. Unless the caller is root, it also has a user namespace. The loopback is down, as in any new network
    /// namespace.
    ///
    /// The keeper does not keep the standard input, output and error; only the command has them. Send signals for the
    /// sandbox to [`Sandbox::init`].
    pub fn spawn(mut command: Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let pipe = || pipe_with(PipeFlags::CLOEXEC).attempt("open a pipe to", &program);
        let (mut plan, lifeline, report) = {
            let ((life_read, life_write), (report_read, report_write)) = (pipe()?, pipe()?);
            (
                Plan { maps: Maps::needed(), lifeline: life_read, report: report_write },
                life_write,
                report_read,
            )
        };
        // SAFETY: the plan does system calls only; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || plan.carry_out()) };
        let spawned = command.spawn();
        drop(command);

        let mut said = Vec::new();
        File::from(report).read_to_end(&mut said).attempt("read the start-up report of", &program)?;
        let mut keeper = spawned.map_err(|cause| failure(&said, &program, cause))?;
        let init = reported(&said, Reported::Pid).unwrap_or(0);
        match open_pidfd(keeper.id()) {
            Ok(pidfd) => Ok(Self { keeper, init, pidfd, lifeline: Some(lifeline) }),
            Err(refused) => {
                drop(lifeline);
                let _ = keeper.wait();
                Err(refused).attempt("open a pidfd (pidfd_open) for the sandbox of", program)
            }
        }
    }

    /// Returns the pid of pid 1 as seen from outside, for signals and for [`crate::NetNs::of`].
    pub const fn init(&self) -> u32 {
        self.init
    }

    /// Returns the keeper. The pipes of this child are pid 1's standard streams. The keeper ends when the sandbox has
    /// ended. To be able to clean up after a crash, record both [`Sandbox::init`] and the keeper's id.
    pub const fn keeper(&mut self) -> &mut Child {
        &mut self.keeper
    }

    /// Waits until the sandbox has ended, at most for `limit`; `None` is no limit. Returns `None` if it has not ended
    /// in this time. The exit code is that of pid 1, or 128 plus the number of the signal that killed pid 1.
    pub fn wait(&mut self, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        loop {
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], limit.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => return self.keeper.wait().map(Some).attempt("wait for", "the sandbox's end"),
                Err(rustix::io::Errno::INTR) => {}
                Err(refused) => return Err(refused).attempt("wait for", "the sandbox's end"),
            }
        }
    }

    /// Kills all processes of the sandbox, and waits until it has ended. Fails if a process does not end within 5 s.
    pub fn end(&mut self) -> Result<ExitStatus> {
        self.lifeline = None;
        self.wait(Some(LAST))?.ok_or_else(|| Error {
            attempt: "end",
            subject: format!("process {} and all in its PID namespace", self.init),
            cause: io::Error::new(
                io::ErrorKind::TimedOut,
                "a process was killed and does not end; if its control group is frozen, thaw this group",
            ),
        })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // If `end` was called before, it is not repeated: a process that did not end then cannot be ended now.
        if self.lifeline.is_some() {
            let _ = self.end();
        }
    }
}

/// The descriptor is readable when the sandbox has ended.
impl AsFd for Sandbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The id maps that make the caller root inside a user namespace, prepared before the fork.
#[derive(Debug)]
pub struct Maps {
    uid: Vec<u8>,
    gid: Vec<u8>,
}

impl Maps {
    /// Returns the maps that the caller needs; `None` for root.
    pub fn needed() -> Option<Self> {
        (!geteuid().is_root()).then(Self::of_the_caller)
    }

    /// Returns the maps that make this process's user root.
    pub fn of_the_caller() -> Self {
        let line = |id: u32| format!("0 {id} 1\n").into_bytes();
        Self { uid: line(geteuid().as_raw()), gid: line(getegid().as_raw()) }
    }
}

/// Moves this process into new namespaces of the kinds `what`. If `maps` is given, the process also becomes root of a
/// new user namespace. The process must have a single thread. The error has the step that failed.
pub fn leave(maps: Option<&Maps>, what: UnshareFlags) -> std::result::Result<(), (Step, io::Error)> {
    let Some(maps) = maps else { return unshare(what).map_err(Step::Unshare.failed()) };
    unshare(what | UnshareFlags::NEWUSER).map_err(Step::UnshareUser.failed())?;
    // If a process is not dumpable, its map files belong to root, and it cannot write them. So the process is made
    // dumpable while it writes the files. Afterwards it is made non-dumpable again, because its memory may have keys.
    let shown = show_memory();
    // Without root's rights in the parent namespace, the kernel accepts a group map only from a process that can no
    // longer set groups.
    overwrite(c"/proc/self/setgroups", b"deny").map_err(Step::SetGroups.failed())?;
    overwrite(c"/proc/self/uid_map", &maps.uid).map_err(Step::UidMap.failed())?;
    overwrite(c"/proc/self/gid_map", &maps.gid).map_err(Step::GidMap.failed())?;
    if shown {
        crate::hide_memory();
    }
    Ok(())
}

/// Makes the process dumpable. Returns whether the process was not dumpable before.
fn show_memory() -> bool {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
    dumpable_behavior().is_ok_and(|now| now == DumpableBehavior::NotDumpable)
        && set_dumpable_behavior(DumpableBehavior::Dumpable).is_ok()
}

fn overwrite(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::io::write(&file, text)? {
        written if written == text.len() => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

/// The steps between fork and exec that can fail. The new process can report only the number of the step that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Step {
    /// Creates the namespaces as root, without a user namespace (`unshare(2)`).
    Unshare = 1,
    /// Creates a user namespace, and the other namespaces in it (`unshare(2)`).
    UnshareUser,
    /// Writes `/proc/self/setgroups`.
    SetGroups,
    /// Writes the map of user ids, `/proc/self/uid_map`.
    UidMap,
    /// Writes the map of group ids, `/proc/self/gid_map`.
    GidMap,
    /// Forks the process that becomes pid 1.
    Fork,
    /// Sets the signal that kills pid 1 when its keeper dies.
    Watch,
    /// Makes mounts private, so that they are not visible outside.
    Private,
    /// Mounts `/proc` for the new PID namespace.
    Proc,
}

impl Step {
    /// All steps, in the order of execution. Root executes the first step and not the next four steps. Other users
    /// execute these four steps and not the first.
    pub const ALL: [Self; 9] = [
        Self::Unshare,
        Self::UnshareUser,
        Self::SetGroups,
        Self::UidMap,
        Self::GidMap,
        Self::Fork,
        Self::Watch,
        Self::Private,
        Self::Proc,
    ];

    /// Returns the step at which the creation of a sandbox failed; `None` if the error has another cause.
    pub fn of(error: &Error) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.attempt() == error.attempt)
    }

    fn failed(self) -> impl FnOnce(io::Error) -> (Self, io::Error) {
        move |cause| (self, cause)
    }

    /// Returns what was attempted, as the verb for [`Error::attempt`].
    pub const fn attempt(self) -> &'static str {
        match self {
            Self::Unshare => "make new namespaces for",
            Self::UnshareUser => "make a user namespace for",
            Self::SetGroups => "write /proc/self/setgroups for",
            Self::UidMap => "write /proc/self/uid_map for",
            Self::GidMap => "write /proc/self/gid_map for",
            Self::Fork => "create the process of pid 1 (fork) for",
            Self::Watch => "set the parent-death signal (prctl) of the process that is to run",
            Self::Private => "make the mounts private for",
            Self::Proc => "mount /proc for",
        }
    }
}

const NO_MOUNT_POINT: &str =
    "`/` is not a mount point, as in a plain chroot; mount it before the chroot (mount --bind DIR DIR)";

/// What one message of the new processes reports. Pid 1 and its keeper write to the same pipe in any order, so each
/// message has its kind. A message is shorter than `PIPE_BUF`, so the kernel does not interleave it with another.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Reported {
    /// The pid of pid 1, as seen from outside.
    Pid,
    /// The number of the step that failed.
    Failed,
}

/// The length of a message in bytes: one for its kind, four for a number.
const MESSAGE: usize = 5;

fn report(pipe: &OwnedFd, kind: Reported, number: u32) {
    let [a, b, c, d] = number.to_ne_bytes();
    let _ = rustix::io::write(pipe, &[kind as u8, a, b, c, d]);
}

/// Returns the number that a message of this kind has, if there is one.
fn reported(said: &[u8], kind: Reported) -> Option<u32> {
    let of_kind = |message: &&[u8; MESSAGE]| message[0] == kind as u8;
    let [_, number @ ..] = said.as_chunks::<MESSAGE>().0.iter().find(of_kind)?;
    Some(u32::from_ne_bytes(*number))
}

/// Returns the error of a command that did not start, with the step that failed.
fn failure(said: &[u8], program: &str, cause: io::Error) -> Error {
    let step = reported(said, Reported::Failed);
    let step = step.and_then(|number| Step::ALL.into_iter().find(|step| *step as u32 == number));
    // If `/` is a plain directory of a chroot, the kernel reports only "invalid argument".
    let cause = match (step, cause.raw_os_error()) {
        (Some(Step::Private), Some(libc::EINVAL)) => io::Error::other(NO_MOUNT_POINT),
        _ => cause,
    };
    Error { attempt: step.map_or("start", Step::attempt), subject: program.to_owned(), cause }
}

/// What the new process does before it executes the command.
struct Plan {
    maps: Option<Maps>,
    lifeline: OwnedFd,
    report: OwnedFd,
}

impl Plan {
    fn carry_out(&mut self) -> io::Result<()> {
        self.steps().map_err(|(step, cause)| {
            report(&self.report, Reported::Failed, step as u32);
            cause
        })
    }

    /// Runs the steps in the caller's child, which becomes the keeper. After success it returns only in the keeper's
    /// child, which becomes pid 1.
    fn steps(&self) -> std::result::Result<(), (Step, io::Error)> {
        leave(self.maps.as_ref(), UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
        let alive = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(Step::Fork.failed())?;
        // SAFETY: this process has one thread, and its child proceeds to exec.
        match check(unsafe { libc::fork() }).map_err(Step::Fork.failed())? {
            0 => {
                drop(alive.1);
                watch(&alive.0).map_err(Step::Watch.failed())?;
                let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
                mount_change(c"/", private).map_err(io::Error::from).map_err(Step::Private.failed())?;
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                let proc = mount(c"proc", c"/proc", c"proc", flags, None);
                proc.map_err(io::Error::from).map_err(Step::Proc.failed())
            }
            init => {
                report(&self.report, Reported::Pid, init.cast_unsigned());
                keep(init, self.lifeline.as_raw_fd(), alive.1.as_raw_fd())
            }
        }
    }
}

/// Makes this process die with the keeper. Fails if the keeper has died already: then the other end of the pipe
/// `keeper` is closed. The parent's pid does not show that. It is always zero, because the parent is outside the PID
/// namespace.
fn watch(keeper: &OwnedFd) -> io::Result<()> {
    die_with_parent()?;
    let mut end = [PollFd::new(keeper, PollFlags::IN)];
    match poll(&mut end, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Runs the keeper until the sandbox has ended. It blocks all signals, so that Ctrl-C does not end the keeper before
/// pid 1 has ended cleanly.
fn keep(init: i32, lifeline: RawFd, alive: RawFd) -> ! {
    // SAFETY: system calls on this process's own descriptors and its own child; the structures are valid when all zero,
    // and outlive the calls.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        close_all_but(lifeline, alive);
        let pidfd = libc::syscall(libc::SYS_pidfd_open, init, 0) as RawFd;
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut wait = [entry(lifeline), entry(pidfd)];
        libc::poll(wait.as_mut_ptr(), 2, -1);
        let [caller, _] = wait;
        if caller.revents != 0 || pidfd < 0 {
            libc::kill(init, libc::SIGKILL);
        }
        let mut status = 0;
        libc::waitpid(init, &raw mut status, 0);
        libc::_exit(if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        })
    }
}

/// Closes all descriptors except `a` and `b`. The caller's pipes must be closed, because their readers wait for the end
/// of file. The keeper must not keep the caller's locks either.
fn close_all_but(a: RawFd, b: RawFd) {
    let (low, high) = (a.min(b).cast_unsigned(), a.max(b).cast_unsigned());
    let close = |first: u32, last: u32| {
        if first <= last {
            // SAFETY: this process uses only the two descriptors that are kept.
            unsafe { libc::close_range(first, last, 0) };
        }
    };
    if low > 0 {
        close(0, low - 1);
    }
    if high > low {
        close(low + 1, high - 1);
    }
    close(high + 1, u32::MAX);
}

#[cfg(test)]
mod tests;
